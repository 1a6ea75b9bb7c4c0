"""How registries are reached: a value that a command, the operator or a test fills in once."""

from __future__ import annotations

import ipaddress
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from kubekit.oci.credentials import Credentials
from kubekit.oci.mirrors import Mirror


@dataclass(frozen=True, slots=True)
class Access:
    """Credentials, mirrors, and how long is waited.

    `ca_file` adds certificate authorities to the system's. `plain_http` are hosts (with port) that are asked by plain
    HTTP besides loopback; of `unchecked` hosts no certificate is looked at. `timeout_s` is for one wait; `request_s`
    for a whole request, from the connection over its redirects to the last byte, and a blob gets as much more as it
    needs at `slowest_bytes_s`. `wait(seconds)` is called before another attempt and, with 0, between pieces: True gives
    up, by which another thread ends a pull.
    """

    credentials: Credentials = field(default_factory=Credentials)
    mirrors: tuple[Mirror, ...] = ()
    ca_file: str = ""
    plain_http: frozenset[str] = frozenset()
    unchecked: frozenset[str] = frozenset()
    timeout_s: float = 30.0
    request_s: float = 60.0
    slowest_bytes_s: float = 128 * 1024
    attempts: int = 4
    wait: Callable[[float], bool] = field(default_factory=lambda: threading.Event().wait)
    monotonic: Callable[[], float] = time.monotonic

    def is_plain(self, host: str) -> bool:
        """Whether `host` is asked by plain HTTP: this machine, or a host that somebody listed."""
        return host in self.plain_http or is_loopback(host)


def is_loopback(host: str) -> bool:
    """Whether `host`, with or without a port, is this machine."""
    try:
        name = urlsplit(f"//{host}").hostname or ""
        return name == "localhost" or ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False
