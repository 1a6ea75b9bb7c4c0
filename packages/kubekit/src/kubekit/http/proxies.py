"""Chooses the proxy of a request by the rules of Go's `golang.org/x/net/http/httpproxy`.

The settings come from the environment (`HTTP_PROXY`, `HTTPS_PROXY`, `NO_PROXY`, in upper or lower case) or from a
cluster. An entry of `no_proxy` is a domain (with its subdomains), `.domain` or `*.domain` (subdomains alone), or an
address, each perhaps with a port; or a network such as 10.0.0.0/8; or `*` for everything. This machine is never reached
through a proxy.
"""

from __future__ import annotations

import base64
import ipaddress
import os
from functools import lru_cache
from typing import TYPE_CHECKING
from urllib.parse import SplitResult, unquote, urlsplit

import msgspec

from kubekit.http.addresses import Address, Network

if TYPE_CHECKING:
    import ssl

_PORTS = {"http": 80, "https": 443}


class Proxy(msgspec.Struct, frozen=True):
    """A proxy; `authorization` is the header that it wants, empty for none."""

    scheme: str
    host: str
    port: int
    authorization: str = ""

    @property
    def url(self) -> str:
        """The URL of the proxy, without its password."""
        return f"{self.scheme}://{f'[{self.host}]' if ':' in self.host else self.host}:{self.port}"

    @classmethod
    def parse(cls, text: str) -> Proxy:
        """Returns the proxy that a setting names, as a URL or as `host:port`. Raises OSError for anything else."""
        try:
            parts = urlsplit(text if "://" in text else f"http://{text}")
            default = _PORTS[parts.scheme]
            host, port = parts.hostname, parts.port or default
        except (ValueError, KeyError):
            host, port = None, 0
        if not host:
            # Not the text itself, which may have a password.
            raise OSError("the proxy must be a URL such as http://proxy.example:3128")
        if parts.username is None:
            return cls(parts.scheme, host, port)
        login = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        return cls(parts.scheme, host, port, f"Basic {base64.b64encode(login.encode()).decode()}")


class Proxies(msgspec.Struct, frozen=True):
    """The proxies for http and for https URLs, each as a URL or empty, and the hosts that are reached without them."""

    http: str = ""
    https: str = ""
    no_proxy: str = ""

    def proxy_for(self, url: SplitResult) -> Proxy | None:
        """Returns the proxy for `url`, None if it is reached directly. Raises OSError for an invalid proxy."""
        text = {"http": self.http, "https": self.https}.get(url.scheme, "")
        if not text or not _uses_proxy(self.no_proxy, url.hostname or "", url.port or _PORTS[url.scheme]):
            return None
        return Proxy.parse(text)


def environment_proxies() -> Proxies:
    """Returns the proxies that the environment names."""
    http, https, no_proxy = (
        os.environ.get(name) or os.environ.get(name.lower(), "") for name in ("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY")
    )
    # A client of a CGI program sets HTTP_PROXY by a header: https://httpoxy.org.
    return Proxies("" if os.environ.get("REQUEST_METHOD") else http, https, no_proxy)


def _uses_proxy(no_proxy: str, host: str, port: int) -> bool:
    """Returns whether a request to `host` uses a proxy (`useProxy` of Go)."""
    name = _ascii_name(host)
    address = _parse_address(name)
    if name == "localhost" or (address is not None and address.is_loopback):
        return False
    return not any(entry.matches(name, str(port), address) for entry in _parse_entries(no_proxy))


class _Entry(msgspec.Struct, frozen=True):
    """An entry of `no_proxy`: a network, an address, or the end of a name. An empty port matches every port."""

    network: Network | None = None
    suffix: str = ""
    port: str = ""
    # Whether the suffix without its dot matches, too.
    itself: bool = False

    def matches(self, name: str, port: str, address: Address | None) -> bool:
        """Returns whether a host, which is `address` if it is one, is reached without a proxy."""
        if self.port not in ("", port):
            return False
        if self.network is not None:
            return address is not None and address in self.network
        return address is None and (name.endswith(self.suffix) or (self.itself and name == self.suffix[1:]))


_EVERYTHING = (
    _Entry(network=ipaddress.ip_network("0.0.0.0/0")),
    _Entry(network=ipaddress.ip_network("::/0")),
    _Entry(suffix=""),
)


@lru_cache(maxsize=16)
def _parse_entries(no_proxy: str) -> tuple[_Entry, ...]:
    """Returns the valid entries of `no_proxy`; others are ignored, as in Go."""
    entries: list[_Entry] = []
    for text in no_proxy.split(","):
        entry = text.strip().lower()
        if entry == "*":
            return _EVERYTHING
        host, port = _split_port(entry)
        if not host:
            continue
        if (network := _parse_network(entry, host)) is not None:
            entries.append(_Entry(network=network, port=port))
            continue
        domain = host.removeprefix("*") if host.startswith("*.") else host
        itself = not domain.startswith(".")
        suffix = f".{_ascii_name(domain.removeprefix('.'))}"
        entries.append(_Entry(suffix=suffix, port=port, itself=itself))
    return tuple(entries)


def _split_port(entry: str) -> tuple[str, str]:
    """Returns host and port of an entry, as Go's SplitHostPort does; without a port, the whole entry."""
    if entry.startswith("["):
        host, closed, rest = entry[1:].partition("]")
        return (host, rest[1:]) if closed and rest.startswith(":") else (entry, "")
    host, colon, port = entry.rpartition(":")
    return (host, port) if colon and ":" not in host else (entry, "")


def _parse_address(host: str) -> Address | None:
    """Returns the address that `host` is written as, an IPv4 address in an IPv6 one as the IPv4 address; else None."""
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return None
    return getattr(address, "ipv4_mapped", None) or address


def _parse_network(entry: str, host: str) -> Network | None:
    """Returns the network or the address of an entry, whose part before a port is `host`; None for a name."""
    address, slash, length = entry.partition("/")
    if slash and not (length.isascii() and length.isdigit()):
        return None
    try:
        if slash:
            return ipaddress.ip_network(entry, strict=False)
        return ipaddress.ip_network(_parse_address(host) or "") if "%" not in address else None
    except ValueError:
        return None


def _ascii_name(host: str) -> str:
    """Returns an international name as it is sent, and any other text unchanged."""
    try:
        return host if host.isascii() else host.encode("idna").decode()
    except UnicodeError:
        return host


class Egress(msgspec.Struct, frozen=True):
    """The way to servers outside of the cluster.

    `proxies` are those of the environment if None. `authorities` (PEM) are trusted in place of the system's, which
    they contain on OpenShift; empty for the system's.
    """

    proxies: Proxies | None = None
    authorities: str = ""

    def proxy_for(self, url: SplitResult) -> Proxy | None:
        """Returns the proxy for `url`, None if it is reached directly. Raises OSError for an invalid proxy."""
        return (environment_proxies() if self.proxies is None else self.proxies).proxy_for(url)

    def context(self, ca_file: str = "") -> ssl.SSLContext:
        """Returns a context that trusts the authorities, or those in `ca_file` alone. Raises OSError."""
        # `ssl` takes longer than this module, and commands without a network need none.
        import ssl

        from kubekit.http.tls import client_context

        if ca_file:
            return client_context(ca_file=ca_file)
        # Comments in a bundle name authorities in any language, and `ssl` takes ASCII alone.
        ascii_text = self.authorities.encode("ascii", "ignore").decode()
        try:
            return client_context(ascii_text)
        except ssl.SSLError as error:
            raise OSError(f"the cluster's certificate authorities cannot be used: {error.reason}") from error
