"""Reads and writes the syntax tree of a compiled CEL expression, a serialized `cel.expr.CheckedExpr`.

Only what a rewriting of the tree needs is decoded: nodes, their children, and the kinds of their types. The other
fields are kept as they came (cel-spec, proto/cel/expr/syntax.proto and checked.proto). An expression's depth is 32
at most, by the engine's parser.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

import msgspec

from kubekit.lang.varint import read_varint, write_varint

# A field of a message: its number, and an int or the bytes of what has a length.
Field = tuple[int, Any]
TypeKind = Literal["scalar", "text", "list", "map", "dyn", "optional"]

CONST, IDENT, SELECT, CALL, LIST, STRUCT, COMPREHENSION = range(3, 10)
# Fields of each node whose value is a node; a struct has them one level below, in its entries.
_CHILDREN = {SELECT: (1,), CALL: (1, 3), LIST: (1,), COMPREHENSION: (2, 4, 5, 6, 7)}
_ENTRY_CHILDREN = (3, 4)
_TEXT = frozenset({5, 6})  # the primitive types STRING and BYTES


class TreeError(ValueError):
    """Error raised if the engine's serialization is not as it is documented."""


class Node(msgspec.Struct):
    """An expression. `fields` are the fields of its message, with nodes and entries in place of their bytes."""

    kind: int
    id: int
    fields: list[Field] = msgspec.field(default_factory=list)

    def children(self, number: int) -> list[Node]:
        """Returns the nodes in the field `number`."""
        return [value for at, value in self.fields if at == number]

    def child(self, number: int) -> Node | None:
        """Returns the node in the field `number`, or None."""
        return next(iter(self.children(number)), None)

    def text(self, number: int) -> str:
        """Returns the text in the field `number`."""
        return next((bytes(value).decode() for at, value in self.fields if at == number), "")

    def numbers(self, number: int) -> set[int]:
        """Returns the numbers in the field `number`, packed or not."""
        numbers: set[int] = set()
        for at, value in self.fields:
            if at == number:
                numbers |= {value} if isinstance(value, int) else set(_read_varints(value))
        return numbers

    def count(self) -> int:
        """Returns the number of nodes, with this one."""
        total = 1
        for _, value in self.fields:
            if isinstance(value, Node):
                total += value.count()
            elif isinstance(value, Entry):
                total += sum(child.count() for _, child in value.fields if isinstance(child, Node))
        return total


class Entry(msgspec.Struct):
    """An entry of a map or a message in an expression."""

    fields: list[Field]


class Tree(msgspec.Struct):
    """A checked expression: the root, and the kind of each node's type by the node's id."""

    root: Node
    kinds: dict[int, TypeKind]
    rest: list[Field]
    type_url: bytes

    def kind(self, node: Node) -> TypeKind:
        """Returns the kind of the type of `node`; dyn where the checker noted none."""
        return self.kinds.get(node.id, "dyn")


def parse_tree(serialized: bytes) -> Tree:
    """Returns the tree in `serialized`, an `Any` with a CheckedExpr. Raises TreeError."""
    outer = dict(read_fields(serialized))
    fields = list(read_fields(outer.get(2, b"")))
    expression = next((value for number, value in fields if number == 4), None)
    if expression is None:
        raise TreeError("the compiled expression has no syntax tree")
    kinds: dict[int, TypeKind] = {}
    for number, value in fields:
        if number == 3:
            entry = dict(read_fields(value))
            kinds[entry.get(1, 0)] = _type_kind(entry.get(2, b""))
    return Tree(_parse_node(expression), kinds, [member for member in fields if member[0] != 4], outer[1])


Path = tuple[str, ...]
# Select, index, and their optional forms: the second argument is the key.
_ACCESSES = frozenset({"_[_]", "_?._", "_[?_]"})
_NAME, _FUNCTION, _ARGUMENTS, _TEXT_CONSTANT = 1, 2, 3, 6


def paths_read(node: Node) -> set[Path]:
    """Returns the paths that an expression reads, each from its variable: `object.spec["a"].b` is (object, spec, a, b).

    A path ends where a key is computed: what is below it may all be read. Variables of comprehensions are included.
    """
    path, others = _path(node)
    paths = {path} if path else set[Path]()
    for other in others:
        paths |= paths_read(other)
    return paths


def _path(node: Node) -> tuple[Path, list[Node]]:
    """Returns the path that a node reads, empty if it reads none itself, and the nodes below that may read others."""
    if node.kind == IDENT:
        return (node.text(_NAME),), []
    if node.kind == SELECT and (operand := node.child(1)) is not None:
        path, others = _path(operand)
        # A computed key among the others ends the path.
        return (path if others else (*path, node.text(2))) if path else (), others or ([] if path else [operand])
    arguments = node.children(_ARGUMENTS) if node.kind == CALL else []
    if len(arguments) == 2 and node.text(_FUNCTION) in _ACCESSES:
        (path, others), key = _path(arguments[0]), arguments[1]
        if path and not others and key.kind == CONST and (text := key.text(_TEXT_CONSTANT)):
            return (*path, text), []
        return path, [*others, key] if path else arguments
    entries = [value for _, value in node.fields if isinstance(value, Entry)]
    below = [value for _, value in [*node.fields, *(each for entry in entries for each in entry.fields)]]
    return (), [value for value in below if isinstance(value, Node)]


def serialize_tree(tree: Tree) -> bytes:
    """Returns the tree as the engine reads it."""
    return _write_fields([(1, tree.type_url), (2, _write_fields([*tree.rest, (4, _encode_node(tree.root))]))])


def _type_kind(data: bytes) -> TypeKind:
    """Returns the kind of a serialized `Type` (cel/expr/checked.proto), as coarsely as costs need it."""
    number, value = next(read_fields(data), (1, b""))
    if number == 3 or number == 4:  # primitive, and one that may be null
        return "text" if value in _TEXT else "scalar"
    if number == 5:  # well-known: Any, Timestamp, Duration
        return "dyn" if value == 1 else "scalar"
    if number == 14:
        return "optional" if dict(read_fields(value)).get(1) == b"optional_type" else "dyn"
    kinds: dict[int, TypeKind] = {2: "scalar", 6: "list", 7: "map", 11: "scalar"}
    return kinds.get(number, "dyn")


def _parse_node(data: bytes) -> Node:
    """Returns the node in a serialized `Expr` (cel/expr/syntax.proto). Raises TreeError for an unknown kind."""
    node = Node(0, 0)
    for number, value in read_fields(data):
        if number == 2:
            node.id = value
        elif CONST <= number <= COMPREHENSION:
            node.kind = number
            for at, content in read_fields(value):
                field = content
                if at in _CHILDREN.get(number, ()):
                    field = _parse_node(content)
                elif (number, at) == (STRUCT, 2):
                    entry = read_fields(content)
                    field = Entry([(no, _parse_node(part) if no in _ENTRY_CHILDREN else part) for no, part in entry])
                node.fields.append((at, field))
        else:
            raise TreeError(f"the compiled expression has an unknown kind of node: {number}")
    return node


def _encode_node(node: Node) -> bytes:
    return _write_fields([(2, node.id), (node.kind, _encode_fields(node.fields))])


def _encode_fields(fields: list[Field]) -> bytes:
    encoded: list[Field] = []
    for number, value in fields:
        if isinstance(value, Node):
            encoded.append((number, _encode_node(value)))
        else:
            encoded.append((number, _encode_fields(value.fields) if isinstance(value, Entry) else value))
    return _write_fields(encoded)


# --- the wire format of protocol buffers ------------------------------------------------------------------------------


class _Fixed(msgspec.Struct, frozen=True):
    """Eight bytes without a length, as doubles are written."""

    data: bytes


def read_fields(data: bytes) -> Iterator[Field]:
    """Yields field number and value of each protobuf field: an int, bytes, or a fixed-size value."""
    at = 0
    while at < len(data):
        tag, at = read_varint(data, at)
        number, wire = tag >> 3, tag & 7
        if wire == 0:
            value, at = read_varint(data, at)
            yield number, value
        elif wire == 1:
            yield number, _Fixed(data[at : at + 8])
            at += 8
        elif wire == 2:
            length, at = read_varint(data, at)
            yield number, data[at : at + length]
            at += length
        else:
            raise TreeError(f"the compiled expression has a field of wire type {wire}")


def _read_varints(data: bytes) -> Iterator[int]:
    """Yields the numbers in a packed repeated field."""
    at = 0
    while at < len(data):
        value, at = read_varint(data, at)
        yield value


def _write_fields(fields: list[Field]) -> bytes:
    """Returns the fields in protobuf's wire format."""
    parts: list[bytes] = []
    for number, value in fields:
        if isinstance(value, int):
            parts += (write_varint(number << 3), write_varint(value))
        elif isinstance(value, _Fixed):
            parts += (write_varint(number << 3 | 1), value.data)
        else:
            parts += (write_varint(number << 3 | 2), write_varint(len(value)), value)
    return b"".join(parts)
