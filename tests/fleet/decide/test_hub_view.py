"""The view of a fleet update on a hub: what its status comes to, and how sure that is."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from tests.fleet.decide.fleet_updates import at, fleet_update, managed_cluster, stage

from kubekit.api import codec
from kubekit.error_types import InputError
from runup.api.fleet_update_v1alpha1 import FleetUpdate
from runup.api.update_policy_v1alpha1 import Control
from runup.fleet.decide.hub_update.hub_view import (
    cluster_lines,
    control_patch,
    hub_view,
    retry_patch,
    unconfirmed,
)
from runup.fleet.decide.hub_update.observation import HubInputs
from runup.fleet.decide.hub_update.stages import ACKNOWLEDGED
from runup.process.lease_age import LeaseRecord

JSON = dict[str, Any]
NOW = at("12:00")


def conditions(**changes: tuple[str, str]) -> list[JSON]:
    """The conditions of an update that runs, with these changes; the time of the last change is 11:00."""
    found = {"Ready": ("True", "AsExpected"), "Held": ("False", "Running"), "Failed": ("False", "AsExpected")}
    found |= {"Done": ("False", "NotYet"), **changes}
    return [
        {
            "type": name,
            "status": state,
            "reason": reason,
            "message": f"{name}.",
            "lastTransitionTime": "2026-11-30T11:00:00Z",
        }
        for name, (state, reason) in found.items()
    ]


def update(*stages: JSON, spec: JSON | None = None, generation: int = 1, **status: Any) -> FleetUpdate:
    """A FleetUpdate with the stages `canary` and `main`, and these stages in its status."""
    stored = {"observedGeneration": 1, "conditions": conditions(), "stages": list(stages), **status}
    metadata = {"generation": generation}
    return fleet_update(stage(), stage("main"), status=stored, metadata=metadata, **(spec or {}))


def of(name: str = "canary", phase: str = "Running", **counts: Any) -> JSON:
    """The status of a stage."""
    return {"name": name, "phase": phase, "round": 1, "clusters": 3, **counts}


APPROVAL = {"stage": "main", "type": "Approval", "name": "go", "message": "Approval go is missing."}
CHECKING = of("main", "Checking", waiting=2, unknown=1, message="Approval go is missing.")


@pytest.mark.parametrize(
    ("fleet", "outcome", "code"),
    [
        pytest.param(update(of(running=1)), "Running", 2, id="an update runs"),
        pytest.param(update(of(ready=1)), "Running", 2, id="a cluster may start"),
        pytest.param(update(of(waiting=3)), "GatesClosed", 2, id="all clusters wait"),
        pytest.param(update(of(waiting=2, unknown=1)), "Unknown", 3, id="one cluster is unknown"),
        pytest.param(update(of(done=3), CHECKING, closed=APPROVAL), "ApprovalMissing", 4, id="an approval is missing"),
        pytest.param(
            update(of(done=3), CHECKING, closed={**APPROVAL, "type": "Soak"}), "GatesClosed", 2, id="the stage soaks"
        ),
        pytest.param(
            update(of(done=2, running=1), CHECKING, closed=APPROVAL), "Running", 2, id="one runs, the next waits"
        ),
        pytest.param(
            update(of(done=3), conditions=conditions(Done=("True", "Succeeded"))), "Done", 0, id="everything is done"
        ),
        pytest.param(
            update(of(failed=1), conditions=conditions(Failed=("True", "FuseBlown"))),
            "Failed",
            1,
            id="the fuse has blown",
        ),
        pytest.param(
            update(of(), conditions=conditions(Ready=("False", "HubNotLast"))), "Refused", 1, id="the hub refuses it"
        ),
        pytest.param(
            update(of(), conditions=conditions(Ready=("Unknown", "EngineNotAnswering"))),
            "Unknown",
            3,
            id="the engine does not answer",
        ),
        pytest.param(update(of(running=1), spec={"control": "Hold"}), "Held", 4, id="it is held"),
        pytest.param(update(of(running=1), spec={"control": "Abort"}), "Aborted", 1, id="it is aborted"),
        pytest.param(update(of(running=1), generation=2), "Unknown", 3, id="the newest change was not read"),
        pytest.param(update(of(running=1), conditions=[]), "Unknown", 3, id="nothing was read yet"),
    ],
)
def test_maps_the_conditions_to_an_outcome(fleet: FleetUpdate, outcome: str, code: int) -> None:
    """The outcome and its exit code follow from what the controller has stored."""
    view = hub_view(fleet, NOW, hub="hub")
    assert (view.outcome, view.exit_code) == (outcome, code)


def test_a_stage_with_a_message_is_closed() -> None:
    """The gate of the stage says what it waits for; a stage without a message is open."""
    view = hub_view(update(of(done=3), CHECKING), NOW, hub="hub")
    gates = [[(gate.state, gate.message) for gate in each.closed] for each in view.stages]
    assert gates == [[], [("Closed", "Approval go is missing.")]]


def test_a_status_that_nobody_keeps_is_unknown_until_all_is_done() -> None:
    """A controller that is gone changes nothing about an update that has ended."""
    running = hub_view(update(of(running=1)), NOW, hub="hub", unconfirmed="it is gone")
    assert (running.outcome, running.doubts) == ("Unknown", ("This may be out of date: it is gone.",))
    done = update(of(done=3), conditions=conditions(Done=("True", "Succeeded")))
    assert hub_view(done, NOW, hub="hub", unconfirmed="it is gone").outcome == "Done"


@pytest.mark.parametrize(
    ("ago", "holder", "text"),
    [
        (timedelta(seconds=30), "a", ""),
        (timedelta(minutes=10), "a", "the controller does not run, or is cut off: its Lease x/y was last renewed at"),
        (timedelta(minutes=10), "", "the controller does not run, or is cut off: its Lease x/y was given back at"),
        (None, "", "Lease x/y has no renewTime"),
    ],
    ids=["renewed", "not renewed", "given back", "without a time"],
)
def test_reads_from_the_lease_whether_the_controller_runs(ago: timedelta | None, holder: str, text: str) -> None:
    """Only a Lease that is renewed confirms the status."""
    spec: JSON = {"holderIdentity": holder, "leaseDurationSeconds": 137}
    if ago is not None:
        spec["renewTime"] = (NOW - ago).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    why = unconfirmed(codec.convert(LeaseRecord, {"spec": spec}), NOW, "x/y")
    assert why.startswith(text)
    assert bool(why) == bool(text)


@pytest.mark.parametrize(
    ("fleet", "control", "error"),
    [
        (
            update(of(phase="Over"), conditions=conditions(Done=("True", "Succeeded"))),
            "Hold",
            "has ended: every stage is done",
        ),
        (update(spec={"control": "Abort"}), "Run", "was aborted: create another one"),
        (update(conditions=conditions(Failed=("True", "FuseBlown"))), "Run", "has blown: Failed. Fix the cause"),
    ],
)
def test_refuses_a_control_without_an_effect(fleet: FleetUpdate, control: Control, error: str) -> None:
    """The error has the way out."""
    with pytest.raises(InputError, match=error):
        control_patch(fleet, control)


def test_acknowledges_the_fuse_that_was_seen() -> None:
    """The annotation has the time of the failure, so that a later one is not acknowledged."""
    fleet = update(conditions=conditions(Failed=("True", "FuseBlown")))
    annotations = control_patch(fleet, "Run", acknowledges=True)["metadata"]["annotations"]
    assert annotations[ACKNOWLEDGED] == "2026-11-30T11:00:00Z"
    assert ACKNOWLEDGED not in control_patch(fleet, "Hold")["metadata"]["annotations"]


def test_says_why_a_cluster_is_unknown() -> None:
    """A cluster without a report, one that the hub does not hear, and one that is no cluster of the hub."""
    fleet = fleet_update(stage())
    inputs = HubInputs(
        now=NOW,
        fleets=(fleet,),
        clusters=(managed_cluster("a"), managed_cluster("b", available="Unknown")),
        placements={"canary": {"spec": {}}},
        decisions={"canary": ("a", "b", "c")},
    )
    lines = {each.name: (each.state, each.message) for each in cluster_lines(fleet, inputs)}
    assert {state for state, _ in lines.values()} == {"unknown"}
    assert lines["a"][1] == "its agent has not reported the run"
    assert lines["b"][1].startswith("it is not available since")
    assert lines["c"][1] == "the hub has no such ManagedCluster"


def test_holds_an_update_that_is_done_while_other_clusters_are_updated() -> None:
    """With minDone below all, clusters start after condition Done; they can be held."""
    done = update(of(done=2, waiting=1), conditions=conditions(Done=("True", "Succeeded")))
    assert control_patch(done, "Hold")["spec"] == {"control": "Hold"}


@pytest.mark.parametrize(
    ("fleet", "name", "error"),
    [
        (update(of(phase="Over", done=3)), "mian", "there is no stage mian; give --stage canary or main"),
        (update(of(phase="Over", done=3)), "canary", "has no cluster that could get a turn$"),
        (update(of(phase="Over", done=2, failed=1)), "canary", "a run that failed has ended, so another FleetUpdate"),
        (update(of(done=2, waiting=1)), "canary", "needs no retry: it is Running"),
        (update(of(phase="Over", done=2, waiting=1), spec={"control": "Hold"}), "canary", "spec.control is Hold"),
    ],
)
def test_refuses_a_retry_without_an_effect(fleet: FleetUpdate, name: str, error: str) -> None:
    """The error has the way out."""
    with pytest.raises(InputError, match=error):
        retry_patch(fleet, name)


@pytest.mark.parametrize("stored", [of(phase="Over", done=2, waiting=1), of(done=2, waiting=1, round=3)])
def test_opens_a_stage_again(stored: JSON) -> None:
    """A late cluster, and one that used up its rounds: the patch changes nothing else."""
    fleet = update(stored)
    stages = retry_patch(fleet, "canary")["spec"]["stages"]
    assert [each.get("retries", 0) for each in stages] == [1, 0]
    assert [each["placementRef"] for each in stages] == [{"name": "canary"}, {"name": "main"}]
