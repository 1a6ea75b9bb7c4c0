"""An OCI image layout on disk: blobs by digest, and `index.json`, which names images.

Every blob is hashed when it is read, so that corrupted data is detected. Files are written under a temporary name and
renamed, blobs before the index: a full disk or a kill leaves either the old state or the new one.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import msgspec

from kubekit.oci import images
from kubekit.oci.reference import is_digest, sha256
from kubekit.oci.registry_errors import BadImage, CannotWrite, ImageNotFound

_CHUNK = 1024 * 1024
_MARKER = b'{"imageLayoutVersion":"1.0.0"}'


class Layout:
    """The layout in `path`; `create` makes one if it does not exist."""

    __slots__ = ("path",)

    def __init__(self, path: Path) -> None:
        self.path = path

    @classmethod
    def create(cls, path: Path) -> Layout:
        """Returns the layout in `path`, created if needed. Raises CannotWrite."""
        layout = cls(path)
        with _as_cannot_write(path):
            (path / "blobs" / "sha256").mkdir(parents=True, exist_ok=True)
            with layout._lock_index():
                if not (path / "oci-layout").exists():
                    _write_atomically(path / "oci-layout", _MARKER)
                if not (path / "index.json").exists():
                    _write_atomically(path / "index.json", msgspec.json.encode(images.Index(schema_version=2)))
        return layout

    @classmethod
    def open(cls, path: Path) -> Layout:
        """Returns the layout in `path`. Raises ImageNotFound if it does not exist."""
        if not (path / "oci-layout").is_file() or not (path / "index.json").is_file():
            raise ImageNotFound(f"{path}: is not an OCI image layout (it has no oci-layout and index.json)")
        return cls(path)

    def index(self) -> images.Index:
        """Returns the layout's index. Raises ImageNotFound if it cannot be read, or BadImage if it is invalid."""
        try:
            with (self.path / "index.json").open("rb") as file:
                data = file.read(images.MAX_DOCUMENT_BYTES + 1)
        except OSError as error:
            raise ImageNotFound(f"{self.path}: index.json cannot be read: {error.strerror}") from error
        if len(data) > images.MAX_DOCUMENT_BYTES:
            raise BadImage(f"{self.path}: index.json is larger than {images.MAX_DOCUMENT_BYTES} bytes")
        return images.decode_document(images.Index, data, f"{self.path}/index.json")

    def resolve(self, name: str = "") -> images.Descriptor:
        """Returns the image called `name` (a tag or a digest), or the only one there is. Raises ImageNotFound."""
        manifests = self.index().manifests
        if is_digest(name):
            matches = [item for item in manifests if item.digest == name] or self._manifest_without_entry(name)
        elif name:
            matches = [item for item in manifests if item.annotations.get(images.REF_NAME) == name]
        else:
            matches = list({item.digest: item for item in manifests}.values())
        if len(matches) == 1 or (matches and name):
            return matches[0]
        names = sorted({item.annotations.get(images.REF_NAME) or item.digest for item in manifests})
        if not matches:
            raise ImageNotFound(f"{self.path}: holds no image {name or 'at all'}" + _known_names_text(names))
        raise ImageNotFound(
            f"{self.path}: holds {len(matches)} images; name one as oci:{self.path}:TAG" + _known_names_text(names)
        )

    def blob(self, digest: str) -> Path:
        """Returns the path of the blob. Raises BadImage for no sha256 digest, which could name any file."""
        if not is_digest(digest) or not digest.startswith("sha256:"):
            raise BadImage(f"{digest!r} is not a sha256 digest")
        return self.path / "blobs" / "sha256" / digest.removeprefix("sha256:")

    def read(self, digest: str, *, limit: int = images.MAX_DOCUMENT_BYTES) -> bytes:
        """Returns a small blob after checking it. Raises ImageNotFound, or BadImage for a wrong size or digest."""
        path = self.blob(digest)
        try:
            if path.stat().st_size > limit:
                raise BadImage(f"{digest} in {self.path} is larger than {limit} bytes")
            data = path.read_bytes()
        except OSError as error:
            raise ImageNotFound(f"{self.path}: blob {digest} cannot be read: {error.strerror}") from error
        if sha256(data) != digest:
            raise BadImage(f"{self.path}: blob {digest} has other content than its digest says ({sha256(data)})")
        return data

    @contextlib.contextmanager
    def open_blob(self, digest: str) -> Iterator[BinaryIO]:
        """Opens a blob as a stream, hashed before the first byte is returned. Raises ImageNotFound, BadImage."""
        try:
            stream = self.blob(digest).open("rb")
        except OSError as error:
            raise ImageNotFound(f"{self.path}: blob {digest} cannot be read: {error.strerror}") from error
        with stream:
            # Hashed before use: what was read before a wrong digest is found could have been acted on.
            actual = "sha256:" + hashlib.file_digest(stream, "sha256").hexdigest()
            if actual != digest:
                raise BadImage(f"{self.path}: blob {digest} has other content than its digest says ({actual})")
            stream.seek(0)
            yield stream

    def add_blob(self, data: bytes) -> str:
        """Writes a blob and returns its digest. Raises CannotWrite."""
        digest = sha256(data)
        path = self.blob(digest)
        if not path.exists():
            with _as_cannot_write(self.path):
                path.parent.mkdir(parents=True, exist_ok=True)
                _write_atomically(path, data)
        return digest

    def copy_blob(self, digest: str, target: Layout) -> None:
        """Copies a blob into another layout and checks it. Raises ImageNotFound, BadImage, CannotWrite."""
        if target.blob(digest).is_file():
            return
        with self.open_blob(digest) as stream, target.incoming() as writer:
            while piece := stream.read(_CHUNK):
                writer.write(piece)
            writer.commit(digest)

    @contextlib.contextmanager
    def incoming(self) -> Iterator[BlobWriter]:
        """Opens a new blob for writing piece by piece; nothing is left unless `commit` is called."""
        with _as_cannot_write(self.path):
            (self.path / "blobs" / "sha256").mkdir(parents=True, exist_ok=True)
            handle, name = tempfile.mkstemp(dir=self.path, prefix=".incoming-")
        writer = BlobWriter(self, handle, Path(name))
        try:
            yield writer
        finally:
            writer.discard()

    def add_manifest(self, descriptor: images.Descriptor, name: str = "") -> None:
        """Adds an image to the index, under `name` if given; an older image of that name loses it."""
        with _as_cannot_write(self.path), self._lock_index():
            name_annotations = {REF: name} if name else {}
            new = images.Descriptor(
                media_type=descriptor.media_type,
                digest=descriptor.digest,
                size=descriptor.size,
                annotations={**descriptor.annotations, **name_annotations},
                platform=descriptor.platform,
            )
            new_name = new.annotations.get(REF, "")
            # A name belongs to one image; one image may have several names.
            manifests = [
                item
                for item in self.index().manifests
                if (item.annotations[REF] != new_name if item.annotations.get(REF) else item.digest != new.digest)
            ]
            ordered = sorted([*manifests, new], key=lambda item: (item.annotations.get(REF, ""), item.digest))
            index = images.Index(schema_version=2, manifests=tuple(ordered))
            _write_atomically(self.path / "index.json", msgspec.json.encode(index))

    def remove(self, name: str) -> bool:
        """Removes a name from the index, but not its blobs; returns whether there was one."""
        with _as_cannot_write(self.path), self._lock_index():
            index = self.index()
            manifests = tuple(item for item in index.manifests if item.annotations.get(REF) != name)
            _write_atomically(
                self.path / "index.json", msgspec.json.encode(images.Index(schema_version=2, manifests=manifests))
            )
        return len(manifests) != len(index.manifests)

    def _manifest_without_entry(self, digest: str) -> list[images.Descriptor]:
        """Returns a manifest that no index entry refers to directly, such as one of a multi-architecture index."""
        path = self.blob(digest)
        if not path.is_file() or path.stat().st_size > images.MAX_DOCUMENT_BYTES:
            return []
        data = self.read(digest)
        return [images.Descriptor(media_type=media_type_of(data), digest=digest, size=len(data))]

    @contextlib.contextmanager
    def _lock_index(self) -> Iterator[None]:
        # Two builders of the same layout must not lose each other's entry.
        with (self.path / ".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield


REF = images.REF_NAME


class BlobWriter:
    """A blob that is being written to a layout."""

    __slots__ = ("_handle", "_hash", "_layout", "_path", "size")

    def __init__(self, layout: Layout, handle: int, path: Path) -> None:
        self._layout = layout
        self._handle = handle
        self._path = path
        self._hash = hashlib.sha256()
        self.size = 0

    def write(self, data: bytes) -> None:
        """Appends `data`. Raises CannotWrite."""
        with _as_cannot_write(self._path.parent):
            view = memoryview(data)
            while view:
                view = view[os.write(self._handle, view) :]
        self._hash.update(data)
        self.size += len(data)

    @property
    def digest(self) -> str:
        """The digest of what has been written so far."""
        return "sha256:" + self._hash.hexdigest()

    def commit(self, expected: str = "") -> str:
        """Stores the blob and returns its digest. Raises BadImage if `expected` is another digest."""
        if expected and self.digest != expected:
            raise BadImage(f"blob {expected} has other content than its digest says ({self.digest})")
        with _as_cannot_write(self._path.parent):
            # mkstemp makes files that only their owner can read.
            os.fchmod(self._handle, 0o644)
            self._path.rename(self._layout.blob(self.digest))
        return self.digest

    def discard(self) -> None:
        """Removes the file if it was not committed."""
        os.close(self._handle)
        self._path.unlink(missing_ok=True)


class _Described(msgspec.Struct, frozen=True, rename="camel"):
    """The members that distinguish a manifest from an index, with their content not decoded."""

    media_type: msgspec.Raw = msgspec.Raw(b"null")
    manifests: msgspec.Raw = msgspec.Raw(b"null")
    config: msgspec.Raw = msgspec.Raw(b"null")


def media_type_of(data: bytes) -> str:
    """Returns the media type that a manifest or index declares, or that its members imply. Raises BadImage."""
    try:
        document = msgspec.json.decode(data, type=_Described)
        is_text = bytes(document.media_type)[:1] == b'"'
        declared = msgspec.json.decode(document.media_type, type=str) if is_text else ""
    except msgspec.ValidationError as error:
        raise BadImage("a manifest is not a JSON object") from error
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadImage(f"a manifest is not JSON: {error}") from error
    if declared:
        return declared
    if bytes(document.manifests)[:1] == b"[":
        return images.INDEX
    if bytes(document.config)[:1] == b"{":
        return images.MANIFEST
    raise BadImage("is neither an image manifest nor an index of images")


def _known_names_text(names: list[str]) -> str:
    return f"; it has {', '.join(names)}" if names else ""


def _write_atomically(path: Path, data: bytes) -> None:
    """Writes a file that readers see whole or not at all. Raises OSError."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=".new-")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            os.fchmod(file.fileno(), 0o644)
        Path(name).rename(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


@contextlib.contextmanager
def _as_cannot_write(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise CannotWrite(f"{path}: cannot be written: {error.strerror or error}") from error
