"""Decides ClusterVersion's status: `Observed` in, `Plan` out, with the modules that it calls.

In reading order: gates, request (mode first) and advice make the `View`; the preflight's part; the cluster's own
risks; all candidates; the update's part; then conditions and one patch. While nothing else changes, passes soon plan
no more writes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Literal

from msgspec.structs import replace as with_fields

from kubekit.api import scheme
from kubekit.api.conditions import find
from kubekit.api.meta_v1 import Condition, NamespacedName
from runup.advice.decide import acceptance, promql, service, upgradeable
from runup.api.config_v1 import ClusterVersion, ClusterVersionStatus
from runup.clusterversion.decide import (
    applying,
    assemble,
    history,
    preflight_workload,
    preflights,
    release_accepted,
    running_attempt,
    size_limits,
    sync_failure,
    validation,
    view,
)
from runup.clusterversion.decide import status as statuses
from runup.clusterversion.decide.observed import Observed
from runup.clusterversion.decide.targets import same_release
from runup.clusterversion.decide.update_request import Refused
from runup.clusterversion.decide.view import View
from runup.clusterversion.decide.work import EvaluateRules, RetrieveUpdates, Work
from runup.preflight.decide import preflight_conditions, preflight_settings
from runup.preflight.decide import stored_reports as histories
from runup.process.plan import Action, Apply, Event, PatchStatus, Plan

CLUSTER_VERSION = scheme.resource_of(ClusterVersion)
NAME = NamespacedName("", "version")
# Conditions removed once nothing sets them, and names that earlier releases set and nothing sets any more.
_OURS = (
    validation.INVALID,
    upgradeable.UPGRADEABLE,
    preflight_settings.CONDITION,
    sync_failure.TYPE,
    *preflight_conditions.TYPES,
)
_LEGACY_CONDITIONS = (
    "ImplicitlyEnabled",
    "UpgradeableAdminAckRequired",
    "UpgradeableDeletesInProgress",
    "UpgradeableClusterOperators",
    "UpgradeableClusterVersionOverrides",
    "UpgradeableUpgradeInProgress",
)
_EVENTS: dict[tuple[str, str], Literal["Normal", "Warning"]] = {
    ("PreflightCompleted", "True"): "Normal",
    ("PreflightFailed", "True"): "Warning",
    ("ReleaseAccepted", "False"): "Warning",
    ("ReleaseAccepted", "True"): "Normal",
}


@dataclass(frozen=True, slots=True)
class _Decided:
    """The decisions of a pass, before they are turned into actions."""

    view: View
    preflight: preflight_workload.Preflight
    update: release_accepted.Decision
    status: ClusterVersionStatus


def reconcile(observed: Observed, *, now: datetime) -> Plan[Work]:
    """Returns the plan for `observed` at `now` (UTC)."""
    first = _decide(observed, now)
    events = _warnings(first)
    if first.update.accepted is None:
        return _plan(observed, first, events)
    # An accepted update changes source version, lists and kept risks: a second decision in the same pass covers them.
    status = release_accepted.accept(first.view, first.update.accepted)
    accepted_version = with_fields(observed.cluster_version, status=status)
    return _plan(observed, _decide(replace(observed, cluster_version=accepted_version), now), events)


def _decide(observed: Observed, now: datetime) -> _Decided:
    """Decides everything of a pass: the preflight, the candidates, the update, and the errors of the spec."""
    current_view = view.look(observed, now)
    preflight = preflights.decide(current_view)
    cluster_risks = assemble.find_cluster_risks(observed, now)
    candidates, left_out = assemble.candidates(current_view, preflight.checked, cluster_risks)
    update = release_accepted.decide(
        current_view, candidates, workload_gone=preflight_workload.workload_gone(current_view)
    )
    preflight = preflights.end_unless_waited_for(
        current_view,
        preflight,
        update_waits=update.held,
        refused=bool(update.invalid) or (update.condition is not None and update.condition.status == "False"),
    )
    spec = observed.cluster_version.spec
    problems = [
        *validation.errors(spec, current_view.gates),
        *filter(None, ((current_view.request.invalid if isinstance(current_view.request, Refused) else ""),)),
    ]
    if update.invalid and not any(problem.startswith(validation.DESIRED_UPDATE) for problem in problems):
        problems.append(update.invalid)  # of desiredUpdate the first problem counts
    status, applied = applying.status_from_progress(current_view, _settle_status(current_view), invalid=bool(problems))
    lists = statuses.with_updates(
        status,
        candidates,
        current_view.accepted,
        publish_names=current_view.accepts_risks,
        now=now,
        past=size_limits.past_risks(running_attempt.past_risks(current_view, preflight.history), candidates),
    )
    retrieved = size_limits.left_out(current_view.advised.condition, left_out)
    new_conditions = [
        *filter(None, (validation.condition(problems), retrieved, update.condition)),
        *filter(None, (assemble.upgradeable_condition(observed, cluster_risks),)),
        *filter(None, (preflight_settings.condition(observed.unusable, observed.facts.place.namespace),)),
        *preflight_conditions.with_kept_mode(preflight.conditions, preflight.history.attempt),
        *applied,
    ]
    # While passes fail, the failure's conditions replace what this pass would say about the same types.
    failure_conditions = sync_failure.conditions(observed.failure, status.conditions)
    new_conditions = [
        *(
            condition
            for condition in new_conditions
            if condition.type not in {other.type for other in failure_conditions}
        ),
        *failure_conditions,
    ]
    conditions = statuses.with_conditions(status.conditions, new_conditions, (*_OURS, *_LEGACY_CONDITIONS), now=now)
    return _Decided(current_view, preflight, update, size_limits.status(with_fields(lists, conditions=conditions)))


def _settle_status(observed_view: View) -> ClusterVersionStatus:
    """Returns the status with desired release, history, generation and hash. An update called off leads back."""
    status, facts = observed_view.status, observed_view.observed.facts
    entries, conditions = status.history, status.conditions
    # A status without a desired version is new: nothing was called off.
    called_off = bool(status.desired.version) and not same_release(status.desired, observed_view.current)
    records_only = observed_view.observed.progress is None
    if called_off or not entries:
        # An operator that applies nothing has nothing to undo: returning is complete at once. Where no history tells
        # that it was somewhere else, what the ClusterOperators say decides below.
        at_once = called_off and records_only and bool(entries)
        entries = history.begin_entry(
            entries, observed_view.current, now=observed_view.now, state="Completed" if at_once else "Partial"
        )
    progressing = find(conditions, "Progressing")
    ours = progressing is not None and progressing.message == f"Working towards {status.desired.version}"
    if called_off and records_only and ours:
        back = Condition(
            type="Progressing", status="False", message=f"Cluster version is {observed_view.current.version}"
        )
        conditions = statuses.with_conditions(conditions, [back], (), now=observed_view.now)
    if not status.history and records_only:
        entries, conditions = history.complete_first_entry(observed_view, entries, conditions)
    return with_fields(
        status,
        desired=observed_view.current,
        history=entries,
        conditions=conditions,
        observed_generation=observed_view.generation,
        version_hash=facts.version_hash or status.version_hash,
    )


def _plan(observed: Observed, decided: _Decided, first: tuple[Event, ...]) -> Plan[Work]:
    """Orders the actions: first events, the record, the status (where a stale decision stops), the workload."""
    current_status = observed.cluster_version.status
    fresh = not current_status.desired.version and current_status.available_updates is None
    new_status = sync_failure.keep_rejected_fields(
        current_status, decided.status, observed.refused, now=decided.view.now
    )
    fields, removed = statuses.patch(current_status, new_status, fresh=fresh)
    record: list[Action] = []
    new_history = decided.preflight.history
    if new_history != histories.read(observed.history):
        stored = histories.config_map(new_history, observed.facts.place.namespace)
        record = [Apply(resource=preflight_workload.CONFIG_MAP, object=stored)]
    status: list[Action] = []
    if fields or removed:
        version = observed.cluster_version.metadata.resource_version
        status = [
            PatchStatus(
                resource=CLUSTER_VERSION, key=NAME, fields=fields, gone=removed, resource_version=version, fresh=fresh
            )
        ]
    # The status reports a record that the API server rejects, so that record must not keep it from being written.
    troubled = observed.unwritten or observed.failure is not None
    actions = [*first, *status, *record] if troubled else [*first, *record, *status]
    actions.extend(decided.preflight.actions)
    actions.extend(_events(decided.view, current_status, new_status))
    uid = observed.cluster_version.metadata.uid
    about = (with_fields(action, uid=uid) if isinstance(action, Event) else action for action in actions)
    due = decided.view.advised.due
    work: list[Work] = [RetrieveUpdates(due)] if due is not None else []
    if observed.prometheus.configured:
        candidates = decided.view.advised.candidates
        rules = promql.queries(evaluated.risk for candidate in candidates for evaluated in candidate.risks)
        work.append(EvaluateRules(rules))
    work += (*decided.preflight.work, *decided.update.work, *applying.work(decided.view))
    return Plan(tuple(about), _requeue(decided), tuple(work))


def _requeue(decided: _Decided) -> float:
    """Returns the seconds until the next pass is due if nothing changes before."""
    current_view = decided.view
    end = acceptance.next_end(current_view.accepted, current_view.acceptances, current_view.now)
    ends = (end - current_view.now).total_seconds() if end else None
    waits = (
        decided.preflight.requeue_after_s,
        decided.update.requeue_after_s,
        applying.next_look(decided.view),
        ends,
        promql.QUERY_INTERVAL[True].total_seconds() if current_view.observed.prometheus.configured else None,
        service.pause(current_view.observed.service).total_seconds(),
    )
    return min(wait for wait in waits if wait is not None)


def _warnings(decided: _Decided) -> tuple[Event, ...]:
    """Returns the warnings that come before the status: a lost mode, and the cautions of the update's decision."""
    warnings = []
    attempt = preflights.became_update(decided.view)
    if attempt is not None:
        text = (
            f"The request to check {attempt.target_version} lost its mode and is now a request to update to it. "
            "To end a preflight without updating use `runup upgrade --clear-preflight`."
        )
        warnings.append(_event("Warning", "PreflightBecameUpdate", text))
    before, attempt = decided.view.history.attempt, decided.preflight.history.attempt
    if attempt is not None and attempt.kept_mode and (before is None or attempt.requested != before.requested):
        text = preflight_conditions.kept_mode_text(attempt)
        warnings.append(_event("Warning", "PreflightKeptMode", f"{text}."))
    current = find(decided.view.status.conditions, release_accepted.RELEASE_ACCEPTED)
    new = decided.update.condition
    # Cautions are new only while ReleaseAccepted does not have this decision's status and message already.
    if new is None or current is None or (new.status, new.message) != (current.status, current.message):
        warnings += [_event("Warning", caution.reason, caution.message) for caution in decided.update.warnings]
    return tuple(warnings)


def _events(decided_view: View, old_status: ClusterVersionStatus, new_status: ClusterVersionStatus) -> Iterator[Event]:
    """Yields the events of an update under way that is taken back, and of conditions that changed to such a value."""
    desired, current = decided_view.status.desired, decided_view.current
    if decided_view.updating and not same_release(desired, current):
        text = f"The update to {desired.version} is taken back; the cluster returns to {current.version}."
        yield _event("Normal", "UpdateTakenBack", text)
    for (type_, status), kind in _EVENTS.items():
        new = statuses.changed_condition(old_status.conditions, new_status.conditions, type_)
        if new is not None and new.status == status:
            yield _event(kind, new.reason if type_ == release_accepted.RELEASE_ACCEPTED else type_, new.message)


def _event(kind: Literal["Normal", "Warning"], reason: str, message: str) -> Event:
    return Event(resource=CLUSTER_VERSION, key=NAME, type=kind, reason=reason, message=message)
