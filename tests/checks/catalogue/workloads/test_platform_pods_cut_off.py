"""Network policies that deny the traffic of webhooks, aggregated APIs and operators."""

from __future__ import annotations

from typing import Any

import pytest
from tests.checks.catalogue.asking import JSON, messages_of
from tests.factories import pod_json

NAME, SPACE = "PlatformPodsCutOff", "openshift-dns-operator"


def policy(name: str = "deny", namespace: str = SPACE, **spec: Any) -> JSON:
    """A NetworkPolicy for all pods of a namespace, without rules."""
    body = {"podSelector": {}, "policyTypes": ["Ingress", "Egress"], **spec}
    meta = {"name": name, "namespace": namespace}
    return {"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": meta, "spec": body}


def operator(name: str = "dns-operator", **spec: Any) -> JSON:
    """A Deployment of the platform."""
    template = {"metadata": {"labels": {"app": "dns"}}, "spec": {"containers": [{"name": "c"}], **spec}}
    meta = {"name": name, "namespace": SPACE}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": meta, "spec": {"template": template}}


ALLOW = policy("allow", egress=[{}], policyTypes=["Egress"], podSelector={"matchLabels": {"app": "dns"}})


@pytest.mark.parametrize(
    ("objects", "is_told"),
    [
        pytest.param((policy(), operator()), True, id="denied"),
        pytest.param((policy(), ALLOW, operator()), False, id="another policy allows it"),
        pytest.param((policy(policyTypes=["Ingress"]), operator()), False, id="outgoing traffic is not denied"),
        pytest.param((policy(policyTypes=[]), operator()), False, id="by default incoming traffic alone"),
        pytest.param((policy(podSelector={"matchLabels": {"app": "x"}}), operator()), False, id="other pods"),
        pytest.param((policy(namespace="shop"), operator()), False, id="another namespace"),
        pytest.param((policy(), operator(hostNetwork=True)), False, id="the network of the node"),
        pytest.param((policy(), operator("downloads")), False, id="no operator"),
    ],
)
def test_operators_that_send_nothing(objects: tuple[JSON, ...], is_told: bool) -> None:
    found = messages_of(NAME, *objects)
    assert [f"perator {SPACE}/dns-operator sends no traffic" in text for text in found] == [True] * is_told


SERVICE = {
    "apiVersion": "v1",
    "kind": "Service",
    "metadata": {"name": "hook", "namespace": "vendor"},
    "spec": {"selector": {"app": "hook"}, "ports": [{"port": 443}]},
}
READY = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
HOOK = pod_json("hook-1", "vendor", labels={"app": "hook"}, status=READY)
ON_NODE = pod_json("hook-1", "vendor", labels={"app": "hook"}, status=READY, spec={"hostNetwork": True})
REFERENCE = {"namespace": "vendor", "name": "hook"}


def webhook(**fields: Any) -> JSON:
    """A webhook for pods that the Service answers."""
    rules = [{"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"]}]
    hook = {"name": "w", "clientConfig": {"service": REFERENCE}, "rules": rules, **fields}
    group = "admissionregistration.k8s.io/v1"
    return {
        "apiVersion": group,
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": "c"},
        "webhooks": [hook],
    }


API = {
    "apiVersion": "apiregistration.k8s.io/v1",
    "kind": "APIService",
    "metadata": {"name": "v1.example.com"},
    "spec": {"service": REFERENCE, "group": "example.com", "version": "v1"},
}
DENY = policy(namespace="vendor")
GROUP = {"policy-group.network.openshift.io/host-network": ""}


def rules(*peers: JSON) -> JSON:
    """A policy that admits these peers."""
    return policy(namespace="vendor", ingress=[{"from": [*peers]}])


@pytest.mark.parametrize(
    ("objects", "is_told"),
    [
        pytest.param((DENY, webhook(), HOOK), True, id="denied"),
        pytest.param((DENY, API, HOOK), True, id="an aggregated API"),
        pytest.param((DENY, webhook(failurePolicy="Ignore"), HOOK), False, id="failures are ignored"),
        pytest.param((policy(namespace="vendor", ingress=[{}]), webhook(), HOOK), False, id="it has a rule"),
        pytest.param((rules({"podSelector": {}}), webhook(), HOOK), True, id="pods of the namespace alone"),
        pytest.param((rules({"ipBlock": {"cidr": "10.0.0.0/16"}}), webhook(), HOOK), False, id="an address block"),
        pytest.param((rules({"namespaceSelector": {}}), webhook(), HOOK), False, id="all namespaces"),
        pytest.param((rules({"namespaceSelector": {"matchLabels": GROUP}}), webhook(), HOOK), False, id="its group"),
        pytest.param(
            (rules({"namespaceSelector": {"matchLabels": {"team": "a"}}}), webhook(), HOOK), True, id="of a team"
        ),
        pytest.param((policy(namespace="vendor", policyTypes=["Egress"]), webhook(), HOOK), False, id="outgoing alone"),
        pytest.param((DENY, webhook(), ON_NODE), False, id="the network of the node"),
        pytest.param((DENY, webhook()), False, id="without pods"),
    ],
)
def test_backends_that_receive_nothing(objects: tuple[JSON, ...], is_told: bool) -> None:
    found = messages_of(NAME, SERVICE, *objects)
    assert ["receives no traffic of API servers: network policies of vendor deny it" in it for it in found] == [
        True
    ] * is_told
