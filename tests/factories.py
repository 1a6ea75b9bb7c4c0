"""Objects that are healthy by default, so that a test states only what matters.

`**changes` replace fields of the status (or of what the docstring names) by their snake_case names.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from kubekit.api import core_v1, pod_parts, workloads_v1
from kubekit.api.codec import Undecodable
from kubekit.api.meta_v1 import Condition, ConditionStatus, LabelSelector, Object, ObjectMeta
from kubekit.api.scheme import RESOURCES, Resource, resource_of
from kubekit.lang.version import Version
from runup.api import cluster_settings_v1, config_v1, machineconfig_v1, operator_v1
from runup.checks.catalogue import CHECKS
from runup.checks.catalogue.shared.pods import PODS
from runup.checks.decide.model import Context, Snapshot

SINCE = datetime(2026, 1, 14, 9, 30, tzinfo=UTC)
NOW = datetime(2026, 1, 14, 10, 0, tzinfo=UTC)


def condition(
    type_: str, status: ConditionStatus = "True", reason: str = "AsExpected", message: str = "", since: datetime = SINCE
) -> Condition:
    """A condition that has held since `SINCE`."""
    return Condition(type=type_, status=status, reason=reason, message=message, last_transition_time=since)


def node(
    name: str = "worker-0",
    *,
    ready: ConditionStatus | None = "True",
    kubelet: str = "v1.36.0",
    unschedulable: bool = False,
    role: str = "worker",
    **metadata: Any,
) -> core_v1.Node:
    """A ready node; `ready=None` leaves the condition out, `**metadata` are fields of its metadata."""
    labels = {f"node-role.kubernetes.io/{role}": "", **metadata.pop("labels", {})}
    conditions = (
        () if ready is None else (condition("Ready", ready, "KubeletReady", "kubelet is posting ready status"),)
    )
    return core_v1.Node(
        metadata=ObjectMeta(name=name, labels=labels, **metadata),
        spec=core_v1.NodeSpec(unschedulable=unschedulable),
        status=core_v1.NodeStatus(
            conditions=conditions, node_info=core_v1.NodeSystemInfo(kubelet_version=kubelet, architecture="amd64")
        ),
    )


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


def pool(
    name: str = "worker",
    *,
    paused: bool = False,
    machines: int = 3,
    updated: int | None = None,
    degraded: int = 0,
    rendered: str = "1",
    current: str = "1",
    since: datetime = SINCE,
    selects: str | None = "",
    **statuses: ConditionStatus | None,
) -> machineconfig_v1.MachineConfigPool:
    """A pool at its newest configuration, which selects the nodes of its role, or those that have label `selects`.

    `**statuses` replace those of the conditions, e.g. `Updating="True"`; None leaves one out. `rendered` is the
    configuration that the pool should have, `current` the one that all its machines have.
    """
    wanted: dict[str, ConditionStatus | None] = {
        "RenderDegraded": "False",
        "NodeDegraded": "False",
        "Degraded": "False",
        "Updated": "True",
        "Updating": "False",
        **statuses,
    }
    return machineconfig_v1.MachineConfigPool(
        metadata=ObjectMeta(name=name, generation=1),
        spec=machineconfig_v1.MachineConfigPoolSpec(
            paused=paused,
            node_selector=_selector(f"node-role.kubernetes.io/{name}" if selects == "" else selects),
            configuration=machineconfig_v1.ConfigurationReference(name=f"rendered-{name}-{rendered}"),
        ),
        status=machineconfig_v1.MachineConfigPoolStatus(
            observed_generation=1,
            configuration=machineconfig_v1.ConfigurationReference(name=f"rendered-{name}-{current}"),
            machine_count=machines,
            ready_machine_count=machines if updated is None else updated,
            updated_machine_count=machines if updated is None else updated,
            degraded_machine_count=degraded,
            conditions=tuple(
                condition(type_, status, reason="", message=f"{type_} of {name}", since=since)
                for type_, status in wanted.items()
                if status
            ),
        ),
    )


def _selector(label: str | None) -> LabelSelector | None:
    return None if label is None else LabelSelector(match_labels={label: ""} if label != "{}" else {})


def pod(
    name: str = "web-1",
    namespace: str = "shop",
    *,
    phase: str = "Running",
    on: str = "worker-0",
    owner: str = "ReplicaSet",
    deleted: bool = False,
    **labels: str,
) -> pod_parts.PlacedPod:
    """A pod as the check of budgets' pods reads it; `**labels` replace its `app: web`."""
    return pod_parts.PlacedPod(
        metadata=pod_parts.PodMeta(
            name=name,
            namespace=namespace,
            owner_references=(pod_parts.PodOwner(kind=owner, controller=True),),
            traits=pod_parts.PodTraits(labels=labels or {"app": "web"}, deletion_timestamp=NOW if deleted else None),
        ),
        spec=pod_parts.PodPlace(node_name=on),
        status=pod_parts.PodPhase(phase=phase),
    )


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
    """What the checks may look at: these objects, no others, some kinds that could not be listed, an object each that
    could not be read, by its name, and kinds of which there may be more, with the reason."""
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
    """An update from `source` to `target`, judged at `NOW`."""
    image = "quay.io/example/release@sha256:5"
    return Context(
        source=Version(source), target=Version(target), now=NOW, target_kubernetes=kubernetes, target_image=image
    )
