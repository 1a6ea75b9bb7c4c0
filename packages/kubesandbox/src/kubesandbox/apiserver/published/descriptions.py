"""Kubernetes' descriptions of the built-in types, for `kubectl explain`: read when a document is built.

They are not part of the schemas, which every request uses. `tools/generate_builtin_schemas.py` writes them.
"""

from __future__ import annotations

import zlib
from functools import cache
from pathlib import Path
from typing import Any

import orjson

JSON = dict[str, Any]
_FILE = Path(__file__).with_name("descriptions.json.z")


def with_descriptions(name: str, schema: JSON) -> JSON:
    """Returns the schema of a built-in type with the descriptions of the type and of its fields."""
    texts, of_fields = _texts()
    own = of_fields.get(name)
    if own is None:
        return schema
    described = {field: {"description": texts[number]} for field, number in own.items()}
    properties = {field: described.get(field, {}) | value for field, value in schema.get("properties", {}).items()}
    return {**described.get("", {}), **schema, **({"properties": properties} if properties else {})}


@cache
def _texts() -> tuple[list[str], dict[str, dict[str, int]]]:
    """Returns the texts, and by type and field the number of the text; the type itself is the field ""."""
    content = orjson.loads(zlib.decompress(_FILE.read_bytes()))
    return content["texts"], content["types"]
