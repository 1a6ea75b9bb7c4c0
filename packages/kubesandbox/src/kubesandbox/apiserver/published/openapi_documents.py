"""The OpenAPI documents of the currently served kinds, built on request and cached until one of their kinds changes.

In: the served kinds and a request. Out: the document with its ETag, 304 for a client that has it, 301 to the current
address for an outdated hash (like kube-openapi's handler3). Without the cache, a cluster with a hundred definitions
would rebuild every document for every `kubectl apply`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from email.utils import format_datetime

import orjson

from kubekit.kube.clock import Clock
from kubesandbox.apiserver.http.messages import JSON_TYPE, Request, Response
from kubesandbox.apiserver.published import openapi, openapi_protobuf
from kubesandbox.apiserver.served_kinds import Kind, KindTable

# A document requested by its hash is immutable, so that clients may cache it for long.
_KEEP = timedelta(days=365)


@dataclass(frozen=True, slots=True)
class Document:
    """A document as it is sent."""

    body: bytes
    hash: str
    type: str = JSON_TYPE

    @property
    def etag(self) -> str:
        """The hash in the form of an ETag header."""
        return f'"{self.hash}"'


def _encode_document(content: openapi.JSON) -> Document:
    body = orjson.dumps(content)
    return Document(body, openapi.content_hash(body))


class OpenApiDocuments:
    """The documents at `/openapi/v2` and `/openapi/v3`."""

    def __init__(self, kinds: KindTable, clock: Clock) -> None:
        self._kinds = kinds
        self._clock = clock
        # Group-version -> the kinds that a document was made of, and the document.
        self._groups: dict[str, tuple[tuple[Kind, ...], Document]] = {}
        self._whole: dict[str, tuple[int, Document]] = {}

    def serve(self, request: Request) -> Response | None:
        """Returns the response for an OpenAPI path (404 for an unknown group-version), or None for any other path."""
        path = request.path
        if path == "/openapi/v2" and openapi_protobuf.is_wanted(request.header("accept")):
            return _document_response(request, self._v2_protobuf())
        if path == "/openapi/v2":
            return _document_response(request, self._at_once(path, lambda: openapi.build_v2(self._kinds)))
        if path == "/openapi/v3":
            return _document_response(request, self._at_once(path, self._index_content))
        if not path.startswith("/openapi/v3/"):
            return None
        key = path.removeprefix("/openapi/v3/")
        kinds = openapi.by_group(self._kinds).get(key)
        return self._group_answer(request, key, self._group_document(key, kinds)) if kinds else Response(404)

    def _group_answer(self, request: Request, key: str, document: Document) -> Response:
        """Returns a group's document; a request with an outdated hash is redirected to the present one."""
        requested_hash = request.query.get("hash", "")
        if not requested_hash:
            return _document_response(request, document)
        if requested_hash != document.hash:
            headers = (("Location", openapi.v3_address(key, document.hash)), ("Etag", document.etag))
            return Response(301, headers=headers)
        until = format_datetime(self._clock.now() + _KEEP, usegmt=True)
        return _document_response(request, document, (("Cache-Control", "public, immutable"), ("Expires", until)))

    def _at_once(self, path: str, build: Callable[[], openapi.JSON]) -> Document:
        """Returns a whole document, built anew when the served kinds have changed."""
        generation = self._kinds.generation
        cached = self._whole.get(path)
        if cached is None or cached[0] != generation:
            cached = self._whole[path] = (generation, _encode_document(build()))
        return cached[1]

    def _v2_protobuf(self) -> Document:
        """Returns the v2 document in protobuf, encoded once for each set of kinds."""
        key, generation = openapi_protobuf.MEDIA_TYPE, self._kinds.generation
        cached = self._whole.get(key)
        if cached is None or cached[0] != generation:
            body = openapi_protobuf.encode_openapi(openapi.build_v2(self._kinds))
            cached = self._whole[key] = (generation, Document(body, openapi.content_hash(body), key))
        return cached[1]

    def _index_content(self) -> openapi.JSON:
        groups = openapi.by_group(self._kinds)
        self._groups = {key: group_entry for key, group_entry in self._groups.items() if key in groups}
        return openapi.v3_index({key: self._group_document(key, kinds).hash for key, kinds in groups.items()})

    def _group_document(self, key: str, kinds: tuple[Kind, ...]) -> Document:
        cached = self._groups.get(key)
        if cached is None or cached[0] != kinds:
            cached = self._groups[key] = (kinds, _encode_document(openapi.build_group(kinds)))
        return cached[1]


def _document_response(request: Request, document: Document, headers: tuple[tuple[str, str], ...] = ()) -> Response:
    headers = (("Etag", document.etag), ("Vary", "Accept"), *headers)
    if document.etag in request.header("if-none-match"):
        return Response(304, headers=headers)
    return Response(body=document.body, content_type=document.type, headers=headers)
