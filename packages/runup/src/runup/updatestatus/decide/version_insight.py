"""Converts ClusterVersion into the control plane's own insight: versions, times and condition Updating."""

from __future__ import annotations

from datetime import datetime, timedelta

from kubekit.api.conditions import find
from runup.api.config_v1 import ClusterVersion
from runup.api.update_v1alpha1 import (
    NO_VERSION,
    AwaitedOperator,
    ClusterVersionInsight,
    Insight,
    Version,
    VersionMetadata,
    Versions,
)
from runup.updatestatus.decide import nodes as states
from runup.updatestatus.decide import uids
from runup.updatestatus.decide.control_plane import ControlPlaneState
from runup.updatestatus.decide.finding import cluster_version_ref
from runup.updatestatus.decide.insight_names import (
    ARCHITECTURE,
    INSTALLATION,
    MULTI,
    PARTIAL,
    REASON_LIMIT,
    UNKNOWN_VERSION,
    UPDATING,
    VERSION_LIMIT,
    cut,
)
from runup.updatestatus.decide.limits import UNBOUNDED
from runup.updatestatus.decide.memory import CONTROL_PLANE, ConditionValues, PreviousStatus, same_estimate

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
