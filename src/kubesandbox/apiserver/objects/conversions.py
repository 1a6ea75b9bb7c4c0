"""Custom resources whose definition has a conversion webhook: stored in one version, seen in each.

Reading is synchronous and a webhook is not. So whoever meets an object that nobody has converted yet raises
`Unconverted`; `known` waits for the webhook and begins again. What was converted once is kept beside the stored object,
which never changes: a webhook is asked once for each revision, version and definition. A new definition makes new
`Kind`s, and by that everything is asked anew.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from inspect import isawaitable
from typing import Any, TypeVar, cast

from kubesandbox.apiserver.errors import ApiError
from kubesandbox.apiserver.kinds import Kind
from kubesandbox.apiserver.metadata import encoder
from kubesandbox.apiserver.store import Entry

JSON = dict[str, Any]
T = TypeVar("T")
# Asks the webhook of the kind's definition for objects in an API version, one answer an object; raises ApiError.
Ask = Callable[[Kind, Sequence[JSON], str], Awaitable[list[JSON]]]


class Unconverted(Exception):
    """Stored objects are wanted in a version in which nobody has them."""

    def __init__(self, kind: Kind, entries: Sequence[Entry]) -> None:
        super().__init__(f"{len(entries)} {kind.resource} in {kind.version}")
        self.kind, self.entries = kind, entries


class Conversions:
    """What is known of converted objects; one for the whole server."""

    def __init__(self, defaulted: Callable[[Kind, str, JSON], JSON]) -> None:
        """`defaulted(kind, version, obj)` fills in what the schema of that version has."""
        self._defaulted = defaulted
        # Set once the server is put together; without it there is nobody to ask.
        self.ask: Ask | None = None

    def seen(self, kind: Kind, entries: Sequence[Entry]) -> list[Entry]:
        """The entries as `kind` sees them; raises Unconverted with all those that must be asked for."""
        if missing := [entry for entry in entries if _is_other(kind, entry) and kind not in entry.cache]:
            raise Unconverted(kind, missing)
        return [entry.cache[kind] if _is_other(kind, entry) else entry for entry in entries]

    async def known(self, attempt: Callable[[], T | Awaitable[T]]) -> T:
        """What `attempt` gives, once all is known that it needs; raises ApiError when the webhook fails."""
        while True:
            try:
                found = attempt()
                return await cast("Awaitable[T]", found) if isawaitable(found) else found
            except Unconverted as unconverted:
                await self.convert(unconverted)

    async def convert(self, unconverted: Unconverted) -> None:
        """Ask for what was missing."""
        kind, entries = unconverted.kind, unconverted.entries
        stored = [entry.load() for entry in entries]
        # As a real server does: defaults are those of the version in which an object lies.
        objects = [self._defaulted(kind, obj["apiVersion"].rpartition("/")[2], obj) for obj in stored]
        for entry, obj in zip(entries, await self._asked(kind, objects, kind.api_version), strict=True):
            entry.cache[kind] = Entry(entry.resource, entry.key, entry.rv, encoder(kind)(obj))

    async def stored(self, kind: Kind, obj: JSON) -> JSON:
        """An object as it is to be stored; raises ApiError when the webhook fails."""
        if not kind.custom or obj["apiVersion"] == kind.stored_version:
            return obj
        if not kind.converts:
            return {**obj, "apiVersion": kind.stored_version}
        (found,) = await self._asked(kind, [obj], kind.stored_version)
        return found

    async def _asked(self, kind: Kind, objects: Sequence[JSON], version: str) -> list[JSON]:
        if self.ask is None:
            raise ApiError(500, "", "nobody asks conversion webhooks here")
        return await self.ask(kind, objects, version)


def lies_elsewhere(kind: Kind, entry: Entry) -> bool:
    """Whether an object is stored in another version than its definition now says: any write moves it there."""
    return kind.custom and not entry.raw.startswith(b'{"apiVersion":"%b"' % kind.stored_version.encode())


def _is_other(kind: Kind, entry: Entry) -> bool:
    return kind.converts and not entry.raw.startswith(b'{"apiVersion":"%b"' % kind.api_version.encode())
