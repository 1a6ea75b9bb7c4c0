"""Which entry of a history of a hundred and one goes: the one that shows the least (docs/reference/upstream.md 6.3)."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from tests.factories import SINCE

from runup.api.config_v1 import Release, UpdateHistory
from runup.clusterversion.decide.history import MAX_ENTRIES, begin_entry, prune

Special = dict[int, str]


def history(special: Special, usual: str = "5.0") -> tuple[UpdateHistory, ...]:
    """Completed patches of one minor version, newest first; `~` marks a partial one."""
    texts = [special.get(index, f"{usual}.{200 - index}") for index in range(MAX_ENTRIES + 1)]
    return tuple(
        UpdateHistory(
            state="Partial" if text.startswith("~") else "Completed",
            started_time=SINCE,
            completion_time=SINCE,
            version=text.strip("~"),
            image=f"i@{index}",
        )
        for index, text in enumerate(texts)
    )


@pytest.mark.parametrize(
    ("special", "gone"),
    [
        pytest.param({}, 99, id="patches alone: the oldest but the first"),
        pytest.param({90: "~5.0.110"}, 90, id="left on the way from patch to patch: that one"),
        pytest.param({78: "~5.0.122"}, 99, id="the same, too young to be the least"),
        pytest.param({80: "~5.0.120"}, 80, id="the same, just old enough"),
        pytest.param({90: "~5.0.110", 89: "5.0.109", 91: "5.0.109"}, 99, id="left and gone back: no such"),
        pytest.param({90: "~5.0.110", 91: "~5.0.109"}, 91, id="two in a row: the older"),
        pytest.param(
            {99: "~5.0.1", 100: "4.22.9"}, 97, id="left on the way between minors, and a minor's last patch, stay"
        ),
        pytest.param({99: "4.22.9", 100: "4.22.8"}, 97, id="a minor's newest patch stays"),
        pytest.param({90: "~5.0.0", 91: "4.0.9", 92: "4.0.8"}, 90, id="minors are told apart by their second number"),
        pytest.param(
            {index: f"~5.0.{index}" for index in range(99)} | {100: "~4.22.0"}, 98, id="the newest completed stays"
        ),
        pytest.param({index: f"~5.0.{index}" for index in range(6, 101)}, 99, id="nothing completed before: by age"),
        pytest.param(
            {97: "5.1.2", 98: "5.1.1", 99: "5.1.0", 100: "5.0.0"}, 98, id="the first and last patch of a minor stay"
        ),
        pytest.param(
            {i: f"5.1.{200 - i}" for i in range(6, 50)} | {99: "5.1.9", 98: "5.0.9", 97: "5.0.8"},
            97,
            id="a minor that was left and reached again has a first and a last each time",
        ),
        pytest.param(
            {89: "5.0.7-rc.2", 90: "~5.0.7-rc.9", 91: "5.0.7-rc.1"}, 99, id="candidates of one patch are one patch"
        ),
        pytest.param({99: "soon"}, 97, id="a version without a minor counts as another minor"),
    ],
)
def test_which_entry_goes(special: Special, gone: int) -> None:
    """One, and nothing else changes."""
    entries = history(special)
    assert prune(entries) == (*entries[:gone], *entries[gone + 1 :])


def test_a_hundred_and_fifty_updates() -> None:
    """Keeps the installation, the first and last patch of each minor version, and the newest entries."""
    entries: tuple[UpdateHistory, ...] = ()
    for number in range(150):
        release = Release(version=f"5.{number // 50}.{number % 50}", image=f"i@{number}")
        entries = begin_entry(entries, release, now=SINCE)
        entries = (replace(entries[0], state="Completed", completion_time=SINCE), *entries[1:])
    ends = ["5.1.49", "5.1.0", "5.0.49", "5.0.0"]
    newest = [f"5.2.{number}" for number in reversed(range(50))]
    found = [entry.version for entry in entries]
    assert len(found) == MAX_ENTRIES
    assert found[:51] == [*newest, "5.1.49"]
    assert [version for version in found if version in ends] == ends


def test_a_hundred_are_not_too_many() -> None:
    """The limit is the definition's."""
    entries = history({})[:MAX_ENTRIES]
    assert prune(entries) == entries
