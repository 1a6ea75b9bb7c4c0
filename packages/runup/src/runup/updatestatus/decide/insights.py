"""Converts the states of operators, pools, nodes and ClusterVersion, and findings, into insights of the API."""

from __future__ import annotations

from datetime import datetime, timedelta

from msgspec.structs import replace

from kubekit.api.conditions import find
from kubekit.lang.gotext import SECOND, go_duration
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
    Version,
    VersionMetadata,
    Versions,
)
from runup.rules import machine_config
from runup.updatestatus.decide import finding as uids
from runup.updatestatus.decide import nodes as node_phases
from runup.updatestatus.decide import nodes as states
from runup.updatestatus.decide.control_plane import ControlPlaneState, OperatorState
from runup.updatestatus.decide.finding import (
    ARCHITECTURE,
    AVAILABLE,
    DEGRADED,
    HEALTHY,
    INSTALLATION,
    MULTI,
    NO_RUNBOOK,
    PARTIAL,
    REASON_LIMIT,
    SCOPE_CONTROL_PLANE,
    SCOPE_WORKER_POOL,
    UNBOUNDED,
    UNKNOWN_VERSION,
    UPDATING,
    VERSION_LIMIT,
    Finding,
    cluster_version_ref,
    cut,
    limit_or_unbounded,
    node_ref,
    operator_ref,
    pool_ref,
)
from runup.updatestatus.decide.health import NOT_FAILING_UNKNOWN
from runup.updatestatus.decide.memory import CONTROL_PLANE, ConditionValues, PreviousStatus, same_estimate
from runup.updatestatus.decide.nodes import NodeState, PoolState

_REFERENCE_LIMIT = 2048
_SUMMARY_LIMIT = 1024
_NAME_LIMIT = 253
_MOST_RESOURCES = 16


def cluster_operator(operator: OperatorState, memory: PreviousStatus, text: int) -> Insight:
    """Returns the insight of one operator; `text` limits messages, in characters."""
    uid = uids.uid_of_object("co", operator.name)
    old = memory.insight(CONTROL_PLANE, uid)
    previous_conditions = old.cluster_operator.conditions if old and old.cluster_operator else ()
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
                    reason=cut(progressing.reason, limit_or_unbounded(REASON_LIMIT, text)),
                    message=cut(progressing.message, text),
                    last_transition_time=progressing.last_transition_time,
                )
                if progressing
                else None,
                conditions=memory.conditions(
                    previous_conditions, _operator_updating(operator), _operator_healthy(operator, text)
                ),
            ),
        ),
    )


def _operator_updating(operator: OperatorState) -> ConditionValues:
    """Returns the type, status, reason and message of an operator's condition Updating."""
    # The operator's own message is in `progressing`, so it is not repeated here.
    if operator.updated:
        return (UPDATING, "False", "Updated", "")
    if operator.is_updating:
        return (UPDATING, "True", "Progressing", "")
    if operator.is_waiting:
        return (UPDATING, "False", "Pending", "")
    return (UPDATING, "Unknown", "CannotDetermine", "It does not say whether it progresses")


def _operator_healthy(operator: OperatorState, text: int) -> ConditionValues:
    """Returns the type, status, reason and message of an operator's condition Healthy, its message cut to `text`."""
    available, degraded = operator.available, operator.degraded
    if available is None:
        return (HEALTHY, "Unknown", "Unavailable", "It has no Available condition")
    if available.status != "True":
        return (HEALTHY, "False", "Unavailable", cut(available.message, text))
    if degraded is not None and degraded.status == "True":
        return (HEALTHY, "False", "Degraded", cut(degraded.message, text))
    return (HEALTHY, "True", "AsExpected", "")


def health(finding: Finding, memory: PreviousStatus, text: int) -> Insight:
    """Returns the insight of a finding; `text` limits its description, in characters."""
    uid = uids.uid_of_finding(finding)
    old = memory.health(finding.pool, uid)
    since = finding.since
    if old and old.started_at and (since is None or finding.check == NOT_FAILING_UNKNOWN):
        since = old.started_at
    elif finding.check == NOT_FAILING_UNKNOWN and text < UNBOUNDED.text:
        # A stored status has whole seconds; one that is printed at once is sorted by the full precision of now.
        since = memory.stamp
    linked = finding.reference != NO_RUNBOOK and len(finding.reference) <= limit_or_unbounded(_REFERENCE_LIMIT, text)
    return memory.settled(
        finding.pool,
        Insight(
            uid=uid,
            acquired_at=memory.stamp,
            type="Health",
            health=HealthInsight(
                scope=HealthScope(
                    type=finding.scope,
                    resources=tuple(
                        replace(
                            ref,
                            name=ref.name[: limit_or_unbounded(_NAME_LIMIT, text)],
                            namespace=ref.namespace[: limit_or_unbounded(_NAME_LIMIT, text)],
                        )
                        for ref in finding.resources[:_MOST_RESOURCES]
                    ),
                ),
                impact=HealthImpact(
                    level=finding.level,
                    type=finding.impact,
                    summary=cut(finding.summary, limit_or_unbounded(_SUMMARY_LIMIT, text)),
                    description=cut(finding.description, text),
                ),
                remediation=HealthRemediation(reference=finding.reference if linked else ""),
                check=finding.check,
                started_at=since,
                first_observed_at=old.first_observed_at if old and old.first_observed_at else memory.stamp,
            ),
        ),
    )


def _scope(pool: PoolState) -> str:
    return SCOPE_CONTROL_PLANE if pool.is_control_plane else SCOPE_WORKER_POOL


def layer_of(pool: PoolState) -> str:
    """Returns the layer of the pool's insights."""
    return CONTROL_PLANE if pool.is_control_plane else pool.name


def machine_config_pool(pool: PoolState, memory: PreviousStatus) -> Insight:
    """Returns the insight of one pool."""
    uid = uids.uid_of_object("mcp", pool.name)
    old = memory.insight(layer_of(pool), uid)
    previous_conditions = old.machine_config_pool.conditions if old and old.machine_config_pool else ()
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
                conditions=memory.conditions(previous_conditions, pool_updating(pool), _pool_healthy(pool)),
            ),
        ),
    )


def pool_completion(updated_count: int, total: int) -> int:
    """Returns the percentage of updated nodes, rounded half to even; 100 only if every node is updated."""
    return 100 if updated_count == total else min(99, round(100 * updated_count / total))


def pool_updating(pool: PoolState) -> ConditionValues:
    """Returns the condition Updating of a pool."""
    if pool.is_complete:
        return (UPDATING, "False", "Updated", "")
    if pool.progressing or pool.draining:
        return (UPDATING, "True", "Progressing", "")
    if pool.excluded:
        return (UPDATING, "False", "Paused", "")
    if pool.done:
        # Between two batches no node is updating, but the pool is.
        return (UPDATING, "True", "Progressing", "")
    return (UPDATING, "False", "Pending", "")


def _pool_healthy(pool: PoolState) -> ConditionValues:
    """Returns the condition Healthy of a pool."""
    if pool.degraded:
        return (HEALTHY, "False", "NodesDegraded", f"{pool.degraded} of {pool.total} nodes are degraded")
    if not pool.total:
        return (HEALTHY, "True", "NoNodes", "")
    return (HEALTHY, "True", "AllNodesUpdated" if pool.is_complete else "Paused" if pool.paused else "NoProblems", "")


# Phase -> reason of condition Updating.
_PHASE_REASONS = {
    node_phases.DRAINING: "Draining",
    node_phases.UPDATING: "Updating",
    node_phases.REBOOTING: "Rebooting",
    node_phases.PAUSED: "Paused",
    node_phases.PENDING: "Pending",
    node_phases.UPDATED: "Completed",
}
# Trouble -> reason of condition Available.
_TROUBLE_REASONS = {
    machine_config.NOT_READY: "NotReady",
    machine_config.DISK_PRESSURE: "DiskPressure",
    machine_config.NETWORK_UNAVAILABLE: "NetworkUnavailable",
    machine_config.UNSCHEDULABLE: "Unschedulable",
    machine_config.DAEMON_BUSY: "MachineConfigDaemonBusy",
}


def node(state: NodeState, pool: PoolState, memory: PreviousStatus, text: int) -> Insight:
    """Returns the insight of a node of `pool`; `text` limits messages, in characters."""
    layer = layer_of(pool)
    uid = uids.uid_of_object("node", state.name)
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
                version=state.version[: limit_or_unbounded(VERSION_LIMIT, text)],
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


def _node_available(state: NodeState, text: int) -> ConditionValues:
    """Returns the condition Available of a node; `text` is the longest message in characters."""
    if not state.unavailable:
        return (AVAILABLE, "True", "AsExpected", "")
    reasons = [_TROUBLE_REASONS.get(trouble.reason, "UnexpectedImage") for trouble in state.troubles]
    message = cut(" | ".join(trouble.reason for trouble in state.troubles), text)
    return (AVAILABLE, "False", reasons[0] if len(reasons) == 1 else "MultipleReasons", message)


_MESSAGE_LIMIT = 4096
_MOST_WAITS = 64


def cluster_version(
    cluster: ClusterVersion,
    state: ControlPlaneState | None,
    waiting: tuple[AwaitedOperator, ...],
    memory: PreviousStatus,
    text: int,
) -> Insight:
    """Returns the insight of the control plane.

    `state` is None if the operators could not be read. `text` limits messages, in characters.
    """
    uid = uids.uid_of_object("cv", cluster.metadata.name)
    old = memory.cluster_version(uid)
    progressing = find(cluster.status.conditions, "Progressing")
    history = cluster.status.history
    started = history[0].started_time if history else progressing.last_transition_time if progressing else None
    completed = _completed_at(cluster, state, old, memory.stamp)
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
                versions=_versions(cluster, text),
                started_at=started,
                completed_at=completed,
                estimated_completed_at=_estimated_end(state, completed, old, memory.stamp),
                last_observed_progress=state.last_progress if state else None,
                waiting_for=tuple(_cut_texts(operator, text) for operator in waiting[:_MOST_WAITS]),
                conditions=memory.conditions(old.conditions if old else (), cluster_version_updating(cluster)),
            ),
        ),
    )


def _cut_texts(wait: AwaitedOperator, text: int) -> AwaitedOperator:
    reason, message = cut(wait.reason, REASON_LIMIT), cut(wait.message, text)
    return AwaitedOperator(name=wait.name, since=wait.since, reason=reason, message=message)


def _assessment(state: ControlPlaneState | None) -> str:
    if state is None:
        return "Unknown"
    return "Completed" if state.is_done else state.estimate.assessment


def _completed_at(
    cluster: ClusterVersion, state: ControlPlaneState | None, old: ClusterVersionInsight | None, stamp: datetime
) -> datetime | None:
    """Returns when the update ended by its history, else when all operators were first seen updated, else None."""
    history = cluster.status.history
    if history and history[0].state == "Completed" and history[0].completion_time:
        return history[0].completion_time
    if not history or state is None or not state.is_done:
        return None
    same_update = old is not None and old.started_at == history[0].started_time and old.assessment == "Completed"
    return old.completed_at if old and same_update and old.completed_at else stamp


def _estimated_end(
    state: ControlPlaneState | None, completed: datetime | None, old: ClusterVersionInsight | None, stamp: datetime
) -> datetime | None:
    """Returns when the update is expected to end; the old estimate where it is about the same."""
    if state is None or state.is_done:
        return None
    end = (completed or stamp) + timedelta(seconds=state.estimate.remaining_s)
    return same_estimate(end, old.estimated_completed_at if old else None)


def _versions(cluster: ClusterVersion, text: int) -> Versions | None:
    """Returns the versions that the update is from and to; None without history."""
    history = cluster.status.history
    if not history:
        return None
    change = VersionMetadata(key=ARCHITECTURE, value=MULTI)
    target = Version(
        version=_version(history[0].version, text), metadata=(change,) if states.is_architecture_change(cluster) else ()
    )
    if len(history) == 1:
        return Versions(
            previous=Version(version=NO_VERSION, metadata=(VersionMetadata(key=INSTALLATION),)), target=target
        )
    partial = (VersionMetadata(key=PARTIAL),) if history[1].state == "Partial" else ()
    return Versions(previous=Version(version=_version(history[1].version, text), metadata=partial), target=target)


def _version(version: str, text: int) -> str:
    """Returns the version as the API can hold it; an unknown version is empty in the history and in oc's output."""
    return version if text >= UNBOUNDED.text else version[:VERSION_LIMIT] or UNKNOWN_VERSION


def cluster_version_updating(cluster: ClusterVersion) -> ConditionValues:
    """Returns condition Updating of the insight: the status of Progressing, if the history agrees."""
    progressing = find(cluster.status.conditions, "Progressing")
    if progressing is None:
        return (UPDATING, "Unknown", "CannotDetermineUpdating", "No Progressing condition in ClusterVersion")
    message = cut(progressing.message, _MESSAGE_LIMIT)
    reason = cut(progressing.reason, REASON_LIMIT)
    message_text = f"ClusterVersion has Progressing={progressing.status}(Reason={reason}) | Message='{message}'"
    history = cluster.status.history
    if not history:
        return (UPDATING, "Unknown", "CannotDetermineUpdating", "Empty history in ClusterVersion")
    newest = history[0]
    open_ended = newest.state == "Partial" and newest.completion_time is None
    if progressing.status == "True" and open_ended:
        return (UPDATING, "True", "ClusterVersionProgressing", message_text)
    if progressing.status == "False" and newest.state == "Completed" and newest.completion_time:
        return (UPDATING, "False", "ClusterVersionNotProgressing", message_text)
    ended = "with" if newest.completion_time else "without"
    doubt = f"{message_text} while its newest history entry is {newest.state} {ended} completionTime"
    return (UPDATING, "Unknown", "CannotDetermineUpdating", doubt)


def control_plane_updating(cluster: ClusterVersion) -> ConditionValues:
    """Returns condition Updating of the layer: Progressing alone, as every reader of ClusterVersion uses it."""
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
