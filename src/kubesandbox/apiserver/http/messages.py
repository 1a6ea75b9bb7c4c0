"""A request and its answer, free of any web framework, so that handlers are plain functions of values."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson

JSON = dict[str, Any]
JSON_TYPE = "application/json"


@dataclass(frozen=True, slots=True)
class User:
    """Who asks."""

    name: str
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: tuple[tuple[str, tuple[str, ...]], ...] = ()

    def to_dict(self) -> JSON:
        """As `authentication.k8s.io/v1` UserInfo writes it."""
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
    """One request. `headers` has lower-case names; `query` holds the last value of each parameter."""

    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes = b""
    user: User | None = None
    # Collected while handling, sent as Warning headers.
    warnings: list[str] = field(default_factory=list)

    def header(self, name: str) -> str:
        """A header's value, or the empty string."""
        return self.headers.get(name, "")


@dataclass(slots=True)
class Response:
    """An answer with its whole body, or, when `stream` is set, one that goes on."""

    status: int = 200
    body: bytes = b""
    content_type: str = JSON_TYPE
    headers: tuple[tuple[str, str], ...] = ()
    stream: AsyncIterator[bytes] | None = None


def json_response(obj: Any, status: int = 200, headers: tuple[tuple[str, str], ...] = ()) -> Response:
    """`obj` as JSON."""
    return Response(status, orjson.dumps(obj), headers=headers)


def text_response(text: str, status: int = 200) -> Response:
    """Plain text, as the health endpoints and unknown paths answer."""
    return Response(status, text.encode(), "text/plain; charset=utf-8")


def is_true(value: str) -> bool:
    """A query flag as apimachinery reads it: anything but `0` and `false` sets it."""
    return value.lower() not in {"", "0", "false"}
