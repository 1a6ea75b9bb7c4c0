"""Decides which approvals of a run count: the admission policy that verifies their authors must be in place. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

import msgspec
from msgspec.structs import replace

from kubekit.error_types import InputError
from kubekit.lang.text import timestamp
from runup.api.fleet_update_v1alpha1 import FleetUpdate
from runup.api.update_policy_v1alpha1 import (
    GROUP,
    FleetUpdateRef,
    UpdateApproval,
    UpdateApprovalSpec,
    UpdateRun,
)
from runup.rollout.decide.gates.observed import Approval, Approvals
from runup.rollout.decide.hops import current_target
from runup.rollout.decide.run_steps import FINISHED, verdict_of_begun

POLICY = "runup-update-approvals"
CONTROLLER = "system:serviceaccount:runup-update:update-controller"
# The expressions of deploy/update-policy/05_approvals.yaml. Further ones only refuse more.
EXPRESSIONS = frozenset(
    {
        "object.spec.approvedBy == request.userInfo.username",
        "has(object.spec.fleetUpdate) ? authorizer.group('update.runup.dev').resource('fleetupdates') "
        ".namespace(object.spec.fleetUpdate.namespace).name(object.spec.fleetUpdate.name).check('approve').allowed() : "
        "authorizer.group('update.runup.dev').resource('updateruns').name(object.spec.run).check('approve').allowed()",
    }
)
JSON = dict[str, Any]


def why_unverified(policy: JSON | None, binding: JSON | None) -> str:
    """Returns why the authors of approvals are not verified on this server; empty if they are."""
    if policy is None or binding is None:
        missing = "ValidatingAdmissionPolicy" if policy is None else "ValidatingAdmissionPolicyBinding"
        return f"{missing} {POLICY} does not exist"
    spec = policy.get("spec") or {}
    constraints = spec.get("matchConstraints") or {}
    selects = any(constraints.get(name) for name in ("namespaceSelector", "objectSelector", "excludeResourceRules"))
    covers = any(_covers(rule) for rule in constraints.get("resourceRules") or ())
    expressions = {str(each.get("expression", "")).strip() for each in spec.get("validations") or ()}
    is_changed = (
        spec.get("failurePolicy", "Fail") != "Fail"
        or bool(spec.get("matchConditions"))
        or bool(spec.get("paramKind"))
        or selects
        or not covers
        or not expressions >= EXPRESSIONS
    )
    if is_changed:
        return f"ValidatingAdmissionPolicy {POLICY} was changed"
    bound = binding.get("spec") or {}
    resources = bound.get("matchResources") or {}
    restricts = any(resources.get(name) for name in resources if name != "matchPolicy")
    if bound.get("policyName") != POLICY or "Deny" not in (bound.get("validationActions") or ()) or restricts:
        return f"ValidatingAdmissionPolicyBinding {POLICY} was changed"
    return ""


def verified_since(policy: JSON, binding: JSON) -> datetime:
    """Returns the time of the last change of both objects. An older approval may have been created without them."""
    times = [datetime.min.replace(tzinfo=UTC)]
    for metadata in (policy.get("metadata") or {}, binding.get("metadata") or {}):
        stamps = [metadata.get("creationTimestamp")]
        stamps += [each.get("time") for each in metadata.get("managedFields") or () if not each.get("subresource")]
        times += [datetime.fromisoformat(str(stamp)) for stamp in stamps if stamp]
    return max(times)


def _covers(rule: JSON) -> bool:
    """Reports whether a rule selects every creation of an approval."""
    return (
        GROUP in (rule.get("apiGroups") or ())
        and "*" in (rule.get("apiVersions") or ())
        and "CREATE" in (rule.get("operations") or ())
        and "updateapprovals" in (rule.get("resources") or ())
        and not rule.get("resourceNames")
        and rule.get("scope", "*") == "*"
    )


class FoundApprovals(msgspec.Struct, frozen=True, kw_only=True):
    """All approvals of a cluster; `unverified` says why no author is known, `since` from when on authors are known."""

    found: tuple[UpdateApproval, ...] = ()
    unverified: str = ""
    since: datetime = datetime.min.replace(tzinfo=UTC)


def requester_of(run: UpdateRun) -> str:
    """Returns who requested a run: the user that admission verified, else the controller."""
    return run.spec.requested_by or CONTROLLER


def approvals_of(run: UpdateRun, approvals: FoundApprovals) -> Approvals:
    """Returns the approvals of one run whose author is known."""
    of_run = [each for each in approvals.found if each.spec.run == run.metadata.name]
    return Approvals(
        given=_given(of_run, approvals.since), requested_by=requester_of(run), unverified=approvals.unverified
    )


def _given(approvals: Iterable[UpdateApproval], since: datetime) -> tuple[Approval, ...]:
    return tuple(
        Approval(
            gate=each.spec.gate,
            approved_by=each.spec.approved_by,
            created=each.metadata.creation_timestamp,
            not_after=each.spec.not_after,
            image_digests=each.spec.image_digests,
            reason=each.spec.reason,
        )
        for each in approvals
        if each.metadata.creation_timestamp is not None and each.metadata.creation_timestamp > since
    )


def new_approval(run: UpdateRun, wanted: UpdateApprovalSpec, now: datetime) -> UpdateApprovalSpec:
    """Returns an approval with the digest of the run. Raises InputError with the way out if it would not count."""
    name = run.metadata.name
    if run.status.step in FINISHED:
        waiting = "`kubectl get updateruns` lists the runs that are Waiting"
        raise InputError(f"run {name} is {run.status.step}, so an approval has no effect: {waiting}")
    settings = {each.name: each for each in run.spec.gates.approvals}
    wanted_for = settings[wanted.gate].before if wanted.gate in settings else ()
    # Pools are resumed after the run has begun.
    is_late = "pools" in wanted_for
    if verdict_of_begun(run) is not None and not (is_late and run.status.step in ("ControlPlane", "Pools")):
        raise InputError(f"run {name} began at {timestamp(run.status.started)}, so it needs no approval any more")
    if wanted.gate not in settings:
        known = f"give --gate {' or '.join(settings)}" if settings else "its policy names no approvals"
        raise InputError(f"run {name} has no approval {wanted.gate!r}: {known}")
    _check_author_and_end(wanted, now)
    if settings[wanted.gate].four_eyes and wanted.approved_by == requester_of(run):
        raise InputError(f"{wanted.approved_by} requested run {name}: another user must give approval {wanted.gate}")
    images = [current_target(run).image]
    if settings[wanted.gate].scope == "Run" and run.status.hops:
        images = [each.image for each in run.status.hops]
    elif run.spec.max_hops > 1 and not run.status.hops:
        raise InputError(f"the path of run {name} is not known yet: try again when `status.hops` of the run has it")
    return replace(wanted, run=name, image_digests=tuple(image.partition("@")[2] for image in images))


def _check_author_and_end(wanted: UpdateApprovalSpec, now: datetime) -> None:
    if not wanted.approved_by:
        raise InputError("the server did not return your user name: it must serve SelfSubjectReview")
    if wanted.not_after is not None and wanted.not_after <= now:
        raise InputError(
            f"--until {timestamp(wanted.not_after)} must be later than {timestamp(now)}, the server's time"
        )


def new_stage_approval(fleet: FleetUpdate, stage: str, wanted: UpdateApprovalSpec, now: datetime) -> UpdateApprovalSpec:
    """Returns an approval of a stage with the digest of the release. Raises InputError if it would not count."""
    refuse_unknown_approval(fleet, stage, wanted.gate)
    _check_author_and_end(wanted, now)
    place = FleetUpdateRef(namespace=fleet.metadata.namespace, name=fleet.metadata.name, stage=stage)
    return replace(wanted, fleet_update=place, image_digests=(fleet.spec.target.image.partition("@")[2],))


def refuse_unknown_approval(fleet: FleetUpdate, stage: str, gate: str) -> None:
    """Raises InputError with the way out if a FleetUpdate has no such stage, or the stage no such approval."""
    names = {
        each.name: [one.name for one in (*each.before, *each.after) if one.type == "Approval"]
        for each in fleet.spec.stages
    }
    if stage not in names:
        raise InputError(f"there is no stage {stage}; give --stage {' or '.join(names)}")
    if gate not in names[stage]:
        known = f"give --gate {' or '.join(names[stage])}" if names[stage] else "it has no approvals"
        raise InputError(f"stage {stage} has no approval {gate}: {known}")


def approvals_of_stage(namespace: str, name: str, stage: str, approvals: FoundApprovals) -> Approvals:
    """Returns the approvals of a stage of a FleetUpdate whose author is known."""
    wanted = FleetUpdateRef(namespace=namespace, name=name, stage=stage)
    return Approvals(
        given=_given([each for each in approvals.found if each.spec.fleet_update == wanted], approvals.since),
        unverified=approvals.unverified,
    )
