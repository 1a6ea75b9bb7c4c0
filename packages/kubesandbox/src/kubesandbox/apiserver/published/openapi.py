"""OpenAPI documents of the served kinds, which kubectl reads for apply, explain and validation.

In: kinds, custom ones with their definitions. Out: the v3 index, one v3 document a group-version, and one v2 document
of all kinds, as dicts. They contain only what clients read: schemas, and paths whose operations name their kind and the
fieldValidation parameter.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from kubesandbox.apiserver.schema.builtin import Definitions
from kubesandbox.apiserver.schema.builtin_table import full_name
from kubesandbox.apiserver.served_kinds import Kind

JSON = dict[str, Any]

_V3 = "#/components/schemas/"
_V2 = "#/definitions/"
_INFO = {"title": "Kubernetes", "version": "v1.34.0"}
_PRESERVE = "x-kubernetes-preserve-unknown-fields"
_META = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
# kubectl detects server-side field validation by this parameter of PATCH.
_PARAMETERS = [
    {"name": name, "in": "query", "schema": {"type": "string", "uniqueItems": True}}
    for name in ("dryRun", "fieldManager", "fieldValidation")
]
_VERBS = {
    "item": {"get": "get", "put": "update", "patch": "patch", "delete": "delete"},
    "collection": {"get": "list", "post": "create", "delete": "deletecollection"},
}


def path_prefix(kind: Kind) -> str:
    """Returns the path below which a kind is served, the key of its v3 document: `api/v1` or `apis/group/version`."""
    return f"apis/{kind.group}/{kind.version}" if kind.group else f"api/{kind.version}"


def v3_address(key: str, content: str) -> str:
    """Returns the address of a group-version's v3 document with that hash."""
    return f"/openapi/v3/{key}?hash={content}"


def v3_index(hashes: Mapping[str, str]) -> JSON:
    """Returns the body of `/openapi/v3`: each document's address, with the hash of its content."""
    return {"paths": {key: {"serverRelativeURL": v3_address(key, content)} for key, content in hashes.items()}}


def content_hash(body: bytes) -> str:
    """Returns a hash of the document: SHA-512 in upper-case hex, like kube-openapi's."""
    return hashlib.sha512(body).hexdigest().upper()


def by_group(kinds: Iterable[Kind]) -> dict[str, tuple[Kind, ...]]:
    """Groups kinds by group-version, sorted by name."""
    groups: dict[str, list[Kind]] = {}
    for kind in kinds:
        groups.setdefault(path_prefix(kind), []).append(kind)
    return {key: tuple(members) for key, members in sorted(groups.items())}


def build_group(kinds: Iterable[Kind]) -> JSON:
    """Returns the v3 document of one group-version's kinds."""
    listed = list(kinds)
    schemas = _with_references({name: schema for kind in listed for name, schema in _schemas_of(kind)})
    paths = {path: item for kind in listed for path, item in _paths_of(kind)}
    return {"openapi": "3.0.0", "info": _INFO, "paths": paths, "components": {"schemas": schemas}}


def build_v2(kinds: Iterable[Kind]) -> JSON:
    """Returns the v2 document of all kinds."""
    listed = list(kinds)
    schemas = {name: schema for kind in listed for name, schema in _schemas_of(kind)}
    for kind in listed:
        # kubectl takes a property that such a schema does not name for an unknown field, so none is named.
        if kind.custom and schemas[schema_name(kind)].get(_PRESERVE):
            keywords = ("type", "x-kubernetes-group-version-kind")
            schemas[schema_name(kind)] = {key: schemas[schema_name(kind)][key] for key in keywords}
    schemas = _with_references(schemas)
    paths = {path: item for kind in listed for path, item in _paths_of(kind)}
    return {
        "swagger": "2.0",
        "info": _INFO,
        "paths": _as_v2(paths),
        "definitions": {name: _as_v2(schema) for name, schema in schemas.items()},
    }


def _schemas_of(kind: Kind) -> Iterator[tuple[str, JSON]]:
    """Yields name and schema of a kind, of its list, and of what its subresources add."""
    name = schema_name(kind)
    gvk = [{"group": kind.group, "kind": kind.kind, "version": kind.version}]
    yield name, {**_schema_of(kind), "x-kubernetes-group-version-kind": gvk}
    list_gvk = [{"group": kind.group, "kind": kind.list_name, "version": kind.version}]
    items = {"type": "array", "items": {"allOf": [{"$ref": _V3 + name}]}}
    properties = {
        "apiVersion": {"type": "string"},
        "kind": {"type": "string"},
        "items": items,
        "metadata": {"type": "object"},
    }
    yield (
        f"{name}List",
        {
            "type": "object",
            "description": f"{kind.list_name} is a list of {kind.kind}.",
            "required": ["items"],
            "properties": properties,
            "x-kubernetes-group-version-kind": list_gvk,
        },
    )


def schema_name(kind: Kind) -> str:
    """Returns the name of a kind's schema: a built-in one's as in Kubernetes, a custom one's from its group."""
    builtin_name = "" if kind.custom else full_name(kind.group, kind.version, kind.kind)
    return builtin_name or ".".join([*reversed((kind.group or "core").split(".")), kind.version, kind.kind])


def _schema_of(kind: Kind) -> JSON:
    """Returns a kind's schema for the v3 document."""
    if kind.crd is None:
        builtin_schema = Definitions().get(full_name(kind.group, kind.version, kind.kind))
        return builtin_schema or _with_metadata({"type": "object", _PRESERVE: True})
    version = next(version for version in kind.crd["spec"]["versions"] if version["name"] == kind.version)
    custom_schema = (version.get("schema") or {}).get("openAPIV3Schema")
    return _with_metadata(custom_schema or {"type": "object", _PRESERVE: True})


_TYPE_META = {
    "apiVersion": {
        "type": "string",
        "description": "APIVersion defines the group and version that the object is written in.",
    },
    "kind": {"type": "string", "description": "Kind says what the object is."},
    "metadata": {
        "description": "Standard object's metadata: its name, labels and the like.",
        "allOf": [{"$ref": _V3 + _META}],
    },
}


def _with_metadata(schema: JSON) -> JSON:
    properties = {**schema.get("properties", {}), "metadata": _TYPE_META["metadata"]}
    return {**schema, "properties": {**_TYPE_META, **properties}}


def _with_references(schemas: dict[str, JSON]) -> dict[str, JSON]:
    """Returns `schemas` and all schemas that they refer to, sorted by name."""
    result, builtin_schemas = dict(schemas), Definitions()
    waiting = list(schemas.values())
    while waiting:
        for name in references_in(waiting.pop()):
            if name not in result and name in builtin_schemas:
                result[name] = builtin_schemas[name]
                waiting.append(builtin_schemas[name])
    return dict(sorted(result.items()))


def references_in(value: Any) -> Iterator[str]:
    """Yields the name of every schema that a document refers to, at any depth."""
    if isinstance(value, dict):
        if isinstance(value.get("$ref"), str):
            yield value["$ref"].rsplit("/", 1)[1]
        for child in value.values():
            yield from references_in(child)
    elif isinstance(value, list):
        for child in value:
            yield from references_in(child)


def _paths_of(kind: Kind) -> Iterator[tuple[str, JSON]]:
    """Yields the paths of a kind with their operations."""
    space = "namespaces/{namespace}/" if kind.namespaced else ""
    collection = f"/{path_prefix(kind)}/{space}{kind.plural}"
    for path, role in ((collection, "collection"), (f"{collection}/{{name}}", "item")):
        operations = {
            method: _operation_of(kind, method, action)
            for method, action in _VERBS[role].items()
            if action in kind.verbs
        }
        if operations:
            yield path, operations


def _operation_of(kind: Kind, method: str, action: str) -> JSON:
    """Returns the operation of an HTTP method on a kind; `action` is what its operationId begins with."""
    parameters = {"parameters": _PARAMETERS} if method in ("post", "put", "patch") else {}
    return {
        "operationId": f"{action}{kind.group.replace('.', '').title()}{kind.version.title()}{kind.kind}",
        **parameters,
        "responses": {
            "200": {
                "description": "OK",
                "content": {"application/json": {"schema": {"$ref": _V3 + schema_name(kind)}}},
            }
        },
        "x-kubernetes-action": action,
        "x-kubernetes-group-version-kind": {"group": kind.group, "kind": kind.kind, "version": kind.version},
    }


# Keywords that OpenAPI v2 does not have.
_NOT_IN_V2 = ("oneOf", "anyOf", "not", "nullable", "content")


def _as_v2(value: Any) -> Any:
    """Returns a value of the v3 document with its references as the v2 document has them."""
    if isinstance(value, list):
        return [_as_v2(item) for item in value]
    if not isinstance(value, dict):
        return value.replace(_V3, _V2) if isinstance(value, str) else value
    all_of = value.get("allOf")
    if isinstance(all_of, list) and len(all_of) == 1 and "$ref" in all_of[0]:
        value = {**{key: item for key, item in value.items() if key != "allOf"}, **all_of[0]}
    return {key: _as_v2(item) for key, item in value.items() if key not in _NOT_IN_V2 or isinstance(item, str)}
