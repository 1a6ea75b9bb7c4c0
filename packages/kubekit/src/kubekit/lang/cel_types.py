"""Checks the types of CEL expressions whose variables are declared, and estimates what an expression may cost at most.

Types: as cel-go's checker does for Kubernetes. The engine takes objects as maps of anything; what this module does not
know the type of is `dyn`, and never a fault. Faults have cel-go's words and their place: an undefined field, a
selection from what has no fields, an operator without an overload for its operands.

Costs: from the sizes that the types declare, as cel-go's checker/cost.go estimates them. A size that is not known here
counts as the least, so that the estimate is at most the real server's: nothing is refused here that is accepted there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass, field
from math import ceil
from typing import Literal

from kubekit.lang import cel_ast
from kubekit.lang.cel import CelSyntaxError, engine_environment, tidy_message
from kubekit.lang.cel_ast import CALL, COMPREHENSION, CONST, IDENT, LIST, SELECT, STRUCT, Entry, Node

Kind = Literal[
    "dyn", "bool", "int", "uint", "double", "string", "bytes", "null", "timestamp", "duration", "list", "map",
    "object", "optional",
]  # fmt: skip
Fields = Callable[[str], "CelType | None"]


# Fields of an entry of a map, https://github.com/google/cel-spec/blob/master/proto/cel/expr/syntax.proto
_MAP_KEY, _MAP_VALUE = 3, 4


@dataclass(frozen=True, slots=True, kw_only=True)
class CelType:
    """A declared type: `element` of a list, map or optional value, `fields` of an object and the name that it has.

    `most` is the greatest number of elements or bytes of a value, or 0; `least` the smallest size of
    a value as JSON. Both are for estimates of cost alone.
    """

    kind: Kind
    element: CelType | None = None
    _: KW_ONLY
    fields: Fields | None = field(default=None, compare=False)
    name: str = ""
    most: int = field(default=0, compare=False)
    least: int = field(default=0, compare=False)

    def __str__(self) -> str:
        if self.kind == "object":
            return self.name
        if self.kind == "map":
            return f"map(string, {self.element or DYN})"
        if self.kind == "list":
            return f"list({self.element or DYN})"
        return f"optional_type({self.element or DYN})" if self.kind == "optional" else self.kind


DYN, BOOL, INT, UINT, DOUBLE, STRING, BYTES, NULL, TIMESTAMP, DURATION = (
    CelType(kind=kind)
    for kind in ("dyn", "bool", "int", "uint", "double", "string", "bytes", "null", "timestamp", "duration")
)


def list_of(element: CelType) -> CelType:
    """Returns the type of lists of `element`."""
    return CelType(kind="list", element=element)


def map_of(element: CelType) -> CelType:
    """Returns the type of maps from strings to `element`."""
    return CelType(kind="map", element=element)


def object_of(name: str, fields: Fields) -> CelType:
    """Returns the type of objects that have `fields` and no others."""
    return CelType(kind="object", fields=fields, name=name)


# The types of questions about rights (k8s.io/apiserver/pkg/cel/library/authz.go). They have no fields, but
# `authorizer.requestResource` is a variable with a dot in its name.
_QUESTIONS = "kubernetes.authorization."
_RESOURCE_CHECK, _PATH_CHECK, _GROUP_CHECK, _DECISION = (
    object_of(f"{_QUESTIONS}{name}", lambda _: None)
    for name in ("ResourceCheck", "PathCheck", "GroupCheck", "Decision")
)
AUTHORIZER = object_of(f"{_QUESTIONS}Authorizer", {"requestResource": _RESOURCE_CHECK}.get)


def type_faults(expression: str, variables: Mapping[str, CelType]) -> str:
    """Returns the faults of `expression` as cel-go prints them, or "". Raises CelSyntaxError if it does not compile."""
    texts, source = [], expression.split("\n")
    for at, why in _Checker(expression, variables).faults:
        lines = expression[:at].split("\n")
        line, column = len(lines), len(lines[-1])
        place = f" | {source[line - 1]}\n | {'.' * column}^"
        texts.append(f"ERROR: <input>:{line}:{column + 1}: {why}\n{place}")
    return "\n".join(texts)


class _Checker:
    """Finds the type of each node by its id; raises CelSyntaxError for what does not compile."""

    def __init__(self, expression: str, variables: Mapping[str, CelType]) -> None:
        # Types are this module's matter: for the engine every variable is dyn.
        hints = tuple((name, "dyn") for name in sorted(variables))
        try:
            serialized = bytes(engine_environment(hints).compile(expression).serialize())
        except (RuntimeError, ValueError) as error:
            raise CelSyntaxError(tidy_message(str(error))) from error
        tree = cel_ast.parse_tree(serialized)
        # The offset of each node by its id: positions are field 4 of the source info, which is field 5.
        positions = [
            dict(cel_ast.read_fields(entry))
            for number, info in tree.rest
            if number == 5
            for at, entry in cel_ast.read_fields(info)
            if at == 4
        ]
        self._places: dict[int, int] = {pair.get(1, 0): pair.get(2, 0) for pair in positions}
        self._scopes: list[dict[str, CelType]] = [dict(variables)]
        self.faults: list[tuple[int, str]] = []
        self.types: dict[int, CelType] = {}
        self.root = tree.root
        self.type = self._type_of(tree.root)

    def _note_fault(self, node: Node, why: str) -> CelType:
        self.faults.append((self._places.get(node.id, 0), why))
        return DYN

    def _type_of(self, node: Node) -> CelType:
        node_type = self.types[node.id] = _OF[node.kind](self, node)
        return node_type

    def _constant_type(self, node: Node) -> CelType:
        return _CONSTANTS.get(node.fields[0][0], DYN) if node.fields else DYN

    def _variable_type(self, node: Node) -> CelType:
        name = node.text(1)
        return next((scope[name] for scope in reversed(self._scopes) if name in scope), DYN)

    def _select_type(self, node: Node) -> CelType:
        operand = node.child(1)
        tested = any(at == 3 and value for at, value in node.fields)
        selected = self._member_type(node, self._type_of(operand) if operand else DYN, node.text(2))
        return BOOL if tested else selected

    def _member_type(self, node: Node, of: CelType, name: str) -> CelType:
        """Returns the type of a member of a value of the type `of`; notes a fault if there is no such member."""
        if of.kind == "optional":
            return CelType(kind="optional", element=self._member_type(node, of.element or DYN, name))
        if of.kind == "object" and of.fields is not None:
            if (selected := of.fields(name)) is not None:
                return selected
            is_opaque = of.name.startswith(_QUESTIONS)
            why = f"unexpected failed resolution of '{of}'" if is_opaque else f"undefined field '{name}'"
            return self._note_fault(node, why)
        if of.kind == "map":
            return of.element or DYN
        if of.kind == "dyn":
            return DYN
        return self._note_fault(node, f"type '{of}' does not support field selection")

    def _call_type(self, node: Node) -> CelType:
        """Returns the type of a call's result; notes a fault if no overload takes its arguments."""
        name, target = node.text(2), node.child(1)
        arguments = node.children(3)
        if name == "_?._" and len(arguments) == 2:
            field = arguments[1]
            name = bytes(field.fields[0][1]).decode() if field.kind == CONST and field.fields else ""
            selected = self._member_type(node, self._type_of(arguments[0]), name)
            return selected if selected.kind == "optional" else CelType(kind="optional", element=selected)
        member = self._type_of(target) if target is not None else None
        types = [self._type_of(argument) for argument in arguments]
        result = _RESULTS.get(name)
        call_type = result(types if member is None else [member, *types]) if result else DYN
        if call_type is not None:
            return call_type
        applied = f"({', '.join(map(str, types))})"
        label = applied if member is None else f"{member}.{applied}"
        return self._note_fault(node, f"found no matching overload for '{name}' applied to '{label}'")

    def _list_type(self, node: Node) -> CelType:
        return list_of(_common_type([self._type_of(element) for element in node.children(1)]))

    def _map_literal(self, node: Node) -> CelType:
        """Returns the type of a map literal, by the common type of its values; its keys are checked, too."""
        values = []
        for _, entry in node.fields:
            if isinstance(entry, cel_ast.Entry):
                nodes = {at: child for at, child in entry.fields if isinstance(child, Node)}
                if _MAP_KEY in nodes:
                    self._type_of(nodes[_MAP_KEY])
                values.append(self._type_of(nodes[_MAP_VALUE]))
        return map_of(_common_type(values))

    def _comprehension_type(self, node: Node) -> CelType:
        """Returns the type of a loop's result, with its variables in scope for the loop only."""
        over, init = node.child(2), node.child(4)
        step, condition, result = node.child(6), node.child(5), node.child(7)
        ranged = self._type_of(over) if over else DYN
        if ranged.kind not in ("list", "map", "dyn") and over is not None:
            why = f"expression of type '{ranged}' cannot be range of a comprehension (must be list, map, or dynamic)"
            self._note_fault(over, why)
        item = {"list": ranged.element or DYN, "map": STRING}.get(ranged.kind, DYN)
        start = self._type_of(init) if init else DYN
        accumulator = node.text(3)
        self._scopes.append({node.text(1): item, accumulator: start})
        if condition is not None:
            self._type_of(condition)
        stepped = self._type_of(step) if step else DYN
        if start.kind == "list" and start.element == DYN and stepped.kind == "list":
            self._scopes[-1][accumulator] = stepped
        comprehension_type = self._type_of(result) if result else DYN
        self._scopes.pop()
        return comprehension_type


def _common_type(types: list[CelType]) -> CelType:
    first = types[0] if types else DYN
    return first if all(cel_type == first for cel_type in types) else DYN


_CONSTANTS = {1: NULL, 2: BOOL, 3: INT, 4: UINT, 5: DOUBLE, 6: STRING, 7: BYTES, 8: DURATION, 9: TIMESTAMP}
_OF: dict[int, Callable[[_Checker, Node], CelType]] = {
    CONST: _Checker._constant_type,
    IDENT: _Checker._variable_type,
    SELECT: _Checker._select_type,
    CALL: _Checker._call_type,
    LIST: _Checker._list_type,
    STRUCT: _Checker._map_literal,
    COMPREHENSION: _Checker._comprehension_type,
}

# --- overloads --------------------------------------------------------------------------------------------------------
# The type of a function's result by the types of its arguments (a member function's receiver is the first), or None
# if there is no such overload. cel-spec, doc/langdef.md: "List of Standard Definitions".

Result = Callable[[list[CelType]], "CelType | None"]
_NUMBERS = ("int", "uint", "double")
_ORDERED = (*_NUMBERS, "string", "bytes", "bool", "timestamp", "duration")


def _are_compatible(a: CelType, b: CelType) -> bool:
    """Returns whether values of both types may be compared; dyn goes with everything."""
    if "dyn" in (a.kind, b.kind):
        return True
    if "null" in (a.kind, b.kind):
        other = b if a.kind == "null" else a
        return other.kind not in _ORDERED or other.kind in ("timestamp", "duration")
    if a.kind != b.kind:
        return False
    if a.kind == "object":
        return a.name == b.name
    return _are_compatible(a.element or DYN, b.element or DYN)


def _wider_type(a: CelType, b: CelType) -> CelType:
    """Returns the type of either; an empty list, or one of unknown items, takes the other's type."""
    if a.kind == b.kind == "list":
        return b if (a.element or DYN) == DYN else a
    return a if a == b else DYN


def _equality_type(types: list[CelType]) -> CelType | None:
    return BOOL if _are_compatible(types[0], types[1]) else None


def _ordering_type(types: list[CelType]) -> CelType | None:
    """Returns the type of `<` and its like for these operands, None if they have no order."""
    kinds = [cel_type.kind for cel_type in types]
    if "dyn" in kinds:
        return BOOL if all(kind in (*_ORDERED, "dyn") for kind in kinds) else None
    # Kubernetes compares numbers of different types (its environments have cross-type comparisons).
    if all(kind in _NUMBERS for kind in kinds):
        return BOOL
    return BOOL if kinds[0] == kinds[1] and kinds[0] in _ORDERED else None


_SUMS: dict[tuple[str, str], CelType] = {
    ("timestamp", "duration"): TIMESTAMP, ("duration", "timestamp"): TIMESTAMP, ("duration", "duration"): DURATION,
    ("string", "string"): STRING, ("bytes", "bytes"): BYTES,
}  # fmt: skip
_DIFFERENCES: dict[tuple[str, str], CelType] = {
    ("timestamp", "duration"): TIMESTAMP, ("timestamp", "timestamp"): DURATION, ("duration", "duration"): DURATION,
}  # fmt: skip


def _arithmetic_rule(
    table: Mapping[tuple[str, str], CelType], numbers: tuple[str, ...], *, lists: bool = False
) -> Result:
    """Returns the rule of an operator: numbers of one kind, `table` for other pairs, two lists if `lists`."""

    def type_of_operands(types: list[CelType]) -> CelType | None:
        """Returns the type of the result for two operands, None if there is no such operator."""
        a, b = types
        if "dyn" in (a.kind, b.kind):
            return DYN
        if a.kind == b.kind and a.kind in numbers:
            return a
        if lists and a.kind == b.kind == "list":
            if not _are_compatible(a, b):
                return None
            return _wider_type(a, b)
        return table.get((a.kind, b.kind))

    return type_of_operands


def _argument_rule(result: CelType, *kinds: tuple[str, ...]) -> Result:
    """Returns the rule of a function whose arguments are each of one of some kinds; others are not evaluated."""

    def rule(types: list[CelType]) -> CelType | None:
        if len(types) != len(kinds):
            return result
        return result if all(t.kind in (*k, "dyn") for t, k in zip(types, kinds, strict=True)) else None

    return rule


def _conditional_type(types: list[CelType]) -> CelType | None:
    if types[0].kind not in ("bool", "dyn") or not _are_compatible(types[1], types[2]):
        return None
    return _wider_type(types[1], types[2])


def _index_type(types: list[CelType]) -> CelType | None:
    """Returns the type of `of[key]`, None if the operands do not allow it."""
    of, key = types
    accepted = {"list": ("int", "uint", "double", "dyn"), "map": ("string", "dyn")}
    if of.kind in ("dyn", "optional"):
        return DYN
    return (of.element or DYN) if key.kind in accepted.get(of.kind, ()) else None


def _membership_type(types: list[CelType]) -> CelType | None:
    """Returns the type of `item in list` or `key in map`, None if the item cannot be one of them."""
    item, of = types
    if of.kind == "list":
        return BOOL if _are_compatible(item, of.element or DYN) else None
    if of.kind == "map":
        return BOOL if item.kind in ("string", "dyn") else None
    return BOOL if of.kind == "dyn" else None


def _or_value(types: list[CelType]) -> CelType | None:
    of, other = types
    if of.kind != "optional" or of.element is None:
        return DYN
    return of.element if _are_compatible(of.element, other) else None


def _question_rule(result: CelType, *receivers: CelType, texts: int = 1) -> Result:
    """Returns the rule of a member function of questions about rights, which takes `texts` strings."""

    def rule(types: list[CelType]) -> CelType | None:
        is_receiver = types[0].kind == "dyn" or types[0] in receivers
        takes = len(types) == 1 + texts and all(each.kind in ("string", "dyn") for each in types[1:])
        return result if is_receiver and takes else None

    return rule


_LOGIC, _TEXT = ("bool",), ("string",)
_SIZED = ("string", "bytes", "list", "map")
_RESULTS: dict[str, Result] = {
    "_==_": _equality_type,
    "_!=_": _equality_type,
    **dict.fromkeys(("_<_", "_<=_", "_>_", "_>=_"), _ordering_type),
    "_&&_": _argument_rule(BOOL, _LOGIC, _LOGIC),
    "_||_": _argument_rule(BOOL, _LOGIC, _LOGIC),
    "!_": _argument_rule(BOOL, _LOGIC),
    "_?_:_": _conditional_type,
    "_+_": _arithmetic_rule(_SUMS, _NUMBERS, lists=True),
    "_-_": _arithmetic_rule(_DIFFERENCES, _NUMBERS),
    "_*_": _arithmetic_rule({}, _NUMBERS),
    "_/_": _arithmetic_rule({}, _NUMBERS),
    "_%_": _arithmetic_rule({}, ("int", "uint")),
    "_[_]": _index_type,
    "@in": _membership_type,
    "size": _argument_rule(INT, _SIZED),
    **dict.fromkeys(("startsWith", "endsWith", "matches"), _argument_rule(BOOL, _TEXT, _TEXT)),
    "contains": _argument_rule(BOOL, _TEXT, _TEXT),
    **dict.fromkeys(("lowerAscii", "upperAscii", "trim"), _argument_rule(STRING, _TEXT)),
    "orValue": _or_value,
    "hasValue": lambda _: BOOL,
    "int": lambda _: INT,
    "double": lambda _: DOUBLE,
    "string": lambda _: STRING,
    "timestamp": lambda _: TIMESTAMP,
    "duration": lambda _: DURATION,
    "path": _question_rule(_PATH_CHECK, AUTHORIZER),
    "group": _question_rule(_GROUP_CHECK, AUTHORIZER),
    "serviceAccount": _question_rule(AUTHORIZER, AUTHORIZER, texts=2),
    "resource": _question_rule(_RESOURCE_CHECK, _GROUP_CHECK),
    **dict.fromkeys(
        ("subresource", "namespace", "name", "fieldSelector", "labelSelector"),
        _question_rule(_RESOURCE_CHECK, _RESOURCE_CHECK),
    ),
    "check": _question_rule(_DECISION, _RESOURCE_CHECK, _PATH_CHECK),
    **dict.fromkeys(("allowed", "errored"), _question_rule(BOOL, _DECISION, texts=0)),
    **dict.fromkeys(("reason", "error"), _question_rule(STRING, _DECISION, texts=0)),
}


def result_type(expression: str, variables: Mapping[str, CelType]) -> CelType:
    """Returns the type of the value of `expression`, dyn where it is not known. Raises CelSyntaxError."""
    return _Checker(expression, variables).type


# What one character costs to be traversed, and one of a regular expression (cel-go, common/cost.go).
_TRAVERSAL, _PATTERN = 0.1, 0.25
_LIST_COST, _MAP_COST = 10, 30
MOST = (1 << 64) - 1


def most_cost(expression: str, variables: Mapping[str, CelType]) -> int:
    """Returns the greatest estimated cost of one evaluation. Raises CelSyntaxError."""
    return min(_Estimate(_Checker(expression, variables)).total, MOST)


def _scale_size(size: int, factor: float) -> int:
    return ceil(size * factor)


class _Estimate:
    def __init__(self, of: _Checker) -> None:
        self._types = of.types
        self._sizes: dict[int, int] = {}
        self._unsized: list[str] = []  # variables over a computed list, whose items cel-go takes for empty
        self.total = self._cost_of(of.root)

    def _kind_of(self, node: Node) -> str:
        return self._types[node.id].kind

    def _size_of(self, node: Node) -> int:
        """Returns the greatest size of a value: characters of a text, members of a list or map."""
        if node.id in self._sizes:
            return self._sizes[node.id]
        if node.kind == CONST:
            texts = [value for at, value in node.fields if at in (6, 7)]
            return len(bytes(texts[0]).decode(errors="replace")) if texts else 1
        if node.kind == LIST:
            return len(node.children(1))
        if node.kind == IDENT and node.text(1) in self._unsized:
            return 0
        return self._types[node.id].most

    def _cost_of(self, node: Node) -> int:
        """Returns the greatest cost of an expression, in the units of cel-go's checker."""
        if node.kind == IDENT:
            return 1
        if node.kind == SELECT:
            operand = node.child(1)
            if operand is None:
                return 0
            cost = self._cost_of(operand)
            # `has(operand.field)` costs nothing more than its operand.
            tested = any(at == 3 and value for at, value in node.fields)
            return cost if tested or self._kind_of(operand) not in ("map", "object") else cost + 1
        if node.kind == CALL:
            name, target, arguments = node.text(2), node.child(1), node.children(3)
            costs = [self._cost_of(argument) for argument in arguments]
            if name in ("_&&_", "_||_"):
                return sum(costs)
            if name == "_?_:_":
                self._sizes[node.id] = max(map(self._size_of, arguments[1:]))
                return costs[0] + max(costs[1:])  # of the dearer branch
            of_target = self._cost_of(target) if target is not None else 0
            return of_target + sum(costs) + self._function_cost(node, name, target, arguments)
        if node.kind == LIST:
            return _LIST_COST + sum(map(self._cost_of, node.children(1)))
        if node.kind == STRUCT:
            values = [child for _, entry in node.fields if isinstance(entry, Entry) for _, child in entry.fields]
            return _MAP_COST + sum(self._cost_of(value) for value in values if isinstance(value, Node))
        return self._comprehension_cost(node) if node.kind == COMPREHENSION else 0

    def _function_cost(self, node: Node, name: str, target: Node | None, arguments: list[Node]) -> int:
        """Returns a function's own cost by its arguments' sizes (k8s.io/apiserver/pkg/cel/library/cost.go)."""
        sizes = [self._size_of(argument) for argument in arguments]
        kinds = [self._kind_of(argument) for argument in arguments]
        target_size = self._size_of(target) if target is not None else 0
        if name in ("_==_", "_!=_"):
            return _scale_size(min(sizes), _TRAVERSAL)
        if name in ("_<_", "_<=_", "_>_", "_>=_"):
            return _scale_size(min(sizes), _TRAVERSAL) if kinds[0] in ("string", "bytes") else 1
        if name == "_+_" and kinds[0] in ("string", "bytes", "list"):
            self._sizes[node.id] = sum(sizes)
            return 1 if kinds[0] == "list" else _scale_size(sum(sizes), _TRAVERSAL)
        if name == "@in" and kinds[1] == "list":
            return sizes[1]
        if target is None or (not arguments and name not in _OF_TEXT):
            return 1
        if name in ("startsWith", "endsWith"):
            return _scale_size(sizes[0], _TRAVERSAL)
        if name == "contains":
            return _scale_size(target_size, _TRAVERSAL) * _scale_size(sizes[0], _TRAVERSAL)
        if name == "matches":
            return _scale_size(target_size + 1, _TRAVERSAL) * _scale_size(sizes[0], _PATTERN)
        if name in _OF_TEXT:
            self._sizes[node.id] = target_size
            return _scale_size(target_size, _TRAVERSAL)
        return 1

    def _comprehension_cost(self, node: Node) -> int:
        """Returns the cost of a loop: the cost of one iteration times the maximum number of iterations."""
        over, init, condition, step, result = (node.child(number) for number in (2, 4, 5, 6, 7))
        once = sum(self._cost_of(part) for part in (over, init, result) if part is not None)
        computed = [node.text(1)] if over is not None and over.kind == COMPREHENSION else []
        self._unsized += computed
        loop = sum(self._cost_of(part) for part in (condition, step) if part is not None)
        del self._unsized[len(self._unsized) - len(computed) :]
        times = self._size_of(over) if over is not None else 0
        if init is not None and init.kind == LIST:
            self._sizes[node.id] = times
        return once + times * loop


_OF_TEXT = frozenset({"lowerAscii", "upperAscii", "substring", "trim"})
