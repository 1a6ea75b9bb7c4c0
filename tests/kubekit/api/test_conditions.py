"""A condition's time moves with its status, and with nothing else."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from kubekit.api.conditions import find, status_of, with_condition, without_condition
from kubekit.api.meta_v1 import Condition

THEN = datetime(2026, 1, 1, tzinfo=UTC)
NOW = datetime(2026, 1, 2, tzinfo=UTC)
OLD = Condition(type="Failing", status="True", reason="A", message="a", last_transition_time=THEN)


@pytest.mark.parametrize(
    ("new", "expected_time"),
    [
        pytest.param(Condition(type="Failing", status="True", reason="B", message="b"), THEN, id="same status"),
        pytest.param(Condition(type="Failing", status="False", reason="A", message="a"), NOW, id="another status"),
        pytest.param(Condition(type="Available", status="True"), NOW, id="a new type"),
    ],
)
def test_transition_time_follows_the_status(new: Condition, expected_time: datetime) -> None:
    """Reason and message change freely; the time says since when the status holds."""
    stored = find(with_condition((OLD,), new, now=NOW), new.type)
    assert stored is not None
    assert (stored.reason, stored.message, stored.last_transition_time) == (new.reason, new.message, expected_time)


def test_order_is_kept() -> None:
    """Clients read the first condition of a type, and people read them in a stable order."""
    other = Condition(type="Available", status="True", last_transition_time=THEN)
    changed = with_condition((OLD, other), Condition(type="Failing", status="False"), now=NOW)
    assert [condition.type for condition in changed] == ["Failing", "Available"]


def test_setting_the_same_condition_again_changes_nothing() -> None:
    """Otherwise every pass would write."""
    assert with_condition((OLD,), OLD, now=NOW) == (OLD,)


def test_removal_and_lookup() -> None:
    """An absent condition has no status."""
    assert without_condition((OLD,), "Failing") == ()
    assert status_of((OLD,), "Failing") == "True"
    assert status_of((), "Failing") is None
