"""Requests as values, separate from sending them, so that they can be tested without a server."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar
from urllib.parse import quote, urlencode

import msgspec

T = TypeVar("T")

# RFC 3986 sub-delims and the like, which are allowed in a path segment: `system:node:a` stays readable in audit logs.
_SEGMENT_SAFE = ":@!$&'()*+,;="
_PATCHES_THAT_REPEAT = ("application/apply-patch+yaml", "application/merge-patch+json")


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """An HTTP request to an API server; `path` is percent-encoded and starts with a slash, `query` is not encoded."""

    method: str
    path: str
    query: tuple[tuple[str, str], ...] = ()
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes | None = None

    @property
    def target(self) -> str:
        """The path and the encoded query, as in the request line."""
        if not self.query:
            return self.path
        return f"{self.path}?{urlencode(self.query)}"

    @property
    def repeatable(self) -> bool:
        """Reports whether sending it twice has the same effect as once: then a dropped request may be repeated."""
        if self.method == "PATCH":
            return dict(self.headers).get("Content-Type", "") in _PATCHES_THAT_REPEAT
        return self.method in ("GET", "HEAD", "PUT", "DELETE")

    def __str__(self) -> str:
        return f"{self.method} {self.target}"


class Call(msgspec.Struct, Generic[T], frozen=True):
    """A request, and the decoder of its answer. For a watch, `decode` reads one line."""

    request: Request
    decode: Callable[[bytes], T]


def path_segment(text: str) -> str:
    """Returns `text` as one segment of a path. Raises ValueError if it would change the path (as client-go does)."""
    if not text or text in (".", "..") or "/" in text or "%" in text:
        raise ValueError(f"{text!r} cannot be the name of an object: it would change the request's path")
    return quote(text, safe=_SEGMENT_SAFE)
