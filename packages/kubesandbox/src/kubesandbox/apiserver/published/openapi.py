"""OpenAPI documents of the served kinds, which kubectl reads for apply, explain and validation.

In: kinds, custom ones with their definitions. Out: the v3 index, one v3 document a group-version, and one v2 document
of all kinds. They contain only what clients read: schemas, and paths whose operations name their kind and the
fieldValidation parameter. Documents are built on request and cached until one of their kinds changes: without the
cache, a cluster with a hundred definitions would rebuild every document for every `kubectl apply`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from email.utils import format_datetime
from functools import cache
from typing import Any

import orjson

from kubekit.kube.clock import Clock
from kubesandbox.apiserver import kubernetes_version
from kubesandbox.apiserver.http.messages import JSON_TYPE, Request, Response
from kubesandbox.apiserver.published.descriptions import with_descriptions
from kubesandbox.apiserver.published.openapi_protobuf import MEDIA_TYPE, encode_openapi, is_wanted
from kubesandbox.apiserver.schema.builtin import Definitions
from kubesandbox.apiserver.schema.builtin_table import full_name
from kubesandbox.apiserver.served_kinds import Kind, KindTable

JSON = dict[str, Any]

_V3 = "#/components/schemas/"
_V2 = "#/definitions/"
_INFO = {"title": "Kubernetes", "version": f"v1.{kubernetes_version.number()}.0"}
_PRESERVE, _GVK = "x-kubernetes-preserve-unknown-fields", "x-kubernetes-group-version-kind"
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


def by_group(kinds: Iterable[Kind]) -> dict[str, tuple[Kind, ...]]:
    """Groups kinds by group-version, sorted by name."""
    groups: dict[str, list[Kind]] = {}
    for kind in kinds:
        groups.setdefault(path_prefix(kind), []).append(kind)
    return {key: tuple(members) for key, members in sorted(groups.items())}


def build_group(kinds: Iterable[Kind]) -> JSON:
    """Returns the v3 document of one group-version's kinds."""
    listed = list(kinds)
    schemas = _with_references(dict(entry for kind in listed for entry in _schemas_of(kind)))
    paths = dict(entry for kind in listed for entry in _paths_of(kind))
    return {"openapi": "3.0.0", "info": _INFO, "paths": paths, "components": {"schemas": schemas}}


def build_v2(kinds: Iterable[Kind]) -> JSON:
    """Returns the v2 document of all kinds."""
    listed = list(kinds)
    schemas = dict(entry for kind in listed for entry in _schemas_of(kind))
    for kind in listed:
        # kubectl takes a property that such a schema does not name for an unknown field, so none is named.
        if kind.custom and schemas[schema_name(kind)].get(_PRESERVE):
            keywords = ("type", _GVK)
            schemas[schema_name(kind)] = {key: schemas[schema_name(kind)][key] for key in keywords}
    definitions = {name: _as_v2(schema) for name, schema in _with_references(schemas).items()}
    paths = _as_v2(dict(entry for kind in listed for entry in _paths_of(kind)))
    return {"swagger": "2.0", "info": _INFO, "paths": paths, "definitions": definitions}


def _schemas_of(kind: Kind) -> Iterator[tuple[str, JSON]]:
    """Yields name and schema of a kind, of its list, and of what its subresources add."""
    name, schema = schema_name(kind), None
    if kind.crd is None:
        name_of_type = full_name(kind.group, kind.version, kind.kind)
        schema = Definitions().get(name_of_type)
        schema = None if schema is None else with_descriptions(name_of_type, schema)
    else:
        version = next(version for version in kind.crd["spec"]["versions"] if version["name"] == kind.version)
        schema = (version.get("schema") or {}).get("openAPIV3Schema")
    if schema is None or kind.crd is not None:
        schema = schema or {"type": "object", _PRESERVE: True}
        properties = {**_type_meta(), **schema.get("properties", {}), "metadata": _type_meta()["metadata"]}
        schema = {**schema, "properties": properties}
    yield name, {**schema, _GVK: [{"group": kind.group, "kind": kind.kind, "version": kind.version}]}
    properties = {
        "apiVersion": {"type": "string"},
        "kind": {"type": "string"},
        "items": {"type": "array", "items": {"allOf": [{"$ref": _V3 + name}]}},
        "metadata": {"type": "object"},
    }
    list_schema = {
        "type": "object",
        "description": f"{kind.list_name} is a list of {kind.kind}.",
        "required": ["items"],
        "properties": properties,
        _GVK: [{"group": kind.group, "kind": kind.list_name, "version": kind.version}],
    }
    yield f"{name}List", list_schema


def schema_name(kind: Kind) -> str:
    """Returns the name of a kind's schema: a built-in one's as in Kubernetes, a custom one's from its group."""
    builtin_name = "" if kind.custom else full_name(kind.group, kind.version, kind.kind)
    return builtin_name or ".".join([*reversed((kind.group or "core").split(".")), kind.version, kind.kind])


@cache
def _type_meta() -> dict[str, JSON]:
    """Returns the properties that every kind has, with the descriptions that custom kinds get from a real server."""
    pod = "io.k8s.api.core.v1.Pod"
    properties = with_descriptions(pod, Definitions()[pod])["properties"]
    return {name: properties[name] for name in ("apiVersion", "kind", "metadata")}


def _with_references(schemas: dict[str, JSON]) -> dict[str, JSON]:
    """Returns `schemas` and all schemas that they refer to, sorted by name."""
    result, builtin_schemas = dict(schemas), Definitions()
    waiting = list(schemas.values())
    while waiting:
        for name in references_in(waiting.pop()):
            if name not in result and name in builtin_schemas:
                result[name] = with_descriptions(name, builtin_schemas[name])
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
    content = {"application/json": {"schema": {"$ref": _V3 + schema_name(kind)}}}
    suffix = f"{kind.group.replace('.', '').title()}{kind.version.title()}{kind.kind}"
    for path, role in ((collection, "collection"), (f"{collection}/{{name}}", "item")):
        operations = {}
        for method, action in _VERBS[role].items():
            if action in kind.verbs:
                operations[method] = {
                    "operationId": f"{action}{suffix}",
                    **({"parameters": _PARAMETERS} if method in ("post", "put", "patch") else {}),
                    "responses": {"200": {"description": "OK", "content": content}},
                    "x-kubernetes-action": action,
                    _GVK: {"group": kind.group, "kind": kind.kind, "version": kind.version},
                }
        if operations:
            yield path, operations


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


# -- The documents as they are served ----------------------------------------------------------------------------------

# A document requested by its hash is immutable, so that clients may cache it for long.
_KEEP = timedelta(days=365)


@dataclass(frozen=True, slots=True)
class Document:
    """A document as it is sent."""

    body: bytes
    type: str = JSON_TYPE
    hash: str = field(init=False)

    def __post_init__(self) -> None:
        # SHA-512 in upper-case hex, like kube-openapi's.
        object.__setattr__(self, "hash", hashlib.sha512(self.body).hexdigest().upper())

    @property
    def etag(self) -> str:
        """The hash in the form of an ETag header."""
        return f'"{self.hash}"'

    def answer(self, request: Request, *headers: tuple[str, str]) -> Response:
        """Returns the document, or 304 for a client that has it."""
        headers = (("Etag", self.etag), ("Vary", "Accept"), *headers)
        if self.etag in request.header("if-none-match"):
            return Response(status=304, headers=headers)
        return Response(body=self.body, content_type=self.type, headers=headers)


class OpenApiDocuments:
    """The documents at `/openapi/v2` and `/openapi/v3`."""

    def __init__(self, kinds: KindTable, clock: Clock) -> None:
        self._kinds = kinds
        self._clock = clock
        # Group-version -> the kinds that a document was made of, and the document.
        self._groups: dict[str, tuple[tuple[Kind, ...], Document]] = {}
        self._whole: dict[str, tuple[int, Document]] = {}

    def serve(self, request: Request) -> Response | None:
        """Returns the response for an OpenAPI path (404 for an unknown group-version), or None for any other path.

        A request with an outdated hash is redirected to the present document (like kube-openapi's handler3).
        """
        path = request.target.path
        key = path.removeprefix("/openapi/v3/")
        if path in ("/openapi/v2", "/openapi/v3"):
            form = MEDIA_TYPE if path == "/openapi/v2" and is_wanted(request.header("accept")) else path
            return self._whole_document(form).answer(request)
        if key == path:
            return None
        kinds, requested_hash = by_group(self._kinds).get(key), request.query.get("hash", "")
        if not kinds:
            return Response(status=404)
        document = self._group_document(key, kinds)
        if not requested_hash:
            return document.answer(request)
        if requested_hash != document.hash:
            headers = (("Location", v3_address(key, document.hash)), ("Etag", document.etag))
            return Response(status=301, headers=headers)
        until = format_datetime(self._clock.now() + _KEEP, usegmt=True)
        return document.answer(request, ("Cache-Control", "public, immutable"), ("Expires", until))

    def _whole_document(self, form: str) -> Document:
        """Returns the v2 document (as JSON or protobuf) or the v3 index, encoded once for each set of kinds."""
        generation = self._kinds.generation
        cached = self._whole.get(form)
        if cached is not None and cached[0] == generation:
            return cached[1]
        if form == MEDIA_TYPE:
            document = Document(encode_openapi(build_v2(self._kinds)), MEDIA_TYPE)
        elif form == "/openapi/v2":
            document = Document(orjson.dumps(build_v2(self._kinds)))
        else:
            groups = by_group(self._kinds)
            self._groups = {key: entry for key, entry in self._groups.items() if key in groups}
            hashes = {key: self._group_document(key, kinds).hash for key, kinds in groups.items()}
            paths = {key: {"serverRelativeURL": v3_address(key, content)} for key, content in hashes.items()}
            document = Document(orjson.dumps({"paths": paths}))
        self._whole[form] = (generation, document)
        return document

    def _group_document(self, key: str, kinds: tuple[Kind, ...]) -> Document:
        cached = self._groups.get(key)
        if cached is None or cached[0] != kinds:
            cached = self._groups[key] = (kinds, Document(orjson.dumps(build_group(kinds))))
        return cached[1]
