"""Updates the nodes of a cluster without a ClusterVersion, one after another, as the tools of its distribution do.

The state is in the cluster alone, so that an update continues where it stopped when the sandbox is started again. Pods
are evicted by the eviction API: a budget of the user holds the update up, as it would in another cluster.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import structlog

from kubekit.api.core_v1 import Node, Pod
from kubekit.api.scheme import Resource, resource_of
from kubekit.kube import calls
from kubekit.kube.api_errors import AlreadyExists, ApiError, NotFound
from kubekit.kube.client import Client
from kubekit.kube.clock import Clock
from kubekit.kube.request import Call
from kubekit.rules.eviction_rules import needs_eviction
from kubekit.rules.node_rules import CORDON
from runup.rules.node_groups import is_control_plane
from runup.sandbox.scenario.folder import NodeRollout

JSON = dict[str, Any]
KUBE_SYSTEM, KUBEADM_CONFIG = "kube-system", "kubeadm-config"
NODES, PODS = resource_of(Node), resource_of(Pod)
CONFIG_MAPS = Resource(group="", version="v1", kind="ConfigMap", plural="configmaps", namespaced=True)
PLANS = Resource(group="upgrade.cattle.io", version="v1", kind="Plan", plural="plans", namespaced=True)
PLAN_NAMESPACE, PLAN_LABEL = "system-upgrade", "plan.upgrade.cattle.io/"
log = structlog.get_logger("rollout")


class Rollout:
    """Updates the nodes until every one has the version. Errors of the server are logged, and the step is repeated."""

    def __init__(self, client: Client, clock: Clock, spec: NodeRollout) -> None:
        self._client, self._clock, self._spec = client, clock, spec

    async def run(self) -> None:
        """Works until cancelled; does nothing more once all nodes have the version."""
        while True:
            try:
                node = await self._next()
                if node is not None:
                    log.info("updating", node=node.metadata.name, to=self._spec.to)
                    await self._update(node)
            except ApiError as error:
                log.warning("a step of the update failed", error=str(error))
            await self._pause()

    async def _pause(self) -> None:
        await self._clock.sleep(self._spec.pause_s)

    async def _nodes(self) -> list[Node]:
        listing = await self._client.listing(Node)
        return sorted(listing.items, key=lambda node: (not is_control_plane(node), node.metadata.name))

    async def _next(self) -> Node | None:
        """Returns the next node that has to be updated, those of the control plane first."""
        nodes = await self._nodes()
        if self._spec.by == "kubeadm":
            await self._start_servers([node for node in nodes if is_control_plane(node)])
        versions = ((node, node.status.node_info.kubelet_version) for node in nodes)
        return next((node for node, has in versions if has != self._spec.to or node.spec.unschedulable), None)

    async def _update(self, node: Node) -> None:
        if self._spec.by == "service":
            await self._replace(node)
            return
        name, is_server = node.metadata.name, is_control_plane(node)
        plan = f"{'server' if is_server else 'agent'}-plan"
        if self._spec.by == "plan":
            await self._patch_plan(plan, [name])
        elif is_server:
            await self._update_server(name)
        await self._drain(node)
        await self._send(_ready_patch(name, "False", self._clock, version=self._spec.to))
        await self._pause()
        await self._send(_ready_patch(name, "True", self._clock))
        await self._pause()
        labels = {"metadata": {"labels": {f"{PLAN_LABEL}{plan}": "sandbox"}}} if self._spec.by == "plan" else {}
        await self._send(calls.merge_patch(NODES, name, {"spec": {"unschedulable": None, "taints": None}} | labels))
        if self._spec.by == "plan":
            await self._patch_plan(plan, [])

    async def _replace(self, node: Node) -> None:
        """Adds a node of the same group with the version, drains the old one and deletes it."""
        name = f"{node.metadata.name.rpartition('-')[0]}-{node.metadata.uid[:5]}n"
        whole = await self._client.send(calls.get_raw(NODES, node.metadata.name))
        labels = {**node.metadata.labels, "kubernetes.io/hostname": name}
        status = whole["status"] | {"nodeInfo": {**whole["status"]["nodeInfo"], "kubeletVersion": self._spec.to}}
        with suppress(AlreadyExists):
            await self._send(calls.create(NODES, {"metadata": {"name": name, "labels": labels}}))
        await self._send(calls.merge_patch(NODES, name, {"status": status}, subresource="status"))
        await self._send(_ready_patch(name, "True", self._clock))
        await self._pause()
        await self._drain(node)
        with suppress(NotFound):
            await self._send(calls.delete(NODES, node.metadata.name))

    async def _drain(self, node: Node) -> None:
        """Cordons the node, and evicts its pods until none is left."""
        name = node.metadata.name
        taint = {"key": CORDON.key, "effect": CORDON.effect, "timeAdded": f"{self._clock.now():%Y-%m-%dT%H:%M:%SZ}"}
        if not node.spec.unschedulable:
            await self._send(calls.merge_patch(NODES, name, {"spec": {"unschedulable": True, "taints": [taint]}}))
        while pods := list(_evicted(await self._pods_of(name))):
            for pod in pods:
                if pod.metadata.deletion_timestamp is None:
                    with suppress(ApiError):
                        await self._send(_eviction(pod))
            await self._pause()

    async def _pods_of(self, node: str) -> tuple[Pod, ...]:
        return tuple((await self._client.listing(Pod, field_selector=f"spec.nodeName={node}")).items)

    async def _start_servers(self, nodes: list[Node]) -> None:
        """Creates the static pods of kube-apiserver that are missing; a node that is updated has the new version."""
        for node in nodes:
            pod = _server_pod(node, node.status.node_info.kubelet_version)
            with suppress(AlreadyExists):
                await self._send(calls.create(PODS, pod))

    async def _update_server(self, node: str) -> None:
        """Does what `kubeadm upgrade apply` and `kubeadm upgrade node` do on a node of the control plane."""
        await self._send(calls.delete(PODS, f"kube-apiserver-{node}", KUBE_SYSTEM, grace_period_s=0))
        await self._send(calls.create(PODS, _server_pod(await self._client.send(calls.get(Node, node)), self._spec.to)))
        data = {"data": {"ClusterConfiguration": f"kubernetesVersion: {self._spec.to}\n"}}
        await self._send(calls.merge_patch(CONFIG_MAPS, KUBEADM_CONFIG, data, KUBE_SYSTEM))
        await self._pause()

    async def _patch_plan(self, name: str, nodes: list[str]) -> None:
        status = {"status": {"applying": nodes, "latestVersion": self._spec.to}}
        await self._send(calls.merge_patch(PLANS, name, status, PLAN_NAMESPACE))

    async def _send(self, call: Call[JSON]) -> None:
        await self._client.send(call)


def _evicted(pods: tuple[Pod, ...]) -> Iterator[Pod]:
    for pod in pods:
        if needs_eviction(pod.status.phase, pod.metadata.owner_references, pod.metadata.annotations):
            yield pod


def _eviction(pod: Pod) -> Call[JSON]:
    metadata = {"name": pod.metadata.name, "namespace": pod.metadata.namespace}
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": metadata}
    return calls.create(PODS, eviction, subresource="eviction", name=pod.metadata.name)


def _ready_patch(node: str, status: str, clock: Clock, *, version: str = "") -> Call[JSON]:
    """Returns the call by which a kubelet says whether it is ready, with its version if that is another."""
    now = f"{clock.now():%Y-%m-%dT%H:%M:%SZ}"
    reason, message = "KubeletReady", "kubelet is posting ready status"
    if status != "True":
        reason, message = "KubeletNotReady", "container runtime status check may not have completed yet"
    ready = {"type": "Ready", "status": status, "reason": reason, "message": message, "lastTransitionTime": now}
    patch: JSON = {"conditions": [ready]} | ({"nodeInfo": {"kubeletVersion": version}} if version else {})
    return calls.merge_patch(NODES, node, {"status": patch}, subresource="status")


def _server_pod(node: Node, version: str) -> JSON:
    """Returns the static pod of kube-apiserver that a kubelet mirrors."""
    name = node.metadata.name
    owner = {"apiVersion": "v1", "kind": "Node", "name": name, "uid": node.metadata.uid, "controller": True}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"kube-apiserver-{name}",
            "namespace": KUBE_SYSTEM,
            "labels": {"component": "kube-apiserver", "tier": "control-plane"},
            "ownerReferences": [owner],
        },
        "spec": {
            "nodeName": name,
            "hostNetwork": True,
            "priorityClassName": "system-node-critical",
            "tolerations": [{"operator": "Exists"}],
            "containers": [{"name": "kube-apiserver", "image": f"registry.k8s.io/kube-apiserver:{version}"}],
        },
    }
