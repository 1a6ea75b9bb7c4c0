"""Shows the progress of `--wait`: in place on a terminal, one line per change elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TextIO

from runup.cli.output import screen_of, without_printable
from runup.cli.preflight.render.cause_texts import name_and_more
from runup.cli.preflight.render.finding_texts import brief_table
from runup.cli.render.screen import Drawn, Screen, join_parts
from runup.cli.render.table import draw_table, wrap_text
from runup.clusterversion.control.upgrade_wait import Progress
from runup.report.causes import group_by_cause

LEAVE = "Ctrl-C ends the waiting; the preflight continues."
_A_SECOND = 8
# Lines of the live view besides its table: blank lines, headings, progress and trouble.
_OTHER_LINES = 8
_FEWEST = 3


Show = Callable[[Progress], None]


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
            yield f"found: {risk.name}{'' if risk.applies == 'True' else ' (unknown)'}: {text}"


def region(progress: Progress, screen: Screen) -> Drawn:
    """Returns the live view: progress, as many risks as there is room for, and how to leave."""
    parts: list[str] = [wrap_text(progress.line, screen)]
    if progress.trouble:
        parts.append(wrap_text(progress.trouble, screen))
    if progress.risks:
        # As many causes as fit the screen: more would push the progress line out of view.
        room = max((screen.height or 24) - _OTHER_LINES, _FEWEST)
        causes = group_by_cause(progress.risks)
        table = draw_table(brief_table(causes, indent=2), screen)
        if table.count("\n") > room:
            names = [f"  {name_and_more(cause)}\n" for cause in causes[: room - 1]]
            omitted = len(causes) - len(names)
            table = join_parts("".join(names), f"  and {omitted} more\n" if omitted else "")
        parts += ["\nFound so far:\n", table]
    return join_parts(*parts, "\n", wrap_text(LEAVE, screen))


@contextmanager
def progress_shower(stream: TextIO) -> Iterator[Show]:
    """Yields a function that shows progress on `stream`: in place on a terminal, else a line for each change."""
    screen = screen_of(stream)
    if screen.live:
        with _show_in_place(stream) as show:
            yield show
        return
    last: Progress | None = None

    def show_changes(progress: Progress) -> None:
        """Writes the lines that differ from the last progress."""
        nonlocal last
        lines = list(changed_lines(last, progress))
        # While the server is away the progress keeps its last values and adds the trouble.
        last = progress
        stream.write("".join(f"{line}\n" for line in lines))
        stream.flush()

    yield show_changes


@contextmanager
def _show_in_place(stream: TextIO) -> Iterator[Show]:
    """Yields a function that draws the progress next to a spinner, for terminals."""
    from rich.console import Console
    from rich.live import Live
    from rich.spinner import Spinner
    from rich.table import Table
    from rich.text import Text

    screen = screen_of(stream)
    console = Console(
        file=without_printable(stream), no_color=not screen.colour, highlight=False, markup=False, emoji=False
    )

    def draw(progress: Progress) -> None:
        now = screen_of(stream)
        # The spinner's column takes two columns of the screen.
        narrower = Screen(max((now.width or 80) - 3, 1), now.height, now.colour, now.live)
        row = Table.grid(padding=(0, 1, 0, 0))
        row.add_row(Spinner("line"), Text.from_ansi(region(progress, narrower)))
        live.update(row)

    with Live(console=console, refresh_per_second=_A_SECOND, transient=True, redirect_stdout=False) as live:
        yield draw
