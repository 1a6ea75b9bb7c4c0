"""Request bodies: bytes and a content type in, dicts out; a body that cannot be read is a 400 or 415."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import orjson
import yaml

from kubesandbox.apiserver.errors import ApiError, bad_request, too_large, unsupported_media_type
from kubesandbox.apiserver.http import protobuf
from kubesandbox.apiserver.http.go_syntax import json_error, yaml_error
from kubesandbox.apiserver.http.messages import Request

JSON = dict[str, Any]

# Kubernetes' limit of a request body (3 MiB).
MAX_BYTES = 3 * 1024 * 1024
PROTOBUF = "application/vnd.kubernetes.protobuf"
_OBJECT_TYPES = ("application/json", "application/yaml", PROTOBUF)
_TYPE_META = r'struct { APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" }'
_SUMMARY_BYTES = 30
PATCH_TYPES = (
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
    "application/apply-patch+yaml",
)


def media_type(request: Request) -> str:
    """The content type without parameters."""
    return request.header("content-type").split(";")[0].strip()


def read_object(request: Request, expected: str = "") -> JSON:
    """The object in the body, meant to be of the kind `expected`; raises ApiError 400, 413 or 415."""
    kind = media_type(request) or "application/json"
    if kind not in _OBJECT_TYPES:
        raise unsupported_media_type(_OBJECT_TYPES)
    if len(request.body) > MAX_BYTES:
        raise too_large(MAX_BYTES)
    if kind == PROTOBUF:
        return decode_protobuf(request.body)
    try:
        value = load_yaml(request.body) if kind.endswith("yaml") else _load_json(request.body)
        return _object(value)
    except ValueError as error:
        raise _unrecognized(expected, str(error), request.body) from None


def _load_json(data: bytes) -> Any:
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError as error:
        raise ValueError(f"couldn't get version/kind; json parse error: {json_error(data) or error}") from None


def load_yaml(data: bytes) -> Any:
    """YAML (or JSON, which is YAML); raises ValueError with what go-yaml says."""
    if data.lstrip()[:1] == b"{":
        try:
            return orjson.loads(data)
        except orjson.JSONDecodeError:
            pass
    try:
        # Times stay text, as in JSON.
        return yaml.load(data, Loader=_Loader)  # noqa: S506 - a safe loader with fewer types
    except yaml.YAMLError as error:
        raise ValueError(yaml_error(error)) from None


def _object(value: Any) -> JSON:
    if value is None:
        return {}
    why = ""
    if not isinstance(value, dict):
        why = f"cannot unmarshal {go_type(value)} into Go value of type {_TYPE_META}"
    else:
        odd = next((key for key in ("apiVersion", "kind") if not isinstance(value.get(key) or "", str)), "")
        if odd:
            why = f"cannot unmarshal {go_type(value[odd])} into Go struct field .{odd} of type string"
    if why:
        raise ValueError(f"couldn't get version/kind; json parse error: json: {why}")
    found: JSON = value
    return found


def _unrecognized(expected: str, why: str, data: bytes) -> ApiError:
    """What k8s.io/apiserver says of a body that has no kind (handlers/rest.go, transformDecodeError)."""
    if not expected:
        return bad_request(why)
    return bad_request(f"the object provided is unrecognized (must be of type {expected}): {why} ({summary(data)})")


def summary(data: bytes) -> str:
    """The beginning of a body as errors quote it (summarizeData)."""
    if not data:
        return "<empty>"
    cut = data[:_SUMMARY_BYTES]
    text = cut.decode(errors="replace") if data[:1] == b"{" else cut.hex()
    return f"{text} ..." if len(data) > _SUMMARY_BYTES else text


def go_type(value: Any) -> str:
    """How encoding/json calls a value in its errors."""
    names = {dict: "object", list: "array", str: "string", bool: "bool", type(None): "null"}
    return names.get(type(value), "number")


def decode_json(data: bytes) -> Any:
    """JSON, or 400 with the place of the fault."""
    if len(data) > MAX_BYTES:
        raise too_large(MAX_BYTES)
    try:
        return _load_json(data)
    except ValueError as error:
        raise bad_request(str(error)) from None


def decode_protobuf(data: bytes) -> JSON:
    """An object in protobuf, or 400 or 413."""
    if len(data) > MAX_BYTES:
        raise too_large(MAX_BYTES)
    try:
        return protobuf.decode(data)
    except protobuf.ProtobufError as error:
        raise bad_request(str(error)) from None


def decode_yaml(data: bytes) -> Any:
    """YAML (or JSON, which is YAML), or 400."""
    if len(data) > MAX_BYTES:
        raise too_large(MAX_BYTES)
    try:
        return load_yaml(data)
    except ValueError as error:
        raise bad_request(f"error decoding YAML: {error}") from None


def decode_applied(data: bytes) -> JSON:
    """The configuration of an apply, or 400."""
    if len(data) > MAX_BYTES:
        raise too_large(MAX_BYTES)
    try:
        value = load_yaml(data)
    except ValueError as error:
        raise bad_request(f"error decoding YAML: error converting YAML to JSON: {error}") from None
    if value is not None and not isinstance(value, dict):
        why = f"json: cannot unmarshal {go_type(value)} into Go value of type map[string]interface {{}}"
        raise bad_request(f"error decoding YAML: error unmarshaling JSON: while decoding JSON: {why}")
    return value or {}


class _Loader(yaml.CSafeLoader):
    """PyYAML's safe loader without timestamps and sexagesimal numbers, which Kubernetes does not know."""


def _without_timestamps() -> None:
    table = {first: [(tag, rule) for tag, rule in rules if not tag.endswith(":timestamp")]
             for first, rules in yaml.CSafeLoader.yaml_implicit_resolvers.items()}  # fmt: skip
    _Loader.yaml_implicit_resolvers = table


_without_timestamps()


def yaml_duplicates(data: bytes) -> str:
    """What go-yaml says of keys that a mapping has twice, empty when there are none."""
    try:
        root = yaml.compose(data, Loader=_Loader)
    except yaml.YAMLError:
        return ""
    lines = [
        f"  line {node.start_mark.line + 1}: key {json.dumps(node.value)} already set in map" for node in _twice(root)
    ]
    return "\n".join(["yaml: unmarshal errors:", *lines]) if lines else ""


def _twice(node: yaml.Node | None) -> Iterator[yaml.Node]:
    if isinstance(node, yaml.MappingNode):
        seen: set[str] = set()
        for key, value in node.value:
            if key.value in seen:
                yield key
            seen.add(key.value)
            yield from _twice(value)
    elif isinstance(node, yaml.SequenceNode):
        for item in node.value:
            yield from _twice(item)


@dataclass(slots=True)
class Members:
    """The members of a JSON text by their paths: when each was first met, and which came again, and when."""

    first: dict[str, int] = field(default_factory=dict)
    again: dict[str, int] = field(default_factory=dict)
    count: int = 0


def members(data: bytes) -> Members:
    """What strict field validation must know of the text; nothing of one that is unreadable."""
    found = Members()
    if data.lstrip()[:1] not in {b"{", b"["}:
        return found
    try:
        tree = json.loads(data, object_pairs_hook=_Pairs)
    except ValueError:
        return found
    _walk(tree, "", found)
    return found


class _Pairs:
    def __init__(self, pairs: list[tuple[str, Any]]) -> None:
        self.pairs = pairs


def _walk(value: Any, path: str, found: Members) -> None:
    if isinstance(value, _Pairs):
        seen: set[str] = set()
        for key, child in value.pairs:
            here = f"{path}.{key}" if path else key
            found.count += 1
            if key in seen:
                found.again.setdefault(here, found.count)
            found.first.setdefault(here, found.count)
            seen.add(key)
            _walk(child, here, found)
    elif isinstance(value, list):
        for index, child in enumerate(value):
            _walk(child, f"{path}[{index}]", found)
