"""The OpenAPI documents of what is served now."""

from __future__ import annotations

from runup.sandbox.apiserver.http import Request, Response
from runup.sandbox.apiserver.kinds import KindTable


class OpenApiDocuments:
    """`/openapi/v2` and `/openapi/v3`."""

    def __init__(self, kinds: KindTable) -> None:
        self._kinds = kinds

    def serve(self, request: Request) -> Response | None:
        """The document at a path, or None."""
        return None
