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
    from runup.updatestatus.decide.read_status import Report


def _details(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[str]:
    from runup.cli.updatestatus.render.status_text import DETAILS

    return [word for word in DETAILS if word.startswith(incomplete)]


@click.command("status", cls=Command)
@click.argument("words", nargs=-1, metavar="")
@option(
    "--details",
    default="none",
    metavar="WHAT",
    shell_complete=_details,
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
    mock_clusterversion: str | None,
    mock_now: str | None,
) -> None:
    """Display the status of the current cluster version update or multi-arch migration.

    \b
      runup upgrade status                     how it goes, and what needs attention
      runup upgrade status --details=all       every node, with descriptions and links
      runup upgrade status --watch             follow it
      runup upgrade status --dump DIR          the same for a must-gather
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
    if watch:
        from runup.cli.updatestatus.watch_command import show_until_over

        with connection_of(ctx).client("upgrade-status") as client:
            show_until_over(client, details)
        return
    whole = details in ("all", "nodes")
    reading = _read_status(
        connection_of(ctx), dump, mock_clusterversion, mock_now, whole=whole, has_files=output == "html"
    )
    from runup.cli.render.text import machine

    if output == "html":
        text = html_page(reading)
    elif output:
        text = machine(reading.obj, output)
    else:
        text = as_text(reading, details)
    sys.stderr.write("".join(reading.notes))
    sys.stdout.write(text)


def _read_status(
    connection: Connection, dump: str | None, mock: str | None, now: str | None, *, whole: bool, has_files: bool
) -> StatusReading:
    """Returns the status: from files, or from the live cluster."""
    from runup.updatestatus.control.status_reading import datetime_of_ns, parse_moment

    fixed = parse_moment(now) if now else None
    if mock or dump:
        from kubekit.kube.clock import SystemClock
        from runup.updatestatus.control import status_files

        real_now = SystemClock().now()
        return status_files.mock(mock, real_now) if mock else status_files.dump(dump or "", real_now, fixed)
    from msgspec.structs import replace

    from runup.updatestatus.control import live_status as status_live

    with connection.client("upgrade-status") as client:
        reading = status_live.read(client, client.now if fixed is None else lambda: datetime_of_ns(fixed), whole=whole)
        if has_files:
            from runup.process.clusterversion_client import name_of

            reading = replace(reading, cluster=name_of(client))
    return reading if fixed is None else replace(reading, now_ns=fixed)


def as_text(reading: StatusReading, details: str) -> str:
    """Returns the report as text; writes oc's message about alerts that could not be fetched to stderr."""
    from runup.cli.updatestatus.render import status_text as rendered
    from runup.updatestatus.decide import read_status

    report = reading.read or read_status.report(
        reading.obj, worker_pools_before_master=reading.worker_pools_before_master
    )
    if report.is_updating:
        sys.stderr.write(reading.alerts_problem)
    sys.stderr.write(_doubt_text(report))
    return rendered.render(report, reading.now_ns, rendered.details(details))


def _doubt_text(report: Report) -> str:
    """Returns a warning if it is not known whether the control plane is updating, else an empty string."""
    updating = report.updating
    if not report.is_updating and (updating is None or updating.status != "False"):
        message = updating.message.strip() if updating else "the report has no condition Updating"
        why = (
            message.replace("\n", "\n  ") or "ClusterVersion's condition Progressing says neither and gives no message"
        )
        return f"warning: whether the control plane is updating is not known: {why}\n"
    return ""


def html_page(reading: StatusReading) -> str:
    """Returns the status as an HTML page. Raises DecodeError."""
    from runup.cli.updatestatus.render.html import page
    from runup.updatestatus.control.status_reading import datetime_of_ns
    from runup.updatestatus.decide.decode import decode, with_unknown

    status, unknown = decode(reading.obj)
    now = datetime_of_ns(reading.now_ns)
    return page(with_unknown(status, unknown, now), now, cluster=reading.cluster)
