"""Releases straight from their registry, with the cluster's own pull secret and mirrors; no Pod, nothing on disk."""

from __future__ import annotations

from runup.api.config_v1 import Release
from runup.applying.control.fetching.reading import payload_of
from runup.applying.control.payloads import NotLoaded
from runup.process.threads import in_thread
from runup.release.control.release_images import ReleaseImages, Unread
from runup.release.decide.inclusion import DEFAULT_PROFILE
from runup.release.decide.payload import FOLDERS, Payload

# As long as a Pod has in all (cvo-behaviour 1.4): a base image of some hundred megabytes is read through.
WITHIN_S = 240.0


class FromRegistry:
    """Implements `Payloads`."""

    def __init__(self, images: ReleaseImages, *, profile: str = DEFAULT_PROFILE, within_s: float = WITHIN_S) -> None:
        self._images = images
        self._profile = profile
        self._within_s = within_s

    async def load(self, release: Release) -> Payload:
        """The release in `release.image`; raises NotLoaded."""
        if not release.image:
            raise NotLoaded("no payload image has been specified", reason="RetrievePayload")
        try:
            files = await self._images.folders(release.image, FOLDERS, within_s=self._within_s)
        except Unread as error:
            text = f"Unable to download and prepare the update: {error.message}"
            raise NotLoaded(text, reason="RetrievePayload") from error
        # Some megabytes of YAML take seconds, in which the operator has other things to do.
        return await in_thread(lambda: payload_of(files, release, self._profile), f"load {release.image}")
