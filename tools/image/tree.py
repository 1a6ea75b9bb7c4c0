"""Files of an image in memory, and the layer that holds them: sorted, no times, no owners."""

from __future__ import annotations

import gzip
import io
import tarfile
from pathlib import Path
from typing import NamedTuple

from kubekit.oci.reference import sha256
from runup.release.control.image_build import Layer


class File(NamedTuple):
    """A file, a symbolic link (`target` is where it leads), or a folder that need not have anything in it."""

    data: bytes = b""
    executable: bool = False
    target: str = ""
    folder_mode: int = 0

    @classmethod
    def link(cls, target: str) -> File:
        """Returns a symbolic link."""
        return cls(target=target)

    @classmethod
    def folder(cls, mode: int = 0o755) -> File:
        """Returns a folder."""
        return cls(folder_mode=mode)


Tree = dict[str, File]
"""By path, relative to the root of the image."""


def layer(tree: Tree) -> Layer:
    """Returns the layer of a tree, with the folders above its files: the same tree gives the same bytes."""
    packed = io.BytesIO()
    above = {str(folder) for name in tree for folder in Path(name).parents} - {"."}
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for name in sorted(above | tree.keys()):
            entry = tarfile.TarInfo(name)
            file = tree.get(name, File.folder())
            if file.folder_mode:
                entry.type, entry.mode = tarfile.DIRTYPE, file.folder_mode
            elif file.target:
                entry.type, entry.mode, entry.linkname = tarfile.SYMTYPE, 0o777, file.target
            else:
                entry.size, entry.mode = len(file.data), 0o755 if file.executable else 0o644
            archive.addfile(entry, io.BytesIO(file.data))
    return Layer(gzip.compress(packed.getvalue(), compresslevel=6, mtime=0), sha256(packed.getvalue()))


def write(tree: Tree, folder: Path) -> None:
    """Writes a tree into `folder`."""
    for name, file in tree.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if file.folder_mode:
            path.mkdir(exist_ok=True)
        elif file.target:
            path.symlink_to(file.target)
        else:
            path.write_bytes(file.data)
            path.chmod(0o755 if file.executable else 0o644)


def read(folder: Path, prefix: str = "") -> Tree:
    """Returns the files below `folder`, their paths behind `prefix`."""
    tree: Tree = {}
    for path in sorted(folder.rglob("*")):
        name = prefix + str(path.relative_to(folder))
        if path.is_symlink():
            tree[name] = File.link(str(path.readlink()))
        elif path.is_file():
            tree[name] = File(path.read_bytes(), executable=bool(path.stat().st_mode & 0o100))
    return tree
