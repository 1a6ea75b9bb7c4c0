"""A payload as a real release has it, made from a seed: 900 manifests, 8 MB, with the sizes and kinds of a 4.x release.

    140 CustomResourceDefinitions up to 295 KB      45 Deployments, the operator's own among them
     30 ClusterOperators                            the rest namespaces, RBAC, ConfigMaps, Services, monitoring, ...

`write(folder, VERSION)` makes the folder that PAYLOAD_OVERRIDE names; two calls with the same version write the same
bytes. Another version differs in `CHANGED` manifests, as a patch release does: every Deployment's image and version,
every ClusterOperator's version, some definitions, some ConfigMaps.
"""

from __future__ import annotations

import random
import string
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from kubekit.lang import yaml as kyaml
from runup.release.control.image_build import IMAGE_REFERENCES_PATH, METADATA_PATH, release_metadata
from runup.sandbox import crds
from runup.sandbox.scenario.scenario_releases import operator_manifests

JSON = dict[str, Any]
T = TypeVar("T")

MANIFESTS = 900
DEFINITIONS = 140
DEPLOYMENTS = 45
OPERATORS = 30
CHANGED = 140
LARGEST = 295_000
BYTES = 8_000_000
FIRST, SECOND = "5.0.0", "5.0.1"
REPORTS = "bench.runup.dev/reports"
"""The label of a Deployment that names the ClusterOperator whose operator it is."""

_INCLUDED = {
    "include.release.openshift.io/self-managed-high-availability": "true",
    "include.release.openshift.io/single-node-developer": "true",
}
_TEXT = (
    "the of a cluster node network policy which when must be set to default value operator resource name list "
    "each field optional required specifies controls whether pods are scheduled on nodes matching this selector "
    "status reports last observed state of component configuration is ignored unless mode allows it"
)
_WORDS = tuple(_TEXT.split())
# Run level and name; each of the first 30 has a ClusterOperator. Run levels as docs/reference/upstream.md 1.3 gives
# them.
_COMPONENTS = (
    *((10, name) for name in ("config-operator", "etcd-operator")),
    *((20, name) for name in ("kube-apiserver-operator",)),
    *((25, name) for name in ("kube-controller-manager-operator", "kube-scheduler-operator")),
    *((30, name) for name in ("machine-api-operator", "baremetal", "cloud-credential-operator", "cluster-api")),
    *((31, name) for name in ("cluster-version-helper", "machine-approver", "node-tuning-operator")),
    *((50, name) for name in ("authentication-operator", "console-operator", "csi-snapshot-controller-operator")),
    *((50, name) for name in ("dns-operator", "image-registry-operator", "ingress-operator", "insights-operator")),
    *((50, name) for name in ("network-operator", "openshift-apiserver-operator", "service-ca-operator")),
    *((50, name) for name in ("openshift-controller-manager-operator", "samples-operator", "storage-operator")),
    *((50, name) for name in ("operator-lifecycle-manager", "operator-marketplace", "monitoring-operator")),
    *((60, name) for name in ("kube-storage-version-migrator-operator",)),
    *((80, name) for name in ("machine-config-operator",)),
    *((50, f"{name}-driver-operator") for name in ("aws-ebs", "azure-disk", "gcp-pd", "vsphere", "openstack-cinder")),
    *((70, f"{name}-controller") for name in ("olm-catalog", "package-server", "console-plugin", "user-workload")),
    *((70, f"{name}-proxy") for name in ("metrics", "oauth", "prometheus", "thanos", "telemeter")),
)
_MONITORS = ("monitoring.coreos.com", "v1")


@dataclass(frozen=True, slots=True)
class Written:
    """What a payload came to."""

    folder: Path
    version: str
    manifests: int
    bytes: int


def write(folder: Path, version: str = FIRST, seed: int = 1, *, share: float = 1.0) -> Written:
    """Write the payload of `version` into `folder`, which is made."""
    files = payload(version, seed, share)
    for name, data in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    # Documents, since a file may hold several.
    count = sum(len(documents(data)) for name, data in files.items() if name.endswith(".yaml"))
    return Written(folder, version, count, sum(map(len, files.values())))


def digest(version: str) -> str:
    """What the release image of `version` would have as its digest, in hex."""
    return f"{random.Random(version).getrandbits(256):064x}"


def documents(data: bytes) -> list[JSON]:
    """The manifests of one file."""
    return [document for document in kyaml.load_all(data) if document is not None]


def payload(version: str, seed: int = 1, share: float = 1.0) -> dict[str, bytes]:
    """The files of the release by their paths in the image.

    A smaller release has `share` of the components, of the definitions and of the bytes; it is installed, not updated.
    """
    files = {f"manifests/{file.name}": file.read_bytes() for file in operator_manifests()}
    own = sum(text.count(b"\nkind: ") for text in files.values())
    shipped = crds.definition_files(generally_available=True)
    files |= {f"release-manifests/{file.name}": file.read_bytes() for file in shipped}
    made = [
        *_definitions(seed, _evenly(range(DEFINITIONS - len(shipped)), share), version),
        *_components(version, seed, share),
    ]
    files |= _written(made)
    have = own + len(shipped) + sum(len(found) for _, found in made)
    left = round(BYTES * share) - sum(map(len, files.values()))
    files |= _written(_dashboards(round(MANIFESTS * share) - have, seed, left, version))
    files[METADATA_PATH] = release_metadata(version, [FIRST] if version != FIRST else [], [], {})
    files[IMAGE_REFERENCES_PATH] = _image_references(version)
    return files


def _written(made: list[tuple[str, list[JSON]]]) -> dict[str, bytes]:
    return {f"release-manifests/{name}": kyaml.dump_all(found).encode() for name, found in made}


def _components(version: str, seed: int, share: float) -> Iterator[tuple[str, list[JSON]]]:
    """The manifests of every component, in files as components name theirs."""
    for number, (level, name) in _evenly(list(enumerate(_COMPONENTS[: DEPLOYMENTS - 1])), share):
        drawn = random.Random(f"{seed}/{name}")
        namespace, prefix = f"openshift-{name}", f"0000_{level}_{name}"
        operator = name.removesuffix("-operator") if number < OPERATORS else ""
        yield f"{prefix}_00_namespace.yaml", [_object("v1", "Namespace", namespace)]
        yield f"{prefix}_01_serviceaccounts.yaml", _accounts(namespace)
        yield f"{prefix}_02_clusterroles.yaml", [*_cluster_roles(name, namespace, drawn)]
        yield f"{prefix}_03_roles.yaml", [*_roles(name, namespace, drawn)]
        yield f"{prefix}_04_configmap.yaml", [_config_map(name, namespace, drawn)]
        yield f"{prefix}_05_trusted-ca.yaml", [_object("v1", "ConfigMap", "trusted-ca-bundle", namespace)]
        yield f"{prefix}_06_service.yaml", [_service(name, namespace)]
        # Monitoring comes last, after its definitions, as in a real release.
        if number % 2 == 0:
            yield f"0000_90_{name}_07_servicemonitor.yaml", [_monitor(name, namespace)]
        if number % 4 == 1:
            yield f"0000_90_{name}_08_prometheusrule.yaml", [_rules(name, namespace, drawn)]
        if number % 11 == 3:
            yield (
                f"{prefix}_09_daemonset.yaml",
                [_workload("DaemonSet", f"{name}-node", namespace=namespace, version=FIRST, operator="")],
            )
        if level in (60, 80):
            yield f"{prefix}_09_job.yaml", [_job(name, namespace)]
        yield (
            f"{prefix}_10_deployment.yaml",
            [_workload("Deployment", name, namespace=namespace, version=version, operator=operator)],
        )
        if operator:
            yield f"{prefix}_20_clusteroperator.yaml", [_operator(operator, namespace, version)]


def _object(api_version: str, kind: str, name: str, namespace: str = "", **rest: Any) -> JSON:
    metadata: JSON = {"name": name, "annotations": dict(_INCLUDED)}
    if namespace:
        metadata["namespace"] = namespace
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **rest}


def _accounts(namespace: str) -> list[JSON]:
    return [_object("v1", "ServiceAccount", name, namespace) for name in ("operator", "operand")]


def _cluster_roles(name: str, namespace: str, drawn: random.Random) -> Iterator[JSON]:
    rbac = "rbac.authorization.k8s.io/v1"
    yield _object(rbac, "ClusterRole", f"openshift-{name}", rules=_policy(drawn, drawn.randint(2, 14)))
    for account in ("operator", "operand"):
        bound = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": f"openshift-{name}"}
        yield _object(
            rbac,
            "ClusterRoleBinding",
            f"openshift-{name}-{account}",
            roleRef=bound,
            subjects=[{"kind": "ServiceAccount", "name": account, "namespace": namespace}],
        )


def _roles(name: str, namespace: str, drawn: random.Random) -> Iterator[JSON]:
    rbac = "rbac.authorization.k8s.io/v1"
    for part in (name, "prometheus-k8s"):
        yield _object(rbac, "Role", part, namespace, rules=_policy(drawn, drawn.randint(1, 4)))
        bound = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": part}
        subjects = [{"kind": "ServiceAccount", "name": "operator", "namespace": namespace}]
        yield _object(rbac, "RoleBinding", part, namespace, roleRef=bound, subjects=subjects)


def _policy(drawn: random.Random, count: int) -> list[JSON]:
    kinds = ("pods", "services", "endpoints", "configmaps", "events", "namespaces", "nodes", "secrets")
    verbs = ("get", "list", "watch", "create", "update", "patch", "delete")
    return [
        {"apiGroups": [""], "resources": [drawn.choice(kinds)], "verbs": list(verbs[: drawn.randint(1, len(verbs))])}
        for _ in range(count)
    ]


def _config_map(name: str, namespace: str, drawn: random.Random) -> JSON:
    text = {"apiVersion": "operator.openshift.io/v1alpha1", "kind": "GenericOperatorConfig", "note": _prose(drawn, 300)}
    return _object("v1", "ConfigMap", f"{name}-config", namespace, data={"config.yaml": kyaml.dump(text)})


def _service(name: str, namespace: str) -> JSON:
    spec = {"selector": {"app": name}, "ports": [{"name": "metrics", "port": 8443, "targetPort": 8443}]}
    return _object("v1", "Service", "metrics", namespace, spec=spec)


def _monitor(name: str, namespace: str) -> JSON:
    endpoint = {"port": "metrics", "scheme": "https", "interval": "30s", "path": "/metrics"}
    spec = {"selector": {"matchLabels": {"app": name}}, "endpoints": [endpoint]}
    return _object("/".join(_MONITORS), "ServiceMonitor", name, namespace, spec=spec)


def _rules(name: str, namespace: str, drawn: random.Random) -> JSON:
    rules = [
        {
            "alert": f"{name.title().replace('-', '')}{number}",
            "expr": f'up{{job="{name}"}} == {number}',
            "for": f"{drawn.randint(5, 60)}m",
            "labels": {"severity": drawn.choice(("info", "warning", "critical"))},
            "annotations": {"summary": _prose(drawn, 60), "description": _prose(drawn, 200)},
        }
        for number in range(drawn.randint(1, 6))
    ]
    return _object(
        "/".join(_MONITORS), "PrometheusRule", name, namespace, spec={"groups": [{"name": name, "rules": rules}]}
    )


def _workload(kind: str, name: str, namespace: str, version: str, operator: str) -> JSON:
    container = {
        "name": name[:63],
        "image": _image(name, version),
        "command": [name, "start"],
        "args": ["--config=/var/run/configmaps/config/config.yaml", "-v=2"],
        "env": [
            {"name": "RELEASE_VERSION", "value": version},
            {"name": "OPERATOR_IMAGE_VERSION", "value": version},
            {"name": "POD_NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
        ],
        "ports": [{"containerPort": 8443, "name": "metrics", "protocol": "TCP"}],
        "resources": {"requests": {"cpu": "10m", "memory": "50Mi"}},
        "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": [{"name": "config", "mountPath": "/var/run/configmaps/config"}],
    }
    pod = {
        "serviceAccountName": "operator",
        "priorityClassName": "system-cluster-critical",
        "tolerations": [{"key": "node-role.kubernetes.io/master", "operator": "Exists", "effect": "NoSchedule"}],
        "containers": [container],
        "volumes": [{"name": "config", "configMap": {"name": "trusted-ca-bundle"}}],
    }
    labels = {"app": name}
    spec = {"selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, "spec": pod}}
    found = _object("apps/v1", kind, name, namespace, spec=spec | ({"replicas": 1} if kind == "Deployment" else {}))
    found["metadata"]["labels"] = labels | ({REPORTS: operator} if operator else {})
    return found


def _job(name: str, namespace: str) -> JSON:
    pod = {"restartPolicy": "OnFailure", "containers": [{"name": "migrate", "image": _image(name, FIRST)}]}
    return _object("batch/v1", "Job", f"{name}-migration", namespace, spec={"template": {"spec": pod}})


def _operator(name: str, namespace: str, version: str) -> JSON:
    related = [
        {"group": "", "resource": "namespaces", "name": namespace},
        {"group": "operator.openshift.io", "resource": "configs", "name": "cluster"},
    ]
    status = {"versions": [{"name": "operator", "version": version}], "relatedObjects": related}
    return _object("config.openshift.io/v1", "ClusterOperator", name, spec={}, status=status)


def _image(name: str, version: str) -> str:
    return f"registry.example/release/{name}@sha256:{random.Random(f'{name}/{version}').getrandbits(256):064x}"


def _image_references(version: str) -> bytes:
    tags = [
        {"name": name, "from": {"kind": "DockerImage", "name": _image(name, version)}}
        for _, name in _COMPONENTS[: DEPLOYMENTS - 1]
    ]
    created = {"name": version, "creationTimestamp": "2026-10-05T08:00:00Z"}
    stream = {"kind": "ImageStream", "apiVersion": "image.openshift.io/v1", "metadata": created, "spec": {"tags": tags}}
    return msgspec.json.encode(stream)


def _evenly(items: Sequence[T], share: float) -> list[T]:
    """That share of the items, evenly spaced."""
    return [item for number, item in enumerate(items, 1) if int(number * share) > int((number - 1) * share)]


def _dashboards(count: int, seed: int, room: int, version: str) -> list[tuple[str, list[JSON]]]:
    """What is missing: ConfigMaps of monitoring dashboards, which fill a release's bytes. The first ones change."""
    changing = CHANGED - DEPLOYMENTS - OPERATORS - _CHANGED_DEFINITIONS
    if count < 1:
        raise ValueError("the share is too small: what every release has is more than all of its manifests")
    each = max(200, room // count - 320)
    found = []
    for number in range(count):
        drawn = random.Random(f"{seed}/dashboard/{number}")
        of = version if number < changing else FIRST
        data = {"dashboard.json": f'{{"release": "{of}", "text": "{_prose(drawn, each)}"}}'}
        obj = _object("v1", "ConfigMap", f"dashboard-{number:03}", "openshift-monitoring-operator", data=data)
        found.append((f"0000_90_monitoring-operator_{number:03}_dashboard.yaml", [obj]))
    return found


_CHANGED_DEFINITIONS = 28


def _definitions(seed: int, numbers: Iterable[int], version: str) -> Iterator[tuple[str, list[JSON]]]:
    """Definitions from 295 KB down to 3 KB, most of them small; every fourth of the first ones changes."""
    for number in numbers:
        of = version if number % 4 == 0 and number < 4 * _CHANGED_DEFINITIONS else FIRST
        group, served, kind = _kind(number)
        level, component = _COMPONENTS[number % (DEPLOYMENTS - 1)]
        size = max(3_000, int(LARGEST * 0.94 * 2.718281828 ** (-number / 23)))
        name = f"0000_{level}_{component}_00_{kind.lower()}s.crd.yaml"
        yield (
            name,
            [_definition(group, served, kind=kind, size=size, drawn=random.Random(f"{seed}/crd/{number}"), release=of)],
        )


def _kind(number: int) -> tuple[str, str, str]:
    letters = string.ascii_lowercase
    return "bench.openshift.io", "v1", f"Kind{letters[number // 26].upper()}{letters[number % 26]}"


def _definition(group: str, version: str, kind: str, size: int, drawn: random.Random, release: str) -> JSON:
    plural = f"{kind.lower()}s"
    names = {"kind": kind, "listKind": f"{kind}List", "plural": plural, "singular": kind.lower()}
    free = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    spec = _tree(drawn, size, 0)
    schema = {
        "type": "object",
        "description": f"{kind} as of {release}. {_prose(drawn, 200)}",
        "properties": {
            "apiVersion": {"type": "string"},
            "kind": {"type": "string"},
            "metadata": {"type": "object"},
            "spec": spec,
            "status": free,
        },
    }
    served = {"name": version, "served": True, "storage": True, "subresources": {"status": {}}}
    return _object(
        "apiextensions.k8s.io/v1",
        "CustomResourceDefinition",
        f"{plural}.{group}",
        spec={
            "group": group,
            "names": names,
            "scope": "Namespaced",
            "versions": [served | {"schema": {"openAPIV3Schema": schema}}],
        },
    )


def _tree(drawn: random.Random, size: int, depth: int) -> JSON:
    """An object schema of about `size` bytes as YAML: fields with a paragraph each, objects and lists among them."""
    properties: JSON = {}
    left = size
    while left > 400:
        name = "".join(drawn.choice(string.ascii_lowercase) for _ in range(drawn.randint(5, 14)))
        inner = min(left - 400, drawn.randint(800, max(801, size // 3)))
        nested = depth < 6 and left > 2_000 and inner > 800 and drawn.random() < 0.6
        field = _tree(drawn, inner, depth + 1) if nested else _leaf(drawn)
        properties[name] = {"type": "array", "items": field} if nested and drawn.random() < 0.3 else field
        # Indentation weighs as well: two columns a level and line.
        left -= inner if nested else 330 + 50 * depth
    return {"type": "object", "description": _prose(drawn, 160), "properties": properties}


def _leaf(drawn: random.Random) -> JSON:
    description = _prose(drawn, drawn.randint(60, 400))
    kind = drawn.choice(("string", "string", "integer", "boolean", "enum", "map", "list"))
    if kind == "enum":
        return {"type": "string", "description": description, "enum": ["", "Managed", "Unmanaged", "Removed"]}
    if kind == "map":
        return {"type": "object", "description": description, "additionalProperties": {"type": "string"}}
    if kind == "list":
        listed = {"type": "array", "description": description, "items": {"type": "string"}}
        return listed | {"x-kubernetes-list-type": "atomic"}
    found: JSON = {"type": kind, "description": description}
    if kind == "string" and drawn.random() < 0.5:
        found |= {"maxLength": 253, "minLength": 1}
    if kind == "integer":
        found |= {"format": "int32", "minimum": 0}
    return found


def _prose(drawn: random.Random, length: int) -> str:
    words: list[str] = []
    while sum(map(len, words)) + len(words) < length:
        words.append(drawn.choice(_WORDS))
    return " ".join(words)
