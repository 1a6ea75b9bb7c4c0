"""Validation of a value by its schema, in kube-openapi's words and order.

Checks types, limits, enums, patterns, formats and junctors. Validation ratcheting applies as Kubernetes 1.33 made it
general: parts that an update leaves unchanged are not validated.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from kubekit.lang.formats import is_format
from kubekit.lang.regexp import RegexpError, compile_regexp
from kubesandbox.apiserver.schema.field_errors import Fault, FieldError, invalid, required
from kubesandbox.apiserver.schema.structural import SchemaNode

MISSING: Any = object()

Errors = Iterator[FieldError]

_TYPE_NAMES = {type(None): "null", bool: "boolean", int: "integer", float: "number", str: "string", list: "array"}


def validate_value(node: SchemaNode, value: Any, old: Any = MISSING) -> list[FieldError]:
    """Returns all faults of `value`; their paths start at the value itself."""
    return list(_value_faults(node, value, old, ""))


def type_name(value: Any) -> str:
    """Returns the JSON schema type of `value`, as kube-openapi names it."""
    return _TYPE_NAMES.get(type(value), "object")


def _value_faults(node: SchemaNode, value: Any, old: Any, path: str) -> Errors:
    """Yields the faults of a value and of all below it, in the order of kube-openapi."""
    if old is not MISSING and old == value and type(old) is type(value):
        return
    actual = type_name(value)
    expected_type = "integer,string" if node.int_or_string else node.type
    fits = (
        not expected_type
        or (actual in ("integer", "string") if node.int_or_string else actual == expected_type)
        or (value is None and node.nullable)
        or (expected_type == "number" and actual == "integer")
        or (expected_type == "integer" and actual == "number" and float(value).is_integer())
    )
    if not fits:
        why = f'{path} in body must be of type {expected_type}: "{actual}"'
        yield FieldError(Fault.TYPE_INVALID, path, actual, why)
    if value is None:
        if not node.nullable:
            yield from _keyword_faults("enum", node.raw, value, path)
        return
    yield from _junctor_faults(node, value, path)
    has_faults = False
    for keyword, types in _KEYWORDS.items() if not _KEYWORDS.keys().isdisjoint(node.raw) else ():
        # kube-openapi stops at the first fault among a string's own keywords.
        if keyword in node.raw and actual in types and not (has_faults and keyword in _TEXT_KEYWORDS):
            for fault in _keyword_faults(keyword, node.raw, value, path):
                has_faults = True
                yield fault
    if isinstance(value, list) and node.items is not None:
        for index, (item, former) in enumerate(correlated_items(node, value, old)):
            yield from _value_faults(node.items, item, former, f"{path}[{index}]")
    elif isinstance(value, dict):
        prefix = f"{path}." if path else ""
        for name in node.required:
            if name not in value:
                yield required(f"{prefix}{name}")
        correlated = old if isinstance(old, dict) and node.map_type != "atomic" else {}
        for name, member in value.items():
            child = node.member(name)
            if child is not None:
                yield from _value_faults(child, member, correlated.get(name, MISSING), f"{prefix}{name}")


def correlated_items(node: SchemaNode, value: list[Any], old: Any) -> Iterator[tuple[Any, Any]]:
    """Yields each item with the one it replaces: by key in list-maps, MISSING in other lists."""
    former: dict[str, Any] = {}
    if node.list_type == "map" and isinstance(old, list):
        for item in old:
            former.setdefault(_map_key(node, item), item)
    for item in value:
        yield item, former.get(_map_key(node, item), MISSING) if former else MISSING


def _map_key(node: SchemaNode, item: Any) -> str:
    return json.dumps(key_fields(node, item), sort_keys=True)


def key_fields(node: SchemaNode, item: Any) -> dict[str, Any]:
    """Returns the key members of a list-map's item that are present or have a default: its identity."""
    if not isinstance(item, dict):
        return {}
    keys = {name: item[name] for name in node.list_keys if name in item}
    properties = node.items.properties if node.items else {}
    for name in node.list_keys:
        if name not in keys and name in properties and properties[name].has_default:
            keys[name] = properties[name].default
    return keys


# --- junctors -------------------------------------------------------------------------------------------------------


def _junctor_faults(node: SchemaNode, value: Any, path: str) -> Errors:
    """Yields the faults by anyOf, oneOf, allOf and not."""
    if node.any_of and not any(_fits_schema(child, value, path) for child in node.any_of):
        yield _junctor_fault(path, "must validate at least one schema (anyOf)")
        yield from _faults_of_closest(node.any_of, value, path)
    if node.one_of:
        fitting = sum(_fits_schema(child, value, path) for child in node.one_of)
        if fitting != 1:
            outcome = "Found none valid" if not fitting else f"Found {fitting} valid alternatives"
            yield _junctor_fault(path, f"must validate one and only one schema (oneOf). {outcome}")
        if not fitting:
            yield from _faults_of_closest(node.one_of, value, path)
    if node.all_of:
        inner = [error for child in node.all_of for error in _value_faults(child, value, MISSING, path)]
        if inner:
            yield _junctor_fault(path, "must validate all the schemas (allOf)")
            yield from inner
    if node.not_ is not None and _fits_schema(node.not_, value, path):
        yield _junctor_fault(path, "must not validate the schema (not)")


def _fits_schema(node: SchemaNode, value: Any, path: str) -> bool:
    return next(_value_faults(node, value, MISSING, path), None) is None


def _faults_of_closest(nodes: tuple[SchemaNode, ...], value: Any, path: str) -> Errors:
    """Yields the faults of the alternative that covers most of the value: kube-openapi calls it the best match."""
    yield from _value_faults(max(nodes, key=lambda node: _count_values(node, value)), value, MISSING, path)


def _count_values(node: SchemaNode, value: Any) -> int:
    """Returns the number of values within `value` for which a schema has a node."""
    if isinstance(value, list):
        return 1 + sum(_count_values(node.items, item) for item in value if node.items is not None)
    if not isinstance(value, dict):
        return 1
    members = ((node.member(name), member) for name, member in value.items())
    return 1 + sum(_count_values(child, member) for child, member in members if child is not None)


def _junctor_fault(path: str, subject: str) -> FieldError:
    # kube-openapi sets no field for a junctor's fault: the path is in the text alone.
    return invalid("", "", f'"{path}" {subject}')


# --- keywords -------------------------------------------------------------------------------------------------------

_NUMBERS = ("integer", "number")
# The types that a keyword applies to, in kube-openapi's order: strings, formats, numbers, lists, enum, objects.
_KEYWORDS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("maxLength", "minLength", "pattern", "format"), ("string",)),
    **dict.fromkeys(("multipleOf", "maximum", "minimum"), _NUMBERS),
    **dict.fromkeys(("minItems", "maxItems"), ("array",)),
    "enum": (*_NUMBERS, "string", "array", "object", "boolean"),
    **dict.fromkeys(("minProperties", "maxProperties"), ("object",)),
}
_TEXT_KEYWORDS = frozenset({"maxLength", "minLength", "pattern"})


def _keyword_faults(keyword: str, raw: Mapping[str, Any], value: Any, path: str) -> Errors:
    """Yields the fault of a value by one keyword of its schema, if it has one."""
    limit: Any = raw.get(keyword)
    subject, shown = "", value
    match keyword:
        case "maxLength" if len(value) > limit:
            why = f"may not be more than {limit} {'byte' if limit == 1 else 'bytes'}"
            yield FieldError(Fault.TOO_LONG, path, value, why)
        case "minLength" if len(value) < limit:
            subject = f"should be at least {limit} chars long"
        case "pattern":
            try:
                matches = compile_regexp(limit).matches(value)
            except (RegexpError, UnicodeEncodeError):
                # Neither a definition nor a value can have these, if they came as JSON through this server.
                matches = False
            subject = "" if matches else f"should match '{limit}'"
        case "format" if not is_format(limit, value):
            why = f"{path} in body must be of type {limit}: {json.dumps(value, ensure_ascii=False)}"
            yield FieldError(Fault.TYPE_INVALID, path, value, why)
        case "multipleOf" if value % limit:
            subject = f"should be a multiple of {_number_text(limit)}"
        case "maximum" if value > limit or (raw.get("exclusiveMaximum") is True and value == limit):
            words = "less than" if raw.get("exclusiveMaximum") is True else "less than or equal to"
            subject = f"should be {words} {_number_text(limit)}"
        case "minimum" if value < limit or (raw.get("exclusiveMinimum") is True and value == limit):
            words = "greater than" if raw.get("exclusiveMinimum") is True else "greater than or equal to"
            subject = f"should be {words} {_number_text(limit)}"
        case "minItems" | "minProperties" if len(value) < limit:
            subject, shown = f"should have at least {limit} {keyword.removeprefix('min').lower()}", len(value)
        case "maxItems" | "maxProperties" if len(value) > limit:
            why = f"must have at most {limit} {'item' if limit == 1 else 'items'}"
            yield FieldError(Fault.TOO_MANY, path, len(value), why)
        case "enum" if limit and not any(item == value and type(item) is type(value) for item in limit):
            texts = (item if isinstance(item, str) else json.dumps(item) for item in limit)
            listed = ", ".join(json.dumps(text, ensure_ascii=False) for text in texts)
            yield FieldError(Fault.NOT_SUPPORTED, path, value, f"supported values: {listed}")
    if subject:
        yield invalid(path, shown, f"{path} in body {subject}")


def _number_text(value: float) -> str:
    return str(int(value)) if float(value).is_integer() else repr(value)
