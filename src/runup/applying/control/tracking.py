"""What the cluster has of a release, kind by kind, kept by watches of what carries our label.

Of most kinds the metadata alone is asked for: whose fields are whose is part of it, contents never are. Workloads and
definitions come with the part of their status that somebody waits for. A kind is followed from when it is served.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from kubekit.api.meta_v1 import NamespacedName
from kubekit.api.scheme import Resource
from kubekit.kube.cache import Cache
from kubekit.kube.client import Client
from kubekit.kube.clock import Clock
from kubekit.kube.watch import Reflector
from runup.api.owned_v1 import Owned, OwnedWorkload, without_others
from runup.applying.decide.ownership import MANAGER
from runup.applying.decide.rendering import LABEL
from runup.applying.decide.workloads import DEFINITION, KINDS
from runup.process.leading import cancel, keep_running
from runup.release.decide.manifest import Identity

# Half an hour to an hour: dozens of kinds are followed, and each end costs a request.
WATCH_S = 1800
Changed = Callable[[Identity], None]


@dataclass(frozen=True, slots=True)
class _Followed:
    cache: Cache[Owned]
    reflector: Reflector[Owned]
    task: asyncio.Task[None]


class Tracking:
    """See the module. `changed` is called with the identity of whatever changed, came or went."""

    def __init__(self, client: Client, clock: Clock, changed: Changed) -> None:
        self._client = client
        self._clock = clock
        self._changed = changed
        self._followed: dict[tuple[str, str], _Followed] = {}

    def follow(self, resource: Resource) -> Cache[Owned]:
        """The cache of that kind, which is followed from now on."""
        kind = (resource.group, resource.kind)
        if kind not in self._followed:
            self._followed[kind] = self._start(resource, kind)
        return self._followed[kind].cache

    def follows(self, group: str, kind: str) -> bool:
        """Whether that kind is followed already."""
        return (group, kind) in self._followed

    def gone(self, identity: Identity, version: int) -> bool:
        """Whether an object that was there at that version is gone, or has lost our label: the watch is past it."""
        found = self._followed.get((identity.group, identity.kind))
        if found is None or not found.cache.ready or self.get(identity) is not None:
            return False
        told = found.cache.resource_version
        return told.isdecimal() and int(told) >= version

    def hurry(self, group: str, kind: str) -> None:
        """Look again now, if that kind could not be listed: it is served by now."""
        if (group, kind) in self._followed:
            self._followed[(group, kind)].reflector.hurry()

    def get(self, identity: Identity) -> Owned | None:
        """The object as last seen, None where there is none with our label, or its kind is not followed."""
        found = self._followed.get((identity.group, identity.kind))
        return found.cache.get(NamespacedName(identity.namespace, identity.name)) if found else None

    def errors(self) -> tuple[str, ...]:
        """Why kinds cannot be followed, in words."""
        return tuple(sorted(each.cache.error for each in self._followed.values() if each.cache.error))

    async def settled(self, cache: Cache[Owned]) -> None:
        """Wait until `cache` has its first list, or a reason for having none."""
        if cache.synced or cache.error is not None:
            return
        changed = asyncio.Event()
        cache.add_state_listener(changed.set)
        while not cache.synced and cache.error is None:
            changed.clear()
            await changed.wait()

    async def close(self) -> None:
        """Follow nothing any more."""
        await cancel([each.task for each in self._followed.values()])
        self._followed.clear()

    def _start(self, resource: Resource, kind: tuple[str, str]) -> _Followed:
        typed: type[Owned] = OwnedWorkload if kind in KINDS else Owned
        cache: Cache[Owned] = Cache(typed, keep=lambda obj: without_others(obj, MANAGER, LABEL))
        reflector = Reflector(
            self._client,
            typed,
            cache,
            label_selector=LABEL,
            clock=self._clock,
            resource=resource,
            # A hundred definitions are megabytes, and what is listed was there before: only what changes is waited for.
            listed_as=Owned if kind == DEFINITION else None,
            watch_s=WATCH_S,
        )
        group, name = kind

        def heard(_change: object, old: Owned | None, new: Owned | None) -> None:
            obj = new or old
            if obj is not None:
                self._changed(Identity(group, name, obj.metadata.namespace, obj.metadata.name))

        cache.add_listener(heard)
        return _Followed(cache, reflector, asyncio.create_task(keep_running(reflector.run, self._clock)))
