"""Every view shows the same number of risks: the operator's condition, the table, the verdict, history, compare."""

from __future__ import annotations

import re

import pytest
from msgspec.structs import replace
from tests.clusterversion.decide.world import World, risk
from tests.factories import NOW, cluster_version

from kubekit.api.meta_v1 import Condition, ConditionStatus
from runup.api.config_v1 import ClusterVersion, ConditionalUpdate, ConditionalUpdateRisk, Release
from runup.cli.preflight.render import history_tables as rendered
from runup.cli.preflight.render.finding_texts import result, section, verdict
from runup.preflight.decide import stored_reports as histories
from runup.preflight.decide.findings import count_risks, current_findings, findings_of_target, with_counted_risks
from runup.preflight.decide.stored_reports import History

CASES = [
    ("the report's own and an update that nobody offers", (), "5.2.0", (3, 1, 0)),
    ("one is accepted", ("DualStackIncompatible",), "5.2.0", (2, 1, 1)),
    ("what acceptance does not lift is not accepted", ("ClusterVersionGiantHop",), "5.2.0", (3, 1, 0)),
    ("a risk of the update service counts as well", (), "5.1.0", (2, 1, 0)),
]


@pytest.mark.parametrize(("accepted", "target", "expected"), [row[1:] for row in CASES], ids=[row[0] for row in CASES])
def test_counts_agree(accepted: tuple[str, ...], target: str, expected: tuple[int, int, int]) -> None:
    """Applying, unknown and accepted: the same everywhere, and compare names all of them."""
    world = World.new().ask_preflight(target).settle()
    world.report(risk(), risk("Dim", applies="Unknown")).settle()
    if accepted:
        world.accept(*accepted).settle()
    cluster, stored = world.version, histories.read(world.observed.history)
    found = current_findings(cluster, stored)
    assert found is not None
    assert count_risks(found.risks) == expected
    shown = ", ".join(
        [f"{expected[0]} {'risk applies' if expected[0] == 1 else 'risks apply'}", f"{expected[1]} unknown"]
        + [f"{expected[2]} accepted"] * bool(expected[2])
    )
    assert f", {shown} (as of " in world.message("PreflightCompleted")
    first = result(found).splitlines()[1]
    assert f": {shown}; " in re.sub(r" [(][^()]*[)]( for \d causes?)?", "", first)
    assert verdict(found).startswith(f"Verdict: {shown}. ") is (target == "5.1.0")
    listed = "".join(text for _, text in section(found))
    names = sorted(entry.name for entry in found.risks)
    assert all(
        re.search(rf"^(\d+\. .*|   Also: .*|Accepted: .*|Not known.*)\b{name}\b", listed, re.MULTILINE)
        for name in names
    )
    history = with_counted_risks(stored)
    row = rendered.history(history).splitlines()[1].split()
    assert tuple(map(int, row[3:6])) == expected
    compared = rendered.comparison(rendered.compare(history.reports[0], history.reports[0]))
    assert all(name in compared for name in names)


def _without_verdicts(cluster: ClusterVersion) -> ClusterVersion:
    """As an API server keeps it whose risks have no conditions."""

    def plain(risks: tuple[ConditionalUpdateRisk, ...]) -> tuple[ConditionalUpdateRisk, ...]:
        return tuple(replace(each, conditions=()) for each in risks)

    updates = tuple(replace(update, risks=plain(update.risks)) for update in cluster.status.conditional_updates)
    status = replace(cluster.status, conditional_updates=updates, conditional_update_risks=())
    return replace(cluster, status=status)


def test_the_older_api_tells_as_much() -> None:
    """Before verdicts exist, the report provides the risks; once the preflight ended, only the report does."""
    world = World.new().ask_preflight("5.2.0").settle()
    world.report(risk(), risk("Dim", applies="Unknown")).settle()
    cluster, stored = world.version, histories.read(world.observed.history)
    newer, older = current_findings(cluster, stored), current_findings(_without_verdicts(cluster), stored)
    assert newer is not None and older is not None
    named = {each.name for each in stored.reports[0].risks}
    said = {found.name: found.applies for found in newer.risks if found.name in named}
    assert {found.name: found.applies for found in older.risks if found.name in said} == said
    assert set(said.values()) == {"True", "Unknown"}
    assert older.exit_code == newer.exit_code
    world.ask(None).settle()
    ended = findings_of_target(_without_verdicts(world.version), histories.read(world.observed.history), "5.2.0")
    (report,) = histories.read(world.observed.history).reports
    assert {each.name: each.applies for each in ended.risks} == {each.name: each.applies for each in report.counted}


@pytest.mark.parametrize(("recommended", "applies"), [("True", "False"), ("False", "Unknown"), ("Unknown", "Unknown")])
def test_what_an_update_s_verdict_says_of_its_risks(recommended: ConditionStatus, applies: ConditionStatus) -> None:
    """None applies where it is recommended; which one does is not said where it is not."""
    risks = (ConditionalUpdateRisk(name="A", message="m", url="https://example.com"),)
    verdict = Condition(type="Recommended", status=recommended, reason="R", last_transition_time=NOW)
    update = ConditionalUpdate(Release(version="5.1.0"), risks=risks, conditions=(verdict,))
    found = findings_of_target(cluster_version(conditional_updates=(update,)), History(), "5.1.0")
    assert [each.applies for each in found.risks] == [applies]
