"""A check that concludes from a missing object is Unknown if the kind is only partly known."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
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


def outcome_of(name: str, text: str, partly: str = "", complete_in: str = "") -> CheckOutcome:
    """Returns the check's outcome if only a part of the kind `partly` is known."""
    check = BY_NAME[name]

    def gap(resource: Resource) -> str:
        return "only a part" if resource.plural == partly else ""

    objects = [each for each in kyaml.load_all(text) if each]
    snapshot = snapshot_of(check.reads, objects, partly=gap, complete_in=lambda _: [complete_in] * bool(complete_in))
    return run_check(check, snapshot, replace(context("5.0.0", "5.1.0", "1.37.0")))


@pytest.mark.parametrize(("name", "text", "plural"), ROWS.values(), ids=list(ROWS))
def test_what_is_missing_in_a_part_is_no_risk(name: str, text: str, plural: str) -> None:
    """With the whole kind the risk applies, with a part of it the risk is Unknown."""
    assert (outcome_of(name, text).result, outcome_of(name, text, plural).result) == ("Applies", "Unknown")


@pytest.mark.parametrize("row", ["a webhook whose Service has no pod", "a webhook without a Service"])
def test_what_is_missing_in_a_namespace_that_is_known_in_full(row: str) -> None:
    """Is missing; elsewhere there may be others all the same."""
    outcome = outcome_of(*ROWS[row], complete_in="shop")
    assert [finding.applies.value for finding in outcome.findings] == ["True", "Unknown"]


def odd(version: str, kind: str, name: str, namespace: str = "", field: str = "spec: 7") -> str:
    """A document of an object that does not match the type of its kind."""
    where = f", namespace: {namespace}" if namespace else ""
    return f"\n---\napiVersion: {version}\nkind: {kind}\nmetadata: {{name: {name}{where}}}\n{field}\n"


FAILED_PLAN = """
apiVersion: operators.coreos.com/v1alpha1
kind: InstallPlan
metadata: {name: install-1, namespace: logging, creationTimestamp: "2026-01-12T09:00:00Z"}
spec: {approval: Automatic, approved: true, clusterServiceVersionNames: [logging.v5.8.1]}
status: {phase: Failed}
"""
ONE_BACKEND = """---
apiVersion: v1
kind: Pod
metadata:
  name: guard-1
  namespace: shop
  labels: {app: guard}
  ownerReferences: [{kind: ReplicaSet, name: guard, controller: true}]
spec: {nodeName: worker-0}
status: {phase: Running, conditions: [{type: Ready, status: "True"}]}
---
apiVersion: v1
kind: Namespace
metadata: {name: web}
"""
OLM, OF_LOGGING, CONFIG = "operators.coreos.com/v1alpha1", "openshift-logging", "openshift-config"
# The check, a cluster in which it applies (its example if none is given), and what may be why it does not.
UNREAD: dict[str, tuple[str, str, str]] = {
    "a bundle of a proxy": (
        "ProxyTrustBroken", "", odd("v1", "ConfigMap", name="user-ca-bundle", namespace=CONFIG, field="data: 7"),
    ),
    "the version that a plan is to bring": (
        "OperatorUpdateWaits", "", odd(OLM, "ClusterServiceVersion", "logging.v5.9.0", OF_LOGGING),
    ),
    "the Subscription of a plan": (
        "OperatorUpdateWaits", "", odd(OLM, "Subscription", "logging", OF_LOGGING),
    ),
    "a plan after one that failed": (
        "OperatorFailed", FAILED_PLAN, odd(OLM, "InstallPlan", "install-2", "logging"),
    ),
    "the version that a plan failed to bring": (
        "OperatorFailed", FAILED_PLAN, odd(OLM, "ClusterServiceVersion", "logging.v5.8.1", "logging"),
    ),
    "a backup after one that failed": (
        "EtcdBackupFailed", "", odd("operator.openshift.io/v1alpha1", "EtcdBackup", "nightly-4", field="status: 7"),
    ),
    "a budget over the pods of a node": (
        "SpreadOnOneNode", "", odd("policy/v1", "PodDisruptionBudget", "web", "shop"),
    ),
    "the subnets that were chosen": (
        "InternalSubnetOverlap", "", odd("operator.openshift.io/v1", "Network", "cluster"),
    ),
    "whose boot images are managed": (
        "BootImagesOld", "", odd("operator.openshift.io/v1", "MachineConfiguration", "cluster", field="status: 7"),
    ),
    "a second pod that answers a webhook": (
        "WebhookBlocksUpdate", WEBHOOK + SERVICE + ONE_BACKEND, odd("v1", "Pod", "guard-2", "shop"),
    ),
    "the namespace of the pod that answers a webhook": (
        "WebhookBlocksUpdate",
        WEBHOOK + SERVICE + ONE_BACKEND,
        odd("v1", "Namespace", "shop", field="metadata: {name: shop, labels: 7}"),
    ),
}  # fmt: skip


@pytest.mark.parametrize(("name", "text", "unread"), UNREAD.values(), ids=list(UNREAD))
def test_what_could_not_be_decoded_may_be_why_there_is_no_risk(name: str, text: str, unread: str) -> None:
    """Without the object it applies; one that is there and cannot be read is Unknown, and no risk."""
    text = text or BY_NAME[name].example
    outcome = outcome_of(name, text + unread)
    assert (outcome_of(name, text).result, outcome.result) == ("Applies", "Unknown")
    assert {finding.applies.value for finding in outcome.findings} == {"Unknown"}


REQUESTS = tuple(
    {"kind": "CredentialsRequest", "metadata": {"namespace": "openshift-cloud-credential-operator", "name": name}}
    for name in ("cloud-a", "cloud-b")
)
HERE = """---
apiVersion: cloudcredential.openshift.io/v1
kind: CredentialsRequest
metadata: {name: cloud-a, namespace: openshift-cloud-credential-operator}
"""
DEFINED = DEFINITION.replace("example.com", "cloudcredential.openshift.io").replace("others", "credentialsrequests")


@pytest.mark.parametrize(
    ("requests", "named", "also"),
    [
        pytest.param(HERE, True, [], id="all of the cluster's own are known"),
        pytest.param(HERE.replace("operator}", "operator, labels: 7}"), False, ["Unknown"], id="one cannot be decoded"),
        pytest.param(DEFINED, False, ["Unknown"], id="they could not be listed"),
    ],
)
def test_credentials_that_are_made_by_hand(requests: str, named: bool, also: list[str]) -> None:
    """They are not confirmed in any case; which are new is said where all of the cluster's own are known."""
    check = BY_NAME["CloudCredentialsNotReady"]
    objects = [each for each in kyaml.load_all(check.example + requests) if each]
    refused = "nobody may list them" if requests == DEFINED else ""
    snapshot = snapshot_of(
        check.reads, objects, lacking=lambda read: refused if read.kind == "CredentialsRequest" else ""
    )
    outcome = run_check(check, snapshot, replace(context("5.0.0", "5.1.0", "1.37.0"), manifests=REQUESTS))
    assert [finding.applies.value for finding in outcome.findings] == ["True", *also]
    assert ("cloud-b" in outcome.findings[0].message) == named
    assert "cloud-a" not in outcome.findings[0].message
