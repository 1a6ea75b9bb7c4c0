"""A cluster in the middle of an update from 4.14.0 to 4.14.1; a test states only what it changes."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

from kubekit.api import core_v1
from kubekit.api.meta_v1 import Condition, ConditionStatus, LabelSelector, ObjectMeta
from runup.api import config_v1, machineconfig_v1
from runup.updatestatus.decide.snapshot import Snapshot

STARTED = datetime(2026, 3, 1, 10, 0, tzinfo=UTC)
NOW = STARTED + timedelta(minutes=4)
OLD, NEW = "4.14.0", "4.14.1"
OLD_IMAGE, NEW_IMAGE = "example.com/release@sha256:" + "0" * 64, "example.com/release@sha256:" + "1" * 64
PREFIX = "machineconfiguration.openshift.io/"


def minutes(count: float) -> timedelta:
    """A time span."""
    return timedelta(minutes=count)


def cond(
    type_: str, status: ConditionStatus, reason: str = "", message: str = "", since: datetime | None = STARTED
) -> Condition:
    """A condition since the beginning of the update."""
    return Condition(type=type_, status=status, reason=reason, message=message, last_transition_time=since)


def entry(
    version: str,
    state: str = "Completed",
    started: datetime = STARTED,
    took: timedelta | None = None,
    image: str = "",
) -> config_v1.UpdateHistory:
    """A history entry; Partial ones have no end unless `took` says so."""
    completed = started + (took or minutes(50)) if state == "Completed" or took else None
    return config_v1.UpdateHistory(
        state=state,  # type: ignore[arg-type]
        started_time=started,
        completion_time=completed,
        version=version,
        image=image or (NEW_IMAGE if version == NEW else OLD_IMAGE),
    )


def update_history(*older: config_v1.UpdateHistory) -> tuple[config_v1.UpdateHistory, ...]:
    """The current update, and what came before it (by default the installation)."""
    return (entry(NEW, "Partial"), *(older or (entry(OLD, started=STARTED - timedelta(days=9)),)))


def version(
    history: Iterable[config_v1.UpdateHistory] | None = None,
    *,
    progressing: Condition | ConditionStatus | None = "True",
    failing: Condition | ConditionStatus | None = "False",
    others: Iterable[Condition] = (),
    desired: str = NEW,
) -> config_v1.ClusterVersion:
    """The ClusterVersion."""
    conditions = [
        cond(type_, given) if isinstance(given, str) else given
        for type_, given in (("Progressing", progressing), ("Failing", failing))
        if given is not None
    ]
    return config_v1.ClusterVersion(
        metadata=ObjectMeta(name="version"),
        status=config_v1.ClusterVersionStatus(
            desired=config_v1.Release(version=desired, image=NEW_IMAGE),
            history=tuple(update_history() if history is None else history),
            conditions=(*conditions, *others),
        ),
    )


def operator(
    name: str = "etcd",
    at: str = OLD,
    *,
    progressing: Condition | ConditionStatus | None = "False",
    available: Condition | ConditionStatus | None = "True",
    degraded: Condition | ConditionStatus | None = "False",
    payload: bool = True,
    image: str | None = None,
) -> config_v1.ClusterOperator:
    """A ClusterOperator of the payload that is healthy and waits for its turn."""
    given = {"Progressing": progressing, "Available": available, "Degraded": degraded}
    # What else an operator runs is not what it is updated by.
    versions = [config_v1.OperandVersion(name=name, version=NEW) for name in ("a-part", "z-part")]
    versions.insert(1, config_v1.OperandVersion(name="operator", version=at))
    if image is not None:
        versions.append(config_v1.OperandVersion(name="operator-image", version=image))
    return config_v1.ClusterOperator(
        metadata=ObjectMeta(
            name=name,
            annotations={"include.release.openshift.io/self-managed-high-availability": "true"} if payload else {},
        ),
        status=config_v1.ClusterOperatorStatus(
            conditions=tuple(
                cond(type_, each) if isinstance(each, str) else each for type_, each in given.items() if each
            ),
            versions=tuple(versions),
        ),
    )


def pool(
    name: str = "worker",
    *,
    paused: bool = False,
    selector: LabelSelector | None = None,
    target: str = "new",
    **meta: Any,
) -> machineconfig_v1.MachineConfigPool:
    """A pool on its way to `<name>-<target>`, selecting by its role."""
    role = LabelSelector(match_labels={f"node-role.kubernetes.io/{name}": ""})
    return machineconfig_v1.MachineConfigPool(
        metadata=ObjectMeta(name=name, **meta),
        spec=machineconfig_v1.MachineConfigPoolSpec(
            paused=paused,
            node_selector=selector or role,
            configuration=machineconfig_v1.ConfigurationReference(name=f"{name}-{target}"),
        ),
    )


def node(
    name: str = "worker-0000",
    role: str = "worker",
    *,
    current: str = "old",
    desired: str = "old",
    state: str = "Done",
    conditions: Iterable[Condition] = (),
    unschedulable: bool = False,
    labels: dict[str, str] | None = None,
    **annotations: str | None,
) -> core_v1.Node:
    """A ready node of pool `role`; `**annotations` are those of the machine-config daemon, None leaves one out."""
    notes: dict[str, str | None] = {
        "currentConfig": f"{role}-{current}",
        "desiredConfig": f"{role}-{desired}",
        "state": state,
        **annotations,
    }
    return core_v1.Node(
        metadata=ObjectMeta(
            name=name,
            labels={f"node-role.kubernetes.io/{role}": ""} if labels is None else labels,
            annotations={PREFIX + key: value for key, value in notes.items() if value is not None},
        ),
        spec=core_v1.NodeSpec(unschedulable=unschedulable),
        status=core_v1.NodeStatus(conditions=tuple(conditions) or (cond("Ready", "True"),)),
    )


def configs(*roles: str) -> tuple[machineconfig_v1.MachineConfig, ...]:
    """Rendered configurations of each pool: `<role>-old` of 4.14.0 and `<role>-new` of 4.14.1."""
    return tuple(
        machineconfig_v1.MachineConfig(
            metadata=ObjectMeta(name=f"{role}-{age}", annotations={PREFIX + "release-image-version": release})
        )
        for role in roles or ("master", "worker", "infra")
        for age, release in (("old", OLD), ("new", NEW))
    )


def snapshot(**changes: Any) -> Snapshot:
    """An update that has begun: two operators wait, three masters and three workers must come."""
    given: dict[str, Any] = {
        "cluster_version": version(),
        "cluster_operators": (operator("etcd"), operator("network")),
        "machine_config_pools": (pool("master"), pool("worker")),
        "nodes": (
            *(node(f"master-{i:04}", "master") for i in range(3)),
            *(node(f"worker-{i:04}", "worker") for i in range(3)),
        ),
        "machine_configs": configs(),
        **changes,
    }
    return Snapshot(**given)
