"""The verbs get, list and watch: stored objects in the representation that a client accepts.

In: a `Request`, its parsed path, and the `Kind`. Out: a `Response`; for a watch, a streaming one. Objects are sent as
their stored bytes where possible, else as table rows or metadata (`Renderer`). The continue token of a list is the
position and revision at which it continues; clients must not interpret it, and it is validated like any input.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from typing import TypeVar

import orjson
import yaml

from kubekit.kube.clock import Clock
from kubesandbox.apiserver import status_errors
from kubesandbox.apiserver.http.go_syntax import json_error
from kubesandbox.apiserver.http.list_options import ListOptions, check_list_options, check_version
from kubesandbox.apiserver.http.messages import JSON_TYPE, Accepted, Form, Request, Response, negotiate
from kubesandbox.apiserver.http.protobuf import MEDIA_TYPE, encode_event
from kubesandbox.apiserver.http.request_target import Target
from kubesandbox.apiserver.http.selectors import FieldTerm, Selector, selector_of
from kubesandbox.apiserver.large_steps import is_large, run_step
from kubesandbox.apiserver.metadata import JSON, encoder_of, list_bytes
from kubesandbox.apiserver.objects.schemas import Schemas
from kubesandbox.apiserver.objects.views import from_stored
from kubesandbox.apiserver.objects.watch_streams import DEFAULT_TIMEOUT_S, Watch, Watcher, json_line
from kubesandbox.apiserver.published.tables.columns import Tables
from kubesandbox.apiserver.schema.field_errors import go_json
from kubesandbox.apiserver.schema.object_meta import path_segment_faults
from kubesandbox.apiserver.served_kinds import Kind
from kubesandbox.apiserver.store import Entries, Entry, Expired, Store

T = TypeVar("T")
TOO_OLD = (
    "The provided continue parameter is too old to display a consistent list result. You can start a new list without "
    "the continue parameter."
)
_VERSION = "meta.k8s.io/v1"
_BASE64 = re.compile(r"[A-Za-z0-9_-]*")
_INCLUDED = frozenset({"", "Metadata", "Object", "None"})


class Reading:
    """The reading verbs; one instance for the whole server."""

    def __init__(self, store: Store, schemas: Schemas, renderer: Renderer, clock: Clock) -> None:
        self._store, self._schemas, self._renderer, self._clock = store, schemas, renderer, clock
        self._watchers: set[Watcher] = set()

    def entry(self, kind: Kind, namespace: str, name: str) -> Entry:
        """Returns the stored object. Raises ApiError 404, or 400 for what cannot be a key."""
        check_key(kind, namespace, name)
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

    async def get(self, request: Request, target: Target, kind: Kind) -> Response:
        """Handles GET of one object."""
        negotiate(request.header("accept"))
        check_key(kind, target.namespace, target.name)
        check_version(request.query.get("resourceVersion", ""))
        return await self.answer(request, kind, self.entry(kind, target.namespace, target.name))

    async def answer(self, request: Request, kind: Kind, entry: Entry, status: int = 200) -> Response:
        """Returns the response with one stored object, in the representation that the client accepts."""
        accepted, include = negotiate(request.header("accept")), request.query.get("includeObject", "")

        def render() -> Response:
            return _object_response(
                self._renderer.one(kind, entry, accepted, include), status, as_yaml=accepted.as_yaml
            )

        return await run_step(render, large=not accepted.as_stored and is_large(entry.raw))

    # -- lists -----------------------------------------------------------------------------------------------------

    async def list_(self, request: Request, target: Target, kind: Kind) -> Response:
        """Handles GET of a list, or of one page of it."""
        options, selector, _ = read_listing(request, target, kind)
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
            metadata["continue"] = page_token(rv, entries[-1].key)
            # With a selector the real server leaves out the count, since it does not know it.
            if not selector:
                metadata["remainingItemCount"] = remaining_count
        return await self.answer_many(request, kind, entries, metadata)

    async def answer_many(self, request: Request, kind: Kind, entries: list[Entry], metadata: JSON) -> Response:
        """Returns the response with a list of stored objects, in the representation that the client accepts."""
        accepted, include = negotiate(request.header("accept")), request.query.get("includeObject", "")

        def render() -> Response:
            raw = self._renderer.many(kind, entries, metadata, accepted, include=include)
            return _object_response(raw, 200, as_yaml=accepted.as_yaml)

        return await run_step(render, large=not accepted.as_stored and is_large(*(entry.raw for entry in entries)))

    def _listed_entries(self, kind: Kind, namespace: str, options: ListOptions) -> tuple[int, Entries]:
        """Returns the revision of a list and its entries, from the continue token on. Raises ApiError 400 or 410."""
        current = self._store.rv
        try:
            if options.continue_:
                if options.resource_version:
                    raise status_errors.bad_request("specifying resource version is not allowed when using continue")
                rv, after = read_token(options.continue_)
                return rv, self._store.entries_at(kind.storage, rv, namespace, after)
            wanted_revision = options.resource_version
            if wanted_revision and wanted_revision > current:
                raise status_errors.too_large_resource_version(wanted_revision, current)
            exact = options.match == "Exact" or (options.limit and wanted_revision and not options.match)
            if wanted_revision and exact:
                return wanted_revision, self._store.entries_at(kind.storage, wanted_revision, namespace)
        except Expired as error:
            raise status_errors.expired(TOO_OLD if options.continue_ else str(error)) from None
        return current, self._store.entries(kind.storage, namespace)

    # -- watches ---------------------------------------------------------------------------------------------------

    def watch(self, request: Request, target: Target, kind: Kind) -> Response:
        """Handles a watch with a streaming response."""
        options, selector, accepted = read_listing(request, target, kind)
        include = request.query.get("includeObject", "")
        # None begins with the existing objects.
        since = options.resource_version or None
        if options.initial_events is not None:
            since = None if options.initial_events else (since or self._store.rv)
        watch = Watch(
            kind=kind,
            namespace=target.namespace,
            selector=selector,
            since=since,
            bookmarks=options.bookmarks,
            initial_bookmark=bool(options.initial_events and options.bookmarks),
            timeout_s=options.timeout_s or DEFAULT_TIMEOUT_S,
            form=f"{accepted.form.value}/{accepted.version}/{include}/{accepted.as_protobuf}",
            seen=lambda entry: self._schemas.as_read(kind, entry),
            convert=self._schemas.conversions.convert,
            render=self._renderer.for_watch(kind, accepted, include),
            nothing=self._schemas.empty_internal(kind),
            fresh=(options.resource_version or 0) if options.initial_events else 0,
            columns=accepted.form is Form.TABLE,
            encode=encode_event if accepted.as_protobuf else json_line,
        )
        stream = self._run_watcher(Watcher(self._store, watch, self._clock.monotonic))
        return Response(stream=stream, content_type=f"{MEDIA_TYPE};stream=watch" if accepted.as_protobuf else JSON_TYPE)

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


def check_key(kind: Kind, namespace: str, name: str) -> None:
    """Raises ApiError 400 for a namespace or name that no object can be stored by (registry, NamespaceKeyFunc)."""
    if not name:  # the path of a collection of custom resources
        raise status_errors.bad_request("name must be provided")
    if kind.namespaced and not namespace:
        raise status_errors.bad_request("Namespace parameter required.")
    if whys := path_segment_faults(name):
        raise status_errors.bad_request(f"Name parameter invalid: {go_json(name)}: {';'.join(whys)}")


def read_listing(request: Request, target: Target, kind: Kind) -> tuple[ListOptions, Selector, Accepted]:
    """Returns the parsed options of a list, watch or deletecollection. Raises ApiError 400, 406, 422 or 500.

    Faults are found in the order of k8s.io/apiserver/pkg/endpoints/handlers/get.go, ListResource.
    """
    watch = target.verb == "watch"
    options = target.list_options
    # The old path of watches is not one of the options.
    check_list_options(options, watch=request.query.flag("watch"))
    accepted = negotiate(request.header("accept"), stream=watch)
    selector = selector_of(kind, options.labels, options.fields)
    if target.name:
        # The user has the right to the object of this name.
        if selector.fields and options.exact_name != target.name:
            raise status_errors.bad_request("fieldSelector metadata.name doesn't match requested name")
        selector = Selector(selector.labels, selector.fields or (FieldTerm("metadata.name", target.name),))
    check_version(options.version, of_list=not watch)
    return options, selector, accepted


def _object_response(raw: bytes, status: int, *, as_yaml: bool) -> Response:
    if as_yaml:
        text = yaml.safe_dump(orjson.loads(raw), sort_keys=True, default_flow_style=False)
        return Response(status=status, body=text.encode(), content_type="application/yaml")
    return Response(status=status, body=raw + b"\n")


def page_token(rv: int, key: str) -> str:
    """Returns the token of the page after `key`, in a list at revision `rv`."""
    text = orjson.dumps({"v": _VERSION, "rv": rv, "start": f"{key}\u0000"})
    return base64.urlsafe_b64encode(text).rstrip(b"=").decode()


def read_token(token: str) -> tuple[int, str]:
    """Returns revision and last key of a token. Raises ApiError 400."""
    try:
        # Go's tokens are base64url without padding.
        text = base64.b64decode(token + "=" * (-len(token) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        at = len(token) - len(_BASE64.sub("", token, count=1))
        raise _invalid_token(f"illegal base64 data at input byte {at}") from None
    try:
        parsed = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise _invalid_token(json_error(text) or str(error)) from None
    value: JSON = parsed if isinstance(parsed, dict) else {}
    if value.get("v") != _VERSION:
        raise _invalid_token(f"server does not recognize this encoded version {value.get('v') or ''}")
    if not isinstance(value.get("rv"), int) or not value["rv"]:
        raise _invalid_token(f"incorrect encoded start resourceVersion (version {_VERSION})")
    start = value.get("start")
    if not isinstance(start, str) or not start:
        raise _invalid_token(f"encoded start key empty (version {_VERSION})")
    return value["rv"], start.rstrip("\u0000")


def _invalid_token(why: str) -> status_errors.ApiError:
    return status_errors.bad_request(f"invalid continue token: continue key is not valid: {why}")


class Renderer:
    """The renderer of response bodies. Expensive results are cached on the entry."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._tables = Tables()

    def one(self, kind: Kind, entry: Entry, accepted: Accepted, include: str) -> bytes:
        """Returns the body for one object."""
        if accepted.form is Form.TABLE:
            return self._render_table(kind, [entry], None, version=accepted.version, include=include)
        if accepted.form is Form.PARTIAL:
            return orjson.dumps(_partial_metadata(entry.load(), accepted.version))
        if accepted.form is Form.PARTIAL_LIST:
            if kind.custom:  # as k8s.io/apimachinery's Unstructured says
                raise status_errors.ApiError(500, "", "content is not a list")
            raise status_errors.another_number_accepted(accepted.form.value, f"not a list ({_go_type(kind)})")
        return self.raw(kind, entry)

    def many(self, kind: Kind, entries: list[Entry], metadata: JSON, accepted: Accepted, *, include: str) -> bytes:
        """Returns the body for a list."""
        version = accepted.version
        if accepted.form is Form.TABLE:
            return self._render_table(kind, entries, metadata, version=version, include=include)
        if accepted.form is Form.PARTIAL:
            raise status_errors.another_number_accepted(accepted.form.value, f"a list ({_go_type(kind)}List)")
        if accepted.form is Form.PARTIAL_LIST:
            items = [_partial_metadata(entry.load(), version) for entry in entries]
            head = {"kind": "PartialObjectMetadataList", "apiVersion": f"meta.k8s.io/{version}", "metadata": metadata}
            return orjson.dumps({**head, "items": items})
        if not kind.custom and not kind.stored_as:
            return list_bytes(kind, metadata, [entry.raw for entry in entries])
        return list_bytes(kind, metadata, [self.raw(kind, entry) for entry in entries])

    def for_watch(self, kind: Kind, accepted: Accepted, include: str) -> Callable[[Entry, bool], bytes]:
        """Returns the function that renders one object for a watch: a table's columns once. Raises ApiError."""
        if accepted.form is not Form.TABLE:
            return lambda entry, _: self.one(kind, entry, accepted, include)
        _check_included(include)
        return lambda entry, first: self._render_table(
            kind, [entry], None, version=accepted.version, include=include, columns=first
        )

    def raw(self, kind: Kind, entry: Entry) -> bytes:
        """Returns the object as `kind` serves it: the stored bytes, unless it is read through another version."""
        if entry.resource == kind.resource and not kind.custom and not kind.stored_as:
            return entry.raw
        marker = b'"apiVersion":"%b"' % kind.api_version.encode()
        if entry.raw.startswith(b"{" + marker):
            return entry.raw
        key = ("raw", kind.group, kind.version)
        if key not in entry.cache:
            entry.cache[key] = encoder_of(kind)(from_stored(kind, entry.load()))
        cached: bytes = entry.cache[key]
        return cached

    def _render_table(
        self,
        kind: Kind,
        entries: list[Entry],
        metadata: JSON | None,
        *,
        version: str,
        include: str,
        columns: bool = True,
    ) -> bytes:
        """Returns a Table; `include` is how much of each object its rows have, `metadata` None that of the object."""
        _check_included(include)
        now = self._clock.now()
        rows = []
        for entry in entries:
            obj = from_stored(kind, entry.load())
            # By default a row carries metadata only (includeObject=Metadata).
            row_object = None if include == "None" else obj if include == "Object" else _partial_metadata(obj, version)
            rows.append({"cells": self._tables.cells(kind, obj, now), "object": row_object})
        metadata = {"resourceVersion": str(entries[0].rv)} if metadata is None else metadata
        head = {"kind": "Table", "apiVersion": f"meta.k8s.io/{version}", "metadata": metadata}
        definitions = self._tables.columns(kind) if columns else None
        return orjson.dumps({**head, "columnDefinitions": definitions, "rows": rows})


def _check_included(include: str) -> None:
    if include not in _INCLUDED:
        why = f"includeObject: Invalid value: \"{include}\": must be 'Metadata', 'Object', 'None', or empty"
        raise status_errors.bad_request(f"Unable to convert to Table as requested: {why}")


def _go_type(kind: Kind) -> str:
    """Returns the Go type by which a real server names what it serves."""
    if kind.custom:
        return "*unstructured.Unstructured"
    package = "core" if kind.group in {"", "events.k8s.io"} else kind.group.partition(".")[0]
    return f"*{package}.{kind.kind}"


def render_unstored(response: Response, accepted: Accepted) -> Response:
    """Returns an object that is never stored in the accepted form: complete, or only its metadata."""
    if accepted.form is not Form.PARTIAL or response.body is None:
        return response
    return replace(response, body=orjson.dumps(_partial_metadata(orjson.loads(response.body), accepted.version)))


def _partial_metadata(obj: JSON, version: str) -> JSON:
    return {"kind": "PartialObjectMetadata", "apiVersion": f"meta.k8s.io/{version}", "metadata": obj["metadata"]}
