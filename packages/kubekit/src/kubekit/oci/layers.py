"""Reads files from an image's layers: some folders into memory, or the whole image into a folder.

A layer is untrusted. Names that leave the root, links that point out of it, device nodes, and archives that expand
beyond a limit are rejected. Files that a whiteout deletes are gone, whichever layer they were in.
"""

from __future__ import annotations

import bisect
import contextlib
import posixpath
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from kubekit.lang.files import remove_tree
from kubekit.oci import images, tarstream
from kubekit.oci.images import Config, Descriptor, Manifest
from kubekit.oci.layout import Layout
from kubekit.oci.registry_errors import BadImage, BeyondLimits, CannotWrite
from kubekit.oci.tar import Archive, Entry

MAX_PAYLOAD_BYTES = 32 * 1024 * 1024  # maximum size of a release's folders; OpenShift's have about 12 MB
MAX_LAYERS = 128  # maximum number of layers of an image; container engines stop at 127


@dataclass(frozen=True, slots=True)
class Pick:
    """The files to read, and the part of each to keep: a file that `reads` rejects is listed by name without content.

    `limit` is the maximum of all bytes read, `file_limit` that of one file, both before `keeps` reduces them.
    """

    limit: int = MAX_PAYLOAD_BYTES
    file_limit: int = MAX_PAYLOAD_BYTES
    reads: Callable[[str], bool] = lambda _path: True
    keeps: Callable[[str, bytes], bytes] = lambda _path, data: data


ALL_OF_A_RELEASE = Pick()


class Blobs(Protocol):
    """The storage of an image's layers: on disk, or still arriving."""

    def open_blob(self, digest: str) -> AbstractContextManager[tarstream.Readable]:
        """Opens the bytes of a blob."""
        ...


class Layered(Protocol):
    """An image whose layers can be read."""

    @property
    def layout(self) -> Blobs:
        """The storage of its layers."""
        ...

    @property
    def digest(self) -> str:
        """The image's name in messages."""
        ...

    @property
    def manifest(self) -> Manifest:
        """The manifest of the image."""
        ...

    @property
    def config(self) -> Config:
        """The config of the image, with the digests of its unpacked layers."""
        ...


@dataclass(frozen=True, slots=True)
class Image:
    """An image in a layout: its digest, its manifest, and its config."""

    layout: Layout
    digest: str
    manifest: Manifest
    config: Config

    @property
    def labels(self) -> dict[str, str]:
        """The labels of the image's config."""
        return self.config.config.labels


def open_image(layout: Layout, name: str = "", *, architecture: str = "amd64") -> Image:
    """Returns the image called `name` (tag, digest, or "" for the only one). Raises ImageNotFound and BadImage."""
    descriptor = layout.resolve(name)
    if descriptor.media_type in images.INDEXES:
        index = images.decode_document(images.Index, layout.read(descriptor.digest), f"index {descriptor.digest}")
        descriptor = select_architecture(index, architecture, descriptor.digest)
    if descriptor.media_type not in images.MANIFESTS:
        raise BadImage(f"{descriptor.digest} is a {descriptor.media_type}, not an image manifest")
    manifest = images.decode_document(Manifest, layout.read(descriptor.digest), f"manifest {descriptor.digest}")
    config = images.decode_document(Config, layout.read(manifest.config.digest), f"config {manifest.config.digest}")
    return Image(layout, descriptor.digest, manifest, config)


def select_architecture(index: images.Index, architecture: str, subject: str) -> Descriptor:
    """Returns the Linux image of `index` for `architecture` (empty: any). Raises BadImage, with those there are."""
    for item in index.manifests:
        if not architecture and item.platform is not None and item.platform.os == "linux":
            return item
        if item.platform is None or (item.platform.os, item.platform.architecture) == ("linux", architecture):
            return item
    architectures = ", ".join(sorted(item.platform.architecture for item in index.manifests if item.platform))
    raise BadImage(f"{subject} has no image for linux/{architecture}; it has {architectures or 'none'}")


def read_folders(image: Layered, folders: tuple[str, ...], pick: Pick = ALL_OF_A_RELEASE) -> dict[str, bytes]:
    """Returns the regular files below `folders` as path -> bytes. Raises BadImage, and what `pick` raises."""
    files: dict[str, bytes] = {}
    total = 0
    budget = tarstream.Budget.of(image.digest)
    for layer, diff_id in _layers_and_digests(image):
        lower, files = _Lower(files), {}
        with _open_archive(image, layer, diff_id, budget) as archive:
            for path, entry in tarstream.checked_entries(archive, budget):
                if whiteout := tarstream.hidden_by(path):
                    lower.remove_below(*whiteout)
                    continue
                lower.remove_replaced(path, is_folder=entry.isdir())
                if entry.isdir() or not any(path.startswith(f"{folder}/") for folder in folders):
                    continue
                if not pick.reads(path):
                    files[path] = b""
                    continue
                total += entry.size
                if total > pick.limit:
                    raise BadImage(f"image {image.digest}: {', '.join(folders)} hold more than {pick.limit} bytes")
                if entry.size > pick.file_limit:
                    raise BeyondLimits(f"image {image.digest}: {path} has more than {pick.file_limit} bytes")
                if entry.isreg():
                    files[path] = pick.keeps(path, b"".join(archive.pieces()))
                else:
                    target = _link_target(entry, path, f"image {image.digest}: {path}")
                    content = next(
                        (layer_files[target] for layer_files in (files, lower.files) if target in layer_files), None
                    )
                    if content is None or not pick.reads(target):
                        why = "not a file next to it" if content is None else "not read"
                        raise BadImage(f"image {image.digest}: {path} is a link to {entry.linkname}, which is {why}")
                    files[path] = content
        files = lower.files | files
    return dict(sorted(files.items()))


def unpack_image(image: Image, target: Path, *, limit: int = tarstream.MAX_IMAGE_BYTES) -> Path:
    """Writes the image's files into the folder `target`, which must not exist yet. Raises BadImage and CannotWrite.

    Absolute links are made relative, so that a reader on the host stays inside. Owners and set-id bits are dropped.
    Every layer is read to its end before the first file is written, so that an image that exceeds a limit or has a
    wrong digest uses no disk.
    """
    total = 0
    budget = tarstream.Budget.of(image.digest)
    for layer, diff_id in _layers_and_digests(image):
        with _open_archive(image, layer, diff_id, budget) as archive:
            for _, entry in tarstream.checked_entries(archive, budget):
                total += entry.size
                if total > limit:
                    raise BadImage(f"image {image.digest}: unpacks to more than {limit} bytes")
    temporary = None
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        temporary = Path(tempfile.mkdtemp(dir=target.parent, prefix=f".{target.name}-"))
        # mkdtemp makes folders that only their owner can read.
        temporary.chmod(0o755)
        budget = tarstream.Budget.of(image.digest)
        for layer, diff_id in _layers_and_digests(image):
            root = _Root(temporary, image.digest, set())
            with _open_archive(image, layer, diff_id, budget) as archive:
                for path, entry in tarstream.checked_entries(archive, budget):
                    _unpack_entry(archive, entry, path, root)
        temporary.rename(target)
    except OSError as error:
        raise CannotWrite(f"{target}: image {image.digest} cannot be unpacked: {error.strerror or error}") from error
    finally:
        if temporary is not None:
            remove_tree(temporary)
    return target


def _layers_and_digests(image: Layered) -> Iterator[tuple[Descriptor, str]]:
    """Returns each layer with the digest of its unpacked content, the lowest first."""
    diff_ids = image.config.rootfs.diff_ids
    if len(image.manifest.layers) > MAX_LAYERS:
        raise BadImage(f"image {image.digest}: has {len(image.manifest.layers)} layers; the limit is {MAX_LAYERS}")
    if len(diff_ids) != len(image.manifest.layers):
        raise BadImage(f"image {image.digest}: config names {len(diff_ids)} layers, manifest another number")
    return zip(image.manifest.layers, diff_ids, strict=True)


@contextlib.contextmanager
def _open_archive(image: Layered, layer: Descriptor, diff_id: str, budget: tarstream.Budget) -> Iterator[Archive]:
    """Opens a layer's archive. Raises BadImage if it is broken, or unpacks to another digest."""
    with (
        image.layout.open_blob(layer.digest) as blob,
        tarstream.open_layer(blob, layer, budget) as (archive, unpacked),
    ):
        yield archive
        actual = unpacked.rest()
    # The digest of the layer covers the packed bytes only; the config names that of the unpacked ones.
    if actual != diff_id:
        raise BadImage(f"image {image.digest}: layer {layer.digest} unpacks to {actual}, not {diff_id}")


class _Lower:
    """The files of lower layers, while the layer above hides some: each is looked at once for each of its folders."""

    def __init__(self, files: dict[str, bytes]) -> None:
        self.files = dict(files)
        self._sorted = sorted(files)
        self._hidden: set[str] = set()

    def remove_replaced(self, path: str, *, is_folder: bool) -> None:
        """Removes what an entry replaces: all below a file, or the file in place of a folder."""
        if not self.files:
            return
        if not is_folder:
            self.remove_below(path, stays=False)
        at = len(path) if is_folder else path.rfind("/")
        while at > 0:
            self.files.pop(path[:at], None)
            at = path.rfind("/", 0, at)

    def remove_below(self, path: str, stays: bool) -> None:
        """Removes all files below `path`, and `path` itself unless `stays`."""
        if not stays:
            self.files.pop(path, None)
        # A layer that hides one folder a thousand times finds it empty from the second time on.
        if path in self._hidden:
            return
        prefix = f"{path}/" if path else ""
        at = bisect.bisect_left(self._sorted, prefix)
        if at < len(self._sorted) and self._sorted[at].startswith(prefix):
            self._hidden.add(path)
        while at < len(self._sorted) and self._sorted[at].startswith(prefix):
            self.files.pop(self._sorted[at], None)
            at += 1


def _link_target(entry: Entry, path: str, subject: str) -> str:
    """Returns the path that the link at `path` leads to. Raises BadImage, about `subject`, if it is no link."""
    if not entry.islnk() and not entry.issym():
        raise BadImage(f"{subject} is not a file, folder or link")
    from_root = entry.islnk() or entry.linkname.startswith("/")
    return posixpath.normpath(f"/{entry.linkname if from_root else f'{path}/../{entry.linkname}'}").lstrip("/")


@dataclass(frozen=True, slots=True)
class _Root:
    """The folder into which an image is unpacked.

    `own` are the paths of the current layer, which its whiteouts do not hide; `emptied` are the folders of which its
    whiteouts have removed everything else.
    """

    folder: Path
    image: str
    own: set[Path]
    emptied: set[Path] = field(default_factory=set)

    def locate(self, path: str) -> Path:
        """Returns the location of `path` with its folders' links followed. Raises BadImage if it is outside."""
        # Links in the image are kept inside the root, so the parent cannot leave it; checked all the same.
        try:
            parent = (self.folder / path).parent.resolve()
        except RuntimeError as error:  # what pathlib calls a circle of links before Python 3.13
            raise BadImage(f"image {self.image}: {path} is behind links that lead in a circle") from error
        if not parent.is_relative_to(self.folder.resolve()):
            raise BadImage(f"image {self.image}: {path} leaves the image's root")
        return parent / posixpath.basename(path)

    def record_path(self, target: Path) -> None:
        """Records that the current layer has `target` and its parent folders."""
        root = self.folder.resolve()
        while target != root and target not in self.own:
            self.own.add(target)
            target = target.parent


def _unpack_entry(archive: Archive, entry: Entry, path: str, root: _Root) -> None:
    """Writes one entry of a layer below the root; a whiteout removes what it hides. Raises BadImage and OSError."""
    target = root.locate(path)
    if tarstream.hidden_by(path) is not None:
        _remove_hidden(target, root)
        return
    if entry.isdev() and path.startswith("dev/"):
        return  # the container runtime adds its devices
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError):  # a lower layer has a file there
        next(folder for folder in target.parents if folder.is_file()).unlink()
        target.parent.mkdir(parents=True, exist_ok=True)
    root.record_path(target)
    if entry.isdir():
        if target.is_symlink() or target.is_file():
            target.unlink()
        target.mkdir(exist_ok=True)
        # Accessible in any case, so that later entries can be written below it.
        target.chmod(0o755 | (entry.mode & 0o777))
        return
    _remove_path(target)
    if entry.issym():
        # Relative to where the link really is, because its folder may have been reached through another link.
        relative = target.relative_to(root.folder.resolve()).as_posix()
        target.symlink_to(_safe_link(entry.linkname, relative, root.image))
    elif entry.islnk():
        source = root.locate(tarstream.inner_path(entry.linkname, root.image))
        if source.is_symlink() or not source.is_file():
            raise BadImage(f"image {root.image}: {path} is a hard link to {entry.linkname}, which is not a file")
        shutil.copy(source, target)
    elif entry.isreg():
        with target.open("xb") as file:
            file.writelines(archive.pieces())
        # Readable by the owner in any case, and without set-id bits.
        target.chmod(0o400 | (entry.mode & 0o777))
    else:
        raise BadImage(f"image {root.image}: {path} is not a file, folder or link")


def _remove_hidden(whiteout: Path, root: _Root) -> None:
    """Removes what lower layers brought and the whiteout file hides; the current layer's own paths stay."""
    opaque = whiteout.name == tarstream.OPAQUE
    hidden = whiteout.parent if opaque else whiteout.with_name(whiteout.name.removeprefix(tarstream.WHITEOUT))
    if not opaque and hidden not in root.own:
        _remove_path(hidden)
    elif hidden not in root.emptied and hidden.is_dir() and not hidden.is_symlink():
        root.emptied.add(hidden)
        for path in sorted(hidden.rglob("*"), reverse=True):
            if path not in root.own:
                _remove_path(path)


def _safe_link(link: str, path: str, image: str) -> str:
    """Returns a link's target relative to its folder. Raises BadImage if it leaves the image."""
    folder = posixpath.dirname(path)
    target = link.lstrip("/") if link.startswith("/") else posixpath.join(folder, link)
    target = posixpath.normpath(target)
    if target == ".." or target.startswith("../"):
        raise BadImage(f"image {image}: {path} is a link to {link}, which leaves the image's root")
    return posixpath.relpath("/" + target, "/" + folder)


def _remove_path(path: Path) -> None:
    """Removes a file or a whole folder; a symbolic link is not followed. Raises OSError."""
    if path.is_dir() and not path.is_symlink():
        if why := remove_tree(path):
            raise OSError(f"{path} cannot be removed: {why}")
    else:
        path.unlink(missing_ok=True)
