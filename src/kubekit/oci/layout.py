"""An OCI image layout on disk: blobs by digest, and `index.json` that names images.

Every blob is hashed when it is read, so that a flipped byte never gets past here. Writing is a temporary file and a
rename, blobs before the index: a full disk or a kill leaves either the old state or the new one.
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
from kubekit.oci.errors import BadImage, CannotWrite, ImageNotFound
from kubekit.oci.images import Descriptor, Index
from kubekit.oci.reference import is_digest, sha256

_CHUNK = 1024 * 1024
_MARKER = b'{"imageLayoutVersion":"1.0.0"}'


class Layout:
    """The layout in `path`; `create` makes one where there is none."""

    __slots__ = ("path",)

    def __init__(self, path: Path) -> None:
        self.path = path

    @classmethod
    def create(cls, path: Path) -> Layout:
        """The layout in `path`, made if needed; raises CannotWrite."""
        layout = cls(path)
        with _writing(path):
            (path / "blobs" / "sha256").mkdir(parents=True, exist_ok=True)
            with layout._locked():
                if not (path / "oci-layout").exists():
                    _write_atomically(path / "oci-layout", _MARKER)
                if not (path / "index.json").exists():
                    _write_atomically(path / "index.json", msgspec.json.encode(Index(schema_version=2)))
        return layout

    @classmethod
    def open(cls, path: Path) -> Layout:
        """The layout in `path`; raises ImageNotFound where there is none."""
        if not (path / "oci-layout").is_file() or not (path / "index.json").is_file():
            raise ImageNotFound(f"{path}: is no OCI image layout (it has no oci-layout and index.json)")
        return cls(path)

    def index(self) -> Index:
        """What the layout names; raises BadImage."""
        try:
            with (self.path / "index.json").open("rb") as file:
                data = file.read(images.MAX_DOCUMENT_BYTES + 1)
        except OSError as error:
            raise ImageNotFound(f"{self.path}: index.json cannot be read: {error.strerror}") from error
        if len(data) > images.MAX_DOCUMENT_BYTES:
            raise BadImage(f"{self.path}: index.json is larger than {images.MAX_DOCUMENT_BYTES} bytes")
        return images.decode(Index, data, f"{self.path}/index.json")

    def resolve(self, name: str = "") -> Descriptor:
        """The image called `name` (a tag or a digest), or the only one there is; raises ImageNotFound."""
        known = self.index().manifests
        if is_digest(name):
            found = [item for item in known if item.digest == name] or self._unnamed(name)
        elif name:
            found = [item for item in known if item.annotations.get(images.REF_NAME) == name]
        else:
            found = list({item.digest: item for item in known}.values())
        if len(found) == 1 or (found and name):
            return found[0]
        names = sorted({item.annotations.get(images.REF_NAME) or item.digest for item in known})
        if not found:
            raise ImageNotFound(f"{self.path}: holds no image {name or 'at all'}" + _known(names))
        raise ImageNotFound(f"{self.path}: holds {len(found)} images; name one as oci:{self.path}:TAG" + _known(names))

    def blob(self, digest: str) -> Path:
        """Where the blob is kept; raises BadImage for what is no sha256 digest, which could name any file."""
        if not is_digest(digest) or not digest.startswith("sha256:"):
            raise BadImage(f"{digest!r} is no sha256 digest")
        return self.path / "blobs" / "sha256" / digest.removeprefix("sha256:")

    def read(self, digest: str, *, limit: int = images.MAX_DOCUMENT_BYTES) -> bytes:
        """A small blob, checked; raises ImageNotFound, or BadImage where size or digest do not hold."""
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
        """A blob of any size as a stream, hashed before the first byte is handed out."""
        try:
            stream = self.blob(digest).open("rb")
        except OSError as error:
            raise ImageNotFound(f"{self.path}: blob {digest} cannot be read: {error.strerror}") from error
        with stream:
            actual = "sha256:" + hashlib.file_digest(stream, "sha256").hexdigest()
            if actual != digest:
                raise BadImage(f"{self.path}: blob {digest} has other content than its digest says ({actual})")
            stream.seek(0)
            yield stream

    def add_blob(self, data: bytes) -> str:
        """Write a blob and give its digest; raises CannotWrite."""
        digest = sha256(data)
        path = self.blob(digest)
        if not path.exists():
            with _writing(self.path):
                path.parent.mkdir(parents=True, exist_ok=True)
                _write_atomically(path, data)
        return digest

    def copy_blob(self, digest: str, target: Layout) -> None:
        """Bring a blob into another layout, checked on the way; raises ImageNotFound, BadImage, CannotWrite."""
        if target.blob(digest).is_file():
            return
        with self.open_blob(digest) as stream, target.incoming() as writer:
            while piece := stream.read(_CHUNK):
                writer.write(piece)
            writer.commit(digest)

    @contextlib.contextmanager
    def incoming(self) -> Iterator[BlobWriter]:
        """Write a blob piece by piece; nothing is left unless `commit` was called."""
        with _writing(self.path):
            (self.path / "blobs" / "sha256").mkdir(parents=True, exist_ok=True)
            handle, name = tempfile.mkstemp(dir=self.path, prefix=".incoming-")
        writer = BlobWriter(self, handle, Path(name))
        try:
            yield writer
        finally:
            writer.discard()

    def add_manifest(self, descriptor: Descriptor, name: str = "") -> None:
        """Put an image into the index, under `name` if given; an older image of that name loses it."""
        with _writing(self.path), self._locked():
            named = {REF: name} if name else {}
            new = Descriptor(
                media_type=descriptor.media_type,
                digest=descriptor.digest,
                size=descriptor.size,
                annotations={**descriptor.annotations, **named},
                platform=descriptor.platform,
            )
            kept = [item for item in self.index().manifests if not _replaces(new, item)]
            ordered = sorted([*kept, new], key=lambda item: (item.annotations.get(REF, ""), item.digest))
            index = Index(schema_version=2, manifests=tuple(ordered))
            _write_atomically(self.path / "index.json", msgspec.json.encode(index))

    def remove(self, name: str) -> bool:
        """Take a name out of the index; its blobs stay. Says whether there was one."""
        with _writing(self.path), self._locked():
            index = self.index()
            kept = tuple(item for item in index.manifests if item.annotations.get(REF) != name)
            _write_atomically(self.path / "index.json", msgspec.json.encode(Index(schema_version=2, manifests=kept)))
        return len(kept) != len(index.manifests)

    def _unnamed(self, digest: str) -> list[Descriptor]:
        """A manifest that no index entry points at directly, such as one of a multi-architecture index."""
        path = self.blob(digest)
        if not path.is_file() or path.stat().st_size > images.MAX_DOCUMENT_BYTES:
            return []
        data = self.read(digest)
        return [Descriptor(media_type=media_type_of(data), digest=digest, size=len(data))]

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        # Two builders of the same layout must not lose each other's entry.
        with (self.path / ".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield


REF = images.REF_NAME


class BlobWriter:
    """A blob on its way into a layout."""

    __slots__ = ("_handle", "_hash", "_layout", "_path", "size")

    def __init__(self, layout: Layout, handle: int, path: Path) -> None:
        self._layout = layout
        self._handle = handle
        self._path = path
        self._hash = hashlib.sha256()
        self.size = 0

    def write(self, data: bytes) -> None:
        """Append `data`; raises CannotWrite."""
        with _writing(self._path.parent):
            view = memoryview(data)
            while view:
                view = view[os.write(self._handle, view) :]
        self._hash.update(data)
        self.size += len(data)

    @property
    def digest(self) -> str:
        """The digest of what was written so far."""
        return "sha256:" + self._hash.hexdigest()

    def commit(self, expected: str = "") -> str:
        """Make it a blob; raises BadImage where `expected` is another digest than that of the content."""
        if expected and self.digest != expected:
            raise BadImage(f"blob {expected} has other content than its digest says ({self.digest})")
        with _writing(self._path.parent):
            os.fchmod(self._handle, 0o644)
            self._path.rename(self._layout.blob(self.digest))
        return self.digest

    def discard(self) -> None:
        """Remove what was not committed."""
        os.close(self._handle)
        self._path.unlink(missing_ok=True)


class _Described(msgspec.Struct, frozen=True, rename="camel"):
    """What tells a manifest from an index; what is in it stays as it came."""

    media_type: msgspec.Raw = msgspec.Raw(b"null")
    manifests: msgspec.Raw = msgspec.Raw(b"null")
    config: msgspec.Raw = msgspec.Raw(b"null")


def media_type_of(data: bytes) -> str:
    """The media type that a manifest or index says of itself, or that its members give away; raises BadImage."""
    try:
        document = msgspec.json.decode(data, type=_Described)
    except msgspec.ValidationError as error:
        raise BadImage("a manifest is no JSON object") from error
    except (msgspec.DecodeError, RecursionError) as error:
        raise BadImage(f"a manifest is no JSON: {error}") from error
    if bytes(document.media_type)[:1] == b'"' and (declared := msgspec.json.decode(document.media_type, type=str)):
        return declared
    if bytes(document.manifests)[:1] == b"[":
        return images.INDEX
    if bytes(document.config)[:1] == b"{":
        return images.MANIFEST
    raise BadImage("is neither an image manifest nor an index of images")


def _replaces(new: Descriptor, old: Descriptor) -> bool:
    name = old.annotations.get(REF, "")
    same_name = bool(name) and name == new.annotations.get(REF)
    return same_name or (old.digest == new.digest and (not name or name == new.annotations.get(REF, "")))


def _known(names: list[str]) -> str:
    return f"; it has {', '.join(names)}" if names else ""


def _write_atomically(path: Path, data: bytes) -> None:
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
def _writing(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise CannotWrite(f"{path}: cannot be written: {error.strerror or error}") from error
