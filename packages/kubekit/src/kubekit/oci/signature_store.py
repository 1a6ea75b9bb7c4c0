"""Writes a folder of signatures in the layout of a signature store's web server: `<algorithm>=<hash>/signature-<n>`."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from kubekit.oci.registry_errors import CannotWrite

MAX_SIGNATURES = 9
"""Maximum number of signatures that are read for a digest, numbered from 1 without a gap.

Source: docs/upstream-behaviour.md 8.2.
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
            return _link_numbered(Path(name), folder, digest)
        finally:
            Path(name).unlink()
    except OSError as error:
        raise CannotWrite(f"{folder}: the signature cannot be written: {error.strerror or error}") from error


def _link_numbered(complete: Path, folder: Path, digest: str) -> Path:
    """Links a complete signature under its first free number; returns the path.

    Raises CannotWrite if all are in use.
    """
    for number in range(1, MAX_SIGNATURES + 1):
        path = folder / f"signature-{number}"
        try:
            # A hard link fails if the name exists, so that two writers cannot take the same number.
            path.hardlink_to(complete)
        except FileExistsError:
            continue
        return path
    raise CannotWrite(f"{folder}: {digest} has {MAX_SIGNATURES} signatures, and no more are ever read; remove one")
