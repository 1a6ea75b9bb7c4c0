"""Decides whether a ValidatingAdmissionPolicy applies to a write, and evaluates its expressions for it. Pure.

In: a policy, the variables of a write, a parameter. Out: decisions and audit annotations, in the words of
k8s.io/apiserver/pkg/admission/plugin/policy/validating/validator.go. An expression that has no value is an error, and
the policy's failurePolicy decides about the write then. Rules of resources and selectors match as in
plugin/policy/matching and plugin/webhook/predicates there.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Protocol

from kubekit.lang.cel import CelError, CelEvaluationError, Program, compile_cel
from kubekit.lang.cel import paths_read as cel_paths_read
from kubekit.lang.cel_authorizer import Authorize, answering, authorizer_value
from kubekit.rules.webhooks import is_in_scope, is_named, is_resource_named

JSON = dict[str, Any]


class WrittenKind(Protocol):
    """The kind of a written object, in the version of the request."""

    @property
    def group(self) -> str: ...
    @property
    def version(self) -> str: ...
    @property
    def kind(self) -> str: ...
    @property
    def plural(self) -> str: ...
    @property
    def namespaced(self) -> bool: ...
    @property
    def resource(self) -> str:
        """`pods`, or `deployments.apps`."""


class Requester(Protocol):
    """The user of a request."""

    def to_dict(self) -> JSON:
        """Returns the user as `authentication.k8s.io/v1` UserInfo."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Write:
    """A write that must be admitted. `obj` is None for a deletion, `old` for a creation.

    `object_kind` is the kind of `obj` for a subresource that has another one, such as the Scale of a Deployment.
    """

    operation: str  # CREATE, UPDATE or DELETE
    kind: WrittenKind
    namespace: str
    name: str
    user: Requester
    obj: JSON | None = None
    old: JSON | None = None
    subresource: str = ""
    object_kind: WrittenKind | None = None
    dry_run: bool = False
    options: Mapping[str, Any] = field(default_factory=dict)


# Kinds whose writes no policy decides on, or nobody could take a bad policy away.
_EXEMPT = frozenset(
    f"{plural}.admissionregistration.k8s.io"
    for plural in (
        "mutatingadmissionpolicies", "mutatingadmissionpolicybindings", "mutatingwebhookconfigurations",
        "validatingadmissionpolicies", "validatingadmissionpolicybindings", "validatingwebhookconfigurations",
    )
)  # fmt: skip


def is_exempt(kind: WrittenKind) -> bool:
    """Returns whether writes of a kind are never decided on by policies."""
    return kind.resource in _EXEMPT


def matches_criteria(criteria: JSON, write: Write, namespace_labels: Mapping[str, str] | None) -> bool:
    """Returns whether match criteria select a write; `namespace_labels` are those of its namespace, None without one.

    Without rules of resources everything matches, as in a binding's `matchResources`.
    """
    states = [state for state in (write.obj, write.old) if state is not None]
    if write.kind.resource == "namespaces" and states:
        namespace_labels = _labels_of(states[0])
    # An object without a namespace matches every namespaceSelector.
    if namespace_labels is not None and not selects_labels(criteria.get("namespaceSelector"), namespace_labels):
        return False
    selector = criteria.get("objectSelector")
    if selector and not any(selects_labels(selector, _labels_of(state)) for state in states):
        return False
    equivalent = criteria.get("matchPolicy") != "Exact"
    if any(_matches_rule(rule, write, equivalent=equivalent) for rule in criteria.get("excludeResourceRules") or ()):
        return False
    rules = criteria.get("resourceRules") or ()
    return not rules or any(_matches_rule(rule, write, equivalent=equivalent) for rule in rules)


def selects_labels(selector: JSON | None, labels: Mapping[str, str]) -> bool:
    """Returns whether a label selector, as objects have it, selects labels; an empty one selects everything."""
    if any(labels.get(key) != value for key, value in ((selector or {}).get("matchLabels") or {}).items()):
        return False
    for expression in (selector or {}).get("matchExpressions") or ():
        key, operator, values = expression.get("key", ""), expression.get("operator"), expression.get("values") or ()
        present = labels.get(key) in values if operator in ("In", "NotIn") else key in labels
        if present != (operator in ("In", "Exists")):
            return False
    return True


def _labels_of(obj: JSON) -> Mapping[str, str]:
    labels: Mapping[str, str] = (obj.get("metadata") or {}).get("labels") or {}
    return labels


def _matches_rule(rule: JSON, write: Write, *, equivalent: bool) -> bool:
    """Returns whether a rule selects a write; `equivalent` counts other versions of its kind as well."""
    kind = write.kind
    names = rule.get("resourceNames") or ()
    if names and write.name not in names:
        return False
    if not is_in_scope(rule.get("scope") or "*", namespaced=kind.namespaced and kind.resource != "namespaces"):
        return False
    fields = [("operations", write.operation), ("apiGroups", kind.group)]
    # Another version of the same resource is the same object, unless the policy says Exact.
    if not equivalent:
        fields.append(("apiVersions", kind.version))
    if not all(is_named(value, rule.get(key) or ()) for key, value in fields):
        return False
    resource = f"{kind.plural}/{write.subresource}" if write.subresource else kind.plural
    return is_resource_named(resource, rule.get("resources") or ())


def admission_request(write: Write, matched: WrittenKind) -> JSON:
    """Returns the AdmissionRequest of a write without its uid and objects; `matched` is the kind that a rule named."""

    def about(kind: WrittenKind, key: str, value: str) -> JSON:
        return {"group": kind.group, "version": kind.version, key: value}

    of_object, requested = write.object_kind or matched, write.object_kind or write.kind
    return {
        "kind": about(of_object, "kind", of_object.kind),
        "resource": about(matched, "resource", matched.plural),
        "subResource": write.subresource,
        "requestKind": about(requested, "kind", requested.kind),
        "requestResource": about(write.kind, "resource", write.kind.plural),
        "requestSubResource": write.subresource,
        "name": write.name,
        "namespace": write.namespace,
        "operation": write.operation,
        "userInfo": write.user.to_dict(),
        "dryRun": write.dry_run,
        "options": dict(write.options),
    }


_NAMES = ("object", "oldObject", "request", "params", "namespaceObject", "variables")
_HINTS = dict.fromkeys(_NAMES, "dyn")
_VARIABLE = re.compile(r"\bvariables\.([A-Za-z_]\w*)")
_LONGEST_MESSAGE = 5 * 1024  # bytes; MaxEvaluatedMessageExpressionSizeBytes
_LONGEST_ANNOTATION = 10 * 1024  # bytes; maxAuditAnnotationValueLength
# An expression that asks about rights; without an authorizer it does not compile.
AUTHORIZER = re.compile(r"\bauthorizer\b")


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """The result of one validation: whether the write is denied, and the reason."""

    denied: bool = False
    message: str = ""
    reason: str = "Invalid"
    index: int = 0
    is_error: bool = False  # an expression has no value, and the failurePolicy is Fail


@dataclass(frozen=True, slots=True)
class PolicyOutcome:
    """The decisions of a policy in their order, and its audit annotations."""

    decisions: tuple[Decision, ...] = ()
    annotations: tuple[tuple[str, str], ...] = ()


class EvaluationFailed(Exception):
    """Error raised if an expression has no value; the message is for the client."""


class Evaluation:
    """The evaluation of one policy for one write and one parameter."""

    def __init__(
        self,
        policy: JSON,
        write: Write,
        params: JSON | None,
        namespace: JSON | None,
        *,
        authorize: Authorize | None = None,
    ) -> None:
        self._spec = policy["spec"]
        self._fails = self._spec.get("failurePolicy") != "Ignore"
        request = admission_request(write, write.kind)
        request["userInfo"] = {"username": "", "uid": "", "groups": [], "extra": {}, **request["userInfo"]}
        self._values: JSON = {
            "object": write.obj,
            "oldObject": write.old,
            "request": request,
            "params": params,
            "namespaceObject": namespace,
        }
        self._authorize = authorize
        if authorize is not None:
            keys = {"group": write.kind.group, "resource": write.kind.plural, "subresource": write.subresource}
            about = {**keys, "namespace": write.namespace, "name": write.name}
            self._values["authorizer"] = authorizer_value(request["userInfo"], about)
        self._variables = {variable["name"]: variable["expression"] for variable in self._spec.get("variables") or ()}
        self._computed: dict[str, Any] = {}
        self._broken: dict[str, str] = {}

    def value_at(self, path: Sequence[str]) -> Any:
        """Returns the value at the path of a variable such as `object`, or None."""
        value: Any = self._values
        for key in path:
            if not isinstance(value, Mapping) or key not in value:
                return None
            value = value[key]
        return value

    def is_excluded(self, conditions: Sequence[JSON]) -> bool:
        """Returns whether one of these match conditions is false: the policy does not apply to the write then."""
        for condition in conditions:
            with contextlib.suppress(EvaluationFailed):
                if self._evaluate(condition["expression"]) is False:
                    return True
        return False

    def outcome(self) -> PolicyOutcome:
        """Returns what the policy says."""
        try:
            if not self.conditions_hold():
                return PolicyOutcome()
        except EvaluationFailed as error:
            return PolicyOutcome(tuple(self._error_decision(str(error), 0)))
        decisions: list[Decision] = []
        for index, validation in enumerate(self._spec.get("validations") or ()):
            try:
                holds = self._evaluate(validation["expression"])
            except EvaluationFailed as error:
                decisions += self._error_decision(str(error), index)
                continue
            message = "" if holds is True else self._denial_message(validation)
            reason = "Invalid" if holds is True else validation.get("reason") or "Invalid"
            decisions.append(Decision(denied=holds is not True, message=message, reason=reason, index=index))
        annotations: list[tuple[str, str]] = []
        for annotation in self._spec.get("auditAnnotations") or ():
            expression = annotation["valueExpression"]
            try:
                value = self._evaluate(expression)
                if value is not None and not isinstance(value, str):
                    why = f"resulted in unsupported return type: {type(value).__name__}"
                    ending = "Return type must be either string or null."
                    raise EvaluationFailed(f"valueExpression '{expression}' {why}. {ending}")
            except EvaluationFailed as error:
                decisions += self._error_decision(str(error), len(decisions))
                continue
            if text := (value or "").strip():
                annotations.append((annotation["key"], text.encode()[:_LONGEST_ANNOTATION].decode(errors="ignore")))
        return PolicyOutcome(tuple(decisions), tuple(annotations))

    def _error_decision(self, message: str, index: int) -> Iterator[Decision]:
        if self._fails:
            yield Decision(denied=True, message=message, index=index, is_error=True)

    def conditions_hold(self) -> bool:
        """Returns whether all match conditions hold; a false one decides, also where another has no value.

        Raises EvaluationFailed if one has no value, unless the failurePolicy is Ignore.
        """
        failures = []
        for condition in self._spec.get("matchConditions") or ():
            try:
                if self._evaluate(condition["expression"]) is False:
                    return False
            except EvaluationFailed as error:
                failures.append(str(error))
        if failures and not self._fails:
            return False
        if failures:
            raise EvaluationFailed(failures[0] if len(failures) == 1 else f"[{', '.join(dict.fromkeys(failures))}]")
        return True

    def _denial_message(self, validation: JSON) -> str:
        """Returns the message of a denial: of messageExpression, else `message`, else the expression."""
        value: Any = None
        expression = validation.get("messageExpression")
        # A message is evaluated without the authorizer, and so are the variables that it uses.
        if expression and not any(AUTHORIZER.search(text) for text in _texts_used(expression, self._variables)):
            with contextlib.suppress(EvaluationFailed):
                value = self._evaluate(expression)
        text = value.strip() if isinstance(value, str) else ""
        if "\n" in text or len(text.encode()) > _LONGEST_MESSAGE:
            text = ""
        message = (validation.get("message") or "").strip()
        return text or message or f"failed expression: {validation['expression'].strip()}"

    def _evaluate(self, expression: str) -> Any:
        """Returns the value of an expression, its variables computed first. Raises EvaluationFailed."""
        try:
            program = self._compiled(expression)
        except CelError as error:
            raise EvaluationFailed(f"compilation error: {error}") from error
        used = set(_VARIABLE.findall(expression))
        for name in used & self._variables.keys():
            self._compute_variable(name)
        try:
            return self._run(program)
        except CelEvaluationError as error:
            why = str(error)
            # A variable without a value is missing from the map: what it failed by is the cause.
            name = why.removeprefix("no such key: ")
            if name in used and name in self._broken:
                why = f'composited variable "{name}" fails to evaluate: {self._broken[name]}'
            raise EvaluationFailed(f"expression '{expression}' resulted in error: {why}") from error

    def _compiled(self, expression: str) -> Program:
        return _compile_program(expression, has_authorizer=self._authorize is not None)

    def _run(self, program: Program) -> Any:
        with answering(self._authorize):
            return program.evaluate({**self._values, "variables": self._computed})

    def _compute_variable(self, name: str) -> None:
        """Evaluates a variable once, and first those that it uses."""
        if name in self._computed or name in self._broken:
            return
        self._broken[name] = "it refers to itself"
        expression = self._variables[name]
        for other in set(_VARIABLE.findall(expression)) & self._variables.keys():
            self._compute_variable(other)
        try:
            self._computed[name] = self._run(self._compiled(expression))
        except CelError as error:
            self._broken[name] = str(error)
        else:
            del self._broken[name]


@lru_cache(512)
def paths_read(expression: str, variables: tuple[tuple[str, str], ...] = ()) -> frozenset[tuple[str, ...]]:
    """Returns the paths that an expression of a policy reads, those of the `variables` included that it uses.

    Raises CelError if the expression does not compile, such as one that uses the authorizer.
    """
    return frozenset().union(*(cel_paths_read(text, _HINTS) for text in _texts_used(expression, dict(variables))))


def _texts_used(expression: str, variables: Mapping[str, str]) -> Iterator[str]:
    """Yields an expression, and those of the variables that it uses, directly or by others."""
    left, pending = dict(variables), [expression]
    while pending:
        text = pending.pop()
        pending += [left.pop(name) for name in _VARIABLE.findall(text) if name in left]
        yield text


@lru_cache(512)
def _compile_program(expression: str, *, has_authorizer: bool) -> Program:
    return compile_cel(expression, {**_HINTS, "authorizer": "dyn"} if has_authorizer else _HINTS)
