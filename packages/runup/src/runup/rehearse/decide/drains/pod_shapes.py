"""Defines pod shapes: a shape is the namespace, the labels and the spec that several pods have in common.

In: the cluster's pods. Out: their shapes, each with the values that the scheduler needs, computed once. A cluster of
30,000 pods has a few thousand shapes, and what the scheduler asks about a pod depends on its shape alone. The budgets
of a shape, and the counts of other pods by which its affinity and spread constraints are decided, belong to it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Protocol

import msgspec

from kubekit.api.conditions import find
from kubekit.api.core_v1 import Taint
from kubekit.api.meta_v1 import LabelSelector, LabelSelectorRequirement
from kubekit.api.scheduling import PodAffinityTerm, SchedulingPod, SchedulingPodSpec, TopologySpreadConstraint
from kubekit.api.workloads_v1 import PodDisruptionBudget
from kubekit.rules.eviction_rules import BudgetNow, desired_healthy, disruptions_allowed, rule_of_budget
from kubekit.rules.node_rules import CORDON, is_tolerated, names_demanded
from kubekit.rules.pod_requests import pod_requests


class BudgetState:
    """A budget with its counts: `expected`, `healthy` and `desired` pods.

    They are expectedPods, currentHealthy and desiredHealthy of its status, and 0 until all pods are known.
    """

    __slots__ = ("_failing", "desired", "expected", "healthy", "name", "namespace", "source")

    def __init__(self, source: PodDisruptionBudget) -> None:
        self.source = source
        self.namespace, self.name = source.metadata.namespace, source.metadata.name
        self.expected = self.healthy = self.desired = 0
        failed = find(source.status.conditions, "DisruptionAllowed")
        # The disruption controller then lets the budget allow nothing (pkg/controller/disruption, failSafe).
        self._failing = failed is not None and failed.reason == "SyncFailed"

    def set_desired_healthy(self, matching_pods: int, scale: int) -> None:
        """Sets `expected` and `desired`, as the disruption controller sets status.expectedPods and desiredHealthy.

        `matching_pods` is the number of pods that the budget selects, `scale` the sum of the replicas of their owners.
        A budget whose values cannot be computed allows no disruption from then on.
        """
        spec = self.source.spec
        # maxUnavailable and percentages are of the pods that there should be, minAvailable as a number is not.
        is_share = spec.max_unavailable is not None or isinstance(spec.min_available, str)
        self.expected = scale if is_share else matching_pods
        try:
            self.desired = desired_healthy(spec.min_available, spec.max_unavailable, self.expected)
        except ValueError:
            self._failing = True

    def current_counts(self) -> BudgetNow:
        """Returns the counts of its status at this moment."""
        allowed = 0 if self._failing else disruptions_allowed(self.expected, self.healthy, self.desired)
        policy = self.source.spec.unhealthy_pod_eviction_policy
        return BudgetNow(allowed=allowed, healthy=self.healthy, desired=self.desired, policy=policy)

    @property
    def refusal(self) -> str:
        """Returns why it lets nothing go, in numbers."""
        rule = rule_of_budget(self.source)
        if self._failing:
            return f"{rule}: the disruption controller cannot compute it, and so it allows nothing"
        return f"{rule}: {self.healthy} of {self.expected} healthy, {self.desired} demanded"

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


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
        matched = True
        for key in self.keys:
            value = node.labels.get(key)
            if value is None:
                return False
            matched = matched and self.by_pair.get((key, value), 0) > 0
        return matched or (selects_itself and not any(self.by_pair.values()))


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


HARD = "DoNotSchedule"
# Longer grace periods count as this one.
_LONGEST_GRACE_S = 30 * 86400
Port = tuple[str, str, int]


class Shape:
    """A namespace, labels and a spec, with the values that the scheduler needs. `id` is its number in the cluster.

    `named_nodes` are the only nodes that its pods are tried on, none if they are tried on all.
    `requested` are the resources that one pod requests, `others` those next to cpu, memory and pods. `ports` are the
    host ports, `claims` the names of the PersistentVolumeClaims, `grace_s` the seconds of the grace period. `static` is
    `static_key`.

    `affinity_count`, `anti_counts` and `spread` are the counts that decide where its pods may run; `held` count the
    pods whose anti-affinity keeps its pods away. `counted`, `holds` and `spread_counted` are the counts that change
    when one of its pods comes or goes: of terms that select it, of its own anti-affinity, and of spread constraints.
    `self_matches` says for each of `spread` whether its pods count themselves. `budgets` select its pods.
    """

    __slots__ = (
        "affinity_count",
        "anti_counts",
        "budgets",
        "claims",
        "counted",
        "cpu",
        "grace_s",
        "held",
        "holds",
        "id",
        "identity",
        "labels",
        "memory",
        "named_nodes",
        "namespace",
        "others",
        "ports",
        "requested",
        "self_matches",
        "spec",
        "spread",
        "spread_counted",
        "static",
        "tolerates_cordon",
    )

    def __init__(self, number: int, namespace: str, labels: dict[str, str], spec: SchedulingPodSpec) -> None:
        self.id, self.namespace, self.labels, self.spec = number, namespace, labels, spec
        node_affinity = spec.affinity.node_affinity
        self.named_nodes = names_demanded(node_affinity.required_during_scheduling_ignored_during_execution)
        requested = pod_requests(spec)
        self.requested = requested
        # The arguments of `selects` of counts and budgets.
        self.identity = (namespace, labels)
        self.cpu = requested.get("cpu", 0)
        self.memory = requested.get("memory", 0)
        self.others = tuple(
            (name, value) for name, value in requested.items() if name not in ("cpu", "memory", "pods") and value
        )
        self.ports: tuple[Port, ...] = tuple(
            (port.host_ip or "0.0.0.0", port.protocol or "TCP", port.host_port)  # noqa: S104 (an address of a pod's)
            for container in (*spec.containers, *spec.init_containers)
            for port in container.ports
            if port.host_port
        )
        self.claims = tuple(
            volume.persistent_volume_claim.claim_name for volume in spec.volumes if volume.persistent_volume_claim
        )
        grace = spec.termination_grace_period_seconds
        # A negative one is as 1 (kubernetes, pkg/registry/core/pod/strategy.go).
        self.grace_s = 1 if grace < 0 else min(grace, _LONGEST_GRACE_S)
        self.static = static_key(spec)
        self.tolerates_cordon = is_tolerated(CORDON, spec.tolerations)
        # Set by `pod_counts.Counts`, the budgets by `starting_state`.
        self.affinity_count: AffinityCount | None = None
        self.anti_counts: tuple[Count, ...] = ()
        self.holds: tuple[Count, ...] = ()
        self.held: tuple[Count, ...] = ()
        self.spread: tuple[tuple[TopologySpreadConstraint, SpreadCount], ...] = ()
        self.self_matches: tuple[bool, ...] = ()
        self.counted: tuple[Count | AffinityCount, ...] = ()
        self.spread_counted: tuple[SpreadCount, ...] = ()
        self.budgets: tuple[BudgetState, ...] = ()

    @property
    def is_dynamic(self) -> bool:
        """Returns whether other pods or volumes decide on which nodes its pods may run."""
        return bool(self.affinity_count or self.anti_counts or self.held or self.spread or self.claims)


def static_key(spec: SchedulingPodSpec) -> bytes:
    """Returns a key that is equal for specs whose node selector, node affinity and tolerations are equal."""
    return msgspec.json.encode((spec.node_selector, spec.affinity.node_affinity, spec.tolerations), order="sorted")


class Shapes:
    """The shapes of a cluster, each stored once."""

    def __init__(self) -> None:
        self._by_key: dict[bytes, Shape] = {}

    def of(self, pod: SchedulingPod) -> Shape:
        """Returns the shape of a pod; the node on which it runs is not part of it."""
        spec = msgspec.structs.replace(pod.spec, node_name="")
        metadata = pod.metadata
        key = msgspec.json.encode((metadata.namespace, metadata.labels, spec), order="sorted")
        shape = self._by_key.get(key)
        if shape is None:
            shape = self._by_key[key] = Shape(len(self._by_key), metadata.namespace, metadata.labels, spec)
        return shape

    def all(self) -> Iterable[Shape]:
        """Returns every shape so far."""
        return self._by_key.values()


def with_own_labels(constraint: TopologySpreadConstraint, labels: dict[str, str]) -> LabelSelector | None:
    """Returns the selector of a spread constraint, with the pod's own values of `matchLabelKeys`."""
    selector = constraint.label_selector
    own_terms = tuple(
        LabelSelectorRequirement(key=key, operator="In", values=(labels[key],))
        for key in constraint.match_label_keys
        if key in labels
    )
    if selector is None or not own_terms:
        return selector
    return LabelSelector(
        match_labels=selector.match_labels, match_expressions=(*selector.match_expressions, *own_terms)
    )
