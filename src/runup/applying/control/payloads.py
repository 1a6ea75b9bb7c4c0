"""The interface by which other releases are fetched, and its implementation for folders of this machine.

The operator's own release is already loaded and does not come from here. Callers have verified the signature of a
release before they ask for it, or the user has waived that.
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
    """Raised if a release cannot be fetched (`RetrievePayload`) or read (`LoadPayload`); `message` names the fix."""

    def __init__(self, message: str, *, reason: Step) -> None:
        super().__init__(message)
        self.message = message
        self.reason: Step = reason


class ReleaseLoader(Protocol):
    """Fetches releases. Several calls may run at once; a call that is no longer needed is cancelled."""

    async def load(self, release: Release) -> Payload:
        """Returns the payload of `release.image`, whose version may be unknown; raises NotLoaded."""
        ...


class Folders:
    """A `ReleaseLoader` that reads local folders, by pull spec, laid out like the files of a release image."""

    def __init__(self, folders: dict[str, Path], profile: str = DEFAULT_PROFILE) -> None:
        self.folders = folders
        self._profile = profile

    async def load(self, release: Release) -> Payload:
        """Returns the payload in the folder of that pull spec; raises NotLoaded."""
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
    """Returns the payload of the release image's files in `root`; raises Terminal if it is absent or unreadable."""
    return payloads.load_payload(read_folder(root), source=str(root), release_image=image, profile=profile)


def read_folder(root: Path) -> dict[str, bytes]:
    """Returns the files of the payload's folders, path in the image to bytes; raises Terminal if there are none."""
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
