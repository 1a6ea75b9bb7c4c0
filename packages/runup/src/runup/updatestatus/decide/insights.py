"""Converts operator states and findings into insights of the API."""

from __future__ import annotations

from msgspec.structs import replace

from runup.api.update_v1alpha1 import (
    ClusterOperatorInsight,
    HealthImpact,
    HealthInsight,
    HealthRemediation,
    HealthScope,
    Insight,
    OperatorProgress,
    ResourceRef,
)
from runup.updatestatus.decide import uids
from runup.updatestatus.decide.control_plane import OperatorState
from runup.updatestatus.decide.finding import NO_RUNBOOK, Finding, operator_ref
from runup.updatestatus.decide.health import NOT_FAILING_UNKNOWN
from runup.updatestatus.decide.insight_names import HEALTHY, REASON_LIMIT, UPDATING, cut, limit_or_unbounded
from runup.updatestatus.decide.limits import UNBOUNDED
from runup.updatestatus.decide.memory import CONTROL_PLANE, ConditionValues, PreviousStatus

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


def _resources(finding: Finding, text: int) -> tuple[ResourceRef, ...]:
    """Returns the resources that the API has room for; an alert's labels may be longer than names of objects."""
    return tuple(
        replace(
            ref,
            name=ref.name[: limit_or_unbounded(_NAME_LIMIT, text)],
            namespace=ref.namespace[: limit_or_unbounded(_NAME_LIMIT, text)],
        )
        for ref in finding.resources[:_MOST_RESOURCES]
    )


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
                scope=HealthScope(type=finding.scope, resources=_resources(finding, text)),
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
