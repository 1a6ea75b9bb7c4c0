"""Helpers that the checks of PodDisruptionBudgets share: their order, their names, and whether a status is current."""

from __future__ import annotations

from collections.abc import Iterable

from kubekit.api.conditions import find
from kubekit.api.workloads_v1 import PodDisruptionBudget
from runup.checks.decide.wording import cause, dated


def in_order(budgets: Iterable[PodDisruptionBudget]) -> list[PodDisruptionBudget]:
    """Returns the budgets by namespace and name."""
    return sorted(budgets, key=lambda pdb: (pdb.metadata.namespace, pdb.metadata.name))


def named(pdb: PodDisruptionBudget) -> str:
    """Returns `namespace/name` of a budget."""
    return f"{pdb.metadata.namespace}/{pdb.metadata.name}"


def not_computed(pdb: PodDisruptionBudget) -> str:
    """Returns why the status does not reflect the spec, or an empty string if it does."""
    allowed = find(pdb.status.conditions, "DisruptionAllowed")
    if allowed and allowed.reason == "SyncFailed":
        return f"not computed: {cause(allowed)}{dated(allowed.last_transition_time)}"
    if pdb.status.observed_generation < pdb.metadata.generation:
        return "its status is older than its spec"
    return ""
