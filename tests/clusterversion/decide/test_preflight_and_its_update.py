"""A preflight makes the update to its own target no stricter, and ends with its mode (docs/decisions/0076)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace as with_fields
from tests.clusterversion.decide.test_live_or_dated import TO, checked, verdict
from tests.clusterversion.decide.world import World, image, risk
from tests.factories import NOW, condition

from kubekit.api.conditions import with_condition
from runup.api.config_v1 import AcceptRisk, Update
from runup.checks import risk_pages
from runup.cli.preflight.render.finding_texts import counted_risks, verdict_parts
from runup.clusterversion.decide import assemble
from runup.clusterversion.decide.upgrade_request import way_back
from runup.preflight.decide import published_risks, stored_reports
from runup.preflight.decide.attempt import END_ANNOTATION
from runup.preflight.decide.findings import current_findings, findings_of_target

PATCHES: dict[str, Any] = {
    "nodes": [{"version": v, "payload": image(v)} for v in ("5.0.0", "5.0.3", "5.0.4", "5.1.0")],
    "edges": [[0, 1], [0, 2], [0, 3], [1, 2], [1, 3], [2, 3]],
    "conditionalEdges": [],
}
FAILURE = (risk("ClusterVersionUpdating"), risk("SystemPodsFailing"), risk("ClusterOperatorDegraded-storage"))


def stuck(target: str, *found: Any) -> World:
    """A cluster whose update to 5.0.3 does not get on, with a preflight of another release that found that much."""
    world = World.new()
    world.graph = PATCHES
    world.settle().ask(TO).settle()
    assert world.version.status.history[0].state == "Partial"
    world.ask_preflight(target).settle()
    return world.report(*found, source_version="5.0.3").settle()


def failing(target: str, *found: Any) -> World:
    """A cluster that fails to apply its own release."""
    world = World.new()
    world.graph = PATCHES
    status = world.version.status
    conditions = with_condition(status.conditions, condition("Failing", "True", reason="ClusterOperatorDown"), now=NOW)
    world.change(cluster_version=with_fields(world.version, status=with_fields(status, conditions=conditions)))
    world.settle().ask_preflight(target).settle()
    return world.report(*found).settle()


@pytest.mark.parametrize(("scene", "guard"), [(stuck, "Progressing"), (failing, "Failing")])
def test_a_patch_is_not_held_up_by_the_failure_that_it_repairs(scene: Callable[..., World], guard: str) -> None:
    """It stays recommended, says what it found all the same, and goes without anything accepted.

    Only the command wants a flag while the cluster is in that state, and the verdict has it (docs/decisions/0075).
    """
    world = scene("5.0.4", *FAILURE)
    assert {status for status, _ in world.risks("5.0.4").values()} == {"True"}
    assert {reason for _, reason in world.risks("5.0.4").values()} == {"PreflightInforms"}
    assert "which this update may repair" in verdict(world, "SystemPodsFailing")
    assert "5.0.4" in world.available
    assert world.recommended("5.0.4") == ("True", "RepairsFailure")
    found = current_findings(world.version, stored_reports.read(world.observed.history))
    assert found is not None
    assert not any(one.open for one in found.risks)
    assert (found.exit_code, counted_risks(found.risks)) == (2, "3 describe what this may repair")
    assert verdict_parts(found) == (
        f"Verdict: 3 describe what this may repair, but `--to` refuses while {guard}=True (`runup upgrade` says why). "
        "Continue anyway with:",
        "runup upgrade --to=5.0.4 --allow-upgrade-with-warnings",
    )
    assert {one.state for one in found.risks} == {"informs"}
    assert "0 risks apply, 3 describe the failure that this may repair" in world.message("PreflightCompleted")
    world.ask(Update(version="5.0.4")).settle()
    assert world.version.status.desired.version == "5.0.4"
    assert world.observed.deployment is None


@pytest.mark.parametrize("scene", [stuck, failing])
def test_what_only_the_target_knows_holds_a_repair_up(scene: Callable[..., World]) -> None:
    """And is the only name to accept."""
    world = scene("5.0.4", *FAILURE, risk("RemovedFlag")).ask(Update(version="5.0.4")).settle()
    assert world.condition("ReleaseAccepted") == ("False", "UnacceptedRisks")
    assert "[RemovedFlag]" in world.message("ReleaseAccepted")
    assert world.recommended("5.0.4") == ("False", "RemovedFlag")
    world.accept("RemovedFlag").settle()
    assert world.version.status.desired.version == "5.0.4"


def test_the_way_back_is_refused_for_nothing() -> None:
    """Neither by the command nor by what the preflight of it says, while the update makes the cluster progress."""
    world = stuck("5.0.4")
    history = stored_reports.read(world.observed.history)
    target = way_back(world.version, version="5.0.0", image="")
    assert target is not None
    assert target.takes_back
    for version, of_image in (("5.0.0", ""), ("", image("5.0.0"))):
        assert findings_of_target(world.version, history, version, of_image).guards == ()
    assert [guard.type for guard in findings_of_target(world.version, history, "5.0.4").guards] == ["Progressing"]


def test_another_minor_version_repairs_nothing() -> None:
    """A minor update starts from a cluster that is whole."""
    world = stuck("5.1.0", *FAILURE).ask(Update(version="5.1.0")).settle()
    assert world.condition("ReleaseAccepted") == ("False", "UnacceptedRisks")
    assert "ClusterVersionUpdating" in world.message("ReleaseAccepted")


def test_a_whole_cluster_has_nothing_to_repair() -> None:
    """There the same findings hold a patch up, as any others."""
    world = checked(*FAILURE).ask(TO).settle()
    assert world.condition("ReleaseAccepted") == ("False", "UnacceptedRisks")
    running = world.version.status.desired
    assert assemble.failure(world.version.status, running, with_fields(running, version="5.0.4")) == ""


def test_every_finding_about_a_failure_is_a_documented_one() -> None:
    """A name that no check has any more would let nothing pass."""
    documented = {name.partition("-")[0].removesuffix("Unknown") for name in risk_pages.names()}
    assert documented >= published_risks.FAMILIES


ENDED: dict[str, Callable[[World], World]] = {
    "it is taken back": lambda w: w.ask(None),
    "it is refused for a risk of the update service": lambda w: w.ask(Update(version="5.1.0")),
    "it is for another release": lambda w: w.ask(Update(version="5.2.0", image=image("5.2.0"))),
    "its signature does not hold": lambda w: _distrust(w).ask(Update(version="5.1.0", accept_risks=SLOW)),
}
SLOW = (AcceptRisk(name="SlowNodeDrain"),)


def _distrust(world: World) -> World:
    world.trusted = False
    return world.change(releases={})


@pytest.mark.parametrize("down", [False, True], ids=["at once", "as the operator comes back"])
@pytest.mark.parametrize("end", ENDED)
def test_the_target_goes_with_its_mode(end: str, down: bool) -> None:
    """Whatever the request without a mode leads to, but waiting for the findings."""
    world = checked(version="5.1.0")
    assert world.observed.deployment is not None
    ENDED[end](world)
    if down:
        seen = world.observed.report
        world.change(service=type(world.observed.service)(), releases={}, report=None).settle()
        # What still runs by then is read again before it is known that nothing waits for it.
        world.change(report=seen if world.observed.deployment else None)
    world.settle()
    assert world.observed.deployment is None
    assert world.condition("PreflightRunning") is None
    assert world.version.status.desired.version == "5.0.0"


@pytest.mark.parametrize(
    ("request_", "reason"),
    [
        pytest.param(Update(version="5.2.0"), "PayloadLoaded", id="by version, which is Invalid"),
        pytest.param(Update(image=image("5.2.0")), "PreconditionChecks", id="by image, which the preconditions refuse"),
    ],
)
def test_the_target_goes_where_its_release_is_not_offered(request_: Update, reason: str) -> None:
    """Not offering it is the update's own guard, and no finding that another look at the cluster could change."""
    world = World.new().settle().ask_preflight("5.2.0").settle()
    world.report().settle()
    assert "UpdatePathNotOffered" in world.risks("5.2.0")
    assert world.observed.deployment is not None
    world.ask(request_).settle()
    assert world.condition("ReleaseAccepted")[1] == reason
    assert world.observed.deployment is None
    assert world.condition("PreflightRunning") is None


def test_the_target_goes_during_an_update() -> None:
    """Also of one that does not get on."""
    world = stuck("5.1.0", risk("RemovedFlag"))
    assert world.observed.deployment is not None
    world.ask(TO).settle()
    assert world.observed.deployment is None


@pytest.mark.parametrize(
    ("found", "report"),
    [
        pytest.param((risk("PoolPaused"),), True, id="refused for what it found"),
        pytest.param((), False, id="waiting for a target that hangs"),
    ],
)
def test_the_way_out_of_a_waiting_update(found: tuple[Any, ...], report: bool) -> None:
    """The message names it; it ends the preflight alone, and the update goes."""
    world = World.new().settle().ask_preflight("5.0.3").settle()
    world = (world.report(*found).settle() if report else world).ask(TO).settle()
    assert "or continue without it: `runup upgrade --clear-preflight`" in world.message("ReleaseAccepted")
    metadata = with_fields(world.version.metadata, annotations={END_ANNOTATION: world.attempt_id})
    world.change(cluster_version=with_fields(world.version, metadata=metadata)).settle()
    assert world.observed.deployment is None
    assert world.version.status.desired.version == "5.0.3"


def test_the_end_of_another_attempt_is_not_this_ones() -> None:
    """The annotation stays where it is, and ends one attempt only."""
    world = checked(risk("PoolPaused"))
    metadata = with_fields(world.version.metadata, annotations={END_ANNOTATION: "preflight-1-0123456789"})
    world.change(cluster_version=with_fields(world.version, metadata=metadata)).ask(TO).settle()
    assert world.observed.deployment is not None


def test_how_long_a_hanging_target_is_waited_for_is_said() -> None:
    """The time at which the update continues by itself, which does not move from pass to pass."""
    world = World.new().settle().ask_preflight("5.0.3").settle().ask(TO).settle()
    message = world.message("ReleaseAccepted")
    assert "to finish, until 2026-01-14T10:10:00Z at the latest: " in message
    assert "`runup upgrade accept PreflightInProgress`" in message
    later = world.pass_time(120).settle().message("ReleaseAccepted")
    assert later.partition(": ")[0] == message.partition(": ")[0]
