"""A folder of signatures, laid out as a signature store's web server has it: `<algorithm>=<hash>/signature-<n>`."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from kubekit.oci.errors import CannotWrite

MAX_SIGNATURES = 9
"""Signatures of a digest that are ever asked for (cvo-behaviour 8.2); numbering starts at 1, a gap ends it."""


def add_signature(store: Path, digest: str, signature: bytes) -> Path:
    """Add `signature` under the first free number and give its path; raises CannotWrite, also when there are nine.

    A reader sees all of it or nothing, and two writers never take the same number.
    """
    folder = store / digest.replace(":", "=", 1)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=folder, prefix=".signature-")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(signature)
                os.fchmod(file.fileno(), 0o644)
            return _linked(Path(name), folder, digest)
        finally:
            Path(name).unlink()
    except OSError as error:
        raise CannotWrite(f"{folder}: the signature cannot be written: {error.strerror or error}") from error


def _linked(complete: Path, folder: Path, digest: str) -> Path:
    for number in range(1, MAX_SIGNATURES + 1):
        path = folder / f"signature-{number}"
        try:
            path.hardlink_to(complete)
        except FileExistsError:
            continue
        return path
    raise CannotWrite(f"{folder}: {digest} has {MAX_SIGNATURES} signatures, and no more are ever read; remove one")
