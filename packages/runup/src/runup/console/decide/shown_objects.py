"""Decides which objects, and which of their fields, are shown as evidence. Pure.

Secrets are never shown. Of other objects, only the fields that `rules/shown_fields.py` names are shown.
"""

from __future__ import annotations

from typing import Any

from kubekit.lang.yaml_dump import dump_document
from runup.console.decide.board import Evidence
from runup.preflight.decide.findings import Findings
from runup.report.report import ReportedResource
from runup.rules.shown_fields import HIDDEN, without_secrets

JSON = dict[str, Any]
MOST_OBJECTS = 60
# Characters of an object's YAML.
MOST_YAML = 16_000
# Kinds that are secrets, whole: their names in any group.
_SECRET_KINDS = frozenset({"secret", "oauthaccesstoken", "oauthauthorizetoken", "useroauthaccesstoken", "sealedsecret"})
_NOT_SHOWN = f"# {HIDDEN}: fields that are not known to hold no secrets\n"


def is_secret(item: ReportedResource) -> bool:
    """Reports whether an object is never read for the console."""
    return item.kind.lower() in _SECRET_KINDS


def objects_to_show(findings: Findings) -> tuple[ReportedResource, ...]:
    """Returns the objects to show: those of open risks first, each once, `MOST_OBJECTS` at most."""
    risks = sorted(findings.risks, key=lambda risk: not risk.open)
    items = {item.text: item for risk in risks for item in risk.resources if item.kind and item.name}
    return tuple(items.values())[:MOST_OBJECTS]


def evidence_of(item: ReportedResource, findings: Findings, obj: JSON | None, problem: str = "") -> Evidence:
    """Returns the evidence of an object that was read (`obj`), or why it was not."""
    risks = tuple(
        risk.name for risk in findings.risks if any(resource.text == item.text for resource in risk.resources)
    )
    if is_secret(item) or (obj is not None and str(obj.get("kind", "")).lower() in _SECRET_KINDS):
        return Evidence(item.text, risks, why="Secrets are never shown.")
    if obj is None:
        return Evidence(item.text, risks, why=problem or "The object is not there any more.")
    return Evidence(item.text, risks, yaml_of(obj))


def yaml_of(obj: JSON) -> str:
    """Returns the object as YAML with the fields that hold no secrets; a long one is cut, with a note."""
    text = dump_document(without_secrets(obj))
    left_out = _NOT_SHOWN if HIDDEN in text else ""
    if len(text) <= MOST_YAML:
        return text + left_out
    cut = text[:MOST_YAML].rpartition("\n")[0]
    return f"{cut}\n{left_out}# cut: {len(text) - MOST_YAML} characters more\n"
