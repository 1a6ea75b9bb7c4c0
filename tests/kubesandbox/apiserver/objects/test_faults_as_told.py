"""Faults of built-in kinds in the words of kube-apiserver 1.34.4, which told them of these very objects.

`python -m bench rehearsals` compares both servers on hundreds of them.
"""

from __future__ import annotations

import copy

import pytest
from tests.rehearse.reference.seeded_release import KINDS, change

from kubekit.lang import yaml as kyaml
from kubesandbox.apiserver import status_errors
from kubesandbox.apiserver.schema.field_errors import Fault, FieldError
from kubesandbox.apiserver.served_kinds import Kind
from kubesandbox.apiserver.validation import object_faults

SUBDOMAIN = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
    r"'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
CLAIM = (
    "spec: Forbidden: spec is immutable after creation except resources.requests and volumeAttributesClassName for "
    "bound claims"
)
STATEFUL_SET = (
    "spec: Forbidden: updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', "
    "'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are "
    "forbidden"
)
SOURCE = "spec.persistentvolumesource: Forbidden: spec.persistentvolumesource is immutable after creation"
PATH = "spec.rules[0].http.paths[0]"
UPDATES = {
    ("PersistentVolumeClaim", "spec.accessModes = [ReadWriteMany]"): [CLAIM],
    ("PersistentVolumeClaim", "spec.resources.requests.storage = 3Gi"): [CLAIM],
    ("PersistentVolumeClaim", "spec.volumeName = some"): [],
    ("PersistentVolumeClaim", "spec.accessModes = [Anything]"): [
        'spec.accessModes: Unsupported value: "Anything": supported values: "ReadOnlyMany", "ReadWriteMany", '
        '"ReadWriteOnce", "ReadWriteOncePod"',
        CLAIM,
    ],
    ("PersistentVolume", "spec.hostPath = {path: /x}"): [
        "spec.nfs: Forbidden: may not specify more than 1 volume type",
        SOURCE,
    ],
    ("PersistentVolume", "spec.nfs.path = ../b"): [
        'spec.nfs.path: Invalid value: "../b": must be an absolute path',
        SOURCE,
    ],
    ("PersistentVolume", "spec.persistentVolumeReclaimPolicy = Keep"): [
        'spec.persistentVolumeReclaimPolicy: Unsupported value: "Keep": supported values: "Delete", "Recycle", "Retain"'
    ],
    ("PersistentVolume", "spec.capacity.storage = 2Gi"): [],
    ("StorageClass", "reclaimPolicy = Retain"): ["reclaimPolicy: Forbidden: updates to reclaimPolicy are forbidden."],
    ("StorageClass", "parameters.a = c"): ["parameters: Forbidden: updates to parameters are forbidden."],
    ("StorageClass", "provisioner = example.org/b"): ["provisioner: Forbidden: updates to provisioner are forbidden."],
    ("StorageClass", "allowVolumeExpansion = true"): [],
    ("CSIDriver", "spec.attachRequired = false"): ["spec.attachedRequired: Invalid value: false: field is immutable"],
    ("StatefulSet", "spec.serviceName = other"): [STATEFUL_SET],
    ("StatefulSet", "spec.replicas = 5"): [],
    ("StatefulSet", "spec.ordinals = {start: -1}"): [
        "spec.ordinals.start: Invalid value: -1: must be greater than or equal to 0"
    ],
    ("StatefulSet", "spec.updateStrategy.rollingUpdate = {partition: -1}"): [
        "spec.updateStrategy.rollingUpdate.partition: Invalid value: -1: must be greater than or equal to 0"
    ],
    ("StatefulSet", "spec.updateStrategy = {type: Sometimes}"): [
        'spec.updateStrategy: Invalid value: {"Type":"Sometimes","RollingUpdate":null}: must be '
        "'RollingUpdate' or 'OnDelete'"
    ],
    ("DaemonSet", "spec.updateStrategy.rollingUpdate = {maxUnavailable: 0, maxSurge: 0}"): [
        "spec.updateStrategy.rollingUpdate.maxUnavailable: Required value: cannot be 0 when maxSurge is 0"
    ],
    ("DaemonSet", "spec.updateStrategy.rollingUpdate = {maxUnavailable: 1, maxSurge: 1}"): [
        "spec.updateStrategy.rollingUpdate.maxSurge: Invalid value: 1: may not be set when maxUnavailable is non-zero"
    ],
    ("IngressClass", "spec.controller = example.org/b"): [
        'spec.controller: Invalid value: "example.org/b": field is immutable'
    ],
    ("IngressClass", "spec.parameters = {kind: A}"): ["spec.parameters.name: Required value"],
    ("IngressClass", "spec.parameters = {kind: A, name: b}"): [],
    ("Ingress", "spec.rules.0.host = a_b"): [f'spec.rules[0].host: Invalid value: "a_b": {SUBDOMAIN}'],
    ("Ingress", "spec.rules.0.host = 10.0.0.1"): [
        'spec.rules[0].host: Invalid value: "10.0.0.1": must be a DNS name, not an IP address'
    ],
    ("Ingress", "spec.rules.0.host = '*.a.example'"): [],
    ("Ingress", "spec.rules.0.http.paths.0.pathType = Anything"): [
        f'{PATH}.pathType: Unsupported value: "Anything": supported values: "Exact", "ImplementationSpecific", "Prefix"'
    ],
    ("Ingress", "spec.rules.0.http.paths.0.path = relative"): [
        f'{PATH}.path: Invalid value: "relative": must be an absolute path'
    ],
    ("Ingress", "spec.rules.0.http.paths.0.backend.service.port = {}"): [
        f"{PATH}.backend: Required value: port name or number is required"
    ],
    ("Ingress", "spec.rules.0.http.paths.0.backend.resource = {kind: A, name: b}"): [
        f'{PATH}.backend: Invalid value: "": cannot set both resource and service backends'
    ],
    ("Ingress", "spec.tls = [{hosts: [a.example], secretName: Bad_Name}]"): [
        f'spec.tls[0].secretName: Invalid value: "Bad_Name": {SUBDOMAIN}'
    ],
    ("ResourceQuota", "spec.hard = {pods: 1500m}"): ['spec.hard[pods]: Invalid value: "1500m": must be an integer'],
    ("ResourceQuota", "spec.hard = {pods: -1}"): [
        'spec.hard[pods]: Invalid value: "-1": must be greater than or equal to 0'
    ],
    ("ResourceQuota", "spec.hard = {nonsense: 1}"): [
        'spec.hard[nonsense]: Invalid value: "nonsense": must be a standard resource type or fully qualified',
        'spec.hard[nonsense]: Invalid value: "nonsense": must be a standard resource for quota',
    ],
    ("ResourceQuota", "spec.hard = {requests.cpu: 3}"): [],
    ("ResourceQuota", "spec.scopes = [BestEffort]"): ['spec.scopes: Invalid value: ["BestEffort"]: field is immutable'],
    ("LimitRange", "spec.limits.0.type = Anything"): [
        'spec.limits[0].type: Invalid value: "Anything": must be a standard limit type or fully qualified'
    ],
    ("LimitRange", "spec.limits = [{type: Pod, max: {cpu: 2}, min: {cpu: 3}}]"): [
        'spec.limits[0].min[cpu]: Invalid value: "3": min value 3 is greater than max value 2'
    ],
    ("LimitRange", "spec.limits.0.max = {cpu: 4}"): [],
    ("HorizontalPodAutoscaler", "spec.maxReplicas = 0"): [
        "spec.maxReplicas: Invalid value: 0: must be greater than 0",
    ],
    ("HorizontalPodAutoscaler", "spec.minReplicas = 5"): [
        "spec.maxReplicas: Invalid value: 4: must be greater than or equal to `minReplicas`"
    ],
    ("HorizontalPodAutoscaler", "spec.minReplicas = 0"): [
        "spec.minReplicas: Invalid value: 0: must be greater than or equal to 1",
        "spec.metrics: Forbidden: must specify at least one Object or External metric to support scaling to zero "
        "replicas",
    ],
    ("HorizontalPodAutoscaler", "spec.scaleTargetRef.kind = a/b"): [
        "spec.scaleTargetRef.kind: Invalid value: \"a/b\": may not contain '/'"
    ],
    # A real server finds it twice (validateMetricSpec).
    ("HorizontalPodAutoscaler", "spec.metrics = [{type: Anything}]"): [
        'spec.metrics[0].type: Unsupported value: "Anything": supported values: "ContainerResource", "External", '
        '"Object", "Pods", "Resource"',
        'spec.metrics[0].type: Unsupported value: "Anything": supported values: "ContainerResource", "External", '
        '"Object", "Pods", "Resource"',
    ],
    ("PodDisruptionBudget", "spec.minAvailable = 150%"): [
        'spec.minAvailable: Invalid value: "150%": must not be greater than 100%'
    ],
    ("PodDisruptionBudget", "spec.unhealthyPodEvictionPolicy = Never"): [
        'spec.unhealthyPodEvictionPolicy: Unsupported value: "Never": supported values: "AlwaysAllow", '
        '"IfHealthyBudget"'
    ],
    ("PodDisruptionBudget", "spec.minAvailable = 50%"): [],
    ("NetworkPolicy", "spec.ingress.0.from = [{ipBlock: {cidr: 10.0.0.0/33}}]"): [
        'spec.ingress[0].from[0].ipBlock.cidr: Invalid value: "10.0.0.0/33": must be a valid CIDR value, '
        "(e.g. 10.9.8.0/24 or 2001:db8::/64)"
    ],
    ("NetworkPolicy", "spec.ingress.0.from = [{ipBlock: {cidr: 10.0.0.0/8, except: [10.1.0.0/16]}}]"): [],
    ("RuntimeClass", "overhead = {podFixed: {cpu: -1}}"): [
        'overhead.limits[cpu]: Invalid value: "-1": must be greater than or equal to 0'
    ],
    ("PersistentVolumeClaim", "spec.volumeMode = Block"): [
        CLAIM,
        'volumeMode: Invalid value: "Block": field is immutable',
    ],
    ("HorizontalPodAutoscaler", "spec.behavior = {scaleDown: {stabilizationWindowSeconds: 4000}}"): [
        "spec.behavior.scaleDown.stabilizationWindowSeconds: Invalid value: 4000: must be less than or equal to 3600"
    ],
    ("CronJob", "spec.schedule = '0 25 * * *'"): [
        'spec.schedule: Invalid value: "0 25 * * *": end of range (25) above maximum (23): 25'
    ],
    ("CronJob", "spec.schedule = 'TZ=UTC 0 1 * * *'"): [
        'spec.schedule: Invalid value: "TZ=UTC 0 1 * * *": cannot use TZ or CRON_TZ in schedule, use timeZone field '
        "instead"
    ],
    ("CronJob", "spec.successfulJobsHistoryLimit = -1"): [
        "spec.successfulJobsHistoryLimit: Invalid value: -1: must be greater than or equal to 0"
    ],
    ("CronJob", "spec.schedule = '*/5,7 1-3 * * *'"): [],
    ("Job", "spec.ttlSecondsAfterFinished = -1"): [
        "spec.ttlSecondsAfterFinished: Invalid value: -1: must be greater than or equal to 0"
    ]
    * 2,
    ("Service", "spec.sessionAffinity = Cookie"): [
        'spec.sessionAffinity: Unsupported value: "Cookie": supported values: "ClientIP", "None"'
    ],
    ("Service", "spec.externalTrafficPolicy = Local"): [
        'spec.externalTrafficPolicy: Invalid value: "Local": may only be set for externally-accessible services'
    ],
    ("Service", "spec.clusterIP = 300.1.1.1"): [
        'spec.clusterIPs[0]: Invalid value: "300.1.1.1": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)'
    ],
    ("Service", "spec.ports = [{port: 80, protocol: TCP, targetPort: a_b}]"): [
        'spec.ports[0].targetPort: Invalid value: "a_b": must contain only alpha-numeric characters (a-z, 0-9), and '
        "hyphens (-)"
    ],
    ("Service", "spec.ports = [{port: 80, protocol: TCP, targetPort: web}]"): [],
    ("Service", "spec.externalIPs = [nowhere]"): [
        'spec.externalIPs[0]: Invalid value: "nowhere": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)'
    ],
    ("Deployment", "spec.template.spec.activeDeadlineSeconds = 5"): [
        "spec.template.spec.activeDeadlineSeconds: Forbidden: activeDeadlineSeconds in ReplicaSet is not Supported"
    ],
    ("Deployment", "spec.template.spec.dnsPolicy = None"): [
        "spec.template.spec.dnsConfig: Required value: must provide `dnsConfig` when `dnsPolicy` is None"
    ],
    ("Deployment", "spec.template.spec.containers.0.livenessProbe = {httpGet: {port: 0}}"): [
        "spec.template.spec.containers[0].livenessProbe.httpGet.port: Invalid value: 0: must be between 1 and 65535, "
        "inclusive"
    ],
    ("PodTemplate", "template.spec.containers = []"): ["template.spec.containers: Required value"],
}
# What a server has set of itself before it looks at an object.
DEFAULTS = {
    "Deployment": ("spec.strategy = {type: RollingUpdate, rollingUpdate: {maxUnavailable: 1}}",),
    "CronJob": ("spec.concurrencyPolicy = Allow",),
    "Job": (
        "spec.manualSelector = true",
        "spec.selector = {matchLabels: {x: z}}",
        "spec.template.metadata = {labels: {x: z}}",
    ),
    "Service": ("spec.type = ClusterIP", "spec.ports = [{port: 80, protocol: TCP}]"),
    "StatefulSet": ("spec.updateStrategy = {type: RollingUpdate, rollingUpdate: {partition: 0}}", "spec.replicas = 1"),
    "DaemonSet": ("spec.updateStrategy = {type: RollingUpdate, rollingUpdate: {maxUnavailable: 1, maxSurge: 0}}",),
}


@pytest.mark.parametrize(("kind", "made"), UPDATES, ids=[f"{kind} {made}" for kind, made in UPDATES])
def test_the_faults_of_an_update(kind: str, made: str) -> None:
    """An update is refused for exactly these faults, or for none."""
    api_version, namespaced, fields, _ = KINDS[kind]
    group, _, version = api_version.rpartition("/")
    old = {
        "apiVersion": api_version,
        "kind": kind,
        "metadata": {"name": "a", "uid": "1"},
        **kyaml.load(fields.encode()),
    }
    if namespaced:
        old["metadata"]["namespace"] = "b"
    for each in DEFAULTS.get(kind, ()):
        change(old, each)
    template = (old.get("template") or (old.get("spec") or {}).get("template") or {}).get("spec")
    if template is not None:
        template["restartPolicy"] = template.get("restartPolicy") or "Always"
        template["containers"][0] |= {"imagePullPolicy": "IfNotPresent"}
    obj = copy.deepcopy(old)
    assert change(obj, made)
    served = Kind(group=group, version=version, kind=kind, plural=f"{kind.lower()}s", namespaced=namespaced)
    assert list(map(str, object_faults(served, obj, old))) == UPDATES[kind, made]


@pytest.mark.parametrize(
    ("minute", "why"),
    [("\u00b2", "invalid syntax"), ("\u0663", "invalid syntax"), ("9" * 5000, "value out of range")],
    ids=["superscript", "Arabic", "5,000 digits"],
)
def test_schedules_with_what_is_no_number(minute: str, why: str) -> None:
    """Neither digits that are no number nor thousands of them end the server; both are reported as Go tells them."""
    cron_job = {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": {"name": "a", "namespace": "b", "uid": "1"},
        "spec": {
            "schedule": f"{minute} 25 * * *",
            "concurrencyPolicy": "Allow",
            "jobTemplate": {
                "spec": {
                    "template": {
                        "spec": {
                            "restartPolicy": "Never",
                            "containers": [{"name": "a", "image": "q/r", "imagePullPolicy": "Always"}],
                        }
                    }
                }
            },
        },
    }
    served = Kind(group="batch", version="v1", kind="CronJob", plural="cronjobs")
    (fault,) = map(str, object_faults(served, cron_job, copy.deepcopy(cron_job)))
    assert fault.startswith("spec.schedule: Invalid value: ")
    assert fault.endswith(f'failed to parse int from {minute}: strconv.Atoi: parsing "{minute}": {why}')


EXCEPTIONS = {
    "10.1.0.0/16": True,
    "10.0.0.0/8": False,
    "10.0.0.0/7": False,
    "11.0.0.0/16": False,
    "2001:db8::/64": False,
    "::a00:0/104": False,
}


@pytest.mark.parametrize(("exception", "within"), EXCEPTIONS.items())
def test_exceptions_of_a_block(exception: str, *, within: bool) -> None:
    """They are smaller than the block, and within it (pkg/apis/networking/validation, ValidateIPBlock)."""
    peer = {"ipBlock": {"cidr": "10.0.0.0/8", "except": [exception]}}
    policy = {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": {"name": "a", "namespace": "b", "uid": "1"},
        "spec": {"podSelector": {}, "policyTypes": ["Ingress"], "ingress": [{"from": [peer]}]},
    }
    served = Kind(group="networking.k8s.io", version="v1", kind="NetworkPolicy", plural="networkpolicies")
    shown = (
        f'spec.ingress[0].from[0].ipBlock.except[0]: Invalid value: "{exception}": must be a strict subset of `cidr`'
    )
    assert list(map(str, object_faults(served, policy, copy.deepcopy(policy)))) == ([] if within else [shown])


def test_leaves_out_faults_after_8_mib() -> None:
    """Each of them may show a list of a mebibyte; the first is reported whatever its size."""
    long = "x" * (1 << 20)
    faults = [FieldError(Fault.INVALID, f"data[{number}]", "", long) for number in range(12)]
    assert len(status_errors.invalid("Secret", "", "a", faults).status()["details"]["causes"]) == 7
    huge = FieldError(Fault.INVALID, "data", "", 9 * long)
    assert len(status_errors.invalid("Secret", "", "a", [huge]).status()["details"]["causes"]) == 1
