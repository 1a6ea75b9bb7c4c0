"""Nodes, their kubelets, machines and room: the risk, whether it applies, how grave it is, and whom it names."""

from __future__ import annotations

import pytest
from tests.checks.catalogue.asking import JSON, Reported, findings
from tests.factories import context, node_json, pod_json, pool_json

from runup.checks.decide.model import Applies

LATE: Reported = ("KubeletSkew", "critical", Applies.YES, ["a"])


UNKNOWN: Reported = ("KubeletSkewUnknown", "warning", Applies.UNKNOWN, ["a"])


@pytest.mark.parametrize(
    ("target", "kubernetes", "version", "said"),
    [
        pytest.param("4.19.0", "1.32.0", "v1.31.0", [], id="one behind an odd one"),
        pytest.param("4.19.0", "1.32.0", "v1.30.0", [LATE], id="two behind an odd one"),
        pytest.param("4.20.0", "1.33.0", "v1.31.0", [], id="two behind an even one"),
        pytest.param("4.20.0", "1.33.0", "v1.30.0", [LATE], id="three behind an even one"),
        pytest.param("5.0.0", "1.35.0", "1.34.9", [], id="one behind the first of 5"),
        pytest.param("5.0.0", "1.35.0", "v1.33.9", [LATE], id="two behind the first of 5"),
        pytest.param("5.1.0", "1.36.0", "v1.34.0", [], id="two behind the second of 5"),
        pytest.param("5.1.0", "1.36.0", "v1.33.0", [LATE], id="three behind the second of 5"),
        pytest.param("5.2.0", "1.37.0", "v1.34.0", [], id="three behind the third of 5"),
        pytest.param("5.2.0", "1.37.0", "v1.33.0", [LATE], id="four behind the third of 5"),
        pytest.param("5.1.0", "1.36.0", "v1.36.9", [], id="as new"),
        pytest.param("5.1.0", "1.36.0", "v1.37.0", [LATE], id="newer"),
        pytest.param("5.1.0", "1.36.0", "v2.36.0", [UNKNOWN], id="of another major version"),
        pytest.param("5.1.0", "1.36.0", "v0.36.0", [UNKNOWN], id="of an earlier major version"),
        pytest.param("5.1.0", "1.36.0", "", [UNKNOWN], id="not told"),
        pytest.param("5.1.0", "1.36.0", "1.36", [UNKNOWN], id="half of it"),
        pytest.param("5.1.0", "", "v1.36.0", [(*UNKNOWN[:3], [])], id="a target that does not say"),
    ],
)
def test_how_far_a_kubelet_may_be_behind(target: str, kubernetes: str, version: str, said: list[Reported]) -> None:
    """By the target, and what is not known is less grave than what is."""
    to = context(target=target, kubernetes=kubernetes)
    assert findings("KubeletSkew", node_json("a", kubelet=version), to=to) == said


def test_kubelets_are_told_by_what_is_wrong_with_them() -> None:
    """The control plane's first."""
    nodes = [("a", "1.30.0", "worker"), ("b", "1.39.0", "worker"), ("c", "", "worker"), ("d", "1.31.0", "master")]
    to = context(target="5.1.0", kubernetes="1.36.0")
    found = findings(
        "KubeletSkew", *(node_json(name, kubelet=kubelet, role=role) for name, kubelet, role in nodes), to=to
    )
    assert [(risk, names) for risk, _, _, names in found] == [
        ("KubeletSkew", ["d", "a"]),
        ("KubeletSkew", ["b"]),
        ("KubeletSkewUnknown", ["c"]),
    ]


def machine(name: str, phase: str) -> JSON:
    """A Machine."""
    return {
        "apiVersion": "machine.openshift.io/v1beta1",
        "kind": "Machine",
        "metadata": {"name": name, "namespace": "openshift-machine-api"},
        "status": {"phase": phase},
    }


@pytest.mark.parametrize("phase", ["Deleting", "Provisioned", "Running"])
def test_a_machine_that_did_not_fail(phase: str) -> None:
    """Whatever else it is about."""
    assert findings("MachineFailed", machine("a", phase)) == []
    assert [names for *_, names in findings("MachineFailed", machine("a", phase), machine("b", "Failed"))] == [["b"]]


@pytest.mark.parametrize("status", ["False", "Unknown"])
@pytest.mark.parametrize("kind", ["DiskPressure", "MemoryPressure", "PIDPressure", "NetworkUnavailable"])
def test_what_presses_a_node(kind: str, status: str) -> None:
    """Only what is true does."""
    assert findings("NodePressure", node_json("a", conditions={kind: status})) == []
    said = findings(
        "NodePressure", node_json("a", conditions={kind: status}), node_json("b", conditions={kind: "True"})
    )
    assert [names for *_, names in said] == [["b"]]


@pytest.mark.parametrize(
    ("versions", "fewest"),
    [
        pytest.param(["v1.36.2", "v1.36.2"], [], id="all of one"),
        pytest.param(["v1.36.2", "v1.36.2+abc"], [], id="but for the build"),
        pytest.param(["v1.36.2", ""], [], id="one of them silent"),
        pytest.param(["v1.36.2", "v1.36.2", "v1.35.1"], ["n2"], id="two"),
        pytest.param(["v1.36.2+a", "v1.35.1+a", "v1.35.1+b"], ["n0"], id="two of several builds"),
        pytest.param(["v1.36.2", "v1.36.3", "v1.36.3", "v1.36.4", "v1.36.4"], ["n0"], id="three"),
    ],
)
def test_releases_of_one_pool(versions: list[str], fewest: list[str]) -> None:
    """By the version alone; the fewest are named."""
    nodes = [node_json(f"n{number}", kubelet=version) for number, version in enumerate(versions)]
    found = [
        names
        for name, _, _, names in findings("NodeReleasesMixed", *nodes, pool_json())
        if name == "NodeReleasesMixed-worker"
    ]
    assert found == ([fewest] if fewest else [])


def pod_with_request(name: str, on: str, cpu: str, phase: str = "Running") -> JSON:
    """A pod that asks for so much."""
    return pod_json(name, on=on, owner="", phase=phase, requests={"cpu": cpu})


BUSY = [pod_with_request("p", "a", "3")]


TAINT = {"key": "k", "effect": "NoSchedule"}


@pytest.mark.parametrize(
    ("nodes", "pods", "short"),
    [
        pytest.param([node_json("a"), node_json("b")], BUSY, False, id="room on the other"),
        pytest.param([node_json("a"), node_json("b", cpu="3")], BUSY, False, id="just enough room"),
        pytest.param([node_json("a"), node_json("b", cpu="2999m")], BUSY, True, id="a little too small"),
        pytest.param(
            [node_json("a"), node_json("b"), node_json("c")],
            [*BUSY, pod_with_request("q", "b", "2")],
            False,
            id="room on a third",
        ),
        pytest.param(
            [node_json("a"), node_json("b")], [*BUSY, pod_with_request("q", "b", "2")], True, id="the other is busy"
        ),
        pytest.param(
            [node_json("a"), node_json("b")],
            [*BUSY, pod_with_request("q", "b", "2", "Succeeded")],
            False,
            id="what has ended",
        ),
        pytest.param(
            [node_json("a"), node_json("b")],
            [*BUSY, pod_with_request("q", "b", "2", "Failed")],
            False,
            id="what has failed",
        ),
        pytest.param([node_json("a"), node_json("b", unschedulable=True)], BUSY, True, id="the other is cordoned"),
        pytest.param([node_json("a"), node_json("b", ready="False")], BUSY, True, id="the other is not ready"),
        pytest.param([node_json("a"), node_json("b", ready="True")], BUSY, False, id="the other is ready"),
        pytest.param([node_json("a"), node_json("b", ready="Unknown")], BUSY, True, id="nobody knows the other"),
        pytest.param([node_json("a"), node_json("b", taints=[TAINT])], BUSY, True, id="the other is tainted"),
        pytest.param(
            [node_json("a"), node_json("b", taints=[TAINT | {"effect": "NoExecute"}])], BUSY, True, id="tainted for all"
        ),
        pytest.param(
            [node_json("a"), node_json("b", taints=[TAINT | {"effect": "PreferNoSchedule"}])],
            BUSY,
            False,
            id="rather not",
        ),
        pytest.param([node_json("a")], BUSY, False, id="one node, which is not drained"),
        pytest.param(
            [node_json("a"), node_json("b", cpu="1"), node_json("c", cpu="plenty", unschedulable=True)],
            BUSY,
            True,
            id="one takes no pods, and has no quantity",
        ),
        pytest.param(
            [node_json("a"), node_json("b", cpu="1"), node_json("c", cpu="2")],
            [*BUSY, pod_with_request("q", "b", "9")],
            True,
            id="one overbooked",
        ),
    ],
)
def test_room_for_what_a_drain_moves(nodes: list[JSON], pods: list[JSON], short: bool) -> None:
    """On nodes that take pods, and no other."""
    assert (
        "HeadroomShort-worker" in [name for name, *_ in findings("HeadroomShort", *nodes, *pods, pool_json())]
    ) is short


@pytest.mark.parametrize(
    ("nodes", "severity"),
    [
        ([node_json("w", role="worker", ready="Unknown")], "warning"),
        ([node_json("m", role="master", ready="Unknown")], "critical"),
        ([node_json("m", role="control-plane", ready="Unknown")], "critical"),
        ([node_json("m", role="master", ready="Unknown"), node_json("w", role="worker", ready="Unknown")], "critical"),
    ],
)
def test_how_grave_a_silent_node_is(nodes: list[JSON], severity: str) -> None:
    """With a node of the control plane away, the update of the next one takes etcd's quorum."""
    assert [(name, how) for name, how, *_ in findings("NodeHealth", *nodes)] == [("NodeNotReady", severity)]
