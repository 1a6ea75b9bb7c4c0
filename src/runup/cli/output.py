"""The edge at which text leaves for a terminal: what anybody in a cluster wrote is shown, never obeyed.

`main` puts `Printable` in front of stdout and stderr, so that no command can forget it. What draws colours of our own
(rich, the demo) writes to `bare(stream)`, and makes the text of others printable itself.
"""

from __future__ import annotations

import io
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, TextIO, cast

from runup.lang.printable import printable


class Printable:
    """A text stream in front of `bare` that writes an escape for each control character."""

    def __init__(self, stream: TextIO) -> None:
        self.bare = stream

    def write(self, text: str) -> int:
        """Write `text`; says how much of it was taken, as streams do."""
        self.bare.write(printable(text))
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        """Write every line."""
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        """Everything else is the stream's own affair."""
        return getattr(self.bare, name)


def bare(stream: TextIO) -> TextIO:
    """The stream itself, for whoever draws."""
    return stream.bare if isinstance(stream, Printable) else stream


@contextmanager
def shown() -> Iterator[None]:
    """Let what is written to stdout and stderr pass through `Printable`."""
    before = sys.stdout, sys.stderr
    for stream in map(bare, before):
        # Outside UTF-8 a character that the terminal lacks is an escape too: output never decides an exit code.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    front = tuple(cast("TextIO", Printable(bare(stream))) for stream in before)
    sys.stdout, sys.stderr = front
    try:
        yield
    finally:
        # A command may have put another stream in its place, as click does when a reader has left.
        if (sys.stdout, sys.stderr) == front:
            sys.stdout, sys.stderr = before
