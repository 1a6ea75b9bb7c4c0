"""Decides the preflight's part of a pass: the step that is due, its actions, and its effect on the update lists.

`reconcile` calls it once; every branch is a row of `steps.STEPS` or a rule of `outcome.RULES`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from msgspec.structs import replace as with_fields

from kubekit.api import scheme
from kubekit.api.core_v1 import ConfigMap, Pod
from kubekit.api.meta_v1 import Condition, NamespacedName
from kubekit.api.workloads_v1 import Deployment
from kubekit.errors import Terminal, Waiting
from kubekit.lang.version import parse
from runup.advice.decide.candidates import JudgedRisk
from runup.api.config_v1 import Release, Update
from runup.clusterversion.decide import assemble, preconditions, targets, verdict
from runup.clusterversion.decide.observed import ReleaseCheck
from runup.clusterversion.decide.target_release import asks_for, same_image, same_release
from runup.clusterversion.decide.update_request import PreflightRequest, Refused, UpdateRequest
from runup.clusterversion.decide.view import View
from runup.clusterversion.decide.work import ReadImages, ReadRelease, ReadRights, VerifyRelease, Work
from runup.preflight.decide import (
    container_check_pods,
    preflight_deployment,
    published_risks,
    service_account,
    start_failures,
)
from runup.preflight.decide import preflight_conditions as conditions
from runup.preflight.decide import stored_reports as histories
from runup.preflight.decide.attempt import END_ANNOTATION, Attempt, attempt_id
from runup.preflight.decide.deployment_steps import STEPS, Deployed, Seen, Step, Trust
from runup.preflight.decide.outcome import (
    STALE_AFTER_S,
    Observations,
    Outcome,
    State,
    not_written,
    outcome,
    seen_report,
)
from runup.preflight.decide.published_risks import CheckedTarget
from runup.preflight.decide.report import Report
from runup.preflight.decide.stored_reports import History
from runup.process.plan import Action, Apply, Delete

RECHECK = timedelta(seconds=60)
# Pods named in a message; the Deployment has one replica, so more are rare.
_PODS_SHOWN = 3
DEPLOYMENT = scheme.resource_of(Deployment)
CONFIG_MAP = scheme.resource_of(ConfigMap)
POD = scheme.resource_of(Pod)


@dataclass(frozen=True, slots=True)
class Preflight:
    """The preflight's part of a pass.

    `checked` are the targets whose risks count, newest first; `actions` are carried out after the status is written.
    """

    conditions: tuple[Condition, ...] = ()
    checked: tuple[CheckedTarget, ...] = ()
    history: History = History()  # noqa: RUF009 -- frozen
    actions: tuple[Action, ...] = ()
    work: tuple[Work, ...] = ()
    requeue_after_s: float | None = None


def decide(view: View) -> Preflight:
    """Decides the preflight's part of this pass, including the removal of stale reports."""
    decided = _decide(view)
    return replace(decided, actions=(*decided.actions, *_stale_reports(view, decided.history.attempt)))


def _decide(view: View) -> Preflight:
    """Decides the preflight's part by what is requested: an update, a preflight, or neither."""
    request = view.request
    if isinstance(request, UpdateRequest):
        return _during_update_request(view, request.update)
    if not isinstance(request, PreflightRequest):
        refusal_conditions = (
            conditions.refused_conditions(request.reason, request.message) if isinstance(request, Refused) else ()
        )
        return _when_unwanted(view, refusal_conditions)
    try:
        target = targets.for_preflight(
            request.update,
            current=view.current,
            advised=view.advised,
            attempt=view.history.attempt,
            releases=view.observed.releases,
        )
    except Terminal as error:
        unwanted = _when_unwanted(view, conditions.refused_conditions(error.reason, _refusal_text(view, error)))
        return replace(unwanted, **retry_unreadable(view, request.update, error))
    except Waiting as error:
        return _await_target(view, error)
    return _when_wanted(view, request.update, target)


def _refusal_text(view: View, error: Terminal) -> str:
    """Returns the message of a refused request; the way back to the previous release is named where there is one."""
    if not isinstance(error, targets.Downgrade):
        return error.message
    if not preconditions.may_roll_back(view.observed.cluster_version, error.target):
        return error.message
    return f"{error.older}, and no preflight checks a way back; to go back to it use `runup upgrade rollback`"


def end_unless_waited_for(view: View, decided: Preflight, *, held: bool | None, refused: bool) -> Preflight:
    """Returns `decided`, whose preflight ends unless its update waits for it (docs/decisions/0076).

    `held`: whether the update waits for the preflight or is refused for its findings; None if that is not known yet.
    """
    attempt = decided.history.attempt
    if attempt is None or not attempt.became_update or attempt.failed or held is None:
        return decided
    if held:
        # The workload is gone: another attempt has to find out what holds the update up.
        anew = with_fields(_new_attempt(view, _target_of(attempt)), became_update=True)
        history = histories.with_attempt(decided.history, anew) if attempt.making_way else decided.history
        return replace(decided, history=history)
    if refused:
        return _when_unwanted(view, ())
    # Recorded before the workload goes, so that a killed operator does not start the preflight again
    # (docs/decisions/0024-what-is-live-and-what-is-dated.md).
    if not attempt.making_way:
        leaving = with_fields(attempt, making_way=True, silent=_is_silent(view, attempt))
        return replace(
            decided, history=histories.with_attempt(decided.history, leaving), actions=_stop(view), requeue_after_s=None
        )
    return decided


def became_update(view: View) -> Attempt | None:
    """Returns the attempt whose request lost only its mode and so is now an update, else None.

    Source: docs/decisions/0072 D20.
    """
    attempt = view.history.attempt
    if attempt is None or attempt.became_update or not isinstance(view.request, UpdateRequest):
        return None
    return attempt if asks_for(view.request.update, _target_of(attempt)) else None


def ending_text(view: View) -> str:
    """Returns a text that names the terminating pods and, if they are overdue, how to delete them; or ""."""
    pods = sorted(view.observed.pods, key=lambda pod: pod.metadata.name)
    if not pods:
        return ""
    named = [f"{pod.metadata.name}{f' on node {pod.spec.node_name}' if pod.spec.node_name else ''}" for pod in pods]
    text = ", ".join(named[:_PODS_SHOWN])
    due = [pod.metadata.deletion_timestamp for pod in pods if pod.metadata.deletion_timestamp is not None]
    # The kubelet confirms a pod's end: on a node that is lost, it stays until somebody forces its deletion.
    if due and view.now - min(due) >= RECHECK:
        text += f" since {min(due):%Y-%m-%dT%H:%M:%SZ}; if the node is lost, `kubectl -n "
        text += f"{view.observed.facts.place.namespace} delete pod -l {preflight_deployment.SELECTOR} --force`"
    return f": {text}"


def workload_gone(view: View) -> bool:
    """Returns whether neither the Deployment nor a pod of any preflight is left."""
    return _deployed_state(view, None) is Deployed.NONE


def check_work(image: str, check: ReleaseCheck | None, now: datetime) -> tuple[Work, ...]:
    """Returns the work of verifying `image` if it is due: at first, and again `RECHECK` after a failure."""
    if check is not None and check.running:
        return ()
    settled = check is not None and check.trust is Trust.VERIFIED
    fresh = check is not None and check.at is not None and timedelta() <= now - check.at < RECHECK
    return () if settled or fresh else (VerifyRelease(image),)


def read_work(image: str, check: ReleaseCheck | None, now: datetime) -> tuple[Work, ...]:
    """Returns the work of reading the version of `image` if it is due: at first, or `RECHECK` after a failure."""
    if not image or (check is not None and (check.reading or check.version)):
        return ()
    fresh = check is not None and check.read_at is not None and timedelta() <= now - check.read_at < RECHECK
    return () if fresh else (ReadRelease(image),)


def look_work(view: View, update: Update) -> tuple[Work, ...]:
    """Returns the work due on an image that no graph knows: verifying it and, once trusted, reading its version."""
    check = view.observed.releases.get(update.image)
    verify = check_work(update.image, check, view.now) if update.image else ()
    return (*verify, *(read_work(update.image, check, view.now) if targets.is_trusted(update, check) else ()))


def retry_unreadable(view: View, update: Update, error: Terminal) -> dict[str, Any]:
    """Returns work and delay that retry an unreadable image: registries recover, secrets are corrected."""
    if error.reason not in (targets.UNREADABLE, targets.UNTRUSTED):
        return {}
    return {"work": look_work(view, update), "requeue_after_s": RECHECK.total_seconds()}


def _when_unwanted(view: View, said: tuple[Condition, ...]) -> Preflight:
    situation = Seen(False, _deployed_state(view, None), Trust.PENDING, over=False)
    history = histories.with_attempt(_with_last_words(view), None)
    actions = _stop(view) if STEPS[situation] is Step.STOP else ()
    return Preflight(said, _kept_targets(view, history, None), history, actions)


def _with_last_words(view: View) -> History:
    """Returns the history with the running attempt's newest report, whose time from now on dates the findings."""
    attempt = view.history.attempt
    report = seen_report(attempt, view.observed.report)[0] if attempt is not None else None
    # A partial report would replace complete findings.
    if report is None or report.execution_status != "completed":
        return view.history
    assert attempt is not None
    # The request that ended it may accept other risks, or come from another release: what counted before was stored.
    stored = next((each for each in view.history.reports if each.preflight_id == attempt.id), None)
    if stored is not None:
        waived = stored.signature_waived or _was_waived(view)
        last = with_fields(report, others=stored.others, accepted=stored.accepted, signature_waived=waived)
    else:
        last = with_fields(report, signature_waived=_was_waived(view))
        last = _with_others(view, last, _applicable_risks(view, attempt, last))
    return histories.with_report(view.history, last, even_if_only_newer=True)


def _applicable_risks(view: View, attempt: Attempt, report: Report) -> tuple[JudgedRisk, ...]:
    """Returns the risks of an update to the target of `attempt`, from every source, that apply or could not be told."""
    checked = CheckedTarget(_target_of(attempt), attempt.source_version, report, waived=report.signature_waived)
    return assemble.applicable_risks(view, checked)


def _with_others(view: View, report: Report, risks: tuple[JudgedRisk, ...]) -> Report:
    """Returns `report` as it is stored: with what counts besides, so that nothing that changes later changes it.

    `risks` are those of `_applicable_risks`.
    """
    own = {risk.name for risk in report.risks}
    return with_fields(
        report,
        others=tuple(
            published_risks.as_reported(risk, report.target_version) for risk in risks if risk.name not in own
        ),
        accepted=tuple(risk.name for risk in risks if risk.accepted(view.accepted)),
    )


def _during_update_request(view: View, update: Update) -> Preflight:
    """Plans the preflight of the requested update: it continues until the update is accepted.

    Source: docs/decisions/0072 D24.
    """
    attempt = view.history.attempt
    target = _target_of(attempt) if attempt is not None else None
    if attempt is None or target is None or attempt.failed or not asks_for(update, target):
        return _when_unwanted(view, ())
    if attempt.source_version != view.current.version or same_release(target, view.current):
        return _when_unwanted(view, ())
    # `runup upgrade --clear-preflight` ends it where no mode is left to be cleared.
    if view.observed.cluster_version.metadata.annotations.get(END_ANNOTATION) == attempt.id:
        return _when_unwanted(view, ())
    updating_view = replace(
        view, history=histories.with_attempt(view.history, with_fields(attempt, became_update=True))
    )
    if attempt.making_way:
        return _making_way(_case(updating_view, update, target))
    return _when_wanted(updating_view, update, target)


def _making_way(case: _Case) -> Preflight:
    """Plans the removal of the workload when the update is ready; the last report counts until that is accepted."""
    deployed = _deployed_state(case.view, case.attempt)
    actions = _stop(case.view) if deployed in (Deployed.OURS, Deployed.OTHER) else ()
    # Findings of an older attempt, or of a target that hung, inform and do not hold an update up
    # (docs/decisions/0024-what-is-live-and-what-is-dated.md).
    ended = case.last_good_is_older or case.attempt.silent
    checked = CheckedTarget(case.target, case.attempt.source_version, case.last_good, ended=ended)
    return Preflight((), _with_wanted(case, checked), case.view.history, actions)


def _is_silent(view: View, attempt: Attempt) -> bool:
    report = view.observed.report
    # A time limit shorter than the interval of reports would make every target look silent.
    limit_s = max(view.observed.facts.place.timeout_s, STALE_AFTER_S)
    return report is not None and report.preflight_id == attempt.id and report.unchanged_s >= limit_s


def _target_of(attempt: Attempt) -> Release:
    return Release(version=attempt.target_version, image=attempt.target_image)


def _await_target(view: View, error: Waiting) -> Preflight:
    """Plans nothing but lookups until it is known which release is requested: nothing is started or stopped."""
    assert isinstance(view.request, PreflightRequest)
    update = view.request.update
    subject = conditions.Subject(update.version or update.image, view.current.version)
    work = look_work(view, update)
    return Preflight(
        conditions.preparing_conditions(subject, error.reason, error.message),
        _kept_targets(view, view.history, None),
        view.history,
        work=work,
        requeue_after_s=error.retry_after_s,
    )


@dataclass(frozen=True, slots=True)
class _Case:
    """A wanted preflight: the view, the request, the target, and the attempt that is (or would be) its own."""

    view: View
    update: Update
    target: Release
    attempt: Attempt
    check: ReleaseCheck | None

    @property
    def subject(self) -> conditions.Subject:
        return conditions.Subject(self.target.version, self.attempt.source_version)

    @property
    def last_good(self) -> Report | None:
        """The newest stored report of exactly this target."""
        return stored_of(self.view.history, self)

    @property
    def last_good_is_older(self) -> bool:
        """Returns whether that report is from an earlier attempt."""
        return self.last_good is not None and self.last_good.preflight_id != self.attempt.id


def stored_of(history: History, case: _Case) -> Report | None:
    """Returns the newest report in `history` of exactly the target of `case`."""
    for report in history.reports:
        key = (report.source_version, report.target_version, report.target_image)
        if key == (case.attempt.source_version, case.target.version, case.target.image):
            return report
    return None


def _when_wanted(view: View, update: Update, target: Release) -> Preflight:
    case = _case(view, update, target)
    situation = Seen(True, _deployed_state(view, case.attempt), _trust(case), over=bool(case.attempt.failed))
    return _STEPS[STEPS[situation]](case)


def _case(view: View, update: Update, target: Release) -> _Case:
    """Returns what the steps need: the recorded attempt if it is for this target, else a new one."""
    recorded = view.history.attempt
    if recorded is None or not recorded.is_for(target, view.current.version):
        recorded = None
    if recorded is not None and update.mode:
        # The request has its mode again. An attempt that made way has no workload any more: a new one replaces it.
        recorded = None if recorded.making_way else with_fields(recorded, became_update=False)
    attempt = recorded or _new_attempt(view, target)
    view = replace(view, history=histories.with_attempt(view.history, attempt)) if recorded else view
    return _Case(view, update, target, attempt, view.observed.releases.get(target.image))


def _new_attempt(view: View, target: Release) -> Attempt:
    """Returns a new attempt, started now, for the current generation of ClusterVersion."""
    # The ID is kept while the same target is asked for: accepting a risk changes the generation
    # (docs/decisions/0011-one-reconcile-and-a-record-in-a-configmap.md).
    source = view.current.version
    generation = view.observed.cluster_version.metadata.generation
    return Attempt(
        id=attempt_id(generation=generation, image=target.image, source=source),
        source_version=source,
        target_version=target.version,
        target_image=target.image,
        started_time=view.now,
    )


def _trust(case: _Case) -> Trust:
    # `force` waives the signature, as it does for an update.
    if case.update.force:
        return Trust.VERIFIED
    return case.check.trust if case.check is not None else Trust.PENDING


def _deployed_state(view: View, attempt: Attempt | None) -> Deployed:
    """Returns what there is of the Deployment: of `attempt`, of another one, on its way out, or nothing."""
    deployment = view.observed.deployment
    if deployment is None:
        return Deployed.GOING if view.observed.pods else Deployed.NONE
    # A finalizer, such as that of a foreground deletion, keeps the object until its pods are gone.
    if deployment.metadata.deletion_timestamp is not None:
        return Deployed.GOING
    preflight_id = deployment.metadata.annotations.get(preflight_deployment.ID_ANNOTATION)
    return Deployed.OURS if attempt is not None and preflight_id == attempt.id else Deployed.OTHER


def _verify(case: _Case) -> Preflight:
    preparing = conditions.preparing_conditions(
        case.subject, "VerifyingImage", "the signature of the target's image is being verified"
    )
    work = check_work(case.target.image, case.check, case.view.now)
    return _before_start(case, preparing, "the signature of the target's image is being verified", work=work)


def _refuse_target(case: _Case) -> Preflight:
    """Plans a retry of the verification; the target is refused until it succeeds."""
    error = case.check.error if case.check else ""
    text = targets.untrusted_text(case.target.image, error)
    work = check_work(case.target.image, case.check, case.view.now)
    return Preflight(
        conditions.refused_conditions("ImageVerificationFailed", text),
        _with_wanted(
            case, CheckedTarget(case.target, case.attempt.source_version, case.last_good, failed=text, ended=True)
        ),
        histories.with_attempt(case.view.history, case.attempt),
        work=work,
        requeue_after_s=RECHECK.total_seconds(),
    )


def _start_target(case: _Case) -> Preflight:
    """Plans the account's objects and the Deployment once the target's rights are known."""
    # A target whose signature is not verified never gets the operator's account (docs/decisions/0072 D9).
    waived = case.check is None or case.check.trust is not Trust.VERIFIED
    place = _workplace(case.view, waived)
    rights = _rights(case, place)
    if rights is None:
        preparing = conditions.preparing_conditions(
            case.subject, "ReadingChecks", "what the target's checks read is being looked up"
        )
        return _before_start(
            case, preparing, "what the target's checks read is being looked up", work=_rights_work(case)
        )
    roles = service_account.role_namespaces(place, rights)
    # The Deployment comes last: while it is absent, everything before it is applied again.
    wanted = Apply(DEPLOYMENT, preflight_deployment.deployment(case.attempt, place, waived=waived, roles=roles))
    return replace(
        _report_start(case), actions=(*service_account.account_objects(place, case.attempt.id, rights), wanted)
    )


def _report_start(case: _Case) -> Preflight:
    unwritten = case.view.observed.unwritten
    if unwritten:
        history = histories.with_attempt(case.view.history, case.attempt)
        return _from_outcome(case, not_written(unwritten), None, history)
    preparing = conditions.preparing_conditions(case.subject, "TargetStarting", "the target is being started")
    return _before_start(case, preparing, "the target is being started")


def _workplace(view: View, waived: bool) -> preflight_deployment.Workplace:
    place = view.observed.facts.place
    return with_fields(place, service_account="dedicated") if waived else place


def _rights(case: _Case, place: preflight_deployment.Workplace) -> tuple[service_account.Right, ...] | None:
    """Returns the rights of the dedicated account; empty if it is not used, None while they are being looked up."""
    # The operator's account has all rights (docs/decisions/0051-whoever-applies-a-release-has-all-rights.md).
    if place.service_account != "dedicated":
        return ()
    if case.check is None or (case.check.rights_until is not None and case.view.now >= case.check.rights_until):
        return None
    return case.check.rights


def _rights_work(case: _Case) -> tuple[Work, ...]:
    under_way = case.check is not None and case.check.asking
    return () if under_way else (ReadRights(case.target.image),)


def _stop_other(case: _Case) -> Preflight:
    if case.attempt.failed:
        return replace(_hold_failed(case), actions=_stop(case.view))
    preparing = conditions.preparing_conditions(
        case.subject, "ReplacingTarget", "the preflight of another target is being removed"
    )
    pending = _before_start(case, preparing, "the preflight of another target is being removed")
    return replace(pending, actions=_stop(case.view))


def _await_gone(case: _Case) -> Preflight:
    if case.attempt.failed:
        return _hold_failed(case)
    text = f"the pods of the preflight before it are ending{ending_text(case.view)}"
    pending = _before_start(case, conditions.preparing_conditions(case.subject, "ReplacingTarget", text), text)
    return replace(pending, requeue_after_s=RECHECK.total_seconds())


def _hold_failed(case: _Case) -> Preflight:
    # A failed attempt is not repeated by itself: the administrator clears the request and asks again.
    final = Outcome(State.FAILED, case.attempt.failed, case.attempt.failure, final=True)
    return _from_outcome(case, final, None, case.view.history)


def _watch(case: _Case) -> Preflight:
    """Plans what the running attempt's report and Pods call for: conditions, risks, restarts, or its end."""
    view = _with_steady_clock(case.view)
    report, bad = seen_report(case.attempt, view.observed.report)
    waived = _was_waived(view)
    # The target cannot know or deny it; from here on it is told wherever the result is.
    report = report and with_fields(report, signature_waived=waived)
    risks = _applicable_risks(view, case.attempt, report) if report else ()
    scene = Observations(
        attempt=case.attempt,
        deployment=view.observed.deployment,
        pods=view.observed.pods,
        report=report,
        bad=bad,
        completed_before=_completed_before(case),
        timeout_s=view.observed.facts.place.timeout_s,
        now=view.now,
        events=view.observed.warnings,
        unchanged_s=view.observed.report.unchanged_s if view.observed.report and (report or bad) else 0.0,
        tally=assemble.tally(risks, view.accepted) if report else None,
    )
    result = outcome(scene)
    if result.final:
        return _finish_attempt(case, result, report)
    history = view.history
    if result.state is State.COMPLETED and report is not None:
        history = histories.with_report(history, _with_others(view, report, risks))
    preflight = _from_outcome(case, result, report, history, scene)
    actions, work = _drift(case)
    container_actions, image_work = _containers(case, report)
    actions = (*actions, *_restart(scene), *container_actions)
    # Nothing waits for a waived signature, but what an update without `force` would come to depends on it.
    verify = check_work(case.target.image, case.check, case.view.now) if waived else ()
    work = (*work, *image_work, *verify)
    return replace(preflight, actions=actions, work=work, requeue_after_s=_until_next_look(scene, result))


def _was_waived(view: View) -> bool:
    deployment = view.observed.deployment
    return deployment is not None and preflight_deployment.was_waived(deployment)


def _containers(case: _Case, report: Report | None) -> tuple[tuple[Action, ...], tuple[Work, ...]]:
    """Returns the Pods that the target's checks want, and the work of reading the release's images if they need it."""
    owner, check = case.view.observed.deployment, case.check
    if report is None or owner is None:
        return (), ()
    images = check.images if check is not None else None
    expired = check is not None and check.images_until is not None and case.view.now >= check.images_until
    asking = check is not None and check.listing
    due = bool(report.containers) and (images is None or expired) and not asking
    pod_actions = container_check_pods.actions(
        case.attempt, case.view.observed.facts.place, owner, report.containers, case.view.observed.check_pods, images
    )
    return tuple(pod_actions), (ReadImages(case.target.image),) if due else ()


def _finish_attempt(case: _Case, found: Outcome, report: Report | None) -> Preflight:
    """Plans the end of the attempt; the record is written before the Deployment, its evidence, is removed."""
    ended = with_fields(case.attempt, failed=found.reason, failure=found.told)
    history = case.view.history
    # Partial findings are kept only where there is nothing better to show.
    if report is not None and case.last_good is None:
        failed = with_fields(report, execution_status="failed", message=found.message)
        partial = _with_others(case.view, failed, _applicable_risks(case.view, case.attempt, failed))
        history = histories.with_report(history, partial)
    elif report is not None and report.execution_status == "completed":
        last = _with_others(case.view, report, _applicable_risks(case.view, case.attempt, report))
        history = histories.with_report(history, last, even_if_only_newer=True)
    preflight = _from_outcome(replace(case, attempt=ended), found, report, histories.with_attempt(history, ended))
    return replace(preflight, actions=_stop(case.view))


def _from_outcome(
    case: _Case, found: Outcome, report: Report | None, history: History, scene: Observations | None = None
) -> Preflight:
    """Returns conditions and risks of an attempt that was started; `scene` is None unless it is still running."""
    good = case.last_good
    whole = report is not None and report.execution_status == "completed"
    shown = report if whole or good is None else good
    unfinished = f"{found.message}." if found.state is not State.COMPLETED else ""
    stale = scene is not None and scene.stale
    checked = CheckedTarget(
        case.target,
        case.attempt.source_version,
        shown,
        running=unfinished if found.state is not State.FAILED else "",
        failed=unfinished if found.state is State.FAILED else "",
        stale=unfinished if stale else "",
        ended=found.final or (shown is good and case.last_good_is_older),
        waits=scene is None or not scene.restart_due,
        waived=_was_waived(case.view),
    )
    subject = with_fields(
        case.subject,
        observed_at=shown.observed_time if shown else None,
        waived=checked.waived,
        grown=verdict.grown_text(case.view, stored_of(history, case)),
    )
    kept = good.observed_time if good is not None and good is shown else None
    completed = shown is not None and shown.execution_status == "completed" and shown.preflight_id == case.attempt.id
    outcome_conditions = conditions.of_outcome(subject, found, kept=kept, completed=completed)
    return Preflight(outcome_conditions, _with_wanted(case, checked), history)


def _before_start(case: _Case, said: tuple[Condition, ...], why: str, work: tuple[Work, ...] = ()) -> Preflight:
    """Returns the state before anything runs: the target is not recommended until it has been checked.

    Source: docs/decisions/0072 D21.
    """
    started = case.attempt.started_time or case.view.now
    limit = timedelta(seconds=case.view.observed.facts.place.timeout_s)
    checked = CheckedTarget(
        case.target,
        case.attempt.source_version,
        case.last_good,
        running=f"{why[0].upper()}{why[1:]}.",
        ended=True,
        waits=case.view.now - started < limit,
    )
    # Recorded before anything runs: a request that loses its mode now is noticed all the same
    # (docs/decisions/0072 D20).
    history = histories.with_attempt(case.view.history, case.attempt)
    return Preflight(said, _with_wanted(case, checked), history, work=work)


def _with_wanted(case: _Case, checked: CheckedTarget) -> tuple[CheckedTarget, ...]:
    return (checked, *_kept_targets(case.view, case.view.history, case.target))


def _kept_targets(view: View, history: History, wanted: Release | None) -> tuple[CheckedTarget, ...]:
    """Returns the dated findings of ended preflights of targets that are still ahead, one for each target.

    Source: docs/decisions/0072 D7, D24; openshift/enhancements#1930, "Upgrading FROM a cluster with preflight support".
    """
    kept: list[CheckedTarget] = []
    for report in history.reports:
        release = Release(version=report.target_version, image=report.target_image)
        if not release.image or not _is_ahead(view, report):
            continue
        # The same target may have been checked from several releases: the newest findings count.
        if any(same_release(one.release, release) for one in kept):
            continue
        if wanted is not None and (release.version, release.image) == (wanted.version, wanted.image):
            continue
        kept.append(CheckedTarget(release, report.source_version, report, ended=True))
    return tuple(kept[: histories.MAX_REPORTS - (wanted is not None)])


def _is_ahead(view: View, report: Report) -> bool:
    here, there = parse(view.current.version), parse(report.target_version)
    if here is None or there is None or here == there:
        # Another image of the running version is ahead until the cluster runs that.
        other = not same_image(report.target_image, view.current.image)
        return report.source_version == view.current.version and other
    return there > here


def _completed_before(case: _Case) -> bool:
    return any(
        report.preflight_id == case.attempt.id and report.execution_status == "completed"
        for report in case.view.history.reports
    )


def _drift(case: _Case) -> tuple[tuple[Action, ...], tuple[Work, ...]]:
    """Plans to apply a Deployment that differs from the desired one: a moved operator, a setting, a manual edit."""
    deployment = case.view.observed.deployment
    assert deployment is not None
    waived = preflight_deployment.was_waived(deployment)
    place = _workplace(case.view, waived)
    if preflight_deployment.is_as_wanted(
        deployment, preflight_deployment.deployment(case.attempt, place, waived=waived)
    ):
        return (), ()
    rights = _rights(case, place)
    if rights is None:
        return (), _rights_work(case)
    roles = {*service_account.role_namespaces(place, rights), *preflight_deployment.roles_of(deployment)}
    # The setting changed from a dedicated account to the operator's: the account's objects go.
    if place.account != preflight_deployment.NAME:
        wanted = Apply(DEPLOYMENT, preflight_deployment.deployment(case.attempt, place))
        return (wanted, *_without_account(case.view, deployment)), ()
    wanted = Apply(DEPLOYMENT, preflight_deployment.deployment(case.attempt, place, waived=waived, roles=roles))
    return (*service_account.account_objects(place, case.attempt.id, rights), wanted), ()


def _stop(view: View) -> tuple[Action, ...]:
    """Plans to remove the dedicated account's objects, then the Deployment: while it exists, that is repeated."""
    deployment = view.observed.deployment
    if deployment is None or deployment.metadata.deletion_timestamp is not None:
        return ()
    place = view.observed.facts.place
    deletion = Delete(
        DEPLOYMENT, NamespacedName(place.namespace, preflight_deployment.NAME), uid=deployment.metadata.uid
    )
    return (*_without_account(view, deployment), deletion)


def _without_account(view: View, found: Deployment) -> tuple[Action, ...]:
    if found.spec.template.spec.service_account_name != preflight_deployment.NAME:
        return ()
    preflight_id = found.metadata.annotations.get(preflight_deployment.ID_ANNOTATION, "")
    return service_account.account_deletions(
        view.observed.facts.place, preflight_id, preflight_deployment.roles_of(found)
    )


def _stale_reports(view: View, attempt: Attempt | None) -> tuple[Action, ...]:
    """Plans to remove reports in ConfigMaps that are no longer written.

    The report of `attempt`, which is recorded, stays: its Deployment may exist already without being observed.
    """
    deployment = view.observed.deployment
    if deployment is None and view.observed.pods:
        return ()
    current = (
        preflight_deployment.report_map(deployment.metadata.annotations.get(preflight_deployment.ID_ANNOTATION, ""))
        if deployment
        else ""
    )
    expected = preflight_deployment.report_map(attempt.id) if attempt is not None and not attempt.failed else ""
    namespace = view.observed.facts.place.namespace
    stale = (name for name in view.observed.report_maps if name not in (current, expected))
    return tuple(Delete(CONFIG_MAP, NamespacedName(namespace, name)) for name in stale)


def _restart(scene: Observations) -> tuple[Action, ...]:
    """Plans to remove pods whose target reported nothing for the whole time limit; the Deployment replaces them."""
    return tuple(
        Delete(POD, NamespacedName(p.metadata.namespace, p.metadata.name), uid=p.metadata.uid) for p in scene.hung
    )


def _with_steady_clock(view: View) -> View:
    """Returns `view` with `now` computed from a monotonic clock, so that a jump of the wall clock ends no preflight."""
    created = view.observed.deployment.metadata.creation_timestamp if view.observed.deployment else None
    age_s = view.observed.deployment_age_s
    return view if created is None or age_s is None else replace(view, now=created + timedelta(seconds=age_s))


def _until_next_look(scene: Observations, found: Outcome) -> float | None:
    """Returns the seconds until the deadline, or until a wait or an unchanged report is reported; None if neither."""
    waits = []
    again = start_failures.look_again_s(scene.deployment, scene.pods, scene.now)
    if again is not None:
        waits.append(again)
    if not (scene.completed_before or found.state is State.COMPLETED or scene.deadline is None):
        waits.append(max((scene.deadline - scene.now).total_seconds(), 1.0))
    if scene.report is not None or scene.bad is not None:
        waits.append(scene.until_stale_s)
    return min(waits, default=None)


def _do_nothing(case: _Case) -> Preflight:
    return _before_start(case, (), "nothing is to be done")


_STEPS: dict[Step, Callable[[_Case], Preflight]] = {
    Step.NOTHING: _do_nothing,
    Step.VERIFY: _verify,
    Step.REFUSE: _refuse_target,
    Step.START: _start_target,
    Step.WATCH: _watch,
    Step.STOP: _stop_other,
    Step.AWAIT_GONE: _await_gone,
    Step.HOLD: _hold_failed,
}
