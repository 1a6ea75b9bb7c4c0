"""One verdict (docs/decisions/0075): what a preflight says about an update is what the update comes to.

The preflight, the commands' own functions and the real reconcile, on generated clusters. `RUNUP_VERDICTS=20000` tries
many.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from dataclasses import dataclass, replace
from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace as with_fields
from tests.clusterversion.decide.world import GATES, OWN, World, image, risk
from tests.factories import cluster_operator

from kubekit.api.core_v1 import ConfigMap
from kubekit.api.meta_v1 import ObjectMeta
from kubekit.error_types import InputError
from runup.api.config_v1 import AcceptRisk, ComponentOverride, Update
from runup.cli.preflight.render.cause_texts import report_causes
from runup.cli.preflight.render.finding_texts import verdict, verdict_parts
from runup.clusterversion.decide import upgrade_target
from runup.clusterversion.decide.upgrade_target import Flags
from runup.preflight.decide import stored_reports
from runup.preflight.decide.findings import EXIT_CLEAR, Findings, current_findings
from runup.report.report import ReportedRisk

SITUATIONS = int(os.environ.get("RUNUP_VERDICTS", "2000"))
VERSIONS = ("5.0.3", "5.1.0", "5.2.0", "5.3.0", "9.0.0")
ACCEPT = "runup upgrade accept "


@dataclass(frozen=True)
class Situation:
    """A cluster, its update service's graph, and the preflight that is asked for."""

    target: str = "5.1.0"
    edges: tuple[tuple[str, str], ...] = (("5.0.0", "5.1.0"),)
    conditional: tuple[str, ...] = ()
    found: tuple[ReportedRisk, ...] = ()
    upgradeable: str = "True"
    overrides: bool = False
    gate_unacknowledged: bool = False
    operators_unknown: bool = False
    applies: bool = False
    signed: bool = True
    force: bool = False
    by_image: bool = False
    names: bool = True
    failing: bool = False
    accepted: tuple[str, ...] = ()


def graph(situation: Situation) -> dict[str, Any]:
    """The update service's answer."""
    versions = ("5.0.0", *VERSIONS)
    service_risk = {"name": "Slow", "message": "m", "url": "https://example.com", "matchingRules": [{"type": "Always"}]}
    edges = [[versions.index(a), versions.index(b)] for a, b in situation.edges]
    return {
        "nodes": [{"version": v, "payload": image(v)} for v in versions],
        "edges": edges,
        "conditionalEdges": [
            {"edges": [{"from": "5.0.0", "to": version}], "risks": [service_risk]} for version in situation.conditional
        ],
    }


def config_map(name: str, **data: str) -> ConfigMap:
    """A ConfigMap."""
    return ConfigMap(metadata=ObjectMeta(name=name), data={key.replace("_", "-"): text for key, text in data.items()})


def checked(situation: Situation) -> World:
    """The cluster after its preflight is complete."""
    gates = GATES if situation.names else GATES[:1]
    world = World.new(gates=gates)
    world.graph, world.trusted = graph(situation), situation.signed
    version = world.version
    if situation.overrides:
        override = ComponentOverride(kind="Deployment", group="apps", namespace="n", name="d", unmanaged=True)
        world.change(cluster_version=with_fields(version, spec=with_fields(version.spec, overrides=(override,))))
    if situation.failing:
        status = world.version.status
        failing = [with_fields(c, status="True") if c.type == "Failing" else c for c in status.conditions]
        world.change(cluster_version=with_fields(world.version, status=with_fields(status, conditions=tuple(failing))))
    operators = (cluster_operator("storage", upgradeable=situation.upgradeable, message="In-tree volumes."),)
    world.change(operators=None if situation.operators_unknown else operators, operators_error="forbidden")
    if situation.gate_unacknowledged:
        gate = {"ack-5.0-volumes-in-5.1": "Migrate the volumes."}
        admin_gates = ConfigMap(metadata=ObjectMeta(name="admin-gates"), data=gate)
        world.change(admin_gates=admin_gates, admin_acks=config_map("admin-acks"))
    if situation.applies:
        world = world.applying().settle().worker_completes()
    names = tuple(AcceptRisk(name=name) for name in situation.accepted) if situation.names else ()
    target = {"image": image(situation.target)} if situation.by_image else {"version": situation.target}
    world.settle().ask(Update(mode="Preflight", force=situation.force, accept_risks=names, **target)).settle()
    if world.observed.deployment is not None:
        world.report(*situation.found).settle()
    return world


def findings(world: World) -> Findings:
    """What `--wait` and `preflight show` print."""
    found = current_findings(world.version, stored_reports.read(world.observed.history))
    assert found is not None
    return found


def update(world: World, target: str, flags: tuple[str, ...] = ()) -> bool:
    """Types `--to=TARGET` as the verdict has it; returns whether the update is accepted."""
    allowed = {flag.removeprefix("--").replace("-", "_"): True for flag in flags}
    chosen = Flags(to=target, **allowed)
    cluster = world.version
    try:
        choice = upgrade_target.choose(cluster, chosen)
        upgrade_target.check_guards(cluster, allow_with_warnings=chosen.allow_upgrade_with_warnings)
    except InputError:
        return False
    assert isinstance(choice, upgrade_target.Target)
    patch = upgrade_target.update_patch(cluster.spec.desired_update, version=choice.version, image=choice.image)
    wanted = {key: value for key, value in patch["spec"]["desiredUpdate"].items() if key not in ("acceptRisks", "mode")}
    names = cluster.spec.desired_update.accept_risks if cluster.spec.desired_update else ()
    world.ask(Update(accept_risks=names, **wanted)).settle()
    return world.version.status.desired.version == target


def copy(world: World) -> World:
    """The same cluster, to try something on."""
    return replace(world, events=[], plans=[], log=[], ran=[], applied=dict(world.applied))


# Half of them lead on from the cluster's release, or few targets would be reached.
EDGES = st.sampled_from([(a, b) for a in ("5.0.0",) * 6 + VERSIONS for b in VERSIONS if a < b])
NAMES = ("Found", "Slow", "ClusterVersionGiantHop", "UpdatePathNotOffered", "ClusterOperatorUpgradeable-storage")
RISKS = st.sampled_from(
    [
        (),
        (risk("Found"),),
        (risk("Dim", applies="Unknown"),),
        (risk("ClusterVersionUpgradeable"), risk("Found")),
        (risk("ClusterOperatorUpgradeable-storage"),),
    ]
)
MOSTLY, SELDOM = st.sampled_from([True, True, True, False]), st.sampled_from([False, False, False, True])
SITUATION = st.builds(
    Situation,
    target=st.sampled_from(("5.0.3", "5.1.0", *VERSIONS)),
    edges=st.lists(EDGES, min_size=1, max_size=7, unique=True).map(tuple),
    conditional=st.lists(st.sampled_from(VERSIONS), max_size=2, unique=True).map(tuple),
    found=RISKS,
    upgradeable=st.sampled_from(["True", "True", "False", "Unknown"]),
    overrides=SELDOM,
    gate_unacknowledged=SELDOM,
    operators_unknown=SELDOM,
    applies=st.booleans(),
    signed=MOSTLY,
    force=SELDOM,
    by_image=SELDOM,
    names=MOSTLY,
    failing=SELDOM,
    accepted=st.lists(st.sampled_from(NAMES), max_size=3, unique=True).map(tuple),
)


def _promise(situation: Situation, seen: Counter[str] | None = None) -> None:
    world = checked(situation)
    found = findings(world)
    shown = verdict(found)
    stand = [each for each in found.risks if each.open and not each.acceptable]
    text, *command = verdict_parts(found)
    if seen is not None:
        seen["clear" if found.exit_code == EXIT_CLEAR else "refused" if stand else f"code {found.exit_code}"] += 1
    if found.exit_code == EXIT_CLEAR:
        assert "nothing blocks" in shown
        assert update(copy(world), situation.target), shown
        return
    assert "nothing blocks" not in shown
    if not found.completed:
        return
    for each in stand:
        assert each.name in text or cause_of(found, each.name) in numbers_in(text), shown
        assert not command or each.name not in command[0]
    assert not any(release.version == situation.target for release in offered(world, stand))
    tried = copy(world)
    if command and command[0].startswith(ACCEPT):
        names = command[0].removeprefix(ACCEPT).split(",")
        before = world.version.spec.desired_update
        kept = tuple(accepted.name for accepted in before.accept_risks) if before else ()
        tried.accept(*kept, *names).settle()
        after = findings(tried)
        assert (after.exit_code == EXIT_CLEAR) is not (stand or after.guards), verdict(after)
        _, *command = verdict_parts(after)
    flags = tuple(word for word in (command[0].split() if command else ()) if word.startswith("--allow"))
    if stand:
        assert not update(tried, situation.target, ("--allow-not-recommended", "--allow-upgrade-with-warnings")), shown
    else:
        assert update(tried, situation.target, flags), (shown, tried.message("ReleaseAccepted"))


def cause_of(found: Any, name: str) -> int:
    """The number under which the report reports a risk."""
    return report_causes(found).number(name)


def numbers_in(text: str) -> set[int]:
    """The causes that a verdict names by their numbers: `cause 2`, `causes 1 and 2`, `causes 1 to 3`."""
    named = re.search(r"while causes? ([\d, andto]+) appl", text)
    numbers = [int(number) for number in re.findall(r"\d+", named[1])] if named else []
    return set(range(numbers[0], numbers[-1] + 1)) if named and " to " in named[1] else set(numbers)


def offered(world: World, refused: list[Any]) -> tuple[Any, ...]:
    """What `--to-latest` picks from, if anything refuses the target."""
    return (world.version.status.available_updates or ()) if refused else ()


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_what_the_verdict_says_is_what_the_update_comes_to() -> None:
    """Code 0: `--to` is accepted, as after the verdict's command; what cannot be accepted is named, and refused."""
    seen: Counter[str] = Counter()

    # Shrinking a situation takes minutes; it is small as it is.
    @settings(max_examples=SITUATIONS, deadline=None, database=None, phases=[Phase.explicit, Phase.generate])
    @given(SITUATION)
    def promise(situation: Situation) -> None:
        _promise(situation, seen)

    promise()
    # The property would hold of nothing if no situation got that far.
    assert min(seen["clear"], seen["refused"], seen["code 2"]) > SITUATIONS // 50


CASES = {
    "a hop that the service offers and the operator refuses": (
        Situation(target="5.2.0", edges=(("5.0.0", "5.2.0"), ("5.0.0", "5.1.0"), ("5.1.0", "5.2.0"))),
        "ClusterVersionGiantHop",
        "It is reached by way of 5.1.0.",
    ),
    "a hop to which there is no way": (
        Situation(target="5.2.0", edges=(("5.0.0", "5.2.0"),)),
        "ClusterVersionGiantHop",
        "knows no way to it in steps that are supported",
    ),
    "a release two updates away": (
        Situation(target="5.1.0", edges=(("5.0.0", "5.0.3"), ("5.0.3", "5.1.0"))),
        "UpdatePathNotOffered",
        "It is reached by way of 5.0.3.",
    ),
    "an operator that is not upgradeable": (
        Situation(upgradeable="False"),
        "ClusterVersionUpgradeable",
        "In-tree volumes.",
    ),
    "manifests that nobody manages": (Situation(overrides=True), "ClusterVersionUpgradeable", "remove overrides"),
    "a gate that nobody acknowledged": (
        Situation(gate_unacknowledged=True),
        "ClusterVersionUpgradeable",
        "Migrate the volumes.",
    ),
    "an image that nobody signed": (
        Situation(signed=False, force=True),
        "ReleaseSignatureNotVerified",
        "refused, since it cannot be verified: no signature",
    ),
}


@pytest.mark.parametrize(("situation", "name", "words"), CASES.values(), ids=CASES)
def test_what_the_operator_would_refuse_is_a_risk_of_the_target(situation: Situation, name: str, words: str) -> None:
    """By the update's own guard, with severity, remedy and the way there; acceptance does not lift it."""
    world = checked(situation)
    found = findings(world)
    refused = next(each for each in found.risks if each.name == name)
    assert (refused.applies, refused.acceptable, refused.severity) == ("True", False, "critical")
    assert words in refused.message and refused.fix
    assert found.exit_code == 2
    assert name in verdict_parts(found)[0]
    world.accept(*(each.name for each in found.risks)).settle()
    assert situation.target not in world.available
    assert not findings(world).risks[0].accepted or any(not each.accepted for each in findings(world).risks)


def test_an_update_is_not_accepted_because_of_an_older_upgradeable() -> None:
    """An operator refuses in the very pass in which the update is asked for, and its risk was accepted before."""
    world = checked(Situation(accepted=("ClusterOperatorUpgradeable-storage",)))
    world.change(operators=(cluster_operator("storage", upgradeable="False", message="In-tree volumes."),))
    assert not update(world, "5.1.0")
    assert world.version.status.desired.version == "5.0.0"


def test_an_update_by_image_is_judged_as_without_a_preflight() -> None:
    """That nobody offers it is a warning then, as upstream has it: only what the target found holds it up."""
    world = checked(Situation(target="5.1.0", edges=()))
    world.ask(Update(version="5.1.0", image=image("5.1.0"))).settle()
    assert world.version.status.desired.version == "5.1.0"
    assert image("5.1.0") != OWN
