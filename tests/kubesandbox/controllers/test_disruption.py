"""What budgets count."""

from __future__ import annotations

from typing import Any

from kubekit.api import codec
from kubekit.api.whole_v1 import WholePod
from kubekit.api.workloads_v1 import PodDisruptionBudget
from kubesandbox.controllers.budgets_and_quotas import budget_status

JSON = dict[str, Any]
READY: JSON = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}


def meta(name: str, **more: Any) -> JSON:
    """Metadata whose uid is the name."""
    return {"name": name, "namespace": "ns", "uid": name, **more}


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
    status = budget_status(budget, [codec.convert(WholePod, pod) for pod in pods])
    assert (status["expectedPods"], status["currentHealthy"], status["disruptionsAllowed"]) == (3, 2, 0)
