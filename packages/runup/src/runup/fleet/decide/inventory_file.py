"""Reads an inventory: the decoded YAML of a file that names the clusters of a fleet. Pure.

    clusters:
    - name: harbour
      context: harbour                 # of the usual kubeconfig, or of `kubeconfig`
      labels: {env: production}
    - name: lighthouse
      kubeconfig: lighthouse.kubeconfig
    - name: island
      dump: dumps/island.tar.gz

Paths are relative to the file.
"""

from __future__ import annotations

import posixpath
from collections.abc import Mapping
from typing import Any

from runup.fleet.decide.members import BadFleet, Member, is_address, refuse_password

_FIELDS = ("name", "context", "kubeconfig", "dump", "labels")


def members_in(document: Any, file: str) -> tuple[Member, ...]:
    """Returns the clusters that the document of `file` names. Raises BadFleet with the entry and the field."""
    entries = document.get("clusters") if isinstance(document, dict) else None
    if not isinstance(entries, list):
        raise BadFleet(f"{file}: has no list `clusters`")
    return tuple(_parse_member(entry, file, f"{file}: clusters[{number}]") for number, entry in enumerate(entries))


def _parse_member(entry: Any, file: str, position: str) -> Member:
    if not isinstance(entry, dict):
        raise BadFleet(f"{position}: is not a map")
    if unknown := sorted(str(key) for key in entry if key not in _FIELDS):
        raise BadFleet(f"{position}: does not know {', '.join(unknown)}; it has {', '.join(_FIELDS)}")
    name, context, kubeconfig, dump = (_optional_text(entry, key, position) for key in _FIELDS[:4])
    if not name:
        raise BadFleet(f"{position}: name is missing")
    if dump and (context or kubeconfig):
        raise BadFleet(f"{position}: dump and {'context' if context else 'kubeconfig'} both say where {name} is read")
    if not (dump or context or kubeconfig):
        raise BadFleet(f"{position}: where {name} is read is missing; give context, kubeconfig or dump")
    refuse_password(dump, f"{position}: dump")
    return Member(
        name,
        dump if is_address(dump) else _relative_to_file(dump, file),
        _relative_to_file(kubeconfig, file),
        context,
        _parse_labels(entry.get("labels"), position),
    )


def _optional_text(entry: Mapping[str, Any], key: str, position: str) -> str:
    value = entry.get(key)
    if value is None:
        return ""
    if not isinstance(value, str) or not value.strip():
        raise BadFleet(f"{position}: {key} is not text")
    return value


def _parse_labels(value: Any, position: str) -> Mapping[str, str]:
    if value is None:
        return {}
    if not isinstance(value, dict) or not all(isinstance(label, str | int | bool) for label in value.values()):
        raise BadFleet(f"{position}: labels is not a map of names and values")
    return {str(key): str(each).lower() if isinstance(each, bool) else str(each) for key, each in value.items()}


def _relative_to_file(path: str, file: str) -> str:
    return posixpath.normpath(posixpath.join(posixpath.dirname(file), path)) if path else ""
