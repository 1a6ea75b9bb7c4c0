"""Decodes the answers of lists and watches: pages of objects, and one event per line.

A watch is decoded object by object, a list page by page, into types with only the needed fields: that keeps 50,000 pods
in tens of megabytes. A page that does not decode is decoded object by object, so that only the invalid objects are
missing, and they are named.

A list whose `Warning` header begins with `incomplete: ` does not contain all objects. kube-apiserver sends each warning
as `299 - "text"` (RFC 7234 5.5), most of them about deprecated versions (docs/decisions/0037).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any, Generic, Literal, TypeVar, cast

import msgspec

from kubekit.api import codec
from kubekit.api.meta_v1 import Object, Status, Wire
from kubekit.api.scheme import Resource
from kubekit.kube.api_errors import Transient, error_of_status
from kubekit.kube.request import Request

INCOMPLETE = "incomplete: "
# Maximum length of a reason: it is for people, and several end up in one message.
MAX_REASON = 400
_WARNING = re.compile(r'299 \S+ "((?:[^"\\]|\\.)*)"')
_ESCAPED = re.compile(r"\\(.)")


def reasons_incomplete(headers: Iterable[str]) -> tuple[str, ...]:
    """Returns the reasons why the list with these `Warning` headers is incomplete, each once; none if it is not."""
    reasons = (text.removeprefix(INCOMPLETE) for text in texts_of(headers) if text.startswith(INCOMPLETE))
    return tuple(dict.fromkeys(reason[:MAX_REASON] for reason in reasons))


def texts_of(headers: Iterable[str]) -> list[str]:
    """Returns the texts of `Warning` headers, in order."""
    return [_ESCAPED.sub(r"\1", text) for header in headers for text in _WARNING.findall(header)]


JSON = dict[str, Any]
T = TypeVar("T")
K = TypeVar("K", bound=Object)

# Bytes searched for the token: a list's own metadata has a few hundred, most of it the token.
_HEAD_BYTES = 16_384
EventType = Literal["ADDED", "MODIFIED", "DELETED", "BOOKMARK"]


class Page(msgspec.Struct, Generic[T], frozen=True):
    """Part of a list: its items, the list's version, and the token of the next part (empty on the last).

    `undecoded` are the objects that could not be decoded.
    """

    items: tuple[T, ...]
    resource_version: str
    continue_: str = ""
    undecoded: tuple[codec.Undecodable, ...] = ()


class Listing(msgspec.Struct, Generic[T], frozen=True):
    """A whole list, joined from its pages; `incomplete` has the reasons why the server says that there may be more."""

    items: list[T]
    resource_version: str
    undecoded: tuple[codec.Undecodable, ...] = ()
    incomplete: tuple[str, ...] = ()

    def complete(self, subject: object) -> list[T]:
        """Returns the items. Raises DecodeError, which names the first object that could not be decoded."""
        if self.undecoded:
            raise codec.DecodeError(f"{subject} {self.undecoded[0]}")
        return self.items


class JoinedPages(Generic[T]):
    """The pages of a list as they come, each object reduced by `keep`, for one `Listing`.

    Its resourceVersion is that of the first page, as in client-go. A server that keeps no old versions answers each
    page as of then: a watch from a later page's version would miss what changed in an earlier one.
    """

    def __init__(self, keep: Callable[[T], T] | None = None) -> None:
        self._keep = keep
        self._items: list[T] = []
        self._undecoded: list[codec.Undecodable] = []
        self._version = ""

    def add(self, page: Page[T]) -> None:
        """Adds the next page."""
        self._version = self._version or page.resource_version
        self._items.extend(map(self._keep, page.items) if self._keep else page.items)
        self._undecoded.extend(page.undecoded)

    def listing(self, incomplete: tuple[str, ...]) -> Listing[T]:
        """Returns the list; `incomplete` has the reasons why there may be more."""
        return Listing(self._items, self._version, tuple(self._undecoded), incomplete)


class WatchEvent(msgspec.Struct, Generic[K], frozen=True):
    """A change. Of a BOOKMARK only `object.metadata.resource_version` is meaningful."""

    type: EventType
    object: K


class UndecodedEvent(msgspec.Struct, frozen=True):
    """A change of an object that could not be decoded."""

    type: EventType
    object: codec.Undecodable


class ListMeta(Wire, frozen=True):
    """`metadata` of a list."""

    resource_version: str = ""
    continue_: str = msgspec.field(default="", name="continue")


class _ListOf(Wire, Generic[K], frozen=True):
    metadata: ListMeta = ListMeta()
    items: tuple[K, ...] = ()


class _Frame(Wire, frozen=True):
    metadata: ListMeta = ListMeta()


class _RawItems(Wire, frozen=True):
    items: tuple[msgspec.Raw, ...] | None = ()


class _RawEvent(Wire, frozen=True):
    type: str
    object: msgspec.Raw


def early_token(data: bytes) -> str:
    """Returns the token of the next page if it precedes the items, as an API server writes its own kinds; else empty.

    Quotes inside a string are escaped, so that the searched name with its colon cannot be part of a string.
    """
    before, items, _ = data[:_HEAD_BYTES].partition(b'"items":')
    if not items:
        return ""
    try:
        return codec.decode(_Frame, before + b'"items":[]}').metadata.continue_
    except codec.DecodeError:
        return ""


def page_reader(kind: type[K]) -> Callable[[bytes], Page[K]]:
    """Returns a function from a list's body to its page, which raises DecodeError."""

    def read_page(data: bytes) -> Page[K]:
        """Returns a page of decoded objects; objects that cannot be decoded are listed apart."""
        try:
            whole = codec.decode_strictly(_ListOf[kind], data)  # type: ignore[valid-type]
        except codec.DecodeError:
            metadata = codec.decode(_Frame, data).metadata
            items: list[K] = []
            undecoded: list[codec.Undecodable] = []
            for raw in codec.decode_strictly(_RawItems, data).items or ():
                obj = _decode_or_identify(kind, bytes(raw))
                if isinstance(obj, codec.Undecodable):
                    undecoded.append(obj)
                else:
                    items.append(obj)
            return Page(tuple(items), metadata.resource_version, metadata.continue_, tuple(undecoded))
        return Page(whole.items, whole.metadata.resource_version, whole.metadata.continue_)

    return read_page


def _decode_or_identify(kind: type[K], data: bytes) -> K | codec.Undecodable:
    try:
        return codec.decode(kind, data)
    except codec.DecodeError as error:
        return codec.identify_undecodable(data, error)


def raw_page(data: bytes, resource: Resource) -> Page[JSON]:
    """Returns a list's body as a page of dicts with apiVersion and kind set. Raises DecodeError."""
    document = codec.decode(dict[str, Any], data)
    metadata = codec.convert(ListMeta, document.get("metadata") or {})
    identity = {"apiVersion": resource.api_version, "kind": resource.kind}
    items = tuple({**identity, **item} for item in document.get("items") or ())
    return Page(items, metadata.resource_version, metadata.continue_)


def watch_reader(kind: type[K], request: Request) -> Callable[[bytes], WatchEvent[K] | UndecodedEvent]:
    """Returns a function from a watch's line to its event, which raises DecodeError, and the ApiError of an ERROR line.

    Only the metadata of a bookmark is read: servers fill the rest with the kind's zero values.
    """

    def read_event(line: bytes) -> WatchEvent[K] | UndecodedEvent:
        """Decodes one line of a watch. Raises the ApiError of an ERROR event, and DecodeError for an unknown type."""
        event = codec.decode(_RawEvent, line)
        if event.type == "ERROR":
            raise error_of_status(codec.decode(Status, bytes(event.object)), request)
        if event.type not in ("ADDED", "MODIFIED", "DELETED", "BOOKMARK"):
            raise codec.DecodeError(f"an event of the unknown type {event.type!r} in a watch")
        type_ = cast("EventType", event.type)
        if type_ == "BOOKMARK":
            return WatchEvent(type_, cast("K", codec.decode(Object, bytes(event.object))))
        obj = _decode_or_identify(kind, bytes(event.object))
        return UndecodedEvent(type_, obj) if isinstance(obj, codec.Undecodable) else WatchEvent(type_, obj)

    return read_event


# An object in etcd has at most 1.5 MiB, its JSON event not much more than twice that: a longer line is not an event.
LONGEST_LINE = 64 * 1024 * 1024


class Lines:
    """Splits chunks into lines. The text after the last newline waits for the next chunk."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._length = 0

    def feed(self, chunk: bytes) -> list[bytes]:
        """Returns the lines completed by `chunk`, without newlines and empty lines. Raises Transient beyond 64 MiB."""
        first, newline, rest = chunk.partition(b"\n")
        self._parts.append(first)
        self._length += len(first)
        if self._length > LONGEST_LINE:
            raise Transient(f"a line of a watch is longer than {LONGEST_LINE} bytes", reason="LineTooLong")
        if not newline:
            return []
        # The parts of a line are joined once: appending bytes would copy a long line for every chunk.
        lines = [b"".join(self._parts), *rest.split(b"\n")]
        self._parts = [lines.pop()]
        self._length = len(self._parts[0])
        return [line for line in lines if line.strip()]
