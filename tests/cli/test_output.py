"""The edge of a terminal: what is written to it, how large it is, and what is put back."""

from __future__ import annotations

import fcntl
import io
import os
import struct
import sys
import termios
from collections.abc import Iterator

import pytest

from runup.cli.output import Printable, printable_streams, screen_of, without_printable, write
from runup.cli.render.screen import PIPE, Drawn, Screen


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Iterator[io.TextIOWrapper]:
    """A terminal of 100 by 40 cells, with nothing of the tester's own."""
    for name in ("COLUMNS", "LINES", "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    master, slave = os.openpty()
    sized(slave, 100, 40)
    stream = os.fdopen(slave, "w")
    yield stream
    stream.close()
    os.close(master)


def sized(descriptor: int, width: int, height: int) -> None:
    """As a terminal says it."""
    fcntl.ioctl(descriptor, termios.TIOCSWINSZ, struct.pack("HHHH", height, width, 0, 0))


@pytest.mark.parametrize(
    ("columns", "lines", "seen", "size"),
    [
        pytest.param(None, None, (100, 40), (100, 40), id="as it says"),
        pytest.param(None, None, (0, 0), (80, 24), id="it does not say"),
        pytest.param("60", None, (100, 40), (60, 40), id="a wished width"),
        pytest.param(None, "9", (100, 40), (100, 9), id="a wished height"),
        pytest.param("0", "", (100, 40), (100, 40), id="no wish"),
        pytest.param("1", "x", (100, 40), (1, 40), id="a wish that is none"),
        pytest.param("-5", None, (0, 40), (80, 40), id="less than nothing"),
    ],
)
def test_how_large_a_terminal_is(
    columns: str | None,
    lines: str | None,
    seen: tuple[int, int],
    size: tuple[int, int],
    terminal: io.TextIOWrapper,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A wish outweighs what it says, and a usual size represents what nobody says."""
    sized(terminal.fileno(), *seen)
    for name, wish in (("COLUMNS", columns), ("LINES", lines)):
        if wish is not None:
            monkeypatch.setenv(name, wish)
    found = screen_of(terminal)
    assert (found.width, found.height) == size


@pytest.mark.parametrize(
    ("environment", "colour", "live"),
    [
        ({}, True, True),
        ({"NO_COLOR": "1"}, False, True),
        ({"NO_COLOR": ""}, True, True),
        ({"TERM": "dumb"}, False, False),
        ({"TERM": "unknown"}, False, False),
        ({"TERM": ""}, False, False),
    ],
    ids=["usual", "no colours", "an empty wish", "dumb", "unknown", "none"],
)
def test_what_a_terminal_can_do(
    environment: dict[str, str],
    colour: bool,
    live: bool,
    terminal: io.TextIOWrapper,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Colours where they are known and wanted; to draw over needs escapes, too."""
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    found = screen_of(terminal)
    assert (found.colour, found.live) == (colour, live)
    assert screen_of(Printable(terminal)) == found  # type: ignore[arg-type]


def test_what_is_no_terminal_has_no_size(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever anybody wishes; a terminal that cannot be asked is a usual one."""
    monkeypatch.setenv("COLUMNS", "60")
    assert screen_of(io.StringIO()) == PIPE
    monkeypatch.delenv("COLUMNS")
    monkeypatch.delenv("LINES", raising=False)

    class Told(io.StringIO):
        def isatty(self) -> bool:
            return True

    assert screen_of(Told()) == Screen(80, 24, screen_of(Told()).colour, screen_of(Told()).live)


def test_what_others_wrote_is_an_escape() -> None:
    """Line by line, too; the stream is reported of what it took, and is asked for everything else."""
    stream = io.StringIO()
    front = Printable(stream)
    assert front.write("a\x1b[2J\n") == 6
    front.writelines(["b\x07\n", "c\n"])
    assert stream.getvalue() == "a\\x1b[2J\nb\\x07\nc\n"
    assert front.getvalue() == stream.getvalue()
    assert without_printable(front) is stream  # type: ignore[arg-type, comparison-overlap]
    assert without_printable(stream) is stream


def test_what_was_drawn_goes_past_it(capsys: pytest.CaptureFixture[str]) -> None:
    """Our colours stay; each part goes to its own stream."""
    with printable_streams():
        write([("out", Drawn("\x1b[1mours\x1b[0m ")), ("out", "\x1b[1mtheirs "), ("err", "told\x07")])
    assert capsys.readouterr() == ("\x1b[1mours\x1b[0m \\x1b[1mtheirs ", "told\\x07")


def test_streams_are_put_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """However it ends, and not where somebody has put another one in their place."""
    before = sys.stdout, sys.stderr

    def inside() -> None:
        with printable_streams():
            assert isinstance(sys.stdout, Printable)
            assert isinstance(sys.stderr, Printable)
            assert not isinstance(sys.stdout.bare, Printable)
            with printable_streams():
                assert not isinstance(sys.stdout.bare, Printable)
            raise KeyError

    with pytest.raises(KeyError):
        inside()
    assert (sys.stdout, sys.stderr) == before
    other = io.StringIO()
    monkeypatch.setattr(sys, "stdout", sys.stdout)
    monkeypatch.setattr(sys, "stderr", sys.stderr)
    with printable_streams():
        sys.stdout = other
    assert sys.stdout is other


def test_a_character_that_a_terminal_lacks_is_an_escape(monkeypatch: pytest.MonkeyPatch) -> None:
    """Output never decides an exit code."""
    data = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(data, "ascii"))
    with printable_streams():
        print("ü")
        sys.stdout.flush()
    assert data.getvalue() == b"\\xfc\n"
