"""Shows the progress of `--wait`: in place on a terminal, one line per change elsewhere.

`Progress` is a value; comparing and drawing values is pure. `shown` writes them to a stream.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, TextIO

from runup.advice.decide.preflight_reasons import IN_PROGRESS, INCOMPLETE, OUTDATED
from runup.cli.output import screen_of, without_printable
from runup.cli.preflight.render.cause_texts import name_and_more
from runup.cli.preflight.render.finding_texts import brief_table
from runup.cli.render.screen import Drawn, Screen, join_parts
from runup.cli.render.table import draw_table, wrap_text
from runup.evaluation.findings import Findings, Risk
from runup.report.causes import group_by_cause

if TYPE_CHECKING:
    from rich.live import Live

LEAVE = "Ctrl-C ends the waiting; the preflight goes on."
_A_SECOND = 8
# Lines of the live view besides its table: blank lines, headings, progress and trouble.
_BESIDE = 8
_FEWEST = 3


@dataclass(frozen=True, slots=True)
class Progress:
    """The progress of a preflight: one line, the risks found so far, and the trouble in reading it, if any."""

    line: str
    risks: tuple[Risk, ...] = ()
    trouble: str = ""


Show = Callable[[Progress], None]


def risks_so_far(findings: Findings) -> tuple[Risk, ...]:
    """Returns the risks that this preflight has found by now, without those that stand for unfinished checks."""
    return tuple(
        risk
        for risk in findings.risks
        if risk.from_preflight
        and risk.applies != "False"
        and risk.reason != OUTDATED
        and risk.name not in (IN_PROGRESS, INCOMPLETE)
    )


def changed_lines(before: Progress | None, after: Progress) -> Iterator[str]:
    """Yields one line for each difference of `after`, the cause first."""
    if after.trouble != (before.trouble if before else ""):
        yield after.trouble or "The API server answers again."
    if after.trouble:
        return
    if before is None or after.line != before.line:
        yield after.line
    names = {risk.name for risk in before.risks} if before else set()
    for risk in after.risks:
        if risk.name not in names:
            text = " ".join(risk.message.split())
            yield f"found: {risk.name}{'' if risk.applies == 'True' else ' (could not be told)'}: {text}"


def region(progress: Progress, screen: Screen) -> Drawn:
    """Returns the live view: progress, as many risks as there is room for, and how to leave."""
    parts: list[str] = [wrap_text(progress.line, screen)]
    if progress.trouble:
        parts.append(wrap_text(progress.trouble, screen))
    if progress.risks:
        parts += ["\nFound so far:\n", _table(progress.risks, screen)]
    return join_parts(*parts, "\n", wrap_text(LEAVE, screen))


def _table(risks: tuple[Risk, ...], screen: Screen) -> Drawn:
    """Returns as many of the causes as fit the screen: more would push the progress line out of view."""
    room = max((screen.height or 24) - _BESIDE, _FEWEST)
    causes = group_by_cause(risks)
    whole = draw_table(brief_table(causes, indent=2), screen)
    if whole.count("\n") <= room:
        return whole
    names = [f"  {name_and_more(cause)}" for cause in causes[: room - 1]]
    omitted = len(causes) - len(names)
    return join_parts("".join(f"{name}\n" for name in names), f"  and {omitted} more\n" if omitted else "")


@contextmanager
def progress_shower(stream: TextIO) -> Iterator[Show]:
    """Yields a function that shows progress on `stream`."""
    screen = screen_of(stream)
    with _show_in_place(stream) if screen.live else _line_by_line(stream) as show:
        yield show


@contextmanager
def _line_by_line(stream: TextIO) -> Iterator[Show]:
    """Yields a function that writes a line for each change."""
    last: list[Progress] = []

    def show_changes(progress: Progress) -> None:
        """Writes the lines that differ from the last progress."""
        lines = list(changed_lines(last[-1] if last else None, progress))
        # While the server is away the progress keeps its last values and adds the trouble.
        last[:] = [progress]
        stream.write("".join(f"{line}\n" for line in lines))
        stream.flush()

    yield show_changes


@contextmanager
def _show_in_place(stream: TextIO) -> Iterator[Show]:
    """Yields a function that shows a text in place of the one before, for terminals."""
    from rich.console import Console
    from rich.live import Live

    screen = screen_of(stream)
    console = Console(
        file=without_printable(stream), no_color=not screen.colour, highlight=False, markup=False, emoji=False
    )
    with Live(console=console, refresh_per_second=_A_SECOND, transient=True, redirect_stdout=False) as live:
        yield lambda progress: _update(live, progress, screen_of(stream))


def _update(live: Live, progress: Progress, screen: Screen) -> None:
    """Draws the progress anew beside the spinner, wrapped to the screen's width."""
    from rich.spinner import Spinner
    from rich.table import Table
    from rich.text import Text

    beside = Table.grid(padding=(0, 1, 0, 0))
    # The spinner's column takes two columns of the screen.
    narrower = Screen(max((screen.width or 80) - 3, 1), screen.height, screen.colour, screen.live)
    beside.add_row(Spinner("line"), Text.from_ansi(region(progress, narrower)))
    live.update(beside)
