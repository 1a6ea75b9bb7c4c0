"""Defines `runup upgrade status`: the progress of an update and its problems, in the words of `oc adm upgrade status`.

Reads the flags, reads the status from one source (`status_live`, `status_files`) and prints it through one renderer.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from runup.cli import static_completion
from runup.cli.connection import connection_of, connection_options
from runup.cli.errors import CommandError, UsageProblem
from runup.cli.lazy import Command
from runup.cli.options import option

if TYPE_CHECKING:
    from runup.process.connection import Connection
    from runup.updatestatus.control.status_reading import StatusReading


def complete_details(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[str]:
    """Returns the values of --details that begin so."""
    from runup.cli.updatestatus.render.status_text import DETAILS

    return [word for word in DETAILS if word.startswith(incomplete)]


@click.command("status", cls=Command)
@click.argument("words", nargs=-1, metavar="")
@option(
    "--details",
    default="none",
    metavar="WHAT",
    shell_complete=complete_details,
    help="What to show at length: none, all, nodes, health or operators.",
)
@option(
    "--dump",
    metavar="DIR",
    shell_complete=static_completion.folders,
    help="Read a must-gather or another dump instead of a cluster.",
)
@option("-w", "--watch", is_flag=True, help="Follow the update until it is over.")
@option(
    "-o",
    "--output",
    type=click.Choice(["json", "yaml", "html"]),
    help="Output format for programs (json, yaml), or one web page (html).",
)
@option(
    "--hosted-cluster",
    default="",
    metavar="NAME",
    help="A hosted cluster of this management cluster of HyperShift: NAME, or NAMESPACE/NAME.",
)
@option("--hosted-clusters", is_flag=True, help="All hosted clusters of this management cluster.")
@option("--mock-clusterversion", metavar="FILE", hidden=True)
@option("--mock-now", metavar="TIME", hidden=True)
@connection_options
@click.pass_context
def status(
    ctx: click.Context,
    words: tuple[str, ...],
    details: str,
    dump: str | None,
    watch: bool,
    output: str | None,
    hosted_cluster: str,
    hosted_clusters: bool,
    mock_clusterversion: str | None,
    mock_now: str | None,
) -> None:
    """Display the status of the current cluster version update or multi-arch migration.

    \b
      runup upgrade status                     how it goes, and what needs attention
      runup upgrade status --details=all       every node, with descriptions and links
      runup upgrade status --watch             follow it
      runup upgrade status --dump DIR          the same for a must-gather
      runup upgrade status --hosted-clusters   those whose control planes run here (HyperShift)
      runup upgrade status -o html > page.html
    """
    from runup.cli.updatestatus.render.status_text import DETAILS

    if words:
        raise UsageProblem("positional arguments given", ctx)
    if details not in DETAILS:
        raise CommandError(f"invalid value for --details: {details} (must be one of {', '.join(DETAILS)})")
    if dump and mock_clusterversion:
        raise CommandError("--dump and --mock-clusterversion both name files to read; give one of them")
    if watch and (dump or mock_clusterversion or output):
        raise CommandError("--watch follows a live cluster and prints text; leave out --dump and -o")
    if hosted_cluster or hosted_clusters:
        if hosted_cluster and hosted_clusters:
            raise CommandError("--hosted-cluster names one cluster and --hosted-clusters means all; give one of them")
        if mock_clusterversion:
            raise CommandError("--mock-clusterversion is not for hosted clusters; leave it out")
        if watch and hosted_clusters:
            raise CommandError("--watch follows one cluster: name it with --hosted-cluster")
    if watch:
        from runup.cli.updatestatus.watch_command import show_until_over

        with connection_of(ctx).client("upgrade-status") as client:
            show_until_over(client, details, hosted_cluster=hosted_cluster)
        return
    if hosted_cluster or hosted_clusters:
        _show_hosted(ctx, hosted_cluster, dump, details, output=output, mock_now=mock_now)
        return
    from runup.cli.render.text import machine
    from runup.updatestatus.control.status_reading import parse_moment

    fixed_ns = parse_moment(mock_now) if mock_now else None
    if mock_clusterversion or dump:
        from kubekit.kube.clock import SystemClock
        from runup.updatestatus.control import status_files

        now = SystemClock().now()
        mocked = status_files.mock(mock_clusterversion, now) if mock_clusterversion else None
        reading = mocked or status_files.dump(dump or "", now, fixed_ns)
    else:
        reading = read_live(connection_of(ctx), fixed_ns, whole=details in ("all", "nodes"), named=output == "html")

    if output == "html":
        text = html_page(reading)
    elif output:
        text = machine(reading.obj, output)
    else:
        text = as_text(reading, details)
    sys.stderr.write("".join(reading.notes))
    sys.stdout.write(text)


def _show_hosted(
    ctx: click.Context, name: str, dump: str | None, details: str, *, output: str | None, mock_now: str | None
) -> None:
    """Prints the status of the hosted cluster `name`, or of all if it is empty."""
    from kubekit.lang.gotext import datetime_of_ns
    from runup.cli.render.text import machine
    from runup.updatestatus.control import hosted_objects, live_status
    from runup.updatestatus.control.status_reading import parse_moment

    fixed_ns = parse_moment(mock_now) if mock_now else None
    if dump:
        readings = hosted_objects.read_dump(dump, name, fixed_ns)
    else:
        with connection_of(ctx).client("upgrade-status") as client:
            clock = client.now if fixed_ns is None else lambda: datetime_of_ns(fixed_ns)
            readings = hosted_objects.read(client, clock, name, live_status.TOLERATED)
    if output == "html" and len(readings) > 1:
        raise CommandError(
            "a page is about one cluster: name it with --hosted-cluster, one of "
            + ", ".join(reading.cluster for reading in readings)
        )
    if output == "html":
        text = html_page(readings[0])
    elif output:
        text = machine(hosted_objects.as_list(readings) if not name else readings[0].obj, output)
    else:
        parts = (f"Hosted cluster {each.cluster}\n\n{as_text(each, details)}" for each in readings)
        text = as_text(readings[0], details) if name else "\n".join(parts)
    sys.stderr.write("".join(dict.fromkeys(note for reading in readings for note in reading.notes)))
    sys.stdout.write(text)


def read_live(connection: Connection, fixed_ns: int | None, *, whole: bool, named: bool) -> StatusReading:
    """Returns the status of the live cluster, as of `fixed_ns` if that is given; `named` reads its name, too."""
    from msgspec.structs import replace

    from kubekit.lang.gotext import datetime_of_ns
    from runup.process.clusterversion_client import name_of
    from runup.updatestatus.control import live_status

    with connection.client("upgrade-status") as client:
        clock = client.now if fixed_ns is None else lambda: datetime_of_ns(fixed_ns)
        reading = live_status.read(client, clock, whole=whole)
        name = name_of(client) if named else reading.cluster
    return replace(reading, cluster=name, now_ns=reading.now_ns if fixed_ns is None else fixed_ns)


def as_text(reading: StatusReading, details: str) -> str:
    """Returns the report as text; writes oc's message about alerts that could not be fetched to stderr.

    Warns there, too, if it is not known whether the control plane is updating.
    """
    from runup.cli.updatestatus.render import status_text as rendered

    report = reading.report()
    updating = report.updating
    if report.is_updating:
        sys.stderr.write(reading.alerts_problem)
    elif updating is None or updating.status != "False":
        why = "the report has no condition Updating"
        if updating is not None:
            why = updating.message.strip().replace("\n", "\n  ")
        why = why or "ClusterVersion's condition Progressing says neither and gives no message"
        sys.stderr.write(f"warning: whether the control plane is updating is not known: {why}\n")
    return rendered.render(report, reading.now_ns, rendered.details(details), as_oc=reading.as_oc)


def html_page(reading: StatusReading) -> str:
    """Returns the status as an HTML page. Raises DecodeError."""
    from kubekit.lang.gotext import datetime_of_ns
    from runup.cli.updatestatus.render.status_page import page
    from runup.updatestatus.decide.decode import decode, with_unknown

    status, unknown = decode(reading.obj)
    now = datetime_of_ns(reading.now_ns)
    return page(with_unknown(status, unknown, now), now, cluster=reading.cluster)
