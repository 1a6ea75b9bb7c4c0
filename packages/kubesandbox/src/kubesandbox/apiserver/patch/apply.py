"""Server-side apply: merges the configuration into the live object, removes fields it no longer sets, finds conflicts.

In: the live object (None if there is none), the applied configuration, the applier. Out: the new object with its
managedFields. Raises ApiError 409 naming every owner with a conflicting field, unless `force`. Follows
structured-merge-diff's merge/update.go.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from datetime import datetime
from typing import Any

from kubesandbox.apiserver.json_copy import copy_json
from kubesandbox.apiserver.metadata import meta, rfc3339
from kubesandbox.apiserver.patch import managed_fields
from kubesandbox.apiserver.patch.field_sets import (
    child_node,
    compare_objects,
    field_set,
    is_declared,
    merge_config,
    typed_root,
    without_paths,
)
from kubesandbox.apiserver.patch.fields_v1 import FieldPath, FieldSet, show_path
from kubesandbox.apiserver.patch.managed_fields import Manager, Managers, Ownership
from kubesandbox.apiserver.schema import SchemaNode
from kubesandbox.apiserver.served_kinds import Kind
from kubesandbox.apiserver.status_errors import ApiError, Cause, apply_conflict

JSON = dict[str, Any]


def apply_patch(
    tree: SchemaNode | None,
    kind: Kind,
    live: JSON | None,
    config: JSON,
    *,
    manager: str,
    force: bool,
    now: datetime,
    subresource: str = "",
    empty: JSON | None = None,
    default: Callable[[JSON], JSON] = lambda obj: obj,
) -> JSON:
    """Returns the object after `manager` applied `config`; `live` is not changed. Raises ApiError 409 on conflicts.

    In order (https://kubernetes.io/docs/reference/using-api/server-side-apply/): the fields of `config` are merged into
    `live`; fields that `manager` applied before and does not any more are removed; a change of what others own is a
    conflict unless `force`; then managedFields are written. `empty` is the object of that kind without any field, and
    `default` fills in what the server adds: an apply that changes nothing keeps its time.
    """
    root = typed_root(tree)
    config = copy_json(config)
    for name in ("managedFields", "resourceVersion", "uid"):
        meta(config).pop(name, None)
    managers = managed_fields.read_managers(live)
    if live is not None and not managers:
        managers = managed_fields.owner_of_everything(tree, kind, live, empty or {"metadata": {}}, now, subresource)
    me = _applying_manager(managers, manager, kind, subresource)
    before = managers.pop(me, None)
    applied_fields = managed_fields.ownable_paths(kind, field_set(root, config), subresource)
    new: JSON = copy_json(merge_config(root, live or {}, config))
    if before is not None:
        new = _prune_abandoned(root, new, before.paths, applied_fields, managers)
    changes = compare_objects(root, live or {}, new)
    conflicts = _find_conflicts(managers, changes.changed)
    if conflicts and not force:
        raise _conflict_error(conflicts)
    managers = managed_fields.release_paths(managers, changes.changed | changes.removed)
    managers[Manager(manager, "Apply", kind.api_version, subresource)] = Ownership(
        applied_fields, _time_of_apply(before, applied_fields, live, new, default, now)
    )
    managed_fields.write_managers(new, managers)
    return new


def _applying_manager(managers: Managers, manager: str, kind: Kind, subresource: str) -> Manager:
    for candidate in managers:
        if candidate.applies and candidate.name == manager and candidate.subresource == subresource:
            return candidate
    return Manager(manager, "Apply", kind.api_version, subresource)


def _time_of_apply(
    before: Ownership | None,
    applied_fields: FieldSet,
    live: JSON | None,
    new: JSON,
    default: Callable[[JSON], JSON],
    now: datetime,
) -> str:
    """Returns the time of the applier's managedFields entry: the old one if the apply changes nothing."""
    # An apply without changes must not be a write, so it keeps its time.
    if before is not None and before.paths == applied_fields and live is not None:
        applied = {key: value for key, value in default(copy_json(new)).items() if key != "metadata"}
        current = {key: value for key, value in live.items() if key != "metadata"}
        if applied == current and _without_managed_fields(new) == _without_managed_fields(live):
            return before.time
    return rfc3339(now)


def _without_managed_fields(obj: JSON) -> JSON:
    return {key: value for key, value in meta(obj).items() if key != "managedFields"}


def _prune_abandoned(
    root: SchemaNode, new: JSON, before: FieldSet, applied_fields: FieldSet, other_managers: Managers
) -> JSON:
    """Returns `new` without fields that this applier no longer sets, unless others own them or their children.

    A struct without any field set is removed as a whole, with its fields that have no owner.
    """
    owned: set[FieldPath] = set(applied_fields)
    for ownership in other_managers.values():
        owned |= ownership.paths
    within = {path[:length] for path in owned for length in range(1, len(path) + 1)}
    surplus = {path for path in _with_structs(root, before) if path not in within}
    if not surplus:
        return new
    result = without_paths(root, new, surplus)
    return result if isinstance(result, dict) else {}


def _find_conflicts(managers: Managers, changed: set[FieldPath]) -> list[tuple[Manager, list[FieldPath]]]:
    overlaps = [(manager, _in_order(owned.paths & changed)) for manager, owned in managers.items()]
    return [(manager, paths) for manager, paths in overlaps if paths]


def _conflict_error(conflicts: list[tuple[Manager, list[FieldPath]]]) -> ApiError:
    """Returns the 409 that names each field which another manager owns, in the words of structured-merge-diff."""
    pairs = [
        (_show_manager(manager), show_path(path))
        for manager, paths in sorted(conflicts, key=_manager_text)
        for path in paths
    ]
    causes = [Cause("FieldManagerConflict", f"conflict with {manager}", path) for manager, path in pairs]
    if len(pairs) == 1:
        return apply_conflict(f"Apply failed with 1 conflict: conflict with {pairs[0][0]}: {pairs[0][1]}", causes)
    lines: list[str] = []
    for manager in dict.fromkeys(manager for manager, _ in pairs):
        lines.append(f"conflicts with {manager}:")
        lines += [f"- {path}" for owner, path in pairs if owner == manager]
    return apply_conflict(f"Apply failed with {len(pairs)} conflicts: " + "\n".join(lines), causes)


def _manager_text(conflict: tuple[Manager, list[FieldPath]]) -> str:
    return _show_manager(conflict[0])


def _show_manager(manager: Manager) -> str:
    text = f'"{manager.name}"'
    if manager.subresource:
        text = f'{text} with subresource "{manager.subresource}"'
    return text if manager.applies else f"{text} using {manager.version}"


def _with_structs(root: SchemaNode, paths: FieldSet) -> set[FieldPath]:
    """Returns the paths and those of their parent structs' fields (not of map keys and list items)."""
    result = set(paths)
    for path in paths:
        node: SchemaNode | None = root
        for length, part in enumerate(path[:-1], 1):
            name = part.removeprefix("f:")
            if name != part and is_declared(node, name):
                result.add(path[:length])
            below = child_node(node, name) if name != part else node.items if node else None
            node = below
    return result


def _in_order(paths: Collection[FieldPath]) -> list[FieldPath]:
    """Returns paths in structured-merge-diff's order: at each level those that end there, then deeper ones."""
    ends = sorted(path for path in paths if len(path) == 1)
    below: dict[str, set[FieldPath]] = {}
    for path in paths:
        if len(path) > 1:
            below.setdefault(path[0], set()).add(path[1:])
    return [*ends, *((part, *rest) for part in sorted(below) for rest in _in_order(below[part]))]
