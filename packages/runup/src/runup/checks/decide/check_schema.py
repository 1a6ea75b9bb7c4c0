"""Generates the JSON Schemas of `PreflightCheck` and of its tests from the types, for editors to complete by."""

from __future__ import annotations

from typing import Any

import msgspec

from runup.checks.decide import cases
from runup.checks.decide.declarative import API_VERSION, KIND, PreflightCheckSpec

_DIALECT = "https://json-schema.org/draft/2020-12/schema"


def check_schema() -> dict[str, Any]:
    """Returns the JSON Schema of one PreflightCheck."""
    (spec,), parts = msgspec.json.schema_components([PreflightCheckSpec], ref_template="#/$defs/{name}")
    metadata = {
        "type": "object",
        "required": ["name"],
        "properties": {
            "name": {"type": "string", "minLength": 1},
            "annotations": {"type": "object", "additionalProperties": {"type": "string"}},
            "labels": {"type": "object", "additionalProperties": {"type": "string"}},
        },
    }
    return {
        "$schema": _DIALECT,
        "title": KIND,
        "type": "object",
        "required": ["apiVersion", "kind", "metadata", "spec"],
        "properties": {
            "apiVersion": {"const": API_VERSION},
            "kind": {"const": KIND},
            "metadata": metadata,
            "spec": spec,
        },
        "$defs": parts,
    }


def cases_schema() -> dict[str, Any]:
    """Returns the JSON Schema of one file of cases."""
    schema = msgspec.json.schema(cases.Cases, ref_template="#/$defs/{name}")
    schema["$defs"]["Cases"]["properties"] |= {
        "apiVersion": {"const": cases.API_VERSION},
        "kind": {"const": cases.KIND},
    }
    return {"$schema": _DIALECT, "title": cases.KIND, **schema}
