"""Decides which pods make way for one of higher priority.

As kube-scheduler does: kubernetes, `pkg/scheduler/framework/plugins/defaultpreemption` and
`pkg/scheduler/framework/preemption` (SelectVictimsOnNode, pickOneNodeForPreemption);
https://kubernetes.io/docs/concepts/scheduling-eviction/pod-priority-preemption/.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from runup.rehearse.decide.drains.budget_state import BudgetState
from runup.rehearse.decide.drains.cluster_state import NodeRoom, PodState
from runup.rehearse.decide.drains.placement_filters import Filters
from runup.rehearse.decide.drains.pod_shapes import Shape

# Nodes that are looked at for one pod: the scheduler also takes a part of a large cluster, at least a hundred.
_MOST_NODES = 100


@dataclass(frozen=True, slots=True)
class Candidate:
    """A node with the pods that have to go for another to be placed there, the most important first."""

    node: NodeRoom
    victims: tuple[PodState, ...]
    violations: int


def preempts(shape: Shape) -> bool:
    """Returns whether a pod of the shape may make others go."""
    return shape.spec.preemption_policy != "Never" and not shape.spec.scheduling_gates


def candidates(shape: Shape, filters: Filters) -> list[Candidate]:
    """Returns the nodes on which the pod can be placed once others have gone."""
    candidates_: list[Candidate] = []
    if not preempts(shape) or filters.why_nowhere(shape):
        return candidates_
    for node in filters.admitting(shape):
        if node.removed or not _has_lower_priority(shape, node) or not filters.can_be_helped(shape, node):
            continue
        candidate = _candidate_on_node(shape, node, filters)
        if candidate is not None:
            candidates_.append(candidate)
            if len(candidates_) >= _MOST_NODES:
                break
    return candidates_


def best_candidate(candidates_: Sequence[Candidate]) -> Candidate | None:
    """Returns the candidate that does the least harm: by budgets, by the victims' priority, by their number."""
    return min(candidates_, key=_harm_order, default=None)


def _harm_order(candidate: Candidate) -> tuple[int, int, int, int, float]:
    """Returns the sort key of kube-scheduler's pickOneNodeForPreemption: the least harm first."""
    priorities = [pod.shape.spec.priority for pod in candidate.victims]
    top = max(priorities)
    earliest = min(pod.begun_s for pod in candidate.victims if pod.shape.spec.priority == top)
    # Priorities may be negative; as in the scheduler, each pod counts beside its priority.
    return candidate.violations, top, sum(priority + 2**31 for priority in priorities), len(priorities), -earliest


def _has_lower_priority(shape: Shape, node: NodeRoom) -> bool:
    return any(pod.shape.spec.priority < shape.spec.priority for pod in node.pods.values())


def _candidate_on_node(shape: Shape, node: NodeRoom, filters: Filters) -> Candidate | None:
    """Returns the fewest victims that make room on the node, None if even all lesser pods do not."""
    lesser = [pod for pod in node.pods.values() if pod.shape.spec.priority < shape.spec.priority]
    for pod in lesser:
        filters.remove(pod, node)
    removed_pods = list(lesser)
    try:
        if not filters.takes(shape, node):
            return None
        # The more important are spared first, and before all those whose budgets would be violated.
        lesser.sort(key=lambda pod: (-pod.shape.spec.priority, pod.begun_s))
        violating = _pods_violating_budgets(lesser)
        victims: list[PodState] = []
        violations = 0
        for pod in sorted(lesser, key=lambda each: each.id not in violating):
            filters.add(pod, node)
            removed_pods.remove(pod)
            if not filters.takes(shape, node):
                filters.remove(pod, node)
                removed_pods.append(pod)
                victims.append(pod)
                violations += pod.id in violating
        victims.sort(key=lambda pod: (-pod.shape.spec.priority, pod.begun_s))
        return Candidate(node, tuple(victims), violations)
    finally:
        for pod in removed_pods:
            filters.add(pod, node)


def _pods_violating_budgets(pods: Sequence[PodState]) -> set[int]:
    """Returns the pods whose going, one after another, would violate a budget."""
    evictions: Counter[BudgetState] = Counter()
    violating: set[int] = set()
    for pod in pods:
        for budget in pod.shape.budgets:
            evictions[budget] += 1
            if evictions[budget] > budget.current_counts().allowed:
                violating.add(pod.id)
    return violating
