"""The policy of the addresses that a request may reach, connections to those alone, and the time limit of a request.

Addresses are checked after the name was resolved, and the connection is made to the checked address: a name cannot
resolve to another address in between. A socket's own time limit is for one piece, and a server that sends a byte a
second never reaches it. So every wait gets the rest of the request's time.
"""

from __future__ import annotations

import ipaddress
import socket
import time
from collections.abc import Callable

import msgspec


class Deadline(msgspec.Struct, frozen=True):
    """The end of a request, by `monotonic`; no single wait is longer than `piece_s` seconds."""

    at: float
    piece_s: float
    monotonic: Callable[[], float] = time.monotonic

    @classmethod
    def after(cls, seconds: float, piece_s: float, monotonic: Callable[[], float] = time.monotonic) -> Deadline:
        """Returns a deadline `seconds` from now."""
        return cls(monotonic() + seconds, piece_s, monotonic)

    def wait_s(self) -> float:
        """Returns the longest time for the next wait, in seconds. Raises TimeoutError if no time is left."""
        remaining_s = self.at - self.monotonic()
        if remaining_s <= 0:
            raise TimeoutError("the request's time is over")
        return min(remaining_s, self.piece_s)


Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network

# Where clouds serve a machine's credentials, next to the link-local 169.254.169.254: Amazon EC2 and Google Compute
# Engine over IPv6, Alibaba Cloud, and the WireServer of Azure, by the documentation of each.
METADATA = frozenset(map(ipaddress.ip_address, ("fd00:ec2::254", "fd20:ce::254", "100.100.100.200", "168.63.129.16")))


class ForbiddenAddress(OSError):
    """A registry leads to an address that registries must not lead to."""


class AddressPolicy(msgspec.Struct, frozen=True):
    """The hosts that a request may reach: any if `own`, which is the registry that was named; else no `inward` address.

    `loopback` allows this machine, because a registry on it was named. `networks` are inward, too: those of the
    cluster's Services.
    """

    own: bool = True
    loopback: bool = False
    networks: tuple[Network, ...] = ()

    def refuses(self, address: Address) -> bool:
        """Returns whether a registry must not lead to `address`."""
        plain = _unmap_ipv4(address)
        inside = is_local_only(plain) or any(plain in network for network in self.networks)
        return not self.own and inside and not (self.loopback and plain.is_loopback)

    def check(self, host: str) -> None:
        """Raises ForbiddenAddress if `host` is written as an address that is refused, or as a name of this machine."""
        address = address_of(host)
        # A proxy would resolve these names to itself.
        is_localhost_name = not (self.own or self.loopback) and f".{host.rstrip('.').lower()}".endswith(".localhost")
        if is_localhost_name or (address is not None and self.refuses(address)):
            raise ForbiddenAddress(f"{host} is an address that registries must not lead to")


def is_local_only(address: Address) -> bool:
    """Returns whether an address is this machine, link-local, unspecified, multicast, or of `METADATA`."""
    return (
        address.is_loopback
        or address.is_link_local
        or address.is_unspecified
        or address.is_multicast
        or address in METADATA
    )


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


def _unmap_ipv4(address: Address) -> Address:
    """Returns the IPv4 address embedded in an IPv6 one, by which the same machine is reached."""
    if isinstance(address, ipaddress.IPv6Address):
        # The same host can be written as an IPv4-mapped, 6to4 or NAT64 address.
        embedded = address.ipv4_mapped or address.sixtofour or _of_nat64(address)
        return embedded or address
    return address


def _of_nat64(address: ipaddress.IPv6Address) -> ipaddress.IPv4Address | None:
    in_prefix = address in ipaddress.ip_network("64:ff9b::/96") or (int(address) >> 32 == 0 and int(address) > 1)
    return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF) if in_prefix else None


def connect_allowed(host: str, port: int, reach: AddressPolicy, deadline: Deadline) -> socket.socket:
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
