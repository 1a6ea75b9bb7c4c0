"""Reads files that a user named, up to a limit: a device or a disk image is an error and does not fill memory."""

from __future__ import annotations

import errno
import os

MIB = 1024 * 1024
# The largest files read this way are whole update graphs, of some 10 MiB.
MAX_BYTES = 64 * MIB


def contents(path: str | os.PathLike[str]) -> bytes:
    """Returns the file's content. Raises OSError as reading does, and EFBIG if it has more than MAX_BYTES."""
    with open(path, "rb") as file:  # noqa: PTH123 -- pathlib is not needed to talk to a cluster
        data = file.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise OSError(errno.EFBIG, f"it holds more than {MAX_BYTES // MIB} MiB", os.fspath(path))
    return data
