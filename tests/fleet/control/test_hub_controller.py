"""The controller of fleet updates on the sandbox as a hub. Numbers are of cases."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from tests.fleet.control.hub_world import FLEETS, NAMESPACE, HubWorld, hub_world
from tests.fleet.decide.fleet_updates import IMAGE, rollout, stage

from kubekit.kube import calls
from kubekit.kube.api_errors import Invalid
from kubekit.lang.text import timestamp
from runup.fleet.decide.hub_update.engine_objects import CONDITION_RULES, PLACEMENT
from runup.rollout.decide.turns import CLAIM

HOUR = timedelta(hours=1)


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HubWorld]:
    """A hub whose engine is the test."""
    with hub_world(tmp_path_factory.mktemp("fleet-update") / "data") as made:
        yield made


@pytest.mark.slow
def test_writes_sets_for_the_engine(hub: HubWorld) -> None:
    """A stage becomes runs for all, turns by the stage's own rollout, and a Placement of clusters that are ready."""
    hub.begin("a", "b", stages=[stage(rollout=rollout(1))])
    hub.passes(3)
    sets = hub.sets()
    assert sorted(sets) == ["runs", "t1"]
    [runs], [turns] = (sets[part]["spec"]["placementRefs"] for part in ("runs", "t1"))
    assert (runs["name"], runs["rolloutStrategy"], turns["rolloutStrategy"]) == ("canary", {"type": "All"}, rollout(1))
    [config] = sets["t1"]["spec"]["manifestWorkTemplate"]["manifestConfigs"]
    assert config["conditionRules"] == CONDITION_RULES
    placement = hub.client.send(calls.get_raw(PLACEMENT, turns["name"], NAMESPACE))
    [predicate] = placement["spec"]["predicates"]
    [selected] = predicate["requiredClusterSelector"]["claimSelector"]["matchExpressions"]
    run = sets["runs"]["spec"]["manifestWorkTemplate"]["workload"]["manifests"][0]["metadata"]["name"]
    assert (selected["key"], selected["values"]) == (CLAIM, [f"{run}.{round_}" for round_ in (1, 2, 3)])
    assert hub.condition("Ready") == ("True", "AsExpected")
    before = {name: each["metadata"]["resourceVersion"] for name, each in hub.sets().items()}
    version = hub.fleet().metadata.resource_version
    hub.passes(3)
    assert {name: each["metadata"]["resourceVersion"] for name, each in hub.sets().items()} == before
    assert hub.fleet().metadata.resource_version == version


def test_40_a_failure_ends_permits(hub: HubWorld) -> None:
    """With maxFailures 0 one failed cluster ends the permit of all; what has begun continues."""
    hub.begin("a", "b", stages=[stage(rollout=rollout(2))])
    hub.passes(3)
    for name in "ab":
        hub.run(name, "ControlPlane", gates="Latched")
    hub.passes()
    later = hub.permit()
    hub.run("a", "Failed")
    hub.passes()
    assert hub.permit() < later
    assert hub.condition("Failed") == ("True", "FuseBlown")
    assert [(each.kind, each.clusters) for each in hub.fleet().status.troubles] == [("Failed", ("canary/a: x",))]
    assert sorted(hub.sets()) == ["runs", "t1"]


def test_41_hold_and_resume(hub: HubWorld) -> None:
    """Hold ends the permit at once, and no rollout restarts: the set of turns is not written."""
    hub.begin("a", "b", stages=[stage()])
    hub.passes(3)
    turns = hub.sets()["t1"]["metadata"]["resourceVersion"]
    hub.client.send(calls.merge_patch(FLEETS, "five-one", {"spec": {"control": "Hold"}}, NAMESPACE))
    hub.passes(2)
    held = hub.permit()
    assert hub.condition("Held") == ("True", "Hold")
    assert held == timestamp(hub.fleet().status.permit_until)
    hub.client.send(calls.merge_patch(FLEETS, "five-one", {"spec": {"control": "Run"}}, NAMESPACE))
    hub.passes(2)
    assert (hub.condition("Held"), hub.permit() > held) == (("False", "Running"), True)
    assert hub.sets()["t1"]["metadata"]["resourceVersion"] == turns


def test_53_a_hub_that_was_dead_continues(hub: HubWorld) -> None:
    """After two hours without the hub the permit is renewed, and neither runs nor turns are created again."""
    hub.begin("a", "b", stages=[stage()])
    hub.passes(3)
    hub.run("a", "ControlPlane", gates="Latched")
    before = hub.sets()
    hub.passes(2, later=2 * HOUR)
    after = hub.sets()
    assert [after[part]["metadata"]["uid"] for part in after] == [before[part]["metadata"]["uid"] for part in before]
    assert after["t1"]["metadata"]["resourceVersion"] == before["t1"]["metadata"]["resourceVersion"]
    names = [
        each["spec"]["manifestWorkTemplate"]["workload"]["manifests"][0]["metadata"]["name"]
        for each in (before["runs"], after["runs"])
    ]
    assert names[0] == names[1]


def test_56_a_turn_that_counts_as_done_by_an_error(hub: HubWorld) -> None:
    """The agent's rule erred, so the engine takes the turn for done: the fuse blows."""
    hub.begin("a", "b", stages=[stage()])
    hub.passes(3)
    hub.run("a", "Waiting")
    hub.report("a", "t1", {"Progressing": "False"})
    hub.passes()
    assert hub.condition("Failed") == ("True", "FuseBlown")


def test_ends_a_stage_and_the_update(hub: HubWorld) -> None:
    """When all clusters are done the turns are taken back, the runs stay, and the fleet update is done."""
    hub.begin("a", "b", stages=[stage()])
    hub.passes(3)
    for name in "ab":
        hub.run(name, "Done", "Succeeded", gates="Succeeded")
        hub.report(name, "t1", {"Progressing": "False"}, done="Succeeded")
    hub.passes(3)
    [found] = hub.fleet().status.stages
    assert (found.phase, found.done, sorted(hub.sets())) == ("Over", 2, ["runs"])
    assert hub.condition("Done") == ("True", "Succeeded")


def test_refuses_a_hub_without_the_feature_gate(hub: HubWorld) -> None:
    """Nothing is written where nobody would carry it out; the reason names the gate."""
    hub.begin("a", stages=[stage()], gate="Disable")
    hub.passes(2)
    assert (hub.condition("Ready"), hub.sets()) == (("False", "FeatureGateDisabled"), {})


@pytest.mark.parametrize(
    ("spec", "error"),
    [
        ({"target": {"version": "5.1.0", "image": "example.com/release:5.1.0"}}, "spec.target.image"),
        ({"target": {"version": "5.1.0"}}, "spec.target.image"),
        ({"stages": []}, "spec.stages"),
        ({"stages": [stage()] * 2}, "spec.stages[1]"),
        ({"stages": [stage(f"s{number}") for number in range(17)]}, "spec.stages"),
        ({"control": "Skip"}, "spec.control"),
        ({"stages": [stage(before=[{"type": "Soak"}])]}, "Soak needs for"),
        ({"maxFailures": "many"}, "spec.maxFailures"),
        ({"policy": {"gates": {"preflight": {"failOn": "unknown"}}}}, "failOn"),
    ],
)
def test_58_the_definition_refuses(hub: HubWorld, spec: dict[str, Any], error: str) -> None:
    """A tag, a missing digest, too many stages, and a gate that lets unknown pass are not stored."""
    wanted = {"target": {"version": "5.1.0", "image": IMAGE}, "stages": [stage()], **spec}
    metadata = {"name": "refused", "namespace": NAMESPACE}
    body = {"apiVersion": FLEETS.api_version, "kind": FLEETS.kind, "metadata": metadata, "spec": wanted}
    with pytest.raises(Invalid) as raised:
        hub.client.send(calls.create(FLEETS, body, dry_run=True))
    assert error in raised.value.message
