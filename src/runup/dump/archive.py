"""A dump that is packed: a tar archive (must-gather's, or the Insights operator's), compressed or not.

Unpacked into a folder of its own for as long as it is read; of its members only those that may hold objects, below a
limit, and never anything outside of that folder.
"""

from __future__ import annotations

import shutil
import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath

from runup.dump.layout import BadDump
from runup.dump.manifests import SUFFIXES

# A must-gather's objects are some ten megabytes; its logs, which are not unpacked, gigabytes.
MAX_BYTES = 2 * 1024**3
_KEPT = frozenset({"timestamp"})


@contextmanager
def opened(path: Path) -> Iterator[Path]:
    """The folder of the dump at `path`, unpacked where it is an archive; raises BadDump."""
    if not path.is_file() or path.suffix in SUFFIXES:
        yield path
        return
    folder = Path(tempfile.mkdtemp(prefix="runup-dump-"))
    try:
        yield _unpack(path, folder / _name(path))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _name(path: Path) -> str:
    """The archive's name without what says how it is packed."""
    name = path.name
    for suffix in (".gz", ".tgz", ".xz", ".bz2", ".tar"):
        name = name.removesuffix(suffix)
    return name or "dump"


def _inside(name: PurePosixPath) -> PurePosixPath:
    """`name` as a path below a folder; raises ValueError for one that climbs out."""
    if ".." in name.parts:
        raise ValueError(f"{name} leads out of it")
    return name.relative_to(name.anchor)


def _write(archive: tarfile.TarFile, member: tarfile.TarInfo, path: Path) -> None:
    # By hand: extraction filters came with Python 3.11.4, and no link was ever written that a path could go through.
    path.parent.mkdir(parents=True, exist_ok=True)
    if (source := archive.extractfile(member)) is not None:
        with source, path.open("wb") as file:
            shutil.copyfileobj(source, file)


def _unpack(path: Path, into: Path) -> Path:
    into.mkdir()
    left = MAX_BYTES
    try:
        with tarfile.open(path) as archive:
            for member in archive:
                name = PurePosixPath(member.name)
                if not member.isfile() or not (name.suffix in SUFFIXES or name.name in _KEPT):
                    continue
                left -= member.size
                if left < 0:
                    text = f"{path} unpacks to more than {MAX_BYTES // 1024**3} GiB; give the folder of the dump"
                    raise BadDump(text, reason="DumpTooLarge")
                _write(archive, member, into / _inside(name))
    except (tarfile.TarError, EOFError, OSError, ValueError) as error:
        why = str(error).partition("\n")[0].rstrip(":")
        text = f"{path} is no archive that can be read ({why}); give a folder, a tar archive or a YAML file"
        raise BadDump(text, reason="BadArchive") from error
    return into
