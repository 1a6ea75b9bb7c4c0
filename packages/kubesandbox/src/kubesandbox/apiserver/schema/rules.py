"""CEL validation rules of a schema (`x-kubernetes-validations`), compiled once and evaluated on every write.

In: a compiled schema, an object, and on update the object that it replaces. Out: FieldErrors in the words of
apiextensions-apiserver. A transition rule (one that uses oldSelf) runs only where the old value can be correlated:
members of objects and maps, entries of list-maps, never entries of other lists. Rules are not evaluated on parts that
an update leaves unchanged, except transition rules.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from functools import lru_cache
from typing import Any

from kubekit.lang.cel import Budget, CelBudgetError, CelError, CelEvaluationError, compile_cel
from kubekit.lang.formats import is_date_time
from kubesandbox.apiserver.schema.field_errors import Fault, FieldError, invalid
from kubesandbox.apiserver.schema.structural import Rule, SchemaNode
from kubesandbox.apiserver.schema.validate import MISSING, correlated_items

_FAULTS = {
    "FieldValueForbidden": Fault.FORBIDDEN,
    "FieldValueRequired": Fault.REQUIRED,
    "FieldValueDuplicate": Fault.DUPLICATE,
}
_HINTS = {"string": "string", "integer": "int", "boolean": "bool", "number": "double", "array": "list", "object": "map"}
_OLD_SELF = re.compile(r"\boldSelf\b")
_MESSAGE_LIMIT = 5 * 1024  # bytes; apiserver's MaxEvaluatedMessageExpressionSizeBytes


class CompiledRule:
    """A rule with its compiled program, and the program of its message expression if there is one."""

    __slots__ = ("message", "program", "rule", "transition")

    def __init__(self, node: SchemaNode, rule: Rule) -> None:
        """Compiles the rule. Raises CelSyntaxError."""
        variables = {
            "self": cel_type_hint(node),
            "oldSelf": "optional" if rule.optional_old_self else cel_type_hint(node),
        }
        self.rule = rule
        self.transition = _OLD_SELF.search(rule.rule) is not None
        self.program = compile_cel(rule.rule, variables)
        self.message = compile_cel(rule.message_expression, variables) if rule.message_expression else None


def cel_type_hint(node: SchemaNode) -> str:
    """Returns the CEL type of a value of `node`."""
    if node.type == "string" and node.raw.get("format") in ("date-time", "datetime"):
        return "timestamp"
    return _HINTS.get(node.type, "dyn")


class RuleSet:
    """The rules of a schema. `any` says whether there are any."""

    def __init__(self, root: SchemaNode) -> None:
        self._root = root
        self._rules: dict[int, list[CompiledRule | FieldError]] = {}
        self._with_rules: set[int] = set()  # ids of the nodes with rules on them or below
        self.any = self._compile_below(root, set())

    def _compile_below(self, node: SchemaNode, visited: set[int]) -> bool:
        """Compiles the rules of a node and of all below it; returns whether there are any."""
        if id(node) in visited:
            return id(node) in self._with_rules
        visited.add(id(node))
        for rule in node.rules:
            compiled: CompiledRule | FieldError
            try:
                compiled = CompiledRule(node, rule)
            except CelError as error:
                # Creating a CRD with such a rule is refused; this handles a CRD that was stored without validation.
                compiled = invalid("", node.type, f"rule compile error: compilation failed: {error}")
            self._rules.setdefault(id(node), []).append(compiled)
        children = (*node.properties.values(), node.additional, node.items, *node.all_of)
        below = [self._compile_below(child, visited) for child in children if child is not None]
        if node.rules or any(below):
            self._with_rules.add(id(node))
            return True
        return False

    def check(self, value: Any, old: Any = MISSING) -> list[FieldError]:
        """Returns the rules that `value` breaks. Once the cost budget is spent, the rest is not evaluated."""
        errors: list[FieldError] = []
        budget = Budget()  # of the whole object: apiserver's RuntimeCELCostBudget
        try:
            # Not a list comprehension: faults found before the budget was spent are kept.
            for error in self._faults_below(self._root, value, old, "", budget=budget):
                errors.append(error)  # noqa: PERF402
        except _OverBudget as stop:
            errors.append(stop.error)
        return errors

    def _faults_below(
        self, node: SchemaNode, value: Any, old: Any, path: str, *, budget: Budget
    ) -> Iterator[FieldError]:
        """Yields the rules that a value or a part of it breaks; transition rules only where there is an old value."""
        if value is None or id(node) not in self._with_rules:
            return
        unchanged = old is not MISSING and old == value
        for rule in self._rules.get(id(node), ()):
            if isinstance(rule, FieldError):
                yield replace(rule, path=path)
            elif rule.transition and (old is MISSING or old is None) and not rule.rule.optional_old_self:
                continue
            elif rule.transition or not unchanged:
                yield from _broken_rule(node, rule, value, old, path=path, budget=budget)
        for child in node.all_of:
            yield from self._faults_below(child, value, old, path, budget=budget)
        if isinstance(value, list) and node.items is not None:
            for index, (item, former) in enumerate(correlated_items(node, value, old)):
                yield from self._faults_below(node.items, item, former, f"{path}[{index}]", budget=budget)
        elif isinstance(value, dict):
            correlated = old if isinstance(old, dict) and node.map_type != "atomic" else {}
            for name, member in value.items():
                if (below := node.member(name)) is not None:
                    at, former = node.member_path(path, name), correlated.get(name, MISSING)
                    yield from self._faults_below(below, member, former, at, budget=budget)


class _OverBudget(Exception):
    def __init__(self, error: FieldError) -> None:
        super().__init__(str(error))
        self.error = error


def _broken_rule(
    node: SchemaNode, compiled: CompiledRule, value: Any, old: Any, *, path: str, budget: Budget
) -> Iterator[FieldError]:
    """Yields the fault of a rule that is false, or that cannot be evaluated."""
    rule = compiled.rule
    rule_text = (rule.message or rule.rule).strip()
    variables = {"self": _cel_value(node, value), "oldSelf": None if old is MISSING else _cel_value(node, old)}
    try:
        holds = compiled.program.evaluate(variables, budget)
    except CelBudgetError as error:
        why = f"'{error}': no further validation rules will be run due to call cost exceeds limit for rule: {rule_text}"
        raise _OverBudget(invalid(path, node.type, why)) from error
    except CelEvaluationError as error:
        why = f"{error} evaluating rule: {rule_text}"
        if str(error).startswith("no such overload"):
            overload = "call arguments did not match a supported operator, function or macro signature"
            why = f"'{error}': {overload} for rule: {rule_text}"
        yield invalid(path, node.type, why)
        return
    if holds is True:
        return
    message: Any = ""
    if compiled.message is not None:
        with contextlib.suppress(CelEvaluationError):
            message = compiled.message.evaluate(variables, budget)
        message = message.strip() if isinstance(message, str) else ""
        # `message` is used if the result of messageExpression is unfit to be shown.
        message = "" if "\n" in message or len(message.encode()) > _MESSAGE_LIMIT else message
    detail = message or rule.message.strip() or f"failed rule: {rule.rule.strip()}"
    fault_path = f"{path}{rule.field_path}" if path else rule.field_path.removeprefix(".")
    yield FieldError(_FAULTS.get(rule.reason, Fault.INVALID), fault_path, node.type, detail)


# --- values as rules see them ---------------------------------------------------------------------------------------

# Words that CEL reads as values and operators wherever they occur (k8s.io/apiserver/pkg/cel/escaping.go).
_LITERALS = frozenset(("true", "false", "null", "in"))
_SYMBOLS = (("__", "__underscores__"), (".", "__dot__"), ("-", "__dash__"), ("/", "__slash__"))


@lru_cache(maxsize=4096)
def escape_property(name: str) -> str:
    """Returns a property's name as `compile_cel` reads it in rules: `a__dash__b`, `__true__`, `namespace`."""
    if name in _LITERALS:
        return f"__{name}__"
    for symbol, word in _SYMBOLS:
        name = name.replace(symbol, word)
    return name


def _cel_value(node: SchemaNode, value: Any) -> Any:
    """Returns `value` with property names escaped, numbers as doubles, and a top-level date-time as a timestamp."""
    if cel_type_hint(node) == "timestamp" and isinstance(value, str) and is_date_time(value):
        return datetime.fromisoformat(value)
    return _escape_below(node, value)


def _escape_below(node: SchemaNode | None, value: Any) -> Any:
    """Returns a value whose properties have the names that rules use for them."""
    if node is None:
        return value
    if isinstance(value, dict):
        return {
            (escape_property(name) if name in node.properties else name): _escape_below(node.member(name), member)
            for name, member in value.items()
        }
    if isinstance(value, list):
        return [_escape_below(node.items, item) for item in value]
    return float(value) if node.type == "number" and type(value) is int else value
