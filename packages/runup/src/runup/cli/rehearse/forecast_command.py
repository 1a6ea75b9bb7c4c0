"""The command `runup upgrade forecast`: how long an update takes, and whether it fits into a window. Only reads."""

from __future__ import annotations

import re
import textwrap
from datetime import UTC, tzinfo
from typing import TYPE_CHECKING, Any

import click

from kubekit.lang.text import timestamp
from runup.cli.connection import connection_of, connection_options
from runup.cli.errors import CommandError
from runup.cli.lazy import Command
from runup.cli.rehearse.drain_command import WIDTH, duration_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from runup.rehearse.decide.update_forecast import Forecast, NodeProgress, Range, WindowFit

FITS, DOES_NOT_FIT, NOT_ALL_KNOWN = 0, 2, 3
_MINUTES = re.compile(r"(\d{1,4})(?:-(\d{1,4}))?")
_MOST_MINUTES = 24 * 60


@click.command("forecast", cls=Command)
@click.option("--dump", default="", metavar="DIR", help="A must-gather or another dump; else the cluster, read only.")
@click.option("--between", default="", metavar="HH:MM-HH:MM", help="Whether it fits into the next such window.")
@click.option(
    "--timezone", "zone", default="UTC", show_default=True, metavar="NAME", help="Of --between: Europe/Berlin."
)
@click.option(
    "--node-minutes", default="", metavar="A-B", help="From drained to ready, where no earlier update shows it."
)
@click.option(
    "-o", "--output", type=click.Choice(["json", "yaml", "html"]), help="Output format for programs, or a web page."
)
@connection_options
@click.pass_context
def forecast(ctx: click.Context, /, dump: str, between: str, zone: str, node_minutes: str, output: str | None) -> int:
    """Estimate the duration of an update from earlier updates and simulated drains; nothing is changed.

    \b
      runup upgrade forecast
      runup upgrade forecast --between 22:00-06:00 --timezone Europe/Berlin
      runup upgrade forecast --dump must-gather --node-minutes 5-12 -o json

    Exit codes: 0 it fits, or without --between all is known; 2 it does not fit; 3 this is unknown; 1 an error.
    """
    from kubekit.kube.clock import SystemClock
    from runup.cli.output import write
    from runup.cli.rehearse.drain_command import parse_times, read_source
    from runup.cli.render.text import err, machine, out
    from runup.rehearse.control.drain_source import forecast_of
    from runup.rehearse.decide import update_forecast

    hours, timezone = parse_times(between, "--between"), _parse_zone(zone)
    node_s = parse_node_minutes(node_minutes)
    source = read_source(connection_of(ctx), dump, with_status=True)
    now = source.now or SystemClock().now()
    result, cluster, slow = forecast_of(source, now, node_s)
    version = source.cluster_version
    history = version.status.history if version is not None else ()
    under_way = update_forecast.nodes_under_way(
        cluster.pools, cluster.nodes, slow, now, history=history, openshift=source.openshift
    )
    fit = alone = None
    if hours is not None:
        # The update of a dump's cluster has yet to come, too.
        window = update_forecast.next_window(*hours, timezone, SystemClock().now() if dump else now)
        fit = update_forecast.fit_into_window(result.total, window, guessed=result.guessed)
        if source.openshift:
            control_plane = result.parts[0]
            alone = update_forecast.fit_into_window(control_plane.range, window, guessed=control_plane.guessed)
    code = exit_code(result, fit)
    if output == "html":
        from runup.cli.rehearse import drain_page

        windows = ((fit.opens, fit.closes),) if fit is not None else ()
        summary = page_summary(result, forecast_text(result, fit, zone, alone))
        text = drain_page.page(PAGE_TITLE, summary, slow, windows)
    elif output:
        text = machine({**forecast_data(result, fit, alone, code), **progress_data(under_way)}, output)
    else:
        text = forecast_text(result, fit, zone, alone) + progress_text(under_way)
    write([*(err(f"warning: {note}\n") for note in source.notes), out(text)])
    return code


def parse_node_minutes(text: str) -> tuple[int, int] | None:
    """Returns the seconds that a node takes at least and at most, None without a text. Raises CommandError."""
    if not text:
        return None
    match = _MINUTES.fullmatch(text)
    least_s, most_s = (int(match[1]) * 60, int(match[2] or match[1]) * 60) if match else (0, 0)
    if not 0 < least_s <= most_s <= _MOST_MINUTES * 60:
        raise CommandError(f"--node-minutes {text}: give minutes such as 10, or the least and the most: 5-12")
    return least_s, most_s


def exit_code(result: Forecast, fit: WindowFit | None) -> int:
    """Returns the exit code that a forecast ends the command with."""
    from runup.rehearse.decide import update_forecast

    if fit is None:
        return FITS if result.total.high_s is not None else NOT_ALL_KNOWN
    codes = {update_forecast.FITS: FITS, update_forecast.DOES_NOT_FIT: DOES_NOT_FIT}
    return codes.get(fit.verdict, NOT_ALL_KNOWN)


def _parse_zone(name: str) -> tzinfo:
    """Returns the time zone of this name. Raises CommandError if the machine does not know it."""
    if name == "UTC":
        return UTC
    from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        text = f"--timezone {name}: this machine does not know it; give a name such as Europe/Berlin, or UTC"
        raise CommandError(text) from error


_MINUTE_S = 60


def forecast_text(
    result: Forecast, fit: WindowFit | None = None, zone: str = "UTC", control_plane: WindowFit | None = None
) -> str:
    """Returns the text: the total, whether it fits, each part with its source, and unknown facts."""
    from runup.rehearse.decide.drains.drain_result import without_help

    lines = [f"An update takes {range_text(result.total)}."]
    if why := without_help(result.needs_help):
        lines = textwrap.wrap(f"An update does {why}.", WIDTH)
        lines.append(f"With that help it takes {range_text(result.total)}.")
    if fit is not None:
        window_text = f"{fit.opens:%Y-%m-%d %H:%M} to {fit.closes:%Y-%m-%d %H:%M} {zone}"
        text = f"From {window_text}, {duration_text(fit.length_s)}: {fit.verdict}; {fit.why}."
        lines += textwrap.wrap(text, WIDTH)
        if control_plane is not None and control_plane.verdict != fit.verdict:
            text = f"The control plane alone: {control_plane.verdict}; pools that are paused can follow later."
            lines += textwrap.wrap(text, WIDTH)
    lines.append("")
    titles = [part.name if part.name == "control plane" else f"pool {part.name}" for part in result.parts]
    width = max(map(len, titles), default=0)
    for title, part in zip(titles, result.parts, strict=True):
        lines.append(f"{title.ljust(width)}  {range_text(part.range)}")
        for source in part.sources:
            lines += textwrap.wrap(source, WIDTH, initial_indent="  ", subsequent_indent="    ")
    if result.unknown:
        lines += ["", "Not in it, or not known:"]
    for reason in result.unknown:
        lines += textwrap.wrap(reason, WIDTH, initial_indent="  ", subsequent_indent="    ")
    return "".join(f"{line}\n" for line in lines)


PAGE_TITLE = "Forecast of an update"


def page_summary(result: Forecast, text: str) -> list[str]:
    """Returns the paragraphs at the head of the page; `text` is the forecast as text, whose first part they begin with.

    Parts and unknown facts follow, and what the chart is about.
    """
    sentences = text.split("\n\n")[0].splitlines()
    parts = [f"{part.name}: {range_text(part.range)}; {'; '.join(part.sources)}" for part in result.parts]
    unknown = [f"Not in it, or not known: {reason}" for reason in result.unknown]
    return [" ".join(sentences), *parts, *unknown, "The chart shows the slowest drains of the estimate."]


def progress_text(under_way: Sequence[NodeProgress]) -> str:
    """Returns the section about nodes that are being updated now; empty if none are."""
    lines = ["", "Under way now:"] if under_way else []
    for each in under_way:
        forecast = f"the forecast for it is {duration_text(each.expected_s)}"
        elapsed = "since a time that is not known" if each.elapsed_s is None else f"for {duration_text(each.elapsed_s)}"
        late = f"; it is late by {duration_text(each.late_s)}" if each.late_s else ""
        text = f"node {each.node} of pool {each.pool} {elapsed}: {forecast}{late}"
        lines += textwrap.wrap(text, WIDTH, initial_indent="  ", subsequent_indent="    ")
    return "".join(f"{line}\n" for line in lines)


def progress_data(under_way: Sequence[NodeProgress]) -> dict[str, Any]:
    """Returns the nodes that are being updated now as JSON data."""
    return {
        "underWay": [
            {
                "node": each.node,
                "pool": each.pool,
                "since": timestamp(each.since) if each.since else None,
                "elapsedSeconds": each.elapsed_s,
                "forecastSeconds": each.expected_s,
                "lateSeconds": each.late_s,
            }
            for each in under_way
        ]
    }


def range_text(time_s: Range) -> str:
    """Returns a range in words: `1 h 1 min to 1 h 14 min`, `at least 40 min`, `nobody knows how long`."""
    # Whole minutes: a forecast to the second would claim what it does not know.
    low = -(-time_s.low_s // _MINUTE_S) * _MINUTE_S
    if time_s.high_s is None:
        return f"at least {duration_text(low)}" if low else "nobody knows how long"
    high = -(-time_s.high_s // _MINUTE_S) * _MINUTE_S
    return duration_text(low) if low == high else f"{duration_text(low)} to {duration_text(high)}"


def forecast_data(
    result: Forecast, fit: WindowFit | None = None, control_plane: WindowFit | None = None, code: int = 0
) -> dict[str, Any]:
    """Returns the forecast as JSON data; times are in seconds, null where they are not known."""
    return {
        "total": _range_data(result.total),
        "parts": [
            {"name": part.name, **_range_data(part.range), "sources": list(part.sources), "guessed": part.guessed}
            for part in result.parts
        ],
        "unknown": list(result.unknown),
        "guessed": result.guessed,
        "needsHelp": list(result.needs_help),
        "window": _fit_data(fit),
        "controlPlaneAlone": _fit_data(control_plane),
        "exitCode": code,
    }


def _range_data(time_s: Range) -> dict[str, Any]:
    return {"atLeastSeconds": time_s.low_s, "atMostSeconds": time_s.high_s}


def _fit_data(fit: WindowFit | None) -> dict[str, Any] | None:
    """Returns the fit as JSON data, None without a window."""
    if fit is None:
        return None
    return {
        "opens": timestamp(fit.opens),
        "closes": timestamp(fit.closes),
        "lengthSeconds": fit.length_s,
        "verdict": fit.verdict,
        "why": fit.why,
    }
