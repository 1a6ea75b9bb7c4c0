"""Tests the examples of checks: each applies, near misses do not, and an empty cluster is clear.

A row is the check's own example with some words replaced, and the expected risks: `Name` if it applies, `Name?` if it
is unknown. Results without rights are in `test_needs.py`.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import NamedTuple

import pytest
from msgspec.structs import replace as with_fields
from tests.factories import context

from runup.checks.catalogue import CHECKS
from runup.checks.decide import check_page
from runup.checks.decide.engine import run_check
from runup.checks.decide.model import Check, Context
from runup.checks.decide.snapshots import snapshot_of
from runup.report.report import NAME

BY_NAME = {check.name: check for check in CHECKS if check.about}
PATCH, NEXT = context("5.2.0", "5.2.9", "1.38.4"), context("5.0.0", "5.1.0", "1.37.0")
NO_KUBERNETES = context(kubernetes="")
OLD = context("4.15.9", "4.16.0", "1.29.3")
SKEW = "ControlPlaneSkew-kube-{}"
METRIC, NEW_METRIC = "volume_operation_total_errors", "volume_operation_errors_total"
OLD_TAINT = (
    (
        "status: {nodeInfo",
        "spec: {taints: [{key: node-role.kubernetes.io/master, effect: NoSchedule}]}\nstatus: {nodeInfo",
    ),
    (
        'nodeSelector: {node-role.kubernetes.io/master: ""}',
        "tolerations: [{key: node-role.kubernetes.io/master, operator: Exists}]",
    ),
)
MIDDLEWARE = "TraefikGroupRemoved-Middleware"
FRONT_PROXY = "ControlPlaneAuthorityExpires-requestheader-client-ca-file"
BEFORE_END = with_fields(context("1.34.1", "1.35.0", "1.35.0"), now=datetime(2025, 10, 20, tzinfo=UTC))
BITNAMI = "docker.io/bitnami/postgresql:16.3.0"
REQUIRED_LABEL = (
    "affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: "
    "[{key: node-role.kubernetes.io/master, operator: Exists}]}%s]}}}"
)
OTHER_TERM = ", {matchExpressions: [{key: a, operator: Exists}]}"
OLD_TO_28 = context("4.14.1", "4.15.0", "1.28.4")
TO_4_19 = context("4.18.20", "4.19.3", "1.32.5")


_MADE_AGAIN = (
    "JobLostByDrain",
    "PodReferencesMissing",
    "PodsNotPlaceable",
    "PodsPinnedToNode",
    "SpreadOnOneNode",
    "StatefulSetHeldUp",
)


class Row(NamedTuple):
    """The example of a check after some replacements, and the risks expected."""

    id: str
    check: str
    changes: tuple[tuple[str, str], ...] = ()
    risks: tuple[str, ...] = ()
    context: Context | None = None


def budget(namespace: str) -> str:
    """What comes before an example, for a budget over its pods."""
    spec = "spec: {selector: {matchLabels: {app: web}}}"
    metadata = f"metadata: {{name: web, namespace: {namespace}}}"
    return f"\napiVersion: policy/v1\nkind: PodDisruptionBudget\n{metadata}\n{spec}\n---\napiVersion"


OF_PODS = 'apiGroups: [""], apiVersions: [v1], resources: [pods]'
OF_FLOW_SCHEMAS = (
    "  - {operations: ['*'], apiGroups: [flowcontrol.apiserver.k8s.io], apiVersions: [v1], resources: [flowschemas]}\n"
)
OF_RANGES = (
    "    - {operations: [CREATE], apiGroups: [networking.k8s.io], apiVersions: [v1], resources: [servicecidrs]}\n"
)
OF_CREATES, OF_DELETES = (OF_FLOW_SCHEMAS.replace("'*'", operation) for operation in ("CREATE", "DELETE"))
ONE_MORE = 'metadata: {name: worker-2, labels: {node-role.kubernetes.io/worker: ""}}\n---\napiVersion: v1\nkind: Node\n'
CHOSEN = (
    "\napiVersion: operator.openshift.io/v1\nkind: Network\nmetadata: {name: cluster}\nspec: {defaultNetwork: "
    "{ovnKubernetesConfig: {ipv4: {internalTransitSwitchSubnet: 10.200.0.0/16}}}}\n---\napiVersion"
)
STATUS_OF_ATTACHMENT = 'attached: true, detachError: {time: "2026-01-14T08:00:00Z", message: the volume is in use}'
ATTACHED_SINCE = '{name: csi-1f, creationTimestamp: "2026-01-14T08:00:00Z"}'
MADE_A_DAY_AGO = 'openshift-machine-api, creationTimestamp: "2026-01-13T09:00:00Z"}'
RESOLUTION_FAILED = (
    'conditions: [{type: ResolutionFailed, status: "True", message: none, lastTransitionTime: "2026-01-14T08:00:00Z"}]'
)
ACCEPTED_FOR = (
    '{type: ReleaseAccepted, status: "True", '
    """message: 'Payload loaded version="4.17.30" image="example.com/r@sha256:5" architecture="%s"'}"""
)
WITH_APP_LABEL = 'worker-0, labels: {node-role.kubernetes.io/app: ""}'
ETCD_NODE = 'kind: Node\nmetadata: {name: cp-%s, labels: {node-role.kubernetes.io/etcd: "true"}}'
PENDING_SINCE = 'kube-system, creationTimestamp: "2026-01-14T08:00:00Z"}'
UNSCHEDULABLE = 'conditions: [{type: PodScheduled, status: "False", reason: Unschedulable}]'
LABELS_AND_TAINT = 'labels: {node-role.kubernetes.io/worker: ""}}\nspec: {taints: [{key: infra, effect: NoSchedule}]}'
STRICT = "  securityContext: {runAsNonRoot: true, seccompProfile: {type: RuntimeDefault}}\n"
ON_THE_NODE = "  volumes: [{name: a, emptyDir: {}}, {name: b, hostPath: {path: /var/log}}]\n"


def managed(selection: str) -> str:
    """What comes before an example, for the machine sets whose boot images the operator keeps."""
    managers = f"[{{resource: machinesets, apiGroup: machine.openshift.io, selection: {{{selection}}}}}]"
    status = f"status: {{managedBootImagesStatus: {{machineManagers: {managers}}}}}"
    return f"{OPERATOR_CONFIGURATION}{status}\n---\napiVersion"


def skew(enforcement: str) -> str:
    """Returns the objects before an example: boot images whose version is watched."""
    return f"{OPERATOR_CONFIGURATION}status: {{bootImageSkewEnforcementStatus: {{{enforcement}}}}}\n---\napiVersion"


OPERATOR_CONFIGURATION = (
    "\napiVersion: operator.openshift.io/v1\nkind: MachineConfiguration\nmetadata: {name: cluster}\n"
)


def there(version: str, kind: str, name: str) -> str:
    """What comes before an example, for an object of that kind."""
    return f"\napiVersion: {version}\nkind: {kind}\nmetadata: {{name: {name}}}\n---\napiVersion"


MACHINES = ("VirtualMachineNotMigratable",)


def by_default(strategy: str | None) -> tuple[tuple[str, str], ...]:
    """A virtual machine without a strategy, and the KubeVirt object with that one; None for no such object."""
    without = (("spec: {evictionStrategy: LiveMigrate}", "spec: {}"),)
    if strategy is None:
        return without
    spec = f"spec: {{configuration: {{evictionStrategy: '{strategy}'}}}}"
    metadata = "metadata: {name: kubevirt, namespace: kubevirt}"
    return (
        *without,
        ("\napiVersion", f"\napiVersion: kubevirt.io/v1\nkind: KubeVirt\n{metadata}\n{spec}\n---\napiVersion"),
    )


READY_NODE = '{name: worker-1, labels: {pool: egress}}\nstatus: {conditions: [{type: Ready, status: "True"}]}'


def limit_range(kind: str) -> str:
    """Returns the objects before an example: limits for objects of that kind."""
    metadata = "metadata: {name: caps, namespace: shop}"
    spec = f"spec: {{limits: [{{type: {kind}, max: {{memory: 4Gi}}}}]}}"
    return f"\napiVersion: v1\nkind: LimitRange\n{metadata}\n{spec}\n---\napiVersion"


def affinity(operator: str) -> str:
    """What a template demands of its node's label, by affinity."""
    terms = f"[{{matchExpressions: [{{key: disk, operator: {operator}, values: [fast]}}]}}]"
    required = f"{{requiredDuringSchedulingIgnoredDuringExecution: {{nodeSelectorTerms: {terms}}}}}"
    return f"affinity: {{nodeAffinity: {required}}}"


RESTRICTED = (
    "[{name: web, securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}, runAsNonRoot: true, "
    "seccompProfile: {type: RuntimeDefault}}}]"
)
SPARES_EVICTED = "podFailurePolicy: {rules: [{action: Ignore, onPodConditions: [{type: DisruptionTarget}]}]}"


def network(names: str) -> str:
    """A template whose pods have these additional networks."""
    return f'{{metadata: {{annotations: {{k8s.v1.cni.cncf.io/networks: "{names}"}}}}, spec: {{}}}}'


OF_OTHER_CONTROLLERS = ", ".join(
    f"{{key: {key}, effect: NoSchedule}}"
    for key in (
        "node.cloudprovider.kubernetes.io/uninitialized",
        "ToBeDeletedByClusterAutoscaler",
        "karpenter.sh/disrupted",
    )
)
HAS_NIC = 'status: {allocatable: {example.com/nic: "2"}}'
KUBERNETES_SELECTOR = "scheduler.alpha.kubernetes.io/node-selector"
APART = (
    "template: {metadata: {labels: {app: edge}}, spec: {affinity: {podAntiAffinity: {"
    "requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: kubernetes.io/hostname, "
    "labelSelector: {matchLabels: {app: edge}}}]}}}}"
)
OLM_TYPE = "CatalogSourcesUnhealthy"
UNHEALTHY = (
    "apiVersion: operators.coreos.com/v1alpha1\nkind: Subscription\nmetadata: {name: logs, namespace: logging}\n"
    f"status: {{conditions: [{{type: {OLM_TYPE}, "
    'status: "%s", message: catalog of redhat-operators, lastTransitionTime: "2026-01-%sT09:59:00Z"}]}'
)
BUDGET = (
    "apiVersion: policy/v1\nkind: PodDisruptionBudget\nmetadata: {name: edge, namespace: shop}\n"
    "spec: {maxUnavailable: 1, selector: {}}\n---\napiVersion: v1\nkind: Namespace"
)
THIRD_NODE = "kind: Node\nmetadata: {name: worker-2}\n---\napiVersion: v1\nkind: Node\nmetadata: {name: worker-1"
PORT = "template: {spec: {containers: [{name: edge, ports: [{hostPort: 8080}]}]}}"
DEVICE = "containers: [{name: a, resources: {limits: {example.com/nic: 1}}}]"


def inline(volume: str) -> str:
    """What comes before an example, for a Deployment whose pods have this volume."""
    head = "\napiVersion: apps/v1\nkind: Deployment\nmetadata: {name: photos, namespace: shop}\n"
    return f"{head}spec: {{replicas: 1, template: {{spec: {{volumes: [{{name: a, {volume}}}]}}}}}}\n---\napiVersion"


POD_OF_OLD_SHOP = (
    "\napiVersion: v1\nkind: Pod\nmetadata: {name: web-0, namespace: old-shop, "
    "ownerReferences: [{kind: StatefulSet, name: web}]}\nspec: {nodeName: worker-0}\nstatus: {phase: Running}\n"
    "---\napiVersion"
)
ANOTHER_CSI_NODE = "\napiVersion: storage.k8s.io/v1\nkind: CSINode\nmetadata: {name: worker-9}\n---\napiVersion"
IN_ZONE = (
    "nodeAffinity: {required: {nodeSelectorTerms: [{matchExpressions: [{key: zone, operator: In, values: [east]}]}]}}"
)


def known_to_nodes(*validities: tuple[str, str]) -> str:
    """Returns the objects before an example: certificates of one name with these validity periods."""
    made = [(int(datetime.fromisoformat(f"{begin}+00:00").timestamp()), end) for begin, end in validities]
    listed = ", ".join(f'{{subject: "CN=node-signer_@{at}", expiry: "{end}Z"}}' for at, end in made)
    head = "\napiVersion: machineconfiguration.openshift.io/v1\nkind: MachineConfigPool\nmetadata: {name: worker}\n"
    return f"{head}status: {{certExpirys: [{listed}]}}\n---\napiVersion"


NOVEMBER = ("2025-11-17T00:00:00", "2026-01-16T00:00:00")


def rolled_out(rolling: str) -> str:
    """What comes before an example, for a Deployment of the platform with this rollingUpdate."""
    head = "\napiVersion: apps/v1\nkind: Deployment\nmetadata: {name: console, namespace: openshift-console}\n"
    return f"{head}spec: {{replicas: 2, strategy: {{rollingUpdate: {{{rolling}}}}}}}\n---\napiVersion"


# Of a server, signed by an authority with SHA-1, and the authority itself (openssl x509 -sha1).
SHA1_SERVER = (
    "-----BEGIN CERTIFICATE-----\\n"
    "MIIBGTCBwAIUBKhGx+h8XcQir8RRFA3OvTWehzwwCQYHKoZIzj0EATAPMQ0wCwYD\\n"
    "VQQDDARyb290MCAXDTI2MTEyMzA2MzI0M1oYDzIxMjYxMDMwMDYzMjQzWjAPMQ0w\\n"
    "CwYDVQQDDARzaG9wMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEYVmuVDFDa7yV\\n"
    "aI+VeeAt+X/JSjQqwvf2a4g47vjZmpXi03wrkOtiPEZjv0ZRKN7Jiz3jXXQqHYGv\\n"
    "0mQckDGTADAJBgcqhkjOPQQBA0kAMEYCIQDoEIiB/Bm1/Z0Ey+CqZMUhVZuAGNFv\\n"
    "0g4atU24qQPergIhAJ4Ov3LbRXUpyeBp0pkif9MhXPSequUZO5j330d79xZ0\\n"
    "-----END CERTIFICATE-----\\n"
)
SHA1_ROOT = (
    "-----BEGIN CERTIFICATE-----\\n"
    "MIIBcjCCARqgAwIBAgIUZH3Pn9ihv4RXyU0bSPHPJplNJKIwCQYHKoZIzj0EATAP\\n"
    "MQ0wCwYDVQQDDARyb290MCAXDTI2MTEyMzA2MzI0M1oYDzIxMjYxMDMwMDYzMjQz\\n"
    "WjAPMQ0wCwYDVQQDDARyb290MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEagXH\\n"
    "l6YzkJ2GAKjUX9ftFKWMeAGU84uF7D9bW+hAlYCP9FJuzjpWvCaueIIAs21shpti\\n"
    "fti0NMMyx367DHQ+BqNTMFEwHQYDVR0OBBYEFFWEFZUNeHf6YsD+Gd2/E/EHO/mO\\n"
    "MB8GA1UdIwQYMBaAFFWEFZUNeHf6YsD+Gd2/E/EHO/mOMA8GA1UdEwEB/wQFMAMB\\n"
    "Af8wCQYHKoZIzj0EAQNHADBEAiBUeDFZSr0ppB2+RoeRIcTL+ROAGPIxmfNJQtRn\\n"
    "MyKgcAIgJs8fIZi5TpE5NUpTNSXqvHiypTA0nHr0Su7PmjzTkIs=\\n"
    "-----END CERTIFICATE-----\\n"
)


def route_with(certificate: str) -> tuple[tuple[str, str], ...]:
    """The Route of the example with this certificate, of which its router says nothing."""
    return (
        ("{host: shop.example.com}", f'{{host: shop.example.com, tls: {{certificate: "{certificate}"}}}}'),
        ('Versions, status: "True"', 'Versions, status: "False"'),
    )


ROWS = (
    Row("overrides: one that is managed again", "ClusterVersionOverrides", (("true", "false"),)),
    Row("overrides: a patch is not held back", "ClusterVersionOverrides", (), (), PATCH),
    Row("ack: of a minor version that is behind", "AdminAck", (("ack-5.0", "ack-4.20"),)),
    Row("ack: of the target is for the next update", "AdminAck", (("ack-5.0", "ack-5.2"),)),
    Row(
        "ack: of a hop in between",
        "AdminAck",
        (("ack-5.0", "ack-5.1"),),
        ("AdminAck-ack-5.1-kube-1.37-api-removals-in-5.1",),
    ),
    Row(
        "ack: acknowledged",
        "AdminAck",
        (
            (
                "\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: admin-gates",
                "\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: admin-acks, namespace: openshift-config}\n"
                'data: {ack-5.0-kube-1.37-api-removals-in-5.1: "true"}\n---\n'
                "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: admin-gates",
            ),
        ),
    ),
    Row(
        "ack: True is not true",
        "AdminAck",
        (
            (
                "\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: admin-gates",
                "\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: admin-acks, namespace: openshift-config}\n"
                'data: {ack-5.0-kube-1.37-api-removals-in-5.1: "True"}\n---\n'
                "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: admin-gates",
            ),
        ),
        ("AdminAck-ack-5.0-kube-1.37-api-removals-in-5.1",),
    ),
    Row(
        "ack: a gate that says nothing",
        "AdminAck",
        (('"Kubernetes 1.37 removes APIs: see https://example.com/removed."', '""'),),
        ("AdminAck-ack-5.0-kube-1.37-api-removals-in-5.1",),
    ),
    Row(
        "ack: a gate that names no version",
        "AdminAck",
        (("ack-5.0-kube", "ask-me-kube"),),
        ("AdminAck-ask-me-kube-1.37-api-removals-in-5.1",),
    ),
    Row(
        "ack: the target brings the gate",
        "AdminAck",
        (
            (
                "namespace: openshift-config-managed}",
                "namespace: openshift-config-managed, annotations: {example: target}}",
            ),
        ),
        ("AdminAckUnknown?", "AdminAck-ack-5.0-kube-1.37-api-removals-in-5.1"),
    ),
    Row("csr: just made", "CertificateRequestsPending", (("08:00:00Z", "09:55:00Z"),)),
    Row(
        "csr: of another signer", "CertificateRequestsPending", (("kubernetes.io/kubelet-serving", "example.com/mine"),)
    ),
    Row(
        "csr: approved",
        "CertificateRequestsPending",
        (("spec:", 'status: {conditions: [{type: Approved, status: "True"}]}\nspec:'),),
    ),
    Row("authority: no bundle in it", "CertificateAuthorityExpires", (("ca-bundle.crt", "dashboard.json"),)),
    Row(
        "authority: weeks away",
        "CertificateAuthorityExpires",
        (),
        (),
        with_fields(context(), now=context().now.replace(month=1, day=5)),
    ),
    Row(
        "authority: over",
        "CertificateAuthorityExpires",
        (),
        ("CertificateAuthorityExpires",),
        with_fields(context(), now=context().now.replace(month=3)),
    ),
    Row(
        "authority: a bundle that is none",
        "CertificateAuthorityExpires",
        (("BEGIN CERTIFICATE", "BEGIN NOTHING"),),
        ("CertificateAuthorityExpiresUnknown?",),
    ),
    Row("mixed: one release", "NodeReleasesMixed", (("v1.35.7", "v1.36.2"),)),
    Row("mixed: builds of one version", "NodeReleasesMixed", (("v1.35.7", "v1.36.2+abc"),)),
    Row(
        "mixed: Windows nodes are another operator's",
        "NodeReleasesMixed",
        (("{name: worker-1, labels: {", "{name: worker-1, labels: {kubernetes.io/os: windows, "),),
    ),
    Row("mixed: in no pool", "NodeReleasesMixed", (("kind: MachineConfigPool", "kind: Pool"),)),
    Row(
        "mixed: a kubelet that says nothing",
        "NodeReleasesMixed",
        (("kubeletVersion: v1.35.7", ""),),
        ("NodeReleasesMixedUnknown?",),
    ),
    Row("webhook: may be ignored", "WebhookBlocksUpdate", (("failurePolicy: Fail", "failurePolicy: Ignore"),)),
    Row(
        "webhook: Fail is the default",
        "WebhookBlocksUpdate",
        (("  failurePolicy: Fail\n", ""),),
        ("WebhookBlocksUpdate",),
    ),
    Row(
        "webhook: reached by a URL",
        "WebhookBlocksUpdate",
        (("service: {namespace: policies, name: webhook}", "url: 'https://policies.example.com'"),),
    ),
    Row("webhook: about its own kinds", "WebhookBlocksUpdate", (('apiGroups: [""]', "apiGroups: [example.com]"),)),
    Row(
        "webhook: not in the release's namespaces",
        "WebhookBlocksUpdate",
        (
            (
                "failurePolicy: Fail",
                "namespaceSelector: {matchLabels: {policed: yes-please}}",
            ),
        ),
    ),
    Row(
        "webhook: spares the namespaces of a run-level",
        "WebhookBlocksUpdate",
        (
            (
                "failurePolicy: Fail",
                "namespaceSelector: {matchExpressions: [{key: openshift.io/run-level, operator: DoesNotExist}]}",
            ),
        ),
        ("WebhookBlocksUpdate",),
    ),
    Row(
        "webhook: of labelled objects alone",
        "WebhookBlocksUpdate",
        (("failurePolicy: Fail", "failurePolicy: Fail\n  objectSelector: {matchLabels: {policed: yes-please}}"),),
    ),
    Row(
        "webhook: of all objects, said in so many words",
        "WebhookBlocksUpdate",
        (("failurePolicy: Fail", "failurePolicy: Fail\n  objectSelector: {}"),),
        ("WebhookBlocksUpdate",),
    ),
    Row(
        "webhook: narrowed by conditions",
        "WebhookBlocksUpdate",
        (("failurePolicy: Fail", "matchConditions: [{name: a, expression: 'false'}]"),),
        ("WebhookBlocksUpdateUnknown?",),
    ),
    Row(
        "webhook: a backend that is ready",
        "WebhookBlocksUpdate",
        (
            (
                "\napiVersion",
                "\napiVersion: v1\nkind: Service\nmetadata: {name: webhook, namespace: policies}\n"
                "spec: {selector: {app: w}}\n---\napiVersion: v1\nkind: Pod\nmetadata: {name: w, namespace: policies, "
                'labels: {app: w, x: z}}\nstatus: {conditions: [{type: Ready, status: "True"}]}\n---\n'
                "apiVersion: v1\nkind: Pod\nmetadata: {name: v, namespace: policies, labels: {app: w}}\n"
                'status: {conditions: [{type: Ready, status: "True"}]}\n---\napiVersion',
            ),
        ),
    ),
    Row(
        "webhook: a backend that is not",
        "WebhookBlocksUpdate",
        (
            (
                "\napiVersion",
                "\napiVersion: v1\nkind: Service\nmetadata: {name: webhook, namespace: policies}\n"
                "spec: {selector: {app: w}}\n---\napiVersion: v1\nkind: Pod\nmetadata: {name: w, namespace: policies, "
                'labels: {app: w, x: z}}\nstatus: {conditions: [{type: Ready, status: "False"}]}\n---\napiVersion',
            ),
        ),
        ("WebhookBlocksUpdate",),
    ),
    Row(
        "webhook: a Service without a selector has its backends elsewhere",
        "WebhookBlocksUpdate",
        (
            (
                "\napiVersion",
                "\napiVersion: v1\nkind: Service\nmetadata: {name: webhook, namespace: policies}\n---\napiVersion",
            ),
        ),
    ),
    Row(
        "webhook: about versions that are gone long since",
        "WebhookBlocksUpdate",
        ((OF_PODS, "apiGroups: [policy], apiVersions: [v1beta1], resources: [poddisruptionbudgets]"),),
    ),
    Row(
        "webhook: about a version that is served, too",
        "WebhookBlocksUpdate",
        ((OF_PODS, "apiGroups: [policy], apiVersions: [v1beta1, v1], resources: [poddisruptionbudgets]"),),
        ("WebhookBlocksUpdate",),
    ),
    Row(
        "old webhook: another rule of it names the version that stays",
        "WebhookRemovedVersion",
        (("  rules:\n", f"  rules:\n{OF_FLOW_SCHEMAS}"),),
    ),
    Row(
        "old webhook: another rule of it is about something else",
        "WebhookRemovedVersion",
        (("  rules:\n", f"  rules:\n{OF_FLOW_SCHEMAS.replace('flowschemas', 'prioritylevelconfigurations')}"),),
        ("WebhookRemovedVersion",),
    ),
    Row(
        "old webhook: another rule of it was dead before",
        "WebhookRemovedVersion",
        (("  rules:\n", f"  rules:\n{OF_FLOW_SCHEMAS.replace('[v1]', '[v1beta1]')}"),),
        ("WebhookRemovedVersion",),
    ),
    Row(
        "old webhook: another rule of it is about another operation",
        "WebhookRemovedVersion",
        (("  rules:\n", f"  rules:\n{OF_DELETES}"),),
        ("WebhookRemovedVersion",),
    ),
    Row(
        "old webhook: other rules of it name the same operations between them",
        "WebhookRemovedVersion",
        (("[CREATE]", "[CREATE, DELETE]"), ("  rules:\n", f"  rules:\n{OF_CREATES}{OF_DELETES}")),
    ),
    Row(
        "old webhook: of a match policy that knows only what is served",
        "WebhookRemovedVersion",
        (("- name: fairness.example.com", "- name: fairness.example.com\n  matchPolicy: Exact"),),
        ("WebhookRemovedVersion",),
    ),
    Row("old webhook: also about what is served", "WebhookRemovedVersion", (("[v1beta3]", "[v1beta3, v1]"),)),
    Row(
        "old webhook: some of its versions were dead before",
        "WebhookRemovedVersion",
        (("[v1beta3]", "[v1beta2, v1beta3]"),),
        ("WebhookRemovedVersion",),
    ),
    Row(
        "old webhook: another kind of the version stays",
        "WebhookRemovedVersion",
        (
            ("v1.31.4", "v1.33.4"),
            ("flowcontrol.apiserver.k8s.io", "admissionregistration.k8s.io"),
            ("[v1beta3]", "[v1beta1]"),
            ("flowschemas", "mutatingadmissionpolicies"),
        ),
    ),
    Row(
        "old webhook: the kind goes, and others of the version stay",
        "WebhookRemovedVersion",
        (
            ("v1.31.4", "v1.33.4"),
            ("flowcontrol.apiserver.k8s.io", "admissionregistration.k8s.io"),
            ("[v1beta3]", "[v1beta1]"),
            ("flowschemas", "validatingadmissionpolicies"),
        ),
        ("WebhookRemovedVersion",),
    ),
    Row(
        "old webhook: every resource of a version that goes",
        "WebhookRemovedVersion",
        (("resources: [flowschemas]", "resources: ['*']"),),
        ("WebhookRemovedVersion",),
    ),
    Row("old webhook: dead before the update", "WebhookRemovedVersion", (("v1.31.4", "v1.32.0"),)),
    Row(
        "old webhook: no Kubernetes told",
        "WebhookRemovedVersion",
        (),
        ("WebhookRemovedVersionUnknown?",),
        NO_KUBERNETES,
    ),
    Row(
        "old policy: nobody bound it",
        "AdmissionPolicyRemovedVersion",
        (("policyName: service-ranges", "policyName: other"),),
    ),
    Row(
        "old policy: also about what is served",
        "AdmissionPolicyRemovedVersion",
        (("[v1beta1]", "[v1beta1, v1]"),),
    ),
    Row(
        "old policy: about every version",
        "AdmissionPolicyRemovedVersion",
        (("[v1beta1]", "['*']"),),
    ),
    Row(
        "old policy: of a match policy that knows only what is served",
        "AdmissionPolicyRemovedVersion",
        (("    resourceRules:", "    matchPolicy: Exact\n    resourceRules:"),),
        ("AdmissionPolicyRemovedVersion",),
    ),
    Row(
        "old policy: another rule of it names the version that stays",
        "AdmissionPolicyRemovedVersion",
        (("    resourceRules:\n", f"    resourceRules:\n{OF_RANGES}"),),
    ),
    Row(
        "old policy: another rule of it is about another operation",
        "AdmissionPolicyRemovedVersion",
        (("    resourceRules:\n", f"    resourceRules:\n{OF_RANGES.replace('CREATE', 'DELETE')}"),),
        ("AdmissionPolicyRemovedVersion",),
    ),
    Row("old policy: dead before the update", "AdmissionPolicyRemovedVersion", (("v1.36.4", "v1.37.0"),)),
    Row("old policy: an update that removes nothing", "AdmissionPolicyRemovedVersion", (), (), OLD_TO_28),
    Row(
        "old policy: its binding names the version that goes",
        "AdmissionPolicyRemovedVersion",
        (
            ("[v1beta1]", "[v1]"),
            (
                "validationActions: [Deny]}",
                "validationActions: [Deny], matchResources: {resourceRules: [{operations: [CREATE], "
                "apiGroups: [networking.k8s.io], apiVersions: [v1beta1], resources: [servicecidrs]}]}}",
            ),
        ),
        ("AdmissionPolicyRemovedVersion",),
    ),
    Row(
        "old policy: one that changes what it matches",
        "AdmissionPolicyRemovedVersion",
        (("ValidatingAdmissionPolicy", "MutatingAdmissionPolicy"),),
        ("AdmissionPolicyRemovedVersion",),
    ),
    Row(
        "old policy: no Kubernetes told",
        "AdmissionPolicyRemovedVersion",
        (),
        ("AdmissionPolicyRemovedVersionUnknown?",),
        NO_KUBERNETES,
    ),
    Row(
        "settings: a gate that stays",
        "RemovedComponentSetting",
        (("SidecarContainers", "ContextualLogging"),),
        (),
        NEXT,
    ),
    Row(
        "policy: in force to warn",
        "AdmissionPolicyParamMissing",
        (("[Deny]", "[Warn]"),),
        ("AdmissionPolicyParamMissing",),
    ),
    Row("policy: lets through", "AdmissionPolicyParamMissing", (("failurePolicy: Fail", "failurePolicy: Ignore"),)),
    Row(
        "policy: parameters of a built-in kind",
        "AdmissionPolicyParamMissing",
        (("constraints.gatekeeper.sh/v1beta1, kind: AllowedRepos", "v1, kind: ConfigMap"),),
    ),
    Row(
        "policy: the kind is there",
        "AdmissionPolicyParamMissing",
        (
            (
                "\napiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingAdmissionPolicy\n",
                "\napiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: "
                "a}\nspec: {group: "
                "constraints.gatekeeper.sh, names: {kind: AllowedRepos}, versions: [{name: v1beta1, served: "
                "true}]}\n---\n"
                "apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingAdmissionPolicy\n",
            ),
        ),
    ),
    *(
        Row(
            f"policy: {what}",
            "AdmissionPolicyParamMissing",
            (
                (
                    "\napiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingAdmissionPolicy\n",
                    "\napiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: "
                    f"a}}\nspec: {definition}\n---\n"
                    "apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingAdmissionPolicy\n",
                ),
            ),
            ("AdmissionPolicyParamMissing",),
        )
        for what, definition in (
            (
                "another kind of that version is there",
                "{group: constraints.gatekeeper.sh, names: {kind: Others}, versions: [{name: v1beta1, served: true}]}",
            ),
            (
                "the kind is there in another version",
                "{group: constraints.gatekeeper.sh, names: {kind: AllowedRepos}, versions: [{name: v1, served: true}]}",
            ),
            (
                "the kind is there, and not served",
                "{group: constraints.gatekeeper.sh, names: {kind: AllowedRepos}, versions: [{name: v1beta1}]}",
            ),
        )
    ),
    Row("api: removed later", "RemovedAPIRequested", (('"1.32"', '"1.39"'),)),
    Row("api: nobody asked", "RemovedAPIRequested", (("requestCount: 12", "requestCount: 0"),)),
    Row(
        "api: a scanner lists it",
        "RemovedAPIRequested",
        (("shop-operator/v0.9", "argocd-application-controller/v2"), ("verb: update", "verb: list")),
    ),
    Row(
        "api: a scanner that writes it",
        "RemovedAPIRequested",
        (("shop-operator/v0.9", "argocd-application-controller/v2"),),
        ("RemovedAPIRequested-flowschemas.v1beta3.flowcontrol.apiserver.k8s.io",),
    ),
    Row(
        "api: nobody noted who",
        "RemovedAPIRequested",
        (("byUser:", "others:"),),
        ("RemovedAPIRequested-flowschemas.v1beta3.flowcontrol.apiserver.k8s.io",),
    ),
    Row("api: no Kubernetes told", "RemovedAPIRequested", (), ("RemovedAPIRequestedUnknown?",), NO_KUBERNETES),
    Row("api: of another numbering", "RemovedAPIRequested", (('"1.32"', '"5.2"'),)),
    Row("soon: far away", "DeprecatedAPIRequested", (("1.40", "1.42"),)),
    Row("soon: the third after the target", "DeprecatedAPIRequested", (("1.40", "1.41"),), ("DeprecatedAPIRequested",)),
    Row("soon: the next", "DeprecatedAPIRequested", (("1.40", "1.39"),), ("DeprecatedAPIRequested",)),
    Row("soon: now is another risk", "DeprecatedAPIRequested", (("1.40", "1.38"),)),
    Row("soon: no Kubernetes told", "DeprecatedAPIRequested", (), ("DeprecatedAPIRequestedUnknown?",), NO_KUBERNETES),
    Row(
        "stored: an entry of long ago",
        "RemovedAPIStored",
        (("2026-01-13", "2025-10-13"),),
        ("RemovedAPIStored-FlowSchema-Earlier",),
    ),
    Row("stored: in a version that stays", "RemovedAPIStored", (("/v1beta3", "/v1"),)),
    Row("stored: removed before the source", "RemovedAPIStored", (("v1.31.4", "v1.32.1"),)),
    Row(
        "stored: beyond the table",
        "RemovedAPIStored",
        (
            ("v1.31.4", "v1.37.0"),
            ("FlowSchema", "ResourceClaim"),
            ("flowcontrol.apiserver.k8s.io/v1", "resource.k8s.io/v1"),
        ),
        ("RemovedAPIStoredUnknown?",),
    ),
    Row(
        "stored: 1.28 removes nothing, so nothing is read",
        "RemovedAPIStored",
        (("v1.31.4", "v1.27.2"),),
        (),
        context("4.14.1", "4.15.0", "1.28.4"),
    ),
    Row("stored: no Kubernetes told", "RemovedAPIStored", (), ("RemovedAPIStoredUnknown?",), NO_KUBERNETES),
    Row("back: an entry of long ago", "RollbackNotServed", (("2026-01-13", "2025-10-13"),)),
    Row(
        "back: in a version that the target has",
        "RollbackNotServed",
        (
            (
                "    apiVersion: admissionregistration.k8s.io/v1\n",
                "    apiVersion: admissionregistration.k8s.io/v1beta1\n",
            ),
        ),
    ),
    Row("back: written by the API server", "RollbackNotServed", (("mesh-operator", "kube-apiserver"),)),
    Row("back: written by a kubelet", "RollbackNotServed", (("mesh-operator", "kubelet"),)),
    Row("back: no way back", "RollbackNotServed", (("{from: 1.36.2, to: 1.35.0}", "{from: 1.36.2, to: 1.37.0}"),)),
    Row(
        "back: between versions that both have it",
        "RollbackNotServed",
        (("{from: 1.36.2, to: 1.35.0}", "{from: 1.37.2, to: 1.36.0}"),),
    ),
    Row(
        "back: beyond the table",
        "RollbackNotServed",
        (("{from: 1.36.2, to: 1.35.0}", "{from: 1.88.2, to: 1.87.0}"),),
        ("RollbackNotServedUnknown?",),
    ),
    Row(
        "back: a kind that the target does not have",
        "RollbackNotServed",
        (
            ("{from: 1.36.2, to: 1.35.0}", "{from: 1.37.2, to: 1.33.0}"),
            (
                "apiVersion: admissionregistration.k8s.io/v1\nkind: MutatingAdmissionPolicy",
                "apiVersion: certificates.k8s.io/v1\nkind: PodCertificateRequest",
            ),
            ("2026-01-13", "2025-10-13"),
        ),
        ("RollbackNotServed-PodCertificateRequest",),
    ),
    Row("gate: still known", "RemovedFeatureGate", (("AppArmor", "MyGate"),), (), OLD),
    Row("gate: removed later", "RemovedFeatureGate", (), (), OLD),
    Row("gate: beyond the table", "RemovedFeatureGate", (("AppArmor", "MyGate"),), ("RemovedFeatureGateUnknown?",)),
    Row("gate: no Kubernetes told", "RemovedFeatureGate", (), ("RemovedFeatureGateUnknown?",), NO_KUBERNETES),
    Row(
        "gate: in a set of one's own",
        "RemovedFeatureGate",
        (
            ("machineconfiguration.openshift.io/v1", "config.openshift.io/v1"),
            ("kind: KubeletConfig", "kind: FeatureGate"),
            ("kubeletConfig: {featureGates: {AppArmor: true}}", "customNoUpgrade: {enabled: [AppArmor]}"),
        ),
        ("RemovedFeatureGate",),
    ),
    Row(
        "gate: as a flag",
        "RemovedFeatureGate",
        (
            ("machineconfiguration.openshift.io/v1", "operator.openshift.io/v1"),
            ("kind: KubeletConfig", "kind: KubeScheduler"),
            (
                "kubeletConfig: {featureGates: {AppArmor: true}}",
                "unsupportedConfigOverrides: {arguments: {feature-gates: ['X=false,AppArmor=true']}}",
            ),
        ),
        ("RemovedFeatureGateUnknown?", "RemovedFeatureGate"),
    ),
    Row("flag: still known", "RemovedFlag", (("cloud-config", "audit-log-path"),), (), OLD),
    Row("flag: of another component", "RemovedFlag", (("KubeAPIServer", "KubeScheduler"),), ("RemovedFlagUnknown?",)),
    Row("flag: beyond the table", "RemovedFlag", (("cloud-config", "audit-log-path"),), ("RemovedFlagUnknown?",)),
    Row(
        "flag: overrides that are no map",
        "RemovedFlag",
        (("{apiServerArguments: {cloud-config: [/etc/cloud.conf]}}", "7"),),
    ),
    Row("plug-in: still known", "RemovedAdmissionPlugin", (("SecurityContextDeny", "NodeRestriction"),), (), OLD),
    Row(
        "plug-in: beyond the table",
        "RemovedAdmissionPlugin",
        (("SecurityContextDeny", "NodeRestriction"),),
        ("RemovedAdmissionPluginUnknown?",),
    ),
    *(
        Row(
            f"unsupported: of {kind}",
            "UnsupportedConfigOverrides",
            (("kind: KubeScheduler", f"kind: {kind}"),),
            ("UnsupportedConfigOverrides",),
        )
        for kind in ("Etcd", "Authentication", "OpenShiftAPIServer", "OpenShiftControllerManager", "KubeAPIServer")
    ),
    Row(
        "runtime: Docker by the dockershim",
        "ContainerRuntimeTooOld",
        (("containerd://1.7.27", "docker://20.10.7"), ("v1.36.1", "v1.23.17")),
        ("ContainerRuntimeTooOld-docker",),
    ),
    Row(
        "runtime: Docker by cri-dockerd",
        "ContainerRuntimeTooOld",
        (("containerd://1.7.27", "docker://29.0.1"), ("v1.36.1", "v1.24.0")),
    ),
    Row("runtime: old on Linux", "ContainerRuntimeTooOld", (), ("ContainerRuntimeTooOld",)),
    Row(
        "runtime: of the operator of Windows nodes",
        "ContainerRuntimeTooOld",
        (
            (
                "{name: worker-0}",
                '{name: worker-0, annotations: {windowsmachineconfig.openshift.io/version: "10.19.0"}}',
            ),
        ),
    ),
    Row("unsupported: empty", "UnsupportedConfigOverrides", (('{arguments: {v: ["9"]}}', "null"),)),
    Row(
        "unsupported: an empty object",
        "UnsupportedConfigOverrides",
        (('{arguments: {v: ["9"]}}', "{}"),),
        ("UnsupportedConfigOverrides",),
    ),
    Row(
        "crd: stored versions are not reported",
        "CRDStoredVersionDropped",
        (("status: {storedVersions: [v1alpha1, v1beta1]}", ""),),
        ("CRDStoredVersionDroppedUnknown?",),
    ),
    Row("crd: every stored version stays", "CRDStoredVersionDropped", (("[v1alpha1, v1beta1]", "[v1beta1]"),)),
    Row(
        "crd: the release does not bring it",
        "CRDStoredVersionDropped",
        (("machines.machine.openshift.io, annotations", "others.example.com, annotations"),),
    ),
    Row("conversion: none", "CRDConversionWebhookDown", (("strategy: Webhook", "strategy: None"),)),
    Row(
        "conversion: one version needs none",
        "CRDConversionWebhookDown",
        (("{name: v1beta1, served: true}", "{name: v1beta1, served: false}"), ("[v1beta1, v1]", "[v1]")),
    ),
    Row(
        "conversion: one version is served, and objects are stored in another",
        "CRDConversionWebhookDown",
        (("{name: v1beta1, served: true}", "{name: v1beta1, served: false}"),),
        ("CRDConversionWebhookDown",),
    ),
    Row("definition: in force", "CRDNotInForce", (("Terminating", "Established"),)),
    Row(
        "definition: names taken",
        "CRDNotInForce",
        (("Terminating", "NamesAccepted"), ('"True"', '"False"')),
        ("CRDNotInForce",),
    ),
    Row(
        "aggregated: it does not say",
        "APIServiceUnavailable",
        (('type: Available, status: "False"', 'type: Other, status: "False"'),),
        ("APIServiceUnavailableUnknown?",),
    ),
    Row(
        "machines: whether they can move is not known",
        "VirtualMachineNotMigratable",
        (('LiveMigratable, status: "False"', 'LiveMigratable, status: "Unknown"'),),
        ("VirtualMachineNotMigratableUnknown?",),
    ),
    Row("aggregated: answers", "APIServiceUnavailable", (('"False"', '"True"'),)),
    Row(
        "aggregated: the server's own",
        "APIServiceUnavailable",
        (("service: {namespace: metrics, name: adapter}, ", ""),),
    ),
    Row("rewriting: done", "StorageVersionMigrationFailed", (("type: Failed", "type: Succeeded"),)),
    Row("cgroup: v2", "CgroupV1", (("v1}", "v2}"),)),
    Row("cgroup: the release's choice", "CgroupV1", (("v1}", '""}'),)),
    Row("cgroup: 4.16 still has it", "CgroupV1", (), (), OLD),
    Row("runtime: new enough", "ContainerRuntimeTooOld", (("1.7.27", "2.1.0"),)),
    Row("runtime: 1.29 takes it", "ContainerRuntimeTooOld", (), (), OLD),
    Row("runtime: the release's own", "ContainerRuntimeTooOld", (("containerd://1.7.27", "cri-o://1.20.0"),)),
    Row(
        "runtime: no Kubernetes told", "ContainerRuntimeTooOld", (), ("ContainerRuntimeTooOldUnknown?",), NO_KUBERNETES
    ),
    Row("packages: CoreOS", "PackageBasedNodes", (("Linux 8.10 (Ootpa)", "Linux CoreOS 418.94.202501"),)),
    Row("packages: CoreOS of 4.19", "PackageBasedNodes", (("Linux 8.10 (Ootpa)", "Linux CoreOS 9.6.20250611"),)),
    Row(
        "packages: another system",
        "PackageBasedNodes",
        (("Red Hat Enterprise Linux 8.10 (Ootpa)", "Fedora CoreOS 41"),),
    ),
    Row("packages: 4.16 still runs on them", "PackageBasedNodes", (), (), OLD),
    Row("packages: 4.18 to 4.19", "PackageBasedNodes", (), ("PackageBasedNodes",), TO_4_19),
    Row(
        "packages: a node that does not say",
        "PackageBasedNodes",
        (("osImage: Red Hat Enterprise Linux 8.10 (Ootpa), ", ""),),
        ("PackageBasedNodesUnknown?",),
        TO_4_19,
    ),
    Row(
        "packages: none of 4.19 and later needs to say",
        "PackageBasedNodes",
        (("osImage: Red Hat Enterprise Linux 8.10 (Ootpa), ", ""),),
    ),
    Row("network: OVN", "NetworkTypeRemoved", (("OpenShiftSDN", "OVNKubernetes"),)),
    Row("network: 4.16 still has it", "NetworkTypeRemoved", (), (), OLD),
    Row("network: 4.16 has no Kuryr", "NetworkTypeRemoved", (("OpenShiftSDN", "Kuryr"),), ("NetworkTypeRemoved",), OLD),
    Row(
        "network: not told", "NetworkTypeRemoved", (("networkType: OpenShiftSDN", ""),), ("NetworkTypeRemovedUnknown?",)
    ),
    Row("accounts: made by the operator", "CloudCredentialsNotReady", (("Manual", "Mint"),)),
    Row(
        "accounts: confirmed",
        "CloudCredentialsNotReady",
        (("name: cluster", "name: cluster, annotations: {cloudcredential.openshift.io/upgradeable-to: v5.2}"),),
    ),
    Row(
        "accounts: confirmed for the version before",
        "CloudCredentialsNotReady",
        (("name: cluster", 'name: cluster, annotations: {cloudcredential.openshift.io/upgradeable-to: "5.1.3"}'),),
        ("CloudCredentialsNotReady",),
    ),
    Row("architectures: one", "ArchitecturesMixed", (("arm64", "amd64"),)),
    Row("architectures: a release for several", "ArchitecturesMixed", (("version: 5.0.0", "architecture: Multi"),)),
    Row(
        "architectures: a release for several, by its acceptance alone",
        "ArchitecturesMixed",
        (("status: {", f"status: {{conditions: [{ACCEPTED_FOR % 'Multi'}], "),),
    ),
    Row(
        "architectures: a release for one, by its acceptance",
        "ArchitecturesMixed",
        (("status: {", f"status: {{conditions: [{ACCEPTED_FOR % 'amd64'}], "),),
        ("ArchitecturesMixed",),
        context=context(source="4.17.30"),
    ),
    Row(
        "architectures: not said by a version that does not have the field",
        "ArchitecturesMixed",
        (),
        ("ArchitecturesMixedUnknown?",),
        context=context(source="4.17.30"),
    ),
    Row("maximum: allows the target", "OperatorMaxOpenShiftVersion", (('value":"5.0', 'value":"5.2'),)),
    Row("maximum: allows a later one", "OperatorMaxOpenShiftVersion", (('value":"5.0', 'value":"6.0'),)),
    Row(
        "maximum: the highest counts",
        "OperatorMaxOpenShiftVersion",
        (('"value":"5.0"}', '"value":"5.0"},{"type":"olm.maxOpenShiftVersion","value":"v5.2.0"}'),),
    ),
    Row("maximum: none", "OperatorMaxOpenShiftVersion", (('"5.0"', '""'),)),
    Row(
        "maximum: a number",
        "OperatorMaxOpenShiftVersion",
        (('"5.0"', "5.0"),),
        ("OperatorMaxOpenShiftVersionUnknown?",),
    ),
    Row(
        "maximum: no version",
        "OperatorMaxOpenShiftVersion",
        (('"5.0"', '"soon"'),),
        ("OperatorMaxOpenShiftVersionUnknown?",),
    ),
    Row(
        "maximum: properties that are not JSON",
        "OperatorMaxOpenShiftVersion",
        (('{"properties":[', "{["),),
        ("OperatorMaxOpenShiftVersionUnknown?",),
    ),
    Row(
        "maximum: a copy in another namespace",
        "OperatorMaxOpenShiftVersion",
        (("namespace: openshift-logging\n", "namespace: shop\n  labels: {olm.copiedFrom: openshift-logging}\n"),),
    ),
    Row("maximum: a patch is not held back", "OperatorMaxOpenShiftVersion", (), (), PATCH),
    Row(
        "first: nothing newer is known of the one, and the other will do",
        "OperatorUpdateFirst",
        (("currentCSV: logging.v5.9.0", "currentCSV: logging.v5.8.1"), ('"5.1"', '"5.2"')),
        ("OperatorUpdateFirst",),
    ),
    Row("first: what is installed will do", "OperatorUpdateFirst", (('"5.0"', '"5.2"'), ('"5.1"', '"5.2"'))),
    Row("installed: in order", "OperatorFailed", (("phase: Failed", "phase: Succeeded"),)),
    Row(
        "installed: on its way for half an hour",
        "OperatorFailed",
        (("phase: Failed", "phase: Installing"), ("09:00:00Z", "09:30:00Z")),
    ),
    Row(
        "installed: on its way for an hour",
        "OperatorFailed",
        (("phase: Failed", "phase: Pending"),),
        ("OperatorFailed-logging.v5.8.1",),
    ),
    Row(
        "installed: nothing fits for a Subscription",
        "OperatorFailed",
        (("ClusterServiceVersion", "Subscription"), ("phase: Failed", RESOLUTION_FAILED)),
        ("OperatorFailed-logging.v5.8.1",),
    ),
    *(
        Row(
            f"installed: a Subscription with {type_}",
            "OperatorFailed",
            (
                ("ClusterServiceVersion", "Subscription"),
                ("phase: Failed", RESOLUTION_FAILED.replace("ResolutionFailed", type_)),
            ),
            ("OperatorFailed-logging.v5.8.1",) if type_ != "CatalogSourcesUnhealthy" else (),
        )
        for type_ in ("BundleUnpackFailed", "InstallPlanFailed", "InstallPlanMissing", "CatalogSourcesUnhealthy")
    ),
    Row(
        "installed: nothing fitted a moment ago",
        "OperatorFailed",
        (("ClusterServiceVersion", "Subscription"), ("phase: Failed", RESOLUTION_FAILED.replace("08:00", "09:55"))),
    ),
    Row(
        "installed: versions fit",
        "OperatorFailed",
        (("ClusterServiceVersion", "Subscription"), ("phase: Failed", RESOLUTION_FAILED.replace('"True"', '"False"'))),
    ),
    Row(
        "installed: a plan failed",
        "OperatorFailed",
        (("ClusterServiceVersion", "InstallPlan"), ("status:", "spec: {clusterServiceVersionNames: [a.v2]}\nstatus:")),
        ("OperatorFailed-logging.v5.8.1",),
    ),
    Row("waits: approved", "OperatorUpdateWaits", (("RequiresApproval", "Installing"),)),
    Row(
        "waits: it is there already",
        "OperatorUpdateWaits",
        (
            (
                "\napiVersion",
                "\napiVersion: operators.coreos.com/v1alpha1\nkind: ClusterServiceVersion\nmetadata: {name: "
                "logging.v5.9.0, namespace: openshift-logging}\n---\napiVersion",
            ),
        ),
    ),
    Row("end of life: not said", "OperatorDeprecated", (('"True"', '"False"'),)),
    *(
        Row(
            f"catalog: {what}",
            "OperatorCatalogUnreachable",
            (("TRANSIENT_FAILURE}}", f"READY}}}}\n---\n{UNHEALTHY % (status, day)}"),),
            ("OperatorCatalogUnreachable",) * found,
        )
        for what, status, day, found in (
            ("a Subscription says that it is unhealthy", "True", 10, 1),
            ("a Subscription says that it is healthy", "False", 10, 0),
            ("a Subscription has said so for a moment", "True", 15, 0),
        )
    ),
    *(
        Row(
            f"operator failed: {what}",
            "OperatorFailed",
            (
                ("phase: Failed", "phase: Succeeded"),
                (
                    "\napiVersion",
                    f"\n{UNHEALTHY.replace(OLM_TYPE, 'BundleUnpacking') % ('True', day)}\n---\napiVersion",
                ),
            ),
            ("OperatorFailed-logs",) * found,
        )
        for what, day, found in (("its bundle is unpacked for days", 10, 1), ("its bundle is being unpacked", 15, 0))
    ),
    Row("catalog: reached", "OperatorCatalogUnreachable", (("TRANSIENT_FAILURE", "READY"),)),
    Row(
        "catalog: not asked yet",
        "OperatorCatalogUnreachable",
        (("{connectionState: {lastObservedState: TRANSIENT_FAILURE}}", "{}"),),
        ("OperatorCatalogUnreachableUnknown?",),
    ),
    Row("needs: what is served", "OperatorNeedsRemovedAPI", (("v1beta1", "v1"),)),
    Row(
        "needs: no Kubernetes told", "OperatorNeedsRemovedAPI", (), ("OperatorNeedsRemovedAPIUnknown?",), NO_KUBERNETES
    ),
    Row(
        "extension: installed, and cannot go on",
        "ClusterExtensionNotInstalled",
        (
            (
                '{type: Installed, status: "False", reason: Failed',
                '{type: Installed, status: "True"}, {type: Progressing, status: "True", reason: Retrying',
            ),
        ),
        ("ClusterExtensionNotInstalled-argocd",),
    ),
    Row(
        "extension: installed, and configured wrongly",
        "ClusterExtensionNotInstalled",
        (
            (
                '{type: Installed, status: "False", reason: Failed',
                '{type: Installed, status: "True"}, {type: Progressing, status: "False", reason: InvalidConfiguration',
            ),
        ),
        ("ClusterExtensionNotInstalled-argocd",),
    ),
    Row(
        "extension: installed, and on its way",
        "ClusterExtensionNotInstalled",
        (
            (
                '{type: Installed, status: "False", reason: Failed',
                '{type: Installed, status: "True"}, {type: Progressing, status: "True", reason: RollingOut',
            ),
        ),
    ),
    Row("extension: installed", "ClusterExtensionNotInstalled", (('"False"', '"True"'),)),
    Row(
        "extension: at its end",
        "ClusterExtensionNotInstalled",
        (
            (
                '{type: Installed, status: "False"',
                '{type: Installed, status: "True"}, {type: Deprecated, status: "True"',
            ),
        ),
        ("ClusterExtensionNotInstalled-argocd",),
    ),
    Row("modules: verified, by the older words", "KernelModuleNotVerified", (("Failure", '"True"'),)),
    Row("modules: verified", "KernelModuleNotVerified", (("Failure", "Success"),)),
    Row(
        "modules: failed, by the older words",
        "KernelModuleNotVerified",
        (("Failure", '"False"'),),
        ("KernelModuleNotVerified",),
    ),
    Row(
        "modules: under way",
        "KernelModuleNotVerified",
        (("Failure", "InProgress"),),
        ("KernelModuleNotVerifiedUnknown?",),
    ),
    Row(
        "modules: by the older version of the API",
        "KernelModuleNotVerified",
        (
            ("v1beta2", "v1beta1"),
            (
                "  modules:\n  - name: simple-kmod\n    namespace: drivers\n",
                "  crStatuses:\n    drivers/simple-kmod:\n",
            ),
            ("    verification", "      verification"),
            ("    statusReason", "      statusReason"),
        ),
        ("KernelModuleNotVerified",),
    ),
    Row(
        "modules: nobody has looked",
        "KernelModuleNotVerified",
        (
            (
                "v1beta2\nkind: PreflightValidationOCP\nmetadata: {name: preflight}",
                "v1beta1\nkind: Module\nmetadata: {name: simple-kmod, namespace: drivers}",
            ),
        ),
        ("KernelModuleNotVerified",),
    ),
    Row("kernel modules: verified for the target", "KernelModulesNotReady", (("Failure", "Success"),)),
    Row(
        "kernel modules: validated for another release",
        "KernelModulesNotReady",
        (("sha256:5", "sha256:6"),),
        ("KernelModulesNotReadyUnknown?",),
    ),
    Row(
        "kernel modules: a validation that has not ended",
        "KernelModulesNotReady",
        (("Failure", '""'),),
        ("KernelModulesNotReadyUnknown?",),
    ),
    Row(
        "kernel modules: only a device plugin",
        "KernelModulesNotReady",
        (
            (
                "  moduleLoader:\n    container:\n      modprobe: {moduleName: simple_kmod}\n      kernelMappings: "
                "[{regexp: '.*', containerImage: 'quay.io/example/simple-kmod:$KERNEL_FULL_VERSION'}]",
                "  selector: {}",
            ),
        ),
    ),
    Row(
        "kernel modules: a Module that is none",
        "KernelModulesNotReady",
        (
            (
                "kernelMappings: [{regexp: '.*', containerImage: 'quay.io/example/simple-kmod:$KERNEL_FULL_VERSION'}]",
                "kernelMappings: 5",
            ),
        ),
        ("KernelModulesNotReadyUnknown?",),
    ),
    Row(
        "machines: may stay",
        "VirtualMachineNotMigratable",
        (("evictionStrategy: LiveMigrate", "evictionStrategy: None"),),
    ),
    Row("machines: can move", "VirtualMachineNotMigratable", (('"False"', '"True"'),)),
    Row("machines: by default, which is to move", "VirtualMachineNotMigratable", by_default("LiveMigrate"), MACHINES),
    Row("machines: by default, which is to stop", "VirtualMachineNotMigratable", by_default("None")),
    Row("machines: by default, none", "VirtualMachineNotMigratable", by_default("")),
    Row(
        "machines: by a default that is not known",
        "VirtualMachineNotMigratable",
        by_default(None),
        ("VirtualMachineNotMigratableUnknown?",),
    ),
    Row(
        "machines: by a default that is not known, and can move",
        "VirtualMachineNotMigratable",
        (*by_default(None), ('"False"', '"True"')),
    ),
    Row("machines: off", "VirtualMachineNotMigratable", (("phase: Running", "phase: Succeeded"),)),
    Row("room: enough", "HeadroomShort", (('cpu: "3"', 'cpu: "2"'),)),
    Row("room: an odd quantity", "HeadroomShort", (('cpu: "4"', 'cpu: "4 cores"'),), ("HeadroomShortUnknown?",)),
    Row(
        "room: exactly enough",
        "HeadroomShort",
        (
            (
                "big-1, namespace: shop}\nspec: {nodeName: worker-1, containers: [{name: a, "
                'resources: {requests: {cpu: "3"',
                "big-1, namespace: shop}\nspec: {nodeName: worker-1, containers: [{name: a, "
                'resources: {requests: {cpu: "1"',
            ),
        ),
    ),
    Row("room: memory counts, too", "HeadroomShort", (('cpu: "3"', "memory: 12Gi"),), ("HeadroomShort-worker",)),
    Row(
        "room: pods of DaemonSets stay",
        "HeadroomShort",
        (("namespace: shop}", "namespace: shop, ownerReferences: [{kind: DaemonSet, name: d, controller: true}]}"),),
    ),
    Row("room: pods that ended take none", "HeadroomShort", (("phase: Running", "phase: Succeeded"),)),
    Row(
        "room: the other node is cordoned",
        "HeadroomShort",
        (
            (
                'name: worker-1, labels: {node-role.kubernetes.io/worker: ""}}',
                'name: worker-1, labels: {node-role.kubernetes.io/worker: ""}}\nspec: {unschedulable: true}',
            ),
            ('cpu: "3"', 'cpu: "1"'),
        ),
        ("HeadroomShort-worker",),
    ),
    Row(
        "room: the other node repels these pods",
        "HeadroomShort",
        (
            (
                'name: worker-1, labels: {node-role.kubernetes.io/worker: ""}}',
                'name: worker-1, labels: {node-role.kubernetes.io/worker: ""}}\n'
                "spec: {taints: [{key: gpu, effect: NoSchedule}]}",
            ),
            ('cpu: "3"', 'cpu: "1"'),
        ),
        ("HeadroomShort-worker",),
    ),
    Row(
        "room: both nodes have the taint",
        "HeadroomShort",
        (
            ('labels: {node-role.kubernetes.io/worker: ""}}', LABELS_AND_TAINT),
            ('cpu: "3"', 'cpu: "1"'),
        ),
    ),
    Row(
        "room: on Windows there is none",
        "HeadroomShort",
        (
            ("name: worker-1, labels: {", "name: worker-1, labels: {kubernetes.io/os: windows, "),
            ('cpu: "3"', 'cpu: "1"'),
        ),
        ("HeadroomShort-worker",),
    ),
    Row(
        "room: a node that tells nothing",
        "HeadroomShort",
        (('allocatable: {cpu: "4", memory: 16Gi}, ', ""),),
        ("HeadroomShortUnknown?",),
    ),
    Row("unavailable: one", "MaxUnavailableUnsafe", (("maxUnavailable: 2", "maxUnavailable: 1"),)),
    Row("unavailable: a third of three", "MaxUnavailableUnsafe", (("maxUnavailable: 2", "maxUnavailable: 33%"),)),
    Row(
        "unavailable: two thirds",
        "MaxUnavailableUnsafe",
        (("maxUnavailable: 2", "maxUnavailable: 67%"),),
        ("MaxUnavailableUnsafe",),
    ),
    Row(
        "unavailable: a single machine has no quorum", "MaxUnavailableUnsafe", (("machineCount: 3", "machineCount: 1"),)
    ),
    Row("unavailable: of workers", "MaxUnavailableUnsafe", (("name: master", "name: worker"),)),
    Row("pressure: none", "NodePressure", (('DiskPressure, status: "True"', 'DiskPressure, status: "False"'),)),
    Row("uninitialized: new", "NodeUninitialized", (("2026-01-10T08:00:00Z", "2026-01-14T09:55:00Z"),)),
    Row(
        "uninitialized: another taint",
        "NodeUninitialized",
        (("node.cloudprovider.kubernetes.io/uninitialized", "gpu"),),
    ),
    Row(
        "machine: has no node for a day",
        "MachineFailed",
        (("phase: Failed", "phase: Provisioned"), ("openshift-machine-api}", MADE_A_DAY_AGO)),
        ("MachineFailed",),
    ),
    Row(
        "machine: has just been made",
        "MachineFailed",
        (
            ("phase: Failed", "phase: Provisioning"),
            ("openshift-machine-api}", MADE_A_DAY_AGO.replace("13T09", "14T09")),
        ),
    ),
    Row(
        "machine: does not go",
        "MachineFailed",
        (
            ("phase: Failed", "phase: Deleting"),
            ("openshift-machine-api}", MADE_A_DAY_AGO.replace("creation", "deletion")),
        ),
        ("MachineFailed",),
    ),
    Row(
        "machine: was made long ago and runs",
        "MachineFailed",
        (("phase: Failed", "phase: Running"), ("openshift-machine-api}", MADE_A_DAY_AGO)),
    ),
    Row(
        "health check: paused",
        "MachineHealthCheckActive",
        (("openshift-machine-api}", 'openshift-machine-api, annotations: {cluster.x-k8s.io/paused: ""}}'),),
    ),
    Row("health check: has no machines", "MachineHealthCheckActive", (("expectedMachines: 5", "expectedMachines: 0"),)),
    Row("health check: may do nothing", "MachineHealthCheckActive", (("maxUnhealthy: 40%", "maxUnhealthy: 0%"),)),
    Row(
        "health check: its share is less than a machine",
        "MachineHealthCheckActive",
        (("expectedMachines: 5", "expectedMachines: 2"),),
    ),
    Row("health check: a share of nothing readable", "MachineHealthCheckActive", (("40%", "many"),)),
    Row("health check: a number", "MachineHealthCheckActive", (("40%", "1"),), ("MachineHealthCheckActive",)),
    Row("health check: of other conditions", "MachineHealthCheckActive", (("type: Ready", "type: DiskFailed"),)),
    Row(
        "health check: has no status yet",
        "MachineHealthCheckActive",
        (("status: {expectedMachines: 5}", ""),),
        ("MachineHealthCheckActive",),
    ),
    Row("os image: the release's", "CustomOSImage", (("kind: MachineOSConfig", "kind: MachineOSBuild"),)),
    Row("ceph: healthy", "CephUnhealthy", (("health: HEALTH_ERR", "health: HEALTH_OK"),)),
    Row("ceph: a warning", "CephUnhealthy", (("health: HEALTH_ERR", "health: HEALTH_WARN"),), ("CephUnhealthy",)),
    Row("ceph: says nothing", "CephUnhealthy", (("health: HEALTH_ERR", 'health: ""'),), ("CephUnhealthyUnknown?",)),
    Row(
        "migration: done",
        "NetworkMigrationUnfinished",
        (("OpenShiftSDN, migration: {networkType: OVNKubernetes}", "OVNKubernetes"),),
    ),
    Row(
        "migration: only its record is left",
        "NetworkMigrationUnfinished",
        (("OpenShiftSDN, ", "OVNKubernetes, "),),
        ("NetworkMigrationUnfinished",),
    ),
    Row(
        "migration: a live one",
        "NetworkMigrationUnfinished",
        (
            (
                "OpenShiftSDN, migration: {networkType: OVNKubernetes}",
                'OVNKubernetes, conditions: [{type: NetworkTypeMigrationInProgress, status: "True"}]',
            ),
        ),
        ("NetworkMigrationUnfinished",),
    ),
    Row(
        "migration: a live one that ended",
        "NetworkMigrationUnfinished",
        (
            (
                "OpenShiftSDN, migration: {networkType: OVNKubernetes}",
                'OVNKubernetes, conditions: [{type: NetworkTypeMigrationInProgress, status: "False"}]',
            ),
        ),
    ),
    Row(
        "migration: the operator is asked for one",
        "NetworkMigrationUnfinished",
        (
            ("config.openshift.io/v1", "operator.openshift.io/v1"),
            ("{networkType: OVNKubernetes}\n", "{migration: {mtu: {machine: {to: 9000}}}}\n"),
        ),
        ("NetworkMigrationUnfinished",),
    ),
    Row("routers: one less", "RoutersFillNodes", (("replicas: 2", "replicas: 1"),)),
    Row("routers: two unless it says more", "RoutersFillNodes", (("spec: {replicas: 2}", ""),), ("RoutersFillNodes",)),
    Row("routers: behind a load balancer", "RoutersFillNodes", (("HostNetwork", "LoadBalancerService"),)),
    Row(
        "routers: a spec without a status",
        "RoutersFillNodes",
        (("spec: {replicas: 2}\nstatus: {endpoint", "spec: {replicas: 2, endpoint"),),
        ("RoutersFillNodes",),
    ),
    Row(
        "routers: a node more",
        "RoutersFillNodes",
        (("metadata: {name: worker-1", f"{ONE_MORE}metadata: {{name: worker-1"),),
    ),
    Row(
        "routers: a node more, and it is cordoned",
        "RoutersFillNodes",
        (
            (
                "metadata: {name: worker-1",
                ONE_MORE.replace("\n---", "\nspec: {unschedulable: true}\n---") + "metadata: {name: worker-1",
            ),
        ),
        ("RoutersFillNodes",),
    ),
    Row(
        "routers: a node more, and it is tainted",
        "RoutersFillNodes",
        (
            (
                "metadata: {name: worker-1",
                ONE_MORE.replace("\n---", "\nspec: {taints: [{key: gpu, effect: NoSchedule}]}\n---")
                + "metadata: {name: worker-1",
            ),
        ),
        ("RoutersFillNodes",),
    ),
    Row(
        "routers: on nodes of their own",
        "RoutersFillNodes",
        (("{replicas: 2}", "{replicas: 2, nodePlacement: {nodeSelector: {matchLabels: {edge: yes-please}}}}"),),
    ),
    Row(
        "gateway: of the platform", "GatewayAPIForeign", (("tcproutes", "httproutes"), (": experimental", ": standard"))
    ),
    Row(
        "gateway: the experimental channel", "GatewayAPIForeign", (("tcproutes", "httproutes"),), ("GatewayAPIForeign",)
    ),
    Row(
        "gateway: not of the platform", "GatewayAPIForeign", ((": experimental", ": standard"),), ("GatewayAPIForeign",)
    ),
    Row("gateway: another group", "GatewayAPIForeign", (("group: gateway.networking.k8s.io", "group: example.com"),)),
    Row(
        "gateway: before 4.19 it takes nothing over",
        "GatewayAPIForeign",
        (),
        (),
        context("4.17.0", "4.18.0", "1.31.0"),
    ),
    Row(
        "gateway: 4.19 takes over what is the platform's from then on",
        "GatewayAPIForeign",
        (("tcproutes", "httproutes"), (": experimental", ": standard")),
        ("GatewayAPIForeign",),
        TO_4_19,
    ),
    Row("gateway: a patch brings nothing", "GatewayAPIForeign", (), (), PATCH),
    Row("internal subnet: apart", "InternalSubnetOverlap", (("100.88.0.0/14", "10.128.0.0/14"),)),
    Row("internal subnet: of another network", "InternalSubnetOverlap", (("OVNKubernetes", "Calico"),)),
    Row(
        "internal subnet: of services",
        "InternalSubnetOverlap",
        (("100.88.0.0/14", "10.128.0.0/14"), ("172.30.0.0/16", "100.64.0.0/20")),
        ("InternalSubnetOverlap",),
    ),
    Row(
        "internal subnet: as the spec names it",
        "InternalSubnetOverlap",
        (("status:", "spec:"),),
        ("InternalSubnetOverlap",),
    ),
    Row("internal subnet: of IPv6", "InternalSubnetOverlap", (("100.88.0.0/14", "fd98::/48"),)),
    Row(
        "internal subnet: another was chosen",
        "InternalSubnetOverlap",
        (("\napiVersion", CHOSEN),),
    ),
    Row(
        "internal subnet: another was chosen, of the cluster",
        "InternalSubnetOverlap",
        (("\napiVersion", CHOSEN.replace("10.200.0.0/16", "172.30.128.0/20")),),
        ("InternalSubnetOverlap",),
    ),
    Row(
        "internal subnet: 4.13 has no transit switch",
        "InternalSubnetOverlap",
        (),
        (),
        context("4.12.0", "4.13.0", "1.26.3"),
    ),
    Row(
        "internal subnet: 4.14 has one",
        "InternalSubnetOverlap",
        (),
        ("InternalSubnetOverlap",),
        context("4.13.0", "4.14.0", "1.27.3"),
    ),
    Row(
        "internal subnet: a range that is none",
        "InternalSubnetOverlap",
        (("100.88.0.0/14", "everything"),),
        ("InternalSubnetOverlapUnknown?",),
    ),
    Row("machine: runs", "MachineFailed", (("phase: Failed", "phase: Running"),)),
    Row("platform pods: of an application", "SystemPodsFailing", (("kube-system", "shop"),)),
    Row("platform pods: nobody knows since when", "SystemPodsFailing", (("ImagePullBackOff", "ContainerCreating"),)),
    Row(
        "platform pods: starting for two minutes",
        "SystemPodsFailing",
        (("ImagePullBackOff", "ContainerCreating"), ("kube-system}", PENDING_SINCE.replace("08:00", "09:58"))),
    ),
    Row(
        "platform pods: starting for two hours",
        "SystemPodsFailing",
        (("ImagePullBackOff", "ContainerCreating"), ("kube-system}", PENDING_SINCE)),
        ("SystemPodsFailing",),
    ),
    Row(
        "platform pods: no node takes it",
        "SystemPodsFailing",
        (
            ("containerStatuses: [{name: coredns, state: {waiting: {reason: ImagePullBackOff}}}]", UNSCHEDULABLE),
            ("kube-system}", PENDING_SINCE),
        ),
        ("SystemPodsFailing",),
    ),
    Row(
        "platform pods: held back on purpose",
        "SystemPodsFailing",
        (
            (
                "containerStatuses: [{name: coredns, state: {waiting: {reason: ImagePullBackOff}}}]",
                UNSCHEDULABLE.replace("Unschedulable", "SchedulingGated"),
            ),
            ("kube-system}", PENDING_SINCE),
        ),
    ),
    Row(
        "platform pods: no node takes one of users",
        "SystemPodsFailing",
        (
            ("containerStatuses: [{name: coredns, state: {waiting: {reason: ImagePullBackOff}}}]", UNSCHEDULABLE),
            ("kube-system}", PENDING_SINCE.replace("kube-system", "shop")),
        ),
    ),
    Row(
        "platform pods: Pending without a word",
        "SystemPodsFailing",
        (
            ("  containerStatuses: [{name: coredns, state: {waiting: {reason: ImagePullBackOff}}}]\n", ""),
            ("kube-system}", PENDING_SINCE),
        ),
        ("SystemPodsFailing",),
    ),
    Row(
        "platform pods: they run",
        "SystemPodsFailing",
        (
            ("ImagePullBackOff", "ContainerCreating"),
            ("phase: Pending", "phase: Running"),
            ("kube-system}", PENDING_SINCE),
        ),
    ),
    Row("platform pods: ended", "SystemPodsFailing", (("phase: Pending", "phase: Failed"),)),
    Row(
        "platform pods: an init container counts",
        "SystemPodsFailing",
        (("containerStatuses", "initContainerStatuses"),),
        ("SystemPodsFailing",),
    ),
    Row("add-ons: in its range", "AddonIncompatible", (("v0.3.7", "v0.8.0"),)),
    Row("add-ons: another image", "AddonIncompatible", (("metrics-server/metrics-server:", "shop/metrics:"),)),
    Row(
        "retired add-ons: another controller", "AddonRetired", (("ingress-nginx/controller:", "nginx/nginx-ingress:"),)
    ),
    Row("proxies: three behind", "KubeProxySkew", (("v1.33.3", "v1.35.0"),)),
    Row("node images: the successor", "NodeImageTooOld", (("Amazon Linux 2}", "Amazon Linux 2023.9.20260105}"),)),
    Row(
        "drains: a budget that allows one, and an owner",
        "NodeDrainRefused",
        (
            ("disruptionsAllowed: 0", "disruptionsAllowed: 1"),
            (
                "{name: debug, namespace: shop}",
                "{name: debug, namespace: shop, ownerReferences: [{kind: Job, controller: true}]}",
            ),
        ),
    ),
    Row(
        "drains: an owner that does not control the pod",
        "NodeDrainRefused",
        (
            ("disruptionsAllowed: 0", "disruptionsAllowed: 1"),
            ("{name: debug, namespace: shop}", "{name: debug, namespace: shop, ownerReferences: [{kind: Job}]}"),
        ),
        ("NodeDrainRefused-workers",),
    ),
    Row(
        "drains: a budget of other pods",
        "NodeDrainRefused",
        (("{matchLabels: {app: db}}}", "{matchLabels: {app: web}}}"),),
        ("NodeDrainRefused-workers",),
    ),
    Row("going: for a moment", "StuckTerminating", (("2026-01-10T12:00:00Z", "2026-01-14T09:30:00Z"),)),
    Row(
        "going: a pod",
        "StuckTerminating",
        (("kind: Namespace", "kind: Pod"), ("metadata:", "spec: {nodeName: worker-0}\nmetadata:")),
        ("StuckTerminating",),
    ),
    Row("going: a namespace of somebody else", "StuckTerminating", (("kube-old", "old-shop"),)),
    Row(
        "going: a namespace of somebody else, with a pod",
        "StuckTerminating",
        (("kube-old", "old-shop"), ("\napiVersion", POD_OF_OLD_SHOP)),
        ("StuckTerminating",),
    ),
    Row("going: a pod on no node", "StuckTerminating", (("kind: Namespace", "kind: Pod"),)),
    Row("grace: an hour", "LongTerminationGrace", (("7200", "3600"),)),
    Row(
        "grace: of a DaemonSet's pod",
        "LongTerminationGrace",
        (("kind: StatefulSet", "kind: DaemonSet, controller: true"),),
    ),
    Row("one node: they are on two", "SpreadOnOneNode", (("worker-0, hostname", "worker-1, hostname"),)),
    Row("one node: one waits for a node", "SpreadOnOneNode", (("nodeName: worker-0, hostname", "hostname"),)),
    Row("one node: a budget takes them one by one", "SpreadOnOneNode", (("\napiVersion", budget("shop")),)),
    Row(
        "one node: a budget of another namespace",
        "SpreadOnOneNode",
        (("\napiVersion", budget("other")),),
        ("SpreadOnOneNode",),
    ),
    Row("one node: of the platform", "SpreadOnOneNode", (("namespace: shop", "namespace: openshift-dns-operator"),)),
    *(
        Row(
            f"one node: of {namespace}",
            "SpreadOnOneNode",
            (("namespace: shop", f"namespace: {namespace}"),),
            ("SpreadOnOneNode",),
        )
        for namespace in ("openshift-console", "openshift-image-registry", "openshift-ingress")
    ),
    Row("one node: a Job", "SpreadOnOneNode", (("kind: StatefulSet", "kind: Job"),)),
    Row("one node: they have ended", "SpreadOnOneNode", (("phase: Running", "phase: Succeeded"),)),
    Row(
        "one node: the only one",
        "SpreadOnOneNode",
        (
            (
                "\napiVersion",
                "\napiVersion: config.openshift.io/v1\nkind: Infrastructure\nmetadata: {name: cluster}\n"
                "status: {controlPlaneTopology: SingleReplica}\n---\napiVersion",
            ),
        ),
    ),
    Row("unmanaged: of the platform", "UnmanagedPods", (("namespace: shop", "namespace: openshift-etcd"),)),
    Row(
        "unmanaged: has an owner",
        "UnmanagedPods",
        (("namespace: shop", "namespace: shop, ownerReferences: [{kind: Job, name: j, controller: true}]"),),
    ),
    Row(
        "unmanaged: has an owner that does not control it",
        "UnmanagedPods",
        (("namespace: shop", "namespace: shop, ownerReferences: [{kind: Job, name: j}]"),),
        ("UnmanagedPods",),
    ),
    Row("unmanaged: ended", "UnmanagedPods", (("Running", "Succeeded"),)),
    Row("volumes: taken over by a driver", "RemovedVolumePlugin", (("cephfs", "awsElasticBlockStore"),)),
    Row("volumes: 1.29 still mounts it", "RemovedVolumePlugin", (), (), OLD),
    Row("volumes: no Kubernetes told", "RemovedVolumePlugin", (), ("RemovedVolumePluginUnknown?",), NO_KUBERNETES),
    Row("attaching: a moment ago", "VolumeAttachmentStuck", (("08:00:00Z", "09:55:00Z"),)),
    Row(
        "attaching: nobody does it",
        "VolumeAttachmentStuck",
        ((STATUS_OF_ATTACHMENT, "attached: false"), ("{name: csi-1f}", ATTACHED_SINCE)),
        ("VolumeAttachmentStuck",),
    ),
    Row(
        "attaching: it has just begun",
        "VolumeAttachmentStuck",
        ((STATUS_OF_ATTACHMENT, "attached: false"), ("{name: csi-1f}", ATTACHED_SINCE.replace("08:00", "09:55"))),
    ),
    Row(
        "attaching: nobody detaches it",
        "VolumeAttachmentStuck",
        ((STATUS_OF_ATTACHMENT, "attached: true"), ("{name: csi-1f}", ATTACHED_SINCE.replace("creation", "deletion"))),
        ("VolumeAttachmentStuck",),
    ),
    Row(
        "attaching: attached since long",
        "VolumeAttachmentStuck",
        ((STATUS_OF_ATTACHMENT, "attached: true"), ("{name: csi-1f}", ATTACHED_SINCE)),
    ),
    Row("attaching: an old error of one that is attached", "VolumeAttachmentStuck", (("detachError", "attachError"),)),
    Row("driver: registered", "CSIDriverNotReady", (("csi.example.com", "ebs.csi.aws.com"),)),
    Row("driver: the volume is not there yet", "CSIDriverNotReady", (("attached: true", "attached: false"),)),
    Row(
        "driver: the node is gone", "CSIDriverNotReady", (("metadata: {name: worker-0}", "metadata: {name: worker-1}"),)
    ),
    Row(
        "driver: none is registered",
        "CSIDriverNotReady",
        (("spec: {drivers: [{name: csi.example.com, nodeID: i-0, topologyKeys: []}]}", "spec: {drivers: null}"),),
        ("CSIDriverNotReady",),
    ),
    Row("zone: has another node", "ZoneLockedVolumes", (("eu-1b", "eu-1a"),)),
    Row("zone: the volume may be in two", "ZoneLockedVolumes", (("values: [eu-1a]", "values: [eu-1a, eu-1b]"),)),
    Row(
        "zone: one of two terms will do",
        "ZoneLockedVolumes",
        (
            (
                "values: [eu-1a]}]",
                "values: [eu-1a]}]\n      - matchExpressions: "
                "[{key: topology.ebs.csi.aws.com/zone, operator: In, values: [eu-1b]}]",
            ),
        ),
    ),
    Row(
        "zone: another node that repels pods is no refuge",
        "ZoneLockedVolumes",
        (("eu-1b}}", "eu-1a}}\nspec: {taints: [{key: gpu, effect: NoSchedule}]}"),),
        ("ZoneLockedVolumes",),
    ),
    Row(
        "zone: another node that only would rather not",
        "ZoneLockedVolumes",
        (("eu-1b}}", "eu-1a}}\nspec: {taints: [{key: gpu, effect: PreferNoSchedule}]}"),),
    ),
    Row(
        "zone: another node that is cordoned",
        "ZoneLockedVolumes",
        (("eu-1b}}", "eu-1a}}\nspec: {unschedulable: true}"),),
        ("ZoneLockedVolumes",),
    ),
    Row(
        "zone: another node that is not ready",
        "ZoneLockedVolumes",
        (("eu-1b}}", 'eu-1a}}\nstatus: {conditions: [{type: Ready, status: "False"}]}'),),
        ("ZoneLockedVolumes",),
    ),
    Row(
        "zone: both nodes have the taint",
        "ZoneLockedVolumes",
        (
            ("zone: eu-1a}}", "zone: eu-1a}}\nspec: {taints: [{key: infra, effect: NoSchedule}]}"),
            ("eu-1b}}", "eu-1a}}\nspec: {taints: [{key: infra, effect: NoSchedule}]}"),
        ),
    ),
    Row("zone: not attached", "ZoneLockedVolumes", (("attached: true", "attached: false"),)),
    Row(
        "zone: bound to a machine by design",
        "ZoneLockedVolumes",
        (("topology.ebs.csi.aws.com/zone, operator", "kubernetes.io/hostname, operator"),),
    ),
    Row("zone: an operator that is not read", "ZoneLockedVolumes", (("operator: In", "operator: NotIn"),)),
    Row("zone: no affinity", "ZoneLockedVolumes", (("nodeAffinity:", "accessModes: [ReadWriteMany]\n  other:"),)),
    Row(
        "zone: the only node",
        "ZoneLockedVolumes",
        (
            (
                "\n---\napiVersion: v1\nkind: Node\n"
                "metadata: {name: worker-1, labels: {topology.ebs.csi.aws.com/zone: eu-1b}}",
                "",
            ),
        ),
    ),
    Row("registry: a volume", "ImageRegistryEphemeral", (("emptyDir: {}", "pvc: {claim: registry}"),)),
    Row("registry: removed", "ImageRegistryEphemeral", (("Managed", "Removed"),)),
    Row(
        "next catalog: has its channel",
        "OperatorNotInTargetCatalog",
        (("name: stable-6.2", "name: stable-5.8"), ("logging.v6.2.0", "logging.v5.8.1")),
    ),
    Row(
        "next catalog: a catalog that stays",
        "OperatorNotInTargetCatalog",
        (("managed-by: marketplace-operator", "managed-by: me"),),
    ),
    Row(
        "next catalog: one that was not read",
        "OperatorNotInTargetCatalog",
        (("redhat-operator-index:v5.0", "certified:v5.0"),),
        ("OperatorNotInTargetCatalogUnknown?",),
    ),
    Row("next catalog: a patch brings none", "OperatorNotInTargetCatalog", (), (), PATCH),
    Row("proxy: no authority of its own", "ProxyTrustBroken", (("trustedCA: {name: user-ca-bundle}", ""),)),
    Row(
        "proxy: an empty bundle",
        "ProxyTrustBroken",
        (
            (
                "\napiVersion",
                "\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: user-ca-bundle, namespace: openshift-config}\n"
                "---\napiVersion",
            ),
        ),
        ("ProxyTrustBroken",),
    ),
    Row("boot images: of RHEL 9", "BootImagesOld", (("rhcos-412-86", "rhcos-413-92"),)),
    Row("boot images: a patch", "BootImagesOld", (), (), PATCH),
    Row(
        "boot images: Azure's by its version",
        "BootImagesOld",
        (
            (
                "disks: [{boot: true, "
                "image: projects/rhcos-cloud/global/images/rhcos-412-86-202212081411-0-gcp-x86-64}]",
                "image: {publisher: azureopenshift, version: 48.84.20211207}",
            ),
        ),
        ("BootImagesOld",),
    ),
    Row(
        "boot images: vSphere's template made by the installer says nothing",
        "BootImagesOld",
        (
            (
                "disks: [{boot: true, "
                "image: projects/rhcos-cloud/global/images/rhcos-412-86-202212081411-0-gcp-x86-64}]",
                "template: shop-rhcos-generated-region-zone",
            ),
        ),
    ),
    Row("boot images: the operator keeps all of them", "BootImagesOld", (("\napiVersion", managed("mode: All")),)),
    Row(
        "boot images: the operator keeps some, and this one",
        "BootImagesOld",
        (
            ("name: shop-worker-a,", "name: shop-worker-a, labels: {boot: managed},"),
            (
                "\napiVersion",
                managed("mode: Partial, partial: {machineResourceSelector: {matchLabels: {boot: managed}}}"),
            ),
        ),
    ),
    Row(
        "boot images: the operator keeps some others",
        "BootImagesOld",
        (
            (
                "\napiVersion",
                managed("mode: Partial, partial: {machineResourceSelector: {matchLabels: {boot: managed}}}"),
            ),
        ),
        ("BootImagesOld",),
    ),
    Row(
        "boot images: the operator keeps none",
        "BootImagesOld",
        (("\napiVersion", managed("mode: None")),),
        ("BootImagesOld",),
    ),
    Row(
        "boot images: written down, too old by its RHEL",
        "BootImagesOld",
        (
            ("rhcos-412-86", "rhcos-413-92"),
            ("\napiVersion", skew("mode: Manual, manual: {rhcosVersion: 412.86.202212081411-0}")),
        ),
        ("BootImagesOld",),
    ),
    Row(
        "boot images: written down, too old by its release",
        "BootImagesOld",
        (("rhcos-412-86", "rhcos-413-92"), ("\napiVersion", skew("mode: Manual, manual: {ocpVersion: 4.12.9}"))),
        ("BootImagesOld",),
    ),
    Row(
        "boot images: new ones, written down in the words of RHEL",
        "BootImagesOld",
        (
            ("rhcos-412-86", "rhcos-413-92"),
            ("\napiVersion", skew("mode: Manual, manual: {rhcosVersion: 9.6.20251023-0}")),
        ),
    ),
    Row(
        "boot images: nobody asks for their version",
        "BootImagesOld",
        (("rhcos-412-86", "rhcos-413-92"), ("\napiVersion", skew("mode: None, manual: {ocpVersion: 4.12.9}"))),
    ),
    Row("certificate: weeks away", "CertificateExpires", (("2026-01-17", "2026-02-17"),)),
    Row("certificate: in time for its renewal", "CertificateExpires", (("2025-12-18", "2026-01-15"),)),
    Row(
        "certificate: in time, and not ready",
        "CertificateExpires",
        (("2025-12-18", "2026-01-15"), ('status: "True"', 'status: "False"')),
        ("CertificateExpires",),
    ),
    Row("certificate: over", "CertificateExpires", (("2026-01-17", "2026-01-12"),), ("CertificateExpires",)),
    Row(
        "certificate: no renewal scheduled",
        "CertificateExpires",
        (('  renewalTime: "2025-12-18T08:00:00Z"\n', ""),),
        ("CertificateExpires",),
    ),
    Row("certificate: never made", "CertificateExpires", (('  notAfter: "2026-01-17T08:00:00Z"\n', ""),)),
    Row(
        "certificate: of a pool's nodes",
        "CertificateExpires",
        (
            ("2026-01-17", "2026-02-17"),
            ("\napiVersion", known_to_nodes(("2025-10-01T00:00:00", "2025-12-01T00:00:00"), NOVEMBER)),
        ),
        ("CertificateExpires",),
    ),
    Row(
        "certificate: of a pool's nodes, of a cluster of today",
        "CertificateExpires",
        (
            ("2026-01-17", "2026-02-17"),
            ("\napiVersion", known_to_nodes(("2026-01-14T04:00:00", "2026-01-15T04:00:00"))),
        ),
    ),
    Row(
        "certificate: of a pool's nodes, whose life is not known",
        "CertificateExpires",
        (
            ("2026-01-17", "2026-02-17"),
            ("\napiVersion", known_to_nodes(NOVEMBER).replace("_@", ",OU=")),
        ),
    ),
    Row(
        "certificate: of a pool's nodes, renewed",
        "CertificateExpires",
        (
            ("2026-01-17", "2026-02-17"),
            ("\napiVersion", known_to_nodes(NOVEMBER, ("2026-01-02T00:00:00", "2026-03-16T00:00:00"))),
        ),
    ),
    Row(
        "certificate: of a pool's nodes, of an authority that is long gone",
        "CertificateExpires",
        (
            ("2026-01-17", "2026-02-17"),
            ("\napiVersion", known_to_nodes(("2025-10-16T00:00:00", "2025-11-16T00:00:00"))),
        ),
    ),
    Row(
        "pod security: no level",
        "PodSecurityViolated",
        ((", labels: {pod-security.kubernetes.io/enforce: baseline}", ""),),
    ),
    Row("pod security: an owner that does not control the pod", "PodSecurityViolated", ((", controller: true", ""),)),
    Row(
        "pod security: a level that allows all", "PodSecurityViolated", (("enforce: baseline", "enforce: privileged"),)
    ),
    Row("pod security: a level that warns", "PodSecurityViolated", (("enforce: baseline", "warn: baseline"),)),
    Row(
        "pod security: a container without seccomp",
        "PodSecurityViolated",
        (("privileged: true", "seccompProfile: {type: Unconfined}"),),
        ("PodSecurityViolated",),
    ),
    Row(
        "pod security: a pod without seccomp",
        "PodSecurityViolated",
        (("privileged: true", ""), ("nodeName:", "securityContext: {seccompProfile: {type: Unconfined}}\n  nodeName:")),
        ("PodSecurityViolated",),
    ),
    Row(
        "pod security: seccomp is not asked for before 1.19",
        "PodSecurityViolated",
        (
            ("privileged: true", "seccompProfile: {type: Unconfined}"),
            ("enforce: baseline", "enforce: baseline, pod-security.kubernetes.io/enforce-version: v1.18"),
        ),
    ),
    Row("pod security: a pod that keeps to it", "PodSecurityViolated", (("privileged: true", "privileged: false"),)),
    Row(
        "pod security: the stricter level",
        "PodSecurityViolated",
        (("privileged: true", "privileged: false"), ("enforce: baseline", "enforce: restricted")),
        ("PodSecurityViolated",),
    ),
    Row(
        "pod security: all that the stricter level asks, by pod and container",
        "PodSecurityViolated",
        (
            ("privileged: true", "allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}"),
            ("enforce: baseline", "enforce: restricted"),
            ("  nodeName: worker-0\n", "  nodeName: worker-0\n" + STRICT),
        ),
    ),
    Row(
        "pod security: all that the stricter level asks on Windows",
        "PodSecurityViolated",
        (
            ("privileged: true", "runAsNonRoot: true"),
            ("enforce: baseline", "enforce: restricted"),
            ("nodeName: worker-0", "nodeName: worker-0\n  os: {name: windows}"),
        ),
    ),
    Row(
        "pod security: not all that the stricter level asks on Linux",
        "PodSecurityViolated",
        (
            ("privileged: true", "runAsNonRoot: true"),
            ("enforce: baseline", "enforce: restricted"),
            ("nodeName: worker-0", "nodeName: worker-0\n  os: {name: linux}"),
        ),
        ("PodSecurityViolated",),
    ),
    Row(
        "pod security: less than the stricter level asks on Windows",
        "PodSecurityViolated",
        (
            ("privileged: true", "privileged: false"),
            ("enforce: baseline", "enforce: restricted"),
            ("nodeName: worker-0", "nodeName: worker-0\n  os: {name: windows}"),
        ),
        ("PodSecurityViolated",),
    ),
    Row(
        "pod security: a folder of the node",
        "PodSecurityViolated",
        (("privileged: true", "privileged: false"), ("  nodeName: worker-0\n", f"  nodeName: worker-0\n{ON_THE_NODE}")),
        ("PodSecurityViolated",),
    ),
    Row(
        "pod security: the node's network",
        "PodSecurityViolated",
        (("privileged: true", "privileged: false"), ("nodeName: worker-0", "nodeName: worker-0\n  hostNetwork: true")),
        ("PodSecurityViolated",),
    ),
    Row(
        "pod security: nobody makes it again",
        "PodSecurityViolated",
        ((", ownerReferences: [{kind: ReplicaSet, name: agent, controller: true}]", ""),),
    ),
    Row(
        "pod security: no drain moves it",
        "PodSecurityViolated",
        (("kind: ReplicaSet", "kind: DaemonSet, controller: true"),),
    ),
    Row("pod security: it has ended", "PodSecurityViolated", (("phase: Running", "phase: Succeeded"),)),
    Row(
        "not made: it succeeds now",
        "PodsNotMade",
        (('type: ReplicaFailure, status: "True"', 'type: ReplicaFailure, status: "False"'),),
    ),
    Row("not made: another condition", "PodsNotMade", (("ReplicaFailure", "Progressing"),)),
    Row("not made: none is wanted any more", "PodsNotMade", (("{replicas: 3}", "{replicas: 0}"),)),
    Row("quota: room for one more", "QuotaFull", (("16Gi", "24Gi"),)),
    Row("quota: a limit that is no quantity", "QuotaFull", (("16Gi", "plenty"),)),
    Row("quota: no virtual machine", "QuotaFull", (("kubevirt.io: virt-launcher", "app: web"),)),
    Row("quota: no usage reported", "QuotaFull", (("used: {requests.memory: 12Gi}", "used: {}"),), ("QuotaFull",)),
    Row("quota: of some pods alone", "QuotaFull", (("spec: {hard", "spec: {scopes: [BestEffort], hard"),)),
    Row("quota: full of what is not moved", "QuotaFull", (("requests.memory", "requests.storage"),)),
    Row(
        "quota: used beyond a limit that was lowered",
        "QuotaFull",
        (("kubevirt.io: virt-launcher", "app: web"), ("16Gi", "8Gi")),
        ("QuotaFull",),
    ),
    Row(
        "quota: the platform rolls out beside the old pod",
        "QuotaFull",
        (
            ("kubevirt.io: virt-launcher", "app: web"),
            ("namespace: vms", "namespace: openshift-console"),
            ("\napiVersion", rolled_out("maxUnavailable: 25%")),
        ),
        ("QuotaFull",),
    ),
    Row(
        "quota: the platform takes the old pod away first",
        "QuotaFull",
        (
            ("kubevirt.io: virt-launcher", "app: web"),
            ("namespace: vms", "namespace: openshift-console"),
            ("\napiVersion", rolled_out("maxSurge: 0, maxUnavailable: 1")),
        ),
    ),
    Row(
        "mirrors: the source may be asked, too",
        "TargetOnlyMirrored",
        (("NeverContactSource", "AllowContactingSource"),),
    ),
    Row(
        "mirrors: of another repository",
        "TargetOnlyMirrored",
        (("source: quay.io/example/release", "source: quay.io/example/other"),),
    ),
    Row(
        "mirrors: of the whole registry, which nodes may use",
        "TargetOnlyMirrored",
        (("source: quay.io/example/release", "source: quay.io"), ("blockedRegistries", "insecureRegistries")),
        ("TargetOnlyMirrored",),
    ),
    Row("mirrors: none", "TargetOnlyMirrored", (("[mirror.example.com:5000/release]", "[]"),), ("TargetOnlyMirrored",)),
    Row(
        "mirrors: a source that is closer may be asked",
        "TargetOnlyMirrored",
        (
            (
                "  - source: quay.io/example/release",
                "  - source: quay.io/example/release\n    mirrors: [m.example.com/r]\n  - source: quay.io",
            ),
        ),
    ),
    Row("routes: signed with SHA-1, and long at 4.16", "RoutesUnservable", route_with(SHA1_SERVER)),
    Row(
        "routes: signed with SHA-1, to 4.16",
        "RoutesUnservable",
        route_with(SHA1_SERVER),
        ("RoutesUnservable",),
        OLD,
    ),
    Row(
        "routes: an authority that signed itself with SHA-1, to 4.16",
        "RoutesUnservable",
        route_with(SHA1_ROOT),
        (),
        OLD,
    ),
    Row(
        "gone: the class is there",
        "PodReferencesMissing",
        (("\napiVersion", there("scheduling.k8s.io/v1", "PriorityClass", "important")),),
    ),
    Row("gone: no drain moves a pod", "PodReferencesMissing", (("phase: Running", "phase: Succeeded"),)),
    Row("gone: a class of the API server itself", "PodReferencesMissing", (("important", "system-cluster-critical"),)),
    Row(
        "gone: the class of its runtime",
        "PodReferencesMissing",
        (("priorityClassName: important", "runtimeClassName: gvisor"),),
        ("PodReferencesMissing",),
    ),
    Row(
        "gone: the class of its runtime is there",
        "PodReferencesMissing",
        (
            ("priorityClassName: important", "runtimeClassName: gvisor"),
            ("\napiVersion", there("node.k8s.io/v1", "RuntimeClass", "gvisor")),
        ),
    ),
    Row(
        "gone: its account",
        "PodReferencesMissing",
        (("priorityClassName: important", "serviceAccountName: feed"),),
        ("PodReferencesMissing",),
    ),
    Row(
        "gone: its account is there",
        "PodReferencesMissing",
        (
            ("priorityClassName: important", "serviceAccountName: feed"),
            ("\napiVersion", there("v1", "ServiceAccount", "feed, namespace: shop")),
        ),
    ),
    Row(
        "gone: an account of that name in another namespace",
        "PodReferencesMissing",
        (
            ("priorityClassName: important", "serviceAccountName: feed"),
            ("\napiVersion", there("v1", "ServiceAccount", "feed, namespace: other")),
        ),
        ("PodReferencesMissing",),
    ),
    Row(
        "gone: what everybody may use suffices",
        "PodReferencesMissing",
        (("priorityClassName: important", ""), ("scc: restricted-v2", "scc: gone"), ("[{name: web}]", RESTRICTED)),
    ),
    Row(
        "gone: the constraints that let it be more",
        "PodReferencesMissing",
        (("priorityClassName: important", ""), ("scc: restricted-v2", "scc: gone")),
        ("PodReferencesMissing",),
    ),
    Row(
        "gone: more than a limit",
        "PodReferencesMissing",
        (
            ("priorityClassName: important", "containers: [{name: web, resources: {limits: {memory: 6Gi}}}]"),
            ("\napiVersion", limit_range("Container")),
        ),
        ("PodReferencesMissing",),
    ),
    *(
        Row(
            f"gone: required constraints {name}",
            "PodReferencesMissing",
            (
                (
                    "{spec: {priorityClassName: important}}",
                    f"{{metadata: {{annotations: {{openshift.io/required-scc: {name}}}}}, spec: {{}}}}",
                ),
            ),
            ("PodReferencesMissing",) * found,
        )
        for name, found in (("does-not-exist", 1), ("restricted-v2", 0))
    ),
    Row(
        "gone: less than the minimum",
        "PodReferencesMissing",
        (
            ("priorityClassName: important", "containers: [{name: web, resources: {requests: {memory: 1Gi}}}]"),
            ("\napiVersion", limit_range("Container").replace("max:", "min:")),
        ),
        ("PodReferencesMissing",),
    ),
    Row(
        "gone: an init container above the limit",
        "PodReferencesMissing",
        (
            ("priorityClassName: important", "initContainers: [{name: web, resources: {limits: {memory: 6Gi}}}]"),
            ("\napiVersion", limit_range("Container")),
        ),
        ("PodReferencesMissing",),
    ),
    Row(
        "gone: a pod above the limit",
        "PodReferencesMissing",
        (
            ("priorityClassName: important", "containers: [{name: web, resources: {limits: {memory: 6Gi}}}]"),
            ("\napiVersion", limit_range("Pod")),
        ),
        ("PodReferencesMissing",),
    ),
    Row(
        "gone: a limit that is no quantity",
        "PodReferencesMissing",
        (
            ("priorityClassName: important", "containers: [{name: web, resources: {limits: {memory: 6Gi}}}]"),
            ("\napiVersion", limit_range("Container").replace("4Gi", "plenty")),
        ),
    ),
    Row(
        "gone: asks for no quantity",
        "PodReferencesMissing",
        (
            ("priorityClassName: important", "containers: [{name: web, resources: {limits: {memory: plenty}}}]"),
            ("\napiVersion", limit_range("Container").replace("4Gi", '"-1"')),
        ),
    ),
    Row(
        "gone: more than a limit of volumes",
        "PodReferencesMissing",
        (
            ("priorityClassName: important", "containers: [{name: web, resources: {limits: {memory: 6Gi}}}]"),
            ("\napiVersion", limit_range("PersistentVolumeClaim")),
        ),
    ),
    Row(
        "placed: a node has the label",
        "PodsNotPlaceable",
        (("name: worker-0}", "name: worker-0, labels: {disk: fast}}"),),
    ),
    Row("placed: its pod is on a node that is gone", "PodsNotPlaceable", (("nodeName: worker-0", "nodeName: gone"),)),
    Row("placed: nothing is demanded", "PodsNotPlaceable", (("nodeSelector: {disk: fast}", "nodeSelector: {}"),)),
    Row(
        "placed: a taint that it does not tolerate",
        "PodsNotPlaceable",
        (
            ("nodeSelector: {disk: fast}", "tolerations: [{key: infra, operator: Exists, effect: NoExecute}]"),
            ("name: worker-0}", "name: worker-0}\nspec: {taints: [{key: infra, effect: NoSchedule}]}"),
        ),
        ("PodsNotPlaceable",),
    ),
    Row(
        "placed: a taint that it tolerates",
        "PodsNotPlaceable",
        (
            ("nodeSelector: {disk: fast}", "tolerations: [{key: infra, operator: Exists}]"),
            ("name: worker-0}", "name: worker-0}\nspec: {taints: [{key: infra, effect: NoSchedule}]}"),
        ),
    ),
    Row(
        "placed: a taint that passes",
        "PodsNotPlaceable",
        (
            ("nodeSelector: {disk: fast}", "nodeSelector: {}"),
            (
                "name: worker-0}",
                "name: worker-0}\nspec: {taints: [{key: node.kubernetes.io/unschedulable, effect: NoSchedule}]}",
            ),
        ),
    ),
    Row(
        "placed: a taint of a node that goes",
        "PodsNotPlaceable",
        (
            ("nodeSelector: {disk: fast}", "nodeSelector: {}"),
            ("name: worker-0}", f"name: worker-0}}\nspec: {{taints: [{OF_OTHER_CONTROLLERS}]}}"),
        ),
    ),
    Row(
        "placed: demanded by affinity",
        "PodsNotPlaceable",
        (("nodeSelector: {disk: fast}", affinity("In")),),
        ("PodsNotPlaceable",),
    ),
    Row(
        "placed: forbidden by affinity, and not there",
        "PodsNotPlaceable",
        (("nodeSelector: {disk: fast}", affinity("NotIn")),),
    ),
    Row(
        "placed: its project demands another value",
        "PodsNotPlaceable",
        (
            ("name: worker-0}", "name: worker-0, labels: {disk: fast}}"),
            ("{name: shop}", "{name: shop, annotations: {openshift.io/node-selector: disk=slow}}"),
        ),
        ("PodsNotPlaceable",),
    ),
    Row(
        "placed: its project demands nothing",
        "PodsNotPlaceable",
        (
            ("name: worker-0}", "name: worker-0, labels: {disk: fast}}"),
            ("{name: shop}", '{name: shop, annotations: {openshift.io/node-selector: ""}}'),
        ),
    ),
    Row("pinned: a second node has it", "PodsPinnedToNode", (('"no"', '"yes"'),)),
    *(
        Row(
            f"pinned: {pods}",
            "PodsPinnedToNode",
            (
                ('replicas: 1, template: {spec: {nodeSelector: {licensed: "yes"}}}', template),
                *((("kind: Node\nmetadata: {name: worker-1", THIRD_NODE),) * third),
                *((("apiVersion: v1\nkind: Namespace", BUDGET),) * ("budget" in pods)),
            ),
            ("PodsPinnedToNode",) * found,
        )
        for pods, template, third, found in (
            ("a port of the node on each node", f"replicas: 2, {PORT}", 0, 1),
            ("a port of the node on more pods than nodes", f"replicas: 4, {PORT}", 1, 1),
            ("a port of the node, and a free node", f"replicas: 2, {PORT}", 1, 0),
            ("a port of the node, and a budget", f"replicas: 2, {PORT}", 0, 0),
            ("a port of the node, and one pod", f"replicas: 1, {PORT}", 0, 0),
            ("a port of the pod", f"replicas: 2, {PORT.replace('hostPort', 'containerPort')}", 0, 0),
            ("an anti-affinity of its pods", f"replicas: 2, {APART}", 0, 1),
            ("an anti-affinity, and a free node", f"replicas: 2, {APART}", 1, 0),
            (
                "an anti-affinity to others",
                f"replicas: 2, {APART.replace('labels: {app: edge}', 'labels: {app: x}')}",
                0,
                0,
            ),
            (
                "a port on the network of the host",
                f"replicas: 2, {PORT.replace('hostPort', 'containerPort').replace('{c', '{hostNetwork: true, c')}",
                0,
                1,
            ),
        )
    ),
    Row("pinned: to none is another risk", "PodsPinnedToNode", (('worker-0, labels: {licensed: "yes"}', "worker-0"),)),
    Row(
        "pinned: of the platform",
        "PodsPinnedToNode",
        (("namespace: shop", "namespace: openshift-shop"), ("{name: shop}", "{name: openshift-shop}")),
    ),
    Row("pinned: by a taint alone", "PodsPinnedToNode", (('nodeSelector: {licensed: "yes"}', "tolerations: []"),)),
    Row("in order: it is ready", "StatefulSetHeldUp", (("{waiting: {reason: CrashLoopBackOff}}", "{running: {}}"),)),
    Row(
        "in order: all at once",
        "StatefulSetHeldUp",
        (("{replicas: 2}", "{replicas: 2, podManagementPolicy: Parallel}"),),
    ),
    Row("in order: the last one", "StatefulSetHeldUp", (("name: queue-0", "name: queue-2"),)),
    Row("in order: the tenth comes after the second", "StatefulSetHeldUp", (("name: queue-0", "name: queue-10"),)),
    Row("job: may fail once more", "JobLostByDrain", (("backoffLimit: 0, ", ""),)),
    Row(
        "job: has failed that often",
        "JobLostByDrain",
        (("backoffLimit: 0, ", ""), ("active: 1", "active: 1, failed: 6")),
        ("JobLostByDrain",),
    ),
    Row("job: spares evicted pods", "JobLostByDrain", (("backoffLimit: 0", f"backoffLimit: 0, {SPARES_EVICTED}"),)),
    Row(
        "job: counts evicted pods",
        "JobLostByDrain",
        (("backoffLimit: 0", f"backoffLimit: 0, {SPARES_EVICTED.replace('Ignore', 'Count')}"),),
        ("JobLostByDrain",),
    ),
    Row(
        "job: of a CronJob",
        "JobLostByDrain",
        (
            (
                "namespace: science}\nspec: {back",
                "namespace: science, ownerReferences: [{kind: CronJob, name: nightly}]}\nspec: {back",
            ),
        ),
    ),
    Row("job: has no pod on a node", "JobLostByDrain", (("nodeName: worker-0", ""),)),
    Row(
        "job: has ended",
        "JobLostByDrain",
        (("{active: 1}", '{active: 1, conditions: [{type: Complete, status: "True"}]}'),),
    ),
    Row("claim: it stays", "VolumeClaimLost", ((', deletionTimestamp: "2026-01-10T12:00:00Z"', ""),)),
    Row(
        "claim: it has lost its volume",
        "VolumeClaimLost",
        ((', deletionTimestamp: "2026-01-10T12:00:00Z"', ""), ("Bound", "Lost")),
        ("VolumeClaimLost",),
    ),
    Row(
        "claim: not there",
        "VolumeClaimLost",
        (("name: data, namespace", "name: other, namespace"),),
        ("VolumeClaimLost",),
    ),
    Row(
        "claim: of a pod that no drain moves",
        "VolumeClaimLost",
        (("kind: StatefulSet", "kind: DaemonSet, controller: true"),),
    ),
    Row("claim: of a pod that has ended", "VolumeClaimLost", (("phase: Running", "phase: Succeeded"),)),
    Row("no node: has the driver", "VolumeOnNoNode", (("name: ebs.csi.aws.com", "name: csi.example.com"),)),
    Row(
        "no node: one of two has the driver",
        "VolumeOnNoNode",
        (("name: ebs.csi.aws.com", "name: csi.example.com"), ("\napiVersion", ANOTHER_CSI_NODE)),
        ("VolumeOnNoNode",),
    ),
    Row(
        "no node: has the volume's label",
        "VolumeOnNoNode",
        (
            ('csi: {driver: csi.example.com, volumeHandle: "1"}', IN_ZONE),
            ("kind: Node\nmetadata: {name: worker-0}", "kind: Node\nmetadata: {name: worker-0, labels: {zone: east}}"),
        ),
    ),
    Row(
        "no node: lost the volume's label",
        "VolumeOnNoNode",
        (('csi: {driver: csi.example.com, volumeHandle: "1"}', IN_ZONE),),
        ("VolumeOnNoNode",),
    ),
    Row("no node: of a claim that nobody moves", "VolumeOnNoNode", (("phase: Running", "phase: Failed"),)),
    Row("volumes: no claim has it", "RemovedVolumePlugin", (("spec:", "status: {phase: Released}\nspec:"),)),
    Row(
        "volumes: a claim has it",
        "RemovedVolumePlugin",
        (("spec:", "status: {phase: Bound}\nspec:"),),
        ("RemovedVolumePlugin",),
    ),
    Row(
        "volumes: in a template",
        "RemovedVolumePlugin",
        (("\napiVersion", inline("cephfs: {monitors: [a]}")), ("spec: {cephfs", "spec: {nfs")),
        ("RemovedVolumePlugin",),
    ),
    Row(
        "volumes: another one in a template",
        "RemovedVolumePlugin",
        (("\napiVersion", inline("nfs: {server: a}")), ("spec: {cephfs", "spec: {nfs")),
    ),
    Row(
        "attaching: tried again and again",
        "VolumeAttachmentStuck",
        (("08:00:00Z", "09:55:00Z"), ("{name: csi-1f}", '{name: csi-1f, deletionTimestamp: "2026-01-14T08:00:00Z"}')),
        ("VolumeAttachmentStuck",),
    ),
    Row("Ceph: a crash of the past", "CephUnhealthy", (("HEALTH_ERR", "HEALTH_WARN"), ("PG_DAMAGED", "RECENT_CRASH"))),
    Row(
        "Ceph: a crash of the past, and more",
        "CephUnhealthy",
        (
            ("HEALTH_ERR", "HEALTH_WARN"),
            ("details: {", 'details: {RECENT_CRASH: {message: "1 daemon", severity: HEALTH_WARN}, '),
        ),
        ("CephUnhealthy",),
    ),
    Row("router: two", "RouterAlone", (("replicas: 1, ", "replicas: 2, "),)),
    Row("router: as many as are usual", "RouterAlone", (("replicas: 1, ", ""),)),
    Row(
        "router: no second node",
        "RouterAlone",
        (("worker-1, labels: {node-role.kubernetes.io/worker", "worker-1, labels: {node-role.kubernetes.io/infra"),),
    ),
    Row(
        "gone: its network",
        "PodReferencesMissing",
        (("{spec: {priorityClassName: important}}", network("signal")),),
        ("PodReferencesMissing",),
    ),
    Row(
        "gone: its network is there",
        "PodReferencesMissing",
        (
            ("{spec: {priorityClassName: important}}", network("signal@net1")),
            ("\napiVersion", there("k8s.cni.cncf.io/v1", "NetworkAttachmentDefinition", "signal, namespace: shop")),
        ),
    ),
    Row(
        "gone: its network of another namespace is there",
        "PodReferencesMissing",
        (
            ("{spec: {priorityClassName: important}}", network("default/signal")),
            ("\napiVersion", there("k8s.cni.cncf.io/v1", "NetworkAttachmentDefinition", "signal, namespace: default")),
        ),
    ),
    Row(
        "gone: its network, as JSON",
        "PodReferencesMissing",
        (("{spec: {priorityClassName: important}}", network('[{\\"name\\": \\"signal\\"}]')),),
        ("PodReferencesMissing",),
    ),
    Row(
        "placed: a device that no node has",
        "PodsNotPlaceable",
        (
            ("nodeSelector: {disk: fast}", DEVICE),
            ("name: worker-0}", 'name: worker-0}\nstatus: {allocatable: {cpu: "2"}}'),
        ),
        ("PodsNotPlaceable",),
    ),
    Row(
        "placed: a device that its node has",
        "PodsNotPlaceable",
        (
            ("nodeSelector: {disk: fast}", DEVICE),
            ("name: worker-0}", 'name: worker-0}\nstatus: {allocatable: {example.com/nic: "2"}}'),
        ),
    ),
    Row(
        "placed: a node kept free for those that ask for its device",
        "PodsNotPlaceable",
        (
            ("nodeSelector: {disk: fast}", DEVICE),
            (
                "name: worker-0}",
                f"name: worker-0}}\nspec: {{taints: [{{key: example.com/nic, effect: NoSchedule}}]}}\n{HAS_NIC}",
            ),
        ),
    ),
    Row(
        "placed: a node kept free for those that ask for another device",
        "PodsNotPlaceable",
        (
            ("nodeSelector: {disk: fast}", DEVICE),
            (
                "name: worker-0}",
                f"name: worker-0}}\nspec: {{taints: [{{key: example.com/gpu, effect: NoSchedule}}]}}\n{HAS_NIC}",
            ),
        ),
        ("PodsNotPlaceable",),
    ),
    Row(
        "pinned: by a device",
        "PodsPinnedToNode",
        (
            ('nodeSelector: {licensed: "yes"}', DEVICE),
            ('worker-0, labels: {licensed: "yes"}}', 'worker-0}\nstatus: {allocatable: {example.com/nic: "2"}}'),
            ('worker-1, labels: {licensed: "no"}}', 'worker-1}\nstatus: {allocatable: {cpu: "2"}}'),
        ),
        ("PodsPinnedToNode",),
    ),
    Row("registries: allowed", "TargetRegistryRefused", (("[registry.example.com", "[quay.io"),)),
    Row("registries: all", "TargetRegistryRefused", (("allowedRegistries", "insecureRegistries"),)),
    Row("routes: served", "RoutesUnservable", (('Versions, status: "True"', 'Versions, status: "False"'),)),
    Row("routes: a patch", "RoutesUnservable", (), (), PATCH),
    Row("backup: done", "EtcdBackupFailed", (("type: BackupFailed", "type: BackupCompleted"),)),
    Row(
        "backup: a later one came to its end",
        "EtcdBackupFailed",
        (
            (
                "\napiVersion",
                "\napiVersion: operator.openshift.io/v1alpha1\nkind: EtcdBackup\nmetadata: {name: nightly-4, "
                'creationTimestamp: "2026-01-14T02:00:00Z"}\nstatus: {conditions: [{type: BackupCompleted, '
                'status: "True"}]}\n---\napiVersion',
            ),
        ),
    ),
    Row(
        "backup: a later one was skipped",
        "EtcdBackupFailed",
        (
            (
                "\napiVersion",
                "\napiVersion: operator.openshift.io/v1alpha1\nkind: EtcdBackup\nmetadata: {name: nightly-4, "
                'creationTimestamp: "2026-01-14T02:00:00Z"}\nstatus: {conditions: [{type: BackupSkipped, '
                'status: "True"}]}\n---\napiVersion',
            ),
        ),
        ("EtcdBackupFailed",),
    ),
    Row(
        "backup: the only one runs",
        "EtcdBackupFailed",
        (('type: BackupFailed, status: "True"', 'type: BackupPending, status: "True"'),),
        ("EtcdBackupFailedUnknown?",),
    ),
    Row(
        "backup: an earlier one came to its end",
        "EtcdBackupFailed",
        (
            (
                "\napiVersion",
                "\napiVersion: operator.openshift.io/v1alpha1\nkind: EtcdBackup\nmetadata: {name: weekly, "
                'creationTimestamp: "2026-01-11T02:00:00Z"}\n---\napiVersion',
            ),
        ),
        ("EtcdBackupFailed",),
    ),
    # Only the owner that controls a pod makes it again.
    *(Row(f"owned: not by a controller, {name}", name, ((", controller: true", ""),)) for name in _MADE_AGAIN),
    Row("authority: in three months", "ControlPlaneAuthorityExpires", (), (FRONT_PROXY,), BEFORE_END),
    Row("authority: of another ConfigMap", "ControlPlaneAuthorityExpires", (("extension-apiserver", "other"),)),
    Row(
        "authority: of the cluster",
        "ControlPlaneAuthorityExpires",
        (("extension-apiserver-authentication", "kube-root-ca.crt"), ("requestheader-client-ca-file", "ca.crt")),
        ("ControlPlaneAuthorityExpires-ca.crt",),
    ),
    Row(
        "authority: unreadable",
        "ControlPlaneAuthorityExpires",
        (("MIIBDTCBtaADAgECAgEB", "AAAA"),),
        ("ControlPlaneAuthorityExpiresUnknown?",),
    ),
    Row("label: of the control plane", "RemovedNodeLabel", (("io/master", "io/control-plane"),)),
    Row("label: 1.24 runs", "RemovedNodeLabel", (("from: 1.23.9, to: 1.24.0", "from: 1.24.9, to: 1.25.0"),)),
    Row("label: not of kubeadm", "RemovedNodeLabel", (("kubeadm.alpha.kubernetes.io/cri-socket", "other"),)),
    Row("label: no pods", "RemovedNodeLabel", (("replicas: 1", "replicas: 0"),)),
    Row(
        "label: by affinity",
        "RemovedNodeLabel",
        (('nodeSelector: {node-role.kubernetes.io/master: ""}', REQUIRED_LABEL % ""),),
        ("RemovedNodeLabel-Deployment",),
    ),
    Row(
        "label: one of two by affinity",
        "RemovedNodeLabel",
        (('nodeSelector: {node-role.kubernetes.io/master: ""}', REQUIRED_LABEL % OTHER_TERM),),
    ),
    Row("image: the newest is there", "ImageWithdrawn", ((":16.3.0", ":latest"),)),
    Row("image: minideb stayed", "ImageWithdrawn", (("bitnami/postgresql:16.3.0", "bitnami/minideb:bookworm"),)),
    Row("image: by digest", "ImageWithdrawn", (("postgresql:16.3.0", "postgresql@sha256:0"),), ("ImageWithdrawn",)),
    Row(
        "image: of kubebuilder",
        "ImageWithdrawn",
        (("docker.io/bitnami/postgresql:16.3.0", "gcr.io/kubebuilder/kube-rbac-proxy:v0.13.0"),),
        ("ImageWithdrawn",),
    ),
    Row("image: of another publisher", "ImageWithdrawn", (("docker.io/bitnami/", "docker.io/bitnamilegacy/"),)),
    Row("image: without a registry", "ImageWithdrawn", (("docker.io/", ""),), ("ImageWithdrawn",)),
    Row("image: a mirror", "ImageWithdrawn", (("docker.io/", "mirror.example/"),)),
    Row(
        "image: a proxy",
        "ImageWithdrawn",
        ((BITNAMI, "gcr.io/kubebuilder/kube-rbac-proxy:v0.8.0"),),
        ("ImageWithdrawn",),
    ),
    Row("image: a pod that nothing makes again", "ImageWithdrawn", ((", controller: true", ""),)),
    Row("image: not evicted", "ImageWithdrawn", (("kind: StatefulSet", "kind: DaemonSet"),)),
    Row("external IPs: 1.35", "ExternalIPsDeprecated", (("from: 1.35.2, to: 1.36.0", "from: 1.34.2, to: 1.35.0"),)),
    Row("external IPs: none", "ExternalIPsDeprecated", (("[203.0.113.7]", "[]"),)),
    Row("external IPs: of another name", "ExternalIPsDeprecated", (("type: ClusterIP", "type: ExternalName"),)),
    Row("external IPs: headless", "ExternalIPsDeprecated", (("type: ClusterIP", "clusterIP: None"),)),
    Row("routes: of the new group", "TraefikGroupRemoved", (("traefik.containo.us", "traefik.io"),)),
    Row("routes: not of k3s", "TraefikGroupRemoved", (("+k3s1", ""),)),
    Row("routes: 1.32 runs", "TraefikGroupRemoved", (("from: 1.31.4, to: 1.32.0", "from: 1.32.4, to: 1.33.0"),)),
    Row("routes: a middleware", "TraefikGroupRemoved", (("IngressRoute", "Middleware"),), (MIDDLEWARE,)),
    Row("etcd 3.6: from 3.5.26", "EtcdVersion", (("3.5.15", "3.5.26"),)),
    Row("etcd 3.6: runs", "EtcdVersion", (("3.5.15", "3.6.5"),)),
    Row("etcd 3.6: not with 1.33", "EtcdVersion", (("from: 1.33.1, to: 1.34.0", "from: 1.32.1, to: 1.33.0"),)),
    Row("etcd 3.6: one that a user runs", "EtcdVersion", (("kube-system", "shop"),)),
    Row("etcd 3.6: by digest", "EtcdVersion", ((":3.5.15-0", "@sha256:15"),), ("EtcdVersionUnknown?",)),
    Row("etcd 3.6: RKE2", "EtcdVersion", (("k8s.io/etcd:", "example/hardened-etcd:v"),), ("EtcdVersion",)),
    Row("servers: one behind", "ControlPlaneSkew", (("v1.33.5", "v1.34.2"),)),
    Row("servers: newer than the target", "ControlPlaneSkew", (("v1.33.5", "v1.36.0"),), (SKEW.format("apiserver"),)),
    Row(
        "servers: a scheduler",
        "ControlPlaneSkew",
        (("/kube-apiserver", "/kube-scheduler"),),
        (SKEW.format("scheduler"),),
    ),
    Row("servers: of a cloud", "ControlPlaneSkew", (("/kube-apiserver", "/hcloud-cloud-controller-manager"),)),
    Row("servers: by digest", "ControlPlaneSkew", ((":v1.33.5", "@sha256:33"),), ("ControlPlaneSkewUnknown?",)),
    Row("exec: with create", "ExecNeedsCreate", (("[get]", "[get, create]"),)),
    Row("exec: to read all", "ExecNeedsCreate", (("[pods/exec]", '["*"]'),)),
    Row("exec: 1.35 runs", "ExecNeedsCreate", (("from: 1.34.2, to: 1.35.0", "from: 1.35.2, to: 1.36.0"),)),
    Row("exec: bound to nobody", "ExecNeedsCreate", (("name: debuggers}\nsubjects", "name: others}\nsubjects"),)),
    Row(
        "exec: create by another role",
        "ExecNeedsCreate",
        (
            (
                "---\napiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRoleBinding",
                "---\napiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: more}\n"
                'rules: [{apiGroups: [""], resources: [pods/exec], verbs: [create]}]\n---\n'
                "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRoleBinding\nmetadata: {name: more}\n"
                "roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: more}\n"
                "subjects: [{kind: Group, name: developers, apiGroup: rbac.authorization.k8s.io}]\n---\n"
                "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRoleBinding",
            ),
        ),
    ),
    Row(
        "exec: by a role of a namespace",
        "ExecNeedsCreate",
        (
            (
                "kind: ClusterRole\nmetadata: {name: debuggers}",
                "kind: Role\nmetadata: {name: debuggers, namespace: shop}",
            ),
            (
                "kind: ClusterRoleBinding\nmetadata: {name: debuggers}",
                "kind: RoleBinding\nmetadata: {name: debuggers, namespace: shop}",
            ),
            ("kind: ClusterRole, name", "kind: Role, name"),
        ),
        ("ExecNeedsCreate-Role",),
    ),
    Row("labels: one", "SELinuxMountConflict", (("c3,c4", "c1,c2"),)),
    Row("labels: another volume", "SELinuxMountConflict", (("volumeName: pv-shared", "volumeName: other"),)),
    Row("labels: a driver without", "SELinuxMountConflict", (("seLinuxMount: true", "seLinuxMount: false"),)),
    Row("labels: 1.36", "SELinuxMountConflict", (("from: 1.36.3, to: 1.37.0", "from: 1.35.3, to: 1.36.0"),)),
    Row(
        "labels: changed file by file",
        "SELinuxMountConflict",
        (
            ('c2"}}', 'c2"}, seLinuxChangePolicy: Recursive}'),
            ('c4"}}', 'c4"}, seLinuxChangePolicy: Recursive}'),
        ),
    ),
    Row(
        "labels: changed file by file for one pod",
        "SELinuxMountConflict",
        (('c4"}}', 'c4"}, seLinuxChangePolicy: Recursive}'),),
        ("SELinuxMountConflict",),
    ),
    Row(
        "labels: one pod has ended",
        "SELinuxMountConflict",
        (("kind: Pod\nmetadata: {name: till", "kind: Pod\nstatus: {phase: Succeeded}\nmetadata: {name: till"),),
    ),
    Row(
        "labels: a container's own",
        "SELinuxMountConflict",
        (
            ("c3,c4", "c1,c2"),
            (
                "  nodeName: worker-0",
                "  containers: [{securityContext: {seLinuxOptions: {level: x}}}]\n  nodeName: worker-0",
            ),
        ),
    ),
    Row("etcd: one member", "EtcdTwoMembers", (("cp-1", "cp-0"),)),
    Row(
        "etcd: three members",
        "EtcdTwoMembers",
        (
            (
                "\napiVersion",
                "\napiVersion: v1\nkind: Pod\nmetadata: {name: etcd-cp-2, namespace: kube-system, labels: "
                "{component: etcd}}\nspec: {nodeName: cp-2}\n---\napiVersion",
            ),
        ),
    ),
    Row("etcd: pods of a user", "EtcdTwoMembers", (("kube-system", "shop"),)),
    Row(
        "etcd: nodes of k3s",
        "EtcdTwoMembers",
        (
            (
                "kind: Pod\nmetadata: {name: etcd-cp-0, namespace: kube-system, labels: {component: etcd}}",
                ETCD_NODE % 0,
            ),
            (
                "kind: Pod\nmetadata: {name: etcd-cp-1, namespace: kube-system, labels: {component: etcd}}",
                ETCD_NODE % 1,
            ),
        ),
        ("EtcdTwoMembers",),
    ),
    *(
        Row(
            f"levels: restricted of {version}",
            "PodSecurityViolated",
            (
                ("enforce: baseline", f"enforce: restricted, pod-security.kubernetes.io/enforce-version: {version}"),
                ("privileged: true", "runAsNonRoot: true, allowPrivilegeEscalation: false"),
            ),
            ("PodSecurityViolated",) * violated,
        )
        for version, violated in (("v1.18", 0), ("v1.19", 1), ("v1.22", 1), ("latest", 1), ("anything", 1))
    ),
    Row(
        "levels: baseline is the same in every version",
        "PodSecurityViolated",
        (("enforce: baseline", "enforce: baseline, pod-security.kubernetes.io/enforce-version: v1.18"),),
        ("PodSecurityViolated",),
    ),
    Row("policies: warns only", "AdmissionPolicyDeniesUpdate", (("[Deny]", "[Warn]"),)),
    Row("constraints: no priority", "SecurityContextConstraintsPreferred", (("priority: 20", "priority: 0"),)),
    Row("constraints: for some", "SecurityContextConstraintsPreferred", (("system:authenticated", "system:admins"),)),
    Row(
        "constraints: open in every cluster",
        "SecurityContextConstraintsPreferred",
        (("backup-vendor", "restricted-v2"),),
    ),
    Row(
        "constraints: without priority, but the platform runs under them",
        "SecurityContextConstraintsPreferred",
        (
            (
                "priority: 20",
                "---\napiVersion: v1\nkind: Pod\nmetadata: {name: a, namespace: openshift-etcd, annotations: "
                "{openshift.io/scc: backup-vendor}}\n---\napiVersion: security.openshift.io/v1\n"
                "kind: SecurityContextConstraints\nmetadata: {name: backup-vendor}",
            ),
        ),
        ("SecurityContextConstraintsPreferred-backup-vendor",),
    ),
    Row(
        "constraints: a default one, opened by a binding",
        "SecurityContextConstraintsPreferred",
        (
            ("backup-vendor", "anyuid"),
            (
                'groups: ["system:authenticated"]',
                "---\napiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRoleBinding\nmetadata: {name: a}\n"
                "roleRef: {kind: ClusterRole, name: 'system:openshift:scc:anyuid'}\n"
                "subjects: [{kind: Group, name: 'system:serviceaccounts'}]",
            ),
        ),
        ("SecurityContextConstraintsPreferred-anyuid",),
    ),
    Row("node selector: none", "PlatformNodeSelector", (("node-role.kubernetes.io/app=", '""'),)),
    Row("node selector: all nodes have it", "PlatformNodeSelector", (("worker-0", WITH_APP_LABEL),)),
    Row("node selector: of users", "PlatformNodeSelector", (("openshift-network-console", "shop"),)),
    Row("node selector: without pods", "PlatformNodeSelector", (("openshift-network-console", "openshift-config"),)),
    Row(
        "node selector: replaced by an empty one",
        "PlatformNodeSelector",
        (("openshift-network-console", 'openshift-dns, annotations: {openshift.io/node-selector: ""}'),),
    ),
    Row(
        "node selector: replaced by that of Kubernetes",
        "PlatformNodeSelector",
        (("openshift-network-console", f'openshift-dns, annotations: {{{KUBERNETES_SELECTOR}: ""}}'),),
    ),
    Row(
        "node selector: of Kubernetes",
        "PlatformNodeSelector",
        (("openshift-network-console", f"openshift-dns, annotations: {{{KUBERNETES_SELECTOR}: infra=}}"),),
        ("PlatformNodeSelector",),
    ),
    Row(
        "node selector: of the namespace",
        "PlatformNodeSelector",
        (
            ("openshift-network-console", "openshift-dns, annotations: {openshift.io/node-selector: infra=}"),
            ("node-role.kubernetes.io/app=", '""'),
        ),
        ("PlatformNodeSelector",),
    ),
    Row("node configuration: the last attempt succeeded", "NodeConfigFailed", (("Failure", "Success"),)),
    Row("node configuration: no attempt", "NodeConfigFailed", (("status:", "spec:"),), ("NodeConfigFailedUnknown?",)),
    Row(
        "node configuration: of the container runtime",
        "NodeConfigFailed",
        (("KubeletConfig", "ContainerRuntimeConfig"),),
        ("NodeConfigFailed-max-pods",),
    ),
    Row("pool cannot move: no node away", "MachineConfigPoolCannotMove", (("unschedulable: true", ""),)),
    Row(
        "pool cannot move: two may be away", "MachineConfigPoolCannotMove", (("spec: {", "spec: {maxUnavailable: 2, "),)
    ),
    Row("pool cannot move: paused on purpose", "MachineConfigPoolCannotMove", (("spec: {", "spec: {paused: true, "),)),
    Row("pool cannot move: one node", "MachineConfigPoolCannotMove", (("worker-1, labels", "worker-1, notes"),)),
    Row(
        "pool cannot move: the update itself cordoned the node",
        "MachineConfigPoolCannotMove",
        (("worker-0,", "worker-0, annotations: {machineconfiguration.openshift.io/desiredDrain: drain-a},"),),
    ),
    Row(
        "pool cannot move: a node that is not ready",
        "MachineConfigPoolCannotMove",
        (("spec: {unschedulable: true}", 'status: {conditions: [{type: Ready, status: "False"}]}'),),
        ("MachineConfigPoolCannotMove-worker",),
    ),
    Row(
        "pool cannot move: a node whose disk is full",
        "MachineConfigPoolCannotMove",
        (("spec: {unschedulable: true}", 'status: {conditions: [{type: DiskPressure, status: "True"}]}'),),
        ("MachineConfigPoolCannotMove-worker",),
    ),
    Row("limits: of users", "PlatformPodsLimited", (("defaults, namespace: kube-system", "d, namespace: shop"),)),
    Row("policies: traffic out is not denied", "PlatformPodsCutOff", (("[Ingress, Egress]", "[Ingress]"),)),
    Row("osImageURL: none of users", "OSImageOverridden", (("99-worker-custom-os", "99-worker-ssh"),)),
    Row(
        "egress: two nodes",
        "EgressIPOneNode",
        (("{name: worker-1}", "{name: worker-1, labels: {k8s.ovn.org/egress-assignable: ''}}"),),
    ),
    Row(
        "egress: on all nodes",
        "EgressIPOneNode",
        (("spec: {egressIPs", "spec: {egressNodeSelector: {}, egressIPs"), ("{name: worker-1}", READY_NODE)),
    ),
    Row(
        "egress: on one node of a pool",
        "EgressIPOneNode",
        (
            ("spec: {egressIPs", "spec: {egressNodeSelector: {matchLabels: {pool: egress}}, egressIPs"),
            ("{name: worker-1}", READY_NODE),
        ),
        ("EgressIPOneNode",),
    ),
    Row("egress: no node", "EgressIPOneNode", (("egress-assignable", "other"),), ("EgressIPOneNode",)),
    Row(
        "egress: a single node",
        "EgressIPOneNode",
        (
            (
                "metadata: {name: worker-1}",
                "metadata: {name: worker-1}\n---\napiVersion: config.openshift.io/v1\nkind: Infrastructure\n"
                "metadata: {name: cluster}\nstatus: {controlPlaneTopology: SingleReplica}",
            ),
        ),
    ),
    Row(
        "egress: the second node is cordoned",
        "EgressIPOneNode",
        (
            (
                "{name: worker-1}",
                "{name: worker-1, labels: {k8s.ovn.org/egress-assignable: ''}}\nspec: {unschedulable: true}",
            ),
        ),
    ),
    Row(
        "egress: the second node is not ready",
        "EgressIPOneNode",
        (
            (
                "{name: worker-1}",
                "{name: worker-1, labels: {k8s.ovn.org/egress-assignable: ''}}\nstatus: {conditions: [{type: Ready, "
                'status: "False"}]}',
            ),
        ),
        ("EgressIPOneNode",),
    ),
    Row(
        "stopped component: nobody leads",
        "UpdateComponentStopped",
        (("replicas: 0", "replicas: 1"),),
        ("UpdateComponentStopped-machine-config-operator",),
    ),
    Row(
        "stopped component: of a namespace of a user",
        "UpdateComponentStopped",
        (("namespace: openshift-machine-config-operator", "namespace: shop"),),
    ),
    Row(
        "stopped component: the lease is of something else",
        "UpdateComponentStopped",
        (("name: machine-config,", "name: cluster-autoscaler,"),),
        ("UpdateComponentStopped-machine-config-controller",),
    ),
    Row(
        "stopped component: the lease was taken long ago and never renewed",
        "UpdateComponentStopped",
        (("renewTime", "acquireTime"), ("replicas: 0", "replicas: 1")),
        ("UpdateComponentStopped-machine-config-operator",),
    ),
    Row("metric: of the version before", "RemovedMetric", ((METRIC, "volume_operation_errors_total"),)),
    Row("metric: 1.37 runs", "RemovedMetric", (("from: 1.36.3, to: 1.37.0", "from: 1.37.0, to: 1.37.2"),)),
    Row("metric: not crossed", "RemovedMetric", (("from: 1.36.3, to: 1.37.0", "from: 1.35.3, to: 1.36.0"),)),
    Row("metric: of another project", "RemovedMetric", ((METRIC, "container_cpu_usage_seconds_total"),)),
    Row("metric: in a text", "RemovedMetric", ((f"rate({METRIC}[5m])", f"rate(x{{job='{METRIC}'}}[5m])"),)),
    Row("metric: with its successor", "RemovedMetric", ((f"rate({METRIC}[5m])", f"{NEW_METRIC} or {METRIC}"),)),
    Row(
        "metric: with a constant",
        "RemovedMetric",
        ((f"rate({METRIC}[5m])", f"{METRIC} or vector(0)"),),
        ("RemovedMetric",),
    ),
    Row(
        "metric: by its name",
        "RemovedMetric",
        ((f"rate({METRIC}[5m])", f"{{__name__='{METRIC}'}}"),),
        ("RemovedMetric",),
    ),
    Row(
        "metric: by one of its names",
        "RemovedMetric",
        ((f"rate({METRIC}[5m])", f"{{__name__=~'{NEW_METRIC}|{METRIC}'}}"),),
    ),
    Row(
        "metric: beyond the table",
        "RemovedMetric",
        (("to: 1.37.0", "to: 1.39.0"), (METRIC, NEW_METRIC)),
        ("RemovedMetricUnknown?",),
    ),
    Row(
        "metric: a removed histogram",
        "RemovedMetric",
        ((METRIC, "scheduler_e2e_scheduling_duration_seconds_bucket"), ("1.36.3, to: 1.37.0", "1.23.3, to: 1.24.0")),
        ("RemovedMetric",),
    ),
    Row("taint: tolerates the old one", "RemovedNodeLabel", OLD_TAINT, ("RemovedNodeLabel-Deployment-Toleration",)),
    Row(
        "taint: tolerates both",
        "RemovedNodeLabel",
        (*OLD_TAINT, ("operator: Exists}]", "operator: Exists}, {key: node-role.kubernetes.io/control-plane}]")),
    ),
    Row(
        "taint: tolerates all",
        "RemovedNodeLabel",
        (*OLD_TAINT, ("{key: node-role.kubernetes.io/master, operator", "{operator")),
    ),
    Row("taint: no node has it", "RemovedNodeLabel", OLD_TAINT[1:]),
    Row("taint: 1.24 runs", "RemovedNodeLabel", (*OLD_TAINT, ("from: 1.23.9, to: 1.24.0", "from: 1.24.9, to: 1.25.0"))),
)


def changed(check: Check, changes: tuple[tuple[str, str], ...]) -> Check:
    """The check with another example; a replacement that replaces nothing is a mistake of the row."""
    text = check.example
    for old, new in changes:
        assert old in text, f"{old!r} is not in the example"
        text = text.replace(old, new)
    return with_fields(check, example=text)


def finding_names(check: Check, given: Context | None = None) -> tuple[str, ...]:
    """What the check says about its example."""
    snapshot, usual = check_page.example(check)
    evaluated = with_fields(given, manifests=usual.manifests, catalogs=usual.catalogs) if given else usual
    outcome = run_check(check, snapshot, evaluated)
    assert "the check failed" not in outcome.message
    for finding in outcome.findings:
        assert NAME.fullmatch(finding.name)
        assert finding.message.endswith(".")
        assert finding.remediation
        assert len(finding.remediation.splitlines()) == 1
    return tuple(found.name + ("" if found.applies.value == "True" else "?") for found in outcome.findings)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.id)
def test_what_is_nearly_the_example(row: Row) -> None:
    """No more than what is wrong is said to be."""
    assert sorted(row.risks) == sorted(finding_names(changed(BY_NAME[row.check], row.changes), row.context))


@pytest.mark.parametrize("name", sorted(BY_NAME))
def test_the_example_applies(name: str) -> None:
    """Each check finds what its page shows, and is as grave as it says."""
    check = BY_NAME[name]
    assert list(check_page.problems(check)) == []
    found = run_check(check, *check_page.example(check)).findings
    assert {finding.name.partition("-")[0] for finding in found} == {name}
    assert {finding.severity for finding in found} == {check.severity}


@pytest.mark.parametrize("name", sorted(BY_NAME))
def test_each_has_a_row_that_is_clear(name: str) -> None:
    """A check that finds something everywhere would pass all else."""
    assert [row for row in ROWS if row.check == name and not row.risks]


# What nothing is known about an empty cluster; all others say nothing.
EMPTY = {
    "AdminAck": ("AdminAckUnknown?",),
    "ClusterVersionOverrides": ("ClusterVersionOverridesUnknown?",),
    "RemovedAPIStored": ("RemovedAPIStoredUnknown?",),
}


@pytest.mark.parametrize("name", sorted(BY_NAME))
def test_an_empty_cluster(name: str) -> None:
    """Nothing is there, and that is known."""
    outcome = run_check(BY_NAME[name], snapshot_of(BY_NAME[name].reads, ()), context())
    found = tuple(each.name + ("" if each.applies.value == "True" else "?") for each in outcome.findings)
    assert EMPTY.get(name, ()) == found


def test_pods_that_do_not_end_are_told_by_name() -> None:
    """In an order that does not change from one look to the next."""
    pods = "\n---\n".join(
        f"apiVersion: v1\nkind: Pod\nmetadata: {{name: {name}, namespace: shop, "
        'deletionTimestamp: "2026-01-10T12:00:00Z"}\nspec: {nodeName: worker-0}\n'
        for name in ("c", "a", "b")
    )
    check = with_fields(BY_NAME["StuckTerminating"], example=pods)
    (finding,) = run_check(check, *check_page.example(check)).findings
    shown = finding.message
    assert shown.index("shop/a") < shown.index("shop/b") < shown.index("shop/c")


@pytest.mark.parametrize(("name", "kind"), [("ZoneLockedVolumes", "Node"), ("SpreadOnOneNode", "Pod")])
def test_a_list_that_is_not_whole_has_perhaps_another(name: str, kind: str) -> None:
    """An object that is absent from an incomplete list does not count as missing; the engine reports the gap."""
    check = BY_NAME[name]
    snapshot, given = check_page.example(check)
    cut = next(read for read in check.reads if read.kind == kind)
    outcome = run_check(check, replace(snapshot, incomplete={cut: ("the rest was cut off",)}), given)
    assert {finding.applies.value for finding in outcome.findings} == {"Unknown"}
