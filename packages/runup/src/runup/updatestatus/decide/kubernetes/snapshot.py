"""The input of the status of a cluster without a ClusterVersion: its objects at one moment, each kind readable or
not.

As in `runup.updatestatus.decide.snapshot`, None means that a kind was not asked for, `Unreadable` that it may exist.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime

import msgspec

from kubekit.api.core_v1 import ConfigMap, Node, Pod
from kubekit.api.workloads_v1 import DaemonSet, Job, PodDisruptionBudget
from kubekit.lang import yaml as kyaml
from kubekit.lang.yaml_errors import YamlError
from runup.api.platform_v1 import CertificateSigningRequest, VolumeAttachment
from runup.api.rollouts_v1 import ClusterMachine, MachineDeployment, NodeClaim, NodePool, Plan
from runup.rules.node_groups import MACHINE, is_control_plane
from runup.updatestatus.decide.alerts import Unreadable

KUBE_SYSTEM = "kube-system"
KUBEADM_CONFIG = "kubeadm-config"
_TAG = re.compile(r":(v\d+\.\d+\.\d+[^@]*)")
# Labels by which the system-upgrade-controller marks its Jobs (https://docs.k3s.io/upgrades/automated).
PLAN_OF_JOB, NODE_OF_JOB = "upgrade.cattle.io/plan", "upgrade.cattle.io/node"
# Who updates nodes: the fields that its objects are in, and the mark that its nodes have in a label or an annotation.
UPDATERS: Mapping[str, tuple[tuple[str, ...], str]] = {
    "Cluster API": (("machine_deployments", "machines"), MACHINE),
    "Karpenter": (("node_claims", "node_pools"), "karpenter.sh/nodepool"),
    "the system-upgrade-controller": (("plans", "jobs", "job_pods"), "plan.upgrade.cattle.io/"),
}


class ApiServer(msgspec.Struct, frozen=True, kw_only=True):
    """A kube-apiserver: the node that it runs on, empty if that is not known, its version, and since when it runs.

    `answered` is true for the version that it gave itself, and false for that of its image.
    """

    node: str = ""
    version: str
    since: datetime | None = None
    answered: bool = False


class KubernetesSnapshot(msgspec.Struct, frozen=True, kw_only=True):
    """The cluster at one moment.

    `answer` is what `/version` returned, empty if nothing did; `answers` what each API server returned, by its pod.
    `server_pods` are those of kube-apiserver, `proxies` the DaemonSet kube-proxy. `jobs` are those of Plans, `job_pods`
    their pods. Proxies and volume attachments that could not be read are only missing. `pending_pods`,
    `draining_pods`, `drains_read`, `undecoded` and `incomplete` are as in `updatestatus.decide.snapshot.Snapshot`.
    """

    nodes: tuple[Node, ...] | Unreadable
    answer: str = ""
    answers: Mapping[str, str] = {}
    server_pods: tuple[Pod, ...] | Unreadable = ()
    proxies: tuple[DaemonSet, ...] = ()
    kubeadm_config: ConfigMap | Unreadable | None = None
    pending_pods: tuple[Pod, ...] | Unreadable | None = ()
    draining_pods: tuple[Pod, ...] | Unreadable | None = ()
    pod_disruption_budgets: tuple[PodDisruptionBudget, ...] | Unreadable | None = ()
    plans: tuple[Plan, ...] | Unreadable = ()
    jobs: tuple[Job, ...] | Unreadable = ()
    job_pods: tuple[Pod, ...] | Unreadable = ()
    machine_deployments: tuple[MachineDeployment, ...] | Unreadable = ()
    machines: tuple[ClusterMachine, ...] | Unreadable = ()
    node_claims: tuple[NodeClaim, ...] | Unreadable = ()
    node_pools: tuple[NodePool, ...] | Unreadable = ()
    certificate_requests: tuple[CertificateSigningRequest, ...] | Unreadable | None = ()
    volume_attachments: tuple[VolumeAttachment, ...] = ()
    undecoded: tuple[tuple[str, str], ...] = ()
    incomplete: Mapping[str, str] = {}
    drains_read: frozenset[str] | None = None


INPUTS = {
    "nodes": "Nodes",
    "server_pods": "Pods of kube-apiserver",
    "kubeadm_config": "the ConfigMap kubeadm-config",
    "pending_pods": "pending Pods",
    "draining_pods": "Pods of nodes that are being drained",
    "pod_disruption_budgets": "PodDisruptionBudgets",
    "plans": "Plans of the system-upgrade-controller",
    "jobs": "Jobs of Plans",
    "job_pods": "Pods of Plans",
    "machine_deployments": "MachineDeployments",
    "machines": "Machines",
    "node_claims": "NodeClaims",
    "node_pools": "NodePools",
    "certificate_requests": "CertificateSigningRequests",
}
"""Snapshot fields that are reported if they cannot be read, each with its name in messages."""


def unreadable_inputs(snapshot: KubernetesSnapshot) -> Iterator[tuple[str, str]]:
    """Yields the inputs that could not be read and that the nodes show to matter, with the reasons."""
    nodes = snapshot.nodes if isinstance(snapshot.nodes, tuple) else ()
    marks = {mark for node in nodes for marked in (node.metadata.labels, node.metadata.annotations) for mark in marked}
    for field, name in INPUTS.items():
        value = getattr(snapshot, field)
        updater_marks = [mark for fields, mark in UPDATERS.values() if field in fields]
        matters = not updater_marks or any(mark.startswith(updater_marks[0]) for mark in marks)
        if isinstance(value, Unreadable) and matters:
            yield name, value.why
    yield from snapshot.undecoded


def api_servers(snapshot: KubernetesSnapshot, *, in_kubelet: bool) -> tuple[ApiServer, ...]:
    """Returns the API servers that are known, by node; one without a node if only `/version` says anything.

    With `in_kubelet`, they run in the process of the kubelet, as those of k3s do, and have its version.
    """
    pods = snapshot.server_pods if isinstance(snapshot.server_pods, tuple) else ()
    nodes = snapshot.nodes if isinstance(snapshot.nodes, tuple) else ()
    servers = list(_servers_of(api_server_pods(pods), snapshot.answers))
    if not servers and in_kubelet:
        servers = [
            ApiServer(node=node.metadata.name, version=node.status.node_info.kubelet_version)
            for node in nodes
            if is_control_plane(node)
        ]
    if not servers and snapshot.answer:
        servers = [ApiServer(version=snapshot.answer, answered=True)]
    return tuple(sorted(servers, key=lambda server: server.node))


def api_server_pods(pods: Iterable[Pod]) -> list[Pod]:
    """Returns the pods that run kube-apiserver, by the labels of kubeadm, Talos and RKE2."""
    return [
        pod
        for pod in pods
        if "kube-apiserver" in (pod.metadata.labels.get("component"), pod.metadata.labels.get("k8s-app"))
    ]


def _servers_of(pods: Iterable[Pod], answers: Mapping[str, str]) -> Iterator[ApiServer]:
    for pod in pods:
        container = next((each for each in pod.spec.containers if each.name == "kube-apiserver"), None)
        tag = _TAG.search(container.image) if container is not None else None
        answer = answers.get(pod.metadata.name, "")
        if version := answer or (tag[1] if tag else ""):
            yield ApiServer(
                node=pod.spec.node_name,
                version=version,
                since=pod.metadata.creation_timestamp,
                answered=bool(answer),
            )


def kubeadm_version(config: ConfigMap | Unreadable | None) -> str:
    """Returns the version that kubeadm last updated a control plane to, empty if its ConfigMap does not say it."""
    if not isinstance(config, ConfigMap):
        return ""
    try:
        content = kyaml.load(config.data.get("ClusterConfiguration", "").encode(), name=KUBEADM_CONFIG)
    except YamlError:
        return ""
    version = content.get("kubernetesVersion") if isinstance(content, dict) else None
    return version if isinstance(version, str) else ""
