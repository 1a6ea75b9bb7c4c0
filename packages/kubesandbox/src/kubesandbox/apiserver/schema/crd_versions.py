"""Validation of a CustomResourceDefinition's versions: schemas, subresources, printer columns and selectable fields.

In: the `spec` of a definition. Out: FieldErrors in the words and with the paths of apiextensions-apiserver.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from kubekit.api import codec
from kubesandbox.apiserver.schema.crd_costs import cost_faults
from kubesandbox.apiserver.schema.crd_openapi import can_be_structural, child_schemas, openapi_faults
from kubesandbox.apiserver.schema.crd_rules import rule_faults
from kubesandbox.apiserver.schema.crd_structure import structural
from kubesandbox.apiserver.schema.field_errors import Fault, FieldError, Verbatim, forbidden, go_json, invalid, required
from kubesandbox.apiserver.schema.name_rules import dns1035_label_faults
from kubesandbox.apiserver.schema.pruning import prune_unknown
from kubesandbox.apiserver.schema.structural import SchemaError, compile_node
from kubesandbox.apiserver.schema.validate import validate_value

JSON = dict[str, Any]
Errors = Iterator[FieldError]

# The server's internal type keeps what all versions have in common in the definition's spec; faults get that path.
_SHARED_PATHS = {
    "schema": "spec.validation",
    "subresources": "spec.subresources",
    "additionalPrinterColumns": "spec.additionalPrinterColumns",
    "selectableFields": "spec.selectableFields",
}
# Fields of a version in the server's internal Go type: Go's name, the JSON key, and the value if the key is absent.
_GO_FIELDS = (
    ("Name", "name", ""),
    ("Served", "served", False),
    ("Storage", "storage", False),
    ("Deprecated", "deprecated", False),
    ("DeprecationWarning", "deprecationWarning", None),
)


def version_faults(spec: JSON) -> Errors:
    """Yields the faults of all versions: names, schemas, the storage version, and the parts of each version."""
    listed = spec.get("versions") or []
    names = [version.get("name", "") for version in listed]
    for index, version in enumerate(listed):
        if faults := dns1035_label_faults(names[index]):
            yield invalid(f"spec.versions[{index}].name", names[index], faults)
        yield from _deprecation_faults(version, f"spec.versions[{index}].deprecationWarning")
        if _schema_of(version) is None:
            yield required(f"spec.versions[{index}].schema.openAPIV3Schema")
    if names and (faults := dns1035_label_faults(names[0])):
        yield invalid("spec.version", names[0], faults)
    if len(set(names)) != len(names):
        yield invalid("spec.versions", _versions_as_go(listed), "must contain unique version names")
    if sum(bool(version.get("storage")) for version in listed) != 1:
        detail = "must have exactly one version marked as storage version"
        yield invalid("spec.versions", _versions_as_go(listed), detail)
    yield from _part_faults(listed)


def _schema_of(version: JSON) -> Any:
    """Returns the openAPIV3Schema of a version, or None."""
    return (version.get("schema") or {}).get("openAPIV3Schema")


def _part_faults(versions: list[JSON]) -> Errors:
    """Yields the faults of the versions' parts; a part that all share is reported once, without the version."""
    shared = {key for key in _SHARED_PATHS if versions and _are_alike([version.get(key) for version in versions])}
    for index, version in enumerate(versions):
        for key in _SHARED_PATHS:
            if version.get(key) and (key not in shared or index == 0):
                place = _SHARED_PATHS[key] if key in shared else f"spec.versions[{index}].{key}"
                yield from _faults_of_part(key, version, place)
        if version.get("selectableFields") and "schema" in shared and "selectableFields" not in shared:
            detail = "may only be set when `version.schema.openAPIV3Schema` is not included"
            yield invalid(f"spec.versions[{index}].selectableFields", "", detail)


def _are_alike(values: list[Any]) -> bool:
    """Returns whether all values are equal and not empty."""
    return bool(values[0]) and all(value == values[0] for value in values)


def _faults_of_part(key: str, version: JSON, place: str) -> Errors:
    """Yields the faults of one part of a version: schema, subresources, columns, selectable fields."""
    value = version[key]
    if key == "schema":
        if (schema := _schema_of(version)) is not None:
            yield from _known_faults(_CachedSchema(codec.encode(schema), schema), f"{place}.openAPIV3Schema")
    elif key == "subresources":
        yield from _scale_faults(value.get("scale"), f"{place}.scale")
    elif key == "additionalPrinterColumns":
        for index, column in enumerate(value):
            yield from _column_faults(column, f"{place}[{index}]")
    else:
        for index, field in enumerate(value):
            yield from _selectable_faults(
                field.get("jsonPath") or "", _schema_of(version) or {}, f"{place}[{index}].jsonPath"
            )


def _versions_as_go(versions: list[JSON]) -> Verbatim:
    """Returns versions as Go prints its internal type, without the parts that it keeps in the definition's spec."""
    parts = ("Schema", "Subresources", "AdditionalPrinterColumns", "SelectableFields")
    return Verbatim(
        go_json(
            [
                {go: version.get(key, zero) for go, key, zero in _GO_FIELDS} | dict.fromkeys(parts)
                for version in versions
            ]
        )
    )


def _deprecation_faults(version: JSON, path: str) -> Errors:
    """Yields the faults of a deprecationWarning: only of a deprecated version, printable, 256 characters at most."""
    warning = version.get("deprecationWarning")
    if warning is None:
        return
    if not version.get("deprecated"):
        yield invalid(path, warning, "can only be set for deprecated versions")
    elif not warning:
        yield invalid(path, warning, "must not be an empty string")
    elif len(warning) > 256:
        yield invalid(path, warning, "must be <= 256 characters long")


@dataclass(frozen=True)
class _CachedSchema:
    """A schema as a key of the cache: its JSON text decides equality."""

    text: bytes
    schema: JSON = field(compare=False)


@lru_cache(maxsize=128)
def _known_faults(cached: _CachedSchema, path: str) -> tuple[FieldError, ...]:
    """Returns the faults of a schema, cached by its text and path.

    A definition is validated at each change of its status or labels, too, which does not change its schema. One of our
    schemas takes 12 ms, CEL rules included.
    """
    return tuple(schema_faults(cached.schema, path))


def schema_faults(schema: JSON, path: str) -> Errors:
    """Yields the faults of one schema: its structure first, then the rest; CEL rules if the structure is valid."""
    can_have_structure = can_be_structural(schema)
    structure_faults = [*structural(schema, path), *_faults_of_defaults(schema, path)] if can_have_structure else []
    if schema.get("nullable"):
        structure_faults.append(forbidden(f"{path}.nullable", "nullable cannot be true at the root"))
    yield from structure_faults
    faults = [*openapi_faults(schema, path, _no_rules if structure_faults or not can_have_structure else rule_faults)]
    yield from faults
    if can_have_structure and not structure_faults and not faults:
        yield from cost_faults(schema, path)


def _no_rules(_schema: JSON, _path: str, _uncorrelated: str) -> Errors:
    yield from ()


def _faults_of_defaults(schema: JSON, path: str) -> Errors:
    """Yields the faults of all defaults in a schema."""
    if "default" in schema:
        yield from _default_faults(schema, path)
    for child_path, child in child_schemas(schema, path):
        if (
            not child_path.endswith(("]", ".items"))
            or ".properties[" in child_path.removeprefix(path)
            or child_path.endswith(".items")
        ):
            yield from _faults_of_defaults(child, child_path)


def _default_faults(schema: JSON, path: str) -> Errors:
    """Yields the faults of one default: unknown fields, or a value that its own schema refuses."""
    try:
        node = compile_node(schema)
    except SchemaError:
        return
    value = schema["default"]
    if prune_unknown(node, value, is_resource=node.embedded)[0] != value:
        yield invalid(f"{path}.default", value, "must not have unknown fields")
    for error in validate_value(node, value):
        fault_path = f"{path}.default{'.' if error.path else ''}{error.path}"
        yield FieldError(error.fault, fault_path, error.value, error.detail)


_COLUMN_TYPES = "boolean,date,integer,number,string"


def _column_faults(column: JSON, path: str) -> Errors:
    """Yields the faults of an additionalPrinterColumn."""
    if not column.get("name"):
        yield required(f"{path}.name")
    kind = column.get("type")
    if kind not in _COLUMN_TYPES.split(","):
        fault = Fault.INVALID if kind else Fault.REQUIRED
        yield FieldError(fault, f"{path}.type", kind, f"must be one of {_COLUMN_TYPES}")
    if not column.get("jsonPath"):
        yield required(f"{path}.JSONPath")
    elif not column["jsonPath"].startswith("."):
        yield _simple_path(column["jsonPath"], f"{path}.JSONPath")


def _simple_path(path_text: str, path: str) -> FieldError:
    return invalid(path, path_text, "must be a simple json path starting with .")


def _scale_faults(scale: JSON | None, path: str) -> Errors:
    """Yields the faults of a scale subresource's paths."""
    if scale is None:
        return
    for key, under in (("specReplicasPath", ".spec"), ("statusReplicasPath", ".status")):
        path_text = scale.get(key) or ""
        if not path_text:
            yield required(f"{path}.{key}")
        elif not path_text.startswith("."):
            yield _simple_path(path_text, f"{path}.{key}")
        elif not path_text.startswith(f"{under}."):
            yield invalid(f"{path}.{key}", path_text, f"should be a json path under {under}")
    path_text = scale.get("labelSelectorPath") or ""
    if path_text and not path_text.startswith((".spec.", ".status.")):
        yield invalid(f"{path}.labelSelectorPath", path_text, "should be a json path under either .spec or .status")


def _selectable_faults(field_path: str, schema: JSON, path: str) -> Errors:
    """Yields a fault if a selectable field is not a scalar field of the schema."""
    if not field_path:
        yield required(path)
        return
    branch: Any = schema
    for name in field_path.lstrip(".").split("."):
        branch = (branch.get("properties") or {}).get(name)
        if not isinstance(branch, dict):
            yield invalid(path, field_path, f"is an invalid path: does not refer to a valid field: {field_path}")
            return
    if field_path.startswith(".metadata"):
        yield invalid(path, field_path, "must not point to fields in metadata")
    if branch.get("type") not in ("string", "boolean", "integer"):
        detail = "must point to a field of type string, boolean or integer. "
        detail += "Enum string fields and strings with formats are allowed."
        yield invalid(path, field_path, detail)


# -- warnings ----------------------------------------------------------------------------------------------------------


def unrecognized_formats(crd: JSON) -> list[str]:
    """Returns the string formats of a CRD's schemas that the server does not validate, sorted."""
    formats = {
        name for version in crd["spec"].get("versions") or () for name in _unknown_formats(_schema_of(version) or {})
    }
    return sorted(formats)


def _unknown_formats(schema: JSON) -> Iterator[str]:
    """Yields each format in the schema that the API server does not validate."""
    format_name = schema.get("format") or ""
    if schema.get("type") == "string" and format_name and format_name.replace("-", "") not in _FORMATS:
        yield format_name
    for _, child in child_schemas(schema, ""):
        yield from _unknown_formats(child)


_FORMATS = frozenset(
    {"bsonobjectid", "uri", "email", "hostname", "ipv4", "ipv6", "cidr", "mac", "uuid", "uuid3", "uuid4", "uuid5",
     "isbn", "isbn10", "isbn13", "creditcard", "ssn", "hexcolor", "rgbcolor", "byte", "password", "date", "duration",
     "datetime", "k8sshortname", "k8slongname"}
)  # fmt: skip
