"""The kinds that a CustomResourceDefinition defines, and the fields that the server sets in it."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from kubesandbox.apiserver.metadata import rfc3339
from kubesandbox.apiserver.served_kinds import STATUS, Kind, Subresource, version_priority

JSON = dict[str, Any]


def kinds_of(crd: JSON) -> tuple[Kind, ...]:
    """Returns the kinds served for a definition, one a served version; none before it is established."""
    spec, conditions = crd["spec"], (crd.get("status") or {}).get("conditions") or ()
    if not any(c["type"] == "Established" and c["status"] == "True" for c in conditions):
        return ()
    names, kinds = spec["names"], []
    for version in spec["versions"]:
        if not version.get("served"):
            continue
        declared = version.get("subresources") or {}
        subresources = [STATUS] if "status" in declared else []
        if "scale" in declared:
            subresources.append(Subresource(name="scale", group="autoscaling", version="v1", kind="Scale"))
        kind = Kind(
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
        kinds.append(kind)
    return tuple(kinds)


def _deprecation_warning(spec: JSON, version: JSON) -> str:
    """Returns the warning of a deprecated version: its own, or one that names a newer supported version."""
    if not version.get("deprecated"):
        return ""
    if version.get("deprecationWarning") is not None:
        return str(version["deprecationWarning"])
    group, kind, name = spec["group"], spec["names"]["kind"], version["name"]
    text = f"{group}/{name} {kind} is deprecated"
    others = [v["name"] for v in spec["versions"] if v.get("served") and not v.get("deprecated")]
    newest = min([*others, name], key=version_priority)
    return f"{text}; use {group}/{newest} {kind}" if version_priority(newest) < version_priority(name) else text


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
        status.setdefault("acceptedNames", {"plural": "", "kind": ""})
        accepted, established = ("PluralConflict", taken), ("NotAccepted", "not all names are accepted")
    else:
        status["acceptedNames"] = dict(names)
        accepted = "NoConflicts", "no conflicts found"
        established = "InitialNamesAccepted", "the initial names have been accepted"
    conditions = status["conditions"] = status.get("conditions") or []
    for type_, (reason, message) in (("NamesAccepted", accepted), ("Established", established)):
        value, new = "False" if taken else "True", {"type": type_}
        condition = next((each for each in conditions if each["type"] == type_), new)
        if condition is new:
            conditions.append(new)
        # Its lastTransitionTime changes only with its status.
        since = condition["lastTransitionTime"] if condition.get("status") == value else rfc3339(now)
        condition.clear()
        condition |= {"type": type_, "status": value, "reason": reason, "message": message, "lastTransitionTime": since}
