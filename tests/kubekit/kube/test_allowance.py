"""How often something may be done: a few times at once, then once in an interval."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubekit.kube.watch import Allowance

TAKEN = {
    "a few at once": ([0, 0, 0, 0], [True, True, True, False]),
    "one comes back after the interval": ([0, 0, 0, 9.9, 10, 10], [True, True, True, False, True, False]),
    "no more than the burst come back": ([0, 1000, 1000, 1000, 1000], [True, True, True, True, False]),
    "a turn that was refused costs nothing": ([0, 0, 0, 5, 5, 5, 10], [True, True, True, False, False, False, True]),
    "before the clock began": ([-5, -5, -5, -5], [True, True, True, False]),
}


@pytest.mark.parametrize("name", TAKEN)
def test_turns(name: str) -> None:
    """Three at most, and one every ten seconds."""
    times, expected = TAKEN[name]
    allowance = Allowance(3, 10)
    assert [allowance.take(now) for now in times] == expected


@given(st.lists(st.floats(0, 300), max_size=60).map(sorted), st.floats(0, 300), st.floats(0, 300))
def test_in_no_time_are_there_more_turns_than_the_rate_has(times: list[float], begin: float, lasts_s: float) -> None:
    """Whenever one looks: the burst, and one an interval."""
    allowance = Allowance(3, 10)
    taken = [now for now in times if allowance.take(now)]
    assert len([now for now in taken if begin <= now <= begin + lasts_s]) <= 3 + lasts_s / 10 + 1e-6
