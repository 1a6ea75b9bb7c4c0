"""Who owns which fields (`metadata.managedFields`): read, changed by ordinary writes, written."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from runup.sandbox.apiserver.kinds import Kind
from runup.sandbox.apiserver.objects import meta, rfc3339
from runup.sandbox.apiserver.patch.fields import Path, from_fields_v1, leaves, to_fields_v1
from runup.sandbox.apiserver.schema import Structural

JSON = dict[str, Any]
UPDATE, APPLY = "Update", "Apply"


@dataclass(frozen=True, slots=True)
class Owner:
    """One entry: who wrote how through which version and subresource, and what is theirs."""

    manager: str
    operation: str
    api_version: str
    subresource: str
    fields: frozenset[Path]
    time: str = ""

    def is_same(self, manager: str, operation: str, api_version: str, subresource: str) -> bool:
        """Whether a write belongs to this entry; an applier is the same whatever version it applies."""
        same = (self.manager, self.operation, self.subresource) == (manager, operation, subresource)
        return same and (operation == APPLY or self.api_version == api_version)


def read(obj: JSON | None) -> list[Owner]:
    """The owners of an object; entries that nobody can read are dropped."""
    entries = meta(obj).get("managedFields") if obj else None
    return [
        Owner(
            entry.get("manager", ""),
            entry.get("operation", UPDATE),
            entry.get("apiVersion", ""),
            entry.get("subresource", ""),
            frozenset(from_fields_v1(entry.get("fieldsV1") or {})),
            entry.get("time", ""),
        )
        for entry in entries or ()
        if isinstance(entry, dict) and entry
    ]


def write(obj: JSON, owners: list[Owner]) -> None:
    """Put the owners into the object; one that owns nothing is left out."""
    entries = []
    # Appliers first, then by time: the order that a real server keeps.
    for owner in sorted(owners, key=lambda each: (each.operation != APPLY, each.time, each.manager)):
        if not owner.fields:
            continue
        entry: JSON = {
            "manager": owner.manager,
            "operation": owner.operation,
            "apiVersion": owner.api_version,
            "time": owner.time,
            "fieldsType": "FieldsV1",
            "fieldsV1": to_fields_v1(set(owner.fields)),
        }
        if owner.subresource:
            entry["subresource"] = owner.subresource
        entries.append(entry)
    if entries:
        meta(obj)["managedFields"] = entries
    else:
        meta(obj).pop("managedFields", None)


def on_update(
    tree: Structural | None,
    kind: Kind,
    old: JSON | None,
    new: JSON,
    *,
    manager: str,
    now: datetime,
    subresource: str,
) -> None:
    """Record a create, update or patch: what it changed is the writer's, and nobody else's any more."""
    # An empty list is how a client asks for a clean slate.
    cleared = old is not None and meta(new).get("managedFields") == []
    owners = [] if cleared else read(old)
    before = dict(leaves(tree, old)) if old else {}
    after = dict(leaves(tree, new))
    changed = {path for path, value in after.items() if path not in before or before[path] != value}
    gone = set(before) - set(after)
    if not changed and not gone:
        write(new, owners)
        return
    part = subresource if subresource == "status" else ""
    ours = next((o for o in owners if o.is_same(manager, UPDATE, kind.api_version, part)), None)
    kept = [replace(o, fields=o.fields - changed - gone) for o in owners if o is not ours]
    fields = (ours.fields if ours else frozenset()) | changed
    mine = Owner(manager, UPDATE, kind.api_version, part, frozenset(fields - gone), rfc3339(now))
    write(new, [*kept, mine])
