"""Which plans wait for somebody's approval."""

from __future__ import annotations

import pytest
from tests.checks.catalogue.asking import JSON, messages_of


def plan(name: str, *names: str, namespace: str = "ns") -> JSON:
    """A plan that nobody has approved."""
    return {
        "apiVersion": "operators.coreos.com/v1alpha1",
        "kind": "InstallPlan",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"approved": False, "approval": "Manual", "clusterServiceVersionNames": [*names]},
        "status": {"phase": "RequiresApproval"},
    }


def subscription(name: str, goal: str, namespace: str = "ns") -> JSON:
    """A Subscription that goes to that version."""
    return {
        "apiVersion": "operators.coreos.com/v1alpha1",
        "kind": "Subscription",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"name": name},
        "status": {"currentCSV": goal} if goal else {},
    }


@pytest.mark.parametrize(
    ("objects", "waiting"),
    [
        pytest.param([plan("p", "a.v1"), subscription("a", "a.v1")], ["p (a.v1)"], id="where it goes"),
        pytest.param([plan("p", "a.v1"), subscription("a", "a.v2")], [], id="superseded"),
        pytest.param(
            [plan("p", "a.v1"), plan("q", "a.v2"), subscription("a", "a.v2")], ["q (a.v2)"], id="one superseded"
        ),
        pytest.param(
            [plan("p", "a.v1", "b.v1"), subscription("a", "a.v2"), subscription("b", "b.v1")],
            ["p (a.v1 and b.v1)"],
            id="where one of two goes",
        ),
        pytest.param(
            [plan("p", "a.v1"), subscription("a", "a.v2", namespace="other")], ["p (a.v1)"], id="of another namespace"
        ),
        pytest.param(
            [plan("p", "a.v1"), subscription("a", ""), subscription("b", "b.v1")], ["p (a.v1)"], id="not said yet"
        ),
        pytest.param([plan("p", "a.v1")], ["p (a.v1)"], id="no Subscription"),
    ],
)
def test_plans_that_wait(objects: list[JSON], waiting: list[str]) -> None:
    """Those that bring what a Subscription goes to, and those of which nobody says it."""
    each = [f"1 InstallPlan waits for approval: ns/{text}." for text in waiting]
    assert messages_of("OperatorUpdateWaits", *objects) == each
