"""When an update cordoned, drained, updated and rebooted a node, by recorded events; what has no record is missing."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

import pytest

from kubekit.api.core_v1 import Event, ObjectReference
from kubekit.api.meta_v1 import ObjectMeta
from runup.rules.node_events import APPLY, CORDON, DRAIN, READY, REBOOT
from runup.updatestatus.decide.node_steps import steps_of_nodes

STARTED = datetime(2026, 11, 21, 6, tzinfo=UTC)
NOW = STARTED + timedelta(hours=2)


def event(reason: str, minute: int | None, kind: str = "Node") -> Event:
    """An event about node a, so many minutes after the update began."""
    at = None if minute is None else STARTED + timedelta(minutes=minute)
    about = ObjectReference(kind=kind, name="a")
    return Event(metadata=ObjectMeta(name="e"), involved_object=about, reason=reason, last_timestamp=at)


OPENSHIFT = (
    event("Cordon", 10),
    event("Drain", 11),
    event("OSUpdateStarted", 20),
    event("Reboot", 25),
    event("NodeReady", 30),
    event("Uncordon", 31),
)


@pytest.mark.parametrize(
    ("events", "cordoned", "minutes"),
    [
        pytest.param(OPENSHIFT, None, {CORDON: 10, DRAIN: 11, APPLY: 20, REBOOT: 25, READY: 31}, id="every step"),
        pytest.param(
            (event("NodeNotSchedulable", 10), event("NodeReady", 30), event("NodeSchedulable", 33)),
            None,
            {CORDON: 10, READY: 33},
            id="a kubelet's events",
        ),
        pytest.param((), 9, {CORDON: 9}, id="a taint alone"),
        pytest.param((event("Cordon", 10),), 9, {CORDON: 9}, id="a taint before the event"),
        pytest.param(OPENSHIFT[2:4], None, {APPLY: 20, REBOOT: 25}, id="events that have expired"),
        pytest.param((event("NodeReady", 30),), None, {}, id="ready, and nothing of being away"),
        pytest.param((event("NodeReady", 5), event("Cordon", 10)), None, {CORDON: 10}, id="ready before it was away"),
        pytest.param((event("Cordon", -60), event("Drain", 11)), None, {DRAIN: 11}, id="an event of an earlier update"),
        pytest.param((event("Cordon", 121),), None, {}, id="an event to come"),
        pytest.param((event("Drain", 20), event("Drain", 11)), None, {DRAIN: 11}, id="a drain that was tried again"),
        pytest.param((event("Cordon", 10, kind="Pod"),), None, {}, id="another kind"),
        pytest.param((event("Starting", 10), event("Cordon", None)), None, {}, id="other reasons, and no time"),
    ],
)
def test_finds_the_recorded_steps(events: tuple[Event, ...], cordoned: int | None, minutes: Mapping[str, int]) -> None:
    """The first record of each step counts, and the last of being ready."""
    taints = {} if cordoned is None else {"a": STARTED + timedelta(minutes=cordoned)}
    steps = steps_of_nodes(events, taints, STARTED, NOW).get("a", {})
    assert {step: int((at - STARTED).total_seconds()) // 60 for step, at in steps.items()} == minutes
