"""The commands `runup preflight run|show|history|compare|explain`: what preflights find, now and before.

Reads ClusterVersion and ConfigMap `preflight-history`. The modules `render.history` and `render.explain` make the text
from values.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from runup.cli import cluster_completion as names
from runup.cli.connection import connection_of, connection_options
from runup.cli.lazy import Group
from runup.release.cli.shared import access, guarded, inner_option, registry_options

if TYPE_CHECKING:
    from runup.api.config_v1 import ClusterVersion
    from runup.cli.render.screen import Screen
    from runup.preflight.decide.findings import Accepted
    from runup.preflight.decide.stored_reports import History

    # What the operator stored: the cluster, its reports, and the accepted names that count.
    Kept = tuple[ClusterVersion, History, Accepted]

_output = click.option("-o", "--output", type=click.Choice(["json", "yaml"]), help="The machine form.")
_wide = click.option(
    "-o", "--output", type=click.Choice(["wide", "json", "yaml"]), help="More columns, or the machine form."
)


_dump = click.option("--dump", default="", metavar="DIR", help="A must-gather or another dump instead of a cluster.")


@click.group("preflight", cls=Group)
@connection_options
def preflight() -> None:
    """Preflights and what they found: result, history, comparison, one risk in detail.

    A preflight is asked for with `runup upgrade --mode=preflight --to=VERSION`.

    \b
      runup preflight run --dump DIR
      runup preflight show
      runup preflight history
      runup preflight compare 5.1.0 5.2.0
      runup preflight explain DualStackIncompatible
    """


def _read(ctx: click.Context) -> Kept:
    from runup.cli import clusterversion_client as clusters
    from runup.cli.clusterversion_client import namespace

    with connection_of(ctx).client() as client:
        cluster = clusters.read(client)
        return cluster, clusters.read_history(client, namespace()), clusters.read_accepted(client, cluster)


def _kept(dump: str) -> Kept:
    """Returns what the operator of a dump's cluster had stored."""
    from runup.preflight.cli import evaluate

    return evaluate.stored_in(Path(dump))


def _judged(dump: str, *targets: str) -> Kept:
    """Returns what the checks find now on a dump, for each target (empty: the next minor version)."""
    from runup.preflight.cli import evaluate

    return evaluate.judged_in(Path(dump), targets)


def _print(text: Callable[[Screen], str], data: object, output: str | None) -> None:
    from runup.cli.output import screen_of, write
    from runup.cli.render.text import machine

    write([("out", machine(data, output) if output in ("json", "yaml") else text(screen_of(sys.stdout)))])


@preflight.command("show")
@click.argument("version", default="", shell_complete=names.versions)
@click.option(
    "-o",
    "--output",
    type=click.Choice(["wide", "json", "yaml", "html"]),
    help="More columns, the machine form, or one web page.",
)
@click.option("-v", "--verbose", is_flag=True, help="Every risk and every check, too.")
@connection_options
@click.pass_context
def show(ctx: click.Context, version: str, output: str | None, verbose: bool) -> int:
    """The result of a preflight once more, with the exit code of --wait: of the one asked for, or of a VERSION.

    \b
      runup preflight show
      runup preflight show 5.2.0 -o html > preflight.html
    """
    from runup.cli import clusterversion_client as clusters
    from runup.cli.clusterversion_client import namespace
    from runup.cli.errors import CommandError
    from runup.preflight.cli.render import finding_texts as rendered
    from runup.preflight.decide.findings import current, of_target

    with connection_of(ctx).client() as client:
        cluster = clusters.read(client)
        history = clusters.read_history(client, namespace())
        taken = clusters.read_accepted(client, cluster)
        asked = current(cluster, history, taken)
        shown = of_target(cluster, history, version, accepted=taken) if version else asked
        if shown is None:
            raise CommandError("no preflight is asked for; name the VERSION of an earlier one, or ask for one" + _ASK)
        if not shown.known:
            raise CommandError(f"no preflight of {version} is known on this cluster" + _ASK)
        if output == "html":
            from kubekit.kube.clock import SystemClock
            from runup.preflight.cli.render.preflight_page import page

            clusters.write([("out", page(shown, SystemClock().now(), cluster=clusters.name_of(client, cluster)))])
            return shown.exit_code
    wide = output == "wide"
    _print(lambda screen: rendered.result(shown, screen, wide=wide, whole=verbose), rendered.as_data(shown), output)
    return shown.exit_code


_ASK = ": runup upgrade --mode=preflight --to=VERSION --wait"


@preflight.command("history")
@_wide
@_dump
@connection_options
@click.pass_context
def history(ctx: click.Context, output: str | None, dump: str) -> None:
    """List the reports that the cluster keeps: the newest of each target, five at most.

    \b
      runup preflight history
      runup preflight history -o json
      runup preflight history --dump DIR
    """
    from runup.preflight.cli.render import history_tables as rendered
    from runup.preflight.decide.findings import complete

    _, stored, _ = _kept(dump) if dump else _read(ctx)
    completed, wide = complete(stored), output == "wide"
    _print(lambda screen: rendered.history(completed, screen, wide=wide), rendered.history_data(completed), output)


@preflight.command("compare")
@click.argument("before", metavar="A", shell_complete=names.versions)
@click.argument("after", metavar="B", shell_complete=names.versions)
@_wide
@_dump
@connection_options
@click.pass_context
def compare(ctx: click.Context, before: str, after: str, output: str | None, dump: str) -> None:
    """Compare what two targets found on this cluster: risks that are new in B, gone from A, and in both.

    A and B are versions, or preflight IDs as `history` lists them. Of a dump both versions are checked now.

    \b
      runup preflight compare 5.1.0 5.2.0
      runup preflight compare 5.1.0 5.2.0 -o json
      runup preflight compare 4.15.0 4.16.0 --dump DIR
    """
    from kubekit.kube.clock import SystemClock
    from runup.preflight.cli.render import history_tables as rendered
    from runup.preflight.decide.findings import complete

    cluster, stored, _ = _judged(dump, before, after) if dump else _read(ctx)
    compared_history = stored if dump else complete(stored)
    source = cluster.status.desired.version
    compared = rendered.compare(
        rendered.pick(compared_history, before, source), rendered.pick(compared_history, after, source)
    )
    now, wide = SystemClock().now(), output == "wide"
    _print(
        lambda screen: rendered.comparison(compared, screen, now=now, wide=wide),
        rendered.comparison_data(compared),
        output,
    )


@preflight.command("explain")
@click.argument("risk", shell_complete=names.risks)
@_output
@_dump
@connection_options
@click.pass_context
def explain(ctx: click.Context, risk: str, output: str | None, dump: str) -> None:
    """Everything that is known of one risk: what it is about, for which targets, since when, and what helps.

    Where no cluster answers, the page about the risk is printed all the same.

    \b
      runup preflight explain DualStackIncompatible
      runup preflight explain MachineConfigPoolPaused-worker -o json
      runup preflight explain NodeCordoned --dump DIR
    """
    from kubekit.api.codec import DecodeError
    from kubekit.kube.errors import KubeError
    from runup.checks import pages
    from runup.cli.errors import CommandError, message_of
    from runup.preflight.cli.render import explain as rendered

    page = pages.find(risk)
    if dump:
        known = rendered.of_reports(_judged(dump, "")[1], risk, page, pages.names())
        _print(lambda screen: rendered.explanation(known, screen), rendered.explanation_data(known), output)
        return
    try:
        cluster, stored, accepted = _read(ctx)
    except (KubeError, CommandError, DecodeError) as error:
        if not page:
            # Without a page there is nothing to print, so the error is raised.
            raise
        known = rendered.Explanation(risk, (), page, not_asked=message_of(error).strip().splitlines()[0])
    else:
        known = rendered.explain(cluster, stored, risk, page, pages.names(), accepted)
    _print(lambda screen: rendered.explanation(known, screen), rendered.explanation_data(known), output)


@preflight.command("run")
@click.option("--to", default="", metavar="VERSION", help="Target version; else the release's, else the next minor.")
@click.option("--from", "from_", default="", metavar="VERSION", help="Source version, if not the cluster's own.")
@click.option("--to-image", default="", metavar="IMAGE", help="The target's release image, oci:DIR or in a registry.")
@click.option("--release-dir", default="", metavar="DIR", help="A folder with what the release image has at its root.")
@click.option(
    "--target-catalog",
    "catalogs",
    multiple=True,
    metavar="SOURCE=IMAGE",
    help="What a CatalogSource will be on the target: its operators' channels are looked up there; may be repeated.",
)
@click.option(
    "--read-catalogs",
    is_flag=True,
    help="Read the catalogs of operators that the target brings out of their registries: a gigabyte each.",
)
@click.option("--dump", "dumps", multiple=True, metavar="DIR", help="A must-gather or another dump; may be repeated.")
@click.option(
    "-o", "--output", type=click.Choice(["json", "yaml", "junit", "sarif", "markdown", "html"]), help="The form."
)
@click.option("-v", "--verbose", is_flag=True, help="Every risk, every check and every kind that a dump lacks, too.")
@click.option(
    "--fail-on",
    type=click.Choice(["unknown", "info", "warning", "critical", "never"]),
    default="unknown",
    show_default=True,
    help="What makes the exit code not 0: all that is open, or risks that apply and are as grave.",
)
@click.option("--suppressions", default="", metavar="FILE", help="Risks to live with: globs, with reason and last day.")
@click.option("--prometheus-url", default="", metavar="URL", help="A Prometheus or Thanos for checks that are queries.")
@click.option("--prometheus-ca", default="", metavar="FILE", help="Certificate authorities for it.")
@click.option("--check-timeout", default=10.0, show_default=True, help="Seconds that one check may take on a cluster.")
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
    output: str | None,
    verbose: bool,
    fail_on: str,
    suppressions: str,
    prometheus_url: str,
    prometheus_ca: str,
    check_timeout: float,
    **registry: Any,
) -> int:
    """Check a cluster or dumps for an update, without an operator and changing nothing.

    Exit codes as for `--wait`: 0 nothing in the way, 2 risks apply, 3 something could not be told, 1 could not be
    judged.

    \b
      runup preflight run --to-image registry.example/release:5.2.0
      runup preflight run --dump must-gather --to 4.16.0
      runup preflight run --dump a --dump b -o junit > preflight.xml
    """
    from runup.preflight.cli import run_command as runs

    if output == "html" and len(dumps) > 1:
        raise click.UsageError("-o html is a page of one cluster; give one --dump", ctx)
    flags = runs.Flags(
        to,
        from_,
        to_image,
        release_dir,
        dumps,
        output,
        fail_on,
        suppressions,
        check_timeout,
        prometheus_url,
        prometheus_ca,
        catalogs,
        read_catalogs,
        verbose,
    )
    return guarded(lambda: runs.run(connection_of(ctx), flags, lambda: access(**registry)))
