"""What lists and watches answer with: pages of objects, and events one a line.

One object is decoded at a time from a watch, and one page from a list, into types that hold only what is read:
that keeps 50,000 pods in tens of megabytes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, Literal, TypeVar, cast

import msgspec

from runup.api import codec
from runup.api.meta_v1 import Object, Status, Wire
from runup.api.scheme import Resource
from runup.kube.errors import error_of_status
from runup.kube.request import Request

JSON = dict[str, Any]
T = TypeVar("T")
K = TypeVar("K", bound=Object)
EventType = Literal["ADDED", "MODIFIED", "DELETED", "BOOKMARK"]


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    """Part of a list: its items, the list's version, and the token of the next part (empty on the last)."""

    items: tuple[T, ...]
    resource_version: str
    continue_: str = ""


@dataclass(frozen=True, slots=True)
class WatchEvent(Generic[K]):
    """One change. Of a BOOKMARK only `object.metadata.resource_version` means anything."""

    type: EventType
    object: K


class ListMeta(Wire, frozen=True):
    """`metadata` of a list."""

    resource_version: str = ""
    continue_: str = msgspec.field(default="", name="continue")


class _ListOf(Wire, Generic[K], frozen=True):
    metadata: ListMeta = ListMeta()
    items: tuple[K, ...] = ()


class _RawEvent(Wire, frozen=True):
    type: str
    object: msgspec.Raw


def page_reader(kind: type[K]) -> Callable[[bytes], Page[K]]:
    """A function from a list's body to its page; raises DecodeError."""

    def read(data: bytes) -> Page[K]:
        decoded = codec.decode(_ListOf[kind], data)  # type: ignore[valid-type]
        return Page(decoded.items, decoded.metadata.resource_version, decoded.metadata.continue_)

    return read


def raw_page(data: bytes, resource: Resource) -> Page[JSON]:
    """A list's body as a page of dicts with apiVersion and kind in place; raises DecodeError."""
    document = codec.decode(dict[str, Any], data)
    metadata = codec.convert(ListMeta, document.get("metadata") or {})
    identity = {"apiVersion": resource.api_version, "kind": resource.kind}
    items = tuple({**identity, **item} for item in document.get("items") or ())
    return Page(items, metadata.resource_version, metadata.continue_)


def watch_reader(kind: type[K], request: Request) -> Callable[[bytes], WatchEvent[K]]:
    """A function from a line of a watch to its event; raises DecodeError, and the ApiError of an ERROR line."""

    def read(line: bytes) -> WatchEvent[K]:
        event = codec.decode(_RawEvent, line)
        if event.type == "ERROR":
            raise error_of_status(codec.decode(Status, bytes(event.object)), request)
        if event.type not in ("ADDED", "MODIFIED", "DELETED", "BOOKMARK"):
            raise codec.DecodeError(f"an event of the unknown type {event.type!r} in a watch")
        obj = codec.decode(kind, bytes(event.object))
        return WatchEvent(cast("EventType", event.type), obj)

    return read
