"""What the checks of PodDisruptionBudgets share: how a budget is named, and which are known."""

from __future__ import annotations

from collections.abc import Iterable

from kubekit.api.conditions import find
from kubekit.api.workloads_v1 import PodDisruptionBudget
from runup.checks.decide.wording import cause, dated


def in_order(budgets: Iterable[PodDisruptionBudget]) -> list[PodDisruptionBudget]:
    """By namespace and name."""
    return sorted(budgets, key=lambda pdb: (pdb.metadata.namespace, pdb.metadata.name))


def named(pdb: PodDisruptionBudget) -> str:
    """`namespace/name`."""
    return f"{pdb.metadata.namespace}/{pdb.metadata.name}"


def not_computed(pdb: PodDisruptionBudget) -> str:
    """Why the status says nothing about the spec, or nothing."""
    allowed = find(pdb.status.conditions, "DisruptionAllowed")
    if allowed and allowed.reason == "SyncFailed":
        return f"not computed: {cause(allowed)}{dated(allowed.last_transition_time)}"
    if pdb.status.observed_generation < pdb.metadata.generation:
        return "its status is older than its spec"
    return ""
