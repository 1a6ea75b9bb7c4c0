"""Small duties of a control plane: pods get a node, budgets get a status."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from runup.api import codec
from runup.api.meta_v1 import LabelSelector, NamespacedName
from runup.api.scheme import resource_of
from runup.api.whole_v1 import WholeNode, WholePod
from runup.api.workloads_v1 import PodDisruptionBudget
from runup.kube import calls
from runup.kube.cache import Cache
from runup.kube.request import Call
from runup.sandbox.controllers.workloads import PODS, is_active, is_ready

JSON = dict[str, Any]
BUDGETS = resource_of(PodDisruptionBudget)


class Scheduler:
    """Binds pods to nodes: node selector, node affinity and taints count; resources do not."""

    name = "scheduler"

    def __init__(self, pods: Cache[WholePod], nodes: Cache[WholeNode]) -> None:
        self._pods, self._nodes = pods, nodes

    def calls(self, key: NamespacedName) -> Iterable[Call[Any]]:
        """The binding of a pod that has no node, to the fitting node with the fewest pods."""
        pod = self._pods.get(key)
        if pod is None or pod.spec.get("nodeName") or not is_active(pod):
            return
        fitting = [node for node in self._nodes.all() if fits(pod, node)]
        if not fitting:
            return
        load = {node.metadata.name: 0 for node in fitting}
        for each in self._pods.all():
            if each.spec.get("nodeName") in load:
                load[each.spec["nodeName"]] += 1
        name = min(load, key=lambda node: (load[node], node))
        binding = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": key.name, "namespace": key.namespace},
            "target": {"apiVersion": "v1", "kind": "Node", "name": name},
        }
        yield calls.create(PODS, binding, name=key.name, subresource="binding")


def fits(pod: WholePod, node: WholeNode) -> bool:
    """Whether the node is one that the pod may run on."""
    labels = node.metadata.labels
    selector = pod.spec.get("nodeSelector") or {}
    tolerations = pod.spec.get("tolerations") or ()
    taints = [taint for taint in node.spec.get("taints") or () if taint.get("effect") != "PreferNoSchedule"]
    if node.spec.get("unschedulable"):
        taints.append({"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"})
    return (
        all(labels.get(key) == value for key, value in selector.items())
        and _affine(pod, labels)
        and all(any(_tolerates(toleration, taint) for toleration in tolerations) for taint in taints)
    )


def _affine(pod: WholePod, labels: dict[str, str]) -> bool:
    affinity = (pod.spec.get("affinity") or {}).get("nodeAffinity") or {}
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution")
    if not required:
        return True
    terms = required.get("nodeSelectorTerms") or ()
    selectors = [
        codec.convert(LabelSelector, {"matchExpressions": term.get("matchExpressions") or []}) for term in terms
    ]
    return any(selector.matches(labels) for selector in selectors)


def _tolerates(toleration: JSON, taint: JSON) -> bool:
    if toleration.get("effect") and toleration["effect"] != taint.get("effect"):
        return False
    if toleration.get("operator") == "Exists":
        return not toleration.get("key") or toleration["key"] == taint.get("key")
    return bool(toleration.get("key") == taint.get("key")) and (toleration.get("value") or "") == (
        taint.get("value") or ""
    )


class Budgets:
    """The status of PodDisruptionBudgets, by the arithmetic of Kubernetes' disruption controller.

    Counts come from the pods that the selector matches. Where the cluster shows none of them, as in a dump without
    pods, the counts that the budget came with stay.
    """

    name = "disruption"

    def __init__(self, budgets: Cache[PodDisruptionBudget], pods: Cache[WholePod]) -> None:
        self._budgets, self._pods = budgets, pods

    def calls(self, key: NamespacedName) -> Iterable[Call[Any]]:
        """The patch of a budget whose status does not fit its spec and its pods."""
        budget = self._budgets.get(key)
        if budget is None or budget.metadata.deletion_timestamp is not None:
            return
        status = budget_status(budget, self._pods.all())
        found = {wire: getattr(budget.status, field) for wire, field in _COUNTS.items()}
        if status != found:
            yield calls.merge_patch(BUDGETS, key.name, {"status": status}, key.namespace, subresource="status")


_COUNTS = {
    "observedGeneration": "observed_generation",
    "disruptionsAllowed": "disruptions_allowed",
    "currentHealthy": "current_healthy",
    "desiredHealthy": "desired_healthy",
    "expectedPods": "expected_pods",
}


def budget_status(budget: PodDisruptionBudget, pods: Iterable[WholePod]) -> dict[str, int]:
    """The counts as they should be."""
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
        desired = max(0, expected - _scaled(budget.spec.max_unavailable, expected))
    else:
        desired = _scaled(budget.spec.min_available if budget.spec.min_available is not None else 0, expected)
    return {
        "observedGeneration": budget.metadata.generation,
        "disruptionsAllowed": max(0, healthy - desired) if expected else 0,
        "currentHealthy": healthy,
        "desiredHealthy": desired,
        "expectedPods": expected,
    }


def _scaled(value: int | str, total: int) -> int:
    """A number, or a share of `total` rounded up."""
    return value if isinstance(value, int) else -(-int(value.rstrip("%")) * total // 100)
