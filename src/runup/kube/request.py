"""A request as a value, apart from sending it, so that paths, queries and content types are tested without a server."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar
from urllib.parse import quote, urlencode

import msgspec

T = TypeVar("T")

# RFC 3986 sub-delims and the like, which are allowed in a path segment: `system:node:a` stays readable in audit logs.
_SEGMENT_SAFE = ":@!$&'()*+,;="
_PATCHES_THAT_REPEAT = ("application/apply-patch+yaml", "application/merge-patch+json")


class Request(msgspec.Struct, frozen=True):
    """One HTTP request to an API server; `path` is encoded already and starts with a slash, `query` is not encoded."""

    method: str
    path: str
    query: tuple[tuple[str, str], ...] = ()
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes | None = None

    @property
    def target(self) -> str:
        """Path and encoded query, as they stand in the request line."""
        return f"{self.path}?{urlencode(self.query)}" if self.query else self.path

    @property
    def repeatable(self) -> bool:
        """Whether sending it twice has the effect of sending it once, so a dropped connection may be retried."""
        if self.method == "PATCH":
            return dict(self.headers).get("Content-Type", "") in _PATCHES_THAT_REPEAT
        return self.method in ("GET", "HEAD", "PUT", "DELETE")

    def __str__(self) -> str:
        return f"{self.method} {self.target}"


class Call(msgspec.Struct, Generic[T], frozen=True):
    """What to send, and what the bytes of its answer are. Of a watch, `decode` reads one line."""

    request: Request
    decode: Callable[[bytes], T]


def segment(text: str) -> str:
    """`text` as one segment of a path; raises ValueError for what would name another path (as client-go does)."""
    if not text or text in (".", "..") or "/" in text or "%" in text:
        raise ValueError(f"{text!r} cannot be the name of an object: it would change the request's path")
    return quote(text, safe=_SEGMENT_SAFE)
