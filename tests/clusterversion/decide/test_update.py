"""An update request: what blocks it, what accepting it changes, and that a preflight never becomes one by accident."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace as with_fields
from tests.clusterversion.decide.world import GATES, GRAPH, OWN, World, image, risk
from tests.factories import SINCE, cluster_operator

from kubekit.api.codec import Undecodable
from kubekit.api.core_v1 import ConfigMap
from runup.api.config_v1 import AcceptRisk, Update, UpdateHistory
from runup.applying.decide.progress import Effect, Problem


def test_an_available_update_is_accepted_in_full() -> None:
    """Verified, then desired, history, ReleaseAccepted and Progressing in one patch; asking again changes nothing."""
    world = World.new().settle().ask(Update(version="5.0.3")).settle()
    assert world.version.status.desired.version == "5.0.3"
    newest, previous = world.version.status.history[:2]
    assert (newest.state, newest.version, newest.verified) == ("Partial", "5.0.3", True)
    assert previous.version == "5.0.0"
    assert world.condition("ReleaseAccepted") == ("True", "PayloadLoaded")
    assert world.message("Progressing") == "Working towards 5.0.3"


def test_an_unaccepted_risk_blocks_until_it_is_accepted() -> None:
    """ReleaseAccepted=False names what applies; accepting it by name lets the update go, and history keeps it."""
    world = World.new().settle().ask(Update(version="5.1.0")).settle()
    assert world.condition("ReleaseAccepted") == ("False", "UnacceptedRisks")
    assert "[SlowNodeDrain]" in world.message("ReleaseAccepted")
    assert world.version.status.desired.version == "5.0.0"
    world.accept("SlowNodeDrain").settle()
    assert world.version.status.desired.version == "5.1.0"
    assert world.version.status.history[0].accepted_risks == (
        f"The target release {image('5.1.0')} is exposed to the risks [SlowNodeDrain] "
        "which were all explicitly accepted by the cluster administrator."
    )


def test_accepting_all_risks_recommends_all_conditional_updates() -> None:
    """As upstream's end-to-end test `should work with accept risks` (test/cvo/accept_risks.go): the list stays."""
    always = {"message": "m", "url": "https://example.com/r", "matchingRules": [{"type": "Always"}]}
    edges = [
        {"edges": [{"from": "5.0.0", "to": to}], "risks": [{**always, "name": name} for name in names]}
        for to, names in (("5.0.3", ["A"]), ("5.1.0", ["A", "B"]))
    ]
    world = World.new()
    world.graph = {"nodes": GRAPH["nodes"], "edges": [], "conditionalEdges": edges}
    before = world.settle().version.status.conditional_updates
    assert [(each.release.version, each.risk_names) for each in before] == [("5.1.0", ("A", "B")), ("5.0.3", ("A",))]
    assert [each.conditions[0].status for each in before] == ["False", "False"]
    assert all(each.risks for each in before)
    after = world.accept("A", "B").settle().version.status.conditional_updates
    assert [each.release for each in after] == [each.release for each in before]
    assert [(each.conditions[0].type, each.conditions[0].status) for each in after] == [("Recommended", "True")] * 2
    assert world.version.spec.desired_update == Update(accept_risks=(AcceptRisk(name="A"), AcceptRisk(name="B")))


def test_a_release_that_nobody_offers_goes_by_image() -> None:
    """It is no candidate, so there is no advice for or against it: a warning says so, and the update goes."""
    graph = {"nodes": GRAPH["nodes"][:1], "edges": []}
    world = World.new()
    world.graph = graph
    world.settle().ask(Update(image=image("5.0.3"))).settle()
    assert (world.available, world.version.status.conditional_updates) == ([], ())
    assert world.version.status.desired.version == "5.0.3"
    [warning] = [event.message for event in world.events if event.reason == "PreconditionWarn"]
    assert "5.0.3" in warning


@pytest.mark.parametrize(
    ("version", "refused"),
    [pytest.param("5.0.3", False, id="without a risk"), pytest.param("5.1.0", True, id="with a risk")],
)
def test_releases_that_a_graph_names_by_tags(version: str, refused: bool) -> None:
    """Each has its own risks: that both have no digest does not make them one."""
    world = World.new()
    by_tag = [{**node, "payload": f"registry.example/release:{node['version']}"} for node in GRAPH["nodes"][1:]]
    world.graph = {**GRAPH, "nodes": [GRAPH["nodes"][0], *by_tag]}
    world.settle().ask(Update(version=version)).settle()
    assert ("SlowNodeDrain" in world.message("ReleaseAccepted")) is refused
    assert (world.version.status.desired.version == version) is not refused


@pytest.mark.parametrize("registry", ["a.example", "z.example"])
def test_an_image_may_come_from_any_registry(registry: str) -> None:
    """By its name it is another than the running one, whichever of the two comes first."""
    asked = f"{registry}/release@{image('5.0.3').rpartition('@')[2]}"
    world = World.new().settle().ask(Update(image=asked, version="5.0.3")).settle()
    assert (world.version.status.desired.version, world.version.status.desired.image) == ("5.0.3", asked)


def test_without_the_accept_gate_an_exposed_version_is_no_available_update() -> None:
    """By version it is invalid, as upstream words it; by image it is a warning, and goes."""
    world = World.new(gates=("ClusterUpdatePreflight",)).settle().ask(Update(version="5.1.0")).settle()
    assert "when image is empty the update must be an available update" in world.message("Invalid")
    assert not world.version.status.conditional_update_risks
    world.ask(Update(image=image("5.1.0"))).settle()
    assert world.version.status.desired.version == "5.1.0"
    assert "PreconditionWarn" in [event.reason for event in world.events]


@pytest.mark.parametrize("opened", [False, True], ids=["the gate is closed", "the gate is open"])
def test_verdicts_of_risks_are_published_with_the_accept_gate_alone(opened: bool) -> None:
    """A definition without the gate has neither field: what it would prune is not written."""
    gates = ("ClusterUpdatePreflight", *(["ClusterUpdateAcceptRisks"] if opened else []))
    status = World.new(gates=gates).settle().version.status
    [update] = status.conditional_updates
    assert [risk.name for risk in update.risks] == ["SlowNodeDrain"]
    assert [len(risk.conditions) for risk in update.risks] == [int(opened)]
    assert update.risk_names == (("SlowNodeDrain",) if opened else ())
    assert bool(status.conditional_update_risks) is opened


def test_an_unsigned_update_is_not_accepted_unless_forced() -> None:
    """The failure is reported; force passes and history says so."""
    world = World.new()
    world.trusted = False
    world.settle().ask(Update(version="5.0.3")).settle()
    assert world.condition("ReleaseAccepted") == ("False", "RetrievePayload")
    world.ask(Update(version="5.0.3", force=True)).settle()
    assert world.version.status.desired.version == "5.0.3"
    assert not world.version.status.history[0].verified


def test_losing_nothing_but_the_mode_is_an_update_with_a_warning_first() -> None:
    """The warning comes before anything else, the workload goes before the update, the risks decide.

    Source: docs/decisions/0072 D20.
    """
    world = World.new().settle().ask_preflight("5.0.3").settle()
    world.report(risk("PoolPaused")).settle()
    world.log.clear()
    world.ask(Update(version="5.0.3")).settle()
    assert world.log[0] == "event PreflightBecameUpdate"
    assert world.log.count("event PreflightBecameUpdate") == 1
    assert world.condition("ReleaseAccepted") == ("False", "UnacceptedRisks")
    world.accept("PoolPaused").settle()
    assert world.version.status.desired.version == "5.0.3"
    assert world.log.index("delete Deployment") < len(world.log) - 1
    reasons = {r.name: r.conditions[0].reason for r in world.version.status.conditional_update_risks}
    assert reasons["PoolPaused"] == "PreflightOutdated"
    assert world.risks("5.0.3") == {}


def test_the_update_waits_for_the_preflights_pods() -> None:
    """Removed first and confirmed gone: only then is anything accepted."""
    world = World.new().settle().ask_preflight("5.0.3").settle()
    world.report().settle()
    world.pod().finalizing = True
    world.ask(Update(version="5.0.3")).settle()
    assert world.condition("ReleaseAccepted") == ("Unknown", "PreflightStopping")
    assert world.version.status.desired.version == "5.0.0"
    world.change(pods=()).settle()
    assert world.version.status.desired.version == "5.0.3"


@pytest.mark.parametrize(
    ("after_s", "said"),
    [
        pytest.param(10, ": preflight-1 on node node-1.", id="it ends in its time"),
        pytest.param(61, " since {then}; if the node is lost, `kubectl -n ", id="its node is lost"),
    ],
)
@pytest.mark.parametrize(
    ("ask", "condition"),
    [
        pytest.param(lambda w: w.ask(Update(version="5.0.3")), "ReleaseAccepted", id="an update waits for it"),
        pytest.param(lambda w: w.ask_preflight("5.2.0"), "PreflightRunning", id="another preflight waits for it"),
    ],
)
def test_a_pod_that_does_not_end_is_named(ask: Any, condition: str, after_s: float, said: str) -> None:
    """Else nobody would know what an update waits for, which is for as long as the pod is there."""
    world = World.new().settle().ask_preflight("5.0.3").settle()
    world.report().settle()
    world.pod().finalizing = True
    ask(world).settle()
    (pod,) = world.observed.pods
    going = with_fields(pod.metadata, deletion_timestamp=world.now)
    there = with_fields(pod.spec, node_name="node-1")
    world.change(pods=(with_fields(pod, metadata=going, spec=there),)).pass_time(after_s).settle()
    assert said.format(then=f"{going.deletion_timestamp:%Y-%m-%dT%H:%M:%SZ}") in world.message(condition)


def been(version: str, image_: str, *, days: int) -> UpdateHistory:
    """A release that the cluster once ran."""
    then = SINCE - timedelta(days=days)
    return UpdateHistory(state="Completed", started_time=then, completion_time=then, version=version, image=image_)


KNOWN = been("4.99.0", image("4.99.0"), days=9)
LOST = been("4.98.0", "", days=20)


@pytest.mark.parametrize(
    ("applies", "asked", "accepted", "invalid"),
    [
        pytest.param(True, "4.99.0", ("False", "PreconditionChecks"), False, id="it is known: its image is judged"),
        pytest.param(True, "4.98.0", ("True", "PayloadLoaded"), False, id="its image is not known: nothing to go to"),
        pytest.param(False, "4.99.0", ("True", "PayloadLoaded"), False, id="nothing is applied: nothing to go to"),
        pytest.param(True, "4.97.0", ("True", "PayloadLoaded"), True, id="it is of no history: it is refused"),
        pytest.param(False, "4.97.0", ("True", "PayloadLoaded"), True, id="nothing is applied, and of no history"),
    ],
)
def test_a_version_that_nobody_offers_and_the_cluster_has_been(
    applies: bool, asked: str, accepted: tuple[str, str], invalid: bool
) -> None:
    """Whoever names a release of the history means that one, and what it is known by is its image alone."""
    world = World.new(history=(been("5.0.0", OWN, days=1), KNOWN, LOST))
    world = world.applying().settle().worker_completes().settle() if applies else world.settle()
    world.ask(Update(version=asked)).settle()
    assert world.condition("ReleaseAccepted") == accepted
    assert (f'version="{asked}" image="{image(asked)}"' in world.message("ReleaseAccepted")) is (accepted[0] == "False")
    assert (world.condition("Invalid") == ("True", "InvalidClusterVersion")) is invalid
    assert world.version.status.desired.version == "5.0.0"


def test_back_to_a_release_of_the_history_when_forced() -> None:
    """Its image is that of the history."""
    world = World.new(history=(been("5.0.0", OWN, days=1), KNOWN)).applying().settle().worker_completes().settle()
    world.ask(Update(version="4.99.0", force=True)).settle()
    assert (world.version.status.desired.version, world.version.status.desired.image) == ("4.99.0", image("4.99.0"))


def test_a_large_jump_is_checked_but_not_made() -> None:
    """The preflight of 5.2.0 runs; by version it is not offered, by image refused, and forced it goes."""
    world = World.new().settle().ask_preflight("5.2.0").settle()
    world.report().settle()
    accepted = (AcceptRisk(name="UpdatePathNotOffered"), AcceptRisk(name="ClusterVersionGiantHop"))
    world.ask(Update(version="5.2.0", accept_risks=accepted)).settle()
    assert world.available == ["5.0.3"]
    assert "the update must be an available update" in world.message("Invalid")
    world.ask(Update(version="5.2.0", image=image("5.2.0"), accept_risks=accepted)).settle()
    assert world.condition("ReleaseAccepted") == ("False", "PreconditionChecks")
    assert "MultipleMinorVersionsUpdate" in world.message("ReleaseAccepted")
    world.ask(Update(version="5.2.0", image=image("5.2.0"), accept_risks=accepted, force=True)).settle()
    assert world.version.status.desired.version == "5.2.0"


@pytest.mark.parametrize(
    "image_",
    [OWN, "mirror.example/ocp/release@" + OWN.rpartition("@")[2]],
    ids=["by its own name", "by a mirror's name"],
)
def test_the_running_release_is_nothing_to_go_to(image_: str) -> None:
    """The digest identifies an image; another registry does not make another release."""
    world = World.new().settle().ask(Update(image=image_)).settle()
    assert (world.version.status.desired.version, world.version.status.desired.image) == ("5.0.0", OWN)
    assert len(world.version.status.history) == 1
    assert world.condition("ReleaseAccepted") == ("True", "PayloadLoaded")


def test_advice_is_dropped_where_the_channel_has_no_such_version() -> None:
    """The service answered, and offers nothing from here: what it said before is no longer so."""
    world = World.new().settle()
    assert world.available == ["5.0.3"]
    world.graph = {"nodes": [node for node in GRAPH["nodes"] if node["version"] != "5.0.0"], "edges": []}
    world.pass_time(600).settle()
    assert world.condition("RetrievedUpdates") == ("False", "VersionNotFound")
    assert (world.available, world.version.status.conditional_updates) == ([], ())


def test_upgradeable_still_counts() -> None:
    """An operator that is not upgradeable blocks the minor update even where its risk is accepted, not the patch."""
    world = World.new().change(operators=(cluster_operator("storage", upgradeable="False", message="Old driver."),))
    world.settle()
    assert world.message("Upgradeable") == "Old driver."
    assert "ClusterOperatorUpgradeable-storage" in world.risks("5.1.0")
    assert "5.0.3" in world.available
    names = tuple(AcceptRisk(name=n) for n in ("ClusterOperatorUpgradeable-storage", "SlowNodeDrain"))
    world.ask(Update(version="5.1.0", accept_risks=names)).settle()
    assert world.condition("ReleaseAccepted") == ("False", "PreconditionChecks")


def test_operators_that_cannot_be_listed_are_not_fine() -> None:
    """They forbid minor updates, as one that is not upgradeable does."""
    world = World.new().change(operators=None, operators_error="forbidden").settle()
    assert world.condition("Upgradeable") == ("False", "ClusterOperatorUpgradeableUnknown")
    assert world.risks("5.1.0")["ClusterOperatorUpgradeableUnknown"] == ("True", "Match")


_UNREADABLE: dict[str, tuple[str, dict[str, Any]]] = {
    "gates missing": ("AdminAckUnknown", {"admin_gates": None}),
    "acknowledgements missing": ("AdminAckUnknown", {"admin_acks": None}),
    "neither ConfigMap exists": ("AdminAckUnknown", {"admin_gates": None, "admin_acks": None}),
    "ConfigMaps forbidden": ("AdminAckUnknown", {"admin_acks": None, "admin_unreadable": "forbidden"}),
    "a gate without a text": ("AdminAck-ack-5.0-a", {"admin_gates": ConfigMap(data={"ack-5.0-a": ""})}),
    "a gate with an invalid key": ("AdminAck-ack-6.0-a", {"admin_gates": ConfigMap(data={"ack-6.0-a": "Do it."})}),
    "operators unreadable": ("ClusterOperatorUpgradeableUnknown", {"operators": None, "operators_error": "forbidden"}),
    "one operator undecodable": (
        "ClusterOperatorUpgradeable-dns",
        {"unread_operators": (Undecodable("", "dns", "status is a text"),)},
    ),
}


@pytest.mark.parametrize("accepts", [True, False], ids=["risks can be accepted", "risks cannot be accepted"])
@pytest.mark.parametrize(("risk", "changes"), _UNREADABLE.values(), ids=_UNREADABLE.keys())
def test_an_unknown_state_refuses_a_minor_update(risk: str, changes: dict[str, Any], *, accepts: bool) -> None:
    """Whether the risk is accepted or not. A patch release stays possible, and only `force` passes the precondition."""
    world = World.new(gates=GATES if accepts else GATES[:1]).change(**changes)
    world.graph = {**GRAPH, "edges": [*GRAPH["edges"], [0, 2]], "conditionalEdges": []}
    world.settle()
    assert world.condition("Upgradeable")[0] == "False"
    names = (AcceptRisk(name=risk),) if accepts else ()
    world.ask(Update(image=image("5.1.0"), version="5.1.0", accept_risks=names)).settle()
    assert world.condition("ReleaseAccepted") == ("False", "PreconditionChecks")
    world.ask(Update(version="5.0.3")).settle()
    assert world.version.status.desired.version == "5.0.3"


def test_an_update_that_has_begun_goes_on_without_its_request() -> None:
    """The next operator may run already: nothing would be certain of a way back (docs/decisions/0076)."""
    world = World.new().settle().ask(Update(version="5.0.3")).settle()
    world.ask(None).settle()
    assert world.version.status.desired.version == "5.0.3"


def test_going_back_is_asked_for() -> None:
    """The request for the running release of an accepted update leads back to it."""
    world = World.new().settle().ask(Update(version="5.0.3")).settle()
    world.ask(Update(version="5.0.0")).settle()
    assert world.version.status.desired.version == "5.0.0"
    assert world.message("Progressing") == "Cluster version is 5.0.0"
    assert [e.version for e in world.version.status.history] == ["5.0.0", "5.0.3", "5.0.0"]


def test_conditions_of_others_stay_as_found() -> None:
    """Available, Failing and Progressing are not this operator's while nothing is requested."""
    world = World.new()
    before = {c.type: c for c in world.version.status.conditions}
    world.settle()
    after = {c.type: c for c in world.version.status.conditions}
    assert {name: after[name] for name in before} == before


DESIRED = st.one_of(
    st.none(),
    st.builds(
        Update,
        mode=st.sampled_from(["", "Preflight", "Frobnicate"]),
        version=st.sampled_from(["", "5.0.0", "5.0.3", "5.1.0", "5.2.0", "9.0.0", "x"]),
        force=st.booleans(),
        accept_risks=st.sampled_from([(), (AcceptRisk(name="SlowNodeDrain"),), (AcceptRisk(name="R"),)]),
    ),
)
MOVES = st.lists(
    st.one_of(
        st.tuples(st.just("ask"), DESIRED),
        st.tuples(st.just("report"), st.sampled_from(["completed", "running", "failed"])),
        st.tuples(st.just("bad"), st.none()),
        st.tuples(st.just("time"), st.sampled_from([1.0, 700.0, 90000.0])),
        st.tuples(st.just("trust"), st.booleans()),
        st.tuples(st.just("worker"), st.sampled_from(["completes", "fails", "waits"])),
        st.tuples(st.just("registry"), st.booleans()),
    ),
    max_size=6,
)


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(
    moves=MOVES,
    gates=st.sampled_from([(), ("ClusterUpdatePreflight",), ("ClusterUpdateAcceptRisks",), None]),
    applies=st.booleans(),
)
def test_it_always_settles_and_no_mode_ever_updates(moves: list[tuple[str, Any]], gates: Any, applies: bool) -> None:
    """Whatever happens: a pass on its own result plans nothing, and only a request without mode moves the cluster."""
    world = World.new() if gates is None else World.new(gates=gates)
    world = (world.applying() if applies else world).settle()
    for move, argument in moves:
        before = world.version.status.desired
        _play(world, move, argument)
        world.settle()
        assert not world.step()
        desired = world.version.spec.desired_update
        if desired is not None and desired.mode:
            assert world.version.status.desired == before
        assert world.version.status.observed_generation == world.version.metadata.generation
        for update in world.version.status.conditional_updates:
            assert update.risks and len({r.name for r in update.risks}) == len(update.risks)


def _play(world: World, move: str, argument: Any) -> None:
    if move == "ask":
        world.ask(argument)
    elif move == "time":
        world.pass_time(argument)
    elif move == "trust":
        world.trusted = argument
    elif move == "registry":
        world.registry = argument
    elif move == "worker":
        if world.observed.progress is not None:
            _works(world, argument)
    elif world.observed.deployment is not None and world.observed.deployment.metadata.annotations:
        if move == "report":
            world.report(risk("R"), execution_status=argument)
        else:
            world.bad_report("ReportInvalid", "the report is not a JSON object")


def _works(world: World, how: str) -> None:
    if how == "completes":
        world.worker_completes()
    else:
        effect = Effect.FAIL if how == "fails" else Effect.NONE
        problem = Problem(
            reason="ClusterOperatorUpdating", message="m", effect=effect, names=("a",), since=(("a", world.now),)
        )
        world.worker_says(problems=(problem,), done=1)


def test_the_hash_is_that_of_the_operator_which_runs() -> None:
    """Not one that an earlier release or another FeatureGate left; where nothing is known, what is there stays."""
    world = World.new(version_hash="earlier").settle()
    assert world.version.status.version_hash == "hash-5.0.0"
    world.change(facts=replace(world.observed.facts, version_hash="hash-of-other-gates")).settle()
    assert world.version.status.version_hash == "hash-of-other-gates"
    world.change(facts=replace(world.observed.facts, version_hash="")).settle()
    assert world.version.status.version_hash == "hash-of-other-gates"
