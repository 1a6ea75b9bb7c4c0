"""Archives that are the same to the byte wherever their content is the same."""

from __future__ import annotations

import gzip
import tarfile
from collections.abc import Mapping
from pathlib import Path
from typing import IO, cast


def pack(files: Mapping[str, Path], archive: Path) -> None:
    """Writes a tar of files by their names in it, gzipped where its own name ends so: sorted, no times, no owners."""
    with archive.open("wb") as out:
        if archive.suffix in {".gz", ".tgz"}:
            # Neither a name nor a time is in the header.
            with gzip.GzipFile(filename="", mode="wb", fileobj=out, compresslevel=6, mtime=0) as packed:
                _tar(files, cast("IO[bytes]", packed))
        else:
            _tar(files, out)


def below(folder: Path) -> dict[str, Path]:
    """Returns the files below a folder by their paths from there; links are followed."""
    found: dict[str, Path] = {}
    for path in sorted(folder.iterdir()):
        if path.is_dir():
            found |= {f"{path.name}/{name}": file for name, file in below(path).items()}
        else:
            found[path.name] = path
    return found


def _tar(files: Mapping[str, Path], out: IO[bytes]) -> None:
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for name in sorted(files):
            with files[name].open("rb") as content:
                entry = tarfile.TarInfo(name)
                status = files[name].stat()
                entry.size = status.st_size
                entry.mode = 0o755 if status.st_mode & 0o100 else 0o644
                tar.addfile(entry, content)
