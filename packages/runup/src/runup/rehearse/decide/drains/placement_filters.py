"""Decides on which nodes a pod may run, as kube-scheduler filters them, and which pods it preempts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Generic, TypeVar

import msgspec

from kubekit.api.scheduling import PodAffinityTerm, TopologySpreadConstraint
from kubekit.rules.node_rules import first_untolerated, is_selected
from runup.rehearse.decide.drains import claim_rules, pod_shapes
from runup.rehearse.decide.drains.cluster_state import NodeRoom, PodState

C = TypeVar("C")


class Counts:
    """The counts of a cluster, all zero: created from the shapes before any pod is put on a node."""

    def __init__(self, shapes: Iterable[pod_shapes.Shape], namespaces: pod_shapes.Namespaces) -> None:
        self._namespaces = namespaces
        self._counts: dict[object, pod_shapes.Count | pod_shapes.AffinityCount] = {}
        self._holders: dict[object, pod_shapes.Count] = {}
        self._spreads: dict[object, pod_shapes.SpreadCount] = {}
        all_shapes = tuple(shapes)
        for shape in all_shapes:
            self._make_counts(shape)
        selected = _Index((count, _lookup_keys(count)) for count in self._counts.values())
        holding = _Index((count, _lookup_keys(count)) for count in self._holders.values())
        spread = _Index(
            (
                each,
                [(each.namespace, (next(iter(each.selector.match_labels.items()), None) if each.selector else None))],
            )
            for each in self._spreads.values()
        )
        for shape in all_shapes:
            shape.counted = tuple(each for each in selected.candidates(shape) if each.selects(*shape.identity))
            shape.held = tuple(each for each in holding.candidates(shape) if each.selects(*shape.identity))
            shape.spread_counted = tuple(each for each in spread.candidates(shape) if each.selects(*shape.identity))

    def look_again(self, nodes: Iterable[NodeRoom], *, taints_alone: bool = False) -> None:
        """Counts again after nodes were added or removed, or (`taints_alone`) after their taints changed."""
        listed = tuple(nodes)
        for spread_count in self._spreads.values():
            if spread_count.honors_taints or not taints_alone:
                spread_count.look_again(listed)

    def _make_counts(self, shape: pod_shapes.Shape) -> None:
        """Creates the counts of the shape's required terms, or gives it those of an equal term in its namespace."""
        affinity = shape.spec.affinity
        together = affinity.pod_affinity.required_during_scheduling_ignored_during_execution
        apart = affinity.pod_anti_affinity.required_during_scheduling_ignored_during_execution
        if together:
            key = (shape.namespace, msgspec.json.encode(together, order="sorted"))
            terms = tuple(
                (pod_shapes.PodSelection(term, shape.namespace, self._namespaces), term.topology_key)
                for term in together
            )
            count = self._counts.setdefault(("together", key), pod_shapes.AffinityCount(terms))
            assert isinstance(count, pod_shapes.AffinityCount)
            shape.affinity_count = count
        if apart:
            keyed = [(shape.namespace, msgspec.json.encode(term, order="sorted"), term) for term in apart]
            counts = [
                self._counts.setdefault(("apart", ns, key), self._count_of_term(term, ns)) for ns, key, term in keyed
            ]
            shape.anti_counts = tuple(count for count in counts if isinstance(count, pod_shapes.Count))
            # The same terms the other way round: where are the pods that keep the selected ones away?
            shape.holds = tuple(
                self._holders.setdefault((ns, key), self._count_of_term(term, ns)) for ns, key, term in keyed
            )
        hard = [each for each in shape.spec.topology_spread_constraints if each.when_unsatisfiable == pod_shapes.HARD]
        if hard:
            keys = tuple(each.topology_key for each in hard)
            shape.spread = tuple((each, self._spread_count(each, shape, keys)) for each in hard)
            shape.self_matches = tuple(count.selects_itself(shape.labels) for _, count in shape.spread)

    def _count_of_term(self, term: PodAffinityTerm, namespace: str) -> pod_shapes.Count:
        return pod_shapes.Count(pod_shapes.PodSelection(term, namespace, self._namespaces), term.topology_key)

    def _spread_count(
        self, constraint: TopologySpreadConstraint, shape: pod_shapes.Shape, keys: tuple[str, ...]
    ) -> pod_shapes.SpreadCount:
        """Returns the count of a constraint; `keys` are the node labels that all constraints of the shape need."""
        selector = pod_shapes.with_own_labels(constraint, shape.labels)
        honors = (constraint.node_affinity_policy != "Ignore", constraint.node_taints_policy == "Honor")
        encoded = msgspec.json.encode(selector, order="sorted")
        node_rules_key = shape.static if any(honors) else b""
        key = (shape.namespace, encoded, constraint.topology_key, keys, honors, node_rules_key)
        spread_count = self._spreads.get(key)
        if spread_count is None:
            counts_node = _node_filter(shape, keys, *honors)
            spread_count = pod_shapes.SpreadCount(
                shape.namespace, selector, constraint.topology_key, counts_node, honors_taints=honors[1]
            )
            self._spreads[key] = spread_count
        return spread_count


def _node_filter(
    shape: pod_shapes.Shape, keys: tuple[str, ...], honors_affinity: bool, honors_taints: bool
) -> Callable[[pod_shapes.CountedNode], bool]:
    """Returns a function that says whether a spread constraint of the shape takes a node into account.

    The node must have all labels of `keys`; by the constraint's policies it must also match the pod's node selector and
    affinity, and have no taint that the pod does not tolerate.
    """
    spec = shape.spec
    affinity = spec.affinity.node_affinity.required_during_scheduling_ignored_during_execution

    def counts_node(node: pod_shapes.CountedNode) -> bool:
        """Reports whether the constraint counts the node, by its keys and its inclusion policies."""
        if not all(key in node.labels for key in keys):
            return False
        if honors_affinity and not is_selected(node.labels, node.name, spec.node_selector, affinity):
            return False
        return not (honors_taints and first_untolerated(node.taints, spec.tolerations))

    return counts_node


def _lookup_keys(count: pod_shapes.Count | pod_shapes.AffinityCount) -> list[tuple[str | None, pod_shapes.Pair]]:
    """Returns the pairs of namespace and label under which `_Index` files a count; namespace None is every namespace.

    Of several affinity terms only the first is used: a pod counts only if it matches all of them, and so this one too.
    """
    first_term = count.terms[0] if isinstance(count, pod_shapes.AffinityCount) else count.selecting
    if first_term.namespaces is None:
        return [(None, first_term.pair)]
    return [(namespace, first_term.pair) for namespace in first_term.namespaces]


class _Index(Generic[C]):
    """Counts by namespace and by one label that they demand, so that few have to be tried for each shape."""

    def __init__(self, counts: Iterable[tuple[C, Iterable[tuple[str | None, pod_shapes.Pair]]]]) -> None:
        self._by_key: dict[tuple[str | None, pod_shapes.Pair], list[C]] = {}
        for count, keys in counts:
            for key in keys:
                self._by_key.setdefault(key, []).append(count)

    def candidates(self, shape: pod_shapes.Shape) -> Iterable[C]:
        """Yields each count that may select the shape, once."""
        for namespace in (shape.namespace, None):
            for pair in (None, *shape.labels.items()):
                yield from self._by_key.get((namespace, pair), ())


CORDONED = "node(s) were unschedulable"
SELECTOR = "node(s) didn't match Pod's node affinity/selector"
NOT_NAMED = "node(s) didn't satisfy plugin(s) [NodeAffinity]"
PORTS = "node(s) didn't have free ports for the requested pod ports"
SPREAD = "node(s) didn't match pod topology spread constraints"
NO_LABEL = f"{SPREAD} (missing required label)"
BESIDE = "node(s) didn't match pod affinity rules"
APART = "node(s) didn't match pod anti-affinity rules"
KEPT_APART = "node(s) didn't satisfy existing pods anti-affinity rules"
GATED = "scheduling is gated"
_TAINTED = "node(s) had untolerated taint"
# Reasons that remain if pods leave the node: UnschedulableAndUnresolvable in the scheduler.
_LASTING = frozenset(
    {CORDONED, NOT_NAMED, SELECTOR, NO_LABEL, BESIDE, claim_rules.CONFLICT, claim_rules.NO_VOLUME, claim_rules.NO_ZONE}
)


class Filters:
    """The nodes of a cluster with the pods on them. Pods are added and removed only here, so that all counts agree."""

    def __init__(self, nodes: Iterable[NodeRoom], counts: Counts, claims: claim_rules.ClaimRules) -> None:
        self.nodes = list(nodes)
        self._counts, self._claims = counts, claims
        self._static: dict[tuple[bytes, bytes], tuple[list[NodeRoom], frozenset[NodeRoom]]] = {}
        self._single: Counter[tuple[str, str]] = Counter()
        counts.look_again(self.nodes)

    def add(self, pod: PodState, node: NodeRoom) -> None:
        """Puts a pod on a node."""
        node.add(pod, self._claims.csi_volume_handles(pod.shape))
        self._single.update(self._claims.single_claims(pod.shape))
        self._change_counts(pod, node, 1)
        if pod.phase != "Terminating":
            self.count_spread(pod, node, 1)

    def remove(self, pod: PodState, node: NodeRoom) -> None:
        """Takes a pod off its node."""
        node.remove(pod, self._claims.csi_volume_handles(pod.shape))
        self._single.subtract(self._claims.single_claims(pod.shape))
        self._change_counts(pod, node, -1)
        if pod.phase != "Terminating":
            self.count_spread(pod, node, -1)

    @staticmethod
    def count_spread(pod: PodState, node: NodeRoom, change: int) -> None:
        """Counts a pod for the topology spread of others: one that is ending no longer counts."""
        for count in pod.shape.spread_counted:
            count.change(node, change)

    @staticmethod
    def _change_counts(pod: PodState, node: NodeRoom, change: int) -> None:
        """Adds the pod to the affinity and anti-affinity counts of the node, or removes it if `change` is -1."""
        for count in pod.shape.counted:
            count.change(node, change)
        for holder in pod.shape.holds:
            holder.change(node, change)

    def nodes_changed(self) -> None:
        """Takes into account that a node was added or removed."""
        self._static.clear()
        self._counts.look_again(self.nodes)

    def cordons_changed(self) -> None:
        """Takes into account that nodes were cordoned or uncordoned."""
        self._counts.look_again(self.nodes, taints_alone=True)

    def feasible(self, shape: pod_shapes.Shape) -> Iterator[NodeRoom]:
        """Yields the nodes on which a pod of the shape may be placed now."""
        if self.why_nowhere(shape):
            return
        for node in self.admitting(shape):
            if self.takes(shape, node):
                yield node

    def why_nowhere(self, shape: pod_shapes.Shape) -> str:
        """Returns why the pod is not even tried on a node, or an empty string."""
        return GATED if shape.spec.scheduling_gates else self._claims.why_nowhere(shape)

    def admitting(self, shape: pod_shapes.Shape) -> list[NodeRoom]:
        """Returns the nodes whose labels, taints and volumes admit the shape, cordons apart."""
        return self._admitting_nodes(shape)[0]

    def admits(self, shape: pod_shapes.Shape, node: NodeRoom) -> bool:
        """Returns whether the labels, taints and volumes of the node admit the shape, cordons apart."""
        return node in self._admitting_nodes(shape)[1]

    def _admitting_nodes(self, shape: pod_shapes.Shape) -> tuple[list[NodeRoom], frozenset[NodeRoom]]:
        """Returns the nodes that admit the shape, as a list in the cluster's order and as a set; computed once."""
        key = (shape.static, self._claims.node_key(shape) if shape.claims else b"")
        admitting = self._static.get(key)
        if admitting is None:
            nodes = [node for node in self.nodes if not self._static_reason(shape, node)]
            admitting = self._static[key] = (nodes, frozenset(nodes))
        return admitting

    def takes(self, shape: pod_shapes.Shape, node: NodeRoom) -> bool:
        """Returns whether a node that admits the shape has what it needs now."""
        if (node.cordoned and not shape.tolerates_cordon) or node.removed or not node.has_room(shape):
            return False
        if shape.ports and not node.has_ports(shape):
            return False
        if not (shape.claims or shape.spread or shape.affinity_count or shape.anti_counts or shape.held):
            return True
        return not self._volume_reason(shape, node) and not self._pods_reason(shape, node)

    def _static_reason(self, shape: pod_shapes.Shape, node: NodeRoom) -> str:
        """Returns why the node's labels, taints or volumes do not admit the shape, "" if they do."""
        spec = shape.spec
        taint = first_untolerated(node.own_taints, spec.tolerations)
        if taint is not None:
            return f"{_TAINTED} {{{taint.key}: {taint.value}}}"
        affinity = spec.affinity.node_affinity.required_during_scheduling_ignored_during_execution
        if not is_selected(node.labels, node.name, spec.node_selector, affinity):
            return SELECTOR
        return self._claims.why_not(shape, node) if shape.claims else ""

    def _volume_reason(self, shape: pod_shapes.Shape, node: NodeRoom) -> str:
        """Returns why the shape's volumes cannot be attached to the node now, "" if they can."""
        if any(self._single[key] > 0 for key in self._claims.single_claims(shape)):
            return claim_rules.ONE_POD
        return claim_rules.TOO_MANY if node.exceeds_attachments(self._claims.csi_volume_handles(shape)) else ""

    def _pods_reason(self, shape: pod_shapes.Shape, node: NodeRoom) -> str:
        """Returns why the node's other pods keep the pod away (spread, affinity); empty if they do not."""
        for (constraint, count), matches in zip(shape.spread, shape.self_matches, strict=True):
            value = node.labels.get(constraint.topology_key)
            if value is None:
                return NO_LABEL
            skew = count.by_value.get(value, 0) + matches - count.least(constraint.min_domains)
            if skew > constraint.max_skew:
                return SPREAD
        affinity = shape.affinity_count
        if affinity is not None and not affinity.satisfied(node, selects_itself=affinity.selects(*shape.identity)):
            return BESIDE
        if any(count.has_any(node) for count in shape.anti_counts):
            return APART
        return KEPT_APART if any(count.has_any(node) for count in shape.held) else ""

    def lone_places(self, shape: pod_shapes.Shape) -> str:
        """Returns a sentence about a zone, or another place of a topology spread, whose only node is cordoned.

        It still counts as the place with the fewest pods, so that the others get no more. Empty if it does not exist.
        """
        for constraint, spread_count in shape.spread:
            nodes: dict[str, list[NodeRoom]] = {}
            for node in self.nodes:
                if (value := node.labels.get(constraint.topology_key)) in spread_count.by_value and value is not None:
                    nodes.setdefault(value, []).append(node)
            for value, members in sorted(nodes.items()):
                if len(nodes) > 1 and len(members) == 1 and members[0].cordoned:
                    return (
                        f"{constraint.topology_key} {value} has no other node than {members[0].name}, and its topology "
                        f"spread counts it with {spread_count.by_value[value]} pods."
                    )
        return ""

    def why_not(self, shape: pod_shapes.Shape, node: NodeRoom) -> tuple[str, ...]:
        """Returns why the node does not take the pod: the words of the first filter that refuses it."""
        if shape.named_nodes and node.name not in shape.named_nodes:
            # The scheduler asks no filter about the nodes that a pod does not name.
            return (NOT_NAMED,)
        if node.cordoned and not shape.tolerates_cordon:
            return (CORDONED,)
        static = self._static_reason(shape, node)
        # The filters of volumes come after those of ports and requests.
        of_volumes = static in (claim_rules.CONFLICT, claim_rules.NO_VOLUME, claim_rules.NO_ZONE)
        if static and not of_volumes:
            return (static,)
        if not node.has_ports(shape):
            return (PORTS,)
        if shortage := node.short_of(shape):
            return shortage
        reason = self._volume_reason(shape, node) or static or self._pods_reason(shape, node)
        return (reason,) if reason else ()

    def can_be_helped(self, shape: pod_shapes.Shape, node: NodeRoom) -> bool:
        """Returns whether pods that go from the node could make room for the shape (preemption tries no others)."""
        reasons = self.why_not(shape, node)
        if any(reason in _LASTING or reason.startswith(_TAINTED) for reason in reasons):
            return False
        # More than the whole node has, no pod's going gives.
        return all(value <= node.allocatable.get(name, 0) for name, value in shape.requested.items() if value)

    def explanation(
        self, shape: pod_shapes.Shape, why_not: Callable[[pod_shapes.Shape, NodeRoom], tuple[str, ...]] | None = None
    ) -> str:
        """Returns why no node takes the pod, counted by reason, as the scheduler writes it into the pod's condition.

        `why_not` tells it of one node, in place of the method of that name.
        """
        why_not = why_not or self.why_not
        if nowhere := self.why_nowhere(shape):
            return nowhere
        present = [node for node in self.nodes if not node.removed]
        if not present:
            return "no nodes available to schedule pods"
        reasons = Counter(reason for node in present for reason in why_not(shape, node))
        counted_reasons = ", ".join(sorted(f"{number} {reason}" for reason, number in reasons.items()))
        return f"0/{len(present)} nodes are available: {counted_reasons}."


# Nodes that are looked at for one pod: the scheduler also takes a part of a large cluster, at least a hundred.
_MOST_NODES = 100


Awaited = Callable[[pod_shapes.Shape, NodeRoom], AbstractContextManager[None]]


@dataclass(frozen=True, slots=True)
class Candidate:
    """A node with the pods that have to go for another to be placed there, the most important first."""

    node: NodeRoom
    victims: tuple[PodState, ...]
    violations: int


def preempts(shape: pod_shapes.Shape) -> bool:
    """Returns whether a pod of the shape may make others go."""
    return shape.spec.preemption_policy != "Never" and not shape.spec.scheduling_gates


def candidates(shape: pod_shapes.Shape, filters: Filters, awaited: Awaited) -> list[Candidate]:
    """Returns the nodes on which the pod can be placed once others have gone.

    `awaited` counts the more important pods that await room on a node as if they were there, as kube-scheduler does
    (RunFilterPluginsWithNominatedPods): without them a node whose room is kept for others would need no victim.
    """
    candidates_: list[Candidate] = []
    if not preempts(shape) or filters.why_nowhere(shape):
        return candidates_
    for node in filters.admitting(shape):
        if node.removed or not any(pod.shape.spec.priority < shape.spec.priority for pod in node.pods.values()):
            continue
        with awaited(shape, node):
            candidate = _candidate_on_node(shape, node, filters) if filters.can_be_helped(shape, node) else None
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
    if not priorities:
        # Room that was kept for another pod is free again.
        return 0, -(2**31), 0, 0, 0.0
    top = max(priorities)
    earliest = min(pod.begun_s for pod in candidate.victims if pod.shape.spec.priority == top)
    # Priorities may be negative; as in the scheduler, each pod counts next to its priority.
    return candidate.violations, top, sum(priority + 2**31 for priority in priorities), len(priorities), -earliest


def _candidate_on_node(shape: pod_shapes.Shape, node: NodeRoom, filters: Filters) -> Candidate | None:
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
        # The pods whose evictions, one after another, would violate a budget.
        evictions: Counter[pod_shapes.BudgetState] = Counter()
        violating: set[int] = set()
        for pod in lesser:
            for budget in pod.shape.budgets:
                evictions[budget] += 1
                if evictions[budget] > budget.current_counts().allowed:
                    violating.add(pod.id)
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
