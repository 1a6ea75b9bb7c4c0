"""Requests of clients that do not know `mode`: they stay preflights, and what the client wanted is said."""

from __future__ import annotations

import pytest
from tests.clusterversion.decide.world import World, image

from kubekit.api.conditions import find
from runup.api.config_v1 import Update
from runup.clusterversion.decide.upgrade_request import invalid_request, kept_mode
from runup.clusterversion.decide.upgrade_target import Flags, Target, choose
from runup.preflight.decide import stored_reports

MODE = "Preflight"
BY_VERSION = Update(mode=MODE, version="5.0.3")
BY_IMAGE = Update(mode=MODE, image=image("5.0.3"))
# The merge patch of `oc adm upgrade --to` has version and image, and keeps the mode:
# https://github.com/openshift/oc/blob/main/pkg/cli/admin/upgrade/upgrade.go
OF_OC = Update(mode=MODE, version="5.0.3", image=image("5.0.3"))
REFUSED = Update(mode=MODE, version="5.7.7")
OF_OC_ELSEWHERE = Update(mode=MODE, version="5.1.0", image=image("5.1.0"))


def _preflight(asked: Update) -> World:
    world = World.new().settle().ask(asked).settle()
    return world.report().settle() if asked != REFUSED else world


def _reasons(world: World) -> list[str]:
    return [event.reason for event in world.events]


@pytest.mark.parametrize(
    ("first", "then", "shown"),
    [
        pytest.param(BY_VERSION, OF_OC, "5.0.3", id="`oc adm upgrade --to` of the version that is checked"),
        pytest.param(BY_IMAGE, OF_OC, "5.0.3", id="`oc adm upgrade --to` of the image that is checked"),
        pytest.param(BY_VERSION, OF_OC_ELSEWHERE, "5.1.0", id="`oc adm upgrade --to` of another version"),
        pytest.param(OF_OC, OF_OC_ELSEWHERE, "5.1.0", id="`--to` of another version after a preflight of both"),
        pytest.param(BY_VERSION, BY_IMAGE, "", id="a preflight of the same release by image"),
        pytest.param(REFUSED, OF_OC, "5.0.3", id="`oc adm upgrade --to` after a preflight that was refused"),
        pytest.param(REFUSED, BY_VERSION, "", id="another preflight after one that was refused"),
        pytest.param(BY_VERSION, Update(mode=MODE, version="5.1.0"), "", id="a preflight of another version"),
        pytest.param(BY_IMAGE, BY_VERSION, "", id="the same preflight by version"),
        pytest.param(BY_VERSION, BY_VERSION, "", id="the same preflight again"),
    ],
)
def test_a_request_that_kept_its_mode_stays_a_preflight(first: Update, then: Update, shown: str) -> None:
    """Nothing updates; an event, a condition and the command say so once."""
    world = _preflight(first)
    world.ask(then).settle().pass_time(61).settle()
    assert world.version.status.desired.version == "5.0.0"
    text = f"`runup upgrade --to={shown}`"
    events = [event.message for event in world.events if event.reason == "PreflightKeptMode"]
    running = find(world.version.status.conditions, "PreflightRunning")
    output = kept_mode(world.version, stored_reports.read(world.observed.history).attempt)
    assert running is not None
    said = [*events, running.message, *(part for _, part in output)]
    assert [text in part for part in said] == ([True] * 3 if shown else [False])


def test_a_request_with_the_mode_of_a_preflight_ends_the_message() -> None:
    """`runup upgrade --mode=preflight --to` after `oc adm upgrade --to`."""
    world = _preflight(BY_VERSION)
    world.ask(OF_OC).settle().ask(BY_VERSION).settle()
    running = find(world.version.status.conditions, "PreflightRunning")
    assert running is not None
    assert "kept mode" not in running.message
    assert kept_mode(world.version, stored_reports.read(world.observed.history).attempt) == ()


@pytest.mark.parametrize(
    ("requests", "warns"),
    [
        pytest.param((BY_VERSION, Update(version="5.0.3")), True, id="the mode alone is lost"),
        pytest.param((BY_IMAGE, Update(image=image("5.0.3"))), True, id="the mode alone is lost, by image"),
        pytest.param(
            (BY_VERSION, Update(version="5.0.3", image=image("5.0.3"))), False, id="`runup upgrade --to` asks for it"
        ),
        pytest.param(
            (BY_VERSION, OF_OC, Update(version="5.0.3", image=image("5.0.3"))), False, id="an update that kept its mode"
        ),
        pytest.param((BY_VERSION, Update(version="5.1.0", image=image("5.1.0"))), False, id="another update"),
    ],
)
def test_became_update_is_for_a_request_that_lost_only_its_mode(requests: tuple[Update, ...], warns: bool) -> None:
    """An update that somebody asked for needs no warning that it is one."""
    world = _preflight(requests[0])
    for request in requests[1:]:
        world.ask(request).settle()
    assert ("PreflightBecameUpdate" in _reasons(world)) is warns


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        pytest.param(
            Update(version="5.2.0"),
            (
                "No update to 5.2.0 starts: a request without mode Preflight is an update, and the update service does "
                "not offer this one.",
                f"`runup preflight explain UpdatePathNotOffered` says how to reach it. To go there all the same, name "
                f"its image: --to-image={image('5.2.0')} --allow-explicit-upgrade. To take the request back: "
                "runup upgrade --clear",
            ),
            id="the mode of a preflight was removed, and the target is not offered",
        ),
        pytest.param(
            Update(version="8.8.8"),
            (
                'The cluster version is invalid: spec.desiredUpdate.version: Invalid value: "8.8.8": when image is '
                "empty the update must be an available update",
                "To take the request back: runup upgrade --clear",
            ),
            id="a version that nobody knows",
        ),
        pytest.param(Update(version="5.0.3"), (), id="the mode was removed, and the target is offered"),
        pytest.param(None, (), id="no request"),
    ],
)
def test_a_request_that_cannot_be_met_names_the_cause_and_the_ways_out(
    asked: Update | None, said: tuple[str, ...]
) -> None:
    """`runup upgrade` says so in the next pass of the operator; oc's text says only that the request is invalid."""
    world = World.new().settle().ask(Update(mode=MODE, version="5.2.0")).settle().report().settle()
    world.ask(asked).settle()
    assert "".join(part for _, part in invalid_request(world.version)).split("\n")[1:-1] == list(said)


def test_an_update_to_the_image_of_a_preflight_names_its_version() -> None:
    """Else `runup upgrade --to-image` would send what is left of the preflight's request without its mode."""
    world = _preflight(Update(mode=MODE, image=image("5.2.0")))
    target = choose(world.version, Flags(to_image=image("5.2.0"), allow_explicit_upgrade=True))
    assert isinstance(target, Target)
    assert (target.version, target.image) == ("5.2.0", image("5.2.0"))
    world.ask(Update(version=target.version, image=target.image)).settle()
    assert "PreflightBecameUpdate" not in _reasons(world)
