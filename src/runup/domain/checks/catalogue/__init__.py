"""The checks that every release carries, one module each. A new one is a new module and a line in `CHECKS`."""

from __future__ import annotations

from runup.domain.checks.catalogue import (
    budget_pods,
    cluster_version_health,
    drain_blocked,
    dual_stack,
    etcd_members,
    feature_set,
    kubelet_skew,
    node_health,
    node_pools,
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
    cluster_version_health.CHECK,
    etcd_members.CHECK,
    pool_paused.CHECK,
    pool_health.CHECK,
    node_health.CHECK,
    node_pools.CHECK,
    kubelet_skew.CHECK,
    drain_blocked.CHECK,
    budget_pods.CHECK,
    feature_set.CHECK,
)
