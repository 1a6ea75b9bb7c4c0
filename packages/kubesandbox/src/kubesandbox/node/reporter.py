"""The reporter of one pod: its status, at most one patch a change, and Events.

The status is written in the background: if containers start, end and restart while the API server is unreachable, one
later patch has the current state. Conditions that others set are kept.
"""

from __future__ import annotations

import asyncio
from typing import Literal

import structlog
from msgspec import structs

from kubekit.api.codec import DecodeError
from kubekit.api.meta_v1 import key_of
from kubekit.api.whole_v1 import WholePod
from kubekit.kube import calls
from kubekit.kube.api_errors import Conflict, KubeError, NotFound, Transient
from kubekit.kube.client import Client
from kubekit.kube.clock import Clock
from kubesandbox.controllers.controller_loop import Reports
from kubesandbox.controllers.owned_pods import PODS, event_about
from kubesandbox.node import pod_status as podstatus
from kubesandbox.node.pod_status import ContainerRecord, StatusInput, Verdict, resumed_record
from kubesandbox.node.podspec import JSON, ContainerSpec, containers, init_containers

EventType = Literal["Normal", "Warning"]
_AGAIN_S = 0.5
log = structlog.get_logger("node")


class Reporter:
    """The records of one pod's containers, which it publishes to the cluster."""

    def __init__(self, pod: WholePod, client: Client, clock: Clock, host_ip: str) -> None:
        self.pod = pod
        self.verdict: Verdict | None = None
        self.started_at = podstatus.start_time(pod) or clock.now()
        self._client, self._clock, self._host_ip = client, clock, host_ip
        specs = (*init_containers(pod), *containers(pod))
        self._inits = tuple(spec.name for spec in specs if spec.is_init)
        self._names = tuple(spec.name for spec in specs if not spec.is_init)
        self._records = {spec.name: resumed_record(pod, spec.name, spec.image) for spec in specs}
        self._published: JSON = {}
        self._publishing = asyncio.Lock()
        self._changed = asyncio.Event()
        self._events = Reports()

    def record(self, name: str) -> ContainerRecord:
        """Returns the current record of a container."""
        return self._records[name]

    def with_status(self) -> WholePod:
        """Returns the pod with the status as it is known here, which the API server may not have yet."""
        return structs.replace(self.pod, status=self._compute_status())

    def put(self, *records: ContainerRecord) -> None:
        """Updates records; the status is written soon afterwards."""
        self._records |= {record.name: record for record in records}
        self._changed.set()

    def all_wait(self) -> None:
        """Sets all containers that have not run yet to waiting, for the pod's volumes or for the init containers."""
        reason = "PodInitializing" if self._inits else "ContainerCreating"
        self.put(*(record.waiting(reason) for record in self._records.values() if record.latest_end is None))

    async def keep_publishing(self) -> None:
        """Writes the status after each change, until cancelled."""
        while True:
            await self._changed.wait()
            self._changed.clear()
            await self.publish()

    async def publish(self) -> None:
        """Writes the status if it changed; retries until it is written or the pod is gone."""
        async with self._publishing:
            while (status := self._compute_status()) != self._published:
                try:
                    # The uid is a precondition: another pod of the same name is a Conflict.
                    metadata = self.pod.metadata
                    patch = {"metadata": {"uid": metadata.uid}, "status": status}
                    await self._client.send(
                        calls.merge_patch(PODS, metadata.name, patch, metadata.namespace, subresource="status")
                    )
                except (NotFound, Conflict):
                    return  # the pod is gone, or another one has its name
                except (Transient, DecodeError):
                    await self._clock.sleep(_AGAIN_S)  # for example, the server's disk is full
                except KubeError as error:
                    log.warning("status refused", pod=str(key_of(self.pod)), error=str(error))
                    return
                else:
                    self._published = status

    def event(self, type_: EventType, reason: str, message: str, spec: ContainerSpec | None) -> None:
        """Creates an Event in the background, about the pod itself if `spec` is None."""
        part = "" if spec is None else f"spec.{'initContainers' if spec.is_init else 'containers'}{{{spec.name}}}"
        source = {"component": "kubelet", "host": self.pod.spec.get("nodeName", "")}
        report = event_about(
            self.pod, PODS, type_=type_, reason=reason, message=message, source=source, now=self._clock.now(),
            field_path=part,
        )  # fmt: skip

        self._events.start(self._client, report)

    def _compute_status(self) -> JSON:
        inputs = StatusInput(
            pod=self.pod,
            containers=tuple(self._records[name] for name in self._names),
            inits=tuple(self._records[name] for name in self._inits),
            host_ip=self._host_ip,
            started_at=self.started_at,
            conditions=tuple(self._published.get("conditions") or ()),
            verdict=self.verdict,
        )
        return podstatus.pod_status(inputs, now=self._clock.now())
