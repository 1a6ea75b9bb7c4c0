"""Which pods cannot leave which node, over all pods and budgets of a node."""

from __future__ import annotations

import pytest
from msgspec.structs import replace as with_fields
from tests.factories import context, node, pdb, pod, snapshot

from kubekit.api.core_v1 import Node
from kubekit.api.meta_v1 import Object
from kubekit.api.pod_parts import PlacedPod
from kubekit.api.workloads_v1 import PodDisruptionBudget
from runup.checks.catalogue import CHECKS
from runup.checks.decide.cluster_kinds import ClusterKind
from runup.checks.decide.engine import CheckOutcome, run_check

(CHECK,) = [check for check in CHECKS if check.name == "NodeDrainRefused"]
NODES = (node("worker-0"), node("worker-1"))


def bare(name: str, on: str = "worker-0") -> PlacedPod:
    """A pod that nothing brings back."""
    found = pod(name, on=on)
    return with_fields(found, metadata=with_fields(found.metadata, owner_references=()))


def outcome(*objects: Object, **states: dict[type[Object], str]) -> CheckOutcome:
    """Of the check on these objects."""
    update = with_fields(context("1.34.2", "1.35.0", "1.35.0"), cluster=ClusterKind.KUBERNETES)
    return run_check(CHECK, snapshot(*objects, **states), update)


@pytest.mark.parametrize(
    ("objects", "words"),
    [
        pytest.param((), "", id="an empty cluster"),
        pytest.param((*NODES, pod()), "", id="a pod that may go"),
        pytest.param((*NODES, pod(), pdb()), "", id="a budget that allows one"),
        pytest.param((*NODES, pod(owner="DaemonSet"), bare("done", on="")), "", id="what no drain moves"),
        pytest.param((NODES[0], bare("debug")), "", id="one node is not drained"),
        pytest.param((*NODES, bare("debug")), "worker-0 (shop/debug: no owner)", id="no owner"),
        pytest.param(
            (*NODES, pod(), pdb("a"), pdb("b")),
            "worker-0 (shop/web-1: budgets a and b)",
            id="two budgets, which allow one each",
        ),
        pytest.param(
            (*NODES, pod(), pdb("a", max_unavailable=0, disruptions_allowed=0, desired_healthy=3), bare("debug")),
            "worker-0 (shop/debug: no owner; shop/web-1: budget a)",
            id="all of a node together",
        ),
        pytest.param(
            (*NODES, *(bare(f"p{number}") for number in range(5)), bare("q", on="worker-1")),
            "(shop/p0: no owner; shop/p1: no owner; shop/p2: no owner; 2 more) and worker-1 (shop/q: no owner)",
            id="many",
        ),
    ],
)
def test_which_pods_stay(objects: tuple[Object, ...], words: str) -> None:
    """And why; pods that go are not named."""
    found = outcome(*objects).findings
    assert [each.name for each in found] == ["NodeDrainRefused-workers"] * bool(words)
    assert not words or words in found[0].message


@pytest.mark.parametrize("kind", [Node, PlacedPod, PodDisruptionBudget], ids=lambda kind: kind.__name__)
def test_what_is_not_readable(kind: type[Object]) -> None:
    """Without the pods, their budgets or the nodes nothing is known."""
    assert outcome(*NODES, unreadable={kind: "no rights"}).result == "Unknown"
