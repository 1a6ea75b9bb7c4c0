"""Messages that quote a refusal of the API server."""

from __future__ import annotations

import pytest

from runup.rules.refused_writes import refusal_in

# The words are those of apiserver 1.34 and pod-security-admission, as components of OpenShift quote them.
MESSAGES = {
    "a webhook that denies": (
        'Could not update deployment "openshift-dns/dns" (613 of 901): admission webhook "check.policies.example.com" '
        "denied the request: no",
        "webhook check.policies.example.com denies requests",
    ),
    "a webhook that does not answer": (
        'Internal error occurred: failed calling webhook "v.example.com": failed to call webhook: Post '
        '"https://v.ns.svc:443/?timeout=10s": service "v" not found',
        "webhook v.example.com does not answer",
    ),
    "quoted once more": (
        r'Error creating: "admission webhook \"v.example.com\" denied the request: no"',
        "webhook v.example.com denies requests",
    ),
    "a policy": (
        "deployments.apps \"dns\" is forbidden: ValidatingAdmissionPolicy 'frozen' with binding 'frozen-all' denied "
        "request: frozen until Monday",
        "ValidatingAdmissionPolicy frozen denies requests",
    ),
    "a policy that mutates": (
        "policy 'labels' with binding 'all' denied request: no such key: team",
        "policy labels denies requests",
    ),
    "a quota": (
        'Error creating: pods "x" is forbidden: exceeded quota: small, requested: pods=1, used: pods=4, '
        "limited: pods=4",
        "ResourceQuota small is used up",
    ),
    "pod security": (
        'pods "x" is forbidden: violates PodSecurity "restricted:latest": privileged',
        "PodSecurity level restricted:latest forbids the pods",
    ),
    "another error": ("Cluster operator dns is degraded", None),
    "no message": ("", None),
}


@pytest.mark.parametrize(("message", "expected"), MESSAGES.values(), ids=MESSAGES.keys())
def test_names_what_refused_a_write(message: str, expected: str | None) -> None:
    """The sentence has its kind, its name and what it does."""
    refusal = refusal_in(message)
    assert (f"{refusal.who} {refusal.does}" if refusal else None) == expected
