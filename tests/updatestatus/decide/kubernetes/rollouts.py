"""A cluster without a ClusterVersion in the middle of an update to v1.34.2; a test states only what it changes."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from tests.factories import JSON, iso, node_json, obj, pod_json

from kubekit.api import codec
from kubekit.api.core_v1 import Node, Pod
from kubekit.api.meta_v1 import Object
from runup.updatestatus.decide.assess import assess
from runup.updatestatus.decide.kubernetes.snapshot import KubernetesSnapshot
from runup.updatestatus.decide.read_status import Report, report_of_status

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
OLD, NEW = "v1.33.5", "v1.34.2"
KUBEADM = {"kubeadm.alpha.kubernetes.io/cri-socket": "unix:///run/containerd/containerd.sock"}


def ago(minutes: float) -> datetime:
    """The time so many minutes before `NOW`."""
    return NOW - timedelta(minutes=minutes)


def machine(
    name: str = "worker-1",
    version: str = OLD,
    *,
    role: str = "",
    ready: str = "True",
    since: float = 60 * 24 * 30,
    cordoned: float | None = None,
    labels: dict[str, str] | None = None,
    annotations: dict[str, str] | None = None,
    taints: Sequence[JSON] = (),
    made: float = 60 * 24 * 30,
    conditions: dict[str, str] | None = None,
) -> Node:
    """A node of kubeadm that has been ready for `since` minutes, and cordoned for `cordoned` if that is given."""
    cordon: list[JSON] = []
    if cordoned is not None:
        key = "node.kubernetes.io/unschedulable"
        cordon = [{"key": key, "effect": "NoSchedule", "timeAdded": iso(ago(cordoned))}]
    made_json = node_json(
        name,
        role=role,
        kubelet=version,
        ready=ready,
        labels=labels,
        annotations=KUBEADM if annotations is None else annotations,
        metadata={"creationTimestamp": iso(ago(made))},
        unschedulable=cordoned is not None,
        taints=[*cordon, *taints],
        conditions=conditions,
    )
    for condition in made_json["status"]["conditions"]:
        condition["lastTransitionTime"] = iso(ago(since))
    return codec.convert(Node, made_json)


def server(node: str, version: str = NEW, since: float = 40) -> Pod:
    """The static pod of a kube-apiserver, as kubeadm makes it."""
    spec = {"containers": [{"name": "kube-apiserver", "image": f"registry.k8s.io/kube-apiserver:{version}"}]}
    metadata = {"creationTimestamp": iso(ago(since)), "labels": {"component": "kube-apiserver"}}
    name = f"kube-apiserver-{node}"
    return codec.convert(Pod, pod_json(name, "kube-system", on=node, owner="", metadata=metadata, spec=spec))


def some_pod(name: str = "web-1", on: str = "worker-1", **fields: Any) -> Pod:
    """A pod of a ReplicaSet in namespace shop."""
    return codec.convert(Pod, pod_json(name, on=on, **fields))


def read(kind: type[Any], api_version: str, name: str, namespace: str = "", **fields: Any) -> Any:
    """An object of `kind`, as its API server writes it."""
    decoded: Object = codec.convert(kind, obj(api_version, kind.__name__, name, namespace, **fields))
    return decoded


def report(*nodes: Node, answer: str = NEW, now: datetime = NOW, **fields: Any) -> Report:
    """The report about a cluster with these nodes; `fields` are further ones of the snapshot."""
    snapshot = KubernetesSnapshot(nodes=nodes, answer=answer, **fields)
    return report_of_status(assess(snapshot, None, now, max_bytes=None, watched=False))


def groups(shown: Report) -> dict[str, tuple[str, int, int]]:
    """Of each group its assessment, the nodes that are updated, and all of them."""
    return {pool.name: (pool.assessment, pool.done, pool.counts.total) for pool in shown.pools}


def phases(shown: Report) -> dict[str, str]:
    """The phase of each node."""
    return {row.name: row.phase for pool in shown.pools for row in pool.rows}


def checks(shown: Report) -> dict[str, str]:
    """The summary of each finding, by its rule."""
    return {row.check: row.summary for row in shown.health}
