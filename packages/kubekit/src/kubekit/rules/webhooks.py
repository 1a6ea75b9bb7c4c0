"""Decides which requests the rules of webhooks and admission policies name.

As k8s.io/apiserver/pkg/admission/plugin/webhook/predicates/rules.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable


def is_named(value: str, values: Collection[str]) -> bool:
    """Returns whether a field of a rule, such as `operations` or `apiGroups`, names a value; `*` is any."""
    return "*" in values or value in values


def is_resource_named(resource: str, patterns: Iterable[str]) -> bool:
    """Returns whether a rule names `pods` or `pods/eviction`; `*` is of no subresource, `*/*` is of all."""
    main, _, sub = resource.partition("/")
    for pattern in patterns:
        its_main, _, its_sub = pattern.partition("/")
        if its_main in ("*", main) and its_sub in ("*", sub):
            return True
    return False


def is_in_scope(scope: str, *, namespaced: bool) -> bool:
    """Returns whether `scope` of a rule covers objects that are in a namespace, or in none; a Namespace is in none."""
    return scope in ("", "*", "Namespaced" if namespaced else "Cluster")
