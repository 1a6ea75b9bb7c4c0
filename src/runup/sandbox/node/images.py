"""Release images on the node: pulled from the sandbox's registry by digest, checked, unpacked once.

Nothing but that registry is asked; what is on the node already is not fetched again.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from runup.oci import images
from runup.oci.errors import ImageNotFound, OciError, Unauthorized, Unreachable
from runup.oci.layers import open_image, unpack
from runup.oci.layout import Layout
from runup.oci.reference import parse
from runup.oci.registry import RegistryClient


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
    """The node's images in `folder`; `host` is the one registry that it pulls from."""

    def __init__(self, folder: Path, host: str) -> None:
        self._folder = folder
        self.registry = host
        self._layout = Layout.create(folder / "layout")

    def is_release(self, pullspec: str) -> bool:
        """Whether the image would come from the sandbox's registry, and its pods are run rather than declared."""
        return pullspec.startswith(f"{self.registry}/")

    def pull(self, pullspec: str) -> LocalImage:
        """The image, from this node or from the registry; raises PullError."""
        client = RegistryClient()
        try:
            reference = parse(pullspec)
            if reference.host != self.registry:
                raise PullError(f'"{pullspec}": this node pulls from {self.registry} alone')
            digest = client.resolve(reference)
            target = self._folder / "unpacked" / digest.replace(":", "-")
            if not target.is_dir():
                client.pull(reference, self._layout)
                unpack(open_image(self._layout, digest), target)
            config = open_image(self._layout, digest).config.config
        except (ImageNotFound, Unauthorized, Unreachable) as error:
            raise PullError(error.message) from error
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
