"""`upgrade status --watch` in a pipe: that it waits, that it still does, that the server is away and back."""

from __future__ import annotations

import pytest
from tests.updatestatus.decide import builders as b

from runup.cli.updatestatus.watch_command import Log, Poll
from runup.updatestatus.control.status_reading import StatusReading
from runup.updatestatus.decide.assess import assess
from runup.updatestatus.decide.read_status import Report, report_of_status

IDLE = report_of_status(
    assess(
        b.snapshot(cluster_version=b.version([b.entry(b.OLD)], progressing="False"), nodes=()),
        None,
        b.NOW,
        max_bytes=None,
    )
)
UPDATING = report_of_status(assess(b.snapshot(), None, b.NOW, max_bytes=None))
WAITING = ["The cluster is not updating.", "Waiting for an update to begin. Ctrl-C ends the waiting."]
FIVE_MINUTES = 300.0
STILL = ["Still not updating; waiting for an update to begin."]
BACK = ["The API server answers again."]
Step = tuple[float, Report | None, list[str]]
STORIES: dict[str, list[Step]] = {
    "an idle cluster is shown once, then now and then": [
        (0, IDLE, WAITING),
        (2, IDLE, []),
        (FIVE_MINUTES - 1, IDLE, []),
        (FIVE_MINUTES, IDLE, STILL),
        (FIVE_MINUTES + 2, IDLE, []),
        (2 * FIVE_MINUTES, IDLE, STILL),
    ],
    "a server that goes away and comes back": [
        (0, IDLE, WAITING),
        (2, None, ["away"]),
        (4, None, []),
        (6, IDLE, BACK),
        (8, IDLE, []),
    ],
    "whatever is said begins the silence anew": [
        (0, IDLE, WAITING),
        (299, None, ["away"]),
        (300, None, []),
        (301, IDLE, BACK),
        (600, IDLE, []),
        (601, IDLE, STILL),
    ],
    "a server that is away at first": [(0, None, ["away"]), (2, None, []), (4, IDLE, [*BACK, *WAITING])],
}


@pytest.mark.parametrize("name", STORIES)
def test_silence_is_never_long(name: str) -> None:
    """Each look and what is said about it."""
    log = Log()
    found = StatusReading(obj={}, now_ns=0)
    for at, report, lines in STORIES[name]:
        look = Poll(at, trouble="away") if report is None else Poll(at, found)
        assert log.lines(report, look) == lines, at


def test_an_update_that_begins_ends_the_waiting() -> None:
    """It is reported as a change, and while it runs nothing is said where nothing happens."""
    log = Log()
    found = StatusReading(obj={}, now_ns=0)
    log.lines(IDLE, Poll(0, found))
    assert log.lines(UPDATING, Poll(2, found))[0].startswith(f"Update to {b.NEW}")
    assert log.lines(UPDATING, Poll(2 + 2 * FIVE_MINUTES, found)) == []


def test_another_trouble_is_told() -> None:
    """Each once, until it is over."""
    log = Log()
    shown = [log.lines(None, Poll(at, trouble=text)) for at, text in enumerate(("refused", "refused", "no route"))]
    assert shown == [["refused"], [], ["no route"]]


def test_an_update_that_is_under_way_begins_with_its_health() -> None:
    """Nobody waits for it to begin."""
    first = Log().lines(UPDATING, Poll(0, StatusReading(obj={}, now_ns=0)))
    assert first[0].startswith(f"Update to {b.NEW}")
    assert first[1:] == [f"{row.level}: {row.summary}" for row in UPDATING.health]
