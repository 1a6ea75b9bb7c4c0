"""An acceptance with an end counts until then, wakes the operator at its end, and is reported as expired."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from tests.clusterversion.decide.world import World

from kubekit.api.core_v1 import ConfigMap
from runup.advice.decide import acceptance
from runup.advice.decide.acceptance import Acceptance
from runup.api.config_v1 import AcceptRisk, Update
from runup.clusterversion.decide.reconcile import reconcile

ASKED = Update(version="5.1.0", accept_risks=(AcceptRisk(name="SlowNodeDrain"),))


def _world_with_acceptance(ends_in: timedelta) -> World:
    """A cluster whose one risk is accepted, with an end, before anything is asked of it."""
    world = World.new().settle()
    record = Acceptance(name="SlowNodeDrain", until=world.now + ends_in)
    data = {acceptance.key_of(record.name): acceptance.encode_record(record)}
    world.observed = replace(world.observed, acceptances=ConfigMap(data=data))
    return world


def test_before_its_end_it_counts() -> None:
    """And the update goes."""
    world = _world_with_acceptance(timedelta(hours=1)).ask(ASKED).settle()
    assert world.version.status.desired.version == "5.1.0"


def test_after_its_end_the_risk_blocks_and_the_end_is_told() -> None:
    """The name is still in the list; that it does not count any more is in the message."""
    world = _world_with_acceptance(-timedelta(hours=1)).ask(ASKED).settle()
    assert world.condition("ReleaseAccepted") == ("False", "UnacceptedRisks")
    assert "[SlowNodeDrain]" in world.message("ReleaseAccepted")
    assert "The acceptance of SlowNodeDrain ended at " in world.message("ReleaseAccepted")


def test_its_end_is_not_waited_out_in_sleep() -> None:
    """The next look is at the end at the latest, and then Recommended says so."""
    world = _world_with_acceptance(timedelta(seconds=20)).ask(Update(accept_risks=ASKED.accept_risks)).settle()
    plan = reconcile(world.observed, now=world.now)
    assert plan.requeue_after_s is not None
    assert 0 < plan.requeue_after_s <= 20
    entry = next(u for u in world.version.status.conditional_updates if u.release.version == "5.1.0")
    assert entry.conditions[0].status == "True"
    world.now += timedelta(seconds=20)
    world.settle()
    entry = next(u for u in world.version.status.conditional_updates if u.release.version == "5.1.0")
    assert entry.conditions[0].status == "False"
