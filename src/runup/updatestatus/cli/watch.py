"""`runup upgrade status --watch`: the report in place on a terminal, one line a change elsewhere, until it is over.

The API server of a cluster goes away several times while its control plane is updated: silence is tolerated for two
minutes and then is the command's error. Following ends when an update that was seen is over; without one it waits.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, TextIO

from kubekit.kube.clock import Clock, SystemClock
from kubekit.kube.errors import Transient
from kubekit.lang.printable import printable
from runup.cli.errors import CommandError, message_of
from runup.cli.output import bare, screen_of
from runup.clusterversion.cli.wait import AWAY_S
from runup.updatestatus.cli import live as status_live
from runup.updatestatus.cli.render import text as rendered
from runup.updatestatus.cli.render.changes import changes, summary
from runup.updatestatus.cli.source import Found
from runup.updatestatus.decide import read
from runup.updatestatus.decide.report import Report

if TYPE_CHECKING:
    from rich.console import Console

    from kubekit.kube.client_sync import SyncClient

PERIOD_S = 2.0
# Where nothing happens a log is told so every so often: silence could be a process that hangs.
STILL_S = 300.0
_IDLE = "Waiting for an update to begin. Ctrl-C ends the waiting."
_STILL = "Still not updating; waiting for an update to begin."
_AWAY = (
    "The API server does not answer: {error}. It is asked again, for {limit:.0f} s at most; an update goes on all the "
    "same."
)
_BACK = "The API server answers again."
_LEFT = "Follow it again with `runup upgrade status --watch`."


@dataclass(frozen=True, slots=True)
class Look:
    """One look at the cluster: what was found, or why nothing could be; `at` is seconds of the watcher's own clock."""

    at: float
    found: Found | None = None
    trouble: str = ""


Show = Callable[[Report | None, Look], None]


def follow(client: SyncClient, details: str, clock: Clock | None = None, stream: TextIO | None = None) -> None:
    """Show every change until the update is over; raises KubeError as reading does, CommandError after two minutes
    without an answer.

    Ages are told by the server's time, or by `clock` where one is given.
    """
    now = clock.now if clock else client.now
    clock = clock or SystemClock()
    stream = stream or sys.stdout
    view = _terminal if screen_of(stream).live else _lines
    try:
        with view(stream, details) as show:
            _follow(looks(client, clock, now), show)
    except Transient as error:
        text = f"the API server has not answered for {AWAY_S:.0f} s: {message_of(error).strip()}"
        raise CommandError(f"{text}\n{_LEFT}") from error
    except KeyboardInterrupt:
        sys.stderr.write(f"\nNo longer watching; an update goes on without it. {_LEFT}\n")
        raise


def _follow(seen: Iterator[Look], show: Show) -> None:
    updating = False
    for look in seen:
        report = read.report(look.found.obj) if look.found else None
        show(report, look)
        if report is not None:
            if updating and not report.is_updating:
                return
            updating = updating or report.is_updating


def looks(client: SyncClient, clock: Clock, now: Callable[[], datetime]) -> Iterator[Look]:
    """The status every two seconds, for as long as anybody asks."""
    answered = clock.monotonic()
    while True:
        try:
            found = status_live.read(client, now, following=True)
        except Transient as error:
            if clock.monotonic() - answered > AWAY_S:
                raise
            said = message_of(error).strip().partition("\n")[0].rstrip(".")
            yield Look(clock.monotonic(), trouble=_AWAY.format(error=said, limit=AWAY_S))
        else:
            answered = clock.monotonic()
            yield Look(answered, found)
        clock.pause(PERIOD_S)


@dataclass
class Log:
    """What was said in lines so far, and what comes next."""

    report: Report | None = None
    trouble: str = ""
    said_at: float = 0.0

    def lines(self, report: Report | None, look: Look) -> list[str]:
        """What is new: trouble, its end, changes; where nothing happens, now and then that nothing does."""
        if report is None:
            found = [look.trouble] if look.trouble != self.trouble else []
        else:
            found = [_BACK] if self.trouble else []
            found += changes(self.report, report) if self.report else [*_first(report)]
            idle = not report.is_updating and self.report is not None and not self.report.is_updating
            if idle and not found and look.at - self.said_at >= STILL_S:
                found = [_STILL]
        self.report, self.trouble = report or self.report, look.trouble
        self.said_at = look.at if found else self.said_at
        return found


def _first(report: Report) -> Iterator[str]:
    yield summary(report)
    if report.is_updating:
        yield from (f"{row.level}: {row.summary}" for row in report.health)
    else:
        yield _IDLE


@contextmanager
def _lines(stream: TextIO, details: str) -> Iterator[Show]:  # noqa: ARG001 (the other view's)
    log, at = Log(), ""

    def show(report: Report | None, look: Look) -> None:
        nonlocal at
        at = rendered.clock_time(look.found.now_ns) if look.found else at
        stream.write("".join(f"{at} {line}".lstrip() + "\n" for line in log.lines(report, look)))
        stream.flush()

    yield show


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
    console = Console(file=bare(stream), no_color=not screen_of(stream).colour)
    last, report_text = "", ""

    def drawn(text: str) -> Text:
        found = Text(printable(text), overflow="fold")
        for pattern, style in _STYLES:
            found.highlight_regex(re.compile(pattern, re.MULTILINE), style)
        return found

    try:
        with Live(console=console, auto_refresh=False, screen=True) as live:

            def show(report: Report | None, look: Look) -> None:
                nonlocal last, report_text
                if report is not None and look.found is not None:
                    last = rendered.render(report, look.found.now_ns, wanted)
                    report_text = _fitting(report, look.found.now_ns, wanted, console)
                live.update(Text.assemble(drawn(report_text), "\n", _foot(report, look)), refresh=True)

            yield show
    finally:
        console.print(drawn(last), end="")


# Lines below the report: a blank one, and what goes on.
_FOOT = 3


def _foot(report: Report | None, look: Look) -> tuple[str, str]:
    """What goes on now, and how to leave."""
    if report is None or look.found is None:
        return printable(look.trouble), "yellow"
    at = rendered.clock_time(look.found.now_ns)
    if not report.is_updating:
        return f"{_IDLE} Looked at {at}.", "dim"
    return f"Looked at {at}, and again every {PERIOD_S:.0f} s. Ctrl-C ends the watching; the update goes on.", "dim"


def _fitting(report: Report, now: int, wanted: rendered.Details, console: Console) -> str:
    """The text with as many nodes as the terminal has lines for: what needs attention stands at the end."""
    from rich.text import Text

    text = ""
    for rows in _ROWS:
        text = rendered.render(report, now, wanted, rows=rows)
        if len(Text(text).wrap(console, console.width)) < console.height - _FOOT:
            break
    return text
