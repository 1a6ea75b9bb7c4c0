"""Reads images from and writes them to registries: pulls into a layout, pushes from one, reads files of layers.

Received data is hashed before anything parses it, is never larger than it claims, and gets its name last. A broken
download resumes where it stopped. Mirrors are asked first, for digests only. docs/decisions/0007 says why not oras.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar
from urllib.parse import urlencode, urljoin

from kubekit.http.http_connection import Answer, Incomplete
from kubekit.oci import images, tarstream
from kubekit.oci import registry_errors as errors
from kubekit.oci.access import Access, references_to_try
from kubekit.oci.file_search import FileQuery, Search, SearchResult
from kubekit.oci.images import Config, Descriptor, Manifest
from kubekit.oci.layers import ALL_OF_A_RELEASE, MAX_LAYERS, Pick, read_folders, select_architecture
from kubekit.oci.layout import Layout, media_type_of
from kubekit.oci.reference import Reference, is_digest, sha256
from kubekit.oci.transport import Interrupted, RegistryRequest, Transport, connection_error, pause_s

# Maximum size of a file that is read from an image without pulling it: a release's metadata have some 20 KB.
MAX_FILE_BYTES = 1024 * 1024
# Maximum size of a searched image, such as one with kernel modules on a distribution's image.
MAX_SEARCHED_BYTES = 16 * 1024 * 1024 * 1024
MAX_SEARCHED_ENTRIES = 1_000_000  # maximum number of files, folders and links of a searched image
_ACCEPT = ", ".join(sorted(images.MANIFESTS | images.INDEXES))
T = TypeVar("T")


class RegistryClient:
    """Sends requests to registries with the settings in `access`. Every method blocks, and raises OciError.

    An event loop calls the methods in a thread.
    """

    def __init__(self, access: Access | None = None) -> None:
        self.access = access or Access()
        self._transport = Transport(self.access)
        self.received_bytes = 0
        """Bytes of blobs received so far, as they were sent."""

    def resolve(self, reference: Reference) -> str:
        """Returns the digest that `reference` represents now: its own, or that of its tag."""
        return reference.digest or self._from_any(reference, lambda source: sha256(self._fetch_manifest(source)))

    def pull(self, reference: Reference, layout: Layout, *, architecture: str = "amd64") -> str:
        """Copies the image and those of its blobs that are missing into `layout`; returns the digest."""
        return self._from_any(reference, lambda source: self._pull_from(source, layout, architecture))

    def read_file(self, reference: Reference, path: str, *, architecture: str = "amd64") -> bytes:
        """Returns one file of the image without storing the image. Raises ImageNotFound if the image has no such file.

        The upper layers are read first, so that a release's own files are found without fetching its base image.
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
        """Returns the regular files below `folders` as path -> bytes, reduced by `pick`, without storing the image.

        Every layer is read once, as it arrives: a lower layer's file counts unless an upper one hides it.
        """
        return self._from_any(reference, lambda source: self._read_folders(source, folders, pick, architecture))

    def search(self, reference: Reference, sought: FileQuery, *, architecture: str = "amd64") -> SearchResult:
        """Searches the image for files, the uppermost layer first, and stops once they are found.

        A layer that was read completely matches its digest; a partly read one is not verified. An error
        about a layer, as opposed to the manifest, has its digest in `layer`. Without an `architecture` any will do.
        """
        return self._from_any(reference, lambda source: self._search_in(source, sought, architecture))

    def push(self, layout: Layout, digest: str, target: Reference) -> None:
        """Copies an image from `layout` to `target`; blobs first, so that the name never refers to a partial image."""
        data = layout.read(digest)
        media_type = media_type_of(data)
        if media_type not in images.MANIFESTS:
            raise errors.BadImage(f"{digest} is a {media_type}; images are pushed one by one")
        manifest = images.decode_document(Manifest, data, f"manifest {digest}")
        for blob in (manifest.config, *manifest.layers):
            self._upload_blob(layout, blob, target)
        headers = {"Content-Type": media_type}
        path = f"manifests/{target.tag or digest}"
        with self._transport.ask(_push_request(target, "PUT", path, headers=headers, body=data)) as answer:
            stored = answer.headers.get("Docker-Content-Digest") or digest
        # A registry that rewrites manifests would break every reference by digest.
        if stored != digest:
            raise errors.BadImage(f"{target}: the registry stored another image ({stored}) than it was sent ({digest})")

    def _from_any(self, reference: Reference, fetch: Callable[[Reference], T]) -> T:
        """Returns the result of the first source that has the image. Raises the error of all."""
        problems: list[str] = []
        *first, last = references_to_try(reference, self.access.mirrors)
        for source in first:
            try:
                return fetch(source)
            except (errors.ImageNotFound, errors.Unreachable, errors.Unauthorized, errors.BadImage) as error:
                problems.append(error.message)
        try:
            return fetch(last)
        except errors.OciError as error:
            if problems:
                combined = type(error)("; ".join([error.message, *(f"mirror: {problem}" for problem in problems)]))
                combined.layer = error.layer
                raise combined from error
            raise

    def _pull_from(self, reference: Reference, layout: Layout, architecture: str) -> str:
        """Copies the image and all its blobs into `layout`; returns the digest of what the reference names."""
        index_or_manifest, image = self._document_and_manifest(reference, architecture)
        manifest = images.decode_document(Manifest, image, str(reference))
        _check_sizes(manifest, reference)
        for blob in (manifest.config, *manifest.layers):
            self._fetch_blob(reference, blob, layout)
        for document in dict.fromkeys((image, index_or_manifest)):
            layout.add_blob(document)
        digest = sha256(index_or_manifest)
        layout.add_manifest(
            Descriptor(media_type=media_type_of(index_or_manifest), digest=digest, size=len(index_or_manifest))
        )
        return digest

    def _document_and_manifest(self, reference: Reference, architecture: str) -> tuple[bytes, bytes]:
        """Returns the document that `reference` names, an index or a manifest, and the manifest."""
        index_or_manifest = self._fetch_manifest(reference)
        if media_type_of(index_or_manifest) not in images.INDEXES:
            return index_or_manifest, index_or_manifest
        index = images.decode_document(images.Index, index_or_manifest, str(reference))
        descriptor = select_architecture(index, architecture, str(reference))
        return index_or_manifest, self._fetch_manifest(reference.at(descriptor.digest))

    def _checked_manifest(self, reference: Reference, architecture: str) -> Manifest:
        _, data = self._document_and_manifest(reference, architecture)
        manifest = images.decode_document(Manifest, data, str(reference))
        _check_sizes(manifest, reference)
        return manifest

    def _fetch_manifest(self, reference: Reference) -> bytes:
        """Returns the manifest or index of a reference. Raises BadImage if it is too large or has another digest."""
        if reference.digest:
            _require_sha256(reference, reference.digest)
        name = reference.digest or reference.tag or "latest"
        operation = f"reading manifest {reference}"
        with self._transport.ask(
            RegistryRequest(
                reference=reference, method="GET", path=f"manifests/{name}", what=operation, headers={"Accept": _ACCEPT}
            )
        ) as answer:
            data = b""
            try:
                while len(data) <= images.MAX_DOCUMENT_BYTES and (piece := answer.read1()):
                    data += piece
            except Incomplete as error:
                raise errors.Unreachable(f"{operation}: {reference.host} broke off after {len(data)} bytes") from error
            except OSError as error:
                raise errors.Unreachable(f"{operation}: {reference.host} broke off: {error}") from error
        if len(data) > images.MAX_DOCUMENT_BYTES:
            raise errors.BadImage(f"{operation}: it is larger than {images.MAX_DOCUMENT_BYTES} bytes")
        if reference.digest and sha256(data) != reference.digest:
            raise errors.BadImage(f"{operation}: the registry sent another manifest, of digest {sha256(data)}")
        return data

    def _fetch_blob(self, reference: Reference, blob: Descriptor, layout: Layout) -> None:
        """Copies a blob into the layout unless it is there. Raises BadImage for another digest."""
        path = layout.blob(blob.digest)
        # Blobs were verified when they were written, and are hashed again when they are read.
        if path.is_file() and path.stat().st_size == blob.size:
            return
        with layout.incoming() as writer:
            for piece in self._resumed_pieces(reference, blob):
                writer.write(piece)
            writer.commit(blob.digest)

    def _read_file(self, reference: Reference, path: str, architecture: str) -> bytes:
        """Returns the content of a file, from the uppermost layer that has it. Raises ImageNotFound."""
        manifest = self._checked_manifest(reference, architecture)
        budget = tarstream.Budget.of(str(reference))
        for blob in reversed(manifest.layers):
            content = tarstream.find_in_layer(
                self._verified_pieces(reference, blob), blob, path, limit=MAX_FILE_BYTES, budget=budget
            )
            if isinstance(content, bytes):
                return content
            if content is tarstream.Hidden.YES:
                break
        raise errors.FileNotFound(f"{reference}: the image has no file {path}")

    def _read_folders(
        self, reference: Reference, folders: tuple[str, ...], pick: Pick, architecture: str
    ) -> dict[str, bytes]:
        """Returns the files below `folders` that `pick` chooses, by path. Raises BadImage beyond the limits."""
        manifest = self._checked_manifest(reference, architecture)
        if manifest.config.size > images.MAX_DOCUMENT_BYTES:
            raise errors.BadImage(f"{reference}: its config is larger than {images.MAX_DOCUMENT_BYTES} bytes")
        described = b"".join(self._verified_pieces(reference, manifest.config))
        config = images.decode_document(Config, described, f"config of {reference}")
        arriving = _Arriving(lambda blob: self._verified_pieces(reference, blob), manifest)
        return read_folders(_Remote(arriving, str(reference), manifest, config), folders, pick)

    def _search_in(self, reference: Reference, sought: FileQuery, architecture: str) -> SearchResult:
        """Searches the layers from the uppermost down until all files are found. Raises OciError."""
        index_or_manifest, data = self._document_and_manifest(reference, architecture)
        manifest = images.decode_document(Manifest, data, str(reference))
        _check_sizes(manifest, reference, MAX_SEARCHED_BYTES)
        before = self.received_bytes
        # Larger limits than for unpacking: a searched image takes no memory and no disk.
        budget = tarstream.Budget.of(str(reference), MAX_SEARCHED_BYTES, MAX_SEARCHED_ENTRIES)
        search = Search(str(reference), sought)
        # A layer that occurs twice has the same content, so only the upper one is read.
        layers = {blob.digest: blob for blob in reversed(manifest.layers)} if not search.complete else {}
        layers_read = 0
        for blob in layers.values():
            layers_read += 1
            try:
                if self._search_layer(reference, blob, search, budget):
                    break
            except errors.OciError as error:
                error.layer = blob.digest
                raise
        fetched = self.received_bytes - before
        # An index says itself which image is for which architecture.
        if architecture and index_or_manifest == data and search.complete:
            self._check_architecture(reference, manifest.config, architecture)
        return SearchResult(
            found=search.found,
            elsewhere=search.elsewhere,
            layers=layers_read,
            of=len(manifest.layers),
            fetched=fetched,
            faults=search.faults,
            faults_elsewhere=search.faults_elsewhere,
            unread=search.unread,
            groups=frozenset(search.groups),
            other_images=index_or_manifest != data and _has_several_images(index_or_manifest),
        )

    def _check_architecture(self, reference: Reference, config: Descriptor, architecture: str) -> None:
        """Raises BadImage if the image's config names another architecture; one that names none is no objection."""
        if config.media_type not in images.CONFIGS or not 0 <= config.size <= images.MAX_DOCUMENT_BYTES:
            return
        described = b"".join(self._verified_pieces(reference, config))
        image_architecture = images.decode_document(Config, described, f"config of {reference}").architecture
        if image_architecture and image_architecture != architecture:
            raise errors.BadImage(f"{reference} has no image for linux/{architecture}; it is for {image_architecture}")

    def _search_layer(self, reference: Reference, blob: Descriptor, search: Search, budget: tarstream.Budget) -> bool:
        """Searches one layer; returns whether the search is complete. Raises BadImage."""
        with contextlib.closing(self._verified_pieces(reference, blob)) as pieces:
            source = tarstream.Pieces(pieces)
            try:
                with tarstream.open_layer(source, blob, budget) as (archive, _):
                    if search.layer(tarstream.checked_entries(archive, budget), archive.pieces):
                        return True
            except tarstream.BrokenLayer:
                source.drain()  # where the bytes are not even those of the digest, that is the better answer
                raise
            source.drain()
        return False

    def _verified_pieces(self, reference: Reference, blob: Descriptor) -> Generator[bytes, None, None]:
        """Yields the pieces of a blob. Raises BadImage at their end if they do not match the digest."""
        _require_sha256(reference, blob.digest)
        hashed = hashlib.sha256()
        for piece in self._resumed_pieces(reference, blob):
            hashed.update(piece)
            yield piece
        if f"sha256:{hashed.hexdigest()}" != blob.digest:
            raise errors.BadImage(f"{reference}: blob {blob.digest} has other content than its digest says")

    def _resumed_pieces(self, reference: Reference, blob: Descriptor) -> Iterator[bytes]:
        """Yields a blob's bytes as they arrive, exactly as many as it claims; resumes after a broken connection."""
        operation = f"{reference}: blob {blob.digest}"
        received = 0
        for attempt in range(1, self.access.attempts + 1):
            try:
                for piece in self._pieces_from(reference, blob, received, operation):
                    received += len(piece)
                    self.received_bytes += len(piece)
                    if received > blob.size:
                        raise errors.BadImage(f"{operation} is larger than the {blob.size} bytes that it claims")
                    yield piece
                if received == blob.size:
                    return
                raise Interrupted(f"it ended after {received} of {blob.size} bytes")
            except Interrupted as error:
                if attempt == self.access.attempts or self.access.wait(pause_s(attempt)):
                    raise errors.Unreachable(f"{operation}: {reference.host} broke off: {error}") from error

    def _pieces_from(self, reference: Reference, blob: Descriptor, received: int, operation: str) -> Iterator[bytes]:
        """Yields the bytes from `received` on; if the registry does not support ranges, the first ones are skipped."""
        # A download of gigabytes is resumed rather than started again.
        headers = {"Range": f"bytes={received}-"} if received else {}
        request = RegistryRequest(
            reference=reference,
            method="GET",
            path=f"blobs/{blob.digest}",
            what=operation,
            headers=headers,
            size=blob.size - received,
        )
        with self._transport.ask(request) as answer:
            # 206 Partial Content: the registry supports ranges (RFC 9110, 15.3.7).
            skip = 0 if answer.status == 206 else received
            while piece := self._next_piece(answer, request):
                yield piece[skip:]
                skip = max(skip - len(piece), 0)

    def _next_piece(self, answer: Answer, request: RegistryRequest) -> bytes:
        """Returns the next bytes, none at the end. Raises Unreachable, or Interrupted if a retry may help."""
        # True if another thread has ended this pull (`Access.wait`).
        if self.access.wait(0):
            raise errors.Unreachable(f"{request.what}: given up")
        try:
            return answer.read1()
        except Incomplete:
            return b""  # the caller knows how many bytes are missing, and asks for them
        except OSError as error:
            raise connection_error(request, request.reference.host, error) from error

    def _upload_blob(self, layout: Layout, blob: Descriptor, target: Reference) -> None:
        """Uploads a blob unless the registry has it, in one PUT (distribution-spec, "Pushing blobs")."""
        try:
            with self._transport.ask(_push_request(target, "HEAD", f"blobs/{blob.digest}")):
                return
        except errors.ImageNotFound:
            pass
        with self._transport.ask(_push_request(target, "POST", "blobs/uploads/", body=b"")) as started:
            location = started.headers.get("Location")
        if not location:
            raise errors.BadImage(f"{target}: the registry does not say where to upload to")
        # The blob is checked before it is sent, because the registry keeps what it gets.
        with layout.open_blob(blob.digest):
            joint = "&" if "?" in location else "?"
            headers = {"Content-Type": "application/octet-stream"}
            path = f"{urljoin('blobs/uploads/', location)}{joint}{urlencode({'digest': blob.digest})}"
            request = _push_request(target, "PUT", path, headers=headers, body=layout.blob(blob.digest), size=blob.size)
            with self._transport.ask(request):
                return


class _Arriving:
    """The layers of an image in a registry, each read once, from its first byte to its last."""

    def __init__(self, pieces: Callable[[Descriptor], Iterator[bytes]], manifest: Manifest) -> None:
        self._pieces = pieces
        self._layers = {layer.digest: layer for layer in manifest.layers}

    @contextlib.contextmanager
    def open_blob(self, digest: str) -> Iterator[tarstream.Pieces]:
        """Opens a layer's bytes as they arrive. Raises BadImage at their end if they do not match the digest."""
        stream = tarstream.Pieces(self._pieces(self._layers[digest]))
        try:
            yield stream
        except tarstream.BrokenLayer:
            stream.drain()  # where the bytes are not even those of the digest, that is the better answer
            raise
        stream.drain()


@dataclass(frozen=True, slots=True)
class _Remote:
    """An image whose layers are read from a registry; `digest` is its name in messages."""

    layout: _Arriving
    digest: str
    manifest: Manifest
    config: Config


def _push_request(target: Reference, method: str, path: str, **parts: Any) -> RegistryRequest:
    """Returns a request of a push, with the scope that its token needs."""
    return RegistryRequest(
        reference=target, method=method, path=path, what=f"pushing {target}", scope="pull,push", **parts
    )


def _require_sha256(reference: Reference, digest: str) -> None:
    """Raises BadImage for a digest by which content cannot be checked here."""
    if not digest.startswith("sha256:") or not is_digest(digest):
        raise errors.BadImage(f"{reference}: {digest!r} is not a sha256 digest")


def _has_several_images(index: bytes) -> bool:
    """Reports whether an index has images for several architectures; attestations have the architecture `unknown`."""
    entries = images.decode_document(images.Index, index, "index").manifests
    return len({entry.platform.architecture for entry in entries if entry.platform} - {"unknown"}) > 1


def _check_sizes(manifest: Manifest, reference: Reference, most_bytes: int | None = None) -> None:
    """Raises BeyondLimits if the image claims too many layers or bytes, by default more than can be unpacked."""
    if len(manifest.layers) > MAX_LAYERS:
        raise errors.BeyondLimits(f"{reference}: has {len(manifest.layers)} layers; the limit is {MAX_LAYERS}")
    sizes = [blob.size for blob in (manifest.config, *manifest.layers)]
    most = tarstream.MAX_IMAGE_BYTES if most_bytes is None else most_bytes
    if min(sizes) < 0 or sum(sizes) > most:
        raise errors.BeyondLimits(f"{reference}: claims {sum(sizes)} bytes; the limit is {most}")
