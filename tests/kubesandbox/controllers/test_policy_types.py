"""What the status of a ValidatingAdmissionPolicy says about its expressions."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

from tests.kubesandbox.controllers.conftest import Cluster

from kubekit.api.scheme import Resource

JSON = dict[str, Any]
POLICIES = Resource(
    group="admissionregistration.k8s.io",
    version="v1",
    kind="ValidatingAdmissionPolicy",
    plural="validatingadmissionpolicies",
    namespaced=False,
)
DEPLOYMENTS = {"apiGroups": ["apps"], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["deployments"]}
REPLICA_SETS = {**DEPLOYMENTS, "resources": ["replicasets"]}
ANYTHING = {**DEPLOYMENTS, "apiGroups": ["*"]}


def warned(kind: str, at: str, why: str, expression: str, index: int = 0, key: str = "expression") -> JSON:
    """One warning about an expression of one line."""
    mark = "." * (int(at.partition(":")[2]) - 1) + "^"
    text = f"apps/v1, Kind={kind}: ERROR: <input>:{at}: {why}\n | {expression}\n | {mark}\n"
    return {"fieldRef": f"spec.validations[{index}].{key}", "warning": text}


TYPO, NUMBER = "object.spec.typo > 3", "object.spec.replicas == 'a'"
NO_TYPO = "undefined field 'typo'"
NO_EQUALITY = "found no matching overload for '_==_' applied to '(int, string)'"
# A policy's spec next to `matchConstraints`, which are by default those of Deployments, and what is said about it.
CASES: tuple[tuple[str, JSON, list[JSON]], ...] = (
    ("what is right", {"validations": [{"expression": "object.spec.replicas > 3"}]}, []),
    ("a missing field", {"validations": [{"expression": TYPO}]}, [warned("Deployment", "1:12", NO_TYPO, TYPO)]),
    (
        "another type",
        {"validations": [{"expression": "true"}, {"expression": NUMBER}]},
        [warned("Deployment", "1:22", why=NO_EQUALITY, expression=NUMBER, index=1)],
    ),
    (
        "a message",
        {"validations": [{"expression": "true", "messageExpression": "'a' + object.spec.typo"}]},
        [warned("Deployment", "1:18", NO_TYPO, "'a' + object.spec.typo", key="messageExpression")],
    ),
    (
        "a variable",
        {
            "variables": [{"name": "count", "expression": "object.spec.replicas"}],
            "validations": [{"expression": "variables.count == 'a'"}],
        },
        [warned("Deployment", "1:17", NO_EQUALITY, "variables.count == 'a'")],
    ),
    (
        "the labels of a template's containers",
        {"validations": [{"expression": "object.spec.template.spec.containers.all(c, c.imagge != '')"}]},
        [
            warned(
                "Deployment",
                "1:46",
                "undefined field 'imagge'",
                "object.spec.template.spec.containers.all(c, c.imagge != '')",
            )
        ],
    ),
    (
        "metadata that there is",
        {"validations": [{"expression": "object.metadata.labels.a == 'b' && object.metadata.name != ''"}]},
        [],
    ),
    (
        "two kinds, of which one has the field",
        {
            "matchConstraints": {"resourceRules": [DEPLOYMENTS, REPLICA_SETS]},
            "validations": [{"expression": "object.spec.paused == true"}],
        },
        [warned("ReplicaSet", "1:12", "undefined field 'paused'", "object.spec.paused == true")],
    ),
    (
        "any group: nothing is known",
        {"matchConstraints": {"resourceRules": [ANYTHING]}, "validations": [{"expression": TYPO}]},
        [],
    ),
)


async def test_the_warnings(cluster: Cluster) -> None:
    """The field and the words of each, and which generation was looked at: of all in one cluster, which is dear."""
    shown = {}
    for what, spec, _ in CASES:
        name = f"types-{uuid4().hex[:8]}"
        spec = {"matchConstraints": {"resourceRules": [DEPLOYMENTS]}, **spec}
        await cluster.create(name, resource=POLICIES, spec=spec)
        found = await cluster.until(lambda each: each and "typeChecking" in (each.get("status") or {}), name, POLICIES)
        await cluster.delete(name, resource=POLICIES)
        shown[what] = (
            found["status"]["observedGeneration"],
            found["status"]["typeChecking"].get("expressionWarnings", []),
        )
    assert shown == {what: (1, warnings) for what, _, warnings in CASES}
