"""The OpenAPI documents of what is served now, built when asked for and kept until a definition comes or goes."""

from __future__ import annotations

from runup.sandbox.apiserver import openapi
from runup.sandbox.apiserver.http import Request, Response, json_response
from runup.sandbox.apiserver.kinds import KindTable
from runup.sandbox.apiserver.openapi import JSON


class OpenApiDocuments:
    """`/openapi/v2` and `/openapi/v3`."""

    def __init__(self, kinds: KindTable) -> None:
        self._kinds = kinds
        self._v3: dict[str, JSON] = {}
        self._index: JSON = {}
        self._built = -1

    def serve(self, request: Request) -> Response | None:
        """The document at a path, or None."""
        path = request.path.strip("/")
        if path == "openapi/v2":
            return json_response(openapi.build_v2(self._kinds))
        if not path.startswith("openapi/v3"):
            return None
        self._refresh()
        if path == "openapi/v3":
            return json_response(self._index)
        document = self._v3.get(path.removeprefix("openapi/v3/"))
        return json_response(document) if document is not None else None

    def _refresh(self) -> None:
        if self._built != self._kinds.generation:
            self._v3 = openapi.build_v3(self._kinds)
            self._index = openapi.v3_index(self._v3)
            self._built = self._kinds.generation
