"""Reads files that a user named, up to a limit: a device or a disk image is an error and does not fill memory."""

from __future__ import annotations

import errno
import os

MIB = 1024 * 1024
# The largest files read this way are whole update graphs, of some 10 MiB.
MAX_BYTES = 64 * MIB


def contents(path: str | os.PathLike[str], limit: int = MAX_BYTES) -> bytes:
    """Returns the file's content. Raises OSError as reading does, and EFBIG if it has more than `limit` bytes."""
    with open(path, "rb") as file:  # noqa: PTH123 -- pathlib is not needed to talk to a cluster
        # A sparse file is refused before memory for what it claims to hold is asked for.
        data = b"" if os.fstat(file.fileno()).st_size > limit else file.read(limit + 1)
        too_large = len(data) > limit or os.fstat(file.fileno()).st_size > limit
    if too_large:
        raise OSError(errno.EFBIG, f"it holds more than {limit // MIB} MiB", os.fspath(path))
    return data
