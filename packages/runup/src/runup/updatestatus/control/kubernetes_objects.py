"""Reads the inputs for the status of a cluster without a ClusterVersion, live or from a dump.

Objects of Cluster API, Karpenter and the system-upgrade-controller are read where the server has their kinds. Where
several API servers run as pods, each is asked for its version through the pod's proxy; one that may not be asked has
the version of its image.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from kubekit.api import codec
from kubekit.api.core_v1 import ConfigMap, Node, Pod
from kubekit.api.meta_v1 import Object
from kubekit.api.scheme import Resource, resource_of
from kubekit.api.workloads_v1 import DaemonSet, Job, PodDisruptionBudget
from runup.api.platform_v1 import CertificateSigningRequest, VolumeAttachment
from runup.api.rollouts_v1 import ClusterMachine, MachineDeployment, NodeClaim, NodePool, Plan
from runup.rules.node_groups import is_leaving
from runup.updatestatus.control.component_objects import NODES_AT_MOST, ListRead
from runup.updatestatus.decide.alerts import Unreadable
from runup.updatestatus.decide.kubernetes.snapshot import (
    KUBE_SYSTEM,
    KUBEADM_CONFIG,
    PLAN_OF_JOB,
    KubernetesSnapshot,
    api_server_pods,
)

if TYPE_CHECKING:
    from kubekit.kube.client import Client
    from kubekit.kube.client_sync import SyncClient
    from kubekit.kube.clock import Clock
    from kubekit.kube.list_pages import Listing
    from runup.updatestatus.control.dump_objects import DumpObjects

# Each read with the field of the snapshot that it fills, in part or as a whole.
WATCHED = (
    ("nodes", ListRead(kind=Node)),
    ("pending_pods", ListRead(kind=Pod, field_selector="status.phase=Pending")),
    ("pod_disruption_budgets", ListRead(kind=PodDisruptionBudget)),
)
OTHERS = (
    ("server_pods", ListRead(kind=Pod, namespace=KUBE_SYSTEM, label_selector="component=kube-apiserver")),
    ("server_pods", ListRead(kind=Pod, namespace=KUBE_SYSTEM, label_selector="k8s-app=kube-apiserver")),
    ("proxies", ListRead(kind=DaemonSet, namespace=KUBE_SYSTEM, field_selector="metadata.name=kube-proxy")),
    (
        "kubeadm_config",
        ListRead(kind=ConfigMap, namespace=KUBE_SYSTEM, field_selector=f"metadata.name={KUBEADM_CONFIG}"),
    ),
    ("plans", ListRead(kind=Plan)),
    ("jobs", ListRead(kind=Job, label_selector=PLAN_OF_JOB)),
    ("job_pods", ListRead(kind=Pod, label_selector=PLAN_OF_JOB)),
    ("machine_deployments", ListRead(kind=MachineDeployment)),
    ("machines", ListRead(kind=ClusterMachine)),
    ("node_claims", ListRead(kind=NodeClaim)),
    ("node_pools", ListRead(kind=NodePool)),
    ("certificate_requests", ListRead(kind=CertificateSigningRequest)),
    ("volume_attachments", ListRead(kind=VolumeAttachment)),
)
# How often the others are read by a controller.
REFRESH_S = 30.0
# Fields of which nothing is reported if they could not be read.
_ONLY_MISSING = frozenset({"proxies", "volume_attachments"})
Answer = tuple[Object, ...] | Unreadable
_PROXIED_VERSION = f"/api/v1/namespaces/{KUBE_SYSTEM}/pods/https:{{pod}}:6443/proxy/version"


def versions_of(kind: type[Object]) -> tuple[Resource, ...]:
    """Returns the resources under which a kind may be served, the first that is served counts."""
    resource = resource_of(kind)
    older = [replace(resource, version="v1beta1")] if resource.group == "cluster.x-k8s.io" else []
    return (resource, *older)


def snapshot_fields(answers: list[tuple[str, Answer]]) -> dict[str, Any]:
    """Returns the fields of a snapshot from what was answered for each."""
    fields: dict[str, Any] = {}
    for field, answer in answers:
        known = fields.get(field, ())
        if isinstance(answer, Unreadable):
            fields[field] = () if field in _ONLY_MISSING else answer
        elif not isinstance(known, Unreadable):
            fields[field] = (*known, *answer)
    config = fields.pop("kubeadm_config", ())
    fields["kubeadm_config"] = config if isinstance(config, Unreadable) else next(iter(config), None)
    return fields


def observe(client: SyncClient, refused: tuple[type[Exception], ...]) -> KubernetesSnapshot:
    """Returns a snapshot of the cluster as it is now. Errors of the types `refused` become `Unreadable` in it."""
    from kubekit.kube import calls
    from kubekit.kube.api_errors import ApiError, NotFound

    problems: dict[str, str] = {}
    partly: dict[str, str] = {}

    def listed(field: str, read: ListRead) -> Answer:
        for resource in versions_of(read.kind):
            try:
                listing: Listing[Object] = client.listing(
                    read.kind,
                    read.namespace,
                    resource=resource,
                    label_selector=read.label_selector,
                    field_selector=read.field_selector,
                )
            except NotFound:
                continue
            except refused as error:
                return Unreadable(getattr(error, "message", str(error)))
            problems.update({f"{read.kind.__name__} {bad.key}": bad.problem for bad in listing.undecoded})
            if why := "; ".join(listing.incomplete):
                partly[field] = why
            return tuple(sorted(listing.items, key=lambda obj: (obj.metadata.namespace, obj.metadata.name)))
        # The server does not have the kind.
        return ()

    def answered(path: str) -> str:
        try:
            return client.send(calls.server_version(path))
        except (ApiError, codec.DecodeError):
            return ""

    fields = snapshot_fields([(field, listed(field, read)) for field, read in (*WATCHED, *OTHERS)])
    nodes: Answer = fields["nodes"]
    leaving = leaving_nodes(nodes if isinstance(nodes, tuple) else ())[:NODES_AT_MOST]
    on_nodes = [
        ("draining_pods", listed("draining_pods", ListRead(kind=Pod, field_selector=f"spec.nodeName={name}")))
        for name in leaving
    ]
    servers = fields["server_pods"] if isinstance(fields["server_pods"], tuple) else ()
    pods = [pod.metadata.name for pod in api_server_pods(servers)]
    answers = {pod: answered(_PROXIED_VERSION.format(pod=pod)) for pod in pods} if len(pods) > 1 else {}
    fields |= {key: value for key, value in snapshot_fields(on_nodes).items() if key == "draining_pods"}
    return KubernetesSnapshot(
        **fields,
        answer=answered("/version"),
        answers=answers,
        undecoded=tuple(sorted(problems.items())),
        incomplete=partly,
        drains_read=frozenset(leaving),
    )


class WatchedKubernetes:
    """Keeps the objects that are not watched up to date, and calls `on_change()` after a change.

    `lacking` says what has not been read yet. API servers are not asked one by one: that takes a right to their pods.
    """

    def __init__(self, client: Client, clock: Clock, on_change: Callable[[], None]) -> None:
        self._client, self._clock, self._on_change = client, clock, on_change
        self._fields: dict[str, Any] | None = None

    @property
    def lacking(self) -> str:
        """The inputs that have not been read yet."""
        return "" if self._fields is not None else "Objects of the programs that update nodes"

    @property
    def fields(self) -> dict[str, Any]:
        """The fields of a snapshot, with the answer to `/version`."""
        return self._fields or {}

    async def run(self) -> None:
        """Reads every `REFRESH_S` seconds until cancelled."""
        while True:
            await self.ask()
            await self._clock.sleep(REFRESH_S)

    async def ask(self) -> None:
        """Reads everything once."""
        from kubekit.kube import calls
        from kubekit.kube.api_errors import KubeError

        try:
            answer = await self._client.send(calls.server_version())
        except (KubeError, codec.DecodeError):
            answer = ""
        answers = [
            (
                field,
                await listed(
                    self._client,
                    read.kind,
                    read.namespace,
                    label_selector=read.label_selector,
                    field_selector=read.field_selector,
                ),
            )
            for field, read in OTHERS
        ]
        fields = {**snapshot_fields(answers), "answer": answer}
        if fields != self._fields:
            self._fields = fields
            self._on_change()


async def listed(
    client: Client, kind: type[Object], namespace: str = "", *, label_selector: str = "", field_selector: str = ""
) -> Answer:
    """Returns the objects of a kind in order, none if the server does not have it, or why they cannot be read."""
    from kubekit.kube.api_errors import KubeError, NotFound

    for resource in versions_of(kind):
        try:
            listing: Listing[Object] = await client.listing(
                kind, namespace, resource=resource, label_selector=label_selector, field_selector=field_selector
            )
            return tuple(sorted(listing.items, key=lambda obj: (obj.metadata.namespace, obj.metadata.name)))
        except NotFound:
            continue
        except (KubeError, codec.DecodeError) as error:
            return Unreadable(str(error))
    return ()


def leaving_nodes(nodes: tuple[Any, ...]) -> list[str]:
    """Returns the names of the nodes whose pods are moved elsewhere."""
    return [node.metadata.name for node in nodes if is_leaving(node)]


def of_dump(objects: DumpObjects, version: str) -> KubernetesSnapshot:
    """Returns the snapshot of a dump's objects; `version` is that of the API server, empty if it is not known."""
    pods, nodes, maps = objects.known(Pod), objects.known(Node), objects.of(ConfigMap)
    leaving = set(leaving_nodes(nodes if isinstance(nodes, tuple) else ()))

    def selected(wanted: Callable[[Pod], bool], *, matters: bool = True) -> tuple[Pod, ...] | Unreadable:
        if isinstance(pods, Unreadable):
            return pods if matters else ()
        return tuple(pod for pod in pods if wanted(pod))

    plan_jobs = objects.known(Job)
    budgets = objects.known(PodDisruptionBudget)
    return KubernetesSnapshot(
        nodes=nodes,
        answer=version,
        server_pods=selected(lambda pod: pod.metadata.namespace == KUBE_SYSTEM, matters=False),
        proxies=tuple(each for each in objects.of(DaemonSet) if each.metadata.name == "kube-proxy"),
        kubeadm_config=next(
            (each for each in maps if (each.metadata.namespace, each.metadata.name) == (KUBE_SYSTEM, KUBEADM_CONFIG)),
            None,
        ),
        pending_pods=selected(lambda pod: pod.status.phase == "Pending"),
        draining_pods=selected(lambda pod: pod.spec.node_name in leaving, matters=bool(leaving)),
        pod_disruption_budgets=budgets if leaving or isinstance(budgets, tuple) else (),
        jobs=plan_jobs if isinstance(plan_jobs, Unreadable) else tuple(j for j in plan_jobs if _is_of_plan(j)),
        job_pods=selected(_is_of_plan),
        certificate_requests=objects.of(CertificateSigningRequest),
        volume_attachments=objects.of(VolumeAttachment),
        incomplete=dict(_incomplete(objects)),
        plans=objects.known(Plan),
        machine_deployments=objects.known(MachineDeployment),
        machines=objects.known(ClusterMachine),
        node_claims=objects.known(NodeClaim),
        node_pools=objects.known(NodePool),
    )


def _is_of_plan(obj: Object) -> bool:
    return PLAN_OF_JOB in obj.metadata.labels


def _incomplete(objects: DumpObjects) -> Iterator[tuple[str, str]]:
    """Yields the fields of which the dump holds only a part, each with the reason."""
    for field, kind in (("nodes", Node), ("pending_pods", Pod), ("pod_disruption_budgets", PodDisruptionBudget)):
        if why := objects.why_partly(kind):
            yield field, why
