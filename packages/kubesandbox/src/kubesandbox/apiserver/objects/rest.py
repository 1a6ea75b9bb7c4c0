"""The verbs on stored resources: reading, writing, patching and deleting, assembled.

In: the store, kinds and schemas. Out: one object through which subresources and the server call the verbs.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from kubekit.kube.clock import Clock
from kubesandbox.apiserver.http.messages import Request, Response, Target
from kubesandbox.apiserver.http.query_parameters import WriteOptions
from kubesandbox.apiserver.objects.admission import Admission
from kubesandbox.apiserver.objects.decoding import Decoding
from kubesandbox.apiserver.objects.object_deletion import Deleting
from kubesandbox.apiserver.objects.patching import Patching
from kubesandbox.apiserver.objects.reading import Reading, Renderer
from kubesandbox.apiserver.objects.schemas import Schemas
from kubesandbox.apiserver.objects.views import from_stored
from kubesandbox.apiserver.objects.writing import Change, Writing
from kubesandbox.apiserver.served_kinds import Kind, KindTable
from kubesandbox.apiserver.store import Entry, Store

Handler = Callable[[Request, Target, Kind], Response | Awaitable[Response]]


class Rest:
    """The generic handlers; one instance for the whole server."""

    def __init__(
        self,
        *,
        store: Store,
        kinds: KindTable,
        schemas: Schemas,
        admission: Admission,
        renderer: Renderer,
        clock: Clock,
    ) -> None:
        self.store = store
        self.kinds = kinds
        self.decoding = decoding = Decoding(schemas)
        self.reading = reading = Reading(store, schemas, renderer, clock)
        self.writing = writing = Writing(
            store=store, schemas=schemas, admission=admission, decoding=decoding, reading=reading, clock=clock
        )
        self.patching = Patching(schemas=schemas, decoding=decoding, reading=reading, writing=writing, clock=clock)
        self.deleting = Deleting(store=store, admission=admission, reading=reading, writing=writing, clock=clock)
        self.verbs: Mapping[str, Handler] = {
            "get": reading.get,
            "list": reading.list_,
            "watch": reading.watch,
            "create": writing.create,
            "update": writing.update,
            "patch": self.patching.patch,
            "delete": self.deleting.delete,
            "deletecollection": self.deleting.delete_collection,
        }
        """The handlers by verb."""

    def entry(self, kind: Kind, namespace: str, name: str) -> Entry:
        """Returns the stored object. Raises ApiError 404."""
        return self.reading.entry(kind, namespace, name)

    def objects(self, kind: Kind, namespace: str) -> list[dict[str, Any]]:
        """Returns all objects of a kind in a namespace, or in all, as the kind serves them."""
        return [from_stored(kind, entry.load()) for entry in self.reading.entries(kind, namespace)]

    async def change(self, kind: Kind, target: Target, compute: Change, options: WriteOptions) -> Entry:
        """Reads an object, computes its new state, compares and stores it. Raises ApiError."""
        return await self.writing.change(kind, target, compute, options)
