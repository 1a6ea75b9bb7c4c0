"""The order in which a server's objects became of a release, as the server itself counts: by resource version.

Every change is followed from before the release on, so that nothing has to be remembered by anybody: neither a log that
is written after the answer, nor two processes' clocks. One server counts all its resources in one row.
"""

from __future__ import annotations

import asyncio
import threading
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import aclosing
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.journeys.cluster.small_release import VERSION
from tests.servers import eventually

from kubekit.api.meta_v1 import Object
from kubekit.api.scheme import Resource
from kubekit.kube import calls, config
from kubekit.kube.client import Client
from kubekit.kube.client_sync import SyncClient
from kubekit.kube.clock import SystemClock
from kubekit.kube.list_pages import WatchEvent
from runup.api.config_v1 import ClusterOperator

Key = tuple[str, str, str]
FOR_EVER_S = 24 * 3600


class Following:
    """Follows `resources`, by plural, from when it is entered; `first` says what it saw."""

    def __init__(self, kubeconfig: Path, resources: Mapping[str, Resource]) -> None:
        self._config = config.load(str(kubeconfig))
        self._resources = resources
        # Of each object each version of the release that it was seen at, and the revision when it first was.
        self._first: dict[Key, dict[str, int]] = defaultdict(dict)
        self._newest: dict[Key, int] = {}
        self._error: Exception | None = None
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> Self:
        since = {}
        with SyncClient(self._config) as client:
            for plural, resource in self._resources.items():
                found = client.listing(_kind(plural), resource=resource)
                since[plural] = found.resource_version
                self._newest |= _revisions(plural, found.items)
        self._task = self._loop.create_task(self._follow(since))
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._loop.call_soon_threadsafe(self._task.cancel)
        self._thread.join()
        self._loop.close()

    def first(self, version: str) -> dict[Key, int]:
        """Each object that has been of `version`, and the revision since which; all that the server has told by now."""
        now: dict[Key, int] = {}
        with SyncClient(self._config) as client:
            for plural, resource in self._resources.items():
                now |= _revisions(plural, client.listing(_kind(plural), resource=resource).items)
        eventually(lambda: self._has_seen(now), "that the watches tell what the lists have")
        return {key: of[version] for key, of in dict(self._first).items() if version in of}

    def _has_seen(self, revisions: dict[Key, int]) -> bool:
        assert self._error is None, f"the watches ended: {self._error!r}"
        return all(self._newest.get(key, 0) >= revision for key, revision in revisions.items())

    def _run(self) -> None:
        try:
            self._loop.run_until_complete(self._task)
        except asyncio.CancelledError:
            return
        except Exception as error:  # noqa: BLE001 -- told by anybody who asks next
            self._error = error

    async def _follow(self, since: dict[str, str]) -> None:
        async with Client(self._config, clock=SystemClock()) as client, asyncio.TaskGroup() as group:
            for plural, revision in since.items():
                group.create_task(self._watch(client, plural, revision))

    async def _watch(self, client: Client, plural: str, revision: str) -> None:
        call = calls.watch(
            _kind(plural), resource_version=revision, timeout_seconds=FOR_EVER_S, resource=self._resources[plural]
        )
        async with aclosing(client.stream(call, timeout_s=FOR_EVER_S)) as events:
            async for event in events:
                if isinstance(event, WatchEvent) and event.type in ("ADDED", "MODIFIED"):
                    self._take(plural, event.object)
        raise RuntimeError(f"the watch of {plural} ended")

    def _take(self, plural: str, obj: Object) -> None:
        key = (plural, obj.metadata.namespace, obj.metadata.name)
        revision = int(obj.metadata.resource_version)
        self._first[key].setdefault(version_of(obj), revision)
        self._newest[key] = revision


def version_of(obj: Object) -> str:
    """Of which release `obj` is: as its operator says, of a ClusterOperator; as it was applied, of everything else."""
    if isinstance(obj, ClusterOperator):
        return next((each.version for each in obj.status.versions), "")
    return obj.metadata.annotations.get(VERSION, "")


def _kind(plural: str) -> type[Object]:
    return ClusterOperator if plural == "clusteroperators" else Object


def _revisions(plural: str, objects: Sequence[Object]) -> dict[Key, int]:
    return {(plural, obj.metadata.namespace, obj.metadata.name): int(obj.metadata.resource_version) for obj in objects}
