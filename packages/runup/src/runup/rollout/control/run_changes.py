"""Carries out what a person decides about runs: new ones and approvals in the person's own name, and `spec.control`.

The commands `runup upgrade approve` and `runup upgrade run`, and the console, call it. The server decides about the
person's rights.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from kubekit.error_types import InputError
from kubekit.kube.api_errors import Forbidden
from runup.advice.control.acceptance_records import user_name
from runup.api.update_policy_v1alpha1 import Control, UpdateApprovalSpec, UpdatePolicy, UpdateRun
from runup.process.messages import Output, err, out
from runup.rollout.control import policy_objects
from runup.rollout.control.observe import read_versions
from runup.rollout.decide.approvals import new_approval
from runup.rollout.decide.durations import parse_moment
from runup.rollout.decide.persons_runs import NO_POLICY, retried_run, started_run
from runup.rollout.decide.run_controls import EFFECTS, refuse_control

if TYPE_CHECKING:
    from kubekit.kube.client_sync import SyncClient


# Returns the approval with what is approved. Raises InputError if it would not count.
Complete = Callable[[UpdateApprovalSpec], UpdateApprovalSpec]


def plan_approval(
    client: SyncClient, complete: Complete, *, gate: str, reason: str = "", not_after: datetime | None = None
) -> tuple[UpdateApprovalSpec, Sequence[Output]]:
    """Returns an approval in the user's own name, and warnings about it; creates nothing.

    Raises InputError with the way out if the approval would not count, or KubeError.
    """
    wanted = UpdateApprovalSpec(
        gate=gate, approved_by=user_name(client), image_digests=(), reason=reason.strip(), not_after=not_after
    )
    spec = complete(wanted)
    try:
        unverified = policy_objects.why_unverified(client)
    except Forbidden as error:
        return spec, [err(f"warning: could not determine whether approvals count on this cluster: {error.message}\n")]
    if unverified:
        way_out = "`runup install update-policy` installs both"
        raise InputError(f"no approval counts on this cluster: {unverified}; {way_out}")
    return spec, ()


def create_approval(
    client: SyncClient, complete: Complete, *, gate: str, reason: str, until: str
) -> tuple[UpdateApprovalSpec, str, Sequence[Output]]:
    """Creates an approval in the user's own name; returns it, its name, and warnings. `until` is a time, or empty.

    Raises InputError with the way out if it has no reason, would not count, or the user may not approve, or KubeError.
    """
    not_after = parse_moment(until, "--until") if until else None
    if not reason.strip():
        raise InputError("--reason must not be empty")
    spec, warnings = plan_approval(client, complete, gate=gate, reason=reason, not_after=not_after)
    return spec, policy_objects.create_approval(client, spec), warnings


def approve(client: SyncClient, run: UpdateRun, gate: str, *, reason: str, until: str) -> Sequence[Output]:
    """Approves a run in the user's own name, and returns the messages about it. Raises as `create_approval` does."""
    spec, name, warnings = create_approval(client, approval_of(client, run), gate=gate, reason=reason, until=until)
    target = run.spec.target.version
    text = f"Approved {gate} of run {spec.run} for {target} as {spec.approved_by} (UpdateApproval {name})\n"
    return [*warnings, out(text)]


def approval_of(client: SyncClient, run: UpdateRun) -> Complete:
    """Returns the function that completes an approval of a run."""
    return lambda wanted: new_approval(run, wanted, client.now())


def set_control(client: SyncClient, run: UpdateRun, control: Control) -> Output:
    """Sets `spec.control` of a run as it was read, and returns the message about its effect.

    Raises InputError if the run cannot be controlled like this any more, Conflict if it has changed, or KubeError.
    """
    refuse_control(run, control)
    policy_objects.set_control(client, run, control)
    return out(f"Run {run.metadata.name} {EFFECTS[control]}\n")


def start_run(client: SyncClient, version: str) -> Output:
    """Creates a person's run to an offered release, and returns the message. Raises InputError or KubeError."""
    policy, runs = _policy_of(client), policy_objects.runs(client)
    cluster, plain = read_versions(client)
    user = user_name(client)
    run = started_run(policy, version, cluster, runs, now=client.now(), requested_by=user, plain=plain)
    return _create_run(client, run)


def retry_run(client: SyncClient, name: str, skip_pools: Sequence[str] = ()) -> Output:
    """Creates another attempt of a failed run; returns the message. Raises InputError or KubeError."""
    policy, failed, runs = _policy_of(client), policy_objects.run(client, name), policy_objects.runs(client)
    cluster, plain = read_versions(client)
    run = retried_run(
        policy,
        failed,
        cluster,
        runs,
        now=client.now(),
        requested_by=user_name(client),
        skip_pools=skip_pools,
        plain=plain,
    )
    return _create_run(client, run)


def _policy_of(client: SyncClient) -> UpdatePolicy:
    policy = policy_objects.policy(client)
    if policy is None:
        raise InputError(NO_POLICY)
    return policy


def _create_run(client: SyncClient, run: UpdateRun) -> Output:
    policy_objects.create_run(client, run)
    name = run.metadata.name
    return out(
        f"Created run {name} to {run.spec.target.version}: `runup upgrade runs {name}` shows what it waits for\n"
    )
