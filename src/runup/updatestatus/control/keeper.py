"""The one UpdateStatus: read once, made where there is none, written whole, and read again when somebody else wrote it.

Other informers' entries are written back as they were read. Held is what we wrote last; what is watched is its metadata
alone, which tells of a deletion or of another's edit at the cost of a line. Two mistakes are prevented: writing over an
edit unseen (every write carries the version that it was decided on), and an object whose `managedFields` are as large
as itself. With lists of type map a server notes every field of every insight; so the notes are emptied once, after
which it keeps none for an object that is never applied to.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

from kubekit.api import codec
from kubekit.api.meta_v1 import NamespacedName, Object
from kubekit.api.scheme import resource_of
from kubekit.kube import calls
from kubekit.kube.cache import Cache
from kubekit.kube.client import Client
from kubekit.kube.clock import Clock
from kubekit.kube.errors import AlreadyExists, Conflict, NotFound
from kubekit.kube.request import Call
from kubekit.kube.watch import Reflector
from runup.api.update_v1alpha1 import NAME, UpdateStatus, UpdateStatusStatus
from runup.updatestatus.decide.informers import Others, Room, merged, others_of, ours_of, room_beside

RESOURCE = resource_of(UpdateStatus)
FIELD_MANAGER = "update-status-controller"
KEY = NamespacedName("", NAME)
# Our own writes of which the watch may still have to tell.
_REMEMBERED = 16


class Keeper:
    """Holds the object between passes. Raises what `Client.send` raises."""

    def __init__(self, client: Client, clock: Clock, on_change: Callable[[], None]) -> None:
        self._client = client
        self._cache: Cache[Object] = Cache(Object)
        self._cache.add_listener(lambda *_: on_change())
        self._cache.add_state_listener(on_change)
        self.reflector = Reflector(
            client, Object, self._cache, field_selector=f"metadata.name={NAME}", clock=clock, resource=RESOURCE
        )
        self._known: deque[str] = deque(maxlen=_REMEMBERED)
        self._version = ""
        self._others = Others()
        self.status: UpdateStatusStatus | None = None

    @property
    def room(self) -> Room:
        """What other informers leave to ours, as of the last `read`."""
        return room_beside(self._others)

    @property
    def lacking(self) -> str:
        """Why there can be no object, such as a missing definition; empty when there can be one."""
        if self._cache.synced:
            return ""
        return self._cache.error or f"{RESOURCE} is not listed yet"

    @property
    def is_current(self) -> bool:
        """Whether what is held is what the cluster has, as far as the watch tells."""
        seen = self._cache.get(KEY)
        return bool(self._version) and seen is not None and seen.metadata.resource_version in self._known

    @property
    def exists(self) -> bool:
        """Whether there is an object, as far as is known."""
        return bool(self._version)

    async def read(self) -> UpdateStatusStatus | None:
        """What we said in the object; asks the server only where the watch tells of a write that was not ours.

        Of an object that was deleted the last status is kept: since when things are so does not change by that.
        """
        if self.is_current:
            return self.status
        try:
            found = await self._client.send(calls.get_raw(RESOURCE, NAME))
        except NotFound:
            self._version, self._others = "", Others()
            return self.status
        status = found.get("status")
        self._others = others_of(status)
        self._hold(found["metadata"]["resourceVersion"], None if status is None else ours_of(status))
        return self.status

    async def write(self, status: UpdateStatusStatus) -> None:
        """Make `status` the object's; raises Conflict when it was changed since `read`."""
        if not self._version:
            await self._create()
        body = {**_empty(), "status": merged(status, self._others)}
        body["metadata"]["resourceVersion"] = self._version
        call = calls.replace(RESOURCE, body, subresource="status", field_manager=FIELD_MANAGER)
        try:
            written = await self._client.send(Call(call.request, _identity))
        except (Conflict, NotFound):
            self._known.clear()  # whatever the watch tells next is news
            self._version = ""
            raise
        self._hold(written.metadata.resource_version, status)

    async def _create(self) -> None:
        call = calls.create(RESOURCE, _empty(), field_manager=FIELD_MANAGER)
        try:
            made = await self._client.send(Call(call.request, _identity))
        except AlreadyExists as error:
            raise Conflict(error.status, error.request) from error
        self._known.append(made.metadata.resource_version)
        # Of this version alone: who has applied to it meanwhile must not lose what it owns.
        version = made.metadata.resource_version
        untracked: dict[str, Any] = {"metadata": {"managedFields": [{}], "resourceVersion": version}}
        reset = calls.merge_patch(RESOURCE, NAME, untracked, field_manager=FIELD_MANAGER)
        made = await self._client.send(Call(reset.request, _identity))
        self._hold(made.metadata.resource_version, self.status)

    def _hold(self, version: str, status: UpdateStatusStatus | None) -> None:
        self._known.append(version)
        self._version = version
        self.status = status


def _empty() -> dict[str, Any]:
    return {"apiVersion": RESOURCE.api_version, "kind": RESOURCE.kind, "metadata": {"name": NAME}, "spec": {}}


def _identity(data: bytes) -> Object:
    # The answer repeats what was sent; only its version is news.
    return codec.decode(Object, data)
