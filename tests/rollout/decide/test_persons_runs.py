"""Runs that a person starts, or tries again after a failure."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace
from tests.rollout.decide.test_run_steps import NOW, OLD, TARGET, cluster, entry, run_of

from kubekit.api.meta_v1 import Condition, ObjectMeta
from kubekit.error_types import InputError
from runup.api.config_v1 import ClusterVersion, Release
from runup.api.update_policy_v1alpha1 import (
    PolicyTarget,
    RunDecision,
    UpdatePolicy,
    UpdatePolicySpec,
    UpdateRun,
    UpdateRunStatus,
)
from runup.rollout.decide.persons_runs import retried_run, started_run

ANSWERS = Condition(type="RetrievedUpdates", status="True", last_transition_time=NOW - timedelta(days=1))
OFFERING = cluster(conditions=(ANSWERS,), available_updates=(Release(version=TARGET.version, image=TARGET.image),))
RUNNING = cluster(entry("Completed"), conditions=(ANSWERS,), available_updates=())


def _policy(**target: Any) -> UpdatePolicy:
    spec = UpdatePolicySpec(target=PolicyTarget(**target), calendars=("nights",), actuator="ClusterVersion", soak="2h")
    return UpdatePolicy(metadata=ObjectMeta(name="cluster"), spec=spec)


def _failed(step: Any = "Failed", **spec: Any) -> UpdateRun:
    decision = RunDecision(at=NOW, step=step, reason="PoolsDeadline", message="Resume pool infra.")
    return run_of(status=UpdateRunStatus(step=step, started=NOW, decisions=(decision,)), **spec)


@pytest.mark.parametrize(
    "target",
    [
        pytest.param({"follow": "Minor"}, id="a policy that follows the next minor version"),
        pytest.param({"follow": "Patch"}, id="a policy that would not choose it"),
        pytest.param({"follow": "Minor", "min_age": "99d"}, id="a release that is too young for the policy"),
        pytest.param({"follow": "Exact", "version": "5.9.0", "max_hops": 3}, id="a policy with another target"),
    ],
)
def test_a_start_has_the_policys_values_and_the_users_name(target: dict[str, Any]) -> None:
    """The choice of the policy does not matter; its gates and calendars do."""
    policy = _policy(**target)
    run = started_run(policy, "5.1.0", OFFERING, (), now=NOW, requested_by="ann")
    assert (run.spec.target, run.spec.requested_by, run.spec.max_hops) == (TARGET, "ann", 1)
    assert (run.spec.gates, run.spec.calendars, run.spec.soak) == (policy.spec.gates, ("nights",), "2h")
    assert run.spec.actuator == "ClusterVersion"
    # Only the controller marks a run as the policy's: a person's run passes the policy's gates in addition.
    assert (run.metadata.labels, run.metadata.name.startswith("5.1.0-")) == ({}, True)


@pytest.mark.parametrize(
    ("version", "found", "runs", "policy", "user", "error"),
    [
        pytest.param("5.3.0", OFFERING, (), {}, "ann", "5.3.0 is not offered", id="not offered"),
        pytest.param(
            "5.3.0", OFFERING, (), {"max_hops": 3}, "ann", r"5\.3\.0 is not offered\.$", id="no path is looked for"
        ),
        pytest.param("5.1.0", RUNNING, (), {}, "ann", "The cluster runs 5.1.0", id="the cluster runs it"),
        pytest.param("5.0.1", OFFERING, (), {}, "ann", "must be newer than 5.0.3", id="older"),
        pytest.param("5.1.0", OFFERING, (), {"block_versions": ("5.1.x",)}, "ann", "blockVersions", id="blocked"),
        pytest.param("5.1.0", cluster(), (), {}, "ann", "no answer is known", id="no answer of the update service"),
        pytest.param("5.1.0", OFFERING, (run_of(),), {}, "ann", "is not finished", id="a run to it is active"),
        pytest.param("5.1.0", OFFERING, (), {}, "", "did not return your user name", id="a user without a name"),
    ],
)
def test_refuses_a_start(
    version: str, found: ClusterVersion, runs: tuple[UpdateRun, ...], policy: dict[str, Any], user: str, error: str
) -> None:
    """With the reason, and nothing is created."""
    with pytest.raises(InputError, match=error):
        started_run(_policy(**policy), version, found, runs, now=NOW, requested_by=user)


def test_a_retry_is_a_new_run_to_the_same_image() -> None:
    """With the policy's present values and another name; the release may have left the graph meanwhile."""
    failed = _failed(skip_pools=("infra",), max_hops=2)
    withdrawn = cluster(conditions=(ANSWERS,), available_updates=())
    run = retried_run(_policy(), failed, withdrawn, (failed,), now=NOW, requested_by="ann", skip_pools=("gpu", "infra"))
    assert (run.spec.target, run.spec.retry_of, run.spec.requested_by) == (TARGET, failed.metadata.name, "ann")
    assert (run.spec.skip_pools, run.spec.max_hops, run.spec.soak) == (("infra", "gpu"), 2, "2h")
    assert run.status == UpdateRunStatus()
    first = started_run(_policy(), "5.1.0", OFFERING, (), now=NOW, requested_by="ann")
    assert run.metadata.name != first.metadata.name


@pytest.mark.parametrize(
    ("failed", "found", "runs", "policy", "error"),
    [
        pytest.param(_failed("Done"), OFFERING, (), {}, "only a failed run is retried", id="a run that is done"),
        pytest.param(_failed("Waiting"), OFFERING, (), {}, "is Waiting", id="a run that is active"),
        pytest.param(
            _failed(),
            RUNNING,
            (),
            {},
            "would start nothing: .*acknowledge.*Resume pool infra",
            id="only pools are left",
        ),
        pytest.param(_failed(), OFFERING, (run_of(),), {}, "is not finished", id="another run to it is active"),
        pytest.param(_failed(), OFFERING, (), {"block_versions": ("5.1.0",)}, "blockVersions", id="blocked since"),
    ],
)
def test_refuses_a_retry(
    failed: UpdateRun, found: ClusterVersion, runs: tuple[UpdateRun, ...], policy: dict[str, Any], error: str
) -> None:
    """With the way out."""
    with pytest.raises(InputError, match=error):
        retried_run(_policy(**policy), failed, found, runs, now=NOW, requested_by="ann")


def test_an_update_that_is_under_way_may_be_retried() -> None:
    """The new run finds the update and follows it to its end."""
    failed = _failed()
    found = replace(cluster(entry(), conditions=(ANSWERS,)), spec=OFFERING.spec)
    assert retried_run(_policy(), failed, found, (failed,), now=NOW, requested_by="ann").spec.retry_of
    assert OLD.state == "Completed"
