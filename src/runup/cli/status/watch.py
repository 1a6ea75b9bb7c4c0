"""`runup upgrade status --watch`: the report in place on a terminal, one line a change elsewhere, until it is over.

The API server of a cluster goes away several times while its control plane is updated: silence is tolerated for two
minutes and then is the command's error. Following ends when an update that was seen is over; without one it waits.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import TYPE_CHECKING, TextIO

from runup.cli.output import bare
from runup.cli.render.status import text as rendered
from runup.cli.render.status.changes import changes, summary
from runup.cli.status import live as status_live
from runup.cli.status.source import Found
from runup.cli.upgrade.wait import AWAY_S
from runup.domain.updatestatus import read
from runup.domain.updatestatus.report import Report
from runup.kube.clock import Clock, SystemClock
from runup.kube.errors import Transient
from runup.lang.printable import printable

if TYPE_CHECKING:
    from runup.kube.client_sync import SyncClient

PERIOD_S = 2.0

Show = Callable[[Report, Found], None]


def follow(client: SyncClient, details: str, clock: Clock | None = None, stream: TextIO | None = None) -> None:
    """Show every change until the update is over; raises KubeError as reading does, Transient after two minutes.

    Ages are told by the server's time, or by `clock` where one is given.
    """
    now = clock.now if clock else client.now
    clock = clock or SystemClock()
    stream = stream or sys.stdout
    view = _terminal if stream.isatty() else _lines
    with view(stream, details) as show:
        seen = False
        for found in looks(client, clock, now):
            report = read.report(found.obj)
            show(report, found)
            if seen and not report.is_updating:
                return
            seen = seen or report.is_updating


def looks(client: SyncClient, clock: Clock, now: Callable[[], datetime]) -> Iterator[Found]:
    """The status every two seconds, for as long as anybody asks."""
    answered = clock.monotonic()
    while True:
        try:
            yield status_live.read(client, now)
            answered = clock.monotonic()
        except Transient:
            if clock.monotonic() - answered > AWAY_S:
                raise
        clock.pause(PERIOD_S)


@contextmanager
def _lines(stream: TextIO, details: str) -> Iterator[Show]:  # noqa: ARG001 (the other view's)
    last: list[Report] = []

    def show(report: Report, found: Found) -> None:
        lines = list(changes(last[-1], report)) if last else [summary(report), *_attention(report)]
        last[:] = [report]
        at = rendered.clock_time(found.now_ns)
        stream.write("".join(f"{at} {line}\n" for line in lines))
        stream.flush()

    yield show


def _attention(report: Report) -> list[str]:
    return [f"{row.level}: {row.summary}" for row in report.health] if report.is_updating else []


# Healthy nodes a pool that are shown on a terminal, from as in a pipe to no table: the first that fits is taken.
_ROWS = (rendered.ROWS, 5, 3, 0, rendered.NO_TABLES)

# What stands out on a terminal; the words are the same without colours.
_STYLES = (
    (r"^= .* =$|^Control Plane Nodes$|^Worker Pool Nodes: .*$|^Updating Cluster Operators$", "bold"),
    (r"(?<=^Assessment:      )Stalled", "bold red"),
    (r"(?<=^Assessment:      )Progressing - Slow", "yellow"),
    # Cells of tables, which blanks follow.
    (r"\b(Critical|Error|Degraded)\b(?= {2})", "bold red"),
    (r"\b(Warning|Unavailable)\b(?= {2})", "yellow"),
    (r"\b(Draining|Updating|Rebooting)\b(?= {2})", "cyan"),
    (r"\b(Completed|Updated)\b(?= {2})", "green"),
)


@contextmanager
def _terminal(stream: TextIO, details: str) -> Iterator[Show]:
    """The report on a screen of its own, which is left again; the last one stays below."""
    from rich.console import Console
    from rich.live import Live
    from rich.text import Text

    wanted = rendered.details(details)
    console = Console(file=bare(stream))
    last = ""

    def drawn(text: str) -> Text:
        found = Text(printable(text), no_wrap=True, overflow="crop")
        for pattern, style in _STYLES:
            found.highlight_regex(re.compile(pattern, re.MULTILINE), style)
        return found

    try:
        with Live(console=console, auto_refresh=False, screen=True) as live:

            def show(report: Report, found: Found) -> None:
                nonlocal last
                last = rendered.render(report, found.now_ns, wanted)
                live.update(drawn(_fitting(report, found.now_ns, wanted, console.height)), refresh=True)

            yield show
    finally:
        console.print(drawn(last), end="")


def _fitting(report: Report, now: int, wanted: rendered.Details, height: int) -> str:
    """The text with as many nodes as the terminal has lines for: what needs attention stands at the end."""
    text = ""
    for rows in _ROWS:
        text = rendered.render(report, now, wanted, rows=rows)
        if text.count("\n") < height:
            break
    return text
