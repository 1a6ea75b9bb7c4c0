"""Images from and to registries: pulled into a layout, pushed out of one, or one file read out of an image's layers.

What arrives is hashed before anything looks at it, is never larger than it claims, and gets its name last. A broken
download goes on where it stopped. Mirrors are asked first, for digests alone. Decision record 0007 says why not oras.
"""

from __future__ import annotations

import contextlib
import hashlib
import http.client
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar
from urllib.parse import urlencode, urljoin

from kubekit.oci import images, mirrors
from kubekit.oci.access import Access
from kubekit.oci.errors import BadImage, BeyondLimits, FileNotFound, ImageNotFound, OciError, Unauthorized, Unreachable
from kubekit.oci.images import Config, Descriptor, Manifest
from kubekit.oci.layers import ALL_OF_A_RELEASE, MAX_LAYERS, Pick, for_architecture, read_folders
from kubekit.oci.layout import Layout, media_type_of
from kubekit.oci.reference import Reference, is_digest, sha256
from kubekit.oci.search import Search, Searched, Sought
from kubekit.oci.tarstream import MAX_IMAGE_BYTES, BrokenLayer, Budget, Hidden, Pieces, entries, find_in_layer, opened
from kubekit.oci.transport import Interrupted, Question, Transport, broken, pause_s

MAX_FILE_BYTES = 1024 * 1024
"""Largest file that is read out of an image without pulling it: a release's metadata have some 20 KB."""

MAX_SEARCHED_BYTES = 16 * 1024 * 1024 * 1024
"""Most that an image that is only searched may have: a driver toolkit's compiler and headers upon a distribution."""

MAX_SEARCHED_ENTRIES = 1_000_000
"""Most files, folders and links of an image that is searched."""

_ACCEPT = ", ".join(sorted(images.MANIFESTS | images.INDEXES))
_PIECE = 256 * 1024
T = TypeVar("T")


class RegistryClient:
    """Asks registries as `access` says. Blocks; an event loop calls it in a thread. Every method raises OciError."""

    def __init__(self, access: Access | None = None) -> None:
        self._access = access or Access()
        self._transport = Transport(self._access)
        self.received_bytes = 0
        """How much of blobs arrived so far, as they are sent."""

    def resolve(self, reference: Reference) -> str:
        """The digest that `reference` stands for now: its own, or that of its tag."""
        return reference.digest or self._from_any(reference, lambda source: sha256(self._manifest(source)))

    def pull(self, reference: Reference, layout: Layout, *, architecture: str = "amd64") -> str:
        """Bring the image and all its blobs into `layout`, which knows it by digest then; gives the digest.

        What is there already is not fetched again. Of several architectures one is fetched.
        """
        return self._from_any(reference, lambda source: self._pull(source, layout, architecture))

    def read_file(self, reference: Reference, path: str, *, architecture: str = "amd64") -> bytes:
        """One file of the image, without keeping any of it; raises ImageNotFound where the image has no such file.

        The upper layers are read first, so a release's own files are found without fetching what it is built upon.
        """
        return self._from_any(reference, lambda source: self._read_file(source, path, architecture))

    def read_folders(
        self,
        reference: Reference,
        folders: tuple[str, ...],
        pick: Pick = ALL_OF_A_RELEASE,
        *,
        architecture: str = "amd64",
    ) -> dict[str, bytes]:
        """The regular files below `folders` as path to bytes, as `pick` makes them, without keeping any of the image.

        Every layer arrives once and is read as it arrives: what a lower one has counts, unless an upper one hides it.
        """
        return self._from_any(reference, lambda source: self._read_folders(source, folders, pick, architecture))

    def search(self, reference: Reference, sought: Sought, *, architecture: str = "amd64") -> Searched:
        """Look for files in the image, the uppermost layer first, and no further than until they were found.

        What was read whole is what its digest says; of a layer that was left early that cannot be known. An error about
        a layer, not the manifest, has its digest in `layer`. Without an `architecture` any will do.
        """
        return self._from_any(reference, lambda source: self._search(source, sought, architecture))

    def push(self, layout: Layout, digest: str, target: Reference) -> None:
        """Copy an image out of `layout` to `target`; blobs first, so that the name never points at half of it."""
        data = layout.read(digest)
        media_type = media_type_of(data)
        if media_type not in images.MANIFESTS:
            raise BadImage(f"{digest} is a {media_type}; images are pushed one by one")
        manifest = images.decode(Manifest, data, f"manifest {digest}")
        for blob in (manifest.config, *manifest.layers):
            self._upload(layout, blob, target)
        headers = {"Content-Type": media_type}
        path = f"manifests/{target.tag or digest}"
        with self._transport.ask(self._writing(target, "PUT", path, headers, data)) as answer:
            stored = answer.headers.get("Docker-Content-Digest") or digest
        if stored != digest:
            raise BadImage(f"{target}: the registry stored another image ({stored}) than it was sent ({digest})")

    def _from_any(self, reference: Reference, fetch: Callable[[Reference], T]) -> T:
        """What the first place that has it gives; the error is that of the last place, with what its mirrors said."""
        problems: list[str] = []
        *first, last = mirrors.sources(reference, self._access.mirrors)
        for source in first:
            try:
                return fetch(source)
            except (ImageNotFound, Unreachable, Unauthorized, BadImage) as error:
                problems.append(error.message)
        try:
            return fetch(last)
        except OciError as error:
            if problems:
                told = type(error)("; ".join([error.message, *(f"mirror: {problem}" for problem in problems)]))
                told.layer = error.layer
                raise told from error
            raise

    def _pull(self, reference: Reference, layout: Layout, architecture: str) -> str:
        asked, image = self._image(reference, architecture)
        manifest = images.decode(Manifest, image, str(reference))
        _check_sizes(manifest, reference)
        for blob in (manifest.config, *manifest.layers):
            self._fetch(reference, blob, layout)
        for document in dict.fromkeys((image, asked)):
            layout.add_blob(document)
        digest = sha256(asked)
        layout.add_manifest(Descriptor(media_type=media_type_of(asked), digest=digest, size=len(asked)))
        return digest

    def _image(self, reference: Reference, architecture: str) -> tuple[bytes, bytes]:
        """What `reference` names, and the manifest of the image for `architecture`: the same unless it is an index."""
        asked = self._manifest(reference)
        if media_type_of(asked) not in images.INDEXES:
            return asked, asked
        index = images.decode(images.Index, asked, str(reference))
        chosen = for_architecture(index, architecture, str(reference))
        return asked, self._manifest(reference.at(chosen.digest))

    def _manifest(self, reference: Reference) -> bytes:
        name = reference.digest or reference.tag or "latest"
        what = f"reading manifest {reference}"
        with self._transport.ask(Question(reference, "GET", f"manifests/{name}", what, {"Accept": _ACCEPT})) as answer:
            try:
                data = answer.read(images.MAX_DOCUMENT_BYTES + 1)
            except (OSError, http.client.HTTPException) as error:
                raise Unreachable(f"{what}: {reference.host} broke off: {error}") from error
            if answer.length and len(data) <= images.MAX_DOCUMENT_BYTES:
                raise Unreachable(f"{what}: {reference.host} broke off after {len(data)} bytes")
        if len(data) > images.MAX_DOCUMENT_BYTES:
            raise BadImage(f"{what}: it is larger than {images.MAX_DOCUMENT_BYTES} bytes")
        if reference.digest and sha256(data) != reference.digest:
            raise BadImage(f"{what}: the registry sent another manifest, of digest {sha256(data)}")
        return data

    def _fetch(self, reference: Reference, blob: Descriptor, layout: Layout) -> None:
        path = layout.blob(blob.digest)
        if path.is_file() and path.stat().st_size == blob.size:
            return
        with layout.incoming() as writer:
            for piece in self._pieces(reference, blob):
                writer.write(piece)
            writer.commit(blob.digest)

    def _read_file(self, reference: Reference, path: str, architecture: str) -> bytes:
        _, image = self._image(reference, architecture)
        manifest = images.decode(Manifest, image, str(reference))
        _check_sizes(manifest, reference)
        budget = Budget.of(str(reference))
        for blob in reversed(manifest.layers):
            found = find_in_layer(self._verified(reference, blob), blob, path, limit=MAX_FILE_BYTES, budget=budget)
            if isinstance(found, bytes):
                return found
            if found is Hidden.YES:
                break
        raise FileNotFound(f"{reference}: the image has no file {path}")

    def _read_folders(
        self, reference: Reference, folders: tuple[str, ...], pick: Pick, architecture: str
    ) -> dict[str, bytes]:
        _, data = self._image(reference, architecture)
        manifest = images.decode(Manifest, data, str(reference))
        _check_sizes(manifest, reference)
        if manifest.config.size > images.MAX_DOCUMENT_BYTES:
            raise BadImage(f"{reference}: its config is larger than {images.MAX_DOCUMENT_BYTES} bytes")
        described = b"".join(self._verified(reference, manifest.config))
        config = images.decode(Config, described, f"config of {reference}")
        arriving = _Arriving(lambda blob: self._verified(reference, blob), manifest)
        return read_folders(_Remote(arriving, str(reference), manifest, config), folders, pick)

    def _search(self, reference: Reference, sought: Sought, architecture: str) -> Searched:
        _, data = self._image(reference, architecture)
        manifest = images.decode(Manifest, data, str(reference))
        _check_sizes(manifest, reference, MAX_SEARCHED_BYTES)
        before = self.received_bytes
        budget = Budget.of(str(reference), MAX_SEARCHED_BYTES, MAX_SEARCHED_ENTRIES)
        search = Search(str(reference), sought)
        # A layer that is there twice brings the same both times, and the upper one counts.
        layers = {blob.digest: blob for blob in reversed(manifest.layers)} if not search.complete else {}
        read = 0
        for blob in layers.values():
            read += 1
            try:
                if self._search_layer(reference, blob, search, budget):
                    break
            except OciError as error:
                error.layer = blob.digest
                raise
        fetched = self.received_bytes - before
        return Searched(search.found, search.elsewhere, read, len(manifest.layers), fetched)

    def _search_layer(self, reference: Reference, blob: Descriptor, search: Search, budget: Budget) -> bool:
        with contextlib.closing(self._verified(reference, blob)) as pieces:
            source = Pieces(pieces)
            try:
                with opened(source, blob, budget) as (archive, _):
                    if search.layer(entries(archive, budget)):
                        return True
            except BrokenLayer:
                source.drain()  # where the bytes are not even those of the digest, that is the better answer
                raise
            source.drain()
        return False

    def _verified(self, reference: Reference, blob: Descriptor) -> Generator[bytes, None, None]:
        """The pieces of a blob; raises BadImage at their end where they are not what the digest says."""
        if not blob.digest.startswith("sha256:") or not is_digest(blob.digest):
            raise BadImage(f"{reference}: {blob.digest!r} is no sha256 digest")
        hashed = hashlib.sha256()
        for piece in self._pieces(reference, blob):
            hashed.update(piece)
            yield piece
        if f"sha256:{hashed.hexdigest()}" != blob.digest:
            raise BadImage(f"{reference}: blob {blob.digest} has other content than its digest says")

    def _pieces(self, reference: Reference, blob: Descriptor) -> Iterator[bytes]:
        """A blob's bytes as they come, exactly as many as it claims; goes on where a broken connection stopped."""
        what = f"{reference}: blob {blob.digest}"
        received = 0
        for attempt in range(1, self._access.attempts + 1):
            try:
                for piece in self._attempt(reference, blob, received, what):
                    received += len(piece)
                    self.received_bytes += len(piece)
                    if received > blob.size:
                        raise BadImage(f"{what} is larger than the {blob.size} bytes that it claims")
                    yield piece
                if received == blob.size:
                    return
                raise Interrupted(f"it ended after {received} of {blob.size} bytes")
            except Interrupted as error:
                if attempt == self._access.attempts or self._access.wait(pause_s(attempt)):
                    raise Unreachable(f"{what}: {reference.host} broke off: {error}") from error

    def _attempt(self, reference: Reference, blob: Descriptor, received: int, what: str) -> Iterator[bytes]:
        """The bytes from `received` on; of a registry that knows no ranges, the first ones are skipped."""
        headers = {"Range": f"bytes={received}-"} if received else {}
        question = Question(reference, "GET", f"blobs/{blob.digest}", what, headers, size=blob.size - received)
        with self._transport.ask(question) as answer:
            skip = 0 if answer.status == 206 else received
            while piece := self._piece(answer, question):
                yield piece[skip:]
                skip = max(skip - len(piece), 0)

    def _piece(self, answer: http.client.HTTPResponse, question: Question) -> bytes:
        if self._access.wait(0):
            raise Unreachable(f"{question.what}: given up")
        try:
            return answer.read1(_PIECE)
        except (OSError, http.client.HTTPException) as error:
            raise broken(question, question.reference.host, error) from error

    def _upload(self, layout: Layout, blob: Descriptor, target: Reference) -> None:
        if self._has(blob, target):
            return
        with self._transport.ask(self._writing(target, "POST", "blobs/uploads/", body=b"")) as started:
            location = started.headers.get("Location", "")
        if not location:
            raise BadImage(f"{target}: the registry does not say where to upload to")
        # Checked before it goes out: a registry keeps what it was given.
        with layout.open_blob(blob.digest):
            joint = "&" if "?" in location else "?"
            headers = {"Content-Type": "application/octet-stream"}
            path = f"{urljoin('blobs/uploads/', location)}{joint}{urlencode({'digest': blob.digest})}"
            question = self._writing(target, "PUT", path, headers, layout.blob(blob.digest), blob.size)
            with self._transport.ask(question):
                return

    def _has(self, blob: Descriptor, target: Reference) -> bool:
        try:
            with self._transport.ask(self._writing(target, "HEAD", f"blobs/{blob.digest}")):
                return True
        except ImageNotFound:
            return False

    def _writing(
        self,
        target: Reference,
        method: str,
        path: str,
        headers: dict[str, str] | None = None,
        body: bytes | Path | None = None,
        size: int = 0,
    ) -> Question:
        return Question(target, method, path, f"pushing {target}", headers or {}, body, scope="pull,push", size=size)


class _Arriving:
    """The layers of an image in a registry, each read once, from its first byte to its last."""

    def __init__(self, pieces: Callable[[Descriptor], Iterator[bytes]], manifest: Manifest) -> None:
        self._pieces = pieces
        self._layers = {layer.digest: layer for layer in manifest.layers}

    @contextlib.contextmanager
    def open_blob(self, digest: str) -> Iterator[Pieces]:
        """A layer's bytes as they arrive; raises BadImage at their end where they are not what the digest says."""
        stream = Pieces(self._pieces(self._layers[digest]))
        try:
            yield stream
        except BrokenLayer:
            stream.drain()  # where the bytes are not even those of the digest, that is the better answer
            raise
        stream.drain()


@dataclass(frozen=True, slots=True)
class _Remote:
    """An image whose layers arrive; `digest` is what messages call it."""

    layout: _Arriving
    digest: str
    manifest: Manifest
    config: Config


def _check_sizes(manifest: Manifest, reference: Reference, most_bytes: int | None = None) -> None:
    """Raise BadImage for an image that claims to be larger than any that is read, by default any that is unpacked."""
    if len(manifest.layers) > MAX_LAYERS:
        raise BeyondLimits(f"{reference}: has {len(manifest.layers)} layers; the limit is {MAX_LAYERS}")
    sizes = [blob.size for blob in (manifest.config, *manifest.layers)]
    most = MAX_IMAGE_BYTES if most_bytes is None else most_bytes
    if min(sizes) < 0 or sum(sizes) > most:
        raise BeyondLimits(f"{reference}: claims {sum(sizes)} bytes; the limit is {most}")
