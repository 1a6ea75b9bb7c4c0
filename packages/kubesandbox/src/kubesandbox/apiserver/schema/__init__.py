"""The schemas of custom resources and built-in kinds: decoding, pruning, defaulting and validation.

    schema = compile_schema(openapi_v3_schema)           # once per CRD version; raises SchemaError
    obj, unknown = schema.prune(obj)                     # unknown: ("spec.desiredUpdate.mode", ...)
    obj = schema.default(obj)
    errors = schema.validate(obj, old)                   # FieldErrors: structure, list-map keys, CEL rules
    schema.root                                          # the merge tree for server-side apply: see Structural

    errors, schemas = compile_crd(crd)                   # a CustomResourceDefinition: faults, version -> Schema
    builtin = builtin_schema(group, version, kind)       # Pods, Deployments, ...: as Go's codec handles them
    obj, unknown = builtin.decode(obj)                   # raises DecodeError in Go's words
    obj = builtin.complete(obj)                          # with every zero that Go writes

`strict_errors` turns `unknown` into `unknown field "spec.x"`, for fieldValidation Strict and Warn.
No function changes its arguments: it returns new dicts where something had to change.
"""

from __future__ import annotations

from kubesandbox.apiserver.schema import object_meta
from kubesandbox.apiserver.schema.builtin import builtin_schema
from kubesandbox.apiserver.schema.crd import compile_crd, validate_crd, validate_crd_update
from kubesandbox.apiserver.schema.field_errors import Fault, FieldError, Verbatim, aggregate_text, not_supported
from kubesandbox.apiserver.schema.object_schema import Schema, compile_schema, strict_errors
from kubesandbox.apiserver.schema.structural import SchemaError, SchemaNode
from kubesandbox.apiserver.schema.typed import DecodeError

__all__ = [
    "DecodeError",
    "Fault",
    "FieldError",
    "Schema",
    "SchemaError",
    "SchemaNode",
    "Verbatim",
    "aggregate_text",
    "builtin_schema",
    "compile_crd",
    "compile_schema",
    "not_supported",
    "object_meta",
    "strict_errors",
    "validate_crd",
    "validate_crd_update",
]
