"""Files that somebody named: read up to a bound, so that a device or a disk's image is an error and takes no memory."""

from __future__ import annotations

import errno
import os

from runup.cli.errors import CommandError

# The largest that are read so are whole update graphs, of some 10 MiB.
MAX_BYTES = 64 * 1024 * 1024


def contents(path: str | os.PathLike[str]) -> bytes:
    """What the file holds; raises OSError as reading does, and EFBIG where it is more than MAX_BYTES."""
    with open(path, "rb") as file:  # noqa: PTH123 -- commands that name files need not read pathlib
        data = file.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise OSError(errno.EFBIG, f"it holds more than {MAX_BYTES // 1024**2} MiB", os.fspath(path))
    return data


def read_file(flag: str, path: str) -> bytes:
    """The same of a file that `flag` named; raises CommandError."""
    try:
        return contents(path)
    except OSError as error:
        raise CommandError(f"{flag}: {path} cannot be read: {error.strerror}") from error
