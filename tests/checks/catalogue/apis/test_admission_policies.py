"""Policies that deny: evaluated for the requests of an update, with the objects of the cluster where these decide."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace
from tests.checks.catalogue.asking import JSON, findings, messages_of
from tests.factories import context, node_json, pod_json

from runup.checks.decide.cluster_kinds import ClusterKind

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
    *(node_json(f"node-{number}") for number in range(901)),
    pod_json("p", namespace="shop"),
    pod_json("r", namespace="shop", labels={"keep": "yes"}),
    {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "dnses"},
        "spec": {"group": "operator.openshift.io", "names": {"kind": "DNS", "plural": "dnses"}},
    },
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
            policy("object.metadata.labels.team == 'a'", rule("nodes"), failurePolicy="Ignore"),
            binding("Deny"),
            "",
            id="errors are ignored",
        ),
        pytest.param(
            policy("object.metadata.labels.team == 'a'", rule("nodes")), binding("Deny"), "UPDATE of nodes", id="errors"
        ),
        pytest.param(
            policy("request.name != 'r'", rule("pods/eviction")),
            binding("Deny"),
            "CREATE of pods/eviction",
            id="the eviction of the last pod of a namespace",
        ),
        pytest.param(
            policy("object.metadata.name != 'node-900'", rule("nodes")),
            binding("Deny"),
            "UPDATE of nodes",
            id="the last of many nodes",
        ),
        pytest.param(
            policy("!('keep' in oldObject.metadata.labels)", rule("pods", operations=("DELETE",))),
            binding("Deny"),
            "DELETE of pods",
            id="the deletion of a pod",
        ),
        pytest.param(
            policy("false", APPS, constraints={"objectSelector": {"matchLabels": {"team": "a"}}}),
            binding("Deny"),
            "",
            id="objects with a label that the platform's do not have",
        ),
        pytest.param(
            policy(
                "object.spec.scope != 'x'",
                rule("customresourcedefinitions", group="apiextensions.k8s.io"),
                matchConditions=[{"name": "g", "expression": "object.spec.group == 'gateway.networking.k8s.io'"}],
            ),
            binding("Deny"),
            "",
            id="definitions of other groups",
        ),
        pytest.param(
            policy(
                "object.spec.containers.all(c, has(c.resources))",
                rule("pods"),
                constraints={"namespaceSelector": NOT_PLATFORM},
            ),
            binding("Deny"),
            "",
            id="the contents of users' pods, which were admitted before",
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
        pytest.param(
            policy("!has(object.metadata.managedFields)", rule("nodes")), id="whether a field that is not read is there"
        ),
        pytest.param(
            policy("named.format('a').hasValue()", rule("nodes")), id="functions that the engine does not have"
        ),
        pytest.param(
            policy("request.userInfo.username == 'system:serviceaccount:openshift-cluster-version:default'", APPS),
            id="the answer depends on which operator sends it",
        ),
        pytest.param(
            policy("true", APPS, matchConditions=[{"name": "c", "expression": "object.status.replicas > 1"}]),
            id="conditions on fields that are not read",
        ),
    ],
)
def test_policies_that_cannot_be_evaluated_are_unknown(configured: JSON) -> None:
    (found,) = findings(NAME, configured, binding("Deny"), *CLUSTER)
    assert (found[0], found[2].value) == (f"{NAME}Unknown", "Unknown")


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        pytest.param({}, [f"{NAME}Unknown"], id="another's"),
        pytest.param({"name": "mcn-guards"}, [], id="of a component"),
        pytest.param(
            {"annotations": {"include.release.openshift.io/self-managed-high-availability": "true"}},
            [],
            id="of the release",
        ),
    ],
)
def test_policies_of_the_platform_are_not_unknown(changes: JSON, expected: list[str]) -> None:
    configured = policy("object.status.images.size() > 0", rule("nodes"))
    configured["metadata"] |= changes
    bound = binding("Deny", policyName=configured["metadata"]["name"])
    assert [found[0] for found in findings(NAME, configured, bound, *CLUSTER)] == expected


@pytest.mark.slow
def test_more_requests_than_are_evaluated_are_unknown() -> None:
    pods = [pod_json(f"p-{number}", namespace="shop") for number in range(10_001)]
    (found,) = messages_of(NAME, policy("request.name != ''", rule("pods/eviction")), binding("Deny"), *pods, *CLUSTER)
    assert "CREATE of pods/eviction (more than 10000 different ones)" in found


@pytest.mark.parametrize(
    ("conditions", "expected"),
    [
        pytest.param([], [f"{NAME}Unknown"], id="matched"),
        pytest.param([{"name": "c", "expression": "request.namespace == 'shop'"}], [], id="of users alone"),
    ],
)
@pytest.mark.parametrize("version", ["v1", "v1beta1"])
def test_policies_that_change_requests_are_unknown(conditions: JSON, expected: list[str], version: str) -> None:
    matched = {"resourceRules": [APPS]}
    spec = {"matchConstraints": matched, "matchConditions": conditions, "mutations": [{"patchType": "JSONPatch"}]}
    group = f"admissionregistration.k8s.io/{version}"
    objects = (
        {"apiVersion": group, "kind": "MutatingAdmissionPolicy", "metadata": {"name": "m"}, "spec": spec},
        {
            "apiVersion": group,
            "kind": "MutatingAdmissionPolicyBinding",
            "metadata": {"name": "m"},
            "spec": {"policyName": "m"},
        },
    )
    assert [found[0] for found in findings(NAME, *objects, *CLUSTER)] == expected


KUBERNETES = replace(context("1.33.0", "1.34.0", "1.34.0"), cluster=ClusterKind.KUBERNETES)


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        pytest.param("request.namespace != 'kube-system'", "denies requests of the update: UPDATE of", id="denied"),
        pytest.param("'system:masters' in request.userInfo.groups", "cannot be evaluated", id="by the account"),
        pytest.param("request.namespace != 'shop'", "", id="of users alone"),
    ],
)
def test_policies_of_any_kubernetes(expression: str, expected: str) -> None:
    rules = rule("deployments", "daemonsets", group="apps"), rule("dnses", group="operator.openshift.io")
    cluster = (workload("DaemonSet", "kube-system"), namespace("kube-system"), namespace("shop"), node_json())
    found = messages_of(NAME, policy(expression, *rules), binding("Deny"), *cluster, to=KUBERNETES)
    assert [expected in text for text in found] == [True] * bool(expected)


def test_a_policy_that_cannot_be_decoded_is_unknown() -> None:
    configured = policy("true", APPS)
    configured["spec"]["validations"] = [{"expression": 1}]
    found = findings(NAME, configured, binding("Deny"), *CLUSTER)
    assert [each[2].value for each in found] == ["Unknown"]
