"""Fetches the payload of another release than the operator's own: from its registry, or by a pod that copies it."""

from __future__ import annotations

import asyncio
import secrets
import string
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

import structlog

from kubekit.api.scheme import Resource
from kubekit.error_types import Terminal
from kubekit.kube import calls
from kubekit.kube.api_errors import ApiError, KubeError, NotFound, Transient
from kubekit.kube.client import Client
from kubekit.kube.clock import Clock
from kubekit.lang.text import cut
from kubekit.oci.image_locations import read_folder_files
from kubekit.oci.registry_errors import OciError
from runup.api.config_v1 import Release
from runup.applying.control.loading import NotLoaded, ReleaseLoader
from runup.applying.decide import retrieval_pod
from runup.preflight.decide.preflight_deployment import PodSettings
from runup.process.threads import in_thread
from runup.release.control.release_images import ReleaseImages, ReleaseUnreadable
from runup.release.decide import listing as likely_mistakes
from runup.release.decide.inclusion import DEFAULT_PROFILE
from runup.release.decide.payload import FOLDERS, MANIFESTS, RELEASE_MANIFESTS, Payload, load_payload

log = structlog.get_logger("payload")
# Bytes of the error: a condition's message has at most 32 KiB, and a release may have hundreds of broken files.
MAX_ERROR = 8192
_MAX_TOLD = 20


def payload_of(files: Mapping[str, bytes], release: Release, profile: str) -> Payload:
    """Returns the payload in `files`, which maps paths in the image to bytes; raises NotLoaded."""
    try:
        likely_mistakes.check(files, release.image)
        payload = load_payload(files, source=release.image, release_image=release.image, profile=profile)
    except Terminal as error:
        raise NotLoaded(cut(error.message, MAX_ERROR), reason="LoadPayload") from error
    oddities = (*payload.warnings, *payload.metadata.problems, *likely_mistakes.likely_mistakes(payload))
    for warning in oddities[:_MAX_TOLD]:
        log.warning("release: odd", image=release.image, what=warning)
    if len(oddities) > _MAX_TOLD:
        log.warning("release: odd", image=release.image, what=f"and {len(oddities) - _MAX_TOLD} more")
    return payload


# The same limit as for a Pod (docs/reference/upstream.md 1.4): layers of some hundred megabytes may have to be read.
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


PODS = Resource(group="", version="v1", kind="Pod", plural="pods", namespaced=True)
JOBS = Resource(group="batch", version="v1", kind="Job", plural="jobs", namespaced=True)
# The limit of a retrieval once the signature is verified (docs/reference/upstream.md 1.4); the Pod's own deadline is
# shorter.
POLL_S = 1.0
_LETTERS = string.ascii_lowercase + string.digits
# The Pod copies no checks, because only preflights need them, and those read them out of the image.
_FOLDERS = (MANIFESTS, RELEASE_MANIFESTS)


class FromPod:
    """A `Payloads` that runs a Pod on `node`; this process sees the node's `retrieval_pod.PAYLOADS` as `folder`."""

    def __init__(
        self,
        client: Client,
        clock: Clock,
        *,
        namespace: str,
        node: str,
        folder: Path = Path(retrieval_pod.PAYLOADS),
        profile: str = DEFAULT_PROFILE,
        within_s: float = WITHIN_S,
    ) -> None:
        self._client = client
        self._clock = clock
        self._namespace = namespace
        self._node = node
        self._folder = folder
        self._profile = profile
        self._within_s = within_s
        # One retrieval at a time, because each Pod empties the folder first.
        self._one = asyncio.Lock()

    async def load(self, release: Release) -> Payload:
        """Returns the payload of `release.image`, fetched if its folder is not complete; raises NotLoaded."""
        if not release.image:
            raise NotLoaded("no payload image has been specified", reason="RetrievePayload")
        folder = self._folder / retrieval_pod.folder_name(release.image)
        async with self._one:
            try:
                await self._prune()
                if not await in_thread(lambda: _is_whole(folder), f"look into {folder}"):
                    await self._fetch(release, folder)
            except (KubeError, OciError, Terminal) as error:
                text = f"Unable to download and prepare the update: {error.message}"
                raise NotLoaded(text, reason="RetrievePayload") from error
            return await in_thread(lambda: self._read_payload(folder, release), f"load {folder}")

    def _read_payload(self, folder: Path, release: Release) -> Payload:
        try:
            return payload_of(read_folder_files(folder, _FOLDERS), release, self._profile)
        except OciError as error:
            raise NotLoaded(error.message, reason="LoadPayload") from error

    async def _prune(self) -> None:
        """Deletes the Pods and Jobs of earlier retrievals, finished or not; raises KubeError."""
        # Operators of earlier versions used Jobs, which have no label: only the name's prefix identifies them.
        for resource, selector in ((PODS, retrieval_pod.SELECTOR), (JOBS, "")):
            page = await self._client.send(calls.list_raw(resource, self._namespace, label_selector=selector))
            for leftover in page.items:
                name = leftover["metadata"]["name"]
                if selector or name.startswith(retrieval_pod.PREFIX):
                    await self._delete(resource, name)

    async def _delete(self, resource: Resource, name: str) -> None:
        try:
            await self._client.send(calls.delete(resource, name, self._namespace))
        except NotFound:
            return

    async def _fetch(self, release: Release, folder: Path) -> None:
        """Runs a Pod that fills `folder`, and deletes it if it succeeded; raises KubeError, Terminal."""
        suffix = "".join(secrets.choice(_LETTERS) for _ in range(5))
        pod = retrieval_pod.pod(
            release.image, release.version, namespace=self._namespace, node=self._node, suffix=suffix
        )
        name = pod["metadata"]["name"]
        try:
            await self._client.send(calls.create(PODS, pod, field_manager="cluster-version-operator"))
            log.info("release: a pod fetches it", image=release.image, pod=name)
            await self._until_ended(name)
            if not await in_thread(lambda: _is_whole(folder), f"look into {folder}"):
                raise Terminal(await in_thread(lambda: _missing_parts(folder), "look"), reason="RetrievePayload")
        except asyncio.CancelledError:
            # The release is no longer wanted, so its Pod goes, too. If the process ends first, the next one prunes it.
            await asyncio.shield(self._delete(PODS, name))
            raise
        await self._delete(PODS, name)

    async def _until_ended(self, name: str) -> None:
        """Waits for the end of the Pod. Raises Terminal if it failed, was deleted, or took longer than the limit."""
        deadline = self._clock.monotonic() + self._within_s
        last_seen = "it was not seen"
        while self._clock.monotonic() < deadline:
            try:
                pod = await self._client.send(calls.get_raw(PODS, name, self._namespace))
            except NotFound as error:
                raise Terminal(f"pod {name} was deleted by somebody else", reason="RetrievePayload") from error
            except (Transient, ApiError) as error:
                # The Pod continues without the API server, so only the deadline ends the wait.
                last_seen = error.message
                await self._clock.sleep(POLL_S)
                continue
            end = retrieval_pod.pod_end(pod)
            if end is not None:
                if end.error:
                    raise Terminal(end.error, reason="RetrievePayload")
                return
            last_seen = retrieval_pod.waiting_text(pod)
            await self._clock.sleep(POLL_S)
        raise Terminal(f"pod {name} did not end within {self._within_s:g} s: {last_seen}", reason="RetrievePayload")


def _is_whole(folder: Path) -> bool:
    return not _missing_parts(folder)


def _missing_parts(folder: Path) -> str:
    """Returns which parts of a release `folder` lacks, in words; "" if it is complete."""
    if not folder.is_dir():
        return f"the pod ended and {folder} is not there; does this operator see the node's {retrieval_pod.PAYLOADS}?"
    paths = (path.relative_to(folder).as_posix() for name in _FOLDERS for path in (folder / name).rglob("*"))
    return "; ".join(likely_mistakes.missing_parts(paths))


Source = Literal["pod", "registry"]


def fetching(
    source: Source,
    client: Client,
    clock: Clock,
    *,
    images: ReleaseImages,
    settings: PodSettings,
    folder: Path,
    profile: str,
) -> ReleaseLoader:
    """Returns the loader for `source`: a Pod that copies to `folder` on the operator's node, or the registry."""
    if source == "registry":
        return FromRegistry(images, profile=profile)
    return FromPod(client, clock, namespace=settings.namespace, node=settings.node_name, folder=folder, profile=profile)
