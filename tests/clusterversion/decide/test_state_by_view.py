"""Every view of a preflight has the same state, findings, severities and exit code, before, during and after an update.

The situations are reached by the real reconcile. `python -m tests.clusterversion.decide.test_state_by_view` prints the
table of docs/reference/cli.md.
"""

from __future__ import annotations

import contextlib
import io
import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import Phase as HypothesisPhase
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.clusterversion.decide.world import GATES, World, risk
from tests.factories import NOW, feature_gate
from tests.few_or_many import few_or_many

from kubekit.api import codec
from runup.api.config_v1 import AcceptRisk, Update
from runup.cli.advice import recommend_preflights
from runup.cli.clusterversion import show
from runup.cli.preflight.render import finding_texts, history_tables, preflight_page
from runup.preflight.decide import stored_reports
from runup.preflight.decide.findings import Findings, findings_of_target, with_counted_risks
from runup.preflight.decide.preflight_state import Phase

TARGET = "5.0.3"
TO = Update(version=TARGET)
CORDONED, PAUSED = risk("NodeCordoned", severity="critical"), risk("PoolPaused", applies="Unknown")
DOCS = Path(__file__).parents[3] / "docs" / "reference" / "cli.md"
LAPSE = "its Lease a/b was last renewed at 2026-01-01T00:00:00Z"
BEGIN, END = "<!-- states by view -->\n", "<!-- end of states by view -->\n"


def asked(version: str = TARGET) -> World:
    """A cluster whose preflight has been started."""
    return World.new().settle().ask_preflight(version).settle()


def checked(*found: Any, version: str = TARGET, **changes: Any) -> World:
    """A cluster whose preflight has reported."""
    return asked(version).report(*found, **changes).settle()


def updating() -> World:
    """A cluster whose update began although a risk applied, which was accepted."""
    accepted = (AcceptRisk(name=CORDONED.name), AcceptRisk(name=PAUSED.name))
    return checked(CORDONED, PAUSED).ask(Update(version=TARGET, accept_risks=accepted)).settle()


def unrequested() -> World:
    """A cluster whose operator has not seen the request yet."""
    return World.new().settle().ask_preflight(TARGET)


@dataclass(frozen=True)
class Situation:
    """How it comes about, its state (None: there is nothing to show), and the exit code of `preflight show`."""

    world: Callable[[], World]
    phase: Phase | None
    code: int | None
    lapse: str = ""


SITUATIONS: dict[str, Situation] = {
    "nothing is requested": Situation(lambda: World.new().settle(), None, None),
    "requested, not taken up": Situation(unrequested, Phase.REQUESTED, 1),
    "before the first report": Situation(asked, Phase.WAITING, 1),
    "some checks are done": Situation(
        lambda: checked(CORDONED, execution_status="running", message="4 of 7 checks done"), Phase.RUNNING, 1
    ),
    "complete, no risks": Situation(checked, Phase.LIVE, 0),
    "complete, risks": Situation(lambda: checked(CORDONED, PAUSED), Phase.LIVE, 2),
    "complete, one unknown": Situation(lambda: checked(PAUSED), Phase.LIVE, 3),
    "complete, accepted": Situation(lambda: checked(CORDONED).accept(CORDONED.name).settle(), Phase.LIVE, 0),
    "complete, but no operator works": Situation(checked, Phase.UNCONFIRMED, 3, LAPSE),
    "complete with risks, but no operator works": Situation(lambda: checked(CORDONED), Phase.UNCONFIRMED, 3, LAPSE),
    "an update waits for it": Situation(lambda: checked(CORDONED, PAUSED).ask(TO).settle(), Phase.WAITED_FOR, 2),
    "the target does not exist": Situation(lambda: asked("9.9.9"), Phase.FAILED, 1),
    "the report is not one": Situation(
        lambda: asked().bad_report("ReportInvalid", "no JSON").settle(), Phase.FAILED, 1
    ),
    "the gate was closed": Situation(
        lambda: checked(CORDONED, PAUSED).change(feature_gate=feature_gate(enabled=())).settle(), Phase.FAILED, 1
    ),
    "the request was cleared": Situation(lambda: checked(CORDONED, PAUSED).ask(None).settle(), Phase.ENDED, 3),
    "another target is requested": Situation(
        lambda: checked(CORDONED, PAUSED).ask_preflight("5.1.0").settle(), Phase.ENDED, 3
    ),
    "its update has begun": Situation(updating, Phase.OUTDATED, 3),
    "the target's clock is ahead": Situation(
        lambda: checked(CORDONED, observed_time=NOW + timedelta(days=1)), Phase.LIVE, 2
    ),
    "the target's clock is behind": Situation(
        lambda: checked(CORDONED, observed_time=NOW - timedelta(days=1)), Phase.LIVE, 2
    ),
}


@dataclass(frozen=True)
class Views:
    """The state of one target in each view; None if the view does not list it."""

    found: Findings | None
    show: str
    show_data: dict[str, Any] | None
    page: str
    upgrade: str
    upgrade_data: dict[str, Any] | None
    recommend: str
    recommend_data: dict[str, Any] | None
    history: list[str]


def views(world: World, target: str, lapse: str = "") -> Views:
    """Renders all of them; `lapse` says since when no operator works."""
    document = codec.to_dict(world.version)
    kept = codec.to_dict(world.observed.history) if world.observed.history else None
    history = msgspec.structs.replace(stored_reports.read(world.observed.history), lapse=lapse)
    found = findings_of_target(world.version, history, target)
    printed: dict[str | None, str] = {}
    for output in (None, "json"):
        stream = io.StringIO()
        with contextlib.redirect_stdout(stream), contextlib.redirect_stderr(stream):
            show.show_document(
                document, show.OperatorConfigMaps(kept, lapse=lapse), world.now, show.ShowOptions(output=output)
            )
        printed[output] = stream.getvalue()
    upgrade = json.loads(printed["json"])
    listed = [each for each in (upgrade["preflight"], *upgrade["endedPreflights"]) if each]
    lines, data = recommend_preflights.preflight_lines(document, kept, None, version="", now=world.now, lapse=lapse)
    rows = "".join(str(text) for _, text in lines).splitlines()
    recorded = str(history_tables.history(with_counted_risks(history))).splitlines()
    known = found if found.known else None
    return Views(
        found=known,
        show=str(finding_texts.result(found)) if known else "",
        show_data=finding_texts.as_data(found) if known else None,
        page=str(preflight_page.page(found, world.now)) if known else "",
        upgrade=printed[None],
        upgrade_data=next((each for each in listed if each["target"] == target), None),
        recommend=next((row for row in rows if row.split()[:1] == [target]), ""),
        recommend_data=next((each for each in data if each["target"] == target), None),
        history=next((row.split() for row in recorded if row.split()[:1] == [target]), []),
    )


def target_of(name: str) -> str:
    """The release that the situation is about."""
    return "9.9.9" if "not exist" in name else TARGET


# What the text of `preflight show` says in each state, and in no other.
WORDS = {
    Phase.REQUESTED: "no result yet",
    Phase.WAITING: "no result yet",
    Phase.RUNNING: "no result yet",
    Phase.WAITED_FOR: "an update waits for it",
    Phase.UNCONFIRMED: "not confirmed any more",
    Phase.ENDED: ", then",
    Phase.OUTDATED: ", then",
}


def findings_in(data: dict[str, Any]) -> dict[str, tuple[str, bool, str]]:
    """Of each risk in the machine form: whether it applies, whether it is accepted, how severe it is."""
    return {each["name"]: (each["applies"], each["accepted"], each["severity"]) for each in data["risks"]}


def agree(world: World, target: str, lapse: str = "") -> Findings | None:
    """Checks that all views of one target agree on state, findings, severities and counts; returns what they show."""
    seen = views(world, target, lapse)
    if seen.found is None:
        assert seen.upgrade_data is None and seen.recommend_data is None and not seen.history
        return None
    found, state = seen.found, seen.found.phase.value if seen.found.phase else None
    assert seen.show_data is not None
    named = findings_in(seen.show_data)
    for other in (seen.upgrade_data, seen.recommend_data):
        if other is not None:
            assert (other["state"], findings_in(other)) == (state, named)
            assert other["exitCode"] == seen.show_data["exitCode"] == found.exit_code
    # A preflight that is not over is listed everywhere; one that is over, while its target is ahead and has risks.
    assert (seen.upgrade_data is None) is (seen.recommend_data is None)
    if found.phase not in (None, Phase.ENDED, Phase.OUTDATED):
        assert seen.recommend_data is not None
    if seen.recommend_data is not None:
        assert f" {state}" in seen.recommend
    headline = seen.show.strip().splitlines()[0]
    if found.phase is not None:
        assert WORDS.get(found.phase, "") in headline
    # A preflight that failed after its report shows that report, too; one that an update waits for may be running.
    also = {Phase.FAILED: ", then", Phase.WAITED_FOR: "no result yet"}
    for phase, words in WORDS.items():
        if found.phase and words not in (WORDS.get(found.phase), also.get(found.phase)):
            assert words not in headline, phase
    for risk_name, (applies, _, severity) in named.items():
        if applies != "False":
            assert risk_name in seen.show and risk_name in seen.page
        # ClusterVersion has no field for the severity, which comes with the complete report.
        if found.phase in (Phase.LIVE, Phase.ENDED, Phase.OUTDATED) and risk_name in (CORDONED.name, PAUSED.name):
            assert severity
    if seen.history and found.observed and not found.partial and found.phase in (Phase.ENDED, Phase.OUTDATED):
        still_open = [applies for applies, accepted, _ in named.values() if not accepted]
        assert seen.history[3:5] == [str(still_open.count(applies)) for applies in ("True", "Unknown")]
    # No view shows a time of another clock than the operator's; only limits are ahead.
    messages = (condition.message for condition in world.version.status.conditions)
    shown = " ".join((seen.show, seen.page, seen.upgrade, seen.recommend, *messages))
    times = [
        codec.convert(datetime, each) for each in re.findall(r"(?<!until )20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ", shown)
    ]
    assert all(NOW <= each <= world.now for each in times if f"{each:%Y-%m-%dT%H:%M:%SZ}" not in lapse)
    return found


@pytest.mark.parametrize("name", SITUATIONS)
def test_all_views_agree(name: str) -> None:
    """And have the state and the exit code of the situation."""
    situation = SITUATIONS[name]
    found = agree(situation.world(), target_of(name), situation.lapse)
    assert (found.phase if found else None) is situation.phase
    assert (found.exit_code if found else None) == situation.code


def reported(world: World, *found: Any, **changes: Any) -> World:
    """The target reports, if there is one."""
    return world.report(*found, **changes) if world.observed.deployment is not None else world


# What administrators, targets and clocks do, in any order.
EVENTS: dict[str, Callable[[World], World]] = {
    "a preflight is requested": lambda world: world.ask_preflight(TARGET),
    "a preflight of another target is requested": lambda world: world.ask_preflight("5.1.0"),
    "the request is cleared": lambda world: world.ask(None),
    "the update is requested": lambda world: world.ask(TO),
    "risks are accepted": lambda world: world.accept(CORDONED.name, PAUSED.name),
    "no risk is accepted any more": World.accept,
    "the checks have begun": lambda world: reported(world, CORDONED, execution_status="running", message="1 of 2"),
    "no risk is found": reported,
    "risks are found": lambda world: reported(world, CORDONED, PAUSED),
    "one is unknown": lambda world: reported(world, PAUSED),
    "a report is ahead of time": lambda world: reported(world, CORDONED, observed_time=world.now + timedelta(days=1)),
    "a report is behind": lambda world: reported(world, CORDONED, observed_time=world.now - timedelta(days=1)),
    "a report is none": lambda world: (
        world.bad_report("ReportInvalid", "no JSON") if world.observed.deployment is not None else world
    ),
    "the gate is closed": lambda world: world.change(feature_gate=feature_gate(enabled=())),
    "the gate is opened": lambda world: world.change(feature_gate=feature_gate(enabled=GATES)),
    "a minute passes": lambda world: world.pass_time(60),
    "an hour passes": lambda world: world.pass_time(3600),
}


@pytest.mark.slow
@few_or_many(40, 2000)
def test_all_views_agree_after_any_events(examples: int) -> None:
    """Whatever happened before."""

    @settings(max_examples=examples, deadline=None, phases=(HypothesisPhase.generate, HypothesisPhase.shrink))
    @given(st.lists(st.sampled_from(sorted(EVENTS)), min_size=1, max_size=8))
    def check(events: list[str]) -> None:
        world = World.new().settle()
        for event in events:
            world = EVENTS[event](world).settle()
            for target in (TARGET, "5.1.0"):
                agree(world, target)

    check()


def conditions(world: World) -> dict[str, str]:
    """Status by type of the preflight's conditions."""
    return {c.type: c.status for c in world.version.status.conditions if c.type.startswith("Preflight")}


@pytest.mark.parametrize("name", SITUATIONS)
def test_conditions_have_the_state(name: str) -> None:
    """There are none of a preflight that is over, and Failed is True only of one that failed."""
    situation, found = SITUATIONS[name], conditions(SITUATIONS[name].world())
    current = situation.phase not in (None, Phase.REQUESTED, Phase.ENDED, Phase.OUTDATED)
    if "another target" not in name:
        assert bool(found) is current
    if found and current:
        assert (found["PreflightFailed"] == "True") is (situation.phase is Phase.FAILED)
        assert (found["PreflightCompleted"] == "True") is (
            situation.phase in (Phase.LIVE, Phase.UNCONFIRMED, Phase.WAITED_FOR)
        )


def table() -> str:
    """The table of docs/reference/cli.md: what each view shows in each situation."""
    heads = ["situation", "state", "`preflight show`", "exit code", "`recommend`", "`upgrade`"]
    rows = [[*heads, "Running, Completed, Failed"], ["---"] * 7]
    for name, situation in SITUATIONS.items():
        world = situation.world()
        seen, status = views(world, target_of(name), situation.lapse), conditions(world)
        headline = seen.show.strip().splitlines()[0] if seen.show else ""
        listed = [each["state"] if each else "-" for each in (seen.recommend_data, seen.upgrade_data)]
        rows.append(
            [
                name,
                situation.phase.value if situation.phase else "-",
                headline.partition(": ")[2].partition("; as of")[0] or "-",
                "-" if situation.code is None else str(situation.code),
                *listed,
                ", ".join(status.get(f"Preflight{kind}", "-") for kind in ("Running", "Completed", "Failed")),
            ]
        )
    return "".join(f"| {' | '.join(row)} |\n" if row[0] != "---" else "|---" * 7 + "|\n" for row in rows)


def test_the_table_of_the_docs() -> None:
    """It says what is shown."""
    text = DOCS.read_text()
    assert text.partition(BEGIN)[2].partition(END)[0] == table()


if __name__ == "__main__":
    print(table(), end="")
