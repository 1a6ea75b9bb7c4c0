"""Reads files that are named by a flag."""

from __future__ import annotations

from kubekit.lang.files import read_limited
from runup.cli.errors import CommandError


def read_file(flag: str, path: str) -> bytes:
    """Returns the content of the file that `flag` names, up to a size limit. Raises CommandError."""
    try:
        return read_limited(path)
    except OSError as error:
        raise CommandError(f"{flag}: {path} cannot be read: {error.strerror}") from error
