"""Decides which run a person creates: to an offered release, or another attempt after a failure. Pure.

Such a run has the policy's values, and starts behind the policy's gates. `minAge` and `follow` of the policy restrict
only what the policy chooses itself; `blockVersions` counts for everybody.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from msgspec.structs import replace

from kubekit.error_types import InputError
from runup.api.config_v1 import ClusterVersion
from runup.api.update_policy_v1alpha1 import Candidate, UpdatePolicy, UpdateRun
from runup.rollout.decide.candidate import Choice, choose
from runup.rollout.decide.plain_cluster import PlainCluster
from runup.rollout.decide.policy import run_of, runs_to
from runup.rollout.decide.run_steps import FINISHED

NO_POLICY = "the cluster has no UpdatePolicy: `runup upgrade policy set FILE` stores one"
NO_USER = "the server did not return your user name: it must serve SelfSubjectReview"


def started_run(
    policy: UpdatePolicy,
    version: str,
    cluster: ClusterVersion,
    runs: Sequence[UpdateRun],
    *,
    now: datetime,
    requested_by: str,
    plain: PlainCluster | None = None,
) -> UpdateRun:
    """Returns a person's run to `version`, which must be offered now.

    Raises InputError with the way out if there cannot be such a run.
    """
    choice = _chosen(policy, Candidate(version=version, image=""), cluster, now, plain=plain)
    if choice.candidate is None:
        raise InputError(f"no run to {version} can start: {choice.message}")
    # Offered, so it is one hop away.
    return _created(policy, choice.candidate, runs, requested_by=requested_by, max_hops=1)


def retried_run(
    policy: UpdatePolicy,
    failed: UpdateRun,
    cluster: ClusterVersion,
    runs: Sequence[UpdateRun],
    *,
    now: datetime,
    requested_by: str,
    skip_pools: Sequence[str] = (),
    plain: PlainCluster | None = None,
) -> UpdateRun:
    """Returns another attempt of a failed run to the same image, with the policy's present values.

    Raises InputError with the way out if the run did not fail, or if the cluster has the release already.
    """
    name, target, step = failed.metadata.name, failed.spec.target, failed.status.step
    if step != "Failed":
        way_out = f"`runup upgrade run start {target.version}` creates another run"
        raise InputError(f"run {name} is {step}, and only a failed run is retried: {way_out}")
    choice = _chosen(policy, target, cluster, now, plain=plain)
    if choice.reason == "UpToDate":
        last = failed.status.decisions[-1] if failed.status.decisions else None
        why = f" Its last decision: {last.message}" if last is not None and last.message else ""
        way_out = "`runup upgrade policy acknowledge` lets the policy continue"
        raise InputError(f"the cluster runs {target.version}, so a retry would start nothing: {way_out}.{why}")
    if choice.candidate is None:
        raise InputError(f"run {name} cannot be retried: {choice.message}")
    made = _created(policy, target, runs, requested_by=requested_by, max_hops=failed.spec.max_hops)
    skipped = tuple(dict.fromkeys((*failed.spec.skip_pools, *skip_pools)))
    return replace(made, spec=replace(made.spec, retry_of=name, skip_pools=skipped))


def _chosen(
    policy: UpdatePolicy, wanted: Candidate, cluster: ClusterVersion, now: datetime, *, plain: PlainCluster | None
) -> Choice:
    """Returns the wanted release if the cluster may update to it, else why not; without an image it must be offered."""
    named = {"follow": "Exact", "version": wanted.version, "image": wanted.image, "min_age": "0s", "max_hops": 1}
    return choose(replace(policy.spec.target, **named), cluster, now, plain=plain)


def _created(
    policy: UpdatePolicy, target: Candidate, runs: Sequence[UpdateRun], *, requested_by: str, max_hops: int
) -> UpdateRun:
    if not requested_by:
        raise InputError(NO_USER)
    active = next((run for run in runs_to(target, runs) if run.status.step not in FINISHED), None)
    if active is not None:
        shown = f"`runup upgrade runs {active.metadata.name}` shows what it waits for"
        raise InputError(f"run {active.metadata.name} to {target.version} is not finished: {shown}")
    run = run_of(policy.spec, target, runs)
    return replace(run, spec=replace(run.spec, requested_by=requested_by, max_hops=max_hops))
