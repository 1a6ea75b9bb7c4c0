"""Where the handlers meet the schema engine: the schema of a kind, found once and kept.

A kind without a schema (a built-in one that has no table, a custom one that is being replaced) is taken as it comes.
"""

from __future__ import annotations

from typing import Any

from runup.sandbox.apiserver import defaults
from runup.sandbox.apiserver.errors import FieldFault
from runup.sandbox.apiserver.kinds import Kind
from runup.sandbox.apiserver.schema import Schema, Structural, compile_schema

JSON = dict[str, Any]


class Schemas:
    """Schemas by kind."""

    def __init__(self) -> None:
        self._known: dict[Kind, Schema | None] = {}

    def of(self, kind: Kind) -> Schema | None:
        """The compiled schema of a kind, None when it has none."""
        if kind not in self._known:
            self._known[kind] = _compile(kind)
        return self._known[kind]

    def forget(self, kind: Kind) -> None:
        """Drop a kind that is no longer served."""
        self._known.pop(kind, None)

    def tree(self, kind: Kind) -> Structural | None:
        """What server-side apply and strategic merge know of the kind's lists and maps."""
        schema = self.of(kind)
        return schema.root if schema else None

    def prune(self, kind: Kind, obj: JSON) -> tuple[JSON, list[str]]:
        """`obj` without the fields that its schema does not know, and their paths."""
        schema = self.of(kind)
        if schema is None:
            return obj, []
        pruned, unknown = schema.prune(obj)
        return pruned, list(unknown)

    def default(self, kind: Kind, obj: JSON) -> JSON:
        """`obj` with the schema's defaults, and those that the server has for its built-in kinds."""
        schema = self.of(kind)
        completed = schema.default(obj) if schema else obj
        if not kind.custom:
            defaults.complete(kind.resource, completed)
        return completed

    def validate(self, kind: Kind, obj: JSON, old: JSON | None) -> list[FieldFault]:
        """What the schema finds wrong, transition rules included when there is an old object."""
        schema = self.of(kind)
        return list(schema.validate(obj, old)) if schema else []


def _compile(kind: Kind) -> Schema | None:
    if kind.crd is None:
        try:
            from runup.sandbox.apiserver.schema import builtin_schema
        except ImportError:
            return None
        return builtin_schema(kind.group, kind.version, kind.kind)
    version = next(v for v in kind.crd["spec"]["versions"] if v["name"] == kind.version)
    schema = (version.get("schema") or {}).get("openAPIV3Schema")
    return compile_schema(schema) if schema else None
