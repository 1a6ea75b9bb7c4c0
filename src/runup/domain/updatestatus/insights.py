"""States and findings in, insights of the API out. One function a type of insight."""

from __future__ import annotations

from datetime import datetime, timedelta

from msgspec.structs import replace

from runup.api.config_v1 import ClusterVersion
from runup.api.update_v1alpha1 import (
    NO_VERSION,
    AwaitedOperator,
    ClusterOperatorInsight,
    ClusterVersionInsight,
    HealthImpact,
    HealthInsight,
    HealthRemediation,
    HealthScope,
    Insight,
    MachineConfigPoolInsight,
    NodeInsight,
    OperatorProgress,
    PoolSummary,
    ResourceRef,
    Version,
    VersionMetadata,
    Versions,
)
from runup.domain.conditions import find
from runup.domain.updatestatus import nodes as states
from runup.domain.updatestatus import uids
from runup.domain.updatestatus.control_plane import ControlPlaneState, OperatorState
from runup.domain.updatestatus.finding import (
    SCOPE_CONTROL_PLANE,
    SCOPE_WORKER_POOL,
    Finding,
    cluster_version_ref,
    node_ref,
    operator_ref,
    pool_ref,
)
from runup.domain.updatestatus.health import NO_RUNBOOK, NOT_FAILING_UNKNOWN
from runup.domain.updatestatus.memory import CONTROL_PLANE, Memory, Said, same_estimate
from runup.domain.updatestatus.nodes import NodeState, PoolState
from runup.lang.gotext import SECOND, go_duration

UPDATING, HEALTHY, AVAILABLE, DEGRADED = "Updating", "Healthy", "Available", "Degraded"
INSTALLATION, PARTIAL, ARCHITECTURE, MULTI = "Installation", "Partial", "Architecture", "Multi"
UNKNOWN_VERSION = "unknown"

_VERSION_LIMIT = 64
_REFERENCE_LIMIT = 2048
_SUMMARY_LIMIT = 1024
_REASON_LIMIT = 1024
_MESSAGE_LIMIT = 4096
_NAME_LIMIT = 253
_MOST_WAITS = 64
_MOST_RESOURCES = 16


def cut(text: str, limit: int) -> str:
    """`text`, or as much of it as leaves room to say how much is missing."""
    if len(text) <= limit:
        return text
    end = f"... ({len(text)} characters in all)"
    return text[: limit - len(end)] + end


def cluster_version(
    cluster: ClusterVersion,
    state: ControlPlaneState | None,
    waiting: tuple[AwaitedOperator, ...],
    memory: Memory,
    text: int,
) -> Insight:
    """The control plane as a whole; `state` is None where the operators could not be read. `text` limits messages."""
    uid = uids.of_object("cv", cluster.metadata.name)
    old = memory.cluster_version(uid)
    progressing = find(cluster.status.conditions, "Progressing")
    history = cluster.status.history
    started = history[0].started_time if history else progressing.last_transition_time if progressing else None
    completed = _completed(cluster, state, old, memory.stamp)
    return memory.settled(
        CONTROL_PLANE,
        Insight(
            uid=uid,
            acquired_at=memory.stamp,
            type="ClusterVersion",
            cluster_version=ClusterVersionInsight(
                resource=cluster_version_ref(cluster.metadata.name),
                assessment=_assessment(state),
                completion=state.completion if state else 0,
                versions=_versions(cluster),
                started_at=started,
                completed_at=completed,
                estimated_completed_at=_estimated(state, completed, old, memory.stamp),
                last_observed_progress=state.last_progress if state else None,
                waiting_for=tuple(_waiting(each, text) for each in waiting[:_MOST_WAITS]),
                conditions=memory.conditions(old.conditions if old else (), cluster_version_updating(cluster)),
            ),
        ),
    )


def _waiting(wait: AwaitedOperator, text: int) -> AwaitedOperator:
    reason, message = cut(wait.reason, _REASON_LIMIT), cut(wait.message, text)
    return AwaitedOperator(name=wait.name, since=wait.since, reason=reason, message=message)


def _assessment(state: ControlPlaneState | None) -> str:
    if state is None:
        return "Unknown"
    return "Completed" if state.is_done else state.estimate.assessment


def _completed(
    cluster: ClusterVersion, state: ControlPlaneState | None, old: ClusterVersionInsight | None, stamp: datetime
) -> datetime | None:
    """When the update ended by its history; else when all operators were first seen updated."""
    history = cluster.status.history
    if history and history[0].state == "Completed" and history[0].completion_time:
        return history[0].completion_time
    if not history or state is None or not state.is_done:
        return None
    same_update = old is not None and old.started_at == history[0].started_time and old.assessment == "Completed"
    return old.completed_at if old and same_update and old.completed_at else stamp


def _estimated(
    state: ControlPlaneState | None, completed: datetime | None, old: ClusterVersionInsight | None, stamp: datetime
) -> datetime | None:
    if state is None or state.is_done:
        return None
    end = (completed or stamp) + timedelta(seconds=state.estimate.remaining_s)
    return same_estimate(end, old.estimated_completed_at if old else None)


def _versions(cluster: ClusterVersion) -> Versions | None:
    history = cluster.status.history
    if not history:
        return None
    change = VersionMetadata(key=ARCHITECTURE, value=MULTI)
    target = Version(
        version=_version(history[0].version), metadata=(change,) if states.is_architecture_change(cluster) else ()
    )
    if len(history) == 1:
        return Versions(
            previous=Version(version=NO_VERSION, metadata=(VersionMetadata(key=INSTALLATION),)), target=target
        )
    partial = (VersionMetadata(key=PARTIAL),) if history[1].state == "Partial" else ()
    return Versions(previous=Version(version=_version(history[1].version), metadata=partial), target=target)


def _version(version: str) -> str:
    return version[:_VERSION_LIMIT] or UNKNOWN_VERSION


def cluster_version_updating(cluster: ClusterVersion) -> Said:
    """Condition Updating of the insight: what Progressing says, if the history agrees."""
    progressing = find(cluster.status.conditions, "Progressing")
    if progressing is None:
        return (UPDATING, "Unknown", "CannotDetermineUpdating", "No Progressing condition in ClusterVersion")
    message = cut(progressing.message, _MESSAGE_LIMIT)
    reason = cut(progressing.reason, _REASON_LIMIT)
    said = f"ClusterVersion has Progressing={progressing.status}(Reason={reason}) | Message='{message}'"
    history = cluster.status.history
    if not history:
        return (UPDATING, "Unknown", "CannotDetermineUpdating", "Empty history in ClusterVersion")
    newest = history[0]
    open_ended = newest.state == "Partial" and newest.completion_time is None
    if progressing.status == "True" and open_ended:
        return (UPDATING, "True", "ClusterVersionProgressing", said)
    if progressing.status == "False" and newest.state == "Completed" and newest.completion_time:
        return (UPDATING, "False", "ClusterVersionNotProgressing", said)
    ended = "with" if newest.completion_time else "without"
    doubt = f"{said} while its newest history entry is {newest.state} {ended} completionTime"
    return (UPDATING, "Unknown", "CannotDetermineUpdating", doubt)


def control_plane_updating(cluster: ClusterVersion) -> Said:
    """Condition Updating of the layer: Progressing alone, as every reader of ClusterVersion takes it."""
    progressing = find(cluster.status.conditions, "Progressing")
    if progressing is None:
        return (UPDATING, "Unknown", "CannotDetermineUpdating", "No Progressing condition in ClusterVersion")
    reason = {"True": "ClusterVersionProgressing", "False": "ClusterVersionNotProgressing"}
    return (
        UPDATING,
        progressing.status,
        reason.get(progressing.status, "CannotDetermineUpdating"),
        cut(progressing.message, _MESSAGE_LIMIT),
    )


def cluster_operator(operator: OperatorState, memory: Memory, text: int) -> Insight:
    """One operator; `text` limits messages, in characters."""
    uid = uids.of_object("co", operator.name)
    old = memory.insight(CONTROL_PLANE, uid)
    kept = old.cluster_operator.conditions if old and old.cluster_operator else ()
    progressing = operator.progressing
    return memory.settled(
        CONTROL_PLANE,
        Insight(
            uid=uid,
            acquired_at=memory.stamp,
            type="ClusterOperator",
            cluster_operator=ClusterOperatorInsight(
                name=operator.name,
                resource=operator_ref(operator.name),
                progressing=OperatorProgress(
                    status=progressing.status,
                    reason=cut(progressing.reason, _REASON_LIMIT),
                    message=cut(progressing.message, text),
                    last_transition_time=progressing.last_transition_time,
                )
                if progressing
                else None,
                conditions=memory.conditions(kept, _operator_updating(operator), _operator_healthy(operator, text)),
            ),
        ),
    )


def _operator_updating(operator: OperatorState) -> Said:
    # The operator's own words stand in `progressing`, once.
    if operator.updated:
        return (UPDATING, "False", "Updated", "")
    if operator.is_updating:
        return (UPDATING, "True", "Progressing", "")
    if operator.is_waiting:
        return (UPDATING, "False", "Pending", "")
    return (UPDATING, "Unknown", "CannotDetermine", "It does not say whether it progresses")


def _operator_healthy(operator: OperatorState, text: int) -> Said:
    available, degraded = operator.available, operator.degraded
    if available is None:
        return (HEALTHY, "Unknown", "Unavailable", "It has no Available condition")
    if available.status != "True":
        return (HEALTHY, "False", "Unavailable", cut(available.message, text))
    if degraded is not None and degraded.status == "True":
        return (HEALTHY, "False", "Degraded", cut(degraded.message, text))
    return (HEALTHY, "True", "AsExpected", "")


def _scope(pool: PoolState) -> str:
    return SCOPE_CONTROL_PLANE if pool.is_control_plane else SCOPE_WORKER_POOL


def layer_of(pool: PoolState) -> str:
    """The layer that the pool's insights stand in."""
    return CONTROL_PLANE if pool.is_control_plane else pool.name


def machine_config_pool(pool: PoolState, memory: Memory) -> Insight:
    """One pool."""
    uid = uids.of_object("mcp", pool.name)
    old = memory.insight(layer_of(pool), uid)
    kept = old.machine_config_pool.conditions if old and old.machine_config_pool else ()
    counts = {
        "Total": pool.total,
        "Available": pool.available,
        "Progressing": pool.progressing,
        "Outdated": pool.outdated,
        "Draining": pool.draining,
        "Excluded": pool.excluded,
        "Degraded": pool.degraded,
    }
    return memory.settled(
        layer_of(pool),
        Insight(
            uid=uid,
            acquired_at=memory.stamp,
            type="MachineConfigPool",
            machine_config_pool=MachineConfigPoolInsight(
                name=pool.name,
                resource=pool_ref(pool.name),
                scope_type=_scope(pool),
                assessment=pool.assessment,
                completion=pool_completion(pool.done, pool.total),
                summaries=tuple(PoolSummary(type=name, count=count) for name, count in counts.items()),
                conditions=memory.conditions(kept, pool_updating(pool), _pool_healthy(pool)),
            ),
        ),
    )


def pool_completion(done: int, total: int) -> int:
    """Percent, rounded half to even, and 100 only when every node is done."""
    return 100 if done == total else min(99, round(100 * done / total))


def pool_updating(pool: PoolState) -> Said:
    """Condition Updating of a pool."""
    if pool.is_complete:
        return (UPDATING, "False", "Updated", "")
    if pool.progressing or pool.draining:
        return (UPDATING, "True", "Progressing", "")
    if pool.excluded:
        return (UPDATING, "False", "Paused", "")
    if pool.done:
        # Between two batches no node is on its way, and the pool is.
        return (UPDATING, "True", "Progressing", "")
    return (UPDATING, "False", "Pending", "")


def _pool_healthy(pool: PoolState) -> Said:
    if pool.degraded:
        return (HEALTHY, "False", "NodesDegraded", f"{pool.degraded} of {pool.total} nodes are degraded")
    if not pool.total:
        return (HEALTHY, "True", "NoNodes", "")
    return (HEALTHY, "True", "AllNodesUpdated" if pool.is_complete else "Paused" if pool.paused else "NoProblems", "")


# Phase -> reason of condition Updating.
_PHASE_REASONS = {
    states.DRAINING: "Draining",
    states.UPDATING: "Updating",
    states.REBOOTING: "Rebooting",
    states.PAUSED: "Paused",
    states.PENDING: "Pending",
    states.UPDATED: "Completed",
}
# Trouble -> reason of condition Available.
_TROUBLE_REASONS = {
    states.NOT_READY: "NotReady",
    states.DISK_PRESSURE: "DiskPressure",
    states.NETWORK_UNAVAILABLE: "NetworkUnavailable",
    states.UNSCHEDULABLE: "Unschedulable",
    states.DAEMON_BUSY: "MachineConfigDaemonBusy",
}


def node(state: NodeState, pool: PoolState, memory: Memory, text: int) -> Insight:
    """One node of `pool`; `text` limits messages, in characters."""
    layer = layer_of(pool)
    uid = uids.of_object("node", state.name)
    old = memory.insight(layer, uid)
    return memory.settled(
        layer,
        Insight(
            uid=uid,
            acquired_at=memory.stamp,
            type="Node",
            node=NodeInsight(
                name=state.name,
                resource=node_ref(state.name),
                pool_resource=pool_ref(pool.name),
                scope_type=_scope(pool),
                version=state.version[:_VERSION_LIMIT],
                est_to_complete="" if state.estimate_s is None else go_duration(state.estimate_s * SECOND),
                message=cut(state.message, text),
                conditions=memory.conditions(
                    old.node.conditions if old and old.node else (),
                    (UPDATING, "True" if state.updating else "False", _PHASE_REASONS[state.phase], ""),
                    _node_available(state, text),
                    (DEGRADED, "True", "Degraded", "") if state.degraded else (DEGRADED, "False", "AsExpected", ""),
                ),
            ),
        ),
    )


def _node_available(state: NodeState, text: int) -> Said:
    if not state.unavailable:
        return (AVAILABLE, "True", "AsExpected", "")
    reasons = [_TROUBLE_REASONS.get(trouble.reason, "UnexpectedImage") for trouble in state.troubles]
    message = cut(" | ".join(trouble.reason for trouble in state.troubles), text)
    return (AVAILABLE, "False", reasons[0] if len(reasons) == 1 else "MultipleReasons", message)


def _resources(finding: Finding) -> tuple[ResourceRef, ...]:
    """Those that the API has room for; an alert's labels are no names of objects and may be longer than such."""
    return tuple(
        replace(ref, name=ref.name[:_NAME_LIMIT], namespace=ref.namespace[:_NAME_LIMIT])
        for ref in finding.resources[:_MOST_RESOURCES]
    )


def health(finding: Finding, memory: Memory, text: int) -> Insight:
    """Something that needs attention; `text` limits its description, in characters."""
    uid = uids.of_finding(finding)
    old = memory.health(finding.pool, uid)
    since = finding.since
    if old and old.started_at and (since is None or finding.check == NOT_FAILING_UNKNOWN):
        since = old.started_at
    elif finding.check == NOT_FAILING_UNKNOWN:
        since = memory.stamp
    linked = finding.reference != NO_RUNBOOK and len(finding.reference) <= _REFERENCE_LIMIT
    return memory.settled(
        finding.pool,
        Insight(
            uid=uid,
            acquired_at=memory.stamp,
            type="Health",
            health=HealthInsight(
                scope=HealthScope(type=finding.scope, resources=_resources(finding)),
                impact=HealthImpact(
                    level=finding.level,
                    type=finding.impact,
                    summary=cut(finding.summary, _SUMMARY_LIMIT),
                    description=cut(finding.description, text),
                ),
                remediation=HealthRemediation(reference=finding.reference if linked else ""),
                check=finding.check,
                started_at=since,
                first_observed_at=old.first_observed_at if old and old.first_observed_at else memory.stamp,
            ),
        ),
    )
