"""Preconditions of an update, one by one, and the pruning of the history."""

from __future__ import annotations

import pytest
from tests.factories import NOW, SINCE, cluster_version, condition

from runup.api.config_v1 import Release, UpdateHistory
from runup.domain.clusterversion.history import MAX_ENTRIES, begin, prune
from runup.domain.clusterversion.preconditions import objections


def past(*versions: str) -> tuple[UpdateHistory, ...]:
    """Completed entries, newest first."""
    return tuple(
        UpdateHistory(state="Completed", started_time=SINCE, completion_time=SINCE, version=v, image=f"i@{v}")
        for v in versions
    )


@pytest.mark.parametrize(
    ("current", "target", "history", "expected"),
    [
        pytest.param("5.0.0", "5.0.9", (), [], id="patch"),
        pytest.param("5.0.0", "5.1.0", (), [], id="next minor"),
        pytest.param("5.0.0", "5.2.0", (), ["MultipleMinorVersionsUpdate"], id="two minors"),
        pytest.param("4.22.0", "5.0.0", (), [], id="4 to 5.0"),
        pytest.param("4.22.0", "5.1.0", (), ["MajorVersionUpdate"], id="4 to 5.1"),
        pytest.param("5.0.0", "6.0.0", (), ["MajorVersionUpdate"], id="next major"),
        pytest.param("5.0.1", "5.0.0", ("5.0.1", "5.0.0"), [], id="back to the previous patch"),
        pytest.param("5.0.2", "5.0.0", ("5.0.2", "5.0.1"), ["LowDesiredVersion"], id="back to another"),
        pytest.param("5.1.0", "5.0.0", ("5.1.0", "5.0.0"), ["LowDesiredVersion"], id="back over a minor"),
        pytest.param("5.0.1", "5.0.0", ("5.0.1",), ["LowDesiredVersion"], id="back without a previous"),
        pytest.param("5.0.0", "five", (), ["InvalidDesiredVersion"], id="no version"),
    ],
)
def test_blocking_objections(current: str, target: str, history: tuple[str, ...], expected: list[str]) -> None:
    """What stops an update, with its reason."""
    version = cluster_version(current, desired=Release(version=current, image=f"i@{current}"), history=past(*history))
    found = objections(version, Release(version=target, image="x"), available=True, recommended=None)
    assert [objection.reason for objection in found if objection.blocking] == expected


@pytest.mark.parametrize(("target", "blocks"), [("5.1.0", True), ("5.0.1", False)])
def test_upgradeable_false_blocks_leaving_the_minor_version_only(target: str, blocks: bool) -> None:
    """With the condition's own reason and message."""
    conditions = (condition("Upgradeable", "False", "Because", "no"),)
    version = cluster_version("5.0.0", conditions=conditions)
    found = objections(version, Release(version=target, image="x"), available=True, recommended=None)
    assert [o.reason for o in found if o.blocking] == (["Because"] if blocks else [])


def test_a_new_entry_closes_the_one_before() -> None:
    """Its completion is when the next one began; the state stays."""
    first = begin((), Release(version="5.0.0", image="a"), now=SINCE)
    both = begin(first, Release(version="5.0.1", image="b"), now=NOW)
    assert [(e.version, e.state, e.completion_time) for e in both] == [
        ("5.0.1", "Partial", None),
        ("5.0.0", "Partial", NOW),
    ]
    assert begin(both, Release(version="5.0.1", image="b"), now=NOW) == both


def test_pruning_keeps_the_ends_and_drops_one_of_the_middle() -> None:
    """The oldest and the newest five survive, one entry goes at a time."""
    entries = past(*(f"5.0.{n}" for n in range(MAX_ENTRIES + 1, 0, -1)))
    kept = prune(entries)
    assert len(kept) == MAX_ENTRIES
    assert kept[:5] == entries[:5]
    assert kept[-1] == entries[-1]
