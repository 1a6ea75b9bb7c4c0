"""Decides which pods a drain evicts, and whether the eviction API allows it.

Sources: kubernetes, `pkg/registry/core/pod/storage/eviction.go` and `pkg/controller/disruption/disruption.go`; kubectl,
`pkg/drain/filters.go`; https://kubernetes.io/docs/tasks/run-application/configure-pdb/.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable
from enum import Enum

import msgspec

from kubekit.api.conditions import find
from kubekit.api.meta_v1 import Condition
from kubekit.api.workloads_v1 import PodDisruptionBudget
from kubekit.rules.owners import Owner, controller_of

MIRROR = "kubernetes.io/config.mirror"
ENDED = ("Succeeded", "Failed")
# MaxDisruptedPodSize in eviction.go.
_MOST_DISRUPTED = 2000
_STAYING = ("DaemonSet", "Node")
# No share that a server stores has more digits.
_SHARE = re.compile(r"[+-]?[0-9]{1,9}%")


def stays_on_node(owners: Iterable[Owner], annotations: Container[str] = ()) -> bool:
    """Returns whether a drain leaves a pod on its node: a DaemonSet or the node itself controls it (a static pod)."""
    controller = controller_of(owners)
    return (controller is not None and controller.kind in _STAYING) or MIRROR in annotations


def needs_eviction(phase: str, owners: Iterable[Owner], annotations: Container[str] = ()) -> bool:
    """Returns whether a drain waits until a pod of its node is gone; pods that have ended delay no drain."""
    return phase not in ENDED and not stays_on_node(owners, annotations)


def is_evicted_without_budget(phase: str, *, deleted: bool) -> bool:
    """Returns whether no budget is read for the eviction of a pod: it has ended or not started, or is `deleted`."""
    return deleted or phase == "Pending" or phase in ENDED


def selects(budget: PodDisruptionBudget, namespace: str, labels: dict[str, str]) -> bool:
    """Returns whether a budget covers pods with these labels: an empty selector covers all, none covers no pod."""
    selector = budget.spec.selector
    return selector is not None and namespace == budget.metadata.namespace and selector.matches(labels)


def covering_budgets(
    budgets: Iterable[PodDisruptionBudget], namespace: str, labels: dict[str, str]
) -> list[PodDisruptionBudget]:
    """Returns the budgets that cover pods with these labels. The API server evicts no pod that several cover."""
    return [budget for budget in budgets if selects(budget, namespace, labels)]


def is_of_virtual_machine(budget: PodDisruptionBudget) -> bool:
    """Returns whether KubeVirt made the budget, which never allows an eviction.

    KubeVirt's webhook answers evictions of the pod, and migrates the machine (pkg/virt-controller/watch/drain).
    """
    return any(owner.kind == "VirtualMachineInstance" for owner in budget.metadata.owner_references)


def rule_of_budget(budget: PodDisruptionBudget) -> str:
    """Returns what the budget demands, as its spec says it."""
    if budget.spec.max_unavailable is not None:
        return f"maxUnavailable {budget.spec.max_unavailable}"
    return f"minAvailable {budget.spec.min_available}"


def is_share(value: str) -> bool:
    """Returns whether the text is a share such as `30%`."""
    return _SHARE.fullmatch(value) is not None


def scale_share(value: int | str, total: int, *, up: bool = True) -> int:
    """Returns a number, or a share such as `30%` of `total`, rounded up or down. Raises ValueError for other text."""
    if isinstance(value, int):
        return value
    if not is_share(value):
        raise ValueError(f"{value!r} is not a share such as 30%")
    share = int(value[:-1]) * total
    return -(-share // 100) if up else share // 100


def desired_healthy(min_available: int | str | None, max_unavailable: int | str | None, expected: int) -> int:
    """Returns how many of the `expected` pods of a budget must be healthy. Raises ValueError as `scale_share` does."""
    if max_unavailable is not None:
        return max(0, expected - scale_share(max_unavailable, expected))
    return scale_share(min_available, expected) if min_available is not None else 0


def disruptions_allowed(expected: int, healthy: int, desired: int) -> int:
    """Returns how many pods of a budget may be evicted now."""
    return max(0, healthy - desired) if expected > 0 else 0


class Refusal(Enum):
    """The reason why the eviction API refuses to evict a pod."""

    OUTDATED = "the status of its budget is older than the spec"
    NEGATIVE = "the number of allowed disruptions is negative"
    UNCONFIRMED = "too many evictions are not confirmed"
    EXHAUSTED = "its budget allows no disruption"


class BudgetNow(msgspec.Struct, frozen=True, kw_only=True):
    """The counts of a budget's status at one moment; `policy` is its unhealthyPodEvictionPolicy.

    `is_current` is false if the status is older than the spec. `disrupted` is the number of evictions that the
    disruption controller has not confirmed.
    """

    allowed: int
    healthy: int
    desired: int
    policy: str = ""
    is_current: bool = True
    disrupted: int = 0


def is_current(budget: PodDisruptionBudget) -> bool:
    """Returns whether the status is of the present spec; otherwise the API server allows no disruption."""
    return budget.status.observed_generation >= budget.metadata.generation


def cannot_be_computed(budget: PodDisruptionBudget) -> Condition | None:
    """Returns the condition that says that the disruption controller fails to compute the status, or None.

    It then lets the budget allow nothing (kubernetes, pkg/controller/disruption, failSafe).
    """
    allowed = find(budget.status.conditions, "DisruptionAllowed")
    return allowed if allowed and allowed.reason == "SyncFailed" else None


FIX_NOT_COMPUTED = (
    "The disruption controller cannot compute a budget with a share or maxUnavailable for pods whose owner has no "
    "scale: give those that are not computed a number as minAvailable, or delete them for the time of the update."
)
"""The remedy for a budget that `cannot_be_computed` (pkg/controller/disruption, getExpectedPodCount)."""


def budget_now(budget: PodDisruptionBudget, *, disrupted: int = 0) -> BudgetNow:
    """Returns the counts in the status of a budget."""
    status = budget.status
    return BudgetNow(
        allowed=status.disruptions_allowed,
        healthy=status.current_healthy,
        desired=status.desired_healthy,
        policy=budget.spec.unhealthy_pod_eviction_policy,
        is_current=is_current(budget),
        disrupted=disrupted,
    )


def is_uncounted(budget: BudgetNow, *, ready: bool) -> bool:
    """Returns whether the eviction of a pod needs no allowed disruption.

    A pod that is not ready may go if enough others are healthy, or if the policy always allows it.
    """
    return not ready and (budget.policy == "AlwaysAllow" or budget.healthy >= budget.desired > 0)


def refusal_of(budget: BudgetNow, *, ready: bool) -> Refusal | None:
    """Returns why a budget refuses the eviction of one of its pods, or None if it allows it."""
    if is_uncounted(budget, ready=ready):
        return None
    if not budget.is_current:
        return Refusal.OUTDATED
    if budget.allowed < 0:
        return Refusal.NEGATIVE
    if budget.disrupted > _MOST_DISRUPTED:
        return Refusal.UNCONFIRMED
    return None if budget.allowed else Refusal.EXHAUSTED
