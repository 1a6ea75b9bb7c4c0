"""Fetches one page of the web, or sends one document, within a time and a size limit.

It limits where redirects may lead, as for registries.

A signature store or an update service could use redirects to make the operator, which reaches more than they do, ask
its own machine or a cloud's metadata service, which holds credentials. So each redirect is followed by hand, and every
address is checked after its name was resolved and before it is connected to (`kubekit.http.addresses`).
"""

from __future__ import annotations

import asyncio
import errno
import ipaddress
import socket
import ssl
from collections.abc import Mapping
from functools import lru_cache
from typing import Any
from urllib.parse import urljoin, urlsplit

import aiohttp
import msgspec

from kubekit.http.addresses import Address, AddressPolicy, ForbiddenAddress, address_of
from kubekit.http.proxies import Egress
from kubekit.oci.access import is_loopback

MAX_REDIRECTS = 10
# Characters of a redirect's target that messages quote.
_SHOWN = 100
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
# A document is sent again only where the server asks for that: to other redirects a client sends GET.
_REDIRECTS_OF_POST = frozenset({307, 308})
_ENVIRONMENT = Egress()


class Page(msgspec.Struct, frozen=True):
    """The final answer; `body` is cut one byte after the limit, so that callers notice a larger one."""

    status: int
    body: bytes


async def fetch(
    url: str,
    *,
    within_s: float,
    limit: int,
    headers: Mapping[str, str] | None = None,
    authorization: str = "",
    egress: Egress = _ENVIRONMENT,
    context: ssl.SSLContext | None = None,
    document: bytes | None = None,
) -> Page:
    """Sends GET to `url`, with redirects, headers and body `within_s`. Raises ClientError, OSError, TimeoutError.

    `authorization` is sent to the named server, over TLS, and to none that it redirects to. `context` counts instead of
    the authorities of `egress`. With a `document` it sends POST, and follows redirects that keep the method;
    the first address is restricted like those of redirects, because users may name receivers.
    """
    try:
        loopback, location = is_loopback(urlsplit(url).netloc.rpartition("@")[2]), url
        async with asyncio.timeout(within_s):
            for hop in range(MAX_REDIRECTS + 1):
                request_headers = (
                    {"Authorization": authorization} if authorization and is_same_server(location, url) else {}
                )
                # The first URL is the administrator's and may name any address; a redirect and the receiver of a
                # document may name none of this machine, of the link or of a cloud's metadata.
                reach = AddressPolicy(document is None and not hop, loopback)
                answer = await _fetch_once(
                    location,
                    reach,
                    limit=limit,
                    headers={**(headers or {}), **request_headers},
                    egress=egress,
                    context=context,
                    document=document,
                )
                if isinstance(answer, Page):
                    return answer
                location = answer
    except ValueError as error:
        # A server may redirect to a text that is not a URL.
        if isinstance(error, aiohttp.ClientError):
            raise
        raise aiohttp.InvalidURL(url, str(error)) from error
    raise aiohttp.ClientPayloadError(f"more than {MAX_REDIRECTS} redirects, the last to {location[:_SHOWN]}")


def is_same_server(location: str, url: str) -> bool:
    """Returns whether a password for `url` may be sent to `location`."""
    requested, first = urlsplit(location), urlsplit(url)
    return (requested.scheme, requested.netloc) == ("https", first.netloc)


@lru_cache(maxsize=2)
def _context_of(egress: Egress) -> ssl.SSLContext:
    """Returns the context with the authorities of `egress`, which is expensive to create."""
    return egress.context()


async def _fetch_once(
    url: str,
    reach: AddressPolicy,
    *,
    limit: int,
    headers: Mapping[str, str],
    egress: Egress,
    context: ssl.SSLContext | None,
    document: bytes | None,
) -> Page | str:
    """Returns the page, or the target of a redirect."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    # A proxy is the administrator's and resolves names itself: behind one only what is written can be checked.
    try:
        reach.check(host)
    except ForbiddenAddress as error:
        raise _forbidden(address_of(host) or host) from error
    proxy = egress.proxy_for(parts)
    # Through a tunnel the server must not see the login; a plain request is the proxy's itself.
    login = {"Proxy-Authorization": proxy.authorization} if proxy is not None and proxy.authorization else {}
    tunnels = parts.scheme == "https"
    connector = aiohttp.TCPConnector(
        socket_factory=_factory(reach if proxy is None else AddressPolicy()),
        ssl=context if context is not None else await asyncio.to_thread(_context_of, egress),
    )
    async with (
        # The caller limits the time of the whole fetch.
        aiohttp.ClientSession(
            connector=connector,
            headers=headers if tunnels else {**headers, **login},
            timeout=aiohttp.ClientTimeout(total=None),
        ) as session,
        session.request(
            "GET" if document is None else "POST",
            url,
            data=document,
            allow_redirects=False,
            proxy=proxy.url if proxy is not None else None,
            proxy_headers=login if tunnels else None,
        ) as response,
    ):
        location = response.headers.get("Location", "")
        if response.status in (_REDIRECTS if document is None else _REDIRECTS_OF_POST) and location:
            target = urljoin(url, location)
            if urlsplit(target).scheme not in ("http", "https"):
                raise aiohttp.ClientPayloadError(
                    f"a redirect to {target[:_SHOWN]}, which is not an http or https address"
                )
            return target
        try:
            return Page(response.status, await response.content.readexactly(limit + 1))
        except asyncio.IncompleteReadError as error:
            return Page(response.status, error.partial)


def _factory(reach: AddressPolicy) -> Any:
    """Returns a function that creates a socket for an address. It raises ForbiddenAddress if that is not allowed."""

    def make_socket(location: tuple[Any, ...]) -> socket.socket:
        family, kind, protocol, _, address = location
        resolved = ipaddress.ip_address(str(address[0]).partition("%")[0])
        if reach.refuses(resolved):
            raise _forbidden(resolved)
        return socket.socket(family, kind, protocol)

    return make_socket


def _forbidden(place: Address | str) -> ForbiddenAddress:
    return ForbiddenAddress(errno.EACCES, f"a redirect to {place}, an address that redirects must not lead to")
