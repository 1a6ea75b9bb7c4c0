"""The input of the insights: the cluster's objects and alerts at one moment, each kind readable or not.

Three cases are distinguished: objects (perhaps none), `Unreadable` (they may exist but could not be read, which is
reported as an insight), and None (they were not queried, so nothing is reported: the example files of `oc` have no
pods)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import TypeVar

import msgspec

from kubekit.api import codec
from kubekit.api.core_v1 import Node, Pod
from kubekit.api.meta_v1 import Wire
from kubekit.api.workloads_v1 import Deployment, PodDisruptionBudget
from kubekit.lang.text import cut
from runup.api.config_v1 import ClusterOperator, ClusterVersion
from runup.api.machineconfig_v1 import MachineConfig, MachineConfigPool
from runup.rules.machine_config import CONTROL_PLANE_POOL, WORKER_POOL


class Unreadable(msgspec.Struct, frozen=True):
    """The reason why a kind could not be read, in words for the administrator."""

    why: str


PATH = "/api/v1/alerts"
# More than any cluster has at once: what is decided on alerts looks at each of them.
MAX_ALERTS = 10_000
MAX_VALUES = 400_000
# Characters of Prometheus' own words that are kept.
MAX_ERROR = 1024


class Alert(msgspec.Struct, frozen=True, kw_only=True):
    """An alert as Prometheus lists it (`/api/v1/alerts`); `state` is firing or pending."""

    labels: dict[str, str]
    annotations: dict[str, str]
    state: str = ""
    active_at: datetime | None = None


class _Alert(Wire, frozen=True):
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    state: str = ""
    active_at: datetime | None = None


class _Alerts(Wire, frozen=True):
    alerts: tuple[_Alert, ...] = ()


class _Answer(Wire, frozen=True):
    status: str = ""
    error: str = ""
    data: _Alerts = _Alerts()


def read_alerts(body: bytes) -> tuple[Alert, ...]:
    """Returns the alerts of an answer; raises DecodeError if it cannot be decoded, has too many or says `error`."""
    answer = codec.decode_bounded(_Answer, body, most_values=MAX_VALUES)
    if answer.status == "error":
        raise codec.DecodeError(cut(answer.error, MAX_ERROR) or "the answer says error and no more")
    if (number := len(answer.data.alerts)) > MAX_ALERTS:
        raise codec.DecodeError(f"the answer has {number} alerts; the limit is {MAX_ALERTS}")
    return tuple(
        Alert(
            labels=alert.labels,
            annotations=alert.annotations,
            state=alert.state,
            active_at=alert.active_at.replace(tzinfo=UTC)
            if alert.active_at is not None and alert.active_at.utcoffset() is None
            else alert.active_at,
        )
        for alert in answer.data.alerts
    )


T = TypeVar("T")


class Snapshot(msgspec.Struct, frozen=True, kw_only=True):
    """The cluster at one moment. Pools, operators and nodes are in the order in which they are reported.

    machine_configs: names and annotations suffice. machine_config_operator: the Deployment of that name, None if the
    cluster has none. pending_pods: pods of phase Pending; draining_pods: pods on nodes that are being drained.
    undecoded: objects that could not be decoded and are in none of these lists, as `Node worker-1`, with the reason.
    incomplete: fields that may not hold every object of the cluster, by name, with the reason. drains_read: the nodes
    whose pods are in draining_pods, None if all are that are drained: pods are listed node by node, and not at once.
    """

    cluster_version: ClusterVersion | Unreadable
    cluster_operators: tuple[ClusterOperator, ...] | Unreadable
    machine_config_pools: tuple[MachineConfigPool, ...] | Unreadable
    nodes: tuple[Node, ...] | Unreadable
    machine_configs: tuple[MachineConfig, ...] | Unreadable
    machine_config_operator: Deployment | Unreadable | None = None
    alerts: tuple[Alert, ...] | Unreadable | None = None
    pending_pods: tuple[Pod, ...] | Unreadable | None = None
    draining_pods: tuple[Pod, ...] | Unreadable | None = None
    pod_disruption_budgets: tuple[PodDisruptionBudget, ...] | Unreadable | None = None
    undecoded: tuple[tuple[str, str], ...] = ()
    incomplete: Mapping[str, str] = msgspec.field(default_factory=dict)
    drains_read: frozenset[str] | None = None


LISTED = {
    "cluster_operators": "ClusterOperator",
    "machine_config_pools": "MachineConfigPool",
    "nodes": "Node",
    "machine_configs": "MachineConfig",
    "pending_pods": "Pod",
    "draining_pods": "Pod",
    "pod_disruption_budgets": "PodDisruptionBudget",
}
"""The fields that are lists, with the kind of each."""


def readable(items: tuple[T, ...] | Unreadable | None) -> tuple[T, ...]:
    """Returns the objects, none if they could not be read; for callers that need not report the difference."""
    return items if isinstance(items, tuple) else ()


def sort_pools(pools: Iterable[MachineConfigPool]) -> tuple[MachineConfigPool, ...]:
    """Returns the pools of a live cluster in report order: master, worker, then custom pools by name."""
    rank = {CONTROL_PLANE_POOL: 0, WORKER_POOL: 1}
    return tuple(sorted(pools, key=lambda pool: (rank.get(pool.metadata.name, 2), pool.metadata.name)))
