"""Results of ended and silent preflights are reported once, by name and with their state."""

from __future__ import annotations

import pytest
from msgspec.structs import replace as with_fields
from tests.clusterversion.decide.test_live_or_dated import TO, checked
from tests.clusterversion.decide.world import World, image, risk
from tests.factories import SINCE

from kubekit.api.conditions import find
from runup.api.config_v1 import Update, UpdateHistory
from runup.clusterversion.decide.upgrade_target import Flags, Target, choose
from runup.preflight.decide.outcome import ReportSeen

NAMES = ("A", "B", "C", "D", "E")
SENTENCE = "Found by the preflight for 5.0.3 from 5.0.0 at "


def recommended(world: World) -> str:
    """The message of Recommended of the update to 5.0.3."""
    update = next(each for each in world.version.status.conditional_updates if each.release.version == "5.0.3")
    found = find(update.conditions, "Recommended")
    assert found is not None
    return found.message


def ended() -> World:
    """A cluster whose preflight of 5.0.3 found five things and was cleared."""
    return checked(*map(risk, NAMES)).ask(None).settle()


def test_an_ended_preflight_in_the_condition() -> None:
    """All names, one sentence."""
    message = recommended(ended())
    assert message.startswith(f"A, B, C, D, E: {SENTENCE}")
    assert message.count(SENTENCE) == 1


def test_what_is_accepted_is_not_named() -> None:
    """It objects to nothing."""
    assert recommended(ended().accept("A", "C").settle()).startswith(f"B, D, E: {SENTENCE}")


def test_an_ended_preflight_in_the_warning_of_the_command() -> None:
    """The same."""
    target = choose(ended().version, Flags(to="5.0.3"))
    assert isinstance(target, Target)
    ((_, text),) = target.said
    assert text.partition("\n")[2].startswith(f"  A, B, C, D, E: {SENTENCE}")
    assert text.count(SENTENCE) == 1


def test_an_ended_preflight_is_no_precondition_that_failed() -> None:
    """It holds no update up; the history says which names nobody looked at again."""
    world = ended().ask(TO).settle()
    assert world.version.status.desired.version == "5.0.3"
    assert [event for event in world.events if event.reason.startswith("Precondition")] == []
    assert world.version.status.history[0].accepted_risks == (
        "No new preflight confirmed the earlier findings: [A,B,C,D,E]."
    )


def test_a_completed_preflight_that_falls_silent() -> None:
    """It has completed; what it found is not confirmed, as of when it was."""
    world = checked(risk("A"))
    seen = world.observed.report
    assert seen is not None
    world.change(
        report=ReportSeen(preflight_id=seen.preflight_id, content=seen.content, read_at=seen.read_at, unchanged_s=90)
    ).settle()
    assert world.condition("PreflightCompleted") == ("False", "ReportStale")
    assert world.message("PreflightCompleted") == (
        "Preflight of 5.0.3 from 5.0.0 completed, and what it found is not confirmed any more "
        "(as of 2026-01-14T10:00:00Z)."
    )


@pytest.mark.parametrize(
    ("before", "asked", "named"),
    [
        pytest.param("4.22.9", Update(mode="Preflight", version="4.22.9"), False, id="of another minor version"),
        pytest.param("5.0.0-rc.1", Update(mode="Preflight", version="5.0.0-rc.1"), True, id="the previous release"),
        pytest.param("5.0.0-rc.1", Update(mode="Preflight", version="5.0.0-rc.0"), False, id="one before that"),
        pytest.param("", Update(mode="Preflight", version="5.0.0-rc.1"), False, id="nothing was before"),
    ],
)
def test_a_way_back_is_named_where_there_is_one(before: str, asked: Update, named: bool) -> None:
    """A preflight of an older release is refused."""
    world = World.new().settle()
    old = UpdateHistory(state="Completed", started_time=SINCE, version=before, image=image("4.0.0"))
    status = world.version.status
    entries = (*status.history, *((old,) if before else ()))
    world.change(cluster_version=with_fields(world.version, status=with_fields(status, history=entries)))
    world.ask(asked).settle()
    assert world.condition("PreflightFailed") == ("True", "TargetIsDowngrade")
    assert ("use `runup upgrade rollback`" in world.message("PreflightFailed")) is named
    assert ("choose a newer target" in world.message("PreflightFailed")) is not named
