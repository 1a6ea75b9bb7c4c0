"""Decides what a policy does: which release it chooses, which run is created, and the policy's conditions. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from datetime import datetime

import msgspec

from kubekit.api.conditions import with_condition
from kubekit.api.meta_v1 import Condition, ConditionStatus, ObjectMeta
from kubekit.lang.oc_pull_spec import is_same_image
from kubekit.lang.version import parse
from runup.api.config_v1 import ClusterVersion
from runup.api.update_policy_v1alpha1 import (
    ALWAYS,
    API_VERSION,
    Candidate,
    PolicyTarget,
    UpdateCalendar,
    UpdatePolicy,
    UpdatePolicyStatus,
    UpdateRun,
    UpdateRunSpec,
)
from runup.rollout.decide.assemble import offer_of, read_calendars
from runup.rollout.decide.calendar import next_opening
from runup.rollout.decide.gates.cluster import is_blocked
from runup.rollout.decide.run_steps import FINISHED

POLICY_LABEL = "update.runup.dev/policy"
ACKNOWLEDGED = "update.runup.dev/acknowledged"


class Choice(msgspec.Struct, frozen=True, kw_only=True):
    """The release that a policy chose, or the reason why it chose none; `unknown` if that could not be determined."""

    candidate: Candidate | None = None
    reason: str = ""
    message: str = ""
    unknown: bool = False


def choose(target: PolicyTarget, cluster: ClusterVersion, now: datetime) -> Choice:
    """Returns the newest offered release that the policy follows. A release without a digest is never chosen."""
    running = parse(cluster.status.desired.version)
    if target.follow == "Exact":
        offer = offer_of(cluster, target.version, now)
        image = target.image or offer.image
        newest = cluster.status.history[0] if cluster.status.history else None
        if newest is not None and newest.state == "Completed" and target.version == newest.version:
            return Choice(reason="UpToDate", message=f"The cluster runs {target.version}.")
        wanted = parse(target.version)
        if wanted is None or running is None or wanted < running:
            text = f"{target.version} must be newer than {cluster.status.desired.version}."
            return Choice(reason="NoPath", message=text)
        if is_blocked(target.version, target.block_versions):
            return Choice(reason="Blocked", message=f"spec.target.blockVersions contains {target.version}.")
        if "@sha256:" not in image:
            why = offer.why_unknown or f"{target.version} is not offered"
            return Choice(reason="NoPath", message=f"No image is known: {why}.", unknown=bool(offer.why_unknown))
        return Choice(candidate=Candidate(version=target.version, image=image))
    if running is None:
        return Choice(reason="GraphNotAnswering", message="The running version is not known.", unknown=True)
    if (offer := offer_of(cluster, "", now)).why_unknown:
        return Choice(reason="GraphNotAnswering", message=f"{offer.why_unknown}.", unknown=True)
    minor = running.minor + (1 if target.follow == "Minor" else 0)
    offered = [
        (version, release)
        for release in cluster.status.listed_updates()
        if (version := parse(release.version)) is not None
        and (version.major, version.minor) == (running.major, minor)
        and version > running
        and "@sha256:" in release.image
    ]
    allowed = [(version, each) for version, each in offered if not is_blocked(each.version, target.block_versions)]
    if not allowed:
        if offered:
            return Choice(reason="Blocked", message="spec.target.blockVersions contains every offered release.")
        return Choice(reason="UpToDate", message=f"No newer release of {running.major}.{minor} is offered.")
    newest_release = max(allowed, key=lambda pair: pair[0])[1]
    return Choice(candidate=Candidate(version=newest_release.version, image=newest_release.image))


def is_of_policy(run: UpdateRun) -> bool:
    """Reports whether the policy created the run."""
    return POLICY_LABEL in run.metadata.labels


def active_run(runs: Sequence[UpdateRun]) -> UpdateRun | None:
    """Returns the oldest run that is not finished, or None. `runs` are sorted with the oldest first."""
    return next((run for run in runs if run.status.step not in FINISHED), None)


def failed_run(runs: Sequence[UpdateRun]) -> UpdateRun | None:
    """Returns the newest finished run if it failed and nobody has acknowledged that, else None."""
    newest = next((run for run in reversed(runs) if run.status.step in FINISHED), None)
    if newest is None or newest.status.step != "Failed" or ACKNOWLEDGED in newest.metadata.annotations:
        return None
    return newest


def new_run(policy: UpdatePolicy, choice: Choice, runs: Sequence[UpdateRun], now: datetime) -> UpdateRun | None:
    """Returns the run to create, or None. A release whose run a person ended is not started again."""
    spec, candidate = policy.spec, choice.candidate
    paused = spec.paused or (spec.paused_until is not None and now < spec.paused_until)
    if candidate is None or paused or active_run(runs) is not None or failed_run(runs) is not None:
        return None
    earlier = [run for run in runs if is_same_image(run.spec.target.image, candidate.image)]
    if any(run.status.step in ("Aborted", "Done") for run in earlier):
        return None
    suffix = hashlib.sha256(f"{candidate.image} {len(earlier)}".encode()).hexdigest()[:6]
    return UpdateRun(
        api_version=API_VERSION,
        kind="UpdateRun",
        metadata=ObjectMeta(
            name=f"{candidate.version.lower().replace('+', '-')}-{suffix}",
            labels={POLICY_LABEL: policy.metadata.name},
        ),
        spec=UpdateRunSpec(
            target=candidate,
            block_versions=spec.target.block_versions,
            gates=spec.gates,
            calendars=spec.calendars,
            soak=spec.soak,
            deadline=spec.deadline,
            actuator=spec.actuator,
        ),
    )


def policy_status(
    policy: UpdatePolicy,
    choice: Choice,
    runs: Sequence[UpdateRun],
    now: datetime,
    *,
    calendars: Sequence[UpdateCalendar],
) -> UpdatePolicyStatus:
    """Returns the status of the policy: its candidate, its run, the next opening, and why nothing will start."""
    spec, active = policy.spec, active_run(runs)
    parsed, errors = read_calendars(spec.calendars, calendars)
    opening = next_opening(parsed, now) if parsed and not errors else None
    ready: tuple[ConditionStatus, str, str] = ("True", "AsExpected", "")
    if errors:
        reason = "UnknownTimeZone" if any("is not a known time zone" in each for each in errors) else "InvalidCalendar"
        ready = ("False", reason, f"{'; '.join(errors)}.")
    elif not spec.calendars:
        text = "Nothing starts: add the name of an UpdateCalendar to spec.calendars, or Always for no restriction."
        ready = ("False", "NoCalendar", text)
    elif spec.calendars != (ALWAYS,) and opening is None:
        ready = ("False", "NeverOpens", "The calendars do not open together within 92 days.")
    chosen: tuple[ConditionStatus, str, str] = ("Unknown" if choice.unknown else "False", choice.reason, choice.message)
    if choice.candidate is not None:
        chosen = ("True", "Offered", f"{choice.candidate.version} is offered.")
    paused: tuple[ConditionStatus, str, str] = ("False", "Running", "")
    if spec.paused:
        paused = ("True", "ByPolicy", spec.pause_reason)
    elif spec.paused_until is not None and now < spec.paused_until:
        paused = ("True", "Until", spec.pause_reason)
    elif (failed := failed_run(runs)) is not None:
        text = f"Run {failed.metadata.name} failed: `runup upgrade policy acknowledge` lets the next one start."
        paused = ("True", "ByFailure", text)
    conditions = policy.status.conditions
    for type_, (status, reason, message) in (("Ready", ready), ("Candidate", chosen), ("Paused", paused)):
        condition = Condition(type=type_, status=status, reason=reason, message=message)
        conditions = with_condition(conditions, condition, now=now)
    return UpdatePolicyStatus(
        candidate=choice.candidate,
        active_run=active.metadata.name if active is not None else "",
        next_opening=opening,
        conditions=conditions,
    )
