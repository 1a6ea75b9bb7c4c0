"""An accepted risk that covers more than it was accepted for: what, and since when (docs/decisions/0075)."""

from __future__ import annotations

import contextlib
import io
from datetime import datetime, timedelta

import pytest
from tests.clusterversion.decide.world import World, image, risk
from tests.factories import NOW

from kubekit.api import codec
from kubekit.api.core_v1 import ConfigMap
from kubekit.api.meta_v1 import ObjectMeta
from runup.advice.decide import acceptance
from runup.advice.decide.acceptance import Acceptance, accepted, growth
from runup.api.config_v1 import AcceptRisk, Update
from runup.cli.advice.recommend_additions import additional_output
from runup.cli.clusterversion import show
from runup.cli.fleet.render import fleet_page
from runup.cli.preflight.render import output_formats, preflight_page
from runup.cli.preflight.render.finding_texts import verdict
from runup.cli.preflight.render.sarif import sarif
from runup.clusterversion.decide.upgrade_target import grown_warnings
from runup.evaluation.results import ClusterResult
from runup.fleet.decide.matrix import matrix
from runup.preflight.decide import stored_reports
from runup.preflight.decide.findings import current_findings, findings_of_target, objects_of
from runup.report.report import ReportedResource, ReportedRisk

LATER = NOW + timedelta(minutes=10)
SINCE = "accepted for 1 at 2026-01-14T10:00:00Z, and has grown since 2026-01-14T10:10:00Z"
GROWN = f"NodeCordoned was {SINCE}: Node n2, Node n3"


def cordoned(*names: str) -> ReportedRisk:
    """The risk of these nodes."""
    return risk("NodeCordoned", resources=tuple(ReportedResource(kind="Node", name=name) for name in names))


def budgets(*names: str) -> ReportedRisk:
    """The risk of these budgets, by namespace and name."""
    parts = (name.split("/") for name in names)
    found = tuple(
        ReportedResource(group="policy", kind="PodDisruptionBudget", namespace=space, name=name)
        for space, name in parts
    )
    return risk("PodDisruptionBudgetBlocksDrain", resources=found)


def records(*kept: Acceptance) -> ConfigMap:
    """The ConfigMap with these records."""
    data = {acceptance.key_of(one.name): acceptance.encode_record(one) for one in kept}
    return ConfigMap(metadata=ObjectMeta(name=acceptance.NAME), data=data)


def accepted_for(found: ReportedRisk) -> World:
    """A cluster whose preflight of 5.0.3 found that risk, which was accepted then, as the command records it."""
    world = World.new().settle().ask_preflight("5.0.3").settle()
    world.report(found).settle()
    objects = objects_of(world.version, stored_reports.read(world.observed.history), found.name)
    record = Acceptance(name=found.name, by="kim", at=NOW).covering(objects)
    return world.change(acceptances=records(record)).accept(found.name).settle()


def shown_verdict(world: World) -> str:
    """The verdict as `preflight show` prints it."""
    kept = world.observed.acceptances.data if world.observed.acceptances else {}
    names = accepted(world.version, kept, world.now)
    found = current_findings(world.version, stored_reports.read(world.observed.history), names)
    assert found is not None
    return verdict(found)


def test_what_is_as_it_was_accepted_has_not_grown() -> None:
    """Nor has what became less."""
    world = accepted_for(cordoned("n1", "n2"))
    for found in (cordoned("n1", "n2"), cordoned("n2")):
        world.pass_time(600).report(found).settle()
        assert "grown" not in world.message("PreflightCompleted") + shown_verdict(world)


def test_growth_is_told_with_its_time_wherever_the_result_is() -> None:
    """Condition, verdict, `--to` and the history; the name goes on counting, and the time stays as reports go on."""
    world = accepted_for(cordoned("n1"))
    world.pass_time(600).report(cordoned("n1", "n2", "n3")).settle()
    world.pass_time(600).report(cordoned("n1", "n2", "n3"), heartbeat_time=world.now).settle()
    assert GROWN in world.message("PreflightCompleted")
    assert shown_verdict(world).startswith("Verdict: nothing blocks an update to 5.0.3 (1 accepted).")
    assert GROWN in shown_verdict(world)
    history = stored_reports.read(world.observed.history)
    names = accepted(world.version, world.observed.acceptances.data if world.observed.acceptances else {}, world.now)
    assert list(grown_warnings(findings_of_target(world.version, history, "5.0.3", accepted=names))) == [
        ("err", f"warning: {GROWN}\n")
    ]
    wish = Update(version="5.0.3", image=image("5.0.3"), accept_risks=(AcceptRisk(name="NodeCordoned"),))
    world.ask(wish).settle()
    assert world.version.status.desired.version == "5.0.3"
    assert GROWN in world.version.status.history[0].accepted_risks


def shown(world: World, *, target: str = "5.0.3") -> dict[str, str]:
    """The text of each view that shows of accepted risks."""
    document = codec.to_dict(world.version)
    history, acceptances = world.observed.history, world.observed.acceptances
    assert history is not None and acceptances is not None
    kept, records = codec.to_dict(history), codec.to_dict(acceptances)
    upgrade = io.StringIO()
    with contextlib.redirect_stdout(upgrade):
        show.show_document(document, show.OperatorConfigMaps(kept, records), world.now, show.ShowOptions())
    names = accepted(world.version, acceptances.data, world.now)
    found = findings_of_target(world.version, stored_reports.read(history), target, accepted=names)
    result = ClusterResult(name="east", findings=found)
    recommended = additional_output(document, (kept, records), target, world.now).output
    return {
        "upgrade": upgrade.getvalue(),
        "recommend --version": "".join(str(text) for _, text in recommended),
        "page": str(preflight_page.page(found, world.now)),
        "fleet": str(fleet_page.page(matrix([("east", found)]), [result], world.now)),
        "markdown": output_formats.markdown([result]),
        "junit": "".join(output_formats.junit([result])),
        "sarif": "".join(sarif([result])),
        "json": str(output_formats.data(result)["risks"]),
    }


@pytest.mark.parametrize(
    "name", ["upgrade", "recommend --version", "page", "fleet", "markdown", "junit", "sarif", "json"]
)
def test_each_view_names_the_objects_that_came(name: str) -> None:
    """As soon as they are there, and not before."""
    world = accepted_for(cordoned("n1"))
    assert "n2" not in shown(world)[name]
    world.pass_time(600).report(cordoned("n1", "n2", "n3")).settle()
    text = " ".join(shown(world)[name].split())
    assert "Node n2" in text
    assert "Node n3" in text
    if name in ("upgrade", "recommend --version"):
        assert f"{GROWN}." in text


def test_a_budget_in_another_namespace_is_another_one() -> None:
    """Of the same name, too."""
    world = accepted_for(budgets("payments/ledger"))
    world.pass_time(600).report(budgets("payments/ledger", "orders/ledger")).settle()
    assert "PodDisruptionBudget.policy orders/ledger" in world.message("PreflightCompleted")
    assert "payments/ledger" not in world.message("PreflightCompleted")


def test_a_restart_keeps_since_when() -> None:
    """The stored report has it, whatever the target says."""
    world = accepted_for(cordoned("n1"))
    world.pass_time(600).report(cordoned("n1", "n2")).settle()
    lying = ReportedResource(kind="Node", name="n2", since=NOW - timedelta(days=9))
    world.pass_time(600).report(risk("NodeCordoned", resources=(lying,))).settle()
    (report,) = stored_reports.read(world.observed.history).reports
    assert [item.since for one in report.risks for item in one.resources] == [LATER]


GROWTHS: dict[str, tuple[Acceptance | None, dict[str, datetime | None], tuple[tuple[str, ...], int] | None]] = {
    "no record": (None, {"a": NOW}, None),
    "a record from before objects were kept": (Acceptance(name="A"), {"a": NOW}, None),
    "no objects any more": (Acceptance(name="A").covering(["a"]), {}, None),
    "one more": (Acceptance(name="A").covering(["a"]), {"a": NOW, "b": LATER}, (("b",), 0)),
    "as many, and others": (Acceptance(name="A").covering(["a"]), {"b": None}, (("b",), 0)),
    "more than are named, and as many": (
        Acceptance(name="A").covering([f"{i:03}" for i in range(150)]),
        {f"{i:03}": NOW for i in range(150)},
        None,
    ),
    "more than are named, and two more": (
        Acceptance(name="A").covering([f"{i:03}" for i in range(150)]),
        {f"{i:03}": NOW for i in range(152)},
        ((), 2),
    ),
}


@pytest.mark.parametrize(("record", "objects", "expected"), GROWTHS.values(), ids=GROWTHS)
def test_what_grows(
    record: Acceptance | None, objects: dict[str, datetime | None], expected: tuple[tuple[str, ...], int] | None
) -> None:
    """Objects that the record does not have; where it has no room for all, their number."""
    found = growth(record, objects)
    assert ((found.added, found.more) if found else None) == expected


def test_a_waived_signature_is_told_wherever_the_result_is() -> None:
    """Condition, report, table and verdict; it may verify later, and was waived all the same."""
    world = World.new()
    world.trusted = False
    world.settle().ask_preflight("5.0.3", force=True).settle()
    assert "its image was waived (force)" in world.message("PreflightRunning")
    world.report(signature_waived=False).settle()
    (report,) = stored_reports.read(world.observed.history).reports
    assert report.signature_waived
    for type_ in ("PreflightRunning", "PreflightCompleted"):
        assert "the signature of its image was waived (force)" in world.message(type_)
    assert world.risks("5.0.3") == {"ReleaseSignatureNotVerified": ("True", "UpdatePrecondition")}
    assert "Its signature was waived (force)" in shown_verdict(world)
    world.trusted = True
    world.pass_time(61).settle().settle()
    assert world.risks("5.0.3") == {}
    assert "Its signature was waived (force)" in shown_verdict(world)
    world.ask(None).settle()
    (report,) = stored_reports.read(world.observed.history).reports
    assert report.signature_waived
