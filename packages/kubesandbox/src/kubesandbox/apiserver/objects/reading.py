"""The verbs get, list and watch: stored objects in the representation that a client accepts.

In: a `Request`, its parsed path, and the `Kind`. Out: a `Response`; for a watch, a streaming one. Objects are sent as
their stored bytes where possible.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, TypeVar

import orjson
import yaml

from kubekit.kube.clock import Clock
from kubesandbox.apiserver import status_errors
from kubesandbox.apiserver.http.content_negotiation import Form, negotiate
from kubesandbox.apiserver.http.messages import Request, Response
from kubesandbox.apiserver.http.query_parameters import ListOptions, list_options
from kubesandbox.apiserver.http.routing import Target
from kubesandbox.apiserver.objects import paging
from kubesandbox.apiserver.objects.representations import Renderer
from kubesandbox.apiserver.objects.schemas import Schemas
from kubesandbox.apiserver.objects.selectors import parse_selector
from kubesandbox.apiserver.objects.watch_streams import DEFAULT_TIMEOUT_S, Watch, Watcher
from kubesandbox.apiserver.served_kinds import Kind
from kubesandbox.apiserver.store import Entries, Entry, Expired, Store

JSON = dict[str, Any]
T = TypeVar("T")


class Reading:
    """The reading verbs; one instance for the whole server."""

    def __init__(self, store: Store, schemas: Schemas, renderer: Renderer, clock: Clock) -> None:
        self._store, self._schemas, self._renderer, self._clock = store, schemas, renderer, clock
        self._watchers: set[Watcher] = set()

    def entry(self, kind: Kind, namespace: str, name: str) -> Entry:
        """Returns the stored object. Raises ApiError 404."""
        stored = self._store.get(kind.storage, namespace, name)
        if stored is None:
            raise status_errors.not_found(kind.plural, kind.group, name)
        return self._schemas.as_read(kind, stored)

    def entries(self, kind: Kind, namespace: str) -> list[Entry]:
        """Returns all stored objects of a namespace, or of all namespaces."""
        return self._schemas.all_as_read(kind, self._store.items(kind.storage, namespace))

    async def known(self, attempt: Callable[[], T | Awaitable[T]]) -> T:
        """Returns the result of `attempt`, after a webhook has converted the objects that it needs. Raises ApiError."""
        return await self._schemas.conversions.repeat_converted(attempt)

    # -- one object ------------------------------------------------------------------------------------------------

    def get(self, request: Request, target: Target, kind: Kind) -> Response:
        """Handles GET of one object."""
        return self.answer(request, kind, self.entry(kind, target.namespace, target.name))

    def answer(self, request: Request, kind: Kind, entry: Entry, status: int = 200) -> Response:
        """Returns the response with one stored object, in the representation that the client accepts."""
        accepted = negotiate(request.header("accept"))
        raw = self._renderer.one(kind, entry, accepted, request.query.get("includeObject", ""))
        return _object_response(raw, status, as_yaml=accepted.as_yaml)

    # -- lists -----------------------------------------------------------------------------------------------------

    def list_(self, request: Request, target: Target, kind: Kind) -> Response:
        """Handles GET of a list, or of one page of it."""
        options = list_options(request.query, watch=False)
        selector = parse_selector(kind, options.label_selector, options.field_selector)
        rv, candidates = self._listed_entries(kind, target.namespace, options)
        remaining_count = 0
        if options.limit and not selector:
            remaining_count, candidates = max(len(candidates) - options.limit, 0), candidates[: options.limit]
        entries = self._schemas.all_as_read(kind, list(candidates))
        if selector:
            entries = [entry for entry in entries if selector.matches(entry)]
            remaining_count = max(len(entries) - options.limit, 0) if options.limit else 0
            entries = entries[: options.limit or None]
        # Lists of custom resources always have both members, as Go's unstructured lists do.
        metadata: JSON = {"continue": "", "resourceVersion": str(rv)} if kind.custom else {"resourceVersion": str(rv)}
        if remaining_count:
            metadata["continue"] = paging.page_token(rv, entries[-1].key)
            # With a selector the real server leaves out the count, since it does not know it.
            if not selector:
                metadata["remainingItemCount"] = remaining_count
        return self.answer_many(request, kind, entries, metadata)

    def answer_many(self, request: Request, kind: Kind, entries: list[Entry], metadata: JSON) -> Response:
        """Returns the response with a list of stored objects, in the representation that the client accepts."""
        accepted = negotiate(request.header("accept"))
        raw = self._renderer.many(kind, entries, metadata, accepted, request.query.get("includeObject", ""))
        return _object_response(raw, 200, as_yaml=accepted.as_yaml)

    def _listed_entries(self, kind: Kind, namespace: str, options: ListOptions) -> tuple[int, Entries]:
        """Returns the revision of a list and its entries, from the continue token on. Raises ApiError 400 or 410."""
        current = self._store.rv
        try:
            if options.continue_:
                if options.resource_version:
                    raise status_errors.bad_request("specifying resource version is not allowed when using continue")
                rv, after = paging.read_token(options.continue_)
                return rv, self._store.entries_at(kind.storage, rv, namespace, after)
            wanted_revision = options.resource_version
            if wanted_revision and wanted_revision > current:
                raise status_errors.too_large_resource_version(wanted_revision, current)
            exact = options.match == "Exact" or (options.limit and wanted_revision and not options.match)
            if wanted_revision and exact:
                return wanted_revision, self._store.entries_at(kind.storage, wanted_revision, namespace)
        except Expired as error:
            raise status_errors.expired(paging.TOO_OLD if options.continue_ else str(error)) from None
        return current, self._store.entries(kind.storage, namespace)

    # -- watches ---------------------------------------------------------------------------------------------------

    def watch(self, request: Request, target: Target, kind: Kind) -> Response:
        """Handles a watch with a streaming response."""
        accepted = negotiate(request.header("accept"), stream=True)
        options = list_options(request.query, watch=True)
        fields = options.field_selector
        if target.name:
            fields = ",".join(filter(None, (fields, f"metadata.name={target.name}")))
        include = request.query.get("includeObject", "")
        watch = Watch(
            kind=kind,
            namespace=target.namespace,
            selector=parse_selector(kind, options.label_selector, fields),
            since=self._watched_since(request, options),
            bookmarks=options.bookmarks,
            initial_bookmark=options.initial_events and options.bookmarks,
            timeout_s=options.timeout_s or DEFAULT_TIMEOUT_S,
            form=f"{accepted.form.value}/{accepted.version}/{include}",
            seen=lambda entry: self._schemas.as_read(kind, entry),
            convert=self._schemas.conversions.convert,
            render=self._renderer.for_watch(kind, accepted, include),
            nothing=self._schemas.empty_internal(kind),
            fresh=(options.resource_version or 0) if options.initial_events else 0,
            columns=accepted.form is Form.TABLE,
        )
        return Response(stream=self._run_watcher(Watcher(self._store, watch, self._clock.monotonic)))

    def _watched_since(self, request: Request, options: ListOptions) -> int | None:
        """Returns the revision that a watch begins after, or None to begin with the existing objects."""
        since = options.resource_version or None
        if "sendInitialEvents" not in request.query:
            return since
        return None if options.initial_events else (since or self._store.rv)

    async def _run_watcher(self, watcher: Watcher) -> AsyncIterator[bytes]:
        """Yields the chunks of a watch, which `stop_watches` can end meanwhile."""
        self._watchers.add(watcher)
        try:
            async for chunk in watcher.run():
                yield chunk
        finally:
            self._watchers.discard(watcher)

    def end_watches(self, storage: str) -> None:
        """Ends the watches of a kind after their pending events, because it is no longer served as it was."""
        for watcher in tuple(self._watchers):
            if watcher.storage == storage:
                watcher.stop()

    def stop_watches(self) -> None:
        """Ends all watches, so that a shutdown does not wait for them."""
        for watcher in tuple(self._watchers):
            watcher.stop()


def _object_response(raw: bytes, status: int, *, as_yaml: bool) -> Response:
    if as_yaml:
        text = yaml.safe_dump(orjson.loads(raw), sort_keys=True, default_flow_style=False)
        return Response(status, text.encode(), "application/yaml")
    return Response(status, raw)
