"""`upgrade status --watch` on a terminal: how much of the report it has lines for, and the line below it."""

from __future__ import annotations

import io

import pytest
from rich.console import Console
from rich.text import Text
from tests.updatestatus.decide import builders as b

from kubekit.lang.gotext import to_ns
from runup.cli.updatestatus import watch_command
from runup.cli.updatestatus.render import status_text
from runup.cli.updatestatus.watch_command import Poll
from runup.updatestatus.control.status_reading import StatusReading
from runup.updatestatus.decide.assess import assess
from runup.updatestatus.decide.read_status import report_of_status

NODES = tuple(b.node(f"{role}-{i:04}", role) for role in ("master", "worker") for i in range(12))
REPORT = report_of_status(assess(b.snapshot(nodes=NODES), None, b.NOW, max_bytes=None))
NOW_NS = to_ns(b.NOW)
WIDTH = 110
# A blank line, and two of the line below, which may be longer than a low terminal is wide.
BELOW = 3


def _lines(text: str) -> int:
    """How many lines of the terminal a text takes."""
    return len(Text(text).wrap(Console(file=io.StringIO(), width=WIDTH), WIDTH))


def _shown(height: int) -> str:
    """The report as a terminal of so many lines shows it."""
    console = Console(file=io.StringIO(), width=WIDTH, height=height)
    return watch_command.fit_to_terminal(REPORT, NOW_NS, status_text.details("none"), console)


def test_a_low_terminal_has_fewer_nodes() -> None:
    """As many of ten, five, three or none of a pool as leave a line free next to what is below; then none has a table.

    The problems are at the end of the report, and would be what a terminal cuts off.
    """
    details = status_text.details("none")
    choices = [status_text.render(REPORT, NOW_NS, details, rows=rows) for rows in (10, 5, 3, 0, status_text.NO_TABLES)]
    assert [_lines(text) for text in choices] == sorted({_lines(text) for text in choices}, reverse=True)
    for height in range(5, _lines(choices[0]) + 9):
        fitting = [text for text in choices if _lines(text) + BELOW < height]
        assert _shown(height) == (fitting or choices[-1:])[0], height


@pytest.mark.parametrize(
    ("look", "below"),
    [
        pytest.param(Poll(0, trouble="no \x1banswer"), ("no \\x1banswer", "yellow"), id="a server that is away"),
        pytest.param(
            Poll(0, StatusReading(obj={}, now_ns=NOW_NS, doubt="it is old")),
            ("Looked at 10:04:00Z. It is old.", "yellow"),
            id="a report that may be old",
        ),
        pytest.param(
            Poll(0, StatusReading(obj={}, now_ns=NOW_NS)),
            (
                "Looked at 10:04:00Z, and again every 2 s. Ctrl-C ends the watching; the update continues.",
                "dim",
            ),
            id="an update that goes on",
        ),
    ],
)
def test_the_line_below(look: Poll, below: tuple[str, str]) -> None:
    """The server's trouble while there is any, else a doubt about the report, else when it was looked at."""
    assert watch_command.footer(REPORT if look.found else None, look) == below
