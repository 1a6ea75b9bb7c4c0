"""Decides the update's part of a pass, for a request without `mode`. The update is only accepted here, not applied.

The guards in order: its preflight has finished (docs/decisions/0072 D24), no unaccepted risk (docs/decisions/0072 D11),
signature, preconditions, and then that the preflight's workload is gone. The first that does not hold sets
ReleaseAccepted and ends the pass; nothing of the running release changes.
"""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace

from msgspec.structs import replace as with_fields

from kubekit.api.conditions import find, with_condition
from kubekit.api.meta_v1 import Condition, ConditionStatus
from kubekit.error_types import Terminal, Waiting
from kubekit.lang.oc_pull_spec import is_same_image
from kubekit.lang.text import join_within, timestamp
from kubekit.lang.version import parse
from runup.advice.decide import acceptance, preflight_reasons
from runup.advice.decide.candidates import (
    Candidate,
    EvaluatedRisk,
    not_acceptable,
    only_holding_risks,
    recommended_condition,
    unaccepted_names,
)
from runup.api.config_v1 import ClusterVersionStatus, Release, Update
from runup.clusterversion.decide import applying, assemble, history, observed, preconditions, targets, update_request
from runup.clusterversion.decide.preflight_workload import ending_text
from runup.clusterversion.decide.view import View
from runup.clusterversion.decide.work import RECHECK, Work, check_work, look_work, retry_unreadable
from runup.preflight.decide.deployment_steps import Trust
from runup.preflight.decide.published_risks import line_for

RELEASE_ACCEPTED = "ReleaseAccepted"
# Bytes of a list of names in a message.
_MAX_NAMES = 4096
_NOT_AVAILABLE = "when image is empty the update must be an available update"
_WITHOUT_PREFLIGHT = "or continue without it: `runup upgrade --clear-preflight`"
# The risks that represent a report that is awaited.
_AWAITED = (preflight_reasons.IN_PROGRESS, preflight_reasons.INCOMPLETE)
_AMBIGUOUS = "there are multiple possible payloads for this version, specify the exact image"


@dataclass(frozen=True, slots=True)
class Caution:
    """A Warning event that goes with a decision."""

    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class Accepted:
    """An update that may begin. `risks` is the text on accepted risks that the history keeps."""

    release: Release
    verified: bool
    risks: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """The outcome of the request in this pass. `condition` is ReleaseAccepted without a time, None if it is unchanged.

    `held`: whether the update waits for its preflight or is refused for what that found; None if this is not known.
    """

    condition: Condition | None = None
    accepted: Accepted | None = None
    held: bool | None = None
    invalid: str = ""
    warnings: tuple[Caution, ...] = ()
    work: tuple[Work, ...] = ()
    requeue_after_s: float | None = None


def decide(view: View, candidates: Sequence[Candidate], *, workload_gone: bool) -> Decision:
    """Decides on the requested update. `candidates` carry every risk that counts, a preflight's findings included."""
    if not isinstance(view.request, update_request.UpdateRequest):
        return Decision(condition=_loaded_condition(view))
    update = view.request.update
    try:
        target = _target(view, update, candidates)
    except Waiting as error:
        work = look_work(view, update)
        text = _retrieving_text(Release(version=update.version, image=update.image))
        return Decision(condition=_unknown_condition(text), work=work, requeue_after_s=error.retry_after_s)
    except Terminal as error:
        invalid = f'spec.desiredUpdate.version: Invalid value: "{update.version}": {error.message}'
        # A version that is not offered makes the spec Invalid; an image may still be loaded by another look.
        named = Release(version=update.version, image=update.image)
        if not update.image:
            # Without the gate for accepted risks, a version with findings is not among the available updates.
            matching = targets.releases_by_version(update.version, (c.release for c in candidates if c.offered))
            is_blocked = any(_is_held(_candidate_of(candidates, release), frozenset()) for release in matching)
            return Decision(condition=_loaded_condition(view), held=is_blocked, invalid=invalid)
        if isinstance(error, targets.VersionMismatch):
            condition = _another_version(named, error.found)
            return Decision(condition=condition, held=False)
        if error.reason == targets.UNTRUSTED:
            return replace(_unverified(view, named), held=False)
        return replace(
            Decision(condition=_failed(named, error.message), held=False), **retry_unreadable(view, update, error)
        )
    if target is None or is_same_image(target.image, view.current.image):
        return Decision(condition=_loaded_condition(view))
    # An incomplete installation cannot be updated from.
    installs = view.observed.progress is not None and not any(
        entry.state == "Completed" for entry in view.status.history
    )
    if installs and not is_same_image(target.image, view.observed.facts.release.image):
        text = f"Waiting for the installation of {view.current.version} to complete before the update to "
        return Decision(
            condition=_unknown_condition(f"{text}{target.version or target.image} is looked at.", reason="Installing")
        )
    decided = _guard(view, update, target, candidates)
    decided = decided if decided.held else replace(decided, held=False)
    # An update waits until its preflight's workload is gone (docs/decisions/0024-what-is-live-and-what-is-dated.md).
    if decided.accepted is None or workload_gone:
        return decided
    text = f"Waiting for the preflight's workload to be removed{ending_text(view)}."
    waiting = _unknown_condition(text, reason="PreflightStopping")
    wait_s = RECHECK.total_seconds()
    return replace(decided, condition=waiting, accepted=None, requeue_after_s=wait_s)


def accept(view: View, accepted: Accepted) -> ClusterVersionStatus:
    """Returns the status of a cluster that starts the update to `accepted`, which the sync worker applies."""
    status, now = view.status, view.now
    release = accepted.release
    accepted_condition = _condition("True", "PayloadLoaded", _loaded_text(view, release))
    progressing = Condition(type="Progressing", status="True", message=f"Working towards {release.version}")
    conditions = with_condition(with_condition(status.conditions, accepted_condition, now=now), progressing, now=now)
    entries = history.begin_entry(
        status.history, release, now=now, verified=accepted.verified, accepted_risks=accepted.risks
    )
    updating_status = with_fields(status, desired=release, history=entries, conditions=conditions)
    return applying.accept(view, updating_status, release)


def _guard(view: View, update: Update, target: Release, candidates: Sequence[Candidate]) -> Decision:
    """Decides whether an update may start: not before its preflight ended, and not while risks are unaccepted."""
    candidate = _candidate_of(candidates, target)
    exposed = unaccepted_names(candidate, view.accepted) if candidate else ()
    awaited = [risk for risk in candidate.risks if risk.name in exposed and _awaits_report(risk)] if candidate else []
    if not update.force and awaited and (len(exposed) == len(awaited) or not view.accepts_risks):
        # One risk represents the report that is awaited, and says why.
        named = next((risk for risk in awaited if risk.name in _AWAITED), awaited[0])
        until = f", until {timestamp(named.until)} at the latest" if named.until is not None else ""
        why, names = line_for(named.risk.message, target.version), ",".join(risk.name for risk in awaited)
        text = (
            f"Waiting for the preflight of {target.version} to finish{until}: {why} Not to wait for it, accept {names} "
            f"(`runup upgrade accept {names}`); {_WITHOUT_PREFLIGHT}."
        )
        return Decision(condition=_unknown_condition(text, reason=preflight_reasons.RUNNING), held=True)
    if exposed and view.accepts_risks and not update.force:
        is_blocked = _is_held(candidate, view.accepted)
        text = _unaccepted_text(view, target, exposed, candidate, is_held=is_blocked)
        return Decision(condition=_refused_condition("UnacceptedRisks", text), held=is_blocked)
    if is_same_image(target.image, view.observed.facts.release.image):
        # The operator's own release is not downloaded or verified: its code is already running this decision.
        return Decision(accepted=Accepted(target, verified=False))
    check = view.observed.releases.get(target.image) or observed.ReleaseCheck()
    if check.trust is Trust.PENDING or (check.trust is Trust.FAILED and not update.force):
        work = check_work(target.image, check, view.now)
        if check.trust is Trust.PENDING:
            return Decision(condition=_unknown_condition(_retrieving_text(target)), work=work)
        return _unverified(view, target)
    # A graph may be wrong about an image: what the image says about itself counts.
    if check.version and parse(check.version) != parse(target.version):
        return Decision(condition=_another_version(target, check.version))
    if view.observed.progress is not None:
        load = view.observed.loads.get(target.image)
        work = applying.load_work(target, load, view.now)
        target_text = f'version="{target.version}" image="{target.image}"'
        if load is None or load.payload is None:
            if load is None or not load.error:
                return Decision(condition=_unknown_condition(_retrieving_text(target)), work=work)
            step = "Loading" if load.reason == "LoadPayload" else "Retrieving"
            condition = _refused_condition(load.reason, f"{step} payload failed {target_text} failure={load.error}")
            return Decision(condition=condition, work=work, requeue_after_s=applying.LOAD_RETRY_AFTER.total_seconds())
        metadata = load.payload.metadata
        # The graph, or the user, may have named an image of another release.
        if target.version and parse(metadata.version) != parse(target.version):
            return Decision(condition=_another_version(target, metadata.version))
        loaded = with_fields(
            target,
            version=target.version or metadata.version,
            url=target.url or metadata.url,
            architecture=target.architecture or metadata.architecture,
            channels=target.channels or metadata.channels,
        )
        return _check_preconditions(view, update, target=loaded, candidate=candidate, check=check)
    return _check_preconditions(view, update, target=target, candidate=candidate, check=check)


def _check_preconditions(
    view: View, update: Update, target: Release, candidate: Candidate | None, check: observed.ReleaseCheck
) -> Decision:
    """Decides on an update by the preconditions; they warn if it is forced."""
    # What only informs is reported in the history, and is no precondition that failed.
    holds = only_holding_risks(candidate) if candidate is not None else None
    advised = recommended_condition(holds, view.accepted) if holds is not None and holds.risks else None
    objections = preconditions.objections(
        assemble.evaluated_version(view, assemble.find_cluster_risks(view.observed, view.now)),
        target,
        available=holds is not None and holds.offered and not holds.risks,
        recommended=advised,
    )
    blocked = any(objection.blocking for objection in objections)
    # The running release continues: a rejected update is reported in ReleaseAccepted alone.
    if blocked and not update.force:
        text = preconditions.summary(objections)
        head = f'Preconditions failed for payload loaded version="{target.version}" image="{target.image}"'
        warning = Caution("PreconditionBlock", f"{head}: {text}")
        return Decision(condition=_refused_condition("PreconditionChecks", f"{head}: {text}"), warnings=(warning,))
    risks = _accepted_text(view, target, candidate=candidate, objections=objections, check=check, was_forced=blocked)
    warnings = (
        (Caution("PreconditionWarn", preconditions.summary(objections, was_forced=blocked)),) if objections else ()
    )
    return Decision(accepted=Accepted(target, check.trust is Trust.VERIFIED, risks), warnings=warnings)


def _target(view: View, update: Update, candidates: Sequence[Candidate]) -> Release | None:
    """Returns the requested release, None if the request changes nothing. Raises Terminal or Waiting."""
    if update.image:
        if update.image == view.current.image:
            return view.current
        known_releases = (*(c.release for c in candidates), *view.advised.nodes)
        return _with_texts(targets.release_by_image(update, known_releases, view.observed.releases), view)
    version = update.version or view.current.version
    if parse(version) == parse(view.current.version) and not (
        bool(update.architecture) and update.architecture != view.current.architecture
    ):
        return view.current
    # A preflight lists its target whether or not it is offered, and does not make it a version to ask for.
    offered = []
    for candidate in (each for each in candidates if each.offered):
        # An awaited report delays an update, but does not refuse the version.
        holding = only_holding_risks(candidate)
        risks = tuple(risk for risk in holding.risks if not _awaits_report(risk))
        if view.accepts_risks or recommended_condition(with_fields(holding, risks=risks), ()).status == "True":
            offered.append(candidate.release)
    matching = targets.releases_by_version(version, offered)
    if len(matching) == 1:
        return _with_texts(matching[0], view)
    if matching:
        raise Terminal(_AMBIGUOUS, reason="AmbiguousTarget")
    before = next((e for e in view.status.history if e.image and parse(e.version) == parse(version)), None)
    if before is not None:
        # A rollback: the graph leads forwards only, so that the history alone knows that release.
        back = Release(version=before.version, image=before.image) if view.observed.progress is not None else None
        return _with_texts(back, view) if back is not None else None
    if any(parse(entry.version) == parse(version) for entry in view.status.history):
        return None
    if not view.advised.settled:
        raise Waiting("the update service is being asked", reason="ResolvingTarget", retry_after_s=RECHECK.seconds)
    raise Terminal(_NOT_AVAILABLE, reason="TargetNotFound")


def _with_texts(release: Release, view: View) -> Release:
    return with_fields(release, architecture=release.architecture or view.current.architecture)


def _awaits_report(risk: EvaluatedRisk) -> bool:
    """Returns whether the risk is not known because the target has not reported, or not for a while."""
    return risk.applies.reason in (preflight_reasons.RUNNING, preflight_reasons.STALE)


def _is_held(candidate: Candidate | None, accepted: AbstractSet[str]) -> bool:
    """Returns whether a preflight that continues has found something that the update may not go past."""
    unaccepted = unaccepted_names(candidate, accepted) if candidate is not None else ()
    preflight_names = {risk.name for risk in candidate.risks if risk.from_preflight} if candidate is not None else set()
    return not preflight_names.isdisjoint(unaccepted)


def _candidate_of(candidates: Sequence[Candidate], target: Release) -> Candidate | None:
    return next((c for c in candidates if is_same_image(c.release.image, target.image)), None)


def _accepted_text(
    view: View,
    target: Release,
    candidate: Candidate | None,
    objections: Sequence[preconditions.Objection],
    check: observed.ReleaseCheck,
    *,
    was_forced: bool,
) -> str:
    """Returns the text for the history: the checks that were forced, the warnings, and the accepted risks."""
    lines = []
    if check.trust is not Trust.VERIFIED:
        lines.append(
            f'Target release version="{target.version}" image="{target.image}" cannot be verified, '
            f"but continuing anyway because the update was forced: {check.error}"
        )
    if objections:
        lines.append(preconditions.summary(objections, was_forced=was_forced))
    informing = [risk for risk in candidate.risks if not risk.holds_up] if candidate else []
    repaired = sorted(r.name for r in informing if r.applies.reason == preflight_reasons.REPAIRED)
    old = sorted(r.name for r in informing if r.name not in repaired)
    if old:
        lines.append(f"No new preflight confirmed the earlier findings: [{','.join(old)}].")
    if repaired:
        lines.append(f"The update may repair what the risks [{','.join(repaired)}] describe.")
    applicable = [risk for risk in candidate.risks if risk.applies.status != "False"] if candidate else []
    names = sorted(risk.name for risk in applicable if risk.holds_up and risk.acceptable)
    if view.accepts_risks and names and not unaccepted_names(candidate, view.accepted) if candidate else False:
        lines.append(
            f"The target release {target.image} is exposed to the risks [{join_within(names, ',', _MAX_NAMES)}] "
            "which were all explicitly accepted by the cluster administrator."
        )
    reports = (r for r in view.history.reports if r.source_version == view.current.version)
    newest = next((r for r in reports if is_same_image(r.target_image, target.image)), None)
    if text := assemble.grown_text(view, newest):
        lines.append(f"Accepted risks cover more than when they were accepted: {text}.")
    return "\n".join(lines)


def _unaccepted_text(
    view: View, target: Release, exposed: Sequence[str], candidate: Candidate | None, *, is_held: bool
) -> str:
    """Returns the message for an update that unaccepted risks block, with the ways out."""
    without = f"; {_WITHOUT_PREFLIGHT}" if is_held else ""
    besides = ""
    if unacceptable := not_acceptable(candidate) if candidate else ():
        besides = f" Accepting does not lift [{join_within(unacceptable, ',', _MAX_NAMES)}]: see their messages."
    records = (view.acceptances[name] for name in exposed if name in view.acceptances)
    lapsed = [r.problem or f"The acceptance of {r.name} ended at {acceptance.stamp(r.until)}" for r in records]
    if lapsed:
        besides += f" {join_within(lapsed, '; ', _MAX_NAMES)}."
    return (
        f"The update from {view.current.version} to {target.version} is blocked because it is exposed to unaccepted "
        f"risks [{join_within(exposed, ',', _MAX_NAMES)}]; fix what they name, or "
        f"accept them one by one (`runup upgrade accept NAME`){without}.{besides}"
    )


def _loaded_condition(view: View) -> Condition | None:
    """Returns ReleaseAccepted for a pass without a new request: the release worked towards counts as accepted."""
    condition = find(view.status.conditions, RELEASE_ACCEPTED)
    loaded = f'Payload loaded version="{view.current.version}" image="{view.current.image}"'
    if condition is not None and condition.status == "True" and condition.message.startswith(loaded):
        return None
    return _condition("True", "PayloadLoaded", _loaded_text(view, view.current))


def _loaded_text(view: View, release: Release) -> str:
    architecture = release.architecture or view.observed.facts.architecture
    return f'Payload loaded version="{release.version}" image="{release.image}" architecture="{architecture}"'


def _retrieving_text(release: Release) -> str:
    return f'Retrieving and verifying payload version="{release.version}" image="{release.image}"'


def _unverified(view: View, target: Release) -> Decision:
    """Refuses an update whose signature does not verify; it is verified again after `RECHECK`."""
    check = view.observed.releases.get(target.image) or observed.ReleaseCheck()
    return Decision(
        condition=_failed(target, f"The update cannot be verified: {check.error}"),
        work=check_work(target.image, check, view.now),
        requeue_after_s=RECHECK.total_seconds(),
    )


def _failed(release: Release, why: str) -> Condition:
    text = f'Retrieving payload failed version="{release.version}" image="{release.image}" failure={why}'
    return _refused_condition("RetrievePayload", text)


def _another_version(target: Release, message: str) -> Condition:
    text = f"release image version {message} does not match the expected upstream version {target.version}"
    target_text = f'version="{target.version}" image="{target.image}"'
    return _refused_condition("VerifyPayloadVersion", f"Verifying payload failed {target_text} failure={text}")


def _unknown_condition(message: str, reason: str = "RetrievePayload") -> Condition:
    return _condition("Unknown", reason, message)


def _refused_condition(reason: str, message: str) -> Condition:
    return _condition("False", reason, message)


def _condition(status: ConditionStatus, reason: str, message: str) -> Condition:
    return Condition(type=RELEASE_ACCEPTED, status=status, reason=reason, message=message)
