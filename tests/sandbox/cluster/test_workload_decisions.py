"""Where pods are bound, and what budgets count."""

from __future__ import annotations

from typing import Any

import pytest

from runup.api import codec
from runup.api.whole_v1 import WholeNode, WholePod
from runup.api.workloads_v1 import PodDisruptionBudget
from runup.sandbox.controllers import upkeep

JSON = dict[str, Any]
READY: JSON = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}


def meta(name: str, owner: str = "", **more: Any) -> JSON:
    """Metadata whose uid is the name, owned by the object of that name."""
    owners = [{"apiVersion": "v1", "kind": "x", "name": owner, "uid": owner, "controller": True}] if owner else []
    return {"name": name, "namespace": "ns", "uid": name, "ownerReferences": owners, **more}


@pytest.mark.parametrize(
    ("pod", "node", "fits"),
    [
        pytest.param({}, {}, True, id="anything fits anywhere"),
        pytest.param({"nodeSelector": {"zone": "a"}}, {"labels": {"zone": "b"}}, False, id="another label"),
        pytest.param({}, {"unschedulable": True}, False, id="a cordoned node"),
        pytest.param({}, {"taints": [{"key": "k", "effect": "NoSchedule"}]}, False, id="a taint"),
        pytest.param({}, {"taints": [{"key": "k", "effect": "PreferNoSchedule"}]}, True, id="a taint that only asks"),
        pytest.param(
            {"tolerations": [{"operator": "Exists"}]}, {"taints": [{"key": "k", "effect": "NoExecute"}]}, True,
            id="everything is tolerated",
        ),
    ],
)  # fmt: skip
def test_where_a_pod_fits(pod: JSON, node: JSON, *, fits: bool) -> None:
    """Selector, taints and cordon count."""
    labels = node.pop("labels", {}) if "labels" in node else {}
    made = codec.convert(WholeNode, {"metadata": {"name": "n", "labels": labels}, "spec": node})
    assert upkeep.fits(codec.convert(WholePod, {"metadata": meta("p"), "spec": pod}), made) is fits


def test_a_budget_counts_its_ready_pods() -> None:
    """Two of three are ready and two must be: nothing may go."""
    budget = codec.convert(
        PodDisruptionBudget,
        {"metadata": meta("b"), "spec": {"minAvailable": 2, "selector": {"matchLabels": {"app": "web"}}}},
    )
    labels = {"app": "web"}
    pods = [
        {"metadata": meta(f"p{n}", labels=labels), "status": READY if n else {"phase": "Running"}} for n in range(3)
    ]
    status = upkeep.budget_status(budget, [codec.convert(WholePod, pod) for pod in pods])
    assert (status["expectedPods"], status["currentHealthy"], status["disruptionsAllowed"]) == (3, 2, 0)
