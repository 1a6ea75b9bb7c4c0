"""Findings as a whole: their risk, whether they apply, how grave they are, and whom they name."""

from __future__ import annotations

from typing import Any

import pytest
from tests.factories import context

from runup.checks.catalogue import CHECKS
from runup.checks.decide.engine import run_check
from runup.checks.decide.model import Applies, Context
from runup.checks.decide.objects import snapshot_of
from runup.checks.decide.payload import unusable

BY_NAME = {check.name: check for check in CHECKS}
JSON = dict[str, Any]
Told = tuple[str, str, Applies, list[str]]
"""The risk, how grave, whether it applies, and the names of what it is about."""


def told(name: str, *objects: JSON, to: Context | None = None) -> list[Told]:
    """What a check finds in a cluster of these objects."""
    check = BY_NAME[name]
    found = run_check(check, snapshot_of(check.reads, objects), to or context()).findings
    return [(each.name, each.severity or "", each.applies, [it.name for it in each.resources]) for each in found]


def kubelet(name: str, version: str, role: str = "worker") -> JSON:
    """A node."""
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {f"node-role.kubernetes.io/{role}": ""}},
        "status": {"nodeInfo": {"kubeletVersion": version}},
    }


LATE: Told = ("KubeletSkew", "critical", Applies.YES, ["a"])
UNKNOWN: Told = ("KubeletSkewUnknown", "warning", Applies.UNKNOWN, ["a"])


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
def test_how_far_a_kubelet_may_be_behind(target: str, kubernetes: str, version: str, said: list[Told]) -> None:
    """By the target, and what is not known is less grave than what is."""
    to = context(target=target, kubernetes=kubernetes)
    assert told("KubeletSkew", kubelet("a", version), to=to) == said


def test_kubelets_are_told_by_what_is_wrong_with_them() -> None:
    """The control plane's first."""
    nodes = [("a", "1.30.0", "worker"), ("b", "1.39.0", "worker"), ("c", "", "worker"), ("d", "1.31.0", "master")]
    to = context(target="5.1.0", kubernetes="1.36.0")
    found = told("KubeletSkew", *(kubelet(*each) for each in nodes), to=to)
    assert [(risk, names) for risk, _, _, names in found] == [
        ("KubeletSkew", ["d", "a"]),
        ("KubeletSkew", ["b"]),
        ("KubeletSkewUnknown", ["c"]),
    ]


def csv(name: str, phase: str, namespace: str = "ns", **spec: Any) -> JSON:
    """An operator's version."""
    return {
        "apiVersion": "operators.coreos.com/v1alpha1",
        "kind": "ClusterServiceVersion",
        "metadata": {"name": name, "namespace": namespace},
        "spec": spec,
        "status": {"phase": phase},
    }


def plan(name: str, *names: str, phase: str = "Failed") -> JSON:
    """An InstallPlan of these versions."""
    return {
        "apiVersion": "operators.coreos.com/v1alpha1",
        "kind": "InstallPlan",
        "metadata": {"name": name, "namespace": "ns"},
        "spec": {"approved": True, "approval": "Automatic", "clusterServiceVersionNames": [*names]},
        "status": {"phase": phase},
    }


@pytest.mark.parametrize(
    ("objects", "said"),
    [
        pytest.param([plan("p", "a.v1")], ["p"], id="nothing came"),
        pytest.param([plan("p", "a.v1", phase="Complete")], [], id="not failed"),
        pytest.param([plan("p", "a.v1", phase="Aborted")], [], id="in an earlier phase"),
        pytest.param([plan("p", "a.v1", phase="Installing")], [], id="under way"),
        pytest.param([plan("p")], [], id="of nothing"),
        pytest.param([plan("p", "a.v1"), csv("a.v1", "Succeeded")], [], id="what it was to bring is there"),
        pytest.param([plan("p", "a.v1"), csv("a.v1", "Pending")], ["p"], id="it came and is not done"),
        pytest.param([plan("p", "a.v1"), csv("a.v1", "Zzz")], ["p"], id="it came in a phase nobody knows"),
        pytest.param([plan("p", "a.v1"), csv("a.v1", "Failed")], ["a.v1", "p"], id="it came and failed"),
        pytest.param([plan("p", "a.v1", "b.v1"), csv("a.v1", "Succeeded")], ["p"], id="one of two is there"),
        pytest.param([plan("p", "a.v1"), csv("a.v2", "Succeeded", replaces="a.v1")], [], id="passed by a later one"),
        pytest.param([plan("p", "a.v1"), csv("a.v2", "Pending", replaces="a.v1")], ["p"], id="not passed yet"),
        pytest.param([plan("q", "a.v1"), plan("p", "a.v1")], ["p", "q"], id="two, by name"),
        pytest.param([csv("a.v1", "Unknown"), csv("b.v1", "Replacing")], ["a.v1"], id="an operator in Unknown"),
        pytest.param(
            [csv("z", "Failed", "n1"), csv("a", "Failed", "n2")], ["z", "a"], id="two operators, by namespace"
        ),
    ],
)
def test_operators_that_are_not_in_order(objects: list[JSON], said: list[str]) -> None:
    """Each by its risk's name."""
    assert [risk for risk, *_ in told("OperatorFailed", *objects)] == [f"OperatorFailed-{name}" for name in said]


@pytest.mark.parametrize(
    ("phase", "reason", "message", "why"),
    [
        pytest.param("Failed", "", "", "Failed", id="nothing said"),
        pytest.param("Failed", "Broken", "", "Failed: Broken", id="a reason"),
        pytest.param("Unknown", "", "it\n is so. ", "Unknown: it is so", id="a message"),
        pytest.param("Failed", "Broken", "it is so", "Failed: Broken: it is so", id="both"),
    ],
)
def test_why_an_operator_is_not_in_order(phase: str, reason: str, message: str, why: str) -> None:
    """As OLM says it."""
    one = csv("a.v1", phase)
    one["status"] |= {"reason": reason, "message": message}
    check = BY_NAME["OperatorFailed"]
    (found,) = run_check(check, snapshot_of(check.reads, [one]), context()).findings
    assert found.message == f"Operator ns/a.v1 is in phase {why}."


def machine(name: str, phase: str) -> JSON:
    """A Machine."""
    return {
        "apiVersion": "machine.openshift.io/v1beta1",
        "kind": "Machine",
        "metadata": {"name": name, "namespace": "openshift-machine-api"},
        "status": {"phase": phase},
    }


@pytest.mark.parametrize("phase", ["", "Deleting", "Provisioned", "Running"])
def test_a_machine_that_did_not_fail(phase: str) -> None:
    """Whatever else it is about."""
    assert told("MachineFailed", machine("a", phase)) == []
    assert [names for *_, names in told("MachineFailed", machine("a", phase), machine("b", "Failed"))] == [["b"]]


def node(name: str, *, role: str = "worker", cpu: str = "4", memory: str = "4Gi", **more: Any) -> JSON:
    """A node of a pool."""
    found = kubelet(name, more.pop("version", "v1.30.0"), role)
    found["status"] |= {
        "allocatable": {"cpu": cpu, "memory": memory},
        "conditions": [{"type": kind, "status": status} for kind, status in more.pop("conditions", {}).items()],
    }
    return found | {"spec": more}


def pool(name: str = "worker", **spec: Any) -> JSON:
    """A machine config pool of the nodes of its role."""
    return {
        "apiVersion": "machineconfiguration.openshift.io/v1",
        "kind": "MachineConfigPool",
        "metadata": {"name": name},
        "spec": {"nodeSelector": {"matchLabels": {f"node-role.kubernetes.io/{name}": ""}}, **spec},
        "status": {"machineCount": 2},
    }


@pytest.mark.parametrize("status", ["False", "Unknown"])
@pytest.mark.parametrize("kind", ["DiskPressure", "MemoryPressure", "PIDPressure", "NetworkUnavailable"])
def test_what_presses_a_node(kind: str, status: str) -> None:
    """Only what is true does."""
    assert told("NodePressure", node("a", conditions={kind: status})) == []
    said = told("NodePressure", node("a", conditions={kind: status}), node("b", conditions={kind: "True"}))
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
    nodes = [node(f"n{number}", version=version) for number, version in enumerate(versions)]
    found = [
        names for name, _, _, names in told("NodeReleasesMixed", *nodes, pool()) if name == "NodeReleasesMixed-worker"
    ]
    assert found == ([fewest] if fewest else [])


def pod(name: str, on: str, cpu: str, phase: str = "Running", **metadata: Any) -> JSON:
    """A pod that asks for so much."""
    container = {"name": "c", "resources": {"requests": {"cpu": cpu}}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "shop", **metadata},
        "spec": {"nodeName": on, "containers": [container]},
        "status": {"phase": phase},
    }


BUSY = [pod("p", "a", "3")]
TAINT = {"key": "k", "effect": "NoSchedule"}


@pytest.mark.parametrize(
    ("nodes", "pods", "short"),
    [
        pytest.param([node("a"), node("b")], BUSY, False, id="room on the other"),
        pytest.param([node("a"), node("b", cpu="3")], BUSY, False, id="just enough room"),
        pytest.param([node("a"), node("b", cpu="2999m")], BUSY, True, id="a little too small"),
        pytest.param([node("a"), node("b"), node("c")], [*BUSY, pod("q", "b", "2")], False, id="room on a third"),
        pytest.param([node("a"), node("b")], [*BUSY, pod("q", "b", "2")], True, id="the other is busy"),
        pytest.param([node("a"), node("b")], [*BUSY, pod("q", "b", "2", "Succeeded")], False, id="what has ended"),
        pytest.param([node("a"), node("b")], [*BUSY, pod("q", "b", "2", "Failed")], False, id="what has failed"),
        pytest.param([node("a"), node("b", unschedulable=True)], BUSY, True, id="the other is cordoned"),
        pytest.param([node("a"), node("b", conditions={"Ready": "False"})], BUSY, True, id="the other is not ready"),
        pytest.param([node("a"), node("b", conditions={"Ready": "True"})], BUSY, False, id="the other is ready"),
        pytest.param([node("a"), node("b", conditions={"Ready": "Unknown"})], BUSY, True, id="nobody knows the other"),
        pytest.param([node("a"), node("b", taints=[TAINT])], BUSY, True, id="the other is tainted"),
        pytest.param(
            [node("a"), node("b", taints=[TAINT | {"effect": "NoExecute"}])], BUSY, True, id="tainted for all"
        ),
        pytest.param(
            [node("a"), node("b", taints=[TAINT | {"effect": "PreferNoSchedule"}])], BUSY, False, id="rather not"
        ),
        pytest.param([node("a")], BUSY, False, id="one node, which is not drained"),
        pytest.param(
            [node("a"), node("b", cpu="1"), node("c", cpu="2")], [*BUSY, pod("q", "b", "9")], True, id="one overbooked"
        ),
    ],
)
def test_room_for_what_a_drain_moves(nodes: list[JSON], pods: list[JSON], short: bool) -> None:
    """On nodes that take pods, and no other."""
    assert ("HeadroomShort-worker" in [name for name, *_ in told("HeadroomShort", *nodes, *pods, pool())]) is short


def webhooks(*policies: str, resources: str = "pods", group: str = "") -> JSON:
    """A configuration of webhooks without backends, one a policy."""
    rule = {"operations": ["CREATE"], "apiGroups": [group], "apiVersions": ["v1"], "resources": [resources]}
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": "policies"},
        "webhooks": [
            {
                "name": f"w{number}.example.com",
                "failurePolicy": policy,
                "clientConfig": {"service": {"namespace": "policies", "name": "webhook"}},
                "rules": [rule],
            }
            for number, policy in enumerate(policies)
        ],
    }


@pytest.mark.parametrize(
    ("configuration", "times"),
    [
        pytest.param(webhooks("Fail"), 1, id="one"),
        pytest.param(webhooks("Ignore", "Fail"), 1, id="after one that may be ignored"),
        pytest.param(webhooks("Fail", "Ignore", "Fail"), 2, id="two"),
        pytest.param(webhooks("Fail", resources="*"), 1, id="of every resource"),
        pytest.param(webhooks("Fail", resources="*/*"), 1, id="of every resource and all beneath"),
        pytest.param(webhooks("Fail", resources="jobs"), 0, id="of what is not of this group"),
        pytest.param(webhooks("Fail", group="*", resources="jobs"), 1, id="of every group"),
        pytest.param(webhooks("Fail", group="batch", resources="*"), 1, id="of another group"),
        pytest.param(webhooks("Fail", group="example.com", resources="*"), 0, id="of its own group"),
    ],
)
def test_webhooks_in_the_way(configuration: JSON, times: int) -> None:
    """Each that an update's writes must pass, and whose backend is not there."""
    assert [name for name, *_ in told("WebhookBlocksUpdate", configuration)] == ["WebhookBlocksUpdate"] * times


@pytest.mark.parametrize(("name", "risk"), [("a" * 300, "a" * 233), ("x/y z!", "y-z-"), ("a.b-C", "a.b-C")])
def test_the_risk_of_a_check_that_could_not_be_loaded(name: str, risk: str) -> None:
    """By the end of its name, in the characters of risks, and no longer than one may be."""
    assert unusable(name, "why").unknown_risk == f"PreflightCheckUnusable-{risk}"
    assert len(unusable("a" * 300, "why").unknown_risk) == 256
