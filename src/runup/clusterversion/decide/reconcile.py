"""THE ONE PLACE that decides ClusterVersion's status: `Observed` in, `Plan` out.

In reading order: gates, request (mode first) and advice make the `View`; the preflight's part; the cluster's own
risks; all candidates; the update's part; then conditions and one patch. Reconciling its own result plans nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from msgspec.structs import replace as with_fields

from kubekit.api import scheme
from kubekit.api.conditions import find
from kubekit.api.meta_v1 import Condition, NamespacedName
from runup.advice.decide import acceptance, promql, service, upgradeable
from runup.advice.decide.risks.source import SourceRisk
from runup.api.config_v1 import ClusterVersion, ClusterVersionStatus
from runup.clusterversion.decide import (
    applying,
    assemble,
    fit,
    history,
    preflights,
    refusal,
    stuck,
    updates,
    validation,
    view,
)
from runup.clusterversion.decide import status as statuses
from runup.clusterversion.decide.beginning import begin
from runup.clusterversion.decide.goal import asks_for, same_release
from runup.clusterversion.decide.observed import Observed
from runup.clusterversion.decide.preflights import Preflight
from runup.clusterversion.decide.request import Refused, UpdateRequest
from runup.clusterversion.decide.updates import Decision
from runup.clusterversion.decide.view import View
from runup.preflight.decide import conditions as preflight_conditions
from runup.preflight.decide import history as histories
from runup.preflight.decide import settings
from runup.process.plan import Action, Apply, Event, PatchStatus, Plan

CLUSTER_VERSION = scheme.resource_of(ClusterVersion)
NAME = NamespacedName("", "version")
RETRIEVE_UPDATES = "retrieve-updates"
EVALUATE_RULES = "evaluate-rules"
# Conditions that go away when nothing says them any more, and the older names that nobody sets any more.
_OURS = (
    validation.INVALID,
    upgradeable.UPGRADEABLE,
    settings.CONDITION,
    refusal.TYPE,
    *preflight_conditions.TYPES,
)
_LEGACY = (
    "ImplicitlyEnabled",
    "UpgradeableAdminAckRequired",
    "UpgradeableDeletesInProgress",
    "UpgradeableClusterOperators",
    "UpgradeableClusterVersionOverrides",
    "UpgradeableUpgradeInProgress",
)
_EVENTS = {
    ("PreflightCompleted", "True"): "Normal",
    ("PreflightFailed", "True"): "Warning",
    ("ReleaseAccepted", "False"): "Warning",
    ("ReleaseAccepted", "True"): "Normal",
}


@dataclass(frozen=True, slots=True)
class _Decided:
    """One pass's decisions, before they are turned into actions."""

    view: View
    preflight: Preflight
    update: Decision
    status: ClusterVersionStatus


def reconcile(observed: Observed, *, now: datetime) -> Plan:
    """What is to be done about `observed` at `now` (UTC)."""
    first = _decide(observed, now)
    said = (*_became_update(first.view), *_cautions(first))
    if first.update.accepted is None:
        return _plan(observed, first, said)
    # What an accepted update changes (source version, lists, kept risks) is decided in this very pass.
    status = updates.accept(first.view, first.update.accepted)
    told = with_fields(observed.cluster_version, status=status)
    return _plan(observed, _decide(replace(observed, cluster_version=told), now), said)


def _decide(observed: Observed, now: datetime) -> _Decided:
    seen = view.look(observed, now)
    preflight = preflights.decide(seen)
    found = assemble.in_the_cluster(observed, now)
    candidates, left_out = assemble.candidates(seen, preflight.checked, found)
    update = updates.decide(seen, candidates, workload_gone=preflights.workload_gone(seen))
    preflight = preflights.after(seen, preflight, update_ready=update.ready, refused=_is_refused(update))
    preflight = replace(preflight, history=histories.with_update_asked_at(preflight.history, _asked_at(seen)))
    spec = observed.cluster_version.spec
    problems = [*validation.errors(spec, seen.gates), *filter(None, (_mode_problem(seen),))]
    if update.invalid and not any(problem.startswith(validation.DESIRED_UPDATE) for problem in problems):
        problems.append(update.invalid)  # of desiredUpdate the first problem counts
    status, applied = applying.settle(seen, _settle(seen), invalid=bool(problems))
    lists = statuses.with_updates(status, candidates, seen.accepted, publish_names=seen.accepts_risks, now=now)
    retrieved = fit.left_out(seen.advised.condition, left_out)
    said = [
        *filter(None, (validation.condition(problems), retrieved, update.condition)),
        *filter(None, (_upgradeable(observed, found, status),)),
        *filter(None, (settings.condition(observed.unusable, observed.facts.place.namespace),)),
        *preflight.conditions,
        *applied,
    ]
    instead = stuck.conditions(observed.failure, status.conditions)
    said = [*(each for each in said if each.type not in {other.type for other in instead}), *instead]
    conditions = statuses.with_conditions(status.conditions, said, (*_OURS, *_LEGACY), now=now)
    return _Decided(seen, preflight, update, fit.status(with_fields(lists, conditions=conditions)))


def _upgradeable(observed: Observed, found: Sequence[SourceRisk], status: ClusterVersionStatus) -> Condition | None:
    """An operator that deletes nothing does not know of deletions, nor of gates where there is no ConfigMap of them."""
    not_known: tuple[str, ...] = ("ResourceDeletion",) if observed.progress is None else ()
    not_known += ("AdminAck",) if observed.admin_gates is None and observed.admin_acks is None else ()
    return upgradeable.upgradeable(found, find(status.conditions, upgradeable.UPGRADEABLE), not_known=not_known)


def _is_refused(update: Decision) -> bool:
    return update.condition is not None and update.condition.status == "False"


def _asked_at(seen: View) -> int:
    """The generation that last asked for the update under way. It stays until the status says that none is."""
    if not seen.updating:
        return 0
    request = seen.request
    asks = isinstance(request, UpdateRequest) and asks_for(request.update, seen.status.desired)
    return seen.generation if asks else seen.history.update_asked_at


def _settle(seen: View) -> ClusterVersionStatus:
    """Desired release, history, generation and hash. An update that is called off leads back."""
    status, facts = seen.status, seen.observed.facts
    entries, conditions = status.history, status.conditions
    called_off = bool(status.desired.version) and not same_release(status.desired, seen.current)
    records_only = seen.observed.progress is None
    if called_off or not entries:
        # Where nothing is applied, going back is complete at once.
        at_once = called_off and records_only
        entries = history.begin(entries, seen.current, now=seen.now, state="Completed" if at_once else "Partial")
    if called_off and records_only and _is_ours(find(conditions, "Progressing"), status.desired.version):
        back = Condition(type="Progressing", status="False", message=f"Cluster version is {seen.current.version}")
        conditions = statuses.with_conditions(conditions, [back], (), now=seen.now)
    if not status.history and records_only:
        entries, conditions = begin(seen, entries, conditions)
    return with_fields(
        status,
        desired=seen.current,
        history=entries,
        conditions=conditions,
        observed_generation=seen.generation,
        version_hash=facts.version_hash or status.version_hash,
    )


def _is_ours(progressing: Condition | None, version: str) -> bool:
    return progressing is not None and progressing.message == f"Working towards {version}"


def _mode_problem(seen: View) -> str:
    return seen.request.invalid if isinstance(seen.request, Refused) else ""


def _plan(observed: Observed, decided: _Decided, first: tuple[Event, ...]) -> Plan:
    """Events that must come first, the record, the status (which a stale decision stops at), the workload."""
    found = observed.cluster_version.status
    fresh = not found.desired.version and found.available_updates is None
    wanted = refusal.tell(found, decided.status, observed.refused, now=decided.view.now)
    fields, gone = statuses.patch(found, wanted, fresh=fresh)
    record: list[Action] = [*_record(observed, decided)]
    status: list[Action] = []
    if fields or gone:
        version = observed.cluster_version.metadata.resource_version
        status = [PatchStatus(CLUSTER_VERSION, NAME, fields, gone, version, fresh=fresh)]
    # A record that is not taken must not keep the status, which says so, from being written.
    troubled = observed.unwritten or observed.failure is not None
    actions = [*first, *status, *record] if troubled else [*first, *record, *status]
    actions.extend(decided.preflight.actions)
    actions.extend((*_taken_back(decided), *_events(found, wanted)))
    return Plan(tuple(actions), _requeue(decided), _work(decided))


def _record(observed: Observed, decided: _Decided) -> tuple[Action, ...]:
    wanted = decided.preflight.history
    if wanted == histories.read(observed.history):
        return ()
    namespace = observed.facts.place.namespace
    return (Apply(preflights.CONFIG_MAP, histories.config_map(wanted, namespace)),)


def _work(decided: _Decided) -> tuple[tuple[str, Any], ...]:
    due = decided.view.advised.due
    asking = ((RETRIEVE_UPDATES, due),) if due is not None else ()
    rules = promql.queries(judged.risk for candidate in decided.view.advised.candidates for judged in candidate.risks)
    if decided.view.observed.prometheus.configured:
        asking = (*asking, (EVALUATE_RULES, rules))
    return (*asking, *decided.preflight.work, *decided.update.work, *applying.work(decided.view))


def _requeue(decided: _Decided) -> float:
    seen = decided.view
    end = acceptance.next_end(seen.accepted, seen.acceptances, seen.now)
    ends = (end - seen.now).total_seconds() if end else None
    waits = (
        decided.preflight.requeue_after_s,
        decided.update.requeue_after_s,
        applying.next_look(decided.view),
        ends,
        promql.AGAIN[True].total_seconds() if seen.observed.prometheus.configured else None,
        service.INTERVAL.total_seconds(),
    )
    return min(wait for wait in waits if wait is not None)


def _became_update(seen: View) -> tuple[Event, ...]:
    attempt = preflights.became_update(seen)
    if attempt is None:
        return ()
    text = (
        f"The request to check {attempt.target_version} lost its mode and is now a request to update to it. "
        "To end a preflight without updating use `runup upgrade --clear-preflight`."
    )
    return (Event(CLUSTER_VERSION, NAME, "Warning", "PreflightBecameUpdate", text),)


def _taken_back(decided: _Decided) -> tuple[Event, ...]:
    seen = decided.view
    if not seen.updating or same_release(seen.status.desired, seen.current):
        return ()
    text = f"The update to {seen.status.desired.version} was taken back; the cluster stays at {seen.current.version}."
    return (Event(CLUSTER_VERSION, NAME, "Normal", "UpdateTakenBack", text),)


def _cautions(decided: _Decided) -> tuple[Event, ...]:
    """Warnings of this decision, said once: when ReleaseAccepted does not say the same already."""
    found = find(decided.view.status.conditions, updates.RELEASE_ACCEPTED)
    told = decided.update.condition
    if told is not None and found is not None and (told.status, told.message) == (found.status, found.message):
        return ()
    return tuple(
        Event(CLUSTER_VERSION, NAME, "Warning", caution.reason, caution.message) for caution in decided.update.warnings
    )


def _events(found: ClusterVersionStatus, wanted: ClusterVersionStatus) -> tuple[Event, ...]:
    events = []
    for (type_, status), kind in _EVENTS.items():
        new = statuses.changed_condition(found.conditions, wanted.conditions, type_)
        if new is not None and new.status == status:
            reason = new.reason if type_ == updates.RELEASE_ACCEPTED else type_
            events.append(Event(CLUSTER_VERSION, NAME, kind, reason, new.message))  # type: ignore[arg-type]
    return tuple(events)
