"""Objects that are healthy by default, so that a test states only what matters.

A function that ends with `_json` returns an object as the API server writes it; its namesake decodes that object.
`**changes` replace fields of the status (or of what the docstring names) by their snake_case names.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from kubekit.api import codec, core_v1, pod_parts, workloads_v1
from kubekit.api.codec import Undecodable
from kubekit.api.meta_v1 import Condition, ConditionStatus, LabelSelector, Object, ObjectMeta
from kubekit.api.scheme import RESOURCES, Resource, resource_of
from kubekit.lang.version import Version
from runup.api import cluster_settings_v1, config_v1, machineconfig_v1, operator_v1
from runup.checks.catalogue import CHECKS
from runup.checks.catalogue.shared.pods import PODS
from runup.checks.decide.model import Context, Snapshot

JSON = dict[str, Any]
SINCE = datetime(2026, 1, 14, 9, 30, tzinfo=UTC)
NOW = datetime(2026, 1, 14, 10, 0, tzinfo=UTC)


def iso(time: datetime) -> str:
    """A time as the API server writes it."""
    return f"{time:%Y-%m-%dT%H:%M:%SZ}"


def iso_before(seconds: float) -> str:
    """The time so many seconds before `NOW`, as the API server writes it."""
    return iso(NOW - timedelta(seconds=seconds))


def condition(
    type_: str, status: ConditionStatus = "True", reason: str = "AsExpected", message: str = "", since: datetime = SINCE
) -> Condition:
    """A condition that has held since `SINCE`."""
    return Condition(type=type_, status=status, reason=reason, message=message, last_transition_time=since)


def obj(api_version: str, kind: str, name: str, namespace: str = "", **fields: Any) -> JSON:
    """An object; `metadata` among its fields are further fields of its metadata."""
    metadata = {"name": name, **({"namespace": namespace} if namespace else {}), **fields.pop("metadata", {})}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **fields}


def config_map_json(name: str, namespace: str = "default", **data: str) -> JSON:
    """A ConfigMap."""
    return obj("v1", "ConfigMap", name, namespace, data=data)


def condition_json(type_: str, status: str = "True", reason: str = "R", message: str = "m") -> JSON:
    """A condition that has held since `SINCE`."""
    return {"type": type_, "status": status, "reason": reason, "message": message, "lastTransitionTime": iso(SINCE)}


def node_json(
    name: str = "worker-0",
    *,
    role: str = "worker",
    kubelet: str = "v1.36.0",
    architecture: str = "amd64",
    kernel: str = "5.14.0-1.el9.x86_64",
    info: JSON | None = None,
    ready: str | None = "True",
    conditions: dict[str, str] | None = None,
    cpu: str = "4",
    memory: str = "8Gi",
    pods: str = "110",
    labels: dict[str, str] | None = None,
    annotations: dict[str, str] | None = None,
    metadata: JSON | None = None,
    unschedulable: bool = False,
    taints: Sequence[JSON] = (),
) -> JSON:
    """A ready node; `ready=None` leaves the condition out, and an empty role its label.

    `conditions` are the statuses of further ones, and `info` further fields of its `nodeInfo`;
    `cpu`, `memory` and `pods` are allocatable.
    """
    of_kubelet = {"reason": "KubeletReady", "message": "kubelet is posting ready status"}
    listed: list[JSON] = [] if ready is None else [{"type": "Ready", "status": ready, **of_kubelet}]
    listed += [{"type": type_, "status": status} for type_, status in (conditions or {}).items()]
    return obj(
        "v1",
        "Node",
        name,
        metadata={
            "labels": ({f"node-role.kubernetes.io/{role}": ""} if role else {}) | (labels or {}),
            "annotations": annotations or {},
            **(metadata or {}),
        },
        spec={"unschedulable": unschedulable, "taints": list(taints)},
        status={
            "conditions": [{"lastTransitionTime": iso(SINCE), **each} for each in listed],
            "nodeInfo": {
                "kubeletVersion": kubelet,
                "architecture": architecture,
                "kernelVersion": kernel,
                **(info or {}),
            },
            "allocatable": {"cpu": cpu, "memory": memory, "pods": pods},
        },
    )


def node(name: str = "worker-0", **fields: Any) -> core_v1.Node:
    """`node_json`, decoded."""
    return codec.convert(core_v1.Node, node_json(name, **fields))


def cluster_operator(
    name: str = "etcd",
    *,
    available: ConditionStatus | None = "True",
    degraded: ConditionStatus | None = "False",
    progressing: ConditionStatus | None = "False",
    upgradeable: ConditionStatus | None = "True",
    reason: str = "AsExpected",
    message: str = "All is well",
    version: str = "5.0.0",
    since: datetime = SINCE,
) -> config_v1.ClusterOperator:
    """A healthy operator; None leaves a condition out. `reason` and `message` are those of every condition."""
    statuses = {"Available": available, "Degraded": degraded, "Progressing": progressing, "Upgradeable": upgradeable}
    return config_v1.ClusterOperator(
        metadata=ObjectMeta(name=name),
        status=config_v1.ClusterOperatorStatus(
            conditions=tuple(
                condition(type_, status, reason=reason, message=message, since=since)
                for type_, status in statuses.items()
                if status is not None
            ),
            versions=(config_v1.OperandVersion(name="operator", version=version),),
        ),
    )


def pool_json(
    name: str = "worker",
    *,
    machines: int = 3,
    updated: int | None = None,
    degraded: int = 0,
    rendered: str = "1",
    current: str = "1",
    since: datetime | None = SINCE,
    selects: str | None = "",
    spec: JSON | None = None,
    **statuses: ConditionStatus | None,
) -> JSON:
    """A pool at its newest configuration, which selects the nodes of its role, or those that have label `selects`.

    `**statuses` replace those of the conditions, e.g. `Updating="True"`; None leaves one out. `rendered` is the
    configuration that the pool should have, `current` the one that all its machines have.
    """
    conditions: dict[str, ConditionStatus | None] = {
        **dict.fromkeys(("RenderDegraded", "NodeDegraded", "Degraded"), "False"),
        "Updated": "True",
        "Updating": "False",
        **statuses,
    }
    labels = {} if selects == "{}" else {selects or f"node-role.kubernetes.io/{name}": ""}
    done = machines if updated is None else updated
    return obj(
        "machineconfiguration.openshift.io/v1",
        "MachineConfigPool",
        name,
        metadata={"generation": 1},
        spec={
            **({} if selects is None else {"nodeSelector": {"matchLabels": labels}}),
            "configuration": {"name": f"rendered-{name}-{rendered}"},
            **(spec or {}),
        },
        status={
            "observedGeneration": 1,
            "configuration": {"name": f"rendered-{name}-{current}", "source": [{"name": f"00-{name}"}]},
            "machineCount": machines,
            "readyMachineCount": done,
            "updatedMachineCount": done,
            "degradedMachineCount": degraded,
            "conditions": [
                {
                    "type": type_,
                    "status": status,
                    "message": f"{type_} of {name}",
                    "lastTransitionTime": since.isoformat() if since else None,
                }
                for type_, status in conditions.items()
                if status
            ],
        },
    )


def pool(name: str = "worker", *, paused: bool = False, **fields: Any) -> machineconfig_v1.MachineConfigPool:
    """`pool_json`, decoded."""
    return codec.convert(machineconfig_v1.MachineConfigPool, pool_json(name, spec={"paused": paused}, **fields))


def pod_json(
    name: str = "web-1",
    namespace: str = "shop",
    *,
    on: str = "worker-0",
    owner: str = "ReplicaSet",
    phase: str = "Running",
    labels: dict[str, str] | None = None,
    requests: dict[str, str] | None = None,
    metadata: JSON | None = None,
    spec: JSON | None = None,
    status: JSON | None = None,
) -> JSON:
    """A pod `app: web` on a node, which the object `web` of kind `owner` controls, if that is not empty."""
    of_owner = {"apiVersion": "apps/v1", "kind": owner, "name": "web", "uid": "uid-web", "controller": True}
    owners = {"ownerReferences": [of_owner]} if owner else {}
    container = {"name": "web", "image": "registry.example/web:1"} | (
        {"resources": {"requests": requests}} if requests else {}
    )
    return obj(
        "v1",
        "Pod",
        name,
        namespace,
        metadata={"labels": {"app": "web"} if labels is None else labels, **owners, **(metadata or {})},
        spec={"nodeName": on, "containers": [container], **(spec or {})},
        status={"phase": phase, **(status or {})},
    )


def pod(name: str = "web-1", namespace: str = "shop", *, deleted: bool = False, **fields: Any) -> pod_parts.PlacedPod:
    """`pod_json`, as checks get it."""
    metadata = {"deletionTimestamp": iso(NOW)} if deleted else {}
    listed = codec.convert(pod_parts.ListedPod, pod_json(name, namespace, metadata=metadata, **fields))
    placed: pod_parts.PlacedPod = PODS.keep(listed)
    return placed


def etcd(
    available: ConditionStatus | None = "True", degraded: ConditionStatus | None = "False", since: datetime = SINCE
) -> operator_v1.Etcd:
    """The cluster's Etcd; None leaves a condition out."""
    statuses = {"EtcdMembersAvailable": available, "EtcdMembersDegraded": degraded}
    conditions = (
        condition(type_, status, reason="Members", message=type_, since=since)
        for type_, status in statuses.items()
        if status
    )
    return operator_v1.Etcd(
        metadata=ObjectMeta(name="cluster"), status=operator_v1.EtcdStatus(conditions=tuple(conditions))
    )


def pdb(
    name: str = "web",
    namespace: str = "shop",
    *,
    min_available: int | str | None = None,
    max_unavailable: int | str | None = 1,
    selects: dict[str, str] | None = None,
    unhealthy: str = "",
    **changes: Any,
) -> workloads_v1.PodDisruptionBudget:
    """A budget over three healthy pods `app: web` that allows one disruption; `**changes` are fields of its status."""
    status: dict[str, Any] = {
        "observed_generation": 1,
        "disruptions_allowed": 1,
        "current_healthy": 3,
        "desired_healthy": 2,
        "expected_pods": 3,
        **changes,
    }
    return workloads_v1.PodDisruptionBudget(
        metadata=ObjectMeta(name=name, namespace=namespace, generation=1),
        spec=workloads_v1.PodDisruptionBudgetSpec(
            min_available=min_available,
            max_unavailable=None if min_available is not None else max_unavailable,
            selector=LabelSelector(match_labels={"app": "web"} if selects is None else selects),
            unhealthy_pod_eviction_policy=unhealthy,
        ),
        status=workloads_v1.PodDisruptionBudgetStatus(**status),
    )


def cluster_version(
    version: str = "5.0.0",
    *,
    progressing: ConditionStatus | None = "False",
    failing: ConditionStatus | None = "False",
    upgradeable: ConditionStatus | None = None,
    since: datetime = SINCE,
    desired_update: config_v1.Update | None = None,
    channel: str = "stable-5.0",
    **changes: Any,
) -> config_v1.ClusterVersion:
    """A cluster that runs `version`, not updating; `**changes` are fields of its status."""
    image = "quay.io/openshift-release-dev/ocp-release@sha256:" + "5" * 64
    conditions = [condition("Available")]
    if failing is not None:
        conditions.append(
            condition("Failing", failing, reason="UpdatePayloadFailed", message="cannot apply it", since=since)
        )
    if upgradeable is not None:
        conditions.append(
            condition("Upgradeable", upgradeable, reason="AdminAckRequired", message="ack first", since=since)
        )
    if progressing is not None:
        conditions.append(condition("Progressing", progressing, "", f"Cluster version is {version}"))
    status: dict[str, Any] = {
        "desired": config_v1.Release(version=version, image=image),
        "history": (
            config_v1.UpdateHistory(
                state="Completed", started_time=SINCE, completion_time=SINCE, version=version, image=image
            ),
        ),
        "conditions": tuple(conditions),
        **changes,
    }
    return config_v1.ClusterVersion(
        metadata=ObjectMeta(name="version", generation=1),
        spec=config_v1.ClusterVersionSpec(
            cluster_id="6f1c1a4e-1b5a-4f0e-9d5e-0f2b9f6f7a11", channel=channel, desired_update=desired_update
        ),
        status=config_v1.ClusterVersionStatus(**status),
    )


def network(
    *, pods: tuple[str, ...] = ("10.128.0.0/14",), services: tuple[str, ...] = ("172.30.0.0/16",)
) -> cluster_settings_v1.Network:
    """The cluster's Network with the given ranges in force."""
    return cluster_settings_v1.Network(
        metadata=ObjectMeta(name="cluster"),
        status=cluster_settings_v1.NetworkStatus(
            network_type="OVNKubernetes",
            cluster_network=tuple(cluster_settings_v1.ClusterNetworkEntry(cidr=cidr) for cidr in pods),
            service_network=services,
        ),
    )


def feature_gate(
    feature_set: str = "", *, version: str = "5.0.0", enabled: tuple[str, ...] = (), disabled: tuple[str, ...] = ()
) -> cluster_settings_v1.FeatureGate:
    """The cluster's FeatureGate."""
    return cluster_settings_v1.FeatureGate(
        metadata=ObjectMeta(name="cluster"),
        spec=cluster_settings_v1.FeatureGateSpec(feature_set=feature_set),
        status=cluster_settings_v1.FeatureGateStatus(
            feature_gates=(
                cluster_settings_v1.FeatureGateDetails(
                    version=version,
                    enabled=tuple(cluster_settings_v1.FeatureGateAttributes(name=name) for name in enabled),
                    disabled=tuple(cluster_settings_v1.FeatureGateAttributes(name=name) for name in disabled),
                ),
            )
        ),
    )


def infrastructure(topology: str = "HighlyAvailable") -> config_v1.Infrastructure:
    """The cluster's Infrastructure; `topology` is that of the control plane."""
    return config_v1.Infrastructure(
        metadata=ObjectMeta(name="cluster"),
        status=config_v1.InfrastructureStatus(
            control_plane_topology=topology,
            infrastructure_topology="SingleReplica" if topology == "SingleReplica" else "HighlyAvailable",
        ),
    )


def snapshot(
    *objects: Object,
    unreadable: dict[type[Object], str] | None = None,
    undecoded: dict[type[Object], str] | None = None,
    incomplete: dict[type[Object], str] | None = None,
) -> Snapshot:
    """Returns a snapshot of these objects.

    It may have kinds that could not be listed, an unreadable object each, and incomplete kinds with the reason.
    """
    lists: dict[Resource, tuple[Any, ...]] = dict.fromkeys(RESOURCES.values(), ())
    lists |= dict.fromkeys((read for check in CHECKS for read in check.reads), ())
    for obj in objects:
        lists[read_as(type(obj))] += (obj,)
    return Snapshot(
        objects=lists,
        unreadable={read_as(kind): why for kind, why in (unreadable or {}).items()},
        undecoded={read_as(kind): (Undecodable("", name, "it is odd"),) for kind, name in (undecoded or {}).items()},
        incomplete={read_as(kind): (why,) for kind, why in (incomplete or {}).items()},
    )


def read_as(kind: type[Object]) -> Resource:
    """The key of a kind in a snapshot."""
    return PODS if kind is pod_parts.PlacedPod else resource_of(kind)


def context(source: str = "5.0.0", target: str = "5.2.0", kubernetes: str = "1.38.1") -> Context:
    """An update from `source` to `target`, evaluated at `NOW`."""
    image = "quay.io/example/release@sha256:5"
    return Context(
        source=Version(source), target=Version(target), now=NOW, target_kubernetes=kubernetes, target_image=image
    )
