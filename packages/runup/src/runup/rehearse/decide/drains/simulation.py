"""Simulates the drains of all pools: values in, a `DrainResult` out.

A node is cordoned, its pods are evicted as their budgets allow, it is updated once they are gone, and takes pods again.
Meanwhile what makes pods makes them again, the scheduler places them, and they become ready after as long as their
workload's pods took before. Pools continue side by side, or one after another where they say so. An eviction that is
refused is tried again whenever a pod of the budget has become ready. What is not gone when the time limit of the drain
is over is taken to be deleted by hand, so that all nodes are seen and not only the first that is held up.

Rules: the eviction API and kubectl's drain (`kubekit.rules.eviction_rules`), kube-scheduler (`placement_filters`,
`preemption`), the machine-config operator (`pkg/controller/node`: nodes in the order of zone and age, unavailable nodes
count against maxUnavailable).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from kubekit.api.core_v1 import Node
from kubekit.rules.eviction_rules import refusal_of
from kubekit.rules.node_rules import is_ready
from runup.rehearse.decide.drains import drain_result as critical_path
from runup.rehearse.decide.drains import drain_result as limits_of_knowledge
from runup.rehearse.decide.drains.cluster_state import RUNNING, STARTING, NodeRoom, PodState
from runup.rehearse.decide.drains.drain_result import Blocked, DrainResult, NodeDrain, PoolTimeline
from runup.rehearse.decide.drains.drained_cluster import DrainedCluster, DrainSettings, Pool
from runup.rehearse.decide.drains.pod_moves import EventQueue, PodMoves
from runup.rehearse.decide.drains.pod_shapes import BudgetState
from runup.rehearse.decide.drains.starting_state import StartingState, starting_state

NO_OWNER = "no owner recreates it, and the drain does not force it"
SEVERAL = "more than one budget is over it, which the eviction API refuses"


def simulate(cluster: DrainedCluster, settings: DrainSettings, now: datetime) -> DrainResult:
    """Returns what the drains of all pools come to, if they begin now."""
    simulation = Simulation(cluster, settings, now)
    simulation.run()
    return simulation.result()


@dataclass(slots=True, kw_only=True)
class _Drain:
    """The drain of a node that is under way; `remaining` are its pods that are not gone."""

    node: NodeRoom
    pool: _PoolRun
    from_s: int
    after: str
    remaining: dict[int, PodState] = field(default_factory=dict)
    blocked: dict[int, Blocked] = field(default_factory=dict)
    lost: list[str] = field(default_factory=list)
    evicted: int = 0
    last: str = ""
    let_go: dict[int, str] = field(default_factory=dict)


@dataclass(slots=True, kw_only=True)
class _PoolRun:
    """A pool as it is updated; `free` are the nodes whose places others may take (empty text: from the beginning)."""

    pool: Pool
    limit: int
    queue: deque[str]
    free: deque[str]
    held: str = ""
    done: list[NodeDrain] = field(default_factory=list)
    active: int = 0
    to_lose: int = 0
    is_begun: bool = False

    @property
    def is_over(self) -> bool:
        """Returns whether no further node of the pool will be drained."""
        return not self.active and (not self.queue or bool(self.held) or self.pool.paused)


class Simulation:
    """The drains of all pools: `run` simulates them, `result` returns the result. `state` and `moves` are current."""

    def __init__(self, cluster: DrainedCluster, settings: DrainSettings, now: datetime) -> None:
        self._cluster, self._settings, self._now = cluster, settings, now
        self.state: StartingState = starting_state(cluster, settings)
        self._agenda = EventQueue()
        self.moves = PodMoves(self.state, self._agenda)
        self.moves.budget_grew = self._retry_evictions
        self.moves.pod_gone = self._pod_gone
        self._drains: dict[str, _Drain] = {}
        # Pods whose eviction was refused, by the budget, in the order in which they asked.
        self._asking: dict[BudgetState, dict[int, tuple[_Drain, PodState]]] = {}
        by_name = {node.metadata.name: node for node in cluster.nodes}
        self._pools = [self._start_pool_run(pool, by_name) for pool in cluster.pools]

    def run(self, look: Callable[[], None] = lambda: None) -> None:
        """Plays all events, and calls `look()` after those of each moment."""

        def end_moment() -> None:
            self.moves.place_waiting()
            look()

        # Pods that have a place already, and only have not got it yet, get it before the first drain.
        self.moves.place_waiting()
        self._begin_pools()
        self._agenda.run(end_moment)

    @property
    def node_count(self) -> int:
        """Number of nodes that the drains of all pools concern."""
        return sum(len(run.pool.nodes) for run in self._pools)

    @property
    def drained_count(self) -> int:
        """Number of nodes that are drained so far."""
        return sum(len(run.done) for run in self._pools)

    def result(self) -> DrainResult:
        """Returns what the drains have come to."""
        unplaced, outages, preempted = self.moves.results()
        pools = tuple(
            PoolTimeline(
                name=run.pool.name,
                at_once=run.limit,
                surge=run.pool.surge,
                paused=run.pool.paused,
                nodes=tuple(run.done),
                held=run.held,
                node_count=len(run.pool.nodes),
            )
            for run in self._pools
        )
        nodes = [node for pool in pools for node in pool.nodes]
        return DrainResult(
            started=self._now,
            duration_s=max((node.back_s or node.drained_s for node in nodes), default=0),
            pools=pools,
            unplaced=tuple(sorted(unplaced, key=lambda each: (each.before, each.from_s, each.workload))),
            outages=tuple(sorted(outages, key=lambda each: (each.to_s is not None, -(each.seconds or 0)))),
            preempted=preempted,
            path=critical_path.critical_path(nodes),
            unknown=limits_of_knowledge.unknown_reasons(self._cluster),
            assumed=limits_of_knowledge.assumptions(
                self._cluster, self._settings, self.state.without_history, self.state.never_ready
            ),
            trust=limits_of_knowledge.trust(unplaced),
            evicted=self.moves.evicted,
        )

    def _start_pool_run(self, pool: Pool, nodes: dict[str, Node]) -> _PoolRun:
        """Returns the state of a pool before its first drain: how many nodes may be away at once."""
        limit = self._settings.max_unavailable or pool.surge or pool.at_once
        # Nodes that are not ready count as unavailable, and cost places.
        away = [name for name in pool.nodes if name in nodes and not is_ready(nodes[name])]
        free_places = limit if pool.surge else limit - len(away)
        held_text = "" if pool.paused else pool.held
        if not held_text and free_places < 1 and len(away) < len(pool.nodes):
            held_text = f"{', '.join(sorted(away)[:3])} not ready, and at most {limit} of its nodes may be unavailable"
        queue = deque(name for name in pool.nodes if name in self.state.nodes)
        if not pool.surge:
            # A node that is away anyway goes first: it costs no place.
            queue = deque(sorted(queue, key=lambda name: name not in away))
        # More places than nodes would only take memory.
        free = deque([""] * min(max(free_places, len(away) if not held_text else 0), len(queue)))
        return _PoolRun(
            pool=pool, limit=limit, queue=queue, free=free, held=held_text, to_lose=self._settings.nodes_lost
        )

    def _begin_pools(self) -> None:
        """Begins each pool whose predecessors are finished."""
        finished_pools = {run.pool.name for run in self._pools if run.is_over}
        for run in self._pools:
            if not run.is_begun and not run.is_over and set(run.pool.after) & self._pool_names() <= finished_pools:
                run.is_begun = True
                self._begin_next_drains(run)

    def _pool_names(self) -> set[str]:
        return {run.pool.name for run in self._pools}

    def _begin_next_drains(self, run: _PoolRun) -> None:
        """Begins the drains of as many nodes of the pool as have a place, within the window."""
        while run.queue and run.free and not run.held:
            window = self._settings.window
            if window is not None:
                moment = self._now + timedelta(seconds=self._agenda.now)
                opens = window.next_open(moment)
                if opens > moment:
                    self._agenda.at(self._seconds_since_start(opens), lambda: self._begin_next_drains(run))
                    return
            node, drained_before = self.state.nodes[run.queue.popleft()], run.free.popleft()
            run.active += 1
            if run.pool.surge:
                self._add_surge_node(run, node, drained_before)
            else:
                self._begin_drain(run, node, drained_before)

    def _seconds_since_start(self, moment: datetime) -> int:
        return int(-((self._now - moment).total_seconds() // 1))

    def _add_surge_node(self, run: _PoolRun, old: NodeRoom, drained_before: str) -> None:
        """Adds a new node like the old one, which is drained when the new one is ready."""
        begun = self._agenda.now

        def add_ready_node() -> None:
            """Adds the surge node, with copies of the DaemonSets' pods, then drains the old one."""
            from msgspec.structs import replace as changed

            name = f"{old.source.metadata.name} (new)"
            labels = old.source.metadata.labels | {"kubernetes.io/hostname": name}
            copy_as_new_node = changed(old.source, metadata=changed(old.source.metadata, name=name, labels=labels))
            new = NodeRoom(copy_as_new_node, None, f"{old.name} (new)")
            new.cordoned = False
            new.limits = dict(old.limits)
            self.state.nodes[new.name] = new
            self.state.filters.nodes.append(new)
            self.state.filters.nodes_changed()
            for pod in tuple(old.pods.values()):
                if pod.id in self.state.staying:
                    self._copy_daemon_pod(pod, new)
            self.moves.node_is_back(new)
            self._begin_drain(run, old, drained_before, begun)

        self._agenda.at(begun + self._settings.node_update_s, add_ready_node)

    def _copy_daemon_pod(self, pod: PodState, node: NodeRoom) -> None:
        """Places a running copy of a DaemonSet's pod on the new node."""
        # A DaemonSet's pod on the new node: it takes its room, and stays.
        copy = PodState(-1 - len(self.state.staying), pod.name, pod.shape, None)
        copy.phase, copy.node = RUNNING, node
        self.state.staying.add(copy.id)
        self.state.filters.add(copy, node)

    def _begin_drain(self, run: _PoolRun, node: NodeRoom, drained_before: str, begun: int | None = None) -> None:
        """Cordons the node, and evicts its pods at the same moment of the simulation."""
        now = self._agenda.now
        drain = self._drains[node.name] = _Drain(
            node=node, pool=run, from_s=now if begun is None else begun, after=drained_before
        )
        node.cordoned = True
        self.state.filters.cordons_changed()
        # All nodes that begin at one moment are cordoned before the first pod is evicted.
        self._agenda.at(now, lambda: self._evict_all(drain))

    def _evict_all(self, drain: _Drain) -> None:
        """Tries to evict each pod of the node; deletes the remaining ones after the drain's timeout."""
        now, node = self._agenda.now, drain.node
        leaving = [pod for pod in node.pods.values() if pod.id not in self.state.staying]
        drain.remaining = {pod.id: pod for pod in leaving}
        if not leaving:
            self._node_drained(drain)
            return
        for pod in sorted(leaving, key=lambda each: each.key):
            self._evict_pod(drain, pod)
        self._agenda.at(now + self._settings.drain_timeout_s, lambda: self._delete_remaining(drain))

    def _evict_pod(self, drain: _Drain, pod: PodState) -> bool:
        """Evicts a pod or records the refusal; returns whether it was evicted."""
        if pod.phase not in (RUNNING, STARTING):
            return True
        refusal, budgets = self._eviction_refusal(pod)
        if not refusal:
            old = drain.blocked.get(pod.id)
            if old is not None:
                drain.blocked[pod.id] = replace(old, to_s=self._agenda.now)
            drain.evicted += 1
            if pod.workload is None:
                drain.lost.append(pod.key)
            self.moves.terminate(pod, f"{drain.node.name} was drained")
            return True
        if pod.id not in drain.blocked:
            drain.blocked[pod.id] = Blocked(
                pod=pod.key, why=refusal, by=tuple(map(str, budgets)), from_s=self._agenda.now, to_s=None
            )
        if len(budgets) == 1:
            self._asking.setdefault(budgets[0], {})[pod.id] = (drain, pod)
        return False

    def _eviction_refusal(self, pod: PodState) -> tuple[str, tuple[BudgetState, ...]]:
        """Returns why the pod cannot be evicted now, and which budgets refuse it; empty if it can."""
        if pod.workload is None and not self._settings.forces:
            return NO_OWNER, ()
        budgets = () if pod.is_pending else pod.shape.budgets
        if len(budgets) > 1:
            return SEVERAL, budgets
        if not budgets or refusal_of(budgets[0].current_counts(), ready=pod.ready) is None:
            return "", ()
        return budgets[0].refusal, budgets

    def _retry_evictions(self, pod: PodState) -> None:
        """Tries the evictions again that the pod's budgets refused before the pod was ready."""
        for budget in pod.shape.budgets:
            asking = self._asking.get(budget)
            for each in tuple(asking or ()):
                assert asking is not None
                drain, waiting = asking[each]
                if not self._evict_pod(drain, waiting):
                    # Others that are not ready may go even so.
                    continue
                drain.let_go[each] = f"budget {budget} let it go when {pod.key} was ready on {_name_of_node(pod.node)}"
                asking.pop(each, None)

    def _pod_gone(self, pod: PodState, node: NodeRoom) -> None:
        """Counts a pod as gone from a drain; the node is drained with its last pod."""
        drain = self._drains.get(node.name)
        if drain is None or drain.remaining.pop(pod.id, None) is None:
            return
        if drain.remaining:
            return
        grace = pod.shape.grace_s
        reason = drain.let_go.get(pod.id, "")
        drain.last = f"pod {pod.key} ended last (grace period {grace} s{'; ' + reason if reason else ''})"
        self._node_drained(drain)

    def _delete_remaining(self, drain: _Drain) -> None:
        """Deletes the pods that were never evicted, as an administrator would have to."""
        for pod in tuple(drain.remaining.values()):
            if pod.phase in (RUNNING, STARTING):
                for budget in pod.shape.budgets:
                    self._asking.get(budget, {}).pop(pod.id, None)
                drain.let_go[pod.id] = "deleted by hand when the time of the drain was over"
                if pod.workload is None:
                    drain.lost.append(pod.key)
                self.moves.terminate(pod, f"deleted by hand: {drain.node.name} could not be drained")

    def _node_drained(self, drain: _Drain) -> None:
        """Records the drain, and plans when the node comes back after its update."""
        run, node, now = drain.pool, drain.node, self._agenda.now
        del self._drains[node.name]
        is_lost = bool(run.pool.surge) or run.to_lose > 0
        if is_lost:
            run.to_lose -= not run.pool.surge
            node.removed = True
            self.state.filters.nodes.remove(node)
            self.state.filters.nodes_changed()
            for pod in tuple(node.pods.values()):
                self.moves.remove_with_node(pod, node)
        back = None if is_lost else now + self._settings.node_update_s
        record = NodeDrain(
            node=node.name,
            pool=run.pool.name,
            from_s=drain.from_s,
            drained_s=now,
            back_s=back,
            evicted=drain.evicted,
            after=drain.after,
            last=drain.last,
            blocked=tuple(drain.blocked.values()),
            lost=tuple(drain.lost),
        )
        run.done.append(record)
        self._agenda.at(now if back is None else back, lambda: self._return_node(run, node, is_lost=is_lost))

    def _return_node(self, run: _PoolRun, node: NodeRoom, *, is_lost: bool) -> None:
        """Uncordons the updated node, gives its place to the next one, and places waiting pods."""
        run.active -= 1
        run.free.append(node.name)
        if not is_lost:
            node.cordoned = node.was_cordoned and not self._settings.uncordons_all
            self.state.filters.cordons_changed()
            if not node.cordoned:
                self.moves.node_is_back(node)
        self.moves.place_waiting()
        self._begin_next_drains(run)
        if run.is_over:
            self._begin_pools()


def _name_of_node(node: NodeRoom | None) -> str:
    return node.name if node is not None else "no node"
