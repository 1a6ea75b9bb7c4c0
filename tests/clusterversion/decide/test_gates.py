"""Which gates are open for a version, and why one is not."""

from __future__ import annotations

import pytest

from kubekit.api import codec
from runup.api.cluster_settings_v1 import FeatureGate
from runup.clusterversion.decide.gates import open_gates, why_closed


def feature_gate_with(**versions: list[str]) -> FeatureGate:
    """A FeatureGate with these gates enabled, by version, in this order."""
    found = [
        {"version": version.replace("_", "."), "enabled": [{"name": name} for name in names]}
        for version, names in versions.items()
    ]
    return codec.convert(FeatureGate, {"metadata": {"name": "cluster"}, "status": {"featureGates": found}})


BOTH = {"5_1_0": ["A"], "5_0_0": ["B", "C"], "4_9_0": ["D"]}


@pytest.mark.parametrize(
    ("version", "names"),
    [
        pytest.param("5.1.0", {"A"}, id="the first"),
        pytest.param("5.0.0", {"B", "C"}, id="one in between"),
        pytest.param("4.9.0", {"D"}, id="the last"),
        pytest.param("5.0.1", set(), id="none of its own"),
        pytest.param("", set(), id="no version"),
    ],
)
def test_which_gates_are_open(version: str, names: set[str]) -> None:
    """Those of that very version."""
    assert open_gates(feature_gate_with(**BOTH), version) == names


def test_where_nothing_is_said_none_is_open() -> None:
    """Be there no FeatureGate, or nothing in it."""
    assert open_gates(None, "5.0.0") == open_gates(feature_gate_with(), "5.0.0") == frozenset()


@pytest.mark.parametrize(
    ("gate", "version", "why"),
    [
        pytest.param(None, "5.0.0", "FeatureGate cluster could not be read, so gate A counts as closed", id="unread"),
        pytest.param(
            feature_gate_with(),
            "5.0.0",
            "FeatureGate cluster says nothing of version 5.0.0, so gate A counts as closed",
            id="empty",
        ),
        pytest.param(
            feature_gate_with(**BOTH),
            "5.0.1",
            "FeatureGate cluster says nothing of version 5.0.1, so gate A counts as closed",
            id="another version",
        ),
        pytest.param(
            feature_gate_with(**BOTH), "5.0.0", "feature gate A is not enabled for version 5.0.0", id="not enabled"
        ),
    ],
)
def test_why_a_gate_is_closed(gate: FeatureGate | None, version: str, why: str) -> None:
    """In a sentence for anybody who asked."""
    assert why_closed(gate, version, "A") == why
