"""Decides whether a policy or a binding applies to a write: rules of resources, and selectors of labels. Pure.

As k8s.io/apiserver/pkg/admission/plugin/policy/matching and plugin/webhook/predicates.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from kubekit.rules.webhooks import is_in_scope, is_named, is_resource_named
from kubesandbox.apiserver.http.messages import User
from kubesandbox.apiserver.served_kinds import Kind

JSON = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Write:
    """A write that is to be admitted. `obj` is None for a deletion, `old` for a creation."""

    operation: str  # CREATE, UPDATE or DELETE
    kind: Kind
    namespace: str
    name: str
    user: User
    obj: JSON | None = None
    old: JSON | None = None
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
