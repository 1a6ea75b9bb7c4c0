"""Tests the evaluation of an update whose operator was killed: it finds errors, and none where a log is late."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from tests.journeys.cluster import small_release
from tests.journeys.cluster.following import Key
from tests.journeys.cluster.small_release import FIRST, LEVELS
from tests.journeys.cluster.test_killed_updates import Write, backwards, out_of_order

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
EARLY, LATE = LEVELS[0], LEVELS[-1]


def in_order() -> dict[Key, int]:
    """Every object, in the order of the run levels."""
    levels = small_release.applied(FIRST)
    return {key: revision for revision, key in enumerate(sorted(levels, key=lambda key: levels[key]), start=100)}


def of(level: int, plural: str = "configmaps") -> Key:
    """An object of that run level."""
    return next(key for key, found in small_release.applied(FIRST).items() if (found, key[0]) == (level, plural))


def write(level: int, second: int, process: str = "first", plural: str = "configmaps") -> Write:
    return Write(of(level, plural), process, NOON + timedelta(seconds=second))


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        pytest.param({}, [], id="in the order of the run levels nothing is wrong"),
        pytest.param({of(EARLY): None}, [f"{of(EARLY)} was never of it"], id="an object that nobody wrote is missed"),
        pytest.param(
            {of(LATE): 1}, [f"{of(LATE)} was of it before {next(iter(in_order()))}"], id="an object before all others"
        ),
        pytest.param(
            {of(LATE, "clusteroperators"): 1}, [], id="an operator may say that it is there before it is asked"
        ),
    ],
)
def test_the_order_of_what_became_of_a_release(changed: dict[Key, int | None], expected: list[str]) -> None:
    """By revisions alone."""
    first = {key: revision for key, revision in (in_order() | changed).items() if revision is not None}
    assert [*out_of_order(first)] == expected


def test_an_operators_word_that_came_too_late_is_seen() -> None:
    """All that comes after it was put without waiting for it."""
    first = in_order() | {of(EARLY, "clusteroperators"): 10_000}
    problems = [*out_of_order(first)]
    assert len(problems) == len([key for key, level in small_release.applied(FIRST).items() if level > EARLY]) - len(
        [key for key, level in small_release.applied(FIRST).items() if level > EARLY and key[0] == "clusteroperators"]
    )


@pytest.mark.parametrize(
    ("writes", "expected"),
    [
        pytest.param([], [], id="a log that has nothing yet accuses nobody"),
        pytest.param([write(EARLY, 1), write(LATE, 2)], [], id="level after level"),
        pytest.param([write(LATE, 2), write(EARLY, 1)], [], id="a log in another order than it happened"),
        pytest.param(
            [write(LATE, 1), write(EARLY, 2)],
            [f"{of(EARLY)} of run level {EARLY} was written again after run level {LATE}"],
            id="one process goes back",
        ),
        pytest.param(
            [write(EARLY, 1), write(LATE, 3), write(EARLY, 2, "second"), write(LATE, 4, "second")],
            [],
            id="what the killed one sent is taken up after the next one began",
        ),
        pytest.param(
            [write(LATE, 1), write(EARLY, 2, plural="clusteroperators")], [], id="an operator is put in its turn, too"
        ),
    ],
)
def test_what_one_process_sent_after_another(writes: list[Write], expected: list[str]) -> None:
    """Each process by its name."""
    assert [*backwards(writes)] == expected
