"""Findings as a whole: their risk, whether they apply, how grave they are, and whom they name."""

from __future__ import annotations

from typing import Any

import pytest
from tests.factories import context

from runup.domain.checks.catalogue import CHECKS
from runup.domain.checks.engine import run_check
from runup.domain.checks.model import Applies, Context
from runup.domain.checks.objects import snapshot_of

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
