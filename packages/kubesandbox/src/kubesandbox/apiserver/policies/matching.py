"""Decides whether a policy or a binding applies to a write: rules of resources, and selectors of labels. Pure.

As k8s.io/apiserver/pkg/admission/plugin/policy/matching and plugin/webhook/predicates.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from kubesandbox.apiserver.http.messages import User
from kubesandbox.apiserver.served_kinds import Kind

JSON = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Write:
    """A write that is to be admitted. `obj` is None for a deletion, `old` for a creation."""

    operation: str  # CREATE, UPDATE or DELETE
    kind: Kind
    namespace: str
    name: str
    user: User
    obj: JSON | None
    old: JSON | None
    subresource: str = ""
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


def is_exempt(kind: Kind) -> bool:
    """Returns whether writes of a kind are never decided on by policies."""
    return kind.resource in _EXEMPT


def matches_criteria(criteria: JSON, write: Write, namespace_labels: Mapping[str, str] | None) -> bool:
    """Returns whether match criteria select a write; `namespace_labels` are those of its namespace, None without one.

    Without rules of resources everything matches, as in a binding's `matchResources`.
    """
    if not _matches_namespace(criteria.get("namespaceSelector"), write, namespace_labels):
        return False
    if not _matches_object(criteria.get("objectSelector"), write):
        return False
    equivalent = criteria.get("matchPolicy") != "Exact"
    if any(_matches_rule(rule, write, equivalent=equivalent) for rule in criteria.get("excludeResourceRules") or ()):
        return False
    rules = criteria.get("resourceRules") or ()
    return not rules or any(_matches_rule(rule, write, equivalent=equivalent) for rule in rules)


def selects_labels(selector: JSON | None, labels: Mapping[str, str]) -> bool:
    """Returns whether a label selector, as objects have it, selects labels; an empty one selects everything."""
    if not selector:
        return True
    if any(labels.get(key) != value for key, value in (selector.get("matchLabels") or {}).items()):
        return False
    return all(_matches_expression(expression, labels) for expression in selector.get("matchExpressions") or ())


def _matches_expression(expression: JSON, labels: Mapping[str, str]) -> bool:
    """Returns whether labels meet one matchExpression."""
    key, values = expression.get("key", ""), expression.get("values") or ()
    match expression.get("operator"):
        case "In":
            return labels.get(key) in values
        case "NotIn":
            return labels.get(key) not in values
        case "Exists":
            return key in labels
        case _:
            return key not in labels


def _labels_of(obj: JSON | None) -> Mapping[str, str]:
    labels: Mapping[str, str] = ((obj or {}).get("metadata") or {}).get("labels") or {}
    return labels


def _matches_namespace(selector: JSON | None, write: Write, labels: Mapping[str, str] | None) -> bool:
    """Returns whether a namespaceSelector selects a write, by the labels of its namespace."""
    if not selector:
        return True
    if write.kind.resource == "namespaces":
        return selects_labels(selector, _labels_of(write.obj if write.obj is not None else write.old))
    # What is in no namespace is not selected by one, and never left out by one.
    return labels is None or selects_labels(selector, labels)


def _matches_object(selector: JSON | None, write: Write) -> bool:
    """Reports whether the selector matches the labels of the old or the new object, as for webhooks."""
    if not selector:
        return True
    return any(
        candidate is not None and selects_labels(selector, _labels_of(candidate))
        for candidate in (write.obj, write.old)
    )


def _matches_rule(rule: JSON, write: Write, *, equivalent: bool) -> bool:
    """Returns whether a rule selects a write; `equivalent` counts other versions of its kind as well."""
    kind = write.kind
    names = rule.get("resourceNames") or ()
    if names and write.name not in names:
        return False
    scope = rule.get("scope") or "*"
    if scope != "*" and scope != ("Namespaced" if kind.namespaced and kind.resource != "namespaces" else "Cluster"):
        return False
    return (
        _one_of(rule.get("operations"), write.operation)
        and _one_of(rule.get("apiGroups"), kind.group)
        # Another version of the same resource is the same object, unless the policy says Exact.
        and (equivalent or _one_of(rule.get("apiVersions"), kind.version))
        and any(_matches_resource(pattern, kind.plural, write.subresource) for pattern in rule.get("resources") or ())
    )


def _one_of(values: Any, value: str) -> bool:
    return "*" in (values or ()) or value in (values or ())


def _matches_resource(pattern: str, plural: str, subresource: str) -> bool:
    resource, _, part = pattern.partition("/")
    if pattern == "*/*":
        return True
    return resource in ("*", plural) and (part == subresource or (part == "*"))
