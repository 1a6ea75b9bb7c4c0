"""The command `runup upgrade calendar`: when the windows of an UpdateCalendar open. Only reads."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

import click

from kubekit.lang.text import timestamp
from runup.cli import static_completion
from runup.cli.connection import connection_of, connection_options
from runup.cli.errors import CommandError
from runup.cli.lazy import Command
from runup.cli.options import option

if TYPE_CHECKING:
    from runup.api.update_policy_v1alpha1 import UpdateCalendar
    from runup.rollout.decide.calendar import Calendar, Period

_MAX_NEXT = 100
_LOCAL = "%a %Y-%m-%d %H:%M"


@click.command("calendar", cls=Command)
@click.argument("name", default="")
@option("-f", "--file", metavar="FILE", default="", shell_complete=static_completion.files, help="Read this file.")
@option("--next", "most", type=click.IntRange(1, _MAX_NEXT), default=10, help="How many openings to list (10).")
@option("--at", metavar="TIME", default="", help="The time to evaluate, such as 2026-12-24T22:00:00Z; else now.")
@option("-o", "--output", type=click.Choice(["json", "yaml"]), help="Output format for programs.")
@connection_options
@click.pass_context
def calendar(ctx: click.Context, /, name: str, file: str, most: int, at: str, output: str | None) -> int:
    """Show whether the windows of update calendars are open, and when they open next.

    \b
      runup upgrade calendar
      runup upgrade calendar nights --next 3
      runup upgrade calendar -f calendars.yaml --at 2026-12-24T22:00:00Z

    Exit codes: 0 all calendars are valid; 1 an error.
    """
    from kubekit.kube.clock import SystemClock
    from runup.cli.output import write
    from runup.cli.render.text import machine, out
    from runup.rollout.decide.calendar import read
    from runup.rollout.decide.durations import parse_moment

    moment = parse_moment(at) if at else None
    if file:
        from runup.rollout.control import policy_files

        sources, now = policy_files.read(file).calendars, SystemClock().now()
    else:
        from runup.rollout.control import policy_objects

        with connection_of(ctx).client("upgrade calendar") as client:
            sources, now = policy_objects.calendars(client), client.now()
    chosen = [source for source in sources if name in ("", source.metadata.name)]
    if not chosen:
        where = file or "the cluster"
        raise CommandError(f"{where} has no UpdateCalendar{f' {name}' if name else ''}")
    calendars = [read(source) for source in chosen]
    moment = moment or now
    if output:
        data = [_data(each, source, moment, most) for each, source in zip(calendars, chosen, strict=True)]
        write([out(machine({"calendars": data}, output))])
        return 0
    texts = (_text(each, source, moment, most) for each, source in zip(calendars, chosen, strict=True))
    write([out("\n".join(texts))])
    return 0


def _text(calendar: Calendar, source: UpdateCalendar, moment: datetime, most: int) -> str:
    """Returns the state of a calendar and a table of its openings, in its zone and in UTC."""
    from runup.cli.render.text import align_columns

    zone = source.spec.time_zone
    lines = [f"{calendar.name}: {_state(calendar, moment, zone)}"]
    openings = calendar.openings(moment, most)
    if not openings:
        lines.append("  The calendar does not open within 92 days.")
        return "\n".join(lines) + "\n"
    rows = [(f"  OPENS ({zone})", f"CLOSES ({zone})", "OPENS (UTC)", "CLOSES (UTC)")]
    rows += [
        (
            f"  {period.start.astimezone(calendar.zone).strftime(_LOCAL)}",
            period.end.astimezone(calendar.zone).strftime(_LOCAL),
            timestamp(period.start),
            timestamp(period.end),
        )
        for period in openings
    ]
    return "\n".join(lines) + "\n" + align_columns(rows)


def _state(calendar: Calendar, moment: datetime, zone: str) -> str:
    """Returns whether the calendar is open at `moment`, in words."""

    def local(time: datetime) -> str:
        return f"{time.astimezone(calendar.zone).strftime(_LOCAL)} {zone}"

    if (frozen := calendar.frozen_at(moment)) is not None:
        return f"frozen until {local(frozen.end)}" + (f" ({frozen.reason})" if frozen.reason else "")
    period = calendar.open_at(moment)
    return f"open until {local(period.end)}" if period is not None else "closed"


def _data(calendar: Calendar, source: UpdateCalendar, moment: datetime, most: int) -> dict[str, Any]:
    """Returns a calendar as JSON data."""
    frozen, period = calendar.frozen_at(moment), calendar.open_at(moment)
    current = frozen or period
    return {
        "name": calendar.name,
        "timeZone": source.spec.time_zone,
        "at": timestamp(moment),
        "state": "Frozen" if frozen else "Open" if period else "Closed",
        "reason": frozen.reason if frozen else "",
        "until": timestamp(current.end) if current else None,
        "openings": [_period_data(each) for each in calendar.openings(moment, most)],
    }


def _period_data(period: Period) -> dict[str, Any]:
    return {"opens": timestamp(period.start), "closes": timestamp(period.end)}
