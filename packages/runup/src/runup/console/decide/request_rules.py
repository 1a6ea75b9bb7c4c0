"""Decides which requests the console answers: by method, host and origin; and where a login leads. Pure.

A page of another site can make a browser send requests to a server on this machine, and its name can be made to lead
there (DNS rebinding). So a request counts only if it names this server by a name that the server knows.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Collection, Mapping
from urllib.parse import urlsplit

from runup.console.decide.asked_actions import ACTIONS

LOOPBACK = ("localhost", "127.0.0.1", "::1")
LOGIN = "/login"
LOGOUT = "/logout"
# Where the address leads that a console prints which may change clusters on this machine.
ENTER = "/enter"
# What no login guards: nothing of a cluster is in it.
PUBLIC = (LOGIN, "/console.css", "/console.js", "/healthz")
_HOST = re.compile(r"(?:\[(?P<six>[0-9A-Fa-f:.]+)\]|(?P<name>[A-Za-z0-9._-]+))(?::[0-9]{1,5})?")
# What a path and a query may have unescaped: names of contexts have ":" (RFC 3986, 3.3).
_PATH = re.compile(r"/[A-Za-z0-9._~%/?=&+:@,;!$'()*-]*")
# Scripts and styles are the console's own files; a drawing's places are attributes, which cannot run anything.
HEADERS: Mapping[str, str] = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; style-src-attr 'unsafe-inline'; "
        "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    # With no-referrer browsers send `Origin: null` with the login's form (https://fetch.spec.whatwg.org/#append-a-request-origin-header),
    # as they do for a form of another site's sandbox, so the two could not be distinguished.
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}


def is_loopback(host: str) -> bool:
    """Reports whether only this machine reaches `host`, an address to listen on."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def is_any_address(host: str) -> bool:
    """Reports whether `host` means every address of the machine, which no browser uses as a name."""
    try:
        return ipaddress.ip_address(host).is_unspecified
    except ValueError:
        return not host


def host_of(header: str) -> str:
    """Returns the host in a Host header, in small letters and without its port; "" if it is not one."""
    match = _HOST.fullmatch(header)
    return (match["six"] or match["name"]).lower() if match else ""


def hosts_of(listen: str, more_hosts: Collection[str]) -> frozenset[str]:
    """Returns the names by which a server on `listen` may be asked: its own, and those that were typed."""
    own_hosts = LOOPBACK if is_loopback(listen) else () if is_any_address(listen) else (listen,)
    return frozenset(name.lower() for name in (*own_hosts, listen, *more_hosts) if not is_any_address(name))


def refusal(
    method: str, path: str, headers: Mapping[str, str], hosts: Collection[str], *, acts: bool = False
) -> tuple[int, str] | None:
    """Returns status and reason of a request that is not answered, None for one that is.

    `acts`: the console was started with --allow-actions.
    """
    if path == "/healthz" and method in ("GET", "HEAD"):
        # A kubelet asks by the pod's address.
        return None
    if host_of(headers.get("Host", "")) not in hosts:
        return 421, "this server does not answer to that host name; name it with --host when it is started"
    if method == "POST" and (
        True
        if path in (LOGIN, LOGOUT)
        else acts and path.startswith("/clusters/") and path.rpartition("/")[2] in ACTIONS
    ):
        return None if _is_same_origin(headers) else (403, "a form comes from the console's own page only")
    if method not in ("GET", "HEAD"):
        return 405, "the console answers GET and HEAD, and its own forms"
    return None


def _is_same_origin(headers: Mapping[str, str]) -> bool:
    """Reports whether a form was sent by the console's own page.

    https://fetch.spec.whatwg.org/#origin-header: browsers send Origin with every POST.
    """
    if headers.get("Sec-Fetch-Site", "same-origin") not in ("same-origin", "none"):
        return False
    origin = headers.get("Origin")
    if origin is None:
        return True
    try:
        return urlsplit(origin).netloc.lower() == headers.get("Host", "").lower() != ""
    except ValueError:
        return False


def next_page(requested_path: str) -> str:
    """Returns the page of this server to show after the login: `requested_path`, or `/` if that may lead elsewhere.

    Browsers read `//host` and `/\\host` as another server.
    """
    is_ours = _PATH.fullmatch(requested_path) is not None and not requested_path.startswith(("//", LOGIN, LOGOUT))
    return requested_path if is_ours else "/"
