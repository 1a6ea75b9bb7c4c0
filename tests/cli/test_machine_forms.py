"""`-o json|yaml` of the commands about updates keeps to the schema that is documented."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
import yaml
from msgspec.structs import replace
from tests.cli.commands import Run, Server

from runup.preflight.decide import stored_reports
from runup.preflight.decide.stored_reports import History
from runup.report.report import FORMAT, Report, ReportedCheck, ReportedRisk

SPEC = Path(__file__).parents[2] / "docs" / "reference" / "spec"
SCHEMA = json.loads((SPEC / "upgrade-output.schema.json").read_text())
SINCE = "2026-01-14T09:30:00Z"
RISK = {"name": "RiskA", "message": "m", "url": "https://example.com/a", "matchingRules": [{"type": "Always"}]}
APPLIES = {"type": "Applies", "status": "True", "reason": "PreflightValidation", "message": "m"}
CARRIED = {**RISK, "conditions": [{**APPLIES, "lastTransitionTime": SINCE}]}
OFFER = {"release": {"version": "5.1.0", "image": "quay.io/ocp@sha256:" + "a" * 64}, "risks": [CARRIED]}
STATUS = {
    "desired": {"version": "5.0.0", "image": "y", "channels": ["a", "b"]},
    "conditions": [
        {"type": "Progressing", "status": "False", "reason": "R", "message": "", "lastTransitionTime": SINCE}
    ],
    "availableUpdates": [{"version": "5.0.1", "image": "quay.io/ocp@sha256:" + "b" * 64}],
    "conditionalUpdates": [OFFER],
}
FORMS: dict[str, tuple[tuple[str, ...], str]] = {
    "the overview": ((), "overview"),
    "recommend": (("recommend",), "recommend"),
    "recommend of one": (("recommend", "--version=5.0.1", "--accept=FailedToCompletePrecheck,Failing"), "recommend"),
    "an update": (("--to=5.0.1",), "action"),
    "an update to what is there": (("--to=5.0.0",), "action"),
    "clear": (("--clear",), "action"),
    "clear a preflight": (("--clear-preflight",), "action"),
    "a channel": (("channel", "b"), "action"),
    "accept": (("accept", "RiskA"), "action"),
}


def _check(value: Any, form: str) -> None:
    jsonschema_rs.validator_for({**SCHEMA, "oneOf": [{"$ref": f"#/$defs/{form}"}]}).validate(value)


@pytest.mark.parametrize("name", FORMS)
def test_forms(name: str, run: Run, server: Server) -> None:
    """JSON and YAML say the same, by the schema."""
    words, form = FORMS[name]
    spec = {"channel": "a", "desiredUpdate": {"version": "5.1.0", "mode": "Preflight", "acceptRisks": [{"name": "B"}]}}
    read = []
    for kind, load in (("json", json.loads), ("yaml", yaml.safe_load)):
        server.set_cluster_version(spec=spec, status=STATUS)
        ran = run("upgrade", *words, "-o", kind, "--kubeconfig", server.kubeconfig)
        assert ran.code == 0, ran.err
        read.append(load(ran.out))
        _check(read[-1], form)
    assert read[0] == read[1]
    assert "patch" not in read[0] or read[0]["changed"] is (read[0]["patch"] is not None)


def test_what_recommend_tells_programs_of_each_update(run: Run, tmp_path: Path) -> None:
    """Shows the objections and the accepted risks, of one update if it is named."""
    said = {"type": "Recommended", "status": "False", "reason": "Risky", "message": "Why.", "lastTransitionTime": SINCE}
    other = {**CARRIED, "name": "RiskB"}
    offer = {**OFFER, "risks": [CARRIED, other], "conditions": [said]}
    accepted = {"acceptRisks": [{"name": "RiskA"}, {"name": "RiskB"}]}
    document = {
        "kind": "ClusterVersion",
        "metadata": {"name": "version"},
        "spec": {"channel": "a", "desiredUpdate": accepted},
        "status": {**STATUS, "conditionalUpdates": [offer]},
    }
    ended = json.dumps({"name": "RiskB", "until": "2026-01-01T00:00:00Z"})
    metadata = {"name": "accepted-risks", "namespace": "openshift-cluster-version-operator"}
    record = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"RiskB": ended}}
    (tmp_path / "cv.json").write_text(json.dumps(document))
    (tmp_path / "cm.json").write_text(json.dumps(record))
    words = ("upgrade", "recommend", "--dump", tmp_path, "-o", "json")
    seen = json.loads(run(*words).out)
    assert [(each["version"], each["recommended"], each["reason"], each["message"]) for each in seen["updates"]] == [
        ("5.1.0", "False", "Risky", "Why."),
        ("5.0.1", "True", None, None),
    ]
    risks = seen["updates"][0]["risks"]
    assert [(risk["name"], risk["accepted"]) for risk in risks] == [("RiskA", True), ("RiskB", False)]
    assert (seen["issues"], seen["unacceptedIssues"], seen["error"], seen["precheckProblem"]) == (
        ["AlertNotCollected", "Failing"],
        ["AlertNotCollected", "Failing"],
        None,
        None,
    )
    (check,) = seen["prechecks"]
    assert (check["acceptName"], check["accepted"], check["status"]) == ("AlertNotCollected", False, "Unknown")
    ran = run(*words, "--version=5.1.0", "--accept=AlertNotCollected,Failing")
    seen = json.loads(ran.out)
    assert [each["version"] for each in seen["updates"]] == ["5.1.0"]
    assert seen["unacceptedIssues"] == ["ConditionalUpdateRisk"]
    assert seen["prechecks"][0]["accepted"] is True
    assert ran.err == f"error: {seen['error']}\n"


def test_alerts_that_cannot_be_read_are_told_to_programs(run: Run, tmp_path: Path) -> None:
    """Shows the reason why there are no prechecks."""
    document = {"kind": "ClusterVersion", "metadata": {"name": "version"}, "status": STATUS}
    (tmp_path / "cv.json").write_text(json.dumps(document))
    (tmp_path / "alerts.json").write_text("{")
    seen = json.loads(run("upgrade", "recommend", "--dump", tmp_path, "-o", "json").out)
    assert seen["precheckProblem"] == "parsing alerts: unexpected end of JSON input"
    assert (seen["prechecks"], seen["issues"]) == ([], ["FailedToCompletePrecheck", "Failing"])


def test_a_channel_of_a_dump(run: Run, tmp_path: Path) -> None:
    """The one form that is for reading alone."""
    document = {"kind": "ClusterVersion", "metadata": {"name": "version"}, "spec": {"channel": "a"}, "status": STATUS}
    (tmp_path / "cv.json").write_text(json.dumps(document))
    read = json.loads(run("upgrade", "channel", "--dump", tmp_path, "-o", "json").out)
    assert read == {"channel": "a", "channels": ["a", "b"], "version": "5.0.0"}
    _check(read, "channel")
    _check(json.loads(run("upgrade", "--dump", tmp_path, "-o", "json").out), "overview")


def test_preflights_are_told_with_source_time_and_completeness(run: Run, server: Server) -> None:
    """In `recommend`, below oc's text."""
    spec = {"desiredUpdate": {"version": "5.1.0", "mode": "Preflight"}}
    conditions = [
        {"type": "PreflightCompleted", "status": "True", "reason": "RisksFound", "message": "7 checks done"},
        {"type": "PreflightRunning", "status": "True", "reason": "R", "message": "7 of 7"},
    ]
    seen = [{**each, "lastTransitionTime": SINCE} for each in conditions]
    server.set_cluster_version(spec=spec, status={**STATUS, "conditions": seen})
    ran = run("upgrade", "recommend", "--kubeconfig", server.kubeconfig, "--version=5.1.0")
    assert ran.out.endswith(
        "\nPreflights:\n\n"
        "  TARGET   SOURCE   OBSERVED   STATE   RISKS\n"
        "  5.1.0    5.0.0    not yet    live    RiskA\n"
        "\n  RiskA: m\n"
    )


def test_what_an_ended_preflight_found_is_dated(run: Run, tmp_path: Path) -> None:
    """Shows its time and counts, and that it is no longer renewed; another source's is not shown."""
    outdated = {**APPLIES, "status": "Unknown", "reason": "PreflightOutdated", "lastTransitionTime": SINCE}
    offer = {**OFFER, "risks": [{**RISK, "conditions": [outdated]}], "riskNames": ["RiskA"]}
    document = {
        "apiVersion": "config.openshift.io/v1",
        "kind": "ClusterVersion",
        "metadata": {"name": "version"},
        "spec": {},
        "status": {**STATUS, "conditionalUpdates": [offer]},
    }
    seen = ReportedCheck(name="Nodes", result="Applies"), ReportedCheck(name="Pods", result="Unknown")
    report = Report(
        format=FORMAT,
        preflight_id="p1",
        source_version="5.0.0",
        target_version="5.1.0",
        target_image=OFFER["release"]["image"],
        execution_status="completed",
        observed_time=datetime(2026, 1, 14, 9, 30, tzinfo=UTC),
        checks=seen,
        risks=(ReportedRisk(name="RiskA", message="m"),),
    )
    earlier = replace(report, preflight_id="p0", source_version="4.9.0", target_version="5.0.0")
    stored = stored_reports.config_map(History(reports=(report, earlier)), "openshift-cluster-version-operator")
    (tmp_path / "cv.json").write_text(json.dumps(document))
    (tmp_path / "cm.json").write_text(json.dumps({"apiVersion": "v1", "kind": "ConfigMap", **stored}))
    ran = run("upgrade", "recommend", "--dump", tmp_path)
    assert ran.out.partition("\nPreflights:\n\n")[2] == (
        "  TARGET   SOURCE   OBSERVED               STATE                                 RISKS\n"
        "  5.1.0    5.0.0    2026-01-14T09:30:00Z   ended (1 of 2 checks with a result)   RiskA\n"
        "\nFindings of an ended preflight may have changed since, and hold no update up.\n"
    )
    shown = run("upgrade", "--dump", tmp_path).out.partition("\nEnded preflights; ")[2].splitlines()
    rows = [line.split() for line in shown]
    assert ["TARGET", "FOUND", "THEN", "AGE", "OBSERVED"] in rows
    assert ["5.1.0", "RiskA", "0", "s", "ago", SINCE] in rows
    ended = json.loads(run("upgrade", "--dump", tmp_path, "-o", "json").out)["endedPreflights"]
    assert [one["target"] for one in ended] == ["5.1.0"]
    (found,) = json.loads(run("upgrade", "recommend", "--dump", tmp_path, "-o", "json").out)["preflights"]
    assert (found["target"], found["ended"], found["state"]) == ("5.1.0", True, "ended")


def test_a_preflight_that_nobody_can_read_is_an_error(run: Run, tmp_path: Path) -> None:
    """A requested update that the API lacks gets no invented details."""
    spec = {"desiredUpdate": {"mode": "Preflight", "version": 7}}
    document = {"kind": "ClusterVersion", "metadata": {"name": "version"}, "spec": spec, "status": STATUS}
    (tmp_path / "cv.json").write_text(json.dumps(document))
    for words, said in (
        ((), "the ClusterVersion could not be read: "),
        (("recommend",), "what preflights found cannot be read: "),
    ):
        ran = run("upgrade", *words, "--dump", tmp_path)
        assert (ran.code, ran.err.splitlines()[-1].startswith(f"error: {said}")) == (1, True)


def test_a_flag_without_a_target_shows(run: Run, server: Server) -> None:
    """As oc does: there is nothing to allow."""
    server.set_cluster_version(spec={"channel": "a"}, status=STATUS)
    words = ("upgrade", "--kubeconfig", server.kubeconfig)
    assert run(*words, "--allow-not-recommended").out == run(*words).out != ""
