"""Validation of every object's metadata, and of names, whose rules differ by kind."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from kubesandbox.apiserver.metadata import meta
from kubesandbox.apiserver.schema import Fault, FieldError, object_meta
from kubesandbox.apiserver.schema.name_rules import dns1035_label_faults, dns1123_label_faults, dns1123_subdomain_faults
from kubesandbox.apiserver.served_kinds import Kind

JSON = dict[str, Any]

_RBAC = "rbac.authorization.k8s.io"
# Groups whose names must only be valid path segments of a URL: RBAC, and those that OpenShift serves by an API server
# of its own (a dump has objects of these with names such as `sha256:...`).
_PATH_SEGMENTS = frozenset(
    {_RBAC, *(f"{name}.openshift.io" for name in ("image", "oauth", "quota", "security", "template", "user"))}
)
_EXTENSIONS = frozenset({"apiextensions.k8s.io", "apiregistration.k8s.io"})
# Kinds whose validation of updates includes that of a new object, finalizers among it.
_CHECKED_AGAIN = frozenset({"ConfigMap", "Secret", "Role", "ClusterRole", "RoleBinding", "ClusterRoleBinding"})


def metadata_faults(kind: Kind, obj: JSON, old: JSON | None) -> list[FieldError]:
    """Returns the faults of the metadata of `obj`."""
    return _create_faults(kind, meta(obj)) if old is None else _update_faults(kind, meta(obj), meta(old))


def _create_faults(kind: Kind, metadata: JSON) -> list[FieldError]:
    """Returns the faults of a new object's metadata."""
    finalizers = metadata.get("finalizers") or ()
    field_errors = [
        *_name_faults(kind, metadata),
        *object_meta.metadata_faults(metadata),
        *object_meta.finalizer_faults(finalizers),
    ]
    # Only the validation of k8s.io/kubernetes requires a domain.
    return field_errors if _served_by_others(kind) else [*field_errors, *object_meta.unqualified_finalizers(finalizers)]


def _served_by_others(kind: Kind) -> bool:
    return kind.custom or kind.group in _EXTENSIONS or kind.group.endswith(".openshift.io")


def _update_faults(kind: Kind, new: JSON, old: JSON) -> list[FieldError]:
    """Returns the faults of changed metadata: new finalizers during a deletion, and immutable fields."""
    field_errors: list[FieldError] = []
    if old.get("deletionTimestamp"):
        field_errors += object_meta.no_new_finalizers(new.get("finalizers") or (), old.get("finalizers") or ())
    field_errors += object_meta.metadata_faults(new)
    # Reported twice, as the registry checks all objects' metadata and then its kind's rules check it again.
    field_errors += field_errors
    if not _served_by_others(kind):
        field_errors += object_meta.unqualified_finalizers(new.get("finalizers") or ())
    if not kind.custom and kind.kind in _CHECKED_AGAIN:
        field_errors += _create_faults(kind, new)
    return field_errors


def _name_faults(kind: Kind, metadata: JSON) -> Iterator[FieldError]:
    """Yields the fault of a missing or malformed name."""
    name = metadata.get("name")
    if not name:
        yield FieldError(Fault.REQUIRED, "metadata.name", None, "name or generateName is required")
    elif why := _name_rule(kind)(name):
        yield FieldError(Fault.INVALID, "metadata.name", name, why)


def _name_rule(kind: Kind) -> Callable[[str], str]:
    """Returns the rule for names of a kind, which returns why a name is invalid, or ""."""
    if kind.group in _PATH_SEGMENTS:
        return _path_segment
    if kind.group == "" and kind.kind == "Namespace":
        return _why_no_namespace_name
    if kind.group == "" and kind.kind == "Service":
        return dns1035_label_faults
    return dns1123_subdomain_faults


def _why_no_namespace_name(name: str) -> str:
    return "must not contain dots" if "." in name else dns1123_label_faults(name)


def _path_segment(name: str) -> str:
    if name in {".", ".."}:
        return f"may not be '{name}'"
    return ", ".join(f"may not contain '{character}'" for character in "/%" if character in name)
