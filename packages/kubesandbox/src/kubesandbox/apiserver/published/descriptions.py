"""Kubernetes' descriptions of the built-in types, for `kubectl explain`: read when a document is built.

They are not part of the schemas, which every request uses. `tools/generate_builtin_schemas.py` writes them.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from kubesandbox.apiserver import kubernetes_version, version_tables

JSON = dict[str, Any]
_FILE = Path(__file__).with_name("descriptions.json.z")


def with_descriptions(name: str, schema: JSON) -> JSON:
    """Returns the schema of a built-in type with the descriptions of the type and of its fields."""
    own = _texts().get(name)
    if own is None:
        return schema
    described = {field: {"description": text} for field, text in own.items()}
    properties = {field: described.get(field, {}) | value for field, value in schema.get("properties", {}).items()}
    return {**described.get("", {}), **schema, **({"properties": properties} if properties else {})}


@cache
def _texts() -> JSON:
    """Returns the texts by type and field; that of the type itself is of the field ""."""
    return kubernetes_version.table("descriptions", version_tables.parse_descriptions(_FILE.read_bytes()))
