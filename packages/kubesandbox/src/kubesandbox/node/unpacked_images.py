"""Release images on the node: pulled from the sandbox's registry by digest, verified, unpacked once.

No other registry is contacted, and an image that is on the node is not pulled again.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from threading import Lock

from kubekit.oci import images
from kubekit.oci.layers import open_image, unpack_image
from kubekit.oci.layout import Layout
from kubekit.oci.reference import Reference, parse
from kubekit.oci.registry import RegistryClient
from kubekit.oci.registry_errors import ImageNotFound, OciError, Unauthorized, Unreachable


class PullError(Exception):
    """An image that could not be pulled; `message` is worded as a kubelet's, `reason` is the waiting container's."""

    def __init__(self, message: str, *, reason: str = "ErrImagePull") -> None:
        super().__init__(message)
        self.message = message
        self.reason = reason


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalImage:
    """An image that is unpacked on this node; `reference` is its pull spec by digest."""

    reference: str
    files: Path
    entrypoint: tuple[str, ...]
    command: tuple[str, ...]
    env: dict[str, str]
    working_dir: str
    thin: bool


class ImageStore:
    """The node's images in `folder`; `host` is the only registry that it pulls from."""

    def __init__(self, folder: Path, host: str) -> None:
        self._folder, self.registry = folder, host
        self._layout = Layout.create(folder / "layout")
        self._tags: dict[Reference, str] = {}
        # One pull at a time, the default of a kubelet (serializeImagePulls).
        self._pulling = Lock()

    def is_release(self, pullspec: str) -> bool:
        """Returns whether the image is from the sandbox's registry, so that its pods are run rather than declared."""
        return pullspec.startswith(f"{self.registry}/")

    def local(self, pullspec: str) -> LocalImage | None:
        """Returns the image if it is on this node (for a tag: as last pulled), else None. Raises PullError."""
        reference = self._parse_pullspec(pullspec)
        digest = reference.digest or self._tags.get(reference, "")
        if not digest or not self._unpacked_folder(digest).is_dir():
            return None
        return self._open_unpacked(reference, digest)

    def pull(self, pullspec: str) -> LocalImage:
        """Returns the image, fetching only its missing parts. Raises PullError."""
        reference = self._parse_pullspec(pullspec)
        try:
            with self._pulling:
                client = RegistryClient()
                digest = client.resolve(reference)
                if not self._unpacked_folder(digest).is_dir():
                    client.pull(reference, self._layout)
                    unpack_image(open_image(self._layout, digest), self._unpacked_folder(digest))
                if not reference.digest:
                    self._tags[reference] = digest
                return self._open_unpacked(reference, digest)
        except (ImageNotFound, Unauthorized, Unreachable) as error:
            raise PullError(error.message) from error
        except OciError as error:
            raise PullError(f'failed to pull and unpack image "{pullspec}": {error}') from error

    def _parse_pullspec(self, pullspec: str) -> Reference:
        """Returns the reference. Raises PullError if it is invalid, or of a registry that this node does not use."""
        try:
            reference = parse(pullspec)
        except OciError as error:
            text = f'Failed to apply default image tag "{pullspec}": {error.message}'
            raise PullError(text, reason="InvalidImageName") from error
        if reference.host != self.registry:
            raise PullError(f'"{pullspec}": this node pulls from {self.registry} alone')
        return reference

    def _unpacked_folder(self, digest: str) -> Path:
        return self._folder / "unpacked" / digest.replace(":", "-")

    def _open_unpacked(self, reference: Reference, digest: str) -> LocalImage:
        config = open_image(self._layout, digest).config.config
        return LocalImage(
            reference=str(reference.at(digest)),
            files=self._unpacked_folder(digest),
            entrypoint=config.entrypoint,
            command=config.cmd,
            env=dict(entry.split("=", 1) for entry in config.env if "=" in entry),
            working_dir=config.working_dir,
            thin=config.labels.get(images.THIN_LABEL) == "thin",
        )
