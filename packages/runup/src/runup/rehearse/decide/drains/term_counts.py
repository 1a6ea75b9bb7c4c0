"""Counts pods by the values of node labels, one count for each distinct affinity term or spread constraint.

In: pods that come and go on nodes. Out: whether a node has pods that a term selects, and how many. The rules are
those of kube-scheduler: kubernetes, `pkg/scheduler/framework/plugins` (interpodaffinity, podtopologyspread);
https://kubernetes.io/docs/concepts/scheduling-eviction/topology-spread-constraints/.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Protocol

from kubekit.api.core_v1 import Taint
from kubekit.api.meta_v1 import LabelSelector
from kubekit.api.scheduling import PodAffinityTerm

Namespaces = Mapping[str, Mapping[str, str]]
# A label with its value, or None for a selector that demands none.
Pair = tuple[str, str] | None


class CountedNode(Protocol):
    """The fields of a node that counts need."""

    @property
    def name(self) -> str:
        """Its name."""

    @property
    def labels(self) -> Mapping[str, str]:
        """Its labels."""

    @property
    def taints(self) -> tuple[Taint, ...]:
        """Its taints, a cordon's among them."""

    @property
    def removed(self) -> bool:
        """Whether the node was removed from the cluster."""


class PodSelection:
    """The pods that a term selects: those in `namespaces` (None: in all), with labels that `selector` matches."""

    __slots__ = ("namespaces", "selector")

    def __init__(self, term: PodAffinityTerm, own_namespace: str, namespaces: Namespaces) -> None:
        self.selector = term.label_selector
        self.namespaces: frozenset[str] | None = frozenset(term.namespaces)
        if term.namespace_selector is not None:
            if term.namespace_selector == LabelSelector():
                self.namespaces = None
                return
            matching = (name for name, labels in namespaces.items() if term.namespace_selector.matches(dict(labels)))
            self.namespaces = frozenset((*term.namespaces, *matching))
        elif not term.namespaces:
            self.namespaces = frozenset((own_namespace,))

    def selects(self, namespace: str, labels: dict[str, str]) -> bool:
        """Returns whether such a pod is selected; without a selector none is."""
        return (
            self.selector is not None
            and (self.namespaces is None or namespace in self.namespaces)
            and self.selector.matches(labels)
        )

    @property
    def pair(self) -> Pair:
        """Returns a label that every selected pod has."""
        labels = self.selector.match_labels if self.selector else {}
        return next(iter(labels.items()), None)


class Count:
    """The number of pods that one affinity or anti-affinity term selects, by the value of its topologyKey."""

    __slots__ = ("by_value", "key", "selecting")

    def __init__(self, selecting: PodSelection, key: str) -> None:
        self.selecting, self.key = selecting, key
        self.by_value: dict[str, int] = {}

    def selects(self, namespace: str, labels: dict[str, str]) -> bool:
        """Returns whether such pods count."""
        return self.selecting.selects(namespace, labels)

    def change(self, node: CountedNode, pods: int) -> None:
        """Counts pods on the node that came or, with a negative number, went."""
        value = node.labels.get(self.key)
        if value is not None:
            self.by_value[value] = self.by_value.get(value, 0) + pods

    def has_any(self, node: CountedNode) -> bool:
        """Returns whether there are such pods on a node with the same value of the label."""
        value = node.labels.get(self.key)
        return value is not None and self.by_value.get(value, 0) > 0


class AffinityCount:
    """The number of pods that all affinity terms of a pod select, by topologyKey and value."""

    __slots__ = ("by_pair", "keys", "terms")

    def __init__(self, terms: tuple[tuple[PodSelection, str], ...]) -> None:
        self.terms = tuple(selecting for selecting, _ in terms)
        self.keys = tuple(key for _, key in terms)
        self.by_pair: dict[tuple[str, str], int] = {}

    def selects(self, namespace: str, labels: dict[str, str]) -> bool:
        """Returns whether such pods count: every term selects them."""
        return all(term.selects(namespace, labels) for term in self.terms)

    def change(self, node: CountedNode, pods: int) -> None:
        """Counts pods on the node that came or, with a negative number, went."""
        for key in self.keys:
            if (value := node.labels.get(key)) is not None:
                self.by_pair[key, value] = self.by_pair.get((key, value), 0) + pods

    def satisfied(self, node: CountedNode, *, selects_itself: bool) -> bool:
        """Returns whether such pods are on nodes with the same values of all labels.

        If there are none yet, a pod that the terms themselves select may be on any node that has the labels.
        """
        beside = True
        for key in self.keys:
            value = node.labels.get(key)
            if value is None:
                return False
            beside = beside and self.by_pair.get((key, value), 0) > 0
        return beside or (selects_itself and not any(self.by_pair.values()))


class SpreadCount:
    """The number of pods that a spread constraint selects, by the value of its topologyKey, on the nodes it counts.

    Terminating pods do not count. `by_node` has all of them, so that a cordon can change which nodes count.
    """

    __slots__ = ("_least", "by_node", "by_value", "counts_node", "honors_taints", "key", "namespace", "selector")

    def __init__(
        self,
        namespace: str,
        selector: LabelSelector | None,
        key: str,
        counts_node: Callable[[CountedNode], bool],
        *,
        honors_taints: bool,
    ) -> None:
        self.honors_taints = honors_taints
        self.namespace, self.selector, self.key, self.counts_node = namespace, selector, key, counts_node
        self.by_node: dict[str, int] = {}
        self.by_value: dict[str, int] = {}
        self._least: int | None = None

    def selects(self, namespace: str, labels: dict[str, str]) -> bool:
        """Returns whether such pods count; an empty selector counts none."""
        selector = self.selector
        if selector is None or not (selector.match_labels or selector.match_expressions):
            return False
        return namespace == self.namespace and selector.matches(labels)

    def selects_itself(self, labels: dict[str, str]) -> bool:
        """Returns whether a new such pod counts for its own constraint."""
        return self.selector is not None and self.selector.matches(labels)

    def change(self, node: CountedNode, pods: int) -> None:
        """Counts pods on the node that came or, with a negative number, went."""
        self.by_node[node.name] = self.by_node.get(node.name, 0) + pods
        value = node.labels.get(self.key)
        if value in self.by_value and self.counts_node(node):
            self.by_value[value] += pods
            self._least = None

    def look_again(self, nodes: Iterable[CountedNode]) -> None:
        """Takes into account that nodes were added, cordoned or removed."""
        self.by_value = {}
        self._least = None
        for node in nodes:
            value = node.labels.get(self.key)
            if value is not None and not node.removed and self.counts_node(node):
                self.by_value[value] = self.by_value.get(value, 0) + self.by_node.get(node.name, 0)

    def least(self, min_domains: int) -> int:
        """Returns the number of pods where there are the fewest; 0 if there are fewer places than `min_domains`."""
        if len(self.by_value) < min_domains:
            return 0
        if self._least is None:
            self._least = min(self.by_value.values(), default=0)
        return self._least
