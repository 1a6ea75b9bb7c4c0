"""Files out of layers: some folders of an image read into memory, or a whole image unpacked into a folder.

A layer is untrusted. Names that leave the root, links that point out of it, device nodes, and archives that expand to
more than a limit are refused; what a whiteout deletes is gone, whichever layer it was in.
"""

from __future__ import annotations

import gzip
import hashlib
import posixpath
import shutil
import tarfile
import tempfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, cast

from runup.oci import images
from runup.oci.errors import BadImage, CannotWrite
from runup.oci.images import Config, Descriptor, Manifest
from runup.oci.layout import Layout

MAX_PAYLOAD_BYTES = 512 * 1024 * 1024
"""Most that the folders of a release may hold; OpenShift's are about 12 MB."""

MAX_IMAGE_BYTES = 4 * 1024 * 1024 * 1024
"""Most that an image may unpack to."""

_WHITEOUT = ".wh."
_OPAQUE = ".wh..wh..opq"


@dataclass(frozen=True, slots=True)
class Image:
    """An image in a layout: its digest, what it is made of, and how it starts."""

    layout: Layout
    digest: str
    manifest: Manifest
    config: Config

    @property
    def labels(self) -> dict[str, str]:
        """The labels of the image's config."""
        return self.config.config.labels


def open_image(layout: Layout, name: str = "", *, architecture: str = "amd64") -> Image:
    """The image called `name` (tag, digest, or empty for the only one); of several architectures, the given one.

    Raises ImageNotFound and BadImage.
    """
    descriptor = layout.resolve(name)
    if descriptor.media_type in images.INDEXES:
        index = images.decode(images.Index, layout.read(descriptor.digest), f"index {descriptor.digest}")
        descriptor = for_architecture(index, architecture, descriptor.digest)
    if descriptor.media_type not in images.MANIFESTS:
        raise BadImage(f"{descriptor.digest} is a {descriptor.media_type}, not an image manifest")
    manifest = images.decode(Manifest, layout.read(descriptor.digest), f"manifest {descriptor.digest}")
    config = images.decode(Config, layout.read(manifest.config.digest), f"config {manifest.config.digest}")
    return Image(layout, descriptor.digest, manifest, config)


def for_architecture(index: images.Index, architecture: str, what: str) -> Descriptor:
    """The one image of `index` for Linux on `architecture`; raises BadImage naming what there is."""
    for item in index.manifests:
        if item.platform is None or (item.platform.os, item.platform.architecture) == ("linux", architecture):
            return item
    known = ", ".join(sorted(item.platform.architecture for item in index.manifests if item.platform))
    raise BadImage(f"{what} has no image for linux/{architecture}; it has {known or 'none'}")


def read_folders(image: Image, folders: tuple[str, ...], *, limit: int = MAX_PAYLOAD_BYTES) -> dict[str, bytes]:
    """The regular files below `folders` as path to bytes, without unpacking the rest; raises BadImage."""
    found: dict[str, bytes] = {}
    total = 0
    for archive in _archives(image):
        for entry in archive:
            path = _path(entry.name, image)
            if not path or not any(path == folder or path.startswith(f"{folder}/") for folder in folders):
                _whiteout(path, found)
                continue
            if _whiteout(path, found):
                continue
            if entry.isdir():
                continue
            found.pop(path, None)
            if entry.islnk() or entry.issym():
                found[path] = _link_target(entry, path, found, image)
            elif entry.isreg():
                total += entry.size
                if total > limit:
                    raise BadImage(f"image {image.digest}: {', '.join(folders)} hold more than {limit} bytes")
                found[path] = cast("BinaryIO", archive.extractfile(entry)).read()
            else:
                raise BadImage(f"image {image.digest}: {path} is no file, folder or link")
    return dict(sorted(found.items()))


def unpack(image: Image, target: Path, *, limit: int = MAX_IMAGE_BYTES) -> Path:
    """The image's files in the folder `target`, which must not exist yet; raises BadImage and CannotWrite.

    Absolute links are made relative, so that a reader on the host stays inside. Owners and set-id bits are dropped.
    """
    temporary = None
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        temporary = Path(tempfile.mkdtemp(dir=target.parent, prefix=f".{target.name}-"))
        temporary.chmod(0o755)
        total = 0
        for archive in _archives(image):
            for entry in archive:
                total += entry.size
                if total > limit:
                    raise BadImage(f"image {image.digest}: unpacks to more than {limit} bytes")
                _unpack_entry(archive, entry, temporary, image)
        temporary.rename(target)
    except OSError as error:
        raise CannotWrite(f"{target}: image {image.digest} cannot be unpacked: {error.strerror or error}") from error
    finally:
        if temporary is not None:
            shutil.rmtree(temporary, ignore_errors=True)
    return target


def _archives(image: Image) -> Iterator[tarfile.TarFile]:
    diff_ids = image.config.rootfs.diff_ids
    if len(diff_ids) != len(image.manifest.layers):
        raise BadImage(f"image {image.digest}: config names {len(diff_ids)} layers, manifest another number")
    for layer, diff_id in zip(image.manifest.layers, diff_ids, strict=True):
        if layer.media_type not in images.LAYERS:
            raise BadImage(f"image {image.digest}: cannot read a layer of type {layer.media_type}")
        with image.layout.open_blob(layer.digest) as blob:
            packed = images.LAYERS[layer.media_type] == "gzip"
            plain = _Hashed(cast("BinaryIO", gzip.GzipFile(fileobj=blob)) if packed else blob)
            try:
                with tarfile.open(fileobj=cast("BinaryIO", plain), mode="r|") as archive:
                    yield archive
                actual = plain.rest()
            except (tarfile.TarError, EOFError, zlib.error, gzip.BadGzipFile) as error:
                raise BadImage(f"image {image.digest}: layer {layer.digest} is broken: {error}") from error
            if actual != diff_id:
                raise BadImage(f"image {image.digest}: layer {layer.digest} unpacks to {actual}, not {diff_id}")


class _Hashed:
    """A stream that hashes what is read from it."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._hash = hashlib.sha256()

    def read(self, size: int = -1) -> bytes:
        data = self._stream.read(size)
        self._hash.update(data)
        return data

    def rest(self) -> str:
        while self.read(1024 * 1024):
            pass
        return "sha256:" + self._hash.hexdigest()


def _path(name: str, image: Image) -> str:
    """The entry's path from the root, empty for the root itself; raises BadImage where it leaves the root."""
    if "\0" in name or ".." in name.split("/"):
        raise BadImage(f"image {image.digest}: {name!r} leaves the image's root")
    return posixpath.normpath("/" + name).lstrip("/")


def _whiteout(path: str, found: dict[str, bytes]) -> bool:
    folder, _, name = path.rpartition("/")
    if not name.startswith(_WHITEOUT):
        return False
    gone = folder if name == _OPAQUE else posixpath.join(folder, name.removeprefix(_WHITEOUT))
    for known in [known for known in found if known == gone or known.startswith(f"{gone}/")]:
        del found[known]
    return True


def _link_target(entry: tarfile.TarInfo, path: str, found: dict[str, bytes], image: Image) -> bytes:
    named = entry.linkname if entry.islnk() or entry.linkname.startswith("/") else f"{path}/../{entry.linkname}"
    target = posixpath.normpath("/" + named).lstrip("/")
    if target not in found:
        raise BadImage(f"image {image.digest}: {path} is a link to {entry.linkname}, which is no file beside it")
    return found[target]


def _unpack_entry(archive: tarfile.TarFile, entry: tarfile.TarInfo, root: Path, image: Image) -> None:
    path = _path(entry.name, image)
    if not path:
        return
    target = _inside(root, path, image)
    if target.name.startswith(_WHITEOUT):
        hidden = [target.with_name(target.name.removeprefix(_WHITEOUT))]
        if target.name == _OPAQUE:
            hidden = list(target.parent.iterdir()) if target.parent.is_dir() else []
        for gone in hidden:
            _remove(gone)
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    if entry.isdir():
        if target.is_symlink() or target.is_file():
            target.unlink()
        target.mkdir(exist_ok=True)
        target.chmod(0o755 | (entry.mode & 0o777))
        return
    _remove(target)
    if entry.issym():
        # From where the link really is: its folder may have been reached through another link.
        target.symlink_to(_safe_link(entry.linkname, target.relative_to(root.resolve()).as_posix(), image))
    elif entry.islnk():
        source = _inside(root, _path(entry.linkname, image), image)
        if source.is_symlink() or not source.is_file():
            raise BadImage(f"image {image.digest}: {path} is a hard link to {entry.linkname}, which is no file")
        shutil.copy(source, target)
    elif entry.isreg():
        with target.open("xb") as file:
            shutil.copyfileobj(cast("BinaryIO", archive.extractfile(entry)), file)
        target.chmod(0o400 | (entry.mode & 0o777))
    else:
        raise BadImage(f"image {image.digest}: {path} is no file, folder or link")


def _inside(root: Path, path: str, image: Image) -> Path:
    # Links in the image stay inside, so resolving the parent cannot leave the root; checked all the same.
    parent = (root / path).parent.resolve()
    if not parent.is_relative_to(root.resolve()):
        raise BadImage(f"image {image.digest}: {path} leaves the image's root")
    return parent / posixpath.basename(path)


def _safe_link(link: str, path: str, image: Image) -> str:
    folder = posixpath.dirname(path)
    target = link.lstrip("/") if link.startswith("/") else posixpath.join(folder, link)
    target = posixpath.normpath(target)
    if target == ".." or target.startswith("../"):
        raise BadImage(f"image {image.digest}: {path} is a link to {link}, which leaves the image's root")
    return posixpath.relpath("/" + target, "/" + folder)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
