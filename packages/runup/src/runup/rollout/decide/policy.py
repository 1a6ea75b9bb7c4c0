"""Decides what a policy does: which run is created, which runs are deleted, and the policy's conditions. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from datetime import datetime

from msgspec.structs import replace

from kubekit.api.conditions import with_condition
from kubekit.api.meta_v1 import Condition, ConditionStatus, ObjectMeta
from kubekit.lang.oc_pull_spec import is_same_image
from runup.api.update_policy_v1alpha1 import (
    ALWAYS,
    API_VERSION,
    FINALIZER,
    Candidate,
    OfferedRelease,
    UpdateCalendar,
    UpdatePolicy,
    UpdatePolicySpec,
    UpdatePolicyStatus,
    UpdateRun,
    UpdateRunSpec,
)
from runup.rollout.decide.assemble import read_calendars
from runup.rollout.decide.calendar import next_opening
from runup.rollout.decide.candidate import Choice
from runup.rollout.decide.expressions import errors_of
from runup.rollout.decide.gates.permission import MISSING_RIGHT
from runup.rollout.decide.run_steps import FINISHED

POLICY_LABEL = "update.runup.dev/policy"
ACKNOWLEDGED = "update.runup.dev/acknowledged"


def is_of_policy(run: UpdateRun) -> bool:
    """Reports whether the policy created the run."""
    return POLICY_LABEL in run.metadata.labels


def is_of_hub(run: UpdateRun) -> bool:
    """Reports whether a hub created the run: neither the policy nor a person whose name admission verified."""
    return not is_of_policy(run) and not run.spec.requested_by


def needs_finalizer(run: UpdateRun) -> bool:
    """Reports whether a run must not be removed yet: it is not finished. None is added to a run that is deleted."""
    is_kept = run.metadata.deletion_timestamp is None or FINALIZER in run.metadata.finalizers
    return run.status.step not in FINISHED and is_kept


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
    if (
        candidate is None
        or paused
        or spec.remote == "Only"
        or active_run(runs) is not None
        or failed_run(runs) is not None
    ):
        return None
    if any(run.status.step in ("Aborted", "Done") for run in runs_to(candidate, runs)):
        return None
    run = run_of(spec, candidate, runs)
    metadata = replace(run.metadata, labels={POLICY_LABEL: policy.metadata.name}, finalizers=(FINALIZER,))
    return replace(run, metadata=metadata)


def runs_to(target: Candidate, runs: Sequence[UpdateRun]) -> list[UpdateRun]:
    """Returns the runs to the image of `target`."""
    return [run for run in runs if is_same_image(run.spec.target.image, target.image)]


def run_of(spec: UpdatePolicySpec, target: Candidate, runs: Sequence[UpdateRun]) -> UpdateRun:
    """Returns a run to `target` with the policy's values; its name contains the version, and differs from `runs`."""
    suffix = hashlib.sha256(f"{target.image} {len(runs_to(target, runs))}".encode()).hexdigest()[:6]
    return UpdateRun(
        api_version=API_VERSION,
        kind="UpdateRun",
        metadata=ObjectMeta(name=f"{target.version.lower().replace('+', '-')}-{suffix}"),
        spec=UpdateRunSpec(
            target=target,
            max_hops=spec.target.max_hops,
            block_versions=spec.target.block_versions,
            gates=spec.gates,
            calendars=spec.calendars,
            soak=spec.soak,
            deadline=spec.deadline,
            pools=spec.pools,
            actuator=spec.actuator,
            field=spec.field,
            cluster=spec.cluster,
        ),
    )


def surplus_runs(
    policy: UpdatePolicy, choice: Choice, runs: Sequence[UpdateRun], *, offered: Sequence[OfferedRelease]
) -> tuple[UpdateRun, ...]:
    """Returns the oldest finished runs of the policy beyond `keepRuns`.

    Runs to offered releases stay: without them a release whose run a person ended would be started again.
    """
    finished = [run for run in runs if is_of_policy(run) and run.status.step in FINISHED]
    surplus = finished[: max(len(finished) - policy.spec.keep_runs, 0)]
    images = [each.image for each in offered]
    images += [choice.candidate.image] if choice.candidate is not None else []
    return tuple(
        run
        for run in surplus
        if run.metadata.deletion_timestamp is None
        and not any(is_same_image(run.spec.target.image, image) for image in images)
    )


def policy_status(
    policy: UpdatePolicy,
    choice: Choice,
    runs: Sequence[UpdateRun],
    now: datetime,
    *,
    calendars: Sequence[UpdateCalendar],
    offered: Sequence[OfferedRelease] = (),
    may_pause: bool | str = True,
) -> UpdatePolicyStatus:
    """Returns the status of the policy: its candidate, its run, the next opening, and why nothing will start.

    `may_pause`: whether the controller may pause pools, or why that is not known.
    """
    spec, active = policy.spec, active_run(runs)
    parsed, errors = read_calendars(spec.calendars, calendars)
    opening = next_opening(parsed, now) if parsed and not errors else None
    ready: tuple[ConditionStatus, str, str] = ("True", "AsExpected", "")
    if errors:
        reason = "UnknownTimeZone" if any("is not a known time zone" in each for each in errors) else "InvalidCalendar"
        ready = ("False", reason, f"{'; '.join(errors)}.")
    elif invalid := errors_of(spec.gates.health.expressions):
        ready = ("False", "InvalidExpression", f"{'; '.join(invalid)}.")
    elif not spec.calendars:
        text = "Nothing starts: add the name of an UpdateCalendar to spec.calendars, or Always for no restriction."
        ready = ("False", "NoCalendar", text)
    elif spec.calendars != (ALWAYS,) and opening is None:
        ready = ("False", "NeverOpens", "The calendars do not open together within 92 days.")
    elif spec.pools.when != "Together" and may_pause is not True:
        text = f"Could not determine {may_pause}." if may_pause else MISSING_RIGHT
        ready = ("Unknown" if may_pause else "False", "RightsMissing", text)
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
        offered=tuple(offered),
        candidate=choice.candidate,
        active_run=active.metadata.name if active is not None else "",
        next_opening=opening,
        conditions=conditions,
    )
