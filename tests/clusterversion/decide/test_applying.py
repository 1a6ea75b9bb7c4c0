"""What the progress of applying says in ClusterVersion: conditions word for word, history, capabilities, requests."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from msgspec.structs import replace as with_fields
from tests.clusterversion.decide.world import World, image
from tests.factories import NOW

from kubekit.api.meta_v1 import Condition
from runup.api.config_v1 import (
    CapabilitiesSpec,
    ClusterOperator,
    ClusterOperatorStatus,
    ComponentOverride,
    OperandVersion,
    Release,
    Update,
)
from runup.applying.decide.health import operator_problem
from runup.applying.decide.progress import ApplyReason, Effect, Loading, Problem
from runup.clusterversion.decide.applying import load_work
from runup.clusterversion.decide.work import ApplyRelease, LoadRelease

FORBIDDEN = Problem(reason="UpdatePayloadResourceForbidden", message='Could not update configmap "a/b" (1 of 3)')


def behind(world: World, *names: str, minutes: float = 1) -> tuple[Problem, ...]:
    """Operators that are on their way since so long."""
    since = world.now - timedelta(minutes=minutes)
    return tuple(
        Problem(
            reason="ClusterOperatorUpdating",
            message=f"Cluster operator {name} is updating versions",
            effect=Effect.NONE,
            names=(name,),
            plural="ClusterOperatorsUpdating",
            predicate="are updating versions",
            since=((name, since),),
        )
        for name in names
    )


def kept() -> World:
    """A cluster whose release is applied and kept."""
    return World.new().applying().settle().worker_completes().settle()


def updating() -> World:
    """The same, on its way to 5.0.3."""
    return kept().ask(Update(version="5.0.3", image=image("5.0.3"))).settle()


def conditions_of(world: World) -> dict[str, tuple[str, str, str]]:
    """Status, reason and message of what applying says."""
    types = ("Available", "Failing", "Progressing")
    return {c.type: (c.status, c.reason, c.message) for c in world.version.status.conditions if c.type in types}


@pytest.mark.parametrize(
    ("worker", "failing", "progressing"),
    [
        pytest.param({}, ("False", "", ""), ("True", "", "Working towards 5.0.3"), id="just asked"),
        pytest.param(
            {"done": 1},
            ("False", "", ""),
            ("True", "", "Working towards 5.0.3: 1 of 3 done (33% complete)"),
            id="on its way",
        ),
        pytest.param(
            {"done": 2, "waits": ("b", "a")},
            ("False", "", ""),
            (
                "True",
                "ClusterOperatorsUpdating",
                "Working towards 5.0.3: 2 of 3 done (66% complete), waiting on a, b",
            ),
            id="waiting for operators",
        ),
        pytest.param(
            {"waits": ("a",)},
            ("False", "", ""),
            ("True", "ClusterOperatorUpdating", "Working towards 5.0.3: waiting on a"),
            id="waiting before anything is done",
        ),
        pytest.param(
            {"done": 2, "waits": ("a",), "minutes": 31},
            ("Unknown", "SlowClusterOperator", "waiting on a over 30 minutes which is longer than expected"),
            (
                "True",
                "ClusterOperatorUpdating",
                "Working towards 5.0.3: 2 of 3 done (66% complete), "
                "waiting on a over 30 minutes which is longer than expected",
            ),
            id="waiting for long",
        ),
        pytest.param(
            {"done": 2, "problems": (FORBIDDEN,)},
            ("True", FORBIDDEN.reason, FORBIDDEN.message),
            ("True", FORBIDDEN.reason, "Unable to apply 5.0.3: the server is rejecting updates"),
            id="failing",
        ),
        pytest.param(
            {"done": 2, "problems": (FORBIDDEN,), "waits": ("a",)},
            ("True", FORBIDDEN.reason, FORBIDDEN.message),
            ("True", "MultipleErrors", "Unable to apply 5.0.3: an unknown error has occurred: MultipleErrors"),
            id="failing and waiting: what is progress is no failure",
        ),
    ],
)
def test_reports_an_update(
    worker: dict[str, Any], failing: tuple[str, str, str], progressing: tuple[str, str, str]
) -> None:
    """The running release stays Available, and is said to be."""
    world = updating()
    waits = behind(world, *worker.pop("waits", ()), minutes=worker.pop("minutes", 1))
    world.worker_says(**worker | {"problems": (*worker.get("problems", ()), *waits)}).settle()
    assert conditions_of(world) == {
        "Available": ("True", "", "Done applying 5.0.0"),
        "Failing": failing,
        "Progressing": progressing,
    }
    assert world.version.status.history[0].completion_time is None


def test_what_is_kept_is_told() -> None:
    """And what goes wrong with it then."""
    world = kept()
    assert conditions_of(world) == {
        "Available": ("True", "", "Done applying 5.0.0"),
        "Failing": ("False", "", ""),
        "Progressing": ("False", "", "Cluster version is 5.0.0"),
    }
    world.worker_says(problems=(FORBIDDEN,)).settle()
    assert conditions_of(world)["Progressing"] == (
        "False",
        FORBIDDEN.reason,
        "Error while reconciling 5.0.0: the server is rejecting updates",
    )


JOB = Problem(reason="WaitingForObject", message="waiting on job ns/preview has not finished yet", effect=Effect.NONE)
OTHER_JOB = Problem(
    reason="WaitingForObject", message="waiting on job ns/other has not finished yet", effect=Effect.NONE
)


@pytest.mark.parametrize(
    ("problems", "progressing"),
    [
        pytest.param(
            (JOB,),
            ("WaitingForObject", "Cluster version is 5.0.0, waiting on job ns/preview has not finished yet"),
            id="an unfinished Job",
        ),
        pytest.param(
            (JOB, OTHER_JOB),
            (
                "WaitingForObject",
                "Cluster version is 5.0.0, waiting on job ns/other has not finished yet; "
                "waiting on job ns/preview has not finished yet",
            ),
            id="two of them",
        ),
    ],
)
def test_what_a_kept_release_waits_for_is_told(problems: tuple[Problem, ...], progressing: tuple[str, str]) -> None:
    """Its manifests may be others than before: a feature set was turned on, and the operator started again."""
    world = kept()
    world.worker_says(completed=False, problems=problems).settle()
    assert conditions_of(world) == {
        "Available": ("True", "", "Done applying 5.0.0"),
        "Failing": ("False", "", ""),
        "Progressing": ("False", *progressing),
    }


def test_a_wait_becomes_too_long_by_itself() -> None:
    """Nothing need change but the time, and the pass says when to look."""
    world = updating()
    world.worker_says(done=1, problems=behind(world, "a", minutes=29)).settle()
    assert world.plans[-1].requeue_after_s == 60
    world.pass_time(61).settle()
    assert world.condition("Failing") == ("Unknown", "SlowClusterOperator")


def test_an_update_is_completed_once() -> None:
    """The time of its completion does not move when it is kept."""
    world = updating().worker_completes().settle()
    done = world.version.status.history[0]
    assert (done.state, done.version) == ("Completed", "5.0.3")
    world.pass_time(600).worker_says(problems=(FORBIDDEN,)).settle()
    assert world.version.status.history[0] == done
    assert [entry.version for entry in world.version.status.history] == ["5.0.3", "5.0.0"]


def test_the_own_release_is_not_fetched() -> None:
    """The operator runs in it."""
    world = World.new().applying().change(loads={})
    world.step()
    assert LoadRelease not in world.ran


def test_an_invalid_spec_stops_at_what_there_is() -> None:
    """The release is kept all the same."""
    world = kept().ask(Update(version="x")).settle()
    assert conditions_of(world)["Progressing"] == (
        "False",
        "InvalidClusterVersion",
        "Stopped at 5.0.0: the cluster version is invalid",
    )


def test_what_is_asked_of_the_worker() -> None:
    """Its own release, as history sees it; nothing again while it works on that."""
    fresh = World.new(history=()).applying().settle()
    assert fresh.ran.count(ApplyRelease) == 1
    assert fresh.observed.progress is not None
    assert fresh.observed.progress.state is ApplyReason.INITIALIZING
    known = World.new().applying().settle()
    assert known.observed.progress is not None
    assert known.observed.progress.state is ApplyReason.RECONCILING
    going = updating()
    assert going.observed.progress is not None
    assert (going.observed.progress.state, going.observed.progress.wanted.version) == (ApplyReason.UPDATING, "5.0.3")


@pytest.mark.parametrize(
    "spec",
    [
        pytest.param(
            {
                "overrides": (
                    ComponentOverride(kind="Deployment", group="apps", namespace="n", name="d", unmanaged=True),
                )
            },
            id="an override",
        ),
        pytest.param({"capabilities": CapabilitiesSpec(baseline_capability_set="None")}, id="nothing: they stay on"),
    ],
)
def test_what_decides_which_manifests_the_cluster_gets(spec: dict[str, Any]) -> None:
    """A change is asked of the worker at once; history stays as it is."""
    world = kept()
    before = world.observed.progress
    version = world.version
    world.change(cluster_version=with_fields(version, spec=with_fields(version.spec, **spec))).settle()
    after = world.observed.progress
    assert before is not None and after is not None and before.wanted is not None and after.wanted is not None
    changed = before.wanted.filters.overrides != after.wanted.filters.overrides
    assert changed is ("overrides" in spec)
    assert world.version.status.history == version.status.history


def test_capabilities_are_told() -> None:
    """Which are on, and which were not asked for."""
    world = kept()
    version = world.version
    spec = with_fields(version.spec, capabilities=CapabilitiesSpec(baseline_capability_set="v4.11"))
    world.change(cluster_version=with_fields(version, spec=spec)).settle()
    assert "Console" in world.version.status.capabilities.enabled_capabilities
    assert world.condition("ImplicitlyEnabledCapabilities") == ("True", "CapabilitiesImplicitlyEnabled")
    assert world.message("ImplicitlyEnabledCapabilities").startswith(
        "The following capabilities could not be disabled: Build, CSISnapshot"
    )


def test_a_release_that_cannot_be_had_changes_nothing() -> None:
    """It is asked for again after a while, and accepted once it is there."""
    world = kept()
    world.registry = False
    world.ask(Update(version="5.0.3", image=image("5.0.3"))).settle()
    assert world.condition("ReleaseAccepted") == ("False", "RetrievePayload")
    assert conditions_of(world)["Progressing"][2] == "Cluster version is 5.0.0"
    world.registry = True
    world.settle()
    assert world.condition("ReleaseAccepted") == ("False", "RetrievePayload")
    world.pass_time(61).settle()
    assert world.version.status.desired.version == "5.0.3"


def test_an_operator_that_starts_in_the_middle_of_an_update_fetches_it_again() -> None:
    """Its own release is not what it works towards; while that is fetched the status says where it stands."""
    world = updating()
    started = world.change(
        progress=replace(World.new().applying().observed.progress),
        loads={k: v for k, v in world.observed.loads.items() if k == world.observed.facts.release.image},
    )
    started.registry = False
    started.settle()
    assert started.version.status.desired.version == "5.0.3"
    assert conditions_of(started)["Progressing"][2] == "Unable to apply 5.0.3: could not download the update"
    started.registry = True
    started.pass_time(61).settle()
    assert started.observed.progress is not None
    assert started.observed.progress.wanted is not None
    assert started.observed.progress.wanted.version == "5.0.3"
    assert started.condition("Failing") == ("False", "")


@pytest.mark.parametrize(
    ("load", "due"),
    [
        pytest.param(None, True, id="nobody has loaded it"),
        pytest.param(Loading(running=True), False, id="it is being loaded"),
        pytest.param(Loading(error="no answer", at=NOW), False, id="it failed just now"),
        pytest.param(Loading(error="no answer", at=NOW - timedelta(seconds=59)), False, id="it failed a while ago"),
        pytest.param(Loading(error="no answer", at=NOW - timedelta(seconds=60)), True, id="its time has come"),
        pytest.param(Loading(error="no answer", at=NOW + timedelta(days=1)), True, id="the clock was set back since"),
    ],
)
def test_when_a_release_is_loaded_again(load: Loading | None, due: bool) -> None:
    """A minute after it failed, by whatever clock."""
    release = Release(version="5.1.0", image="registry.example/release@sha256:" + "5" * 64)
    assert load_work(release, load, NOW) == ((LoadRelease(release),) if due else ())


def test_nothing_else_is_applied_while_the_feature_gate_is_unreadable() -> None:
    """Another feature set's manifests would be applied. The applied release stays, and Failing gives the reason."""
    world = kept()
    applied = world.observed.progress
    world.change(feature_gate=None, feature_gate_error="forbidden").settle()
    assert world.observed.progress == applied
    fresh = World.new().applying().change(feature_gate=None, feature_gate_error="forbidden").settle()
    assert fresh.observed.progress is not None
    assert fresh.observed.progress.wanted is None
    failing = ("True", "FeatureGateUnreadable")
    assert fresh.condition("Failing") == failing
    assert (
        fresh.message("Failing")
        == "FeatureGate cluster cannot be read, so no manifest is applied until it can: forbidden"
    )
    fresh.change(feature_gate_error="").settle()
    assert fresh.observed.progress.wanted is not None


def installing() -> World:
    """A cluster on which no release was completed yet."""
    return World.new(history=(), conditions=()).applying().settle()


STATES = {ApplyReason.INITIALIZING: installing, ApplyReason.UPDATING: updating, ApplyReason.RECONCILING: kept}
I, U, R = STATES  # noqa: E741
OPERATORS: dict[str, tuple[dict[str, str], str]] = {
    "unavailable": ({"Available": "False", "Degraded": "False"}, "2"),
    "without conditions": ({}, "2"),
    "degraded": ({"Available": "True", "Degraded": "True"}, "2"),
    "without Degraded": ({"Available": "True"}, "2"),
    "of another version": ({"Available": "True", "Degraded": "False"}, "1"),
}
NOT_AVAILABLE, DEGRADED = ("True", "ClusterOperatorNotAvailable"), ("True", "ClusterOperatorDegraded")
OUTDATED, FINE, LATE = ("True", "ClusterOperatorUpdating"), ("False", ""), ("Unknown", "SlowClusterOperator")
# Failing by problem of a ClusterOperator, state of the run, and time: after 0, 1, 31 and 41 minutes.
FAILING_TABLE: list[tuple[str, ApplyReason, list[tuple[str, str]]]] = [
    ("unavailable", I, [FINE, NOT_AVAILABLE, NOT_AVAILABLE, NOT_AVAILABLE]),
    ("unavailable", U, [FINE, NOT_AVAILABLE, NOT_AVAILABLE, NOT_AVAILABLE]),
    ("unavailable", R, [NOT_AVAILABLE] * 4),
    ("without conditions", R, [NOT_AVAILABLE] * 4),
    ("degraded", I, [DEGRADED] * 4),
    ("degraded", U, [FINE, FINE, FINE, DEGRADED]),
    ("degraded", R, [DEGRADED] * 4),
    ("without Degraded", U, [FINE, FINE, FINE, DEGRADED]),
    ("without Degraded", R, [DEGRADED] * 4),
    ("of another version", I, [FINE] * 4),
    ("of another version", U, [FINE, FINE, LATE, LATE]),
    ("of another version", R, [OUTDATED] * 4),
]


def problem_of(
    name: str, operator: tuple[dict[str, str], str], state: ApplyReason, *, since: datetime, now: datetime
) -> Problem | None:
    """The problem of an operator with these conditions and this version, which the release wants at version 2."""
    conditions, version = operator
    found = ClusterOperator(
        status=ClusterOperatorStatus(
            conditions=tuple(Condition(type=type_, status=status) for type_, status in conditions.items()),  # type: ignore[arg-type]
            versions=(OperandVersion(name="operator", version=version),),
        )
    )
    wanted = (OperandVersion(name="operator", version="2"),)
    return operator_problem(name, wanted, operator=found, state=state, since=since, now=now)


@pytest.mark.parametrize(
    ("name", "state", "expected"), FAILING_TABLE, ids=[f"{name}, {state}" for name, state, _ in FAILING_TABLE]
)
def test_failing_by_problem_state_and_time(name: str, state: ApplyReason, expected: list[tuple[str, str]]) -> None:
    """The periods of grace are those of an update: a release that is kept fails at once, with the same message."""
    world = STATES[state]()
    since = world.now
    for minutes, condition in zip((0, 1, 31, 41), expected, strict=True):
        world.now = since + timedelta(minutes=minutes)
        problem = problem_of("a", OPERATORS[name], state, since=since, now=world.now)
        world.worker_says(state=state, problems=(problem,) if problem else ()).settle()
        assert world.condition("Failing") == condition, minutes
        if condition[0] == "True" and problem:
            assert world.message("Failing") == problem.message


# Progressing by the problems of operators a and b, state of the run, and minutes.
SLOW_TEXT = "which is longer than expected"
PROGRESSING_TABLE: list[tuple[tuple[str, ...], ApplyReason, int, str]] = [
    (("degraded",), U, 40, "Working towards 5.0.3: waiting up to 40 minutes on a"),
    (("degraded",), U, 41, "Unable to apply 5.0.3: wait has exceeded 40 minutes for these operators: a"),
    (("degraded", "degraded"), U, 41, "Unable to apply 5.0.3: wait has exceeded 40 minutes for these operators: a, b"),
    (("degraded", "of another version"), U, 1, "Unable to apply 5.0.3: an unknown error has occurred: MultipleErrors"),
    (("degraded", "unavailable"), U, 41, "Unable to apply 5.0.3: an unknown error has occurred: MultipleErrors"),
    (("degraded",), I, 0, "Unable to apply 5.0.0: Cluster operator a is degraded"),
    (("degraded",), R, 41, "Error while reconciling 5.0.0: the cluster operator a is degraded"),
    (("of another version",), U, 30, "Working towards 5.0.3: waiting on a"),
    (("of another version",), U, 31, f"Working towards 5.0.3: waiting on a over 30 minutes {SLOW_TEXT}"),
    (("unavailable",), U, 41, "Unable to apply 5.0.3: the cluster operator a is not available"),
]


@pytest.mark.parametrize(
    ("names", "state", "minutes", "text"),
    PROGRESSING_TABLE,
    ids=[f"{' and '.join(names)}, {state}, {minutes} minutes" for names, state, minutes, _ in PROGRESSING_TABLE],
)
def test_progressing_by_problem_state_and_time(
    names: tuple[str, ...], state: ApplyReason, minutes: int, text: str
) -> None:
    """As `convertErrorToProgressing` words it (openshift/cluster-version-operator pkg/cvo/status.go)."""
    world = STATES[state]()
    since = world.now
    world.now = since + timedelta(minutes=minutes)
    found = (problem_of(o, OPERATORS[n], state, since=since, now=world.now) for o, n in zip("ab", names, strict=False))
    world.worker_says(state=state, problems=tuple(each for each in found if each)).settle()
    assert conditions_of(world)["Progressing"][2] == text


WAIT = Problem(reason="WaitingForObject", message="waiting on crd x", effect=Effect.NONE)


@pytest.mark.parametrize(
    ("first", "second", "failing"),
    [
        ("degraded", "of another version", ("True", "ClusterOperatorDegraded", "Cluster operator a is degraded")),
        ("degraded", "degraded", ("False", "", "")),
        (
            "degraded",
            "unavailable",
            (
                "True",
                "MultipleErrors",
                "Multiple errors are preventing progress:\n* Cluster operator a is degraded\n"
                "* Cluster operator b is not available",
            ),
        ),
        ("of another version", "of another version", ("False", "", "")),
        ("degraded", WAIT, ("False", "", "")),
        ("of another version", WAIT, ("False", "", "")),
    ],
    ids=lambda value: value if isinstance(value, str) else "an object" if isinstance(value, Problem) else value[0],
)
def test_two_kinds_of_errors_of_an_update_get_no_grace_period(
    first: str, second: str | Problem, failing: tuple[str, str, str]
) -> None:
    """Upstream's MultipleErrors has no effect, and Failing names the errors that are no progress.

    Source: `newMultipleError` (pkg/cvo/sync_worker.go) and `filterErrorForFailingCondition` (pkg/cvo/status.go). An
    object that is waited for is an error only of ours.
    """
    world = updating()
    since, now = world.now, world.now + timedelta(minutes=2)
    world.now = now
    problems = [
        each if isinstance(each, Problem) else problem_of(name, OPERATORS[each], U, since=since, now=now)
        for name, each in (("a", first), ("b", second))
    ]
    world.worker_says(state=U, problems=tuple(each for each in problems if each)).settle()
    assert conditions_of(world)["Failing"] == failing


def test_progressing_names_objects_behind_operators() -> None:
    """An object that is waited for is named, too, while an update waits for an operator."""
    world = updating()
    outdated = problem_of("a", OPERATORS["of another version"], U, since=world.now, now=world.now)
    assert outdated is not None
    world.worker_says(state=U, problems=(WAIT, outdated)).settle()
    assert conditions_of(world)["Progressing"][2] == "Working towards 5.0.3: waiting on a; waiting on crd x"


@pytest.mark.parametrize("off", [timedelta(days=1), timedelta(days=-1)], ids=["ahead", "back"])
def test_a_clock_that_is_set_makes_no_operator_slow_or_fast(off: timedelta) -> None:
    """The time of the wait is from a clock that nobody sets: it counts 29 minutes, and two minutes later 31."""
    world = updating()
    began = world.now
    waits = behind(world, "a", minutes=29)
    world.now = began + off
    world.change(steady_now=began).worker_says(done=1, problems=waits).settle()
    assert world.condition("Failing") == ("False", "")
    assert world.plans[-1].requeue_after_s == 60
    world.change(steady_now=began + timedelta(minutes=2)).settle()
    assert world.condition("Failing") == ("Unknown", "SlowClusterOperator")
