"""The controllers and the optional node that make an API server behave as a cluster.

In: the data folder of a running server, or a client. Out: the tasks of the controllers, which are clients of the server
over HTTPS; the caller must cancel them.
"""

from __future__ import annotations

import asyncio
import contextlib
import platform
import uuid
from collections.abc import AsyncIterator, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import structlog

from kubekit.api.meta_v1 import key_of
from kubekit.api.scheme import Resource
from kubekit.api.whole_v1 import (
    WholeDeployment,
    WholeEndpoints,
    WholeEndpointSlice,
    WholeJob,
    WholeNode,
    WholePod,
    WholeReplicaSet,
    WholeService,
)
from kubekit.api.workloads_v1 import PodDisruptionBudget
from kubekit.kube import calls
from kubekit.kube.api_errors import AlreadyExists, KubeError
from kubekit.kube.cache import Cache
from kubekit.kube.client import Client
from kubekit.kube.clock import Clock
from kubekit.kube.config import load as load_kubeconfig
from kubesandbox.apiserver.metadata import IMPORTED
from kubesandbox.apiserver.published.discovery_documents import VERSION
from kubesandbox.controllers import owned_pods
from kubesandbox.controllers.budgets_and_quotas import BUDGETS, Budgets, Quotas, watch_quotas
from kubesandbox.controllers.controller_loop import Loop, follow_kind
from kubesandbox.controllers.deployments import Deployments, deployment_of
from kubesandbox.controllers.endpoints import ENDPOINTS, SERVICES, SLICES, ServiceEndpoints, watch_services
from kubesandbox.controllers.garbage import GarbageCollector, VolumeProtection, watch_volumes
from kubesandbox.controllers.namespaces import Furnishing, NamespaceController, watch_namespaces
from kubesandbox.controllers.owner_graph import Graph
from kubesandbox.controllers.replica_sets_and_jobs import Jobs, ReplicaSets
from kubesandbox.controllers.scheduler import Scheduler
from kubesandbox.controllers.token_secrets import TokenSecrets, watch_token_secrets
from kubesandbox.sandbox_error import SandboxError
from kubesandbox.tasks import cancel_tasks, wait_for_first

log = structlog.get_logger("cluster")
NODE = "node-1"
# The agent runs images of this registry and declares all others ready; it does not exist, so none is run.
_NO_REGISTRY = "registry.invalid"
_LEASES = Resource(group="coordination.k8s.io", version="v1", kind="Lease", plural="leases", namespaced=True)
_LEASE_S = 40
NODES = Resource(group="", version="v1", kind="Node", plural="nodes", namespaced=False)
NOT_IMPORTED = f"!{IMPORTED}"
DEFINITIONS = Resource(
    group="apiextensions.k8s.io",
    version="v1",
    kind="CustomResourceDefinition",
    plural="customresourcedefinitions",
    namespaced=False,
)
# Interval of discovery for the garbage collector while no CustomResourceDefinition changes, in seconds.
_DISCOVERY_S = 5.0
# Back-off of a Job after its first failure, in seconds; shorter than Kubernetes' 10 s, for users who watch a sandbox.
_JOB_BACKOFF_S = 1.0


@contextlib.asynccontextmanager
async def run_controllers(data: Path, clock: Clock, *, node: bool) -> AsyncIterator[list[asyncio.Task[None]]]:
    """Runs the controllers of the server with the folder `data` until the block ends, and a node if `node`."""
    async with contextlib.AsyncExitStack() as stack:
        config = load_kubeconfig(str(data / "controllers.kubeconfig"))
        client = await stack.enter_async_context(Client(config, clock=clock))
        watched = Watched()
        if node:
            await _start_node(stack, client, watched, clock, data=data)
        tasks = start_controllers(stack, client, watched, clock)
        if node:
            tasks.append(asyncio.create_task(_renew_lease(client, clock), name="lease of the node"))
        stack.push_async_callback(cancel_tasks, tasks)
        yield tasks


async def until_over(stop: asyncio.Event, tasks: Iterable[asyncio.Task[None]]) -> None:
    """Waits for `stop`. Raises the exception of a task that ended, since none ends by itself.

    A cluster without its garbage collector would seem healthy, so it ends as a whole.
    """
    stopping = asyncio.create_task(stop.wait())
    try:
        completed, _ = await asyncio.wait({stopping, *tasks}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        stopping.cancel()
    for task in completed - {stopping}:
        # Raises the task's own exception, if it has one.
        task.result()
        raise SandboxError(f"a part of the cluster ended by itself: {task.get_name()}")


async def _start_node(
    stack: contextlib.AsyncExitStack, client: Client, watched: Watched, clock: Clock, *, data: Path
) -> None:
    """Starts the node agent and registers its Node; `stack` stops it."""
    # Imported here, since the agent takes a quarter of a second to import, which a server without a node does not need.
    from kubesandbox.node.agent import NodeAgent
    from kubesandbox.node.runners import ProcessRunner
    from kubesandbox.node.settings import NodeSettings
    from kubesandbox.node.unpacked_images import ImageStore

    images = ImageStore(data / "images", _NO_REGISTRY)
    server, ca = client.config.server, data / "pki" / "ca.crt"
    place = NodeSettings(data=data, runner=ProcessRunner(), images=images, server=server, ca=ca, completes_others=True)
    agent = NodeAgent(client, watched.pods, place, clock)
    stack.push_async_callback(agent.close)
    # As a kubelet registers itself; the Node of an earlier start stays as it is.
    labels = {"kubernetes.io/hostname": NODE, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64"}
    now, size = f"{clock.now():%Y-%m-%dT%H:%M:%SZ}", {"cpu": "8", "memory": "32Gi", "pods": "110"}
    ready = {"type": "Ready", "status": "True", "lastHeartbeatTime": now, "lastTransitionTime": now,
             "reason": "KubeletReady", "message": "kubelet is posting ready status"}  # fmt: skip
    addresses = [{"type": "Hostname", "address": NODE}, {"type": "InternalIP", "address": "127.0.0.1"}]
    status = {"conditions": [ready], "capacity": size, "allocatable": size, "addresses": addresses}
    status["nodeInfo"] = _node_info()
    with contextlib.suppress(AlreadyExists):
        await client.send(calls.create(NODES, {"metadata": {"name": NODE, "labels": labels}}))
        await client.send(calls.merge_patch(NODES, NODE, {"status": status}, subresource="status"))


def _node_info() -> dict[str, str]:
    """Returns the facts that a kubelet reports of its machine, with the version of the API server."""
    version = VERSION["gitVersion"]
    return {
        "architecture": "amd64",
        "bootID": str(uuid.uuid4()),
        "containerRuntimeVersion": "kubesandbox://1",
        "kernelVersion": platform.release(),
        "kubeProxyVersion": "",
        "kubeletVersion": version,
        "machineID": uuid.uuid4().hex,
        "operatingSystem": "linux",
        "osImage": "kubesandbox",
        "systemUUID": str(uuid.uuid4()),
    }


async def _renew_lease(client: Client, clock: Clock) -> None:
    """Renews the node's Lease as a kubelet does (pkg/kubelet/kubelet.go: of 40 seconds, every 10)."""
    while True:
        spec = {"holderIdentity": NODE, "leaseDurationSeconds": _LEASE_S, "renewTime": f"{clock.now():%FT%T.%fZ}"}
        lease = {"metadata": {"name": NODE, "namespace": "kube-node-lease"}, "spec": spec}
        try:
            await client.send(calls.apply(_LEASES, lease, field_manager="kubelet"))
        except KubeError as error:
            log.warning("the lease of the node was not renewed", error=str(error))
        await clock.sleep(_LEASE_S / 4)


@dataclass(frozen=True, slots=True, kw_only=True)
class Watched:
    """The caches of the controllers, which the node agent shares."""

    deployments: Cache[WholeDeployment] = field(default_factory=lambda: Cache(WholeDeployment))
    sets: Cache[WholeReplicaSet] = field(default_factory=lambda: Cache(WholeReplicaSet))
    pods: Cache[WholePod] = field(default_factory=lambda: Cache(WholePod))
    jobs: Cache[WholeJob] = field(default_factory=lambda: Cache(WholeJob))
    nodes: Cache[WholeNode] = field(default_factory=lambda: Cache(WholeNode))
    budgets: Cache[PodDisruptionBudget] = field(default_factory=lambda: Cache(PodDisruptionBudget))
    services: Cache[WholeService] = field(default_factory=lambda: Cache(WholeService))
    endpoints: Cache[WholeEndpoints] = field(default_factory=lambda: Cache(WholeEndpoints))
    slices: Cache[WholeEndpointSlice] = field(default_factory=lambda: Cache(WholeEndpointSlice))

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
            (self.services, SERVICES, NOT_IMPORTED),
            (self.endpoints, ENDPOINTS, NOT_IMPORTED),
            (self.slices, SLICES, NOT_IMPORTED),
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

    addressed = (watched.services, watched.pods, watched.endpoints, watched.slices)
    endpoints = Loop(ServiceEndpoints(*addressed), client, clock)
    watch_services(endpoints, addressed)

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
    token_secrets = Loop(TokenSecrets(graph, client.config.ca_data), client, clock)
    watch_token_secrets(token_secrets, graph)

    workloads = (deployments, replica_sets, jobs, scheduler, budgets)
    loops = (*workloads, furnishing_loop, quotas, protection, endpoints, token_secrets)
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
