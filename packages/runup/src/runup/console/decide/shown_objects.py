"""Decides which objects are shown as evidence, and which of their values are hidden. Pure.

Secrets are never shown. In other objects, values are hidden where people keep secrets all the same: values of
environment variables, of ConfigMaps, files of MachineConfigs, keys of Routes, what virtual machines start with, and
users with passwords in addresses.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from kubekit.lang.yaml_dump import dump_document
from runup.console.decide.judgement import Evidence
from runup.preflight.decide.findings import Findings
from runup.report.report import ReportedResource

JSON = dict[str, Any]
HIDDEN = "(not shown)"
MOST_OBJECTS = 60
# Characters of an object's YAML, and of one text in it.
MOST_YAML = 16_000
_MOST_TEXT = 2_000
_DEEPEST = 60
_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
# Kinds that are secrets, whole: their names in any group.
_SECRET_KINDS = frozenset({"secret", "oauthaccesstoken", "oauthauthorizetoken", "useroauthaccesstoken", "sealedsecret"})
_MAPS_OF_VALUES = frozenset({"data", "binaryData", "stringData"})
# https://kubevirt.io/user-guide/user_workloads/startup_scripts/
_CLOUD_INIT = frozenset({"userData", "userDataBase64", "networkData", "networkDataBase64"})
# Fields by kind, wherever they are in it.
_HIDDEN_FIELDS: Mapping[str, frozenset[str]] = {
    # Ignition: https://coreos.github.io/ignition/configuration-v3_4/
    "MachineConfig": frozenset({"contents", "passwordHash", "sshAuthorizedKeys", "keyFile", "httpHeaders"}),
    "Route": frozenset({"key"}),
    "VirtualMachine": _CLOUD_INIT,
    "VirtualMachineInstance": _CLOUD_INIT,
}
# The user and password of an address (RFC 3986, 3.2.1).
_USER_OF_URL = re.compile(r"(?<=://)[^/@\s]+@")


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
    """Returns the object as YAML without what is hidden; a long one is cut, and says so."""
    shown_object = _without_hidden(obj, (), str(obj.get("kind", "")))
    text = dump_document(shown_object)
    if len(text) <= MOST_YAML:
        return text
    return f"{text[:MOST_YAML].rpartition(chr(10))[0]}\n# cut: {len(text) - MOST_YAML} characters more\n"


def _without_hidden(value: Any, path: tuple[str, ...], kind: str) -> Any:
    """Returns the value with `HIDDEN` for what may be secret, and for what is nested too deeply with it."""
    if len(path) > _DEEPEST:
        return HIDDEN
    if isinstance(value, str):
        text = _USER_OF_URL.sub(f"{HIDDEN}@", value)
        return text if len(text) <= _MOST_TEXT else f"{text[:_MOST_TEXT]}... ({len(value)} characters)"
    if isinstance(value, list | tuple):
        return [_without_hidden(item, path, kind) for item in value]
    if not isinstance(value, dict):
        return value
    shown = {}
    for key, item in value.items():
        # The values of environment variables, ConfigMaps and Secrets may be secrets.
        of_config_map = kind == "ConfigMap" and not path and key in _MAPS_OF_VALUES
        of_variable = path[-1:] == ("env",) and key == "value" and "name" in value
        if of_config_map or of_variable or key == "stringData" or key in _HIDDEN_FIELDS.get(kind, ()):
            shown[key] = dict.fromkeys(item, HIDDEN) if isinstance(item, dict) else HIDDEN
        elif key not in ("managedFields", _APPLIED):
            shown[key] = _without_hidden(item, (*path, key), kind)
    return shown
