"""An update enables capabilities of objects that the cluster has, never those of new objects."""

from __future__ import annotations

import pytest
from tests.applying.decide.tasks import manifest

from runup.applying.decide.implicit_capabilities import implicit_capabilities_of
from runup.release.decide.capabilities import Capabilities
from runup.release.decide.inclusion import Filters
from runup.release.decide.manifest import Manifest

KNOWN = frozenset({"A", "B", "C"})


def of(capabilities: str | None, name: str = "m", **annotations: str) -> Manifest:
    """A manifest in these capabilities, None: in none."""
    found = {"x": "y", **annotations} | ({"capability.openshift.io/name": capabilities} if capabilities else {})
    return manifest("f", name=name, metadata={"name": name, "namespace": "ns", "annotations": found})


@pytest.mark.parametrize(
    ("before", "after", "enabled", "expected"),
    [
        pytest.param(of(None), of(None), "", "", id="in none, before and after"),
        pytest.param(of(None), of("A"), "", "A", id="moved into one that is off"),
        pytest.param(of(None), of("A"), "A", "", id="moved into one that is on"),
        pytest.param(of("A"), of("A+B"), "A", "B", id="moved further"),
        pytest.param(of("A"), of("B"), "A", "B", id="moved elsewhere"),
        pytest.param(of("A"), of("B"), "", "", id="the cluster never had it"),
        pytest.param(of(None), of("A+B"), "A", "B", id="into two, one of which is on"),
        pytest.param(of(None, "other"), of("A"), "", "", id="new in the release"),
        pytest.param(of(None), of("New"), "", "New", id="into one that this operator does not know"),
    ],
)
def test_what_is_turned_on(before: Manifest, after: Manifest, enabled: str, expected: str) -> None:
    """By the same object in both releases."""
    on = frozenset(filter(None, enabled.split(",")))
    found = implicit_capabilities_of([after], [before], Filters(capabilities=Capabilities(KNOWN, on)), 5)
    assert found == frozenset(filter(None, expected.split(",")))


def test_nothing_is_known_before_the_first_release() -> None:
    """Without capabilities there is nothing to turn on."""
    assert implicit_capabilities_of([of("A")], [of(None)], Filters(), 5) == frozenset()
