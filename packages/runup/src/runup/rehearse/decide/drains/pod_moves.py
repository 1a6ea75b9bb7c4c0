"""The pods of a simulation: evicted, ended, recreated, placed, ready; and which workloads are down meanwhile."""

from __future__ import annotations

import heapq
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import takewhile

from runup.rehearse.decide.drains import cluster_state
from runup.rehearse.decide.drains import placement_filters as preemption
from runup.rehearse.decide.drains.drain_result import Outage, Preempted, Unplaced
from runup.rehearse.decide.drains.pod_shapes import Shape
from runup.rehearse.decide.drains.starting_state import StartingState

# Nodes that are compared for one pod once they are found to fit; the scheduler samples, too.
_COMPARED = 16
# Pods end, and the next ones are made, so many seconds earlier or later than the grace periods say: on real nodes 0.6
# to 1.7 s later (docs/how-to/drains.md, Accuracy).
_RACE_S = 2
# A pod that made others end so often and got no place would do so for ever: their successors take its room again, as
# they may where a topology spread or a separate affinity keeps it away (kube-scheduler does not end that either).
_MOST_PREEMPTIONS = 10
# Pods that are looked at as rivals of one: more would only take time.
_MOST_RIVALS = 200


class EventQueue:
    """The events of the simulation by time in seconds; those of one moment run in the order of their addition."""

    def __init__(self) -> None:
        self.now = 0
        self._events: list[tuple[int, int, Callable[[], None]]] = []
        self._number = 0

    def at(self, moment: int, event: Callable[[], None]) -> None:
        """Adds an event."""
        self._number += 1
        heapq.heappush(self._events, (max(moment, self.now), self._number, event))

    def run(self, after_each_time: Callable[[], None]) -> None:
        """Runs all events, and `after_each_time` after those of each moment."""
        while self._events:
            self.now = self._events[0][0]
            while self._events and self._events[0][0] == self.now:
                heapq.heappop(self._events)[2]()
            after_each_time()


class PodMoves:
    """Moves the pods of a state. `budget_grew` and `pod_gone` are called when a drain may continue."""

    def __init__(self, state: StartingState, agenda: EventQueue) -> None:
        self._state, self._agenda, self._filters = state, agenda, state.filters
        self.budget_grew: Callable[[cluster_state.PodState], None] = lambda _pod: None
        self.pod_gone: Callable[[cluster_state.PodState, cluster_state.NodeRoom], None] = lambda _pod, _node: None
        # The pods that wait for a place, by shape.
        self._waiting: dict[int, deque[cluster_state.PodState]] = {}
        self._unmade: dict[str, list[cluster_state.PodState]] = defaultdict(list)
        # Pods that come back to their node, by its name.
        self._away: dict[str, list[cluster_state.PodState]] = defaultdict(list)
        self._freed = dict(state.nodes)
        self._moved = True
        self._turn: dict[bytes, int] = {}
        # The nodes on which pods end for another one, and those other pods by the name of the node.
        self._nominated: dict[int, cluster_state.NodeRoom] = {}
        self._awaited: dict[str, dict[int, cluster_state.PodState]] = {}
        # How often each pod that waits has made others end.
        self._preemptions: Counter[int] = Counter()
        self._hopeless: tuple[int, set[int]] = (-1, set())
        # What was placed lately, with the time, the last first.
        self._placed: deque[tuple[int, cluster_state.PodState]] = deque(maxlen=_MOST_RIVALS)
        self._lowest = min((pod.shape.spec.priority for pod in state.pods), default=0)
        self._unplaced: list[Unplaced] = []
        self._preempted: list[Preempted] = []
        self._next_id = len(state.pods)
        self.evicted = 0
        for pod in state.pods:
            if pod.phase == cluster_state.PENDING:
                self._add_to_waiting(pod)
            elif pod.phase == cluster_state.TERMINATING:
                agenda.at(pod.shape.grace_s, lambda pod=pod: self._end_pod(pod))  # type: ignore[misc]

    def terminate(self, pod: cluster_state.PodState, reason: str) -> None:
        """Begins to end a running pod: a ReplicaSet creates the next at once, a StatefulSet once this one has ended."""
        node = pod.node
        assert node is not None
        self.evicted += 1
        self._filters.count_spread(pod, node, -1)
        pod.phase = cluster_state.TERMINATING
        self._pod_not_ready(pod, reason)
        now, grace = self._agenda.now, pod.shape.grace_s
        self._agenda.at(now + grace, lambda: self._end_pod(pod))
        if pod.workload is not None and not (pod.workload.one_by_one or pod.workload.on_node):
            self._make_again(pod)

    def remove_with_node(self, pod: cluster_state.PodState, node: cluster_state.NodeRoom) -> None:
        """Takes a pod off a node that is removed, and has its workload make the next one, unless it has already."""
        before, workload, stays = pod.phase, pod.workload, pod.id in self._state.staying
        # Budgets expect no pod of a DaemonSet on a node that is gone.
        if before in (cluster_state.STARTING, cluster_state.RUNNING) and not stays:
            self._pod_not_ready(pod, f"{node.name} was removed")
        self._filters.remove(pod, node)
        pod.phase, pod.node = cluster_state.GONE, None
        if workload is None or stays:
            return
        self._state.quotas.take(pod.shape, -1)
        if workload.on_node:
            self._away[node.name].append(pod)
        elif before != cluster_state.TERMINATING or workload.one_by_one:
            self._make_again(pod, node.name)

    def node_is_back(self, node: cluster_state.NodeRoom) -> None:
        """Takes into account that a node takes pods again."""
        self._freed[node.name] = node
        for pod in self._away.pop(node.name, ()):
            successor = self._successor_of(pod, node.name)
            self._state.quotas.take(successor.shape)
            self._bind_to_node(successor, node)

    def place_waiting(self) -> None:
        """Places pods that wait, the most important first, where something has changed."""
        if not self._waiting or not (self._freed or self._moved):
            return
        freed, self._freed, self._moved = list(self._freed.values()), {}, False
        ordered = sorted(self._waiting.values(), key=lambda each: -each[0].shape.spec.priority)
        for waiting in ordered:
            shape = waiting[0].shape
            while waiting:
                # Only nodes on which something was freed can take a pod that depends on nothing else.
                nodes = self._filters.admitting(shape) if shape.is_dynamic else freed
                if not self._try_to_place(waiting[0], nodes):
                    break
                pod = waiting.popleft()
                self._note_placed(pod, pod.why)
            if not waiting:
                del self._waiting[shape.id]
        self._name_rivals_of_waiting()

    def homeless_pods(self) -> Iterator[cluster_state.PodState]:
        """Yields the pods that are on no node: they wait for one, a quota refuses them, or their node is away."""
        for pods in (*self._waiting.values(), *self._unmade.values(), *self._away.values()):
            yield from pods

    def results(self) -> tuple[tuple[Unplaced, ...], tuple[Outage, ...], tuple[Preempted, ...]]:
        """Returns the results, including moves that have not ended."""
        for waiting in self._waiting.values():
            # What keeps it from a place at the end, not what did when it was evicted.
            reason = self._explanation(waiting[0].shape)
            self._unplaced += [_unplaced_entry(pod, None, reason) for pod in waiting]
        for pods in self._unmade.values():
            self._unplaced += [_unplaced_entry(pod, None, pod.why) for pod in pods]
        outages = [
            Outage(workload.named, begun, ended, why)
            for workload in self._state.workloads.values()
            for begun, ended, why in (
                *workload.outages,
                *([(workload.down_since[0], None, workload.down_since[1])] if workload.down_since is not None else []),
            )
            # A pod that guards its node is down whenever its node is.
            if ended != begun and not workload.on_node
        ]
        return tuple(merge_same_waits(self._unplaced)), tuple(outages), tuple(self._preempted)

    def _end_pod(self, pod: cluster_state.PodState) -> None:
        """Removes a terminated pod from its node, and lets its workload make it again."""
        node = pod.node
        if pod.phase != cluster_state.TERMINATING or node is None:
            return
        self._filters.remove(pod, node)
        self._state.quotas.take(pod.shape, -1)
        pod.phase, pod.node = cluster_state.GONE, None
        self._moved = True
        self._freed[node.name] = node
        if pod.workload is not None and pod.workload.on_node:
            self._away[node.name].append(pod)
        elif pod.workload is not None and pod.workload.one_by_one:
            self._make_again(pod, node.name)
        for unmade in self._unmade.pop(pod.shape.namespace, ()):
            self._create_pod(unmade)
        self.pod_gone(pod, node)

    def _make_again(self, pod: cluster_state.PodState, node: str = "") -> None:
        assert pod.workload is not None
        self._create_pod(self._successor_of(pod, node or (pod.node.name if pod.node else "")))

    def _successor_of(self, pod: cluster_state.PodState, node: str) -> cluster_state.PodState:
        """Returns the next pod of the workload, which is created when this one leaves the node."""
        new = cluster_state.PodState(self._next_id, pod.name, pod.shape, pod.workload)
        self._next_id += 1
        new.moved_from = node
        new.is_new = True
        new.begun_s = pod.begun_s + self._agenda.now
        new.since = self._agenda.now
        return new

    def _create_pod(self, pod: cluster_state.PodState) -> None:
        """Creates a pod and tries to place it; a pod that a quota refuses waits until the quota has room."""
        pod.why = self._state.quotas.why_not(pod.shape)
        if pod.why:
            self._unmade[pod.shape.namespace].append(pod)
            return
        self._state.quotas.take(pod.shape)
        if not self._try_to_place(pod, self._filters.admitting(pod.shape)):
            self._add_to_waiting(pod)
        elif pod.since != self._agenda.now:
            self._note_placed(pod, "a quota had no room for it")

    def _add_to_waiting(self, pod: cluster_state.PodState) -> None:
        waiting = self._waiting.setdefault(pod.shape.id, deque())
        last = waiting[-1] if waiting else None
        alike = last if last is not None and (last.since, last.is_new) == (pod.since, pod.is_new) else None
        # Others of the shape may have begun to wait when other nodes were away.
        pod.why = alike.why if alike is not None else self._explanation(pod.shape)
        if preemption.SPREAD in pod.why:
            pod.hint = alike.hint if alike is not None else self._filters.lone_places(pod.shape)
        if alike is not None and alike.workload is pod.workload:
            pod.rivals = alike.rivals
        elif pod.is_new:
            pod.rivals = self._rivals_of(pod, self._placed_since(self._agenda.now - _RACE_S))
        waiting.append(pod)

    def _name_rivals_of_waiting(self) -> None:
        """Notes for each pod that still waits the workloads that got, at this moment, the room that it might have got.

        kube-scheduler tries the waiting pods of one priority in the order in which it tried them last, and each of them
        only once its backoff is over (kubernetes, `pkg/scheduler/backend/queue`): which is first is not known.
        """
        placed = self._placed_since(self._agenda.now)
        if not placed:
            return
        for waiting in self._waiting.values():
            first = waiting[0]
            rivals = self._rivals_of(first, placed)
            for pod in waiting if rivals else ():
                if pod.workload is first.workload:
                    pod.rivals = tuple(sorted({*pod.rivals, *rivals}))

    def _placed_since(self, moment: int) -> list[cluster_state.PodState]:
        """Returns the pods that were placed at that time or later."""
        return [pod for placed_at, pod in takewhile(lambda each: each[0] >= moment, self._placed)]

    def _rivals_of(self, pod: cluster_state.PodState, placed: Iterable[cluster_state.PodState]) -> tuple[str, ...]:
        """Returns the workloads of those `placed` pods that have the room which the pod would have got."""
        shape, filters = pod.shape, self._filters
        if filters.why_nowhere(shape):
            return ()
        by_node: dict[cluster_state.NodeRoom, list[cluster_state.PodState]] = defaultdict(list)
        for other in placed:
            # Of two pods of different priority the more important one gets the room in either order.
            is_no_rival = other.workload is pod.workload or other.shape.spec.priority != shape.spec.priority
            if other.node is not None and not is_no_rival and filters.admits(shape, other.node):
                by_node[other.node].append(other)
        rivals: set[str] = set()
        for node, others in by_node.items():
            if not self._takes_without(shape, node, others):
                continue
            alone = [other for other in others if self._takes_without(shape, node, [other])]
            # Those each of which took the room alone; where none did, all of them took it together.
            rivals.update(map(_owner_name, alone or others))
        return tuple(sorted(rivals))

    def _takes_without(self, shape: Shape, node: cluster_state.NodeRoom, others: list[cluster_state.PodState]) -> bool:
        """Returns whether the node would take a pod of the shape if some of its pods were not there."""
        for other in others:
            self._filters.remove(other, node)
        taken = self._filters.takes(shape, node)
        for other in others:
            self._filters.add(other, node)
        return taken

    def _note_placed(self, pod: cluster_state.PodState, reason: str) -> None:
        if not (pod.is_new or self._agenda.now):
            return
        self._unplaced.append(_unplaced_entry(pod, self._agenda.now, reason))

    def _try_to_place(self, pod: cluster_state.PodState, nodes: list[cluster_state.NodeRoom]) -> bool:
        """Binds the pod to a node, or begins a preemption for it; reports whether it was bound."""
        node = self._find_node(pod, nodes)
        node = node or self._preempt_for(pod)
        if node is None:
            return False
        self._bind_to_node(pod, node)
        return True

    def _bind_to_node(self, pod: cluster_state.PodState, node: cluster_state.NodeRoom) -> None:
        """Puts a pod on its node, where it starts."""
        pod.phase, pod.node = cluster_state.STARTING, node
        self._nominate(pod, None)
        self._filters.add(pod, node)
        self._placed.appendleft((self._agenda.now, pod))
        while self._placed[-1][0] < self._agenda.now - _RACE_S:
            self._placed.pop()
        self._moved = True
        start = pod.workload.start_s if pod.workload is not None else 0
        if start is not None:
            self._agenda.at(self._agenda.now + start, lambda: self._pod_started(pod))

    def _find_node(
        self, pod: cluster_state.PodState, nodes: list[cluster_state.NodeRoom]
    ) -> cluster_state.NodeRoom | None:
        """Returns the emptiest of some nodes that take the pod; where to begin to look goes round."""
        shape, filters = pod.shape, self._filters
        if not nodes or ((shape.claims or shape.spec.scheduling_gates) and filters.why_nowhere(shape)):
            return None
        count = len(nodes)
        begin = self._turn.get(shape.static, 0) % count
        best, best_room, scored_nodes = None, -1.0, 0
        is_part = nodes is not filters.admitting(shape)
        for index in range(begin, begin + count):
            node = nodes[index - count if index >= count else index]
            if not filters.takes(shape, node) or (is_part and not filters.admits(shape, node)):
                continue
            if node.name in self._awaited and self._is_kept_for_others(shape, node):
                continue
            room = _free_share(node.cpu, node.allocatable.get("cpu", 0)) + _free_share(
                node.memory, node.allocatable.get("memory", 0)
            )
            if room > best_room:
                best, best_room = node, room
            scored_nodes += 1
            if scored_nodes >= _COMPARED:
                self._turn[shape.static] = index + 1
                break
        return best

    def _preempt_for(self, pod: cluster_state.PodState) -> cluster_state.NodeRoom | None:
        """Makes pods of lower priority end, where that gives the pod a place; returns a node that has one already.

        Such a node was kept for another pod that no longer waits for it.
        """
        shape = pod.shape
        if shape.spec.priority <= self._lowest or self._waits_for_victims(pod):
            return None
        if self._preemptions[pod.id] >= _MOST_PREEMPTIONS:
            self._nominate(pod, None)
            return None
        if self._hopeless[0] != self._agenda.now:
            self._hopeless = (self._agenda.now, set())
        if shape.id in self._hopeless[1]:
            self._nominate(pod, None)
            return None
        candidate = preemption.best_candidate(preemption.candidates(shape, self._filters, self._important_added))
        self._nominate(pod, candidate.node if candidate else None)
        if candidate is None:
            self._hopeless[1].add(shape.id)
            return None
        if not candidate.victims:
            return candidate.node
        self._preemptions[pod.id] += 1
        for victim in candidate.victims:
            if victim.phase in (cluster_state.RUNNING, cluster_state.STARTING):
                self._preempted.append(Preempted(victim.key, _owner_name(pod), candidate.node.name, self._agenda.now))
                self.terminate(victim, f"preempted by {_owner_name(pod)}")
        return None

    def _nominate(self, pod: cluster_state.PodState, node: cluster_state.NodeRoom | None) -> None:
        """Notes on which node pods end for this one; None for no node any more."""
        before = self._nominated.pop(pod.id, None)
        if before is not None:
            awaited = self._awaited[before.name]
            del awaited[pod.id]
            if not awaited:
                del self._awaited[before.name]
        if node is not None:
            self._nominated[pod.id] = node
            self._awaited.setdefault(node.name, {})[pod.id] = pod

    def _is_kept_for_others(self, shape: Shape, node: cluster_state.NodeRoom) -> bool:
        """Reports whether the node would not take the shape once the more important pods that await room there have it.

        As kube-scheduler does: kubernetes, `pkg/scheduler/framework/runtime/framework.go`
        (RunFilterPluginsWithNominatedPods), which counts those of the same priority, too.
        """
        with self._important_added(shape, node):
            return not self._filters.takes(shape, node)

    @contextmanager
    def _important_added(self, shape: Shape, node: cluster_state.NodeRoom) -> Iterator[None]:
        """Counts the more important pods that await room on the node as if they were there."""
        awaiting = self._awaited.get(node.name, {}).values()
        important = [pod for pod in awaiting if pod.shape.spec.priority > shape.spec.priority]
        for pod in important:
            self._filters.add(pod, node)
        try:
            yield
        finally:
            for pod in important:
                self._filters.remove(pod, node)

    def _explanation(self, shape: Shape) -> str:
        """Returns why no node takes the pod, in the scheduler's words; room that is kept for others is not free."""

        def why_not(shape: Shape, node: cluster_state.NodeRoom) -> tuple[str, ...]:
            with self._important_added(shape, node):
                return self._filters.why_not(shape, node)

        return self._filters.explanation(shape, why_not if self._awaited else None)

    def _waits_for_victims(self, pod: cluster_state.PodState) -> bool:
        """Reports whether the pod's node is nominated and its victims are still terminating."""
        node = self._nominated.get(pod.id)
        return node is not None and any(
            other_pod.phase == cluster_state.TERMINATING and other_pod.shape.spec.priority < pod.shape.spec.priority
            for other_pod in node.pods.values()
        )

    def _pod_started(self, pod: cluster_state.PodState) -> None:
        """Counts the pod as ready, for its budgets and for its workload."""
        if pod.phase != cluster_state.STARTING:
            return
        pod.phase, pod.ready = cluster_state.RUNNING, True
        for budget in pod.shape.budgets:
            budget.healthy += 1
        workload = pod.workload
        if workload is not None:
            workload.ready += 1
            if workload.down_since is not None:
                begun, reason = workload.down_since
                workload.outages.append((begun, self._agenda.now, reason))
                workload.down_since = None
        if pod.shape.budgets:
            self.budget_grew(pod)

    def _pod_not_ready(self, pod: cluster_state.PodState, reason: str) -> None:
        """Counts the pod as not ready; the workload is down for `reason` if it was the last one."""
        if not pod.ready:
            return
        pod.ready = False
        for budget in pod.shape.budgets:
            budget.healthy -= 1
        workload = pod.workload
        if workload is not None:
            workload.ready -= 1
            workload.least = min(workload.least, workload.ready)
            if not workload.ready:
                workload.down_since = (self._agenda.now, reason)


def _free_share(free: int, of: int) -> float:
    return free / of if of else 0.0


def _owner_name(pod: cluster_state.PodState) -> str:
    return pod.workload.named if pod.workload is not None else f"Pod {pod.key}"


def _unplaced_entry(pod: cluster_state.PodState, to_s: int | None, reason: str) -> Unplaced:
    moved_from = (pod.moved_from,) if pod.moved_from else ()
    return Unplaced(
        workload=_owner_name(pod),
        pods=1,
        from_s=pod.since,
        to_s=to_s,
        why=reason,
        moved_from=moved_from,
        before=not pod.is_new,
        rivals=pod.rivals,
        hint=pod.hint,
    )


def merge_same_waits(unplaced: Iterable[Unplaced]) -> list[Unplaced]:
    """Returns one entry for the pods of one workload that waited at the same time."""
    groups: dict[tuple[str, int, int | None, bool], list[Unplaced]] = defaultdict(list)
    for entry in unplaced:
        groups[entry.workload, entry.from_s, entry.to_s, entry.before].append(entry)
    return [
        Unplaced(
            workload=workload,
            pods=len(entries),
            from_s=from_s,
            to_s=to_s,
            why=entries[0].why,
            moved_from=tuple(sorted({node for each in entries for node in each.moved_from})),
            before=before,
            rivals=tuple(sorted({rival for each in entries for rival in each.rivals})),
            hint=next((each.hint for each in entries if each.hint), ""),
        )
        for (workload, from_s, to_s, before), entries in groups.items()
    ]
