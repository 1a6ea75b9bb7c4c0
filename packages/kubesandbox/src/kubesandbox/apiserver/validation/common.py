"""Checks that several kinds share: of fields, of metadata, and of custom resources' replicas."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator
from typing import Any

from kubesandbox.apiserver.metadata import meta
from kubesandbox.apiserver.schema import object_meta
from kubesandbox.apiserver.schema.field_errors import FieldError, forbidden, go_plain, invalid, one_of, required
from kubesandbox.apiserver.served_kinds import Kind

JSON = dict[str, Any]
Faults = Iterator[FieldError]

NOT_NEGATIVE = "must be greater than or equal to 0"


def value_at(obj: JSON, path: str) -> Any:
    """Returns the value at a dotted path, or None."""
    value: Any = obj
    for part in path.split("."):
        value = value.get(part) if isinstance(value, dict) else None
    return value


def not_negative(obj: JSON, path: str, *names: str) -> Faults:
    """Yields a fault for each member that is a negative number."""
    for name in names:
        value = obj.get(name)
        if isinstance(value, int) and value < 0:
            yield invalid(f"{path}.{name}", value, NOT_NEGATIVE)


def changed_paths(obj: JSON, old: JSON, *paths: str) -> Faults:
    """Yields a fault for each path whose value changed."""
    for path in paths:
        if value_at(obj, path) != value_at(old, path):
            yield invalid(path, value_at(obj, path), "field is immutable")


def selector_faults(selector: JSON | None, path: str) -> Faults:
    """Yields the faults of a label selector (apimachinery's ValidateLabelSelector)."""
    yield from object_meta.label_faults((selector or {}).get("matchLabels") or {}, f"{path}.matchLabels")
    for index, each in enumerate((selector or {}).get("matchExpressions") or ()):
        at = f"{path}.matchExpressions[{index}]"
        key, operator, values = each.get("key") or "", each.get("operator") or "", each.get("values") or ()
        if operator in ("In", "NotIn"):
            if not values:
                yield required(f"{at}.values", "must be specified when `operator` is 'In' or 'NotIn'")
        elif operator in ("Exists", "DoesNotExist"):
            if values:
                yield forbidden(f"{at}.values", "may not be specified when `operator` is 'Exists' or 'DoesNotExist'")
        else:
            yield invalid(f"{at}.operator", operator, "not a valid selector operator")
        for why in object_meta.qualified_name(key):
            yield invalid(f"{at}.key", key, why)
        for number, value in enumerate(values):
            for why in object_meta.label_value(value):
                yield invalid(f"{at}.values[{number}]", value, why)


def protocol_faults(protocol: str, path: str) -> Faults:
    """Yields a fault unless the protocol of a container's or Service's port is known."""
    if not protocol:
        yield required(path)
    else:
        yield from one_of(path, protocol, ("SCTP", "TCP", "UDP"))


def port_number(value: Any, path: str) -> Faults:
    """Yields a fault unless the value is a port from 1 to 65535."""
    if not isinstance(value, int) or not 1 <= value <= 65535:
        yield invalid(path, value, "must be between 1 and 65535, inclusive")


def is_address(text: str) -> bool:
    """Returns whether the text is an IPv4 or IPv6 address."""
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


def port_name(name: str) -> list[str]:
    """Returns the faults of a port's name (apimachinery's IsValidPortName)."""
    faults = []
    if len(name) > 15:
        faults.append("must be no more than 15 characters")
    if not re.fullmatch(r"[a-z0-9-]+", name):
        faults.append("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)")
    if not re.search(r"[a-z]", name):
        faults.append("must contain at least one letter (a-z)")
    if "--" in name:
        faults.append("must not contain consecutive hyphens")
    if name.startswith("-") or name.endswith("-"):
        faults.append("must not begin or end with a hyphen")
    return faults


# -- Metadata ----------------------------------------------------------------------------------------------------------

# Groups whose names must only be valid path segments of a URL: RBAC, budgets, and what OpenShift's other server has (a
# dump has objects of these with names such as `sha256:...`).
_PATH_SEGMENTS = frozenset(
    {"policy", "rbac.authorization.k8s.io"}
    | {f"{name}.openshift.io" for name in ("image", "oauth", "quota", "security", "template", "user")}
)
# Kinds whose validation of updates includes that of a new object, finalizers among it.
_CHECKED_AGAIN = frozenset({"ConfigMap", "Secret", "Role", "ClusterRole", "RoleBinding", "ClusterRoleBinding"})


def metadata_faults(kind: Kind, obj: JSON, old: JSON | None) -> list[FieldError]:
    """Returns the faults of the metadata of `obj`."""
    metadata = meta(obj)
    finalizers = metadata.get("finalizers") or ()
    extensions = ("apiextensions.k8s.io", "apiregistration.k8s.io")
    # Only the validation of k8s.io/kubernetes requires a domain in a finalizer.
    needs_domain = not (kind.custom or kind.group in extensions or kind.group.endswith(".openshift.io"))
    field_errors: list[FieldError] = []
    if old is not None:
        if meta(old).get("deletionTimestamp"):
            field_errors += object_meta.no_new_finalizers(finalizers, meta(old).get("finalizers") or ())
        field_errors += object_meta.metadata_faults(metadata)
        # Reported twice, as the registry checks all objects' metadata and then its kind's rules check it again.
        field_errors += field_errors
        if needs_domain:
            field_errors += object_meta.unqualified_finalizers(finalizers)
        if kind.custom or kind.kind not in _CHECKED_AGAIN:
            return field_errors
    if not (name := metadata.get("name")):
        field_errors.append(required("metadata.name", "name or generateName is required"))
    elif why := _name_faults(kind, name):
        field_errors.append(invalid("metadata.name", name, why))
    field_errors += [*object_meta.metadata_faults(metadata), *object_meta.finalizer_faults(finalizers)]
    return [*field_errors, *object_meta.unqualified_finalizers(finalizers)] if needs_domain else field_errors


def _name_faults(kind: Kind, name: str) -> str:
    """Returns why a name is invalid by the rule of its kind, or ""."""
    if kind.group in _PATH_SEGMENTS:
        return ", ".join(object_meta.path_segment_faults(name))
    if kind.group == "" and kind.kind == "Namespace":
        return "must not contain dots" if "." in name else object_meta.dns1123_label_faults(name)
    is_service = kind.group == "" and kind.kind == "Service"
    return object_meta.dns1035_label_faults(name) if is_service else object_meta.dns1123_subdomain_faults(name)


# -- The scale subresource of custom resources -------------------------------------------------------------------------


# The types of decoded JSON in Go.
_GO_TYPES: dict[type, str] = {
    bool: "bool", int: "int64", float: "float64", str: "string", type(None): "<nil>",
    list: "[]interface {}", dict: "map[string]interface {}",
}  # fmt: skip


def _accessor_error(obj: JSON, path: str) -> str:
    """Returns why a number cannot be read at a dotted path (NestedInt64 of apimachinery), or ""."""
    value: Any = obj
    parts = path.lstrip(".").split(".")
    for index, part in enumerate(parts):
        if value is None:
            return ""
        if not isinstance(value, dict):
            at = ".".join(parts[: index + 1])
            shown = f"{go_plain(value)} is of the type {_GO_TYPES[type(value)]}"
            return f".{at} accessor error: {shown}, expected map[string]interface{{}}"
        if part not in value:
            return ""
        value = value[part]
    if isinstance(value, int) and not isinstance(value, bool):
        return ""
    return f"{path} accessor error: {go_plain(value)} is of the type {_GO_TYPES[type(value)]}, expected int64"


def scale_faults(kind: Kind, obj: JSON) -> Faults:
    """Yields the faults of the desired and observed replicas, which must be from 0 to 2^31 - 1."""
    for name in ("specReplicasPath", "statusReplicasPath"):
        path = (kind.scale_paths or {}).get(name) or ""
        if why := _accessor_error(obj, path) if path else "":
            yield invalid(path, 0, why)
            continue
        value = value_at(obj, path.lstrip(".")) if path else None
        if isinstance(value, int) and not isinstance(value, bool) and not 0 <= value < 2**31:
            why = "should be a non-negative integer" if value < 0 else f"should be less than or equal to {2**31 - 1}"
            yield invalid(path, value, why)
