"""Builds small clusters for the tests of simulated drains: a test states only what matters."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from tests import factories
from tests.factories import pod_json

from kubekit.api import codec
from kubekit.api.core_v1 import Node
from kubekit.api.scheduling import PodsOwner, SchedulingPod
from kubekit.api.workloads_v1 import PodDisruptionBudget
from runup.rehearse.decide.drains.drained_cluster import DrainedCluster, Pool

NOW = datetime(2026, 1, 14, 10, 0, tzinfo=UTC)
ZONE, HOST = "topology.kubernetes.io/zone", "kubernetes.io/hostname"
JSON = dict[str, Any]


def node(name: str, *, zone: str = "", labels: dict[str, str] | None = None, pods: str = "10", **fields: Any) -> Node:
    """A ready node with 4 cores, 8 GiB and places for 10 pods; `labels` are besides its hostname and zone."""
    places = {HOST: name, **({ZONE: zone} if zone else {})}
    return factories.node(name, role="", labels=places | (labels or {}), pods=pods, **fields)


def pod(
    name: str,
    on: str = "",
    *,
    owner: str = "ReplicaSet/web",
    labels: JSON | None = None,
    cpu: str = "100m",
    ready: str = "True",
    start_s: int = 20,
    **spec: Any,
) -> SchedulingPod:
    """A running pod of namespace `shop` that took `start_s` to become ready, and takes 10 s to end."""
    kind, _, owner_name = owner.partition("/")
    scheduled = NOW - timedelta(days=1)
    since = (("PodScheduled", "True", scheduled), ("Ready", ready, scheduled + timedelta(seconds=start_s)))
    conditions = [{"type": type_, "status": it, "lastTransitionTime": at.isoformat()} for type_, it, at in since]
    owners = [{"kind": kind, "name": owner_name, "controller": True}] if kind else []
    containers = [{"resources": {"requests": {"cpu": cpu}}, "ports": spec.pop("ports", [])}]
    raw = pod_json(
        name,
        on=on,
        phase="Running" if on else "Pending",
        labels=labels,
        metadata={"ownerReferences": owners},
        spec={"terminationGracePeriodSeconds": 10, "containers": containers, **spec},
        status={"conditions": conditions},
    )
    return codec.convert(SchedulingPod, raw)


def budget(name: str = "web", app: str = "web", **spec: Any) -> PodDisruptionBudget:
    """A budget over the pods of namespace `shop` with the label `app`."""
    raw = {
        "metadata": {"name": name, "namespace": "shop"},
        "spec": {"selector": {"matchLabels": {"app": app}}, **spec},
    }
    return codec.convert(PodDisruptionBudget, raw)


def owner(name: str, replicas: int, kind: str = "ReplicaSet", above: str = "") -> PodsOwner:
    """A ReplicaSet of namespace `shop`, or what `kind` says; `above` is the Deployment that has made it."""
    metadata: JSON = {"name": name, "namespace": "shop"}
    if above:
        metadata["ownerReferences"] = [{"kind": "Deployment", "name": above, "controller": True}]
    return codec.convert(PodsOwner, {"kind": kind, "metadata": metadata, "spec": {"replicas": replicas}})


def cluster(*nodes: Node, pods: tuple[SchedulingPod, ...] = (), at_once: int = 1, **fields: Any) -> DrainedCluster:
    """A cluster whose nodes are one pool, in their order."""
    pools = fields.pop(
        "pools", (Pool(name="worker", nodes=tuple(each.metadata.name for each in nodes), at_once=at_once),)
    )
    return DrainedCluster(nodes=nodes, pods=pods, pools=pools, **fields)
