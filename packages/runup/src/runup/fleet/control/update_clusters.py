"""Reads and changes one cluster of a fleet update: its ClusterVersion, or its UpdateRun if it has update-policy.

A start without the component is that of `runup upgrade --to`, with its refusals and texts, and in addition conditional
on the version of ClusterVersion whose gates were evaluated (docs/decisions/0121).
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal

import msgspec
from msgspec.structs import replace

from kubekit.api import codec
from kubekit.api.core_v1 import Namespace
from kubekit.api.scheme import resource_of
from kubekit.error_types import InputError
from kubekit.kube import calls
from kubekit.kube.api_errors import AlreadyExists, Conflict, KubeError, NotFound, Transient, message_of
from kubekit.lang.oc_pull_spec import is_same_image
from kubekit.lang.text import timestamp
from runup.advice.control.acceptance_records import user_name
from runup.api.fleet_update_v1alpha1 import FleetUpdate
from runup.api.update_policy_v1alpha1 import UpdateCalendar, UpdateRun
from runup.clusterversion.control import upgrade
from runup.clusterversion.decide.upgrade_target import Flags
from runup.fleet.control.cluster_sources import connection_to
from runup.fleet.control.fleet_members import problem_of
from runup.fleet.decide.members import Member
from runup.fleet.decide.update_records import UpdateMember
from runup.process.clusterversion_client import CLUSTER_VERSION, NAME
from runup.process.clusterversion_client import patch as patch_cluster_version
from runup.process.messages import Output
from runup.rollout.control import policy_objects
from runup.rollout.control.controller import conditional_operations, desired_update, fence
from runup.rollout.control.observe import ClusterInputs, effective_run, observe_run, read_cluster
from runup.rollout.decide.gates.all_gates import evaluate
from runup.rollout.decide.gates.gate import OPEN, Gate, Verdict
from runup.rollout.decide.gates.observed import Observed

if TYPE_CHECKING:
    from kubekit.kube.client_sync import SyncClient
    from runup.process.connection import Connection

MANAGER = "runup-fleet"
RUNS = resource_of(UpdateRun)
Result = Literal["Sent", "Refused", "Conflict", "Lost"]


class Reading(msgspec.Struct, frozen=True, kw_only=True):
    """A cluster as it was read; `problem` says why it was not. `has_runs`: the component update-policy is installed."""

    name: str
    problem: str = ""
    uid: str = ""
    inputs: ClusterInputs | None = None
    has_runs: bool = False
    read_at: datetime | None = None


class Acted(msgspec.Struct, frozen=True, kw_only=True):
    """The result of an act; Lost: no answer arrived, so that only the cluster shows it."""

    result: Result
    message: str = ""


def as_member(member: UpdateMember) -> Member:
    """Returns the cluster as the commands of a fleet name it."""
    return Member(name=member.name, kubeconfig=member.kubeconfig, context=member.context, labels=member.labels)


def read(
    member: UpdateMember, update: FleetUpdate, calendars: Sequence[UpdateCalendar], connection: Connection
) -> Reading:
    """Returns the cluster; why it could not be read is a result, too. Nothing is written."""
    try:
        with connection_to(as_member(member), connection).client("fleet update") as client:
            uid = client.send(calls.get(Namespace, "kube-system")).metadata.uid
            has_runs = policy_objects.serves_runs(client)
            expressions = update.spec.policy.gates.health.expressions
            inputs = read_cluster(client, None, with_policy=has_runs, expressions=expressions, manager=MANAGER)
    except Exception as error:
        problem = problem_of(as_member(member), error)
        if problem is None:
            raise
        return Reading(name=member.name, problem=problem)
    if not has_runs:
        inputs = replace(inputs, calendars=tuple(calendars))
    return Reading(name=member.name, uid=uid, inputs=inputs, has_runs=has_runs, read_at=inputs.now)


def stored_run(reading: Reading, wanted: UpdateRun) -> UpdateRun | None:
    """Returns the UpdateRun of the cluster with the name of the wanted one, or None."""
    runs = reading.inputs.runs if reading.inputs is not None else ()
    return next((run for run in runs if run.metadata.name == wanted.metadata.name), None)


def observe_cluster(reading: Reading, run: UpdateRun) -> tuple[Observed, Verdict]:
    """Returns what the gates of the run are evaluated on, and the verdict, without the permit that a turn renews."""
    inputs = reading.inputs
    assert inputs is not None
    observed = observe_run(effective_run(run, inputs) if reading.has_runs else run, inputs)
    verdict = evaluate(observed, inputs.now)
    return observed, Verdict(tuple(_without_permit(gate) for gate in verdict.gates))


def _without_permit(gate: Gate) -> Gate:
    if gate.reason != "PermitEnded":
        return gate
    return Gate(name=gate.name, state=OPEN, reason="NotHeld", message="Nothing but the turn holds the update back.")


def send(
    act: str,
    member: UpdateMember,
    reading: Reading,
    run: UpdateRun,
    *,
    connection: Connection,
    permit_until: datetime | None = None,
) -> Acted:
    """Carries out one act. Errors are results: an act is never repeated before the cluster was read again."""
    said: list[Output] = []
    try:
        with connection_to(as_member(member), connection).client("fleet update") as client:
            _send(act, client, reading, run, said=said, permit_until=permit_until)
    except Conflict:
        return Acted(result="Conflict", message="the cluster has changed since it was read")
    except InputError as error:
        return Acted(result="Refused", message=error.message)
    except Transient as error:
        # A request without an answer may have been carried out.
        return Acted(result="Lost", message=message_of(error))
    except KubeError as error:
        return Acted(result="Refused", message=message_of(error))
    return Acted(result="Sent", message=" ".join(text.strip() for _, text in said))


def _send(
    act: str,
    client: SyncClient,
    reading: Reading,
    run: UpdateRun,
    *,
    said: list[Output],
    permit_until: datetime | None,
) -> None:
    assert reading.inputs is not None
    cluster, target = reading.inputs.objects.cluster, run.spec.target

    def say(*output: Output) -> None:
        said.extend(output)

    if act == "commit":
        planned = upgrade.planned_update(Flags(to=target.version), client, say)
        if planned is None:
            return
        chosen, body = planned
        if not is_same_image(chosen.image, target.image):
            raise InputError(f"{target.version} is offered as {chosen.image}, not as {target.image}")
        body = {**body, "metadata": {"resourceVersion": cluster.metadata.resource_version}}
        patch_cluster_version(client, body, strict=True, manager=MANAGER)
    elif act == "preflight":
        upgrade.request_preflight(client, cluster, Flags(to=target.version), say, manager=MANAGER)
    elif act == "fence":
        client.send(fence(run, cluster, MANAGER))
    elif act in ("withdraw", "forget"):
        wanted = desired_update("withdraw" if act == "withdraw" else "forget", run, cluster.spec.desired_update)
        operations = conditional_operations(wanted, cluster)
        client.send(calls.json_patch(CLUSTER_VERSION, NAME, operations, field_manager=MANAGER))
    elif act == "create":
        spec = replace(run.spec, requested_by=user_name(client), permit_until=permit_until)
        body = codec.to_dict(replace(run, spec=spec))
        body.pop("status", None)
        body["metadata"].pop("uid", None)
        try:
            client.send(calls.create(RUNS, body, field_manager=MANAGER))
        except AlreadyExists:
            return
    else:
        fields: dict[str, Any] = (
            {"control": act} if act in ("Abort", "Skip") else {"permitUntil": timestamp(permit_until)}
        )
        try:
            client.send(calls.merge_patch(RUNS, run.metadata.name, {"spec": fields}, field_manager=MANAGER))
        except NotFound:
            return
