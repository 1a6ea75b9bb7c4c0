"""Connections to registries, with a time limit for the whole request and a check of the addresses.

A socket's own time limit is for one piece: a server that sends a byte a second never reaches it. So every wait gets the
rest of the request's time. Addresses are checked after the name was resolved, and the connection is made to the checked
address: a name cannot resolve to another address in between.
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
    """A registry leads to an address that registries must not lead to."""


@dataclass(frozen=True, slots=True)
class Deadline:
    """The end of a request, by `monotonic`; no single wait is longer than `piece_s` seconds."""

    at: float
    piece_s: float
    monotonic: Callable[[], float] = field(default=time.monotonic)

    @classmethod
    def after(cls, seconds: float, piece_s: float, monotonic: Callable[[], float]) -> Deadline:
        """Returns a deadline `seconds` from now."""
        return cls(monotonic() + seconds, piece_s, monotonic)

    def wait_s(self) -> float:
        """Returns the longest time for the next wait, in seconds. Raises TimeoutError if there is none left."""
        remaining_s = self.at - self.monotonic()
        if remaining_s <= 0:
            raise TimeoutError("the request's time is over")
        return min(remaining_s, self.piece_s)


@dataclass(frozen=True, slots=True)
class AddressPolicy:
    """The hosts that a request may reach: any if `own`, which is the registry that was named; else no `inward` address.

    `loopback` allows this machine, because a registry on it was named.
    """

    own: bool = True
    loopback: bool = False

    def refuses(self, address: Address) -> bool:
        """Returns whether a registry must not lead to `address`."""
        plain = _unmapped(address)
        return not self.own and inward(plain) and not (self.loopback and plain.is_loopback)

    def check(self, host: str) -> None:
        """Raises ForbiddenAddress if `host` is written as an address that is refused."""
        address = address_of(host)
        if address is not None and self.refuses(address):
            raise ForbiddenAddress(f"{host} is an address that registries must not lead to")


def inward(address: Address) -> bool:
    """Returns whether an address is this machine, link-local, unspecified or multicast.

    Clouds serve credentials at link-local addresses.
    """
    # Cloud metadata services with credentials are at link-local addresses (169.254.169.254).
    return address.is_loopback or address.is_link_local or address.is_unspecified or address.is_multicast


def address_of(host: str) -> Address | None:
    """Returns the address that `host` is, as the system's resolver would read it; None for a name."""
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
    """Returns the IPv4 address embedded in an IPv6 one, by which the same machine is reached."""
    if isinstance(address, ipaddress.IPv6Address):
        # The same host can be written as an IPv4-mapped, 6to4 or NAT64 address.
        embedded = address.ipv4_mapped or address.sixtofour or _of_nat64(address)
        return embedded or address
    return address


def _of_nat64(address: ipaddress.IPv6Address) -> ipaddress.IPv4Address | None:
    in_prefix = address in ipaddress.ip_network("64:ff9b::/96") or (int(address) >> 32 == 0 and int(address) > 1)
    return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF) if in_prefix else None


def connected(host: str, port: int, reach: AddressPolicy, deadline: Deadline) -> socket.socket:
    """Returns a connection to the first address of `host` that accepts one. Raises OSError."""
    problem: OSError = OSError(f"{host} has no address")
    for family, kind, protocol, _, place in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM):
        # Checked one by one: a name with an allowed and a forbidden address is reached only at the allowed one.
        if reach.refuses(ipaddress.ip_address(str(place[0]).partition("%")[0])):
            problem = ForbiddenAddress(f"{host} is {place[0]}, an address that registries must not lead to")
            continue
        connection = socket.socket(family, kind, protocol)
        try:
            connection.settimeout(deadline.wait_s())
            connection.connect(place)
        except OSError as error:
            connection.close()
            problem = error
            continue
        return connection
    raise problem


class Connection(http.client.HTTPConnection):
    """A connection for one request, within `deadline`."""

    deadline: Deadline
    reach: AddressPolicy

    def connect(self) -> None:
        """Connects, through a proxy if one is set."""
        _prepare(self)
        super().connect()

    def send(self, data: Any) -> None:
        """Sends a piece of the request."""
        _send(self, super().send, data)


class SecureConnection(http.client.HTTPSConnection):
    """A TLS connection for one request, within `deadline`."""

    deadline: Deadline
    reach: AddressPolicy

    def connect(self) -> None:
        """Connects, through a proxy if one is set, and does the TLS handshake."""
        _prepare(self)
        super().connect()

    def send(self, data: Any) -> None:
        """Sends a piece of the request."""
        _send(self, super().send, data)


def factory(kind: type[Connection | SecureConnection], deadline: Deadline, reach: AddressPolicy) -> Callable[..., Any]:
    """Returns a function that makes a connection to a host as urllib expects it."""

    def make(host: str, **options: Any) -> Connection | SecureConnection:
        connection = kind(host, **options)
        connection.deadline, connection.reach = deadline, reach
        return connection

    return make


def _prepare(connection: Connection | SecureConnection) -> None:
    """Makes the connection use checked addresses and the deadline for connecting and reading."""
    deadline, reach = connection.deadline, connection.reach

    def create(place: tuple[str, int], *_: Any) -> socket.socket:
        return connected(place[0], place[1], reach, deadline)

    def answer(sock: Any, *arguments: Any, **options: Any) -> http.client.HTTPResponse:
        return http.client.HTTPResponse(cast("socket.socket", PacedSocket(sock, deadline)), *arguments, **options)

    # http.client's own hooks for replacing the connection and the answer; its tests use the first one.
    connection._create_connection = create  # type: ignore[union-attr]
    connection.response_class = answer  # type: ignore[assignment]


def _send(connection: Connection | SecureConnection, send: Callable[[Any], None], data: Any) -> None:
    if connection.sock is not None:
        connection.sock.settimeout(connection.deadline.wait_s())
    send(data)


class PacedSocket:
    """A socket whose answer is read within a deadline."""

    def __init__(self, sock: socket.socket, deadline: Deadline) -> None:
        self._socket = sock
        self._deadline = deadline

    def makefile(self, _mode: str) -> io.BufferedReader:
        """Returns a file of the answer's bytes."""
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
