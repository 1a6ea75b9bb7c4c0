"""Lists the admission webhooks of both kinds, and determines which of them are called for the requests of an update."""

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
# Stands for the release's namespaces: labels by which they are selected or left out.
_SYSTEM = {"kubernetes.io/metadata.name": "openshift-etcd", "openshift.io/run-level": "0"}


def webhooks(snapshot: Snapshot) -> Iterator[tuple[Configuration, Webhook]]:
    """Yields every webhook with its configuration, in a fixed order. Raises Unreadable."""
    configurations: tuple[Configuration, ...] = (
        *snapshot.all(ValidatingWebhookConfiguration),
        *snapshot.all(MutatingWebhookConfiguration),
    )
    for configuration in sorted(configurations, key=lambda each: (type(each).__name__, each.metadata.name)):
        for webhook in configuration.webhooks:
            yield configuration, webhook


def covers_an_update(webhook: Webhook) -> bool:
    """Returns whether the API server calls the webhook for what an update writes to the release's namespaces.

    That includes nodes, which have no namespace.
    """
    return any(_covers(rule, webhook) for rule in webhook.rules)


def _covers(rule: RuleWithOperations, webhook: Webhook) -> bool:
    """Returns whether a rule covers something that an update writes; one that narrows itself is not judged."""
    # Match conditions are CEL expressions over the request, which is not known beforehand.
    if not _WRITES & set(rule.operations) or webhook.match_conditions:
        return False
    if webhook.object_selector is not None and not webhook.object_selector.matches({}):
        return False
    return any(
        _matches(rule.api_groups, group) and any(_matches(rule.resources, plural) for plural in plurals)
        for group, plurals in _UPDATED
    ) and _reaches_system(webhook)


def _reaches_system(webhook: Webhook) -> bool:
    """Returns whether the webhook's namespace selector includes the release's own namespaces."""
    selector = webhook.namespace_selector
    return selector is None or selector.matches(_SYSTEM)


def _matches(wanted: tuple[str, ...], value: str) -> bool:
    """Returns whether a list of a rule contains the value or a wildcard."""
    # `*/*` means all resources and all subresources (admissionregistration.k8s.io/v1).
    return "*" in wanted or "*/*" in wanted or value in wanted
