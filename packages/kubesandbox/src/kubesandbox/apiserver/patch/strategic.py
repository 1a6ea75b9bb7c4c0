"""Strategic merge patch: a merge patch for built-in kinds that merges keyed lists by their keys.

Supports `$patch` (replace, delete, merge), `$deleteFromPrimitiveList/x`, `$setElementOrder/x` and `$retainKeys`. Keys
and strategies come from the schema (`x-kubernetes-patch-merge-key`, `x-kubernetes-patch-strategy`).
"""

from __future__ import annotations

from collections import deque
from typing import Any

import orjson

from kubesandbox.apiserver.json_copy import copy_json
from kubesandbox.apiserver.patch.field_sets import child_node, typed_root
from kubesandbox.apiserver.schema.field_errors import go_plain
from kubesandbox.apiserver.schema.structural import SchemaNode
from kubesandbox.apiserver.status_errors import ApiError, bad_request

JSON = dict[str, Any]

_DELETE_PREFIX = "$deleteFromPrimitiveList/"
_ORDER_PREFIX = "$setElementOrder/"
# ObjectMeta's lists, which every kind has.
_META_KEYS = {"ownerReferences": "uid", "finalizers": ""}


def strategic_merge(tree: SchemaNode | None, obj: JSON, patch: Any) -> Any:
    """Returns `obj` with `patch` merged into it, neither changed. Raises ApiError for an invalid patch."""
    if not isinstance(patch, dict):
        raise bad_request("cannot unmarshal array into Go value of type map[string]interface {}")
    return _merge_map(typed_root(tree), copy_json(obj), patch)


def _merge_map(node: SchemaNode | None, original: JSON, patch: JSON) -> JSON:
    """Returns `original` with a map of a strategic merge patch merged into it. Raises ApiError 500."""
    match patch.get("$patch"):
        case "replace":
            replaced: JSON = _without_directives(patch)
            return replaced
        case "delete":
            return {}
        case None | "merge":
            pass
        case other:
            raise ApiError(500, "", f"unknown patch type: {other} in map: {go_plain(patch)}")
    result = original
    if "$retainKeys" in patch:
        retained = set(map(_hashable, patch["$retainKeys"]))
        result = {key: value for key, value in result.items() if key in retained}
    for key, value in patch.items():
        if key.startswith(_DELETE_PREFIX):
            name = key.removeprefix(_DELETE_PREFIX)
            if isinstance(result.get(name), list):
                deleted = set(map(_hashable, value))
                result[name] = [item for item in result[name] if _hashable(item) not in deleted]
        elif not key.startswith("$"):
            _merge_member(node, result, key, value, order=patch.get(f"{_ORDER_PREFIX}{key}"))
    for key, order in patch.items():
        name = key.removeprefix(_ORDER_PREFIX)
        if name != key and name not in patch and isinstance(result.get(name), list):
            merge_key = _merge_key(name, child_node(node, name)) or ""
            result[name] = _order_items(result[name], order, result[name], merge_key)
    return result


def _merge_member(node: SchemaNode | None, result: JSON, key: str, value: Any, *, order: Any) -> None:
    """Merges one member of a patch into `result`; `order` is its $setElementOrder, if any."""
    below = child_node(node, key)
    current = result.get(key)
    if value is None:
        result.pop(key, None)
    elif isinstance(value, dict):
        if current is None and value.get("$patch") == "delete":
            return
        result[key] = _merge_map(below, current if isinstance(current, dict) else {}, value)
        if value.get("$patch") == "delete":
            result.pop(key, None)
    elif isinstance(value, list):
        before = current if isinstance(current, list) else []
        result[key] = _merge_list(key, below, before, value)
        if isinstance(order, list):
            merge_key = _merge_key(key, below) or ""
            kept_items = [item for item in value if not (isinstance(item, dict) and item.get("$patch") == "delete")]
            in_order = iter([_item_identity(item, merge_key) for item in order])
            if not all(_item_identity(item, merge_key) in in_order for item in kept_items):
                lists = f"{go_plain(value)}\n doesn't match $setElementOrder list:\n{go_plain(order)}"
                raise ApiError(500, "", f"The order in patch list:\n{lists}\n")
            result[key] = _order_items(result[key], order, before, merge_key)
    else:
        result[key] = value


def _merge_key(key: str, node: SchemaNode | None) -> str | None:
    """Returns the key of a keyed list, "" for a list merged as a set, None for one that is replaced."""
    if key in _META_KEYS and (node is None or not node.patch_merge_key):
        return _META_KEYS[key]
    if node is None or "merge" not in node.patch_strategy.split(","):
        return None
    return node.patch_merge_key


def _merge_list(key: str, node: SchemaNode | None, original: list[Any], patch: list[Any]) -> list[Any]:
    """Returns a list merged by the schema's merge key and strategy, or replaced if the schema sets neither."""
    merge_key = _merge_key(key, node)
    if merge_key is None:
        return _clean_list(patch)
    if merge_key == "":
        # A list of scalars with the merge strategy is a set.
        distinct: dict[Any, Any] = {}
        for item in original + patch:
            distinct.setdefault(_hashable(item), item)
        return _order_items(list(distinct.values()), patch, original, "")
    if any(isinstance(item, dict) and item.get("$patch") == "replace" for item in patch):
        return _clean_list([item for item in patch if item.get("$patch") != "replace"])
    result, item_node = dict(enumerate(original)), node.items if node else None
    # The first of the places with the same identity is the last of its list.
    places: dict[Any, list[int]] = {}
    for index in reversed(range(len(original))):
        places.setdefault(_item_identity(original[index], merge_key), []).append(index)
    for index, item in enumerate(patch, len(original)):
        if not isinstance(item, dict) or merge_key not in item:
            raise ApiError(500, "", f"map: {go_plain(item)} does not contain declared merge key: {merge_key}")
        same = places.setdefault(_item_identity(item, merge_key), [])
        if item.get("$patch") == "delete":
            if same:
                del result[same.pop()]
        elif not same:
            same.append(index)
            result[index] = _merge_map(item_node, {}, item)
        else:
            result[same[-1]] = _merge_map(item_node, result[same[-1]], item)
    kept_items = [item for item in patch if item.get("$patch") != "delete"]
    return _order_items(list(result.values()), kept_items, original, merge_key)


# -- the order of lists ------------------------------------------------------------------------------------------------


def _item_identity(item: Any, merge_key: str) -> Any:
    """Returns the identity of a list item: its merge key's value, or the item itself."""
    return _hashable(item.get(merge_key) if merge_key and isinstance(item, dict) else item)


def _hashable(value: Any) -> Any:
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS) if isinstance(value, dict | list) else value


def _first_places(items: list[Any], merge_key: str) -> dict[Any, int]:
    return {_item_identity(items[index], merge_key): index for index in reversed(range(len(items)))}


def _order_items(items: list[Any], wanted_items: list[Any], before: list[Any], merge_key: str) -> list[Any]:
    """Returns `items` merged from two sequences: those of `wanted_items` in its order, and the others in theirs.

    Of the two next items, the other one goes first if it preceded the wanted one in `before`.
    """
    order, place_before = _first_places(wanted_items, merge_key), _first_places(before, merge_key)
    identified_items = [(_item_identity(item, merge_key), item) for item in items]
    ordered_items = sorted((pair for pair in identified_items if pair[0] in order), key=lambda pair: order[pair[0]])
    other_items = deque(pair for pair in identified_items if pair[0] not in order)
    result: list[Any] = []
    for identity, item in ordered_items:
        while (
            other_items
            and identity in place_before
            and place_before.get(other_items[0][0], len(before)) < place_before[identity]
        ):
            result.append(other_items.popleft()[1])
        result.append(item)
    return [*result, *(item for _, item in other_items)]


def _without_directives(value: Any) -> Any:
    """Returns the value without null fields and without directives such as $patch."""
    if isinstance(value, dict):
        return {
            key: _without_directives(member)
            for key, member in value.items()
            if member is not None and not key.startswith("$")
        }
    return value


def _clean_list(items: list[Any]) -> list[Any]:
    return [_without_directives(item) for item in items]
