"""Validation of ConfigMaps, Secrets, Events, Leases, ResourceQuotas, LimitRanges, and the kinds of storage.

Source: k8s.io/kubernetes/pkg/apis/core/validation and pkg/apis/storage/validation. What a real server appends to a
refused change of a volume's spec, the difference of Go's types, is left out (docs/reference/sandbox-differences.md).
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from kubekit.lang.quantity import QuantityError, parse_quantity
from kubesandbox.apiserver.metadata import meta
from kubesandbox.apiserver.schema import field_errors as field
from kubesandbox.apiserver.schema.typed import kind_of
from kubesandbox.apiserver.validation.common import NOT_NEGATIVE, Faults, changed_paths, value_at

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
            yield field.invalid(f"data[{key}]", key, "duplicate of key present in binaryData")
    yield from _key_faults("binaryData", *binary)
    size = sum(len(value.encode()) for value in data.values()) + sum(map(_decoded_bytes, binary.values()))
    if size > _MAX_SIZE_BYTES:
        yield field.FieldError(field.Fault.TOO_LONG, "", None, f"may not be more than {_MAX_SIZE_BYTES} bytes")


def secret_faults(obj: JSON, old: JSON | None) -> Faults:
    """Yields the faults of a Secret: keys, sizes, the keys that its type requires, and changes of an immutable one."""
    if old is not None:
        yield from changed_paths(obj, old, "type")
    yield from _immutable_faults(obj, old, "data")
    data = obj.get("data") or {}
    yield from _key_faults("data", *data)
    if sum(map(_decoded_bytes, data.values())) > _MAX_SIZE_BYTES:
        yield field.FieldError(field.Fault.TOO_LONG, "data", None, f"may not be more than {_MAX_SIZE_BYTES} bytes")
    kind, annotations = obj.get("type") or "", meta(obj).get("annotations") or {}
    for key in _REQUIRED_KEYS.get(kind, ()):
        if key not in data:
            yield field.required(f"data[{key}]")
        elif key.startswith(".docker") and (why := _json_fault(data[key])):
            yield field.invalid(f"data[{key}]", "<secret contents redacted>", why)
    if kind == "kubernetes.io/basic-auth" and not {"username", "password"} & {*data}:
        yield field.required("data[username]")
        yield field.required("data[password]")
    if kind == "kubernetes.io/service-account-token" and not annotations.get(_ACCOUNT_ANNOTATION):
        yield field.required(f"metadata.annotations[{_ACCOUNT_ANNOTATION}]")


def _json_fault(encoded: str | None) -> str:
    """Returns why a value is not a JSON object, as Go's decoder says it, or ""."""
    text = base64.b64decode(encoded or "").decode(errors="replace")
    try:
        value = json.loads(text)
    except RecursionError:
        return "exceeded max depth"
    except ValueError:
        stripped = text.lstrip()
        if not stripped:
            return "unexpected end of JSON input"
        return f"invalid character '{stripped[0]}' looking for beginning of value"
    why = f"json: cannot unmarshal {kind_of(value)} into Go value of type map[string]interface {{}}"
    return "" if isinstance(value, dict | None) else why


def _decoded_bytes(encoded: str | None) -> int:
    """Returns the number of bytes that a value in base64 represents."""
    # A null is no bytes.
    return len(encoded) * 3 // 4 - encoded[-2:].count("=") if encoded else 0


def _key_faults(fault_path: str, *keys: str) -> Faults:
    for key in keys:
        if not re.fullmatch(r"[-._a-zA-Z0-9]+", key):
            yield field.invalid(f"{fault_path}[{key}]", key, _KEY_RULE)


def _immutable_faults(obj: JSON, old: JSON | None, *names: str) -> Faults:
    """Yields a fault for each changed field of an object that is marked immutable."""
    if old is None or not old.get("immutable"):
        return
    why = "field is immutable when `immutable` is set"
    if not obj.get("immutable"):
        yield field.forbidden("immutable", why)
    for name in names:
        if obj.get(name) != old.get(name):
            yield field.forbidden(name, why)


# -- Events and Leases -------------------------------------------------------------------------------------------------


def event_faults(obj: JSON, _old: JSON | None) -> Faults:
    """Yields a fault if an Event's namespace is not that of its object."""
    namespace, about = meta(obj).get("namespace") or "", (obj.get("involvedObject") or {}).get("namespace") or ""
    if about != namespace and not (not about and namespace == "default"):
        yield field.invalid("involvedObject.namespace", about, "does not match event.namespace")


def lease_faults(obj: JSON, _old: JSON | None) -> Faults:
    """Yields the faults of a Lease: a positive duration, no negative transitions."""
    spec = obj.get("spec") or {}
    duration, transitions = spec.get("leaseDurationSeconds"), spec.get("leaseTransitions")
    if duration is not None and duration <= 0:
        yield field.invalid("spec.leaseDurationSeconds", duration, "must be greater than 0")
    if transitions is not None and transitions < 0:
        yield field.invalid("spec.leaseTransitions", transitions, NOT_NEGATIVE)
    if spec.get("preferredHolder") and not spec.get("strategy"):
        yield field.forbidden("spec.preferredHolder", "may only be specified if `strategy` is defined")


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
    """Yields the faults of a ResourceQuota: names, amounts, and scopes, which are immutable."""
    spec = obj.get("spec") or {}
    for name, amount in sorted((spec.get("hard") or {}).items()):
        path = f"spec.hard[{name}]"
        if name not in _COUNTED | _MEASURED and "/" not in name and not name.startswith(("hugepages-", "requests.")):
            yield field.invalid(path, name, "must be a standard resource type or fully qualified")
            yield field.invalid(path, name, "must be a standard resource for quota")
        value = _amount(amount)
        if value is not None and value < 0:
            yield field.invalid(path, str(amount), NOT_NEGATIVE)
        if value is not None and name in _COUNTED and value % 1:
            yield field.invalid(path, str(amount), "must be an integer")
    scopes = spec.get("scopes")
    for scope in scopes or ():
        if scope not in _SCOPES:
            yield field.invalid("spec.scopes", scopes, "unsupported scope")
        for _ in _beyond_scope(spec, scope):
            yield field.invalid("spec.scopes", scopes, "unsupported scope applied to resource")
    for _ in _opposites(scopes or ()):
        yield field.invalid("spec.scopes", scopes, "conflicting scopes")
    yield from _selected_scope_faults(spec)
    if old is not None and (scopes or []) != ((old.get("spec") or {}).get("scopes") or []):
        yield field.invalid("spec.scopes", scopes, "field is immutable")


def _selected_scope_faults(spec: JSON) -> Faults:
    """Yields the faults of a quota's selector of scopes."""
    selector, path = spec.get("scopeSelector") or {}, "spec.scopeSelector.matchExpressions"
    expressions = selector.get("matchExpressions") or ()
    for each in expressions:
        scope, operator, values = each.get("scopeName") or "", each.get("operator") or "", each.get("values")
        if scope not in _SCOPES:
            yield field.invalid(f"{path}.scopeName", scope, "unsupported scope")
        for _ in _beyond_scope(spec, scope):
            shown = [
                {"ScopeName": e.get("scopeName", ""), "Operator": e.get("operator", ""), "Values": e.get("values")}
                for e in expressions
            ]
            why = "unsupported scope applied to resource"
            yield field.invalid(path, field.Verbatim(field.go_json({"MatchExpressions": shown})), why)
        if scope in _WITHOUT_VALUES and operator != "Exists":
            yield field.invalid(f"{path}.operator", operator, _EXISTS_ALONE)
        if operator in ("In", "NotIn"):
            if not values:
                why = "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector"
                yield field.required(f"{path}.values", why)
        elif operator in ("Exists", "DoesNotExist"):
            if values:
                why = "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector"
                yield field.invalid(f"{path}.values", values, why)
        else:
            yield field.invalid(f"{path}.operator", operator, "not a valid selector operator")
    for _ in _opposites([each.get("scopeName") for each in expressions]):
        # A real server shows the other field's scopes here.
        yield field.invalid(path, field.Verbatim(field.go_json(spec.get("scopes"))), "conflicting scopes")


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
            yield field.invalid(f"{path}.type", kind, "must be a standard limit type or fully qualified")
        if kind in seen:
            yield field.duplicate(f"{path}.type", kind)
        seen.add(kind)
        if kind == "Pod":
            for name in ("default", "defaultRequest"):
                if limit.get(name):
                    yield field.forbidden(f"{path}.{name}", f"may not be specified when `type` is '{kind}'")
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
                    yield field.invalid(f"{path}.{named}[{resource}]", str(parts[shown][resource]), why)


# The members of a PersistentVolume's source, in the order in which a second one is refused.
_SOURCES = (
    *("hostPath", "gcePersistentDisk", "awsElasticBlockStore", "glusterfs", "nfs", "rbd", "quobyte", "cephfs", "iscsi"),
    *("cinder", "fc", "flocker", "azureFile", "vsphereVolume", "azureDisk", "photonPersistentDisk", "portworxVolume"),
    *("scaleIO", "local", "storageos", "csi", "flexVolume"),
)


def claim_faults(obj: JSON, old: JSON | None) -> Faults:
    """Yields the faults of a PersistentVolumeClaim: access modes, and a spec that changes once it is there."""
    spec = obj.get("spec") or {}
    yield from _access_mode_faults(spec)
    if old is None and not value_at(spec, "resources.requests.storage"):
        yield field.required("spec.resources[storage]")
    if old is not None and _fixed_claim_spec(spec, old) != _fixed_claim_spec(old.get("spec") or {}, old):
        rule = "spec is immutable after creation except resources.requests and volumeAttributesClassName"
        yield field.forbidden("spec", f"{rule} for bound claims")
    if old is not None:
        yield from _mode_faults(obj, old)


def _fixed_claim_spec(spec: JSON, old: JSON) -> JSON:
    """Returns what may not change: all but the volume and the class that come later, and a bound claim's size."""
    former = old.get("spec") or {}
    free = {name for name in ("volumeName", "storageClassName") if not former.get(name)}
    fixed = {key: value for key, value in spec.items() if key not in free}
    if value_at(old, "status.phase") == "Bound":
        fixed.pop("volumeAttributesClassName", None)
        fixed["resources"] = {key: each for key, each in (spec.get("resources") or {}).items() if key != "requests"}
    return fixed


def _access_mode_faults(spec: JSON) -> Faults:
    """Yields a fault without any access mode, and one for each unknown mode."""
    modes = spec.get("accessModes") or ()
    if not modes:
        yield field.required("spec.accessModes", "at least 1 access mode is required")
    for mode in modes:
        supported = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")
        yield from field.one_of("spec.accessModes", mode, supported)


def _mode_faults(obj: JSON, old: JSON) -> Faults:
    mode = value_at(obj, "spec.volumeMode")
    if mode != value_at(old, "spec.volumeMode"):
        # Kubernetes names the field so.
        yield field.invalid("volumeMode", mode, "field is immutable")


def volume_faults(obj: JSON, old: JSON | None) -> Faults:
    """Yields the faults of a PersistentVolume: access modes, exactly one source, which stays, and the policy."""
    spec = obj.get("spec") or {}
    yield from _access_mode_faults(spec)
    sources = [name for name in _SOURCES if spec.get(name) is not None]
    if not sources:
        yield field.required("spec", "must specify a volume type")
    for name in sources[1:]:
        yield field.forbidden(f"spec.{name}", "may not specify more than 1 volume type")
    nfs = spec.get("nfs")
    if nfs is not None and sources[0] == "nfs":
        for name in ("server", "path"):
            if not nfs.get(name):
                yield field.required(f"spec.nfs.{name}")
        if nfs.get("path") and not str(nfs["path"]).startswith("/"):
            yield field.invalid("spec.nfs.path", nfs["path"], "must be an absolute path")
    if policy := spec.get("persistentVolumeReclaimPolicy"):
        yield from field.one_of("spec.persistentVolumeReclaimPolicy", policy, ("Delete", "Recycle", "Retain"))
    if old is not None:
        former = old.get("spec") or {}
        if {name: spec.get(name) for name in _SOURCES} != {name: former.get(name) for name in _SOURCES}:
            yield field.forbidden(
                "spec.persistentvolumesource", "spec.persistentvolumesource is immutable after creation"
            )
        yield from _mode_faults(obj, old)


def class_faults(obj: JSON, old: JSON | None) -> Faults:
    """Yields the faults of a StorageClass: what may not change, and topologies without values."""
    if old is not None:
        for name in ("parameters", "provisioner", "reclaimPolicy"):
            if (obj.get(name) or None) != (old.get(name) or None):
                yield field.forbidden(name, f"updates to {name} are forbidden.")
        yield from changed_paths(obj, old, "volumeBindingMode")
    elif not obj.get("provisioner"):
        yield field.required("provisioner")
    for index, topology in enumerate(obj.get("allowedTopologies") or ()):
        for number, term in enumerate(topology.get("matchLabelExpressions") or ()):
            if not term.get("values"):
                yield field.required(f"allowedTopologies[{index}].matchLabelExpressions[{number}].values")


def driver_faults(obj: JSON, old: JSON | None) -> Faults:
    """Yields the faults of a CSIDriver: what may not change."""
    if old is None:
        return
    spec, former = obj.get("spec") or {}, old.get("spec") or {}
    # Kubernetes names the first of them so.
    for name, shown in (("attachRequired", "attachedRequired"), ("volumeLifecycleModes", "volumeLifecycleModes")):
        if spec.get(name) != former.get(name):
            yield field.invalid(f"spec.{shown}", spec.get(name), "field is immutable")
