"""Compiled structural schemas: one node per field, with all keywords looked up once instead of on every request.

In: an OpenAPI v3 schema of a CRD or of the table of built-in kinds. Out: a tree of `SchemaNode` nodes that pruning,
defaulting, validation and server-side apply walk. The merge of server-side apply reads only `type`, `list_type`,
`list_keys`, `map_type`, `properties`, `additional` and `items`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from kubesandbox.apiserver.json_copy import copy_json

Resolve = Callable[[str], Mapping[str, Any]]

# Keywords next to a `$ref` that belong to the field; the referenced type's node is shared.
_FIELD_KEYS = (
    "default",
    "x-kubernetes-patch-merge-key",
    "x-kubernetes-patch-strategy",
    "x-kubernetes-map-type",
    "nullable",
)


class SchemaError(ValueError):
    """A schema that cannot be used; the message names the place."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """An entry of `x-kubernetes-validations`."""

    rule: str
    message: str = ""
    message_expression: str = ""
    reason: str = "FieldValueInvalid"
    field_path: str = ""
    optional_old_self: bool = False


@dataclass(slots=True, kw_only=True)
class SchemaNode:
    """A node of a compiled schema. `type` is "" if any type is allowed (int-or-string, preserved unknown fields)."""

    type: str = ""
    properties: dict[str, SchemaNode] = field(default_factory=dict)
    additional: SchemaNode | None = None  # the type of a map's values
    additional_any: bool = False  # additionalProperties: true
    items: SchemaNode | None = None
    nullable: bool = False
    preserve_unknown: bool = False  # x-kubernetes-preserve-unknown-fields
    embedded: bool = False  # x-kubernetes-embedded-resource
    int_or_string: bool = False
    list_type: str = "atomic"  # atomic, set or map
    list_keys: tuple[str, ...] = ()
    map_type: str = "granular"  # granular or atomic
    has_default: bool = False  # null may be the default
    default: Any = None
    required: tuple[str, ...] = ()
    rules: tuple[Rule, ...] = ()  # x-kubernetes-validations
    all_of: tuple[SchemaNode, ...] = ()
    any_of: tuple[SchemaNode, ...] = ()
    one_of: tuple[SchemaNode, ...] = ()
    not_: SchemaNode | None = None
    raw: Mapping[str, Any] = field(default_factory=dict)  # as written: limits, enum, pattern, format, description
    patch_merge_key: str = ""  # strategic merge patch of built-in kinds
    patch_strategy: str = ""

    def member(self, name: str) -> SchemaNode | None:
        """Returns the node of member `name`: a property, otherwise the map's value type; None if unknown."""
        return self.properties.get(name) or self.additional

    def member_path(self, path: str, name: str) -> str:
        """Returns the path of member `name`: a property is written with a dot, a map's key in brackets."""
        return name if not path else f"{path}.{name}" if name in self.properties else f"{path}[{name}]"

    def has_defaults(self) -> bool:
        """Returns whether this node or any below it has a default."""
        below = (*self.properties.values(), *filter(None, (self.additional, self.items)))
        return self.has_default or any(node.has_defaults() for node in below)


def compile_node(raw: Mapping[str, Any]) -> SchemaNode:
    """Compiles `raw`, the schema of a custom resource. Raises SchemaError for a `$ref`, which these cannot have."""
    return Compiler(None).compile_schema_node(raw)


class Compiler:
    """A compiler that shares one node per `$ref`, so that a recursive type compiles to a cycle instead of for ever.

    `resolve` returns the schema of a `$ref`; None if the schema has no references.
    """

    def __init__(self, resolve: Resolve | None) -> None:
        self._resolve = resolve
        self._referenced: dict[str, SchemaNode] = {}

    def compile_schema_node(self, raw: Mapping[str, Any]) -> SchemaNode:
        """Returns the node of a schema."""
        ref, all_of = str(raw.get("$ref", "")), raw.get("allOf") or []
        # The form of OpenAPI v3: an allOf of one, with siblings.
        if not ref and len(all_of) == 1 and "$ref" in all_of[0]:
            ref = str(all_of[0]["$ref"])
        if not ref:
            return self._fill_node(SchemaNode(), raw)
        if self._resolve is None:
            raise SchemaError(f"{ref}: references are not allowed here")
        # A reference is compiled once; its siblings are set on a copy.
        shared = self._referenced.get(ref)
        if shared is None:
            shared = self._referenced[ref] = SchemaNode()
            self._fill_node(shared, self._resolve(ref))
        own_keys = {key: raw[key] for key in _FIELD_KEYS if key in raw}
        return replace(shared, **_field_settings(own_keys)) if own_keys else shared

    def _fill_node(self, node: SchemaNode, raw: Mapping[str, Any]) -> SchemaNode:
        """Sets the fields of `node` from a schema, and compiles the schemas below it."""
        node.raw = raw
        node.type = raw.get("type", "")
        node.properties = {
            name: self.compile_schema_node(child) for name, child in (raw.get("properties") or {}).items()
        }
        additional = raw.get("additionalProperties")
        node.additional = self.compile_schema_node(additional) if isinstance(additional, dict) else None
        node.additional_any = additional is True
        node.items = self.compile_schema_node(raw["items"]) if isinstance(raw.get("items"), dict) else None
        node.preserve_unknown = bool(raw.get("x-kubernetes-preserve-unknown-fields"))
        node.embedded = bool(raw.get("x-kubernetes-embedded-resource"))
        node.int_or_string = bool(raw.get("x-kubernetes-int-or-string")) or raw.get("format") == "int-or-string"
        if node.int_or_string:
            node.type = ""
        node.list_type = raw.get("x-kubernetes-list-type") or "atomic"
        node.list_keys = tuple(raw.get("x-kubernetes-list-map-keys") or ())
        node.required = tuple(raw.get("required") or ())
        node.rules = tuple(
            Rule(
                rule=rule.get("rule", ""),
                message=rule.get("message") or "",
                message_expression=rule.get("messageExpression") or "",
                reason=rule.get("reason") or "FieldValueInvalid",
                field_path=rule.get("fieldPath") or "",
                optional_old_self=bool(rule.get("optionalOldSelf")),
            )
            for rule in raw.get("x-kubernetes-validations") or ()
        )
        node.all_of = tuple(map(self.compile_schema_node, raw.get("allOf") or ()))
        node.any_of = () if node.int_or_string else tuple(map(self.compile_schema_node, raw.get("anyOf") or ()))
        node.one_of = tuple(map(self.compile_schema_node, raw.get("oneOf") or ()))
        node.not_ = self.compile_schema_node(raw["not"]) if isinstance(raw.get("not"), dict) else None
        for name, value in _field_settings(raw).items():
            setattr(node, name, value)
        return node


def _field_settings(raw: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the settings that a field has next to its type: default, nullable, list and map type."""
    settings: dict[str, Any] = {}
    if "default" in raw:
        settings |= {"has_default": True, "default": raw["default"]}
    if "nullable" in raw:
        settings["nullable"] = bool(raw["nullable"])
    for key, name in (
        ("x-kubernetes-map-type", "map_type"),
        ("x-kubernetes-patch-merge-key", "patch_merge_key"),
        ("x-kubernetes-patch-strategy", "patch_strategy"),
    ):
        if raw.get(key):
            settings[name] = raw[key]
    return settings


# -- Pruning and defaulting, as apiextensions-apiserver does both ------------------------------------------------------

# Every resource has these at its root, an embedded resource too, whether or not its schema mentions them.
RESOURCE_FIELDS = frozenset({"apiVersion", "kind", "metadata"})


def prune_unknown(node: SchemaNode, value: Any, *, is_resource: bool = True) -> tuple[Any, tuple[str, ...]]:
    """Returns `value` without the fields that `node` does not know, and the paths of those, sorted."""
    dropped: list[str] = []
    pruned = _prune_below(node, value, "", dropped, is_resource=is_resource)
    return pruned, tuple(sorted(dropped))


def _prune_below(node: SchemaNode, value: Any, path: str, dropped: list[str], *, is_resource: bool) -> Any:
    """Returns a value without unknown fields, whose paths are added to `dropped`."""
    if isinstance(value, list) and node.items is not None:
        items, embedded = node.items, node.items.embedded
        return [
            _prune_below(items, item, f"{path}[{index}]", dropped, is_resource=embedded)
            for index, item in enumerate(value)
        ]
    if not isinstance(value, dict) or node.additional_any:
        return value
    kept_members = {}
    for key, child in value.items():
        member_path, member = f"{path}.{key}" if path else key, node.member(key)
        if is_resource and key in RESOURCE_FIELDS:
            kept_members[key] = child
        elif member is not None:
            kept_members[key] = _prune_below(member, child, member_path, dropped, is_resource=member.embedded)
        elif node.preserve_unknown:
            kept_members[key] = child
        else:
            dropped.append(member_path)
    return kept_members


def drop_nulls(node: SchemaNode | None, value: Any) -> Any:
    """Returns `value` without members that are null although not nullable, and that have no default to replace them."""
    if node is None:
        return value
    if isinstance(value, list):
        return [drop_nulls(node.items, item) for item in value]
    if not isinstance(value, dict):
        return value
    result = {}
    for name, member in value.items():
        child = node.member(name)
        if member is not None or child is None or child.nullable or child.has_default:
            result[name] = drop_nulls(child, member)
    return result


def fill_defaults(node: SchemaNode, value: Any) -> Any:
    """Returns `value` with the schema's defaults for absent fields and for nulls that are not nullable."""
    if isinstance(value, list) and node.items is not None:
        item_node = node.items
        return [fill_defaults(item_node, _default_for_null(item_node, item)) for item in value]
    if not isinstance(value, dict):
        return value
    result = dict(value)
    for name, child in node.properties.items():
        absent = name not in result or (result[name] is None and not child.nullable)
        if child.has_default and absent:
            result[name] = copy_json(child.default)
    for name, member in result.items():
        field_node = node.member(name)
        if field_node is not None:
            result[name] = fill_defaults(field_node, _default_for_null(field_node, member))
    return result


def _default_for_null(node: SchemaNode, value: Any) -> Any:
    """Returns the default for a null list item or map value that is not nullable, else the value."""
    return copy_json(node.default) if value is None and node.has_default and not node.nullable else value
