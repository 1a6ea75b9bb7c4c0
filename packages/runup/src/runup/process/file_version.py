"""Identifies a version of a file, so that a mounted file's replacement is noticed while the process runs."""

from __future__ import annotations

from pathlib import Path

# Inode, time of modification (ns), size in bytes.
FileVersion = tuple[int, int, int]


def stamp_of(file: Path) -> FileVersion:
    """Returns a value that differs whenever the file was replaced or written. Raises OSError if there is none."""
    stat = file.stat()
    return stat.st_ino, stat.st_mtime_ns, stat.st_size
