"""Decides the outcome of a running attempt, which reports are stored, and which targets' findings count.

The rules of an outcome are `outcome.RULES`. In: the case of an attempt whose Deployment exists. Out: its conditions,
its findings, the actions that follow, and when to look again.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from msgspec.structs import replace as with_fields

from kubekit.lang.oc_pull_spec import is_same_image
from kubekit.lang.version import parse
from runup.advice.decide.candidates import EvaluatedRisk
from runup.api.config_v1 import Release
from runup.clusterversion.decide import assemble
from runup.clusterversion.decide import preflight_workload as workload
from runup.clusterversion.decide.targets import same_release
from runup.clusterversion.decide.view import View
from runup.clusterversion.decide.work import check_work
from runup.preflight.decide import outcome as outcomes
from runup.preflight.decide import preflight_conditions as conditions
from runup.preflight.decide import published_risks, start_failures, stored_reports
from runup.preflight.decide import stored_reports as histories
from runup.preflight.decide.attempt import Attempt
from runup.report.report import Report


def is_silent(view: View, attempt: Attempt) -> bool:
    """Returns whether the attempt's report has not changed for the time limit, `STALE_AFTER_S` at least."""
    report = view.observed.report
    # A time limit shorter than the interval of reports would make every target look silent.
    limit_s = max(view.observed.facts.place.timeout_s, outcomes.STALE_AFTER_S)
    return report is not None and report.preflight_id == attempt.id and report.unchanged_s >= limit_s


def watch_attempt(case: workload.PreflightCase) -> workload.Preflight:
    """Plans what the running attempt's report and Pods call for: conditions, risks, restarts, or its end."""
    view = case.view
    created = view.observed.deployment.metadata.creation_timestamp if view.observed.deployment else None
    # `now` by a monotonic clock: a jump of the wall clock ends no preflight.
    if created is not None and view.observed.deployment_age_s is not None:
        view = replace(view, now=created + timedelta(seconds=view.observed.deployment_age_s))
    report, bad = outcomes.usable_report(case.attempt, view.observed.report)
    waived = workload.was_waived(view)
    # The target cannot know or deny it; from here on it is reported wherever the result is.
    report = report and with_fields(report, signature_waived=waived)
    risks = applicable_risks(view, case.attempt, report) if report else ()
    scene = outcomes.Observations(
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
        changed_at=view.observed.report.changed_at if view.observed.report else None,
        tally=assemble.tally(risks, view.accepted) if report else None,
    )
    result = outcomes.outcome(scene)
    if result.final:
        return _finish_attempt(case, result, report)
    # Recorded, so that a restart of the operator does not extend the time limit.
    since = outcomes.unfinished_since(scene, result)
    history = view.history
    if since != case.attempt.unfinished_since:
        scene = with_fields(scene, attempt=with_fields(case.attempt, unfinished_since=since))
        history = histories.with_attempt(history, scene.attempt)
    if result.state is outcomes.AttemptState.COMPLETED and report is not None:
        history = histories.with_report(history, with_others(view, report, risks))
    preflight = from_outcome(case, result, report=report, history=history, scene=scene)
    actions, work = workload.reapply_if_changed(case)
    container_actions, image_work = workload.run_check_containers(case, report)
    actions = (*actions, *workload.restart_hung_pods(scene), *container_actions)
    # Nothing waits for a waived signature, but what an update without `force` would come to depends on it.
    verify = check_work(case.target.image, case.check, case.view.now) if waived else ()
    work = (*work, *image_work, *verify)
    waits = []
    again = start_failures.look_again_s(scene.deployment, scene.pods, scene.now)
    if again is not None:
        waits.append(again)
    if result.state is not outcomes.AttemptState.COMPLETED and scene.deadline is not None:
        waits.append(max((scene.deadline - scene.now).total_seconds(), 1.0))
    if scene.report is not None or scene.bad is not None:
        waits.append(scene.until_stale_s)
    return replace(preflight, actions=actions, work=work, requeue_after_s=min(waits, default=None))


def _finish_attempt(
    case: workload.PreflightCase, attempt_outcome: outcomes.AttemptOutcome, report: Report | None
) -> workload.Preflight:
    """Plans the end of the attempt; the record is written before the Deployment, its evidence, is removed."""
    ended = with_fields(case.attempt, failed=attempt_outcome.reason, failure=attempt_outcome.message_with_remedy)
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
    return replace(preflight, actions=workload.stop_workload(case.view))


def from_outcome(
    case: workload.PreflightCase,
    attempt_outcome: outcomes.AttemptOutcome,
    report: Report | None,
    history: stored_reports.History,
    scene: outcomes.Observations | None = None,
) -> workload.Preflight:
    """Returns conditions and risks of an attempt that was started; `scene` is None unless it is still running."""
    good = case.last_good
    whole = report is not None and report.execution_status == "completed"
    # While the new report is incomplete, the last complete one says more.
    shown_report = report if whole or good is None else good
    unfinished = f"{attempt_outcome.message}." if attempt_outcome.state is not outcomes.AttemptState.COMPLETED else ""
    stale = scene is not None and scene.stale
    checked = published_risks.CheckedTarget(
        release=case.target,
        source_version=case.attempt.source_version,
        report=shown_report,
        running=unfinished if attempt_outcome.state is not outcomes.AttemptState.FAILED else "",
        failed=unfinished if attempt_outcome.state is outcomes.AttemptState.FAILED else "",
        stale=unfinished if stale else "",
        ended=attempt_outcome.final or (shown_report is good and case.last_good_is_older),
        waits=scene is None or not scene.restart_due,
        until=scene.update_waits_until if scene is not None else None,
        waived=workload.was_waived(case.view),
    )
    subject = with_fields(
        case.subject,
        observed_at=shown_report.observed_time if shown_report else None,
        waived=checked.waived,
        grown=assemble.grown_text(case.view, workload.stored_of(history, case)),
    )
    observed_time = good.observed_time if good is not None and good is shown_report else None
    completed = (
        shown_report is not None
        and shown_report.execution_status == "completed"
        and shown_report.preflight_id == case.attempt.id
    )
    outcome_conditions = conditions.conditions_of_outcome(
        subject,
        attempt_outcome,
        kept_time=observed_time,
        completed=completed,
        until=checked.until if checked.stale else None,
    )
    return workload.Preflight(conditions=outcome_conditions, checked=with_kept_targets(case, checked), history=history)


def with_last_report(view: View) -> stored_reports.History:
    """Returns the history with the running attempt's newest report, whose time from now on dates the findings."""
    attempt = view.history.attempt
    report = outcomes.usable_report(attempt, view.observed.report)[0] if attempt is not None else None
    # A partial report would replace complete findings.
    if report is None or report.execution_status != "completed":
        return view.history
    assert attempt is not None
    # The request that ended it may accept other risks, or come from another release: what counted before was stored.
    stored = next((report for report in view.history.reports if report.preflight_id == attempt.id), None)
    if stored is not None:
        waived = stored.signature_waived or workload.was_waived(view)
        last = with_fields(report, others=stored.others, accepted=stored.accepted, signature_waived=waived)
    else:
        last = with_fields(report, signature_waived=workload.was_waived(view))
        last = with_others(view, last, applicable_risks(view, attempt, last))
    return histories.with_report(view.history, last, even_if_only_newer=True)


def applicable_risks(view: View, attempt: Attempt, report: Report) -> tuple[EvaluatedRisk, ...]:
    """Returns the risks of an update to the target of `attempt`, from every source, that apply or are unknown."""
    checked = published_risks.CheckedTarget(
        release=workload.target_of(attempt),
        source_version=attempt.source_version,
        report=report,
        waived=report.signature_waived,
    )
    return assemble.applicable_risks(view, checked)


def with_others(view: View, report: Report, risks: tuple[EvaluatedRisk, ...]) -> Report:
    """Returns `report` as it is stored: with the risks that others found, and the risks that are accepted now.

    So later changes of the cluster do not change it. `risks` are those of `applicable_risks`.
    """
    own_names = {risk.name for risk in report.risks}
    return with_fields(
        report,
        others=tuple(
            published_risks.as_reported(risk, report.target_version) for risk in risks if risk.name not in own_names
        ),
        accepted=tuple(risk.name for risk in risks if risk.accepted(view.accepted)),
    )


def with_kept_targets(
    case: workload.PreflightCase, checked: published_risks.CheckedTarget
) -> tuple[published_risks.CheckedTarget, ...]:
    """Returns `checked`, then the other targets whose dated findings count."""
    return (checked, *kept_targets(case.view, case.view.history, case.target))


def kept_targets(
    view: View, history: stored_reports.History, wanted_release: Release | None
) -> tuple[published_risks.CheckedTarget, ...]:
    """Returns the dated findings of ended preflights of targets that are still ahead, one for each target.

    Source: docs/decisions/0072 D7, D24; openshift/enhancements#1930, "Upgrading FROM a cluster with preflight support".
    """
    targets: list[published_risks.CheckedTarget] = []
    for report in history.reports:
        release = Release(version=report.target_version, image=report.target_image)
        if not release.image or not _is_ahead(view, report):
            continue
        # The same target may have been checked from several releases: the newest findings count.
        if any(same_release(target.release, release) for target in targets):
            continue
        if wanted_release is not None and (release.version, release.image) == (
            wanted_release.version,
            wanted_release.image,
        ):
            continue
        targets.append(
            published_risks.CheckedTarget(
                release=release, source_version=report.source_version, report=report, ended=True
            )
        )
    return tuple(targets[: histories.MAX_REPORTS - (wanted_release is not None)])


def past_risks(view: View, history: stored_reports.History) -> tuple[EvaluatedRisk, ...]:
    """Returns what preflights of targets that the cluster has or has passed found, the newest first.

    It is kept for reference and belongs to no update (openshift/enhancements#1930, "Upgrading FROM a cluster with
    preflight support", 3).
    """
    past = []
    for report in history.reports:
        if not _is_ahead(view, report):
            release = Release(version=report.target_version, image=report.target_image)
            found = published_risks.evaluated_risks(
                published_risks.CheckedTarget(
                    release=release, source_version=report.source_version, report=report, ended=True, passed=True
                )
            )
            own_names = {risk.name for risk in report.risks}
            past += [risk for risk in found if risk.name in own_names]
    return tuple(past)


def _is_ahead(view: View, report: Report) -> bool:
    """Returns whether the target of `report` is a release that the cluster has not come to."""
    current_version, target_version = parse(view.current.version), parse(report.target_version)
    if current_version is None or target_version is None or current_version == target_version:
        # Another image of the running version is ahead until the cluster runs that.
        other = not is_same_image(report.target_image, view.current.image)
        return report.source_version == view.current.version and other
    return target_version > current_version
