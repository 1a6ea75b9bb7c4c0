"""Custom resources with a conversion webhook: stored in one version, served in each.

Reading is synchronous and a webhook is not. A reader that meets an object which is not converted yet therefore raises
`Unconverted`; `known` waits for the webhook and starts over. A converted object is cached beside its stored entry,
which is immutable, so a webhook is called once for each revision, version and definition. A changed definition makes
new `Kind`s, which empties the cache.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from inspect import isawaitable
from typing import Any, TypeVar, cast

from kubesandbox.apiserver.metadata import encoder_of
from kubesandbox.apiserver.served_kinds import Kind
from kubesandbox.apiserver.status_errors import ApiError
from kubesandbox.apiserver.store import Entry

JSON = dict[str, Any]
T = TypeVar("T")
# Calls the webhook of the kind's definition for objects in an API version, one answer an object; raises ApiError.
Ask = Callable[[Kind, Sequence[JSON], str], Awaitable[list[JSON]]]


class Unconverted(Exception):
    """The signal that stored objects are needed in a version to which they are not converted yet."""

    def __init__(self, kind: Kind, entries: Sequence[Entry]) -> None:
        super().__init__(f"{len(entries)} {kind.resource} in {kind.version}")
        self.kind, self.entries = kind, entries


class Conversions:
    """The converted objects; one instance for the whole server."""

    def __init__(self, defaulted: Callable[[Kind, str, JSON], JSON]) -> None:
        """Stores `defaulted(kind, version, obj)`, which applies the defaults of that version's schema."""
        self._defaulted = defaulted
        # Set once the server is assembled; without it no webhook can be called.
        self.ask: Ask | None = None

    def entries_in_version(self, kind: Kind, entries: Sequence[Entry]) -> list[Entry]:
        """Returns the entries in the version of `kind`. Raises Unconverted with all that must be converted."""
        if missing := [entry for entry in entries if _is_other(kind, entry) and kind not in entry.cache]:
            raise Unconverted(kind, missing)
        return [entry.cache[kind] if _is_other(kind, entry) else entry for entry in entries]

    async def repeat_converted(self, attempt: Callable[[], T | Awaitable[T]]) -> T:
        """Returns the result of `attempt`, repeated after each conversion. Raises ApiError if the webhook fails."""
        while True:
            try:
                result = attempt()
                return await cast("Awaitable[T]", result) if isawaitable(result) else result
            except Unconverted as unconverted:
                await self.convert(unconverted)

    async def convert(self, unconverted: Unconverted) -> None:
        """Converts the missing objects by the webhook and caches them."""
        kind, entries = unconverted.kind, unconverted.entries
        stored = [entry.load() for entry in entries]
        # As in a real server, an object gets the defaults of the version in which it is stored.
        objects = [self._defaulted(kind, obj["apiVersion"].rpartition("/")[2], obj) for obj in stored]
        for entry, obj in zip(entries, await self._ask_webhook(kind, objects, kind.api_version), strict=True):
            entry.cache[kind] = Entry(entry.resource, entry.key, entry.rv, encoder_of(kind)(obj))

    async def to_storage_version(self, kind: Kind, obj: JSON) -> JSON:
        """Returns an object in its storage version. Raises ApiError if the webhook fails."""
        if not kind.custom or obj["apiVersion"] == kind.stored_version:
            return obj
        if not kind.converts:
            return {**obj, "apiVersion": kind.stored_version}
        (converted,) = await self._ask_webhook(kind, [obj], kind.stored_version)
        return converted

    async def _ask_webhook(self, kind: Kind, objects: Sequence[JSON], version: str) -> list[JSON]:
        """Returns the objects in `version`, as the webhook converts them. Raises ApiError."""
        if self.ask is None:
            raise ApiError(500, "", "nobody asks conversion webhooks here")
        return await self.ask(kind, objects, version)


def is_in_old_version(kind: Kind, entry: Entry) -> bool:
    """Returns whether an object is stored in another version than its definition now names; any write migrates it."""
    return kind.custom and not entry.raw.startswith(b'{"apiVersion":"%b"' % kind.stored_version.encode())


def _is_other(kind: Kind, entry: Entry) -> bool:
    return kind.converts and not entry.raw.startswith(b'{"apiVersion":"%b"' % kind.api_version.encode())
