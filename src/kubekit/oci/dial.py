"""Connections to registries: how long a whole request may take, and which addresses a registry may lead to.

A socket's own time limit is for one piece: who sends a byte a second never meets it. So every wait gets what is left of
the request's time. Addresses are judged after the name was resolved, and the very address that was judged is connected
to: a name cannot say one thing first and another thing then.
"""

from __future__ import annotations

import http.client
import io
import ipaddress
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, cast

Address = ipaddress.IPv4Address | ipaddress.IPv6Address


class ForbiddenAddress(OSError):
    """A registry leads to an address that no registry has any business with."""


@dataclass(frozen=True, slots=True)
class Deadline:
    """The end of a request, by `monotonic`; no single wait is longer than `piece_s`."""

    at: float
    piece_s: float
    monotonic: Callable[[], float] = field(default=time.monotonic)

    @classmethod
    def after(cls, seconds: float, piece_s: float, monotonic: Callable[[], float]) -> Deadline:
        """`seconds` from now."""
        return cls(monotonic() + seconds, piece_s, monotonic)

    def wait_s(self) -> float:
        """How long the next wait may be; raises TimeoutError where there is no time left."""
        left = self.at - self.monotonic()
        if left <= 0:
            raise TimeoutError("the request's time is over")
        return min(left, self.piece_s)


@dataclass(frozen=True, slots=True)
class Reach:
    """Whom a request may reach: anybody where `own`, the place that was named, is asked; else no `inward` address.

    `loopback` allows this machine: somebody named a registry on it.
    """

    own: bool = True
    loopback: bool = False

    def refuses(self, address: Address) -> bool:
        """Whether a registry may not lead there."""
        plain = _unmapped(address)
        return not self.own and inward(plain) and not (self.loopback and plain.is_loopback)

    def check(self, host: str) -> None:
        """Raise ForbiddenAddress for an address, written as such, that is refused."""
        address = address_of(host)
        if address is not None and self.refuses(address):
            raise ForbiddenAddress(f"{host} is an address that no registry may lead to")


def inward(address: Address) -> bool:
    """Whether an address leads to this machine, to its link (where clouds keep credentials), or to no one machine."""
    return address.is_loopback or address.is_link_local or address.is_unspecified or address.is_multicast


def address_of(host: str) -> Address | None:
    """The address that `host` is, as the system's resolver would read it; None for a name."""
    bare = host.strip("[]").partition("%")[0]
    try:
        return ipaddress.ip_address(bare)
    except ValueError:
        pass
    try:
        # Short and octal forms: 127.1, 0x7f.0.0.1, 2130706433.
        return ipaddress.ip_address(socket.inet_aton(bare))
    except (OSError, ValueError):
        return None


def _unmapped(address: Address) -> Address:
    """The IPv4 address inside of an IPv6 one, by which the same machine is reached."""
    if isinstance(address, ipaddress.IPv6Address):
        embedded = address.ipv4_mapped or address.sixtofour or _of_nat64(address)
        return embedded or address
    return address


def _of_nat64(address: ipaddress.IPv6Address) -> ipaddress.IPv4Address | None:
    in_prefix = address in ipaddress.ip_network("64:ff9b::/96") or (int(address) >> 32 == 0 and int(address) > 1)
    return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF) if in_prefix else None


def connected(host: str, port: int, reach: Reach, deadline: Deadline) -> socket.socket:
    """A connection to the first address of `host` that answers; raises OSError."""
    problem: OSError = OSError(f"{host} has no address")
    for family, kind, protocol, _, place in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM):
        # Judged one by one: a name with a good and a bad address is not reached at the bad one.
        if reach.refuses(ipaddress.ip_address(str(place[0]).partition("%")[0])):
            problem = ForbiddenAddress(f"{host} is {place[0]}, an address that no registry may lead to")
            continue
        made = socket.socket(family, kind, protocol)
        try:
            made.settimeout(deadline.wait_s())
            made.connect(place)
        except OSError as error:
            made.close()
            problem = error
            continue
        return made
    raise problem


class Connection(http.client.HTTPConnection):
    """A connection for one request, within `deadline`."""

    deadline: Deadline
    reach: Reach

    def connect(self) -> None:
        """Connect, and through a proxy where one is set."""
        _prepare(self)
        super().connect()

    def send(self, data: Any) -> None:
        """Send a piece of the request."""
        _send(self, super().send, data)


class SecureConnection(http.client.HTTPSConnection):
    """The same by TLS."""

    deadline: Deadline
    reach: Reach

    def connect(self) -> None:
        """Connect, through a proxy where one is set, and shake hands."""
        _prepare(self)
        super().connect()

    def send(self, data: Any) -> None:
        """Send a piece of the request."""
        _send(self, super().send, data)


def factory(kind: type[Connection | SecureConnection], deadline: Deadline, reach: Reach) -> Callable[..., Any]:
    """What makes a connection of a host as urllib wants it."""

    def make(host: str, **options: Any) -> Connection | SecureConnection:
        made = kind(host, **options)
        made.deadline, made.reach = deadline, reach
        return made

    return make


def _prepare(connection: Connection | SecureConnection) -> None:
    deadline, reach = connection.deadline, connection.reach

    def create(place: tuple[str, int], *_: Any) -> socket.socket:
        return connected(place[0], place[1], reach, deadline)

    def answer(sock: Any, *arguments: Any, **options: Any) -> http.client.HTTPResponse:
        return http.client.HTTPResponse(cast("socket.socket", _Paced(sock, deadline)), *arguments, **options)

    # Both are how http.client lets a connection and an answer be replaced; the first is what its own tests use.
    connection._create_connection = create  # type: ignore[union-attr]
    connection.response_class = answer  # type: ignore[assignment]


def _send(connection: Connection | SecureConnection, send: Callable[[Any], None], data: Any) -> None:
    if connection.sock is not None:
        connection.sock.settimeout(connection.deadline.wait_s())
    send(data)


class _Paced:
    """A socket whose answer is read within a deadline."""

    def __init__(self, sock: socket.socket, deadline: Deadline) -> None:
        self._socket = sock
        self._deadline = deadline

    def makefile(self, _mode: str) -> io.BufferedReader:
        """The answer's bytes."""
        return io.BufferedReader(_Raw(self._socket, self._deadline))


class _Raw(io.RawIOBase):
    def __init__(self, sock: socket.socket, deadline: Deadline) -> None:
        self._socket = sock
        self._deadline = deadline
        self._file = cast("io.RawIOBase", sock.makefile("rb", buffering=0))

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        self._socket.settimeout(self._deadline.wait_s())
        return cast("int | None", self._file.readinto(buffer))

    def close(self) -> None:
        self._file.close()
        super().close()
