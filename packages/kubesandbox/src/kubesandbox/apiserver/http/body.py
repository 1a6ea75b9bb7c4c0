"""Request bodies: bytes and a content type in, dicts out; a body that cannot be read is a 400 or 415."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import orjson
import yaml

from kubesandbox.apiserver.http import protobuf
from kubesandbox.apiserver.http.go_syntax import json_error, yaml_error
from kubesandbox.apiserver.http.messages import Request
from kubesandbox.apiserver.large_steps import is_large
from kubesandbox.apiserver.status_errors import JSON, ApiError, bad_request, too_large, unsupported_media_type

# Kubernetes' limit of a request body (3 MiB).
MAX_BYTES = 3 * 1024 * 1024
PROTOBUF = protobuf.MEDIA_TYPE
# From this length on YAML's own reader decides about a key, with its quotation marks and spaces.
_LONG_KEY = 900
_LONG_KEYS = re.compile(rb'"(?:[^"\\]|\\.){%d,}"\s*:' % _LONG_KEY)
_OBJECT_TYPES = ("application/json", "application/yaml", PROTOBUF)
_TYPE_META = r'struct { APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" }'
_NO_KIND = "couldn't get version/kind; json parse error"
_SUMMARY_BYTES = 30
_LARGE_PROTOBUF = 8 * 1024
# Between these numbers of nodes the share of aliases that go-yaml allows falls from 99 to 10 percent.
_FEW_NODES, _MANY_NODES = 400_000, 4_000_000
PATCH_TYPES = (
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
    "application/apply-patch+yaml",
)


def media_type(request: Request) -> str:
    """Returns the content type without parameters."""
    return request.header("content-type").split(";")[0].strip().lower()


def is_large_body(request: Request) -> bool:
    """Returns whether the body is large, or may represent more than it has: aliases of YAML, copies of a JSON patch."""
    if is_large(request.body):
        return True
    type_ = media_type(request)
    # In protobuf nothing separates values, each of which takes a few bytes.
    is_dense = type_ == PROTOBUF and len(request.body) > _LARGE_PROTOBUF
    return is_dense or type_ == PATCH_TYPES[0] or (type_.endswith("yaml") and b"*" in request.body)


def object_type(request: Request) -> str:
    """Returns the media type of an object in the body. Raises ApiError 415 for another."""
    kind = media_type(request) or "application/json"
    if kind not in _OBJECT_TYPES:
        raise unsupported_media_type(_OBJECT_TYPES)
    return kind


def read_object(request: Request, expected: str = "") -> JSON:
    """Returns the object in the body, expected to be of kind `expected`. Raises ApiError 400, 413 or 415."""
    kind = object_type(request)
    if len(request.body) > MAX_BYTES:
        raise too_large(MAX_BYTES)
    if kind == PROTOBUF:
        return decode_protobuf(request.body)
    try:
        value = load_yaml(request.body) if kind.endswith("yaml") else _load_json(request.body)
        if value is None:
            return {}
        check_type_meta(value)
    except ValueError as error:
        if not expected:
            raise bad_request(str(error)) from None
        # The error of k8s.io/apiserver for a body without a kind (handlers/rest.go, transformDecodeError).
        what = f"the object provided is unrecognized (must be of type {expected})"
        raise bad_request(f"{what}: {error} ({summarize_body(request.body)})") from None
    obj: JSON = value
    return obj


def check_type_meta(obj: Any) -> None:
    """Raises ValueError, in the words of Go's decoder, unless `obj` is an object whose apiVersion and kind are text."""
    if not isinstance(obj, dict):
        raise ValueError(f"{_NO_KIND}: json: cannot unmarshal {go_type(obj)} into Go value of type {_TYPE_META}")
    for key in ("apiVersion", "kind"):
        if not isinstance(member := obj.get(key), str | None):
            why = f"json: cannot unmarshal {go_type(member)} into Go struct field .{key} of type string"
            raise ValueError(f"{_NO_KIND}: {why}")


def _load_json(data: bytes) -> Any:
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError as error:
        raise ValueError(f"{_NO_KIND}: {json_error(data) or error}") from None


def load_yaml(data: bytes) -> Any:
    """Parses YAML (or JSON, which is YAML). Raises ValueError with go-yaml's message."""
    if data.lstrip()[:1] == b"{" and not _has_long_key(data):
        try:
            return orjson.loads(data)
        except orjson.JSONDecodeError:
            pass
    try:
        # Timestamps stay strings, as in JSON.
        return yaml.load(data, Loader=_Loader)  # noqa: S506 - a safe loader with fewer types
    except yaml.YAMLError as error:
        raise ValueError(yaml_error(error)) from None


def _has_long_key(data: bytes) -> bool:
    """Returns whether JSON may have a key that YAML refuses: those have at most 1024 characters (YAML 1.2, 7.4.2).

    Long texts between quotation marks, which are quick to find, are mostly values.
    """
    return any(len(text) >= _LONG_KEY for text in data.split(b'"')) and _LONG_KEYS.search(data) is not None


def summarize_body(data: bytes) -> str:
    """Returns the beginning of a body as errors quote it (summarizeData)."""
    if not data:
        return "<empty>"
    cut = data[:_SUMMARY_BYTES]
    text = cut.decode(errors="replace") if data[:1] == b"{" else cut.hex()
    return f"{text} ..." if len(data) > _SUMMARY_BYTES else text


def go_type(value: Any) -> str:
    """Returns the name of a value's type in encoding/json's errors."""
    names = {dict: "object", list: "array", str: "string", bool: "bool", type(None): "null"}
    return names.get(type(value), "number")


def decode_options(data: bytes) -> JSON:
    """Parses the options of a deletion in JSON. Raises ApiError 413, or 500 with the words of Go's decoder."""
    if len(data) > MAX_BYTES:
        raise too_large(MAX_BYTES)
    try:
        value = _load_json(data)
        if value is not None:
            check_type_meta(value)
    except ValueError as error:
        # The code of a real server (k8s.io/apiserver/pkg/endpoints/handlers/delete.go).
        raise ApiError(500, "", str(error)) from None
    return value or {}


def decode_protobuf(data: bytes) -> JSON:
    """Decodes an object in protobuf. Raises ApiError 400 or 413."""
    if len(data) > MAX_BYTES:
        raise too_large(MAX_BYTES)
    try:
        return protobuf.decode_protobuf(data)
    except protobuf.ProtobufError as error:
        raise bad_request(str(error)) from None


def decode_yaml(data: bytes) -> Any:
    """Parses YAML (or JSON, which is YAML). Raises ApiError 400 or 413."""
    if len(data) > MAX_BYTES:
        raise too_large(MAX_BYTES)
    try:
        return load_yaml(data)
    except ValueError as error:
        raise bad_request(f"error decoding YAML: {error}") from None


def decode_applied(data: bytes) -> JSON:
    """Parses the configuration of an apply. Raises ApiError 400 or 413."""
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
    """PyYAML's safe loader with go-yaml's limit of aliases, and without timestamps, which it reads as strings here."""

    def get_single_node(self) -> yaml.Node | None:
        """Returns the document's node. Raises YAMLError if its aliases represent too much."""
        node: yaml.Node | None = super().get_single_node()
        if node is not None:
            check_aliases(node)
        return node


def check_aliases(root: yaml.Node) -> None:
    """Raises YAMLError if aliases make most of a large document, or if a value contains itself.

    Source: yaml.v2, decode.go: allowedAliasRatio. Sizes are counted without following an alias twice.
    """
    sizes: dict[int, int] = {}
    open_nodes: set[int] = set()
    stack = [root]
    while stack:
        node = stack[-1]
        members = [] if isinstance(node, yaml.ScalarNode) else node.value
        if isinstance(node, yaml.MappingNode):
            members = [part for pair in node.value for part in pair]
        if id(node) not in sizes and id(node) not in open_nodes:
            open_nodes.add(id(node))
            missing = [member for member in members if id(member) not in sizes]
            if any(id(member) in open_nodes for member in missing):
                raise yaml.YAMLError("anchor value contains itself")
            stack += missing
            continue
        stack.pop()
        if id(node) not in sizes:
            sizes[id(node)] = 1 + sum(sizes[id(member)] for member in members)
            open_nodes.discard(id(node))
    total = sizes[id(root)]
    aliased = total - len(sizes)
    spared = min(max((total - _FEW_NODES) / (_MANY_NODES - _FEW_NODES), 0.0), 1.0)
    if aliased > 100 and total > 1000 and aliased / total > 0.99 - spared * 0.89:
        raise yaml.YAMLError("document contains excessive aliasing")


_Loader.yaml_implicit_resolvers = {
    first: [(tag, rule) for tag, rule in rules if not tag.endswith(":timestamp")]
    for first, rules in yaml.CSafeLoader.yaml_implicit_resolvers.items()
}


def yaml_duplicates(data: bytes) -> str:
    """Returns go-yaml's message about keys that a mapping has twice, or ""."""
    # Most bodies are JSON without duplicates, which is found in a tenth of the time of composing YAML.
    if data.lstrip()[:1] == b"{" and not has_duplicate_members(data):
        return ""
    try:
        root = yaml.compose(data, Loader=_Loader)
    except yaml.YAMLError:
        return ""
    lines = [
        f"  line {node.start_mark.line + 1}: key {json.dumps(node.value)} already set in map"
        for node in _duplicate_keys(root)
    ]
    return "\n".join(["yaml: unmarshal errors:", *lines]) if lines else ""


def _duplicate_keys(node: yaml.Node | None) -> Iterator[yaml.Node]:
    """Yields the second key of each duplicate in a YAML document."""
    if isinstance(node, yaml.MappingNode):
        keys: set[str] = set()
        for key, value in node.value:
            if key.value in keys:
                yield key
            keys.add(key.value)
            yield from _duplicate_keys(value)
    elif isinstance(node, yaml.SequenceNode):
        for item in node.value:
            yield from _duplicate_keys(item)


@dataclass(slots=True)
class Members:
    """The members of a JSON text by their paths: the ordinals of the first occurrence and of the first duplicate."""

    first: dict[str, int] = field(default_factory=dict)
    again: dict[str, int] = field(default_factory=dict)
    count: int = 0


def read_members(data: bytes) -> Members:
    """Returns the members of a JSON text for strict field validation; none if it cannot be parsed."""
    result = Members()
    if data.lstrip()[:1] not in {b"{", b"["}:
        return result
    try:
        tree = json.loads(data, object_pairs_hook=_Pairs)
    except ValueError:
        return result
    _collect_members(tree, "", result)
    return result


class _DuplicateMember(Exception):
    """Error raised while parsing a JSON text, at the first member that occurs again."""


def has_duplicate_members(data: bytes) -> bool:
    """Returns whether an object in a JSON text has a member twice; True if that is only known by `read_members`.

    It takes half of the time of `read_members`, for the texts without duplicates, which are nearly all.
    """
    try:
        _DUPLICATE_FINDER.decode(data.decode())
    except (_DuplicateMember, ValueError, RecursionError):
        return True
    return False


def _refuse_duplicates(pairs: list[tuple[str, Any]]) -> None:
    if len({key for key, _ in pairs}) != len(pairs):
        raise _DuplicateMember


_DUPLICATE_FINDER = json.JSONDecoder(object_pairs_hook=_refuse_duplicates)


class _Pairs:
    def __init__(self, pairs: list[tuple[str, Any]]) -> None:
        self.pairs = pairs


def _collect_members(value: Any, path: str, members: Members) -> None:
    """Records in `members` the paths of all members of a parsed JSON value, and those that occur again."""
    if isinstance(value, _Pairs):
        keys: set[str] = set()
        for key, child in value.pairs:
            member_path = f"{path}.{key}" if path else key
            members.count += 1
            if key in keys:
                members.again.setdefault(member_path, members.count)
            members.first.setdefault(member_path, members.count)
            keys.add(key)
            _collect_members(child, member_path, members)
    elif isinstance(value, list):
        for index, child in enumerate(value):
            _collect_members(child, f"{path}[{index}]", members)
