"""Policies that deny: evaluated for the requests of an update, with the objects of the cluster where these decide."""

from __future__ import annotations

from typing import Any

import pytest
from tests.checks.catalogue.asking import JSON, findings, messages_of
from tests.factories import node_json, pod_json

NAME = "AdmissionPolicyDeniesUpdate"
GROUP = "admissionregistration.k8s.io/v1"


def rule(*resources: str, group: str = "", operations: tuple[str, ...] = ("CREATE", "UPDATE")) -> JSON:
    """A rule for resources of a group."""
    return {"apiGroups": [group], "apiVersions": ["*"], "operations": [*operations], "resources": [*resources]}


def policy(expression: str, *rules: JSON, constraints: JSON | None = None, **spec: Any) -> JSON:
    """A policy that allows requests for which the expression holds."""
    matched = {"resourceRules": [*rules], **(constraints or {})}
    validations = [{"expression": expression, "message": "not now"}]
    body = {"failurePolicy": "Fail", "matchConstraints": matched, "validations": validations, **spec}
    return {"apiVersion": GROUP, "kind": "ValidatingAdmissionPolicy", "metadata": {"name": "p"}, "spec": body}


def binding(*actions: str, **spec: Any) -> JSON:
    """A binding of the policy."""
    body = {"policyName": "p", "validationActions": [*actions], **spec}
    return {"apiVersion": GROUP, "kind": "ValidatingAdmissionPolicyBinding", "metadata": {"name": "b"}, "spec": body}


def workload(kind: str, namespace: str, replicas: int = 3) -> JSON:
    """A Deployment or a DaemonSet."""
    template = {"metadata": {"labels": {"app": "a"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    spec = {"replicas": replicas, "template": template}
    return {"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": "a", "namespace": namespace}, "spec": spec}


def namespace(name: str, **labels: str) -> JSON:
    """A Namespace."""
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}


CLUSTER = (
    workload("Deployment", "openshift-dns"),
    workload("Deployment", "shop", replicas=9),
    workload("DaemonSet", "openshift-dns"),
    namespace("openshift-dns", team="platform"),
    namespace("shop", team="a"),
    node_json(),
    pod_json("p", namespace="shop"),
    pod_json("q", namespace="openshift-dns"),
)
APPS = rule("deployments", group="apps")
NOT_PLATFORM = {"matchExpressions": [{"key": "team", "operator": "NotIn", "values": ["platform"]}]}
BY_OTHERS = [{"name": "o", "expression": "!request.userInfo.username.startsWith('system:serviceaccount:openshift-')"}]


@pytest.mark.parametrize(
    ("configured", "bound", "denied"),
    [
        pytest.param(policy("false", APPS), binding("Deny"), "UPDATE of deployments", id="everything"),
        pytest.param(policy("true", APPS), binding("Deny"), "", id="nothing"),
        pytest.param(policy("false", APPS), binding("Warn", "Audit"), "", id="it only warns"),
        pytest.param(policy("false", APPS), binding("Deny", policyName="q"), "", id="another policy is bound"),
        pytest.param(
            policy("false", APPS, constraints={"namespaceSelector": NOT_PLATFORM}), binding("Deny"), "", id="spared"
        ),
        pytest.param(
            policy("false", APPS),
            binding("Deny", matchResources={"namespaceSelector": NOT_PLATFORM}),
            "",
            id="spared by the binding",
        ),
        pytest.param(
            policy("false", APPS, constraints={"excludeResourceRules": [APPS]}), binding("Deny"), "", id="excluded"
        ),
        pytest.param(policy("false", APPS, matchConditions=BY_OTHERS), binding("Deny"), "", id="not by the operator"),
        pytest.param(
            policy("object.spec.replicas < 3", APPS), binding("Deny"), "UPDATE of deployments", id="by the object"
        ),
        pytest.param(policy("object.spec.replicas < 4", APPS), binding("Deny"), "", id="only users' objects"),
        pytest.param(
            policy("variables.few", APPS, variables=[{"name": "few", "expression": "object.spec.replicas < 3"}]),
            binding("Deny"),
            "UPDATE of deployments",
            id="by a variable",
        ),
        pytest.param(
            policy("object.spec.containers.all(c, has(c.resources))", rule("pods")),
            binding("Deny"),
            "CREATE of pods",
            id="the pods that come after",
        ),
        pytest.param(
            policy("!has(object.spec.unschedulable) || !object.spec.unschedulable", rule("nodes")),
            binding("Deny"),
            "UPDATE of nodes",
            id="cordons",
        ),
        pytest.param(
            policy("request.namespace != 'shop'", rule("pods/eviction")),
            binding("Deny"),
            "CREATE of pods/eviction",
            id="evictions of users' pods",
        ),
        pytest.param(policy("false", rule("services")), binding("Deny"), "CREATE of services", id="without the object"),
        pytest.param(
            policy("false", rule("services"), constraints={"namespaceSelector": NOT_PLATFORM}),
            binding("Deny"),
            "",
            id="services of users, which no update writes",
        ),
        pytest.param(
            policy("false", rule("clusterroles", group="rbac.authorization.k8s.io", operations=("DELETE",))),
            binding("Deny"),
            "",
            id="what no update does",
        ),
        pytest.param(
            policy("object.x == 1", rule("nodes"), failurePolicy="Ignore"), binding("Deny"), "", id="errors are ignored"
        ),
    ],
)
def test_requests_that_a_policy_denies(configured: JSON, bound: JSON, denied: str) -> None:
    found = messages_of(NAME, configured, bound, *CLUSTER)
    assert [f"denies requests of the update: {denied}" in text for text in found] == [True] * bool(denied)


@pytest.mark.parametrize(
    "configured",
    [
        pytest.param(policy("object.spec.type != 'NodePort'", rule("services")), id="objects that are not read"),
        pytest.param(
            policy("params.x == 1", APPS, paramKind={"apiVersion": "v1", "kind": "ConfigMap"}), id="parameters"
        ),
        pytest.param(
            policy("authorizer.group('').resource('pods').check('get').allowed()", APPS), id="questions about rights"
        ),
        pytest.param(policy("object.status.images.size() > 0", rule("nodes")), id="fields that are not read"),
    ],
)
def test_policies_that_cannot_be_evaluated_are_unknown(configured: JSON) -> None:
    (found,) = findings(NAME, configured, binding("Deny"), *CLUSTER)
    assert (found[0], found[2].value) == (f"{NAME}Unknown", "Unknown")
