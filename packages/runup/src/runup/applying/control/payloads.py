"""The interface by which other releases are fetched, and the reading of the operator's own from a folder.

Callers have verified the signature of a release before they ask for it, or the user has waived that.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal, Protocol

from kubekit.error_types import Terminal
from runup.api.config_v1 import Release
from runup.release.decide import payload as payloads
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
