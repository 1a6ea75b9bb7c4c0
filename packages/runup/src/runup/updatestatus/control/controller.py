"""The update status controller: observes the caches, computes the status, and stores it.

Pods of nodes that are drained are listed node by node, those first whose drains were blocked."""

from __future__ import annotations

import asyncio
from collections import Counter as Count
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeVar

import structlog
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from kubekit.api import codec
from kubekit.api.codec import DecodeError, Undecodable
from kubekit.api.core_v1 import Pod
from kubekit.api.meta_v1 import NamespacedName, Object, key_of
from kubekit.kube.api_errors import Conflict, KubeError
from kubekit.kube.cache import Cache
from kubekit.kube.client import Client
from kubekit.kube.clock import Clock
from kubekit.kube.workqueue import WorkQueue
from runup.api.config_v1 import ClusterVersion
from runup.api.update_v1alpha1 import UpdateStatusStatus
from runup.rules.machine_config import is_drain_wanted, is_moving
from runup.rules.update_components import further_namespaces
from runup.updatestatus.control.alert_queries import Alerts
from runup.updatestatus.control.caches import MCO_DEPLOYMENT, MCO_NAMESPACE, Caches, KubernetesCaches
from runup.updatestatus.control.component_objects import WatchedComponents
from runup.updatestatus.control.kubernetes_objects import WatchedKubernetes, leaving_nodes
from runup.updatestatus.control.status_store import UpdateStatusStore
from runup.updatestatus.decide.alerts import Alert, Unreadable
from runup.updatestatus.decide.assess import Room, assess, next_change_s
from runup.updatestatus.decide.finding import LEVELS
from runup.updatestatus.decide.kubernetes.snapshot import KubernetesSnapshot
from runup.updatestatus.decide.memory import insights_of
from runup.updatestatus.decide.snapshot import LISTED, Snapshot, is_under_way, readable, sort_pools
from runup.updatestatus.decide.waiting import held_up_nodes

_VALUES = {"True": 1, "False": 0}


class Metrics:
    """The controller's metrics in a separate registry, because several controllers may run in one process."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.leading = Gauge("update_status_leading", "1 while this process holds the lease.", registry=self.registry)
        self.writes = Counter("update_status_writes", "Writes of the UpdateStatus object.", registry=self.registry)
        self.confirmed = Gauge(
            "update_status_confirmed_timestamp_seconds",
            "When the UpdateStatus object was last found or made to be what the cluster is; 0 before.",
            registry=self.registry,
        )
        self.insights = Gauge(
            "update_status_insights", "Health insights of the object, by level.", ("level",), registry=self.registry
        )
        self.conditions = Gauge(
            "update_status_condition",
            "Conditions of the report itself: 1 True, 0 False, -1 Unknown.",
            ("condition",),
            registry=self.registry,
        )
        self.assessment = Histogram(
            "update_status_assessment_seconds",
            "Computing all insights from one snapshot.",
            buckets=(0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1, 3),
            registry=self.registry,
        )

    def confirm(self, status: UpdateStatusStatus, at: float) -> None:
        """Records what the object says, and that it said so at `at`, in seconds since 1970."""
        counts = Count(insight.health.impact.level for insight in insights_of(status) if insight.health is not None)
        for level in LEVELS:
            self.insights.labels(level).set(counts[level])
        self.conditions.clear()
        for condition in status.conditions:
            self.conditions.labels(condition.type).set(_VALUES.get(condition.status, -1))
        self.confirmed.set(at)


# A drain that goes well takes a minute; asking sooner would cost requests for nothing.
PATIENCE_S = 60.0
# How long an answer is valid, and how many nodes are queried in that time: one small list a second.
REFRESH_S = 30.0
NODES_AT_MOST = 30
# How often to check whether a node is due.
_STEP_S = 5.0


@dataclass(frozen=True, slots=True)
class PodsOfNode:
    """The pods that are bound to a node; `error` says why listing failed, `undecoded` holds those that cannot be
    decoded.
    """

    pods: tuple[Pod, ...] = ()
    error: str = ""
    undecoded: tuple[codec.Undecodable, ...] = ()


class DrainingPods:
    """Keeps `state` up to date for the nodes that `follow` names, and calls `on_change()` after a change."""

    def __init__(self, client: Client, clock: Clock, on_change: Callable[[], None]) -> None:
        self.state: Mapping[str, PodsOfNode] = {}
        self._client = client
        self._clock = clock
        self._on_change = on_change
        self._since: dict[str, float] = {}
        self._read: dict[str, float] = {}

    def follow(self, nodes: Iterable[str], at_once: Collection[str] = ()) -> None:
        """Sets the nodes that drain now, and forgets all others.

        Nodes of `at_once` that are new are due without waiting: an earlier controller saw that they are held up.
        """
        now = self._clock.monotonic()
        wanted_nodes = set(nodes)
        begun = {name: now - PATIENCE_S if name in at_once else now for name in sorted(wanted_nodes)}
        self._since = {name: self._since.get(name, at) for name, at in begun.items()}
        self._read = {name: at for name, at in self._read.items() if name in wanted_nodes}
        if not self.state.keys() <= wanted_nodes:
            self.state = {name: pods for name, pods in self.state.items() if name in wanted_nodes}

    async def run(self) -> None:
        """Queries the nodes that are due until cancelled."""
        while True:
            for name in self.due():
                await self.ask(name)
            await self._clock.sleep(_STEP_S)

    def due(self) -> list[str]:
        """Returns the nodes to query now: of those that drained longest, those whose answer is missing or too old."""
        now = self._clock.monotonic()
        long_draining = sorted((since, name) for name, since in self._since.items() if now - since >= PATIENCE_S)
        longest_draining = [name for _, name in long_draining[:NODES_AT_MOST]]
        return [name for name in longest_draining if now - self._read.get(name, float("-inf")) >= REFRESH_S]

    def pods(self) -> tuple[Pod, ...] | Unreadable:
        """Returns all known pods on draining nodes, in order; or Unreadable if some could not be listed."""
        for name, node_pods in sorted(self.state.items()):
            if node_pods.error:
                return Unreadable(f"pods on node {name}: {node_pods.error}")
        return tuple(pod for _, node_pods in sorted(self.state.items()) for pod in node_pods.pods)

    def read(self) -> frozenset[str]:
        """Returns the nodes whose pods were listed."""
        return frozenset(name for name, node_pods in self.state.items() if not node_pods.error)

    def undecoded(self) -> tuple[codec.Undecodable, ...]:
        """Returns the pods on draining nodes that exist but could not be decoded."""
        return tuple(bad for _, node_pods in sorted(self.state.items()) for bad in node_pods.undecoded)

    async def ask(self, name: str) -> None:
        """Lists the pods on a node; drops the answer if the node is not drained any more by then."""
        asked_at = self._clock.monotonic()
        try:
            listing = await self._client.listing(Pod, field_selector=f"spec.nodeName={name}")
            node_pods = PodsOfNode(tuple(listing.items), undecoded=listing.undecoded)
        except (KubeError, codec.DecodeError) as error:
            node_pods = PodsOfNode(error=str(error))
        if name not in self._since:
            return  # it is done draining
        self._read[name] = asked_at
        before = self.state.get(name)
        self.state = {**self.state, name: node_pods}
        if before != node_pods:
            self._on_change()


K = TypeVar("K", bound=Object)
VERSION = NamespacedName("", "version")
DEPLOYMENT = NamespacedName(MCO_NAMESPACE, MCO_DEPLOYMENT)


def observe(
    caches: Caches,
    *,
    alerts: tuple[Alert, ...] | Unreadable | None,
    draining_pods: tuple[Pod, ...] | Unreadable,
    unread_pods: tuple[Undecodable, ...] = (),
    drains_read: frozenset[str] | None = None,
) -> Snapshot:
    """Returns the present objects; a kind that can no longer be watched counts as unreadable.

    `unread_pods` are pods on draining nodes that exist but could not be decoded. `drains_read` are the nodes whose pods
    were listed, None for all that are drained.
    """
    pools = _objects_of(caches.pools)
    problems = {
        f"{cache.kind.__name__} {bad.key}": bad.problem
        for cache in caches.all()
        if cache is not caches.versions and cache.ready
        for bad in cache.undecoded
    }
    problems |= {f"Pod {bad.key}": bad.problem for bad in unread_pods}
    partly = {cache.kind.__name__: "; ".join(cache.incomplete) for cache in caches.all() if cache.incomplete}
    incomplete_kinds = {field: partly[kind] for field, kind in LISTED.items() if kind in partly}
    return Snapshot(
        cluster_version=_version(caches.versions),
        cluster_operators=_objects_of(caches.operators),
        machine_config_pools=pools if isinstance(pools, Unreadable) else sort_pools(pools),
        nodes=_objects_of(caches.nodes),
        machine_configs=_objects_of(caches.configs),
        machine_config_operator=_unreadable_cache(caches.deployments) or caches.deployments.get(DEPLOYMENT),
        alerts=alerts,
        pending_pods=_objects_of(caches.pods),
        draining_pods=draining_pods,
        pod_disruption_budgets=_objects_of(caches.budgets),
        undecoded=tuple(sorted(problems.items())),
        incomplete=incomplete_kinds,
        drains_read=drains_read,
    )


def observe_kubernetes(caches: KubernetesCaches, others: WatchedKubernetes, drains: DrainingPods) -> KubernetesSnapshot:
    """Returns what is known now of a cluster without a ClusterVersion."""
    problems = {
        f"{cache.kind.__name__} {bad.key}": bad.problem
        for cache in caches.all()
        if cache.ready
        for bad in cache.undecoded
    }
    problems |= {f"Pod {bad.key}": bad.problem for bad in drains.undecoded()}
    watched: dict[str, Cache[Any]] = {
        "nodes": caches.nodes,
        "pending_pods": caches.pods,
        "pod_disruption_budgets": caches.budgets,
    }
    fields: dict[str, Any] = {field: _objects_of(cache) for field, cache in watched.items()}
    return KubernetesSnapshot(
        **fields,
        **others.fields,
        draining_pods=drains.pods(),
        drains_read=drains.read(),
        undecoded=tuple(sorted(problems.items())),
        incomplete={field: "; ".join(cache.incomplete) for field, cache in watched.items() if cache.incomplete},
    )


def _version(cache: Cache[ClusterVersion]) -> ClusterVersion | Unreadable:
    version = _unreadable_cache(cache) or cache.get(VERSION)
    why = next((bad.problem for bad in cache.undecoded), "there is no ClusterVersion of the name version")
    return version or Unreadable(why)


def _objects_of(cache: Cache[K]) -> tuple[K, ...] | Unreadable:
    return _unreadable_cache(cache) or tuple(sorted(cache.all(), key=key_of))


def _unreadable_cache(cache: Cache[Any]) -> Unreadable | None:
    if cache.ready:
        return None
    return Unreadable(cache.error or f"{cache.kind.__name__} is not listed yet")


log = structlog.get_logger("updatestatus")
KEY = "cluster"


@dataclass(frozen=True, slots=True)
class Timing:
    """Delays in seconds between passes.

    A change is handled after `quiet_s`. After an assessment that led to a write, the next one follows `interval_s`
    later at the earliest, and not before as long as it took has passed. Without changes, the next pass follows after at
    most `longest_s`.
    """

    quiet_s: float = 0.1
    interval_s: float = 0.3
    longest_s: float = 30.0


@dataclass(frozen=True, slots=True)
class Now:
    """The time for computing insights: the clock's, or `fixed` if it is set (a cluster imported from a dump).

    How long a node has been not ready is always computed by the clock, as `oc` does in its own examples.
    """

    clock: Clock
    fixed: datetime | None = None

    def insights(self) -> datetime:
        """Returns the time at which insights are computed."""
        return self.fixed or self.clock.now()

    def nodes(self) -> datetime | None:
        """Returns the time by which nodes are assessed, or None if it is the time of the insights."""
        return self.clock.now() if self.fixed else None


@dataclass(frozen=True, slots=True)
class Sources:
    """What the controller reads besides its watches; `kubernetes` on a cluster without a ClusterVersion."""

    drains: DrainingPods
    alerts: Alerts
    components: WatchedComponents
    kubernetes: WatchedKubernetes | None = None


class UpdateStatusController:
    """The control loop: `run` works until cancelled, and sources call `on_change`.

    `confirmed_at` is the start of the last pass after which the object was what the cluster is, None before the first.
    """

    def __init__(
        self,
        *,
        caches: Caches | KubernetesCaches,
        queue: WorkQueue[str],
        clock: Clock,
        metrics: Metrics,
        now: Now | None = None,
        timing: Timing | None = None,
    ) -> None:
        self._caches = caches
        self._queue = queue
        self._clock = clock
        self._metrics = metrics
        self._now = now or Now(clock)
        self._timing = timing or Timing()
        self._changed = True
        self.confirmed_at: datetime | None = None
        self._not_before = self._look_at = clock.monotonic()
        caches.on_change(self.on_change)

    def on_change(self) -> None:
        """Records that an input of the insights changed, and queues a pass."""
        self._changed = True
        self.on_echo()

    def on_echo(self) -> None:
        """Queues a pass after the UpdateStatus object changed, by this controller or another client."""
        self._queue.add_after(KEY, max(self._timing.quiet_s, self._not_before - self._clock.monotonic()))

    async def run(self, keeper: UpdateStatusStore, sources: Sources) -> None:
        """Processes keys until cancelled."""
        self.on_change()
        while True:
            key = await self._queue.get()
            try:
                await self.handle(key, keeper, sources)
            finally:
                self._queue.done(key)

    async def handle(self, key: str, keeper: UpdateStatusStore, sources: Sources) -> None:
        """Runs one pass and retries it after an error; an unexpected error must not end the controller."""
        try:
            await self._pass(keeper, sources)
        except Conflict as error:
            log.debug("decided on an old version", error=str(error))
        except (KubeError, DecodeError) as error:
            log.warning("the object could not be written", error=str(error), failures=self._queue.failures(key))
        except asyncio.CancelledError:
            raise
        except Exception:
            log.exception("the assessment failed")
        else:
            self._queue.forget(key)
            return
        self._changed = True
        self._queue.add_rate_limited(key)

    async def _pass(self, keeper: UpdateStatusStore, sources: Sources) -> None:
        """Runs one pass, unless it is too early for one: observes, assesses, and writes what changed."""
        if self._is_too_early(keeper) or (sources.kubernetes is not None and sources.kubernetes.lacking):
            return
        wait_s = self._wait_s(keeper)
        if wait_s > 0:
            # The queue keeps one delay for a key, the shortest: the event of this pass replaced the scheduled one.
            self._queue.add_after(KEY, wait_s)
            return
        self._changed = False
        begun, begun_at = self._clock.monotonic(), self._clock.now()
        previous = await keeper.read()
        snapshot = self._observe(sources, held_up_nodes(previous))
        status = self._assess_timed(snapshot, previous, keeper.room)
        if status != previous or not keeper.exists:
            await keeper.write(status)
            # Counted from the start of the pass, so that a slow server does not lengthen the interval. A pause as long
            # as the pass is always left: with 20,000 nodes or a slow server, half of the time is not the controller's.
            now = self._clock.monotonic()
            pause_s = max(self._timing.interval_s / 4, now - begun)
            self._not_before = max(begun + self._timing.interval_s, now + pause_s)
            self._metrics.writes.inc()
        self.confirmed_at = begun_at
        self._metrics.confirm(status, begun_at.timestamp())
        self._look_again(snapshot)

    def _observe(self, sources: Sources, held_up: frozenset[str]) -> Snapshot | KubernetesSnapshot:
        """Returns what is known now, and has the pods of the nodes read that are drained, `held_up` ones at once."""
        if isinstance(self._caches, KubernetesCaches):
            assert sources.kubernetes is not None
            of_kubernetes = observe_kubernetes(self._caches, sources.kubernetes, sources.drains)
            sources.drains.follow(leaving_nodes(readable(of_kubernetes.nodes)), at_once=held_up)
            return of_kubernetes
        snapshot = observe(
            self._caches,
            alerts=sources.alerts.state,
            draining_pods=sources.drains.pods(),
            unread_pods=sources.drains.undecoded(),
            drains_read=sources.drains.read(),
        )
        snapshot = sources.components.state.within(snapshot)
        nodes = readable(snapshot.nodes)
        moving = [node.metadata.name for node in nodes if is_drain_wanted(node) or is_moving(node)]
        sources.drains.follow(moving, at_once=held_up)
        cluster = snapshot.cluster_version
        version = cluster.status.desired.version if not isinstance(cluster, Unreadable) else ""
        further = further_namespaces(readable(snapshot.cluster_operators), version)
        sources.components.follow(bool(moving) or is_under_way(snapshot), moving, further)
        return snapshot

    def _is_too_early(self, keeper: UpdateStatusStore) -> bool:
        """Reports whether an input is unknown: half a cluster's status would end insights and start new ones."""
        return bool(self._caches.waiting() or keeper.lacking)

    def _assess_timed(
        self, snapshot: Snapshot | KubernetesSnapshot, previous: UpdateStatusStatus | None, room: Room
    ) -> UpdateStatusStatus:
        now, nodes = self._now.insights(), self._now.nodes()
        with self._metrics.assessment.time():
            return assess(
                snapshot,
                previous,
                now,
                node_now=nodes,
                max_bytes=room.bytes,
                others_pools=room.pools,
                full=room.full,
            )

    def _look_again(self, snapshot: Snapshot | KubernetesSnapshot) -> None:
        longest_s = self._timing.longest_s
        delay_s = min(next_change_s(snapshot, self._now.insights()) or longest_s, longest_s)
        self._look_at = self._clock.monotonic() + delay_s
        self._queue.add_after(KEY, delay_s)

    def _wait_s(self, keeper: UpdateStatusStore) -> float:
        """Returns the seconds until insights may have changed, by an input or by time alone, and may be written."""
        changed = self._changed or not keeper.is_current
        return (self._not_before if changed else self._look_at) - self._clock.monotonic()
