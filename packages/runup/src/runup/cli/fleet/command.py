"""Defines `runup fleet`: many clusters at once; each command names them by the same options."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import click
import msgspec

from runup.cli import static_completion
from runup.cli.connection import connection_of, connection_options
from runup.cli.lazy import LazyGroup
from runup.cli.options import typed_version, version_option
from runup.cli.preflight.outputs import FLEET_FORMS, Target, outputs_option, targets_of, verdict_options
from runup.cli.release.shared import access, registry_options, run_guarded

if TYPE_CHECKING:
    from collections.abc import Iterable

    from runup.fleet.control.fleet_members import NamedMembers

# A rehearsal stands above all other commands, since it makes a separate cluster.
SUBCOMMANDS = {
    "rehearse": "runup.cli.rehearse.fleet_command:rehearse",
    "update": "runup.cli.rollout.fleet_update_command:update",
}
SUMMARIES = {
    "rehearse": "Rehearse one release on a copy of each of many clusters.",
    "update": "Update many clusters, stage by stage, each behind its own gates.",
}
F = TypeVar("F", bound=Callable[..., Any])
_CLUSTERS = ("contexts", "kubeconfigs", "dumps", "inventories")
_HOW = ("selector", "parallel", "timeout", "engine", "scheduler")
SECTIONS = (("Clusters", (*_CLUSTERS, *_HOW)),)
SECTIONS_WITH_HUB = (("Clusters", (*_CLUSTERS, "hub", "cluster_set", *_HOW)),)


def complete_context_names(ctx: click.Context) -> Iterable[str]:
    from kubekit.kube.config import context_names

    return ("all", *context_names(connection_of(ctx).kubeconfig))


_DUMPS = click.option(
    "--dumps",
    multiple=True,
    metavar="DIR|TAR|s3://BUCKET/PREFIX",
    shell_complete=static_completion.files,
    help="A folder of dumps, packed or not, a tar archive of it, or where a store has them.",
)
_MEMBERS = (
    click.option(
        "--contexts",
        multiple=True,
        metavar="A,B|all",
        shell_complete=static_completion.complete_from(complete_context_names),
        help="Contexts of the kubeconfig; `all`: each server once.",
    ),
    click.option(
        "--kubeconfigs",
        multiple=True,
        metavar="DIR",
        shell_complete=static_completion.folders,
        help="A folder of kubeconfigs, one for each cluster.",
    ),
    _DUMPS,
    click.option(
        "--inventory",
        "inventories",
        multiple=True,
        metavar="FILE",
        shell_complete=static_completion.files,
        help="A YAML file that names clusters, where each is read, and labels.",
    ),
    click.option("-l", "--selector", default="", metavar="LABELS", help="Only clusters with labels: env=production."),
)
_LIMITS = (
    click.option(
        "--timeout",
        default=600,
        show_default=True,
        type=click.IntRange(1, 86400),
        help="Seconds that one cluster may take.",
    ),
    click.option(
        "--engine",
        type=click.Choice(["local", "dask"]),
        default="local",
        show_default=True,
        help="What reads the dumps: processes here, or the workers of a Dask scheduler.",
    ),
    click.option("--scheduler", default="", metavar="tcp://HOST:PORT", help="With --engine dask: its address."),
)


PARALLEL = "Clusters at once; else one dump a processor, 8 live clusters."


def member_options(function: F, parallel_help: str = f"{PARALLEL} 0: one after the other, in this process.") -> F:
    """Adds the options that name the clusters of a fleet; `named_by` reads them."""
    parallel = click.option("--parallel", metavar="N", type=click.IntRange(0, 64), help=parallel_help)
    for option in reversed((*_MEMBERS, parallel, *_LIMITS)):
        function = option(function)
    return function


def cluster_options(function: F) -> F:
    """Adds the options that name live clusters: `--contexts`, `--kubeconfigs`, `--inventory` and `--selector`."""
    for option in reversed([each for each in _MEMBERS if each is not _DUMPS]):
        function = option(function)
    return function


def named_by(members: dict[str, Any]) -> NamedMembers:
    """Returns the clusters as they were named by the options of `member_options`."""
    from runup.fleet.control.fleet_members import NamedMembers

    scheduler = members["scheduler"]
    if (members["engine"] == "dask") != bool(scheduler):
        raise click.UsageError(
            "--engine dask and --scheduler tcp://HOST:PORT need each other", click.get_current_context()
        )
    contexts = tuple(name for names in members["contexts"] for name in names.split(",") if name)
    return NamedMembers(
        contexts=contexts,
        kubeconfigs=members["kubeconfigs"],
        dumps=members["dumps"],
        inventories=members["inventories"],
        selector=members["selector"],
        parallel=members["parallel"],
        timeout_s=members["timeout"],
        scheduler=scheduler,
    )


_HUB = (
    click.option(
        "--hub",
        default="",
        metavar="CONTEXT",
        shell_complete=static_completion.complete_from(complete_context_names),
        help="A hub of Open Cluster Management: its clusters, by what they sent there.",
    ),
    click.option(
        "--clusterset",
        "cluster_set",
        default="",
        metavar="NAME",
        help="With --hub: only clusters of this ManagedClusterSet.",
    ),
)


def hub_options(function: F) -> F:
    """Adds the options that name a hub, and one of its sets of clusters."""
    for option in reversed(_HUB):
        function = option(function)
    return function


@click.group("fleet", cls=LazyGroup, places=SUBCOMMANDS, summaries=SUMMARIES)
@connection_options
def fleet() -> None:
    """Many clusters at once: live ones, dumps, or both.

    \b
      runup fleet preflight --contexts all
      runup fleet preflight --dumps DIR --to 4.16.0 -o json=fleet.json,markdown=-
      runup fleet status --kubeconfigs DIR
      runup fleet recommend --inventory clusters.yaml -l env=production
    """


@fleet.command("preflight", sections=SECTIONS_WITH_HUB)
@member_options
@hub_options
@version_option("--to", help="Target version; else the release's, else the next minor.")
@version_option("--from", "from_", help="Source version, if not each cluster's own.")
@click.option("--to-image", default="", metavar="IMAGE", help="The target's release image, oci:DIR or in a registry.")
@click.option("--release-dir", default="", metavar="DIR", help="A folder with what the release image has at its root.")
@outputs_option(FLEET_FORMS)
@click.option("-v", "--verbose", is_flag=True, help="Every risk, group and name, and a line for each cluster.")
@verdict_options
@click.option(
    "--store",
    default="",
    metavar="DIR|sqlite:FILE|configmap:NAMESPACE/NAME",
    help="Keep every report in this folder, file or ConfigMap, by cluster and time.",
)
@click.option("--check-timeout", default=10.0, show_default=True, help="Seconds that one check may take on a cluster.")
@registry_options
@connection_options
@click.pass_context
def preflight(
    ctx: click.Context,
    /,
    to: str,
    from_: str,
    to_image: str,
    release_dir: str,
    outputs: tuple[tuple[Target, ...], ...],
    verbose: bool,
    fail_on: str,
    suppressions: str,
    baseline: str,
    store: str,
    check_timeout: float,
    registry_config: str,
    idms_file: str,
    certificate_authority: str,
    plain_http: tuple[str, ...],
    hub: str,
    cluster_set: str,
    **members: Any,
) -> int:
    """Check many clusters for an update, changing nothing: which risk is where, and which clusters are alike.

    Exit codes as for `preflight run`, of the worst cluster: 0 nothing in the way, 2 risks apply, 3 something is
    unknown, 1 a cluster could not be evaluated.

    \b
      runup fleet preflight --contexts harbour,lighthouse
      runup fleet preflight --dumps DIR --to 4.16.0 -o html=fleet.html
      runup fleet preflight --inventory clusters.yaml -l env=production --suppressions accepted.yaml
      runup fleet preflight --dumps DIR --store reports --baseline last.json
      runup fleet preflight --hub CONTEXT --clusterset canary --to 4.16.3
    """
    from runup.cli.fleet import preflight_command as runs
    from runup.evaluation.request import Flags

    flags = Flags(
        to=to,
        from_=from_,
        to_image=to_image,
        release_dir=release_dir,
        dumps=(),
        outputs=targets_of(outputs),
        fail_on=fail_on,
        suppressions=suppressions,
        check_timeout_s=check_timeout,
        verbose=verbose,
        store=store,
        baseline=baseline,
    )
    named_members = msgspec.structs.replace(named_by(members), hub=hub, cluster_set=cluster_set)
    return run_guarded(
        lambda: runs.run(
            connection_of(ctx),
            named_members,
            flags,
            lambda: access(
                registry_config,
                idms_file,
                certificate_authority=certificate_authority,
                plain_http=plain_http,
                inner_registry=(),
            ),
        )
    )


@fleet.command("addon")
@click.option(
    "--placement",
    "placements",
    required=True,
    multiple=True,
    metavar="NAMESPACE/NAME",
    help="A Placement of the hub that chooses clusters; may be repeated.",
)
@click.option("--every", required=True, metavar="TIME", help="How often: 30m, 6h, 24h, 7d.")
@click.option(
    "--platform",
    type=click.Choice(["openshift", "kubernetes"]),
    default="openshift",
    show_default=True,
    help="The kind of the clusters; each kind has its own add-on.",
)
@version_option("--to", help="Check the update to this version.")
@click.option(
    "--to-channel",
    default="",
    metavar="CHANNEL",
    help="Check the newest release of this channel at each run; `latest`, the default: of all that are offered.",
)
@click.option("--image", default="", metavar="IMAGE", help="The image that runs the checks.")
@click.option(
    "--status-every",
    default="",
    metavar="TIME",
    help="How often each cluster reports its update: 5m (the default), 10m, 30m, 1h or `never`.",
)
def addon(
    placements: tuple[str, ...],
    every: str,
    platform: Literal["openshift", "kubernetes"],
    to: str,
    to_channel: str,
    image: str,
    status_every: str,
) -> int:
    """Print the add-on by which a hub of Open Cluster Management lets its clusters check themselves.

    Nothing is changed: the objects are YAML for the hub. `runup fleet preflight --hub`, `fleet status --hub` and
    `fleet recommend --hub` read what the clusters report.

    \b
      runup fleet addon --placement fleet/production --every 24h | kubectl --context hub apply -f -
      runup fleet addon --placement fleet/edge --every 6h --platform kubernetes --to 1.36 > addon.yaml
    """
    from runup.cli.fleet import addon_command as runs

    flags = runs.Flags(
        placements=placements,
        every=every,
        platform=platform,
        to=to,
        to_channel=to_channel,
        image=image,
        status_every=status_every,
    )
    return run_guarded(lambda: runs.run(flags))


_output = click.option("-o", "--output", type=click.Choice(["json", "yaml"]), help="Output format for programs.")


@fleet.command("status", sections=SECTIONS_WITH_HUB)
@member_options
@hub_options
@click.option(
    "--hosted-clusters", is_flag=True, help="With the hosted clusters of each management cluster (HyperShift)."
)
@outputs_option(("json", "yaml"))
@connection_options
@click.pass_context
def status(
    ctx: click.Context,
    /,
    hub: str,
    cluster_set: str,
    hosted_clusters: bool,
    outputs: tuple[tuple[Target, ...], ...],
    **members: Any,
) -> int:
    """Show the progress of the updates of many clusters, and their issues.

    Exit code 1 if a cluster could not be read, or what a hub has of it is old.

    \b
      runup fleet status --contexts all
      runup fleet status --dumps DIR -o json=status.json
      runup fleet status --hub CONTEXT --clusterset canary
    """
    from runup.cli.fleet import status_command as runs

    named_members = msgspec.structs.replace(named_by(members), hub=hub, cluster_set=cluster_set, takes_status=True)
    return run_guarded(lambda: runs.run(connection_of(ctx), named_members, targets_of(outputs), hosted=hosted_clusters))


@fleet.command("recommend", sections=SECTIONS_WITH_HUB)
@member_options
@hub_options
@click.option(
    "--version",
    "target",
    default="",
    metavar="VERSION",
    callback=typed_version,
    help="Whether each cluster may go to this version.",
)
@click.option("--accept", multiple=True, metavar="NAME[,NAME...]", help="Issues to put up with; may be repeated.")
@_output
@connection_options
@click.pass_context
def recommend(
    ctx: click.Context,
    /,
    hub: str,
    cluster_set: str,
    target: str,
    accept: tuple[str, ...],
    output: str | None,
    **members: Any,
) -> int:
    """Show the available updates of many clusters, grouped by equal answers.

    Exit code 1 if a cluster could not be read, what a hub has of it is old or, with --version, it has an issue that is
    not accepted.

    \b
      runup fleet recommend --contexts all
      runup fleet recommend --kubeconfigs DIR --version 4.16.3
      runup fleet recommend --hub CONTEXT -l env=production
    """
    from runup.cli.advice.recommend_text import RecommendFlags
    from runup.cli.fleet import recommend_command as runs

    names = frozenset(name for risk_names in accept for name in risk_names.split(","))
    named_members = msgspec.structs.replace(named_by(members), hub=hub, cluster_set=cluster_set, takes_status=True)
    return run_guarded(
        lambda: runs.run(connection_of(ctx), named_members, RecommendFlags(target, accept=names), output)
    )


@fleet.command("history")
@click.option(
    "--store",
    required=True,
    metavar="DIR|sqlite:FILE|configmap:NAMESPACE/NAME",
    help="The store that `--store` of a preflight, or a schedule, has filled.",
)
@click.option("--cluster", default="", metavar="NAME", help="Every report of this cluster, instead of days.")
@click.option("--days", default=0, metavar="N", type=click.IntRange(0), help="Only the last days.")
@click.option("--by", type=click.Choice(["day", "week"]), default="day", show_default=True, help="A line for each.")
@click.option(
    "-o", "--output", type=click.Choice(["json", "yaml", "html"]), help="Output format for programs, or a web page."
)
@connection_options
@click.pass_context
def history(ctx: click.Context, /, store: str, cluster: str, days: int, by: str, output: str | None) -> int:
    """Shows the changes in stored reports: day by day, or of one cluster by object. No cluster is evaluated again.

    \b
      runup fleet history --store reports
      runup fleet history --store reports --cluster harbour --days 14
      runup fleet history --store sqlite:reports.db --by week -o html > history.html
      runup fleet history --store configmap:runup-preflight/preflight-reports
    """
    from runup.cli.fleet import history_command as runs

    return run_guarded(
        lambda: runs.run(connection_of(ctx), store, cluster=cluster, last_days=days, output=output, weeks=by == "week")
    )
