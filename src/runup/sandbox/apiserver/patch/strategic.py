"""Strategic merge patch: a merge patch that knows which lists are keyed, for built-in kinds.

Understands `$patch` (replace, delete, merge), `$deleteFromPrimitiveList/x`, `$setElementOrder/x` and `$retainKeys`.
Keys and strategies come from the schema (`x-kubernetes-patch-merge-key`, `x-kubernetes-patch-strategy`).
"""

from __future__ import annotations

import copy
from typing import Any

from runup.sandbox.apiserver.errors import ApiError, bad_request
from runup.sandbox.apiserver.patch.fields import child, typed_root
from runup.sandbox.apiserver.schema import Structural

JSON = dict[str, Any]

_DELETE_PREFIX = "$deleteFromPrimitiveList/"
_ORDER_PREFIX = "$setElementOrder/"
# ObjectMeta's lists, which every kind has.
_META_KEYS = {"ownerReferences": "uid", "finalizers": ""}


def strategic_merge(tree: Structural | None, obj: JSON, patch: Any) -> Any:
    """`obj` with `patch` merged into it, neither changed; raises ApiError 400 for a patch that makes no sense."""
    if not isinstance(patch, dict):
        raise bad_request("cannot unmarshal array into Go value of type map[string]interface {}")
    return _map(typed_root(tree), copy.deepcopy(obj), patch)


def _map(node: Structural | None, original: JSON, patch: JSON) -> JSON:
    match patch.get("$patch"):
        case "replace":
            replaced: JSON = _clean({key: value for key, value in patch.items() if key != "$patch"})
            return replaced
        case "delete":
            return {}
        case None | "merge":
            pass
        case other:
            raise bad_request(f"Unknown patch type found: {other}")
    result = original
    if "$retainKeys" in patch:
        result = {key: value for key, value in result.items() if key in patch["$retainKeys"]}
    for key, value in patch.items():
        if key.startswith(_DELETE_PREFIX):
            name = key.removeprefix(_DELETE_PREFIX)
            if isinstance(result.get(name), list):
                result[name] = [item for item in result[name] if item not in value]
        elif not key.startswith("$"):
            _member(node, result, key, value)
    for key, order in patch.items():
        if key.startswith(_ORDER_PREFIX):
            _reorder(node, result, key.removeprefix(_ORDER_PREFIX), order)
    return result


def _member(node: Structural | None, result: JSON, key: str, value: Any) -> None:
    below = child(node, key)
    current = result.get(key)
    if value is None:
        result.pop(key, None)
    elif isinstance(value, dict):
        if current is None and value.get("$patch") == "delete":
            return
        result[key] = _map(below, current if isinstance(current, dict) else {}, value)
        if value.get("$patch") == "delete":
            result.pop(key, None)
    elif isinstance(value, list):
        result[key] = _list(key, below, current if isinstance(current, list) else [], value)
    else:
        result[key] = value


def _merge_key(key: str, node: Structural | None) -> str | None:
    """The key of a keyed list, empty for a list merged as a set, None for one that is replaced."""
    if key in _META_KEYS and (node is None or not node.patch_merge_key):
        return _META_KEYS[key]
    if node is None or "merge" not in node.patch_strategy.split(","):
        return None
    return node.patch_merge_key


def _list(key: str, node: Structural | None, original: list[Any], patch: list[Any]) -> list[Any]:
    merge_key = _merge_key(key, node)
    if merge_key is None:
        return _clean_list(patch)
    if merge_key == "":
        return original + [item for item in patch if item not in original]
    if any(isinstance(item, dict) and item.get("$patch") == "replace" for item in patch):
        return _clean_list([item for item in patch if item.get("$patch") != "replace"])
    result = list(original)
    for item in patch:
        if not isinstance(item, dict) or merge_key not in item:
            raise _missing_key(item, merge_key)
        at = next(
            (i for i, old in enumerate(result) if isinstance(old, dict) and old.get(merge_key) == item[merge_key]), None
        )
        if item.get("$patch") == "delete":
            if at is not None:
                del result[at]
        elif at is None:
            result.append(_map(node.items if node else None, {}, item))
        else:
            result[at] = _map(node.items if node else None, result[at], item)
    return result


def _missing_key(item: Any, merge_key: str) -> ApiError:
    return bad_request(f"map: {item} does not contain declared merge key: {merge_key}")


def _reorder(node: Structural | None, result: JSON, key: str, order: Any) -> None:
    items = result.get(key)
    if not isinstance(items, list) or not isinstance(order, list):
        return
    merge_key = _merge_key(key, child(node, key))

    def place(item: Any) -> Any:
        return item.get(merge_key) if merge_key and isinstance(item, dict) else item

    wanted = [place(item) for item in order]
    ordered = sorted((item for item in items if place(item) in wanted), key=lambda item: wanted.index(place(item)))
    # What the client did not know of keeps its place relative to what stood before it.
    queue = iter(ordered)
    result[key] = [next(queue) if place(item) in wanted else item for item in items]


def _clean(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _clean(member) for key, member in value.items() if member is not None and not key.startswith("$")}
    return value


def _clean_list(items: list[Any]) -> list[Any]:
    return [_clean(item) for item in items]
