"""Operators that are not in order, and why."""

from __future__ import annotations

from typing import Any

import pytest
from tests.checks.catalogue.asking import BY_NAME, JSON, findings
from tests.factories import context

from runup.checks.decide.engine import run_check
from runup.checks.decide.snapshots import snapshot_of


def csv(name: str, phase: str, namespace: str = "ns", **spec: Any) -> JSON:
    """An operator's version."""
    return {
        "apiVersion": "operators.coreos.com/v1alpha1",
        "kind": "ClusterServiceVersion",
        "metadata": {"name": name, "namespace": namespace},
        "spec": spec,
        "status": {"phase": phase},
    }


def plan(name: str, *names: str, phase: str = "Failed", day: int = 1) -> JSON:
    """An InstallPlan of these versions, made on that day."""
    return {
        "apiVersion": "operators.coreos.com/v1alpha1",
        "kind": "InstallPlan",
        "metadata": {"name": name, "namespace": "ns", "creationTimestamp": f"2026-01-{day:02}T00:00:00Z"},
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
        pytest.param(
            [plan("p", "a.v1"), plan("q", "a.v2", phase="Complete", day=2)],
            [],
            id="a later plan brought another version",
        ),
        pytest.param(
            [plan("p", "a.v1", day=2), plan("q", "a.v0", phase="Complete")], ["p"], id="an earlier plan brought another"
        ),
        pytest.param(
            [plan("p", "a.v1", "b.v1"), plan("q", "a.v2", phase="Complete", day=2)],
            ["p"],
            id="a later plan, one of two",
        ),
        pytest.param([csv("a.v1", "Unknown"), csv("b.v1", "Replacing")], ["a.v1"], id="an operator in Unknown"),
        pytest.param(
            [csv("z", "Failed", "n1"), csv("a", "Failed", "n2")], ["z", "a"], id="two operators, by namespace"
        ),
    ],
)
def test_operators_that_are_not_in_order(objects: list[JSON], said: list[str]) -> None:
    """Each by its risk's name."""
    assert [risk for risk, *_ in findings("OperatorFailed", *objects)] == [f"OperatorFailed-{name}" for name in said]


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
