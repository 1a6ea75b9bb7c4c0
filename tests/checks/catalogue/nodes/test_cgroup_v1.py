"""Since when nodes need cgroup v2."""

from __future__ import annotations

import pytest
from tests.checks.catalogue.asking import JSON, messages_of
from tests.factories import context

CGROUPS: JSON = {
    "apiVersion": "config.openshift.io/v1",
    "kind": "Node",
    "metadata": {"name": "cluster"},
    "spec": {"cgroupMode": "v1"},
}


@pytest.mark.parametrize(
    ("target", "kubernetes", "applies"),
    [
        ("4.18.9", "1.31.9", False),
        ("4.19.0", "1.32.0", True),
        ("5.0.0", "", True),
        ("4.18.0", "1.34.9", False),
        ("4.18.0", "1.35.0", True),
        ("4.18.0", "", False),
    ],
)
def test_since_when_nodes_need_cgroup_v2(target: str, kubernetes: str, applies: bool) -> None:
    """By the release, or by its Kubernetes (data/minimums.yaml)."""
    assert bool(messages_of("CgroupV1", CGROUPS, to=context("4.17.0", target, kubernetes))) is applies
