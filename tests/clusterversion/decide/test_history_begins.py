"""When history begins again."""

from __future__ import annotations

from typing import Any, Literal

import pytest
from tests.factories import NOW, SINCE

from runup.api.config_v1 import Release, UpdateHistory
from runup.clusterversion.decide.history import begin_entry


@pytest.mark.parametrize(
    ("entry", "release", "same"),
    [
        pytest.param(("5.0.0", "b"), ("5.0.0", "b"), True, id="both"),
        pytest.param(("5.0.0", "b"), ("5.0.0", "a"), False, id="an earlier image"),
        pytest.param(("5.0.0", "b"), ("5.0.0", "c"), False, id="a later image"),
        pytest.param(("", "b"), ("", "c"), False, id="a later image, of no version"),
        pytest.param(("", "b"), ("", "a"), False, id="an earlier image, of no version"),
        pytest.param(("5.0.0", "b"), ("5.0.1", "b"), False, id="a later version of the image"),
        pytest.param(("5.0.1", "b"), ("5.0.0", "b"), False, id="an earlier version of the image"),
        pytest.param(("5.0.0", ""), ("5.0.1", "b"), False, id="a later version, and no image"),
        pytest.param(("5.0.1", ""), ("5.0.0", "b"), False, id="an earlier version, and no image"),
        pytest.param(("", ""), ("", "b"), False, id="nothing known"),
    ],
)
def test_whether_a_release_is_the_newest_entry(entry: tuple[str, str], release: tuple[str, str], same: bool) -> None:
    """By image, and by version where either lacks one."""
    before = UpdateHistory(state="Partial", started_time=SINCE, version=entry[0], image=entry[1])
    found = begin_entry((before,), Release(version=release[0], image=release[1]), now=NOW)
    assert (len(found) == 1) is same


@pytest.mark.parametrize(("state", "ended"), [("Completed", NOW), ("Partial", None)])
def test_an_entry_that_is_complete_at_once_has_its_end(state: Literal["Completed", "Partial"], ended: Any) -> None:
    """Any other has none."""
    (found,) = begin_entry((), Release(version="5.0.0", image="a"), now=NOW, state=state)
    assert (found.state, found.started_time, found.completion_time) == (state, NOW, ended)


def test_a_release_without_an_image_is_no_entry() -> None:
    """Nobody could find it again."""
    before = (UpdateHistory(state="Partial", started_time=SINCE, version="5.0.0", image="a"),)
    assert begin_entry(before, Release(version="5.0.1"), now=NOW) == before
