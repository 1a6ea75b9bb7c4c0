"""Finds the webhooks of the cluster to which the release's writes would be sent. A copy cannot call them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from kubesandbox.apiserver.http.messages import User
from kubesandbox.apiserver.policies.matching import Write, is_exempt, matches_criteria
from runup.rehearse.control.cluster_copy import ClusterCopy
from runup.rehearse.decide.rehearsal_outcome import Action, ObjectChange, Webhook
from runup.release.decide.manifest import Identity

JSON = dict[str, Any]
GROUP = "admissionregistration.k8s.io"
KINDS = ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")
_OPERATIONS = {Action.CREATE: "CREATE", Action.UPDATE: "UPDATE", Action.DELETE: "DELETE"}


def webhooks(
    copied: ClusterCopy,
    configurations: Iterable[JSON],
    changes: Iterable[tuple[ObjectChange, JSON | None, JSON | None]],
) -> Iterator[Webhook]:
    """Yields every webhook that one of `changes` (with the object before and after) would be sent to."""
    writes = [write for pair in changes if (write := _write_of_change(copied, *pair)) is not None]
    labels = {obj["metadata"]["name"]: obj["metadata"].get("labels") or {} for obj in copied.all("", "Namespace")}
    for configuration in configurations:
        for webhook in configuration.get("webhooks") or ():
            reached = tuple(
                Identity(write.kind.group, write.kind.kind, write.namespace, write.name)
                for write in writes
                if _is_called_for(webhook, write, labels)
            )
            if reached:
                yield Webhook(
                    configuration["metadata"]["name"],
                    configuration["kind"],
                    str(webhook.get("name") or ""),
                    ignores=webhook.get("failurePolicy") == "Ignore",
                    conditions=bool(webhook.get("matchConditions")),
                    writes=reached,
                )


def _write_of_change(
    copied: ClusterCopy, change: ObjectChange, before: JSON | None, after: JSON | None
) -> Write | None:
    """Returns the write that makes the change, None if there is none or webhooks do not see it."""
    operation = _OPERATIONS.get(change.action)
    kind = copied.kind_of(change.identity.group, change.identity.kind)
    if operation is None or kind is None or is_exempt(kind):
        return None
    obj = after if operation != "DELETE" else None
    namespace, name = change.identity.namespace, change.identity.name
    return Write(operation=operation, kind=kind, namespace=namespace, name=name, user=User(""), obj=obj, old=before)


def _is_called_for(webhook: JSON, write: Write, labels: dict[str, dict[str, str]]) -> bool:
    """Reports whether the webhook's rules and selectors match the write."""
    rules = webhook.get("rules") or ()
    if not rules:
        return False
    conditions = ("namespaceSelector", "objectSelector", "matchPolicy")
    criteria = {"resourceRules": rules, **{key: webhook[key] for key in conditions if key in webhook}}
    return matches_criteria(criteria, write, labels.get(write.namespace, {}) if write.namespace else None)
