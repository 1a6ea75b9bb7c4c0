"""Reads the update policy of a cluster with its runs, and what the policy would start, with reads only."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING

import msgspec

from runup.api.update_policy_v1alpha1 import UpdatePolicy, UpdateRun
from runup.rollout.control import policy_objects
from runup.rollout.control.observe import read_cluster
from runup.rollout.decide.approvers import Approvers, missing_approvals
from runup.rollout.decide.explain import StartPreview, preview
from runup.rollout.decide.run_steps import FINISHED

if TYPE_CHECKING:
    from kubekit.kube.client_sync import SyncClient


class PolicyReading(msgspec.Struct, frozen=True, kw_only=True):
    """The policy, the runs with the newest first, and what the policy would start as of `now`, by the cluster's clock.

    `approvers` has the subjects that may approve each run that waits for an approval, or why they are not known.
    """

    now: datetime
    policy: UpdatePolicy | None = None
    runs: tuple[UpdateRun, ...] = ()
    shown: StartPreview | None = None
    approvers: Mapping[str, Approvers] = {}


def read_policy(client: SyncClient) -> PolicyReading:
    """Returns the policy of a cluster and its runs. Raises KubeError, DecodeError or InputError.

    The objects of the cluster are read only if it has a policy: the forecast lists all pods.
    """
    policy = policy_objects.policy(client)
    if policy is None:
        runs = policy_objects.runs(client)
        return PolicyReading(now=client.now(), runs=runs[::-1], approvers=approvers_of_runs(client, runs))
    inputs = read_cluster(client, None, with_policy=True)
    policy, shown = inputs.policies[0] if inputs.policies else None, None
    if policy is not None:
        shown = preview(policy, inputs.objects, inputs.runs, inputs.calendars, now=inputs.now)
    approvers = approvers_of_runs(client, inputs.runs)
    return PolicyReading(now=inputs.now, policy=policy, runs=inputs.runs[::-1], shown=shown, approvers=approvers)


def approvers_of_runs(client: SyncClient, runs: tuple[UpdateRun, ...]) -> dict[str, Approvers]:
    """Returns who may approve each run that waits for an approval, or why that is not known."""
    waiting = [run for run in runs if run.status.step not in FINISHED and missing_approvals(run)]
    return {run.metadata.name: policy_objects.approvers(client, run.metadata.name) for run in waiting}
