"""Converts the states of operators, pools, nodes and ClusterVersion, and findings, into insights of the API."""

from __future__ import annotations

from datetime import datetime, timedelta

from msgspec.structs import replace

from kubekit.api.conditions import find
from kubekit.lang.gotext import SECOND, go_duration
from runup.api import update_v1alpha1 as api
from runup.api.config_v1 import ClusterVersion
from runup.api.update_v1alpha1 import AwaitedOperator, Insight
from runup.rules import machine_config
from runup.updatestatus.decide import finding as terms
from runup.updatestatus.decide import nodes as node_phases
from runup.updatestatus.decide import nodes as states
from runup.updatestatus.decide.control_plane import ControlPlaneState, OperatorState, started_at
from runup.updatestatus.decide.finding import Finding, cut
from runup.updatestatus.decide.health import NOT_FAILING_UNKNOWN
from runup.updatestatus.decide.memory import ConditionValues, PreviousStatus, same_estimate
from runup.updatestatus.decide.nodes import NodeState, PoolState

_REFERENCE_LIMIT = 2048
_SUMMARY_LIMIT = 1024
_NAME_LIMIT = 253
_MOST_RESOURCES = 16


def cluster_operator(operator: OperatorState, memory: PreviousStatus, text: int, side: str = "") -> Insight:
    """Returns the insight of one operator; `text` limits messages, in characters.

    `side` is that of a hosted cluster on which the operator is.
    """
    uid = terms.uid_of_object("co", operator.name)
    # The operator's own message is in `progressing`, so it is not repeated in condition Updating.
    updating: ConditionValues = (terms.UPDATING, "Unknown", "CannotDetermine", "It does not say whether it progresses")
    if operator.updated:
        updating = (terms.UPDATING, "False", "Updated", "")
    elif operator.is_updating:
        updating = (terms.UPDATING, "True", "Progressing", "")
    elif operator.is_waiting:
        updating = (terms.UPDATING, "False", "Pending", "")
    available, degraded = operator.available, operator.degraded
    healthy: ConditionValues = (terms.HEALTHY, "True", "AsExpected", "")
    if available is None:
        healthy = (terms.HEALTHY, "Unknown", "Unavailable", "It has no Available condition")
    elif available.status != "True":
        healthy = (terms.HEALTHY, "False", "Unavailable", cut(available.message, text))
    elif degraded is not None and degraded.status == "True":
        healthy = (terms.HEALTHY, "False", "Degraded", cut(degraded.message, text))
    progressing = None
    if (condition := operator.progressing) is not None:
        progressing = api.OperatorProgress(
            status=condition.status,
            reason=cut(condition.reason, terms.limit_or_unbounded(terms.REASON_LIMIT, text)),
            message=cut(condition.message, text),
            last_transition_time=condition.last_transition_time,
        )
    member = api.ClusterOperatorInsight(
        name=operator.name,
        resource=replace(terms.operator_ref(operator.name), cluster=side),
        progressing=progressing,
        conditions=memory.conditions(memory.insight_conditions(terms.CONTROL_PLANE, uid), updating, healthy),
    )
    return memory.settled(terms.CONTROL_PLANE, uid, member)


def health(finding: Finding, memory: PreviousStatus, text: int) -> Insight:
    """Returns the insight of a finding; `text` limits its description, in characters."""
    uid = terms.uid_of_finding(finding)
    old = memory.health(finding.pool, uid)
    since = finding.since
    if old and old.started_at and (since is None or finding.check == NOT_FAILING_UNKNOWN):
        since = old.started_at
    elif finding.check == NOT_FAILING_UNKNOWN and text < terms.UNBOUNDED.text:
        # A stored status has whole seconds; one that is printed at once is sorted by the full precision of now.
        since = memory.stamp
    linked = finding.reference != terms.NO_RUNBOOK and len(finding.reference) <= terms.limit_or_unbounded(
        _REFERENCE_LIMIT, text
    )
    longest = terms.limit_or_unbounded(_NAME_LIMIT, text)
    resources = tuple(
        replace(ref, name=ref.name[:longest], namespace=ref.namespace[:longest])
        for ref in finding.resources[:_MOST_RESOURCES]
    )
    member = api.HealthInsight(
        scope=api.HealthScope(type=finding.scope, resources=resources),
        impact=api.HealthImpact(
            level=finding.level,
            type=finding.impact,
            summary=cut(finding.summary, terms.limit_or_unbounded(_SUMMARY_LIMIT, text)),
            description=cut(finding.description, text),
        ),
        remediation=api.HealthRemediation(reference=finding.reference if linked else ""),
        check=finding.check,
        started_at=since,
        first_observed_at=old.first_observed_at if old and old.first_observed_at else memory.stamp,
    )
    return memory.settled(finding.pool, uid, member)


def machine_config_pool(pool: PoolState, memory: PreviousStatus) -> Insight:
    """Returns the insight of one pool."""
    uid = terms.uid_of_object(pool.uid_kind, pool.name)
    counts = {
        "Total": pool.total,
        "Available": pool.available,
        "Progressing": pool.progressing,
        "Outdated": pool.outdated,
        "Draining": pool.draining,
        "Excluded": pool.excluded,
        "Degraded": pool.degraded,
    }
    state = "AllNodesUpdated" if pool.is_complete else "Paused" if pool.paused else "NoProblems"
    healthy: ConditionValues = (terms.HEALTHY, "True", state if pool.total else "NoNodes", "")
    if pool.degradations:
        types = ", ".join(each.type for each in pool.degradations)
        healthy = (terms.HEALTHY, "False", "PoolDegraded", f"The pool has {types}")
    if pool.degraded:
        healthy = (terms.HEALTHY, "False", "NodesDegraded", f"{pool.degraded} of {pool.total} nodes are degraded")
    member = pool.pool_insight(
        name=pool.name,
        resource=pool.ref,
        scope_type=pool.scope,
        assessment=pool.assessment,
        completion=pool_completion(pool.done, pool.total),
        summaries=tuple(api.PoolSummary(type=name, count=count) for name, count in counts.items()),
        conditions=memory.conditions(memory.insight_conditions(pool.layer, uid), pool_updating(pool), healthy),
    )
    return memory.settled(pool.layer, uid, member)


def pool_completion(updated_count: int, total: int) -> int:
    """Returns the percentage of updated nodes, rounded half to even; 100 only if every node is updated."""
    return 100 if updated_count == total else min(99, round(100 * updated_count / total))


def pool_updating(pool: PoolState) -> ConditionValues:
    """Returns the condition Updating of a pool."""
    if pool.is_complete:
        return (terms.UPDATING, "False", "Updated", "")
    if pool.progressing or pool.draining:
        return (terms.UPDATING, "True", "Progressing", "")
    if pool.excluded:
        return (terms.UPDATING, "False", "Paused", "")
    if pool.done:
        # Between two batches no node is updating, but the pool is.
        return (terms.UPDATING, "True", "Progressing", "")
    return (terms.UPDATING, "False", "Pending", "")


# Phase -> reason of condition Updating.
_PHASE_REASONS = {
    node_phases.DRAINING: "Draining",
    node_phases.UPDATING: "Updating",
    node_phases.REBOOTING: "Rebooting",
    node_phases.PAUSED: "Paused",
    node_phases.PENDING: "Pending",
    node_phases.UPDATED: "Completed",
    node_phases.UNKNOWN: "CannotDetermine",
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
    uid = terms.uid_of_object(pool.member_uid_kind, state.name)
    updating: ConditionValues = (terms.UPDATING, "True" if state.updating else "False", _PHASE_REASONS[state.phase], "")
    if state.phase == node_phases.UNKNOWN:
        updating = (terms.UPDATING, "Unknown", _PHASE_REASONS[state.phase], "")
    available: ConditionValues = (terms.AVAILABLE, "True", "AsExpected", "")
    if state.unavailable:
        reasons = [_TROUBLE_REASONS.get(trouble.reason, "UnexpectedImage") for trouble in state.troubles]
        message = cut(" | ".join(trouble.reason for trouble in state.troubles), text)
        available = (terms.AVAILABLE, "False", reasons[0] if len(reasons) == 1 else "MultipleReasons", message)
    degraded: ConditionValues = (terms.DEGRADED, "False", "AsExpected", "")
    if state.degraded:
        degraded = (terms.DEGRADED, "True", "Degraded", "")
    member = pool.node_insight(
        state,
        name=state.name,
        pool_resource=pool.ref,
        scope_type=pool.scope,
        version=state.version[: terms.limit_or_unbounded(terms.VERSION_LIMIT, text)],
        est_to_complete="" if state.estimate_s is None else go_duration(state.estimate_s * SECOND),
        message=cut(state.message, text),
        conditions=memory.conditions(memory.insight_conditions(pool.layer, uid), updating, available, degraded),
    )
    return memory.settled(pool.layer, uid, member)


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
    uid = terms.uid_of_object("cv", cluster.metadata.name)
    old = memory.cluster_version(uid)
    completed = _completed_at(cluster, state, old, memory.stamp)
    assessment, estimated = "Unknown", None
    if state is not None and state.is_done:
        assessment = "Completed"
    elif state is not None:
        assessment = state.estimate.assessment
        end = (completed or memory.stamp) + timedelta(seconds=state.estimate.remaining_s)
        # The old estimate stays where it is about the same.
        estimated = same_estimate(end, old.estimated_completed_at if old else None)
    waiting_for = tuple(
        replace(operator, reason=cut(operator.reason, terms.REASON_LIMIT), message=cut(operator.message, text))
        for operator in waiting[:_MOST_WAITS]
    )
    member = api.ClusterVersionInsight(
        resource=terms.cluster_version_ref(cluster.metadata.name),
        assessment=assessment,
        completion=state.completion if state else 0,
        versions=versions_of(cluster, text),
        started_at=started_at(cluster),
        completed_at=completed,
        estimated_completed_at=estimated,
        last_observed_progress=state.last_progress if state else None,
        waiting_for=waiting_for,
        conditions=memory.conditions(old.conditions if old else (), cluster_version_updating(cluster)),
    )
    return memory.settled(terms.CONTROL_PLANE, uid, member)


def _completed_at(
    cluster: ClusterVersion, state: ControlPlaneState | None, old: api.ClusterVersionInsight | None, stamp: datetime
) -> datetime | None:
    """Returns when the update ended by its history, else when all operators were first seen updated, else None."""
    history = cluster.status.history
    if history and history[0].state == "Completed" and history[0].completion_time:
        return history[0].completion_time
    if not history or state is None or not state.is_done:
        return None
    same_update = old is not None and old.started_at == history[0].started_time and old.assessment == "Completed"
    return old.completed_at if old and same_update and old.completed_at else stamp


def versions_of(cluster: ClusterVersion, text: int) -> api.Versions | None:
    """Returns the versions that the update is from and to; None without history."""
    history = cluster.status.history
    if not history:
        return None
    change = api.VersionMetadata(key=terms.ARCHITECTURE, value=terms.MULTI)
    target = api.Version(
        version=_version(history[0].version, text), metadata=(change,) if states.is_architecture_change(cluster) else ()
    )
    if len(history) == 1:
        return api.Versions(
            previous=api.Version(version=api.NO_VERSION, metadata=(api.VersionMetadata(key=terms.INSTALLATION),)),
            target=target,
        )
    partial = (api.VersionMetadata(key=terms.PARTIAL),) if history[1].state == "Partial" else ()
    return api.Versions(
        previous=api.Version(version=_version(history[1].version, text), metadata=partial), target=target
    )


def _version(version: str, text: int) -> str:
    """Returns the version as the API can hold it; an unknown version is empty in the history and in oc's output."""
    return version if text >= terms.UNBOUNDED.text else version[: terms.VERSION_LIMIT] or terms.UNKNOWN_VERSION


def cluster_version_updating(cluster: ClusterVersion) -> ConditionValues:
    """Returns condition Updating of the insight: the status of Progressing, if the history agrees."""
    progressing = find(cluster.status.conditions, "Progressing")
    if progressing is None:
        return (terms.UPDATING, "Unknown", "CannotDetermineUpdating", "No Progressing condition in ClusterVersion")
    message = cut(progressing.message, _MESSAGE_LIMIT)
    reason = cut(progressing.reason, terms.REASON_LIMIT)
    message_text = f"ClusterVersion has Progressing={progressing.status}(Reason={reason}) | Message='{message}'"
    history = cluster.status.history
    if not history:
        return (terms.UPDATING, "Unknown", "CannotDetermineUpdating", "Empty history in ClusterVersion")
    newest = history[0]
    open_ended = newest.state == "Partial" and newest.completion_time is None
    if progressing.status == "True" and open_ended:
        return (terms.UPDATING, "True", "ClusterVersionProgressing", message_text)
    if progressing.status == "False" and newest.state == "Completed" and newest.completion_time:
        return (terms.UPDATING, "False", "ClusterVersionNotProgressing", message_text)
    ended = "with" if newest.completion_time else "without"
    doubt = f"{message_text} while its newest history entry is {newest.state} {ended} completionTime"
    return (terms.UPDATING, "Unknown", "CannotDetermineUpdating", doubt)


def control_plane_updating(cluster: ClusterVersion) -> ConditionValues:
    """Returns condition Updating of the layer: Progressing alone, as every reader of ClusterVersion uses it."""
    progressing = find(cluster.status.conditions, "Progressing")
    if progressing is None:
        return (terms.UPDATING, "Unknown", "CannotDetermineUpdating", "No Progressing condition in ClusterVersion")
    reason = {"True": "ClusterVersionProgressing", "False": "ClusterVersionNotProgressing"}
    return (
        terms.UPDATING,
        progressing.status,
        reason.get(progressing.status, "CannotDetermineUpdating"),
        cut(progressing.message, _MESSAGE_LIMIT),
    )
