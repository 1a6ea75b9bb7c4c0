"""A status that the API server refuses: told in a condition that fits, the rest written, never sent again unchanged."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.clusterversion.decide.world import World, risk

from runup.clusterversion.decide.reconcile import reconcile
from runup.clusterversion.decide.sync_failure import TYPE, RejectedFields
from runup.process.plan import PatchStatus, Plan

SAID = 'ClusterVersion.config.openshift.io "version" is invalid: \x1b[31m' + "x" * 5000


def _patches(plan: Plan[object]) -> list[PatchStatus]:
    return [action for action in plan.actions if isinstance(action, PatchStatus)]


def _refuse(world: World, *causes: str) -> PatchStatus:
    """The API server refuses what is planned, and says why."""
    (patch,) = _patches(reconcile(world.observed, now=world.now))
    world.change(refused=world.observed.refused.and_also(patch.fields, causes, SAID))
    return patch


def _reported() -> World:
    world = World.new().ask_preflight().settle()
    return world.report(risk("Odd"))


CAUSES = [
    (
        "the field at fault is named",
        ("status.conditionalUpdates[0].risks[1].url", "status.conditionalUpdateRisks[1].url"),
        {"conditionalUpdates", "conditionalUpdateRisks"},
        "True",
    ),
    ("none is named", (), {"conditionalUpdates", "conditionalUpdateRisks"}, "True"),
    ("it is the conditions themselves", ("status.conditions[3].message",), {"conditions"}, "False"),
]


@pytest.mark.parametrize(("causes", "left", "completed"), [row[1:] for row in CAUSES], ids=[row[0] for row in CAUSES])
def test_what_was_refused_stays_out_and_is_told(causes: tuple[str, ...], left: set[str], completed: str) -> None:
    """The other fields are written, the condition fits and names what is missing; then nothing is planned."""
    world = _reported()
    refused = _refuse(world, *causes)
    again = _patches(world.step())
    assert all(not (left - {"conditions"}) & set(patch.fields) for patch in again)
    assert left <= set(refused.fields)
    assert world.condition(TYPE) == ("True", "StatusInvalid")
    assert all(name in world.message(TYPE) for name in left)
    assert "\x1b" not in world.message(TYPE)
    assert len(world.message(TYPE)) <= 1000
    found = world.condition("PreflightCompleted")
    assert found is not None
    assert found[0] == completed
    world.pass_time(60)
    assert not _patches(world.settle().plans[-1])


def test_not_even_the_condition_is_sent_twice() -> None:
    """An API server that takes no conditions at all is left alone."""
    world = _reported()
    _refuse(world, "status.conditions")
    _refuse(world, "status.conditions")
    for patch in _patches(reconcile(world.observed, now=world.now)):
        assert "conditions" not in patch.fields


def test_another_value_is_tried() -> None:
    """A change may fit: the status is written in full, and the condition is removed."""
    world = _reported()
    _refuse(world, "status.conditionalUpdates", "status.conditionalUpdateRisks")
    world.settle()
    world.report(risk("Even")).settle()
    assert "Even" in world.risks("5.2.0")
    assert world.condition(TYPE) is None


def test_a_time_that_moved_is_no_other_value() -> None:
    """A refused value is known again a minute later."""
    world = _reported()
    patch = _refuse(world, "status.conditionalUpdates")
    world.pass_time(60)
    later = replace(world.observed, refused=RejectedFields())
    (fresh,) = _patches(reconcile(later, now=world.now))
    assert fresh.fields["conditionalUpdates"] != patch.fields["conditionalUpdates"]
    (shown,) = _patches(reconcile(world.observed, now=world.now))
    assert "conditionalUpdates" not in shown.fields


def test_no_more_is_remembered_than_there_is_room_for() -> None:
    """Two hundred refused values; at the next all before are tried again."""
    refused, most = RejectedFields(), 0
    for number in range(401):
        refused = refused.and_also({"versionHash": number}, (), SAID)
        most = max(most, len(refused.values))
    assert (most, len(refused.values)) == (200, 1)
