"""Where releases come from: the one question that applying asks of whoever fetches them.

The operator's own release is not asked for here, it is at hand. What is asked for was verified, or that was waived.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal, Protocol

from kubekit.errors import Terminal
from runup.api.config_v1 import Release
from runup.process.threads import in_thread
from runup.release.decide import payload as payloads
from runup.release.decide.inclusion import DEFAULT_PROFILE
from runup.release.decide.payload import Payload

Step = Literal["RetrievePayload", "LoadPayload"]


class NotLoaded(Exception):
    """The release could not be fetched (`RetrievePayload`) or read (`LoadPayload`); `message` names the way out."""

    def __init__(self, message: str, *, reason: Step) -> None:
        super().__init__(message)
        self.message = message
        self.reason: Step = reason


class Payloads(Protocol):
    """Fetches releases. Several calls may run at once; one that is not wanted any more is cancelled."""

    async def load(self, release: Release) -> Payload:
        """The release in `release.image`, whose version may not be known; raises NotLoaded."""
        ...


class Folders:
    """Releases in folders of this machine, by pull spec: laid out as the files of a release image are."""

    def __init__(self, folders: dict[str, Path], profile: str = DEFAULT_PROFILE) -> None:
        self.folders = folders
        self._profile = profile

    async def load(self, release: Release) -> Payload:
        """The release in the folder of that pull spec; raises NotLoaded."""
        folder = self.folders.get(release.image)
        if folder is None:
            raise NotLoaded(f"there is no folder for {release.image}", reason="RetrievePayload")
        try:
            return await in_thread(
                lambda: from_folder(folder, image=release.image, profile=self._profile), f"load {folder}"
            )
        except Terminal as error:
            raise NotLoaded(error.message, reason="LoadPayload") from error


def from_folder(root: Path, *, image: str, profile: str) -> Payload:
    """The release whose image's files are in `root`; raises Terminal where there is none, or it cannot be read."""
    return payloads.load_payload(read_folder(root), source=str(root), release_image=image, profile=profile)


def read_folder(root: Path) -> dict[str, bytes]:
    """Path in the image -> bytes, of the payload's folders; raises Terminal where there is none."""
    files = {
        str(path.relative_to(root)): path.read_bytes()
        for folder in payloads.FOLDERS
        for path in sorted((root / folder).rglob("*"))
        if path.is_file()
    }
    if not files:
        text = f"no release payload in {root}; set PAYLOAD_OVERRIDE to a folder with release-manifests/"
        raise Terminal(text, reason="PayloadMissing")
    return files
