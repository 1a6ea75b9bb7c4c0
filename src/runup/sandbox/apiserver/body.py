"""Request bodies: bytes and a content type in, dicts out; a body that cannot be read is a 400 or 415."""

from __future__ import annotations

import json
from typing import Any

import orjson
import yaml

from runup.sandbox.apiserver import protobuf
from runup.sandbox.apiserver.errors import bad_request, too_large, unsupported_media_type
from runup.sandbox.apiserver.http import Request

JSON = dict[str, Any]

# Kubernetes' limit of a request body (3 MiB).
MAX_BYTES = 3 * 1024 * 1024
_OBJECT_TYPES = ("application/json", "application/yaml", "application/vnd.kubernetes.protobuf")
PATCH_TYPES = (
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
    "application/apply-patch+yaml",
)


def media_type(request: Request) -> str:
    """The content type without parameters."""
    return request.header("content-type").split(";")[0].strip()


def read_object(request: Request) -> JSON:
    """The object in the body; raises ApiError 400, 413 or 415."""
    kind = media_type(request) or "application/json"
    if kind == _OBJECT_TYPES[2]:
        return _decode_protobuf(request.body)
    if kind not in _OBJECT_TYPES:
        raise unsupported_media_type(_OBJECT_TYPES)
    value = decode_yaml(request.body) if kind.endswith("yaml") else decode_json(request.body)
    if not isinstance(value, dict):
        go_type = 'struct { APIVersion string "json:"apiVersion,omitempty""; Kind string "json:"kind,omitempty"" }'
        why = f"json: cannot unmarshal {_go_type(value)} into Go value of type {go_type}"
        raise bad_request(f"couldn't get version/kind; json parse error: {why}")
    return value


def _decode_protobuf(data: bytes) -> JSON:
    if len(data) > MAX_BYTES:
        raise too_large(MAX_BYTES)
    try:
        return protobuf.decode(data)
    except protobuf.ProtobufError as error:
        raise bad_request(str(error)) from None


def _go_type(value: Any) -> str:
    return {list: "array", str: "string", bool: "bool", type(None): "null"}.get(type(value), "number")


def decode_json(data: bytes) -> Any:
    """JSON, or 400 with the place of the fault."""
    if len(data) > MAX_BYTES:
        raise too_large(MAX_BYTES)
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError as error:
        raise bad_request(f"couldn't get version/kind; json parse error: {error}") from None


def decode_yaml(data: bytes) -> Any:
    """YAML (or JSON, which is YAML), or 400."""
    if len(data) > MAX_BYTES:
        raise too_large(MAX_BYTES)
    if data.lstrip()[:1] == b"{":
        try:
            return orjson.loads(data)
        except orjson.JSONDecodeError:
            pass
    try:
        # Times stay text, as in JSON.
        return yaml.load(data, Loader=_Loader)  # noqa: S506 - a safe loader with fewer types
    except yaml.YAMLError as error:
        raise bad_request(f"error decoding YAML: {error}") from None


class _Loader(yaml.CSafeLoader):
    """PyYAML's safe loader without timestamps and sexagesimal numbers, which Kubernetes does not know."""


def _without_timestamps() -> None:
    table = {first: [(tag, rule) for tag, rule in rules if not tag.endswith(":timestamp")]
             for first, rules in yaml.CSafeLoader.yaml_implicit_resolvers.items()}  # fmt: skip
    _Loader.yaml_implicit_resolvers = table


_without_timestamps()


def duplicate_fields(data: bytes) -> list[str]:
    """Paths of members that a JSON text has twice, for strict field validation; empty for anything unreadable."""
    if data.lstrip()[:1] not in {b"{", b"["}:
        return []
    found: list[str] = []

    def note(pairs: list[tuple[str, Any]]) -> _Members:
        return _Members(pairs)

    try:
        tree = json.loads(data, object_pairs_hook=note)
    except ValueError:
        return []
    _walk(tree, "", found)
    return found


class _Members:
    def __init__(self, pairs: list[tuple[str, Any]]) -> None:
        self.pairs = pairs


def _walk(value: Any, path: str, found: list[str]) -> None:
    if isinstance(value, _Members):
        seen: set[str] = set()
        for key, child in value.pairs:
            here = f"{path}.{key}" if path else key
            if key in seen and here not in found:
                found.append(here)
            seen.add(key)
            _walk(child, here, found)
    elif isinstance(value, list):
        for index, child in enumerate(value):
            _walk(child, f"{path}[{index}]", found)
