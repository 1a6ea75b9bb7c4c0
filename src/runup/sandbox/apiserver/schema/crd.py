"""CustomResourceDefinitions: are they well-formed, and the schema of each version.

In: a CRD (apiextensions.k8s.io/v1) as a dict. Out: FieldErrors as apiextensions-apiserver words them, and one
compiled Schema a version. The mistake prevented: a CRD that is accepted and whose objects then cannot be judged.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from runup.lang.cel import CelError
from runup.sandbox.apiserver.schema.errors import Fault, FieldError
from runup.sandbox.apiserver.schema.names import dns1035_label, dns1123_subdomain
from runup.sandbox.apiserver.schema.rules import CompiledRule
from runup.sandbox.apiserver.schema.schema import Schema, compile_schema
from runup.sandbox.apiserver.schema.structural import SchemaError, compile_node
from runup.sandbox.apiserver.schema.validate import validate

JSON = dict[str, Any]
Errors = Iterator[FieldError]

_PRESERVE_ALL: JSON = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


def compile_crd(crd: JSON) -> tuple[list[FieldError], dict[str, Schema]]:
    """The faults of `crd`, and for each version its Schema; no schemas where there are faults."""
    errors = validate_crd(crd)
    return errors, ({} if errors else schemas(crd))


def schemas(crd: JSON) -> dict[str, Schema]:
    """The Schema of each version, by its name. A version with none keeps everything."""
    return {version["name"]: compile_schema(version_schema(version)) for version in crd["spec"]["versions"]}


def version_schema(version: JSON) -> JSON:
    """The OpenAPI v3 schema of one entry of `spec.versions`."""
    schema: JSON = (version.get("schema") or {}).get("openAPIV3Schema") or _PRESERVE_ALL
    return schema


def validate_crd(crd: JSON) -> list[FieldError]:
    """What is wrong with `crd`, as creating it would say."""
    spec = crd.get("spec") or {}
    return [*_name(crd, spec), *_spec(spec), *_versions(spec)]


def validate_crd_update(crd: JSON, old: JSON) -> list[FieldError]:
    """What is wrong with changing `old` into `crd`: scope, group, plural and kind stay."""
    errors = validate_crd(crd)
    spec, former = crd.get("spec") or {}, old.get("spec") or {}
    names, old_names = spec.get("names") or {}, former.get("names") or {}
    for path, new_value, old_value in (
        ("spec.scope", spec.get("scope"), former.get("scope")),
        ("spec.names.kind", names.get("kind"), old_names.get("kind")),
        ("spec.group", spec.get("group"), former.get("group")),
        ("spec.names.plural", names.get("plural"), old_names.get("plural")),
    ):
        if new_value != old_value:
            errors.append(FieldError(Fault.INVALID, path, new_value, "field is immutable"))
    stored = (old.get("status") or {}).get("storedVersions") or ()
    served = {version.get("name") for version in spec.get("versions") or ()}
    for index, version in enumerate(stored):
        if version not in served:
            path = f"status.storedVersions[{index}]"
            errors.append(FieldError(Fault.INVALID, path, version, "must appear in spec.versions"))
    return errors


def _name(crd: JSON, spec: JSON) -> Errors:
    name = (crd.get("metadata") or {}).get("name", "")
    expected = f"{(spec.get('names') or {}).get('plural', '')}.{spec.get('group', '')}"
    if name != expected:
        yield FieldError(Fault.INVALID, "metadata.name", name, 'must be spec.names.plural+"."+spec.group')


def _spec(spec: JSON) -> Errors:
    group, scope = spec.get("group", ""), spec.get("scope", "")
    if not group:
        yield FieldError(Fault.REQUIRED, "spec.group")
    elif faults := dns1123_subdomain(group):
        yield FieldError(Fault.INVALID, "spec.group", group, faults)
    elif "." not in group:
        yield FieldError(Fault.INVALID, "spec.group", group, "should be a domain with at least one dot")
    if not scope:
        yield FieldError(Fault.REQUIRED, "spec.scope")
    elif scope not in ("Cluster", "Namespaced"):
        detail = 'supported values: "Cluster", "Namespaced"'
        yield FieldError(Fault.NOT_SUPPORTED, "spec.scope", scope, detail)
    yield from _names(spec.get("names") or {})
    if spec.get("preserveUnknownFields"):
        yield FieldError(
            Fault.INVALID,
            "spec.preserveUnknownFields",
            True,
            "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead",
        )


def _names(names: JSON) -> Errors:
    for key in ("plural", "singular", "kind", "listKind"):
        value = names.get(key) or (_derived(names, key) if key in ("singular", "listKind") else "")
        if not value:
            yield FieldError(Fault.REQUIRED, f"spec.names.{key}")
        elif faults := dns1035_label(value.lower() if key in ("kind", "listKind") else value):
            mixed = "may have mixed case, but should otherwise match: " if key in ("kind", "listKind") else ""
            yield FieldError(Fault.INVALID, f"spec.names.{key}", value, mixed + faults)
    for key in ("shortNames", "categories"):
        for index, value in enumerate(names.get(key) or ()):
            if faults := dns1035_label(value):
                yield FieldError(Fault.INVALID, f"spec.names.{key}[{index}]", value, faults)
    if names.get("kind") and names.get("kind") == names.get("listKind"):
        detail = "kind and listKind may not be the same"
        yield FieldError(Fault.INVALID, "spec.names.listKind", names["listKind"], detail)


def _derived(names: JSON, key: str) -> str:
    """What the server fills in by default."""
    kind = str(names.get("kind") or "")
    return kind.lower() if key == "singular" else (f"{kind}List" if kind else "")


def _versions(spec: JSON) -> Errors:
    versions = spec.get("versions") or []
    if not versions:
        yield FieldError(Fault.REQUIRED, "spec.versions")
        return
    names = [version.get("name", "") for version in versions]
    for index, name in enumerate(names):
        if faults := dns1035_label(name):
            yield FieldError(Fault.INVALID, f"spec.versions[{index}].name", name, faults)
    if len(set(names)) != len(names):
        yield FieldError(Fault.INVALID, "spec.versions", versions, "must contain unique version names")
    if sum(bool(version.get("storage")) for version in versions) != 1:
        detail = "must have exactly one version marked as storage version"
        yield FieldError(Fault.INVALID, "spec.versions", versions, detail)
    for index, version in enumerate(versions):
        yield from _version(version, f"spec.versions[{index}]")


def _version(version: JSON, path: str) -> Errors:
    schema = (version.get("schema") or {}).get("openAPIV3Schema")
    where = f"{path}.schema.openAPIV3Schema"
    if schema is None:
        yield FieldError(Fault.REQUIRED, where, detail="schemas are required")
    else:
        if schema.get("type") != "object":
            yield _root_type(schema, where)
        yield from _node(schema, where, is_root=True)
    for index, column in enumerate(version.get("additionalPrinterColumns") or ()):
        yield from _column(column, f"{path}.additionalPrinterColumns[{index}]")


def _root_type(schema: JSON, where: str) -> FieldError:
    if not schema.get("type"):
        return FieldError(Fault.REQUIRED, f"{where}.type", detail="must not be empty at the root")
    return FieldError(Fault.INVALID, f"{where}.type", schema["type"], "must be object at the root")


_COLUMN_TYPES = ("integer", "number", "string", "boolean", "date")


def _column(column: JSON, path: str) -> Errors:
    for key in ("name", "type", "jsonPath"):
        if not column.get(key):
            yield FieldError(Fault.REQUIRED, f"{path}.{key}")
    kind = column.get("type")
    if kind and kind not in _COLUMN_TYPES:
        detail = f"must be one of {','.join(sorted(_COLUMN_TYPES))}"
        yield FieldError(Fault.INVALID, f"{path}.type", kind, detail)


# --- structural requirements ----------------------------------------------------------------------------------------

_FORBIDDEN = {
    "$ref": "$ref is not supported",
    "definitions": "definitions is not supported",
    "dependencies": "dependencies is not supported",
    "deprecated": "deprecated is not supported",
    "id": "id is not supported",
    "patternProperties": "patternProperties is not supported",
    "additionalItems": "additionalItems is not supported",
}
# Value validations may stand under a junctor, what shapes the object may not.
_NOT_IN_JUNCTORS = (
    "type",
    "additionalProperties",
    "default",
    "title",
    "description",
    "nullable",
    "x-kubernetes-preserve-unknown-fields",
    "x-kubernetes-embedded-resource",
    "x-kubernetes-list-type",
    "x-kubernetes-list-map-keys",
)


def _node(schema: JSON, path: str, *, is_root: bool = False) -> Errors:
    for key, detail in _FORBIDDEN.items():
        if schema.get(key):
            yield FieldError(Fault.FORBIDDEN, f"{path}.{key}", detail=detail)
    if schema.get("uniqueItems"):
        detail = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic"
        yield FieldError(Fault.FORBIDDEN, f"{path}.uniqueItems", detail=detail)
    yield from _shape(schema, path, is_root=is_root)
    yield from _list_type(schema, path)
    yield from _default(schema, path)
    yield from _rules(schema, path)
    yield from _junctors(schema, path)
    for name, child in (schema.get("properties") or {}).items():
        yield from _node(child, f"{path}.properties[{name}]")
    for key in ("additionalProperties", "items"):
        if isinstance(schema.get(key), dict):
            yield from _node(schema[key], f"{path}.{key}")


def _shape(schema: JSON, path: str, *, is_root: bool) -> Errors:
    kind = schema.get("type", "")
    free = schema.get("x-kubernetes-int-or-string") or schema.get("x-kubernetes-preserve-unknown-fields")
    if not kind and not free and not is_root:
        yield FieldError(Fault.REQUIRED, f"{path}.type", detail="must not be empty for specified object fields")
    if kind and schema.get("x-kubernetes-int-or-string"):
        detail = "must be empty if x-kubernetes-int-or-string is true"
        yield FieldError(Fault.INVALID, f"{path}.type", kind, detail)
    if kind == "array" and not isinstance(schema.get("items"), dict):
        yield FieldError(Fault.REQUIRED, f"{path}.items", detail="must be specified")
    if schema.get("properties") and isinstance(schema.get("additionalProperties"), dict):
        detail = "additionalProperties and properties are mutual exclusive"
        yield FieldError(Fault.FORBIDDEN, f"{path}.additionalProperties", detail=detail)
    if schema.get("additionalProperties") is False:
        detail = "must not be used"
        yield FieldError(Fault.FORBIDDEN, f"{path}.additionalProperties", detail=detail)
    if schema.get("x-kubernetes-embedded-resource") and kind != "object":
        detail = "must be object if x-kubernetes-embedded-resource is true"
        yield FieldError(Fault.INVALID, f"{path}.type", kind, detail)
    if is_root:
        metadata = (schema.get("properties") or {}).get("metadata") or {}
        for key in metadata:
            if key not in ("type", "description", "properties"):
                detail = 'must only have "properties", "type" or "description" set'
                yield FieldError(Fault.FORBIDDEN, f"{path}.properties[metadata]", detail=detail)
                break


def _list_type(schema: JSON, path: str) -> Errors:
    list_type, keys = schema.get("x-kubernetes-list-type"), schema.get("x-kubernetes-list-map-keys") or []
    if list_type is None and not keys:
        return
    where = f"{path}.x-kubernetes-list-type"
    if list_type not in (None, "atomic", "set", "map"):
        detail = 'supported values: "atomic", "map", "set"'
        yield FieldError(Fault.NOT_SUPPORTED, where, list_type, detail)
    if list_type is not None and schema.get("type") != "array":
        detail = "must be array if x-kubernetes-list-type is specified"
        yield FieldError(Fault.INVALID, f"{path}.type", schema.get("type", ""), detail)
    if keys and list_type != "map":
        detail = "must be map if x-kubernetes-list-map-keys is non-empty"
        yield FieldError(Fault.INVALID, where, list_type, detail)
    if list_type == "map":
        yield from _map_keys(schema, keys, path)


def _map_keys(schema: JSON, keys: list[str], path: str) -> Errors:
    where = f"{path}.x-kubernetes-list-map-keys"
    if not keys:
        yield FieldError(Fault.REQUIRED, where, detail="must not be empty if x-kubernetes-list-type is map")
    items = schema.get("items") or {}
    properties, required = items.get("properties") or {}, items.get("required") or ()
    for index, key in enumerate(keys):
        if key not in properties:
            detail = "entries must all be names of item properties"
            yield FieldError(Fault.INVALID, f"{where}[{index}]", key, detail)
        elif key not in required and "default" not in properties[key]:
            detail = (
                "this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property"
            )
            yield FieldError(Fault.REQUIRED, f"{path}.items.properties[{key}].default", detail=detail)


def _default(schema: JSON, path: str) -> Errors:
    if "default" not in schema:
        return
    try:
        node = compile_node(schema)
    except SchemaError:
        return
    for error in validate(node, schema["default"]):
        where = f"{path}.default{'.' if error.path else ''}{error.path}"
        yield FieldError(error.fault, where, error.value, error.detail)


def _rules(schema: JSON, path: str) -> Errors:
    rules = schema.get("x-kubernetes-validations") or ()
    if not rules:
        return
    try:
        node = compile_node({key: value for key, value in schema.items() if key not in ("allOf", "anyOf", "oneOf")})
    except SchemaError:
        return
    for index, (raw, rule) in enumerate(zip(rules, node.rules, strict=True)):
        where = f"{path}.x-kubernetes-validations[{index}]"
        if not rule.rule.strip():
            yield FieldError(Fault.REQUIRED, f"{where}.rule", detail="rule is not specified")
            continue
        if "message" in raw and not rule.message.strip():
            detail = "message must be non-empty if specified"
            yield FieldError(Fault.INVALID, f"{where}.message", rule.message, detail)
        try:
            compiled = CompiledRule(node, rule)
        except CelError as error:
            yield FieldError(Fault.INVALID, f"{where}.rule", raw, f"compilation failed: {error}")
            continue
        yield from _result_types(compiled, raw, where)


def _result_types(compiled: CompiledRule, raw: Mapping[str, Any], where: str) -> Errors:
    if compiled.program.result_type not in ("bool", "dyn"):
        yield FieldError(Fault.INVALID, f"{where}.rule", raw, "cel expression must evaluate to a bool")
    if compiled.message is not None and compiled.message.result_type not in ("string", "dyn"):
        detail = "messageExpression must evaluate to a string"
        yield FieldError(Fault.INVALID, f"{where}.messageExpression", raw, detail)


def _junctors(schema: JSON, path: str) -> Errors:
    for key in ("allOf", "anyOf", "oneOf"):
        for index, child in enumerate(schema.get(key) or ()):
            yield from _nested(child, schema, f"{path}.{key}[{index}]")
    if isinstance(schema.get("not"), dict):
        yield from _nested(schema["not"], schema, f"{path}.not")


def _nested(child: JSON, schema: JSON, path: str) -> Errors:
    for key in _NOT_IN_JUNCTORS:
        # int-or-string is the one case in which anyOf may name types.
        if child.get(key) and not (key == "type" and schema.get("x-kubernetes-int-or-string")):
            yield FieldError(Fault.FORBIDDEN, f"{path}.{key}", detail="must be empty to be structural")
    yield from _junctors(child, path)
