"""Validation of names and metadata, for objects and embedded resources (k8s.io/apimachinery/pkg/api/validation)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from kubesandbox.apiserver.schema.field_errors import Fault, FieldError, Verbatim, forbidden, go_json, invalid

_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"


def _pattern_faults(value: str, limit: int, pattern: str, rule: str) -> str:
    faults = [f"must be no more than {limit} bytes"] if len(value) > limit else []
    if not re.fullmatch(pattern, value):
        faults.append(f"{rule}, regex used for validation is '{pattern}')")
    return ",".join(faults)


def path_segment_faults(value: str) -> list[str]:
    """Returns the faults of a name that is a part of a path (IsValidPathSegmentName)."""
    if value in {".", ".."}:
        return [f"may not be '{value}'"]
    return [f"may not contain '{character}'" for character in "/%" if character in value]


def dns1035_label_faults(value: str) -> str:
    """Returns the faults of a name such as `clusterversions`: a letter first, at most 63 characters; "" if valid."""
    rule = (
        "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic "
        "character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123'"
    )
    return _pattern_faults(value, 63, "[a-z]([-a-z0-9]*[a-z0-9])?", rule)


def dns1123_label_faults(value: str) -> str:
    """Returns the faults of a name such as a namespace's: at most 63 characters; "" if valid."""
    rule = (
        "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and "
        "end with an alphanumeric character (e.g. 'my-name',  or '123-abc'"
    )
    return _pattern_faults(value, 63, _LABEL, rule)


def dns1123_subdomain_faults(value: str) -> str:
    """Returns the faults of a name such as most objects': labels joined by dots, at most 253 characters."""
    rule = (
        "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must "
        "start and end with an alphanumeric character (e.g. 'example.com'"
    )
    return _pattern_faults(value, 253, rf"{_LABEL}(\.{_LABEL})*", rule)


# -- Metadata ----------------------------------------------------------------------------------------------------------

JSON = dict[str, Any]
Faults = Iterator[FieldError]

_ANNOTATION_BYTES = 256 * 1024
_NAME_PART = re.compile(r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]")
_NAME_RULE = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric "
    "character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
_VALUE_RULE = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is "
    "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)
_OWNER = ("apiVersion", "kind", "name", "uid", "controller", "blockOwnerDeletion")
ORPHAN, FOREGROUND = "orphan", "foregroundDeletion"
STANDARD_FINALIZERS = frozenset({ORPHAN, FOREGROUND, "kubernetes"})


def metadata_faults(metadata: JSON, path: str = "metadata") -> Faults:
    """Yields the faults of labels, annotations and owner references, which are validated on every write."""
    if (generation := metadata.get("generation") or 0) < 0:
        yield invalid(f"{path}.generation", generation, "must be greater than or equal to 0")
    yield from label_faults(metadata.get("labels") or {}, f"{path}.labels")
    annotations = metadata.get("annotations") or {}
    for key in annotations:
        for why in qualified_name(key.lower()):
            yield invalid(f"{path}.annotations", key, why)
    size = sum(len(str(key).encode()) + len(str(value).encode()) for key, value in annotations.items())
    if size > _ANNOTATION_BYTES:
        yield FieldError(Fault.TOO_LONG, f"{path}.annotations", None, f"may not be more than {_ANNOTATION_BYTES} bytes")
    yield from _owner_faults(metadata.get("ownerReferences") or [], f"{path}.ownerReferences")


def finalizer_faults(values: Iterable[str], path: str = "metadata.finalizers") -> Faults:
    """Yields the faults of a new object's finalizers: each is a qualified name, and two of them exclude each other."""
    values = list(values)
    for value in values:
        for why in qualified_name(value):
            yield invalid(path, value, why)
    if ORPHAN in values and FOREGROUND in values:
        yield invalid(path, values, f"finalizer {ORPHAN} and {FOREGROUND} cannot be both set")


def no_new_finalizers(new: Iterable[str], old: Iterable[str]) -> Faults:
    """Yields a fault if finalizers are added to an object that is being deleted."""
    if extra := sorted({*new} - {*old}):
        listed = ", ".join(f'"{finalizer}"' for finalizer in extra)
        why = "no new finalizers can be added if the object is being deleted, found new finalizers "
        yield forbidden("metadata.finalizers", f"{why}[]string{{{listed}}}")


def unqualified_finalizers(values: Iterable[str]) -> Iterator[FieldError]:
    """Yields a fault for each finalizer of a built-in object that is neither standard nor qualified by a domain."""
    for index, value in enumerate(values):
        path = f"metadata.finalizers[{index}]"
        if "/" not in value and value not in STANDARD_FINALIZERS:
            yield invalid(path, value, "name is neither a standard finalizer name nor is it fully qualified")


def label_faults(values: JSON, path: str) -> Faults:
    """Yields the faults of labels: a key is a qualified name, a value has at most 63 characters of the allowed set."""
    for key, value in values.items():
        for why in qualified_name(key):
            yield invalid(path, key, why)
        for why in label_value(str(value)):
            yield invalid(path, value, why)


def label_value(value: str) -> list[str]:
    """Returns the faults of a label's value."""
    faults = ["must be no more than 63 characters"] if len(value) > 63 else []
    return [*faults, _VALUE_RULE] if value and not _NAME_PART.fullmatch(value) else faults


def _owner_text(owner: JSON) -> str:
    """Returns an owner reference as Go prints it: members in the order of the struct, without those that are null."""
    return go_json({name: owner[name] for name in _OWNER if owner.get(name) is not None})


def _owner_faults(owners: list[JSON], path: str) -> Faults:
    """Yields the faults of owner references; at most one may be the controller."""
    controller = ""
    for owner in owners:
        version, kind = owner.get("apiVersion") or "", owner.get("kind") or ""
        # Go's parser returns an empty version for one of more than two parts.
        if not version or version.count("/") > 1:
            yield invalid(f"{path}.apiVersion", version, "version must not be empty")
        for key in ("kind", "name", "uid"):
            if not owner.get(key):
                yield invalid(f"{path}.{key}", "", "must not be empty")
        if (version, kind) == ("v1", "Event"):
            yield invalid(path, Verbatim(_owner_text(owner)), "/v1, Kind=Event is disallowed from being an owner")
        if owner.get("controller"):
            name = f"{owner.get('kind')}/{owner.get('name')}"
            if controller:
                why = "Only one reference can have Controller set to true. "
                why += f'Found "true" in references for {controller} and {name}'
                yield invalid(path, Verbatim(f"[{','.join(map(_owner_text, owners))}]"), why)
            else:
                controller = name


def qualified_name(key: str) -> list[str]:
    """Returns the faults of a qualified name, `domain/name` or `name`."""
    if key.count("/") > 1:
        return [f"a qualified name must consist of alphanumeric characters, {_QUALIFIED_RULE}"]
    prefix, slash, name = key.rpartition("/")
    faults = []
    if slash:
        why = "prefix part must be non-empty" if not prefix else dns1123_subdomain_faults(prefix)
        if why:
            faults.append(why if not prefix else f"prefix part {why}")
    if not name:
        faults.append("name part must be non-empty")
    elif len(name) > 63:
        faults.append("name part must be no more than 63 characters")
    if not _NAME_PART.fullmatch(name):
        faults.append(_NAME_RULE)
    return faults


_QUALIFIED_RULE = (
    "'-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or "
    "'123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]') with an optional DNS "
    "subdomain prefix and '/' (e.g. 'example.com/MyName')"
)
