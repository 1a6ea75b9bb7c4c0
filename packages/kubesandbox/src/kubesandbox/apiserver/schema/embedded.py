"""Decoding and validation of embedded resources: `x-kubernetes-embedded-resource`.

In: a compiled schema and an object. Out of `coerce`: the object with all metadata decoded as ObjectMeta, and the paths
of unknown fields; raises DecodeError. Out of `faults`: the faults of embedded resources.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kubesandbox.apiserver.schema import object_meta, typed
from kubesandbox.apiserver.schema.field_errors import FieldError, go_json, invalid, required
from kubesandbox.apiserver.schema.name_rules import dns1035_label_faults
from kubesandbox.apiserver.schema.structural import SchemaNode
from kubesandbox.apiserver.schema.typed import DecodeError

JSON = dict[str, Any]
_META = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"


def coerce_metadata(node: SchemaNode, obj: JSON) -> tuple[JSON, list[str]]:
    """Returns the object with all metadata decoded, its own and embedded, and unknown paths. Raises DecodeError."""
    unknown: list[str] = []
    result = dict(obj)
    if result.get("metadata") is not None:
        result["metadata"] = _decode_metadata(result["metadata"], "metadata", unknown)
    for name, child in node.properties.items():
        if name in result:
            result[name] = _coerce_below(child, result[name], name, unknown)
    return result, unknown


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
        except DecodeError as error:
            # The root's metadata fails without a path, embedded metadata with one.
            raise DecodeError(f"{path}.metadata: Invalid value: {go_json(result['metadata'])}: {error}") from None
    return result


def _decode_metadata(value: Any, path: str, unknown: list[str]) -> Any:
    """Returns an embedded object's metadata without fields it does not have; adds their paths to `unknown`."""
    shape = typed.shape_of(_META)
    assert shape is not None
    decoded, unknown_names = typed.decode_object(shape, value)
    unknown.extend(f"{path}.{name}" for name in unknown_names)
    return decoded


def embedded_faults(node: SchemaNode, obj: JSON) -> list[FieldError]:
    """Returns the faults of the resources embedded in `obj`."""
    return [fault for name, child in node.properties.items() for fault in _faults_below(child, obj.get(name), name)]


def _faults_below(node: SchemaNode | None, value: Any, path: str) -> Iterator[FieldError]:
    """Yields the faults of all resources embedded in a value."""
    if node is None:
        return
    if isinstance(value, list):
        for index, item in enumerate(value):
            yield from _faults_below(node.items, item, f"{path}[{index}]")
    elif isinstance(value, dict):
        if node.embedded:
            yield from _resource_faults(value, path)
        for name, member in value.items():
            field_path = f"{path}.{name}" if name in node.properties else f"{path}[{name}]"
            yield from _faults_below(node.member(name), member, field_path)


def _resource_faults(value: JSON, path: str) -> Iterator[FieldError]:
    """Yields the faults of one embedded resource: apiVersion, kind and metadata."""
    for key in ("apiVersion", "kind"):
        field_value = value.get(key)
        if key not in value:
            yield required(f"{path}.{key}")
        elif not isinstance(field_value, str):
            yield invalid(f"{path}.{key}", field_value, "must be a string")
        elif not field_value:
            yield invalid(f"{path}.{key}", field_value, "must not be empty")
        elif key == "kind" and (why := dns1035_label_faults(field_value.lower())):
            yield invalid(f"{path}.kind", field_value, f"may have mixed case, but should otherwise match: {why}")
        elif key == "apiVersion" and field_value.count("/") > 1:
            yield invalid(f"{path}.apiVersion", field_value, f"unexpected GroupVersion string: {field_value}")
    if isinstance(metadata := value.get("metadata"), dict):
        yield from object_meta.metadata_faults(metadata, f"{path}.metadata")
        yield from object_meta.finalizer_faults(metadata.get("finalizers") or (), f"{path}.metadata.finalizers")
