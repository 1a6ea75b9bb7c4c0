"""Sends one request on a separate connection: through a proxy or not, to allowed addresses, within a deadline.

Redirects and retries are the caller's, and so is the choice of a proxy (`kubekit.http.proxies`).
"""

from __future__ import annotations

import socket
import ssl
import string
from collections.abc import Iterable, Mapping
from urllib.parse import SplitResult, quote

from kubekit.http.addresses import AddressPolicy, Deadline, connect_allowed
from kubekit.http.http_connection import Answer, Connection
from kubekit.http.proxies import Proxy

_ANYWHERE = AddressPolicy()
_WANTS_LOGIN = 407
# The body arrives as it is, and the server need not keep the connection.
_HEADERS = {"Accept-Encoding": "identity", "Connection": "close"}


def send_once(
    method: str,
    url: SplitResult,
    headers: Mapping[str, str],
    body: bytes | Iterable[bytes] | None = None,
    *,
    context: ssl.SSLContext | None,
    deadline: Deadline,
    reach: AddressPolicy = _ANYWHERE,
    proxy: Proxy | None = None,
    proxy_context: ssl.SSLContext | None = None,
) -> Answer:
    """Returns the answer with its head read; the caller closes it.

    A body in pieces needs its Content-Length in `headers`. With a proxy, which resolves names itself, `reach` is kept
    only for an address that is written in the URL. `proxy_context` verifies a proxy that speaks TLS; without it
    `context` does. Raises OSError, ForbiddenAddress among them, or ValueError for a
    URL that cannot be sent.
    """
    host, secure = url.hostname or "", url.scheme == "https"
    reach.check(host)
    port = url.port or (443 if secure else 80)
    connection = Connection(host, url.port, context if secure else None, host)
    # What a server wrote into path and query unescaped, in bytes of any encoding, is escaped.
    text = (url.path or "/") + (f"?{url.query}" if url.query else "")
    target, request_headers = quote(text, safe=string.punctuation, encoding="iso-8859-1"), {**_HEADERS, **headers}
    if proxy is None:
        sock = connect_allowed(host, port, reach, deadline)
    elif secure:
        sock = _open_tunnel(host, port, proxy=proxy, context=proxy_context or context, deadline=deadline)
    else:
        sock = _connect_to_proxy(proxy, proxy_context or context, deadline)
        target = f"http://{url.netloc.rpartition('@')[2]}{target}"
        request_headers |= _proxy_authorization(proxy)
    sock.settimeout(deadline.wait_s())
    connection.begin(sock, deadline.wait_s)
    try:
        answer = connection.send(method, target, request_headers.items(), body)
    except BaseException:
        connection.close()
        raise
    answer.origin = url.netloc
    return answer


def _connect_to_proxy(proxy: Proxy, context: ssl.SSLContext | None, deadline: Deadline) -> socket.socket:
    """Returns a connection to a proxy, over TLS if its URL says so. Raises OSError."""
    sock = connect_allowed(proxy.host, proxy.port, _ANYWHERE, deadline)
    if proxy.scheme != "https" or context is None:
        return sock
    try:
        sock.settimeout(deadline.wait_s())
        return context.wrap_socket(sock, server_hostname=proxy.host)
    except BaseException:
        sock.close()
        raise


def _open_tunnel(
    host: str, port: int, *, proxy: Proxy, context: ssl.SSLContext | None, deadline: Deadline
) -> socket.socket:
    """Returns a tunnel to `host` for TLS. Raises OSError."""
    sock = _connect_to_proxy(proxy, context, deadline)
    # The `Host` of this request is the server's and not the proxy's (RFC 9110, 9.3.6).
    connection = Connection(host, port, None, host)
    connection.begin(sock, deadline.wait_s)
    try:
        literal = f"[{host}]" if ":" in host else host
        answer = connection.send("CONNECT", f"{literal}:{port}", _proxy_authorization(proxy).items(), None)
        if not 200 <= answer.status < 300:
            hint = "; the proxy's URL must have a user and a password" if answer.status == _WANTS_LOGIN else ""
            raise OSError(f"Tunnel connection failed: {answer.status} from the proxy {proxy.host}:{proxy.port}{hint}")
    except BaseException:
        connection.close()
        raise
    return sock


def _proxy_authorization(proxy: Proxy) -> dict[str, str]:
    return {"Proxy-Authorization": proxy.authorization} if proxy.authorization else {}
