"""Strategic merge patch: built-in kinds' lists merge by the keys of their types, with `$patch` directives.

(kubernetes/community, contributors/devel/sig-api-machinery/strategic-merge-patch.md)
"""

from __future__ import annotations

import copy
from typing import Any

from runup.sandbox.apiserver.errors import bad_request
from runup.sandbox.apiserver.schema import Structural

JSON = dict[str, Any]
_DIRECTIVE = "$patch"
_DELETE_FROM = "$deleteFromPrimitiveList/"
_ORDER = "$setElementOrder/"
_RETAIN = "$retainKeys"


def strategic_merge(tree: Structural | None, obj: Any, patch: Any) -> Any:
    """`obj` after `patch`; without a tree every list is replaced. Raises ApiError 400 for a directive nobody knows."""
    if not isinstance(patch, dict):
        return copy.deepcopy(patch)
    directive = patch.get(_DIRECTIVE)
    rest = {key: value for key, value in patch.items() if key != _DIRECTIVE}
    if directive == "replace":
        return copy.deepcopy(rest)
    if directive == "delete":
        return {}
    if directive not in {None, "merge"}:
        raise bad_request(f'Unknown patch type "{directive}" found in the patch')
    result = dict(obj) if isinstance(obj, dict) else {}
    if _RETAIN in rest:
        result = {key: value for key, value in result.items() if key in set(rest.pop(_RETAIN))}
    for key, value in rest.items():
        if not key.startswith("$"):
            _member(tree, result, key, value)
    for key, value in rest.items():
        _directive(tree, result, key, value)
    return result


def _member(tree: Structural | None, result: JSON, key: str, value: Any) -> None:
    node = tree.field(key) if tree else None
    if value is None:
        result.pop(key, None)
    elif isinstance(value, list) and node is not None and "merge" in node.patch_strategy:
        result[key] = _merge_list(node, result.get(key) or [], value)
    elif isinstance(value, dict):
        result[key] = strategic_merge(node, result.get(key), value)
    else:
        result[key] = _without_directives(value)


def _merge_list(node: Structural, items: list[Any], patch: list[Any]) -> list[Any]:
    key = node.patch_merge_key
    if any(isinstance(each, dict) and each == {_DIRECTIVE: "replace"} for each in patch):
        return [copy.deepcopy(each) for each in patch if each != {_DIRECTIVE: "replace"}]
    if not key:
        return [*items, *(each for each in patch if each not in items)]
    result = list(items)
    for each in patch:
        if not isinstance(each, dict) or key not in each:
            raise bad_request(f"map: {each} does not contain declared merge key: {key}")
        at = next((index for index, item in enumerate(result) if item.get(key) == each[key]), None)
        if each.get(_DIRECTIVE) == "delete":
            result = [item for item in result if item.get(key) != each[key]]
        elif at is None:
            result.append(strategic_merge(node.items, {}, each))
        else:
            result[at] = strategic_merge(node.items, result[at], each)
    return result


def _directive(tree: Structural | None, result: JSON, key: str, value: Any) -> None:
    if key.startswith(_DELETE_FROM):
        name = key.removeprefix(_DELETE_FROM)
        if isinstance(result.get(name), list):
            result[name] = [item for item in result[name] if item not in value]
    elif key.startswith(_ORDER):
        name = key.removeprefix(_ORDER)
        node = tree.field(name) if tree else None
        if isinstance(result.get(name), list):
            result[name] = _ordered(result[name], value, node.patch_merge_key if node else "")


def _ordered(items: list[Any], order: list[Any], key: str) -> list[Any]:
    """Items that `order` names in its order, the others after them in theirs."""
    names = [each.get(key) if key and isinstance(each, dict) else each for each in order]

    def rank(item: Any) -> int:
        name = item.get(key) if key and isinstance(item, dict) else item
        return names.index(name) if name in names else len(names)

    return sorted(items, key=rank)


def _without_directives(value: Any) -> Any:
    if isinstance(value, list):
        return [_without_directives(each) for each in value]
    if isinstance(value, dict):
        return {key: _without_directives(each) for key, each in value.items() if not key.startswith("$")}
    return value
