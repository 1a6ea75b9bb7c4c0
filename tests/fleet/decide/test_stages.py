"""The stages of a fleet update on a hub: permits, the fuse, refusals, counts and conditions. Numbers are of cases."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace
from tests.fleet.decide.fleet_updates import (
    IMAGE,
    at,
    clusters,
    fleet_update,
    managed_cluster,
    observed,
    rollout,
    run,
    stage,
)

from kubekit.api.conditions import find
from kubekit.lang.text import timestamp
from runup.api.fleet_update_v1alpha1 import FleetUpdate
from runup.api.update_policy_v1alpha1 import FleetUpdateRef, UpdateApproval, UpdateApprovalSpec, UpdateCalendar
from runup.fleet.decide.hub_update.cluster_states import RunState, StageObserved, TurnState
from runup.fleet.decide.hub_update.engine_objects import set_name, turns_name
from runup.fleet.decide.hub_update.refusals import Refusal
from runup.fleet.decide.hub_update.stages import ACKNOWLEDGED, MAX_STATUS, HubObserved, HubOutcome, decide
from runup.rollout.decide.approvals import FoundApprovals

HOUR, MINUTE = timedelta(hours=1), timedelta(minutes=1)
RUNNING = {"name": "canary", "phase": "Running", "round": 1, "permitUntil": "2026-11-30T11:00:00Z"}
NAMES = ("a", "b", "c")


def hub(*stages: StageObserved, **changes: Any) -> HubObserved:
    """A hub that hears of every member of the stages."""
    names = [name for each in stages for name in (*(each.members or ()), *each.runs)]
    return HubObserved(**{"clusters": clusters(*names), "stages": stages, **changes})


def condition(outcome: HubOutcome, type_: str) -> tuple[str, str]:
    """Status and reason of a condition."""
    found = find(outcome.status.conditions, type_)
    assert found is not None
    return found.status, found.reason


def with_status(fleet: FleetUpdate, outcome: HubOutcome) -> FleetUpdate:
    """The FleetUpdate with the status that was stored."""
    return replace(fleet, status=outcome.status)


def permit(outcome: HubOutcome) -> Any:
    """The end of the permit that the runs of the first stage get."""
    manifest = outcome.replica_sets[0]["spec"]["manifestWorkTemplate"]["workload"]["manifests"][0]
    return manifest["spec"]["permitUntil"]


def test_gives_runs_before_turns() -> None:
    """All clusters of the first stage get their run at once; turns follow when the status is stored."""
    fleet = fleet_update(stage(), stage("main"))
    seen = hub(observed(NAMES), observed(("d",)))
    first = decide(fleet, seen, at("10:00"))
    assert [each["metadata"]["name"] for each in first.replica_sets] == [set_name(fleet, 0, "runs")]
    second = decide(with_status(fleet, first), seen, at("10:01"))
    assert [each["metadata"]["name"] for each in second.replica_sets] == [
        set_name(fleet, 0, "runs"),
        turns_name(fleet, 0, 1),
    ]
    assert [each.phase for each in second.status.stages] == ["Running", "Pending"]


@pytest.mark.parametrize(
    ("now", "expected"),
    [
        ("10:29", "2026-11-30T11:00:00Z"),
        ("10:30", "2026-11-30T11:30:00Z"),
        ("12:00", "2026-11-30T13:00:00Z"),
        # The clock was set back: no permit is longer than permitFor.
        ("09:00", "2026-11-30T10:00:00Z"),
    ],
)
def test_53_renews_a_permit_when_half_is_left(now: str, expected: str) -> None:
    """A hub that is dead renews nothing, so that nothing starts after permitFor."""
    fleet = fleet_update(status={"stages": [RUNNING]})
    assert permit(decide(fleet, hub(observed(NAMES)), at(now))) == expected


@pytest.mark.parametrize(
    ("changes", "seen", "what"),
    [
        ({"control": "Hold"}, {}, ("Held", "Hold")),
        ({"control": "Abort"}, {}, ("Held", "Abort")),
        ({}, {"a": run("Failed")}, ("Failed", "FuseBlown")),
        ({"mutexes": [{"label": "rack"}]}, {}, ("Ready", "MutexesOnHub")),
    ],
)
def test_40_41_ends_permits_at_once(changes: dict[str, Any], seen: dict[str, RunState], what: tuple[str, str]) -> None:
    """Hold, Abort, a blown fuse and a refusal end the permit now, and it stays at that time."""
    fleet = fleet_update(status={"stages": [RUNNING]}, **changes)
    here = hub(observed(NAMES, seen, sets=frozenset({set_name(fleet, 0, "runs"), turns_name(fleet, 0, 1)})))
    first = decide(fleet, here, at("10:20"))
    assert permit(first) == "2026-11-30T10:20:00Z"
    assert permit(decide(with_status(fleet, first), here, at("10:25"))) == "2026-11-30T10:20:00Z"
    assert condition(first, what[0])[1] == what[1]
    assert first.deleted == ()


def test_41_resumes_with_a_new_permit() -> None:
    """After Hold the permit is as long as ever, and the same turns continue."""
    held = {**RUNNING, "permitUntil": "2026-11-30T10:05:00Z"}
    outcome = decide(fleet_update(status={"stages": [held]}), hub(observed(NAMES)), at("10:20"))
    assert permit(outcome) == "2026-11-30T11:20:00Z"
    assert outcome.status.stages[0].round == 1


def test_38_begins_a_stage_after_soak_and_approval() -> None:
    """The next stage gets runs when enough clusters are done, and turns after its conditions hold."""
    main = stage("main", before=[{"type": "Approval", "name": "go"}])
    fleet = fleet_update(stage(after=[{"type": "Soak", "for": "24h"}]), main, status={"stages": [RUNNING]})
    done = dict.fromkeys(NAMES, run("Done"))
    seen = hub(observed(NAMES, done), observed(("d",)))
    first = decide(fleet, seen, at("10:20"))
    assert [each.phase for each in first.status.stages] == ["Running", "Checking"]
    fleet = with_status(fleet, first)
    assert decide(fleet, seen, at("10:30")).status.stages[1].message == "The soak ends at 2026-12-01T10:20:00Z."
    next_day = at("10:30") + timedelta(days=1)
    unapproved = decide(fleet, seen, next_day).status.stages[1]
    assert (unapproved.phase, unapproved.message) == ("Checking", "Approval go of 5.1.0 is missing: 0 of 1 given.")
    approved = replace(seen, approvals=FoundApprovals(found=(approval("main", next_day - HOUR),)))
    assert decide(fleet, approved, next_day).status.stages[1].phase == "Running"
    unverified = replace(approved, approvals=replace(approved.approvals, unverified="the policy is missing"))
    assert decide(fleet, unverified, next_day).status.stages[1].phase == "Checking"
    of_other_stage = replace(seen, approvals=FoundApprovals(found=(approval("canary", next_day - HOUR),)))
    assert decide(fleet, of_other_stage, next_day).status.stages[1].phase == "Checking"


@pytest.mark.parametrize(("now", "phase"), [("10:29", "Checking"), ("10:30", "Running"), ("10:31", "Running")])
def test_a_stage_begins_at_a_time(now: str, phase: str) -> None:
    """Not before the time of its condition."""
    fleet = fleet_update(stage(before=[{"type": "NotBefore", "at": "2026-11-30T10:30:00Z"}]))
    fleet = with_status(fleet, decide(fleet, hub(observed(NAMES)), at("10:00")))
    assert decide(fleet, hub(observed(NAMES)), at(now)).status.stages[0].phase == phase


@pytest.mark.parametrize(("round_", "kinds"), [(2, []), (3, ["OutOfRounds"])])
def test_55a_reports_a_cluster_after_the_last_round(round_: int, kinds: list[str]) -> None:
    """A cluster that did not use its turn gets another one, until the rounds of the stage are over."""
    yielded = {round_: {"a": TurnState(counts_as_done=True, done="Yielded")}}
    fleet = fleet_update(stage(rounds=3), status={"stages": [{**RUNNING, "round": round_}]})
    seen = observed(NAMES, {name: run() for name in NAMES}, turns=yielded)
    assert [each.kind for each in decide(fleet, hub(seen), at("10:20")).status.troubles] == kinds


def approval(of: str, created: datetime) -> UpdateApproval:
    """An approval of a stage."""
    ref = FleetUpdateRef(namespace="runup-fleet", name="five-one", stage=of)
    spec = UpdateApprovalSpec(fleet_update=ref, gate="go", approved_by="jane", image_digests=(IMAGE.partition("@")[2],))
    found = UpdateApproval(spec=spec)
    return replace(found, metadata=replace(found.metadata, creation_timestamp=created))


def test_a_withdrawn_approval_or_a_closed_calendar_ends_permits() -> None:
    """The conditions before a stage must hold for as long as its clusters may start."""
    window = {"timeZone": "UTC", "windows": [{"opens": "0 8 * * *", "for": "3h"}]}
    calendar = msgspec.convert({"metadata": {"name": "days"}, "spec": window}, UpdateCalendar)
    only = stage(before=[{"type": "Calendar", "name": "days"}])
    fleet = fleet_update(only, status={"stages": [RUNNING]})
    seen = hub(observed(NAMES), calendars=(calendar,))
    assert permit(decide(fleet, seen, at("10:40"))) == "2026-11-30T11:40:00Z"
    later = decide(fleet, seen, at("11:00"))
    assert permit(later) == "2026-11-30T11:00:00Z"
    assert "Calendar days is closed" in later.status.stages[0].message
    assert "does not exist" in decide(fleet, replace(seen, calendars=()), at("10:40")).status.stages[0].message


BEGUN = run("ControlPlane", gates="Latched")
DONE_TURN = TurnState(counts_as_done=True, done="Succeeded", since=at("10:00"))


@pytest.mark.parametrize(
    ("spec", "runs", "turns", "blown"),
    [
        # 40: a failure, and how many are allowed.
        ({}, {"a": run("Failed")}, {}, "1 cluster failed, and spec.maxFailures allows 0: canary/a."),
        ({"maxFailures": 1}, {"a": run("Failed")}, {}, ""),
        ({"maxFailures": "33%"}, {"a": run("Aborted")}, {}, ""),
        ({}, {"a": run("Superseded")}, {}, "1 cluster failed, and spec.maxFailures allows 0: canary/a."),
        ({}, {"a": run("Done", outcome="Skipped")}, {}, ""),
        # A number below zero cannot be read: 0 failures are allowed.
        ({"maxFailures": -1}, {}, {}, ""),
        ({"maxFailures": -1}, {"a": run("Failed")}, {}, "1 cluster failed, and spec.maxFailures allows 0: canary/a."),
        # 55: an engine that gives the next turn as soon as a run exists.
        ({}, {"a": BEGUN, "b": BEGUN}, {}, ""),
        (
            {},
            dict.fromkeys(NAMES, BEGUN),
            {},
            "Stage canary: 3 updates are in progress, and its rollout allows 2: a, b, c.",
        ),
        # Somebody else's start is not the engine's, and the turn of a run may be reported before the run.
        ({}, {"a": BEGUN, "b": BEGUN, "c": run("ControlPlane", gated=False)}, {}, ""),
        ({}, dict.fromkeys(NAMES, BEGUN), {"a": replace(DONE_TURN, since=at("10:25"))}, ""),
        # 56: a turn that counts as done by an error of a rule.
        (
            {},
            {"a": run()},
            {"a": TurnState(counts_as_done=True, since=at("10:29"))},
            "Stage canary: the engine counts turns as done whose updates are not complete: a.",
        ),
        ({}, {"a": run()}, {"a": TurnState(counts_as_done=True, done="Yielded", since=at("10:00"))}, ""),
        ({}, {"a": run("Done")}, {"a": DONE_TURN}, ""),
        ({}, {"a": BEGUN}, {"a": replace(DONE_TURN, since=at("10:25"))}, ""),
        (
            {},
            {"a": run("Done", image="example.com/release@sha256:" + "6" * 64)},
            {"a": DONE_TURN},
            "Stage canary: the engine counts turns as done whose updates are not complete: a.",
        ),
    ],
)
def test_blows_the_fuse(
    spec: dict[str, Any], runs: dict[str, RunState], turns: dict[str, TurnState], blown: str
) -> None:
    """The hub counts failures, updates in progress and turns that are done, independently of the engine."""
    fleet = fleet_update(stage(rollout=rollout(2)), status={"stages": [RUNNING]}, **spec)
    rest = {name: run() for name in NAMES}
    outcome = decide(fleet, hub(observed(NAMES, rest | runs, turns={1: turns})), at("10:30"))
    failed = find(outcome.status.conditions, "Failed")
    assert failed is not None
    assert failed.message == blown


def test_a_rollout_without_a_limit_blows_no_fuse() -> None:
    """Its `maxConcurrency` is optional, and all clusters are updated at once without it (sdk-go)."""
    fleet = fleet_update(stage(rollout={"type": "Progressive", "progressive": {}}), status={"stages": [RUNNING]})
    outcome = decide(fleet, hub(observed(NAMES, dict.fromkeys(NAMES, BEGUN))), at("10:30"))
    assert condition(outcome, "Failed")[0] == "False"


def test_keeps_a_blown_fuse_until_it_is_acknowledged() -> None:
    """A cause that is over does not let updates start again; a person does."""
    fleet = fleet_update(stage(rollout=rollout(2)), status={"stages": [RUNNING]})
    first = decide(fleet, hub(observed(NAMES, dict.fromkeys(NAMES, BEGUN))), at("10:30"))
    fleet = with_status(fleet, first)
    done = hub(observed(NAMES, dict.fromkeys(NAMES, run("Done"))))
    assert condition(decide(fleet, done, at("11:30")), "Failed") == ("True", "FuseBlown")
    failed = find(first.status.conditions, "Failed")
    assert failed is not None
    annotations = {ACKNOWLEDGED: timestamp(failed.last_transition_time)}
    fleet = replace(fleet, metadata=replace(fleet.metadata, annotations=annotations))
    assert condition(decide(fleet, done, at("11:30")), "Failed") == ("False", "AsExpected")


@pytest.mark.parametrize(
    ("stages", "members", "reason"),
    [
        ([stage(rollout={"type": "Progressive", "progressive": {"maxConcurrency": 1}})], ["a"], "NoProgressDeadline"),
        ([stage(rollout=rollout(progressDeadline="None"))], ["a"], "NoProgressDeadline"),
        ([stage(rollout=rollout(progressDeadline="2h"))], ["a"], "ProgressDeadlineShort"),
        ([stage(rollout=rollout(minSuccessTime="5m"))], ["a"], "MinSuccessTime"),
        ([stage(rollout=rollout(maxFailures=2))], ["a"], "MaxFailuresAboveSize"),
        ([stage(rollout={"type": "Random"})], ["a"], "InvalidRollout"),
        ([stage(rollout=rollout(maxFailures="x"))], ["a"], "InvalidRollout"),
        ([stage(placementRef=None)], ["a"], "PlacementMissing"),
        ([stage(selector={})], ["a"], "PlacementMissing"),
        ([stage(placeFor="soon")], ["a"], "InvalidSpec"),
        ([stage(minDone="all")], ["a"], "InvalidSpec"),
        pytest.param([stage(), stage("main")], ["hub", "b"], "HubNotLast", id="44: the hub in the first stage"),
        pytest.param([stage(), stage("main")], ["a", "hub b"], "HubNotLast", id="44: the hub with another cluster"),
        ([stage(), stage("main")], ["a", "hub"], "AsExpected"),
        ([stage(), stage("main")], ["a", "a"], "ClusterInTwoStages"),
        ([stage()], [None], "PlacementMissing"),
    ],
)
def test_refuses(stages: list[dict[str, Any]], members: list[str | None], reason: str) -> None:
    """A FleetUpdate that the engine would carry out otherwise than its author means starts nothing."""
    fleet = fleet_update(*stages)
    seen = [observed(each.split() if each is not None else None) for each in members]
    known = clusters("a", "b") | {"hub": managed_cluster("hub", **{"local-cluster": "true"})}
    outcome = decide(fleet, hub(*seen, clusters=known), at("10:00"))
    assert condition(outcome, "Ready")[1] == reason
    assert bool(outcome.replica_sets) == (reason == "AsExpected")


def test_refuses_a_hub_whose_engine_is_off() -> None:
    """A reason of the hub is one of the FleetUpdate, Unknown if it is not known."""
    seen = hub(observed(NAMES), engine=Refusal("FeatureGateDisabled", "Enable it.", unknown=True))
    outcome = decide(fleet_update(), seen, at("10:00"))
    assert condition(outcome, "Ready") == ("Unknown", "FeatureGateDisabled")
    assert outcome.replica_sets == ()


def test_43_reports_a_cluster_that_joins_late() -> None:
    """A cluster that joins a stage whose turns are over gets its run, and no turn."""
    over = {**RUNNING, "phase": "Over", "doneAt": "2026-11-30T10:10:00Z"}
    fleet = fleet_update(status={"stages": [over]})
    seen = observed((*NAMES, "d"), {**dict.fromkeys(NAMES, run("Done")), "d": run()})
    outcome = decide(fleet, hub(seen), at("10:20"))
    assert [(each.kind, each.clusters) for each in outcome.status.troubles] == [("LateCluster", ("canary/d",))]
    assert [each["metadata"]["labels"]["update.runup.dev/part"] for each in outcome.replica_sets] == ["runs"]


def test_counts_clusters_and_never_takes_silence_for_progress() -> None:
    """A cluster without a report, with another release, or that is not heard of is unknown."""
    runs = {
        "ready": run(),
        "red": run(gates="PreflightRisks"),
        "begun": BEGUN,
        "done": run("Done"),
        "skipped": run("Done", outcome="Skipped"),
        "other": run("Done", image="example.com/release@sha256:" + "6" * 64),
        "odd": run("Dancing"),
        "silent": run(),
        "stale": run(is_current=False),
    }
    known = clusters(*runs, "new") | {"silent": managed_cluster("silent", available="Unknown")}
    fleet = fleet_update(status={"stages": [RUNNING]})
    outcome = decide(fleet, hub(observed((*runs, "new"), runs), clusters=known), at("10:20"))
    [found] = outcome.status.stages
    counts = {name: getattr(found, name) for name in ("waiting", "ready", "running", "done", "skipped", "unknown")}
    assert counts == {"waiting": 1, "ready": 1, "running": 1, "done": 1, "skipped": 1, "unknown": 5}
    [trouble] = outcome.status.troubles
    assert (trouble.kind, trouble.total) == ("Unknown", 5)


def test_bounds_the_status() -> None:
    """A fleet of any size has a status of at most 16 KiB, with at most 20 names of each kind of trouble."""
    stages = [stage(f"stage-{index:026}", before=[{"type": "Calendar", "name": "x" * 250}]) for index in range(16)]
    members = [[f"{index}-{number:0>60}" for number in range(200)] for index in range(16)]
    seen = []
    for names in members:
        runs = {
            name: run("Failed", failure="F" * 900) if at_ % 2 else run("ControlPlane", gated=False)
            for at_, name in enumerate(names[:150])
        }
        seen.append(observed(names, runs))
    before = [{**RUNNING, "name": each["name"], "doneAt": "2026-11-30T10:10:00Z"} for each in stages]
    fleet = fleet_update(*stages, status={"stages": before}, maxFailures="100%")
    outcome = decide(fleet, hub(*seen), at("10:20"))
    assert len(msgspec.json.encode(outcome.status)) <= MAX_STATUS
    assert {each.kind: each.total for each in outcome.status.troubles} == {
        "Failed": 1200,
        "Ungated": 1200,
        "Unknown": 800,
    }
    assert all(0 < len(each.clusters) <= 20 for each in outcome.status.troubles)


def test_a_second_pass_changes_nothing() -> None:
    """The same observation gives the same status and objects, so nothing is written."""
    fleet = fleet_update()
    seen = hub(observed(NAMES, {"a": run()}))
    first = decide(fleet, seen, at("10:00"))
    second = decide(with_status(fleet, first), seen, at("10:01"))
    third = decide(with_status(fleet, second), seen, at("10:02"))
    assert (third.status, third.replica_sets) == (second.status, second.replica_sets)


def test_keeps_turns_while_the_placement_is_gone() -> None:
    """A Placement that somebody deleted ends permits; it does not take back turns."""
    fleet = fleet_update(status={"stages": [RUNNING]})
    sets = frozenset({set_name(fleet, 0, "runs"), turns_name(fleet, 0, 1)})
    outcome = decide(fleet, hub(observed(None, {"a": BEGUN}, sets=sets)), at("10:20"))
    assert (condition(outcome, "Ready")[1], outcome.deleted) == ("PlacementMissing", ())
    assert permit(outcome) == "2026-11-30T10:20:00Z"


def test_stores_why_clusters_wait_and_for_which_gate() -> None:
    """The most frequent reasons with their numbers, at most five; turns in use; the gate of the next stage."""
    main = stage("main", before=[{"type": "Approval", "name": "go"}])
    fleet = fleet_update(stage(), main, status={"stages": [RUNNING]}, metadata={"generation": 7})
    reasons = ["PreflightRisks"] * 3 + ["OutsideWindow"] * 2 + ["a", "b", "c", "d" * 100]
    runs = {f"c{number}": run(gates=reason) for number, reason in enumerate(reasons)}
    turns = {1: {"c0": TurnState(), "c1": TurnState(counts_as_done=True, done="Succeeded")}}
    status = decide(fleet, hub(observed(runs, runs, turns=turns), observed(("z",))), at("10:20")).status
    found = status.stages[0]
    assert [(each.reason[:14], each.total) for each in found.waiting_for] == [
        ("PreflightRisks", 3),
        ("OutsideWindow", 2),
        ("a", 1),
        ("b", 1),
        ("c", 1),
    ]
    assert (found.waiting, found.turns, status.observed_generation) == (9, 1, 7)
    assert status.closed is None
    done = hub(observed(NAMES, dict.fromkeys(NAMES, run("Done"))), observed(("z",)))
    closed = decide(fleet, done, at("10:20")).status.closed
    assert closed is not None
    assert (closed.stage, closed.type, closed.name) == ("main", "Approval", "go")


def test_progresses_while_a_gate_after_the_last_stage_is_closed() -> None:
    """The update has not ended before the last soak: it progresses, and says until when."""
    fleet = fleet_update(stage(after=[{"type": "Soak", "for": "24h"}]), status={"stages": [RUNNING]})
    done = hub(observed(NAMES, dict.fromkeys(NAMES, run("Done"))))
    outcome = decide(fleet, done, at("10:20"))
    assert (condition(outcome, "Done"), condition(outcome, "Progressing")) == (("False", "NotYet"), ("True", "Stage"))
    assert outcome.status.closed is not None
    assert outcome.status.closed.message == "The soak ends at 2026-12-01T10:20:00Z."
    later = decide(with_status(fleet, outcome), done, at("10:20") + timedelta(days=1))
    assert (condition(later, "Done"), later.status.closed) == (("True", "Succeeded"), None)


def test_43_opens_a_stage_again_for_late_clusters() -> None:
    """A retry hands out a new round after five minutes, which done clusters do not claim; it counts once."""
    over = {**RUNNING, "phase": "Over", "doneAt": "2026-11-30T10:00:00Z"}
    done = dict.fromkeys(NAMES, run("Done"))
    late = hub(observed((*NAMES, "late"), {**done, "late": run()}))
    fleet = fleet_update(stage(retries=1), status={"stages": [over]})
    outcome = decide(fleet, late, at("10:20"))
    [opened] = outcome.status.stages
    assert (opened.phase, opened.retries, opened.round) == ("Running", 1, 1)
    assert (condition(outcome, "Done"), condition(outcome, "Progressing")) == (("False", "NotYet"), ("True", "Stage"))
    assert outcome.status.troubles == ()
    again = decide(with_status(fleet, outcome), late, at("10:26"))
    assert again.status.stages[0].round == 2
    sets = decide(with_status(fleet, again), late, at("10:27"))
    assert [each["metadata"]["name"] for each in sets.replica_sets][1] == turns_name(fleet, 0, 2)
    [predicate] = sets.placements[0]["spec"]["predicates"]
    [claims] = predicate["requiredClusterSelector"]["claimSelector"]["matchExpressions"]
    assert [each.rpartition(".")[2] for each in claims["values"]] == ["2", "3", "4"]
    ended = hub(observed((*NAMES, "late"), {**done, "late": run("Done")}))
    over_again = decide(with_status(fleet, sets), ended, at("11:00"))
    assert (over_again.status.stages[0].phase, condition(over_again, "Done")) == ("Over", ("True", "Succeeded"))
    later = hub(observed((*NAMES, "late", "z"), {**done, "late": run("Done"), "z": run()}))
    assert decide(with_status(fleet, over_again), later, at("11:10")).status.stages[0].phase == "Over"


@pytest.mark.parametrize("control", ["Hold", "Abort"])
def test_43_opens_no_stage_while_it_is_stopped(control: str) -> None:
    """The retry waits for the update to continue."""
    over = {**RUNNING, "phase": "Over", "doneAt": "2026-11-30T10:00:00Z"}
    late = hub(observed((*NAMES, "late"), {**dict.fromkeys(NAMES, run("Done")), "late": run()}))
    fleet = fleet_update(stage(retries=1), status={"stages": [over]}, control=control)
    [found] = decide(fleet, late, at("10:20")).status.stages
    assert (found.phase, found.retries) == ("Over", 0)
