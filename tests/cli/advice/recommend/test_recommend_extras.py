"""What `recommend` says beyond oc: whose acceptance counts, how preflights stand, and the same for programs."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from kubekit.api import codec
from runup.advice.decide import acceptance
from runup.advice.decide.acceptance import Acceptance
from runup.cli.advice import recommend_additions, recommend_preflights
from runup.preflight.decide import stored_reports
from runup.preflight.decide.stored_reports import History
from runup.report.report import FORMAT, Report, ReportedCheck, ReportedRisk

JSON = dict[str, Any]
NOW = datetime(2026, 1, 14, 12, tzinfo=UTC)
SINCE = "2026-01-14T12:00:00Z"
EARLIER = "2026-01-14T09:30:00Z"
BEFORE = datetime(2026, 1, 14, 9, 30, tzinfo=UTC)
IMAGE = "quay.io/ocp@sha256:" + "a" * 64


def _condition(type_: str, status: str = "True", reason: str = "R", since: str = EARLIER) -> JSON:
    return {"type": type_, "status": status, "reason": reason, "message": f"{type_} m", "lastTransitionTime": since}


def _update(version: str, *risks: JSON, names: tuple[str, ...] = ()) -> JSON:
    return {"release": {"version": version, "image": IMAGE}, "risks": [*risks], "riskNames": [*names]}


def _risk(name: str, status: str = "True", reason: str = "PreflightValidation", message: str = "m") -> JSON:
    applies = _condition("Applies", status, reason)
    return {"name": name, "message": message, "url": "https://x", "matchingRules": [], "conditions": [applies]}


def _cluster(*updates: JSON, conditions: tuple[JSON, ...] = (), **spec: Any) -> JSON:
    status = {
        "desired": {"version": "5.0.0", "image": "y"},
        "conditionalUpdates": [*updates],
        "conditions": [*conditions],
    }
    return {"kind": "ClusterVersion", "metadata": {"name": "version"}, "spec": spec, "status": status}


def _records(*records: Acceptance) -> JSON:
    data = {record.name: acceptance.encode_record(record) for record in records}
    return {"metadata": {"name": acceptance.NAME}, "data": data}


CARRIED = _cluster(_update("5.1.0", _risk("RiskA")), conditions=(_condition("Failing", "False", since=SINCE),))
UNTIL: dict[str, tuple[datetime | None, datetime | None, bool]] = {
    "without an end": (None, NOW, True),
    "before its end": (NOW + timedelta(seconds=1), NOW, True),
    "at its end": (NOW, NOW, False),
    "of files, by the newest that they tell of": (NOW, None, False),
    "of files, a second before": (NOW + timedelta(seconds=1), None, True),
}


@pytest.mark.parametrize("name", UNTIL)
def test_until_when_an_acceptance_counts(name: str) -> None:
    """By the cluster's time, or that of the files."""
    until, now, counts = UNTIL[name]
    document = {**CARRIED, "status": {**CARRIED["status"]}}
    document["status"]["conditions"] = [_condition("A", since=EARLIER), *CARRIED["status"]["conditions"]]
    said, rows = recommend_additions.acceptance_lines(
        document, ["RiskA"], _records(Acceptance(name="RiskA", reason="why", by="kim", at=NOW, until=until)), now
    )
    assert [row["counts"] for row in rows] == [counts]
    text = "".join(part for stream, part in said if stream == "out")
    words = ["RiskA", "yes"] if counts else ["RiskA", "no,", "ended"]
    assert text.splitlines()[-1].split()[: len(words)] == words
    ended = f"warning: the acceptance of RiskA ended at {acceptance.stamp(until)} and does not count any more\n"
    assert [part for stream, part in said if stream == "err"] == ([] if counts else [ended])


@pytest.mark.parametrize(
    "conditions",
    [
        pytest.param((), id="no condition"),
        pytest.param((_condition("A", since="yesterday"),), id="a time that is none"),
        pytest.param((_condition("A", since="2026-01-14T12:00:00"), _condition("B")), id="a time without a zone"),
    ],
)
def test_files_without_a_time_let_every_acceptance_count(conditions: tuple[JSON, ...]) -> None:
    """Nobody can say that one has ended."""
    document = _cluster(_update("5.1.0", _risk("RiskA")), conditions=conditions)
    _, rows = recommend_additions.acceptance_lines(
        document, ["RiskA"], _records(Acceptance(name="RiskA", until=NOW - timedelta(days=900))), None
    )
    assert [row["counts"] for row in rows] == [True]


def test_a_record_that_cannot_be_read_does_not_count() -> None:
    """It is reported why, once."""
    said, (row,) = recommend_additions.acceptance_lines(CARRIED, ["RiskA"], {"data": {"RiskA": "?"}}, NOW)
    assert (row["counts"], row["carried"], row["reason"], row["until"]) == (False, True, None, None)
    (warning,) = [part for stream, part in said if stream == "err"]
    assert warning.startswith("warning: key RiskA of ConfigMap accepted-risks cannot be read: ")
    assert warning.endswith(", so RiskA does not count; accept it again, or remove it\n")


def test_names_without_a_record_are_no_table() -> None:
    """oc shows them nowhere; only one that no update carries is reported, with what it may mean."""
    said, rows = recommend_additions.acceptance_lines(CARRIED, ["RiskA", "RiskB", "Zzz"], None, NOW)
    assert [(row["name"], row["carried"], row["nearest"]) for row in rows] == [
        ("RiskA", True, None),
        ("RiskB", False, "RiskA"),
        ("Zzz", False, None),
    ]
    assert said == [
        ("err", "warning: RiskB is accepted, and no update of this cluster carries it now; did you mean RiskA?\n"),
        ("err", "warning: Zzz is accepted, and no update of this cluster carries it now\n"),
    ]


@pytest.mark.parametrize(
    ("names", "record", "rows"),
    [
        pytest.param(("RiskA",), None, ["RiskA"], id="names without a record"),
        pytest.param((), Acceptance(name="RiskA", reason="why"), [], id="a record without names"),
        pytest.param((), None, [], id="neither"),
    ],
)
def test_which_acceptances_are_told(names: tuple[str, ...], record: Acceptance | None, rows: list[str]) -> None:
    """Shows the acceptances of the request, with or without a record."""
    desired = {"desiredUpdate": {"acceptRisks": [{"name": name} for name in names]}}
    document = CARRIED | {"spec": desired}
    maps = [_records(record)] if record else []
    found = recommend_additions.additional_output(document, maps, "", NOW)
    assert [row["name"] for row in found.acceptances] == rows


def test_every_risk_that_an_update_carries_is_known() -> None:
    """Finds acceptances in the full list, in an update's list and in a list of names; ignores invalid names."""
    document = _cluster(_update("5.1.0", _risk("B"), names=("C", 7)), _update("5.2.0", _risk("B"), _risk("D")))  # type: ignore[arg-type]
    document["status"]["conditionalUpdateRisks"] = [{"name": "A"}]
    assert recommend_additions.risk_names(document) == ["A", "B", "C", "D"]


SPEAKS: dict[str, tuple[JSON, bool]] = {
    "nothing does": (
        _cluster(_update("5.1.0", _risk("A", reason="Match")), conditions=(_condition("Failing"),)),
        False,
    ),
    "a preflight is asked for": (_cluster(desiredUpdate={"version": "5.1.0", "mode": "Preflight"}), True),
    "an update is": (_cluster(desiredUpdate={"version": "5.1.0"}), False),
    "a risk that one found": (
        _cluster(_update("5.0.1"), _update("5.1.0", _risk("B", reason="Match"), _risk("A"))),
        True,
    ),
    "a target that is silent": (_cluster(_update("5.1.0", _risk("A", reason="ReportStale"))), True),
    "a condition of one": (_cluster(conditions=(_condition("Failing"), _condition("PreflightRunning"))), True),
}


@pytest.mark.parametrize("name", SPEAKS)
def test_what_speaks_of_preflights(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only then are they looked for: what that needs takes its time to import."""
    document, speaks = SPEAKS[name]
    asked: list[str] = []

    def of(*_: Any, **_named: Any) -> tuple[list[Any], list[Any]]:
        asked.append(name)
        return [], []

    monkeypatch.setattr(recommend_preflights, "preflight_lines", of)
    assert recommend_additions.additional_output(document, (), "", NOW) == recommend_additions.Extras()
    assert bool(asked) is speaks


def test_which_names_are_accepted() -> None:
    """Those that are names, in their order."""
    named = [{"name": "B"}, {"name": ""}, {}, "x", {"name": "A"}]
    assert recommend_additions.accepted_names(_cluster(desiredUpdate={"acceptRisks": named})) == ("B", "A")


def _report(target: str, source: str = "5.0.0", status: str = "completed", **more: Any) -> Report:
    fields = {
        "format": FORMAT,
        "preflight_id": f"p-{target}",
        "source_version": source,
        "target_version": target,
        "target_image": IMAGE,
        "execution_status": status,
        "observed_time": NOW,
    }
    return Report(**fields | more)


def _stored(*reports: Report) -> JSON:
    found: JSON = json.loads(codec.encode(stored_reports.config_map(History(reports=reports), "ns")))
    return {"apiVersion": "v1", "kind": "ConfigMap", **found}


def _preflight(running: str = "", completed: str = "", failed: str = "") -> tuple[JSON, ...]:
    states = {"Running": running, "Completed": completed, "Failed": failed}
    return tuple(_condition(f"Preflight{type_}", status, "Why") for type_, status in states.items() if status)


STATES: dict[str, tuple[tuple[JSON, ...], str]] = {
    "nothing yet": ((), "requested"),
    "queued": (_preflight("False", "False", "False"), "waiting"),
    "started": (_preflight("True", "False", "False"), "waiting"),
    "complete": (_preflight("True", "True", "False"), "live"),
    "failed": (_preflight("False", "False", "True"), "failed"),
}
ASKED = {"version": "5.1.0", "mode": "Preflight"}


@pytest.mark.parametrize("name", STATES)
def test_how_the_preflight_stands_that_is_asked_for(name: str) -> None:
    """In a word; for programs by that word."""
    conditions, state = STATES[name]
    document = _cluster(_update("5.1.0", _risk("RiskA")), conditions=conditions, desiredUpdate=ASKED)
    ((_, text),), (data,) = recommend_preflights.preflight_lines(document, None, accepted=None, version="", now=NOW)
    assert (data["state"], data["ended"], data["target"]) == (state, False, "5.1.0")
    row = text.splitlines()[-1]
    assert row.split()[:4] == ["5.1.0", "5.0.0", "not", "yet"]
    assert f"   {state}{' (Why)' if state == 'failed' else ''}   " in row
    assert row.endswith("   RiskA")


OLD = "PreflightOutdated"


@pytest.mark.parametrize(("status", "state"), [("completed", "ended"), ("running", "ended, partial")])
def test_how_those_stand_that_have_ended(status: str, state: str) -> None:
    """With how much was reported, without what was not for the update; of another target nothing where one is named."""
    checks = tuple(
        ReportedCheck(name=name, result=result)  # type: ignore[arg-type]
        for name, result in (("A", "Applies"), ("B", "Unknown"), ("C", "Skipped"), ("D", "Clear"))
    )
    risks = (ReportedRisk(name="RiskA", message="m"),)
    stored = _stored(
        _report("5.1.0", status=status, checks=checks, risks=risks),
        _report("5.2.0", observed_time=BEFORE, risks=(replace(risks[0], name="RiskC"),)),
    )
    document = _cluster(
        _update("5.1.0", _risk("RiskA", "Unknown", OLD, "a " * 60), _risk("RiskB", reason="Match")),
        _update("5.2.0", _risk("RiskC", "Unknown", OLD)),
    )
    said, data = recommend_preflights.preflight_lines(document, stored, accepted=None, version="", now=NOW)
    assert [(each["target"], each["ended"]) for each in data] == [("5.1.0", True), ("5.2.0", True)]
    rows = said[0][1].splitlines()
    assert rows[-2].split() == f"5.1.0 5.0.0 {SINCE} {state} (2 of 3 checks with a result) RiskA".split()
    assert rows[-1].split() == f"5.2.0 5.0.0 {EARLIER} ended RiskC".split()
    assert said[1:] == [("out", "\nFindings of an ended preflight may have changed since, and hold no update up.\n")]
    said, data = recommend_preflights.preflight_lines(document, stored, accepted=None, version="5.1.0", now=NOW)
    assert [each["target"] for each in data] == ["5.1.0"]
    assert [text.partition(":")[0] for _, text in said[2:]] == ["\n  RiskA"]
    assert len(said[2][1].strip()) <= len("RiskA: ") + 100
    assert recommend_preflights.preflight_lines(document, stored, accepted=None, version="5.3.0", now=NOW) == ([], [])


def test_what_does_not_apply_is_no_risk_of_a_preflight_that_goes_on() -> None:
    """None is a separate word."""
    document = _cluster(_update("5.1.0", _risk("RiskA", "False")), desiredUpdate=ASKED)
    ((_, text),), _ = recommend_preflights.preflight_lines(document, None, accepted=None, version="", now=NOW)
    assert text.endswith("   none\n")
    said, _ = recommend_preflights.preflight_lines(document, None, accepted=None, version="5.1.0", now=NOW)
    assert len(said) == 1
