"""What a check concludes from an object that is not there holds only if all are known: in part it is Unknown."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.factories import context

from kubekit.api.scheme import Resource
from kubekit.lang import yaml as kyaml
from runup.checks.catalogue import CHECKS
from runup.checks.decide.engine import CheckOutcome, run_check
from runup.checks.decide.snapshots import snapshot_of

BY_NAME = {check.name: check for check in CHECKS}
WEBHOOK = """
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: guard}
webhooks:
- name: guard.example.com
  failurePolicy: Fail
  clientConfig: {service: {namespace: shop, name: guard}}
  rules: [{operations: ["*"], apiGroups: ["*"], apiVersions: ["*"], resources: ["*"]}]
"""
SERVICE = """---
apiVersion: v1
kind: Service
metadata: {name: guard, namespace: shop}
spec: {selector: {app: guard}, ports: [{port: 443}]}
"""
OTHER_SERVICE = SERVICE.replace("name: guard,", "name: other,")
POLICY = """
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: repos}
spec: {failurePolicy: Fail, paramKind: {apiVersion: rules.example.com/v1, kind: Repos}}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: repos}
spec: {policyName: repos, validationActions: [Deny]}
"""
DEFINITION = """---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: others.example.com}
spec: {group: example.com, names: {kind: Other, plural: others}, versions: [{name: v1, served: true, storage: true}]}
"""
GATE = """
apiVersion: v1
kind: ConfigMap
metadata: {name: admin-gates, namespace: openshift-config-managed}
data: {ack-5.0-kube-1.37-in-5.1: "Kubernetes 1.37 removes APIs."}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: another, namespace: openshift-config}
"""
FULL = """
apiVersion: v1
kind: Node
metadata: {name: NAME, labels: {node-role.kubernetes.io/worker: ""}}
status: {allocatable: {cpu: "2", memory: 4Gi}, nodeInfo: {kubeletVersion: VERSION}}
---
apiVersion: v1
kind: Pod
metadata: {name: on-NAME, namespace: shop, ownerReferences: [{kind: ReplicaSet, name: x, controller: true}]}
spec: {nodeName: NAME, containers: [{name: a, resources: {requests: {cpu: 1500m, memory: 1Gi}}}]}
status: {phase: Running}
---
"""
POOL = """
apiVersion: machineconfiguration.openshift.io/v1
kind: MachineConfigPool
metadata: {name: worker}
spec: {nodeSelector: {matchLabels: {node-role.kubernetes.io/worker: ""}}}
status: {machineCount: 2}
"""
TWO = "".join(FULL.replace("NAME", f"w-{n}").replace("VERSION", f"v1.{36 - n}.0") for n in (0, 1)) + POOL

ROWS: dict[str, tuple[str, str, str]] = {
    "a webhook whose Service has no pod": ("WebhookBlocksUpdate", WEBHOOK + SERVICE, "pods"),
    "a webhook without a Service": ("WebhookBlocksUpdate", WEBHOOK + OTHER_SERVICE, "services"),
    "a policy whose parameters nobody defines": (
        "AdmissionPolicyParamMissing", POLICY + DEFINITION, "customresourcedefinitions",
    ),
    "a gate that nobody acknowledged": ("AdminAck", GATE, "configmaps"),
    "nodes without room for each other's pods": ("HeadroomShort", TWO, "nodes"),
    "nodes of a pool at two releases": ("NodeReleasesMixed", TWO, "machineconfigpools"),
}  # fmt: skip


def judged(name: str, text: str, partly: str = "", complete_in: str = "") -> CheckOutcome:
    """What the check comes to where of the kind `partly` only a part is known."""
    check = BY_NAME[name]

    def gap(resource: Resource) -> str:
        return "only a part" if resource.plural == partly else ""

    objects = [each for each in kyaml.load_all(text) if each]
    snapshot = snapshot_of(check.reads, objects, partly=gap, complete_in=lambda _: [complete_in] * bool(complete_in))
    return run_check(check, snapshot, replace(context("5.0.0", "5.1.0", "1.37.0")))


@pytest.mark.parametrize(("name", "text", "plural"), ROWS.values(), ids=list(ROWS))
def test_what_is_missing_in_a_part_is_no_risk(name: str, text: str, plural: str) -> None:
    """With all of the kind it applies, with a part of it nobody can tell."""
    assert (judged(name, text).result, judged(name, text, plural).result) == ("Applies", "Unknown")


@pytest.mark.parametrize("row", ["a webhook whose Service has no pod", "a webhook without a Service"])
def test_what_is_missing_in_a_namespace_that_is_known_in_full(row: str) -> None:
    """Is missing; elsewhere there may be others all the same."""
    outcome = judged(*ROWS[row], complete_in="shop")
    assert [finding.applies.value for finding in outcome.findings] == ["True", "Unknown"]
