"""The settings for access to registries, which a command, the operator or a test fills in once."""

from __future__ import annotations

import ipaddress
import threading
import time
from collections.abc import Callable
from urllib.parse import urlsplit

import msgspec
from msgspec.structs import replace

from kubekit.http.addresses import AddressPolicy, Network
from kubekit.oci.credentials import Credentials
from kubekit.oci.mirrors import Mirror


def _wait_in_full(seconds: float) -> bool:
    """Waits for `seconds`, and cannot be interrupted. It is a module's function, so that an Access can be pickled."""
    return threading.Event().wait(seconds)


class Access(msgspec.Struct, frozen=True):
    """Credentials, mirrors, and time limits for registries.

    `inner` are the hosts (with port) that may be at inward addresses: of this machine, link-local, or of `services`,
    the networks of the cluster's Services. None, the default, is for references that an administrator wrote: whichever
    host they name may be there. A set is for references of other people, such as those of a namespace's objects.
    `ca_file` adds certificate authorities to the system's. `plain_http` are hosts (with port) that are reached over
    plain HTTP besides loopback; certificates of `unchecked` hosts are not verified. `timeout_s` is for one wait;
    `request_s` is for a whole request, from the connection through its redirects to the last byte, and a blob gets as
    much more as it needs at `slowest_bytes_s`. `wait(seconds)` is called before another attempt and, with 0, between
    pieces: if it returns True, the request is abandoned, so that another thread can end a pull.
    """

    credentials: Credentials = msgspec.field(default_factory=Credentials)
    mirrors: tuple[Mirror, ...] = ()
    ca_file: str = ""
    plain_http: frozenset[str] = frozenset()
    unchecked: frozenset[str] = frozenset()
    inner: frozenset[str] | None = None
    services: tuple[Network, ...] = ()
    timeout_s: float = 30.0
    request_s: float = 60.0
    slowest_bytes_s: float = 128 * 1024
    attempts: int = 4
    wait: Callable[[float], bool] = _wait_in_full
    monotonic: Callable[[], float] = time.monotonic

    def is_plain(self, host: str) -> bool:
        """Returns whether `host` is reached over plain HTTP: this machine, or a listed host."""
        return host in self.plain_http or is_loopback(host)

    def of_administrators(self) -> Access:
        """Returns the same access for references that an administrator wrote."""
        return replace(self, inner=None)

    def reach(self, host: str, registry: str, *, redirected: bool) -> AddressPolicy:
        """Returns which addresses a request to `host` may reach, for the registry `registry` or after its redirect."""
        if self.inner is None:
            return AddressPolicy(own=not redirected and host == registry, loopback=is_loopback(registry))
        return AddressPolicy(own=host in self.inner, networks=self.services)


def is_loopback(host: str) -> bool:
    """Returns whether `host`, with or without a port, is this machine."""
    try:
        # Parsed as a URL's authority, which removes the port and the brackets of an IPv6 address.
        name = urlsplit(f"//{host}").hostname or ""
        return name == "localhost" or ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False
