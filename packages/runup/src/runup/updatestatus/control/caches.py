"""The caches of the update status controller, which hold only the fields that insights are computed from.

`observe` reads the caches. A node of a real cluster is 20 KiB of JSON and changes every few seconds; the trimmed node
is under 2 KiB, strings that many nodes share are stored once, and a change that touches none of the kept fields
notifies no listener. So a heartbeat of one of 5,000 nodes costs the decoding of one object, not an evaluation of all.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields
from typing import Any

from msgspec.structs import replace

from kubekit.api.core_v1 import Node, NodeSpec, NodeStatus, NodeSystemInfo, Pod
from kubekit.api.meta_v1 import Object, ObjectMeta, shared_texts, with_shared_texts
from kubekit.api.scheme import resource_of
from kubekit.api.workloads_v1 import Deployment, PodDisruptionBudget
from kubekit.kube.cache import Cache, Change, differs_beyond_version
from kubekit.kube.client import Client
from kubekit.kube.clock import Clock
from kubekit.kube.watch import Reflector
from kubekit.rules.node_rules import CORDON
from runup.api.config_v1 import ClusterOperator, ClusterVersion
from runup.api.machineconfig_v1 import MachineConfig, MachineConfigPool
from runup.rules.holders import HOLDING_ANNOTATIONS, holder_of_taint
from runup.rules.machine_config import PREFIX
from runup.updatestatus.decide.nodes import PRESSURES, RELEASE_VERSION

LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
MCO_NAMESPACE = "openshift-machine-config-operator"
MCO_DEPLOYMENT = "machine-config-operator"
# The conditions of a node that insights are made of (oc's `assessNodesStatus`); the kubelet rewrites the others too.
_NODE_CONDITIONS = frozenset({"Ready", "NetworkUnavailable", *PRESSURES})


def trim_node(node: Node) -> Node:
    """Returns a node with labels (pools select by any of them), the machine-config daemon's annotations, and the
    relevant conditions only.
    """
    return Node(
        metadata=_reduced_metadata(
            node.metadata,
            labels=node.metadata.labels,
            annotations={
                key: value
                for key, value in node.metadata.annotations.items()
                if key.startswith(PREFIX) or key in HOLDING_ANNOTATIONS
            },
        ),
        spec=NodeSpec(
            unschedulable=node.spec.unschedulable,
            taints=tuple(taint for taint in node.spec.taints if taint.key == CORDON.key or holder_of_taint(taint)),
        ),
        status=NodeStatus(
            conditions=tuple(
                map(
                    with_shared_texts,
                    (condition for condition in node.status.conditions if condition.type in _NODE_CONDITIONS),
                )
            )
        ),
    )


def trim_machine_config(config: MachineConfig) -> MachineConfig:
    """Returns a MachineConfig with only the annotation that names the release that rendered it."""
    version = config.metadata.annotations.get(RELEASE_VERSION)
    annotations = {} if version is None else {RELEASE_VERSION: version}
    return MachineConfig(metadata=_reduced_metadata(config.metadata, annotations=annotations))


def trim_version(version: ClusterVersion) -> ClusterVersion:
    """Returns ClusterVersion without the available updates: they are many, change often, and do not concern the current
    update.
    """
    status = replace(
        version.status, available_updates=None, conditional_updates=(), conditional_update_risks=(), version_hash=""
    )
    return replace(version, status=status)


def trim_operator(operator: ClusterOperator) -> ClusterOperator:
    """Returns a ClusterOperator with only the namespaces of its related objects."""
    namespaces = tuple(each for each in operator.status.related_objects if each.resource == "namespaces")
    return replace(operator, status=replace(operator.status, related_objects=namespaces))


def trim_kubernetes_node(node: Node) -> Node:
    """Returns a node of a cluster without a ClusterVersion, reduced to the fields that the report uses."""
    trimmed, info = trim_node(node), node.status.node_info
    kept = {key: text for key, text in node.metadata.annotations.items() if key != LAST_APPLIED}
    return replace(
        trimmed,
        metadata=replace(trimmed.metadata, annotations=shared_texts(kept)),
        spec=replace(trimmed.spec, taints=node.spec.taints, provider_id=node.spec.provider_id),
        status=replace(
            trimmed.status,
            node_info=NodeSystemInfo(kubelet_version=info.kubelet_version, os_image=info.os_image),
        ),
    )


class WatchedCaches:
    """Caches that are fields of a dataclass, and are watched together."""

    def all(self) -> tuple[Cache[Any], ...]:
        """Returns every cache."""
        return tuple(getattr(self, each.name) for each in fields(self))  # type: ignore[arg-type]

    def waiting(self) -> str:
        """Returns the first kind that is neither listed nor known to be unreadable, or an empty string."""
        return next((cache.kind.__name__ for cache in self.all() if not cache.synced and cache.error is None), "")

    def on_change(self, listener: Callable[[], None]) -> None:
        """Calls `listener()` after every change that could alter an insight."""

        def call_if_changed(_change: Change, old: Object | None, new: Object | None) -> None:
            if differs_beyond_version(old, new):
                listener()

        for cache in self.all():
            cache.add_listener(call_if_changed)
            cache.add_state_listener(listener)


@dataclass(frozen=True, kw_only=True)
class KubernetesCaches(WatchedCaches):
    """The watched objects of a cluster without a ClusterVersion; `pods` are those of phase Pending."""

    nodes: Cache[Node] = field(default_factory=lambda: Cache(Node, keep=trim_kubernetes_node))
    pods: Cache[Pod] = field(default_factory=lambda: Cache(Pod))
    budgets: Cache[PodDisruptionBudget] = field(default_factory=lambda: Cache(PodDisruptionBudget))

    def reflectors(self, client: Client, clock: Clock) -> tuple[Reflector[Any], ...]:
        """Returns the reflectors that fill the caches."""
        return (
            Reflector(client, Node, self.nodes, clock=clock),
            Reflector(client, Pod, self.pods, field_selector="status.phase=Pending", clock=clock),
            Reflector(client, PodDisruptionBudget, self.budgets, clock=clock),
        )


@dataclass(frozen=True, kw_only=True)
class Caches(WatchedCaches):
    """The watched objects. `pods` are those that have not started yet (phase Pending), in all namespaces."""

    versions: Cache[ClusterVersion] = field(default_factory=lambda: Cache(ClusterVersion, keep=trim_version))
    operators: Cache[ClusterOperator] = field(default_factory=lambda: Cache(ClusterOperator, keep=trim_operator))
    pools: Cache[MachineConfigPool] = field(default_factory=lambda: Cache(MachineConfigPool))
    nodes: Cache[Node] = field(default_factory=lambda: Cache(Node, keep=trim_node))
    configs: Cache[MachineConfig] = field(default_factory=lambda: Cache(MachineConfig, keep=trim_machine_config))
    deployments: Cache[Deployment] = field(default_factory=lambda: Cache(Deployment))
    pods: Cache[Pod] = field(default_factory=lambda: Cache(Pod))
    budgets: Cache[PodDisruptionBudget] = field(default_factory=lambda: Cache(PodDisruptionBudget))


def reflectors(client: Client, caches: Caches, clock: Clock) -> tuple[Reflector[Any], ...]:
    """Returns the reflectors that fill the caches, each with the least rights and the fewest bytes that it needs."""
    return (
        Reflector(client, ClusterVersion, caches.versions, field_selector="metadata.name=version", clock=clock),
        Reflector(client, ClusterOperator, caches.operators, clock=clock),
        Reflector(client, MachineConfigPool, caches.pools, clock=clock),
        Reflector(client, Node, caches.nodes, clock=clock),
        # Metadata alone: the content of 200 MachineConfigs is tens of megabytes.
        Reflector(client, Object, caches.configs, clock=clock, resource=resource_of(MachineConfig)),
        Reflector(
            client,
            Deployment,
            caches.deployments,
            namespace=MCO_NAMESPACE,
            field_selector=f"metadata.name={MCO_DEPLOYMENT}",
            clock=clock,
        ),
        Reflector(client, Pod, caches.pods, field_selector="status.phase=Pending", clock=clock),
        Reflector(client, PodDisruptionBudget, caches.budgets, clock=clock),
    )


def _reduced_metadata(
    metadata: ObjectMeta, *, labels: dict[str, str] | None = None, annotations: dict[str, str] | None = None
) -> ObjectMeta:
    """Returns the metadata that identify an object and date it, with these labels and annotations, none by default.

    Equal keys and values of them are stored once.
    """
    return ObjectMeta(
        name=metadata.name,
        uid=metadata.uid,
        resource_version=metadata.resource_version,
        creation_timestamp=metadata.creation_timestamp,
        deletion_timestamp=metadata.deletion_timestamp,
        labels=shared_texts(labels or {}),
        annotations=shared_texts(annotations or {}),
    )
