"""Requests of newer Go clients: the bytes are written by hand from the description of the protobuf encoding."""

from __future__ import annotations

import pytest

from kubesandbox.apiserver.http import protobuf
from kubesandbox.apiserver.http.protobuf import MAGIC, ProtobufError, decode_protobuf, encoded_kinds
from kubesandbox.apiserver.served_kinds import BUILTIN


def text(number: int, value: bytes | str) -> bytes:
    """A length-delimited field of fewer than 128 bytes."""
    raw = value.encode() if isinstance(value, str) else value
    return bytes([number << 3 | 2, len(raw)]) + raw


def number(field: int, value: int) -> bytes:
    """A varint field below 128."""
    return bytes([field << 3, value])


def body(api_version: str, kind: str, raw: bytes) -> bytes:
    """The envelope: type, object, two empty fields that Go always writes."""
    return MAGIC + text(1, text(1, api_version) + text(2, kind)) + text(2, raw) + text(3, "") + text(4, "")


EMPTY_META = text(2, "") + text(3, "") + text(4, "") + text(5, "") + text(6, "") + number(7, 0) + text(8, "")


@pytest.mark.parametrize(
    ("api_version", "kind", "raw", "expected"),
    [
        pytest.param(
            "v1",
            "ConfigMap",
            text(1, text(1, "a") + EMPTY_META) + text(2, text(1, "x") + text(2, "1")) + text(2, text(1, "y")),
            {"metadata": {"name": "a"}, "data": {"x": "1", "y": ""}},
            id="zero values that JSON leaves out are left out, map entries keep theirs",
        ),
        pytest.param(
            "v1",
            "Secret",
            text(1, text(1, "s")) + text(2, text(1, "k") + text(2, b"\x00\xff")) + text(3, "Opaque"),
            {"metadata": {"name": "s"}, "data": {"k": "AP8="}, "type": "Opaque"},
            id="bytes are base64 in JSON",
        ),
        pytest.param(
            "apps/v1",
            "Deployment",
            text(1, text(1, "d") + text(8, number(1, 60))) + text(2, number(1, 0)),
            {"metadata": {"name": "d", "creationTimestamp": "1970-01-01T00:01:00Z"}, "spec": {"replicas": 0}},
            id="a pointer's zero is meant",
        ),
        pytest.param(
            "policy/v1",
            "PodDisruptionBudget",
            text(2, text(1, number(1, 1) + number(2, 0) + text(3, "50%")) + text(3, number(1, 0) + number(2, 2))),
            {"spec": {"minAvailable": "50%", "maxUnavailable": 2}},
            id="a number or a share",
        ),
        pytest.param(
            "v1",
            "Pod",
            text(2, text(1, text(1, "v") + text(2, text(1, text(1, "/etc"))))),
            {"spec": {"volumes": [{"name": "v", "hostPath": {"path": "/etc"}}]}},
            id="an embedded struct is inlined",
        ),
        pytest.param(
            "authorization.k8s.io/v1",
            "SelfSubjectAccessReview",
            text(2, text(1, text(1, "") + text(2, "list") + text(5, "pods"))),
            {"spec": {"resourceAttributes": {"verb": "list", "resource": "pods"}}},
            id="auth can-i",
        ),
        pytest.param(
            "v1",
            "Namespace",
            text(1, text(1, "n")) + text(9, b"x"),
            {"metadata": {"name": "n"}},
            id="newer field",
        ),
    ],
)
def test_an_object_is_the_same_as_in_json(api_version: str, kind: str, raw: bytes, expected: dict[str, object]) -> None:
    """Type, field names and values are those of the JSON encoding."""
    assert decode_protobuf(body(api_version, kind, raw)) == {"apiVersion": api_version, "kind": kind} | expected


@pytest.mark.parametrize(
    ("data", "named"),
    [
        pytest.param(b"{}", "prefix", id="no prefix"),
        pytest.param(body("v1", "Frob", b""), 'kind "Frob" in version "v1"', id="a kind that the table lacks"),
        pytest.param(body("v1", "ConfigMap", text(1, "abc"))[:-6], "cut off", id="cut off"),
        pytest.param(MAGIC + b"\xff" * 12, "too long", id="an endless number"),
        pytest.param(body("v1", "ConfigMap", number(1, 3)), "cannot be read", id="a number where an object belongs"),
    ],
)
def test_what_cannot_be_read_says_so(data: bytes, named: str) -> None:
    """A damaged body is a clear error, never half an object."""
    with pytest.raises(ProtobufError) as caught:
        decode_protobuf(data)
    assert named in str(caught.value)


def test_every_kind_that_clients_write_has_an_encoding() -> None:
    """Clients in Go send each of them in protobuf."""
    written = {f"{kind.api_version}/{kind.kind}" for kind in BUILTIN if {"create", "update"} & set(kind.verbs)}
    written |= {
        f"{part.group}/{part.version}/{part.kind}".lstrip("/")
        for kind in BUILTIN
        for part in kind.subresources
        if part.kind and {"create", "update"} & set(part.verbs)
    }
    assert written - set(encoded_kinds()) == set()


# A value of each kind of field, as JSON has it.
VALUES: dict[str, object] = {
    "string": "wörd",
    "bool": True,
    "int": -7,
    "double": 0.25,
    "bytes": "AP8=",
    "time": "2024-02-29T12:00:01Z",
    "microtime": "2024-02-29T12:00:01.000250Z",
    "quantity": "10m",
    "intorstring": "50%",
    "raw": {"a": [1, None]},
}
# Messages of which JSON is one value.
CHOICES = {
    "apiextensions/v1.JSONSchemaPropsOrArray": [{"type": "string"}],
    "apiextensions/v1.JSONSchemaPropsOrBool": {"type": "string"},
    "apiextensions/v1.JSONSchemaPropsOrStringArray": ["a"],
}


def full(message: str, above: tuple[str, ...] = ()) -> object:
    """A value of a message with all its fields, but not itself inside itself."""
    if message in CHOICES:
        return CHOICES[message]
    rows = protobuf.field_table()["messages"][message]
    if rows and rows[0][1] == "@items":
        return ["a", "b"]
    made: dict[str, object] = {}
    for _, name, kind, *_ in rows:
        inner = kind.removeprefix("[]").removeprefix("{}")
        if inner[1:] in (*above, message):
            continue
        value = full(inner[1:], (*above, message)) if inner.startswith("@") else VALUES[inner]
        if not name:
            assert isinstance(value, dict)
            made.update(value)
        else:
            made[name] = [value, value] if kind.startswith("[]") else {"k": value} if kind.startswith("{}") else value
    return made


@pytest.mark.parametrize("name", sorted(encoded_kinds()))
def test_writes_all_fields_of_a_kind(name: str) -> None:
    """Decoding the encoding of an object with every field gives the object."""
    message = full(protobuf.field_table()["roots"][name])
    assert isinstance(message, dict)
    api_version, _, kind = name.rpartition("/")
    obj = {**message, "apiVersion": api_version, "kind": kind}
    encoded = protobuf.encode_protobuf(obj)
    assert encoded is not None
    assert decode_protobuf(encoded) == obj


@pytest.mark.parametrize("value", [True, False, {"type": "string"}])
def test_writes_a_schema_or_a_boolean(value: object) -> None:
    """`additionalProperties` is one of the two; a schema allows what it describes."""
    schema = {"type": "object", "additionalProperties": value}
    versions = [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}]
    obj = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "spec": {"versions": versions}}
    encoded = protobuf.encode_protobuf(obj)
    assert encoded is not None
    assert decode_protobuf(encoded) == obj


def test_does_not_write_an_unknown_kind() -> None:
    """A custom resource has no such encoding."""
    assert protobuf.encode_protobuf({"apiVersion": "example.com/v1", "kind": "Ship", "metadata": {}}) is None
    with pytest.raises(ProtobufError, match="Ship"):
        protobuf.encode_event("ADDED", b'{"kind":"Ship","apiVersion":"example.com/v1"}')
