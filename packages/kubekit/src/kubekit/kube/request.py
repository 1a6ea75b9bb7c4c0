"""Requests as values, separate from sending them, so that they can be tested without a server.

`urllib.parse` takes a quarter of a bare interpreter to import. So the common names, queries and server URLs are handled
without it (docs/decisions/0043-a-command-in-five-interpreters.md).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

import msgspec

T = TypeVar("T")

# RFC 3986 sub-delims and the like, which are allowed in a path segment: `system:node:a` stays readable in audit logs.
_SEGMENT_SAFE = ":@!$&'()*+,;="
_LOWER = "abcdefghijklmnopqrstuvwxyz0123456789.-"
# Characters that need no quoting.
_PLAIN = frozenset(_LOWER + _LOWER.upper() + "_~")
_PLAIN_HOST = frozenset(_LOWER)
_PORT_DIGITS = 5
_LAST_PORT = 65535
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
        if all(map(_PLAIN.issuperset, (text for pair in self.query for text in pair))):
            return f"{self.path}?{'&'.join(f'{key}={value}' for key, value in self.query)}"
        from urllib.parse import urlencode

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


class ServerURL(msgspec.Struct, frozen=True):
    """The parts of a server's URL, as `urllib.parse.urlsplit` returns them."""

    scheme: str
    hostname: str | None
    port: int | None
    path: str = ""


def server_url(text: str) -> ServerURL:
    """Returns the parts of `text`. Raises ValueError if the URL cannot be parsed."""
    scheme, _, rest = text.partition("://")
    host, colon, port = rest.partition(":")
    if scheme in ("http", "https") and host and _PLAIN_HOST.issuperset(host):
        if not colon:
            return ServerURL(scheme, host, None)
        if port.isascii() and port.isdigit() and len(port) <= _PORT_DIGITS and int(port) <= _LAST_PORT:
            return ServerURL(scheme, host, int(port))
    from urllib.parse import urlsplit

    parts = urlsplit(text)
    return ServerURL(parts.scheme, parts.hostname, parts.port, parts.path)


def path_segment(text: str) -> str:
    """Returns `text` as one segment of a path. Raises ValueError if it would change the path (as client-go does)."""
    if not text or text in (".", "..") or "/" in text or "%" in text:
        raise ValueError(f"{text!r} cannot be the name of an object: it would change the request's path")
    if _PLAIN.issuperset(text):
        return text
    from urllib.parse import quote

    return quote(text, safe=_SEGMENT_SAFE)
