"""The commands `runup preflight run|schedule|show|history|compare|explain`: what preflights find, now and before.

Reads ClusterVersion and ConfigMap `preflight-history`. The modules `render.history_tables` and `render.explain`
make the text from values.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from kubekit.error_types import InputError
from runup.cli import cluster_completion
from runup.cli.connection import connection_of, connection_options
from runup.cli.lazy import Group
from runup.cli.options import typed_version, version_option
from runup.cli.preflight.outputs import PREFLIGHT_FORMS, Target, outputs_option, targets_of, verdict_options
from runup.cli.release.shared import OUTPUT, access, inner_option, registry_options, run_guarded
from runup.preflight.control import cluster_records

if TYPE_CHECKING:
    from datetime import datetime

    from runup.advice.decide.acceptance import Accepted
    from runup.api.config_v1 import ClusterVersion
    from runup.cli.render.screen import Screen
    from runup.preflight.decide.stored_reports import History

    # What the operator stored: the cluster, its reports, and the accepted names that count. Without a ClusterVersion
    # it is the reports of preflights that ran as Jobs.
    Kept = tuple[ClusterVersion | None, History, Accepted]

_wide = click.option(
    "-o",
    "--output",
    type=click.Choice(["wide", "json", "yaml"]),
    help="More columns (wide), or a format for programs (json, yaml).",
)
_in_cluster = click.option(
    "--in-cluster", is_flag=True, help="Of the preflights that ran as Jobs (`run --in-cluster`, `schedule`)."
)
_dump = click.option("--dump", default="", metavar="DIR", help="A must-gather or another dump instead of a cluster.")


@click.group("preflight", cls=Group)
@connection_options
def preflight() -> None:
    """Preflights and what they found: result, history, comparison, one risk in detail.

    A preflight is asked for with `runup upgrade --mode=preflight --to=VERSION`.

    \b
      runup preflight run --dump DIR
      runup preflight run --in-cluster
      runup preflight schedule --every 24h
      runup preflight show
      runup preflight history
      runup preflight compare 5.1.0 5.2.0
      runup preflight explain DualStackIncompatible
    """


def _read_stored(ctx: click.Context) -> tuple[Kept, datetime]:
    """Returns the ClusterVersion, the stored preflights, the accepted risks, and the cluster's time."""
    from runup.process.clusterversion_client import namespace
    from runup.target import in_cluster as job_runs

    with connection_of(ctx).client() as client:
        cluster = job_runs.cluster_version(client)
        if cluster is None:
            return (None, job_runs.read_stored_history(client), {}), client.now()
        history = cluster_records.read_history(client, namespace())
        return (cluster, history, cluster_records.read_accepted(client, cluster)), client.now()


def _evaluate_dump(dump: str, *targets: str) -> Kept:
    """Returns what the checks find now on a dump, for each target (empty: the next minor version)."""
    from kubekit.kube.clock import SystemClock
    from runup.evaluation import dumps

    return dumps.evaluate_for_targets(Path(dump), targets, SystemClock().now())


def _print(text: Callable[[Screen], str], data: object, output: str | None) -> None:
    """Writes the text, or `data` as JSON or YAML if `output` asks for that."""
    from runup.cli.output import screen_of, write
    from runup.cli.render.text import machine

    write([("out", machine(data, output) if output in ("json", "yaml") else text(screen_of(sys.stdout)))])


@preflight.command("show")
@click.argument("version", default="", callback=typed_version, shell_complete=cluster_completion.versions)
@click.option(
    "-o",
    "--output",
    type=click.Choice(["wide", "json", "yaml", "html"]),
    help="More columns (wide), a format for programs (json, yaml), or one web page (html).",
)
@click.option("-v", "--verbose", is_flag=True, help="Every risk and every check, too.")
@_in_cluster
@connection_options
@click.pass_context
def show(ctx: click.Context, version: str, output: str | None, verbose: bool, in_cluster: bool) -> int:
    """The result of a preflight once more, with the exit code of --wait: of the one asked for, or of a VERSION.

    \b
      runup preflight show
      runup preflight show 5.2.0 -o html > preflight.html
    """
    from runup.cli.errors import CommandError
    from runup.cli.output import write
    from runup.cli.preflight.render import finding_texts as rendered
    from runup.preflight.decide.findings import current_findings, findings_of_target
    from runup.process import clusterversion_client
    from runup.target import in_cluster as job_runs

    with connection_of(ctx).client() as client:
        cluster = None if in_cluster else job_runs.cluster_version(client)
        if cluster is None:
            # A preflight that ran as a Job.
            from runup.evaluation.results import findings_of

            stored_result = job_runs.read_stored_result(client, version)
            findings, cluster = findings_of(stored_result), stored_result.cluster
        else:
            history = cluster_records.read_history(client, clusterversion_client.namespace())
            accepted = cluster_records.read_accepted(client, cluster)
            if version:
                findings = findings_of_target(cluster, history, version, accepted=accepted)
            elif (requested := current_findings(cluster, history, accepted)) is not None:
                findings = requested
            else:
                problem = "no preflight is asked for; name the VERSION of an earlier one, or ask for one"
                raise CommandError(problem + _ASK)
            if not findings.known:
                raise CommandError(f"no preflight of {version} is known on this cluster" + _ASK)
        if output == "html":
            from runup.cli.preflight.render.preflight_page import page

            cluster_name = clusterversion_client.name_of(client, cluster)
            write([("out", page(findings, client.now(), cluster=cluster_name))])
            return findings.exit_code
    wide, data = output == "wide", rendered.as_data(findings)
    _print(lambda screen: rendered.result(findings, screen, wide=wide, whole=verbose), data, output)
    return findings.exit_code


_ASK = ": runup upgrade --mode=preflight --to=VERSION --wait"


@preflight.command("history")
@_wide
@_dump
@_in_cluster
@connection_options
@click.pass_context
def history(ctx: click.Context, output: str | None, dump: str, in_cluster: bool) -> None:
    """List the reports that the cluster keeps: the newest of each target, five at most.

    \b
      runup preflight history
      runup preflight history -o json
      runup preflight history --dump DIR
    """
    from runup.cli.preflight.render import history_tables as rendered
    from runup.preflight.decide.findings import with_counted_risks

    if in_cluster and dump:
        raise click.UsageError("--in-cluster and --dump name two sources; give one of them", ctx)
    if in_cluster:
        from runup.target import in_cluster as job_runs

        with connection_of(ctx).client() as client:
            stored = job_runs.read_stored_history(client)
        cluster = None
    elif dump:
        from runup.evaluation import dumps

        cluster, stored, _ = dumps.read_stored_reports(Path(dump))
    else:
        cluster, stored, _ = _read_stored(ctx)[0]
    kept, wide = with_counted_risks(stored), output == "wide"
    empty_text = rendered.NONE if cluster is not None else rendered.NO_JOBS
    data = rendered.history_data(kept)
    _print(lambda screen: rendered.history(kept, screen, wide=wide, empty_text=empty_text), data, output)


@preflight.command("compare")
@click.argument("before", metavar="A", shell_complete=cluster_completion.versions)
@click.argument("after", metavar="B", shell_complete=cluster_completion.versions)
@click.option(
    "--store",
    default="",
    metavar="DIR|sqlite:FILE|configmap:NAMESPACE/NAME",
    help="Reports that `preflight run --store` or a schedule has kept.",
)
@click.option("--cluster", default="", metavar="NAME", help="With --store: whose, if a day alone is given.")
@version_option("--to", help="Of two dumps, or of a store: the update that is compared.")
@_wide
@_dump
@connection_options
@click.pass_context
def compare(
    ctx: click.Context, before: str, after: str, output: str | None, dump: str, store: str, cluster: str, to: str
) -> None:
    """Compare two results: risks that are new in B, gone from A, and in both.

    A and B are versions, or preflight IDs as `history` lists them; files of reports, or dumps; with --store a cluster,
    a day of it (harbour@2026-11-22), or a day. Of one dump (--dump) both versions are checked now.

    \b
      runup preflight compare 5.1.0 5.2.0
      runup preflight compare 5.1.0 5.2.0 -o json
      runup preflight compare 4.15.0 4.16.0 --dump DIR
      runup preflight compare dump-of-monday dump-of-today --to 4.16.0
      runup preflight compare yesterday today --store reports --cluster harbour
    """
    from kubekit.kube.clock import SystemClock
    from runup.cli.preflight.render import history_tables as rendered
    from runup.preflight.decide.findings import with_counted_risks

    if store and dump:
        raise click.UsageError("--store and --dump name two sources; give one of them", ctx)
    if cluster and not store:
        raise click.UsageError("--cluster is about the reports of --store; give that, too", ctx)
    from runup.evaluation.compared import is_place

    if store or (not dump and (is_place(before) or is_place(after))):
        _compare_kept(ctx, (before, after), store=store, cluster=cluster, to=to, output=output)
        return
    if to:
        raise click.UsageError("--to is about two dumps, or about --store; A and B are the versions here", ctx)
    kept, now = (_evaluate_dump(dump, before, after), SystemClock().now()) if dump else _read_stored(ctx)
    cluster_version, stored, _ = kept
    compared_history = stored if dump else with_counted_risks(stored)
    # Without a ClusterVersion the newest report says what the cluster ran last.
    newest = next((report.source_version for report in stored.reports), "")
    source = cluster_version.status.desired.version if cluster_version is not None else newest
    reports = [rendered.pick(compared_history, name, source) for name in (before, after)]
    compared, wide = rendered.compare(reports[0], reports[1]), output == "wide"
    data = rendered.comparison_data(compared)
    _print(lambda screen: rendered.comparison(compared, screen, now=now, wide=wide), data, output)


def _compare_kept(
    ctx: click.Context, words: tuple[str, str], store: str, cluster: str, to: str, output: str | None
) -> None:
    """Prints the differences between two reports that are not on the cluster."""
    from runup.cli.preflight.render import history_tables as rendered
    from runup.evaluation import compared as places

    def compare_pair() -> int:
        """Compares two kept reports, prints the difference, and returns 0."""
        if store:
            pairs = places.read_from_store(words, store, cluster=cluster, target=to, config=connection_of(ctx).config)
        else:
            pairs = [places.report_in(Path(place), to) for place in words]
        (first, before), (second, after) = pairs
        compared, wide = rendered.compare(before, after, (first, second)), output == "wide"
        data = rendered.comparison_data(compared)
        _print(lambda screen: rendered.comparison(compared, screen, wide=wide), data, output)
        return 0

    run_guarded(compare_pair)


@preflight.command("explain")
@click.argument("risk", shell_complete=cluster_completion.risks)
@OUTPUT
@_dump
@connection_options
@click.pass_context
def explain(ctx: click.Context, risk: str, output: str | None, dump: str) -> None:
    """Everything that is known about one risk: its objects, its targets, its age, and the remedy.

    Where no cluster answers, the page about the risk is printed all the same.

    \b
      runup preflight explain DualStackIncompatible
      runup preflight explain MachineConfigPoolPaused-worker -o json
      runup preflight explain NodeCordoned --dump DIR
    """
    from kubekit.api.codec import DecodeError
    from kubekit.kube.api_errors import KubeError, message_of
    from runup.checks import risk_pages
    from runup.checks.decide.kubernetes_words import page_for_kubernetes
    from runup.cli.preflight.render import explain as rendered

    page, names, not_asked = risk_pages.find(risk), risk_pages.names(), ""
    try:
        cluster, stored, accepted = _evaluate_dump(dump, "") if dump else _read_stored(ctx)[0]
    except (KubeError, InputError, DecodeError) as error:
        if dump or not page:
            # Without a page there is nothing to print, so the error is raised.
            raise
        not_asked = f"no cluster was asked: {message_of(error).strip().splitlines()[0]}"
    if not_asked:
        explanation = rendered.Explanation(risk, (), page, not_asked=not_asked)
    elif dump or cluster is None:
        page = page if cluster is not None else page_for_kubernetes(page)
        explanation = rendered.explain_from_reports(stored, risk, page, names)
    else:
        explanation = rendered.explain_risk(cluster, stored, name=risk, page=page, documented=names, accepted=accepted)
    data = rendered.explanation_data(explanation)
    _print(lambda screen: rendered.explanation(explanation, screen), data, output)


@preflight.command("run")
@version_option("--to", help="Target version; else the release's, else the next minor.")
@version_option("--from", "from_", help="Source version, if not the cluster's own.")
@click.option("--to-image", default="", metavar="IMAGE", help="The target's release image, oci:DIR or in a registry.")
@click.option("--release-dir", default="", metavar="DIR", help="A folder with what the release image has at its root.")
@click.option(
    "--target-catalog",
    "catalogs",
    multiple=True,
    metavar="SOURCE=IMAGE",
    help="The image of a CatalogSource on the target, in which channels are looked up; may be repeated.",
)
@click.option(
    "--read-catalogs",
    is_flag=True,
    help="Read the catalogs of operators that the target brings out of their registries: a gigabyte each.",
)
@click.option("--dump", "dumps", multiple=True, metavar="DIR", help="A must-gather or another dump; may be repeated.")
@click.option(
    "--manifests",
    multiple=True,
    metavar="DIR",
    help="Manifests in a file or folder (`-`: standard input) instead of a cluster, for --to; may be repeated.",
)
@click.option(
    "--helm-releases", is_flag=True, help="Demand the releases that Helm keeps in Secrets: without the right, Unknown."
)
@click.option(
    "--api-metrics", is_flag=True, help="Ask the API server's metrics which removed versions clients still use."
)
@outputs_option(PREFLIGHT_FORMS)
@click.option("-v", "--verbose", is_flag=True, help="Every risk, every check and every kind that a dump lacks, too.")
@verdict_options
@click.option(
    "--store",
    default="",
    metavar="DIR|sqlite:FILE|configmap:NAMESPACE/NAME",
    help="Keep the report in this folder, file or ConfigMap, by cluster and time.",
)
@click.option("--prometheus-url", default="", metavar="URL", help="A Prometheus or Thanos for checks that are queries.")
@click.option("--prometheus-ca", default="", metavar="FILE", help="Certificate authorities for it.")
@click.option("--check-timeout", default=10.0, show_default=True, help="Seconds that one check may take on a cluster.")
@click.option("--in-cluster", is_flag=True, help="Run as a Job of the cluster, with an account that only reads.")
@click.option("--image", default="", metavar="IMAGE", help="With --in-cluster: the image that runs the checks.")
@click.option(
    "--timeout",
    default=600,
    show_default=True,
    type=click.IntRange(10, 86400),
    help="With --in-cluster: seconds that the Job may take.",
)
@click.option("--keep", is_flag=True, help="With --in-cluster: leave the Job and its account, to look at its log.")
@inner_option
@registry_options
@connection_options
@click.pass_context
def run(
    ctx: click.Context,
    /,
    to: str,
    from_: str,
    to_image: str,
    release_dir: str,
    catalogs: tuple[str, ...],
    read_catalogs: bool,
    dumps: tuple[str, ...],
    outputs: tuple[tuple[Target, ...], ...],
    verbose: bool,
    fail_on: str,
    suppressions: str,
    baseline: str,
    store: str,
    prometheus_url: str,
    prometheus_ca: str,
    check_timeout: float,
    in_cluster: bool,
    image: str,
    timeout: int,
    keep: bool,
    manifests: tuple[str, ...],
    helm_releases: bool,
    api_metrics: bool,
    **registry: Any,
) -> int:
    """Check a cluster or dumps for an update, without an operator and changing nothing.

    With --in-cluster a Job in namespace runup-preflight checks the cluster, and its report is kept there.

    Exit codes as for `--wait`: 0 nothing in the way, 2 risks apply, 3 something is unknown, 1 could not be
    evaluated.

    \b
      runup preflight run --to-image registry.example/release:5.2.0
      runup preflight run --in-cluster --to 4.16.0
      runup preflight run --dump must-gather --to 4.16.0
      runup preflight run --dump a --dump b -o junit > preflight.xml
      runup preflight run -o json=report.json -o html=report.html --store reports
      helm template ./chart | runup preflight run --manifests - --to 1.36
    """
    from runup.cli.preflight import run_command as runs
    from runup.evaluation.request import Flags, JobFlags

    typed_timeout = ctx.get_parameter_source("timeout") is click.core.ParameterSource.COMMANDLINE
    if not in_cluster and (image or keep or typed_timeout):
        raise click.UsageError("--image, --timeout and --keep are about a Job; give --in-cluster too", ctx)

    if manifests and (dumps or in_cluster or to_image or release_dir or helm_releases or api_metrics or from_):
        raise click.UsageError("--manifests are evaluated by themselves: give only --to, and what is printed", ctx)
    if (helm_releases or api_metrics) and (dumps or in_cluster):
        raise click.UsageError(
            "--helm-releases and --api-metrics are read from here: leave out --dump and --in-cluster", ctx
        )
    targets = targets_of(outputs)
    if len(dumps) > 1 and any(form == "html" for form, _ in targets):
        raise click.UsageError("-o html is a page of one cluster; give one --dump, or see `runup fleet preflight`", ctx)
    if store and manifests:
        raise click.UsageError("--store keeps reports of clusters; manifests have no cluster", ctx)
    flags = Flags(
        to=to,
        from_=from_,
        to_image=to_image,
        release_dir=release_dir,
        dumps=dumps,
        outputs=targets,
        fail_on=fail_on,
        suppressions=suppressions,
        check_timeout_s=check_timeout,
        prometheus_url=prometheus_url,
        prometheus_ca=prometheus_ca,
        catalogs=catalogs,
        reads_catalogs=read_catalogs,
        verbose=verbose,
        inner_registries=tuple(registry["inner_registry"]),
        manifests=manifests,
        helm_releases=helm_releases,
        api_metrics=api_metrics,
        job=JobFlags(image, timeout, keep) if in_cluster else None,
        store=store,
        baseline=baseline,
    )
    return run_guarded(lambda: runs.run(connection_of(ctx), flags, lambda: access(**registry)))


@preflight.command("schedule")
@click.option("--every", default="", metavar="TIME", help="How often: 30m, 6h, 24h, 7d.")
@version_option("--to", help="Check the update to this version.")
@click.option(
    "--to-channel",
    default="",
    metavar="CHANNEL",
    help="Check the newest release of this channel at each run; `latest`, the default: of all that are offered.",
)
@click.option("--image", default="", metavar="IMAGE", help="The image that runs the checks.")
@click.option("--remove", is_flag=True, help="Remove the schedule and its account; the reports stay.")
@OUTPUT
@inner_option
@connection_options
@click.pass_context
def schedule(
    ctx: click.Context,
    every: str,
    to: str,
    to_channel: str,
    image: str,
    remove: bool,
    output: str | None,
    inner_registry: tuple[str, ...],
) -> int:
    """Let the cluster check itself periodically, and show the schedule and the result of the last run.

    \b
      runup preflight schedule --every 24h
      runup preflight schedule --every 6h --to-channel stable-4.16
      runup preflight schedule
      runup preflight schedule --remove
    """
    from runup.cli.preflight import schedule_command as schedules

    if to and to_channel:
        raise click.UsageError("--to and --to-channel both name the target; give one of them", ctx)
    if not every and (to or to_channel or image or inner_registry):
        raise click.UsageError("--to, --to-channel, --image and --inner-registry need --every TIME", ctx)
    if remove and every:
        raise click.UsageError("--every makes a schedule and --remove removes it; give one of them", ctx)
    flags = schedules.Flags(
        every=every,
        to=to,
        to_channel=to_channel,
        image=image,
        remove=remove,
        output=output,
        inner_registries=inner_registry,
    )
    return run_guarded(lambda: schedules.run(connection_of(ctx), flags))
