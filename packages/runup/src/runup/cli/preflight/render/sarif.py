"""Renders preflights as SARIF 2.1.0, as code-scanning services take it. Pure.

Such services require a physical location for each result: the object's file in the dump, or the dump itself for a
result without objects. A live cluster has no files, and its results have logical locations alone
(https://docs.github.com/en/code-security/code-scanning/integrating-with-code-scanning/sarif-support-for-code-scanning).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from runup import __version__
from runup.cli.preflight.render import cause_texts, finding_texts
from runup.cli.render.text import fill_last_list
from runup.evaluation.results import ClusterResult
from runup.preflight.decide.findings import Risk
from runup.report import documentation

_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_LEVELS = {"critical": "error", "warning": "warning", "": "warning", "info": "note"}
_PRIORITIES = {"error": "error", "warning": "warning", "note": "recommendation"}
# A result shows ten of its locations at most; more would only make the file long.
_LOCATIONS = 10
_PRINT_LENGTH = 32


def sarif(results: Iterable[ClusterResult]) -> Iterator[str]:
    """Yields one run: a rule for each name of a risk, and a result for each risk of each cluster, by cause.

    `results` are iterated twice.
    """
    rules: dict[str, Risk] = {}
    invocations: list[dict[str, Any]] = []
    for cluster_result in results:
        findings = cluster_result.findings
        for risk in (*findings.guard_risks, *finding_texts.risks_shown(findings)):
            rules.setdefault(risk.name, risk)
        invocations.append({"executionSuccessful": findings.completed})
        if not findings.completed:
            problem = findings.failed.message if findings.failed else "no result"
            note = {"level": "error", "message": {"text": f"{cluster_result.name}: {problem}"}}
            invocations[-1]["toolExecutionNotifications"] = [note]
    descriptions = []
    for risk in rules.values():
        level = _LEVELS.get(risk.severity, "warning")
        linked = risk.url and not risk.url.startswith(documentation.BUILT_IN)
        description = {
            "id": risk.name,
            "shortDescription": {"text": risk.name},
            "fullDescription": {"text": risk.message},
            **({"helpUri": risk.url} if linked else {}),
            "help": {"text": risk.fix or risk.message},
            "defaultConfiguration": {"level": level},
            "properties": {"tags": ["cluster-update"], "problem.severity": _PRIORITIES[level]},
        }
        descriptions.append(description)
    driver = {"name": "runup", "version": __version__, "rules": descriptions}
    run = {
        "tool": {"driver": driver},
        # Uploads of the same category replace each other.
        "automationDetails": {"id": "runup-preflight/"},
        "columnKind": "utf16CodeUnits",
        "invocations": invocations,
        "results": [],
    }
    document = json.dumps({"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2) + "\n"
    rule_indexes = {name: index for index, name in enumerate(rules)}
    entries = (entry for cluster_result in results for entry in _results_of(cluster_result, rule_indexes))
    yield from fill_last_list(document, (json.dumps(entry, indent=2) for entry in entries))


def _results_of(cluster_result: ClusterResult, rule_indexes: Mapping[str, int]) -> Iterator[dict[str, Any]]:
    """Yields the SARIF result of each risk of a cluster."""
    findings = cluster_result.findings
    report = cause_texts.report_causes(findings)
    cause_of = cause_texts.cause_names(report)
    by_cause = (risk for cause in report.all_causes for risk in cause.risks)
    for risk in (*findings.guard_risks, *by_cause, *report.missing.risks):
        yield _result(cluster_result, risk, rule_indexes[risk.name], cause_of.get(risk.name, ""))


def _result(cluster_result: ClusterResult, risk: Risk, rule_index: int, cause: str) -> dict[str, Any]:
    """Returns the SARIF result of a risk; `rule_index` is its rule's index, `cause` the risk that it follows from."""
    applies = risk.applies == "True"
    # The same risk of the same cluster is the same result in every run, whatever its message counts.
    identity = hashlib.sha256(f"{cluster_result.name}\n{risk.name}".encode()).hexdigest()[:_PRINT_LENGTH]
    # SARIF's locations of the risk's objects: their names, and their files where known.
    named_locations = [
        (f"{cluster_result.name}: {item.text}", cluster_result.place(item)) for item in risk.resources[:_LOCATIONS]
    ]
    locations: list[dict[str, Any]] = []
    if cluster_result.places:
        places = named_locations or [(cluster_result.name, cluster_result.place())]
        for name, place in places:
            location: dict[str, Any] = {"logicalLocations": [{"fullyQualifiedName": name}]}
            if place is not None:
                file, region = {"uri": place.uri}, {"startLine": place.line}
                location["physicalLocation"] = {"artifactLocation": file, "region": region}
            locations.append(location)
    else:
        names = [{"fullyQualifiedName": name} for name, _ in named_locations]
        locations.append({"logicalLocations": names or [{"fullyQualifiedName": cluster_result.name}]})
    entry: dict[str, Any] = {
        "ruleId": risk.name,
        "ruleIndex": rule_index,
        # SARIF 2.1.0, 3.27.10: if `kind` is not `fail`, `level` must be `none`.
        "level": _LEVELS.get(risk.severity, "warning") if applies else "none",
        "kind": "fail" if applies else "review",
        "message": {"text": f"{cluster_result.name}: {' '.join(filter(None, (risk.message, risk.grown_text)))}"},
        "locations": locations,
        "partialFingerprints": {"primaryLocationLineHash": identity},
    }
    entry["properties"] = {
        "state": risk.state,
        "cluster": cluster_result.name,
        **({"clusterID": cluster_id} if (cluster_id := cluster_result.findings.cluster_id) else {}),
        **({"cause": cause} if cause and cause != risk.name else {}),
    }
    if risk.accepted:
        entry["suppressions"] = [{"kind": "external", "justification": risk.because or "accepted in the cluster"}]
    return entry
