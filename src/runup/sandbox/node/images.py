"""Release images on the node: pulled from the sandbox's registry by digest, checked, unpacked once.

Plain HTTP from loopback, without credentials; every blob's digest is checked as it is written.
"""

from __future__ import annotations

import urllib.error
import urllib.request
from dataclasses import dataclass
from pathlib import Path

from runup.oci import images
from runup.oci.errors import OciError
from runup.oci.layers import open_image, unpack
from runup.oci.layout import Layout
from runup.oci.reference import Reference, digest_of, parse

_TIMEOUT_S = 30.0
_PIECE = 1 << 20


class PullError(Exception):
    """The image could not be had; `message` is worded as a kubelet's."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


@dataclass(frozen=True, slots=True)
class LocalImage:
    """An image that is unpacked on this node."""

    digest: str
    files: Path
    entrypoint: tuple[str, ...]
    command: tuple[str, ...]
    env: dict[str, str]
    working_dir: str
    thin: bool


class ImageStore:
    """The node's images in `folder`; `registry` is the one host that it pulls from."""

    def __init__(self, folder: Path, registry: str) -> None:
        self._folder = folder
        self.registry = registry
        self._layout = Layout.create(folder / "layout")

    def is_release(self, pullspec: str) -> bool:
        """Whether the image would come from the sandbox's registry, and its pods are run rather than declared."""
        return pullspec.startswith(f"{self.registry}/")

    def pull(self, pullspec: str) -> LocalImage:
        """The image, from this node or from the registry; raises PullError."""
        try:
            reference = parse(pullspec)
            digest = digest_of(pullspec) or self._resolve(reference)
            target = self._folder / "unpacked" / digest.replace(":", "-")
            if not target.is_dir():
                self._fetch(reference, digest)
                unpack(open_image(self._layout, digest), target)
            config = open_image(self._layout, digest).config.config
        except OciError as error:
            raise PullError(f'failed to pull and unpack image "{pullspec}": {error}') from error
        return LocalImage(
            digest=digest,
            files=target,
            entrypoint=config.entrypoint,
            command=config.cmd,
            env=dict(entry.split("=", 1) for entry in config.env if "=" in entry),
            working_dir=config.working_dir,
            thin=config.labels.get(images.THIN_LABEL) == "thin",
        )

    def _resolve(self, reference: Reference) -> str:
        url = self._url(reference, f"manifests/{reference.tag or 'latest'}")
        request = urllib.request.Request(url, method="HEAD", headers={"Accept": images.MANIFEST})  # noqa: S310
        try:
            with urllib.request.urlopen(request, timeout=_TIMEOUT_S) as answer:  # noqa: S310 -- our own registry's URL
                return str(answer.headers["Docker-Content-Digest"])
        except (OSError, urllib.error.HTTPError) as error:
            raise _refused(reference, error) from error

    def _fetch(self, reference: Reference, digest: str) -> None:
        if not self._layout.blob(digest).is_file():
            self._blob(reference, f"manifests/{digest}", digest)
        data = self._layout.read(digest)
        manifest = images.decode(images.Manifest, data, digest)
        for blob in (manifest.config, *manifest.layers):
            if not self._layout.blob(blob.digest).is_file():
                self._blob(reference, f"blobs/{blob.digest}", blob.digest)
        self._layout.add_manifest(images.Descriptor(media_type=images.MANIFEST, digest=digest, size=len(data)))

    def _blob(self, reference: Reference, path: str, digest: str) -> None:
        accept = {"Accept": f"{images.MANIFEST}, {images.DOCKER_MANIFEST}, */*"}
        request = urllib.request.Request(self._url(reference, path), headers=accept)  # noqa: S310
        try:
            with urllib.request.urlopen(request, timeout=_TIMEOUT_S) as answer, self._layout.incoming() as writer:  # noqa: S310
                while piece := answer.read(_PIECE):
                    writer.write(piece)
                writer.commit(digest)
        except OSError as error:
            raise _refused(reference, error) from error

    def _url(self, reference: Reference, path: str) -> str:
        if reference.host != self.registry:
            raise PullError(f'"{reference}": this node pulls from {self.registry} alone')
        return f"http://{self.registry}/v2/{reference.path}/{path}"


def _refused(reference: Reference, error: Exception) -> PullError:
    if isinstance(error, urllib.error.HTTPError) and error.code == 404:
        return PullError(f"reading manifest {reference}: manifest unknown")
    return PullError(f'failed to pull image "{reference}": {error}')
