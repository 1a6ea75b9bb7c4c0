"""The cost limit of an evaluation, as Kubernetes counts it, and the syntax tree that counts while it is evaluated.

The engine limits iterations alone: 26 nested `cel.bind` doublings made 64 MiB of text, `map` over 9,000 items 1.3 GiB
of copies. So a compiled expression is rewritten once. Before a step whose time or memory grows with its values, the
values are paid for (`guarded`), each iteration pays for the nodes of its body, and a list that `map` or `filter` makes
is collected here, in linear time. Whatever is put into a list or a map is paid for with all that it contains; so no
value is larger than what came in and what the budget allows, also where it contains one thing a million times over.

Costs are those of cel-go's interpreter and of k8s.io/apiserver/pkg/cel/library: 1 a node, 0.1 a character that is
walked over, 0.25 a character of a regular expression times that. Values are counted whole, where Kubernetes looks at
their uppermost level.

Optional values are refused where they would become part of other values or reach a function written in Python: the
engine (0.1.3) ends the process there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from itertools import count
from typing import Any

from kubekit.lang.cel_ast import CALL, COMPREHENSION, CONST, IDENT, LIST, SELECT, STRUCT, Entry, Node, Tree
from kubekit.lang.regexp import compile_regexp

PER_CALL = 1_000_000  # the most that one evaluation costs: PerCallLimit of k8s.io/apiserver/pkg/apis/cel
PER_OBJECT = 10_000_000  # the most that all evaluations for one purpose cost: RuntimeCELCostBudget, there
# What a list or a map costs besides its items: as much memory and time as these.
_CONTAINER = 3


class Exhausted(Exception):
    """Raised by a function of an expression whose budget is spent."""


class UnusableOptional(ValueError):
    """Error raised for an expression that puts an optional value where the engine cannot have one."""


class Budget:
    """The cost that is left for several evaluations."""

    __slots__ = ("left",)

    def __init__(self, cost: int = PER_OBJECT) -> None:
        self.left: float = cost


class _Meter:
    """The cost of one evaluation, and the lists that it is collecting."""

    __slots__ = ("left", "lists", "spent")

    def __init__(self, limit: float) -> None:
        self.left = limit
        self.lists: list[list[Any]] = []
        self.spent = False

    def pay(self, cost: float) -> None:
        """Takes `cost` from the budget. Raises Exhausted when it is spent."""
        self.left -= cost
        # A function's error does not end an evaluation: `||` continues without it. So it is remembered.
        if self.left < 0:
            self.spent = True
            raise Exhausted


_METER: ContextVar[_Meter | None] = ContextVar("meter", default=None)


@contextmanager
def count_cost(budget: Budget | None) -> Iterator[Callable[[], bool]]:
    """Counts the cost of evaluations in the block; yields a function that reports whether it is over the limit."""
    limit = PER_CALL if budget is None else min(PER_CALL, budget.left)
    meter = _Meter(limit)
    before = _METER.set(meter)
    try:
        yield lambda: meter.spent
    finally:
        _METER.reset(before)
        if budget is not None:
            budget.left -= limit - max(meter.left, 0)


# The functions that pay return True, because a rewritten tree asks for it: `pay(value) ? value : false`.


def pay_cost(cost: float) -> bool:
    """Takes `cost` from the evaluation that runs, and returns True. Raises Exhausted if it has less."""
    meter = _METER.get()
    if meter is not None:
        meter.pay(cost)
    return True


def pay_for(value: Any) -> bool:
    """Takes the cost of walking over all of `value`. Raises Exhausted before it has walked much further than that."""
    meter = _METER.get()
    if meter is None:
        return True
    cost, stack = 0, [value]
    while stack and cost <= meter.left:
        each = stack.pop()
        cost += 1
        if isinstance(each, str | bytes | bytearray):
            cost += len(each) // 10
        elif isinstance(each, list):
            cost += _CONTAINER
            stack += each
        elif isinstance(each, dict):
            cost += _CONTAINER
            stack += each
            stack += each.values()
    meter.pay(cost)
    return True


def pay_for_match(text: str, pattern: str) -> bool:
    """Pays for a search in `text`, by the instructions of `pattern` if those are more than its characters."""
    pay_cost(len(pattern) // 4)
    size = max(len(pattern), compile_regexp(pattern).size)
    return pay_cost((1 + len(text)) / 10 * max(size / 4, 1))


def _pay_smaller(left: Any, right: Any) -> bool:
    """Pays for a comparison, which ends with the smaller of two texts."""
    if isinstance(left, str | bytes) and isinstance(right, str | bytes):
        return pay_cost(1 + min(len(left), len(right)) // 10)
    return pay_for(left) and pay_for(right)


def _pay_membership(item: Any, items: Any) -> bool:
    """Pays for `item in items`; a list costs by its length, a map does not."""
    if isinstance(items, list):
        pay_cost(len(items) * (1 + len(item) // 10 if isinstance(item, str | bytes) else 1))
        for member in items:
            if isinstance(member, list | dict):
                pay_for(member)
    return pay_for(item)


def _pay_replace(text: str, old: str, new: str, limit: int = -1) -> bool:
    places = text.count(old) if limit < 0 else min(text.count(old), limit)
    return pay_cost(1 + (2 * len(text) + len(old) + places * len(new)) // 10)


def _pay_join(items: list[Any], separator: str = "") -> bool:
    pay_cost(len(items))
    return pay_cost(sum(len(item) for item in items if isinstance(item, str)) / 5 + len(items) * len(separator) / 5)


def _pay_split(text: str, separator: str, limit: int = -1) -> bool:
    parts = text.count(separator) + 1
    return pay_cost(1 + len(text) // 5 + (parts if limit < 0 else min(parts, limit)))


def _pay_format(text: str, values: list[Any]) -> bool:
    # A number has up to a thousand digits behind its point.
    return pay_cost(1 + len(text) // 10 + 110 * text.count("%")) and pay_for(values)


def _lists() -> list[list[Any]]:
    """Returns the lists that the evaluation is collecting. Raises Exhausted without a budget."""
    meter = _METER.get()
    if meter is None:
        raise Exhausted
    return meter.lists


def _new_list(_zero: int) -> int:
    lists = _lists()
    lists.append([])
    return len(lists) - 1


def _collect_item(number: int, item: Any) -> int:
    """Appends an item to the list of loop `number` after paying for it. Raises Exhausted."""
    lists = _lists()
    pay_for(item)
    lists[number].append(item)
    return number


# Name, parameters, result, function; the @ keeps them out of expressions, whose names cannot have one.
HOOKS: tuple[tuple[str, tuple[str, ...], str, Callable[..., Any]], ...] = (
    ("@tick", ("int",), "bool", pay_cost),
    ("@pay", ("dyn",), "bool", pay_for),
    ("@pay_smaller", ("dyn", "dyn"), "bool", _pay_smaller),
    ("@pay_membership", ("dyn", "dyn"), "bool", _pay_membership),
    ("@pay_match", ("string", "string"), "bool", pay_for_match),
    ("@pay_replace", ("string", "string", "string"), "bool", _pay_replace),
    ("@pay_replace", ("string", "string", "string", "int"), "bool", _pay_replace),
    ("@pay_join", ("list",), "bool", _pay_join),
    ("@pay_join", ("list", "string"), "bool", _pay_join),
    ("@pay_split", ("string", "string"), "bool", _pay_split),
    ("@pay_split", ("string", "string", "int"), "bool", _pay_split),
    ("@pay_format", ("string", "list"), "bool", _pay_format),
    ("@new_list", ("int",), "int", _new_list),
    ("@push", ("int", "dyn"), "int", _collect_item),
    ("@finished", ("int",), "list", lambda number: _lists()[number]),
)

# Functions that are paid for by a separate hook, with all their arguments.
_SPECIAL = {
    "matches": "@pay_match",
    "replace": "@pay_replace",
    "join": "@pay_join",
    "split": "@pay_split",
    "format": "@pay_format",
    "@in": "@pay_membership",
    **dict.fromkeys(("_==_", "_!=_", "_<_", "_<=_", "_>_", "_>=_"), "@pay_smaller"),
}
# Functions whose time and memory do not grow with their values.
_FREE = frozenset(
    {"_?_:_", "_&&_", "_||_", "!_", "-_", "_-_", "_*_", "_/_", "_%_", "_[_]", "_[?_]", "_?._", "type", "dyn"}
    | {"@not_strictly_false", "hasValue", "value", "or", "orValue", "optional.of", "optional.ofNonZeroValue"}
    | {"optional.none", "math.@max", "math.@min", "@push"}
)
# Which arguments of a function, the target first, may be optional; of a condition if the result is one.
_OPTIONAL_ARGUMENTS = {
    **dict.fromkeys(("hasValue", "value", "orValue", "_?._", "_[?_]", "type"), (0,)),
    **dict.fromkeys(("or", "_==_", "_!=_"), (0, 1)),
}
_UNUSED = "#unused"
_COMPARISONS = frozenset(name for name, hook in _SPECIAL.items() if hook in ("@pay_smaller", "@pay_membership"))


def add_cost_hooks(tree: Tree, foreign: frozenset[str]) -> int:
    """Rewrites `tree` so that it counts its cost; returns what it costs outside of loops.

    The functions `foreign` are paid for by themselves. Raises UnusableOptional, and RegexpError for an expression with
    a constant pattern that is not one.
    """
    nodes = [tree.root]
    while nodes:
        for child, allowed in _children_and_optionals(tree, nodes.pop()):
            if tree.kind(child) == "optional" and not allowed:
                raise UnusableOptional("an optional value cannot be used here; take its value first, by orValue()")
            nodes.append(child)
    own_count = tree.root.count()
    numbers = count(max((0, *_node_ids(tree.root))) + 1)
    tree.root = _Rewriting(tree, foreign, numbers).rewrite(tree.root)
    return own_count


def _node_ids(node: Node) -> Iterator[int]:
    yield node.id
    for child in _child_nodes(node):
        yield from _node_ids(child)


def _child_nodes(node: Node) -> Iterator[Node]:
    """Yields the direct child nodes of an AST node."""
    for _, value in node.fields:
        if isinstance(value, Node):
            yield value
        elif isinstance(value, Entry):
            yield from (child for _, child in value.fields if isinstance(child, Node))


def _target_and_arguments(call: Node) -> list[Node]:
    return [*call.children(1), *call.children(3)]


class _Rewriting:
    def __init__(self, tree: Tree, foreign: frozenset[str], numbers: Iterator[int]) -> None:
        self._tree, self._foreign, self._numbers = tree, foreign, numbers

    def rewrite(self, node: Node, *, looped: bool = False) -> Node:
        """Returns the expression in place of `node`, with everything below it rewritten."""
        if node.kind == COMPREHENSION:
            return self._rewrite_comprehension(node, looped=looped)
        rewritten = {id(child): self.rewrite(child, looped=looped) for child in _child_nodes(node)}
        # What is asked of types and constants is asked of the nodes as they were written.
        if node.kind == CALL:
            return self._rewrite_call(node, rewritten)
        for at, (number, value) in enumerate(node.fields):
            if isinstance(value, Entry):
                value.fields = [
                    (no, self._paid_element(field, rewritten) if no in (3, 4) else field) for no, field in value.fields
                ]
            elif isinstance(value, Node):
                node.fields[at] = (
                    number,
                    self._paid_element(value, rewritten) if node.kind == LIST else rewritten[id(value)],
                )
        return node

    def _paid_element(self, was: Node, rewritten: dict[int, Node]) -> Node:
        """Returns an element of a list or a map, paid for unless its size is known."""
        return self._paid_value(rewritten[id(was)]) if self._may_be_large(was) else rewritten[id(was)]

    def _may_be_large(self, node: Node) -> bool:
        return self._tree.kind(node) not in ("scalar", "optional") and not _is_constant(node)

    def _rewrite_call(self, node: Node, rewritten: dict[int, Node]) -> Node:
        """Returns a call whose arguments are paid for; `rewritten` has the rewritten ones by the ids of the old."""
        name, arguments = node.text(2), _target_and_arguments(node)
        # A constant that is not a pattern is refused when the expression is compiled, as by Kubernetes.
        if name in ("matches", "find", "findAll") and len(arguments) > 1 and arguments[1].kind == CONST:
            compile_regexp(arguments[1].text(6))
        special = _SPECIAL.get(name)
        paid = name not in _FREE and name not in self._foreign and special is None and name != "size"
        names: list[tuple[str, Node]] = []
        paying = special is not None and self._must_be_paid(name, arguments)
        for at, (number, value) in enumerate(node.fields):
            if not isinstance(value, Node):
                continue
            new = rewritten[id(value)]
            if paying:
                new = self._repeatable(new, names)
            elif (paid and self._may_be_large(value)) or (name == "size" and self._tree.kind(value) in ("text", "dyn")):
                new = self._paid_value(new, only_text=name == "size" and self._tree.kind(value) == "dyn")
            node.fields[at] = (number, new)
        if not paying or special is None:
            return node
        return self._bound(names, self._if_node(self._call_node(special, *_target_and_arguments(node)), node))

    def _must_be_paid(self, name: str, arguments: list[Node]) -> bool:
        """Returns whether a call with a separate hook must be paid for."""
        if name not in _COMPARISONS:
            return True
        if name == "@in":
            return self._tree.kind(arguments[1]) != "map" and not (
                _is_constant(arguments[1]) and arguments[1].count() < 100
            )
        # A comparison with what is constant is as small as that.
        return all(self._may_be_large(argument) for argument in arguments)

    def _rewrite_comprehension(self, node: Node, *, looped: bool) -> Node:
        """Returns the loop with each turn paid for; `looped` is whether it is inside of another one."""
        parts = {number: value for number, value in node.fields if isinstance(value, Node)}
        iterates = node.text(1) != _UNUSED
        nodes = parts[5].count() + parts[6].count()
        collected = self._collecting_step(node, parts)
        new: dict[int, Node] = {}
        for number, value in parts.items():
            inside = looped or (iterates and number in (5, 6))
            new[number] = self.rewrite(value, looped=inside)
        if collected is not None:
            # The result is a name, which was not rewritten; the step is.
            new[4] = self._call_node("@new_list", self._int_node(0))
            new[7] = self._call_node("@finished", new[7])
        if iterates:
            new[5] = self._if_node(self._call_node("@tick", self._int_node(nodes)), new[5])
            if looped:
                # The engine may copy the items of an inner loop before the first is looked at.
                names: list[tuple[str, Node]] = []
                value = self._repeatable(new[2], names)
                sized = self._new_node(CALL, [(2, b"size"), (3, value)])
                new[2] = self._bound(names, self._if_node(self._call_node("@tick", sized), value))
        node.fields = [(number, new.get(number, value)) for number, value in node.fields]
        return node

    def _collecting_step(self, node: Node, parts: dict[int, Node]) -> Node | None:
        """Turns the step `list + [item]` of map and filter into a call that collects; None for another step."""
        accumulator = node.text(3)
        if parts[4].kind != LIST or parts[4].fields or not _is_name(parts[7], accumulator):
            return None
        step = parts[6]
        if step.kind == CALL and step.text(2) == "_?_:_" and _is_name(step.children(3)[2], accumulator):
            step = step.children(3)[1]
        if step.kind != CALL or step.text(2) != "_+_":
            return None
        left, right = step.children(3)
        if not _is_name(left, accumulator) or right.kind != LIST or len(right.children(1)) != 1:
            return None
        step.fields = [(2, b"@push"), (3, left), (3, right.children(1)[0])]
        return step

    # --- new nodes ---

    def _new_node(self, kind: int, fields: list[tuple[int, Any]]) -> Node:
        return Node(kind, next(self._numbers), fields)

    def _call_node(self, name: str, *arguments: Node) -> Node:
        return self._new_node(CALL, [(2, name.encode()), *((3, argument) for argument in arguments)])

    def _int_node(self, value: int) -> Node:
        return self._new_node(CONST, [(3, value)])

    def _if_node(self, condition: Node, value: Node) -> Node:
        """Returns `condition ? value : false`; a condition that is an error is the result."""
        return self._call_node("_?_:_", condition, value, self._new_node(CONST, [(2, 0)]))

    def _paid_value(self, value: Node, *, only_text: bool = False) -> Node:
        """Returns `value`, paid for before it is used; with `only_text` only if it is a text."""
        names: list[tuple[str, Node]] = []
        value = self._repeatable(value, names)
        result = self._if_node(self._call_node("@pay", value), value)
        if only_text:
            kind = self._new_node(CALL, [(2, b"type"), (3, value)])
            is_text = self._new_node(CALL, [(2, b"_==_"), (3, kind), (3, self._new_node(IDENT, [(1, b"string")]))])
            result = self._call_node("_?_:_", is_text, result, value)
        return self._bound(names, result)

    def _repeatable(self, value: Node, names: list[tuple[str, Node]]) -> Node:
        """Returns an expression for `value` that may be evaluated twice; any other value is bound in `names`."""
        member: Node | None = value
        # A member of a variable costs next to nothing to look up.
        while member is not None and member.kind == SELECT and all(number != 3 for number, _ in member.fields):
            member = member.child(1)
        if value.kind == CONST or (member is not None and member.kind == IDENT):
            return value
        name = f"@value{next(self._numbers)}"
        names.append((name, value))
        return self._new_node(IDENT, [(1, name.encode())])

    def _bound(self, names: list[tuple[str, Node]], result: Node) -> Node:
        """Returns `cel.bind(name, value, result)` for each of the names, in the engine's own form."""
        for name, value in reversed(names):
            fields: list[tuple[int, Any]] = [
                (1, _UNUSED.encode()),
                (2, self._new_node(LIST, [])),
                (3, name.encode()),
                (4, value),
                (5, self._new_node(CONST, [(2, 0)])),
                (6, self._new_node(IDENT, [(1, name.encode())])),
                (7, result),
            ]
            result = self._new_node(COMPREHENSION, fields)
        return result


def _is_name(node: Node, name: str) -> bool:
    return node.kind == IDENT and node.text(1) == name


def _is_constant(node: Node) -> bool:
    """Returns whether `node` is a literal, or a list of literals."""
    return node.kind == CONST or (node.kind == LIST and all(child.kind == CONST for child in node.children(1)))


def _children_and_optionals(tree: Tree, node: Node) -> Iterator[tuple[Node, bool]]:
    """Yields each child of `node`, and whether it may be an optional value."""
    is_optional = tree.kind(node) == "optional"
    if node.kind == CALL:
        name = node.text(2)
        positions = (1, 2) if name == "_?_:_" and is_optional else _OPTIONAL_ARGUMENTS.get(name, ())
        yield from ((child, at in positions) for at, child in enumerate(_target_and_arguments(node)))
    elif node.kind == LIST:
        # Indices of `[?x]`, whose values are put in without the optional around them.
        spread = node.numbers(2)
        yield from ((child, at in spread) for at, child in enumerate(node.children(1)))
    elif node.kind == STRUCT:
        for _, value in node.fields:
            if isinstance(value, Entry):
                spreads = any(number == 5 and is_optional for number, is_optional in value.fields)
                yield from (
                    (child, spreads and number == 4) for number, child in value.fields if isinstance(child, Node)
                )
    elif node.kind == COMPREHENSION:
        # cel.bind() and optMap() name a value; a loop over optional values names none.
        is_unused = node.text(1) == _UNUSED
        for number, value in node.fields:
            if isinstance(value, Node):
                yield value, (number in (4, 6) and is_unused) or (number == 7 and is_optional)
    else:
        yield from ((child, True) for child in _child_nodes(node))
