"""The generated tables in the form in which versions of Kubernetes differ: nested objects without null.

`tools/generate_kubernetes_versions.py` computes the differences in this form; the readers of the tables apply them.
"""

from __future__ import annotations

import json
import zlib
from typing import Any

import orjson

JSON = dict[str, Any]


def parse_types(content: bytes) -> JSON:
    """Returns the lines of `builtin_types.txt` by the header of their package and by the name of the type."""
    packages: JSON = {}
    lines: dict[str, str] = {}
    for line in content.decode().splitlines()[1:]:
        if line.startswith("["):
            lines = packages.setdefault(line.strip("[]"), {})
        else:
            lines[line.split(" ", 1)[0].rstrip("^")] = line
    return packages


def parse_descriptions(content: bytes) -> JSON:
    """Returns the texts of `descriptions.json.z` by type and field; that of the type itself is of the field ""."""
    document = orjson.loads(zlib.decompress(content))
    texts = document["texts"]
    return {
        name: {field: texts[number] for field, number in fields.items()} for name, fields in document["types"].items()
    }


def parse_protobuf(content: bytes) -> JSON:
    """Returns the roots and messages of `protobuf_fields.json`."""
    document = json.loads(content)
    return {"roots": document["roots"], "messages": document["messages"]}


def parse_rbac(content: bytes) -> JSON:
    """Returns the objects of `bootstrap_rbac.json` by kind, namespace and name."""
    objects = orjson.loads(content)
    return {f"{obj['kind']}/{obj['metadata'].get('namespace', '')}/{obj['metadata']['name']}": obj for obj in objects}
