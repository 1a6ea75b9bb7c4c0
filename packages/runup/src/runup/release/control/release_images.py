"""Reads release images without running them: version, image-references, what the checks read, and whole folders.

Takes a pull spec by digest, whose signature was verified or waived before. Raises `ReleaseUnreadable` with the way out.
Uses the cluster's own pull secret and mirrors, as its nodes do. The digest covers everything that is read.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence
from typing import TypeVar

from kubekit.api.codec import DecodeError
from kubekit.kube.client import Client
from kubekit.oci import reference, registry, registry_errors
from kubekit.oci.access import Access
from runup.api.preflight_reads_v1 import FILE as READS_FILE
from runup.process.cluster_egress import EgressSource, environment_egress
from runup.process.threads import in_thread
from runup.release.control import registry_access
from runup.release.decide.payload import IMAGE_REFERENCES_FILE, METADATA_FILE
from runup.release.decide.release_metadata import MetadataError, parse_release_metadata

T = TypeVar("T")
# Enough for a base image of a few hundred megabytes; the caller is waiting.
DEADLINE_S = 120.0
# Timeout of one request, so that a thread that is left behind at the deadline ends soon after.
ANSWER_S = 10.0

_WAYS_OUT = {
    registry_errors.ImageNotFound: "correct the image, or its mirror",
    registry_errors.Unauthorized: f"add the registry to the pull secret {registry_access.PULL_SECRET}",
    registry_errors.Unreachable: "make the registry reachable, or name a mirror in an ImageDigestMirrorSet",
    registry_errors.Untrusted: "fix its certificate, or name a mirror in an ImageDigestMirrorSet",
    registry_errors.InvalidReference: "correct the image",
    registry_errors.BadCredentials: f"correct the pull secret {registry_access.PULL_SECRET}",
    registry_errors.BadMirrors: "correct the cluster's mirrors",
}


class ReleaseUnreadable(Exception):
    """A file of the image could not be read; `message` has the reason and the way out."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class ReleaseImages:
    """A reader of release images with the registry settings of `client`'s cluster.

    `architecture` selects the image of a manifest list; `egress` returns how registries are reached.
    """

    def __init__(
        self,
        client: Client,
        *,
        architecture: str = "amd64",
        plain_http: frozenset[str] = frozenset(),
        egress: EgressSource = environment_egress,
    ) -> None:
        self._client = client
        self._architecture = architecture
        self._plain_http = plain_http
        self._egress = egress

    async def version(self, image: str) -> str:
        """Returns the version of the release in `image`; raises ReleaseUnreadable."""
        data = await self._file(image, METADATA_FILE, "or set version together with image")
        try:
            return parse_release_metadata(data).version
        except MetadataError as error:
            why = f"{image} is not a release image: {error}"
            raise ReleaseUnreadable(f"{why}; name a release image, or set version together with image") from error

    async def reads(self, image: str) -> bytes:
        """Returns the file that lists what the checks of the release in `image` read; raises ReleaseUnreadable."""
        return await self._file(image, READS_FILE, "or give the account what its checks lack")

    async def references(self, image: str) -> bytes:
        """Returns the file `image-references` of the release in `image`; raises ReleaseUnreadable."""
        return await self._file(image, IMAGE_REFERENCES_FILE, "or choose another target")

    async def folders(self, image: str, folders: tuple[str, ...], *, within_s: float) -> dict[str, bytes]:
        """Returns the files below `folders` by path, read within `within_s` seconds; raises ReleaseUnreadable."""
        return await self.ask(
            image,
            lambda client: client.read_folders(reference.parse(image), folders, architecture=self._architecture),
            "or name another release",
            within_s,
        )

    async def _file(self, image: str, path: str, instead: str) -> bytes:
        """Returns one file of `image`; raises ReleaseUnreadable, which names `instead` as the other way out."""
        return await self.ask(
            image,
            lambda client: client.read_file(reference.parse(image), path, architecture=self._architecture),
            instead,
            DEADLINE_S,
        )

    async def ask(
        self, image: str, question: Callable[[registry.RegistryClient], T], instead: str, within_s: float
    ) -> T:
        """Returns the result of `question`; raises ReleaseUnreadable, which names `instead` as the other way out."""
        stop = threading.Event()
        notes: list[str] = []
        try:
            async with asyncio.timeout(within_s):
                access = await self._registry_access(stop, notes)
                client = registry.RegistryClient(access)
                return await in_thread(lambda: question(client), f"read {image}")
        except TimeoutError as error:
            why = f"it was not read within {within_s:g} s"
            raise ReleaseUnreadable(
                _failure_text(why, _WAYS_OUT[registry_errors.Unreachable], notes, instead)
            ) from error
        except registry_errors.OciError as error:
            way_out = _WAYS_OUT.get(type(error), "name a release image")
            raise ReleaseUnreadable(_failure_text(error.message, way_out, notes, instead)) from error
        except (DecodeError, OSError) as error:
            is_answer = isinstance(error, DecodeError)
            message = f"an answer of the API server could not be read: {error}" if is_answer else str(error)
            raise ReleaseUnreadable(_failure_text(message, "it is read again", notes, instead)) from error
        finally:
            # Ends the waits of the thread, which cannot be cancelled.
            stop.set()

    async def _registry_access(self, stop: threading.Event, notes: list[str]) -> Access:
        """Returns how registries are reached: the cluster's credentials and mirrors."""
        return Access(
            credentials=await registry_access.cluster_credentials(self._client, notes),
            mirrors=await registry_access.cluster_mirrors(self._client, notes),
            egress=await self._egress(),
            plain_http=self._plain_http,
            timeout_s=ANSWER_S,
            wait=stop.wait,
        )


def _failure_text(why: str, way_out: str, notes: Sequence[str], instead: str) -> str:
    notes_text = f" ({'; '.join(notes)})" if notes else ""
    return f"{why}{notes_text}; {way_out}, {instead}"
