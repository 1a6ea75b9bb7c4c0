"""URLs as Go's `net/url` reads them, which is what the API server's `uri` format and CEL's `isURL` ask."""

from __future__ import annotations

import re
from dataclasses import dataclass

_SCHEME = re.compile(r"[a-zA-Z][a-zA-Z0-9+.\-]*:")
_BAD_ESCAPE = re.compile(r"%(?![0-9a-fA-F]{2})")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_HOST = re.compile(r"[A-Za-z0-9\-._~!$&'()*+,;=:\[\]<>\"%\u0080-\U0010ffff]*")
_PORT = re.compile(r"(:[0-9]*)?")


class URLError(ValueError):
    """The text is neither an absolute URL nor an absolute path."""


@dataclass(frozen=True, slots=True)
class URL:
    """The parts of a URL; `host` carries the port, `path` and `query` are still escaped, without `?`."""

    scheme: str
    host: str
    path: str
    query: str

    @property
    def hostname(self) -> str:
        """The host without port and brackets."""
        host = self.host
        if host.startswith("["):
            return host[1 : host.index("]")]
        return host.rsplit(":", 1)[0] if ":" in host else host

    @property
    def port(self) -> str:
        """The port, or nothing."""
        rest = self.host.split("]", 1)[1] if self.host.startswith("[") else self.host
        return rest.rsplit(":", 1)[1] if ":" in rest else ""


def parse_request_uri(text: str) -> URL:
    """Read an absolute URL or an absolute path, as Go's `url.ParseRequestURI` does; raises URLError."""
    if not text:
        raise URLError("empty url")
    if _CONTROL.search(text):
        raise URLError("invalid control character in URL")
    scheme_match = _SCHEME.match(text)
    scheme, rest = (text[: scheme_match.end() - 1].lower(), text[scheme_match.end() :]) if scheme_match else ("", text)
    rest, _, query = rest.partition("?")
    if not rest.startswith("/"):
        if not scheme:
            raise URLError("invalid URI for request")
        return URL(scheme, "", "", query)  # opaque, as in mailto:x
    return _hierarchical(scheme, rest, query)


def _hierarchical(scheme: str, rest: str, query: str) -> URL:
    host = ""
    if rest.startswith("//") and (scheme or not rest.startswith("///")):
        authority, slash, path = rest[2:].partition("/")
        rest = slash + path
        host = _host(authority)
    if _BAD_ESCAPE.search(rest):
        raise URLError("invalid URL escape")
    return URL(scheme, host, rest, query)


def _host(authority: str) -> str:
    host = authority.rpartition("@")[2]
    if not _HOST.fullmatch(host):
        raise URLError(f"invalid character in host name {host!r}")
    if host.startswith("[") and "]" not in host:
        raise URLError("missing ']' in host")
    port = host.partition("]")[2] if host.startswith("[") else (host[host.rindex(":") :] if ":" in host else "")
    if not _PORT.fullmatch(port):
        raise URLError(f"invalid port {port!r} after host")
    return host
