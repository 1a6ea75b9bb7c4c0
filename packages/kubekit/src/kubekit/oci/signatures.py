"""Verifies the signatures of a release: OpenPGP messages around a JSON claim, checked against every keyring.

Pure over bytes: `verify_signatures` gets the signatures from a store. The claim has the container-signature format: an
inline-signed message whose body names the image's digest. Rules: docs/reference/upstream.md 8.2. `add_signature` writes
a folder in the layout of a signature store's web server, `<algorithm>=<hash>/signature-<n>`.
"""

from __future__ import annotations

import base64
import binascii
import contextlib
import json
import os
import tempfile
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

import kubekit
from kubekit.oci.openpgp import Keyring, UsableKeys, decompress_message, openpgp_error_text, usable_keys
from kubekit.oci.reference import digest_of, is_digest
from kubekit.oci.registry_errors import BadImage, CannotWrite, Unverified

if TYPE_CHECKING:
    import pysequoia

# Imported by the functions that use it, as in `keyrings`.

KEY_PREFIX = "verifier-public-key-"
STORE_PREFIX = "store-"

# Maximum size of a signature: a real one has some 600 bytes, and OpenPGP messages can be compressed.
MAX_SIGNATURE_BYTES = 50 * 1024
MAX_MESSAGE_BYTES = 256 * 1024  # maximum size of a signature once it is decompressed
_TYPE = "atomic container signature"


class _Identity(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    docker_reference: str


class _ClaimImage(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    docker_manifest_digest: str


class _Critical(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    type: str
    identity: _Identity
    image: _ClaimImage


class _Claim(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    critical: _Critical
    optional: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Verified:
    """A digest that every keyring has verified; `signatures` are the messages that they accepted."""

    digest: str
    keyrings: tuple[str, ...]
    signatures: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class Verifier:
    """A release's settings for verifying others: keyrings, base URLs of stores, and warnings about unexpected keys."""

    keyrings: tuple[Keyring, ...]
    stores: tuple[str, ...]
    warnings: tuple[str, ...] = ()


def verifier_from_config_map(config_map: Mapping[str, Any]) -> Verifier:
    """Returns the verifier in a release's ConfigMap. Raises Unverified without a key or a store."""
    values: dict[str, bytes] = {key: str(value).encode() for key, value in (config_map.get("data") or {}).items()}
    for key, value in (config_map.get("binaryData") or {}).items():
        try:
            values[key] = base64.b64decode(value, validate=True)
        except (binascii.Error, ValueError, TypeError) as error:
            raise Unverified(f"verification ConfigMap: {key} is not base64") from error
    keyrings = tuple(Keyring(key, values[key]) for key in sorted(values) if key.startswith(KEY_PREFIX))
    stores = tuple(
        values[key].decode("utf-8", "replace").strip() for key in sorted(values) if key.startswith(STORE_PREFIX)
    )
    if not keyrings or not stores:
        missing = f"{KEY_PREFIX}*" if not keyrings else f"{STORE_PREFIX}*"
        raise Unverified(f"verification ConfigMap has no {missing}: verification is not possible")
    # The CVO ignores unknown keys; a typo in one would go unnoticed without a warning.
    odd = [key for key in sorted(values) if not key.startswith((KEY_PREFIX, STORE_PREFIX))]
    return Verifier(keyrings, stores, tuple(f"unexpected key {key}" for key in odd))


def digest_to_verify(pullspec: str) -> str:
    """Returns the digest that `pullspec` pins. Raises Unverified for a tag: it may name another image tomorrow."""
    digest = digest_of(pullspec)
    if not digest:
        raise Unverified(f"release images that are not accessed via digest cannot be verified: {pullspec}")
    return digest


def _why_not_verified(signature: bytes, name: str, keys: UsableKeys, digest: str) -> str:
    """Returns why `signature` does not verify `digest` with one of `keys`, or an empty string if it does.

    The OpenPGP library rejects an expired signature, for which it reads the system clock.
    """
    import pysequoia

    ended = f" ({'; '.join(keys.dead)})" if keys.dead else ""
    try:
        packets = decompress_message(signature, MAX_MESSAGE_BYTES)
        message = pysequoia.verify(bytes=packets, store=lambda _ids: list(keys.certificates))
    except Exception as error:  # noqa: BLE001  (whatever goes wrong: it is not verified)
        return f"keyring {name}: {openpgp_error_text(error)}{ended}"
    body = bytes(message.bytes or b"")
    # A message may parse without a valid signature.
    if not message.valid_sigs:
        return f"keyring {name}: no valid signature{ended}"
    try:
        claim = msgspec.json.decode(body, type=_Claim)
        # Rejects duplicate members, because JSON readers differ in which of them counts.
        json.loads(body, object_pairs_hook=unique_members)
    except (ValueError, RecursionError) as error:
        return f"the signed claim cannot be read: {error}"
    critical = claim.critical
    if critical.type != _TYPE:
        return f"the signed claim is of type {critical.type!r}, expected {_TYPE!r}"
    if not critical.identity.docker_reference:
        return "the signed claim names no docker-reference"
    if critical.image.docker_manifest_digest != digest:
        return f"the signed claim is for {critical.image.docker_manifest_digest}"
    return ""


def unique_members(members: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    """Returns the members of a JSON object as a dict. Raises ValueError if a name occurs twice."""
    by_name = dict(members)
    if len(by_name) < len(members):
        names = [name for name, _ in members]
        raise ValueError(f"it has {Counter(names).most_common(1)[0][0]!r} twice")
    return by_name


class Verification:
    """Checks signatures against keyrings until every keyring has accepted one by a key that counts at `now`."""

    def __init__(self, digest: str, keyrings: Iterable[Keyring], *, now: datetime) -> None:
        """Raises Unverified if `digest` is not a digest, or there is no keyring, or one cannot be read."""
        if not is_digest(digest):
            raise Unverified(f"{digest!r} is not a digest, and only digests can be verified")
        self.digest = digest
        self._keyrings = tuple(keyrings)
        self._accepted: dict[str, bytes] = {}
        self._details: list[str] = []
        if not self._keyrings:
            raise Unverified("no keyring to verify with: verification is not possible")
        self._usable = {keyring.name: usable_keys(keyring, now) for keyring in self._keyrings}

    def add(self, signature: bytes, source: str) -> bool:
        """Checks one more signature; returns whether every keyring is satisfied now."""
        if len(signature) > MAX_SIGNATURE_BYTES:
            self.note(f"{source}: is larger than {MAX_SIGNATURE_BYTES} bytes")
            return self.done
        for keyring in self._keyrings:
            if keyring.name in self._accepted:
                continue
            problem = _why_not_verified(signature, keyring.name, self._usable[keyring.name], self.digest)
            if problem:
                self._details.append(f"{source}: {problem}")
            else:
                self._accepted[keyring.name] = signature
        return self.done

    def note(self, detail: str) -> None:
        """Records what a store answered instead of a signature."""
        self._details.append(detail)

    @property
    def done(self) -> bool:
        """Reports whether every keyring has accepted a signature."""
        return len(self._accepted) == len(self._keyrings)

    def result(self) -> Verified:
        """Returns the verified digest. Raises Unverified with the answers of all stores and keyrings."""
        if self.done:
            names = tuple(keyring.name for keyring in self._keyrings)
            return Verified(self.digest, names, tuple(dict.fromkeys(self._accepted.values())))
        missing = ", ".join(sorted(keyring.name for keyring in self._keyrings if keyring.name not in self._accepted))
        raise Unverified(f"unable to verify {self.digest} against keyrings: {missing}", tuple(self._details))


def verify_signatures(
    digest: str, keyrings: Iterable[Keyring], signatures: Iterable[bytes], *, now: datetime
) -> Verified:
    """Returns `digest` verified by `signatures` at `now`. Raises Unverified."""
    verification = Verification(digest, keyrings, now=now)
    for number, signature in enumerate(signatures, start=1):
        if verification.add(signature, f"signature-{number}"):
            break
    return verification.result()


def signature_claim(digest: str, docker_reference: str) -> bytes:
    """Returns the JSON that a signature wraps. Raises BadImage if `digest` is not a digest."""
    if not is_digest(digest):
        raise BadImage(f"{digest!r} is not a digest")
    return msgspec.json.encode(
        {
            "critical": {
                "identity": {"docker-reference": docker_reference},
                "image": {"docker-manifest-digest": digest},
                "type": _TYPE,
            },
            "optional": {"creator": kubekit.product.partition("/")[0]},
        }
    )


@dataclass(frozen=True, slots=True)
class SigningKey:
    """An OpenPGP key pair; `secret` must never appear in a message, an event or a log."""

    secret: bytes

    def __repr__(self) -> str:
        return "SigningKey(...)"

    @property
    def public(self) -> bytes:
        """The armored public key, which is a keyring with one key."""
        return str(_secret_key(self.secret).extract_certificate()).encode()

    def sign(self, digest: str, docker_reference: str) -> bytes:
        """Returns a signature for the image `digest`. Raises BadImage if the key cannot sign."""
        import pysequoia

        try:
            signed = pysequoia.sign(
                _secret_key(self.secret).signer(), signature_claim(digest, docker_reference), armor=False
            )
        except RuntimeError as error:
            raise BadImage(f"the key cannot sign: {openpgp_error_text(error)}") from error
        return bytes(signed)


def generate_key(user_id: str = "releases <releases@sandbox.invalid>") -> SigningKey:
    """Returns a new signing key."""
    import pysequoia

    return SigningKey(str(pysequoia.Tsk.generate(user_id=user_id)).encode())


def _secret_key(secret: bytes) -> pysequoia.Tsk:
    import pysequoia

    try:
        return pysequoia.Tsk.from_bytes(secret)
    except Exception as error:
        raise BadImage(f"the signing key cannot be read: {openpgp_error_text(error)}") from error


MAX_SIGNATURES = 9
"""Maximum number of signatures that are read for a digest, numbered from 1 without a gap.

Source: docs/reference/upstream.md 8.2.
"""


def add_signature(store: Path, digest: str, signature: bytes) -> Path:
    """Writes `signature` under the first free number and returns its path. Raises CannotWrite, also if there are nine.

    A reader sees all of it or nothing, and two writers never use the same number.
    """
    folder = store / digest.replace(":", "=", 1)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=folder, prefix=".signature-")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(signature)
                # mkstemp makes files that only their owner can read; a web server has to read this one.
                os.fchmod(file.fileno(), 0o644)
            for number in range(1, MAX_SIGNATURES + 1):
                path = folder / f"signature-{number}"
                # A hard link fails if the name exists, so that two writers cannot take the same number.
                with contextlib.suppress(FileExistsError):
                    path.hardlink_to(name)
                    return path
        finally:
            Path(name).unlink()
    except OSError as error:
        raise CannotWrite(f"{folder}: the signature cannot be written: {error.strerror or error}") from error
    raise CannotWrite(f"{folder}: {digest} has {MAX_SIGNATURES} signatures, and no more are ever read; remove one")
