"""Admission webhooks of both kinds, and which requests of an update they would be asked about."""

from __future__ import annotations

from collections.abc import Iterator

from kubekit.api.extension_v1 import (
    MutatingWebhookConfiguration,
    RuleWithOperations,
    ValidatingWebhookConfiguration,
    Webhook,
)
from kubekit.api.scheme import Resource, resource_of
from runup.checks.decide.model import Snapshot

Configuration = ValidatingWebhookConfiguration | MutatingWebhookConfiguration
READS: tuple[Resource, ...] = (
    resource_of(ValidatingWebhookConfiguration),
    resource_of(MutatingWebhookConfiguration),
)
# What an update writes: the release's own objects and the pods, evictions and leases of nodes that come and go.
_UPDATED = (
    ("", ("pods", "pods/eviction", "nodes", "nodes/status", "configmaps", "secrets", "services", "serviceaccounts")),
    ("apps", ("deployments", "daemonsets", "replicasets", "statefulsets")),
    ("batch", ("jobs",)),
    ("coordination.k8s.io", ("leases",)),
    ("rbac.authorization.k8s.io", ("clusterroles", "clusterrolebindings", "roles", "rolebindings")),
    ("apiextensions.k8s.io", ("customresourcedefinitions",)),
)
_WRITES = frozenset({"*", "CREATE", "UPDATE", "DELETE"})
# A namespace of the release, by the labels that every such namespace has.
_SYSTEM = {"kubernetes.io/metadata.name": "openshift-etcd", "openshift.io/run-level": "0"}


def webhooks(snapshot: Snapshot) -> Iterator[tuple[Configuration, Webhook]]:
    """Every webhook with its configuration, in a fixed order; raises Unreadable."""
    both: tuple[Configuration, ...] = (
        *snapshot.all(ValidatingWebhookConfiguration),
        *snapshot.all(MutatingWebhookConfiguration),
    )
    for configuration in sorted(both, key=lambda each: (type(each).__name__, each.metadata.name)):
        for webhook in configuration.webhooks:
            yield configuration, webhook


def covers_an_update(webhook: Webhook) -> bool:
    """Whether the API server asks it about what an update writes in the release's own namespaces, or about nodes."""
    return any(_covers(rule, webhook) for rule in webhook.rules)


def _covers(rule: RuleWithOperations, webhook: Webhook) -> bool:
    if not _WRITES & set(rule.operations) or webhook.match_conditions:
        return False
    if webhook.object_selector is not None and not webhook.object_selector.matches({}):
        return False
    return any(
        _matches(rule.api_groups, group) and any(_matches(rule.resources, plural) for plural in plurals)
        for group, plurals in _UPDATED
    ) and _reaches_system(webhook)


def _reaches_system(webhook: Webhook) -> bool:
    selector = webhook.namespace_selector
    return selector is None or selector.matches(_SYSTEM)


def _matches(wanted: tuple[str, ...], value: str) -> bool:
    return "*" in wanted or "*/*" in wanted or value in wanted
