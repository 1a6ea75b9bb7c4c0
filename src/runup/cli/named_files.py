"""Files that a flag named."""

from __future__ import annotations

from kubekit.lang.files import contents
from runup.cli.errors import CommandError


def read_file(flag: str, path: str) -> bytes:
    """What the file that `flag` named holds, up to a bound; raises CommandError."""
    try:
        return contents(path)
    except OSError as error:
        raise CommandError(f"{flag}: {path} cannot be read: {error.strerror}") from error
