"""The inputs of decisions about FleetUpdates: the hub's engine, and the reports of agents."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from tests.fleet.decide.fleet_updates import IMAGE, at, fleet_update, managed_cluster

from kubekit.api import codec
from runup.api.hub_v1 import ManifestWork
from runup.fleet.decide.hub_update.cluster_states import RunState, TurnState, run_state, state_of, turn_state
from runup.fleet.decide.hub_update.engine_objects import set_name, turns_name
from runup.fleet.decide.hub_update.observation import GATE, HubInputs, engine_refusal, observe

JSON = dict[str, Any]
NOW = at("10:00")
ENABLED = {"workConfiguration": {"featureGates": [{"feature": GATE, "mode": "Enable"}]}}


def manager(image: str = "", **changes: Any) -> JSON:
    """A ClusterManager with the feature gate."""
    return {"spec": {**ENABLED, "workImagePullSpec": image, **changes}}


def replica_set(age: timedelta, **status: Any) -> JSON:
    """A replica set of that age."""
    return {"metadata": {"name": "s", "creationTimestamp": (NOW - age).isoformat()}, "status": status}


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({}, None),
        ({"serves_sets": False}, "EngineMissing"),
        ({"manager": manager()}, None),
        ({"manager": {"spec": {}}}, "FeatureGateDisabled"),
        ({"manager": manager(workConfiguration={"featureGates": [{"feature": GATE}]})}, "FeatureGateDisabled"),
        # An engine that counts a work that exists as done.
        pytest.param(
            {"manager": manager("quay.io/open-cluster-management/work:v1.0.0")}, "EngineTooOld", id="55: version 1.0.0"
        ),
        ({"manager": manager("quay.io/open-cluster-management/work:v0.16.1")}, "EngineTooOld"),
        ({"manager": manager("quay.io/open-cluster-management/work:v1.2.0")}, None),
        ({"manager": manager("quay.io/open-cluster-management/work:v1.10.0-rc1")}, None),
        # By digest the version is not known; the fuse counts all the same.
        ({"manager": manager("quay.io/open-cluster-management/work@sha256:" + "1" * 64)}, None),
        ({"sets": [replica_set(timedelta(minutes=4))]}, None),
        ({"sets": [replica_set(timedelta(minutes=6))]}, "EngineNotAnswering"),
        ({"sets": [replica_set(timedelta(minutes=6), conditions=[{"type": "x"}])]}, None),
    ],
)  # fmt: skip
def test_refuses_an_engine(changes: JSON, reason: str | None) -> None:
    """An engine that is missing, off, too old or silent carries out nothing."""
    refused = engine_refusal(HubInputs(now=NOW, **changes))
    assert (refused.reason if refused else None) == reason


def work(conditions: JSON, values: JSON | None = None, **changes: Any) -> ManifestWork:
    """A work of generation 2 whose conditions are of `observed`, by default that one."""
    observed = changes.pop("observed", 2)
    stated = [{"type": type_, "status": state, "observedGeneration": observed} for type_, state in conditions.items()]
    feedback = [
        {"name": name, "fieldValue": {"type": "Boolean", "boolean": value}}
        if isinstance(value, bool)
        else {"name": name, "fieldValue": {"type": "String", "string": value}}
        for name, value in (values or {}).items()
    ]
    manifests = [{"resourceMeta": {}, "statusFeedback": {"values": feedback}}]
    body = {
        "metadata": {"name": "w", "namespace": "a", "generation": 2, **changes},
        "spec": {},
        "status": {"conditions": stated, "resourceStatus": {"manifests": manifests}},
    }
    return codec.convert(ManifestWork, body)


@pytest.mark.parametrize(
    ("of", "expected"),
    [
        (work({}), TurnState()),
        (work({"Applied": "True", "Progressing": "True"}), TurnState()),
        (work({"Applied": "True", "Progressing": "False"}), TurnState(counts_as_done=True)),
        (work({"Applied": "True", "Progressing": "False"}, observed=1), TurnState()),
        (work({"Applied": "False", "Progressing": "False"}), TurnState()),
        (work({"Applied": "True", "Progressing": "True", "Degraded": "True"}), TurnState(counts_as_failed=True)),
        # Progressing=False is success to the engine, whatever Degraded is.
        (work({"Applied": "True", "Progressing": "False", "Degraded": "True"}), TurnState(counts_as_done=True)),
        (work({"Applied": "True", "Progressing": "Unknown"}), TurnState()),
    ],
)
def test_counts_a_turn_as_the_engine_does(of: ManifestWork, expected: TurnState) -> None:
    """Only what the agent has observed of this generation counts."""
    assert turn_state(of) == expected


def test_reads_and_bounds_a_report() -> None:
    """Values are shortened and printable; a step that is missing is Waiting only if the gates are known."""
    values = {"step": "ControlPlane", "gates": "Latched", "image": IMAGE, "started": "2026-11-30T09:00:00Z"}
    found = run_state(work({"Applied": "True"}, {**values, "gated": True}))
    assert found == RunState(is_current=True, step="ControlPlane", gates="Latched", image=IMAGE, begun=True, gated=True)
    assert run_state(work({}, {"gates": "NoTurn"})).step == "Waiting"
    assert run_state(work({})) == RunState()
    hostile = run_state(work({}, {"step": "\x1b[2J" + "x" * 5000, "failure": "y" * 5000}))
    assert len(hostile.step.encode()) <= 1200 and "\x1b" not in hostile.step
    assert state_of(hostile, managed_cluster("a"), IMAGE) == "unknown"
    # The hub has no such cluster any more.
    assert state_of(found, None, IMAGE) == "unknown"


def test_finds_the_works_of_a_stage() -> None:
    """By the names of the sets, which another FleetUpdate of the same name does not have."""
    fleet = fleet_update()
    other = fleet_update(metadata={"uid": "u-2"})
    names = [set_name(fleet, 0, "runs"), turns_name(fleet, 0, 2), set_name(other, 0, "runs")]
    works = [work({"Applied": "True"}, {"gates": "NoTurn"}, name=name) for name in names]
    sets = [{"metadata": {"name": name}} for name in names]
    inputs = HubInputs(
        now=NOW, works=works, sets=sets, placements={"canary": {"spec": {}}}, decisions={"canary": ("b", "a")}
    )
    [seen] = observe(fleet, inputs).stages
    assert (seen.members, list(seen.runs), list(seen.turns), seen.sets) == (
        ("a", "b"),
        ["a"],
        [2],
        frozenset(names[:2]),
    )
    [without] = observe(fleet, HubInputs(now=NOW)).stages
    assert without.members is None
