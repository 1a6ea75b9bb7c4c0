"""The scheduler: binds each pod to the fitting node with the fewest pods, or reports why none fits.

Node selector, required node affinity, taints and cordons count; resources, pod affinity, topology and priorities do
not. The messages are kube-scheduler's.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from kubekit.api import codec
from kubekit.api.core_v1 import Taint
from kubekit.api.meta_v1 import NamespacedName
from kubekit.api.scheduling import SchedulingPodSpec
from kubekit.api.whole_v1 import WholeNode, WholePod
from kubekit.kube import calls
from kubekit.kube.cache import Cache
from kubekit.kube.clock import Clock
from kubekit.rules.node_rules import CORDON, first_untolerated, is_selected, is_tolerated
from kubesandbox.apiserver.metadata import IMPORTED
from kubesandbox.controllers.controller_loop import Report, Step
from kubesandbox.controllers.owned_pods import JSON, PODS, event_about, is_active


class Scheduler:
    """The controller that binds pods to nodes."""

    name = "scheduler"

    def __init__(
        self, pods: Cache[WholePod], nodes: Cache[WholeNode], clock: Clock, own_nodes: Sequence[WholeNode] = ()
    ) -> None:
        self._pods, self._nodes, self._clock, self._own_nodes = pods, nodes, clock, own_nodes

    def calls(self, key: NamespacedName) -> Iterator[Step]:
        """Yields the binding of a pod without a node, or the condition and Event that say why no node fits."""
        pod = self._pods.get(key)
        if pod is None or pod.spec.get("nodeName") or not is_active(pod) or IMPORTED in pod.metadata.labels:
            return
        nodes = [*self._nodes.all(), *self._own_nodes]
        loads = {node.metadata.name: 0 for node in nodes if not why_not(pod, node)}
        if not loads:
            yield from self._report_unschedulable(pod, why_no_node_fits(pod, nodes))
            return
        for other in self._pods.all():
            if other.spec.get("nodeName") in loads:
                loads[other.spec["nodeName"]] += 1
        # The name breaks ties, so that the choice is deterministic.
        node_name = min(loads, key=lambda name: (loads[name], name))
        binding = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": key.name, "namespace": key.namespace},
            "target": {"apiVersion": "v1", "kind": "Node", "name": node_name},
        }
        yield calls.create(PODS, binding, name=key.name, subresource="binding")
        yield self._report(
            pod, "Scheduled", f"Successfully assigned {key.namespace}/{key.name} to {node_name}", "Normal"
        )

    def _report_unschedulable(self, pod: WholePod, message: str) -> Iterator[Step]:
        """Yields the condition and the Event of an unschedulable pod, once and again when the message changes."""
        conditions: list[JSON] = pod.status.get("conditions") or []
        other_conditions = [condition for condition in conditions if condition.get("type") != "PodScheduled"]
        current: JSON = next((condition for condition in conditions if condition.get("type") == "PodScheduled"), {})
        if (current.get("status"), current.get("message")) == ("False", message):
            return
        metadata, now = pod.metadata, self._clock.now()
        since = current.get("lastTransitionTime") if current.get("status") == "False" else f"{now:%Y-%m-%dT%H:%M:%SZ}"
        condition = {
            "type": "PodScheduled",
            "status": "False",
            "reason": "Unschedulable",
            "message": message,
            "lastProbeTime": None,
            "lastTransitionTime": since,
        }
        status = {"status": {"conditions": [*other_conditions, condition]}}
        yield calls.merge_patch(PODS, metadata.name, status, metadata.namespace, subresource="status")
        yield self._report(pod, "FailedScheduling", message, "Warning")

    def _report(self, pod: WholePod, reason: str, message: str, type_: str) -> Report:
        source, now = {"component": "default-scheduler"}, self._clock.now()
        return event_about(pod, PODS, reason=reason, message=message, source=source, now=now, type_=type_)


def why_no_node_fits(pod: WholePod, nodes: Sequence[WholeNode]) -> str:
    """Returns why no node fits, counted by reason."""
    if not nodes:
        return "no nodes available to schedule pods"
    reasons = Counter(why_not(pod, node) for node in nodes)
    counted_reasons = ", ".join(sorted(f"{count} node(s) {reason}" for reason, count in reasons.items()))
    return f"0/{len(nodes)} nodes are available: {counted_reasons}."


def why_not(pod: WholePod, node: WholeNode) -> str:
    """Returns why the pod may not run on the node, or ""."""
    spec = codec.convert(SchedulingPodSpec, pod.spec)
    if node.spec.get("unschedulable") and not is_tolerated(CORDON, spec.tolerations):
        return "were unschedulable"
    taints = codec.convert(tuple[Taint, ...], node.spec.get("taints") or ())
    if (taint := first_untolerated(taints, spec.tolerations)) is not None:
        return f"had untolerated taint {{{taint.key}: {taint.value}}}"
    affinity = spec.affinity.node_affinity.required_during_scheduling_ignored_during_execution
    fits = is_selected(node.metadata.labels, node.metadata.name, spec.node_selector, affinity)
    return "" if fits else "didn't match Pod's node affinity/selector"
