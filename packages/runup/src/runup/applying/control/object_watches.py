"""Watches the objects of a release, kind by kind, selected by our label.

Of most kinds only the metadata is requested: it includes managedFields, and contents (such as those of Secrets) are not
needed. Workloads and CustomResourceDefinitions come with their status, which is waited for. A kind is watched from when
it is served.

An object that a release only creates and that existed before does not get our label: it is watched by its
name.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection
from dataclasses import dataclass

from kubekit.api.meta_v1 import NamespacedName
from kubekit.api.scheme import Resource
from kubekit.kube.cache import Cache
from kubekit.kube.client import Client
from kubekit.kube.clock import Clock
from kubekit.kube.watch import Reflector
from runup.api.owned_v1 import Owned, OwnedWorkload
from runup.applying.control import object_requests
from runup.applying.decide.health import DEFINITION, KINDS
from runup.applying.decide.rendering import LABEL
from runup.process.leader_election import cancel, restart_on_error
from runup.release.decide.manifest import Identity

# Half an hour to an hour: dozens of kinds are watched, and each watch that ends costs a request.
WATCH_S = 1800
# Of a single object: four to eight hours, because each of them costs requests for something that hardly ever happens.
SINGLE_WATCH_S = 4 * 3600
Changed = Callable[[Identity], None]


@dataclass(frozen=True, slots=True)
class _Followed:
    cache: Cache[Owned]
    reflector: Reflector[Owned]
    task: asyncio.Task[None]


class ObjectWatches:
    """The watches of a release's kinds. `changed` is called with the identity of each object that changes."""

    def __init__(self, client: Client, clock: Clock, changed: Changed) -> None:
        self._client = client
        self._clock = clock
        self._changed = changed
        self._followed: dict[tuple[str, str], _Followed] = {}
        self._single: dict[Identity, _Followed] = {}

    def follow(self, resource: Resource) -> Cache[Owned]:
        """Returns the cache of that kind, and starts to watch it if it is not watched yet."""
        kind = (resource.group, resource.kind)
        if kind not in self._followed:
            self._followed[kind] = self._start_watch(resource, kind, label_selector=LABEL, watch_s=WATCH_S)
        return self._followed[kind].cache

    async def follow_single(self, resource: Resource, identity: Identity) -> None:
        """Watches one object that lacks our label, and waits for its first list or an error."""
        if identity not in self._single:
            self._single[identity] = self._start_watch(
                resource,
                (resource.group, resource.kind),
                namespace=identity.namespace,
                field_selector=f"metadata.name={identity.name}",
                watch_s=SINGLE_WATCH_S,
            )
        await self.settled(self._single[identity].cache)

    def follows_single(self, identity: Identity) -> bool:
        """Returns whether that object is watched by its name."""
        return identity in self._single

    async def unfollow_singles(self, *, but: Collection[Identity] = ()) -> None:
        """Stops the watches of single objects, except those of `but`."""
        ended = [self._single.pop(identity) for identity in list(self._single) if identity not in but]
        await cancel([single.task for single in ended])

    def follows(self, group: str, kind: str) -> bool:
        """Returns whether that kind is watched already."""
        return (group, kind) in self._followed

    def is_known_gone(self, identity: Identity, version: int) -> bool:
        """Returns whether the watch shows that the object, last seen at resourceVersion `version`, exists no more.

        False while the watch has not reached that version. An object that is watched by our label, with others of its
        kind, counts as gone when it loses the label.
        """
        followed = self._single.get(identity) or self._followed.get((identity.group, identity.kind))
        if followed is None or not followed.cache.ready or self.get(identity) is not None:
            return False
        seen_version = followed.cache.resource_version
        return seen_version.isdecimal() and int(seen_version) >= version

    def hurry(self, group: str, kind: str) -> None:
        """Lists that kind again at once if listing it failed before, because it is served by now."""
        if (group, kind) in self._followed:
            self._followed[(group, kind)].reflector.hurry()

    def get(self, identity: Identity) -> Owned | None:
        """Returns the object from its watch, or None.

        The watch is that of the objects of its kind with our label, else that of its name.
        """
        key = NamespacedName(identity.namespace, identity.name)
        for followed in (self._followed.get((identity.group, identity.kind)), self._single.get(identity)):
            if followed is not None and (cached := followed.cache.get(key)) is not None:
                return cached
        return None

    def errors(self) -> tuple[str, ...]:
        """Returns the errors of what cannot be watched, sorted."""
        followed_kinds = (*self._followed.values(), *self._single.values())
        return tuple(sorted({followed.cache.error for followed in followed_kinds if followed.cache.error}))

    async def settled(self, cache: Cache[Owned]) -> None:
        """Waits until `cache` has its first list or an error."""
        if cache.synced or cache.error is not None:
            return
        changed = asyncio.Event()
        cache.add_state_listener(changed.set)
        while not cache.synced and cache.error is None:
            changed.clear()
            await changed.wait()

    async def close(self) -> None:
        """Stops all watches."""
        await self.unfollow_singles()
        await cancel([followed.task for followed in self._followed.values()])
        self._followed.clear()

    def _start_watch(
        self,
        resource: Resource,
        kind: tuple[str, str],
        *,
        watch_s: int,
        namespace: str = "",
        label_selector: str = "",
        field_selector: str = "",
    ) -> _Followed:
        """Starts to watch one kind, by default only what carries the release's label; `watch_s` is in seconds."""
        typed: type[Owned] = OwnedWorkload if kind in KINDS else Owned
        # Other managers' entries and labels are dropped, because a release has hundreds of objects.
        cache: Cache[Owned] = Cache(typed, keep=lambda obj: object_requests.reduce_for_memory(obj, kind))
        reflector = Reflector(
            self._client,
            typed,
            cache,
            clock=self._clock,
            resource=resource,
            # A hundred definitions are megabytes. Those listed existed before, so only changes need their status.
            listed_as=Owned if kind == DEFINITION else None,
            watch_s=watch_s,
            namespace=namespace,
            label_selector=label_selector,
            field_selector=field_selector,
        )
        group, name = kind

        def on_event(_change: object, old: Owned | None, new: Owned | None) -> None:
            obj = new or old
            if obj is not None:
                self._changed(Identity(group, name, obj.metadata.namespace, obj.metadata.name))

        cache.add_listener(on_event)
        return _Followed(cache, reflector, asyncio.create_task(restart_on_error(reflector.run, self._clock)))
