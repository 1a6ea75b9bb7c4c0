"""The scheduler: binds each pod to the fitting node with the fewest pods, or reports why none fits.

Node selector, required node affinity, taints and cordons count; resources, pod affinity, topology and priorities do
not. The messages are kube-scheduler's.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import Any

from kubekit.api import codec
from kubekit.api.meta_v1 import LabelSelector, NamespacedName
from kubekit.api.whole_v1 import WholeNode, WholePod
from kubekit.kube import calls
from kubekit.kube.cache import Cache
from kubekit.kube.clock import Clock
from kubekit.kube.request import Call
from kubesandbox.apiserver.objects.restoring import IMPORTED
from kubesandbox.controllers.owned_pods import JSON, PODS, is_active, warning_event

_CORDON = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}


class Scheduler:
    """The controller that binds pods to nodes."""

    name = "scheduler"

    def __init__(
        self, pods: Cache[WholePod], nodes: Cache[WholeNode], clock: Clock, own_nodes: Sequence[WholeNode] = ()
    ) -> None:
        self._pods, self._nodes, self._clock, self._own_nodes = pods, nodes, clock, own_nodes

    def calls(self, key: NamespacedName) -> Iterator[Call[Any]]:
        """Yields the binding of a pod without a node, or the condition and Event that say why no node fits."""
        pod = self._pods.get(key)
        if pod is None or pod.spec.get("nodeName") or not is_active(pod) or IMPORTED in pod.metadata.labels:
            return
        nodes = [*self._nodes.all(), *self._own_nodes]
        fitting = [node for node in nodes if not why_not(pod, node)]
        if not fitting:
            yield from _report_unschedulable(pod, why_no_node_fits(pod, nodes), self._clock.now())
            return
        name = _emptiest_node(fitting, self._pods.all())
        binding = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": key.name, "namespace": key.namespace},
            "target": {"apiVersion": "v1", "kind": "Node", "name": name},
        }
        yield calls.create(PODS, binding, name=key.name, subresource="binding")


def _emptiest_node(nodes: Iterable[WholeNode], pods: Iterable[WholePod]) -> str:
    """Returns the name of the node with the fewest pods."""
    load = {node.metadata.name: 0 for node in nodes}
    for pod in pods:
        if pod.spec.get("nodeName") in load:
            load[pod.spec["nodeName"]] += 1
    # The name breaks ties, so that the choice is deterministic.
    return min(load, key=lambda node: (load[node], node))


def why_no_node_fits(pod: WholePod, nodes: Sequence[WholeNode]) -> str:
    """Returns why no node fits, counted by reason."""
    if not nodes:
        return "no nodes available to schedule pods"
    reasons = Counter(why_not(pod, node) for node in nodes)
    counted_reasons = ", ".join(sorted(f"{count} node(s) {reason}" for reason, count in reasons.items()))
    return f"0/{len(nodes)} nodes are available: {counted_reasons}."


def why_not(pod: WholePod, node: WholeNode) -> str:
    """Returns why the pod may not run on the node, or ""."""
    tolerations = pod.spec.get("tolerations") or ()
    if node.spec.get("unschedulable") and not _is_tolerated(_CORDON, tolerations):
        return "were unschedulable"
    for taint in node.spec.get("taints") or ():
        # PreferNoSchedule is only a preference.
        if taint.get("effect") != "PreferNoSchedule" and not _is_tolerated(taint, tolerations):
            return f"had untolerated taint {{{taint.get('key')}: {taint.get('value') or ''}}}"
    labels = node.metadata.labels
    selected = all(labels.get(key) == value for key, value in (pod.spec.get("nodeSelector") or {}).items())
    return "" if selected and _matches_affinity(pod, node) else "didn't match Pod's node affinity/selector"


def _matches_affinity(pod: WholePod, node: WholeNode) -> bool:
    affinity = (pod.spec.get("affinity") or {}).get("nodeAffinity") or {}
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution")
    return not required or any(_matches_term(term, node) for term in required.get("nodeSelectorTerms") or ())


def _matches_term(term: JSON, node: WholeNode) -> bool:
    """Returns whether a node matches a term; a term without requirements matches no node."""
    fields = {"metadata.name": node.metadata.name}
    parts = [(term.get("matchExpressions"), node.metadata.labels), (term.get("matchFields"), fields)]
    selectors = [(codec.convert(LabelSelector, {"matchExpressions": part}), values) for part, values in parts if part]
    return bool(selectors) and all(selector.matches(values) for selector, values in selectors)


def _is_tolerated(taint: JSON, tolerations: Iterable[JSON]) -> bool:
    return any(_tolerates(toleration, taint) for toleration in tolerations)


def _tolerates(toleration: JSON, taint: JSON) -> bool:
    """Returns whether a toleration covers a taint."""
    if toleration.get("effect") and toleration["effect"] != taint.get("effect"):
        return False
    if toleration.get("operator") == "Exists":
        # Exists without a key tolerates every taint.
        return not toleration.get("key") or toleration["key"] == taint.get("key")
    same = (toleration.get("value") or "") == (taint.get("value") or "")
    return bool(same and toleration.get("key") == taint.get("key"))


def _report_unschedulable(pod: WholePod, message: str, now: datetime) -> Iterator[Call[Any]]:
    """Yields the condition and the Event of an unschedulable pod, once and again when the message changes."""
    conditions: list[JSON] = pod.status.get("conditions") or []
    other_conditions = [condition for condition in conditions if condition.get("type") != "PodScheduled"]
    current: JSON = next((condition for condition in conditions if condition.get("type") == "PodScheduled"), {})
    if (current.get("status"), current.get("message")) == ("False", message):
        return
    time = now.strftime("%Y-%m-%dT%H:%M:%SZ")
    condition = {
        "type": "PodScheduled",
        "status": "False",
        "reason": "Unschedulable",
        "message": message,
        "lastProbeTime": None,
        "lastTransitionTime": current.get("lastTransitionTime") if current.get("status") == "False" else time,
    }
    metadata = pod.metadata
    status = {"status": {"conditions": [*other_conditions, condition]}}
    yield calls.merge_patch(PODS, metadata.name, status, metadata.namespace, subresource="status")
    yield warning_event(pod, PODS, "FailedScheduling", message, component="default-scheduler", now=now)
