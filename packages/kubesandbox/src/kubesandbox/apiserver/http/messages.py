"""A request and its response, independent of any web framework, so that handlers are plain functions of values."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson

JSON = dict[str, Any]
JSON_TYPE = "application/json"


@dataclass(frozen=True, slots=True)
class User:
    """The authenticated user of a request."""

    name: str
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: tuple[tuple[str, tuple[str, ...]], ...] = ()

    def to_dict(self) -> JSON:
        """Returns the user as `authentication.k8s.io/v1` UserInfo."""
        info: JSON = {"username": self.name}
        if self.uid:
            info["uid"] = self.uid
        if self.groups:
            info["groups"] = list(self.groups)
        if self.extra:
            info["extra"] = {key: list(values) for key, values in self.extra}
        return info


@dataclass(slots=True)
class Request:
    """A request. `headers` has lower-case names; `query` holds the last value of each parameter."""

    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes = b""
    user: User | None = None
    # Collected while handling, sent as Warning headers.
    warnings: list[str] = field(default_factory=list)
    # Collected by admission, written to the audit log.
    annotations: dict[str, str] = field(default_factory=dict)

    def header(self, name: str) -> str:
        """Returns a header's value, or ""."""
        return self.headers.get(name, "")


@dataclass(slots=True)
class Response:
    """A response with its whole body, or a streaming one if `stream` is set."""

    status: int = 200
    body: bytes = b""
    content_type: str = JSON_TYPE
    headers: tuple[tuple[str, str], ...] = ()
    stream: AsyncIterator[bytes] | None = None


def json_response(obj: Any, status: int = 200, headers: tuple[tuple[str, str], ...] = ()) -> Response:
    """Returns a response with `obj` as JSON."""
    return Response(status, orjson.dumps(obj), headers=headers)


def text_response(text: str, status: int = 200, headers: tuple[tuple[str, str], ...] = ()) -> Response:
    """Returns a response with plain text, for health endpoints and unknown paths."""
    return Response(status, text.encode(), "text/plain; charset=utf-8", headers)


def is_true(value: str) -> bool:
    """Returns whether a query flag is set, as apimachinery reads it: any value but "", `0` and `false`."""
    return value.lower() not in {"", "0", "false"}
