"""Decides on which nodes a pod may be placed: kube-scheduler's filters, in their order and with their words.

Source: kubernetes, `pkg/scheduler/framework/plugins` and the default order in `pkg/scheduler/apis/config/v1`;
https://kubernetes.io/docs/reference/scheduling/config/#scheduling-plugins. What is left out: devices of Dynamic
Resource Allocation, in-tree volumes' limits, extenders and profiles of the cluster's own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator

from kubekit.rules.node_rules import first_untolerated, is_selected
from runup.rehearse.decide.drains import claim_rules
from runup.rehearse.decide.drains.claim_rules import ClaimRules
from runup.rehearse.decide.drains.cluster_state import NodeRoom, PodState
from runup.rehearse.decide.drains.pod_counts import Counts
from runup.rehearse.decide.drains.pod_shapes import Shape

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

    def __init__(self, nodes: Iterable[NodeRoom], counts: Counts, claims: ClaimRules) -> None:
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

    def feasible(self, shape: Shape) -> Iterator[NodeRoom]:
        """Yields the nodes on which a pod of the shape may be placed now."""
        if self.why_nowhere(shape):
            return
        for node in self.admitting(shape):
            if self.takes(shape, node):
                yield node

    def why_nowhere(self, shape: Shape) -> str:
        """Returns why the pod is not even tried on a node, or an empty string."""
        return GATED if shape.spec.scheduling_gates else self._claims.why_nowhere(shape)

    def admitting(self, shape: Shape) -> list[NodeRoom]:
        """Returns the nodes whose labels, taints and volumes admit the shape, cordons apart."""
        return self._admitting_nodes(shape)[0]

    def admits(self, shape: Shape, node: NodeRoom) -> bool:
        """Returns whether the labels, taints and volumes of the node admit the shape, cordons apart."""
        return node in self._admitting_nodes(shape)[1]

    def _admitting_nodes(self, shape: Shape) -> tuple[list[NodeRoom], frozenset[NodeRoom]]:
        """Returns the nodes that admit the shape, as a list in the cluster's order and as a set; computed once."""
        key = (shape.static, self._claims.node_key(shape) if shape.claims else b"")
        admitting = self._static.get(key)
        if admitting is None:
            nodes = [node for node in self.nodes if not self._static_reason(shape, node)]
            admitting = self._static[key] = (nodes, frozenset(nodes))
        return admitting

    def takes(self, shape: Shape, node: NodeRoom) -> bool:
        """Returns whether a node that admits the shape has what it needs now."""
        if (node.cordoned and not shape.tolerates_cordon) or node.removed or not node.has_room(shape):
            return False
        if shape.ports and not node.has_ports(shape):
            return False
        if not (shape.claims or shape.spread or shape.affinity_count or shape.anti_counts or shape.held):
            return True
        return not self._volume_reason(shape, node) and not self._pods_reason(shape, node)

    def _static_reason(self, shape: Shape, node: NodeRoom) -> str:
        """Returns why the node's labels, taints or volumes do not admit the shape, "" if they do."""
        spec = shape.spec
        taint = first_untolerated(node.own_taints, spec.tolerations)
        if taint is not None:
            return f"{_TAINTED} {{{taint.key}: {taint.value}}}"
        affinity = spec.affinity.node_affinity.required_during_scheduling_ignored_during_execution
        if not is_selected(node.labels, node.name, spec.node_selector, affinity):
            return SELECTOR
        return self._claims.why_not(shape, node) if shape.claims else ""

    def _volume_reason(self, shape: Shape, node: NodeRoom) -> str:
        """Returns why the shape's volumes cannot be attached to the node now, "" if they can."""
        if any(self._single[key] > 0 for key in self._claims.single_claims(shape)):
            return claim_rules.ONE_POD
        return claim_rules.TOO_MANY if node.exceeds_attachments(self._claims.csi_volume_handles(shape)) else ""

    def _pods_reason(self, shape: Shape, node: NodeRoom) -> str:
        """Returns why the node's other pods keep the pod away (spread, affinity); empty if they do not."""
        for (constraint, count), matches in zip(shape.spread, shape.self_matches, strict=True):
            value = node.labels.get(constraint.topology_key)
            if value is None:
                return NO_LABEL
            skew = count.by_value.get(value, 0) + matches - count.least(constraint.min_domains)
            if skew > constraint.max_skew:
                return SPREAD
        beside = shape.affinity_count
        if beside is not None and not beside.satisfied(node, selects_itself=beside.selects(*shape.identity)):
            return BESIDE
        if any(count.has_any(node) for count in shape.anti_counts):
            return APART
        return KEPT_APART if any(count.has_any(node) for count in shape.held) else ""

    def why_not(self, shape: Shape, node: NodeRoom) -> tuple[str, ...]:
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

    def can_be_helped(self, shape: Shape, node: NodeRoom) -> bool:
        """Returns whether pods that go from the node could make room for the shape (preemption tries no others)."""
        reasons = self.why_not(shape, node)
        if any(reason in _LASTING or reason.startswith(_TAINTED) for reason in reasons):
            return False
        # More than the whole node has, no pod's going gives.
        return all(value <= node.allocatable.get(name, 0) for name, value in shape.requested.items() if value)

    def explanation(self, shape: Shape, why_not: Callable[[Shape, NodeRoom], tuple[str, ...]] | None = None) -> str:
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
