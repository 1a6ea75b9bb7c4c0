"""Selects the keys of a keyring that may verify a release now, and unpacks OpenPGP messages within a size limit.

A signature's date is the signer's own claim: the holder of an expired or stolen key may write any date. So keys that
have expired, or were revoked for any reason, are removed before a signature is checked (RFC 9580, 5.2.3.13 and 10.1).

A message may be compressed, and what is compressed may be compressed again: 600 bytes become gigabytes. GnuPG
compresses signed messages, so one level is read; it is replaced by what it holds (RFC 9580, 4.2 and 5.6).
"""

from __future__ import annotations

import bz2
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Protocol

from kubekit.oci.registry_errors import Unverified

if TYPE_CHECKING:
    import pysequoia
    from pysequoia.packet import Packet

# Imported by the functions that use it: two MiB, which an operator needs only once another release is asked for.

# A release's keyring has a few kilobytes. One of small packets costs the OpenPGP library 12 ms and 0.9 MiB a kilobyte.
MAX_KEYRING_BYTES = 128 * 1024


@dataclass(frozen=True, slots=True)
class Keyring:
    """A named OpenPGP keyring, armored or binary."""

    name: str
    data: bytes


@dataclass(frozen=True, slots=True)
class UsableKeys:
    """The certificates of a keyring that count; `dead` has the reason for each key that does not."""

    certificates: tuple[pysequoia.Cert, ...]
    dead: tuple[str, ...] = ()


def read_certificates(keyring: Keyring) -> list[pysequoia.Cert]:
    """Returns the certificates of a keyring. Raises Unverified if it holds none, or is too large."""
    import pysequoia

    if len(keyring.data) > MAX_KEYRING_BYTES:
        raise Unverified(f"keyring {keyring.name} cannot be read: it has more than {MAX_KEYRING_BYTES} bytes")
    try:
        parsed = list(pysequoia.Cert.split_bytes(keyring.data))
    except Exception as error:
        raise Unverified(f"keyring {keyring.name} cannot be read: {openpgp_error_text(error)}") from error
    if not parsed:
        raise Unverified(f"keyring {keyring.name} contains no public key")
    return parsed


def usable_keys(keyring: Keyring, now: datetime) -> UsableKeys:
    """Returns the keys of `keyring` that are neither revoked nor expired at `now`. Raises Unverified without keys."""
    usable: list[pysequoia.Cert] = []
    dead: list[str] = []
    for certificate in read_certificates(keyring):
        try:
            # If the primary key has ended, its subkeys do not count either.
            if why := _why_ended(certificate, now):
                dead.append(f"key {certificate.fingerprint} {why}")
            else:
                usable.append(_without_dead_subkeys(certificate, now, dead))
        except Exception as error:  # noqa: BLE001  (a key that cannot be evaluated is no key)
            dead.append(f"key {certificate.fingerprint} cannot be used: {openpgp_error_text(error)}")
    return UsableKeys(tuple(usable), tuple(dead))


def openpgp_error_text(error: BaseException) -> str:
    """Returns an OpenPGP library's error in one line, without the backtrace that it may include."""
    return " ".join(str(error).partition("Stack backtrace")[0].split()) or type(error).__name__


def _why_ended(certificate: pysequoia.Cert, now: datetime) -> str:
    if certificate.is_revoked:
        return "is revoked"
    return _expiry_text(certificate.expiration, now)


def _expiry_text(at: datetime | None, now: datetime) -> str:
    return f"expired on {at:%Y-%m-%d}" if at is not None and at <= now else ""


def _without_dead_subkeys(certificate: pysequoia.Cert, now: datetime, dead: list[str]) -> pysequoia.Cert:
    """Returns the certificate with the subkeys that still count; adds to `dead` why the others do not."""
    import pysequoia

    live_packets: list[Packet] = []
    for block in _packets_of_keys(certificate):
        why = _subkey_ended(block, now) if _is_subkey(block[0]) else ""
        if why:
            dead.append(f"subkey {block[0].fingerprint} {why}")
        else:
            live_packets += block
    return pysequoia.Cert.from_packets(live_packets)


def _packets_of_keys(certificate: pysequoia.Cert) -> list[list[Packet]]:
    """Returns the packets of the primary key, then those of each subkey, each with their signatures."""
    from pysequoia.packet import PacketPile

    blocks: list[list[Packet]] = [[]]
    for packet in PacketPile.from_bytes(bytes(certificate)):
        if _is_subkey(packet):
            blocks.append([])
        blocks[-1].append(packet)
    return blocks


def _is_subkey(packet: Packet) -> bool:
    from pysequoia.packet import Tag

    return packet.tag in (Tag.PublicSubkey, Tag.SecretSubkey)


def _subkey_ended(block: Sequence[Packet], now: datetime) -> str:
    """Returns why a subkey no longer counts, or an empty string.

    Revocations are not verified: in a release's own keyring, even a wrong one only rejects.
    """
    from pysequoia.packet import SignatureType

    key, *signatures = block
    if any(signature.signature_type == SignatureType.SubkeyRevocation for signature in signatures):
        return "is revoked"
    bindings = [signature for signature in signatures if signature.signature_type == SignatureType.SubkeyBinding]
    # RFC 9580, 5.2.3.10: of several self-signatures the most recent one counts.
    newest = max(bindings, key=lambda signature: signature.signature_created or key.key_created or now, default=None)
    if newest is None:
        return "is bound to no key"
    valid_for = newest.key_validity_period
    expires = key.key_created + valid_for if valid_for and key.key_created else None
    return _expiry_text(expires, now) or _expiry_text(newest.signature_expiration_time, now)


_COMPRESSED = 8
_PACKET, _NEW_FORMAT = 0x80, 0x40
_INDETERMINATE = 3
# First octets of a new-format length: two octets from 192 on, partial from 224 on, five octets for 255.
_TWO, _PARTIAL, _FIVE = 192, 224, 255


class _Decompressor(Protocol):
    def decompress(self, data: bytes, max_length: int) -> bytes: ...


# RFC 9580, 9.4. Without an algorithm (0) the packets are there as they are.
_ALGORITHMS: dict[int, Callable[[], _Decompressor]] = {
    1: lambda: zlib.decompressobj(-zlib.MAX_WBITS),
    2: zlib.decompressobj,
    3: bz2.BZ2Decompressor,
}


class BadMessage(ValueError):
    """The bytes are not a binary OpenPGP message, or one that is too large or compressed more than once."""


def decompress_message(message: bytes, limit: int) -> bytes:
    """Returns the packets of `message` without compression, `limit` bytes at most. Raises BadMessage."""
    tags = list(_read_packets(message))
    if [tag for tag, _ in tags] == [_COMPRESSED]:
        message = _decompress_packet(tags[0][1], limit)
        tags = list(_read_packets(message))
    if any(tag == _COMPRESSED for tag, _ in tags):
        raise BadMessage("the message is compressed more than once")
    return message


def _decompress_packet(body: bytes, limit: int) -> bytes:
    """Returns the content of a compressed-data packet (RFC 9580, 5.6), `limit` bytes at most. Raises BadMessage."""
    algorithm, data = body[0] if body else -1, body[1:]
    if algorithm == 0:
        return data
    if algorithm not in _ALGORITHMS:
        raise BadMessage(f"the message is compressed by an unknown algorithm {algorithm}")
    try:
        packets = _ALGORITHMS[algorithm]().decompress(data, limit + 1)
    except (zlib.error, OSError) as error:
        raise BadMessage(f"the message cannot be decompressed: {error}") from error
    if len(packets) > limit:
        raise BadMessage(f"the message decompresses to more than {limit} bytes")
    return packets


def _read_packets(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Yields tag and body of each packet."""
    at = 0
    while at < len(data):
        first = data[at]
        if not first & _PACKET:
            raise BadMessage("it is not a binary OpenPGP message")
        if first & _NEW_FORMAT:
            body, at = _new_body(data, at + 1)
            yield first & 0x3F, body
        else:
            size = 1 << (first & 3)
            start = at + 1 + size
            end = start + int.from_bytes(data[at + 1 : start], "big")
            if first & 3 == _INDETERMINATE:
                start, end = at + 1, len(data)
            yield (first >> 2) & 0xF, _slice_or_fail(data, start, end)
            at = end


def _new_body(data: bytes, at: int) -> tuple[bytes, int]:
    """Returns the body of a packet of the new format, and where it ends. It may consist of parts."""
    parts: list[bytes] = []
    while True:
        length, start, last = _new_length(data, at)
        at = start + length
        parts.append(_slice_or_fail(data, start, at))
        if last:
            return b"".join(parts), at


def _new_length(data: bytes, at: int) -> tuple[int, int, bool]:
    """Returns the length at `at`, where the body or its next part begins, and whether that is the last part."""
    octets = _slice_or_fail(data, at, at + 1)
    if octets[0] < _TWO:
        return octets[0], at + 1, True
    if octets[0] < _PARTIAL:
        return ((octets[0] - _TWO) << 8) + _slice_or_fail(data, at + 1, at + 2)[0] + _TWO, at + 2, True
    if octets[0] == _FIVE:
        return int.from_bytes(_slice_or_fail(data, at + 1, at + 5), "big"), at + 5, True
    return 1 << (octets[0] & 0x1F), at + 1, False


def _slice_or_fail(data: bytes, start: int, end: int) -> bytes:
    if end > len(data):
        raise BadMessage("the message ends inside a packet")
    return data[start:end]
