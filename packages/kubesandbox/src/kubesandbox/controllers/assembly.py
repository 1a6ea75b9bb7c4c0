"""The assembly of a cluster's controllers: the caches that they watch, and the tasks that run them.

All of them are clients of an API server over HTTP. `start_controllers` returns the tasks, which its caller must cancel.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from kubekit.api.meta_v1 import key_of
from kubekit.api.scheme import Resource
from kubekit.api.whole_v1 import WholeDeployment, WholeJob, WholeNode, WholePod, WholeReplicaSet
from kubekit.api.workloads_v1 import PodDisruptionBudget
from kubekit.kube.api_errors import KubeError
from kubekit.kube.cache import Cache
from kubekit.kube.client import Client
from kubekit.kube.clock import Clock
from kubesandbox.apiserver.metadata import IMPORTED
from kubesandbox.controllers import owned_pods
from kubesandbox.controllers.budgets_and_quotas import BUDGETS, Budgets, Quotas, watch_quotas
from kubesandbox.controllers.controller_loop import Loop, follow_kind
from kubesandbox.controllers.deployments import Deployments, deployment_of
from kubesandbox.controllers.garbage import GarbageCollector, VolumeProtection, watch_volumes
from kubesandbox.controllers.jobs import Jobs
from kubesandbox.controllers.namespaces import Furnishing, NamespaceController, watch_namespaces
from kubesandbox.controllers.owner_graph import Graph
from kubesandbox.controllers.replica_sets import ReplicaSets
from kubesandbox.controllers.scheduler import Scheduler
from kubesandbox.tasks import wait_for_first

NODES = Resource("", "v1", "Node", "nodes", namespaced=False)
NOT_IMPORTED = f"!{IMPORTED}"
DEFINITIONS = Resource(
    "apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions", namespaced=False
)
# Interval of discovery for the garbage collector while no CustomResourceDefinition changes, in seconds.
_DISCOVERY_S = 5.0
# Back-off of a Job after its first failure, in seconds; shorter than Kubernetes' 10 s, for users who watch a sandbox.
_JOB_BACKOFF_S = 1.0


@dataclass(frozen=True, slots=True)
class Watched:
    """The caches of the controllers, which the node agent shares."""

    deployments: Cache[WholeDeployment] = field(default_factory=lambda: Cache(WholeDeployment))
    sets: Cache[WholeReplicaSet] = field(default_factory=lambda: Cache(WholeReplicaSet))
    pods: Cache[WholePod] = field(default_factory=lambda: Cache(WholePod))
    jobs: Cache[WholeJob] = field(default_factory=lambda: Cache(WholeJob))
    nodes: Cache[WholeNode] = field(default_factory=lambda: Cache(WholeNode))
    budgets: Cache[PodDisruptionBudget] = field(default_factory=lambda: Cache(PodDisruptionBudget))

    def resources(self) -> tuple[tuple[Cache[Any], Resource, str], ...]:
        """Returns each cache with its resource and the label selector that leaves out imported objects.

        Pods and nodes are not filtered: imported pods use capacity, and new budgets count them.
        """
        return (
            (self.deployments, owned_pods.DEPLOYMENTS, NOT_IMPORTED),
            (self.sets, owned_pods.REPLICA_SETS, NOT_IMPORTED),
            (self.pods, owned_pods.PODS, ""),
            (self.jobs, owned_pods.JOBS, NOT_IMPORTED),
            (self.nodes, NODES, ""),
            (self.budgets, BUDGETS, NOT_IMPORTED),
        )


def start_controllers(
    stack: contextlib.AsyncExitStack,
    client: Client,
    watched: Watched,
    clock: Clock,
    *,
    own_nodes: Sequence[WholeNode] = (),
) -> list[asyncio.Task[None]]:
    """Starts every controller; `stack` closes their resources, and must be closed after the tasks have ended.

    Pods may also be scheduled to `own_nodes`, which are not in the API.
    """
    deployments = Loop(Deployments(watched.deployments, watched.sets, watched.pods, clock), client, clock)
    deployments.watch(watched.deployments)
    deployments.watch(watched.sets, owners_of="Deployment")

    def on_pod(_change: object, old: WholePod | None, new: WholePod | None) -> None:
        # A Recreate waits for old pods to end, which no ReplicaSet shows.
        key = deployment_of(old, watched.sets) if old is not None and new is None else None
        if key is not None:
            deployments.queue.add(key)
        # Any change of a pod may change what the budgets of its namespace allow.
        pod = new or old
        for budget in watched.budgets.all():
            if pod is not None and budget.metadata.namespace == pod.metadata.namespace:
                budgets.queue.add(key_of(budget))

    replica_sets = Loop(ReplicaSets(watched.sets, watched.pods, clock), client, clock)
    replica_sets.watch(watched.sets)
    replica_sets.watch(watched.pods, owners_of="ReplicaSet")
    jobs = Loop(Jobs(watched.jobs, watched.pods, clock, first_backoff_s=_JOB_BACKOFF_S), client, clock)
    jobs.watch(watched.jobs)
    jobs.watch(watched.pods, owners_of="Job")
    scheduler = _scheduler_loop(client, watched, clock, own_nodes)
    budgets = Loop(Budgets(watched.budgets, watched.pods), client, clock)
    budgets.watch(watched.budgets)
    watched.pods.add_listener(on_pod)

    graph = Graph(client, clock)
    stack.push_async_callback(graph.close)
    collector, namespaces = GarbageCollector(graph, client, clock), NamespaceController(graph, client, clock)
    furnishing = Furnishing(graph, client.config.ca_data)
    furnishing_loop = Loop(furnishing, client, clock)
    watch_namespaces(furnishing_loop, graph, furnishing)
    quotas = Loop(Quotas(graph, clock, NOT_IMPORTED), client, clock)
    watch_quotas(quotas, graph)
    protection = Loop(VolumeProtection(graph), client, clock)
    watch_volumes(protection, graph)

    loops = (deployments, replica_sets, jobs, scheduler, budgets, furnishing_loop, quotas, protection)
    runs = (*(loop.run() for loop in loops), collector.run(), namespaces.run(), _discover_kinds(graph, clock))
    following = [
        follow_kind(client, cache, resource, clock, label_selector=labels)
        for cache, resource, labels in watched.resources()
    ]
    return [*following, *(asyncio.create_task(run) for run in runs)]


def start_scheduler(client: Client, watched: Watched, clock: Clock) -> list[asyncio.Task[None]]:
    """Starts only the scheduler, for a cluster whose other controllers run elsewhere."""
    loop = _scheduler_loop(client, watched, clock)
    followed = ((watched.pods, owned_pods.PODS), (watched.nodes, NODES))
    following = [follow_kind(client, cache, resource, clock) for cache, resource in followed]
    return [*following, asyncio.create_task(loop.run())]


def _scheduler_loop(client: Client, watched: Watched, clock: Clock, own_nodes: Sequence[WholeNode] = ()) -> Loop:
    """Returns the controller loop of the scheduler, woken by pods and by nodes with room."""
    loop = Loop(Scheduler(watched.pods, watched.nodes, clock, own_nodes), client, clock)
    loop.watch(watched.pods)

    def on_node(*_: object) -> None:
        """Queues the pods without a node, since a new or changed node may fit them."""
        for pod in watched.pods.all():
            if not pod.spec.get("nodeName"):
                loop.queue.add(key_of(pod))

    watched.nodes.add_listener(on_node)
    return loop


async def _discover_kinds(graph: Graph, clock: Clock) -> None:
    """Discovers the served kinds, at once when a CustomResourceDefinition changes.

    Otherwise a namespace could be removed while it has objects of a kind that is not known yet.
    """
    changed = asyncio.Event()
    graph.listen(lambda resource, _old, _new: changed.set() if resource == DEFINITIONS else None)
    while True:
        changed.clear()
        with contextlib.suppress(KubeError):
            await graph.discover()
        await wait_for_first(clock.sleep(_DISCOVERY_S), changed.wait())
