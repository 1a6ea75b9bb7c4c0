"""Output of the fleet commands on stderr: the number of finished clusters, and warnings."""

from __future__ import annotations

import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Self

from kubekit.lang.text import one_line
from runup.cli.progress import ProgressDisplay, display
from runup.cli.render.screen import join_parts
from runup.cli.render.table import cells
from runup.process.steps import Step

if TYPE_CHECKING:
    from runup.cli.render.text import Output


# Seconds from which on a wait is reported.
_WAIT_S = 2
# Cells for the names of the clusters that have one problem.
_NAMES_ROOM = 60


class Progress:
    """Shows how many clusters are done and which are under way, on a terminal; a pipe gets only `print_line`."""

    def __init__(
        self, total: int, shown: ProgressDisplay | None = None, now_s: Callable[[], float] = time.monotonic
    ) -> None:
        self._display = shown or display()
        self._step = Step("Reading clusters", total)
        self._now_s = now_s
        self._since_s = now_s()

    def __enter__(self) -> Self:
        """Shows it until the `with` statement is left."""
        if self._display is not None:
            self._display.begin_without_thread(self._step)
        return self

    def __exit__(self, *_: object) -> None:
        if self._display is not None:
            self._display.end(self._step)

    def count_one(self) -> None:
        """Counts a cluster."""
        self._step.done += 1
        self._since_s = self._now_s()
        self._draw()

    def show_under_way(self, names: Sequence[str]) -> None:
        """Shows the clusters that are read at the moment; called at least every second."""
        waited_s = int(self._now_s() - self._since_s)
        wait_text = f" ({waited_s} s)" if waited_s >= _WAIT_S else ""
        self._step.detail = f"{shorten_names(names, _NAMES_ROOM - len(wait_text))}{wait_text}" if names else ""
        self._draw()

    def _draw(self) -> None:
        if self._display is not None:
            self._display.draw()

    def print_line(self, line: str) -> None:
        """Writes a line, above what is in place."""
        self.clear_line()
        sys.stderr.write(f"{line}\n")
        sys.stderr.flush()

    def clear_line(self) -> None:
        """Clears what is in place."""
        if self._display is not None:
            self._display.clear()


def shorten_names(names: Sequence[str], room: int) -> str:
    """Returns as many names as fit into `room` cells, one at least, and how many there are besides."""
    printed_names = [one_line(name) for name in names]
    for number in range(len(printed_names), 0, -1):
        omitted = len(printed_names) - number
        names_text = ", ".join(printed_names[:number]) + (f" and {omitted} more" if omitted else "")
        if number == 1 or cells(names_text) <= room:
            return names_text
    return ""


def grouped_problems(problems: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """Yields the clusters of each problem, as one text, with the problem: the same one is named once."""
    names_by_problem: dict[str, list[str]] = defaultdict(list)
    for name, problem in problems:
        names_by_problem[problem].append(name)
    for problem, names in names_by_problem.items():
        yield shorten_names(names, _NAMES_ROOM), problem


def warnings(notes: Sequence[str]) -> list[Output]:
    """Returns the notes as lines for stderr, each once."""
    return [("err", join_parts(f"warning: {note}\n")) for note in dict.fromkeys(notes)]
