"""What a preflight found stays, dated, over the update to another release, and its row of the history never changes.

Source: openshift/enhancements#1930, "Upgrading FROM a cluster with preflight support", 3.
"""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace as with_fields
from tests.clusterversion.decide.test_live_or_dated import TO, checked, verdict
from tests.clusterversion.decide.test_preflight_and_its_update import PATCHES
from tests.clusterversion.decide.world import World, image, risk

from runup.api.config_v1 import AcceptRisk, Update
from runup.cli.preflight.render import history_tables
from runup.preflight.decide import stored_reports
from runup.preflight.decide.findings import ended_findings, findings_of_target, known_risk_names, with_counted_risks
from runup.preflight.decide.preflight_state import Phase
from runup.process.plan import PatchStatus


def stored(world: World) -> stored_reports.History:
    """What the operator keeps."""
    return stored_reports.read(world.observed.history)


def rows(world: World) -> tuple[str, list[dict[str, Any]]]:
    """What `preflight history` prints, as text and as data."""
    history = with_counted_risks(stored(world))
    return history_tables.history(history), history_tables.history_data(history)


def test_findings_of_a_target_that_is_still_ahead_stay() -> None:
    """With their source and time, as old ones; they hold nothing up."""
    world = checked(risk("PoolPaused"), version="5.2.0").ask(TO).settle()
    assert world.version.status.desired.version == "5.0.3"
    assert world.risks("5.2.0")["PoolPaused"] == ("Unknown", "PreflightOutdated")
    shown = verdict(world, "PoolPaused")
    assert shown.startswith("Found by the preflight for 5.2.0 from 5.0.0 at 2026-01-14T10:00:00Z, which has ended: ")
    (ended,) = ended_findings(world.version, stored(world))
    assert (ended.target, ended.source, ended.exit_code) == ("5.2.0", "5.0.0", 3)
    assert findings_of_target(world.version, stored(world), "5.2.0").known


def test_a_new_preflight_from_the_new_release_takes_their_place() -> None:
    """Only the newest findings about a target are reported; both rows stay."""
    world = checked(risk("PoolPaused"), version="5.2.0").ask(TO).settle().ask_preflight("5.2.0").settle()
    world.report(risk("Other"), source_version="5.0.3", observed_time=world.pass_time(60).now).settle().ask(
        None
    ).settle()
    assert "PoolPaused" not in world.risks("5.2.0")
    assert world.risks("5.2.0")["Other"] == ("Unknown", "PreflightOutdated")
    assert [report.source_version for report in stored(world).reports] == ["5.0.3", "5.0.0"]


def test_findings_stay_dated_until_the_next_preflight_reports() -> None:
    """Asking again does not make an old finding hold the update up, neither before the target runs nor while it does.

    Source: docs/decisions/0072 D21 and D24.
    """
    world = checked(risk("PoolPaused"), version="5.2.0").ask(None).settle().ask_preflight("5.2.0")
    for _ in range(8):
        world.step()
        assert world.risks("5.2.0")["PoolPaused"] == ("Unknown", "PreflightOutdated")


@pytest.mark.parametrize("ended_before", [True, False], ids=["it had ended", "the update ended it"])
@pytest.mark.parametrize("updates", [1, 2], ids=["to its target", "and past it"])
def test_findings_of_what_the_cluster_has_come_to_are_kept_for_reference(ended_before: bool, updates: int) -> None:
    """In conditionalUpdateRisks, marked as outdated; no update carries them, and they hold nothing up."""
    world = checked(risk("PoolPaused"))
    world = world.ask(None).settle() if ended_before else world
    world.ask(Update(version="5.0.3", accept_risks=(AcceptRisk("PoolPaused"),))).settle()
    assert world.version.status.desired.version == "5.0.3"
    if updates > 1:
        world.ask(Update(version="5.1.0", image=image("5.1.0"), force=True)).settle()
        assert world.version.status.desired.version == "5.1.0"
    (kept,) = [each for each in world.version.status.conditional_update_risks if each.name == "PoolPaused"]
    assert kept.message == "Preflight=5.0.3: PoolPaused it is."
    (verdict_now,) = kept.conditions
    assert (verdict_now.status, verdict_now.reason) == ("Unknown", "PreflightOutdated")
    assert verdict_now.message.startswith("Found by the preflight for 5.0.3 from 5.0.0 at 2026-01-14T10:00:00Z, which ")
    assert verdict_now.message.endswith(" has ended. It is kept for reference.")
    carried = {each.name for update in world.version.status.conditional_updates for each in update.risks}
    assert "PoolPaused" not in carried | set(known_risk_names(world.version))
    assert ended_findings(world.version, stored(world)) == ()
    found = findings_of_target(world.version, stored(world), "5.0.3")
    assert (found.phase, [(each.name, each.applies) for each in found.risks]) == (
        Phase.OUTDATED,
        [("PoolPaused", "True")],
    )
    before = len(world.plans)
    assert not [action for action in world.step().actions if type(action) is PatchStatus], before


def test_a_risk_that_another_target_has_now_keeps_its_verdict() -> None:
    """The line of the past is added to its message."""
    world = checked(risk("PoolPaused")).ask(None).settle().ask(TO).settle().ask_preflight("5.2.0").settle()
    world.report(risk("PoolPaused"), source_version="5.0.3", observed_time=world.pass_time(60).now).settle()
    (kept,) = [each for each in world.version.status.conditional_update_risks if each.name == "PoolPaused"]
    assert kept.message == "Preflight=5.2.0: PoolPaused it is.\nPreflight=5.0.3: PoolPaused it is."
    assert [(each.status, each.reason) for each in kept.conditions] == [("True", "PreflightValidation")]


CHANGES: dict[str, Any] = {
    "an acceptance": lambda w: w.accept("PoolPaused", "SlowNodeDrain"),
    "an end of acceptances": lambda w: w.accept(),
    "an update": lambda w: w.ask(TO),
    "another graph": lambda w: _other_graph(w),
    "another preflight": lambda w: w.ask_preflight("5.3.0"),
}


def _other_graph(world: World) -> World:
    world.graph = PATCHES
    return world.change(service=type(world.observed.service)())


@pytest.mark.parametrize("change", CHANGES)
def test_a_row_never_changes_afterwards(change: str) -> None:
    """Whatever becomes true later: it says what was so when it was stored."""
    world = checked(risk("PoolPaused"), version="5.1.0").accept("SlowNodeDrain").settle().ask(None).settle()
    before = rows(world)
    assert [each["name"] for each in before[1][0]["risks"]] == ["PoolPaused", "SlowNodeDrain"]
    assert before[0].splitlines()[1].split()[3:6] == ["1", "0", "1"]
    CHANGES[change](world).settle()
    assert rows(world) == before


def test_a_target_cannot_say_what_else_counts() -> None:
    """The operator replaces what it writes there."""
    world = World.new().settle().ask_preflight("5.1.0").settle()
    world.report(risk("A"), others=(risk("Forged"),), accepted=("A",)).settle()
    (report,) = stored(world).reports
    assert ([each.name for each in report.others], report.accepted) == (["SlowNodeDrain"], ())
    assert with_fields(report, others=()).counted == report.risks
