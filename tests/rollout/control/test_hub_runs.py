"""A cluster's controller with a run of a hub: it asks for a turn, starts with it, and gives it back."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import suppress
from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace
from tests.rollout.control.policy_world import NEW, OPEN_GATES, RUNS, World, world
from tests.servers import CRD, eventually

from kubekit.api.conditions import find
from kubekit.api.scheme import resource_of
from kubekit.kube import calls
from kubekit.kube.api_errors import NotFound
from kubekit.kube.client import Client
from kubekit.kube.clock import SystemClock
from runup.api.update_policy_v1alpha1 import UpdateRun, UpdateTurn
from runup.rollout.control.controller import ACTIVE_S, PolicyController
from runup.rollout.control.observe import ClusterInputs
from runup.rollout.control.policy_objects import CLAIMS
from runup.rollout.decide.turns import CLAIM

TURNS = resource_of(UpdateTurn)
GATES = {**OPEN_GATES, "preflight": {"maxAge": "1d"}}
# The definition of Open Cluster Management, as far as it matters here.
CLAIM_DEFINITION: dict[str, Any] = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": f"{CLAIMS.plural}.{CLAIMS.group}"},
    "spec": {
        "group": CLAIMS.group,
        "scope": "Cluster",
        "names": {"kind": "ClusterClaim", "plural": CLAIMS.plural},
        "versions": [
            {
                "name": CLAIMS.version,
                "served": True,
                "storage": True,
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {
                            "spec": {"type": "object", "properties": {"value": {"type": "string", "maxLength": 1024}}}
                        },
                    }
                },
            }
        ],
    },
}


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """A cluster that serves claims and turns."""
    with world(tmp_path_factory.mktemp("hub-runs") / "data") as made:
        made.client.send(calls.create(CRD, CLAIM_DEFINITION))
        eventually(lambda: _is_served(made), "claims are served")
        yield made


def _is_served(found: World) -> bool:
    try:
        return found.client.send(calls.list_raw(CLAIMS)) is not None
    except NotFound:
        return False


def begin(found: World, **spec: Any) -> None:
    """A policy that allows runs of hubs, and one that needs a turn."""
    for each in found.client.send(calls.list_raw(TURNS)).items:
        found.client.send(calls.delete(TURNS, each["metadata"]["name"]))
    with suppress(NotFound):
        found.client.send(calls.delete(CLAIMS, CLAIM))
    found.begin(calendars=["Always"], actuator="ClusterVersion", gates=GATES, remote="Only", soak="0s")
    wanted = {"target": {"version": "5.1.0", "image": NEW}, "needsTurn": True, "gates": GATES}
    rest = {"calendars": ["Always"], "actuator": "ClusterVersion", **spec}
    found.create(RUNS, "r", spec={**wanted, **rest})
    # The operator answers the request for a preflight.
    passes(found, 3)
    found.report()


def give_turn(found: World, round_: int = 1) -> None:
    """The hub's agent creates the turn."""
    found.create(TURNS, f"r-{round_}", spec={"run": "r", "round": round_, "placeFor": "1h"})


def passes(found: World, number: int = 2, later: timedelta = timedelta()) -> float:
    """Makes passes of a new controller, on a server whose time is later; returns the seconds until the next one."""

    def observe() -> ClusterInputs:
        inputs = found.observe()
        return replace(inputs, now=inputs.now + later)

    async def make() -> float:
        async with Client(found.client.config) as client:
            controller = PolicyController(client, SystemClock(), observe, leader="a")
            return [await controller.make_pass() for _ in range(number)][-1]

    return asyncio.run(make())


def claim(found: World) -> str:
    """The value of the claim; empty without one."""
    try:
        return str(found.client.send(calls.get_raw(CLAIMS, CLAIM))["spec"]["value"])
    except NotFound:
        return ""


def is_started(found: World) -> bool:
    """Whether the update is requested, not only its preflight."""
    return found.desired() == {"version": "5.1.0", "image": NEW}


def turn_done(found: World, name: str = "r-1") -> tuple[str, str]:
    """Condition Done of a turn."""
    [turn] = [each for each in found.client.list_all(UpdateTurn)[0] if each.metadata.name == name]
    done = find(turn.status.conditions, "Done")
    assert done is not None
    assert done.observed_generation == turn.metadata.generation
    return done.status, done.reason


@pytest.mark.slow
def test_39_starts_with_its_turn_only(found: World) -> None:
    """A cluster whose other gates are open claims to be ready, waits for its turn, and reports when it is done."""
    begin(found)
    passes(found, 3)
    assert (found.reason(), claim(found), is_started(found)) == ("NoTurn", "r.1", False)
    give_turn(found)
    passes(found, 4)
    assert is_started(found)
    assert turn_done(found) == ("False", "NotYet")
    found.update("Completed")
    passes(found, 3)
    passes(found, 2, later=timedelta(hours=2))
    assert found.run().status.step == "Done"
    assert (turn_done(found), claim(found)) == (("True", "Succeeded"), "r.1")
    # The hub takes the turn back when the stage is over.
    found.client.send(calls.delete(TURNS, "r-1"))
    passes(found)
    assert claim(found) == ""


def test_39_a_red_cluster_takes_no_place(found: World) -> None:
    """A cluster with another closed gate says which one, and does not ask for a turn."""
    begin(found, calendars=["nights"])
    passes(found, 3)
    assert (found.reason(), claim(found)) == ("InvalidCalendar", "")


def test_55a_yields_a_turn_that_it_did_not_use(found: World) -> None:
    """A turn that was not used within placeFor counts as over, and never starts the update, also after a crash."""
    begin(found, permitUntil="2026-01-01T00:00:00Z")
    give_turn(found)
    passes(found, 3)
    assert (found.reason(), turn_done(found)) == ("PermitEnded", ("False", "NotYet"))
    found.client.send(calls.merge_patch(RUNS, "r", {"spec": {"permitUntil": None}}))
    # At the end of the turn nothing starts any more; two minutes later it is given back.
    late = timedelta(hours=1, seconds=1)
    passes(found, 1, later=late)
    assert (found.reason(), turn_done(found), is_started(found)) == ("TurnUsedUp", ("False", "NotYet"), False)
    passes(found, 3, later=late + timedelta(minutes=2))
    assert turn_done(found) == ("True", "Yielded")
    passes(found, 3)
    assert (found.reason(), is_started(found)) == ("TurnUsedUp", False)
    # The next round.
    found.client.send(calls.merge_patch(RUNS, "r", {"spec": {"round": 2}}))
    passes(found, 2)
    assert claim(found) == "r.2"
    # A deleted claim is written again, and the controller looks soon whether the hub has answered.
    found.client.send(calls.delete(CLAIMS, CLAIM))
    assert (passes(found, 1), claim(found)) == (0.1, "r.2")
    assert passes(found, 1) == ACTIVE_S
    give_turn(found, 2)
    passes(found, 4)
    assert is_started(found)


@pytest.mark.slow
@pytest.mark.parametrize("step", ["Waiting", "Committing", "ControlPlane"])
def test_61_a_deleted_turn(step: str, found: World) -> None:
    """A run that has not begun waits for another turn; an update that has begun ends."""
    begin(found, **({"permitUntil": "2026-01-01T00:00:00Z"} if step == "Waiting" else {}))
    give_turn(found)
    passes(found, {"Waiting": 3, "Committing": 1, "ControlPlane": 4}[step])
    assert (found.run().status.step, is_started(found)) == (step, step == "ControlPlane")
    found.client.send(calls.delete(TURNS, "r-1"))
    found.client.send(calls.merge_patch(RUNS, "r", {"spec": {"permitUntil": None}}))
    passes(found, 3)
    if step == "ControlPlane":
        found.update("Completed")
        passes(found, 3)
        passes(found, 2, later=timedelta(hours=2))
        assert (found.run().status.step, found.run().status.gated) == ("Done", True)
    else:
        assert (found.run().status.step, found.reason(), is_started(found)) == ("Waiting", "NoTurn", False)


@pytest.mark.slow
def test_45_one_run_at_a_time(found: World) -> None:
    """A run of the hub adopts the update that an older one started, and starts none."""
    begin(found)
    found.client.send(calls.delete(RUNS, "r"))
    older = {"target": {"version": "5.1.0", "image": NEW}, "gates": OPEN_GATES, "calendars": ["Always"], "soak": "0s"}
    found.create(RUNS, "a", spec={**older, "actuator": "ClusterVersion"})
    SystemClock().pause(1.1)
    found.create(RUNS, "b", spec={**older, "needsTurn": True})
    passes(found, 3)
    found.report()
    passes(found, 3)
    assert is_started(found)
    runs = {run.metadata.name: run for run in found.client.list_all(UpdateRun)[0]}
    assert (runs["a"].status.gated, runs["b"].status.gated, claim(found)) == (True, False, "")
    found.update("Completed")
    passes(found, 6)
    passes(found, 2, later=timedelta(minutes=1))
    runs = {run.metadata.name: run for run in found.client.list_all(UpdateRun)[0]}
    assert [runs[name].status.decisions[-1].reason for name in "ab"] == ["Succeeded", "SucceededUngated"]
