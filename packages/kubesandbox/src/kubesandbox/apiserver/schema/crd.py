"""Validation of CustomResourceDefinitions (apiextensions.k8s.io/v1), and the compiled schema of each version.

FieldErrors have the words and paths of apiextensions-apiserver. A definition whose objects cannot be validated must not
be accepted.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from kubekit.api import codec
from kubesandbox.apiserver.schema.crd_openapi import can_be_structural, child_schemas, openapi_faults, structural
from kubesandbox.apiserver.schema.crd_rules import cost_faults, rule_faults
from kubesandbox.apiserver.schema.field_errors import (
    Fault,
    FieldError,
    Verbatim,
    forbidden,
    go_json,
    invalid,
    not_supported,
    one_of,
    required,
)
from kubesandbox.apiserver.schema.object_meta import dns1035_label_faults, dns1123_subdomain_faults
from kubesandbox.apiserver.schema.object_schema import Schema, compile_schema
from kubesandbox.apiserver.schema.structural import SchemaError, compile_node, prune_unknown
from kubesandbox.apiserver.schema.validate import validate_value

JSON = dict[str, Any]
Errors = Iterator[FieldError]

_PRESERVE_ALL: JSON = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


def compile_crd(crd: JSON) -> tuple[list[FieldError], dict[str, Schema]]:
    """Returns the faults of `crd`, and the Schema of each version by its name; no schemas if there are faults."""
    errors = validate_crd(crd)
    return errors, ({} if errors else schemas_by_version(crd))


def schemas_by_version(crd: JSON) -> dict[str, Schema]:
    """Returns the Schema of each version by its name. A version without a schema preserves all fields."""
    return {version["name"]: compile_schema(version_schema(version)) for version in crd["spec"]["versions"]}


def version_schema(version: JSON) -> JSON:
    """Returns the OpenAPI v3 schema of one entry of `spec.versions`."""
    schema: JSON = (version.get("schema") or {}).get("openAPIV3Schema") or _PRESERVE_ALL
    return schema


def validate_crd(crd: JSON) -> list[FieldError]:
    """Returns the faults of a new CustomResourceDefinition."""
    spec = crd.get("spec") or {}
    return [*_definition_name_faults(crd, spec), *_remaining_faults(crd, None)]


def validate_crd_update(crd: JSON, old: JSON) -> list[FieldError]:
    """Returns the faults of updating `old` to `crd`. Scope, group, plural and kind are immutable."""
    errors = _remaining_faults(crd, old)
    spec, former = crd.get("spec") or {}, old.get("spec") or {}
    names, old_names = spec.get("names") or {}, former.get("names") or {}
    for path, new_value, old_value in (
        ("spec.scope", spec.get("scope"), former.get("scope")),
        ("spec.names.kind", names.get("kind"), old_names.get("kind")),
        ("spec.group", spec.get("group"), former.get("group")),
        ("spec.names.plural", names.get("plural"), old_names.get("plural")),
    ):
        if new_value != old_value:
            errors.append(invalid(path, new_value, "field is immutable"))
    return errors


def _remaining_faults(crd: JSON, old: JSON | None) -> list[FieldError]:
    spec = crd.get("spec") or {}
    return [*_spec_faults(spec), *version_faults(spec), *_stored_version_faults(crd), *_approval_faults(crd, old)]


def _definition_name_faults(crd: JSON, spec: JSON) -> Errors:
    name = (crd.get("metadata") or {}).get("name", "")
    expected = f"{(spec.get('names') or {}).get('plural', '')}.{spec.get('group', '')}"
    if name != expected:
        yield invalid("metadata.name", name, 'must be spec.names.plural+"."+spec.group')


def _approval_faults(crd: JSON, old: JSON | None) -> Errors:
    """Yields a fault if a CRD in one of Kubernetes' own groups lacks the annotation of its API review."""
    group = (crd.get("spec") or {}).get("group", "")
    if not f".{group}".endswith((".k8s.io", ".kubernetes.io")):
        return
    approval = _approval_annotation(crd)
    why = f'protected groups must have approval annotation "{_APPROVAL}"'
    annotation_path = f"metadata.annotations[{_APPROVAL}]"
    # An unchanged annotation passes, so that old definitions can still be updated.
    if old is not None and _approval_annotation(old) == approval:
        return
    if not approval:
        yield required(annotation_path, f"{why}, see {_APPROVAL_RULES}")
    elif not approval.startswith(("unapproved", "http://", "https://")):
        detail = f'{why} with either a URL or a reason starting with "unapproved", see {_APPROVAL_RULES}'
        yield invalid(annotation_path, approval, detail)


def _approval_annotation(crd: JSON) -> str:
    return str(((crd.get("metadata") or {}).get("annotations") or {}).get(_APPROVAL, ""))


_APPROVAL = "api-approved.kubernetes.io"
_APPROVAL_RULES = "https://github.com/kubernetes/enhancements/pull/1111"


def _spec_faults(spec: JSON) -> Errors:
    """Yields the faults of a definition's group, scope, names and conversion."""
    group, scope = spec.get("group", ""), spec.get("scope", "")
    if not group:
        yield required("spec.group")
    elif faults := dns1123_subdomain_faults(group):
        yield invalid("spec.group", group, faults)
    elif "." not in group:
        yield invalid("spec.group", group, "should be a domain with at least one dot")
    if not scope:
        yield required("spec.scope")
    elif scope not in ("Cluster", "Namespaced"):
        yield not_supported("spec.scope", scope, ("Cluster", "Namespaced"))
    yield from _names_faults(spec.get("names") or {})
    yield from _conversion_faults(spec.get("conversion") or {})
    if spec.get("preserveUnknownFields"):
        yield invalid(
            "spec.preserveUnknownFields",
            True,
            "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead",
        )


def _names_faults(names: JSON) -> Errors:
    """Yields the faults of a definition's names, by the rules for DNS labels."""
    for key in ("plural", "singular", "kind", "listKind"):
        value = names.get(key) or (_default_name(names, key) if key in ("singular", "listKind") else "")
        if not value:
            yield required(f"spec.names.{key}")
        elif faults := dns1035_label_faults(value.lower() if key in ("kind", "listKind") else value):
            mixed = "may have mixed case, but should otherwise match: " if key in ("kind", "listKind") else ""
            yield invalid(f"spec.names.{key}", value, mixed + faults)
    for key in ("shortNames", "categories"):
        for index, value in enumerate(names.get(key) or ()):
            if faults := dns1035_label_faults(value):
                yield invalid(f"spec.names.{key}[{index}]", value, faults)
    if names.get("kind") and names.get("kind") == names.get("listKind"):
        yield invalid("spec.names.listKind", names["listKind"], "kind and listKind may not be the same")


def _default_name(names: JSON, key: str) -> str:
    """Returns the value that the server fills in by default."""
    kind = str(names.get("kind") or "")
    return kind.lower() if key == "singular" else (f"{kind}List" if kind else "")


def _conversion_faults(conversion: JSON) -> Errors:
    """Yields the faults of a conversion: strategy, webhook and review versions."""
    strategy, webhook = conversion.get("strategy") or "None", conversion.get("webhook") or {}
    reviews, client = webhook.get("conversionReviewVersions"), webhook.get("clientConfig")
    yield from one_of("spec.conversion.strategy", strategy, ("None", "Webhook"))
    if strategy == "Webhook":
        config_path = "spec.conversion.webhookClientConfig"
        if client is None:
            yield required(config_path, "required when strategy is set to Webhook")
        # Both or neither.
        elif (client.get("url") is None) == (client.get("service") is None):
            yield required(config_path, "exactly one of url or service is required")
        if not reviews:
            yield required("spec.conversion.conversionReviewVersions")
        elif not {"v1", "v1beta1"} & {*reviews}:
            detail = "must include at least one of v1, v1beta1"
            yield invalid("spec.conversion.conversionReviewVersions", reviews, detail)
        return
    for value, name in ((client, "webhookClientConfig"), (reviews, "conversionReviewVersions")):
        if value:
            yield forbidden(f"spec.conversion.{name}", "should not be set when strategy is not set to Webhook")


def _stored_version_faults(crd: JSON) -> Errors:
    """Yields a fault for each stored version that the spec no longer has, and if the storage version is not listed."""
    # A new definition may come without status; the server sets storedVersions.
    if "status" not in crd:
        return
    path, versions = "status.storedVersions", (crd.get("spec") or {}).get("versions") or ()
    stored = (crd.get("status") or {}).get("storedVersions") or []
    if not stored:
        yield invalid(path, None, "must have at least one stored version")
        return
    for version in versions:
        if version.get("storage") and version.get("name") not in stored:
            yield invalid(path, stored, f"must have the storage version {version['name']}")
    names = {version.get("name") for version in versions}
    for index, name in enumerate(stored):
        if name not in names:
            yield invalid(f"{path}[{index}]", name, _STILL_STORED.format(name))


_STILL_STORED = (
    "missing from spec.versions; {0} was previously a storage version, and must remain in spec.versions until a "
    "storage migration ensures no data remains persisted in {0} and removes {0} from status.storedVersions"
)


# -- Versions ----------------------------------------------------------------------------------------------------------


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
