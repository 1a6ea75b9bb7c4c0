"""The rules of every object's metadata, and of names, which differ from kind to kind."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from kubesandbox.apiserver.kinds import Kind
from kubesandbox.apiserver.metadata import meta
from kubesandbox.apiserver.schema import Fault, FieldError, object_meta
from kubesandbox.apiserver.schema.names import dns1035_label, dns1123_label, dns1123_subdomain

JSON = dict[str, Any]

_RBAC = "rbac.authorization.k8s.io"
# Groups whose names only must fit into a URL: RBAC's, and those that OpenShift serves by an API server of its own (a
# dump's objects of these have names such as `sha256:...`).
_PATH_SEGMENTS = frozenset(
    {_RBAC, *(f"{name}.openshift.io" for name in ("image", "oauth", "quota", "security", "template", "user"))}
)
_EXTENSIONS = frozenset({"apiextensions.k8s.io", "apiregistration.k8s.io"})
# Kinds whose finalizers are checked at updates too, since their validation is that of a new object.
_CHECKED_AGAIN = frozenset({"ConfigMap", "Secret", "Role", "ClusterRole", "RoleBinding", "ClusterRoleBinding"})


def faults(kind: Kind, obj: JSON, old: JSON | None) -> list[FieldError]:
    """What is wrong with the metadata of `obj`."""
    return _new(kind, meta(obj)) if old is None else _changed(kind, meta(obj), meta(old))


def _new(kind: Kind, metadata: JSON) -> list[FieldError]:
    finalizers = metadata.get("finalizers") or ()
    found = [*_name(kind, metadata), *object_meta.parts(metadata), *object_meta.finalizers(finalizers)]
    # Only the validation of k8s.io/kubernetes asks for a domain.
    return found if _served_by_others(kind) else [*found, *object_meta.unqualified(finalizers)]


def _served_by_others(kind: Kind) -> bool:
    return kind.custom or kind.group in _EXTENSIONS or kind.group.endswith(".openshift.io")


def _changed(kind: Kind, new: JSON, old: JSON) -> list[FieldError]:
    found: list[FieldError] = []
    if old.get("deletionTimestamp"):
        found += object_meta.no_new_finalizers(new.get("finalizers") or (), old.get("finalizers") or ())
    found += object_meta.parts(new)
    # A registry checks what all objects have in common, then its kind's rules check the same once more.
    found += found
    if not _served_by_others(kind):
        found += object_meta.unqualified(new.get("finalizers") or ())
    if not kind.custom and kind.kind in _CHECKED_AGAIN:
        found += _new(kind, new)
    return found


def _name(kind: Kind, metadata: JSON) -> Iterator[FieldError]:
    name = metadata.get("name")
    if not name:
        yield FieldError(Fault.REQUIRED, "metadata.name", None, "name or generateName is required")
    elif why := _rule(kind)(name):
        yield FieldError(Fault.INVALID, "metadata.name", name, why)


def _rule(kind: Kind) -> Callable[[str], str]:
    if kind.group in _PATH_SEGMENTS:
        return _path_segment
    if kind.group == "" and kind.kind == "Namespace":
        return _namespace
    if kind.group == "" and kind.kind == "Service":
        return dns1035_label
    return dns1123_subdomain


def _namespace(name: str) -> str:
    return "must not contain dots" if "." in name else dns1123_label(name)


def _path_segment(name: str) -> str:
    if name in {".", ".."}:
        return f"may not be '{name}'"
    return ", ".join(f"may not contain '{character}'" for character in "/%" if character in name)
