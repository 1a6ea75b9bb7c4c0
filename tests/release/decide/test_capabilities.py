"""Which optional parts a cluster has: what its spec asks for, what gates allow, and what stays because it was there."""

from __future__ import annotations

import pytest

from runup.api.config_v1 import CapabilitiesSpec
from runup.release.decide.capabilities import enabled_capabilities

CLUSTER_API = {"ClusterAPI", "CompatibilityRequirements"}
V4_12 = {"baremetal", "marketplace", "openshift-samples", "MachineAPI", "Console", "Insights", "Storage", "CSISnapshot"}
GATE = "ClusterAPIMachineManagement"


def spec(baseline: str, *additional: str) -> CapabilitiesSpec:
    """What an administrator asks for."""
    return CapabilitiesSpec(baseline_capability_set=baseline, additional_enabled_capabilities=additional)


@pytest.mark.parametrize(
    ("asked", "gates", "keep", "on", "implicit"),
    [
        pytest.param(spec("None"), (), (), set(), set(), id="nothing"),
        pytest.param(spec("v4.12"), (), (), V4_12, set(), id="a baseline has those before it"),
        pytest.param(spec("None", "Build"), (), (), {"Build"}, set(), id="one by name"),
        pytest.param(spec("None", "Build"), (), ("Console",), {"Build", "Console"}, {"Console"}, id="one that was on"),
        pytest.param(spec("None", "Build"), (), ("Build",), {"Build"}, set(), id="one that was on and is asked for"),
        pytest.param(spec("None", "ClusterAPI"), (), (), set(), set(), id="one whose gate is closed"),
        pytest.param(spec("None", "ClusterAPI"), (GATE,), (), {"ClusterAPI"}, set(), id="one whose gate is open"),
        pytest.param(spec("None"), (), ("ClusterAPI",), set(), set(), id="one that was on, whose gate is closed now"),
        pytest.param(spec("v9.9", "Build"), (), (), {"Build"}, set(), id="a baseline that nobody knows"),
    ],
)
def test_what_is_enabled(
    asked: CapabilitiesSpec, gates: tuple[str, ...], keep: tuple[str, ...], on: set[str], implicit: set[str]
) -> None:
    """What was enabled once stays, and what its gate forbids is off all the same (docs/reference/upstream.md 3)."""
    found = enabled_capabilities(asked, gates, keep)
    assert (found.enabled, found.implicit) == (on, implicit)


def test_without_a_word_all_that_the_gates_allow_is_on() -> None:
    """The newest baseline is the default."""
    found = enabled_capabilities(None, ())
    assert found.enabled == found.known


@pytest.mark.parametrize(
    ("gates", "opened"),
    [
        pytest.param((), set(), id="no gate"),
        pytest.param((GATE,), CLUSTER_API, id="the gate of both"),
        pytest.param(("CRDCompatibilityRequirementOperator",), {"CompatibilityRequirements"}, id="the gate of one"),
        pytest.param((GATE, "CRDCompatibilityRequirementOperator"), CLUSTER_API, id="both gates"),
        pytest.param((f"{GATE}AWS", "ClusterAPIInstall", "MachineAPIMigration"), set(), id="gates with similar names"),
    ],
)
def test_what_the_gates_of_cluster_api_open(gates: tuple[str, ...], opened: set[str]) -> None:
    """One of its gates suffices (featureGatedCapabilities in cluster-version-operator lib/capability/capability.go)."""
    found = enabled_capabilities(None, gates)
    assert found.known & CLUSTER_API == found.enabled & CLUSTER_API == opened
    asked_for = enabled_capabilities(spec("None", *CLUSTER_API), gates, keep=CLUSTER_API)
    assert (asked_for.enabled, asked_for.implicit) == (opened, set())
    kept = enabled_capabilities(spec("None"), gates, keep=CLUSTER_API)
    assert (kept.enabled, kept.implicit) == (opened, opened)
