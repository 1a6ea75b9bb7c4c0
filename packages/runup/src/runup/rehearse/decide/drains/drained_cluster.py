"""The input of a simulation: a cluster's objects, the pools in which nodes are updated, and how they are drained."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, time, timedelta

from kubekit.api import scheduling
from kubekit.api.core_v1 import Node
from kubekit.api.workloads_v1 import PodDisruptionBudget


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    """Nodes that are updated together, in this order, `at_once` at a time, once the pools `after` are done.

    With `surge`, that many new nodes come first, and each takes the place of an old one. `held` says why none of its
    nodes is updated until somebody acts; empty if they are.
    """

    name: str
    nodes: tuple[str, ...]
    at_once: int = 1
    paused: bool = False
    surge: int = 0
    after: tuple[str, ...] = ()
    held: str = ""


@dataclass(frozen=True, slots=True)
class Window:
    """The hours of each day, in UTC, in which drains may begin; it may go past midnight."""

    opens: time
    closes: time

    def next_open(self, moment: datetime) -> datetime:
        """Returns the moment itself if the window is open then, or when it opens next."""
        at = moment.time()
        is_open = self.opens <= at < self.closes if self.opens < self.closes else at >= self.opens or at < self.closes
        if is_open:
            return moment
        opening = moment.replace(
            hour=self.opens.hour, minute=self.opens.minute, second=self.opens.second, microsecond=0
        )
        return opening if opening > moment else opening + timedelta(days=1)

    def spans(self, start: datetime, end: datetime) -> Iterator[tuple[datetime, datetime]]:
        """Yields when the window opens and closes, each time that is not over at `start` and begins before `end`."""
        day = start.date() - timedelta(days=1)
        while day <= end.date():
            opens = datetime.combine(day, self.opens, start.tzinfo)
            closes = datetime.combine(day + timedelta(days=self.closes <= self.opens), self.closes, start.tzinfo)
            if closes > start and opens < end:
                yield opens, closes
            day += timedelta(days=1)


NODE_UPDATE_S = 600
"""The time of a node from drained to ready where nobody gives it, in a drain and in a forecast."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DrainSettings:
    """Settings of the drains, all times in seconds.

    `forces` evicts pods without an owner, too, as the machine-config operator does. What is not evicted after
    `drain_timeout_s` is taken to be deleted by hand. `nodes_lost` nodes of each pool do not come back.
    """

    forces: bool = True
    drain_timeout_s: int = 3600
    node_update_s: int = NODE_UPDATE_S
    default_start_s: int = 30
    max_unavailable: int | None = None
    window: Window | None = None
    nodes_lost: int = 0
    uncordons_all: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class DrainedCluster:
    """A cluster's objects. `missing` says about each kind that is not known, or not wholly, why."""

    nodes: tuple[Node, ...] = ()
    pods: tuple[scheduling.SchedulingPod, ...] = ()
    budgets: tuple[PodDisruptionBudget, ...] = ()
    owners: tuple[scheduling.PodsOwner, ...] = ()
    claims: tuple[scheduling.PersistentVolumeClaim, ...] = ()
    volumes: tuple[scheduling.SchedulingVolumeObject, ...] = ()
    classes: tuple[scheduling.StorageClass, ...] = ()
    csi_nodes: tuple[scheduling.CsiNode, ...] = ()
    quotas: tuple[scheduling.ResourceQuota, ...] = ()
    namespaces: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    pools: tuple[Pool, ...] = ()
    missing: Mapping[str, str] = field(default_factory=dict)
