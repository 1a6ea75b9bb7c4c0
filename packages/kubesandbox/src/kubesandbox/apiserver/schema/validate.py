"""Validation of a value by its schema, in kube-openapi's words and order.

Checks types, limits, enums, patterns, formats and junctors. In: a compiled schema, a value, and on update the value
that it replaces. Out: FieldErrors. Validation ratcheting applies as Kubernetes 1.33 made it general: parts that an
update leaves unchanged are not validated.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from kubekit.lang.formats import is_format
from kubekit.lang.regexp import RegexpError, compile_regexp
from kubesandbox.apiserver.schema.field_errors import Fault, FieldError, invalid, required
from kubesandbox.apiserver.schema.structural import SchemaNode

MISSING: Any = object()

Errors = Iterator[FieldError]

_TYPE_NAMES = {
    type(None): "null",
    bool: "boolean",
    int: "integer",
    float: "number",
    str: "string",
    list: "array",
}


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
    yield from _type_faults(node, value, path)
    if value is None:
        if not node.nullable:
            yield from _enum_faults(node.raw, value, path)
        return
    yield from _junctor_faults(node, value, path)
    yield from _limit_faults(node.raw, value, path)
    if isinstance(value, list):
        yield from _item_faults(node, value, old, path)
    elif isinstance(value, dict):
        yield from _member_faults(node, value, old, path)


def _type_faults(node: SchemaNode, value: Any, path: str) -> Errors:
    """Yields a fault if a value has another JSON type than its schema."""
    actual = type_name(value)
    if node.int_or_string:
        if actual not in ("integer", "string") and not (actual == "null" and node.nullable):
            yield _type_fault(path, actual, "integer,string")
        return
    expected_type = node.type
    if not expected_type or actual == expected_type or (value is None and node.nullable):
        return
    if expected_type == "number" and actual == "integer":
        return
    if expected_type == "integer" and actual == "number" and float(value).is_integer():
        return
    yield _type_fault(path, actual, expected_type)


def _type_fault(path: str, actual: str, expected_type: str) -> FieldError:
    return FieldError(
        Fault.TYPE_INVALID, path, actual, f'{_name_in_body(path)} must be of type {expected_type}: "{actual}"'
    )


def _name_in_body(path: str) -> str:
    return f"{path} in body"


def _limit_faults(raw: Mapping[str, Any], value: Any, path: str) -> Errors:
    """Yields the faults by the keywords for numbers, texts, lists and objects."""
    if _KEYWORDS.isdisjoint(raw):
        return
    kind = type_name(value)
    has_faults = False
    for keyword, applies, check in _LIMITS:
        # kube-openapi stops at the first fault among a string's own keywords.
        if keyword in raw and kind in applies and not (has_faults and keyword in _TEXT_LIMITS):
            faults = list(check(raw, value, path))
            yield from faults
            has_faults = has_faults or bool(faults)


def _member_faults(node: SchemaNode, value: dict[str, Any], old: Any, path: str) -> Errors:
    """Yields the required members that are absent, and the faults of those that are there."""
    for name in node.required:
        if name not in value:
            yield required(_join_path(path, name))
    correlated = old if isinstance(old, dict) and node.map_type != "atomic" else {}
    for name, member in value.items():
        child = node.member(name)
        if child is not None:
            yield from _value_faults(child, member, correlated.get(name, MISSING), _join_path(path, name))


def _item_faults(node: SchemaNode, value: list[Any], old: Any, path: str) -> Errors:
    if node.items is None:
        return
    for index, (item, former) in enumerate(correlated_items(node, value, old)):
        yield from _value_faults(node.items, item, former, f"{path}[{index}]")


def correlated_items(node: SchemaNode, value: list[Any], old: Any) -> Iterator[tuple[Any, Any]]:
    """Yields each item with the one it replaces: by key in list-maps, MISSING in other lists."""
    former: dict[str, Any] = {}
    if node.list_type == "map" and isinstance(old, list):
        for item in old:
            former.setdefault(map_key(node, item), item)
    for item in value:
        yield item, former.get(map_key(node, item), MISSING) if former else MISSING


def map_key(node: SchemaNode, item: Any) -> str:
    """Returns the identity of a list-map's item: the values of its keys, defaults filled in, as comparable text."""
    return json.dumps(key_fields(node, item), sort_keys=True)


def key_fields(node: SchemaNode, item: Any) -> dict[str, Any]:
    """Returns the key members of `item` that are present or have a default."""
    if not isinstance(item, dict):
        return {}
    keys = {name: item[name] for name in node.list_keys if name in item}
    properties = node.items.properties if node.items else {}
    for name in node.list_keys:
        if name not in keys and name in properties and properties[name].has_default:
            keys[name] = properties[name].default
    return keys


def _join_path(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


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


# --- one keyword each -----------------------------------------------------------------------------------------------


def _enum_faults(raw: Mapping[str, Any], value: Any, path: str) -> Errors:
    """Yields a fault if the value is none of `enum`."""
    allowed = raw.get("enum")
    if allowed and not any(item == value and type(item) is type(value) for item in allowed):
        words = [item if isinstance(item, str) else json.dumps(item) for item in allowed]
        detail = "supported values: " + ", ".join(json.dumps(word, ensure_ascii=False) for word in words)
        yield FieldError(Fault.NOT_SUPPORTED, path, value, detail)


def _invalid_fault(path: str, value: Any, subject: str) -> FieldError:
    return invalid(path, value, f"{_name_in_body(path)} {subject}")


def _number_text(value: float) -> str:
    return str(int(value)) if float(value).is_integer() else repr(value)


def _minimum_faults(raw: Mapping[str, Any], value: Any, path: str) -> Errors:
    limit, exclusive = raw["minimum"], raw.get("exclusiveMinimum") is True
    if value < limit or (exclusive and value == limit):
        words = "greater than" if exclusive else "greater than or equal to"
        yield _invalid_fault(path, value, f"should be {words} {_number_text(limit)}")


def _maximum_faults(raw: Mapping[str, Any], value: Any, path: str) -> Errors:
    limit, exclusive = raw["maximum"], raw.get("exclusiveMaximum") is True
    if value > limit or (exclusive and value == limit):
        words = "less than" if exclusive else "less than or equal to"
        yield _invalid_fault(path, value, f"should be {words} {_number_text(limit)}")


def _multiple_of(raw: Mapping[str, Any], value: Any, path: str) -> Errors:
    if value % raw["multipleOf"]:
        yield _invalid_fault(path, value, f"should be a multiple of {_number_text(raw['multipleOf'])}")


def _min_length(raw: Mapping[str, Any], value: Any, path: str) -> Errors:
    if len(value) < raw["minLength"]:
        yield _invalid_fault(path, value, f"should be at least {raw['minLength']} chars long")


def _max_length(raw: Mapping[str, Any], value: Any, path: str) -> Errors:
    """Yields a fault if the text is longer than `maxLength`."""
    limit = raw["maxLength"]
    if len(value) > limit:
        yield FieldError(
            Fault.TOO_LONG, path, value, f"may not be more than {limit} {'byte' if limit == 1 else 'bytes'}"
        )


def _pattern_faults(raw: Mapping[str, Any], value: Any, path: str) -> Errors:
    if not _has_match(raw["pattern"], value):
        yield _invalid_fault(path, value, f"should match '{raw['pattern']}'")


def _has_match(pattern: str, value: str) -> bool:
    """Reports whether the pattern matches anywhere in the value."""
    try:
        return compile_regexp(pattern).matches(value)
    except (RegexpError, UnicodeEncodeError):
        # Neither a definition nor a value can have these, if they came as JSON through this server.
        return False


def _format_faults(raw: Mapping[str, Any], value: Any, path: str) -> Errors:
    """Yields a fault if the value does not have its `format`."""
    format_name = raw["format"]
    if not is_format(format_name, value):
        value_text = json.dumps(value, ensure_ascii=False)
        yield FieldError(
            Fault.TYPE_INVALID, path, value, f"{_name_in_body(path)} must be of type {format_name}: {value_text}"
        )


def _min_items(raw: Mapping[str, Any], value: Any, path: str) -> Errors:
    if len(value) < raw["minItems"]:
        yield _invalid_fault(path, len(value), f"should have at least {raw['minItems']} items")


def _max_items(raw: Mapping[str, Any], value: Any, path: str) -> Errors:
    if len(value) > raw["maxItems"]:
        yield _too_many(path, len(value), raw["maxItems"])


def _min_properties(raw: Mapping[str, Any], value: Any, path: str) -> Errors:
    if len(value) < raw["minProperties"]:
        yield _invalid_fault(path, len(value), f"should have at least {raw['minProperties']} properties")


def _max_properties(raw: Mapping[str, Any], value: Any, path: str) -> Errors:
    if len(value) > raw["maxProperties"]:
        yield _too_many(path, len(value), raw["maxProperties"])


def _too_many(path: str, count: int, limit: int) -> FieldError:
    return FieldError(Fault.TOO_MANY, path, count, f"must have at most {limit} {'item' if limit == 1 else 'items'}")


_TEXT_LIMITS = frozenset({"maxLength", "minLength", "pattern"})
Check = Callable[[Mapping[str, Any], Any, str], Errors]
_NUMBERS = frozenset({"integer", "number"})
_TEXT, _LIST, _OBJECT = frozenset({"string"}), frozenset({"array"}), frozenset({"object"})
_ANY = _NUMBERS | _TEXT | _LIST | _OBJECT | {"boolean"}

# kube-openapi's order: strings, formats, numbers, lists, enum, objects.
_LIMITS: tuple[tuple[str, frozenset[str], Check], ...] = (
    ("maxLength", _TEXT, _max_length),
    ("minLength", _TEXT, _min_length),
    ("pattern", _TEXT, _pattern_faults),
    ("format", _TEXT, _format_faults),
    ("multipleOf", _NUMBERS, _multiple_of),
    ("maximum", _NUMBERS, _maximum_faults),
    ("minimum", _NUMBERS, _minimum_faults),
    ("minItems", _LIST, _min_items),
    ("maxItems", _LIST, _max_items),
    ("enum", _ANY, _enum_faults),
    ("minProperties", _OBJECT, _min_properties),
    ("maxProperties", _OBJECT, _max_properties),
)
_KEYWORDS = frozenset(keyword for keyword, _, _ in _LIMITS)
