"""Turns of a fleet update: order, places, mutexes, failures and gates of stages. Pure."""

from __future__ import annotations

import random
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.few_or_many import few_or_many
from tests.rollout.observed_cluster import DIGEST, IMAGE, NIGHTS, NOW

from kubekit.api import codec
from runup.api.fleet_update_v1alpha1 import FleetUpdate
from runup.fleet.decide.update_turns import ClusterProgress, Decisions, Turns, decide_turns, waves
from runup.rollout.decide.gates.gate import Gate
from runup.rollout.decide.gates.observed import Approval

HOUR = timedelta(hours=1)


def fleet_update(*stages: dict[str, Any], **spec: Any) -> FleetUpdate:
    """A FleetUpdate with these stages."""
    named = [{"name": f"s{index}", **stage} for index, stage in enumerate(stages)]
    body = {"target": {"version": "5.1.0", "image": IMAGE}, "stages": named, **spec}
    return codec.convert(FleetUpdate, {"metadata": {"name": "5.1"}, "spec": body})


def places(number: int | str, **stage: Any) -> dict[str, Any]:
    """A stage that updates so many clusters at once."""
    return {"rollout": {"type": "Progressive", "progressive": {"maxConcurrency": number}}, **stage}


def cluster(name: str, state: Any = "ready", stage: int = 0, **changes: Any) -> ClusterProgress:
    """A cluster in this state."""
    fields: dict[str, Any] = {"begun": state == "running", "started": state == "running"}
    if state in ("done", "skipped"):
        fields |= {"settled": NOW - HOUR}
    return ClusterProgress(name=name, stage=stage, state=state, **fields | changes)


def turns(update: FleetUpdate, *clusters: ClusterProgress, at: Any = NOW, **decisions: Any) -> Turns:
    """The turns at `at`."""
    return decide_turns(update, clusters, Decisions(**decisions), {"nights": NIGHTS}, now=at)


UNKNOWN_GATE = Gate(name="preflight", state="Unknown", reason="PreflightMissing", message="m")
APPROVAL = {"type": "Approval", "name": "go"}
GIVEN = Approval(gate="go", approved_by="jane", created=NOW - HOUR, image_digests=(DIGEST,))


@pytest.mark.parametrize(
    ("clusters", "granted", "refused"),
    [
        pytest.param([cluster("a"), cluster("b"), cluster("c")], {"a", "b"}, {"c": "NoTurn"}, id="two places"),
        pytest.param([cluster("a", "running"), cluster("b"), cluster("c")], {"b"}, {"c": "NoTurn"}, id="one is taken"),
        pytest.param(
            [cluster("a", "unknown", begun=True, started=True), cluster("b"), cluster("c")],
            {"b"},
            {"c": "NoTurn"},
            id="an unreachable cluster keeps its place",
        ),
        pytest.param([cluster("a", "unknown"), cluster("b"), cluster("c")], {"b", "c"}, {}, id="it had no place"),
        pytest.param([cluster("a", "waiting"), cluster("b"), cluster("c")], {"b", "c"}, {}, id="a closed gate"),
        pytest.param([cluster("a", "done"), cluster("b"), cluster("c")], {"b", "c"}, {}, id="a done cluster"),
        pytest.param(
            [cluster("a"), cluster("b"), cluster("z", "running", started=False)],
            {"a", "z"},
            {"b": "NoTurn"},
            id="an intended start is not overtaken",
        ),
        pytest.param(
            [cluster("a", "failed"), cluster("b"), cluster("z", "running", started=False)],
            set(),
            {"b": "TooManyFailures", "z": "TooManyFailures"},
            id="a failure also stops an intended start",
        ),
        pytest.param(
            [cluster("a", "unknown", begun=True, started=True, overdue=True), cluster("b")],
            set(),
            {"b": "TooManyFailures"},
            id="unreachable beyond its deadlines",
        ),
    ],
)
def test_places_of_a_stage(clusters: Sequence[ClusterProgress], granted: set[str], refused: dict[str, str]) -> None:
    """A stage with two places, in which no cluster may fail."""
    found = turns(fleet_update(places(2)), *clusters)
    assert found.granted == granted
    assert {name: gate.reason for name, gate in found.refused.items()} == refused
    assert {gate.state for gate in found.refused.values()} <= {"Closed"}


@pytest.mark.parametrize(("control", "reason", "outcome"), [("Hold", "Held", "Held"), ("Abort", "Aborted", "Aborted")])
def test_nothing_starts_while_held(control: Any, reason: str, outcome: str) -> None:
    """Nor is an intended start carried out; what has begun continues."""
    clusters = [cluster("a"), cluster("b", "running", started=False), cluster("c", "running")]
    found = turns(fleet_update({"rollout": {"type": "All"}}), *clusters, control=control)
    assert (found.granted, {gate.reason for gate in found.refused.values()}) == (frozenset(), {reason})
    assert {gate.state for gate in found.refused.values()} == {"Closed"}
    assert (found.outcome, found.over) == (outcome, False)
    assert turns(fleet_update({}), cluster("a"), control=control).over


@pytest.mark.parametrize(
    ("states", "granted"),
    [
        pytest.param({"a": "ready", "b": "ready"}, {"a"}, id="one at a time"),
        pytest.param({"a": "running", "b": "ready"}, set(), id="one runs"),
        pytest.param({"a": "failed", "b": "ready"}, set(), id="a failed cluster keeps its mutex"),
        pytest.param({"a": "skipped", "b": "ready"}, {"b"}, id="a skipped cluster does not"),
        pytest.param({"a": "done", "b": "ready"}, {"b"}, id="a done cluster does not"),
    ],
)
def test_mutexes_hold_across_stages(states: dict[str, Any], granted: set[str]) -> None:
    """Clusters with the same value of the label; a cluster without the label is not affected."""
    update = fleet_update({"minDone": "0%"}, {"rollout": {"type": "All"}}, mutexes=[{"label": "site"}], maxFailures="1")
    same = [
        cluster(name, state, stage=index, labels={"site": "x"}) for index, (name, state) in enumerate(states.items())
    ]
    others = [cluster("c", stage=1, labels={"site": "y"}), cluster("d", stage=1)]
    found = turns(update, *same, *others)
    assert found.granted == granted | {"c", "d"}
    assert [gate.state for gate in found.refused.values() if gate.reason == "MutexTaken"] == ["Closed"] * (
        "b" not in granted
    )


@pytest.mark.parametrize(
    ("gates", "at", "approvals", "reasons"),
    [
        pytest.param([], NOW, {}, [], id="none"),
        pytest.param([APPROVAL], NOW, {}, ["ApprovalMissing"], id="no approval"),
        pytest.param([APPROVAL], NOW, {"s1": (GIVEN,)}, [], id="approved"),
        pytest.param([APPROVAL], NOW, {"s0": (GIVEN,)}, ["ApprovalMissing"], id="of another stage"),
        pytest.param([APPROVAL], NOW + 8 * 24 * HOUR, {"s1": (GIVEN,)}, ["ApprovalEnded"], id="an approval ends"),
        pytest.param(
            [{**APPROVAL, "count": 2}], NOW, {"s1": (GIVEN, GIVEN)}, ["ApprovalMissing"], id="one person counts once"
        ),
        pytest.param([{"type": "Soak", "for": "2h"}], NOW, {}, ["Soaking"], id="done for an hour"),
        pytest.param([{"type": "Soak", "for": "2h"}], NOW + HOUR, {}, [], id="done for two hours"),
        pytest.param([{"type": "NotBefore", "at": "2027-02-02T22:00:01Z"}], NOW, {}, ["NotBefore"], id="too early"),
        pytest.param([{"type": "NotBefore", "at": "2027-02-02T22:00:00Z"}], NOW, {}, [], id="at that time"),
        pytest.param([{"type": "Calendar", "name": "nights"}], NOW, {}, [], id="in a window"),
        pytest.param([{"type": "Calendar", "name": "nights"}], NOW + 12 * HOUR, {}, ["OutsideWindow"], id="by day"),
        pytest.param([{"type": "Calendar", "name": "days"}], NOW, {}, ["InvalidCalendar"], id="no such calendar"),
    ],
)
@pytest.mark.parametrize("place", ["before", "after"])
def test_gates_between_stages(place: str, gates: list[Any], at: Any, approvals: Any, reasons: list[str]) -> None:
    """They may belong to the end of one stage or to the beginning of the next one."""
    if place == "after":
        approvals = {"s0" if name == "s1" else "s1": given for name, given in approvals.items()}
    stages: list[dict[str, Any]] = [{}, {}]
    stages[place == "before"][place] = gates
    clusters = [cluster("a", "done"), cluster("b", stage=1)]
    found = turns(fleet_update(*stages), *clusters, at=at, approvals=approvals)
    assert [gate.reason for gate in found.stages[1].closed] == reasons
    assert found.granted == (frozenset() if reasons else {"b"})


@pytest.mark.parametrize(
    ("min_done", "states", "granted"),
    [
        ("100%", ["done", "done", "waiting"], set()),
        ("100%", ["done", "skipped", "done"], {"m"}),
        ("60%", ["done", "done", "waiting"], {"m"}),
        ("60%", ["done", "failed", "failed"], set()),
        ("2", ["done", "done", "ready"], {"c", "m"}),
    ],
)
def test_the_next_stage_needs_enough_done(min_done: str, states: list[Any], granted: set[str]) -> None:
    """A failed cluster is not done; the rest of a stage may start later."""
    members = [cluster(name, state) for name, state in zip("abc", states, strict=True)]
    found = turns(fleet_update({"minDone": min_done}, {}, maxFailures="2"), *members, cluster("m", stage=1))
    assert found.granted == granted
    assert {gate.state for gate in found.stages[1].closed} == (set() if "m" in granted else {"Closed"})


@pytest.mark.parametrize(
    ("stage", "clusters", "outcome", "code"),
    [
        pytest.param({}, [cluster("a", "done")], "Done", 0, id="all done"),
        pytest.param({}, [cluster("a", "done"), cluster("b", "running")], "Running", 2, id="one runs"),
        pytest.param({}, [cluster("a", "waiting")], "GatesClosed", 2, id="closed"),
        pytest.param({}, [cluster("a", "unknown"), cluster("b", "done")], "Unknown", 3, id="unreachable"),
        pytest.param({}, [cluster("a", "waiting", gate=UNKNOWN_GATE)], "Unknown", 3, id="a gate is unknown"),
        pytest.param({}, [cluster("a", "failed"), cluster("b", "done")], "Failed", 1, id="too many failures"),
        pytest.param({}, [cluster("a", "failed"), cluster("b", "running")], "Failed", 1, id="though one still runs"),
        pytest.param({"before": [APPROVAL]}, [cluster("a")], "ApprovalMissing", 4, id="an approval is missing"),
        pytest.param({"after": [APPROVAL]}, [cluster("a", "done")], "ApprovalMissing", 4, id="at the end"),
        pytest.param({"after": [{"type": "Soak", "for": "9h"}]}, [cluster("a", "done")], "GatesClosed", 2, id="soak"),
    ],
)
def test_the_outcome_and_its_exit_code(stage: Any, clusters: list[ClusterProgress], outcome: str, code: int) -> None:
    """Unknown is not closed, and done is only what is done to the end."""
    found = turns(fleet_update(stage), *clusters)
    assert (found.outcome, found.exit_code) == (outcome, code)


def test_a_failure_that_is_allowed_ends_a_stage_that_cannot_be_complete() -> None:
    """With `minDone` 100% a person must retry or skip it, with less the update is done."""
    clusters = [cluster("a", "failed"), cluster("b", "done")]
    assert turns(fleet_update({}, maxFailures="1"), *clusters).outcome == "Failed"
    assert turns(fleet_update({"minDone": "50%"}, maxFailures="1"), *clusters).outcome == "Done"


def test_waves_follow_places_mutexes_and_stages() -> None:
    """Clusters that have ended are in no wave."""
    update = fleet_update({}, places(2), mutexes=[{"label": "site"}])
    main = [cluster(name, stage=1, labels={"site": site}) for name, site in (("c", "x"), ("d", "x"), ("e", "y"))]
    assert waves(update, [cluster("a", "done"), cluster("b"), *main]) == (("b",), ("c", "e"), ("d",))


def test_46_waves_are_the_turns_that_follow() -> None:
    """In 100 random fleets each wave of the plan is what then starts at once, if the wave before is done."""
    for seed in range(100):
        rng = random.Random(seed)
        stages = [places(rng.choice([1, 2, 3, "50%"])) if rng.random() < 0.8 else {} for _ in range(rng.randint(1, 3))]
        update = fleet_update(*stages, mutexes=[{"label": "site"}])
        clusters = [
            cluster(f"{stage}{number}", rng.choice(["ready", "ready", "ready", "done"]), stage, labels=labels)
            for stage in range(len(stages))
            for number in range(rng.randint(1, 5))
            for labels in [{"site": rng.choice("xyz")} if rng.random() < 0.5 else {}]
        ]
        planned, started = waves(update, clusters), []
        while granted := turns(update, *clusters).granted:
            started.append(tuple(sorted(granted)))
            clusters = [
                cluster(each.name, "done", each.stage, labels=each.labels) if each.name in granted else each
                for each in clusters
            ]
        assert (seed, tuple(started)) == (seed, tuple(tuple(sorted(names)) for names in planned))


STEPS = st.lists(st.tuples(st.integers(0, 7), st.sampled_from(["ready", "red", "done", "failed", "lost"])), max_size=60)


@few_or_many(25, 2000)
def test_never_more_than_the_places_or_one_of_a_mutex(examples: int) -> None:
    """Whatever the clusters do between passes: places, mutexes and the maximum of failures are never exceeded."""

    @settings(max_examples=examples, deadline=None, database=None)
    @given(steps=STEPS, limit=st.integers(1, 3), allowed=st.integers(0, 2))
    def holds(steps: list[tuple[int, str]], limit: int, allowed: int) -> None:
        update = fleet_update(places(1), places(limit), mutexes=[{"label": "site"}], maxFailures=str(allowed))
        clusters = [cluster(str(n), "waiting", stage=int(n > 1), labels={"site": str(n % 3)}) for n in range(8)]
        for index, event in steps:
            each = clusters[index]
            if event in ("ready", "red") and not each.begun and each.state in ("ready", "waiting"):
                clusters[index] = replace(each, state="ready" if event == "ready" else "waiting")
            elif event in ("done", "failed") and each.begun:
                clusters[index] = cluster(each.name, event, each.stage, labels=each.labels)
            elif event == "lost" and each.begun:
                clusters[index] = replace(each, state="unknown")
            failures = sum(each.state == "failed" for each in clusters)
            found = turns(update, *clusters)
            started = [each.name for each in clusters if each.name in found.granted and not each.begun]
            assert not (started and failures > allowed)
            clusters = [
                replace(each, state="running", begun=True, started=True) if each.name in started else each
                for each in clusters
            ]
            for stage, most in enumerate((1, limit)):
                assert sum(each.holds_place for each in clusters if each.stage == stage) <= most
            sites = [each.labels["site"] for each in clusters if each.holds_place]
            assert len(sites) == len(set(sites))
            if any(each.begun for each in clusters if each.stage == 1):
                assert all(each.state in ("done", "skipped") for each in clusters if each.stage == 0)

    holds()
