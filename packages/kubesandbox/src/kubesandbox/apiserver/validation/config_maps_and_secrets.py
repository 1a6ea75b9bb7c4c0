"""Validation of ConfigMaps and Secrets: keys, size, the keys that a Secret's type requires, immutability.

The rules and their words are those of ValidateConfigMap and ValidateSecret (pkg/apis/core/validation/validation.go).
"""

from __future__ import annotations

import base64
import json
import re
from typing import Any

from kubesandbox.apiserver.metadata import meta
from kubesandbox.apiserver.schema import Fault, FieldError
from kubesandbox.apiserver.validation.common import Faults, changed_paths

JSON = dict[str, Any]

_KEY = re.compile(r"[-._a-zA-Z0-9]+")
_KEY_RULE = (
    "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or "
    "'key-name', regex used for validation is '[-._a-zA-Z0-9]+')"
)
_MAX_SIZE_BYTES = 1024 * 1024
# The keys that a Secret must have, by its type.
_REQUIRED_KEYS = {
    "kubernetes.io/tls": ("tls.crt", "tls.key"),
    "kubernetes.io/ssh-auth": ("ssh-privatekey",),
    "kubernetes.io/dockercfg": (".dockercfg",),
    "kubernetes.io/dockerconfigjson": (".dockerconfigjson",),
}
_ACCOUNT_ANNOTATION = "kubernetes.io/service-account.name"


def config_map(obj: JSON, old: JSON | None) -> Faults:
    """Yields the faults of a ConfigMap: keys, sizes, and changes of an immutable one."""
    yield from _immutable_faults(obj, old, "data", "binaryData")
    data, binary = obj.get("data") or {}, obj.get("binaryData") or {}
    for key in data:
        yield from _key_faults(key, "data")
        if key in binary:
            yield FieldError(Fault.INVALID, f"data[{key}]", key, "duplicate of key present in binaryData")
    for key in binary:
        yield from _key_faults(key, "binaryData")
    size = sum(len(value.encode()) for value in data.values()) + sum(map(_decoded_bytes, binary.values()))
    if size > _MAX_SIZE_BYTES:
        yield FieldError(Fault.TOO_LONG, "", None, f"may not be more than {_MAX_SIZE_BYTES} bytes")


def secret_faults(obj: JSON, old: JSON | None) -> Faults:
    """Yields the faults of a Secret: keys, sizes, the keys that its type requires, and changes of an immutable one."""
    if old is not None:
        yield from changed_paths(obj, old, "type")
    yield from _immutable_faults(obj, old, "data")
    data = obj.get("data") or {}
    for key in data:
        yield from _key_faults(key, "data")
    if sum(map(_decoded_bytes, data.values())) > _MAX_SIZE_BYTES:
        yield FieldError(Fault.TOO_LONG, "data", None, f"may not be more than {_MAX_SIZE_BYTES} bytes")
    yield from _faults_of_type(obj.get("type") or "", data, meta(obj).get("annotations") or {})


def _faults_of_type(kind: str, data: JSON, annotations: JSON) -> Faults:
    """Yields the faults of a Secret by its type: keys that are missing, and data that is not JSON."""
    for key in _REQUIRED_KEYS.get(kind, ()):
        if key not in data:
            yield FieldError(Fault.REQUIRED, f"data[{key}]")
        elif key.startswith(".docker") and (why := _json_fault(data[key])):
            yield FieldError(Fault.INVALID, f"data[{key}]", "<secret contents redacted>", why)
    if kind == "kubernetes.io/basic-auth" and not {"username", "password"} & {*data}:
        yield FieldError(Fault.REQUIRED, "data[username]")
        yield FieldError(Fault.REQUIRED, "data[password]")
    if kind == "kubernetes.io/service-account-token" and not annotations.get(_ACCOUNT_ANNOTATION):
        yield FieldError(Fault.REQUIRED, f"metadata.annotations[{_ACCOUNT_ANNOTATION}]")


def _json_fault(encoded: str) -> str:
    """Returns why a value is not a JSON object, as Go's decoder says it, or ""."""
    text = base64.b64decode(encoded).decode(errors="replace")
    try:
        value = json.loads(text)
    except RecursionError:
        return "exceeded max depth"
    except ValueError:
        stripped = text.lstrip()
        if not stripped:
            return "unexpected end of JSON input"
        return f"invalid character '{stripped[0]}' looking for beginning of value"
    return "" if isinstance(value, dict) else "json: cannot unmarshal into Go value of type map[string]interface {}"


def _decoded_bytes(encoded: str) -> int:
    """Returns the number of bytes that a value in base64 stands for."""
    return len(encoded) * 3 // 4 - encoded[-2:].count("=")


def _key_faults(key: str, fault_path: str) -> Faults:
    if not _KEY.fullmatch(key):
        yield FieldError(Fault.INVALID, f"{fault_path}[{key}]", key, _KEY_RULE)


def _immutable_faults(obj: JSON, old: JSON | None, *names: str) -> Faults:
    """Yields a fault for each changed field of an object that is marked immutable."""
    if old is None or not old.get("immutable"):
        return
    why = "field is immutable when `immutable` is set"
    if not obj.get("immutable"):
        yield FieldError(Fault.FORBIDDEN, "immutable", None, why)
    for name in names:
        if obj.get(name) != old.get(name):
            yield FieldError(Fault.FORBIDDEN, name, None, why)
