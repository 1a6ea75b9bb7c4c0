"""Validation of the CEL rules in a CustomResourceDefinition's schema: whether they compile, and what they may cost.

FieldErrors have the words of apiextensions-apiserver.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from kubekit.lang.cel import CelError
from kubekit.lang.cel_types import BOOL, DYN, MOST, STRING, CelType, most_cost, result_type, type_faults
from kubesandbox.apiserver.schema.cel_declarations import REQUEST_BYTES, declared_type
from kubesandbox.apiserver.schema.field_errors import (
    FieldError,
    Verbatim,
    forbidden,
    go_json,
    invalid,
    not_supported,
    required,
)
from kubesandbox.apiserver.schema.rules import CompiledRule
from kubesandbox.apiserver.schema.structural import Rule, SchemaError, SchemaNode, compile_node

JSON = dict[str, Any]
Errors = Iterator[FieldError]

_KEY = "x-kubernetes-validations"
_REASONS = ("FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired")
_ALTERNATIVES = ("allOf", "anyOf", "oneOf", "not")


def rule_faults(schema: JSON, path: str, uncorrelated: str) -> Errors:
    """Yields the faults of one node's rules. `uncorrelated` is the path of the list whose old items are unknown."""
    raws = schema.get("x-kubernetes-validations") or ()
    entry_faults = [
        fault for index, raw in enumerate(raws) for fault in _message_faults(schema, raw, f"{path}.{_KEY}[{index}]")
    ]
    yield from entry_faults
    if not entry_faults:
        yield from _compilation_faults(schema, path, uncorrelated)


def _message_faults(schema: JSON, raw: JSON, rule_path: str) -> Errors:
    """Yields the faults of a rule's text, message, reason and field path."""
    rule, message = raw.get("rule") or "", raw.get("message") or ""
    if not rule.strip():
        yield required(f"{rule_path}.rule", "rule is not specified")
    elif message and not message.strip():
        yield invalid(f"{rule_path}.message", message, "must be non-empty if specified")
    elif "\n" in message.strip():
        yield invalid(f"{rule_path}.message", message, "must not contain line breaks")
    elif "\n" in rule.strip() and not message:
        yield required(f"{rule_path}.message", "message must be specified if rule contains line breaks")
    expression = raw.get("messageExpression") or ""
    if expression and not expression.strip():
        yield required(f"{rule_path}.messageExpression", "messageExpression must be non-empty if specified")
    if raw.get("reason") is not None and raw["reason"] not in _REASONS:
        yield not_supported(f"{rule_path}.reason", raw["reason"], _REASONS)
    yield from _field_path_faults(schema, raw.get("fieldPath") or "", f"{rule_path}.fieldPath")


def _field_path_faults(schema: JSON, field_path: str, fault_path: str) -> Errors:
    """Yields a fault if a rule's fieldPath does not lead to a field of the schema."""
    if not field_path:
        return
    if not field_path.strip():
        yield invalid(fault_path, field_path, "must be non-empty if specified")
    if "\n" in field_path:
        yield invalid(fault_path, field_path, "must not contain line breaks")
    if not _is_path(schema, field_path):
        yield invalid(fault_path, field_path, "must be a valid path")


def _is_path(schema: JSON, field_path: str) -> bool:
    """Returns whether a path such as `.spec.size` or `['a-b']` leads to a field of the schema."""
    branch: Any = schema
    for name in _path_steps(field_path):
        branch = (branch.get("properties") or {}).get(name) or branch.get("additionalProperties")
        if not isinstance(branch, dict):
            return False
    return field_path[0] in ".["


def _path_steps(field_path: str) -> Iterator[str]:
    """Yields the names in a fieldPath such as `.spec['a.b'].c`."""
    remaining = field_path
    while remaining:
        if remaining.startswith("['"):
            name, _, remaining = remaining[2:].partition("']")
        else:
            bare = remaining[1:]
            end = min((bare.index(sign) for sign in ".[" if sign in bare), default=len(bare))
            name, remaining = bare[:end], bare[end:]
        yield name


def _compilation_faults(schema: JSON, path: str, uncorrelated: str) -> Errors:
    """Yields the faults of a node's rules that do not compile or have another type than bool."""
    raws = schema.get(_KEY) or ()
    if not raws:
        return
    try:
        # Junctors have no rules of their own, and their faults are reported elsewhere.
        node = compile_node({key: value for key, value in schema.items() if key not in _ALTERNATIVES})
    except SchemaError:
        return
    for index, (raw, rule) in enumerate(zip(raws, node.rules, strict=True)):
        rule_path = f"{path}.{_KEY}[{index}]"
        variables = _rule_variables(node, path, rule)
        try:
            why = type_faults(rule.rule, variables)
            compiled = None if why else CompiledRule(node, rule)
        except CelError as error:
            compiled, why = None, str(error)
        if compiled is None:
            yield invalid(f"{rule_path}.rule", _rule_as_go(raw), f"compilation failed: {why}")
            continue
        yield from _result_type_faults(compiled, raw, variables, rule_path)
        # Items of sets and atomic lists have no identity, so oldSelf has no value for them.
        if compiled.transition and uncorrelated:
            detail = f"oldSelf cannot be used on the uncorrelatable portion of the schema within {uncorrelated}"
            yield invalid(f"{rule_path}.rule", rule.rule, detail)


def _rule_variables(node: SchemaNode, path: str, rule: Rule) -> dict[str, CelType]:
    # A rule of the whole object, or of one within it, sees its kind and metadata.
    root = path.endswith(".openAPIV3Schema") or bool(node.raw.get("x-kubernetes-embedded-resource"))
    node_type = declared_type(node, root=root) or DYN
    return {"self": node_type, "oldSelf": CelType("optional", node_type) if rule.optional_old_self else node_type}


def _result_type_faults(
    compiled: CompiledRule, raw: Mapping[str, Any], variables: Mapping[str, CelType], rule_path: str
) -> Errors:
    """Yields a fault for a rule that is not bool, and for a messageExpression that is not text."""
    if result_type(compiled.rule.rule, variables) not in (BOOL, DYN) or compiled.program.result_type not in (
        "bool",
        "dyn",
    ):
        yield invalid(f"{rule_path}.rule", _rule_as_go(raw), "cel expression must evaluate to a bool")
    if compiled.message is None:
        return
    expression = compiled.rule.message_expression
    if why := type_faults(expression, variables):
        detail = f"messageExpression compilation failed: {why}"
        yield invalid(f"{rule_path}.messageExpression", _rule_as_go(raw), detail)
    elif result_type(expression, variables) not in (STRING, DYN) or compiled.message.result_type not in (
        "string",
        "dyn",
    ):
        yield invalid(f"{rule_path}.messageExpression", _rule_as_go(raw), "messageExpression must evaluate to a string")


def _rule_as_go(raw: Mapping[str, Any]) -> Verbatim:
    """Returns a rule as Go prints its internal type."""
    return Verbatim(
        go_json(
            {
                "Rule": raw.get("rule") or "",
                "Message": raw.get("message") or "",
                "MessageExpression": raw.get("messageExpression") or "",
                "Reason": raw.get("reason"),
                "FieldPath": raw.get("fieldPath") or "",
                "OptionalOldSelf": raw.get("optionalOldSelf"),
            }
        )
    )


# -- Costs -------------------------------------------------------------------------------------------------------------


_RULE_LIMIT, _SCHEMA_LIMIT = 10_000_000, 100_000_000
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
        if cost > _RULE_LIMIT:
            yield forbidden(expression_path, _exceeds_text(f"estimated {label} cost", cost, _RULE_LIMIT))
        total = min(total + cost, MOST)
        if cost >= _SCHEMA_LIMIT // 100:
            expensive.append((cost, expression_path))
    if total > _SCHEMA_LIMIT:
        for _, expression_path in sorted(expensive, key=lambda entry: -entry[0])[:4]:
            why = "contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema"
            yield forbidden(expression_path, why)
        total_label = f"{_KEY} estimated rule cost total for entire OpenAPIv3 schema"
        yield forbidden(path, _exceeds_text(total_label, total, _SCHEMA_LIMIT))


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
