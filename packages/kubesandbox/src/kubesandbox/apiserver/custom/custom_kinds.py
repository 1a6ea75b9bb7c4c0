"""The kinds that a CustomResourceDefinition defines, and the fields that the server sets in it."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from kubesandbox.apiserver.metadata import rfc3339
from kubesandbox.apiserver.served_kinds import STATUS, Kind, Subresource, version_priority

JSON = dict[str, Any]


def kinds_of(crd: JSON) -> tuple[Kind, ...]:
    """Returns the kinds served for a definition, one a served version; none before it is established."""
    spec = crd["spec"]
    # A server serves a definition only once it is Established.
    if not _is_established(crd):
        return ()
    return tuple(_kind_of_version(crd, spec, version) for version in spec["versions"] if version.get("served"))


def _is_established(crd: JSON) -> bool:
    conditions = (crd.get("status") or {}).get("conditions") or ()
    return any(c["type"] == "Established" and c["status"] == "True" for c in conditions)


def _kind_of_version(crd: JSON, spec: JSON, version: JSON) -> Kind:
    """Returns the kind that one version of a definition makes the server serve."""
    names = spec["names"]
    declared = version.get("subresources") or {}
    subresources = [STATUS] if "status" in declared else []
    if "scale" in declared:
        subresources.append(Subresource("scale", group="autoscaling", version="v1", kind="Scale"))
    return Kind(
        group=spec["group"],
        version=version["name"],
        kind=names["kind"],
        plural=names["plural"],
        namespaced=spec.get("scope") == "Namespaced",
        short_names=tuple(names.get("shortNames") or ()),
        categories=tuple(names.get("categories") or ()),
        singular=names.get("singular") or names["kind"].lower(),
        list_kind=names.get("listKind") or f"{names['kind']}List",
        subresources=tuple(subresources),
        generation=True,
        fields=tuple(field["jsonPath"].lstrip(".") for field in version.get("selectableFields") or ()),
        crd=crd,
        scale_paths=declared.get("scale"),
        columns=tuple(version.get("additionalPrinterColumns") or ()),
        deprecation=_deprecation_warning(spec, version),
    )


def _deprecation_warning(spec: JSON, version: JSON) -> str:
    """Returns the warning of a deprecated version: its own, or one that names a newer supported version."""
    if not version.get("deprecated"):
        return ""
    if version.get("deprecationWarning") is not None:
        return str(version["deprecationWarning"])
    group, kind, name = spec["group"], spec["names"]["kind"], version["name"]
    text = f"{group}/{name} {kind} is deprecated"
    other_versions = [v["name"] for v in spec["versions"] if v.get("served") and not v.get("deprecated")]
    newer = sorted(
        (other for other in other_versions if version_priority(other) < version_priority(name)), key=version_priority
    )
    return f"{text}; use {group}/{newer[0]} {kind}" if newer else text


def complete_definition(crd: JSON, now: datetime, taken: str = "") -> None:
    """Sets names, conversion, stored versions, and the two conditions of a definition.

    `taken` is the reason why the names are not available; the definition is then stored but not established.
    """
    spec = crd["spec"]
    names = spec["names"]
    names.setdefault("singular", names.get("kind", "").lower())
    names.setdefault("listKind", f"{names.get('kind', '')}List")
    spec.setdefault("conversion", {"strategy": "None"})
    status = crd.setdefault("status", {})
    storage = next((v["name"] for v in spec.get("versions") or () if v.get("storage")), "")
    stored = status.get("storedVersions") or []
    status["storedVersions"] = [*stored, *([storage] if storage and storage not in stored else ())]
    if taken:
        _set_condition(status, "NamesAccepted", "False", "PluralConflict", taken, now)
        _set_condition(status, "Established", "False", "NotAccepted", "not all names are accepted", now)
        status.setdefault("acceptedNames", {"plural": "", "kind": ""})
        return
    status["acceptedNames"] = dict(names)
    _set_condition(status, "NamesAccepted", "True", "NoConflicts", "no conflicts found", now)
    _set_condition(status, "Established", "True", "InitialNamesAccepted", "the initial names have been accepted", now)


def _set_condition(status: JSON, type_: str, value: str, reason: str, message: str, now: datetime) -> None:
    """Sets a condition; its lastTransitionTime is `now` only if its value changes."""
    conditions = status["conditions"] = status.get("conditions") or []
    old = next((condition for condition in conditions if condition["type"] == type_), None)
    since = old["lastTransitionTime"] if old and old["status"] == value else rfc3339(now)
    new = {"type": type_, "status": value, "reason": reason, "message": message, "lastTransitionTime": since}
    if old is None:
        conditions.append(new)
    else:
        old.clear()
        old.update(new)
