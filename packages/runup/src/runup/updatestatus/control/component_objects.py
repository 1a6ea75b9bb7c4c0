"""Reads what shows whether the components that carry out an update can act: their pods, Deployments and leases.

Also the certificate requests of kubelets, and attachments of volumes. A command reads them once, the controller every
minute while an update is under way: leases change too often for a watch, and none of it matters in between.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from kubekit.api import codec
from kubekit.api.core_v1 import Event, Pod
from kubekit.api.meta_v1 import Object
from kubekit.api.workloads_v1 import Deployment, Lease
from kubekit.kube.api_errors import ApiError, KubeError
from runup.api.machineconfig_v1 import MachineConfigNode
from runup.api.platform_v1 import CertificateSigningRequest, VolumeAttachment
from runup.rules.refused_writes import NOT_CREATED
from runup.rules.update_components import (
    DAEMON,
    DEPLOYED_IN,
    LEASES,
    MACHINE_CONFIG_NAMESPACE,
    NAMESPACES,
    NOT_OF_DAEMON_SETS,
)
from runup.updatestatus.decide.alerts import Unreadable
from runup.updatestatus.decide.snapshot import Snapshot

if TYPE_CHECKING:
    # A command has the blocking client and the controller the other one: neither loads both.
    from kubekit.kube.client import Client
    from kubekit.kube.client_sync import SyncClient
    from kubekit.kube.clock import Clock

REFRESH_S = 60.0
# How often to check whether an update has begun.
_STEP_S = 5.0
NODES_AT_MOST = 30


class ListRead(msgspec.Struct, frozen=True, kw_only=True):
    """A list to read."""

    kind: type[Object]
    namespace: str = ""
    label_selector: str = ""
    field_selector: str = ""


# Pods that run on every node are read of nodes that are being updated, not of all.
_NOT_ON_EACH_NODE = f"k8s-app notin ({DAEMON}, kube-rbac-proxy-crio)"
READS = (
    *(
        ListRead(
            kind=Pod,
            namespace=namespace,
            label_selector=_NOT_ON_EACH_NODE if namespace == MACHINE_CONFIG_NAMESPACE else "",
        )
        for namespace in NAMESPACES
    ),
    *(ListRead(kind=Deployment, namespace=namespace) for namespace in DEPLOYED_IN),
    *(ListRead(kind=Lease, namespace=space, field_selector=f"metadata.name={name}") for space, name in LEASES),
    ListRead(kind=CertificateSigningRequest),
    ListRead(kind=VolumeAttachment),
    ListRead(kind=Event, field_selector=f"reason={NOT_CREATED}"),
)


class ComponentObjects(msgspec.Struct, frozen=True, kw_only=True):
    """The answers; Deployments, leases, attachments and events that could not be read are only missing."""

    pods: tuple[Pod, ...] | Unreadable | None = None
    deployments: tuple[Deployment, ...] = ()
    leases: tuple[Lease, ...] = ()
    certificate_requests: tuple[CertificateSigningRequest, ...] | Unreadable | None = None
    volume_attachments: tuple[VolumeAttachment, ...] = ()
    machine_config_nodes: tuple[MachineConfigNode, ...] = ()
    events: tuple[Event, ...] = ()

    def within(self, snapshot: Snapshot) -> Snapshot:
        """Returns the snapshot with these objects."""
        return msgspec.structs.replace(
            snapshot,
            component_pods=self.pods,
            component_deployments=self.deployments,
            leases=self.leases,
            certificate_requests=self.certificate_requests,
            volume_attachments=self.volume_attachments,
            machine_config_nodes=self.machine_config_nodes,
            events=self.events,
        )


def _reads(nodes: Sequence[str], namespaces: Sequence[str]) -> tuple[ListRead, ...]:
    """Returns all lists to read while these nodes are being updated: their MachineConfigNodes, and pods of operators.

    `namespaces` are those of operators that need attention.
    """
    return (
        *READS,
        *(ListRead(kind=Pod, namespace=each, label_selector=NOT_OF_DAEMON_SETS) for each in namespaces),
        *(ListRead(kind=MachineConfigNode, field_selector=f"metadata.name={name}") for name in nodes[:NODES_AT_MOST]),
    )


def read_once(
    client: SyncClient, nodes: Sequence[str], namespaces: Sequence[str], refused: tuple[type[ApiError], ...]
) -> ComponentObjects:
    """Returns the objects now, while `nodes` are being updated, with the pods of `namespaces`.

    Errors of the types `refused` become answers, others are raised.
    """

    def listed(read: ListRead) -> tuple[Object, ...] | Unreadable:
        try:
            return tuple(
                client.listing(
                    read.kind,
                    read.namespace,
                    label_selector=read.label_selector,
                    field_selector=read.field_selector,
                ).items
            )
        except refused as error:
            return Unreadable(error.message)

    return _objects([(read, listed(read)) for read in _reads(nodes, namespaces)])


def _objects(answers: list[tuple[ListRead, tuple[Object, ...] | Unreadable]]) -> ComponentObjects:
    def of(kind: type[Object]) -> Iterator[tuple[Object, ...] | Unreadable]:
        return (answer for read, answer in answers if read.kind is kind)

    def known(kind: type[Object]) -> tuple[Any, ...]:
        return tuple(obj for answer in of(kind) if isinstance(answer, tuple) for obj in answer)

    def all_of(kind: type[Object]) -> tuple[Any, ...] | Unreadable:
        return next((answer for answer in of(kind) if isinstance(answer, Unreadable)), None) or known(kind)

    return ComponentObjects(
        pods=all_of(Pod),
        deployments=known(Deployment),
        leases=known(Lease),
        certificate_requests=all_of(CertificateSigningRequest),
        volume_attachments=known(VolumeAttachment),
        machine_config_nodes=known(MachineConfigNode),
        events=known(Event),
    )


class WatchedComponents:
    """Keeps `state` up to date while `follow(True)`, and calls `on_change()` after a change."""

    def __init__(self, client: Client, clock: Clock, on_change: Callable[[], None]) -> None:
        self.state = ComponentObjects()
        self._client = client
        self._clock = clock
        self._on_change = on_change
        self._wanted = False
        self._nodes: Sequence[str] = ()
        self._namespaces: Sequence[str] = ()
        self._asked = float("-inf")

    def follow(self, updating: bool, nodes: Sequence[str] = (), namespaces: Sequence[str] = ()) -> None:
        """Sets whether an update is under way, of which nodes, and in which further namespaces pods are read.

        Otherwise nothing is read, and the last answers are dropped.
        """
        self._wanted, self._nodes, self._namespaces = updating, nodes, namespaces
        if not updating:
            self.state = ComponentObjects()

    async def run(self) -> None:
        """Reads every `REFRESH_S` seconds until cancelled."""
        while True:
            if self._wanted and self._clock.monotonic() - self._asked >= REFRESH_S:
                self._asked = self._clock.monotonic()
                await self.ask()
            await self._clock.sleep(_STEP_S)

    async def ask(self) -> None:
        """Reads everything once."""
        answers: list[tuple[ListRead, tuple[Object, ...] | Unreadable]] = []
        for read in _reads(self._nodes, self._namespaces):
            try:
                listing = await self._client.listing(
                    read.kind,
                    read.namespace,
                    label_selector=read.label_selector,
                    field_selector=read.field_selector,
                )
                answers.append((read, tuple(listing.items)))
            except (KubeError, codec.DecodeError) as error:
                answers.append((read, Unreadable(str(error))))
        state = _objects(answers)
        if self._wanted and state != self.state:
            self.state = state
            self._on_change()
