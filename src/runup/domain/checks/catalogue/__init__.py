"""The checks that every release carries, one module each. A new one is a new module and a line in `CHECKS`."""

from __future__ import annotations

from runup.domain.checks.catalogue import (
    drain_blocked,
    dual_stack,
    feature_set,
    kubelet_skew,
    node_health,
    operator_health,
    operator_upgradeable,
    pool_health,
    pool_paused,
    update_in_progress,
)
from runup.domain.checks.model import Check

CHECKS: tuple[Check, ...] = (
    dual_stack.CHECK,
    operator_upgradeable.CHECK,
    operator_health.CHECK,
    update_in_progress.CHECK,
    pool_paused.CHECK,
    pool_health.CHECK,
    node_health.CHECK,
    kubelet_skew.CHECK,
    drain_blocked.CHECK,
    feature_set.CHECK,
)
