"""A container's environment from literal values, ConfigMaps, Secrets and the downward API. Values in, values out.

The rules are the kubelet's: `$(NAME)` references, field paths, and missing sources that prevent a container's start.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

from kubekit.api.whole_v1 import WholePod
from kubesandbox.node.podspec import BadPod, ContainerSpec, bytes_of, service_account

JSON = dict[str, Any]
Lookup = Callable[[str, str], Mapping[str, bytes] | None]
"""Gives the data of a `("ConfigMap"|"Secret", name)`, None where there is none."""

_REFERENCE = re.compile(r"\$\$|\$\(([A-Za-z_][A-Za-z0-9_.-]*)\)")
_SUBSCRIPT = re.compile(r"(metadata\.labels|metadata\.annotations)\['(.*)'\]")


def container_environment(pod: WholePod, container: ContainerSpec, *, host_ip: str, lookup: Lookup) -> dict[str, str]:
    """Returns the container's environment. Raises BadPod if a source that is not optional is missing."""
    result: dict[str, str] = {}
    # envFrom comes first, so that the entries of env win.
    for source in container.env_from:
        result.update(_variables_from(source, lookup))
    for entry in container.env:
        value = _variable_value(pod, container, entry, host_ip=host_ip, lookup=lookup)
        if value is not None:
            # References are expanded only in literal values; values from other sources are used as they are.
            result[entry["name"]] = value if entry.get("valueFrom") else expand_variables(value, result)
    return result


def expand_variables(text: str, values: Mapping[str, str]) -> str:
    """Replaces `$(NAME)` by its value and `$$` by a dollar sign; an unknown name stays as it is written."""

    def replacement(match: re.Match[str]) -> str:
        return "$" if match[0] == "$$" else values.get(match[1], match[0])

    return _REFERENCE.sub(replacement, text)


def field_value(pod: WholePod, path: str, *, host_ip: str) -> str:
    """Returns the value of a downward API `fieldRef`. Raises BadPod for a path unknown to the kubelet."""
    metadata = pod.metadata
    values_by_path = {
        "metadata.name": metadata.name,
        "metadata.namespace": metadata.namespace,
        "metadata.uid": metadata.uid,
        "spec.nodeName": pod.spec.get("nodeName") or "",
        "spec.serviceAccountName": service_account(pod),
        "status.hostIP": host_ip,
        "status.hostIPs": host_ip,
        "status.podIP": host_ip,
        "status.podIPs": host_ip,
    }
    if path in values_by_path:
        return values_by_path[path]
    maps = {"metadata.labels": metadata.labels, "metadata.annotations": metadata.annotations}
    if path in maps:
        return "\n".join(f"{key}={_quote_go(value)}" for key, value in sorted(maps[path].items()))
    if match := _SUBSCRIPT.fullmatch(path):
        return maps[match[1]].get(match[2], "")
    raise BadPod(f"unsupported fieldPath: {path}")


def resource_value(container: ContainerSpec, reference: JSON) -> str:
    """Returns the value of a downward API `resourceFieldRef`: the memory limit by its divisor, 0 for others."""
    if reference.get("resource") != "limits.memory":
        return "0"
    divisor = bytes_of(str(reference.get("divisor") or 1)) or 1
    return str(-(-container.memory_bytes // divisor))


def environment_references(container: ContainerSpec) -> set[tuple[str, str]]:
    """Returns every (kind, name) of ConfigMap and Secret that the container's environment needs."""
    needed: set[tuple[str, str]] = set()
    for entry in container.env:
        needed |= named_references(
            entry.get("valueFrom") or {}, {"configMapKeyRef": "ConfigMap", "secretKeyRef": "Secret"}, "name"
        )
    for source in container.env_from:
        needed |= named_references(source, {"configMapRef": "ConfigMap", "secretRef": "Secret"}, "name")
    return needed


def named_references(source: JSON, kinds: Mapping[str, str], key: str) -> set[tuple[str, str]]:
    """Returns the (kind, name) pairs that `source` names in its fields `kinds`, each by its own field `key`."""
    return {(kind, source[field][key]) for field, kind in kinds.items() if (source.get(field) or {}).get(key)}


def _variables_from(source: JSON, lookup: Lookup) -> dict[str, str]:
    """Returns the variables of one envFrom source, with its prefix. Raises BadPod."""
    for field, kind in (("configMapRef", "ConfigMap"), ("secretRef", "Secret")):
        reference = source.get(field)
        if reference:
            data = _required_data(kind, reference, lookup)
            return {f"{source.get('prefix') or ''}{key}": _decode_value(value) for key, value in data.items()}
    return {}


def _variable_value(
    pod: WholePod, container: ContainerSpec, entry: JSON, *, host_ip: str, lookup: Lookup
) -> str | None:
    """Returns the value of a variable; None if its source is optional and missing. Raises BadPod."""
    source = entry.get("valueFrom")
    if not source:
        return str(entry.get("value") or "")
    if "fieldRef" in source:
        return field_value(pod, source["fieldRef"]["fieldPath"], host_ip=host_ip)
    if "resourceFieldRef" in source:
        return resource_value(container, source["resourceFieldRef"])
    for field, kind in (("configMapKeyRef", "ConfigMap"), ("secretKeyRef", "Secret")):
        reference = source.get(field)
        if reference:
            return _value_of_key(pod, kind, reference, lookup)
    raise BadPod(f"environment variable {entry['name']}: no source that this node agent knows")


def _value_of_key(pod: WholePod, kind: str, reference: JSON, lookup: Lookup) -> str | None:
    """Returns the value of a key; None if it is optional and missing. Raises BadPod."""
    value = _required_data(kind, reference, lookup).get(reference["key"])
    if value is not None:
        return _decode_value(value)
    if reference.get("optional"):
        return None
    raise BadPod(f"couldn't find key {reference['key']} in {kind} {pod.metadata.namespace}/{reference['name']}")


def _required_data(kind: str, reference: JSON, lookup: Lookup) -> Mapping[str, bytes]:
    data = lookup(kind, reference["name"])
    if data is None and not reference.get("optional"):
        raise BadPod(f'{kind.lower()} "{reference["name"]}" not found')
    return data or {}


def _decode_value(value: bytes) -> str:
    return value.decode(errors="replace")


def _quote_go(text: str) -> str:
    """Quotes text as Go's `%q` does, as far as JSON does the same."""
    return json.dumps(text, ensure_ascii=False)
