"""What the kernel-module preflight keeps in memory of a cluster, and which names a change bears on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from msgspec.structs import replace

from kubekit.api.core_v1 import Node, NodeStatus, NodeSystemInfo
from kubekit.api.meta_v1 import Object, ObjectMeta
from kubekit.api.whole_v1 import WholeJob, WholePod
from kubekit.kube.cache import Cache, Change
from kubekit.kube.client import Client
from kubekit.kube.clock import Clock
from kubekit.kube.watch import Reflector
from runup.api.build_v1 import Build
from runup.api.kmm_v1beta1 import Module
from runup.api.kmm_v1beta2 import PreflightValidation, PreflightValidationOCP
from runup.kernelmodules.decide import runs


def trim_node(node: Node) -> Node:
    """Labels, which Modules select by, and the architecture: a heartbeat then changes nothing."""
    info = NodeSystemInfo(architecture=node.status.node_info.architecture)
    metadata = ObjectMeta(name=node.metadata.name, labels=node.metadata.labels)
    return Node(metadata=metadata, status=NodeStatus(node_info=info))


def trim_job(job: WholeJob) -> WholeJob:
    """Without the template, in which there is a Dockerfile."""
    return replace(job, spec=replace(job.spec, template={}))


def trim_pod(pod: WholePod) -> WholePod:
    """What its containers came to, and whose it is."""
    kept = ("initContainerStatuses", "containerStatuses")
    metadata = replace(pod.metadata, annotations=_ours(pod.metadata.annotations))
    return WholePod(metadata=metadata, status={key: pod.status[key] for key in kept if key in pod.status})


def _ours(annotations: dict[str, str]) -> dict[str, str]:
    return {key: annotations[key] for key in (runs.VALIDATION_ANNOTATION,) if key in annotations}


@dataclass(frozen=True, slots=True)
class Caches:
    """`jobs`, `pods` and `builds` are those with our label; `builds` is followed where the cluster has them."""

    ocps: Cache[PreflightValidationOCP] = field(default_factory=lambda: Cache(PreflightValidationOCP))
    validations: Cache[PreflightValidation] = field(default_factory=lambda: Cache(PreflightValidation))
    modules: Cache[Module] = field(default_factory=lambda: Cache(Module))
    nodes: Cache[Node] = field(default_factory=lambda: Cache(Node, keep=trim_node))
    jobs: Cache[WholeJob] = field(default_factory=lambda: Cache(WholeJob, keep=trim_job))
    pods: Cache[WholePod] = field(default_factory=lambda: Cache(WholePod, keep=trim_pod))
    builds: Cache[Build] = field(default_factory=lambda: Cache(Build))

    def all(self) -> tuple[Cache[Any], ...]:
        """Those that every cluster has."""
        return self.ocps, self.validations, self.modules, self.nodes, self.jobs, self.pods

    def waiting(self) -> str:
        """The first kind of which it is not known yet what it comes to, not even that it cannot be read; or nothing."""
        return next((each.kind.__name__ for each in self.all() if not each.synced and each.error is None), "")

    def names(self) -> list[str]:
        """Every name that there is a validation of."""
        return sorted({each.metadata.name for cache in (self.ocps, self.validations) for each in cache.all()})

    def on_change(
        self, one: Callable[[str], None], everyone: Callable[[], None], requested: Callable[[], None]
    ) -> None:
        """Call `one(name)` where a change bears on one validation, else `everyone()`.

        `requested()` comes first where somebody made a validation, or edited one.
        """

        def request(_change: Change, old: Object | None, new: Object | None) -> None:
            if new is None or any(each.controller for each in new.metadata.owner_references):
                return  # what an object of somebody's makes is part of that request
            if old is None or _asks_for(old) != _asks_for(new):
                requested()

        def validation(_change: Change, old: Object | None, new: Object | None) -> None:
            for each in filter(None, (old, new)):
                one(each.metadata.name)
                for owner in each.metadata.owner_references:
                    one(owner.name)

        def run(_change: Change, old: Object | None, new: Object | None) -> None:
            for each in filter(None, (old, new)):
                one(each.metadata.annotations.get(runs.VALIDATION_ANNOTATION, ""))

        def other(_change: Change, old: Object | None, new: Object | None) -> None:
            if old is None or new is None or _unversioned(old) != _unversioned(new):
                everyone()

        for asking in (self.ocps, self.validations):
            asking.add_listener(request)
        # The release has several PreflightValidations, and each of them looks at its parent.
        self.ocps.add_listener(lambda *_: everyone())
        self.validations.add_listener(validation)
        for followed in (self.jobs, self.pods, self.builds):
            followed.add_listener(run)
        for cluster in (self.modules, self.nodes):
            cluster.add_listener(other)
        for cache in (*self.all(), self.builds):
            cache.add_state_listener(everyone)


def reflectors(client: Client, caches: Caches, clock: Clock) -> tuple[Reflector[Any], ...]:
    """What fills the caches that every cluster has."""
    ours = runs.TYPE_LABEL
    return (
        Reflector(client, PreflightValidationOCP, caches.ocps, clock=clock),
        Reflector(client, PreflightValidation, caches.validations, clock=clock),
        Reflector(client, Module, caches.modules, clock=clock),
        Reflector(client, Node, caches.nodes, clock=clock),
        Reflector(client, WholeJob, caches.jobs, label_selector=ours, clock=clock),
        Reflector(client, WholePod, caches.pods, label_selector=ours, clock=clock),
    )


def builds_reflector(client: Client, caches: Caches, clock: Clock) -> Reflector[Build]:
    """What fills the cache of Builds."""
    return Reflector(client, Build, caches.builds, label_selector=runs.TYPE_LABEL, clock=clock)


def _asks_for(obj: Object) -> tuple[str, int]:
    return obj.metadata.uid, obj.metadata.generation


def _unversioned(obj: Object) -> Object:
    return replace(obj, metadata=replace(obj.metadata, resource_version=""))
