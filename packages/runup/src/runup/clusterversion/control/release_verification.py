"""Verifies and reads release images in the background; the results are observed, never awaited.

Stores are queried in the order of docs/reference/upstream.md 8.2: ConfigMaps of the cluster, then
`spec.signatureStores` if set (and then no others), else the stores that the running release names.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Callable, Coroutine, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import structlog

from kubekit.kube.client import Client
from kubekit.kube.clock import Clock
from kubekit.oci.registry_errors import Unverified
from kubekit.oci.signatures import Verification, Verified, Verifier, digest_to_verify
from runup.api.config_v1 import SignatureStore
from runup.checks.decide import rights
from runup.clusterversion.decide.observed import ReleaseCheck
from runup.preflight.decide.deployment_steps import Trust
from runup.process.cluster_egress import EgressSource, environment_egress
from runup.release.control.release_images import ReleaseImages, ReleaseUnreadable
from runup.release.control.signatures import read_config_maps, read_store, store_signatures
from runup.release.decide.release_metadata import MetadataError, parse_image_references

log = structlog.get_logger("releases")
# Half of upstream's time for verifying and fetching together (docs/reference/upstream.md 1.4): a forced update
# continues then.
WITHIN_S = 120.0
# A registry that was unreachable may answer when the next preflight starts.
RIGHTS_AGAIN = timedelta(seconds=60)
# Maximum number of the stores' answers that a condition shows.
_SHOWN = 3


class ReleaseChecks:
    """The checks of release images; `states` is keyed by pull spec.

    `verifier()` is None if the running release has no verification ConfigMap. `custom_stores()` returns
    `spec.signatureStores`: None if unset. `egress` returns how stores are reached.
    """

    def __init__(
        self,
        client: Client,
        verifier: Callable[[], Verifier | None],
        clock: Clock,
        on_change: Callable[[], None],
        *,
        images: ReleaseImages,
        custom_stores: Callable[[], Sequence[SignatureStore] | None] = lambda: None,
        within_s: float = WITHIN_S,
        egress: EgressSource = environment_egress,
    ) -> None:
        self.states: dict[str, ReleaseCheck] = {}
        self._client = client
        self._verifier = verifier
        self._clock = clock
        self._on_change = on_change
        self._images = images
        self._custom_stores = custom_stores
        self._within_s = within_s
        self._egress = egress
        self._tasks: set[asyncio.Task[None]] = set()

    def check(self, image: str) -> None:
        """Starts verifying `image`, unless that is under way."""
        if not self._known_check(image).running:
            self._set(image, running=True)
            self._start_task(self._verify_release(image), f"verify {image}")

    def read(self, image: str) -> None:
        """Starts reading the version of the release in `image`, unless that is under way."""
        if not self._known_check(image).reading:
            self._set(image, reading=True)
            self._start_task(self._read_version(image), f"read {image}")

    def read_rights(self, image: str) -> None:
        """Starts reading what the checks in `image` read, unless that is under way."""
        if not self._known_check(image).asking:
            self._set(image, asking=True)
            self._start_task(self._read_rights(image), f"read rights of {image}")

    def read_images(self, image: str) -> None:
        """Starts reading the image references of the release in `image`, unless that is under way."""
        if not self._known_check(image).listing:
            self._set(image, listing=True)
            self._start_task(self._read_images(image), f"read images of {image}")

    async def close(self) -> None:
        """Cancels the running verification."""
        for task in self._tasks:
            task.cancel()
        await self.settled()

    async def settled(self) -> None:
        """Waits until no read and no write is pending."""
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _known_check(self, image: str) -> ReleaseCheck:
        return self.states.get(image, ReleaseCheck())

    def _set(self, image: str, **changes: Any) -> None:
        self.states[image] = replace(self._known_check(image), **changes)

    def _start_task(self, work: Coroutine[Any, Any, None], name: str) -> None:
        task = asyncio.create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _verify_release(self, image: str) -> None:
        """Verifies one release image and keeps the result; signatures that counted are stored in the cluster."""
        trust, message = Trust.VERIFIED, ""
        verified: Verified | None = None
        try:
            verified = await self._verify(image)
        except Unverified as error:
            trust, message = Trust.FAILED, text_of(error)
        finally:
            self._set(image, running=False)
        self._set(image, trust=trust, error=message, at=self._clock.now())
        self._on_change()
        if verified is not None:
            await store_signatures(self._client, verified)

    async def _read_version(self, image: str) -> None:
        """Reads the version of one release image and keeps it, or why it cannot be read."""
        version, why = "", ""
        try:
            version = await self._images.version(image)
        except ReleaseUnreadable as error:
            why = error.message
        finally:
            self._set(image, reading=False)
        self._set(image, version=version, unreadable=why, read_at=self._clock.now())
        self._on_change()

    async def _read_rights(self, image: str) -> None:
        """Reads the rights of the target's checks; falls back to the rights of this release's own checks.

        A check that needs more then reports that.
        """
        # The catalogue is megabytes of modules, which no operator needs before its first preflight.
        from runup.checks.catalogue.own_rights import own_rights

        target_rights, is_read = own_rights(), False
        try:
            target_rights, refused = rights.rights_of_file(await self._images.reads(image))
            is_read = True
            for why in refused:
                log.warning("preflight: a right that is declared is not given", image=image, why=why)
        except (ReleaseUnreadable, rights.BadReads) as error:
            log.warning(
                "preflight: the target's account reads what this release's checks do", image=image, why=str(error)
            )
        finally:
            self._set(image, asking=False)
        # Counted from now, not from the start: reading may take longer than that.
        self._set(image, rights=target_rights, rights_until=None if is_read else self._clock.now() + RIGHTS_AGAIN)
        self._on_change()

    async def _read_images(self, image: str) -> None:
        """Reads the image references of `image`; without them no container check is run, and its result says so."""
        images: Mapping[str, str] = {}
        is_read = False
        try:
            images, is_read = parse_image_references(await self._images.references(image)).images, True
        except (ReleaseUnreadable, MetadataError) as error:
            log.warning("preflight: container checks are not run", image=image, why=str(error))
        finally:
            self._set(image, listing=False)
        self._set(image, images=images, images_until=None if is_read else self._clock.now() + RIGHTS_AGAIN)
        self._on_change()

    async def _verify(self, image: str) -> Verified:
        """Returns the verified signatures of `image`; raises Unverified."""
        verifier = self._verifier()
        if verifier is None:
            raise Unverified("the running release carries no keys, so verification is not possible")
        verification = Verification(digest_to_verify(image), verifier.keyrings, now=self._clock.now())
        try:
            async with (
                asyncio.timeout(self._within_s),
                contextlib.aclosing(self._signatures(verification, verifier.stores)) as signatures,
            ):
                async for source, signature in signatures:
                    if verification.add(signature, source):
                        break
        except TimeoutError:
            verification.note(f"the other stores were not asked: the time of {self._within_s:g} s is up")
        return verification.result()

    async def _signatures(
        self, verification: Verification, stores: Sequence[str]
    ) -> AsyncGenerator[tuple[str, bytes], None]:
        """Yields the signatures of an image and where they come from: the cluster's ConfigMaps, then the stores."""
        async for signature in read_config_maps(self._client, verification):
            yield signature
        custom = self._custom_stores()
        if custom is not None and not custom:
            verification.note("spec.signatureStores is empty: unset it, and the release's own stores are asked")
        own_stores = [SignatureStore(url=url) for url in stores]
        for store in own_stores if custom is None else custom:
            async for signature in read_store(self._client, store, verification, self._egress):
                yield signature


def text_of(error: Unverified) -> str:
    """Returns the error's message with what the stores answered."""
    more = len(error.details) - _SHOWN
    shown_details = [*error.details[:_SHOWN], *([f"and {more} more answers"] if more > 0 else [])]
    return f"{error}: {'; '.join(shown_details)}" if shown_details else str(error)
