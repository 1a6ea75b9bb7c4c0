"""OpenPGP keys and signed messages with any date, made packet by packet: what no well-behaved program would write.

Version 4, EdDSA over Ed25519, SHA-256 (RFC 9580 with RFC 4880's packets). For tests and the bench of hostile input.
"""

from __future__ import annotations

import hashlib
import struct
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

_OID = bytes.fromhex("092b06010401da470f01")
_SIGN, _CERTIFY = b"\x02", b"\x01"
BINARY, POSITIVE, SUBKEY_BINDING, PRIMARY_BINDING, KEY_REVOCATION, SUBKEY_REVOCATION = 0, 0x13, 0x18, 0x19, 0x20, 0x28
COMPROMISED, RETIRED = 2, 3
"""Reasons for a revocation: the first makes every signature bad, the second those after it."""


@dataclass(frozen=True)
class Key:
    """A key pair that was made at `created`."""

    created: datetime
    secret: Ed25519PrivateKey = field(default_factory=Ed25519PrivateKey.generate)

    @property
    def body(self) -> bytes:
        """The key packet without its head."""
        point = b"\x40" + self.secret.public_key().public_bytes_raw()
        return b"\x04" + _time(self.created) + b"\x16" + _OID + _mpi(point)

    @property
    def fingerprint(self) -> bytes:
        """By which signatures name the key."""
        return hashlib.sha1(self._framed(), usedforsecurity=False).digest()

    def _framed(self) -> bytes:
        return b"\x99" + struct.pack(">H", len(self.body)) + self.body

    def sign(self, kind: int, data: bytes, at: datetime, *more: bytes) -> bytes:
        """A signature packet over `data` that claims to be of `at`; `more` are further subpackets."""
        own = _sub(33, b"\x04" + self.fingerprint)
        hashed = b"".join([_sub(2, _time(at)), own, *more])
        head = bytes([4, kind, 22, 8]) + struct.pack(">H", len(hashed)) + hashed
        digest = hashlib.sha256(data + head + b"\x04\xff" + struct.pack(">I", len(head))).digest()
        made = self.secret.sign(digest)
        unhashed = _sub(16, self.fingerprint[-8:])
        body = head + struct.pack(">H", len(unhashed)) + unhashed + digest[:2] + _mpi(made[:32]) + _mpi(made[32:])
        return packet(2, body)

    def message(self, text: bytes, at: datetime) -> bytes:
        """`text` as a signed message that claims to be of `at`."""
        one_pass = packet(4, bytes([3, BINARY, 8, 22]) + self.fingerprint[-8:] + b"\x01")
        literal = packet(11, b"b\x00" + _time(at) + text)
        return one_pass + literal + self.sign(BINARY, text, at)


@dataclass(frozen=True)
class Certificate:
    """A primary key, perhaps with a signing subkey, and when they end: `*_for` counts from the key's making."""

    primary: Key
    primary_for: timedelta | None = None
    subkey: Key | None = None
    subkey_for: timedelta | None = None
    revoked: int | None = None
    subkey_revoked: int | None = None
    revoked_at: datetime | None = None

    @property
    def public(self) -> bytes:
        """The keyring of this one certificate."""
        key, user = self.primary, b"releases <releases@example.invalid>"
        parts = [packet(6, key.body)]
        at = self.revoked_at or datetime.now(UTC)
        if self.revoked is not None:
            parts.append(key.sign(KEY_REVOCATION, key._framed(), at, _sub(29, bytes([self.revoked]))))
        named = key._framed() + b"\xb4" + struct.pack(">I", len(user)) + user
        parts.append(packet(13, user))
        parts.append(key.sign(POSITIVE, named, key.created, _sub(27, b"\x03"), *_ends(self.primary_for)))
        if self.subkey is not None:
            parts += self._subkey(self.subkey, at)
        return b"".join(parts)

    def _subkey(self, subkey: Key, at: datetime) -> list[bytes]:
        both = self.primary._framed() + subkey._framed()
        back = subkey.sign(PRIMARY_BINDING, both, subkey.created)
        _, _, body = _opened(back)
        binding = (_sub(27, _SIGN), _sub(32, body), *_ends(self.subkey_for))
        parts = [packet(14, subkey.body), self.primary.sign(SUBKEY_BINDING, both, subkey.created, *binding)]
        if self.subkey_revoked is not None:
            reason = _sub(29, bytes([self.subkey_revoked]))
            parts.append(self.primary.sign(SUBKEY_REVOCATION, both, at, reason))
        return parts


def packet(tag: int, body: bytes) -> bytes:
    """A packet with a new-format head."""
    return bytes([0xC0 | tag]) + _length(len(body)) + body


def _opened(data: bytes) -> tuple[int, int, bytes]:
    skip = 2 if data[1] < 192 else 3 if data[1] < 224 else 6
    return data[0] & 0x3F, skip, data[skip:]


def _ends(after: timedelta | None) -> list[bytes]:
    return [] if after is None else [_sub(9, struct.pack(">I", int(after.total_seconds())))]


def _sub(kind: int, body: bytes) -> bytes:
    return _length(len(body) + 1) + bytes([kind]) + body


def _length(size: int) -> bytes:
    if size < 192:
        return bytes([size])
    if size < 8384:
        return struct.pack(">H", size - 192 + (192 << 8))
    return b"\xff" + struct.pack(">I", size)


def _mpi(data: bytes) -> bytes:
    number = int.from_bytes(data, "big")
    return struct.pack(">H", number.bit_length()) + number.to_bytes((number.bit_length() + 7) // 8, "big")


def _time(at: datetime) -> bytes:
    return struct.pack(">I", int(at.timestamp()))
