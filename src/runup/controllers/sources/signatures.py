"""Verifies and reads release images in the background: what was found is observed, never waited for.

Stores are asked in the order of cvo-behaviour 8.2: ConfigMaps of the cluster, then `spec.signatureStores` where set
(they are then the last), else the stores that the running release names. A store that does not answer is asked once,
not once for each number: nine times the time limit is no verdict, and the next store may have the signature.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
from collections.abc import AsyncGenerator, Callable, Coroutine, Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import aiohttp
import structlog

from runup.api.codec import DecodeError
from runup.api.core_v1 import ConfigMap
from runup.controllers.sources import web
from runup.controllers.sources.release_images import ReleaseImages, Unread
from runup.controllers.sources.threads import in_thread
from runup.domain.checks import rights
from runup.domain.clusterversion.observed import ReleaseCheck
from runup.domain.preflight.steps import Trust
from runup.kube.client import Client
from runup.kube.clock import Clock
from runup.kube.errors import KubeError
from runup.oci.errors import Unverified
from runup.oci.signatures import MAX_SIGNATURE_BYTES, Verification, Verifier, digest_to_verify
from runup.oci.stores import MAX_SIGNATURES

log = structlog.get_logger("releases")
NAMESPACE = "openshift-config-managed"
LABEL = "release.openshift.io/verification-signatures"
TIMEOUT_S = 30.0
# A registry that was away may be back when the next preflight starts.
RIGHTS_AGAIN = timedelta(seconds=60)
# What a condition shows of what the stores answered.
_SHOWN = 3


class ReleaseChecks:
    """`states` is keyed by pull spec. `verifier()` is None where the running release carries no verification ConfigMap.

    `custom_stores()` gives `spec.signatureStores`: None where unset.
    """

    def __init__(
        self,
        client: Client,
        verifier: Callable[[], Verifier | None],
        clock: Clock,
        on_change: Callable[[], None],
        *,
        images: ReleaseImages,
        custom_stores: Callable[[], Sequence[str] | None] = lambda: None,
    ) -> None:
        self.states: dict[str, ReleaseCheck] = {}
        self._client = client
        self._verifier = verifier
        self._clock = clock
        self._on_change = on_change
        self._images = images
        self._custom_stores = custom_stores
        self._tasks: set[asyncio.Task[None]] = set()

    def check(self, image: str) -> None:
        """Start verifying `image`, unless that is under way."""
        if not self._known(image).running:
            self._set(image, running=True)
            self._start(self._check(image), f"verify {image}")

    def read(self, image: str) -> None:
        """Start reading the version out of `image`, unless that is under way."""
        if not self._known(image).reading:
            self._set(image, reading=True)
            self._start(self._read(image), f"read {image}")

    def read_rights(self, image: str) -> None:
        """Start reading what the checks in `image` read, unless that is under way."""
        if not self._known(image).asking:
            self._set(image, asking=True)
            self._start(self._read_rights(image), f"read rights of {image}")

    async def close(self) -> None:
        """Give up what is under way."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _known(self, image: str) -> ReleaseCheck:
        return self.states.get(image, ReleaseCheck())

    def _set(self, image: str, **changes: Any) -> None:
        self.states[image] = replace(self._known(image), **changes)

    def _start(self, work: Coroutine[Any, Any, None], name: str) -> None:
        task = asyncio.create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _check(self, image: str) -> None:
        trust, said = Trust.VERIFIED, ""
        try:
            await self._verify(image)
        except Unverified as error:
            trust, said = Trust.FAILED, _told(error)
        finally:
            self._set(image, running=False)
        self._set(image, trust=trust, error=said, at=self._clock.now())
        self._on_change()

    async def _read(self, image: str) -> None:
        version, why = "", ""
        try:
            version = await self._images.version(image)
        except Unread as error:
            why = error.message
        finally:
            self._set(image, reading=False)
        self._set(image, version=version, unreadable=why, read_at=self._clock.now())
        self._on_change()

    async def _read_rights(self, image: str) -> None:
        """What cannot be read is what this release's own checks read: a check that needs more says so."""
        found, read = rights.own(), False
        try:
            found, refused = rights.of_file(await self._images.reads(image))
            read = True
            for why in refused:
                log.warning("preflight: a right that is declared is not given", image=image, why=why)
        except (Unread, rights.BadReads) as error:
            log.warning(
                "preflight: the target's account reads what this release's checks do", image=image, why=str(error)
            )
        finally:
            self._set(image, asking=False)
        # From now, not from when it began: reading may take longer than that.
        self._set(image, rights=found, rights_until=None if read else self._clock.now() + RIGHTS_AGAIN)
        self._on_change()

    async def _verify(self, image: str) -> None:
        """Raises Unverified."""
        verifier = self._verifier()
        if verifier is None:
            raise Unverified("the running release carries no keys, so verification is not possible")
        verification = Verification(digest_to_verify(image), verifier.keyrings, now=self._clock.now())
        async with contextlib.aclosing(self._signatures(verification, verifier.stores)) as signatures:
            async for source, signature in signatures:
                if verification.add(signature, source):
                    break
        verification.result()

    async def _signatures(
        self, verification: Verification, stores: Sequence[str]
    ) -> AsyncGenerator[tuple[str, bytes], None]:
        async for found in self._of_config_maps(verification):
            yield found
        custom = self._custom_stores()
        if custom is not None and not custom:
            verification.note("spec.signatureStores is empty: unset it, and the release's own stores are asked")
        for store in stores if custom is None else custom:
            async for found in self._of_store(store, verification):
                yield found

    async def _of_config_maps(self, verification: Verification) -> AsyncGenerator[tuple[str, bytes], None]:
        prefix = verification.digest.replace(":", "-")
        try:
            listed = await self._client.listing(ConfigMap, NAMESPACE, label_selector=LABEL)
        except (KubeError, DecodeError) as error:
            verification.note(f"ConfigMaps in {NAMESPACE}: {error}")
            return
        for bad in listed.undecoded:
            verification.note(f"ConfigMap {bad}")
        for config_map in listed.items:
            for key, value in sorted(config_map.binary_data.items()):
                if key.startswith(prefix):
                    yield f"ConfigMap {config_map.metadata.name}/{key}", _bytes(value)

    async def _of_store(self, store: str, verification: Verification) -> AsyncGenerator[tuple[str, bytes], None]:
        folder = f"{store.rstrip('/')}/{verification.digest.replace(':', '=')}"
        for number in range(1, MAX_SIGNATURES + 1):
            url = f"{folder}/signature-{number}"
            try:
                signature = await _fetch(url)
            except (aiohttp.ClientConnectionError, TimeoutError) as error:
                verification.note(f"{url}: {_why(error)}")
                return
            except (aiohttp.ClientError, OSError) as error:
                verification.note(f"{url}: {_why(error)}")
                continue
            if signature is None:
                verification.note(f"{url}: not found")
                return
            yield url, signature


def _told(error: Unverified) -> str:
    more = len(error.details) - _SHOWN
    shown = [*error.details[:_SHOWN], *([f"and {more} more answers"] if more > 0 else [])]
    return f"{error}: {'; '.join(shown)}" if shown else str(error)


def _why(error: Exception) -> str:
    return str(error) or (f"no answer within {TIMEOUT_S:g} s" if isinstance(error, TimeoutError) else repr(error))


def _bytes(value: bytes | str) -> bytes:
    return base64.b64decode(value) if isinstance(value, str) else value


async def _fetch(url: str) -> bytes | None:
    """The signature at `url`, None where there is none; raises ClientError, OSError, TimeoutError."""
    if url.startswith("file:"):
        path = Path(unquote(urlsplit(url).path))
        return await in_thread(lambda: _read(path), f"read {url}")
    page = await web.fetch(url, within_s=TIMEOUT_S, limit=MAX_SIGNATURE_BYTES)
    if page.status == 404:
        return None
    if page.status >= 400:
        raise aiohttp.ClientPayloadError(f"unexpected HTTP status: {page.status}")
    return page.body


def _read(path: Path) -> bytes | None:
    try:
        with path.open("rb") as file:
            return file.read(MAX_SIGNATURE_BYTES + 1)
    except FileNotFoundError:
        return None
