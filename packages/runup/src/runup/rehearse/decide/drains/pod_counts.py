"""Creates the counts that decide where pods may run: one for each distinct affinity, anti-affinity and spread term.

In: the shapes of the cluster's pods (a shape is what pods of equal spec and labels have in common), and the labels of
namespaces. Out: on each shape, the counts that its pods must satisfy, and the counts that its pods change. So a pod
that comes or goes changes only the counts of the terms that select it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Generic, TypeVar

import msgspec

from kubekit.api.meta_v1 import LabelSelector
from kubekit.api.scheduling import PodAffinityTerm, TopologySpreadConstraint
from kubekit.rules.node_rules import first_untolerated, is_selected
from runup.rehearse.decide.drains.cluster_state import NodeRoom
from runup.rehearse.decide.drains.pod_shapes import HARD, Shape, with_own_labels
from runup.rehearse.decide.drains.term_counts import (
    AffinityCount,
    Count,
    CountedNode,
    Namespaces,
    Pair,
    PodSelection,
    SpreadCount,
)

C = TypeVar("C")


class Counts:
    """The counts of a cluster, all zero: created from the shapes before any pod is put on a node."""

    def __init__(self, shapes: Iterable[Shape], namespaces: Namespaces) -> None:
        self._namespaces = namespaces
        self._counts: dict[object, Count | AffinityCount] = {}
        self._holders: dict[object, Count] = {}
        self._spreads: dict[object, SpreadCount] = {}
        all_shapes = tuple(shapes)
        for shape in all_shapes:
            self._make_counts(shape)
        selected = _Index((count, _lookup_keys(count)) for count in self._counts.values())
        holding = _Index((count, _lookup_keys(count)) for count in self._holders.values())
        spread = _Index((each, [(each.namespace, _any_label(each.selector))]) for each in self._spreads.values())
        for shape in all_shapes:
            shape.counted = tuple(each for each in selected.candidates(shape) if each.selects(*shape.identity))
            shape.held = tuple(each for each in holding.candidates(shape) if each.selects(*shape.identity))
            shape.spread_counted = tuple(each for each in spread.candidates(shape) if each.selects(*shape.identity))

    def look_again(self, nodes: Iterable[NodeRoom], *, taints_alone: bool = False) -> None:
        """Counts anew after nodes were added or removed, or (`taints_alone`) after their taints changed."""
        listed = tuple(nodes)
        for spread_count in self._spreads.values():
            if spread_count.honors_taints or not taints_alone:
                spread_count.look_again(listed)

    def _make_counts(self, shape: Shape) -> None:
        """Creates the counts of the shape's required terms, or gives it those of an equal term in its namespace."""
        affinity = shape.spec.affinity
        beside = affinity.pod_affinity.required_during_scheduling_ignored_during_execution
        apart = affinity.pod_anti_affinity.required_during_scheduling_ignored_during_execution
        if beside:
            key = (shape.namespace, msgspec.json.encode(beside, order="sorted"))
            terms = tuple((PodSelection(term, shape.namespace, self._namespaces), term.topology_key) for term in beside)
            count = self._counts.setdefault(("beside", key), AffinityCount(terms))
            assert isinstance(count, AffinityCount)
            shape.affinity_count = count
        if apart:
            keyed = [(shape.namespace, msgspec.json.encode(term, order="sorted"), term) for term in apart]
            counts = [
                self._counts.setdefault(("apart", ns, key), self._count_of_term(term, ns)) for ns, key, term in keyed
            ]
            shape.anti_counts = tuple(count for count in counts if isinstance(count, Count))
            # The same terms the other way round: where are the pods that keep the selected ones away?
            shape.holds = tuple(
                self._holders.setdefault((ns, key), self._count_of_term(term, ns)) for ns, key, term in keyed
            )
        hard = [each for each in shape.spec.topology_spread_constraints if each.when_unsatisfiable == HARD]
        if hard:
            keys = tuple(each.topology_key for each in hard)
            shape.spread = tuple((each, self._spread_count(each, shape, keys)) for each in hard)
            shape.self_matches = tuple(count.selects_itself(shape.labels) for _, count in shape.spread)

    def _count_of_term(self, term: PodAffinityTerm, namespace: str) -> Count:
        return Count(PodSelection(term, namespace, self._namespaces), term.topology_key)

    def _spread_count(self, constraint: TopologySpreadConstraint, shape: Shape, keys: tuple[str, ...]) -> SpreadCount:
        """Returns the count of a constraint; `keys` are the node labels that all constraints of the shape need."""
        selector = with_own_labels(constraint, shape.labels)
        honors = (constraint.node_affinity_policy != "Ignore", constraint.node_taints_policy == "Honor")
        encoded = msgspec.json.encode(selector, order="sorted")
        node_rules_key = shape.static if any(honors) else b""
        key = (shape.namespace, encoded, constraint.topology_key, keys, honors, node_rules_key)
        spread_count = self._spreads.get(key)
        if spread_count is None:
            counts_node = _node_filter(shape, keys, *honors)
            spread_count = SpreadCount(
                shape.namespace, selector, constraint.topology_key, counts_node, honors_taints=honors[1]
            )
            self._spreads[key] = spread_count
        return spread_count


def _node_filter(
    shape: Shape, keys: tuple[str, ...], honors_affinity: bool, honors_taints: bool
) -> Callable[[CountedNode], bool]:
    """Returns a function that says whether a spread constraint of the shape takes a node into account.

    The node must have all labels of `keys`; by the constraint's policies it must also match the pod's node selector and
    affinity, and have no taint that the pod does not tolerate.
    """
    spec = shape.spec
    affinity = spec.affinity.node_affinity.required_during_scheduling_ignored_during_execution

    def counts_node(node: CountedNode) -> bool:
        """Reports whether the constraint counts the node, by its keys and its inclusion policies."""
        if not all(key in node.labels for key in keys):
            return False
        if honors_affinity and not is_selected(node.labels, node.name, spec.node_selector, affinity):
            return False
        return not (honors_taints and first_untolerated(node.taints, spec.tolerations))

    return counts_node


def _any_label(selector: LabelSelector | None) -> Pair:
    """Returns one label that the selector demands, or None if it demands none by value."""
    return next(iter(selector.match_labels.items()), None) if selector else None


def _lookup_keys(count: Count | AffinityCount) -> list[tuple[str | None, Pair]]:
    """Returns the pairs of namespace and label under which `_Index` files a count; namespace None is every namespace.

    Of several affinity terms only the first is used: a pod counts only if it matches all of them, and so this one too.
    """
    first_term = count.terms[0] if isinstance(count, AffinityCount) else count.selecting
    if first_term.namespaces is None:
        return [(None, first_term.pair)]
    return [(namespace, first_term.pair) for namespace in first_term.namespaces]


class _Index(Generic[C]):
    """Counts by namespace and by one label that they demand, so that few have to be tried for each shape."""

    def __init__(self, counts: Iterable[tuple[C, Iterable[tuple[str | None, Pair]]]]) -> None:
        self._by_key: dict[tuple[str | None, Pair], list[C]] = {}
        for count, keys in counts:
            for key in keys:
                self._by_key.setdefault(key, []).append(count)

    def candidates(self, shape: Shape) -> Iterable[C]:
        """Yields each count that may select the shape, once."""
        for namespace in (shape.namespace, None):
            for pair in (None, *shape.labels.items()):
                yield from self._by_key.get((namespace, pair), ())
