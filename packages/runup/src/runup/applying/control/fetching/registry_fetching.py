"""Fetches releases from their registry, with the cluster's pull secret and mirrors; needs no Pod and no disk."""

from __future__ import annotations

from runup.api.config_v1 import Release
from runup.applying.control.fetching.payload_parsing import payload_of
from runup.applying.control.payloads import NotLoaded
from runup.process.threads import in_thread
from runup.release.control.release_images import ReleaseImages, ReleaseUnreadable
from runup.release.decide.inclusion import DEFAULT_PROFILE
from runup.release.decide.payload import FOLDERS, Payload

# The same limit as for a Pod (docs/upstream-behaviour.md 1.4): layers of some hundred megabytes may have to be read.
WITHIN_S = 240.0


class FromRegistry:
    """A `Payloads` that reads the image's layers from the registry."""

    def __init__(self, images: ReleaseImages, *, profile: str = DEFAULT_PROFILE, within_s: float = WITHIN_S) -> None:
        self._images = images
        self._profile = profile
        self._within_s = within_s

    async def load(self, release: Release) -> Payload:
        """Returns the payload of `release.image`; raises NotLoaded."""
        if not release.image:
            raise NotLoaded("no payload image has been specified", reason="RetrievePayload")
        try:
            files = await self._images.folders(release.image, FOLDERS, within_s=self._within_s)
        except ReleaseUnreadable as error:
            text = f"Unable to download and prepare the update: {error.message}"
            raise NotLoaded(text, reason="RetrievePayload") from error
        # Parsing some megabytes of YAML takes seconds, which would block the event loop.
        return await in_thread(lambda: payload_of(files, release, self._profile), f"load {release.image}")
