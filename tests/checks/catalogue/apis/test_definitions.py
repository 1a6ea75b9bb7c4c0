"""What a policy or a target needs of the cluster's definitions."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace
from tests.checks.catalogue.asking import JSON, findings, messages_of
from tests.factories import context


def policy(name: str, failure: str = "Fail", group: str = "b.example") -> JSON:
    """An admission policy with parameters of kind `Limit`."""
    spec = {"failurePolicy": failure, "paramKind": {"apiVersion": f"{group}/v1", "kind": "Limit"}}
    meta = {"name": name}
    api = "admissionregistration.k8s.io/v1"
    return {"apiVersion": api, "kind": "ValidatingAdmissionPolicy", "metadata": meta, "spec": spec}


def binding(name: str, action: str = "Deny") -> JSON:
    """What puts it into force."""
    spec = {"policyName": name, "validationActions": [action]}
    api = "admissionregistration.k8s.io/v1"
    return {"apiVersion": api, "kind": "ValidatingAdmissionPolicyBinding", "metadata": {"name": name}, "spec": spec}


def definition(group: str, kind: str = "Limit", *, version: str = "v1", served: bool = True) -> JSON:
    """A definition of a kind."""
    names = {"kind": kind, "plural": f"{kind.lower()}s"}
    versions = [{"name": version, "served": served, "storage": True}]
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{names['plural']}.{group}"},
        "spec": {"group": group, "names": names, "versions": versions},
        "status": {"storedVersions": [version]},
    }


IN_FORCE = [policy("p"), binding("p")]


POLICIES: dict[str, tuple[list[JSON], bool]] = {
    "no definition": (IN_FORCE, True),
    "its definition": ([*IN_FORCE, definition("b.example")], False),
    "a definition of a group before it": ([*IN_FORCE, definition("a.example")], True),
    "a definition of a group behind it": ([*IN_FORCE, definition("c.example")], True),
    "a definition of another kind": ([*IN_FORCE, definition("b.example", "Kind")], True),
    "a version that is not served": ([*IN_FORCE, definition("b.example", served=False)], True),
    "another version": ([*IN_FORCE, definition("b.example", version="v2")], True),
    "not in force": ([policy("p")], False),
    "another's in force": ([policy("p"), binding("q")], False),
    "in force to warn": ([policy("p"), binding("p", "Warn")], True),
    "it does not refuse": ([policy("p", "Ignore"), binding("p")], False),
    "a kind of the core": ([policy("p", group="apps"), binding("p")], False),
    "a kind that is built in": ([policy("p", group="networking.k8s.io"), binding("p")], False),
    "a kind of a group below k8s.io that is not": (
        [policy("p", group="gateway.networking.k8s.io"), binding("p")],
        True,
    ),
}


@pytest.mark.parametrize(("objects", "applies"), POLICIES.values(), ids=POLICIES.keys())
def test_policies_whose_parameters_nobody_can_write(objects: list[JSON], applies: bool) -> None:
    """In force, refusing, and of a kind that the cluster does not serve."""
    assert len(messages_of("AdmissionPolicyParamMissing", *objects)) == applies


def constrained(*resources: str, group: str = "", **constraints: Any) -> JSON:
    """A policy for the writes of some resources."""
    rule = {"operations": ["*"], "apiGroups": [group], "apiVersions": ["*"], "resources": [*resources]}
    made = policy("p")
    return {**made, "spec": {**made["spec"], "matchConstraints": {"resourceRules": [rule], **constraints}}}


ONLY_SHOP = {"matchLabels": {"kubernetes.io/metadata.name": "shop"}}
SHOP = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}}


@pytest.mark.parametrize(
    ("made", "severity"),
    [
        pytest.param(policy("p"), "critical", id="nothing is said of what it matches"),
        pytest.param(constrained("pods"), "critical", id="pods"),
        pytest.param(constrained("widgets", group="example.com"), "warning", id="what no update writes"),
        pytest.param(constrained("deployments", group="apps", namespaceSelector=ONLY_SHOP), "warning", id="of users"),
        pytest.param(constrained("pods", namespaceSelector=ONLY_SHOP), "critical", id="drained pods of users"),
    ],
)
def test_how_grave_a_policy_without_parameters_is(made: JSON, severity: str) -> None:
    """By what it matches, which is decided as for webhooks."""
    (found,) = findings("AdmissionPolicyParamMissing", made, binding("p"), SHOP)
    assert found[1] == severity


STORED = definition("a.example", version="v1alpha1")


NEWER = definition("a.example", version="v1beta1")


NAME = STORED["metadata"]["name"]


DROPPED = f"Objects of {NAME} may be stored in v1alpha1, which the definition of 5.2.0 does not have (it has v1beta1)."


BROUGHT: dict[str, tuple[tuple[Any, ...] | None, list[str]]] = {
    "nothing could be read": (
        None,
        ["Whether CRDStoredVersionDropped applies is unknown: the target's manifests could not be read."],
    ),
    "nothing": ((), []),
    "without it": ((NEWER,), [DROPPED]),
    "with it": ((STORED,), []),
    "another definition": ((definition("z.example", version="v2"),), []),
    "another kind of that name": (({**NEWER, "kind": "Alpha"},), []),
    "another kind of that name, behind": (({**NEWER, "kind": "X"},), []),
    "what is not an object": (("x",), []),
    "no name": (({**NEWER, "metadata": {}},), []),
    "no versions": (({**NEWER, "spec": {"versions": "v1"}},), []),
    "one that cannot be told, and one without it": (({**NEWER, "metadata": None}, NEWER), [DROPPED]),
}


@pytest.mark.parametrize(("manifests", "said"), BROUGHT.values(), ids=BROUGHT.keys())
def test_versions_that_a_target_drops(manifests: tuple[Any, ...] | None, said: list[str]) -> None:
    """Of what the cluster has, by the definition of the same name."""
    assert messages_of("CRDStoredVersionDropped", STORED, to=replace(context(), manifests=manifests)) == said


def test_a_cluster_without_definitions_needs_no_manifests() -> None:
    """Nothing of it could be stored."""
    assert messages_of("CRDStoredVersionDropped", to=replace(context(), manifests=None)) == []
