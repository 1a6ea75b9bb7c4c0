"""Defines pod shapes: a shape is the namespace, the labels and the spec that several pods have in common.

In: the cluster's pods. Out: their shapes, each with the values that the scheduler needs, computed once. A cluster of
30,000 pods has a few thousand shapes, and what the scheduler asks about a pod depends on its shape alone.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from kubekit.api.meta_v1 import LabelSelector, LabelSelectorRequirement
from kubekit.api.scheduling import SchedulingPod, SchedulingPodSpec, TopologySpreadConstraint
from kubekit.rules.node_rules import CORDON, is_tolerated, names_demanded
from kubekit.rules.pod_requests import pod_requests
from runup.rehearse.decide.drains.budget_state import BudgetState
from runup.rehearse.decide.drains.term_counts import AffinityCount, Count, SpreadCount

HARD = "DoNotSchedule"
# Longer grace periods count as this one.
_LONGEST_GRACE_S = 30 * 86400
Port = tuple[str, str, int]


class Shape:
    """A namespace, labels and a spec, with the values that the scheduler needs. `id` is its number in the cluster.

    `named_nodes` are the only nodes that its pods are tried on, none if they are tried on all.
    `requested` are the resources that one pod requests, `others` those beside cpu, memory and pods. `ports` are the
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
