"""The edge at which text leaves for a terminal: what anybody in a cluster wrote is shown, never obeyed.

`main` puts `Printable` in front of stdout and stderr, so that no command can forget it. What draws colours of our own
(rich, the demo) writes to `bare(stream)`, and makes the text of others printable itself.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TextIO, cast

from kubekit.lang.printable import printable

if TYPE_CHECKING:
    from runup.cli.render.screen import Screen
    from runup.cli.render.text import Output

_USUAL = (80, 24)
# Terminals that know no escapes, as rich has them too.
_DUMB = ("", "dumb", "unknown")


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


def write(output: Iterable[Output]) -> None:
    """Print what a render function made, each part on its stream, in order; what it drew goes past `Printable`."""
    from runup.cli.render.screen import Drawn

    for name, text in output:
        stream = sys.stdout if name == "out" else sys.stderr
        (bare(stream) if isinstance(text, Drawn) else stream).write(text)
        stream.flush()


def screen_of(stream: TextIO) -> Screen:
    """What `stream` is drawn on: a terminal of a size, or a pipe. `NO_COLOR` and a dumb terminal mean no colours."""
    from runup.cli.render.screen import PIPE, Screen

    found = bare(stream)
    if not found.isatty():
        return PIPE
    width, height = _size(found)
    dumb = os.environ.get("TERM", "") in _DUMB
    colour = not dumb and not os.environ.get("NO_COLOR")
    return Screen(width=width, height=height, colour=colour, live=not dumb)


def _size(stream: TextIO) -> tuple[int, int]:
    """Width and height in cells; `COLUMNS` and `LINES` outweigh what the terminal says, as everywhere."""
    try:
        size = os.get_terminal_size(stream.fileno())
        told = (size.columns, size.lines)
    except (OSError, ValueError):
        told = (0, 0)
    wished = (os.environ.get("COLUMNS", ""), os.environ.get("LINES", ""))
    sizes = zip(wished, told, _USUAL, strict=True)
    width, height = (int(wish) if wish.isdigit() and int(wish) else seen or usual for wish, seen, usual in sizes)
    return width, height


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
