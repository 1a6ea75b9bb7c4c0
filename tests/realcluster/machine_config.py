"""A stand-in for the machine-config operator: drains the nodes of one pool and reboots them, one after the other.

Its pool, its configurations and its annotations of nodes are as the real one writes them; drains go through the API for
evictions, so that budgets count, and a reboot ends every process of the node. The test says when which step is taken.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tests.realcluster.cluster import RealCluster, ready
from tests.realcluster.kube import PODS, Kube, metadata

from kubekit.kube import calls
from kubekit.kube.api_errors import ApiError, NotFound

JSON = dict[str, Any]
GROUP = "machineconfiguration.openshift.io"
API = f"{GROUP}/v1"
POOL = "master"
ROLE = {"node-role.kubernetes.io/master": ""}
NOT_CREATED_AGAIN = ("DaemonSet", "Node")
"""Owners whose pods a drain leaves."""


class MachineConfig:
    """The pool `master`, of all nodes."""

    def __init__(self, cluster: RealCluster, kube: Kube) -> None:
        self._cluster = cluster
        self._kube = kube
        self._updated: list[str] = []

    def install(self, version: str) -> None:
        """A pool whose nodes all have the configuration of `version`."""
        self._updated = list(self._cluster.names)
        self._render(version)
        for name in self._cluster.names:
            config = rendered(version)
            self._annotate(name, currentConfig=config, desiredConfig=config, state="Done")
            self._annotate(name, desiredDrain=f"uncordon-{config}", lastAppliedDrain=f"uncordon-{config}")
        self._tell(version)

    def render(self, version: str) -> None:
        """Another configuration, which no node has yet."""
        self._updated = []
        self._render(version)
        self._tell(version)

    def begin(self, node: str, version: str) -> None:
        """The node must get the configuration: it is cordoned and will be drained."""
        config = rendered(version)
        self._annotate(node, desiredConfig=config, state="Working", desiredDrain=f"drain-{config}")
        self._cordon(node, cordoned=True)
        self._tell(version)

    def drain(self, node: str) -> Sequence[str]:
        """Evicts what a drain evicts; returns the pods that a budget keeps."""
        kept = []
        for pod in self._on(node):
            about = metadata(pod["metadata"]["name"], pod["metadata"]["namespace"])
            eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": about}
            try:
                self._kube.client.send(calls.create(PODS, eviction, subresource="eviction", name=about["name"]))
            except NotFound:
                continue
            except ApiError as error:
                if error.code != 429:
                    raise
                kept.append(f"{about['namespace']}/{about['name']}")
        return kept

    def drained(self, node: str) -> bool:
        """Whether nothing that a drain evicts is left."""
        return not self.drain(node) and not self._on(node, ending=True)

    def finish(self, node: str, version: str) -> None:
        """Reboots the node into the configuration, and lets pods in again."""
        config = rendered(version)
        self._annotate(node, lastAppliedDrain=f"drain-{config}")
        self._cluster.reboot(node)
        boot = self._kube.get("v1", "Node", node)["status"]["nodeInfo"]["bootID"]
        assert boot  # of the machine, which did not reboot; the node's own lease shows that its kubelet is back
        self._kube.until(lambda: ready(self._kube.get("v1", "Node", node)), f"{node} is Ready")
        self._annotate(node, currentConfig=config, state="Done", desiredDrain=f"uncordon-{config}")
        self._cordon(node, cordoned=False)
        self._annotate(node, lastAppliedDrain=f"uncordon-{config}")
        self._updated.append(node)
        self._tell(version)

    def _on(self, node: str, *, ending: bool = False) -> list[JSON]:
        pods = self._kube.client.send(calls.list_raw(PODS, field_selector=f"spec.nodeName={node}")).items
        return [
            pod
            for pod in pods
            if pod["status"].get("phase") not in ("Succeeded", "Failed")
            and not any(owner["kind"] in NOT_CREATED_AGAIN for owner in pod["metadata"].get("ownerReferences", ()))
            and (ending or "deletionTimestamp" not in pod["metadata"])
        ]

    def _render(self, version: str) -> None:
        about = metadata(rendered(version), annotations={f"{GROUP}/release-image-version": version})
        config = {"config": {"ignition": {"version": "3.5.0"}}}
        pool = {
            "paused": False,
            "machineConfigSelector": {"matchLabels": {f"{GROUP}/role": POOL}},
            "nodeSelector": {"matchLabels": ROLE},
            "configuration": {"name": rendered(version)},
        }
        self._kube.apply(
            {"apiVersion": API, "kind": "MachineConfig", "metadata": about, "spec": config},
            {"apiVersion": API, "kind": "MachineConfigPool", "metadata": metadata(POOL), "spec": pool},
        )

    def _tell(self, version: str) -> None:
        """What the pool says about itself."""
        count, updated = len(self._cluster.names), len(self._updated)
        pool = self._kube.get(API, "MachineConfigPool", POOL)
        done = updated == count
        conditions = [
            _condition("RenderDegraded", holds=False),
            _condition("NodeDegraded", holds=False),
            _condition("Degraded", holds=False),
            _condition("Updated", holds=done),
            _condition("Updating", holds=not done),
        ]
        status = {
            "observedGeneration": pool["metadata"]["generation"],
            "machineCount": count,
            "readyMachineCount": updated,
            "updatedMachineCount": updated,
            "unavailableMachineCount": 0 if done else 1,
            "degradedMachineCount": 0,
            "conditions": conditions,
        }
        if done:
            status["configuration"] = {"name": rendered(version)}
        resource = self._kube.resource(API, "MachineConfigPool")
        self._kube.client.send(calls.merge_patch(resource, POOL, {"status": status}, subresource="status"))

    def _annotate(self, node: str, **values: str) -> None:
        annotations = {f"{GROUP}/{name}": value for name, value in values.items()}
        self._kube.patch("v1", "Node", node, {"metadata": {"annotations": annotations}})

    def _cordon(self, node: str, *, cordoned: bool) -> None:
        self._kube.patch("v1", "Node", node, {"spec": {"unschedulable": cordoned or None}})


def rendered(version: str) -> str:
    """The configuration's name."""
    return f"rendered-{POOL}-{version.replace('.', '-')}"


def _condition(kind: str, *, holds: bool) -> JSON:
    return {
        "type": kind,
        "status": str(holds),
        "reason": "",
        "message": "",
        "lastTransitionTime": "2026-10-05T08:00:00Z",
    }
