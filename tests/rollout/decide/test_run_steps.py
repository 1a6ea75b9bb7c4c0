"""The steps of an UpdateRun, and the same end whatever is killed between two writes. Numbers are those of the cases."""

from __future__ import annotations

import random
import re
from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace
from tests.rollout.observed_cluster import IMAGE, NOW, OTHER_IMAGE, observed

from kubekit.api.conditions import find
from kubekit.api.meta_v1 import Condition, ObjectMeta
from kubekit.error_types import InputError
from runup.api.config_v1 import (
    ClusterVersion,
    ClusterVersionSpec,
    ClusterVersionStatus,
    Release,
    Update,
    UpdateHistory,
)
from runup.api.update_policy_v1alpha1 import Candidate, UpdateRun, UpdateRunSpec, UpdateRunStatus
from runup.rollout.decide.gates.all_gates import evaluate
from runup.rollout.decide.gates.gate import Gate, Verdict
from runup.rollout.decide.gates.observed import Health, Holds
from runup.rollout.decide.run_controls import refuse_control
from runup.rollout.decide.run_steps import FINISHED, Outcome, Situation, decide, verdict_of_begun

MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)
OLD = UpdateHistory(state="Completed", started_time=NOW - 99 * HOUR, version="5.0.3", image="r@sha256:" + "1" * 64)
OPEN = evaluate(observed(), NOW)
CLOSED = evaluate(observed(holds=Holds(paused=True)), NOW)
TARGET = Candidate(version="5.1.0", image=IMAGE)
HEALTHY = Health(healthy_since=NOW - HOUR)


def entry(state: Any = "Partial", image: str = IMAGE, version: str = "5.1.0") -> UpdateHistory:
    """An entry of the history."""
    return UpdateHistory(state=state, started_time=NOW, version=version, image=image)


def cluster(
    *history: UpdateHistory, desired: Update | None = None, version: str = "7", **status: Any
) -> ClusterVersion:
    """A ClusterVersion with this history before the running release."""
    newest = (*history, OLD)[0]
    return ClusterVersion(
        metadata=ObjectMeta(name="version", resource_version=version),
        spec=ClusterVersionSpec(desired_update=desired),
        status=ClusterVersionStatus(
            desired=Release(version=newest.version, image=newest.image), history=(*history, OLD), **status
        ),
    )


def run_of(actuator: Any = "ClusterVersion", status: UpdateRunStatus | None = None, **spec: Any) -> UpdateRun:
    """A run to 5.1.0."""
    return UpdateRun(
        metadata=ObjectMeta(name="5.1.0-abc", uid="u"),
        spec=UpdateRunSpec(target=TARGET, actuator=actuator, **spec),
        status=status or UpdateRunStatus(),
    )


def situation(found: ClusterVersion | None = None, verdict: Verdict = OPEN, **changes: Any) -> Situation:
    """A cluster in which nothing was requested, and all gates are open."""
    fields: dict[str, Any] = {"cluster": found or cluster(), "verdict": verdict, "health": HEALTHY, "leader": "a"}
    return Situation(**fields | changes)


def after(run: UpdateRun, *situations: Situation, now: Any = NOW) -> tuple[UpdateRun, Outcome]:
    """The run after these passes, and the last outcome."""
    outcome = Outcome(status=run.status)
    for each in situations:
        outcome = decide(run, each, now)
        run = replace(run, status=outcome.status)
    return run, outcome


def deleted(run: UpdateRun) -> UpdateRun:
    """The run after `kubectl delete`, which its finalizer keeps."""
    return replace(run, metadata=replace(run.metadata, deletion_timestamp=NOW))


OURS = Update(version="5.1.0", image=IMAGE)


def refused_for(minutes: int) -> Condition:
    """The condition of an operator that has refused the release for so long."""
    return Condition(type="ReleaseAccepted", status="False", last_transition_time=NOW - minutes * MINUTE)


REFUSED = refused_for(2)
PREFLIGHT = replace(OURS, mode="Preflight")
withdrawn = Verdict((Gate(name="target", state="Closed", reason="TargetWithdrawn", message="m"),))
committing, _ = after(run_of(), situation())
updating, _ = after(committing, situation(cluster(entry(), desired=OURS), owns_request=True))
soaking, _ = after(updating, situation(cluster(entry("Completed"), desired=OURS)))


@pytest.mark.parametrize(
    ("run", "seen", "step", "act"),
    [
        pytest.param(
            committing,
            situation(cluster(desired=OURS, version="8")),
            "ControlPlane",
            "",
            id="our commit over another client's preflight of the same image, which the server still names",
        ),
        pytest.param(
            committing,
            situation(cluster(desired=OURS, version="8", conditions=(REFUSED,))),
            "Waiting",
            "withdraw",
            id="our commit over another client's preflight, which the operator refuses",
        ),
        pytest.param(
            run_of(),
            situation(cluster(desired=OURS, version="8")),
            "Waiting",
            "",
            id="the same update that somebody else requested is awaited",
        ),
        pytest.param(
            run_of(),
            situation(cluster(desired=OURS, version="8", conditions=(REFUSED,))),
            "Waiting",
            "",
            id="the refused request of somebody else stays",
        ),
    ],
)
def test_50_a_request_is_never_written_twice(run: UpdateRun, seen: Situation, step: str, act: str) -> None:
    """Neither by a commit without effect while the history shows nothing, nor over what somebody else requested."""
    outcome = decide(run, seen, NOW)
    assert (outcome.status.step, outcome.act) == (step, act)
    again = decide(replace(run, status=outcome.status), seen, NOW)
    assert again.act in ("", act)


def test_1_an_intent_is_stored_before_the_commit() -> None:
    """The first pass stores what will be written and on which version; the second one writes it."""
    assert (committing.status.step, committing.status.started) == ("Committing", None)
    intent = committing.status.intent
    assert intent is not None
    assert (intent.cluster_version_resource_version, intent.leader, intent.image) == ("7", "a", IMAGE)
    assert decide(run_of(), situation(), NOW).act == ""
    assert decide(committing, situation(), NOW).act == "commit"


@pytest.mark.parametrize(
    ("run", "seen", "step", "reason", "act"),
    [
        pytest.param(run_of(), situation(verdict=CLOSED), "Waiting", "", "preflight", id="2: a gate is closed"),
        pytest.param(
            run_of(),
            situation(cluster(desired=replace(PREFLIGHT, image=OTHER_IMAGE)), CLOSED, owns_request=True),
            "Waiting",
            "",
            "preflight",
            id="our preflight of another release is replaced",
        ),
        pytest.param(
            run_of(),
            situation(cluster(desired=replace(PREFLIGHT, image=OTHER_IMAGE)), CLOSED),
            "Waiting",
            "",
            "",
            id="30: the preflight of somebody else is not",
        ),
        pytest.param(run_of(), situation(cluster(desired=PREFLIGHT), CLOSED), "Waiting", "", "", id="it is requested"),
        pytest.param(run_of(control="Hold"), situation(verdict=CLOSED), "Waiting", "", "", id="held"),
        pytest.param(committing, situation(verdict=CLOSED), "Waiting", "Held", "", id="7: a gate closes"),
        pytest.param(
            committing,
            situation(cluster(version="8")),
            "Committing",
            "AllOpen",
            "",
            id="47: ClusterVersion has changed",
        ),
        pytest.param(committing, situation(leader="b"), "Committing", "AllOpen", "", id="49: another leader"),
        pytest.param(
            committing,
            situation(cluster(desired=OURS, version="8"), owns_request=True),
            "ControlPlane",
            "Started",
            "",
            id="50: the answer was lost, and the request is there",
        ),
        pytest.param(
            committing,
            situation(cluster(desired=PREFLIGHT, version="8"), owns_request=True),
            "Committing",
            "AllOpen",
            "",
            id="51: a preflight is no update",
        ),
        pytest.param(
            committing,
            situation(cluster(entry(), version="9"), verdict=CLOSED),
            "ControlPlane",
            "Started",
            "",
            id="48: the effect is found although a gate has closed",
        ),
        pytest.param(
            committing,
            situation(cluster(desired=OURS, conditions=(REFUSED,)), owns_request=True),
            "Waiting",
            "NotAccepted",
            "withdraw",
            id="the operator does not accept the release",
        ),
        pytest.param(
            updating,
            situation(cluster(desired=OURS, conditions=(refused_for(1),)), owns_request=True),
            "ControlPlane",
            "Started",
            "",
            id="the operator has refused the release for a minute",
        ),
        pytest.param(
            updating,
            situation(cluster(desired=OURS, conditions=(refused_for(3),)), owns_request=True),
            "Waiting",
            "NotAccepted",
            "withdraw",
            id="the operator has refused the release for three minutes",
        ),
        pytest.param(
            updating,
            situation(cluster(desired=OURS, conditions=(REFUSED,)), owns_request=True),
            "Waiting",
            "NotAccepted",
            "withdraw",
            id="the operator does not accept the release that was requested",
        ),
        pytest.param(
            updating,
            situation(cluster(entry(), desired=OURS, conditions=(REFUSED,)), owns_request=True),
            "ControlPlane",
            "Started",
            "",
            id="an update that has begun is not withdrawn",
        ),
        pytest.param(
            run_of(),
            situation(cluster(desired=OURS), owns_request=True, verdict=CLOSED),
            "ControlPlane",
            "StartedUngated",
            "",
            id="50: our request is found although its intent is lost",
        ),
        pytest.param(
            run_of(),
            situation(cluster(desired=OURS), verdict=CLOSED),
            "Waiting",
            "",
            "",
            id="30: a request that is not ours",
        ),
        pytest.param(
            run_of(), situation(cluster(entry("Completed"))), "Done", "AlreadyThere", "", id="45: already there"
        ),
        pytest.param(run_of(), situation(cluster(entry())), "ControlPlane", "StartedUngated", "", id="30: adopted"),
        pytest.param(run_of(), situation(verdict=withdrawn), "Superseded", "WithdrawnBefore", "", id="29: withdrawn"),
        pytest.param(
            run_of(),
            situation(candidate=Candidate(version="5.1.1", image=OTHER_IMAGE)),
            "Superseded",
            "NewerRelease",
            "",
            id="28: a newer release",
        ),
        pytest.param(run_of(control="Skip"), situation(), "Done", "Skipped", "", id="skipped"),
        pytest.param(run_of(control="Abort"), situation(), "Aborted", "Aborted", "", id="32: aborted before the start"),
        pytest.param(
            run_of(control="Abort"),
            situation(cluster(desired=PREFLIGHT), owns_request=True),
            "Waiting",
            "",
            "withdraw",
            id="32: our check ends before the run does",
        ),
        pytest.param(
            run_of(control="Abort"),
            situation(cluster(desired=PREFLIGHT)),
            "Aborted",
            "Aborted",
            "",
            id="32: the check of somebody else stays",
        ),
        pytest.param(
            run_of(),
            situation(cluster(desired=PREFLIGHT), withdrawn, owns_request=True),
            "Waiting",
            "",
            "withdraw",
            id="29: our check of a withdrawn release ends",
        ),
        pytest.param(deleted(run_of()), situation(), "Aborted", "Aborted", "", id="61: deleted while Waiting"),
        pytest.param(
            deleted(committing), situation(), "Committing", "AllOpen", "fence", id="61: a start may be on its way"
        ),
        pytest.param(
            deleted(committing),
            situation(cluster(version="8")),
            "Aborted",
            "Aborted",
            "",
            id="61: a start that is on its way is refused",
        ),
        pytest.param(
            deleted(committing),
            situation(cluster(desired=OURS, version="8"), owns_request=True),
            "ControlPlane",
            "Started",
            "",
            id="61: deleted after the request was stored",
        ),
        pytest.param(
            deleted(updating),
            situation(cluster(entry())),
            "ControlPlane",
            "Started",
            "",
            id="61: deleted while updating",
        ),
        pytest.param(
            deleted(updating), situation(cluster(entry("Completed"))), "Aborted", "Aborted", "", id="61: then complete"
        ),
        pytest.param(deleted(soaking), situation(), "Aborted", "Aborted", "", id="61: deleted while Soaking"),
        pytest.param(
            replace(updating, spec=replace(updating.spec, control="Abort")),
            situation(cluster(entry("Completed"))),
            "Aborted",
            "Aborted",
            "",
            id="32: aborted after the start, then complete",
        ),
        pytest.param(
            replace(updating, spec=replace(updating.spec, control="Skip")),
            situation(cluster(entry("Completed"))),
            "Soaking",
            "Completed",
            "",
            id="32: a run that has begun cannot be skipped",
        ),
        pytest.param(
            replace(updating, spec=replace(updating.spec, control="Abort")),
            situation(cluster(entry(), desired=OURS)),
            "ControlPlane",
            "Started",
            "",
            id="32: aborted after the start",
        ),
        pytest.param(
            updating, situation(cluster(entry()), CLOSED), "ControlPlane", "Started", "", id="17: window over"
        ),
        pytest.param(updating, situation(cluster(entry()), withdrawn), "ControlPlane", "Started", "", id="29: during"),
        pytest.param(
            updating,
            situation(cluster(entry(image=OTHER_IMAGE, version="5.2.0"), entry())),
            "Superseded",
            "OtherUpdate",
            "",
            id="30: somebody updates to another release",
        ),
        pytest.param(updating, situation(cluster(entry("Completed"))), "Soaking", "Completed", "", id="completed"),
        pytest.param(
            run_of("None"), situation(cluster(entry())), "ControlPlane", "StartedUngated", "", id="a tool did not ask"
        ),
        pytest.param(
            after(run_of("None"), situation())[0],
            situation(cluster(entry())),
            "ControlPlane",
            "Started",
            "",
            id="a tool started behind open gates",
        ),
        pytest.param(run_of("None"), situation(), "Waiting", "", "", id="None writes nothing"),
    ],
)
def test_steps(run: UpdateRun, seen: Situation, step: str, reason: str, act: str) -> None:
    """One pass from a step and what is observed."""
    outcome = decide(run, seen, NOW)
    last = outcome.status.decisions[-1].reason if outcome.status.decisions else ""
    assert (outcome.status.step, last, outcome.act) == (step, reason, act)


@pytest.mark.parametrize(
    ("passes", "step", "reason"),
    [
        pytest.param([(0, HEALTHY), (60, HEALTHY)], "Done", "Succeeded", id="healthy for the soak"),
        pytest.param([(0, HEALTHY), (59, HEALTHY)], "Soaking", "Completed", id="a minute less"),
        pytest.param(
            [(0, HEALTHY), (30, Health(problems=("x",))), (35, HEALTHY), (94, HEALTHY)],
            "Soaking",
            "Completed",
            id="25: a break restarts the soak",
        ),
        pytest.param(
            [(0, HEALTHY), (30, Health(problems=("x",))), (35, HEALTHY), (95, HEALTHY)],
            "Done",
            "Succeeded",
            id="25: later",
        ),
        pytest.param(
            [(0, Health(problems=("x",))), (30, Health(problems=("x",)))], "Failed", "UnhealthyAfter", id="25"
        ),
        pytest.param([(0, "forbidden"), (30, "forbidden")], "Failed", "UnhealthyAfter", id="unknown is not healthy"),
        pytest.param([(0, HEALTHY), (60, Health(unknown=("x",)))], "Soaking", "Completed", id="unknown at the end"),
    ],
)
def test_soaking(passes: list[tuple[int, Any]], step: str, reason: str) -> None:
    """The cluster must be healthy for an hour without a break."""
    run = soaking
    for minutes, health in passes:
        run, _ = after(run, situation(cluster(entry("Completed")), health=health), now=NOW + minutes * MINUTE)
    assert (run.status.step, run.status.decisions[-1].reason) == (step, reason)


def test_33_a_deadline_fails_the_run() -> None:
    """Nothing is undone when the control plane takes too long."""
    assert after(updating, situation(cluster(entry())), now=NOW + 4 * HOUR - MINUTE)[0].status.step == "ControlPlane"
    failed, outcome = after(updating, situation(cluster(entry())), now=NOW + 4 * HOUR)
    assert (failed.status.step, outcome.act) == ("Failed", "")
    condition = find(failed.status.conditions, "Failed")
    assert condition is not None
    assert (condition.status, condition.reason) == ("True", "ControlPlaneDeadline")


def test_gates_stay_open_for_tools_once_begun() -> None:
    """A tool that asks again for each node is not stopped by a window that closes."""
    condition = find(after(updating, situation(cluster(entry()), CLOSED))[0].status.conditions, "GatesOpen")
    assert condition is not None
    assert (condition.status, condition.reason) == ("True", "Latched")


@pytest.mark.parametrize(
    ("run", "code", "reason"),
    [
        pytest.param(updating, 0, "Latched", id="37: the update has begun"),
        pytest.param(soaking, 0, "Latched", id="37: after the update"),
        pytest.param(
            after(run_of(control="Abort"), situation())[0], 2, "Aborted", id="37: a run that has ended without a start"
        ),
        pytest.param(
            after(run_of(), situation(cluster(entry("Completed"))))[0], 2, "AlreadyThere", id="37: already there"
        ),
    ],
)
def test_37_the_verdict_on_a_run_that_its_gates_do_not_change(run: UpdateRun, code: int, reason: str) -> None:
    """A run that has begun stays open for tools that ask again; one that has ended without a start stays closed."""
    verdict = verdict_of_begun(run)
    assert verdict is not None
    assert (verdict.exit_code, verdict.reason, verdict.final) == (code, reason, True)
    assert verdict_of_begun(committing) is None


@pytest.mark.parametrize("seed", range(300))
def test_48_killed_between_any_two_writes(seed: int) -> None:
    """Crashes, lost answers, new leaders, conflicts and gates that flap lead to one end with one start."""
    rng = random.Random(seed)
    run, found, now, commits, applied = run_of(), cluster(), NOW, 0, 0
    for number in range(400):
        now += rng.choice([MINUTE, 10 * MINUTE])
        verdict = rng.choice([OPEN, OPEN, CLOSED])
        if rng.random() < 0.1 and not applied:  # somebody else writes ClusterVersion
            found = replace(found, metadata=replace(found.metadata, resource_version=str(100 + number)))
        leader = rng.choice(["a", "b"]) if rng.random() < 0.3 else "a"
        outcome = decide(run, situation(found, verdict, leader=leader, owns_request=bool(applied)), now)
        if rng.random() < 0.15:
            continue  # killed before the status was written
        run = replace(run, status=outcome.status)
        if rng.random() < 0.15:
            continue  # killed before the act
        if outcome.act == "commit":
            commits += 1
            intent = run.status.intent
            assert intent is not None
            assert verdict.open
            # The conditional write: on another version it is a conflict.
            if intent.cluster_version_resource_version == found.metadata.resource_version:
                applied += 1
                found = cluster(desired=OURS, version=str(1000 + number))
        elif applied and rng.random() < 0.3:
            done = is_partial(found)
            found = cluster(entry("Completed" if done else "Partial"), desired=OURS, version=str(1000 + number))
        if run.status.step in FINISHED:
            break
    assert (applied, run.status.step, run.status.gated) == (1, "Done", True)
    assert run.status.decisions[-1].reason == "Succeeded"
    assert commits >= 1


def is_partial(found: ClusterVersion) -> bool:
    """Whether the update is under way."""
    return found.status.history[0].state == "Partial" or found.status.history[0].image == IMAGE


@pytest.mark.parametrize(
    ("run", "control", "message"),
    [
        pytest.param(run_of(), "Hold", "", id="a run that waits"),
        pytest.param(run_of(), "Skip", "", id="to skip a run that waits"),
        pytest.param(run_of(status=UpdateRunStatus(step="ControlPlane", started=NOW)), "Abort", "", id="a begun run"),
        pytest.param(
            run_of(status=UpdateRunStatus(step="ControlPlane", started=NOW)), "Skip", "has begun", id="to skip it"
        ),
        pytest.param(run_of(status=UpdateRunStatus(step="Failed")), "Run", "has ended (Failed)", id="a failed run"),
        pytest.param(run_of(control="Abort"), "Run", "was aborted", id="to resume an aborted run"),
        pytest.param(run_of(control="Abort"), "Abort", "", id="to abort it again"),
        pytest.param(deleted(run_of()), "Hold", "was aborted", id="a run that is being deleted"),
    ],
)
def test_32_a_control_that_has_no_effect_is_refused(run: UpdateRun, control: Any, message: str) -> None:
    """With the command that helps."""
    if not message:
        refuse_control(run, control)
        return
    with pytest.raises(InputError, match=re.escape(message)):
        refuse_control(run, control)
