"""Selects the keys of a keyring that may verify a release now.

A signature's date is the signer's own claim: the holder of an expired or stolen key may write any date. So keys that
have expired, or were revoked for any reason, are removed before a signature is checked (RFC 9580, 5.2.3.13 and 10.1).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from kubekit.oci.registry_errors import Unverified

# Imported by the functions that use it: two MiB, which an operator needs only once another release is asked for.
if TYPE_CHECKING:
    import pysequoia
    from pysequoia.packet import Packet

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
    """Returns the keys of `keyring` that are neither revoked nor expired at `now`.

    Raises Unverified if it holds none.
    """
    usable: list[pysequoia.Cert] = []
    dead: list[str] = []
    for certificate in read_certificates(keyring):
        try:
            # If the primary key has ended, its subkeys do not count either.
            if why := _why_ended(certificate, now):
                dead.append(f"key {certificate.fingerprint} {why}")
            else:
                usable.append(_without_dead_subkeys(certificate, now, dead))
        except Exception as error:  # noqa: BLE001  (a key that cannot be judged is no key)
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
