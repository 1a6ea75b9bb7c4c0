"""Makes a cluster's release and its next one from a seed: objects of many kinds, and changes good and bad of each.

Every name begins with the seed's prefix, so that many may live on one server.
"""

from __future__ import annotations

import copy
import random
from dataclasses import dataclass, field
from typing import Any

from tests.applying.control.release_folders import manifest

from kubekit.lang import yaml as kyaml

JSON = dict[str, Any]
# Objects of a release, changes of each, and kinds that the next release brings first.
_OBJECTS, _CHANGES, _NEW = 9, 2, 3
_POD = "{metadata: {labels: {app: web}}, spec: {containers: [{name: web, image: 'example/web:1'}]}}"
# By kind: apiVersion, whether it is namespaced, its fields, and changes as `PATH = VALUE` (YAML; nothing removes it).
KINDS: dict[str, tuple[str, bool, str, tuple[str, ...]]] = {
    "Deployment": (
        "apps/v1",
        True,
        f"spec: {{replicas: 2, selector: {{matchLabels: {{app: web}}}}, template: {_POD}}}",
        (
            "spec.replicas = 3",
            "spec.replicas = -1",
            "spec.replicas = two",
            "spec.template.spec.containers.0.image = example/web:2",
            "spec.template.spec.containers.0.image = ''",
            "spec.template.spec.containers.0.image =",
            "spec.template.metadata.labels.app = other",
            "spec.selector.matchLabels.app = other",
            "spec.strategy = {type: Recreate}",
            "spec.strategy = {type: Recreate, rollingUpdate: {maxSurge: 1}}",
            "spec.strategy = {rollingUpdate: {maxSurge: 0, maxUnavailable: 0}}",
            "spec.strategy = {rollingUpdate: {maxUnavailable: 150%}}",
            "spec.minReadySeconds = 700",
            "spec.minReadySeconds = -1",
            "spec.progressDeadlineSeconds = 5",
            "spec.revisionHistoryLimit = -2",
            "spec.paused = true",
            "spec.template.spec.restartPolicy = OnFailure",
            "spec.template.spec.terminationGracePeriodSeconds = -3",
            "spec.template.spec.containers.0.ports = [{containerPort: 70000}]",
            "spec.template.spec.containers.0.ports = [{containerPort: 80, name: a}, {containerPort: 81, name: a}]",
            "spec.template.spec.containers.0.ports = [{containerPort: 80, hostPort: 81}]",
            "spec.template.spec.containers.0.resources = {requests: {cpu: 2}, limits: {cpu: 1}}",
            "spec.template.spec.containers.0.resources = {requests: {cpu: 1x}}",
            "spec.template.spec.containers.0.resources = {limits: {memory: 1Gi}}",
            "spec.template.spec.containers.0.env = [{name: A, value: b, valueFrom: {fieldRef: {fieldPath: spec}}}]",
            "spec.template.spec.containers.0.env = [{name: '', value: b}]",
            "spec.template.spec.containers.0.env = [{name: A, valueFrom: {fieldRef: {fieldPath: metadata.name}}}]",
            "spec.template.spec.containers.0.livenessProbe = {}",
            "spec.template.spec.containers.0.livenessProbe = {httpGet: {port: 0}}",
            "spec.template.spec.containers.0.livenessProbe = {httpGet: {port: 80}, successThreshold: 2}",
            "spec.template.spec.containers.0.readinessProbe = {tcpSocket: {port: web}, periodSeconds: 3}",
            "spec.template.spec.containers.0.volumeMounts = [{name: none, mountPath: /none}]",
            "spec.template.spec.containers.0.imagePullPolicy = Sometimes",
            "spec.template.spec.containers.0.securityContext = {privileged: true, allowPrivilegeEscalation: false}",
            "spec.template.spec.containers.0.name = Web",
            "spec.template.spec.containers.0.name = sidecar",
            "spec.template.spec.volumes = [{name: a, emptyDir: {}}, {name: a, emptyDir: {}}]",
            "spec.template.spec.volumes = [{name: a, configMap: {name: x}, secret: {secretName: y}}]",
            "spec.template.spec.volumes = [{name: a}]",
            "spec.template.spec.tolerations = [{operator: Exists, value: x}]",
            "spec.template.spec.dnsPolicy = None",
            "spec.template.spec.nodeSelector = {'bad key!': x}",
            "spec.template.spec.affinity = {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: "
            "{nodeSelectorTerms: [{matchExpressions: [{key: a, operator: In}]}]}}}",
            "spec.template.spec.topologySpreadConstraints = [{maxSkew: 0, topologyKey: z, whenUnsatisfiable: X}]",
            "spec.template.spec.unheardOf = 1",
            "spec.template.spec.initContainers = [{name: web, image: a}]",
            "spec.template.spec.initContainers = [{name: first, image: a, restartPolicy: Always}]",
            "spec.template.spec.hostNetwork = true",
            "spec.template.spec.activeDeadlineSeconds = 5",
            "metadata.labels = {'a b': c}",
            "metadata.annotations.note = said",
        ),
    ),
    "StatefulSet": (
        "apps/v1",
        True,
        f"spec: {{serviceName: db, selector: {{matchLabels: {{app: web}}}}, template: {_POD}}}",
        (
            "spec.replicas = 5",
            "spec.serviceName = other",
            "spec.podManagementPolicy = Parallel",
            "spec.updateStrategy = {type: OnDelete}",
            "spec.updateStrategy = {type: Sometimes}",
            "spec.updateStrategy = {rollingUpdate: {partition: -1}}",
            "spec.volumeClaimTemplates = [{metadata: {name: d}, spec: {accessModes: [ReadWriteOnce], "
            "resources: {requests: {storage: 1Gi}}}}]",
            "spec.persistentVolumeClaimRetentionPolicy = {whenDeleted: Delete}",
            "spec.minReadySeconds = 10",
            "spec.ordinals = {start: -1}",
            "spec.template.spec.containers.0.image = example/web:2",
        ),
    ),
    "DaemonSet": (
        "apps/v1",
        True,
        f"spec: {{selector: {{matchLabels: {{app: web}}}}, template: {_POD}}}",
        (
            "spec.selector.matchLabels.app = x",
            "spec.updateStrategy = {rollingUpdate: {maxUnavailable: 0}}",
            "spec.updateStrategy = {rollingUpdate: {maxSurge: 1, maxUnavailable: 1}}",
            "spec.updateStrategy = {type: OnDelete}",
            "spec.template.spec.nodeSelector = {disk: fast}",
            "spec.template.spec.restartPolicy = Never",
        ),
    ),
    "Service": (
        "v1",
        True,
        "spec: {selector: {app: web}, ports: [{port: 80, targetPort: 8080}]}",
        (
            "spec.ports.0.port = 81",
            "spec.ports.0.port = 0",
            "spec.ports.0.targetPort = a_b",
            "spec.ports.0.targetPort = web",
            "spec.ports.0.protocol = HTTP",
            "spec.ports = [{port: 80}, {port: 81}]",
            "spec.ports = [{port: 80, name: a}, {port: 80, name: b}]",
            "spec.ports = []",
            "spec.clusterIP = None",
            "spec.clusterIP = 300.1.1.1",
            "spec.type = ExternalName",
            "spec.type = Anything",
            "spec.sessionAffinity = ClientIP",
            "spec.sessionAffinity = Cookie",
            "spec.externalTrafficPolicy = Local",
            "spec.internalTrafficPolicy = Local",
            "spec.ipFamilyPolicy = RequireDualStack",
            "spec.externalIPs = [nowhere]",
            "spec.selector.app = other",
            "spec.publishNotReadyAddresses = true",
        ),
    ),
    "ConfigMap": (
        "v1",
        True,
        "data: {mode: fast}",
        (
            "data.mode = slow",
            "data.mode = 5",
            "data.mode =",
            "data = {'bad key': x}",
            "immutable = true",
            "binaryData = {mode: YQ==}",
            "binaryData = {x: '%%'}",
            "metadata.finalizers = [plain]",
            "metadata.labels = {tier: '-x'}",
        ),
    ),
    "ServiceAccount": ("v1", True, "automountServiceAccountToken: false", ("automountServiceAccountToken = true",)),
    "ResourceQuota": (
        "v1",
        True,
        "spec: {hard: {pods: 5}}",
        (
            "spec.hard = {pods: -1}",
            "spec.hard = {pods: 1500m}",
            "spec.hard = {nonsense: 1}",
            "spec.hard = {requests.cpu: 3}",
            "spec.scopes = [BestEffort]",
            "spec.scopes = [Anything]",
        ),
    ),
    "LimitRange": (
        "v1",
        True,
        "spec: {limits: [{type: Container, max: {cpu: 2}}]}",
        (
            "spec.limits.0.min = {cpu: 3}",
            "spec.limits.0.default = {cpu: 3}",
            "spec.limits.0.type = Anything",
            "spec.limits.0.max = {cpu: 4}",
            "spec.limits.0.type = Pod",
        ),
    ),
    "PersistentVolumeClaim": (
        "v1",
        True,
        "spec: {accessModes: [ReadWriteOnce], storageClassName: fast, resources: {requests: {storage: 2Gi}}}",
        (
            "spec.accessModes = [ReadWriteMany]",
            "spec.accessModes = [Anything]",
            "spec.resources.requests.storage = 1Gi",
            "spec.resources.requests.storage = 3Gi",
            "spec.storageClassName = slow",
            "spec.volumeMode = Block",
            "spec.volumeName = some",
            "metadata.labels = {a: b}",
        ),
    ),
    "PersistentVolume": (
        "v1",
        False,
        "spec: {capacity: {storage: 1Gi}, accessModes: [ReadWriteOnce], nfs: {server: a, path: /a}}",
        (
            "spec.capacity.storage = 2Gi",
            "spec.nfs.path = /b",
            "spec.nfs.path = ../b",
            "spec.persistentVolumeReclaimPolicy = Delete",
            "spec.persistentVolumeReclaimPolicy = Keep",
            "spec.mountOptions = [ro]",
            "spec.hostPath = {path: /x}",
        ),
    ),
    "Role": (
        "rbac.authorization.k8s.io/v1",
        True,
        "rules: [{apiGroups: [''], resources: [pods], verbs: [get]}]",
        (
            "rules.0.verbs = [get, list]",
            "rules.0.verbs = []",
            "rules.0.resources =",
            "rules.0.nonResourceURLs = [/x]",
            "rules.0.resourceNames = [a]",
            "rules = []",
            "rules = x",
        ),
    ),
    "RoleBinding": (
        "rbac.authorization.k8s.io/v1",
        True,
        "{roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: a}, "
        "subjects: [{kind: ServiceAccount, name: a, namespace: b}]}",
        (
            "roleRef.name = b",
            "roleRef.kind = Something",
            "subjects.0.kind = Robot",
            "subjects.0.namespace =",
            "subjects.0.name = c",
            "subjects = [{kind: User, name: ann}]",
            "subjects = [{kind: User, name: ann, namespace: x}]",
            "subjects = []",
        ),
    ),
    "ClusterRole": (
        "rbac.authorization.k8s.io/v1",
        False,
        "rules: [{nonResourceURLs: [/metrics], verbs: [get]}]",
        (
            "rules.0.resources = [pods]",
            "rules.0.nonResourceURLs = ['/a*b']",
            "rules.0.verbs = ['*']",
            "aggregationRule = {clusterRoleSelectors: []}",
            "aggregationRule = {clusterRoleSelectors: [{matchLabels: {a: b}}]}",
        ),
    ),
    "ClusterRoleBinding": (
        "rbac.authorization.k8s.io/v1",
        False,
        "{roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: view}, subjects: []}",
        (
            "roleRef.name = edit",
            "roleRef.kind = Role",
            "roleRef.apiGroup = other",
            "subjects = [{kind: Group, name: all, apiGroup: rbac.authorization.k8s.io}]",
        ),
    ),
    "Job": (
        "batch/v1",
        True,
        "spec: {template: {spec: {restartPolicy: Never, containers: [{name: a, image: a}]}}}",
        (
            "spec.parallelism = 3",
            "spec.parallelism = -1",
            "spec.backoffLimit = -1",
            "spec.completions = 2",
            "spec.completionMode = Indexed",
            "spec.suspend = true",
            "spec.template.spec.restartPolicy = Always",
            "spec.template.spec.containers.0.image = b",
            "spec.ttlSecondsAfterFinished = -1",
            "spec.activeDeadlineSeconds = 100",
            "spec.manualSelector = true",
        ),
    ),
    "CronJob": (
        "batch/v1",
        True,
        "spec: {schedule: '0 1 * * *', jobTemplate: {spec: {template: {spec: {restartPolicy: Never, "
        "containers: [{name: a, image: a}]}}}}}",
        (
            "spec.schedule = '*/5 * * * *'",
            "spec.schedule = often",
            "spec.schedule = 'TZ=UTC 0 1 * * *'",
            "spec.schedule = '0 25 * * *'",
            "spec.timeZone = Nowhere/City",
            "spec.timeZone = Europe/Prague",
            "spec.concurrencyPolicy = Sometimes",
            "spec.concurrencyPolicy = Replace",
            "spec.successfulJobsHistoryLimit = -1",
            "spec.startingDeadlineSeconds = -1",
            "spec.suspend = true",
            "spec.jobTemplate.spec.template.spec.restartPolicy = Always",
        ),
    ),
    "PodDisruptionBudget": (
        "policy/v1",
        True,
        "spec: {minAvailable: 1, selector: {matchLabels: {app: web}}}",
        (
            "spec.minAvailable = 50%",
            "spec.minAvailable = 150%",
            "spec.minAvailable = -1",
            "spec.minAvailable = many",
            "spec.maxUnavailable = 1",
            "spec.selector = {matchLabels: {app: x}}",
            "spec.selector = {matchExpressions: [{key: a, operator: Near}]}",
            "spec.unhealthyPodEvictionPolicy = AlwaysAllow",
            "spec.unhealthyPodEvictionPolicy = Never",
        ),
    ),
    "HorizontalPodAutoscaler": (
        "autoscaling/v2",
        True,
        "spec: {scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}, maxReplicas: 4}",
        (
            "spec.maxReplicas = 0",
            "spec.minReplicas = 5",
            "spec.minReplicas = 0",
            "spec.minReplicas = 2",
            "spec.scaleTargetRef.name = ''",
            "spec.scaleTargetRef.kind = a/b",
            "spec.metrics = [{type: Resource, resource: {name: cpu, "
            "target: {type: Utilization, averageUtilization: 0}}}]",
            "spec.metrics = [{type: Resource, resource: {name: cpu, "
            "target: {type: Utilization, averageUtilization: 60}}}]",
            "spec.metrics = [{type: Anything}]",
            "spec.behavior = {scaleDown: {stabilizationWindowSeconds: 4000}}",
        ),
    ),
    "NetworkPolicy": (
        "networking.k8s.io/v1",
        True,
        "spec: {podSelector: {}, ingress: [{from: [{podSelector: {}}]}]}",
        (
            "spec.ingress.0.ports = [{port: 70000}]",
            "spec.ingress.0.ports = [{port: 80, endPort: 70}]",
            "spec.ingress.0.ports = [{port: web, protocol: SCTP}]",
            "spec.ingress.0.from = [{ipBlock: {cidr: 10.0.0.0/33}}]",
            "spec.ingress.0.from = [{ipBlock: {cidr: 10.0.0.0/8, except: [11.0.0.0/16]}}]",
            "spec.ingress.0.from = [{ipBlock: {cidr: 10.0.0.0/8}, podSelector: {}}]",
            "spec.ingress.0.from = [{}]",
            "spec.policyTypes = [Egress]",
            "spec.policyTypes = [Sideways]",
        ),
    ),
    "Ingress": (
        "networking.k8s.io/v1",
        True,
        "spec: {rules: [{host: a.example, http: {paths: [{path: /, pathType: Prefix, "
        "backend: {service: {name: web, port: {number: 80}}}}]}}]}",
        (
            "spec.rules.0.host = '*.a.example'",
            "spec.rules.0.host = a_b",
            "spec.rules.0.host = 10.0.0.1",
            "spec.rules.0.http.paths.0.pathType = Anything",
            "spec.rules.0.http.paths.0.pathType =",
            "spec.rules.0.http.paths.0.path = relative",
            "spec.rules.0.http.paths.0.path = /a//b",
            "spec.rules.0.http.paths.0.backend.service.port = {}",
            "spec.rules.0.http.paths.0.backend.service.port = {number: 80, name: web}",
            "spec.rules.0.http.paths.0.backend.resource = {kind: A, name: b}",
            "spec.tls = [{hosts: [a.example], secretName: Bad_Name}]",
            "spec.ingressClassName = public",
            "spec.rules = []",
        ),
    ),
    "IngressClass": (
        "networking.k8s.io/v1",
        False,
        "spec: {controller: example.org/a}",
        ("spec.controller = example.org/b", "spec.parameters = {kind: A, name: b}", "spec.parameters = {kind: A}"),
    ),
    "StorageClass": (
        "storage.k8s.io/v1",
        False,
        "{provisioner: example.org/a, parameters: {a: b}}",
        (
            "provisioner = example.org/b",
            "parameters.a = c",
            "reclaimPolicy = Retain",
            "volumeBindingMode = WaitForFirstConsumer",
            "allowVolumeExpansion = true",
            "mountOptions = [ro]",
            "allowedTopologies = [{matchLabelExpressions: [{key: z, values: []}]}]",
        ),
    ),
    "PriorityClass": (
        "scheduling.k8s.io/v1",
        False,
        "{value: 100, description: some}",
        ("value = 200", "value = 2000000000", "preemptionPolicy = Never", "description = other"),
    ),
    "RuntimeClass": ("node.k8s.io/v1", False, "handler: runc", ("handler = kata", "overhead = {podFixed: {cpu: -1}}")),
    "CSIDriver": (
        "storage.k8s.io/v1",
        False,
        "spec: {attachRequired: true}",
        ("spec.attachRequired = false", "spec.fsGroupPolicy = None", "spec.volumeLifecycleModes = [Ephemeral]"),
    ),
    "PodTemplate": (
        "v1",
        True,
        f"template: {_POD}",
        ("template.spec.containers = []", "template.metadata.labels = {}"),
    ),
    "CustomResourceDefinition": (
        "apiextensions.k8s.io/v1",
        False,
        "spec: {}",
        (
            "spec.scope = Cluster",
            "spec.names.kind = Other",
            "spec.names.shortNames = [Bad]",
            "spec.versions.0.served = false",
            "spec.versions.0.storage = false",
            "spec.versions.0.name = v2",
            "spec.versions.0.schema.openAPIV3Schema.properties.spec.properties.size.maximum = 3",
            "spec.versions.0.schema.openAPIV3Schema.properties.spec.properties.size.type = text",
            "spec.versions.0.schema.openAPIV3Schema.properties.spec.properties.size.type =",
            "spec.versions.0.schema.openAPIV3Schema.properties.spec.properties.size.default = many",
            "spec.versions.0.schema.openAPIV3Schema.properties.spec.properties.size.default = 4",
            "spec.versions.0.schema.openAPIV3Schema.properties.spec.required = [size]",
            "spec.versions.0.schema.openAPIV3Schema.properties.spec.x-kubernetes-validations = "
            "[{rule: 'self.size > 1', message: too small}]",
            "spec.versions.0.schema.openAPIV3Schema.properties.spec.x-kubernetes-validations = "
            "[{rule: 'self.none > 1'}]",
            "spec.versions.0.schema.openAPIV3Schema.properties.spec.properties.size.pattern = '('",
            "spec.versions.0.schema.openAPIV3Schema.properties.more = {type: array}",
            "spec.versions.0.schema =",
            "spec.versions.0.subresources = {status: {}}",
            "spec.versions.0.additionalPrinterColumns = [{name: Size, type: integer, jsonPath: .spec.size}]",
            "spec.versions.0.additionalPrinterColumns = [{name: Size, type: number, jsonPath: spec.size}]",
            "spec.conversion = {strategy: Webhook}",
            "spec.preserveUnknownFields = true",
        ),
    ),
}
CUSTOM = (
    "spec.size = 2",
    "spec.size = 9",
    "spec.size = big",
    "spec.size =",
    "spec.colour = red",
    "spec.colour = green",
    "spec.unheardOf = 1",
    "spec = 5",
    "metadata.labels = {a: b}",
)
# What users set on objects of any kind, by a separate update.
EDITS: tuple[JSON, ...] = (
    {"metadata": {"labels": {"team": "shop"}}},
    {"metadata": {"annotations": {"note": "ours"}}},
)


@dataclass
class SeededRelease:
    """What the cluster runs (`before`), what its users changed, and the next release (`after`)."""

    number: int
    before: list[JSON] = field(default_factory=list)
    edits: list[tuple[JSON, JSON]] = field(default_factory=list)
    after: list[JSON] = field(default_factory=list)
    changes: dict[str, list[str]] = field(default_factory=dict)

    @property
    def prefix(self) -> str:
        """What all its names begin with."""
        return f"s{self.number}-"


def seeded_release(number: int) -> SeededRelease:
    """Returns the releases of that seed."""
    draw = random.Random(number)
    made = SeededRelease(number)
    space = f"{made.prefix}ns"
    home = manifest("v1", "Namespace", space)
    made.before.append(home)
    made.after.append(home)
    kinds = draw.sample([kind for kind in KINDS if kind != "CustomResourceDefinition"], _OBJECTS)
    for index, kind in enumerate([*kinds, "CustomResourceDefinition"]):
        is_new = index < _NEW
        obj = _definition(made.prefix) if kind == "CustomResourceDefinition" else _object(made.prefix, kind, space)
        _add(made, draw, obj, KINDS[kind][3], is_new=is_new)
    widget = _widget(made.prefix, space)
    _add(made, draw, widget, CUSTOM, is_new=False)
    return made


def _add(made: SeededRelease, draw: random.Random, obj: JSON, changes: tuple[str, ...], *, is_new: bool) -> None:
    if not is_new:
        made.before.append(obj)
        if draw.random() < 0.3:
            made.edits.append((obj, draw.choice(EDITS)))
    chosen = draw.sample(changes, min(_CHANGES if draw.random() < 0.3 else 1, len(changes)))
    after = copy.deepcopy(obj)
    done = [each for each in chosen if change(after, each)]
    made.after.append(after)
    made.changes[f"{obj['kind']} {obj['metadata']['name']}"] = done


def change(obj: JSON, change: str) -> bool:
    """Makes the change, and returns whether its path is still there after an earlier one."""
    path, _, text = change.partition(" =")
    *parents, last = path.split(".")
    at: Any = obj
    for step in parents:
        if isinstance(at, list):
            at = at[int(step)] if len(at) > int(step) else None
        elif isinstance(at, dict):
            at = at.setdefault(step, {})
        if not isinstance(at, dict | list):
            return False
    if not isinstance(at, dict):
        return False
    if text.strip():
        at[last] = kyaml.load(text.strip().encode())
    else:
        at.pop(last, None)
    return True


def _object(prefix: str, kind: str, space: str) -> JSON:
    version, is_namespaced, fields, _ = KINDS[kind]
    name = f"{prefix}{kind.lower()}"
    return manifest(version, kind, name, space if is_namespaced else "", **kyaml.load(fields.encode()))


def _definition(prefix: str) -> JSON:
    group = f"{prefix}x.example.org"
    properties = {"size": {"type": "integer"}, "colour": {"type": "string", "enum": ["red", "blue"]}}
    schema = {"type": "object", "properties": {"spec": {"type": "object", "properties": properties}}}
    names = {"kind": "Widget", "plural": "widgets", "singular": "widget", "listKind": "WidgetList"}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    spec = {"group": group, "scope": "Namespaced", "names": names, "versions": [version]}
    return manifest("apiextensions.k8s.io/v1", "CustomResourceDefinition", f"widgets.{group}", spec=spec)


def _widget(prefix: str, space: str) -> JSON:
    return manifest(f"{prefix}x.example.org/v1", "Widget", f"{prefix}widget", space, spec={"size": 1, "colour": "blue"})
