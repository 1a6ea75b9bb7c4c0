"""Checksums of a folder, and their signature."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pysequoia

from kubekit.oci.registry_errors import BadImage
from kubekit.oci.signatures import SigningKey


def key(path: str) -> SigningKey | None:
    """Returns the key in the file, None where none is named; ends the program where there is no usable one in it."""
    if not path:
        return None
    try:
        found = SigningKey(Path(path).read_bytes())
        found.public  # noqa: B018  reading it is the check
    except (OSError, BadImage) as error:
        raise SystemExit(f"error: RUNUP_SIGNING_KEY={path}: {error}; name a file with an armored secret key") from error
    return found


def checksums(folder: Path) -> str:
    """Returns a line for each file of the folder, as `sha256sum --check` reads them."""
    files = sorted(path for path in folder.iterdir() if path.is_file())
    return "".join(f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in files)


def sign(key: SigningKey, data: bytes) -> bytes:
    """Returns a detached, armored signature."""
    signer = pysequoia.Tsk.from_bytes(key.secret).signer()
    return bytes(pysequoia.sign(signer, data, mode=pysequoia.SignatureMode.DETACHED))
