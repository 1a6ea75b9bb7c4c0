"""Which keys of a keyring may vouch for a release now.

A signature's date is the signer's own word: who holds an expired or a stolen key may write any. So what has expired, or
was revoked for whatever reason, is taken out before a signature is looked at (RFC 9580, 5.2.3.13 and 10.1).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

import pysequoia
from pysequoia.packet import Packet, PacketPile, SignatureType, Tag

from kubekit.oci.errors import Unverified

_KEYS = (Tag.PublicSubkey, Tag.SecretSubkey)


@dataclass(frozen=True, slots=True)
class Keyring:
    """A named OpenPGP keyring, armored or binary."""

    name: str
    data: bytes


@dataclass(frozen=True, slots=True)
class Usable:
    """What of a keyring counts; `dead` says of each key that does not, why."""

    certificates: tuple[pysequoia.Cert, ...]
    dead: tuple[str, ...] = ()


def certificates(keyring: Keyring) -> list[pysequoia.Cert]:
    """The certificates of a keyring; raises Unverified where it holds none."""
    try:
        found = list(pysequoia.Cert.split_bytes(keyring.data))
    except Exception as error:
        raise Unverified(f"keyring {keyring.name} cannot be read: {said(error)}") from error
    if not found:
        raise Unverified(f"keyring {keyring.name} holds no public key")
    return found


def usable(keyring: Keyring, now: datetime) -> Usable:
    """The keys of `keyring` that are neither revoked nor expired at `now`; raises Unverified where it holds none."""
    kept: list[pysequoia.Cert] = []
    dead: list[str] = []
    for certificate in certificates(keyring):
        try:
            if why := _ended(certificate, now):
                dead.append(f"key {certificate.fingerprint} {why}")
            else:
                kept.append(_without_dead_subkeys(certificate, now, dead))
        except Exception as error:  # noqa: BLE001  (a key that cannot be judged is no key)
            dead.append(f"key {certificate.fingerprint} cannot be used: {said(error)}")
    return Usable(tuple(kept), tuple(dead))


def said(error: BaseException) -> str:
    """An OpenPGP library's error in one line: its own words, without the backtrace that it may carry."""
    return " ".join(str(error).partition("Stack backtrace")[0].split()) or type(error).__name__


def _ended(certificate: pysequoia.Cert, now: datetime) -> str:
    if certificate.is_revoked:
        return "is revoked"
    return _expired(certificate.expiration, now)


def _expired(at: datetime | None, now: datetime) -> str:
    return f"expired on {at:%Y-%m-%d}" if at is not None and at <= now else ""


def _without_dead_subkeys(certificate: pysequoia.Cert, now: datetime, dead: list[str]) -> pysequoia.Cert:
    """The certificate with the subkeys that still count; what was taken out is added to `dead`."""
    kept: list[Packet] = []
    for block in _blocks(certificate):
        why = _subkey_ended(block, now) if block[0].tag in _KEYS else ""
        if why:
            dead.append(f"subkey {block[0].fingerprint} {why}")
        else:
            kept += block
    return pysequoia.Cert.from_packets(kept)


def _blocks(certificate: pysequoia.Cert) -> list[list[Packet]]:
    """The primary key with all that is said of it, then each subkey with what is said of that."""
    blocks: list[list[Packet]] = [[]]
    for packet in PacketPile.from_bytes(bytes(certificate)):
        if packet.tag in _KEYS:
            blocks.append([])
        blocks[-1].append(packet)
    return blocks


def _subkey_ended(block: Sequence[Packet], now: datetime) -> str:
    """Why a subkey counts no more. A revocation is not checked itself: a wrong one in a release's keyring refuses."""
    key, *signatures = block
    if any(signature.signature_type == SignatureType.SubkeyRevocation for signature in signatures):
        return "is revoked"
    bindings = [each for each in signatures if each.signature_type == SignatureType.SubkeyBinding]
    newest = max(bindings, key=lambda each: each.signature_created or key.key_created or now, default=None)
    if newest is None:
        return "is bound to no key"
    lasts = newest.key_validity_period
    ends = key.key_created + lasts if lasts and key.key_created else None
    return _expired(ends, now) or _expired(newest.signature_expiration_time, now)
