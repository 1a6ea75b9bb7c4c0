"""The disruption controller: PodDisruptionBudgets and pods in, the status of the budgets out."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from kubekit.api.meta_v1 import NamespacedName
from kubekit.api.scheme import resource_of
from kubekit.api.whole_v1 import WholePod
from kubekit.api.workloads_v1 import PodDisruptionBudget
from kubekit.kube import calls
from kubekit.kube.cache import Cache
from kubekit.kube.request import Call
from kubesandbox.controllers.owned_pods import is_active, is_ready

BUDGETS = resource_of(PodDisruptionBudget)


class Budgets:
    """The controller of PodDisruptionBudgets' status, by the arithmetic of Kubernetes' disruption controller.

    Counts come from the pods that the selector matches. If the cluster has none of them, as in a dump without pods, the
    recorded counts of the budget stay.
    """

    name = "disruption"

    def __init__(self, budgets: Cache[PodDisruptionBudget], pods: Cache[WholePod]) -> None:
        self._budgets, self._pods = budgets, pods

    def calls(self, key: NamespacedName) -> Iterable[Call[Any]]:
        """Yields the patch of a budget whose status differs from the computed one."""
        budget = self._budgets.get(key)
        if budget is None or budget.metadata.deletion_timestamp is not None:
            return
        status = budget_status(budget, self._pods.all())
        current = {wire: getattr(budget.status, field) for wire, field in _COUNTS.items()}
        if status != current:
            yield calls.merge_patch(BUDGETS, key.name, {"status": status}, key.namespace, subresource="status")


_COUNTS = {
    "observedGeneration": "observed_generation",
    "disruptionsAllowed": "disruptions_allowed",
    "currentHealthy": "current_healthy",
    "desiredHealthy": "desired_healthy",
    "expectedPods": "expected_pods",
}


def budget_status(budget: PodDisruptionBudget, pods: Iterable[WholePod]) -> dict[str, int]:
    """Returns the counts of a budget's status."""
    selected = [
        pod
        for pod in pods
        if budget.spec.selector is not None
        and pod.metadata.namespace == budget.metadata.namespace
        and is_active(pod)
        and budget.spec.selector.matches(pod.metadata.labels)
    ]
    expected = len(selected) or budget.status.expected_pods
    healthy = sum(is_ready(pod) for pod in selected) if selected else budget.status.current_healthy
    if budget.spec.max_unavailable is not None:
        desired = max(0, expected - _scale_share(budget.spec.max_unavailable, expected))
    else:
        desired = _scale_share(budget.spec.min_available if budget.spec.min_available is not None else 0, expected)
    return {
        "observedGeneration": budget.metadata.generation,
        "disruptionsAllowed": max(0, healthy - desired) if expected else 0,
        "currentHealthy": healthy,
        "desiredHealthy": desired,
        "expectedPods": expected,
    }


def _scale_share(value: int | str, total: int) -> int:
    """Returns a number, or a percentage of `total` rounded up."""
    # Rounded up, as GetScaledValueFromIntOrPercent does for budgets.
    return value if isinstance(value, int) else -(-int(value.rstrip("%")) * total // 100)
