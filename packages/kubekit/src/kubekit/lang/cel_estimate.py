"""Estimates what an expression may cost at most, from the sizes that its variables' types declare.

As cel-go's checker/cost.go estimates it for Kubernetes. Where this module cannot tell a size it takes the least, so
that its estimate is at most the real server's: nothing is refused here that is accepted there.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil

from kubekit.lang.cel_ast import CALL, COMPREHENSION, CONST, IDENT, LIST, SELECT, STRUCT, Entry, Node
from kubekit.lang.cel_types import CelType, Checked, check_types

# What one character costs to be traversed, and one of a regular expression (cel-go, common/cost.go).
_TRAVERSAL, _PATTERN = 0.1, 0.25
_LIST_COST, _MAP_COST = 10, 30
MOST = (1 << 64) - 1


def most_cost(expression: str, variables: Mapping[str, CelType]) -> int:
    """Returns the greatest estimated cost of one evaluation. Raises CelSyntaxError."""
    return min(_Estimate(check_types(expression, variables)).total, MOST)


def _scale_size(size: int, factor: float) -> int:
    return ceil(size * factor)


class _Estimate:
    def __init__(self, of: Checked) -> None:
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
            return self._select_cost(node)
        if node.kind == CALL:
            return self._call_cost(node)
        if node.kind == LIST:
            return _LIST_COST + sum(map(self._cost_of, node.children(1)))
        if node.kind == STRUCT:
            values = [child for _, entry in node.fields if isinstance(entry, Entry) for _, child in entry.fields]
            return _MAP_COST + sum(self._cost_of(value) for value in values if isinstance(value, Node))
        return self._comprehension_cost(node) if node.kind == COMPREHENSION else 0

    def _select_cost(self, node: Node) -> int:
        """Returns the cost of `operand.field`; `has(operand.field)` costs nothing more than its operand."""
        operand = node.child(1)
        if operand is None:
            return 0
        cost = self._cost_of(operand)
        tested = any(at == 3 and value for at, value in node.fields)
        return cost if tested or self._kind_of(operand) not in ("map", "object") else cost + 1

    def _call_cost(self, node: Node) -> int:
        """Returns the cost of a call with its arguments; of `? :` that of the dearer branch."""
        name, target, arguments = node.text(2), node.child(1), node.children(3)
        costs = [self._cost_of(argument) for argument in arguments]
        if name in ("_&&_", "_||_"):
            return sum(costs)
        if name == "_?_:_":
            self._sizes[node.id] = max(map(self._size_of, arguments[1:]))
            return costs[0] + max(costs[1:])
        of_target = self._cost_of(target) if target is not None else 0
        return of_target + sum(costs) + self._function_cost(node, name, target, arguments)

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
        """Returns the cost of a loop: that of one turn, times the greatest size of what it ranges over."""
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
