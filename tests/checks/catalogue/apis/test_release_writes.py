"""The target's own objects are requests of the update: webhooks and policies are evaluated for them."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from tests.checks.catalogue.apis.test_admission_policies import binding, namespace, policy, rule
from tests.checks.catalogue.asking import JSON, findings, messages_of
from tests.factories import context

from runup.checks.decide.target_manifests import ReleaseObjects

RELEASE = """
apiVersion: v1
kind: Namespace
metadata: {name: openshift-new, annotations: {a: b}, labels: {team: platform}}
---
apiVersion: example.openshift.io/v1
kind: Policy
metadata: {name: p, namespace: openshift-new, labels: {app: new}, annotations: {a: b}}
spec: {size: 3}
---
apiVersion: example.openshift.io/v1
kind: Gone
metadata: {name: g, annotations: {release.openshift.io/delete: "true"}}
---
apiVersion: v1
kind: Service
metadata: {name: s, namespace: openshift-new, annotations: {a: b}}
spec: {type: NodePort}
"""
UPDATE = replace(context(), release=ReleaseObjects([("a.yaml", RELEASE)]))
OWN = "example.openshift.io"
LABELLED = {"objectSelector": {"matchLabels": {"app": "new"}}}
CREATED = {"namespaceSelector": {"matchLabels": {"team": "platform"}}}


@pytest.mark.parametrize(
    ("configured", "denied"),
    [
        pytest.param(
            policy("object.spec.size < 3", rule("policies", group=OWN)), "CREATE of policies", id="its fields"
        ),
        pytest.param(policy("object.spec.size < 4", rule("policies", group=OWN)), "", id="it passes"),
        pytest.param(policy("false", rule("policies", group=OWN), constraints=LABELLED), "CREATE of", id="its labels"),
        pytest.param(
            policy("false", rule("policies", group=OWN), constraints=CREATED),
            "CREATE of policies",
            id="labels of a namespace that the release creates",
        ),
        pytest.param(
            policy("false", rule("gones", group=OWN, operations=("DELETE",))), "DELETE of gones", id="a deletion"
        ),
        pytest.param(
            policy("false", rule("policies", group=OWN, operations=("DELETE",))), "", id="a deletion that is not sent"
        ),
        pytest.param(
            policy("object.spec.type != 'NodePort'", rule("services")), "CREATE of services", id="of a listed kind"
        ),
    ],
)
def test_policies_that_deny_objects_of_the_release(configured: JSON, denied: str) -> None:
    found = messages_of(
        "AdmissionPolicyDeniesUpdate", configured, binding("Deny"), namespace("openshift-dns"), to=UPDATE
    )
    assert [f"denies requests of the update: {denied}" in text for text in found] == [True] * bool(denied)


def test_a_policy_that_compares_with_the_object_before_is_unknown() -> None:
    rules = rule("policies", group=OWN, operations=("UPDATE",))
    configured = policy("object.spec == oldObject.spec", rules)
    (found,) = findings("AdmissionPolicyDeniesUpdate", configured, binding("Deny"), namespace("shop"), to=UPDATE)
    assert found[0] == "AdmissionPolicyDeniesUpdateUnknown"


def test_manifests_that_cannot_be_read_are_unknown() -> None:
    update = replace(context(), release=ReleaseObjects([("b.yaml", "kind: [")]))
    found = messages_of(
        "AdmissionPolicyDeniesUpdate", policy("true", rule("services")), binding("Deny"), namespace("shop"), to=update
    )
    assert ["the manifests of the target cannot be read: b.yaml" in text for text in found] == [True]


def webhook(**fields: object) -> JSON:
    """A webhook for the release's own group, whose Service is missing."""
    hook = {
        "name": "w.example.com",
        "clientConfig": {"service": {"namespace": "shop", "name": "gone"}},
        "rules": [rule("policies", group=OWN)],
        **fields,
    }
    meta = {"name": "w"}
    group = "admissionregistration.k8s.io/v1"
    return {"apiVersion": group, "kind": "ValidatingWebhookConfiguration", "metadata": meta, "webhooks": [hook]}


@pytest.mark.parametrize(
    ("configured", "is_told"),
    [
        pytest.param(webhook(), True, id="without selectors"),
        pytest.param(webhook(failurePolicy="Ignore"), False, id="failures are ignored"),
        pytest.param(webhook(**LABELLED), True, id="its labels"),
        pytest.param(webhook(objectSelector={"matchLabels": {"app": "old"}}), False, id="other labels"),
        pytest.param(
            webhook(namespaceSelector={"matchLabels": {"kubernetes.io/metadata.name": "shop"}}),
            False,
            id="another namespace",
        ),
        pytest.param(webhook(rules=[rule("gones", group=OWN)]), False, id="another operation"),
    ],
)
def test_webhooks_that_intercept_objects_of_the_release(configured: JSON, is_told: bool) -> None:
    found = messages_of("WebhookBlocksUpdate", configured, namespace("openshift-dns"), to=UPDATE)
    assert ["Policy openshift-new/p of the release" in text for text in found] == [True] * is_told
