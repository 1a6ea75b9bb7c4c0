"""Output of the fleet commands on stderr: the number of finished clusters, and warnings."""

from __future__ import annotations

import shutil
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from kubekit.lang.text import one_line
from runup.cli.output import without_printable
from runup.cli.render.screen import join_parts
from runup.cli.render.table import cells

if TYPE_CHECKING:
    from runup.cli.render.text import Output


# Seconds between two looks at what is under way, and from which on a wait is reported.
_SHOW_S, _WAIT_S = 1.0, 2
# Cells for the names of the clusters that have one problem.
_NAMES_ROOM = 60


class Progress:
    """Shows on stderr how many clusters are done: in place on a terminal, every hundredth in a pipe.

    A terminal also shows which clusters are under way, and for how long nothing has changed.
    """

    _EVERY = 100

    def __init__(self, total: int, now_s: Callable[[], float] = time.monotonic) -> None:
        self._total, self._done = total, 0
        self._now_s = now_s
        self._names: Sequence[str] = ()
        self._since_s = self._shown_s = now_s()
        self._in_place = without_printable(sys.stderr).isatty()

    def count_one(self) -> None:
        """Counts a cluster."""
        self._done += 1
        self._since_s = self._now_s()
        if self._in_place:
            self._show()
        elif self._done % self._EVERY == 0:
            self.print_line(self._counted)

    def show_under_way(self, names: Sequence[str]) -> None:
        """Shows the clusters that are read at the moment; called at least every second."""
        self._names = names
        if self._in_place and self._now_s() - self._shown_s >= _SHOW_S:
            self._show()

    @property
    def _counted(self) -> str:
        return f"{self._done} of {self._total} clusters"

    def _show(self) -> None:
        self._shown_s = self._now_s()
        text = self._counted
        if self._names:
            waited_s = int(self._shown_s - self._since_s)
            room = max(shutil.get_terminal_size().columns - 1 - cells(text) - len("; reading , 99999 s"), 1)
            names = shorten_names(self._names, room)
            text += f"; reading {names}{f', {waited_s} s' if waited_s >= _WAIT_S else ''}"
        self._write_to_terminal(f"\r\x1b[K{text[: shutil.get_terminal_size().columns - 1]}")

    def print_line(self, line: str) -> None:
        """Writes a line, above the one in place."""
        self.clear_line()
        sys.stderr.write(f"{line}\n")
        sys.stderr.flush()

    def clear_line(self) -> None:
        """Clears the line in place."""
        if self._in_place:
            self._write_to_terminal("\r\x1b[K")

    def _write_to_terminal(self, text: str) -> None:
        stream = without_printable(sys.stderr)
        stream.write(text)
        stream.flush()


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
