"""A hosted cluster in the middle of an update to 4.19.5; a test states only what it changes."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

from tests.factories import JSON, iso, obj

from kubekit.api import codec
from kubekit.api.meta_v1 import Object
from kubekit.api.scheme import resource_of
from runup.api.hypershift_v1beta1 import ControlPlaneComponent, HostedCluster, HostedNodePool
from runup.api.rollouts_v1 import ClusterMachine
from runup.updatestatus.decide.assess import assess
from runup.updatestatus.decide.hosted.snapshot import HostedSnapshot
from runup.updatestatus.decide.read_status import Report, report_of_status

K = TypeVar("K", bound=Object)
NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
OLD, NEW = "4.18.20", "4.19.5"
NAMESPACE, CONTROL_PLANE = "clusters", "clusters-prod"


def ago(minutes: float) -> datetime:
    """The time so many minutes before `NOW`."""
    return NOW - timedelta(minutes=minutes)


def image(version: str) -> str:
    """The image of a release."""
    return f"quay.io/openshift-release-dev/ocp-release:{version}-x86_64"


def said(type_: str, status: str = "True", reason: str = "AsExpected", message: str = "", since: float = 5) -> JSON:
    """A condition that has held for so many minutes."""
    return {
        "type": type_, "status": status, "reason": reason, "message": message, "lastTransitionTime": iso(ago(since)),
    }  # fmt: skip


def hosted(
    *conditions: JSON, state: str = "Partial", started: float = 10, asked: str = NEW, **spec: Any
) -> HostedCluster:
    """The hosted cluster `prod`, whose newest release is in this state."""
    newest: JSON = {"state": state, "startedTime": iso(ago(started)), "version": NEW, "image": image(NEW)}
    newest["completionTime"] = iso(ago(started - 5)) if state == "Completed" else None
    old = {
        "state": "Completed", "startedTime": iso(ago(9999)), "completionTime": iso(ago(9990)),
        "version": OLD, "image": image(OLD),
    }  # fmt: skip
    document = obj(
        "hypershift.openshift.io/v1beta1",
        "HostedCluster",
        "prod",
        NAMESPACE,
        spec={"release": {"image": image(asked)}, **spec},
        status={
            "version": {
                "desired": {"version": NEW, "image": image(NEW)},
                "history": [newest, old],
                "observedGeneration": 2,
                "availableUpdates": None,
            },
            "conditions": [said("Available"), said("Degraded", "False"), *conditions],
        },
    )
    return codec.convert(HostedCluster, document)


def pool(
    *conditions: JSON,
    name: str = "prod-a",
    asked: str = NEW,
    version: str = OLD,
    how: str = "Replace",
    cluster: str = "prod",
    **spec: Any,
) -> HostedNodePool:
    """A node pool of three nodes that was asked to run this release."""
    document = obj(
        "hypershift.openshift.io/v1beta1",
        "NodePool",
        name,
        NAMESPACE,
        spec={
            "clusterName": cluster,
            "release": {"image": image(asked)},
            "replicas": 3,
            "management": {"upgradeType": how},
            **spec,
        },
        status={"replicas": 3, "version": version, "conditions": list(conditions)},
    )
    return codec.convert(HostedNodePool, document)


def updating(target: str = NEW, since: float = 5) -> JSON:
    """The condition of a pool that is being updated, in HyperShift's words."""
    return said("UpdatingVersion", message=f"Updating version in progress. Target version: {target}", since=since)


def machine(
    name: str,
    version: str = OLD,
    *conditions: JSON,
    phase: str = "Running",
    of: str = "prod-a",
    made: float = 5000,
    deleted: float | None = None,
    **annotations: str,
) -> ClusterMachine:
    """A Machine of the pool."""
    metadata: JSON = {
        "creationTimestamp": iso(ago(made)),
        "annotations": {"hypershift.openshift.io/nodePool": f"{NAMESPACE}/{of}", **annotations},
    }
    if deleted is not None:
        metadata["deletionTimestamp"] = iso(ago(deleted))
    node = {"nodeRef": {"name": f"node-{name}"}} if phase == "Running" else {}
    document = obj(
        "cluster.x-k8s.io/v1beta1",
        "Machine",
        name,
        CONTROL_PLANE,
        metadata=metadata,
        spec={"version": version},
        status={"phase": phase, **node, "conditions": list(conditions)},
    )
    return codec.convert(ClusterMachine, document)


def component(name: str, version: str = NEW, *conditions: JSON) -> ControlPlaneComponent:
    """A component of the control plane."""
    document = obj(
        "hypershift.openshift.io/v1beta1",
        "ControlPlaneComponent",
        name,
        CONTROL_PLANE,
        status={"version": version, "conditions": list(conditions) or [said("Available"), said("RolloutComplete")]},
    )
    return codec.convert(ControlPlaneComponent, document)


WAITS = component("etcd", OLD, said("Available"), said("RolloutComplete", "False", "WaitingForRolloutComplete"))
MACHINES = (machine("a-1", NEW, made=4), machine("a-2", deleted=3), machine("a-3"))


def snapshot(cluster: HostedCluster | None = None, **fields: Any) -> HostedSnapshot:
    """The control plane has one of two components, and the pool one of three Machines."""
    given: dict[str, Any] = {
        "pools": (pool(updating()),),
        "machines": MACHINES,
        "components": (component("kube-apiserver"), WAITS),
        "pods": (),
    }
    return HostedSnapshot(cluster=cluster or hosted(), **(given | fields))


def report(given: HostedSnapshot) -> Report:
    """What a single look reports."""
    return report_of_status(assess(given, None, NOW, watched=False))


def document(found: Any) -> JSON:
    """The object as a dump has it."""
    resource = resource_of(type(found))
    return {**codec.to_dict(found), "apiVersion": resource.api_version, "kind": resource.kind}


def decoded(kind: type[K], found: JSON) -> K:
    """The object of a document."""
    return codec.convert(kind, found)
