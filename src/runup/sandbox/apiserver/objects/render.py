"""Stored objects in the form that a client accepts: as they are, as table rows, or metadata alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import orjson

from runup.kube.clock import Clock
from runup.sandbox.apiserver import errors
from runup.sandbox.apiserver.http.accept import Form
from runup.sandbox.apiserver.kinds import Kind
from runup.sandbox.apiserver.metadata import encoder, list_bytes
from runup.sandbox.apiserver.objects.views import from_stored
from runup.sandbox.apiserver.published.tables.rows import Tables
from runup.sandbox.apiserver.store import Entry

JSON = dict[str, Any]
_PARTIAL = {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1"}


class Renderer:
    """Turns entries into bodies. Everything that costs is remembered on the entry."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._tables = Tables()

    def one(self, kind: Kind, entry: Entry, form: Form, include: str) -> bytes:
        """The body for one object."""
        if form is Form.TABLE:
            return self._table(kind, [entry], _list_meta(entry), include)
        if form is Form.PARTIAL:
            return orjson.dumps(_partial(entry))
        return self.raw(kind, entry)

    def many(self, kind: Kind, entries: list[Entry], metadata: JSON, form: Form, include: str) -> bytes:
        """The body for a list."""
        if form is Form.TABLE:
            return self._table(kind, entries, metadata, include)
        if form in {Form.PARTIAL_LIST, Form.PARTIAL}:
            items = [_partial(entry) for entry in entries]
            head = {"kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1", "metadata": metadata}
            return orjson.dumps({**head, "items": items})
        return list_bytes(kind, metadata, [self.raw(kind, entry) for entry in entries])

    def for_watch(self, kind: Kind, form: Form, include: str) -> Callable[[Entry], bytes]:
        """How a watch of this form writes one object."""
        return lambda entry: self.one(kind, entry, form, include)

    def raw(self, kind: Kind, entry: Entry) -> bytes:
        """The object as `kind` serves it: the stored bytes, unless it is seen through another version."""
        if entry.resource == kind.resource and not kind.custom:
            return entry.raw
        marker = b'"apiVersion":"%b"' % kind.api_version.encode()
        if entry.raw.startswith(b"{" + marker):
            return entry.raw
        key = ("raw", kind.group, kind.version)
        if key not in entry.cache:
            entry.cache[key] = encoder(kind)(from_stored(kind, entry.load()))
        cached: bytes = entry.cache[key]
        return cached

    def _table(self, kind: Kind, entries: list[Entry], metadata: JSON, include: str) -> bytes:
        if include not in _INCLUDED:
            why = f"includeObject: Invalid value: \"{include}\": must be 'Metadata', 'Object', 'None', or empty"
            raise errors.bad_request(f"Unable to convert to Table as requested: {why}")
        now = self._clock.now()
        rows = []
        for entry in entries:
            obj = from_stored(kind, entry.load())
            shown = {"None": None, "Object": obj}.get(include, {**_PARTIAL, "metadata": obj["metadata"]})
            rows.append({"cells": self._tables.cells(kind, obj, now), "object": shown})
        head = {"kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": metadata}
        return orjson.dumps({**head, "columnDefinitions": self._tables.columns(kind), "rows": rows})


_INCLUDED = frozenset({"", "Metadata", "Object", "None"})


def _partial(entry: Entry) -> JSON:
    return {**_PARTIAL, "metadata": entry.load()["metadata"]}


def _list_meta(entry: Entry) -> JSON:
    return {"resourceVersion": str(entry.rv)}
