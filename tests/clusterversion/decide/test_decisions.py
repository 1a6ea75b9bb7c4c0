"""Decides update requests whose release differs from its description, or is not known yet."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from msgspec.structs import replace as with_fields
from tests.clusterversion.decide.world import GRAPH, OWN, World, image, release

from runup.api.config_v1 import Update
from runup.applying.decide.progress import Loading
from runup.clusterversion.decide.observed import ReleaseCheck
from runup.clusterversion.decide.work import RetrieveUpdates
from runup.preflight.decide.deployment_steps import Trust

ASKED = Update(version="5.0.3")


def accepted(world: World) -> tuple[str, str, str]:
    """Whether the release was accepted, with reason and message."""
    status, reason = world.condition("ReleaseAccepted") or ("", "")
    return status, reason, world.message("ReleaseAccepted")


def test_before_the_service_has_answered_the_request_waits() -> None:
    """And is asked again."""
    world = World.new().ask(ASKED)
    plan = world.step()
    assert accepted(world)[0] == "Unknown"
    assert plan.requeue_after_s is not None
    assert world.settle().version.status.desired.version == "5.0.3"


def test_a_service_that_failed_is_asked_again_soon() -> None:
    """The pass that learns of it asks to be called when the next attempt is due."""
    world = World.new().settle()
    assert world.plans[-1].requeue_after_s == 180
    known = world.observed.service
    world.change(service=replace(known, failures=2, attempted_at=world.now)).step()
    assert world.plans[-1].requeue_after_s == 10
    assert RetrieveUpdates not in map(type, world.plans[-1].work)
    world.pass_time(10).step()
    assert RetrieveUpdates in map(type, world.plans[-1].work)


@pytest.mark.parametrize("version", ["5.0.9", "5.0.2"])
def test_an_image_of_another_version_is_refused(version: str) -> None:
    """The release differs from the request, even if its signature is valid."""
    world = World.new().settle()
    world.change(releases={image("5.0.3"): ReleaseCheck(trust=Trust.VERIFIED, version=version)}).ask(ASKED).settle()
    assert accepted(world)[0] == "False"
    assert version in accepted(world)[2]
    assert world.version.status.desired.version == "5.0.0"


def test_an_image_of_that_version_is_taken() -> None:
    """As it should be."""
    world = World.new().settle()
    world.change(releases={image("5.0.3"): ReleaseCheck(trust=Trust.VERIFIED, version="5.0.3")}).ask(ASKED).settle()
    assert world.version.status.desired.version == "5.0.3"


@pytest.mark.parametrize(("version", "taken"), [("5.0.9", False), ("5.0.2", False), ("5.0.3", True)])
def test_a_loaded_release_says_which_it_is(version: str, taken: bool) -> None:
    """The required content counts, not the name of the image."""
    world = World.new().applying().settle()
    loads = {**world.observed.loads, image("5.0.3"): Loading(payload=release(version), at=world.now)}
    world.change(loads=loads).ask(ASKED).settle()
    assert (world.version.status.desired.version == "5.0.3") is taken
    assert taken or (accepted(world)[0] == "False" and version in accepted(world)[2])


def exposed_to(*names: str) -> World:
    """A cluster that asks for an update with these risks."""
    world = World.new()
    risks = [
        {"name": name, "message": "m", "url": "https://u", "matchingRules": [{"type": "Always"}]} for name in names
    ]
    edges = [{"from": "5.0.0", "to": "5.1.0"}]
    world.graph = {**GRAPH, "conditionalEdges": [{"edges": edges, "risks": risks}]}
    return world.settle().ask(Update(version="5.1.0")).settle()


@pytest.mark.parametrize(
    ("more", "shown"),
    [
        pytest.param("", "", id="as many as have room"),
        pytest.param("x", "more", id="a character more"),
    ],
)
def test_how_many_names_of_risks_are_told(more: str, shown: str) -> None:
    """As many as have room in 4096 bytes, and how many more there are."""
    names = [f"R{number:02}" + "x" * 252 for number in range(14)]
    world = exposed_to(*names, "R99" + "x" * 252 + more, "S" + "y" * 255)
    status, reason, text = accepted(world)
    assert (status, reason) == ("False", "UnacceptedRisks")
    listed = text.partition("unaccepted risks [")[2].partition("]")[0]
    assert len(listed) <= 4096
    assert listed.endswith(f"... and 1 {shown}" if shown else "y")


def test_the_image_that_runs_is_nothing_new() -> None:
    """Also where the update service knows nothing of it."""
    world = World.new()
    world.graph = {"nodes": [], "edges": []}
    world.settle().ask(Update(image=OWN)).settle()
    assert accepted(world)[:2] == ("True", "PayloadLoaded")
    assert world.version.status.desired.version == "5.0.0"
    assert world.observed.releases == {}


@pytest.mark.parametrize(("own", "said"), [("", ""), ("Multi", "Multi")])
def test_an_update_stays_with_the_architecture_of_the_cluster(own: Any, said: str) -> None:
    """Where the update service says nothing of it."""
    world = World.new()
    facts = world.observed.facts
    own_release = with_fields(facts.release, architecture=own)
    world.change(facts=replace(facts, release=own_release)).settle().ask(ASKED).settle()
    assert world.version.status.desired.version == "5.0.3"
    assert world.version.status.desired.architecture == said


@pytest.mark.parametrize(
    ("status", "version", "stays"),
    [
        pytest.param("True", "5.0.0", True, id="what runs was accepted"),
        pytest.param("False", "5.0.0", False, id="it was not"),
        pytest.param("True", "5.0.1", False, id="another was"),
    ],
)
def test_what_was_accepted_stays_as_it_was_said(status: Any, version: str, stays: bool) -> None:
    """The source of the request does not matter."""
    world = World.new().settle()
    said = f'Payload loaded version="{version}" image="{OWN}" architecture="of old"'
    conditions = tuple(
        with_fields(each, status=status, message=said) if each.type == "ReleaseAccepted" else each
        for each in world.version.status.conditions
    )
    world.change(
        cluster_version=with_fields(world.version, status=with_fields(world.version.status, conditions=conditions))
    ).settle()
    assert accepted(world)[0] == "True"
    assert (accepted(world)[2] == said) is stays
