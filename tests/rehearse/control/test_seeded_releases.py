"""A release that breaks something of each kind, and next to it one that looks alike and is fine."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from tests.applying.control.release_folders import NAMESPACE, config_map, definition, deployment, manifest
from tests.few_or_many import first_and_rest
from tests.rehearse.rehearsed_world import cluster_at_source, findings, rehearsed

from runup.applying.decide.task import DELETE

JSON = dict[str, Any]
SIZE = {"type": "object", "properties": {"spec": {"type": "object", "properties": {"size": {"type": "integer"}}}}}


def changed(obj: JSON, path: str, value: Any) -> JSON:
    """A copy of an object with another value at that path, or without one."""
    result = copy.deepcopy(obj)
    *parents, last = path.split(".")
    at: Any = result
    for step in parents:
        at = at[int(step)] if isinstance(at, list) else at[step]
    key = int(last) if isinstance(at, list) else last
    if value is None:
        del at[key]
    else:
        at[key] = value
    return result


def widgets(**spec: Any) -> JSON:
    """The definition of Widgets; `spec` are the properties of their spec."""
    schema = {"type": "object", "properties": {"spec": {"type": "object", **spec}}}
    made = definition("Widget", "widgets")
    made["spec"]["versions"][0]["schema"]["openAPIV3Schema"] = schema
    return made


def widget(name: str = "mine", **spec: Any) -> JSON:
    """A Widget of somebody's own."""
    return {
        "apiVersion": "example.org/v1",
        "kind": "Widget",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": spec,
    }


def role(*verbs: str) -> JSON:
    """A ClusterRole on pods."""
    rule = {"apiGroups": [""], "resources": ["pods"], "verbs": list(verbs)}
    return manifest("rbac.authorization.k8s.io/v1", "ClusterRole", "example-viewer", rules=[rule])


BINDING: JSON = {
    "apiVersion": "rbac.authorization.k8s.io/v1",
    "kind": "ClusterRoleBinding",
    "metadata": {"name": "shop"},
    "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "example-viewer"},
    "subjects": [{"kind": "ServiceAccount", "name": "shop", "namespace": "default"}],
}
POLICY: JSON = {
    "apiVersion": "admissionregistration.k8s.io/v1",
    "kind": "ValidatingAdmissionPolicy",
    "metadata": {"name": "owned"},
    "spec": {
        "matchConstraints": {
            "resourceRules": [
                {
                    "apiGroups": [""],
                    "apiVersions": ["v1"],
                    "operations": ["CREATE", "UPDATE"],
                    "resources": ["configmaps"],
                }
            ]
        },
        "validations": [{"expression": "has(object.data.owner)", "message": "an owner is needed"}],
    },
}
DENY: JSON = {
    "apiVersion": "admissionregistration.k8s.io/v1",
    "kind": "ValidatingAdmissionPolicyBinding",
    "metadata": {"name": "owned"},
    "spec": {"policyName": "owned", "validationActions": ["Deny"]},
}
ASKS = "authorizer.group('').resource('pods').check('get').allowed()"
WEBHOOK: JSON = {
    "apiVersion": "admissionregistration.k8s.io/v1",
    "kind": "ValidatingWebhookConfiguration",
    "metadata": {"name": "guard"},
    "webhooks": [
        {
            "name": "guard.example.org",
            "clientConfig": {"url": "https://guard.example.org/judge"},
            "rules": [
                {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["UPDATE"], "resources": ["configmaps"]}
            ],
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
        }
    ],
}
FULL: JSON = {
    "apiVersion": "v1",
    "kind": "ResourceQuota",
    "metadata": {"name": "few", "namespace": NAMESPACE},
    "spec": {"hard": {"count/configmaps": "1"}},
    "status": {"hard": {"count/configmaps": "1"}, "used": {"count/configmaps": "1"}},
}
ROOMY = {**FULL, "status": {"hard": {"count/configmaps": "5"}, "used": {"count/configmaps": "1"}}}
WEB = deployment("web", "registry.example/web:1")
VALUES = config_map("values", {"mode": "fast"})
TWO_VERSIONS = definition("Widget", "widgets")
TWO_VERSIONS["spec"]["versions"] = [
    {**TWO_VERSIONS["spec"]["versions"][0], "name": "v1", "storage": False},
    {**TWO_VERSIONS["spec"]["versions"][0], "name": "v2", "storage": True},
]
OLD_STORED = changed(changed(TWO_VERSIONS, "spec.versions.0.storage", True), "spec.versions.1.storage", False)
ONLY_V2 = changed(TWO_VERSIONS, "spec.versions", [TWO_VERSIONS["spec"]["versions"][1]])
ONLY_V1 = definition("Widget", "widgets")
BY_WEBHOOK: JSON = {
    "strategy": "Webhook",
    "webhook": {
        "clientConfig": {"url": "https://widgets.example.org/convert"},
        "conversionReviewVersions": ["v1"],
    },
}
STRICT = {"properties": {"size": {"type": "integer"}}, "required": ["size"]}
UP_TO_FIVE = {"properties": {"size": {"type": "integer", "maximum": 5}}}
ANY_SIZE = {"properties": {"size": {"type": "integer"}, "colour": {"type": "string"}}}


SUBJECT: JSON = {"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": "ann"}
BOUND: JSON = {
    "api_version": "rbac.authorization.k8s.io/v1",
    "kind": "ClusterRoleBinding",
    "name": "bound",
    "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "example-viewer"},
    "subjects": [SUBJECT, {**SUBJECT, "name": "bob"}],
}


@dataclass(frozen=True)
class Case:
    """What the cluster has of its release and of its users, what the target brings, and what is found."""

    release: list[JSON]
    target: list[JSON]
    found: dict[str, str] = field(default_factory=dict)
    users: list[JSON] = field(default_factory=list)
    edits: list[tuple[JSON, JSON]] = field(default_factory=list)
    owned: list[tuple[JSON, JSON]] = field(default_factory=list)


CASES: dict[str, Callable[[], Case]] = {
    "an immutable selector": lambda: Case(
        [WEB],
        [
            changed(
                changed(WEB, "spec.selector.matchLabels", {"app": "other"}),
                "spec.template.metadata.labels",
                {"app": "other"},
            )
        ],
        {"RehearsalImmutableField-Deployment-openshift-example-web": "True"},
    ),
    "another image": lambda: Case([WEB], [deployment("web", "registry.example/web:2")]),
    "a stored version that goes": lambda: Case(
        [OLD_STORED], [ONLY_V2], {"RehearsalStoredVersion-CustomResourceDefinition-widgets.example.org": "True"}
    ),
    "a version that is served no more, and was not stored": lambda: Case([TWO_VERSIONS], [ONLY_V2]),
    "a version that goes, and that somebody writes": lambda: Case(
        [TWO_VERSIONS],
        [ONLY_V2],
        {"RehearsalVersionUnserved-widgets.example.org": "True"},
        users=[widget(size=3)],
    ),
    "a stricter schema": lambda: Case(
        [widgets(**ANY_SIZE)],
        [widgets(**STRICT)],
        {"RehearsalObjectRefused-widgets.example.org": "True"},
        users=[widget()],
    ),
    "a stricter schema that all objects fit": lambda: Case(
        [widgets(**ANY_SIZE)], [widgets(**STRICT)], users=[widget(size=3)]
    ),
    "a limit that an unchanged field may break": lambda: Case(
        [widgets(**ANY_SIZE)],
        [widgets(**{**UP_TO_FIVE, "properties": {**ANY_SIZE["properties"], **UP_TO_FIVE["properties"]}})],
        {"RehearsalObjectTolerated-widgets.example.org": "True"},
        users=[widget(size=9)],
    ),
    "a field that is pruned": lambda: Case(
        [widgets(**ANY_SIZE)],
        [widgets(properties={"size": {"type": "integer"}})],
        {"RehearsalFieldsPruned-widgets.example.org": "True"},
        users=[widget(size=3, colour="red")],
    ),
    "a field that goes, and that nobody set": lambda: Case(
        [widgets(**ANY_SIZE)], [widgets(properties={"size": {"type": "integer"}})], users=[widget(size=3)]
    ),
    "a policy that refuses": lambda: Case(
        [VALUES],
        [changed(VALUES, "data.mode", "faster")],
        {"RehearsalRefusedByPolicy-owned": "True"},
        users=[POLICY, DENY],
    ),
    "a policy that is fulfilled": lambda: Case(
        [VALUES], [changed(VALUES, "data.owner", "platform")], users=[POLICY, DENY]
    ),
    "a policy that asks the authorizer": lambda: Case(
        [VALUES],
        [changed(VALUES, "data.mode", "faster")],
        {"RehearsalPolicyNotEvaluated-ValidatingAdmissionPolicy-owned": "Unknown"},
        users=[changed(POLICY, "spec.validations.0.expression", ASKS), DENY],
    ),
    "a policy that only warns": lambda: Case(
        [VALUES],
        [changed(VALUES, "data.mode", "faster")],
        users=[POLICY, changed(DENY, "spec.validationActions", ["Warn"])],
    ),
    "rights that are lost": lambda: Case(
        [role("get", "list")],
        [role("get")],
        {"RehearsalRightsNarrow-ClusterRole-example-viewer": "True"},
        users=[BINDING],
    ),
    "rights in another order": lambda: Case([role("get", "list")], [role("list", "get")], users=[BINDING]),
    "rights that are gained": lambda: Case(
        [role("get")], [role("get", "list")], {"RehearsalRightsWiden-ClusterRole-example-viewer": "True"}
    ),
    "a user's value that is overwritten": lambda: Case(
        [VALUES],
        [VALUES],
        {"RehearsalOverwritten-ConfigMap-openshift-example-values": "True"},
        edits=[(VALUES, {"data": {"mode": "slow"}})],
    ),
    "a user's value beside the release's": lambda: Case(
        [VALUES], [VALUES], edits=[(VALUES, {"data": {"own": "kept"}})]
    ),
    "a quota that has no room": lambda: Case(
        [VALUES],
        [VALUES, config_map("more", {})],
        {"RehearsalRefusedByQuota-ConfigMap-openshift-example-more": "True"},
        users=[FULL],
    ),
    "a quota that has room": lambda: Case([VALUES], [VALUES, config_map("more", {})], users=[ROOMY]),
    "a role that is bound anew": lambda: Case(
        [role("get"), manifest(**BOUND)],
        [role("get"), changed(manifest(**BOUND), "roleRef.name", "view")],
        {"RehearsalImmutableField-ClusterRoleBinding-bound": "True"},
    ),
    "a subject that a binding no longer names": lambda: Case(
        [role("get"), manifest(**BOUND)],
        [role("get"), changed(manifest(**BOUND), "subjects", [SUBJECT])],
        {"RehearsalRightsNarrow-ClusterRoleBinding-bound": "True"},
    ),
    "a version that only a webhook converts": lambda: Case(
        [ONLY_V1],
        [{**ONLY_V2, "spec": {**ONLY_V2["spec"], "conversion": BY_WEBHOOK}}],
        {
            "RehearsalStoredVersion-CustomResourceDefinition-widgets.example.org": "True",
            "RehearsalObjectUnknown-widgets.example.org": "Unknown",
            "RehearsalVersionUnserved-widgets.example.org": "True",
        },
        users=[widget(size=3)],
    ),
    "a webhook that is asked": lambda: Case(
        [VALUES],
        [changed(VALUES, "data.mode", "faster")],
        {"RehearsalWebhook-guard-guard.example.org": "Unknown"},
        users=[WEBHOOK],
    ),
    "a webhook about what does not change": lambda: Case([VALUES], [VALUES], users=[WEBHOOK]),
    "a definition that goes with its objects": lambda: Case(
        [widgets(**ANY_SIZE)],
        [{**widgets(**ANY_SIZE), **manifest(
            "apiextensions.k8s.io/v1", "CustomResourceDefinition", "widgets.example.org",
            annotations={"release.openshift.io/delete": "true"})}],
        {"RehearsalDeletes": "True", "RehearsalVanishes-widgets.example.org": "True"},
        users=[widget(size=3)],
    ),
    "a definition that goes and has no objects": lambda: Case(
        [widgets(**ANY_SIZE)],
        [manifest(
            "apiextensions.k8s.io/v1", "CustomResourceDefinition", "widgets.example.org",
            annotations={"release.openshift.io/delete": "true"})],
        {"RehearsalDeletes": "True"},
    ),
    "a namespace that goes with what users put into it": lambda: Case(
        [manifest("v1", "Namespace", "old")],
        [manifest("v1", "Namespace", "old", annotations={"release.openshift.io/delete": "true"})],
        {"RehearsalDeletes": "True", "RehearsalVanishes-old": "True"},
        users=[changed(VALUES, "metadata.namespace", "old")],
    ),
    "an owner that goes with what it made": lambda: Case(
        [WEB],
        [{**WEB, "metadata": {**WEB["metadata"], "annotations": {**WEB["metadata"]["annotations"], DELETE: "true"}}}],
        {"RehearsalDeletes": "True", "RehearsalVanishes-openshift-example-web": "True"},
        owned=[(WEB, changed(VALUES, "metadata.name", "made"))],
    ),
    "an object that goes and made nothing": lambda: Case(
        [WEB],
        [{**WEB, "metadata": {**WEB["metadata"], "annotations": {**WEB["metadata"]["annotations"], DELETE: "true"}}}],
        {"RehearsalDeletes": "True"},
    ),
    "a kind that nobody defines": lambda: Case(
        [],
        [manifest("example.org/v1", "Gadget", "one", NAMESPACE)],
        {"RehearsalKindNotServed-Gadget-openshift-example-one": "True"},
    ),
    "a kind that the release defines later": lambda: Case(
        [], [manifest("example.org/v1", "Widget", "one", NAMESPACE), widgets(**ANY_SIZE)]
    ),
    "a kind of an API server that the copy does not have": lambda: Case(
        [],
        [manifest("route.openshift.io/v1", "Route", "one", NAMESPACE)],
        {
            "RehearsalNotTried-Route-openshift-example-one": "Unknown",
            "RehearsalIncomplete-routes.route.openshift.io": "Unknown",
        },
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", first_and_rest(list(CASES), 4))
async def test_what_a_release_breaks(name: str, tmp_path: Path) -> None:
    """Exactly what is broken is found, and nothing of what looks alike."""
    case = CASES[name]()
    async with cluster_at_source(tmp_path, *case.release) as cluster:
        await cluster.apply(*case.users, manager="shop")
        for obj, patch in case.edits:
            await cluster.edit(obj, patch)
        for owner, obj in case.owned:
            await cluster.apply(await cluster.owned_by(owner, obj), manager="shop")
        result = await rehearsed(cluster, tmp_path, *case.target)
    assert findings(result) == case.found
