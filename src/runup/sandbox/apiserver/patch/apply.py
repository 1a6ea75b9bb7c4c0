"""Server-side apply: the live object and what a manager wants in, the merged object out, or who stands in the way.

What a manager applied before and leaves out now is removed, unless somebody else owns it too. A field that another
manager owns and that would get another value is a conflict, unless the applier forces it. (KEP-555.)
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from typing import Any

from runup.sandbox.apiserver.errors import Cause, apply_conflict
from runup.sandbox.apiserver.kinds import Kind
from runup.sandbox.apiserver.objects import meta, rfc3339
from runup.sandbox.apiserver.patch import managed
from runup.sandbox.apiserver.patch.fields import (
    MISSING,
    Path,
    element,
    leaves,
    owned_by_writer,
    remove_at,
    text_of,
    value_at,
)
from runup.sandbox.apiserver.patch.managed import APPLY, UPDATE, Owner
from runup.sandbox.apiserver.schema import Structural

JSON = dict[str, Any]


def apply_patch(
    tree: Structural | None,
    kind: Kind,
    live: JSON | None,
    config: JSON,
    *,
    manager: str,
    force: bool,
    now: datetime,
    subresource: str,
    default: Callable[[JSON], JSON],
) -> JSON:
    """The object after `manager` applied `config`; raises ApiError 409 on a conflict."""
    part = subresource if subresource == "status" else ""
    config = _of_part(config, part, has_status=kind.has_status)
    owners = managed.read(live)
    ours = next((o for o in owners if o.is_same(manager, APPLY, kind.api_version, part)), None)
    others = [o for o in owners if o is not ours]
    wanted = owned_by_writer(tree, config)
    if live is not None:
        found = _conflicts(tree, live, config, others)
        if found and not force:
            raise _error(found)
        taken = {path for _, path in found}
        others = [replace(o, fields=o.fields - taken) for o in others]
    merged: JSON = merge(tree, copy.deepcopy(live) if live else {}, config)
    merged |= {"apiVersion": kind.api_version, "kind": kind.kind}
    for path in sorted((set(ours.fields) if ours else set()) - wanted, key=len, reverse=True):
        if not any(_holds(other, path) for other in others) and not _contains(wanted, path):
            remove_at(tree, merged, path)
    if live is not None:
        merged = default(merged)
    stamp = rfc3339(now)
    if ours is not None and ours.fields == wanted and managed_same(tree, live, merged):
        stamp = ours.time
    managed.write(merged, [*others, Owner(manager, APPLY, kind.api_version, part, frozenset(wanted), stamp)])
    return merged


def managed_same(tree: Structural | None, a: JSON | None, b: JSON) -> bool:
    """Whether two states have the same leaves."""
    return a is not None and dict(leaves(tree, a)) == dict(leaves(tree, b))


def merge(node: Structural | None, live: Any, config: Any) -> Any:
    """`config` over `live`: members and entries of map lists and sets are merged, all else is replaced."""
    if isinstance(live, dict) and isinstance(config, dict) and not (node and node.map_type == "atomic"):
        for name, value in config.items():
            child = node.field(name) if node else None
            live[name] = merge(child, live[name], value) if name in live else copy.deepcopy(value)
        return live
    if isinstance(live, list) and isinstance(config, list) and node is not None and node.list_type in {"set", "map"}:
        return _merge_list(node, live, config)
    return copy.deepcopy(config)


def _merge_list(node: Structural, live: list[Any], config: list[Any]) -> list[Any]:
    """Entries of `config` in their order; those of others stay where they were, new ones follow what precedes them."""
    known = {element(node, item): item for item in live}
    wanted = {element(node, item): item for item in config}
    order = [key for key in known if key not in wanted]
    position = 0
    for key in wanted:
        if key in known:
            before = [other for other in list(known)[: list(known).index(key)] if other in order]
            position = max(position, order.index(before[-1]) + 1 if before else 0)
        order.insert(position, key)
        position += 1
    return [
        merge(node.items, known[key], wanted[key])
        if key in known and key in wanted and node.list_type == "map"
        else copy.deepcopy(wanted.get(key, known.get(key)))
        for key in order
    ]


def _of_part(config: JSON, part: str, *, has_status: bool) -> JSON:
    """What may be owned through the main resource, or through its status."""
    config = {key: value for key, value in config.items() if key not in {"apiVersion", "kind"}}
    metadata = {key: value for key, value in meta(config).items() if key not in {"managedFields", "resourceVersion"}}
    config["metadata"] = metadata
    if part == "status":
        return {"metadata": {}, **({"status": config["status"]} if "status" in config else {})}
    if has_status:
        config.pop("status", None)
    return config


def _conflicts(tree: Structural | None, live: JSON, config: JSON, others: list[Owner]) -> list[tuple[Owner, Path]]:
    found = []
    for path, value in leaves(tree, config):
        if value is MISSING or value_at(tree, live, path) == value:
            continue
        found += [(owner, path) for owner in others if _holds(owner, path)]
    return found


def _holds(owner: Owner, path: Path) -> bool:
    """Whether the owner has the path itself, or (for a container that is replaced) something below it."""
    return path in owner.fields or any(each[: len(path)] == path for each in owner.fields)


def _contains(paths: set[Path], path: Path) -> bool:
    return any(each[: len(path)] == path for each in paths)


def _error(found: list[tuple[Owner, Path]]) -> Exception:
    causes = [Cause("FieldManagerConflict", f"conflict with {_named(owner)}", text_of(path)) for owner, path in found]
    if len(found) == 1:
        owner, path = found[0]
        return apply_conflict(f"Apply failed with 1 conflict: conflict with {_named(owner)}: {text_of(path)}", causes)
    lines: dict[str, list[str]] = {}
    for owner, path in found:
        lines.setdefault(_named(owner), []).append(f"- {text_of(path)}")
    told = "\n".join("\n".join([f"conflicts with {name}:", *paths]) for name, paths in lines.items())
    return apply_conflict(f"Apply failed with {len(found)} conflicts: {told}", causes)


def _named(owner: Owner) -> str:
    name = f'"{owner.manager}"'
    if owner.subresource:
        name += f' with subresource "{owner.subresource}"'
    return f"{name} using {owner.api_version}" if owner.operation == UPDATE else name
