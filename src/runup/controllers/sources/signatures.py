"""Verifies release images in the background: which digests are signed is observed, never waited for.

Stores are asked in the order of cvo-behaviour 8.2: ConfigMaps of the cluster, then `spec.signatureStores` where set
(they are then the last), else the stores that the running release names.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
from collections.abc import AsyncGenerator, Callable, Sequence
from pathlib import Path
from urllib.parse import unquote, urlsplit

import aiohttp

from runup.api.core_v1 import ConfigMap
from runup.domain.clusterversion.observed import ReleaseCheck
from runup.domain.preflight.steps import Trust
from runup.kube.client import Client
from runup.kube.clock import Clock
from runup.kube.errors import KubeError
from runup.oci.errors import Unverified
from runup.oci.signatures import Verification, Verifier, digest_to_verify

NAMESPACE = "openshift-config-managed"
LABEL = "release.openshift.io/verification-signatures"
MAX_SIGNATURES = 9
MAX_SIGNATURE_BYTES = 1 << 20
TIMEOUT_S = 30.0


class ReleaseChecks:
    """`states` is keyed by pull spec. `verifier` is None where the running release carries no verification ConfigMap.

    `custom_stores()` gives `spec.signatureStores`: None where unset.
    """

    def __init__(
        self,
        client: Client,
        verifier: Verifier | None,
        clock: Clock,
        on_change: Callable[[], None],
        *,
        custom_stores: Callable[[], Sequence[str] | None] = lambda: None,
    ) -> None:
        self.states: dict[str, ReleaseCheck] = {}
        self._client = client
        self._verifier = verifier
        self._clock = clock
        self._on_change = on_change
        self._custom_stores = custom_stores
        self._tasks: dict[str, asyncio.Task[None]] = {}

    def check(self, image: str) -> None:
        """Start verifying `image`, unless that is under way."""
        if image in self._tasks:
            return
        before = self.states.get(image, ReleaseCheck())
        self.states[image] = ReleaseCheck(
            before.trust, True, before.error, before.version, before.unreadable, before.at
        )
        self._tasks[image] = asyncio.create_task(self._check(image), name=f"verify {image}")

    async def close(self) -> None:
        """Give up what is under way."""
        for task in self._tasks.values():
            task.cancel()
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)

    async def _check(self, image: str) -> None:
        try:
            await self._verify(image)
            result = ReleaseCheck(Trust.VERIFIED, at=self._clock.now(), unreadable=_NO_METADATA)
        except Unverified as error:
            result = ReleaseCheck(Trust.FAILED, error=str(error), at=self._clock.now(), unreadable=_NO_METADATA)
        finally:
            self._tasks.pop(image, None)
        self.states[image] = result
        self._on_change()

    async def _verify(self, image: str) -> None:
        """Raises Unverified."""
        if self._verifier is None:
            raise Unverified("the running release carries no keys, so verification is not possible")
        verification = Verification(digest_to_verify(image), self._verifier.keyrings)
        async with contextlib.aclosing(self._signatures(verification)) as signatures:
            async for source, signature in signatures:
                if verification.add(signature, source):
                    break
        verification.result()

    async def _signatures(self, verification: Verification) -> AsyncGenerator[tuple[str, bytes], None]:
        async for found in self._of_config_maps(verification):
            yield found
        custom = self._custom_stores()
        assert self._verifier is not None
        for store in self._verifier.stores if custom is None else custom:
            async for found in self._of_store(store, verification):
                yield found

    async def _of_config_maps(self, verification: Verification) -> AsyncGenerator[tuple[str, bytes], None]:
        prefix = verification.digest.replace(":", "-")
        try:
            maps, _ = await self._client.list_all(ConfigMap, NAMESPACE, label_selector=LABEL)
        except KubeError as error:
            verification.note(f"ConfigMaps in {NAMESPACE}: {error}")
            return
        for config_map in maps:
            for key, value in sorted(config_map.binary_data.items()):
                if key.startswith(prefix):
                    yield f"ConfigMap {config_map.metadata.name}/{key}", _bytes(value)

    async def _of_store(self, store: str, verification: Verification) -> AsyncGenerator[tuple[str, bytes], None]:
        folder = f"{store.rstrip('/')}/{verification.digest.replace(':', '=')}"
        for number in range(1, MAX_SIGNATURES + 1):
            url = f"{folder}/signature-{number}"
            try:
                signature = await _fetch(url)
            except (aiohttp.ClientError, OSError, TimeoutError) as error:
                verification.note(f"{url}: {error or type(error).__name__}")
                continue
            if signature is None:
                verification.note(f"{url}: not found")
                return
            yield url, signature


_NO_METADATA = "its metadata was not read; set version beside image"


def _bytes(value: bytes | str) -> bytes:
    return base64.b64decode(value) if isinstance(value, str) else value


async def _fetch(url: str) -> bytes | None:
    """The signature at `url`, None where there is none; raises ClientError, OSError, TimeoutError."""
    parts = urlsplit(url)
    if parts.scheme == "file":
        return await asyncio.to_thread(_read, Path(unquote(parts.path)))
    timeout = aiohttp.ClientTimeout(total=TIMEOUT_S)
    async with aiohttp.ClientSession(timeout=timeout, trust_env=True) as session, session.get(url) as response:
        if response.status == 404:
            return None
        response.raise_for_status()
        return await response.content.read(MAX_SIGNATURE_BYTES)


def _read(path: Path) -> bytes | None:
    try:
        return path.read_bytes()[:MAX_SIGNATURE_BYTES]
    except FileNotFoundError:
        return None
