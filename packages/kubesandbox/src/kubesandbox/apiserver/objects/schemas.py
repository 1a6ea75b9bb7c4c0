"""The schemas of kinds for the handlers, compiled once and cached, and conversions of custom resources by webhooks.

A kind without a schema (a custom kind whose definition lacks it) accepts any object. Custom resources with a conversion
webhook are stored in one version and served in each. Reading is synchronous and a webhook is not: a reader that meets
an object which is not converted yet raises `Unconverted`; `repeat_converted` waits for the webhook and starts over. A
converted object is cached in its stored entry, which is immutable, so a webhook is called once for each revision,
version and definition. A changed definition makes new `Kind`s, which empties the cache.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from inspect import isawaitable
from typing import TypeVar, cast

from kubesandbox.apiserver.metadata import JSON, drop_empty_meta, encoder_of
from kubesandbox.apiserver.objects import strategies
from kubesandbox.apiserver.objects.views import from_stored, to_stored
from kubesandbox.apiserver.schema.builtin import builtin_schema
from kubesandbox.apiserver.schema.object_schema import Schema, compile_schema
from kubesandbox.apiserver.schema.structural import SchemaNode
from kubesandbox.apiserver.served_kinds import Kind
from kubesandbox.apiserver.status_errors import ApiError, FieldFault
from kubesandbox.apiserver.store import Entry
from kubesandbox.apiserver.validation.common import scale_faults

# Key in an entry's cache: defaults were added on reading, so that even an update without changes must be stored.
COMPLETED = "completed"
# Their internal types have a plain number of replicas, where v1 has a pointer.
_REPLICAS_IN_PLACE = frozenset({"deployments.apps", "replicasets.apps", "statefulsets.apps"})
T = TypeVar("T")
# Calls the webhook of the kind's definition for objects in an API version, one answer an object; raises ApiError.
Ask = Callable[[Kind, Sequence[JSON], str], Awaitable[list[JSON]]]


class Schemas:
    """The schemas by kind."""

    def __init__(self) -> None:
        self._known: dict[Kind, Schema | None] = {}
        self._others: dict[tuple[Kind, str], Schema | None] = {}
        self.conversions = Conversions(self._stored_default)

    def schema_of(self, kind: Kind) -> Schema | None:
        """Returns the compiled schema of a custom kind, or None without a schema."""
        if kind not in self._known:
            self._known[kind] = _compile_version(kind.crd, kind.version) if kind.crd else None
        return self._known[kind]

    def forget(self, kind: Kind) -> None:
        """Drops the schemas of a kind that is no longer served."""
        self._known.pop(kind, None)
        for other in [key for key in self._others if key[0] is kind]:
            del self._others[other]

    def tree(self, kind: Kind) -> SchemaNode | None:
        """Returns the merge tree of the kind's lists and maps for server-side apply and strategic merge, or None."""
        schema = self.schema_of(kind) if kind.custom else builtin_schema(kind.group, kind.version, kind.kind)
        return schema.root if schema else None

    def decode(self, kind: Kind, obj: JSON) -> tuple[JSON, list[str]]:
        """Returns `obj` without unknown fields, and their paths. Raises DecodeError."""
        if kind.custom:
            custom = self.schema_of(kind)
            if custom is None:
                return obj, []
            coerced, unknown = custom.coerce(obj)
            pruned, dropped = custom.prune(coerced)
            return custom.drop_nulls(pruned), [*unknown, *dropped]
        schema = builtin_schema(kind.group, kind.version, kind.kind)
        return schema.decode(obj) if schema else (obj, [])

    def default(self, kind: Kind, obj: JSON) -> JSON:
        """Returns `obj` with the defaults of its custom schema or of its built-in type."""
        if kind.custom:
            schema = self.schema_of(kind)
            completed = schema.default(obj) if schema else obj
            drop_empty_meta(completed)
            return completed
        obj = strategies.merge_string_data(kind.resource, obj)
        builtin = builtin_schema(kind.group, kind.version, kind.kind)
        return builtin.complete(obj) if builtin else obj

    def complete(self, kind: Kind, obj: JSON) -> JSON:
        """Returns `obj` without unknown fields and with defaults. Raises DecodeError."""
        return self.default(kind, self.decode(kind, obj)[0])

    def as_read(self, kind: Kind, entry: Entry) -> Entry:
        """Returns a stored object as it is read: with defaults that its definition got after it was stored.

        Raises Unconverted if a webhook must convert it first.
        """
        if kind.converts and (other := self.conversions.entries_in_version(kind, [entry])[0]) is not entry:
            return other
        schema = self.schema_of(kind) if kind.custom else None
        if schema is None or not schema.has_defaults:
            return entry
        if schema not in entry.cache:
            stored = entry.load()
            obj = schema.default(stored)
            entry.cache[schema] = entry
            if obj != stored:
                entry.cache[schema] = Entry(entry.resource, entry.key, entry.rv, encoder_of(kind)(obj))
                entry.cache[schema].cache[COMPLETED] = True
        completed: Entry = entry.cache[schema]
        return completed

    def all_as_read(self, kind: Kind, entries: list[Entry]) -> list[Entry]:
        """Returns each entry as `as_read` does. Raises one Unconverted with all that a webhook must convert."""
        if kind.converts:
            # Only because it raises: `as_read` would stop at the first one.
            self.conversions.entries_in_version(kind, entries)
        if not kind.custom:
            return entries
        return [self.as_read(kind, entry) for entry in entries]

    def _stored_default(self, kind: Kind, version: str, obj: JSON) -> JSON:
        """Returns a stored object with the defaults of the version in which it is stored."""
        key = (kind, version)
        if key not in self._others:
            served = kind.crd is not None and any(v["name"] == version for v in kind.crd["spec"]["versions"])
            self._others[key] = _compile_version(kind.crd, version) if kind.crd and served else None
        schema = self._others[key]
        return schema.default(obj) if schema else obj

    def empty(self, kind: Kind) -> JSON:
        """Returns the object in which nothing is set, the base for computing the owners of a new object's fields."""
        schema = None if kind.custom else builtin_schema(kind.group, kind.version, kind.kind)
        return schema.empty() if schema else {"metadata": {}}

    def empty_internal(self, kind: Kind) -> JSON:
        """Returns the object of a kind in which nothing is set, as a real server's internal type encodes it."""
        obj = self.empty(kind)
        if kind.resource in _REPLICAS_IN_PLACE:
            return {**obj, "spec": {"replicas": 0, **obj["spec"]}}
        return obj

    def validate(self, kind: Kind, obj: JSON, old: JSON | None) -> list[FieldFault]:
        """Returns the faults of a custom resource by its schema, with transition rules if there is an old object."""
        schema = self.schema_of(kind) if kind.custom else None
        return [*schema.validate(obj, old), *scale_faults(kind, obj)] if schema else []


def _compile_version(crd: JSON, name: str) -> Schema | None:
    version = next(v for v in crd["spec"]["versions"] if v["name"] == name)
    schema = (version.get("schema") or {}).get("openAPIV3Schema")
    return compile_schema(schema) if schema else None


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
        return await self._to_version(kind, obj, kind.stored_version) if kind.custom else obj

    async def as_other_kind(self, kind: Kind, other: Kind, obj: JSON) -> JSON:
        """Returns an object of a kind as `other`, another version of it. Raises ApiError if the webhook fails."""
        if kind.custom:
            return await self._to_version(kind, obj, other.api_version)
        return {**from_stored(other, to_stored(kind, obj)), "apiVersion": other.api_version, "kind": other.kind}

    async def _to_version(self, kind: Kind, obj: JSON, version: str) -> JSON:
        if obj["apiVersion"] == version:
            return obj
        if not kind.converts:
            return {**obj, "apiVersion": version}
        (converted,) = await self._ask_webhook(kind, [obj], version)
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
