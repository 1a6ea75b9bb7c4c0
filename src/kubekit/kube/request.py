"""A request as a value, apart from sending it, so that paths, queries and content types are tested without a server.

`urllib.parse` takes a tenth of a bare interpreter to import; what nearly all names, queries and servers are made of is
put together and taken apart without it (docs/decisions/0043-a-command-in-five-interpreters.md).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

import msgspec

T = TypeVar("T")

# RFC 3986 sub-delims and the like, which are allowed in a path segment: `system:node:a` stays readable in audit logs.
_SEGMENT_SAFE = ":@!$&'()*+,;="
_LOWER = "abcdefghijklmnopqrstuvwxyz0123456789.-"
# What no quoting changes.
_PLAIN = frozenset(_LOWER + _LOWER.upper() + "_~")
_PLAIN_HOST = frozenset(_LOWER)
_PORT_DIGITS = 5
_LAST_PORT = 65535
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
        return f"{self.path}?{_encoded(self.query)}" if self.query else self.path

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


class ServerURL(msgspec.Struct, frozen=True):
    """The parts of a server's URL, as `urllib.parse.urlsplit` has them."""

    scheme: str
    hostname: str | None
    port: int | None
    path: str = ""


def server_url(text: str) -> ServerURL:
    """The parts of `text`; raises ValueError for a URL that cannot be taken apart."""
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


def segment(text: str) -> str:
    """`text` as one segment of a path; raises ValueError for what would name another path (as client-go does)."""
    if not text or text in (".", "..") or "/" in text or "%" in text:
        raise ValueError(f"{text!r} cannot be the name of an object: it would change the request's path")
    if _PLAIN.issuperset(text):
        return text
    from urllib.parse import quote

    return quote(text, safe=_SEGMENT_SAFE)


def _encoded(query: tuple[tuple[str, str], ...]) -> str:
    if all(map(_PLAIN.issuperset, (text for pair in query for text in pair))):
        return "&".join(f"{key}={value}" for key, value in query)
    from urllib.parse import urlencode

    return urlencode(query)
