"""Reads the policy and the calendars of a cluster."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from kubekit.api import codec
from kubekit.api.scheme import Resource, resource_of
from kubekit.error_types import InputError
from kubekit.kube import calls
from kubekit.kube.api_errors import (
    AlreadyExists,
    ApiError,
    Conflict,
    Forbidden,
    Invalid,
    NotFound,
    message_of,
)
from runup.api.update_policy_v1alpha1 import (
    POLICY_NAME,
    Control,
    UpdateApproval,
    UpdateApprovalSpec,
    UpdateCalendar,
    UpdatePolicy,
    UpdateRun,
    UpdateTurn,
)
from runup.rollout.decide import approvals as approval_rules
from runup.rollout.decide.approvals import FoundApprovals
from runup.rollout.decide.approvers import Approvers, approvers_of
from runup.rollout.decide.policy import ACKNOWLEDGED
from runup.rollout.decide.turns import CLAIM

if TYPE_CHECKING:
    from kubekit.kube.client_sync import SyncClient

NOT_INSTALLED = "the cluster has no kind UpdateCalendar: `runup upgrade calendar -f FILE` reads a file instead"


def calendars(client: SyncClient) -> tuple[UpdateCalendar, ...]:
    """Returns all UpdateCalendars of the cluster. Raises InputError if it does not serve them."""
    try:
        return tuple(client.list_all(UpdateCalendar)[0])
    except NotFound as error:
        raise InputError(NOT_INSTALLED) from error


def policy(client: SyncClient) -> UpdatePolicy | None:
    """Returns the cluster's UpdatePolicy; None if it has none. Raises KubeError or DecodeError."""
    try:
        return client.send(calls.get(UpdatePolicy, POLICY_NAME))
    except NotFound:
        return None


def runs(client: SyncClient) -> tuple[UpdateRun, ...]:
    """Returns all UpdateRuns, the oldest first; none if the kind is not served. Raises KubeError or DecodeError."""
    try:
        found = client.list_all(UpdateRun)[0]
    except NotFound:
        return ()
    return tuple(sorted(found, key=lambda run: (str(run.metadata.creation_timestamp or ""), run.metadata.name)))


def serves_runs(client: SyncClient) -> bool:
    """Reports whether the kind UpdateRun is served: the component update-policy is installed. Raises KubeError."""
    try:
        client.send(calls.list_raw(resource_of(UpdateRun), limit=1))
    except NotFound:
        return False
    return True


CLAIMS = Resource(
    group="cluster.open-cluster-management.io",
    version="v1alpha1",
    kind="ClusterClaim",
    plural="clusterclaims",
    namespaced=False,
)


def turns(client: SyncClient) -> tuple[UpdateTurn, ...]:
    """Returns all UpdateTurns; none if the kind is not served. Raises KubeError or DecodeError."""
    try:
        return tuple(client.list_all(UpdateTurn)[0])
    except NotFound:
        return ()


def claim(client: SyncClient) -> str:
    """Returns the value of the ClusterClaim that asks a hub for a turn; "" without a claim. Raises KubeError."""
    try:
        found = client.send(calls.get_raw(CLAIMS, CLAIM))
    except NotFound:
        return ""
    return str((found.get("spec") or {}).get("value") or "")


def acknowledge(client: SyncClient, run: UpdateRun) -> None:
    """Marks a failed run as acknowledged. Raises KubeError."""
    patch = {"metadata": {"annotations": {ACKNOWLEDGED: "true"}, "resourceVersion": run.metadata.resource_version}}
    client.send(calls.merge_patch(resource_of(UpdateRun), run.metadata.name, patch, field_manager="runup"))


def set_control(client: SyncClient, run: UpdateRun, control: Control) -> None:
    """Sets `spec.control` of a run as it was read. Raises Conflict if it has changed since, or another KubeError."""
    patch = {"metadata": {"resourceVersion": run.metadata.resource_version}, "spec": {"control": control}}
    client.send(calls.merge_patch(resource_of(UpdateRun), run.metadata.name, patch, field_manager="runup"))


def create_run(client: SyncClient, run: UpdateRun) -> None:
    """Creates a person's run. Raises InputError if the user may not, or the name is in use by now, or KubeError."""
    try:
        client.send(calls.create(resource_of(UpdateRun), codec.to_dict(run), field_manager="runup"))
    except Forbidden as error:
        way_out = "an administrator grants it by the ClusterRole runup-update-operator"
        raise InputError(f"{run.spec.requested_by} may not create a run: {message_of(error)}; {way_out}") from error
    except AlreadyExists as error:
        raise InputError(
            f"run {run.metadata.name} was created meanwhile: `runup upgrade runs` lists the runs"
        ) from error


def store(client: SyncClient, policy: UpdatePolicy, calendars: Sequence[UpdateCalendar]) -> None:
    """Stores a policy and calendars by server-side apply, after the server has accepted all of them in a dry run.

    Raises InputError with the way out if the kinds are not served, or somebody else manages a field, or KubeError.
    """
    objects: tuple[UpdateCalendar | UpdatePolicy, ...] = (*calendars, policy)
    for dry_run in (True, False):
        for obj in objects:
            resource, name = resource_of(type(obj)), obj.metadata.name
            metadata = {"name": name, "labels": obj.metadata.labels, "annotations": obj.metadata.annotations}
            body = {"metadata": metadata, "spec": codec.to_dict(obj.spec)}
            call = calls.apply(resource, body, field_manager="runup", dry_run=dry_run, field_validation="Strict")
            try:
                client.send(call)
            except NotFound as error:
                installs = "`runup install update-policy` installs it"
                raise InputError(f"the cluster has no kind {resource.kind}: {installs}") from error
            except Conflict as error:
                way_out = "change it where that author does, or let that author give the field up"
                text = f"another author manages fields of {resource.kind} {name}: {message_of(error)}; {way_out}"
                raise InputError(text) from error


def set_pause(client: SyncClient, policy: UpdatePolicy, fields: dict[str, Any]) -> None:
    """Sets these fields of a policy's spec; None removes one. Raises Conflict as `set_control` does, or KubeError."""
    patch = {"metadata": {"resourceVersion": policy.metadata.resource_version}, "spec": fields}
    client.send(calls.merge_patch(resource_of(UpdatePolicy), POLICY_NAME, patch, field_manager="runup"))


def _admission(kind: str, plural: str) -> Resource:
    return Resource(group="admissionregistration.k8s.io", version="v1", kind=kind, plural=plural, namespaced=False)


_POLICIES = _admission("ValidatingAdmissionPolicy", "validatingadmissionpolicies")
_BINDINGS = _admission("ValidatingAdmissionPolicyBinding", "validatingadmissionpolicybindings")


def approvals(client: SyncClient) -> FoundApprovals:
    """Returns all UpdateApprovals, and whether their authors are verified. Raises KubeError."""
    try:
        found = tuple(client.list_all(UpdateApproval)[0])
    except NotFound:
        return FoundApprovals(unverified="the cluster has no kind UpdateApproval")
    # Read after the approvals: a policy that was removed before them is missing here.
    policy, binding = (_find(client, resource) for resource in (_POLICIES, _BINDINGS))
    unverified = approval_rules.why_unverified(policy, binding)
    if unverified or policy is None or binding is None:
        return FoundApprovals(found=found, unverified=unverified)
    return FoundApprovals(found=found, since=approval_rules.verified_since(policy, binding))


def run(client: SyncClient, name: str) -> UpdateRun:
    """Returns a run. Raises InputError if it does not exist, KubeError or DecodeError."""
    try:
        return client.send(calls.get(UpdateRun, name))
    except NotFound as error:
        raise InputError(f"UpdateRun {name} does not exist: `runup upgrade runs` lists the runs") from error


def why_unverified(client: SyncClient) -> str:
    """Returns why the authors of approvals are not verified; empty if they are. Raises KubeError."""
    return approval_rules.why_unverified(*(_find(client, resource) for resource in (_POLICIES, _BINDINGS)))


def create_approval(client: SyncClient, spec: UpdateApprovalSpec) -> str:
    """Creates an approval, and returns its name. Raises InputError if the user may not approve, or KubeError."""
    resource = resource_of(UpdateApproval)
    body = {"apiVersion": resource.api_version, "kind": resource.kind, "spec": codec.to_dict(spec)}
    body["metadata"] = {"generateName": "approval-"}
    try:
        created = client.send(calls.create(resource, body, field_manager="runup"))
    except (Forbidden, Invalid) as error:
        way_out = "an administrator grants it by the ClusterRole runup-update-approver"
        what = f"run {spec.run}" if spec.fleet_update is None else f"FleetUpdate {spec.fleet_update.name}"
        raise InputError(f"{spec.approved_by} may not approve {what}: {message_of(error)}; {way_out}") from error
    return str(created["metadata"]["name"])


_ROLES, _ROLE_BINDINGS = (
    Resource(group="rbac.authorization.k8s.io", version="v1", kind=kind, plural=f"{kind.lower()}s", namespaced=False)
    for kind in ("ClusterRole", "ClusterRoleBinding")
)


def approvers(client: SyncClient, run: str) -> Approvers:
    """Returns who may approve a run by the cluster's RBAC, or why that is not known."""
    try:
        roles, bindings = (client.listing_raw(resource) for resource in (_ROLES, _ROLE_BINDINGS))
    except (ApiError, codec.DecodeError) as error:
        return str(error)
    if incomplete := (*roles.incomplete, *bindings.incomplete):
        return "; ".join(incomplete)
    return approvers_of(run, roles.items, bindings.items)


def _find(client: SyncClient, resource: Resource) -> dict[str, Any] | None:
    try:
        return client.send(calls.get_raw(resource, approval_rules.POLICY))
    except NotFound:
        return None
