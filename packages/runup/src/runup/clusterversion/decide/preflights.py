"""Decides the preflight's part of a pass: the step that is due, its actions, and its effect on the update lists.

`reconcile` calls it once. Every step of a wanted preflight is a row of `deployment_steps.STEPS`; the outcome of a
running attempt is in `running_attempt`, what is made and removed in `preflight_workload`.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from msgspec.structs import replace as with_fields

from kubekit.api.meta_v1 import Condition
from kubekit.error_types import Terminal, Waiting
from runup.api.config_v1 import Release, Update
from runup.clusterversion.decide import preconditions, running_attempt, targets
from runup.clusterversion.decide import preflight_workload as workload
from runup.clusterversion.decide.update_request import PreflightRequest, Refused, UpdateRequest
from runup.clusterversion.decide.view import View
from runup.clusterversion.decide.work import RECHECK, Work, check_work, look_work, retry_unreadable
from runup.preflight.decide import outcome, preflight_deployment, published_risks, service_account
from runup.preflight.decide import preflight_conditions as conditions
from runup.preflight.decide import stored_reports as histories
from runup.preflight.decide.attempt import END_ANNOTATION, Attempt
from runup.preflight.decide.deployment_steps import STEPS, Deployed, DeploymentState, Step, Trust
from runup.process.plan import Apply


def decide(view: View) -> workload.Preflight:
    """Decides the preflight's part of this pass, including the removal of stale reports."""
    decided = _decide(view)
    return replace(decided, actions=(*decided.actions, *workload.remove_stale_reports(view, decided.history.attempt)))


def _decide(view: View) -> workload.Preflight:
    """Decides the preflight's part by what is requested: an update, a preflight, or neither."""
    request = view.request
    if isinstance(request, UpdateRequest):
        return _during_update_request(view, request.update)
    if isinstance(request, Refused):
        return _plan_refused(view, request)
    if not isinstance(request, PreflightRequest):
        return _plan_unwanted(view, ())
    try:
        target = targets.preflight_target(
            request.update,
            current=view.current,
            advised=view.advised,
            attempt=view.history.attempt,
            releases=view.observed.releases,
        )
    except Terminal as error:
        text = error.message
        if isinstance(error, targets.Downgrade) and preconditions.may_roll_back(
            view.observed.cluster_version, error.target
        ):
            text = f"{error.older}, and no preflight checks a rollback; to return to it use `runup upgrade rollback`"
        unwanted = _plan_unwanted(view, conditions.refused_conditions(error.reason, text))
        return replace(unwanted, **retry_unreadable(view, request.update, error))
    except Waiting as error:
        assert isinstance(view.request, PreflightRequest)
        update = view.request.update
        subject = conditions.Subject(target=update.version or update.image, source=view.current.version)
        work = look_work(view, update)
        return workload.Preflight(
            conditions=conditions.preparing_conditions(subject, error.reason, error.message),
            checked=running_attempt.kept_targets(view, view.history, None),
            history=view.history,
            work=work,
            requeue_after_s=error.retry_after_s,
        )
    return _plan_wanted(view, request.update, target)


def end_unless_waited_for(
    view: View, decided: workload.Preflight, *, update_waits: bool | None, refused: bool
) -> workload.Preflight:
    """Returns `decided`, whose preflight ends unless its update waits for it (docs/decisions/0076).

    `update_waits`: whether the update waits for the preflight or is refused for its findings; None if not known yet.
    """
    attempt = decided.history.attempt
    if attempt is None or not attempt.became_update or attempt.failed or update_waits is None:
        return decided
    if update_waits:
        # The workload is gone: another attempt has to find out what holds the update up.
        restarted = with_fields(workload.new_attempt(view, workload.target_of(attempt)), became_update=True)
        history = histories.with_attempt(decided.history, restarted) if attempt.making_way else decided.history
        return replace(decided, history=history)
    if refused:
        return _plan_unwanted(view, ())
    # Recorded before the workload goes, so that a killed operator does not start the preflight again
    # (docs/decisions/0024-what-is-live-and-what-is-dated.md).
    if not attempt.making_way:
        leaving = with_fields(attempt, making_way=True, silent=running_attempt.is_silent(view, attempt))
        return replace(
            decided,
            history=histories.with_attempt(decided.history, leaving),
            actions=workload.stop_workload(view),
            requeue_after_s=None,
        )
    return decided


def became_update(view: View) -> Attempt | None:
    """Returns the attempt whose request lost only its mode and so is now an update, else None.

    Source: docs/decisions/0072 D20.
    """
    attempt = view.history.attempt
    if attempt is None or attempt.became_update or attempt.kept_mode or not isinstance(view.request, UpdateRequest):
        return None
    update = view.request.update
    # Another version or image: somebody asked for the update. A record of an earlier release has neither.
    if any(attempt.requested) and (update.version, update.image) != attempt.requested:
        return None
    return attempt if targets.asks_for(update, workload.target_of(attempt)) else None


def _plan_unwanted(view: View, condition_values: tuple[Condition, ...]) -> workload.Preflight:
    situation = DeploymentState(
        wanted=False, deployed=workload.deployed_state(view, None), trust=Trust.PENDING, over=False
    )
    history = histories.with_attempt(running_attempt.with_last_report(view), None)
    actions = workload.stop_workload(view) if STEPS[situation] is Step.STOP else ()
    return workload.Preflight(
        conditions=condition_values,
        checked=running_attempt.kept_targets(view, history, None),
        history=history,
        actions=actions,
    )


def _plan_refused(view: View, request: Refused) -> workload.Preflight:
    """Plans a request that is refused: nothing is started, and a preflight that has started is ended."""
    attempt, desired = view.history.attempt, view.observed.cluster_version.spec.desired_update
    has_started = attempt is not None and (
        bool(attempt.refused) or workload.deployed_state(view, attempt) is Deployed.OURS
    )
    if (
        attempt is None
        or desired is None
        or not has_started
        or not targets.asks_for(desired, workload.target_of(attempt))
    ):
        text = f"Nothing was started: {request.message}"
        return _plan_unwanted(view, conditions.refused_conditions(request.reason, text))
    unwanted = _plan_unwanted(view, ())
    report = next((stored for stored in unwanted.history.reports if stored.preflight_id == attempt.id), None)
    subject = conditions.Subject(
        target=attempt.target_version,
        source=attempt.source_version,
        observed_at=report.observed_time if report is not None else None,
    )
    # Recorded for as long as the request is refused, so that later passes say the same.
    history = histories.with_attempt(unwanted.history, with_fields(attempt, refused=request.reason))
    ended_conditions = conditions.refused_conditions(request.reason, request.message, ended=subject)
    return replace(unwanted, conditions=ended_conditions, history=history)


def _during_update_request(view: View, update: Update) -> workload.Preflight:
    """Plans the preflight of the requested update: it continues until the update is accepted.

    Source: docs/decisions/0072 D24.
    """
    attempt = view.history.attempt
    target = workload.target_of(attempt) if attempt is not None else None
    if attempt is None or target is None or attempt.failed or not targets.asks_for(update, target):
        return _plan_unwanted(view, ())
    if attempt.source_version != view.current.version or targets.same_release(target, view.current):
        return _plan_unwanted(view, ())
    # `runup upgrade --clear-preflight` ends it where no mode is left to be cleared.
    if view.observed.cluster_version.metadata.annotations.get(END_ANNOTATION) == attempt.id:
        return _plan_unwanted(view, ())
    updating_view = replace(
        view, history=histories.with_attempt(view.history, with_fields(attempt, became_update=True))
    )
    if attempt.making_way:
        case = workload.case_of(updating_view, update, target)
        deployed = workload.deployed_state(case.view, case.attempt)
        actions = workload.stop_workload(case.view) if deployed in (Deployed.OURS, Deployed.OTHER) else ()
        # Findings of an older attempt, or of a target that hung, inform and do not hold an update up
        # (docs/decisions/0024-what-is-live-and-what-is-dated.md).
        ended = case.last_good_is_older or case.attempt.silent
        checked = published_risks.CheckedTarget(
            release=case.target, source_version=case.attempt.source_version, report=case.last_good, ended=ended
        )
        return workload.Preflight(
            conditions=(),
            checked=running_attempt.with_kept_targets(case, checked),
            history=case.view.history,
            actions=actions,
        )
    return _plan_wanted(updating_view, update, target)


def _plan_wanted(view: View, update: Update, target: Release) -> workload.Preflight:
    """Returns the plan of a requested preflight, by the state of its Deployment (table `STEPS`)."""
    case = workload.case_of(view, update, target)
    situation = DeploymentState(
        wanted=True,
        deployed=workload.deployed_state(view, case.attempt),
        trust=workload.trust_of(case),
        over=bool(case.attempt.failed),
    )
    step = STEPS[situation]
    if step is Step.WATCH:
        return running_attempt.watch_attempt(case)
    if step is Step.REFUSE:
        return _refuse_target(case)
    if step is Step.START:
        return _start_target(case)
    # A failed attempt is not repeated by itself: the administrator clears the request and asks again.
    if step is Step.HOLD or (step in (Step.STOP, Step.AWAIT_GONE) and case.attempt.failed):
        final = outcome.AttemptOutcome(
            state=outcome.AttemptState.FAILED, reason=case.attempt.failed, message=case.attempt.failure, final=True
        )
        held = running_attempt.from_outcome(case, final, None, case.view.history)
        return replace(held, actions=workload.stop_workload(case.view)) if step is Step.STOP else held
    if step is Step.VERIFY:
        work = check_work(case.target.image, case.check, case.view.now)
        return _before_start(case, "VerifyingImage", "the signature of the target's image is being verified", work=work)
    if step is Step.STOP:
        pending = _before_start(case, "ReplacingTarget", "the preflight of another target is being removed")
        return replace(pending, actions=workload.stop_workload(case.view))
    if step is Step.AWAIT_GONE:
        text = f"the pods of the preflight before it are ending{workload.ending_text(case.view)}"
        pending = _before_start(case, "ReplacingTarget", text)
        return replace(pending, requeue_after_s=RECHECK.total_seconds())
    return _before_start(case, "", "there is nothing to do")


def _refuse_target(case: workload.PreflightCase) -> workload.Preflight:
    """Plans a retry of the verification; the target is refused until it succeeds."""
    error = case.check.error if case.check else ""
    text = targets.untrusted_text(case.target.image, error)
    work = check_work(case.target.image, case.check, case.view.now)
    return workload.Preflight(
        conditions=conditions.refused_conditions("ImageVerificationFailed", text),
        checked=running_attempt.with_kept_targets(
            case,
            published_risks.CheckedTarget(
                release=case.target,
                source_version=case.attempt.source_version,
                report=case.last_good,
                failed=text,
                ended=True,
            ),
        ),
        history=histories.with_attempt(case.view.history, case.attempt),
        work=work,
        requeue_after_s=RECHECK.total_seconds(),
    )


def _start_target(case: workload.PreflightCase) -> workload.Preflight:
    """Plans the account's objects and the Deployment once the target's rights are known."""
    # A target whose signature is not verified never gets the operator's account (docs/decisions/0072 D9).
    waived = case.check is None or case.check.trust is not Trust.VERIFIED
    settings = workload.pod_settings_for(case.view, waived)
    rights = workload.account_rights(case, settings)
    if rights is None:
        text = "what the target's checks read is being looked up"
        return _before_start(case, "ReadingChecks", text, work=workload.rights_work(case))
    roles = service_account.role_namespaces(settings, rights)
    # The Deployment comes last: while it is absent, everything before it is applied again.
    apply_deployment = Apply(
        resource=workload.DEPLOYMENT,
        object=preflight_deployment.deployment(case.attempt, settings, waived=waived, roles=roles),
    )
    unwritten = case.view.observed.unwritten
    if unwritten:
        history = histories.with_attempt(case.view.history, case.attempt)
        starting = running_attempt.from_outcome(case, outcome.rejected_object(unwritten), None, history)
    else:
        starting = _before_start(case, "TargetStarting", "the target is being started")
    return replace(
        starting,
        actions=(*service_account.account_objects(settings, case.attempt.id, rights), apply_deployment),
    )


def _before_start(
    case: workload.PreflightCase, reason: str, why: str, work: tuple[Work, ...] = ()
) -> workload.Preflight:
    """Returns the state before anything runs: the target is not recommended until it has been checked.

    `reason`: of the conditions that say `why`; none are set without it.

    Source: docs/decisions/0072 D21.
    """
    started = case.attempt.started_time or case.view.now
    limit = timedelta(seconds=case.view.observed.facts.place.timeout_s)
    checked = published_risks.CheckedTarget(
        release=case.target,
        source_version=case.attempt.source_version,
        report=case.last_good,
        running=f"{why[0].upper()}{why[1:]}.",
        ended=True,
        waits=case.view.now - started < limit,
        until=started + limit,
    )
    # Recorded before anything runs: a request that loses its mode now is noticed all the same
    # (docs/decisions/0072 D20).
    history = histories.with_attempt(case.view.history, case.attempt)
    preparing = conditions.preparing_conditions(case.subject, reason, why) if reason else ()
    return workload.Preflight(
        conditions=preparing, checked=running_attempt.with_kept_targets(case, checked), history=history, work=work
    )
