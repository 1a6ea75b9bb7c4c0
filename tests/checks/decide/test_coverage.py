"""Whether a check of one release is there in every later one that can be updated to from the same version."""

from __future__ import annotations

import pytest

from kubekit.lang.version import Version
from runup.checks.decide.coverage import gaps, is_covered
from runup.checks.decide.model import Check


def check(name: str, *sources: str, risk: str = "") -> Check:
    """A check for updates from these versions."""
    among = {Version(each) for each in sources}
    return Check(
        name=name,
        component="tests",
        reads=(),
        run=lambda _snapshot, _context: (),
        applies_to=lambda it: it.source in among,
        unknown_risk=risk,
    )


FROM = {(Version("5.0.0"), Version("5.1.0")), (Version("5.0.0"), Version("5.2.0"))}
OLD, NEW = Version("5.1.0"), Version("5.2.0")
ROWS: dict[str, tuple[dict[Version, list[Check]], set[tuple[Version, Version]], list[str]]] = {
    "it is there in both": ({OLD: [check("A", "5.0.0")], NEW: [check("A", "5.0.0")]}, FROM, []),
    "it is gone": ({OLD: [check("A", "5.0.0")], NEW: []}, FROM, ["A 5.1.0 5.2.0 5.0.0"]),
    "it is gone, and nobody can update there": ({OLD: [check("A", "5.0.0")], NEW: []}, {(Version("5.0.0"), OLD)}, []),
    "its range is narrower": (
        {OLD: [check("A", "5.0.0")], NEW: [check("A", "5.0.1")]},
        FROM,
        ["A 5.1.0 5.2.0 5.0.0"],
    ),
    "it is new": ({OLD: [], NEW: [check("A", "5.0.0")]}, FROM, []),
    "another of its risk is there": (
        {OLD: [check("A", "5.0.0", risk="R")], NEW: [check("B", "5.0.0", risk="R")]},
        FROM,
        [],
    ),
    "another of another risk is there": (
        {OLD: [check("A", "5.0.0", risk="R")], NEW: [check("B", "5.0.0", risk="S")]},
        FROM,
        ["A 5.1.0 5.2.0 5.0.0"],
    ),
    "another without a risk is there": (
        {OLD: [check("A", "5.0.0")], NEW: [check("B", "5.0.0")]},
        FROM,
        ["A 5.1.0 5.2.0 5.0.0"],
    ),
    "it never was for that version": ({OLD: [check("A", "4.9.0")], NEW: []}, FROM, []),
    "two versions and two releases, in order": (
        {NEW: [], Version("5.3.0"): [], OLD: [check("A", "5.0.0", "5.0.1")]},
        {(Version(source), target) for source in ("5.0.1", "5.0.0") for target in (Version("5.3.0"), NEW)},
        ["A 5.1.0 5.2.0 5.0.0", "A 5.1.0 5.2.0 5.0.1", "A 5.1.0 5.3.0 5.0.0", "A 5.1.0 5.3.0 5.0.1"],
    ),
}


@pytest.mark.parametrize(("releases", "edges", "expected"), ROWS.values(), ids=ROWS.keys())
def test_what_is_no_longer_covered(
    releases: dict[Version, list[Check]], edges: set[tuple[Version, Version]], expected: list[str]
) -> None:
    """Check, the release that had it, the one that lost it, and from where."""
    found = [f"{gap.check} {gap.had} {gap.lost} {gap.source}" for gap in gaps(releases, edges)]
    assert found == expected


@pytest.mark.parametrize(("source", "target", "expected"), [("5.0.0", "5.1.0", True), ("5.0.0", "5.0.0", False)])
def test_a_check_covers_updates_and_nothing_else(source: str, target: str, expected: bool) -> None:
    """A release that already runs is not an update."""
    assert is_covered(check("A", "5.0.0"), Version(source), Version(target)) is expected


def test_a_gap_in_words() -> None:
    """Which check, and between which releases."""
    (gap,) = gaps({OLD: [check("A", "5.0.0")], NEW: []}, FROM)
    assert str(gap) == (
        "A of 5.1.0 covers updates from 5.0.0; 5.2.0 can be updated to from 5.0.0 and does not cover it"
    )
