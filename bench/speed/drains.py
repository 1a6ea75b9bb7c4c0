"""A simulated drain of clusters of 100, 300 and 1,000 nodes with thirty pods each: seconds of one core, and memory.

The clusters are made by number, and always the same: Deployments with budgets, spread and anti-affinity, StatefulSets
with volumes in zones, pods of priority. Aim: 1,000 nodes and 30,000 pods in 20 s.
"""

from __future__ import annotations

import gc
import resource
import time
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

from kubekit.api import codec
from kubekit.api.core_v1 import Node
from kubekit.api.scheduling import PersistentVolumeClaim, PodsOwner, SchedulingPod, SchedulingVolumeObject
from kubekit.api.workloads_v1 import PodDisruptionBudget
from runup.rehearse.decide.drains.drained_cluster import DrainedCluster, DrainSettings, Pool
from runup.rehearse.decide.drains.simulation import simulate

SIZES = (100, 300, 1000)
PODS_A_NODE = 30
_NOW = datetime(2026, 1, 14, 10, 0, tzinfo=UTC)
JSON = dict[str, Any]


def run(seed: int = 1) -> JSON:
    """Simulates each size once."""
    return {f"{nodes} nodes": measure(nodes, seed) for nodes in SIZES}


def measure(nodes: int, seed: int) -> JSON:
    """Returns what a simulation of that many nodes costs, and what it came to."""
    cluster = made(nodes, seed)
    gc.collect()
    begun = time.process_time()
    result = simulate(cluster, DrainSettings(), _NOW)
    return {
        "pods": len(cluster.pods),
        "cpu_s": round(time.process_time() - begun, 2),
        "peak_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
        "evicted": result.evicted,
        "hours": round(result.duration_s / 3600, 1),
        "stuck": len(result.stuck),
        "waited_for_a_place": sum(each.pods for each in result.unplaced),
        "without_a_place": sum(each.pods for each in result.homeless),
        "outages": len(result.outages),
        "preempted": len(result.preempted),
    }


def made(nodes: int, seed: int) -> DrainedCluster:
    """Returns the cluster of that size."""
    random = Random(seed)
    names = [f"worker-{number:04}" for number in range(nodes)]
    zones = {name: f"zone-{number % 3}" for number, name in enumerate(names)}
    maker = _Maker(random, names, zones)
    while len(maker.pods) < nodes * PODS_A_NODE:
        maker.workload()
    masters = tuple(f"master-{number}" for number in range(3))
    of_masters = [_node(name, f"zone-{index}", control_plane=True) for index, name in enumerate(masters)]
    return DrainedCluster(
        nodes=(*of_masters, *(_node(name, zones[name]) for name in names)),
        pods=tuple(maker.pods),
        budgets=tuple(maker.budgets),
        owners=tuple(maker.owners),
        claims=tuple(maker.claims),
        volumes=tuple(maker.volumes),
        pools=(
            Pool(name="master", nodes=masters),
            Pool(name="worker", nodes=tuple(names), at_once=max(1, nodes // 20)),
        ),
    )


def _node(name: str, zone: str, *, control_plane: bool = False) -> Node:
    labels = {"kubernetes.io/hostname": name, "topology.kubernetes.io/zone": zone}
    taints = [{"key": "node-role.kubernetes.io/control-plane", "effect": "NoSchedule"}] if control_plane else []
    node: JSON = {
        "metadata": {"name": name, "labels": labels},
        "spec": {"taints": taints},
        "status": {
            "allocatable": {"cpu": "16", "memory": "64Gi", "pods": "250"},
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }
    return codec.convert(Node, node)


class _Maker:
    """Makes workloads one after another, and puts their pods on nodes in turn."""

    def __init__(self, random: Random, names: list[str], zones: dict[str, str]) -> None:
        self._random, self._names, self._zones = random, names, zones
        self.pods: list[SchedulingPod] = []
        self.budgets: list[PodDisruptionBudget] = []
        self.owners: list[PodsOwner] = []
        self.claims: list[PersistentVolumeClaim] = []
        self.volumes: list[SchedulingVolumeObject] = []
        self._number = 0

    def workload(self) -> None:
        """Makes one workload with its budget and its volumes."""
        random, self._number = self._random, self._number + 1
        name, namespace = f"app-{self._number}", f"team-{self._number % 100}"
        replicas = random.choice((1, 2, 3, 3, 5, 10, 30))
        kind = "StatefulSet" if random.random() < 0.2 else "ReplicaSet"
        labels = {"app": name}
        spec: JSON = {
            "containers": [{"resources": {"requests": {"cpu": f"{random.choice((50, 100, 250, 500))}m"}}}],
            "terminationGracePeriodSeconds": random.choice((5, 30, 30, 60)),
            "priority": random.choice((0, 0, 0, 1000)),
        }
        spec["containers"][0]["resources"]["requests"]["memory"] = f"{random.choice((128, 256, 1024))}Mi"
        selector = {"matchLabels": labels}
        if random.random() < 0.2:
            term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": selector}
            spec["affinity"] = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
        elif random.random() < 0.25:
            key = random.choice(("kubernetes.io/hostname", "topology.kubernetes.io/zone"))
            constraint = {"maxSkew": 1, "topologyKey": key, "whenUnsatisfiable": "DoNotSchedule"}
            spec["topologySpreadConstraints"] = [{**constraint, "labelSelector": selector}]
        metadata = {"name": name, "namespace": namespace}
        self.owners.append(
            codec.convert(PodsOwner, {"kind": kind, "metadata": metadata, "spec": {"replicas": replicas}})
        )
        if random.random() < 0.5:
            budget = {"metadata": metadata, "spec": {"maxUnavailable": 1, "selector": selector}}
            self.budgets.append(codec.convert(PodDisruptionBudget, budget))
        first = random.randrange(len(self._names))
        for index in range(replicas):
            node = self._names[(first + index) % len(self._names)]
            self._pod(f"{name}-{index}", namespace, labels, kind, name, node, dict(spec))

    def _pod(self, name: str, namespace: str, labels: JSON, kind: str, owner: str, node: str, spec: JSON) -> None:
        if kind == "StatefulSet":
            labels = {**labels, "statefulset.kubernetes.io/pod-name": name}
            spec["volumes"] = [{"persistentVolumeClaim": {"claimName": f"data-{name}"}}]
            self._claim(f"data-{name}", namespace, self._zones[node])
        begun = _NOW - timedelta(days=3)
        ready = begun + timedelta(seconds=self._random.choice((5, 20, 40, 90)))
        pod: JSON = {
            "metadata": {
                "name": name,
                "namespace": namespace,
                "labels": labels,
                "ownerReferences": [{"kind": kind, "name": owner, "controller": True}],
            },
            "spec": {"nodeName": node, **spec},
            "status": {
                "phase": "Running",
                "conditions": [
                    {"type": "PodScheduled", "status": "True", "lastTransitionTime": begun.isoformat()},
                    {"type": "Ready", "status": "True", "lastTransitionTime": ready.isoformat()},
                ],
            },
        }
        self.pods.append(codec.convert(SchedulingPod, pod))

    def _claim(self, name: str, namespace: str, zone: str) -> None:
        volume = f"pv-{len(self.volumes)}"
        metadata = {"name": name, "namespace": namespace}
        self.claims.append(codec.convert(PersistentVolumeClaim, {"metadata": metadata, "spec": {"volumeName": volume}}))
        expression = {"key": "topology.kubernetes.io/zone", "operator": "In", "values": [zone]}
        affinity = {"required": {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}}
        csi = {"driver": "csi.example.com", "volumeHandle": volume}
        spec = {"nodeAffinity": affinity, "csi": csi}
        self.volumes.append(codec.convert(SchedulingVolumeObject, {"metadata": {"name": volume}, "spec": spec}))
