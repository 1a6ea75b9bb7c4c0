"""Helpers that the checks of PodDisruptionBudgets share: their order, their names, and whether a status is current."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from kubekit.api.pod_parts import PlacedPod
from kubekit.api.workloads_v1 import PodDisruptionBudget
from kubekit.rules.eviction_rules import cannot_be_computed, is_current, selects, stays_on_node
from runup.checks.catalogue.shared.pods import PODS, pods_by_namespace
from runup.checks.writing import Snapshot, Unreadable, cause, since_suffix


def sorted_budgets(budgets: Iterable[PodDisruptionBudget]) -> list[PodDisruptionBudget]:
    """Returns the budgets by namespace and name."""
    return sorted(budgets, key=lambda pdb: (pdb.metadata.namespace, pdb.metadata.name))


def budget_name(pdb: PodDisruptionBudget) -> str:
    """Returns `namespace/name` of a budget."""
    return f"{pdb.metadata.namespace}/{pdb.metadata.name}"


def not_computed(pdb: PodDisruptionBudget) -> str:
    """Returns why the status does not reflect the spec, or an empty string if it does."""
    if failed := cannot_be_computed(pdb):
        return f"not computed: {cause(failed)}{since_suffix(failed.last_transition_time)}"
    if not is_current(pdb):
        return "its status is older than its spec"
    return ""


def readable_pods_by_namespace(snapshot: Snapshot) -> Mapping[str, Sequence[PlacedPod]]:
    """Returns the pods of each namespace; none if they cannot be read."""
    try:
        return pods_by_namespace(snapshot.listed(PODS))
    except Unreadable:
        return {}


def all_stay(pdb: PodDisruptionBudget, pods: Mapping[str, Sequence[PlacedPod]]) -> bool:
    """Returns whether no drain moves any of the pods that the budget selects, as far as they are known.

    A budget whose pods are not known is evaluated by its status alone.
    """
    namespace = pdb.metadata.namespace
    selected = [pod for pod in pods.get(namespace, ()) if selects(pdb, namespace, pod.metadata.labels)]
    return bool(selected) and all(stays_on_node(pod.metadata.owner_references) for pod in selected)
