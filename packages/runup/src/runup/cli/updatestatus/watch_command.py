"""Implements `runup upgrade status --watch`: redraws the report on a terminal, prints a line a change elsewhere.

The API server of a cluster goes away several times while its control plane is updated: two minutes without an answer
are tolerated, then the command fails. Watching ends when an update that was seen is over; without an update it waits.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, TextIO

from kubekit.kube.api_errors import Transient, message_of
from kubekit.kube.clock import Clock, SystemClock
from kubekit.lang.text import printable, sentence_case
from runup.cli.errors import CommandError
from runup.cli.output import screen_of, without_printable
from runup.cli.updatestatus.render import status_text as rendered
from runup.cli.updatestatus.render.status_text import changes, summary
from runup.clusterversion.control.upgrade_wait import SERVER_AWAY_LIMIT_S
from runup.updatestatus.control import live_status as status_live
from runup.updatestatus.control.status_reading import StatusReading
from runup.updatestatus.decide.read_status import Report

if TYPE_CHECKING:
    from rich.console import Console

    from kubekit.kube.client_sync import SyncClient

PERIOD_S = 2.0
# A log gets a line this often (seconds) while nothing happens: silence could be a process that hangs.
IDLE_LINE_PERIOD_S = 300.0
_IDLE = "Waiting for an update to begin. Ctrl-C ends the waiting."
_STILL = "Still not updating; waiting for an update to begin."
_AWAY = "The API server does not answer: {error}. It is asked again, for {limit:.0f} s at most; the update continues."
_BACK = "The API server answers again."
_CURRENT = "The update status controller's report is current again."
_LEFT = "Follow it again with `runup upgrade status --watch`."


@dataclass(frozen=True, slots=True)
class Poll:
    """A read of the cluster: the status, or the error; `at` is seconds of the watcher's own clock."""

    at: float
    found: StatusReading | None = None
    trouble: str = ""


Show = Callable[[Report | None, Poll], None]


def show_until_over(
    client: SyncClient,
    details: str,
    clock: Clock | None = None,
    stream: TextIO | None = None,
    *,
    hosted_cluster: str = "",
) -> None:
    """Shows every change until the update of the cluster, or of this hosted cluster, is over.

    Raises KubeError as reading does, and CommandError after two minutes without an answer. Ages are computed by the
    server's time, or by `clock` if one is given.
    """
    now = clock.now if clock else client.now
    clock = clock or SystemClock()
    stream = stream or sys.stdout
    view = _shown_on_terminal if screen_of(stream).live else _shown_as_lines
    try:
        with view(stream, details) as show:
            updating = False
            for look in poll_status(client, clock, now, hosted_cluster):
                report = look.found.report() if look.found else None
                show(report, look)
                if report is not None:
                    if updating and not report.is_updating:
                        return
                    updating = updating or report.is_updating
    except Transient as error:
        text = f"the API server has not answered for {SERVER_AWAY_LIMIT_S:.0f} s: {message_of(error).strip()}"
        raise CommandError(f"{text}\n{_LEFT}") from error
    except KeyboardInterrupt:
        sys.stderr.write(f"\nNo longer watching; an update continues without it. {_LEFT}\n")
        raise


def poll_status(
    client: SyncClient, clock: Clock, now: Callable[[], datetime], hosted_cluster: str = ""
) -> Iterator[Poll]:
    """Yields the status every two seconds, until the caller stops."""
    answered_at = clock.monotonic()
    while True:
        try:
            reading = _read(client, now, hosted_cluster)
        except Transient as error:
            if clock.monotonic() - answered_at > SERVER_AWAY_LIMIT_S:
                raise
            first_line = message_of(error).strip().partition("\n")[0].rstrip(".")
            yield Poll(clock.monotonic(), trouble=_AWAY.format(error=first_line, limit=SERVER_AWAY_LIMIT_S))
        else:
            answered_at = clock.monotonic()
            yield Poll(answered_at, reading)
        clock.pause(PERIOD_S)


def _read(client: SyncClient, now: Callable[[], datetime], hosted_cluster: str) -> StatusReading:
    if not hosted_cluster:
        return status_live.read(client, now, following=True)
    from runup.updatestatus.control import hosted_objects

    [reading] = hosted_objects.read(client, now, hosted_cluster, status_live.REFUSED)
    return reading


@dataclass
class Log:
    """The state of the line log: the last report, error and doubt about its age, and when a line was last printed."""

    report: Report | None = None
    trouble: str = ""
    said_at: float = 0.0
    doubt: str = ""

    def lines(self, report: Report | None, look: Poll) -> list[str]:
        """Returns the new lines: errors, their end, doubts, changes; now and then that nothing happens."""
        if report is None:
            lines = [look.trouble] if look.trouble != self.trouble else []
        else:
            doubt = look.found.doubt if look.found else ""
            lines = [_BACK] if self.trouble else []
            if doubt != self.doubt:
                lines.append(f"Warning: {doubt}" if doubt else _CURRENT)
            self.doubt = doubt
            if self.report:
                lines += changes(self.report, report)
            elif report.is_updating:
                lines += [summary(report), *(f"{row.level}: {row.summary}" for row in report.health)]
            else:
                lines += [summary(report), _IDLE]
            idle = not report.is_updating and self.report is not None and not self.report.is_updating
            if idle and not lines and look.at - self.said_at >= IDLE_LINE_PERIOD_S:
                lines = [_STILL]
        self.report, self.trouble = report or self.report, look.trouble
        self.said_at = look.at if lines else self.said_at
        return lines


@contextmanager
def _shown_as_lines(stream: TextIO, details: str) -> Iterator[Show]:  # noqa: ARG001 (the other view's)
    """Yields a function that writes a line, with the time, for each change."""
    log, at = Log(), ""

    def show_lines(report: Report | None, look: Poll) -> None:
        nonlocal at
        at = rendered.clock_time(look.found.now_ns) if look.found else at
        stream.write("".join(f"{at} {line}".lstrip() + "\n" for line in log.lines(report, look)))
        stream.flush()

    yield show_lines


# Numbers of healthy nodes a pool on a terminal, from the number in a pipe to no table: the first that fits is taken.
_ROWS = (rendered.ROWS, 5, 3, 0, rendered.NO_TABLES)

# What is highlighted on a terminal; the words are the same without colours.
_STYLES = (
    (r"^= .* =$|^Control Plane Nodes$|^Worker Pool Nodes: .*$|^Updating Cluster Operators$", "bold"),
    (r"(?<=^Assessment:      )Stalled", "bold red"),
    (r"(?<=^Assessment:      )Progressing - Slow", "yellow"),
    # Cells of tables: blanks follow them.
    (r"\b(Critical|Error|Degraded)\b(?= {2})", "bold red"),
    (r"\b(Warning|Unavailable)\b(?= {2})", "yellow"),
    (r"\b(Draining|Updating|Rebooting)\b(?= {2})", "cyan"),
    (r"\b(Completed|Updated)\b(?= {2})", "green"),
)


@contextmanager
def _shown_on_terminal(stream: TextIO, details: str) -> Iterator[Show]:
    """Yields a function that shows the report on a separate screen; the last report stays below after leaving it."""
    from rich.console import Console
    from rich.live import Live
    from rich.text import Text

    wanted_details = rendered.details(details)
    console = Console(file=without_printable(stream), no_color=not screen_of(stream).colour)
    last, report_text = "", ""

    def style_text(text: str) -> Text:
        styled = Text(printable(text), overflow="fold")
        for pattern, style in _STYLES:
            styled.highlight_regex(re.compile(pattern, re.MULTILINE), style)
        return styled

    try:
        with Live(console=console, auto_refresh=False, screen=True) as live:

            def show_report(report: Report | None, look: Poll) -> None:
                """Shows the newest report, or the last one with a note if it could not be read."""
                nonlocal last, report_text
                if report is not None and look.found is not None:
                    last = rendered.render(report, look.found.now_ns, wanted_details)
                    report_text = fit_to_terminal(report, look.found.now_ns, wanted_details, console)
                live.update(Text.assemble(style_text(report_text), "\n", footer(report, look)), refresh=True)

            yield show_report
    finally:
        console.print(style_text(last), end="")


# Lines reserved below the report: a blank one, and the line of `footer`, which may wrap.
_FOOT = 3


def footer(report: Report | None, look: Poll) -> tuple[str, str]:
    """Returns the line below the report and its style: the current error or activity, and how to leave."""
    if report is None or look.found is None:
        return printable(look.trouble), "yellow"
    at = rendered.clock_time(look.found.now_ns)
    if look.found.doubt:
        return printable(f"Looked at {at}. {sentence_case(look.found.doubt)}."), "yellow"
    if not report.is_updating:
        return f"{_IDLE} Looked at {at}.", "dim"
    return f"Looked at {at}, and again every {PERIOD_S:.0f} s. Ctrl-C ends the watching; the update continues.", "dim"


def fit_to_terminal(report: Report, now: int, details: rendered.Details, console: Console) -> str:
    """Returns the text with as many nodes as the terminal has lines for, because the problems are at its end."""
    from rich.text import Text

    text = ""
    for rows in _ROWS:
        text = rendered.render(report, now, details, rows=rows)
        if len(Text(text).wrap(console, console.width)) < console.height - _FOOT:
            break
    return text
