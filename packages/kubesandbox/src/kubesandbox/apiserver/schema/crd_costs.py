"""Limits the cost of the CEL rules of a schema together: estimated when a definition is created, as a real server does.

In: a schema whose rules compile, and its path. Out: FieldErrors in the words of apiextensions-apiserver. A rule counts
as often as its place in an object can occur: limits of lists and maps multiply, without them the size of a request
counts (pkg/apis/apiextensions/validation/cel_validation.go).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kubekit.lang.cel import CelError
from kubekit.lang.cel_types import DYN, MOST, CelType, most_cost
from kubesandbox.apiserver.schema.cel_declarations import REQUEST_BYTES, declared_type
from kubesandbox.apiserver.schema.field_errors import FieldError, forbidden
from kubesandbox.apiserver.schema.structural import SchemaError, SchemaNode, compile_node

JSON = dict[str, Any]
_OF_A_RULE, _OF_A_SCHEMA = 10_000_000, 100_000_000
_KEY = "x-kubernetes-validations"
_ADVICE = (
    "(try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, and strings are "
    "declared)"
)


def cost_faults(schema: JSON, path: str) -> Iterator[FieldError]:
    """Yields a fault for each rule that may cost too much, and for all of a schema together."""
    try:
        root = compile_node(schema)
    except SchemaError:
        return
    expensive: list[tuple[int, str]] = []
    total = 0
    for expression_path, label, cost in _expression_costs(root, path, 1, root=True):
        if cost > _OF_A_RULE:
            yield forbidden(expression_path, _exceeds_text(f"estimated {label} cost", cost, _OF_A_RULE))
        total = min(total + cost, MOST)
        if cost >= _OF_A_SCHEMA // 100:
            expensive.append((cost, expression_path))
    if total > _OF_A_SCHEMA:
        for _, expression_path in sorted(expensive, key=lambda entry: -entry[0])[:4]:
            why = "contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema"
            yield forbidden(expression_path, why)
        total_label = f"{_KEY} estimated rule cost total for entire OpenAPIv3 schema"
        yield forbidden(path, _exceeds_text(total_label, total, _OF_A_SCHEMA))


def _expression_costs(node: SchemaNode, path: str, times: int | None, *, root: bool) -> Iterator[tuple[str, str, int]]:
    """Yields path, label and cost of each expression; `times` is how often the node occurs, None without a limit."""
    if node.rules:
        node_type = declared_type(node, root=root or node.embedded) or DYN
        often = times if times is not None else REQUEST_BYTES // (node_type.least + 1)
        for index, rule in enumerate(node.rules):
            old = CelType("optional", node_type) if rule.optional_old_self else node_type
            variables = {"self": node_type, "oldSelf": old}
            at = f"{path}.{_KEY}[{index}]"
            yield f"{at}.rule", "rule", min(_cost_or_zero(rule.rule, variables) * often, MOST)
            if rule.message_expression:
                yield f"{at}.messageExpression", "messageExpression", _cost_or_zero(rule.message_expression, variables)
    for name, child in node.properties.items():
        yield from _expression_costs(child, f"{path}.properties[{name}]", times, root=False)
    if node.items is not None:
        yield from _expression_costs(
            node.items, f"{path}.items", _multiply_occurrences(times, node.raw.get("maxItems")), root=False
        )
    if node.additional is not None:
        often_each = _multiply_occurrences(times, node.raw.get("maxProperties"))
        yield from _expression_costs(node.additional, f"{path}.additionalProperties", often_each, root=False)


def _multiply_occurrences(times: int | None, limit: Any) -> int | None:
    return times * limit if times is not None and isinstance(limit, int) else None


def _cost_or_zero(expression: str, variables: dict[str, CelType]) -> int:
    try:
        return most_cost(expression, variables)
    except CelError:  # told elsewhere
        return 0


def _exceeds_text(label: str, cost: int, limit: int) -> str:
    factor = cost / limit
    factor_text = "more than 100x" if factor > 100 else f"{factor:f}x" if factor < 1.5 else f"{factor:.1f}x"
    return f"{label} exceeds budget by factor of {factor_text} {_ADVICE}"
