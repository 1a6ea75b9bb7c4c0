"""Every view of the same findings says the same: findings, severities, states, refusals, and the exit code."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple
from xml.etree import ElementTree

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from tests.factories import cluster_version
from tests.few_or_many import few_or_many

from kubekit.api.meta_v1 import Condition
from kubekit.lang import yaml as kyaml
from runup.cli.fleet.render import fleet_forms, fleet_page, fleet_text
from runup.cli.preflight.outputs import Shown
from runup.cli.preflight.render import cause_texts, ci_annotations, output_formats, risk_rows
from runup.cli.preflight.render.finding_texts import verdict_parts
from runup.cli.preflight.render.preflight_page import page
from runup.cli.render.screen import Screen
from runup.evaluation import results
from runup.evaluation.baseline import Baseline, KnownCluster, KnownRisk
from runup.evaluation.evaluate import EvaluatedCluster
from runup.evaluation.results import ClusterResult
from runup.evaluation.suppressions import Suppression
from runup.fleet.decide.matrix import matrix
from runup.preflight.decide.findings import worst_code
from runup.report.report import FORMAT, Report, ReportedRisk

NOW = datetime(2026, 11, 29, 12, tzinfo=UTC)
# openshift/cluster-version-operator, pkg/risk: while one of them applies, no update to another minor version starts.
REFUSING = ("AdminAck-ack-5.0-a-in-5.1", "ClusterOperatorUpgradeable-storage", "ClusterVersionUpgradeable")
OTHERS = ("NodeCordoned", "SlowDisks", "CertificateExpires", "PodsNotPlaceable")
CLUSTERS = ("east", "west")


class Situation(NamedTuple):
    """A cluster, what its checks found, and what is accepted of it, and how."""

    risks: tuple[ReportedRisk, ...]
    minor: bool
    upgradeable: bool
    failing: bool
    suppressed: str
    known: tuple[str, ...]


class View(NamedTuple):
    """One cluster as a view shows it; None for a part that the view omits."""

    states: Mapping[str, str] | None = None
    severities: Mapping[str, str] | None = None
    refused: frozenset[str] | None = None
    code: int | None = None


RISKS = st.lists(
    st.builds(
        ReportedRisk,
        name=st.sampled_from(REFUSING + OTHERS),
        message=st.just("It is so."),
        applies=st.sampled_from(["True", "True", "Unknown"]),
        severity=st.sampled_from(["critical", "warning", "info"]),
        remediation=st.just("Mend it."),
        cause=st.sampled_from(["", "", "SlowDisks", "AdminAck-ack-5.0-a-in-5.1"]),
        lacking=st.sampled_from([(), (), ("nodes",)]),
    ),
    unique_by=lambda risk: risk.name,
    max_size=5,
).map(tuple)
SITUATIONS = st.builds(
    Situation,
    risks=RISKS,
    minor=st.booleans(),
    upgradeable=st.booleans(),
    failing=st.booleans(),
    suppressed=st.sampled_from(["", "", "*", "Node*", "ClusterOperator*"]),
    known=st.lists(st.sampled_from(REFUSING + OTHERS), max_size=3, unique=True).map(tuple),
)


def results_of(situations: tuple[Situation, ...], fail_on: str) -> list[ClusterResult]:
    """The situations, by the functions that the commands call."""
    evaluated, rules, known = [], [], []
    for name, situation in zip(CLUSTERS, situations, strict=False):
        conditions = (
            Condition(type="Upgradeable", status="True" if situation.upgradeable else "False", reason="R", message="m"),
            Condition(type="Failing", status="True" if situation.failing else "False", reason="R", message="It fails."),
        )
        report = Report(
            format=FORMAT,
            source_version="5.0.0",
            target_version="5.1.0" if situation.minor else "5.0.1",
            execution_status="completed",
            observed_time=NOW,
            risks=situation.risks,
        )
        cluster = cluster_version(conditions=conditions)
        evaluated.append(EvaluatedCluster(where=name, report=report, cluster=cluster))
        rules += [Suppression(risk=situation.suppressed, reason="r", cluster=name)] if situation.suppressed else []
        in_baseline = {risk: KnownRisk(name=risk) for risk in situation.known}
        known.append(KnownCluster(name=name, risks=in_baseline))
    baseline = Baseline(name="base", clusters=tuple(known))
    return results.results_of(evaluated, rules, baseline, NOW, fail_on=fail_on)[0]


def truth(situation: Situation, fail_on: str) -> View:
    """What the rules come to, written a second time and only in terms of the situation."""
    states, severities = dict[str, str](), dict[str, str]()
    for risk in situation.risks:
        matched = {"*": True, "Node*": risk.name.startswith("Node"), "": False}
        suppressed = matched.get(situation.suppressed, risk.name.startswith("ClusterOperator"))
        refuses = situation.minor and risk.applies == "True" and risk.name in REFUSING
        accepted = not refuses and (suppressed or risk.name in situation.known)
        applies = "applies" if risk.applies == "True" else "unknown"
        states[risk.name] = "refuses" if refuses else "accepted" if accepted else applies
        severities[risk.name] = "critical" if refuses else risk.severity
    if situation.minor and not situation.upgradeable and "ClusterVersionUpgradeable" not in states:
        states["ClusterVersionUpgradeable"], severities["ClusterVersionUpgradeable"] = "refuses", "critical"
    refused = {name for name, state in states.items() if state == "refuses"}
    refused |= {"Failing=True"} if situation.failing else set()
    still_open = {name: state for name, state in states.items() if state in ("applies", "unknown", "refuses")}
    order = ("critical", "warning", "info")
    grave = [severities[name] for name, state in still_open.items() if state == "applies"]
    if fail_on == "never":
        code = 0
    elif refused:
        code = 2
    elif fail_on == "unknown":
        code = 2 if grave else 3 if still_open else 0
    else:
        code = 2 if any(order.index(severity) <= order.index(fail_on) for severity in grave) else 0
    return View(states, severities, frozenset(refused), code)


# Each view of one cluster.


def _of_data(data: Mapping[str, Any]) -> View:
    risks = data["risks"]
    lifted = {risk["name"]: risk["acceptable"] for risk in risks}
    assert {name for name, acceptable in lifted.items() if not acceptable} == {
        risk["name"] for risk in risks if risk["state"] == "refuses"
    }
    refused = frozenset(f"{name}=True" if name == "Failing" else name for name in data["refusedWhile"])
    states, severities = ({risk["name"]: risk[key] for risk in risks} for key in ("state", "severity"))
    return View(states, severities, refused, data["exitCode"])


def _json(result: ClusterResult) -> View:
    return _of_data(json.loads(output_formats.as_json(Shown(results=[result]))))


def _yaml(result: ClusterResult) -> View:
    return _of_data(kyaml.load(output_formats.as_yaml(Shown(results=[result])), name="y"))


def _split(found: Mapping[str, str], severities: Mapping[str, str] | None = None) -> View:
    """What a view that lists guards among the risks says."""
    refused = frozenset(name for name, state in found.items() if state == "refuses")
    states = {name: state for name, state in found.items() if name != "Failing=True"}
    kept = severities and {name: severity for name, severity in severities.items() if name in states}
    return View(states, kept, refused)


def _junit(result: ClusterResult) -> View:
    suite = ElementTree.fromstring("".join(output_formats.junit([result])))[0]
    found = {}
    for case in suite:
        for element in case:
            state = element.get("type", "")
            found[case.get("name", "")] = state
            kinds = {"applies": "failure", "refuses": "failure", "unknown": "error", "accepted": "skipped"}
            assert kinds[state] == element.tag
    return _split(found)


def _sarif(result: ClusterResult) -> View:
    (run,) = json.loads("".join(output_formats.as_sarif(Shown(results=[result]))))["runs"]
    found = {each["ruleId"]: each["properties"]["state"] for each in run["results"]}
    assert {each["ruleId"] for each in run["results"] if "suppressions" in each} == {
        name for name, state in found.items() if state == "accepted"
    }
    names = {"error": "critical", "warning": "warning", "note": "info"}
    levels = {rule["id"]: names[rule["defaultConfiguration"]["level"]] for rule in run["tool"]["driver"]["rules"]}
    return _split(found, levels)


_ITEM = re.compile(r"^ *- \[([ x])\] \*\*(\S+)\*\* \((\w+), (\w+)\)", re.MULTILINE)


def _markdown(result: ClusterResult) -> View:
    text = output_formats.markdown([result])
    items = _ITEM.findall(text)
    assert all((box == "x") is (state == "accepted") for box, *_, state in items)
    found = {name: state for _, name, _, state in items}
    lacking = re.search(r"^Unknown: (.*)\.$", text, re.MULTILINE)
    unread = lacking[1].split(", ") if lacking else []
    # What is unknown for lack of objects is named without a severity.
    shown = {name: severity for _, name, severity, _ in items}
    shown |= {risk.name: risk.severity for risk in result.findings.risks if risk.name in unread}
    return _split(found | dict.fromkeys(unread, "unknown"), shown)


_ROW = re.compile(r"^(critical|warning|info) +(refuses|applies|unknown|accepted) +(\S+) ", re.MULTILINE)


def _text(result: ClusterResult) -> View:
    rows = _ROW.findall(output_formats.text(result, whole=True))
    text, *command = verdict_parts(result.findings)
    states = {name: state for _, state, name in rows}
    refuses = {name for name, state in states.items() if state == "refuses"}
    report = cause_texts.report_causes(result.findings)
    numbered = re.search(r"while causes? ([\d, and]+)(?: to (\d+))? appl", text)
    numbers = [int(number) for number in re.findall(r"\d+", numbered[0])] if numbered else []
    numbers = list(range(numbers[0], numbers[-1] + 1)) if numbered and numbered[2] else numbers
    assert all(name in text or report.number(name) in numbers for name in refuses), text
    assert ("accepted or not" in text) is bool(refuses)
    assert not refuses & {name for line in command for name in line.rpartition(" ")[2].split(",")}
    assert ("nothing blocks" in text) is not bool(
        refuses or "Failing=True" in text or {"applies", "unknown"} & set(states.values())
    )
    refused = refuses | ({"Failing=True"} if "Failing=True" in text else set())
    return View(states, {name: severity for severity, _, name in rows}, frozenset(refused))


def _html(result: ClusterResult) -> View:
    text = page(result.findings, NOW, explain=lambda _: "")
    row = re.search(r"<dt>Refused while</dt><dd>(.*?)</dd>", text)
    severities = {risk.name for risk in result.findings.risks if risk.applies != "False"}
    assert all(name in text for name in severities)
    assert text.count("Accepting it does not lift it.") == sum(not risk.acceptable for risk in result.findings.risks)
    assert result.findings.result.title in text
    return View(refused=frozenset(row[1].split(", ") if row else ()))


def _parquet(result: ClusterResult) -> View:
    rows = [row for row in risk_rows.rows([result]) if row["risk"]]
    return View({row["risk"]: row["state"] for row in rows}, {row["risk"]: row["severity"] for row in rows})


def _csv(result: ClusterResult) -> View:
    text = io.StringIO("".join(risk_rows.as_csv(Shown(results=[result]))), newline="")
    rows = [row for row in csv.DictReader(text) if row["risk"]]
    return View({row["risk"]: row["state"] for row in rows}, {row["risk"]: row["severity"] for row in rows})


_COMMAND = re.compile(r"^::(error|warning|notice) (?:file=\S+,line=\d+,)?title=\S+ (\S+)::.+$", re.MULTILINE)


def _annotates(result: ClusterResult, severities: Mapping[str, str]) -> None:
    """Open risks are annotated, and no other: `severities` by name."""
    all_risks = (*result.findings.guard_risks, *result.findings.risks)
    open_risks = {
        risk.name: risk.severity or "warning"
        for risk in all_risks
        if risk.state in ("applies", "refuses", "unknown") and risk.applies != "False"
    }
    assert severities == (open_risks if result.findings.completed else {"preflight": "critical"} | open_risks)


def _github(result: ClusterResult) -> View:
    text = "".join(ci_annotations.as_github(Shown(results=[result])))
    commands = _COMMAND.findall(text)
    assert len(commands) == len(text.splitlines())
    names = {"error": "critical", "warning": "warning", "notice": "info"}
    _annotates(result, {name: names[level] for level, name in commands})
    return View()


def _gitlab(result: ClusterResult) -> View:
    entries = json.loads("".join(ci_annotations.as_gitlab(Shown(results=[result]))))
    names = {"critical": "critical", "major": "warning", "info": "info"}
    _annotates(result, {entry["check_name"]: names[entry["severity"]] for entry in entries})
    return View()


VIEWS: dict[str, Callable[[ClusterResult], View]] = {
    "json": _json,
    "yaml": _yaml,
    "junit": _junit,
    "sarif": _sarif,
    "markdown": _markdown,
    "text": _text,
    "html": _html,
    "parquet": _parquet,
    "csv": _csv,
    "github": _github,
    "gitlab": _gitlab,
}


def _agrees(view: str, shown: View, expected: View) -> None:
    for field, said, right in zip(View._fields, shown, expected, strict=True):
        assert said is None or said == right, (view, field)


def _fleet_agrees(found: list[ClusterResult], expected: list[View]) -> None:
    """In a fleet each risk is named once for all clusters."""
    table = matrix([(result.name, result.findings) for result in found])
    code = worst_code(result.findings.exit_code for result in found)
    assert code == worst_code(shown.code or 0 for shown in expected)
    data = json.loads("".join(fleet_forms.as_json(Shown(results=found, matrix=table, code=code))))
    assert data["exitCode"] == code
    drawn = "".join(fleet_text.text(table, Screen(400), whole=True))
    text, html = fleet_forms.markdown(table), fleet_page.page(table, found, NOW)
    for index, (result, shown) in enumerate(zip(found, expected, strict=True)):
        assert shown.states is not None and shown.refused is not None
        states = shown.states | dict.fromkeys(shown.refused, "refuses")
        assert _of_data(data["clusters"][index]) == shown
        assert {row.name: row.mark(result.name) for row in table.rows if row.mark(result.name)} == states
        for row in data["risks"]:
            state = states.get(row["name"], "")
            assert (result.name in row["refuses"]) is (state == "refuses")
            assert (result.name in row["applies"]) is (state in ("applies", "refuses"))
            assert (result.name in row["unknown"]) is (state == "unknown")
            assert (result.name in row["accepted"]) is (state == "accepted")
            column = re.search(rf"^ *{re.escape(row['name'])} +(\w+) +(\S) *(\S)?", drawn, re.MULTILINE)
            assert column is not None
            marks = {"refuses": "R", "applies": "X", "unknown": "?", "accepted": "a", "": "."}
            assert column[2 + index] == marks[state]
            assert row["name"] in html or state == "accepted"
    for row in table.rows:
        refusing = [name for name, shown in zip(CLUSTERS, expected, strict=False) if row.name in (shown.refused or ())]
        assert (f"refuses the update of {len(refusing)} of" in text) or not refusing
        gravest = re.search(rf"\*\*{re.escape(row.name)}\*\* \((\w+)\)", text)
        assert not row.applies or (gravest is not None and gravest[1] == ("critical" if refusing else row.severity))


@pytest.mark.slow
@few_or_many(60, 3000)
def test_every_view_says_the_same(examples: int) -> None:
    """Also as the rules have it: severities, states, refusals and the exit code, of one cluster and of two."""

    @settings(max_examples=examples, database=None, phases=[Phase.explicit, Phase.generate])
    @given(
        st.tuples(SITUATIONS, SITUATIONS),
        st.sampled_from(["unknown", "unknown", "info", "warning", "critical", "never"]),
    )
    def agree(situations: tuple[Situation, ...], fail_on: str) -> None:
        found = results_of(situations, fail_on)
        expected = [truth(situation, fail_on) for situation in situations]
        for result, right in zip(found, expected, strict=True):
            assert result.findings.exit_code == right.code
            for view, render in VIEWS.items():
                _agrees(view, render(result), right)
        _fleet_agrees(found, expected)

    agree()


@pytest.mark.parametrize("fail_on", ["unknown", "critical"])
def test_a_refusal_is_in_every_view(fail_on: str) -> None:
    """By a risk and by a condition of ClusterVersion, although both are suppressed and known from a baseline."""
    risk = ReportedRisk(name=REFUSING[0], message="It is so.", severity="info")
    situation = Situation((risk,), minor=True, upgradeable=True, failing=True, suppressed="*", known=REFUSING)
    (result,) = results_of((situation,), fail_on)
    right = View({REFUSING[0]: "refuses"}, {REFUSING[0]: "critical"}, frozenset({REFUSING[0], "Failing=True"}), 2)
    assert truth(situation, fail_on) == right
    for view, render in VIEWS.items():
        _agrees(view, render(result), right)
