"""The operations on an object that one schema defines; the interface that the API server's handlers use.

Faults have the order of kube-apiserver: structure, embedded resources, list-map keys, then CEL rules unless an earlier
fault blocks them.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any

from kubesandbox.apiserver.schema import object_meta, typed
from kubesandbox.apiserver.schema.field_errors import Fault, FieldError, duplicate, go_json, invalid, required
from kubesandbox.apiserver.schema.rules import RuleSet
from kubesandbox.apiserver.schema.structural import SchemaNode, compile_node, drop_nulls, fill_defaults, prune_unknown
from kubesandbox.apiserver.schema.validate import MISSING, correlated_items, key_fields, validate_value

JSON = dict[str, Any]

# After one of these faults apiextensions-apiserver skips the CEL rules and adds _NOT_CHECKED.
_BLOCKING = frozenset({Fault.NOT_SUPPORTED, Fault.REQUIRED, Fault.TOO_LONG, Fault.TOO_MANY, Fault.TYPE_INVALID})
_NOT_CHECKED = (
    "some validation rules were not checked because the object was invalid; "
    "correct the existing errors to complete validation"
)


class Schema:
    """A compiled schema. `raw` is the OpenAPI v3 schema as written."""

    def __init__(self, raw: Mapping[str, Any]) -> None:
        self.raw = raw
        self.root: SchemaNode = compile_node(raw)

    @cached_property
    def rules(self) -> RuleSet:
        """The CEL rules, compiled on first use."""
        return RuleSet(self.root)

    @cached_property
    def has_defaults(self) -> bool:
        """Reports whether `default` can change an object. For custom schemas only: built-in ones are recursive."""
        return self.root.has_defaults()

    def coerce(self, obj: JSON) -> tuple[JSON, list[str]]:
        """Returns `obj` with its metadata decoded, and the paths of unknown fields in it. Raises DecodeError."""
        unknown: list[str] = []
        result = dict(obj)
        if result.get("metadata") is not None:
            result["metadata"] = _decode_metadata(result["metadata"], "metadata", unknown)
        for name, child in self.root.properties.items():
            if name in result:
                result[name] = _coerce_below(child, result[name], name, unknown)
        return result, unknown

    def prune(self, obj: JSON) -> tuple[JSON, tuple[str, ...]]:
        """Returns `obj` without unknown fields, and their paths, sorted. apiVersion, kind and metadata are kept."""
        return prune_unknown(self.root, obj)

    def drop_nulls(self, obj: JSON) -> JSON:
        """Returns `obj` without the nulls that count as absent."""
        result: JSON = drop_nulls(self.root, obj)
        return result

    def default(self, obj: JSON) -> JSON:
        """Returns `obj` with defaults, which also replace nulls that are not nullable."""
        result: JSON = fill_defaults(self.root, obj)
        return result

    def validate(self, obj: JSON, old: JSON | None = None) -> list[FieldError]:
        """Returns all faults of `obj`. With `old`, an update: unchanged parts pass, and transition rules run."""
        former: Any = MISSING if old is None else old
        errors = validate_value(self.root, obj, former)
        for name, child in self.root.properties.items():
            errors += _embedded_faults(child, obj.get(name), name)
        errors += _duplicate_faults(self.root, obj, former, "")
        if any(error.fault in _BLOCKING for error in errors):
            return [*errors, invalid("", None, _NOT_CHECKED)] if self.rules.any else errors
        return errors + self.rules.check(obj, former)


def compile_schema(raw: Mapping[str, Any]) -> Schema:
    """Compiles an OpenAPI v3 schema, which is slow: keep the result. Raises SchemaError."""
    return Schema(raw)


def strict_errors(unknown: tuple[str, ...]) -> tuple[str, ...]:
    """Returns the unknown fields as fieldValidation reports them: `unknown field "spec.frob"`."""
    return tuple(f'unknown field "{path}"' for path in unknown)


# -- Embedded resources: x-kubernetes-embedded-resource ----------------------------------------------------------------

_META = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"


def _coerce_below(node: SchemaNode | None, value: Any, path: str, unknown: list[str]) -> Any:
    """Returns a value with the metadata of embedded resources decoded; adds unknown paths to `unknown`."""
    if node is None:
        return value
    if isinstance(value, list):
        return [_coerce_below(node.items, item, f"{path}[{index}]", unknown) for index, item in enumerate(value)]
    if not isinstance(value, dict):
        return value
    result = {
        name: _coerce_below(node.member(name), member, f"{path}.{name}", unknown) for name, member in value.items()
    }
    if node.embedded and result.get("metadata") is not None:
        try:
            result["metadata"] = _decode_metadata(result["metadata"], f"{path}.metadata", unknown)
        except typed.DecodeError as error:
            # The root's metadata fails without a path, embedded metadata with one.
            raise typed.DecodeError(f"{path}.metadata: Invalid value: {go_json(result['metadata'])}: {error}") from None
    return result


def _decode_metadata(value: Any, path: str, unknown: list[str]) -> Any:
    """Returns an embedded object's metadata without fields it does not have; adds their paths to `unknown`."""
    shape = typed.shape_of(_META)
    assert shape is not None
    decoded, unknown_names = typed.decode_object(shape, value)
    unknown.extend(f"{path}.{name}" for name in unknown_names)
    return decoded


def _embedded_faults(node: SchemaNode | None, value: Any, path: str) -> Iterator[FieldError]:
    """Yields the faults of all resources embedded in a value."""
    if node is None:
        return
    if isinstance(value, list):
        for index, item in enumerate(value):
            yield from _embedded_faults(node.items, item, f"{path}[{index}]")
    elif isinstance(value, dict):
        if node.embedded:
            for key in ("apiVersion", "kind"):
                field_value = value.get(key)
                if key not in value:
                    yield required(f"{path}.{key}")
                elif not isinstance(field_value, str):
                    yield invalid(f"{path}.{key}", field_value, "must be a string")
                elif not field_value:
                    yield invalid(f"{path}.{key}", field_value, "must not be empty")
                elif key == "kind" and (why := object_meta.dns1035_label_faults(field_value.lower())):
                    yield invalid(
                        f"{path}.kind", field_value, f"may have mixed case, but should otherwise match: {why}"
                    )
                elif key == "apiVersion" and field_value.count("/") > 1:
                    yield invalid(f"{path}.apiVersion", field_value, f"unexpected GroupVersion string: {field_value}")
            if isinstance(metadata := value.get("metadata"), dict):
                yield from object_meta.metadata_faults(metadata, f"{path}.metadata")
                yield from object_meta.finalizer_faults(metadata.get("finalizers") or (), f"{path}.metadata.finalizers")
        for name, member in value.items():
            yield from _embedded_faults(node.member(name), member, node.member_path(path, name))


# -- Duplicates in lists of unique entries: x-kubernetes-list-type set and map -----------------------------------------


def _duplicate_faults(node: SchemaNode, value: Any, old: Any, path: str) -> Iterator[FieldError]:
    """Yields a fault for each duplicate in a set or list-map of `value`, deepest last; unchanged parts pass."""
    if old is not MISSING and old == value:
        return
    if isinstance(value, list):
        occurrences: Counter[str] = Counter()
        for index, item in enumerate(value if node.list_type != "atomic" else ()):
            identity = key_fields(node, item) if node.list_type == "map" else item
            text = json.dumps(identity, sort_keys=True)
            occurrences[text] += 1
            # Reported once, at the second occurrence, however often the entry occurs.
            if occurrences[text] == 2:
                yield duplicate(f"{path}[{index}]", identity)
        if node.items is not None:
            for index, (item, former) in enumerate(correlated_items(node, value, old)):
                yield from _duplicate_faults(node.items, item, former, f"{path}[{index}]")
    elif isinstance(value, dict):
        correlated = old if isinstance(old, dict) else {}
        for name, member in value.items():
            if (child := node.member(name)) is not None:
                former = correlated.get(name, MISSING)
                yield from _duplicate_faults(child, member, former, node.member_path(path, name))
