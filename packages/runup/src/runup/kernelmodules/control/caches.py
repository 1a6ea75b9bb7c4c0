"""The caches of the kernel-module preflight, and the mapping of each change to the validations that it affects."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from msgspec.structs import replace

from kubekit.api.core_v1 import Node, NodeStatus, NodeSystemInfo
from kubekit.api.meta_v1 import Object, ObjectMeta
from kubekit.api.whole_v1 import WholeJob, WholePod
from kubekit.kube.cache import Cache, Change, differs_beyond_version
from kubekit.kube.client import Client
from kubekit.kube.clock import Clock
from kubekit.kube.watch import Reflector
from kubekit.rules.owners import controller_of
from runup.api.build_v1 import Build
from runup.api.kmm_v1beta1 import Module
from runup.api.kmm_v1beta2 import PreflightValidation, PreflightValidationOCP
from runup.kernelmodules.decide import runs


def trim_node(node: Node) -> Node:
    """Returns a node with only its labels, by which Modules select, and the fields that say which kernel it runs.

    The kernel's version says whether it is a real-time kernel, or one with large pages (`flavours.flavour_of`).
    Heartbeats change none of these.
    """
    info = node.status.node_info
    info = NodeSystemInfo(architecture=info.architecture, kernel_version=info.kernel_version)
    metadata = ObjectMeta(name=node.metadata.name, labels=node.metadata.labels)
    return Node(metadata=metadata, status=NodeStatus(node_info=info))


def trim_job(job: WholeJob) -> WholeJob:
    """Returns a Job without its template, which contains a Dockerfile."""
    return replace(job, spec=replace(job.spec, template={}))


def trim_pod(pod: WholePod) -> WholePod:
    """Returns a pod with its container statuses, its metadata, and of its annotations only the validation's name."""
    status_fields = ("initContainerStatuses", "containerStatuses")
    metadata = replace(
        pod.metadata,
        annotations={
            key: pod.metadata.annotations[key]
            for key in (runs.VALIDATION_ANNOTATION,)
            if key in pod.metadata.annotations
        },
    )
    return WholePod(metadata=metadata, status={key: pod.status[key] for key in status_fields if key in pod.status})


@dataclass(frozen=True, slots=True, kw_only=True)
class Caches:
    """The caches of one cluster. `jobs`, `pods` and `builds` hold objects with our label.

    `builds` is filled only if the cluster serves OpenShift Builds.
    """

    ocps: Cache[PreflightValidationOCP] = field(default_factory=lambda: Cache(PreflightValidationOCP))
    validations: Cache[PreflightValidation] = field(default_factory=lambda: Cache(PreflightValidation))
    modules: Cache[Module] = field(default_factory=lambda: Cache(Module))
    nodes: Cache[Node] = field(default_factory=lambda: Cache(Node, keep=trim_node))
    jobs: Cache[WholeJob] = field(default_factory=lambda: Cache(WholeJob, keep=trim_job))
    pods: Cache[WholePod] = field(default_factory=lambda: Cache(WholePod, keep=trim_pod))
    builds: Cache[Build] = field(default_factory=lambda: Cache(Build))

    def all(self) -> tuple[Cache[Any], ...]:
        """Returns the caches of the kinds that every cluster serves."""
        return self.ocps, self.validations, self.modules, self.nodes, self.jobs, self.pods

    def waiting(self) -> str:
        """Returns the first kind that was neither listed nor failed to be listed yet; "" if there is none."""
        return next((cache.kind.__name__ for cache in self.all() if not cache.synced and cache.error is None), "")

    def names(self) -> list[str]:
        """Returns the names of all validations, sorted."""
        return sorted(
            {validation.metadata.name for cache in (self.ocps, self.validations) for validation in cache.all()}
        )

    def on_change(
        self,
        on_name: Callable[[str], None],
        everyone: Callable[[], None],
        requested: Callable[[], None],
        edited: Callable[[str], None],
    ) -> None:
        """Calls `one(name)` for each change that affects one validation, and `everyone()` for any other change.

        Calls `requested()` before that if a validation was created or its spec edited, and `edited(namespace)` if the
        spec of a Module there was edited.
        """

        def request(_change: Change, old: Object | None, new: Object | None) -> None:
            if new is None or controller_of(new.metadata.owner_references):
                return  # a controller created or edited it, as part of an earlier request
            if old is None or _asks_for(old) != _asks_for(new):
                requested()

        def validation(_change: Change, old: Object | None, new: Object | None) -> None:
            for version in filter(None, (old, new)):
                on_name(version.metadata.name)
                for owner in version.metadata.owner_references:
                    on_name(owner.name)

        def run(_change: Change, old: Object | None, new: Object | None) -> None:
            for run_object in filter(None, (old, new)):
                on_name(run_object.metadata.annotations.get(runs.VALIDATION_ANNOTATION, ""))

        def on_node_change(_change: Change, old: Object | None, new: Object | None) -> None:
            # A heartbeat of a trimmed node changes only its resourceVersion.
            if differs_beyond_version(old, new):
                everyone()

        def module(_change: Change, old: Object | None, new: Object | None) -> None:
            if new is not None and (old is None or _asks_for(old) != _asks_for(new)):
                edited(new.metadata.namespace)

        self.modules.add_listener(module)
        for asking in (self.ocps, self.validations):
            asking.add_listener(request)
        # A release may have several PreflightValidations, and each reads the driver toolkit from its parent's status.
        self.ocps.add_listener(lambda *_: everyone())
        self.validations.add_listener(validation)
        for followed in (self.jobs, self.pods, self.builds):
            followed.add_listener(run)
        for cluster in (self.modules, self.nodes):
            cluster.add_listener(on_node_change)
        for cache in (*self.all(), self.builds):
            cache.add_state_listener(everyone)


def reflectors(client: Client, caches: Caches, clock: Clock) -> tuple[Reflector[Any], ...]:
    """Returns the reflectors that fill the caches of the kinds that every cluster serves."""
    label_selector = runs.TYPE_LABEL
    return (
        Reflector(client, PreflightValidationOCP, caches.ocps, clock=clock),
        Reflector(client, PreflightValidation, caches.validations, clock=clock),
        Reflector(client, Module, caches.modules, clock=clock),
        Reflector(client, Node, caches.nodes, clock=clock),
        Reflector(client, WholeJob, caches.jobs, label_selector=label_selector, clock=clock),
        Reflector(client, WholePod, caches.pods, label_selector=label_selector, clock=clock),
    )


def builds_reflector(client: Client, caches: Caches, clock: Clock) -> Reflector[Build]:
    """Returns the reflector that fills the cache of Builds."""
    return Reflector(client, Build, caches.builds, label_selector=runs.TYPE_LABEL, clock=clock)


def _asks_for(obj: Object) -> tuple[str, int]:
    return obj.metadata.uid, obj.metadata.generation
