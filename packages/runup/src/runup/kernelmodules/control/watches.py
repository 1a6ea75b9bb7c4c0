"""The caches of the process and their reflectors, and watches beyond them, for what builds and answers depend on.

Images are built by OpenShift Builds if the cluster serves them, else by Jobs. Of Secrets and ConfigMaps only the
metadata is requested, so that one that appears is read at once: what an answer needs of them is read by name.
ServiceAccounts are watched with their pull secrets: those of `builder` count for a Module that names none. Nothing is
watched while there is no validation. What may not be watched is looked at every three minutes, like registries.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from msgspec.structs import replace

from kubekit.api.codec import DecodeError
from kubekit.api.core_v1 import ConfigMap, Node, NodeStatus, NodeSystemInfo, ServiceAccount
from kubekit.api.meta_v1 import NamespacedName, Object, ObjectMeta, key_of
from kubekit.api.scheme import Resource, resource_of
from kubekit.api.whole_v1 import WholeJob, WholePod
from kubekit.kube import api_errors, calls
from kubekit.kube.cache import Cache, Change, differs_beyond_version
from kubekit.kube.client import Client
from kubekit.kube.clock import Clock
from kubekit.kube.watch import Reflector
from kubekit.rules.owners import controller_of
from runup.api.build_v1 import Build
from runup.api.kmm_v1beta1 import Module
from runup.api.kmm_v1beta2 import PreflightValidation, PreflightValidationOCP
from runup.kernelmodules.control.answer_cache import SECRETS
from runup.kernelmodules.control.registries import BUILDER
from runup.kernelmodules.decide import module_state, runs, validation_status
from runup.process.leader_election import cancel, restart_on_error


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
        """Returns the first kind that was neither listed nor failed to be listed yet; "" if it does not exist."""
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


BUILDS = resource_of(Build)
AGAIN_S, AFTER_ERROR_S = 600.0, 5.0


class Runners:
    """The way to build images. `current` is None until discovery has answered and the existing runs are listed."""

    def __init__(
        self, client: Client, caches: Caches, clock: Clock, on_change: Callable[[], None], *, builds: bool
    ) -> None:
        self._client = client
        self._caches = caches
        self._clock = clock
        self._on_change = on_change
        self._allowed = builds
        self._found: runs.Runner | None = None if builds else runs.Runner.JOBS

    @property
    def current(self) -> runs.Runner | None:
        """The kind of object that builds images, None if it is not known yet."""
        cache = self._caches.builds if self._found is runs.Runner.BUILDS else self._caches.jobs
        return self._found if cache.synced else None

    async def run(self) -> None:
        """Asks the API server for Builds every `AGAIN_S` (`AFTER_ERROR_S` after an error), until cancelled."""
        watches: list[asyncio.Task[None]] = []
        try:
            while self._allowed:
                runner = await self._ask_for_builds()
                if runner is not None and runner is not self._found:
                    self._found = runner
                    self._on_change()
                if self._found is runs.Runner.BUILDS and not watches:
                    reflector = builds_reflector(self._client, self._caches, self._clock)
                    watches.append(asyncio.create_task(restart_on_error(reflector.run, self._clock)))
                await self._clock.sleep(AGAIN_S if runner is not None else AFTER_ERROR_S)
        finally:
            await cancel(watches)

    async def _ask_for_builds(self) -> runs.Runner | None:
        """Returns the build system of this cluster, or None if it is unknown."""
        try:
            served = await self._client.send(calls.list_kinds(BUILDS.api_version))
        except api_errors.NotFound:
            return runs.Runner.JOBS
        except (api_errors.KubeError, DecodeError):
            return None
        # OpenShift's Build capability is optional, so the group version may be served without Builds.
        return runs.Runner.BUILDS if any(resource.plural == BUILDS.plural for resource in served) else runs.Runner.JOBS


ACCOUNTS = resource_of(ServiceAccount)
KINDS = (SECRETS, resource_of(ConfigMap), ACCOUNTS)
# Half an hour to an hour, as each watch that ends costs a request.
WATCH_S = 1800


class InputWatches:
    """The watches of one process. `changed` is called with kind and name of each object that changes.

    A pull secret of a ServiceAccount `builder` is also a change of that account.
    """

    def __init__(
        self, client: Client, caches: Caches, clock: Clock, changed: Callable[[str, NamespacedName], None]
    ) -> None:
        self._client = client
        self._caches = caches
        self._clock = clock
        self._changed = changed
        self._watched: dict[tuple[str, str], asyncio.Task[None]] = {}
        # The names of the builders' pull secrets, by namespace.
        self._pull_secrets: dict[str, frozenset[str]] = {}
        self._woken = asyncio.Event()
        for cache in (caches.modules, caches.validations, caches.ocps):
            cache.add_listener(lambda *_: self._woken.set())

    async def run(self) -> None:
        """Follows the namespaces of the Modules until cancelled."""
        try:
            while True:
                self._woken.clear()
                await self._watch_namespaces(self._namespaces())
                await self._woken.wait()
        finally:
            await cancel(tuple(self._watched.values()))

    def _namespaces(self) -> Iterable[str]:
        if not self._caches.names():
            return ()
        return {module.metadata.namespace for module in validation_status.live_modules(self._caches.modules.all())}

    async def _watch_namespaces(self, namespaces: Iterable[str]) -> None:
        """Watches the inputs in these namespaces, and stops to watch those in others."""
        wanted_watches = {(resource.kind, namespace): resource for resource in KINDS for namespace in namespaces}
        unwanted = [self._watched.pop(key) for key in [*self._watched] if key not in wanted_watches]
        for namespace in self._pull_secrets.keys() - {namespace for _, namespace in wanted_watches}:
            del self._pull_secrets[namespace]
        await cancel(unwanted)
        for (kind, namespace), resource in wanted_watches.items():
            if (kind, namespace) not in self._watched:
                reflector = self._reflector(resource, namespace)
                task = asyncio.create_task(restart_on_error(reflector.run, self._clock))
                self._watched[(kind, namespace)] = task

    def _reflector(self, resource: Resource, namespace: str) -> Reflector[Any]:
        """Returns the watch of one kind in one namespace, which reports each change of an object."""
        kind = ServiceAccount if resource == ACCOUNTS else Object
        cache: Cache[Any] = Cache(kind, keep=_keep_name_only)
        on_change = self._account_changed if resource == ACCOUNTS else self._object_changed(resource)
        cache.add_listener(on_change)
        return Reflector(
            self._client, kind, cache, namespace=namespace, clock=self._clock, resource=resource, watch_s=WATCH_S
        )

    def _object_changed(self, resource: Resource) -> Callable[[object, Object | None, Object | None], None]:
        """Returns a listener that reports changed objects, and the builder's account with its pull secrets."""

        def report_change(_change: object, old: Object | None, new: Object | None) -> None:
            """Reports the changed object, and the builder account if it is one of its pull secrets."""
            if (obj := new or old) is None:
                return
            key = key_of(obj)
            self._changed(resource.kind, key)
            if resource == SECRETS and key.name in self._pull_secrets.get(key.namespace, ()):
                self._changed(module_state.BUILDER_ACCOUNT, NamespacedName(key.namespace, BUILDER))

        return report_change

    def _account_changed(self, _change: object, old: ServiceAccount | None, new: ServiceAccount | None) -> None:
        """Reports the builder's account if its list of pull secrets changed."""
        account = new or old
        if account is None or account.metadata.name != BUILDER:
            return
        key = key_of(account)
        names = frozenset(secret.name for secret in new.image_pull_secrets) if new is not None else frozenset()
        # Labels and tokens of an account change, too; only another list of pull secrets is another answer.
        if names != self._pull_secrets.get(key.namespace, frozenset()):
            self._pull_secrets[key.namespace] = names
            self._changed(module_state.BUILDER_ACCOUNT, key)


def _keep_name_only(obj: Any) -> Any:
    """Returns the object with only its name, namespace, UID and resourceVersion."""
    metadata = obj.metadata
    metadata_kept = ObjectMeta(
        name=metadata.name,
        namespace=metadata.namespace,
        uid=metadata.uid,
        resource_version=metadata.resource_version,
    )
    return replace(obj, metadata=metadata_kept)
