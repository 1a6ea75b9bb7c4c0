"""Reads and writes an object with the status of an update: creates it if it is missing, and reads it again after
another client's write.

Other informers' entries are written back as they were read. The keeper holds what it wrote last and watches only the
object's metadata, which shows a deletion or another client's edit for little traffic. Two mistakes are prevented:
overwriting an edit that was not seen (every write carries the resource version that it is based on), and an object
whose `managedFields` are as large as itself. With lists of type map a server records every field of every insight; so
`managedFields` is emptied once, after which the server keeps none for an object that is never applied to.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

from kubekit.api import codec
from kubekit.api.meta_v1 import NamespacedName, Object
from kubekit.api.scheme import Resource, resource_of
from kubekit.kube import calls
from kubekit.kube.api_errors import AlreadyExists, Conflict, NotFound
from kubekit.kube.cache import Cache
from kubekit.kube.client import Client
from kubekit.kube.clock import Clock
from kubekit.kube.request import Call
from kubekit.kube.watch import Reflector
from runup.api.update_v1alpha1 import NAME, HostedClusterUpdateStatus, UpdateStatus, UpdateStatusStatus
from runup.updatestatus.decide.assess import OtherInformers, Room, merge_informers, others_of, own_status, room_beside

JSON = dict[str, Any]
RESOURCE = resource_of(UpdateStatus)
FIELD_MANAGER = "update-status-controller"
KEY = NamespacedName("", NAME)
# How many of the controller's own writes are remembered until the watch reports them.
_REMEMBERED = 16


class UpdateStatusStore:
    """The holder of the UpdateStatus object between passes. Raises what `Client.send` raises.

    `cache` has the object's metadata, as it is watched.
    """

    _resource = RESOURCE

    def __init__(self, client: Client, clock: Clock, on_change: Callable[[], None]) -> None:
        self._client = client
        self._metadata: JSON = {"name": NAME}
        self.cache: Cache[Object] = Cache(Object)
        self.cache.add_listener(lambda *_: on_change())
        self.cache.add_state_listener(on_change)
        self.reflector = Reflector(
            client, Object, self.cache, field_selector=f"metadata.name={NAME}", clock=clock, resource=self._resource
        )
        self._known: deque[str] = deque(maxlen=_REMEMBERED)
        self._version = ""
        self._others = OtherInformers()
        self.status: UpdateStatusStatus | None = None

    @property
    def room(self) -> Room:
        """The bytes and pools that other informers leave to this controller, as of the last `read`."""
        return room_beside(self._others)

    @property
    def lacking(self) -> str:
        """The reason why the object cannot exist, such as a missing definition; empty if it can."""
        if self.cache.synced:
            return ""
        return self.cache.error or f"{RESOURCE} is not listed yet"

    @property
    def is_current(self) -> bool:
        """True if the held status is the cluster's, as far as the watch shows."""
        watched = self.cache.get(KEY)
        return bool(self._version) and watched is not None and watched.metadata.resource_version in self._known

    @property
    def exists(self) -> bool:
        """True if the object exists, as far as is known."""
        return bool(self._version)

    async def read(self) -> UpdateStatusStatus | None:
        """Returns this controller's status; queries the server only after the watch showed another client's write.

        After a deletion the last status is kept, because the start times in it stay true.
        """
        if self.is_current:
            return self.status
        try:
            get = calls.get_raw(self._resource, self._metadata["name"], self._metadata.get("namespace", ""))
            status_object = await self._client.send(get)
        except NotFound:
            self._version, self._others = "", OtherInformers()
            return self.status
        status = status_object.get("status")
        self._others = others_of(status)
        self._hold_written(status_object["metadata"]["resourceVersion"], None if status is None else own_status(status))
        return self.status

    async def write(self, status: UpdateStatusStatus) -> None:
        """Writes `status` to the object; raises Conflict if it was changed since `read`."""
        if not self._version:
            await self._create()
        body = {**self._empty_object(), "status": merge_informers(status, self._others)}
        body["metadata"]["resourceVersion"] = self._version
        call = calls.replace(self._resource, body, subresource="status", field_manager=FIELD_MANAGER)
        try:
            answer = await self._client.send(Call(call.request, _identity))
        except (Conflict, NotFound):
            self._known.clear()  # the watch's next event counts as another client's write
            self._version = ""
            raise
        self._hold_written(answer.metadata.resource_version, status)

    async def _create(self) -> None:
        """Creates the empty object. Raises Conflict if another process created it at the same moment."""
        call = calls.create(self._resource, self._empty_object(), field_manager=FIELD_MANAGER)
        try:
            created = await self._client.send(Call(call.request, _identity))
        except AlreadyExists as error:
            raise Conflict(error.status, error.request) from error
        self._known.append(created.metadata.resource_version)
        # Only for this resource version: a client that applied to the object meanwhile must keep its managed fields.
        version = created.metadata.resource_version
        untracked: dict[str, Any] = {"metadata": {"managedFields": [{}], "resourceVersion": version}}
        name, namespace = self._metadata["name"], self._metadata.get("namespace", "")
        reset = calls.merge_patch(self._resource, name, untracked, namespace=namespace, field_manager=FIELD_MANAGER)
        created = await self._client.send(Call(reset.request, _identity))
        self._hold_written(created.metadata.resource_version, self.status)

    def _hold_written(self, version: str, status: UpdateStatusStatus | None) -> None:
        self._known.append(version)
        self._version = version
        self.status = status

    def _empty_object(self) -> JSON:
        resource = self._resource
        return {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": {**self._metadata}, "spec": {}}


class HostedStatusStore(UpdateStatusStore):
    """The holder of the HostedClusterUpdateStatus of a HostedCluster, which owns it. The object is not watched."""

    _resource = resource_of(HostedClusterUpdateStatus)

    def __init__(self, client: Client, clock: Clock, owner: Object, owner_resource: Resource) -> None:
        super().__init__(client, clock, lambda: None)
        reference = {
            "apiVersion": owner_resource.api_version,
            "kind": owner_resource.kind,
            "name": owner.metadata.name,
            "uid": owner.metadata.uid,
        }
        self._metadata = {
            "namespace": owner.metadata.namespace,
            "name": owner.metadata.name,
            "ownerReferences": [reference],
        }


def _identity(data: bytes) -> Object:
    # The answer repeats what was sent; only its resource version is needed.
    return codec.decode(Object, data)
