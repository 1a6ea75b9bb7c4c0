"""Representations of stored objects: the object itself, table rows, or metadata only."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import orjson

from kubekit.kube.clock import Clock
from kubesandbox.apiserver import status_errors
from kubesandbox.apiserver.http.content_negotiation import Accepted, Form
from kubesandbox.apiserver.http.messages import Response
from kubesandbox.apiserver.metadata import encoder_of, list_bytes
from kubesandbox.apiserver.objects.views import from_stored
from kubesandbox.apiserver.published.tables.rows import Tables
from kubesandbox.apiserver.served_kinds import Kind
from kubesandbox.apiserver.status_errors import ApiError
from kubesandbox.apiserver.store import Entry

JSON = dict[str, Any]


class Renderer:
    """The renderer of response bodies. Expensive results are cached on the entry."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._tables = Tables()

    def one(self, kind: Kind, entry: Entry, accepted: Accepted, include: str) -> bytes:
        """Returns the body for one object."""
        if accepted.form is Form.TABLE:
            return self._render_table(kind, [entry], _list_meta(entry), accepted.version, include)
        if accepted.form is Form.PARTIAL:
            return orjson.dumps(_partial_metadata(entry.load(), accepted.version))
        if accepted.form is Form.PARTIAL_LIST:
            raise _no_list(kind)
        return self.raw(kind, entry)

    def many(self, kind: Kind, entries: list[Entry], metadata: JSON, accepted: Accepted, include: str) -> bytes:
        """Returns the body for a list."""
        version = accepted.version
        if accepted.form is Form.TABLE:
            return self._render_table(kind, entries, metadata, version, include)
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
            kind, [entry], _list_meta(entry), accepted.version, include, columns=first
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
        self, kind: Kind, entries: list[Entry], metadata: JSON, version: str, include: str, *, columns: bool = True
    ) -> bytes:
        """Returns a Table; `include` is how much of each object its rows have."""
        _check_included(include)
        now = self._clock.now()
        rows = []
        for entry in entries:
            obj = from_stored(kind, entry.load())
            # By default a row carries metadata only (includeObject=Metadata).
            row_object = None if include == "None" else obj if include == "Object" else _partial_metadata(obj, version)
            rows.append({"cells": self._tables.cells(kind, obj, now), "object": row_object})
        head = {"kind": "Table", "apiVersion": f"meta.k8s.io/{version}", "metadata": metadata}
        definitions = self._tables.columns(kind) if columns else None
        return orjson.dumps({**head, "columnDefinitions": definitions, "rows": rows})


_INCLUDED = frozenset({"", "Metadata", "Object", "None"})


def _check_included(include: str) -> None:
    if include not in _INCLUDED:
        why = f"includeObject: Invalid value: \"{include}\": must be 'Metadata', 'Object', 'None', or empty"
        raise status_errors.bad_request(f"Unable to convert to Table as requested: {why}")


def _no_list(kind: Kind) -> ApiError:
    if kind.custom:  # as k8s.io/apimachinery's Unstructured says
        return ApiError(500, "", "content is not a list")
    return status_errors.another_number_accepted(Form.PARTIAL_LIST.value, f"not a list ({_go_type(kind)})")


def _go_type(kind: Kind) -> str:
    """Returns the Go type by which a real server names what it serves."""
    if kind.custom:
        return "*unstructured.Unstructured"
    package = "core" if kind.group in {"", "events.k8s.io"} else kind.group.partition(".")[0]
    return f"*{package}.{kind.kind}"


def render_unstored(response: Response, accepted: Accepted) -> Response:
    """Returns the answer to what is never stored in the accepted form: as it is, or its metadata alone."""
    if accepted.form is not Form.PARTIAL or response.body is None:
        return response
    return replace(response, body=orjson.dumps(_partial_metadata(orjson.loads(response.body), accepted.version)))


def _partial_metadata(obj: JSON, version: str) -> JSON:
    return {"kind": "PartialObjectMetadata", "apiVersion": f"meta.k8s.io/{version}", "metadata": obj["metadata"]}


def _list_meta(entry: Entry) -> JSON:
    return {"resourceVersion": str(entry.rv)}
