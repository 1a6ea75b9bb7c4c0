"""A file's path in, what tells its content from an earlier one out: mounted files are replaced while we run."""

from __future__ import annotations

from pathlib import Path

# Where it lies, when it was written (ns), its size in bytes.
Stamp = tuple[int, int, int]


def stamp_of(file: Path) -> Stamp:
    """Another one whenever the file is another one; raises OSError where there is none."""
    found = file.stat()
    return found.st_ino, found.st_mtime_ns, found.st_size
