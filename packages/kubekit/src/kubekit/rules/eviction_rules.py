"""Decides what a drain does with a pod, and whether the eviction API lets it go.

Sources: kubernetes, `pkg/registry/core/pod/storage/eviction.go` and `pkg/controller/disruption/disruption.go`; kubectl,
`pkg/drain/filters.go`; https://kubernetes.io/docs/tasks/run-application/configure-pdb/.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

MIRROR = "kubernetes.io/config.mirror"
ENDED = ("Succeeded", "Failed")
# No share that a server stores has more digits.
_SHARE = re.compile(r"[+-]?[0-9]{1,9}%")


def scale_share(value: int | str, total: int) -> int:
    """Returns a number, or a share such as `30%` of `total`, rounded up. Raises ValueError for other text."""
    if isinstance(value, int):
        return value
    if not _SHARE.fullmatch(value):
        raise ValueError(f"{value!r} is not a share such as 30%")
    return -(-int(value[:-1]) * total // 100)


def desired_healthy(min_available: int | str | None, max_unavailable: int | str | None, expected: int) -> int:
    """Returns how many of the `expected` pods of a budget must be healthy. Raises ValueError as `scale_share` does."""
    if max_unavailable is not None:
        return max(0, expected - scale_share(max_unavailable, expected))
    return scale_share(min_available, expected) if min_available is not None else 0


def disruptions_allowed(expected: int, healthy: int, desired: int) -> int:
    """Returns how many pods of a budget may be evicted now."""
    return max(0, healthy - desired) if expected > 0 else 0


@dataclass(frozen=True, slots=True)
class BudgetNow:
    """The counts of a budget's status at one moment; `policy` is its unhealthyPodEvictionPolicy."""

    allowed: int
    healthy: int
    desired: int
    policy: str = ""


def lets_go(budget: BudgetNow, *, ready: bool) -> bool:
    """Returns whether a budget lets one of its pods be evicted.

    A pod that is not ready may go if enough others are healthy, or if the policy always allows it.
    """
    if not ready and (budget.policy == "AlwaysAllow" or budget.healthy >= budget.desired > 0):
        return True
    return budget.allowed > 0
