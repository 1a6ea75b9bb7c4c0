"""Whether what was applied is well: each kind by what it says about itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tests.applying.decide.tasks import task
from tests.factories import NOW, condition

from kubekit.api.meta_v1 import Condition, ObjectMeta
from runup.api.owned_v1 import OwnedWorkload, WorkloadSpec, WorkloadStatus
from runup.applying.decide import health
from runup.applying.decide.progress import ApplyReason, Effect, Problem

DEPLOYMENT, DAEMON_SET, JOB = ("apps", "Deployment"), ("apps", "DaemonSet"), ("batch", "Job")
DEFINITION, CONFIG_MAP = ("apiextensions.k8s.io", "CustomResourceDefinition"), ("", "ConfigMap")


Asked = Callable[[], Problem | None]


def named_condition(type_: str, status: str, reason: str = "Why") -> Condition:
    """A condition with its own name as message."""
    return condition(type_, status, reason, f"{type_} it says")


def problem(
    kind: tuple[str, str],
    *conditions: Condition,
    state: ApplyReason = ApplyReason.UPDATING,
    meta: dict[str, Any] | None = None,
    **status: Any,
) -> Asked:
    """Returns the problem of object `x` in namespace `ns`."""
    found = OwnedWorkload(
        metadata=ObjectMeta(name="x", namespace="ns", **{"generation": 2, **(meta or {})}),
        status=WorkloadStatus(conditions=conditions, **{"observed_generation": 2, **status}),
    )
    return lambda: health.problem_of(task("0000_50_a_x.yaml", kind[1], kind[0], "x"), found, state)


STUCK = (named_condition("Available", "False"), named_condition("Progressing", "False"))


@pytest.mark.parametrize(
    ("asked", "name", "text"),
    [
        pytest.param(
            problem(DEPLOYMENT, named_condition("ReplicaFailure", "True"), *STUCK),
            "WorkloadNotProgressing",
            "deployment ns/x has some pods failing; (Why: ReplicaFailure it says)",
            id="pods that cannot be made come before all else",
        ),
        pytest.param(
            problem(DEPLOYMENT, *STUCK),
            "WorkloadNotAvailable",
            "deployment ns/x is not available (Why: Available it says) and not progressing (Why: Progressing it says)",
            id="neither available nor progressing",
        ),
        pytest.param(
            problem(
                DEPLOYMENT,
                named_condition("Available", "True"),
                named_condition("Progressing", "False", "ProgressDeadlineExceeded"),
            ),
            "WorkloadNotProgressing",
            "deployment ns/x is ProgressDeadlineExceeded=False: Progressing it says",
            id="available, and beyond its deadline",
        ),
        pytest.param(
            problem(DEPLOYMENT, meta={"deletion_timestamp": NOW}),
            "WorkloadNotAvailable",
            "deployment ns/x is being deleted",
            id="a Deployment on its way out",
        ),
        pytest.param(
            problem(DAEMON_SET, meta={"deletion_timestamp": NOW}),
            "WorkloadNotAvailable",
            "daemonset ns/x is being deleted",
            id="a DaemonSet on its way out",
        ),
        pytest.param(
            problem(JOB, named_condition("Failed", "True", "DeadlineExceeded")),
            "WorkloadNotProgressing",
            'job ns/x: deadline exceeded, reason: "DeadlineExceeded", message: "Failed it says"',
            id="a Job beyond its deadline",
        ),
        pytest.param(
            problem(JOB, named_condition("Failed", "True", "BackoffLimitExceeded"), state=ApplyReason.INITIALIZING),
            "WorkloadNotProgressing",
            'job ns/x: failed, reason: "BackoffLimitExceeded", message: "Failed it says"',
            id="a Job that failed, while a cluster is installed",
        ),
    ],
)
def test_what_is_not_well(asked: Asked, name: str, text: str) -> None:
    """Under upstream's reasons; it is a failure."""
    found = asked()
    assert found is not None
    assert (found.reason, found.message, found.effect) == (name, text, Effect.FAIL)


@pytest.mark.parametrize(
    ("asked", "text"),
    [
        pytest.param(problem(JOB), "waiting on job ns/x has not finished yet", id="a Job that has said nothing"),
        pytest.param(
            problem(JOB, named_condition("Failed", "False"), named_condition("Complete", "False")),
            "waiting on job ns/x has not finished yet",
            id="a Job that has neither failed nor completed",
        ),
        pytest.param(
            problem(DEFINITION, named_condition("Established", "False")),
            "waiting on customresourcedefinition ns/x is not established yet",
            id="a definition that is not established",
        ),
        pytest.param(
            problem(DEFINITION, state=ApplyReason.INITIALIZING),
            "waiting on customresourcedefinition ns/x is not established yet",
            id="a definition, while a cluster is installed",
        ),
    ],
)
def test_what_is_waited_for(asked: Asked, text: str) -> None:
    """It is no failure."""
    found = asked()
    assert found is not None
    assert (found.reason, found.message, found.effect) == ("WaitingForObject", text, Effect.NONE)


@pytest.mark.parametrize(
    "asked",
    [
        pytest.param(problem(DEPLOYMENT), id="a Deployment that says nothing"),
        pytest.param(problem(DEPLOYMENT, named_condition("ReplicaFailure", "False")), id="no pod fails"),
        pytest.param(
            problem(DEPLOYMENT, named_condition("Available", "False"), named_condition("Progressing", "True")),
            id="it progresses",
        ),
        pytest.param(problem(DEPLOYMENT, named_condition("Available", "False")), id="nothing is said of progress"),
        pytest.param(
            problem(DEPLOYMENT, named_condition("Available", "True"), named_condition("Progressing", "False")),
            id="it is available",
        ),
        pytest.param(
            problem(DEPLOYMENT, named_condition("Progressing", "True", "ProgressDeadlineExceeded")),
            id="it goes on again",
        ),
        pytest.param(problem(DEPLOYMENT, *STUCK, observed_generation=1), id="it speaks of an older spec"),
        pytest.param(problem(DEPLOYMENT, *STUCK, state=ApplyReason.INITIALIZING), id="while a cluster is installed"),
        pytest.param(
            problem(DEPLOYMENT, meta={"deletion_timestamp": NOW}, state=ApplyReason.INITIALIZING),
            id="on its way out while a cluster is installed",
        ),
        pytest.param(problem(DAEMON_SET, *STUCK), id="a DaemonSet has no such conditions"),
        pytest.param(problem(JOB, succeeded=1), id="a Job of which one pod succeeded"),
        pytest.param(problem(JOB, named_condition("Complete", "True")), id="a Job that completed"),
        pytest.param(
            problem(JOB, named_condition("Complete", "True"), named_condition("Failed", "True")),
            id="a Job that completed at last",
        ),
        pytest.param(problem(DEFINITION, named_condition("Established", "True")), id="a definition in force"),
        pytest.param(problem(CONFIG_MAP, *STUCK), id="a kind that nobody waits for"),
    ],
)
def test_what_is_well(asked: Asked) -> None:
    """Nothing is said."""
    assert asked() is None


@pytest.mark.parametrize("kind", [DEPLOYMENT, DAEMON_SET, JOB, DEFINITION])
def test_what_nobody_has_seen_yet(kind: tuple[str, str]) -> None:
    """No object, and one without a status: nothing can be said."""
    asked = task("0000_50_a_x.yaml", kind[1], kind[0], "x")
    bare = OwnedWorkload(metadata=ObjectMeta(name="x", namespace="ns", deletion_timestamp=NOW), status=None)
    assert health.problem_of(asked, None, ApplyReason.UPDATING) is None
    assert health.problem_of(asked, bare, ApplyReason.UPDATING) is None


Unfinished = Callable[[], str | None]


def rollout(
    kind: tuple[str, str],
    *,
    wants: dict[str, Any] | None = None,
    annotations: dict[str, str] | None = None,
    paused: bool = False,
    generation: int = 2,
    **status: Any,
) -> Unfinished:
    """Returns the problem of the roll-out of `x`, which the release declares as `wants`."""
    found = OwnedWorkload(
        metadata=ObjectMeta(name="x", namespace="ns", generation=generation),
        spec=WorkloadSpec(paused=paused),
        status=WorkloadStatus(**{"observed_generation": generation, **status}),
    )
    metadata = {"annotations": annotations or {}}
    asked = task("0000_50_a_x.yaml", kind[1], kind[0], "x", metadata=metadata, spec=wants or {})
    return lambda: _words(health.unfinished_rollout(asked, found))


def _words(problem: Problem | None) -> str | None:
    return None if problem is None else f"{problem.effect} {problem.message}"


ONE_POD = {"replicas": 1}
NOBODY_LOOKED = "None waiting on deployment ns/x, whose controller has observed generation 0 of 1"
NODES = {"desired_number_scheduled": 3, "current_number_scheduled": 3}
ONCE = {"release.openshift.io/create-only": "true"}


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        pytest.param(rollout(DEPLOYMENT, **ONE_POD), None, id="it has the pod that a manifest without a number wants"),
        pytest.param(rollout(DEPLOYMENT, wants={"replicas": 3}, **ONE_POD), None, id="the first of three is there"),
        pytest.param(
            rollout(DEPLOYMENT), "None waiting on deployment ns/x, which has no pod yet", id="a pod is wanted, none is"
        ),
        pytest.param(
            rollout(DEPLOYMENT, wants={"replicas": None}),
            "None waiting on deployment ns/x, which has no pod yet",
            id="a null is no number",
        ),
        pytest.param(rollout(DEPLOYMENT, wants={"replicas": 0}), None, id="no pod is wanted"),
        pytest.param(
            rollout(DEPLOYMENT, paused=True, **ONE_POD),
            "None waiting on deployment ns/x, which is paused",
            id="somebody paused it",
        ),
        pytest.param(rollout(DEPLOYMENT, wants={"paused": True}, paused=True, **ONE_POD), None, id="its release did"),
        pytest.param(
            rollout(DEPLOYMENT, observed_generation=1, **ONE_POD),
            "None waiting on deployment ns/x, whose controller has observed generation 1 of 2",
            id="its status is of an earlier spec",
        ),
        pytest.param(rollout(DEPLOYMENT, generation=1, observed_generation=0), NOBODY_LOOKED, id="nobody looked at it"),
        pytest.param(rollout(DEPLOYMENT, annotations=ONCE, paused=True), None, id="the release only creates it"),
        pytest.param(rollout(DAEMON_SET, **NODES), None, id="a DaemonSet with its pods"),
        pytest.param(rollout(DAEMON_SET), None, id="a DaemonSet of no node"),
        pytest.param(
            rollout(DAEMON_SET, observed_generation=0, generation=1), None, id="a DaemonSet where nothing acts on them"
        ),
        pytest.param(
            rollout(DAEMON_SET, desired_number_scheduled=3),
            "None waiting on daemonset ns/x, which has no pod yet",
            id="a DaemonSet without a pod",
        ),
        pytest.param(
            rollout(DAEMON_SET, observed_generation=1, **NODES),
            "None waiting on daemonset ns/x, whose controller has observed generation 1 of 2",
            id="a DaemonSet whose status is of an earlier spec",
        ),
        pytest.param(rollout(JOB, observed_generation=0), None, id="a Job, which is waited for before"),
        pytest.param(rollout(CONFIG_MAP, observed_generation=0), None, id="a kind without a roll-out"),
    ],
)
def test_what_a_release_is_not_complete_without(said: Unfinished, expected: str | None) -> None:
    """A missing status is progress, neither a failure nor success."""
    assert said() == expected


def test_a_workload_that_nobody_has_seen_is_not_rolled_out() -> None:
    """Neither is one without a status."""
    asked = task("0000_50_a_x.yaml", "Deployment", "apps", "x", spec={})
    bare = OwnedWorkload(metadata=ObjectMeta(name="x", namespace="ns", generation=1), status=None)
    assert _words(health.unfinished_rollout(asked, bare)) == NOBODY_LOOKED
    said = _words(health.unfinished_rollout(asked, None))
    assert said == "None waiting on deployment ns/x, which is not seen yet"
