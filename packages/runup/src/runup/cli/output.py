"""Writes text to a terminal so that control characters from a cluster are shown, never executed.

`main` puts `Printable` in front of stdout and stderr, so that no command can forget it. Code that draws our own
colours (rich, the demo) writes to `without_printable(stream)`, and makes other people's text printable itself.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TextIO, cast

from kubekit.lang.text import printable

if TYPE_CHECKING:
    from runup.cli.render.screen import Screen
    from runup.cli.render.text import Output

_USUAL = (80, 24)
# Values of TERM without escape sequences, the same as rich's.
_DUMB = ("", "dumb", "unknown")


class Printable:
    """A text stream in front of `bare` that writes an escape for each control character."""

    def __init__(self, stream: TextIO) -> None:
        self.bare = stream

    def write(self, text: str) -> int:
        """Writes `text` and returns its length, as streams do."""
        self.bare.write(printable(text))
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        """Writes every line."""
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        """Returns every other attribute of the stream."""
        return getattr(self.bare, name)


def without_printable(stream: TextIO) -> TextIO:
    """Returns the stream without `Printable`, for code that draws."""
    return stream.bare if isinstance(stream, Printable) else stream


def write(output: Iterable[Output]) -> None:
    """Prints a render function's output, each part on its stream, in order; drawn text bypasses `Printable`."""
    from runup.cli.render.screen import Drawn

    for name, text in output:
        stream = sys.stdout if name == "out" else sys.stderr
        (without_printable(stream) if isinstance(text, Drawn) else stream).write(text)
        stream.flush()


def screen_of(stream: TextIO) -> Screen:
    """Returns the screen of `stream`: a terminal with its size, or a pipe. `NO_COLOR` disables colours."""
    from runup.cli.render.screen import PIPE, Screen

    plain_stream = without_printable(stream)
    if not plain_stream.isatty():
        return PIPE
    width, height = _size(plain_stream)
    dumb = os.environ.get("TERM", "") in _DUMB
    colour = not dumb and not os.environ.get("NO_COLOR")
    return Screen(width=width, height=height, colour=colour, live=not dumb)


def _size(stream: TextIO) -> tuple[int, int]:
    """Returns width and height in cells; `COLUMNS` and `LINES` take precedence over the terminal's size, as usual."""
    try:
        size = os.get_terminal_size(stream.fileno())
        terminal = (size.columns, size.lines)
    except (OSError, ValueError):
        terminal = (0, 0)
    environment = (os.environ.get("COLUMNS", ""), os.environ.get("LINES", ""))
    sizes = zip(environment, terminal, _USUAL, strict=True)
    width, height = (
        int(wish) if wish.isdigit() and int(wish) else reported or usual for wish, reported, usual in sizes
    )
    return width, height


@contextmanager
def printable_streams() -> Iterator[None]:
    """Routes stdout and stderr through `Printable`."""
    before = sys.stdout, sys.stderr
    for stream in map(without_printable, before):
        # Without UTF-8, a character that the terminal lacks is escaped, too: it must not end the command with an error.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    front = tuple(cast("TextIO", Printable(without_printable(stream))) for stream in before)
    sys.stdout, sys.stderr = front
    try:
        yield
    finally:
        # A command may have replaced a stream, as click does when the reader of a pipe has left.
        if (sys.stdout, sys.stderr) == front:
            sys.stdout, sys.stderr = before
