"""The operations on an object that one schema defines; the interface that the API server's handlers use.

In: an object as decoded. Out: the object pruned and defaulted, its unknown fields, and its faults in the order of
kube-apiserver: structure, embedded resources, list-map keys, then CEL rules unless an earlier fault blocks them.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

from kubesandbox.apiserver.schema import embedded, lists, pruning, rules
from kubesandbox.apiserver.schema.field_errors import Fault, FieldError, invalid
from kubesandbox.apiserver.schema.structural import SchemaNode, compile_node
from kubesandbox.apiserver.schema.validate import MISSING, validate_value

JSON = dict[str, Any]

# After one of these faults apiextensions-apiserver skips the CEL rules and adds _NOT_CHECKED.
_BLOCKING = frozenset({Fault.NOT_SUPPORTED, Fault.REQUIRED, Fault.TOO_LONG, Fault.TOO_MANY, Fault.TYPE_INVALID})
_NOT_CHECKED = invalid(
    "",
    None,
    "some validation rules were not checked because the object was invalid; "
    "correct the existing errors to complete validation",
)


class Schema:
    """A compiled schema. `raw` is the OpenAPI v3 schema as written."""

    def __init__(self, raw: Mapping[str, Any]) -> None:
        self.raw = raw
        self.root: SchemaNode = compile_node(raw)

    @cached_property
    def rules(self) -> rules.RuleSet:
        """The CEL rules, compiled on first use."""
        return rules.RuleSet(self.root)

    @cached_property
    def has_defaults(self) -> bool:
        """Reports whether `default` can change an object. For custom schemas only: built-in ones are recursive."""
        return self.root.has_defaults()

    def coerce(self, obj: JSON) -> tuple[JSON, list[str]]:
        """Returns `obj` with its metadata decoded, and the paths of unknown fields in it. Raises DecodeError."""
        return embedded.coerce_metadata(self.root, obj)

    def prune(self, obj: JSON) -> tuple[JSON, tuple[str, ...]]:
        """Returns `obj` without unknown fields, and their paths, sorted. apiVersion, kind and metadata are kept."""
        return pruning.prune_unknown(self.root, obj)

    def drop_nulls(self, obj: JSON) -> JSON:
        """Returns `obj` without the nulls that count as absent."""
        result: JSON = pruning.drop_nulls(self.root, obj)
        return result

    def default(self, obj: JSON) -> JSON:
        """Returns `obj` with defaults, which also replace nulls that are not nullable."""
        result: JSON = pruning.fill_defaults(self.root, obj)
        return result

    def validate(self, obj: JSON, old: JSON | None = None) -> list[FieldError]:
        """Returns all faults of `obj`. With `old`, an update: unchanged parts pass, and transition rules run."""
        former: Any = MISSING if old is None else old
        errors = validate_value(self.root, obj, former)
        errors += embedded.embedded_faults(self.root, obj)
        errors += lists.duplicate_faults(self.root, obj, former)
        if any(error.fault in _BLOCKING for error in errors):
            return [*errors, _NOT_CHECKED] if self.rules.any else errors
        return errors + self.rules.check(obj, former)


def compile_schema(raw: Mapping[str, Any]) -> Schema:
    """Compiles an OpenAPI v3 schema, which is slow: keep the result. Raises SchemaError."""
    return Schema(raw)


def strict_errors(unknown: tuple[str, ...]) -> tuple[str, ...]:
    """Returns the unknown fields as fieldValidation reports them: `unknown field "spec.frob"`."""
    return tuple(f'unknown field "{path}"' for path in unknown)
