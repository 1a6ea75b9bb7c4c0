"""Many problems are one; what it means depends on its effect and on how long it lasts."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from kubekit.api.meta_v1 import Condition
from runup.api.config_v1 import ClusterOperator, ClusterOperatorStatus, OperandVersion
from runup.applying.decide.failure_summary import Verdict, evaluate_problem, summarize, summary_of, without_progress
from runup.applying.decide.health import operator_problem
from runup.applying.decide.progress import ApplyReason, Effect, Problem

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
WANTED = (OperandVersion(name="operator", version="2"),)


def operator(versions: str = "2", **conditions: str) -> ClusterOperator:
    """A ClusterOperator that says that of itself."""
    said = tuple(Condition(type=type_, status=status) for type_, status in conditions.items())  # type: ignore[arg-type]
    told = (OperandVersion(name="operator", version=versions), OperandVersion(name="other", version="1"))
    return ClusterOperator(status=ClusterOperatorStatus(conditions=said, versions=told))


U, R, I = ApplyReason.UPDATING, ApplyReason.RECONCILING, ApplyReason.INITIALIZING  # noqa: E741
WELL = {"Available": "True", "Degraded": "False"}


@pytest.mark.parametrize(
    ("found", "state", "expected"),
    [
        pytest.param(operator(**WELL), U, None, id="well, and of the wanted version"),
        pytest.param(operator(**WELL, Progressing="True"), U, None, id="progressing is not waited for"),
        pytest.param(None, U, ("ClusterOperatorNotAvailable", Effect.FAIL), id="absent"),
        pytest.param(operator(), U, ("ClusterOperatorNotAvailable", Effect.FAIL), id="says nothing"),
        pytest.param(
            operator(Available="Unknown", Degraded="False"),
            U,
            ("ClusterOperatorNotAvailable", Effect.FAIL),
            id="cannot tell",
        ),
        pytest.param(
            operator(Available="True"),
            U,
            ("ClusterOperatorDegraded", Effect.FAIL_AFTER_INTERVAL),
            id="a missing Degraded counts as degraded",
        ),
        pytest.param(
            operator(Available="True", Degraded="True"),
            I,
            ("ClusterOperatorDegraded", Effect.REPORT),
            id="degraded while a cluster is installed is told and stops nothing",
        ),
        pytest.param(
            operator("1", **WELL), U, ("ClusterOperatorUpdating", Effect.NONE), id="behind: progress, not failure"
        ),
        pytest.param(operator("1", **WELL), I, None, id="behind while a cluster is installed"),
        pytest.param(
            operator("3", **WELL), U, ("ClusterOperatorUpdating", Effect.NONE), id="ahead: the cluster goes back"
        ),
        pytest.param(
            ClusterOperator(status=ClusterOperatorStatus(conditions=operator(**WELL).status.conditions)),
            U,
            ("ClusterOperatorUpdating", Effect.NONE),
            id="it does not say which version it has",
        ),
    ],
)
def test_whether_an_operator_is_ready(
    found: ClusterOperator | None, state: ApplyReason, expected: tuple[str, Effect] | None
) -> None:
    """In the order of the table in docs/reference/upstream.md 4.6."""
    problem = operator_problem("a", WANTED, operator=found, state=state, since=NOW - timedelta(hours=1), now=NOW)
    assert (problem and (problem.reason, problem.effect)) == expected


def test_an_operator_without_versions_is_a_fault_of_the_release() -> None:
    """Nothing could ever say that it is there."""
    problem = operator_problem("a", (), operator=operator(**WELL), state=U, since=NOW, now=NOW)
    assert problem is not None
    assert problem.message == "Cluster operator a does not declare expected versions"


@pytest.mark.parametrize(
    ("state", "seconds", "effect"),
    [
        pytest.param(U, 29, Effect.NONE, id="just asked"),
        pytest.param(U, 30, Effect.FAIL, id="asked half a minute ago"),
        pytest.param(R, 0, Effect.FAIL, id="was there before"),
    ],
)
def test_an_operator_is_given_a_moment(state: ApplyReason, seconds: int, effect: Effect) -> None:
    """An installation does not fail because its first operator is not there in the first second."""
    problem = operator_problem("a", WANTED, operator=None, state=state, since=NOW - timedelta(seconds=seconds), now=NOW)
    assert problem is not None
    assert problem.effect is effect


def waiting(name: str, minutes: float) -> Problem:
    """Operator `name`, waited for since so long."""
    since = NOW - timedelta(minutes=minutes)
    found = operator_problem(name, WANTED, operator=operator("1", **WELL), state=U, since=since, now=NOW)
    assert found is not None
    return found


def degraded(name: str, minutes: float) -> Problem:
    """Operator `name`, degraded since so long."""
    since = NOW - timedelta(minutes=minutes)
    found = operator_problem(
        name, WANTED, operator=operator(Available="True", Degraded="True"), state=U, since=since, now=NOW
    )
    assert found is not None
    return found


SLOW = "which is longer than expected"


@pytest.mark.parametrize(
    ("problems", "text", "progressing", "slow"),
    [
        pytest.param([waiting("b", 1), waiting("a", 2)], "waiting on a, b", True, False, id="all in time"),
        pytest.param(
            [waiting("a", 31), waiting("b", 2)], f"waiting on a over 30 minutes {SLOW}", True, True, id="one late"
        ),
        pytest.param([waiting("a", 30)], "waiting on a", True, False, id="as long as it may take"),
        pytest.param(
            [waiting("machine-config", 90)], "waiting on machine-config", True, False, id="as long as machines may take"
        ),
        pytest.param(
            [waiting("b", 31), waiting("c", 31)], f"waiting on b, c over 30 minutes {SLOW}", True, True, id="two late"
        ),
        pytest.param(
            [degraded("a", 40)], "waiting up to 40 minutes on a", True, False, id="degraded as long as it may"
        ),
        pytest.param(
            [degraded("a", 41), degraded("b", 42), degraded("c", 40)],
            "wait has exceeded 40 minutes for these operators: a, b",
            False,
            False,
            id="two of three degraded for too long",
        ),
        pytest.param(
            [Problem(reason="WaitingForObject", message="waiting on x", effect=Effect.NONE)],
            "waiting on x",
            True,
            False,
            id="no operator",
        ),
        pytest.param(
            [Problem(reason="WaitingForObject", message=f"waiting on {name}", effect=Effect.NONE) for name in "cabbc"],
            "waiting on a; waiting on b; waiting on c",
            True,
            False,
            id="several objects are no errors",
        ),
        pytest.param(
            [Problem(reason="WaitingForObject", message=f"waiting on {name}", effect=Effect.NONE) for name in "edcba"],
            "waiting on a; waiting on b; waiting on c; and 2 more",
            True,
            False,
            id="of many objects three are named",
        ),
        pytest.param(
            [Problem(reason="ClusterOperatorUpdating", message="m", effect=Effect.NONE, names=("a",))],
            "waiting on a",
            True,
            False,
            id="updating, nobody knows since when",
        ),
        pytest.param(
            [Problem(reason="ClusterOperatorDegraded", message="m", effect=Effect.FAIL_AFTER_INTERVAL, names=("a",))],
            "wait has exceeded 40 minutes for these operators: a",
            False,
            False,
            id="degraded, nobody knows since when",
        ),
        pytest.param(
            [waiting("machine-config", 31)], "waiting on machine-config", True, False, id="machines take longer"
        ),
        pytest.param(
            [waiting("machine-config", 91)],
            f"waiting on machine-config over 90 minutes {SLOW}",
            True,
            True,
            id="machines late",
        ),
        pytest.param(
            [waiting("machine-config", 91), waiting("a", 31), waiting("b", 31)],
            f"waiting on a, b over 30 minutes and machine-config over 90 minutes {SLOW}",
            True,
            True,
            id="everybody late",
        ),
        pytest.param(
            [degraded("a", 39), degraded("b", 1)], "waiting up to 40 minutes on a, b", True, False, id="degraded"
        ),
        pytest.param(
            [degraded("a", 41), degraded("b", 1)],
            "wait has exceeded 40 minutes for these operators: a",
            False,
            False,
            id="degraded for too long",
        ),
    ],
)
def test_what_waiting_means(problems: list[Problem], text: str, progressing: bool, slow: bool) -> None:
    """Progress for a while, then slow or a failure; the words name who is late."""
    summary = summarize(problems)
    assert summary is not None
    verdict = evaluate_problem(summary.problem, now=NOW)
    assert (verdict.text, verdict.progressing, verdict.slow) == (text, progressing, slow)


def test_time_alone_brings_the_next_verdict() -> None:
    """Nothing need change for a wait to become too long: it says when."""
    summary = summarize([waiting("a", 10)])
    assert summary is not None
    assert evaluate_problem(summary.problem, now=NOW).next_look == NOW + timedelta(minutes=20)


@pytest.mark.parametrize(
    ("problems", "minutes"),
    [
        pytest.param([waiting("a", 10), waiting("b", 25)], 5, id="the next of two"),
        pytest.param([waiting("a", 30)], 0, id="now"),
        pytest.param([waiting("a", 31)], None, id="it is late already"),
        pytest.param([waiting("a", 31), waiting("b", 1)], 29, id="one of two is late"),
        pytest.param([waiting("a", 29), waiting("machine-config", 31)], 1, id="machines take longer"),
        pytest.param([degraded("a", 10)], 30, id="degraded"),
        pytest.param([Problem(reason="X", message="m")], None, id="a failure"),
    ],
)
def test_when_to_look_again(problems: list[Problem], minutes: int | None) -> None:
    """When the next operator will have been waited for too long."""
    summary = summarize(problems)
    assert summary is not None
    expected = None if minutes is None else NOW + timedelta(minutes=minutes)
    assert evaluate_problem(summary.problem, now=NOW).next_look == expected


EFFECTS = [
    pytest.param((Effect.REPORT, Effect.NONE), Effect.FAIL, Effect.NONE, id="reported and progress"),
    pytest.param(
        (Effect.FAIL_AFTER_INTERVAL, Effect.NONE),
        Effect.FAIL,
        Effect.FAIL_AFTER_INTERVAL,
        id="fails later and progress",
    ),
    pytest.param((Effect.FAIL_AFTER_INTERVAL, Effect.FAIL), Effect.FAIL, Effect.FAIL, id="fails later and fails"),
    pytest.param((Effect.NONE, Effect.NONE), Effect.NONE, Effect.NONE, id="progress"),
]


@pytest.mark.parametrize(("effects", "of_two_reasons", "of_one_reason"), EFFECTS)
def test_the_effect_of_several_problems(
    effects: tuple[Effect, Effect], of_two_reasons: Effect, of_one_reason: Effect
) -> None:
    """Several reasons are a failure unless all are progress; of operators with one reason the worst effect counts."""
    for first, second in (effects, effects[::-1]):
        apart = summarize(
            [Problem(reason=n, message=n, effect=each, names=(n,)) for n, each in (("a", first), ("b", second))]
        )
        same = summarize(
            [
                Problem(reason="A", message=n, effect=each, names=(n,), plural="As", predicate="are")
                for n, each in (("a", first), ("b", second))
            ]
        )
        assert apart is not None and same is not None
        assert (apart.problem.effect, same.problem.effect) == (of_two_reasons, of_one_reason)


def test_problems_of_one_reason_and_other_words_are_two() -> None:
    """Only what can be said in the plural is one; nested, they are in the order of their words."""
    found = summarize(
        [
            Problem(reason="A", message="y"),
            Problem(reason="B", message="a"),
            Problem(reason="A", message="x"),
            Problem(reason="A", message="x"),
        ]
    )
    assert found is not None
    assert [(each.reason, each.message) for each in found.nested] == [("A", "x"), ("A", "y"), ("B", "a")]
    assert summarize([]) is None


FAILED = Problem(reason="UpdatePayloadResourceForbidden", message="Could not update x")


def test_operators_of_one_reason_are_one_problem() -> None:
    """In the plural, by name."""
    summary = summarize([degraded("b", 1), degraded("a", 1)])
    assert summary is not None
    assert not summary.nested
    assert (summary.problem.reason, summary.problem.message) == (
        "ClusterOperatorsDegraded",
        "Cluster operators a, b are degraded",
    )


def test_several_problems_are_told_together() -> None:
    """Sorted, each once, as lines."""
    summary = summarize([waiting("a", 1), FAILED, FAILED])
    assert summary is not None
    assert summary.problem.reason == "MultipleErrors"
    assert summary.problem.message == (
        "Multiple errors are preventing progress:\n* Cluster operator a is updating versions\n* Could not update x"
    )
    left = without_progress(summary)
    assert left is not None
    assert left.problem == FAILED
    assert evaluate_problem(left.problem, now=NOW) == Verdict(False)


def test_only_progress_leaves_no_failure() -> None:
    """A filter may remove every problem."""
    summary = summarize([waiting("a", 1), Problem(reason="X", message="x", effect=Effect.NONE, names=("x",))])
    assert summary is not None
    assert without_progress(summary) is None


def test_objects_that_are_waited_for_make_no_second_error() -> None:
    """An operator keeps its grace period while an object is waited for, too."""
    definition = Problem(reason="WaitingForObject", message="waiting on crd x", effect=Effect.NONE)
    assert summarize([degraded("a", 1), definition]) == summarize([degraded("a", 1)])


@pytest.mark.parametrize(
    ("problem", "text"),
    [
        pytest.param(FAILED, "the server is rejecting updates", id="a reason of its own"),
        pytest.param(degraded("a", 1), "the cluster operator a is degraded", id="an operator"),
        pytest.param(
            Problem(reason="WorkloadNotAvailable", message="m"),
            "a workload has not yet successfully rolled out",
            id="work",
        ),
        pytest.param(
            Problem(reason="UpdatePayloadFailed", message="m"),
            "the update could not be applied",
            id="the rest of a release",
        ),
        pytest.param(
            Problem(reason="Odd", message="m"), "an unknown error has occurred: Odd", id="a reason that nobody knows"
        ),
        pytest.param(Problem(reason="", message="m"), "an error occurred", id="no reason at all"),
    ],
)
def test_in_few_words(problem: Problem, text: str) -> None:
    """What Progressing says about it."""
    assert summary_of(problem) == text


WORDS = {
    "UpdatePayloadResourceNotFound": "some resources could not be updated",
    "UpdatePayloadResourceConflict": "some resources could not be updated",
    "UpdatePayloadClusterDown": "the control plane is down or not responding",
    "UpdatePayloadClusterError": "the control plane is reporting an internal error",
    "UpdatePayloadClusterOverloaded": "the control plane is overloaded and is not accepting updates",
    "UpdatePayloadClusterUnauthorized": "could not authenticate to the server",
    "UpdatePayloadRetrievalFailed": "could not download the update",
    "UpdatePayloadResourceForbidden": "the server is rejecting updates",
    "UpdatePayloadResourceTypeMissing": "a required extension is not available to update",
    "UpdatePayloadResourceInvalid": "some cluster configuration is invalid",
    "UpdatePayloadIntegrity": "the contents of the update are invalid",
    "ImageVerificationFailed": "the image may not be safe to use",
    "UpgradePreconditionCheckFailed": "it may not be safe to apply this update",
    "ClusterOperatorDegraded": "the cluster operator a is degraded",
    "ClusterOperatorNotAvailable": "the cluster operator a is not available",
    "ClusterOperatorNoVersions": "the cluster operator a does not declare expected versions",
    "ClusterOperatorsNotAvailable": "some cluster operators are not available",
    "WorkloadNotAvailable": "the workload a has not yet successfully rolled out",
    "WorkloadNotProgressing": "the workload a cannot roll out",
    "UpdatePayloadSomethingElse": "the update could not be applied",
    "SomethingElse": "a has an unknown error: SomethingElse",
}


@pytest.mark.parametrize(("reason", "text"), WORDS.items(), ids=WORDS)
def test_every_reason_in_few_words(reason: str, text: str) -> None:
    """Upstream's words for each (docs/reference/upstream.md 6.1), of something called `a`."""
    assert summary_of(Problem(reason=reason, message="m", names=("a",))) == text
