"""Renders preflights as annotations of CI services. Pure.

GitHub Actions reads workflow commands from the log
(https://docs.github.com/en/actions/reference/workflow-commands-for-github-actions; the escapes are of its toolkit),
and shows ten errors and ten warnings of a step. GitLab reads a Code Quality report
(https://docs.gitlab.com/ci/testing/code_quality/#code-quality-report-format), in which each entry must have a file and
a line.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from typing import NamedTuple

from runup.cli.preflight.outputs import Shown
from runup.cli.preflight.render import finding_texts
from runup.cli.render.text import fill_last_list
from runup.evaluation.results import ClusterResult
from runup.preflight.decide.findings import Risk

_COMMANDS = {"critical": "error", "warning": "warning", "": "warning", "info": "notice"}
_QUALITY = {"critical": "critical", "warning": "major", "": "major", "info": "info"}


class _Annotation(NamedTuple):
    """The parts of an annotation for a risk: `file` and `line` are empty and 1 where the cluster has no files."""

    name: str
    severity: str
    message: str
    file: str
    line: int


def as_github(shown: Shown) -> Iterator[str]:
    """Yields a workflow command for each open risk, the most severe first."""
    # Of a large fleet the results are in a file: only their names are kept.
    annotations = [(result.name, each) for result in shown.results for each in _annotations(result)]
    order = list(_COMMANDS)
    for cluster, each in sorted(annotations, key=lambda pair: order.index(_known(pair[1].severity))):
        place = {"file": each.file, "line": str(each.line)} if each.file else {}
        properties = {**place, "title": f"{cluster}: {each.name}"}
        named = ",".join(f"{key}={_property(value)}" for key, value in properties.items())
        yield f"::{_COMMANDS[_known(each.severity)]} {named}::{_data(each.message)}\n"


def as_gitlab(shown: Shown) -> Iterator[str]:
    """Yields the Code Quality report. The file of a live cluster's risk is the cluster's name."""
    entries = (
        {
            "description": f"{result.name}: {each.message}",
            "check_name": each.name,
            "fingerprint": hashlib.sha256(f"{result.name}\n{each.name}\n{each.file}".encode()).hexdigest(),
            "severity": _QUALITY[_known(each.severity)],
            "location": {"path": each.file or result.name, "lines": {"begin": each.line}},
        }
        for result in shown.results
        for each in _annotations(result)
    )
    yield from fill_last_list("[]\n", (json.dumps(entry, indent=2) for entry in entries))


def _annotations(result: ClusterResult) -> Iterator[_Annotation]:
    """Yields the annotation of each open risk of a cluster, or that it could not be evaluated."""
    findings = result.findings
    if not findings.completed:
        yield _annotation(result, name="preflight", severity="critical", message=_failure(result))
    for risk in (*findings.guard_risks, *finding_texts.risks_shown(findings)):
        if risk.open:
            message = " ".join(filter(None, (risk.message, risk.fix and f"Fix: {risk.fix}")))
            yield _annotation(result, name=risk.name, severity=risk.severity, message=message, risk=risk)


def _annotation(
    result: ClusterResult, *, name: str, severity: str, message: str, risk: Risk | None = None
) -> _Annotation:
    objects = risk.resources if risk is not None else ()
    place = next(filter(None, (*map(result.place, objects), result.place())), None) if result.places else None
    file, line = (place.uri, place.line) if place is not None else ("", 1)
    return _Annotation(name=name, severity=severity, message=message, file=file, line=line)


def _failure(result: ClusterResult) -> str:
    return result.findings.failed.message if result.findings.failed else "no result"


def _known(severity: str) -> str:
    return severity if severity in _COMMANDS else ""


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
