"""Validation of ConfigMaps, Secrets, Events, Leases, ResourceQuotas and LimitRanges (pkg/apis/core/validation)."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from kubekit.lang.quantity import QuantityError, parse_quantity
from kubesandbox.apiserver.metadata import meta
from kubesandbox.apiserver.schema.field_errors import (
    Fault,
    FieldError,
    Verbatim,
    duplicate,
    forbidden,
    go_json,
    invalid,
    required,
)
from kubesandbox.apiserver.validation.common import NOT_NEGATIVE, Faults, changed_paths

JSON = dict[str, Any]

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
        yield from _key_faults("data", key)
        if key in binary:
            yield invalid(f"data[{key}]", key, "duplicate of key present in binaryData")
    yield from _key_faults("binaryData", *binary)
    size = sum(len(value.encode()) for value in data.values()) + sum(map(_decoded_bytes, binary.values()))
    if size > _MAX_SIZE_BYTES:
        yield FieldError(Fault.TOO_LONG, "", None, f"may not be more than {_MAX_SIZE_BYTES} bytes")


def secret_faults(obj: JSON, old: JSON | None) -> Faults:
    """Yields the faults of a Secret: keys, sizes, the keys that its type requires, and changes of an immutable one."""
    if old is not None:
        yield from changed_paths(obj, old, "type")
    yield from _immutable_faults(obj, old, "data")
    data = obj.get("data") or {}
    yield from _key_faults("data", *data)
    if sum(map(_decoded_bytes, data.values())) > _MAX_SIZE_BYTES:
        yield FieldError(Fault.TOO_LONG, "data", None, f"may not be more than {_MAX_SIZE_BYTES} bytes")
    kind, annotations = obj.get("type") or "", meta(obj).get("annotations") or {}
    for key in _REQUIRED_KEYS.get(kind, ()):
        if key not in data:
            yield required(f"data[{key}]")
        elif key.startswith(".docker") and (why := _json_fault(data[key])):
            yield invalid(f"data[{key}]", "<secret contents redacted>", why)
    if kind == "kubernetes.io/basic-auth" and not {"username", "password"} & {*data}:
        yield required("data[username]")
        yield required("data[password]")
    if kind == "kubernetes.io/service-account-token" and not annotations.get(_ACCOUNT_ANNOTATION):
        yield required(f"metadata.annotations[{_ACCOUNT_ANNOTATION}]")


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


def _key_faults(fault_path: str, *keys: str) -> Faults:
    for key in keys:
        if not re.fullmatch(r"[-._a-zA-Z0-9]+", key):
            yield invalid(f"{fault_path}[{key}]", key, _KEY_RULE)


def _immutable_faults(obj: JSON, old: JSON | None, *names: str) -> Faults:
    """Yields a fault for each changed field of an object that is marked immutable."""
    if old is None or not old.get("immutable"):
        return
    why = "field is immutable when `immutable` is set"
    if not obj.get("immutable"):
        yield forbidden("immutable", why)
    for name in names:
        if obj.get(name) != old.get(name):
            yield forbidden(name, why)


# -- Events and Leases -------------------------------------------------------------------------------------------------


def event_faults(obj: JSON, _old: JSON | None) -> Faults:
    """Yields a fault if an Event's namespace is not that of its object."""
    namespace, about = meta(obj).get("namespace") or "", (obj.get("involvedObject") or {}).get("namespace") or ""
    if about != namespace and not (not about and namespace == "default"):
        yield invalid("involvedObject.namespace", about, "does not match event.namespace")


def lease_faults(obj: JSON, _old: JSON | None) -> Faults:
    """Yields the faults of a Lease: a positive duration, no negative transitions."""
    spec = obj.get("spec") or {}
    duration, transitions = spec.get("leaseDurationSeconds"), spec.get("leaseTransitions")
    if duration is not None and duration <= 0:
        yield invalid("spec.leaseDurationSeconds", duration, "must be greater than 0")
    if transitions is not None and transitions < 0:
        yield invalid("spec.leaseTransitions", transitions, NOT_NEGATIVE)
    if spec.get("preferredHolder") and not spec.get("strategy"):
        yield forbidden("spec.preferredHolder", "may only be specified if `strategy` is defined")


# -- ResourceQuotas and LimitRanges ------------------------------------------------------------------------------------

# k8s.io/kubernetes/pkg/apis/core/helper: what a quota may count besides `count/...` and names with a domain.
_COUNTED = frozenset(
    {"pods", "services", "replicationcontrollers", "resourcequotas", "secrets", "configmaps", "persistentvolumeclaims"}
    | {"services.nodeports", "services.loadbalancers"}
)
_MEASURED = frozenset(
    {"cpu", "memory", "ephemeral-storage", "requests.cpu", "requests.memory", "requests.storage"}
    | {"requests.ephemeral-storage", "limits.cpu", "limits.memory", "limits.ephemeral-storage"}
)
_OF_PODS = frozenset({"pods", "cpu", "memory", "requests.cpu", "requests.memory", "limits.cpu", "limits.memory"})
# What a quota of a scope may count, of the resources above; of others it may count any.
_SCOPES = {
    **dict.fromkeys(("Terminating", "NotTerminating", "NotBestEffort"), _OF_PODS),
    **dict.fromkeys(("PriorityClass", "CrossNamespacePodAffinity"), _OF_PODS),
    "BestEffort": frozenset({"pods"}),
    "VolumeAttributesClass": frozenset({"persistentvolumeclaims", "requests.storage"}),
}
_OPPOSITES = ({"BestEffort", "NotBestEffort"}, {"Terminating", "NotTerminating"})
_WITHOUT_VALUES = ("BestEffort", "NotBestEffort", "Terminating", "NotTerminating", "CrossNamespacePodAffinity")
_EXISTS_ALONE = (
    "must be 'Exists' when scope is any of ResourceQuotaScopeTerminating, ResourceQuotaScopeNotTerminating, "
    "ResourceQuotaScopeBestEffort, ResourceQuotaScopeNotBestEffort or ResourceQuotaScopeCrossNamespacePodAffinity"
)
_LIMIT_TYPES = frozenset({"Pod", "Container", "PersistentVolumeClaim"})


def quota_faults(obj: JSON, old: JSON | None) -> Faults:
    """Yields the faults of a ResourceQuota: names and amounts, and scopes, which stay."""
    spec = obj.get("spec") or {}
    for name, amount in sorted((spec.get("hard") or {}).items()):
        path = f"spec.hard[{name}]"
        if name not in _COUNTED | _MEASURED and "/" not in name and not name.startswith(("hugepages-", "requests.")):
            yield invalid(path, name, "must be a standard resource type or fully qualified")
            yield invalid(path, name, "must be a standard resource for quota")
        value = _amount(amount)
        if value is not None and value < 0:
            yield invalid(path, str(amount), NOT_NEGATIVE)
        if value is not None and name in _COUNTED and value % 1:
            yield invalid(path, str(amount), "must be an integer")
    scopes = spec.get("scopes")
    for scope in scopes or ():
        if scope not in _SCOPES:
            yield invalid("spec.scopes", scopes, "unsupported scope")
        for _ in _beyond_scope(spec, scope):
            yield invalid("spec.scopes", scopes, "unsupported scope applied to resource")
    for _ in _opposites(scopes or ()):
        yield invalid("spec.scopes", scopes, "conflicting scopes")
    yield from _selected_scope_faults(spec)
    if old is not None and (scopes or []) != ((old.get("spec") or {}).get("scopes") or []):
        yield invalid("spec.scopes", scopes, "field is immutable")


def _selected_scope_faults(spec: JSON) -> Faults:
    """Yields the faults of a quota's selector of scopes."""
    selector, path = spec.get("scopeSelector") or {}, "spec.scopeSelector.matchExpressions"
    expressions = selector.get("matchExpressions") or ()
    for each in expressions:
        scope, operator, values = each.get("scopeName") or "", each.get("operator") or "", each.get("values")
        if scope not in _SCOPES:
            yield invalid(f"{path}.scopeName", scope, "unsupported scope")
        for _ in _beyond_scope(spec, scope):
            shown = [
                {"ScopeName": e.get("scopeName", ""), "Operator": e.get("operator", ""), "Values": e.get("values")}
                for e in expressions
            ]
            why = "unsupported scope applied to resource"
            yield invalid(path, Verbatim(go_json({"MatchExpressions": shown})), why)
        if scope in _WITHOUT_VALUES and operator != "Exists":
            yield invalid(f"{path}.operator", operator, _EXISTS_ALONE)
        if operator in ("In", "NotIn"):
            if not values:
                why = "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector"
                yield required(f"{path}.values", why)
        elif operator in ("Exists", "DoesNotExist"):
            if values:
                why = "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector"
                yield invalid(f"{path}.values", values, why)
        else:
            yield invalid(f"{path}.operator", operator, "not a valid selector operator")
    for _ in _opposites([each.get("scopeName") for each in expressions]):
        # A real server shows the other field's scopes here.
        yield invalid(path, Verbatim(go_json(spec.get("scopes"))), "conflicting scopes")


def _beyond_scope(spec: JSON, scope: str) -> list[str]:
    """Returns the resources of a quota to which a scope cannot be applied; none for an unknown scope."""
    standard = (_COUNTED | _MEASURED) & set(spec.get("hard") or ())
    return sorted(standard - _SCOPES[scope]) if scope in _SCOPES else []


def _opposites(scopes: Sequence[str | None]) -> list[set[str]]:
    return [pair for pair in _OPPOSITES if pair <= set(scopes)]


def _amount(text: Any) -> Any:
    try:
        return parse_quantity(str(text))
    except QuantityError:
        return None


def limit_range(obj: JSON, _old: JSON | None) -> Faults:
    """Yields the faults of a LimitRange: types, each once, and amounts that fit each other."""
    seen: set[str] = set()
    for index, limit in enumerate((obj.get("spec") or {}).get("limits") or ()):
        path, kind = f"spec.limits[{index}]", str(limit.get("type") or "")
        if kind not in _LIMIT_TYPES and "/" not in kind:
            yield invalid(f"{path}.type", kind, "must be a standard limit type or fully qualified")
        if kind in seen:
            yield duplicate(f"{path}.type", kind)
        seen.add(kind)
        if kind == "Pod":
            for name in ("default", "defaultRequest"):
                if limit.get(name):
                    yield forbidden(f"{path}.{name}", f"may not be specified when `type` is '{kind}'")
        parts: dict[str, Mapping[str, Any]] = {
            name: limit.get(name) or {} for name in ("min", "max", "default", "defaultRequest")
        }
        words = {"min": "min", "max": "max", "default": "default", "defaultRequest": "default request"}
        # Which is named, with which value it is shown, and the pair that must be in order.
        rules = (
            ("min", "min", "min", "max"),
            ("defaultRequest", "defaultRequest", "min", "defaultRequest"),
            ("defaultRequest", "defaultRequest", "defaultRequest", "max"),
            ("defaultRequest", "defaultRequest", "defaultRequest", "default"),
            ("default", "min", "min", "default"),
            ("default", "max", "default", "max"),
        )
        for resource in sorted(set[str]().union(*parts.values())):
            for named, shown, lesser, greater in rules:
                low, high = parts[lesser].get(resource), parts[greater].get(resource)
                less, more = _amount(low), _amount(high)
                if less is not None and more is not None and less > more:
                    why = f"{words[lesser]} value {low} is greater than {words[greater]} value {high}"
                    yield invalid(f"{path}.{named}[{resource}]", str(parts[shown][resource]), why)
