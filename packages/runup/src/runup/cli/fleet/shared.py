"""What the commands of a fleet write to stderr: how many clusters are done, and warnings."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from runup.cli.output import without_printable
from runup.cli.render.screen import join_parts

if TYPE_CHECKING:
    from runup.cli.render.text import Output


class Progress:
    """Tells on stderr how many clusters are done: in place on a terminal, every hundredth in a pipe."""

    _EVERY = 100

    def __init__(self, total: int) -> None:
        self._total, self._done = total, 0
        self._in_place = without_printable(sys.stderr).isatty()

    def count_one(self) -> None:
        """Counts a cluster."""
        self._done += 1
        text = f"{self._done} of {self._total} clusters"
        if self._in_place:
            self._write_to_terminal(f"\r\x1b[K{text}")
        elif self._done % self._EVERY == 0:
            self.print_line(text)

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


def warnings(notes: Sequence[str]) -> list[Output]:
    """Returns the notes as lines for stderr, each once."""
    return [("err", join_parts(f"warning: {note}\n")) for note in dict.fromkeys(notes)]
