"""Field ownership in `metadata.managedFields`, which every write updates.

In: the object before and after, and the writer. Out: the entries, in Kubernetes' order. Rules of
k8s.io/apimachinery/pkg/util/managedfields: an update takes the fields that it changed from all other managers; a field
that no request set has no owner; an object without managedFields stays untracked until an apply.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from kubesandbox.apiserver.metadata import meta, rfc3339
from kubesandbox.apiserver.patch import field_sets
from kubesandbox.apiserver.schema.structural import SchemaNode
from kubesandbox.apiserver.served_kinds import Kind

JSON = dict[str, Any]

# Limit of separate updaters (maxUpdateManagers); beyond it the oldest are merged into one entry.
_MAX_UPDATERS = 10
_ANCIENT = "ancient-changes"
# Of the elements of a path in fieldsV1 (sigs.k8s.io/structured-merge-diff/fieldpath/serialize-pe.go).
_PATH_PREFIXES = frozenset({"f:", "k:", "v:", "i:"})
_BEFORE_FIRST_APPLY = "before-first-apply"

# Fields that the server sets: no manager owns them.
_SERVER_FIELDS = frozenset(
    {("f:apiVersion",), ("f:kind",), ("f:metadata",)}
    | {
        ("f:metadata", f"f:{name}")
        for name in ("name", "namespace", "creationTimestamp", "selfLink", "uid", "clusterName", "generation",
                     "managedFields", "resourceVersion", "deletionTimestamp", "deletionGracePeriodSeconds")
    }
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Manager:
    """The identity of an entry; two writes with equal identities share one entry."""

    name: str
    operation: str
    version: str
    subresource: str = ""

    @property
    def applies(self) -> bool:
        """Reports whether the manager uses server-side apply."""
        return self.operation == "Apply"

    def __str__(self) -> str:
        text = f'"{self.name}"' + (f' with subresource "{self.subresource}"' if self.subresource else "")
        return text if self.applies else f"{text} using {self.version}"


@dataclass(frozen=True, slots=True)
class Ownership:
    """The fields that one manager owns, and since when."""

    paths: field_sets.FieldSet
    time: str


Managers = dict[Manager, Ownership]


def read_managers(obj: JSON | None) -> Managers:
    """Returns the managers of an object and what they own. Entries without manager and operation are skipped."""
    managers: Managers = {}
    for entry in (meta(obj).get("managedFields") or ()) if obj else ():
        if not entry.get("manager") and not entry.get("operation"):
            continue
        manager = Manager(
            entry.get("manager", ""),
            entry.get("operation", ""),
            entry.get("apiVersion", ""),
            entry.get("subresource", ""),
        )
        managers[manager] = Ownership(field_sets.from_fields_v1(entry.get("fieldsV1") or {}), entry.get("time") or "")
    return managers


def write_managers(obj: JSON, managers: Managers) -> None:
    """Writes the entries to the object's metadata."""
    entries: list[JSON] = []
    for manager, owned in managers.items():
        if owned.paths:
            entry: JSON = {"manager": manager.name, "operation": manager.operation, "apiVersion": manager.version}
            if owned.time:
                entry["time"] = owned.time
            entry |= {"fieldsType": "FieldsV1", "fieldsV1": field_sets.to_fields_v1(owned.paths)}
            if manager.subresource:
                entry["subresource"] = manager.subresource
            entries.append(entry)
    entries.sort(
        key=lambda e: (e["operation"], e.get("time") or "", e["manager"], e["apiVersion"], e.get("subresource", ""))
    )
    if entries:
        meta(obj)["managedFields"] = entries
    else:
        meta(obj).pop("managedFields", None)


def ownable_paths(kind: Kind, paths: Iterable[field_sets.FieldPath], subresource: str) -> field_sets.FieldSet:
    """Returns those of `paths` that a write through `subresource` can own."""
    ownable = (path for path in paths if path and path not in _SERVER_FIELDS)
    if not kind.has_status:
        return frozenset(ownable)
    if subresource == "status":
        # Built-in kinds take annotations and labels through the subresource as well.
        shared = () if kind.custom else (("f:metadata", "f:annotations"), ("f:metadata", "f:labels"))
        return frozenset(path for path in ownable if path[0] == "f:status" or path[:2] in shared)
    return frozenset(path for path in ownable if path[0] != "f:status")


def on_update(
    tree: SchemaNode | None,
    kind: Kind,
    old: JSON | None,
    new: JSON,
    *,
    manager: str,
    now: datetime,
    subresource: str,
    empty: JSON | None = None,
) -> None:
    """Records a create, update or patch (not apply) in `new`.

    `empty` is the object that a new one is compared with: the empty structs that Go adds in any case have no owner.
    """
    managed_fields = meta(new).get("managedFields")
    # A list with one empty entry clears managedFields (kubernetes.io/docs/reference/using-api/server-side-apply).
    # A new object gets its writer as the only owner.
    if managed_fields == [{}] and old is not None:
        meta(new).pop("managedFields")
        return
    readable = all(_is_path_tree(entry.get("fieldsV1") or {}) for entry in managed_fields or ())
    managers = (read_managers(new) if readable else {}) or read_managers(old)
    if old is not None and not managers:
        meta(new).pop("managedFields", None)
        return
    root = field_sets.typed_root(tree)
    changes = field_sets.compare_objects(root, old or empty or {"metadata": {}}, new)
    managers = release_paths(managers, changes.changed | changes.removed)
    updated_fields = ownable_paths(kind, changes.changed, subresource)
    if updated_fields:
        me = Manager(manager, "Update", kind.api_version, subresource)
        before = managers.get(me)
        managers[me] = Ownership(updated_fields | before.paths if before else updated_fields, rfc3339(now))
    updaters = sorted((m for m in managers if not m.applies), key=lambda m: managers[m].time)
    if len(updaters) > _MAX_UPDATERS:
        # The oldest are merged into one; one more than the surplus, since the merged entry takes a place itself.
        oldest = updaters[: len(updaters) - _MAX_UPDATERS + 1]
        paths = frozenset[field_sets.FieldPath]().union(*(managers[m].paths for m in oldest))
        ancient = Manager(_ANCIENT, "Update", oldest[0].version)
        merged = Ownership(paths, managers[oldest[-1]].time)
        managers = {m: owned for m, owned in managers.items() if m not in oldest} | {ancient: merged}
    write_managers(new, managers)


def _is_path_tree(fields: Any) -> bool:
    """Returns whether `fields` can be read as fieldsV1; otherwise the stored owners count (decodeLiveOrNew)."""
    return isinstance(fields, dict) and all(
        (key == "." or key[:2] in _PATH_PREFIXES) and _is_path_tree(below) for key, below in fields.items()
    )


def release_paths(managers: Managers, paths: set[field_sets.FieldPath]) -> Managers:
    """Returns `managers` without `paths`, and without managers that own nothing any more."""
    remaining = {manager: replace(owned, paths=owned.paths - paths) for manager, owned in managers.items()}
    return {manager: owned for manager, owned in remaining.items() if owned.paths}


def owner_of_everything(
    kind: Kind, paths: Iterable[field_sets.FieldPath], *, subresource: str, now: datetime
) -> Managers:
    """Returns the owner of all fields of an untracked object (`paths`), for its first apply, with the present time.

    For an apply through a subresource only that subresource's fields get an owner.
    """
    owned = ownable_paths(kind, paths, subresource)
    owner = Manager(_BEFORE_FIRST_APPLY, "Update", kind.api_version, subresource)
    return {owner: Ownership(owned, rfc3339(now))} if owned else {}
