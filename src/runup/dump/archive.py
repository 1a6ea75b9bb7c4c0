"""Unpacks a dump that is a tar archive (must-gather's, or the Insights operator's), compressed or not.

The archive is unpacked into a temporary folder for as long as it is read. Only members that may hold objects are
unpacked, up to a size limit, and never outside of that folder.
"""

from __future__ import annotations

import shutil
import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath

from kubekit.lang.removal import remove_tree
from runup.dump.documents import SUFFIXES
from runup.dump.dump_files import BadDump

# A must-gather's objects are some ten megabytes; its logs, which are not unpacked, gigabytes.
MAX_BYTES = 2 * 1024**3
# must-gather records its start and end in the one, which gives the dump's time, and in the other whose image it was.
_KEPT = frozenset({"timestamp", "version"})

_CONFIG_MAPS = "config/configmaps/"


@contextmanager
def opened(path: Path) -> Iterator[Path]:
    """Yields the folder of the dump at `path`, unpacked if it is an archive; raises BadDump."""
    if not path.is_file() or path.suffix in SUFFIXES:
        yield path
        return
    folder = Path(tempfile.mkdtemp(prefix="runup-dump-"))
    try:
        yield _unpack(path, folder / _name(path))
    finally:
        remove_tree(folder)


def _name(path: Path) -> str:
    """Returns the archive's name without the suffixes of its format."""
    name = path.name
    for suffix in (".gz", ".tgz", ".xz", ".bz2", ".tar"):
        name = name.removesuffix(suffix)
    return name or "dump"


def _is_kept(name: PurePosixPath) -> bool:
    # An Insights archive has a file for each key of a ConfigMap.
    return name.suffix in SUFFIXES or name.name in _KEPT or _CONFIG_MAPS in "/".join(name.parts[:-1]) + "/"


def _inside(name: PurePosixPath) -> PurePosixPath:
    """Returns `name` as a relative path; raises ValueError if it leads outside."""
    if ".." in name.parts:
        raise ValueError(f"{name} leads out of it")
    return name.relative_to(name.anchor)


def _write(archive: tarfile.TarFile, member: tarfile.TarInfo, path: Path) -> None:
    # Not by extractall: extraction filters came with Python 3.11.4. Links are never written, so no path can use one.
    path.parent.mkdir(parents=True, exist_ok=True)
    if (source := archive.extractfile(member)) is not None:
        with source, path.open("wb") as file:
            shutil.copyfileobj(source, file)


def _unpack(path: Path, into: Path) -> Path:
    into.mkdir()
    bytes_left = MAX_BYTES
    try:
        with tarfile.open(path) as archive:
            for member in archive:
                name = PurePosixPath(member.name)
                if not member.isfile() or not _is_kept(name):
                    continue
                bytes_left -= member.size
                if bytes_left < 0:
                    text = f"{path} unpacks to more than {MAX_BYTES // 1024**3} GiB; give the folder of the dump"
                    raise BadDump(text, reason="DumpTooLarge")
                _write(archive, member, into / _inside(name))
    except (tarfile.TarError, EOFError, OSError, ValueError) as error:
        why = str(error).partition("\n")[0].rstrip(":")
        text = f"{path} is not a readable archive ({why}); give a folder, a tar archive or a YAML file"
        raise BadDump(text, reason="BadArchive") from error
    return into
