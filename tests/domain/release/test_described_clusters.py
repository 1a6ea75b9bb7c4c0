"""A cluster that somebody describes by flags: what is no word of a cluster is refused by its name."""

from __future__ import annotations

from typing import Any

import pytest

from runup.domain.errors import Terminal
from runup.domain.release.inclusion import DEFAULT_PROFILE
from runup.domain.release.listing import filters_of


@pytest.mark.parametrize(
    ("described", "said"),
    [
        pytest.param({"feature_set": "Odd"}, "Odd", id="a feature set"),
        pytest.param({"capabilities": ["Console", "Odd"]}, "Odd", id="a capability among others"),
        pytest.param({"profile": ""}, f"the profile is empty; the usual one is {DEFAULT_PROFILE}", id="no profile"),
        pytest.param({"major": -1}, "major version -1 is below 0", id="a version below all"),
    ],
)
def test_what_nobody_knows_is_refused(described: dict[str, Any], said: str) -> None:
    """Rather than taken for a cluster that gets less."""
    with pytest.raises(Terminal, match=said):
        filters_of(**{"major": 5, **described})


def test_what_is_described_is_what_decides() -> None:
    """The default feature set is written as none; capabilities that nobody names do not filter."""
    found = filters_of(major=0, feature_set="Default", gates=["A"], capabilities=["Console"])
    assert (found.feature_set, found.gates, found.major, found.profile) == ("", {"A"}, 0, DEFAULT_PROFILE)
    assert filters_of(major=5, feature_set="TechPreviewNoUpgrade").feature_set == "TechPreviewNoUpgrade"
