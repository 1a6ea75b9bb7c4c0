"""Decides the outcome of a running attempt: by its report and its Pods, and when it has ended.

The rules of an outcome are `outcome.RULES`. In: the case of an attempt whose Deployment exists. Out: its conditions,
its findings, the actions that follow, and when to look again.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from msgspec.structs import replace as with_fields

from runup.clusterversion.decide import assemble, update_refusals
from runup.clusterversion.decide.attempt_reports import applicable_risks, with_kept_targets, with_others
from runup.clusterversion.decide.image_checks import check_work
from runup.clusterversion.decide.preflight_case import Preflight, PreflightCase, stored_of, was_waived
from runup.clusterversion.decide.preflight_workload import (
    reapply_if_changed,
    restart_hung_pods,
    run_check_containers,
    stop_workload,
)
from runup.clusterversion.decide.view import View
from runup.preflight.decide import preflight_conditions as conditions
from runup.preflight.decide import start_failures
from runup.preflight.decide import stored_reports as histories
from runup.preflight.decide.attempt import Attempt
from runup.preflight.decide.outcome import (
    STALE_AFTER_S,
    AttemptOutcome,
    AttemptState,
    Observations,
    outcome,
    unfinished_since,
    usable_report,
)
from runup.preflight.decide.published_risks import CheckedTarget
from runup.preflight.decide.stored_reports import History
from runup.report.report import Report


def is_silent(view: View, attempt: Attempt) -> bool:
    """Returns whether the attempt's report has not changed for the time limit, `STALE_AFTER_S` at least."""
    report = view.observed.report
    # A time limit shorter than the interval of reports would make every target look silent.
    limit_s = max(view.observed.facts.place.timeout_s, STALE_AFTER_S)
    return report is not None and report.preflight_id == attempt.id and report.unchanged_s >= limit_s


def watch_attempt(case: PreflightCase) -> Preflight:
    """Plans what the running attempt's report and Pods call for: conditions, risks, restarts, or its end."""
    view = _with_steady_clock(case.view)
    report, bad = usable_report(case.attempt, view.observed.report)
    waived = was_waived(view)
    # The target cannot know or deny it; from here on it is told wherever the result is.
    report = report and with_fields(report, signature_waived=waived)
    risks = applicable_risks(view, case.attempt, report) if report else ()
    scene = Observations(
        attempt=case.attempt,
        deployment=view.observed.deployment,
        pods=view.observed.pods,
        report=report,
        bad=bad,
        completed_before=histories.has_completed(case.view.history, case.attempt),
        timeout_s=view.observed.facts.place.timeout_s,
        now=view.now,
        events=view.observed.warnings,
        unchanged_s=view.observed.report.unchanged_s if view.observed.report and (report or bad) else 0.0,
        tally=assemble.tally(risks, view.accepted) if report else None,
    )
    result = outcome(scene)
    if result.final:
        return _finish_attempt(case, result, report)
    # Recorded, so that a restart of the operator does not extend the time limit.
    since = unfinished_since(scene, result)
    history = view.history
    if since != case.attempt.unfinished_since:
        scene = with_fields(scene, attempt=with_fields(case.attempt, unfinished_since=since))
        history = histories.with_attempt(history, scene.attempt)
    if result.state is AttemptState.COMPLETED and report is not None:
        history = histories.with_report(history, with_others(view, report, risks))
    preflight = from_outcome(case, result, report, history, scene)
    actions, work = reapply_if_changed(case)
    container_actions, image_work = run_check_containers(case, report)
    actions = (*actions, *restart_hung_pods(scene), *container_actions)
    # Nothing waits for a waived signature, but what an update without `force` would come to depends on it.
    verify = check_work(case.target.image, case.check, case.view.now) if waived else ()
    work = (*work, *image_work, *verify)
    waits = []
    again = start_failures.look_again_s(scene.deployment, scene.pods, scene.now)
    if again is not None:
        waits.append(again)
    if result.state is not AttemptState.COMPLETED and scene.deadline is not None:
        waits.append(max((scene.deadline - scene.now).total_seconds(), 1.0))
    if scene.report is not None or scene.bad is not None:
        waits.append(scene.until_stale_s)
    return replace(preflight, actions=actions, work=work, requeue_after_s=min(waits, default=None))


def _finish_attempt(case: PreflightCase, attempt_outcome: AttemptOutcome, report: Report | None) -> Preflight:
    """Plans the end of the attempt; the record is written before the Deployment, its evidence, is removed."""
    ended = with_fields(case.attempt, failed=attempt_outcome.reason, failure=attempt_outcome.told)
    history = case.view.history
    # Partial findings are kept only where there is nothing better to show.
    if report is not None and case.last_good is None:
        failed = with_fields(report, execution_status="failed", message=attempt_outcome.message)
        partial = with_others(case.view, failed, applicable_risks(case.view, case.attempt, failed))
        history = histories.with_report(history, partial)
    elif report is not None and report.execution_status == "completed":
        last = with_others(case.view, report, applicable_risks(case.view, case.attempt, report))
        history = histories.with_report(history, last, even_if_only_newer=True)
    preflight = from_outcome(
        replace(case, attempt=ended), attempt_outcome, report, histories.with_attempt(history, ended)
    )
    return replace(preflight, actions=stop_workload(case.view))


def from_outcome(
    case: PreflightCase,
    attempt_outcome: AttemptOutcome,
    report: Report | None,
    history: History,
    scene: Observations | None = None,
) -> Preflight:
    """Returns conditions and risks of an attempt that was started; `scene` is None unless it is still running."""
    good = case.last_good
    whole = report is not None and report.execution_status == "completed"
    # While the new report is incomplete, the last complete one says more.
    shown_report = report if whole or good is None else good
    unfinished = f"{attempt_outcome.message}." if attempt_outcome.state is not AttemptState.COMPLETED else ""
    stale = scene is not None and scene.stale
    checked = CheckedTarget(
        case.target,
        case.attempt.source_version,
        shown_report,
        running=unfinished if attempt_outcome.state is not AttemptState.FAILED else "",
        failed=unfinished if attempt_outcome.state is AttemptState.FAILED else "",
        stale=unfinished if stale else "",
        ended=attempt_outcome.final or (shown_report is good and case.last_good_is_older),
        waits=scene is None or not scene.restart_due,
        waived=was_waived(case.view),
    )
    subject = with_fields(
        case.subject,
        observed_at=shown_report.observed_time if shown_report else None,
        waived=checked.waived,
        grown=update_refusals.grown_text(case.view, stored_of(history, case)),
    )
    observed_time = good.observed_time if good is not None and good is shown_report else None
    completed = (
        shown_report is not None
        and shown_report.execution_status == "completed"
        and shown_report.preflight_id == case.attempt.id
    )
    outcome_conditions = conditions.conditions_of_outcome(
        subject, attempt_outcome, kept_time=observed_time, completed=completed
    )
    return Preflight(outcome_conditions, with_kept_targets(case, checked), history)


def _with_steady_clock(view: View) -> View:
    """Returns `view` with `now` computed from a monotonic clock, so that a jump of the wall clock ends no preflight."""
    created = view.observed.deployment.metadata.creation_timestamp if view.observed.deployment else None
    age_s = view.observed.deployment_age_s
    return view if created is None or age_s is None else replace(view, now=created + timedelta(seconds=age_s))
