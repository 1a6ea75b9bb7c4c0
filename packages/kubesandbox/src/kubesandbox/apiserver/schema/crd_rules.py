"""Validation of the CEL rules in a CustomResourceDefinition's schema: whether they compile, and what they may cost.

FieldErrors have the words of apiextensions-apiserver.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from kubekit.lang.cel import CelError
from kubekit.lang.cel_types import BOOL, DYN, MOST, STRING, CelType, most_cost, result_type, type_faults
from kubesandbox.apiserver.schema import field_errors as field
from kubesandbox.apiserver.schema.cel_declarations import REQUEST_BYTES, declared_type
from kubesandbox.apiserver.schema.rules import CompiledRule
from kubesandbox.apiserver.schema.structural import SchemaError, SchemaNode, compile_node

JSON = dict[str, Any]
Errors = Iterator[field.FieldError]

_KEY = "x-kubernetes-validations"
_REASONS = ("FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired")
_ALTERNATIVES = ("allOf", "anyOf", "oneOf", "not")


def rule_faults(schema: JSON, path: str, uncorrelated: str) -> Errors:
    """Yields the faults of one node's rules. `uncorrelated` is the path of the list whose old items are unknown."""
    raws = schema.get(_KEY) or ()
    entry_faults = [
        fault for index, raw in enumerate(raws) for fault in _message_faults(schema, raw, f"{path}.{_KEY}[{index}]")
    ]
    yield from entry_faults
    if entry_faults or not raws:
        return
    try:
        # Junctors have no rules, and their faults are reported elsewhere.
        node = compile_node({key: value for key, value in schema.items() if key not in _ALTERNATIVES})
    except SchemaError:
        return
    # A rule of the whole object, or of one within it, sees its kind and metadata.
    root = path.endswith(".openAPIV3Schema") or bool(node.raw.get("x-kubernetes-embedded-resource"))
    node_type = declared_type(node, root=root) or DYN
    for index, (raw, rule) in enumerate(zip(raws, node.rules, strict=True)):
        rule_path = f"{path}.{_KEY}[{index}]"
        old = CelType(kind="optional", element=node_type) if rule.optional_old_self else node_type
        variables = {"self": node_type, "oldSelf": old}
        try:
            why = type_faults(rule.rule, variables)
            compiled = None if why else CompiledRule(node, rule)
        except CelError as error:
            compiled, why = None, str(error)
        if compiled is None:
            yield field.invalid(f"{rule_path}.rule", _rule_as_go(raw), f"compilation failed: {why}")
            continue
        yield from _result_type_faults(compiled, raw, variables, rule_path)
        # Items of sets and atomic lists have no identity, so oldSelf has no value for them.
        if compiled.transition and uncorrelated:
            detail = f"oldSelf cannot be used on the uncorrelatable portion of the schema within {uncorrelated}"
            yield field.invalid(f"{rule_path}.rule", rule.rule, detail)


def _message_faults(schema: JSON, raw: JSON, rule_path: str) -> Errors:
    """Yields the faults of a rule's text, message, reason and field path."""
    rule, message = raw.get("rule") or "", raw.get("message") or ""
    if not rule.strip():
        yield field.required(f"{rule_path}.rule", "rule is not specified")
    elif message and not message.strip():
        yield field.invalid(f"{rule_path}.message", message, "must be non-empty if specified")
    elif "\n" in message.strip():
        yield field.invalid(f"{rule_path}.message", message, "must not contain line breaks")
    elif "\n" in rule.strip() and not message:
        yield field.required(f"{rule_path}.message", "message must be specified if rule contains line breaks")
    expression = raw.get("messageExpression") or ""
    if expression and not expression.strip():
        yield field.required(f"{rule_path}.messageExpression", "messageExpression must be non-empty if specified")
    if raw.get("reason") is not None:
        yield from field.one_of(f"{rule_path}.reason", raw["reason"], _REASONS)
    if field_path := raw.get("fieldPath") or "":
        if not field_path.strip():
            yield field.invalid(f"{rule_path}.fieldPath", field_path, "must be non-empty if specified")
        if "\n" in field_path:
            yield field.invalid(f"{rule_path}.fieldPath", field_path, "must not contain line breaks")
        if not _is_path(schema, field_path):
            yield field.invalid(f"{rule_path}.fieldPath", field_path, "must be a valid path")


def _is_path(schema: JSON, field_path: str) -> bool:
    """Returns whether a path such as `.spec['a.b'].size` leads to a field of the schema."""
    branch: Any = schema
    remaining = field_path
    while remaining:
        if remaining.startswith("['"):
            name, _, remaining = remaining[2:].partition("']")
        else:
            bare = remaining[1:]
            end = min((bare.index(sign) for sign in ".[" if sign in bare), default=len(bare))
            name, remaining = bare[:end], bare[end:]
        branch = (branch.get("properties") or {}).get(name) or branch.get("additionalProperties")
        if not isinstance(branch, dict):
            return False
    return field_path[0] in ".["


def _result_type_faults(
    compiled: CompiledRule, raw: Mapping[str, Any], variables: Mapping[str, CelType], rule_path: str
) -> Errors:
    """Yields a fault for a rule that is not bool, and for a messageExpression that is not text."""
    program, message, expression = compiled.program, compiled.message, compiled.rule.message_expression
    if result_type(compiled.rule.rule, variables) not in (BOOL, DYN) or program.result_type not in ("bool", "dyn"):
        yield field.invalid(f"{rule_path}.rule", _rule_as_go(raw), "cel expression must evaluate to a bool")
    if message is None:
        return
    why = type_faults(expression, variables)
    if why:
        why = f"messageExpression compilation failed: {why}"
    elif result_type(expression, variables) not in (STRING, DYN) or message.result_type not in ("string", "dyn"):
        why = "messageExpression must evaluate to a string"
    if why:
        yield field.invalid(f"{rule_path}.messageExpression", _rule_as_go(raw), why)


def _rule_as_go(raw: Mapping[str, Any]) -> field.Verbatim:
    """Returns a rule as Go prints its internal type."""
    texts = {key[0].upper() + key[1:]: raw.get(key) or "" for key in ("rule", "message", "messageExpression")}
    ending = {"FieldPath": raw.get("fieldPath") or "", "OptionalOldSelf": raw.get("optionalOldSelf")}
    return field.Verbatim(field.go_json({**texts, "Reason": raw.get("reason"), **ending}))


# -- Costs -------------------------------------------------------------------------------------------------------------

_RULE_LIMIT, _SCHEMA_LIMIT = 10_000_000, 100_000_000
_ADVICE = (
    "(try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, and strings are "
    "declared)"
)


def cost_faults(schema: JSON, path: str) -> Iterator[field.FieldError]:
    """Yields a fault for each rule that may cost too much, and for all of a schema together."""
    try:
        root = compile_node(schema)
    except SchemaError:
        return
    expensive: list[tuple[int, str]] = []
    total = 0
    for expression_path, label, cost in _expression_costs(root, path, 1, root=True):
        if cost > _RULE_LIMIT:
            yield field.forbidden(expression_path, _exceeds_text(f"estimated {label} cost", cost, _RULE_LIMIT))
        total = min(total + cost, MOST)
        if cost >= _SCHEMA_LIMIT // 100:
            expensive.append((cost, expression_path))
    if total > _SCHEMA_LIMIT:
        for _, expression_path in sorted(expensive, key=lambda entry: -entry[0])[:4]:
            why = "contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema"
            yield field.forbidden(expression_path, why)
        total_label = f"{_KEY} estimated rule cost total for entire OpenAPIv3 schema"
        yield field.forbidden(path, _exceeds_text(total_label, total, _SCHEMA_LIMIT))


def _expression_costs(node: SchemaNode, path: str, times: int | None, *, root: bool) -> Iterator[tuple[str, str, int]]:
    """Yields path, label and cost of each expression; `times` is how often the node occurs, None without a limit."""
    if node.rules:
        node_type = declared_type(node, root=root or node.embedded) or DYN
        often = times if times is not None else REQUEST_BYTES // (node_type.least + 1)
        for index, rule in enumerate(node.rules):
            old = CelType(kind="optional", element=node_type) if rule.optional_old_self else node_type
            variables = {"self": node_type, "oldSelf": old}
            at = f"{path}.{_KEY}[{index}]"
            yield f"{at}.rule", "rule", min(_cost_or_zero(rule.rule, variables) * often, MOST)
            if rule.message_expression:
                yield f"{at}.messageExpression", "messageExpression", _cost_or_zero(rule.message_expression, variables)
    for name, child in node.properties.items():
        yield from _expression_costs(child, f"{path}.properties[{name}]", times, root=False)
    parts = ((node.items, "items", "maxItems"), (node.additional, "additionalProperties", "maxProperties"))
    for below, key, keyword in parts:
        if below is not None:
            limit = node.raw.get(keyword)
            times_below = times * limit if times is not None and isinstance(limit, int) else None
            yield from _expression_costs(below, f"{path}.{key}", times_below, root=False)


def _cost_or_zero(expression: str, variables: dict[str, CelType]) -> int:
    try:
        return most_cost(expression, variables)
    except CelError:  # reported by rule_faults
        return 0


def _exceeds_text(label: str, cost: int, limit: int) -> str:
    factor = cost / limit
    factor_text = "more than 100x" if factor > 100 else f"{factor:f}x" if factor < 1.5 else f"{factor:.1f}x"
    return f"{label} exceeds budget by factor of {factor_text} {_ADVICE}"
