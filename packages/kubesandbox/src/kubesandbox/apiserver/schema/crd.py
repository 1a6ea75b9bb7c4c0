"""Validation of CustomResourceDefinitions (apiextensions.k8s.io/v1), and the compiled schema of each version.

FieldErrors have the words and paths of apiextensions-apiserver. A definition whose objects cannot be validated must not
be accepted.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from kubekit.api import codec
from kubesandbox.apiserver.schema import field_errors as field
from kubesandbox.apiserver.schema.crd_openapi import can_be_structural, child_schemas, openapi_faults, structural
from kubesandbox.apiserver.schema.crd_rules import cost_faults, rule_faults
from kubesandbox.apiserver.schema.object_meta import dns1035_label_faults, dns1123_subdomain_faults
from kubesandbox.apiserver.schema.object_schema import Schema, compile_schema
from kubesandbox.apiserver.schema.structural import SchemaError, compile_node, prune_unknown
from kubesandbox.apiserver.schema.validate import validate_value

JSON = dict[str, Any]
Errors = Iterator[field.FieldError]

_APPROVAL = "api-approved.kubernetes.io"
_COLUMN_TYPES = "boolean,date,integer,number,string"
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
_SIMPLE_PATH = "must be a simple json path starting with ."
_STILL_STORED = (
    "missing from spec.versions; {0} was previously a storage version, and must remain in spec.versions until a "
    "storage migration ensures no data remains persisted in {0} and removes {0} from status.storedVersions"
)


def compile_crd(crd: JSON) -> tuple[list[field.FieldError], dict[str, Schema]]:
    """Returns the faults of `crd`, and the Schema of each version by its name; no schemas if there are faults.

    A version without a schema preserves all fields.
    """
    if errors := validate_crd(crd):
        return errors, {}
    preserve_all = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    return [], {v["name"]: compile_schema(_schema_of(v) or preserve_all) for v in crd["spec"]["versions"]}


def validate_crd(crd: JSON) -> list[field.FieldError]:
    """Returns the faults of a new CustomResourceDefinition."""
    name, spec = (crd.get("metadata") or {}).get("name", ""), crd.get("spec") or {}
    expected = f"{(spec.get('names') or {}).get('plural', '')}.{spec.get('group', '')}"
    name_faults = (
        [] if name == expected else [field.invalid("metadata.name", name, 'must be spec.names.plural+"."+spec.group')]
    )
    return [*name_faults, *_common_faults(crd, None)]


def validate_crd_update(crd: JSON, old: JSON) -> list[field.FieldError]:
    """Returns the faults of updating `old` to `crd`. Scope, group, plural and kind are immutable."""
    errors = list(_common_faults(crd, old))
    spec, former = crd.get("spec") or {}, old.get("spec") or {}
    names, old_names = spec.get("names") or {}, former.get("names") or {}
    for path, new_value, old_value in (
        ("spec.scope", spec.get("scope"), former.get("scope")),
        ("spec.names.kind", names.get("kind"), old_names.get("kind")),
        ("spec.group", spec.get("group"), former.get("group")),
        ("spec.names.plural", names.get("plural"), old_names.get("plural")),
    ):
        if new_value != old_value:
            errors.append(field.invalid(path, new_value, "field is immutable"))
    return errors


def _common_faults(crd: JSON, old: JSON | None) -> Errors:
    """Yields the faults that a new and an updated definition have in common."""
    spec = crd.get("spec") or {}
    group, scope = spec.get("group", ""), spec.get("scope", "")
    if not group:
        yield field.required("spec.group")
    elif faults := dns1123_subdomain_faults(group):
        yield field.invalid("spec.group", group, faults)
    elif "." not in group:
        yield field.invalid("spec.group", group, "should be a domain with at least one dot")
    if not scope:
        yield field.required("spec.scope")
    else:
        yield from field.one_of("spec.scope", scope, ("Cluster", "Namespaced"))
    yield from _names_faults(spec.get("names") or {})
    yield from _conversion_faults(spec.get("conversion") or {})
    if spec.get("preserveUnknownFields"):
        hint = "set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead"
        yield field.invalid("spec.preserveUnknownFields", True, f"cannot set to true, {hint}")
    yield from _version_faults(spec)
    # A new definition may come without status; the server sets storedVersions.
    if "status" in crd:
        path, stored = "status.storedVersions", (crd["status"] or {}).get("storedVersions") or []
        names = {version.get("name") for version in spec.get("versions") or ()}
        if not stored:
            yield field.invalid(path, None, "must have at least one stored version")
        for version in (spec.get("versions") or ()) if stored else ():
            if version.get("storage") and version.get("name") not in stored:
                yield field.invalid(path, stored, f"must have the storage version {version['name']}")
        for index, name in enumerate(stored):
            if name not in names:
                yield field.invalid(f"{path}[{index}]", name, _STILL_STORED.format(name))
    if f".{group}".endswith((".k8s.io", ".kubernetes.io")):
        yield from _approval_faults(crd, old)


def _approval_faults(crd: JSON, old: JSON | None) -> Errors:
    """Yields a fault if a CRD in a protected group lacks the annotation of its API review."""
    approval, before = (
        str(((each.get("metadata") or {}).get("annotations") or {}).get(_APPROVAL, "")) for each in (crd, old or {})
    )
    # An unchanged annotation passes, so that old definitions can still be updated.
    if old is not None and before == approval:
        return
    why = f'protected groups must have approval annotation "{_APPROVAL}"'
    link = "see https://github.com/kubernetes/enhancements/pull/1111"
    if not approval:
        yield field.required(f"metadata.annotations[{_APPROVAL}]", f"{why}, {link}")
    elif not approval.startswith(("unapproved", "http://", "https://")):
        why += f' with either a URL or a reason starting with "unapproved", {link}'
        yield field.invalid(f"metadata.annotations[{_APPROVAL}]", approval, why)


def _names_faults(names: JSON) -> Errors:
    """Yields the faults of a definition's names, by the rules for DNS labels; some have defaults."""
    kind = str(names.get("kind") or "")
    defaults = {"singular": kind.lower(), "listKind": f"{kind}List" if kind else ""}
    for key in ("plural", "singular", "kind", "listKind"):
        value, mixed_case = names.get(key) or defaults.get(key, ""), key in ("kind", "listKind")
        if not value:
            yield field.required(f"spec.names.{key}")
        elif faults := dns1035_label_faults(value.lower() if mixed_case else value):
            prefix = "may have mixed case, but should otherwise match: " if mixed_case else ""
            yield field.invalid(f"spec.names.{key}", value, prefix + faults)
    for key in ("shortNames", "categories"):
        for index, value in enumerate(names.get(key) or ()):
            if faults := dns1035_label_faults(value):
                yield field.invalid(f"spec.names.{key}[{index}]", value, faults)
    if names.get("kind") and names.get("kind") == names.get("listKind"):
        yield field.invalid("spec.names.listKind", names["listKind"], "kind and listKind may not be the same")


def _conversion_faults(conversion: JSON) -> Errors:
    """Yields the faults of a conversion: strategy, webhook and review versions."""
    strategy, webhook = conversion.get("strategy") or "None", conversion.get("webhook") or {}
    reviews, client = webhook.get("conversionReviewVersions"), webhook.get("clientConfig")
    config_path, versions_path = "spec.conversion.webhookClientConfig", "spec.conversion.conversionReviewVersions"
    yield from field.one_of("spec.conversion.strategy", strategy, ("None", "Webhook"))
    if strategy != "Webhook":
        for value, path in ((client, config_path), (reviews, versions_path)):
            if value:
                yield field.forbidden(path, "should not be set when strategy is not set to Webhook")
        return
    if client is None:
        yield field.required(config_path, "required when strategy is set to Webhook")
    # Both or neither.
    elif (client.get("url") is None) == (client.get("service") is None):
        yield field.required(config_path, "exactly one of url or service is required")
    if not reviews:
        yield field.required(versions_path)
    elif not {"v1", "v1beta1"} & {*reviews}:
        yield field.invalid(versions_path, reviews, "must include at least one of v1, v1beta1")


# -- Versions ----------------------------------------------------------------------------------------------------------


def _version_faults(spec: JSON) -> Errors:
    """Yields the faults of all versions: names, schemas, the storage version, and the parts of each version."""
    versions = spec.get("versions") or []
    names = [version.get("name", "") for version in versions]
    for index, version in enumerate(versions):
        if faults := dns1035_label_faults(names[index]):
            yield field.invalid(f"spec.versions[{index}].name", names[index], faults)
        warning, path = version.get("deprecationWarning"), f"spec.versions[{index}].deprecationWarning"
        if warning is not None and not version.get("deprecated"):
            yield field.invalid(path, warning, "can only be set for deprecated versions")
        elif warning == "":
            yield field.invalid(path, warning, "must not be an empty string")
        elif warning is not None and len(warning) > 256:
            yield field.invalid(path, warning, "must be <= 256 characters long")
        if _schema_of(version) is None:
            yield field.required(f"spec.versions[{index}].schema.openAPIV3Schema")
    if names and (faults := dns1035_label_faults(names[0])):
        yield field.invalid("spec.version", names[0], faults)
    if len(set(names)) != len(names):
        yield field.invalid("spec.versions", _versions_as_go(versions), "must contain unique version names")
    if sum(bool(version.get("storage")) for version in versions) != 1:
        detail = "must have exactly one version marked as storage version"
        yield field.invalid("spec.versions", _versions_as_go(versions), detail)
    # A part that all versions share is reported once, without the version.
    first = versions[0] if versions else {}
    shared = {key for key in _SHARED_PATHS if first.get(key) and all(v.get(key) == first[key] for v in versions)}
    for index, version in enumerate(versions):
        for key, shared_path in _SHARED_PATHS.items():
            if version.get(key) and (key not in shared or index == 0):
                yield from _part_faults(key, version, shared_path if key in shared else f"spec.versions[{index}].{key}")
        if version.get("selectableFields") and "schema" in shared and "selectableFields" not in shared:
            detail = "may only be set when `version.schema.openAPIV3Schema` is not included"
            yield field.invalid(f"spec.versions[{index}].selectableFields", "", detail)


def _schema_of(version: JSON) -> Any:
    """Returns the openAPIV3Schema of a version, or None."""
    return (version.get("schema") or {}).get("openAPIV3Schema")


def _versions_as_go(versions: list[JSON]) -> field.Verbatim:
    """Returns versions as Go prints its internal type, without the parts that it keeps in the definition's spec."""
    parts = dict.fromkeys(("Schema", "Subresources", "AdditionalPrinterColumns", "SelectableFields"))
    shown = [{go: version.get(key, zero) for go, key, zero in _GO_FIELDS} | parts for version in versions]
    return field.Verbatim(field.go_json(shown))


def _part_faults(key: str, version: JSON, place: str) -> Errors:
    """Yields the faults of one part of a version: schema, subresources, columns, selectable fields."""
    value = version[key]
    if key == "schema":
        if (schema := _schema_of(version)) is not None:
            yield from _known_faults(_CachedSchema(codec.encode(schema), schema), f"{place}.openAPIV3Schema")
    elif key == "subresources":
        if value.get("scale") is not None:
            yield from _scale_faults(value["scale"], f"{place}.scale")
    elif key == "selectableFields":
        for index, selectable in enumerate(value):
            path = f"{place}[{index}].jsonPath"
            yield from _selectable_faults(selectable.get("jsonPath") or "", _schema_of(version) or {}, path)
    else:
        for index, column in enumerate(value):
            path, kind, column_path = f"{place}[{index}]", column.get("type"), column.get("jsonPath")
            if not column.get("name"):
                yield field.required(f"{path}.name")
            if kind not in _COLUMN_TYPES.split(","):
                fault = field.Fault.INVALID if kind else field.Fault.REQUIRED
                yield field.FieldError(fault, f"{path}.type", kind, f"must be one of {_COLUMN_TYPES}")
            if not column_path:
                yield field.required(f"{path}.JSONPath")
            elif not column_path.startswith("."):
                yield field.invalid(f"{path}.JSONPath", column_path, _SIMPLE_PATH)


@dataclass(frozen=True)
class _CachedSchema:
    """A schema as a key of the cache: its JSON text decides equality."""

    text: bytes
    schema: JSON = dataclasses.field(compare=False)


@lru_cache(maxsize=128)
def _known_faults(cached: _CachedSchema, path: str) -> tuple[field.FieldError, ...]:
    """Returns the faults of a schema: its structure first, then the rest; CEL rules if the structure is valid.

    Cached by its text and path: a definition is validated at each change of its status or labels, too, which does not
    change its schema. One of our schemas takes 12 ms, CEL rules included.
    """
    schema = cached.schema
    can_have_structure = can_be_structural(schema)
    structure_faults = [*structural(schema, path), *_default_faults(schema, path)] if can_have_structure else []
    if schema.get("nullable"):
        structure_faults.append(field.forbidden(f"{path}.nullable", "nullable cannot be true at the root"))
    with_rules = can_have_structure and not structure_faults
    faults = [*openapi_faults(schema, path, rule_faults if with_rules else lambda *_: iter(()))]
    costs = cost_faults(schema, path) if with_rules and not faults else ()
    return (*structure_faults, *faults, *costs)


def _default_faults(schema: JSON, path: str) -> Errors:
    """Yields the faults of all defaults in a schema: unknown fields, or a value that its own schema refuses."""
    if "default" in schema:
        try:
            node, value = compile_node(schema), schema["default"]
        except SchemaError:
            pass
        else:
            if prune_unknown(node, value, is_resource=node.embedded)[0] != value:
                yield field.invalid(f"{path}.default", value, "must not have unknown fields")
            for error in validate_value(node, value):
                yield replace(error, path=f"{path}.default{'.' if error.path else ''}{error.path}")
    for child_path, child in child_schemas(schema, path):
        if not child_path.endswith("]") or ".properties[" in child_path.removeprefix(path):
            yield from _default_faults(child, child_path)


def _scale_faults(scale: JSON, path: str) -> Errors:
    """Yields the faults of a scale subresource's paths."""
    for key, under in (("specReplicasPath", ".spec"), ("statusReplicasPath", ".status")):
        path_text = scale.get(key) or ""
        if not path_text:
            yield field.required(f"{path}.{key}")
        elif not path_text.startswith("."):
            yield field.invalid(f"{path}.{key}", path_text, _SIMPLE_PATH)
        elif not path_text.startswith(f"{under}."):
            yield field.invalid(f"{path}.{key}", path_text, f"should be a json path under {under}")
    path_text = scale.get("labelSelectorPath") or ""
    if path_text and not path_text.startswith((".spec.", ".status.")):
        yield field.invalid(
            f"{path}.labelSelectorPath", path_text, "should be a json path under either .spec or .status"
        )


def _selectable_faults(field_path: str, schema: JSON, path: str) -> Errors:
    """Yields a fault if a selectable field is not a scalar field of the schema."""
    if not field_path:
        yield field.required(path)
        return
    branch: Any = schema
    for name in field_path.lstrip(".").split("."):
        branch = (branch.get("properties") or {}).get(name)
        if not isinstance(branch, dict):
            yield field.invalid(path, field_path, f"is an invalid path: does not refer to a valid field: {field_path}")
            return
    if field_path.startswith(".metadata"):
        yield field.invalid(path, field_path, "must not point to fields in metadata")
    if branch.get("type") not in ("string", "boolean", "integer"):
        detail = "must point to a field of type string, boolean or integer. "
        yield field.invalid(path, field_path, f"{detail}Enum string fields and strings with formats are allowed.")


# -- warnings ----------------------------------------------------------------------------------------------------------


def unrecognized_formats(crd: JSON) -> list[str]:
    """Returns the string formats of a CRD's schemas that the server does not validate, sorted."""
    schemas = (_schema_of(version) or {} for version in crd["spec"].get("versions") or ())
    return sorted({name for schema in schemas for name in _unknown_formats(schema)})


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
