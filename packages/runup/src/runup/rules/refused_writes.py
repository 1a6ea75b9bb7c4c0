"""Reads from messages of components who refused a write of theirs: an admission webhook, a policy, a quota.

Components quote the API server's error in their conditions and events. Sources of the words, apiserver 1.34:
`pkg/admission/plugin/webhook/errors/statuserror.go` and `pkg/util/webhook/error.go` (webhooks),
`pkg/admission/plugin/policy/validating/dispatcher.go` and `generic/policy_dispatcher.go` (policies),
`pkg/admission/plugin/resourcequota/controller.go` (quotas); pod-security-admission, `admission/admission.go`.
"""

from __future__ import annotations

import re
from typing import NamedTuple

NOT_CREATED = "FailedCreate"
"""The reason of events about pods that a controller could not create (kubernetes, pkg/controller)."""


class Refusal(NamedTuple):
    """The cause of a refused write: its kind and name as text, the verb phrase, and the kind to inspect."""

    who: str
    does: str
    resource: str


_WEBHOOKS = "validatingwebhookconfigurations,mutatingwebhookconfigurations"
_POLICIES = "validatingadmissionpolicies,validatingadmissionpolicybindings"
# Quotes are escaped where a component quotes the message once more.
_NAME = r"""\\?["']([^"'\\]+)\\?["']"""
_PATTERNS = (
    (re.compile(rf"admission webhook {_NAME} denied the request"), "webhook {}", "denies requests", _WEBHOOKS),
    (re.compile(rf"failed calling webhook {_NAME}"), "webhook {}", "does not answer", _WEBHOOKS),
    (
        re.compile(rf"ValidatingAdmissionPolicy {_NAME}(?: with binding {_NAME})? denied request"),
        "ValidatingAdmissionPolicy {}",
        "denies requests",
        _POLICIES,
    ),
    (
        re.compile(rf"policy {_NAME}(?: with binding {_NAME})? denied request"),
        "policy {}",
        "denies requests",
        _POLICIES,
    ),
    (re.compile(r"exceeded quota: ([^,\s]+), requested"), "ResourceQuota {}", "is used up", "resourcequotas"),
    (re.compile(rf"violates PodSecurity {_NAME}"), "PodSecurity level {}", "forbids the pods", "namespaces"),
)


def refusal_in(message: str) -> Refusal | None:
    """Returns what refused the write that the message is about, or None if it names nothing of the kind."""
    for pattern, who, does, resource in _PATTERNS:
        if match := pattern.search(message):
            return Refusal(who.format(match[1]), does, resource)
    return None
