"""Deletes the objects that a release removes: sends one request for each, and watches until the object is gone."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import structlog

from kubekit.api.codec import DecodeError
from kubekit.api.meta_v1 import NamespacedName, Object
from kubekit.api.scheme import Resource
from kubekit.error_types import Terminal
from kubekit.kube.api_errors import KubeError, NotFound
from kubekit.kube.cache import Cache
from kubekit.kube.client import Client
from kubekit.kube.clock import Clock
from kubekit.kube.watch import Reflector
from runup.api.config_v1 import ClusterOperator
from runup.api.owned_v1 import Owned, OwnedWorkload
from runup.applying.control import object_requests, object_watches, task_errors
from runup.applying.decide import contesting_writers, merging
from runup.applying.decide.health import CLUSTER_OPERATOR, DEFINITION, JOB, KINDS
from runup.applying.decide.rendering import LABEL, ClusterValues, Rendered, render
from runup.applying.decide.task import Task, deletion_text
from runup.process.leader_election import cancel
from runup.release.decide.manifest import Identity

log = structlog.get_logger("payload")


class ObjectDeleter:
    """The deletions of a release that are under way.

    `on_change` is called with True when a deletion was requested, and again when the object is gone.
    """

    def __init__(self, client: Client, clock: Clock, on_change: Callable[[bool], None]) -> None:
        self._client = client
        self._clock = clock
        self._on_change = on_change
        self._pending: dict[Identity, asyncio.Task[None]] = {}
        self._requested: set[Identity] = set()

    @property
    def pending(self) -> tuple[str, ...]:
        """The objects whose deletion was requested and that still exist, as sorted text."""
        return tuple(sorted(deletion_text(identity) for identity in self._pending))

    async def delete(self, task: Task, resource: Resource | None) -> None:
        """Requests the object's deletion, once. Does nothing if the object or its kind (`resource` None) is absent."""
        identity = task.identity
        if resource is None or identity in self._requested:
            return
        if await object_requests.delete(self._client, resource, identity.name, identity.namespace):
            log.info("deleted", task=str(task))
            self._pending[identity] = asyncio.create_task(self._until_gone(identity, resource))
            self._on_change(True)
        # Only after the request, so that a retry repeats one that failed.
        self._requested.add(identity)

    def forget(self) -> None:
        """Forgets which deletions were requested, so that the next release requests its own again."""
        self._requested.clear()

    async def close(self) -> None:
        """Stops all watches."""
        await cancel(list(self._pending.values()))
        self._pending.clear()

    async def _until_gone(self, identity: Identity, resource: Resource) -> None:
        """Waits with a separate watch until the object is deleted.

        Waits for ever if a finalizer never goes.
        """
        cache: Cache[Object] = Cache(Object)
        changed = asyncio.Event()
        cache.add_listener(lambda *_: changed.set())
        cache.add_state_listener(changed.set)
        key = NamespacedName(identity.namespace, identity.name)
        reflector: Reflector[Any] = Reflector(
            self._client,
            Object,
            cache,
            namespace=identity.namespace,
            field_selector=f"metadata.name={identity.name}",
            clock=self._clock,
            resource=resource,
        )
        watch = asyncio.create_task(reflector.run())
        try:
            while not cache.synced or cache.get(key) is not None:
                changed.clear()
                await changed.wait()
        finally:
            await cancel([watch])
        del self._pending[identity]
        self._on_change(True)


# The most requests at a time. A task that waits for something else holds none of these slots.
MAX_CONCURRENT_REQUESTS = 16
NAMESPACE = ("", "Namespace")


@dataclass(frozen=True, slots=True)
class AppliedState:
    """The state of an object right after it was applied."""

    # The digest of the rendered object, which is the value of our label.
    digest: str
    # A hash of the fields that we own, by the managedFields of the server's answer.
    fields: bytes
    resource_version: int
    # The writes of others that were found to need no repair (`Owned.others`).
    others: bytes = b""


@dataclass
class Memory:
    """The state of the objects that this process has applied, kept from run to run."""

    applied: dict[Identity, AppliedState] = field(default_factory=dict)
    # The server's answers to our writes, for kinds whose status is waited for: they may be newer than the watch.
    answers: dict[Identity, Owned] = field(default_factory=dict)
    # Jobs that have succeeded, and that the TTL-after-finished controller then deletes.
    finished_jobs: set[Identity] = field(default_factory=set)


class ObjectApplier:
    """Applies the objects of one run.

    `cluster_values` returns the cluster's values put into objects (proxy, TLS profile and so on). `digests` holds the
    digest of each rendered object by task index. `image` is the one that this process runs from.
    """

    def __init__(
        self,
        tasks: Sequence[Task],
        *,
        client: Client,
        kinds: object_requests.ResourceDiscovery,
        tracking: object_watches.ObjectWatches,
        deleting: ObjectDeleter,
        operators: Cache[ClusterOperator],
        memory: Memory,
        digests: dict[int, str],
        cluster_values: Callable[[], ClusterValues],
        notices: task_errors.Notices,
        image: str = "",
    ) -> None:
        self.operators = operators
        self.writes = 0
        self._tasks = tasks
        self._image = image
        self._client = client
        self._kinds = kinds
        self.tracking = tracking
        self._deleting = deleting
        self._memory = memory
        self._digests = digests
        self._cluster_values = cluster_values
        self._notices = notices
        self._slots = asyncio.Semaphore(MAX_CONCURRENT_REQUESTS)
        self._locks: dict[Identity, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._namespaces = {task.identity.name: task for task in tasks if task.kind == NAMESPACE and not task.deletes}
        self._definitions = {
            defined: task
            for task in tasks
            if task.kind == DEFINITION and not task.deletes
            for defined in _defined_kinds(task)
        }

    def needs(self, task: Task) -> Iterator[Task]:
        """Yields the tasks of the CustomResourceDefinition and the Namespace of `task`, if the release has them."""
        definition = self._definitions.get(task.kind)
        if definition is not None:
            yield definition
        namespace = self._namespaces.get(task.identity.namespace)
        if namespace is not None:
            yield namespace

    def hands_over(self, task: Task) -> bool:
        """Returns whether applying `task` ends this process, because it changes the image of the operator's Deployment.

        False if that Deployment has no replicas now: then this process does not run in it.
        """
        namespace, name = self._cluster_values().operator
        if task.identity != Identity("apps", "Deployment", namespace, name):
            return False
        deployment = self.latest(task)
        runs = (
            isinstance(deployment, OwnedWorkload) and deployment.status is not None and deployment.status.replicas > 0
        )
        pod = task.manifest.object.get("spec", {}).get("template", {}).get("spec", {})
        images = {container.get("image") for container in pod.get("containers") or () if container.get("name") == name}
        return runs and bool(images) and self._image not in images

    def defined_by(self, task: Task) -> tuple[tuple[str, str], ...]:
        """Returns group and kind of what `task` defines; empty if it is not a CustomResourceDefinition."""
        return _defined_kinds(task) if task.kind == DEFINITION and not task.deletes else ()

    def operator(self, name: str) -> ClusterOperator | None:
        """Returns the ClusterOperator of that name, or None."""
        return self.operators.get(NamespacedName("", name))

    def latest(self, task: Task) -> Owned | None:
        """Returns the object of `task` from the watch or from the answer to our write, whichever is newer."""
        watched, answered = self.tracking.get(task.identity), self._memory.answers.get(task.identity)
        if watched is None or answered is None:
            return watched or answered
        return watched if _version(watched) >= _version(answered) else answered

    def in_place(self, task: Task) -> bool:
        """Returns whether the object of `task` is as the release has it, by what the watch has seen."""
        watched = self.tracking.get(task.identity)
        if watched is None or watched.metadata.deletion_timestamp is not None:
            return False
        if task.create_only:
            return True
        digest, applied = self._digests[task.index], self._memory.applied.get(task.identity)
        if applied is not None and applied.digest == digest:
            # The fields are as right after our write, so they need not be compared with the manifest again.
            labelled = watched.metadata.labels.get(LABEL) == digest
            if labelled and (short_digest(watched.owned), watched.others) == (applied.fields, applied.others):
                return True
            if _version(watched) < applied.resource_version:
                return True  # the watch has not delivered our own write yet
        if watched.metadata.labels.get(LABEL) != digest or not watched.owned or watched.others:
            return False
        # The label is right, but this process has no record of these fields, for example after a restart.
        if not merging.owns_all_of(json.loads(watched.owned), self._render_task(task).object):
            return False
        self._memory.applied[task.identity] = _applied_state(digest, watched)
        return True

    def drifted(self, task: Task) -> bool:
        """Returns whether the object of `task` was changed or deleted since it was applied.

        An object that is being deleted has not drifted yet: it is applied again once it is gone.
        """
        if task.deletes or not self.tracking.follows(*task.kind):
            return False
        watched = self.tracking.get(task.identity)
        if watched is None and task.identity in self._memory.finished_jobs:
            return False
        if watched is None:
            applied = self._memory.applied.get(task.identity)
            is_tracked = applied is not None or self.tracking.follows_single(task.identity)
            return is_tracked and self.tracking.is_known_gone(
                task.identity, applied.resource_version if applied is not None else 0
            )
        return watched.metadata.deletion_timestamp is None and not self.in_place(task)

    def record_healthy(self, task: Task) -> None:
        """Records that the object of `task` is healthy: a Job with a TTL has not drifted if it is gone after that."""
        if task.kind == JOB and "ttlSecondsAfterFinished" in (task.manifest.object.get("spec") or {}):
            self._memory.finished_jobs.add(task.identity)

    async def tell_contested(self, task: Task) -> None:
        """Sends a notice that another writer keeps changing the object of `task`, with the name of the last one."""
        if not self._notices.is_due(task.identity, contesting_writers.CONTESTED):
            return
        writer = ""
        try:
            resource = await self._served_resource(task)
            if resource is not None:
                obj = self._render_task(task).object
                writer = await object_requests.contesting_writer(self._client, resource, obj)
        except (KubeError, DecodeError, Terminal) as error:
            log.debug("who changes an object is not known", task=str(task), error=str(error))
        await self._notices.emit(contesting_writers.contested_notice(task, writer))

    def update_digests(self) -> None:
        """Computes the digests of all objects again, after the cluster's values have changed."""
        self._digests.update(digests_of(self._tasks, self._cluster_values()))

    async def apply_or_delete(self, task: Task, *, updating: bool = False, reapply: bool = False) -> None:
        """Applies or deletes the object of `task`; raises KubeError, DecodeError, Terminal, KindMissing.

        An object that is in place is written only with `reapply`. Objects are deleted only while `updating`.
        """
        if task.unusable:
            raise Terminal(task.unusable, reason="UpdatePayloadFailed")
        # A repair and the daily pass may write the same object at the same time.
        async with self._locks[task.identity]:
            if task.deletes:
                if updating:
                    async with self._slots:
                        await self._deleting.delete(task, await self._served_resource(task))
                return
            if (not reapply and self.in_place(task)) or (reapply and task.identity in self._memory.finished_jobs):
                return
            self._memory.finished_jobs.discard(task.identity)
            await self._write_object(task)

    async def _write_object(self, task: Task) -> None:
        """Applies or creates the task's object. Raises KindMissing if the server does not serve its kind."""
        resource = await self._served_resource(task)
        if resource is None:
            # The next attempt asks again: the kind may be served by then.
            self._kinds.forget(_api_version(task))
            raise task_errors.KindMissing(f"{task.identity.kind} in {_api_version(task)}")
        async with self._slots:
            # Rendered only now, because all CustomResourceDefinitions at once take megabytes.
            new = self._render_task(task)
            is_new_operator = task.kind == CLUSTER_OPERATOR and self.operator(task.identity.name) is None
            self.writes += 1
            try:
                if task.create_only:
                    answer = await object_requests.create(self._client, resource, new.object)
                else:
                    applied = self._memory.applied.get(task.identity)
                    earlier_writes = applied.others if applied is not None and applied.digest == new.digest else b""
                    warnings: list[str] = []
                    answer = await object_requests.apply(
                        self._client, resource, new.object, earlier_writes=earlier_writes, warned=warnings.extend
                    )
                    if warnings:
                        await self._notices.emit(contesting_writers.dropped_notice(task, warnings))
            except NotFound as error:
                if error.api_missing:
                    self._kinds.forget(_api_version(task))
                raise
            if is_new_operator:
                await self._write_related_objects(task, resource)
        if answer is not None:
            self._memory.applied[task.identity] = _applied_state(new.digest, answer)
            if task.kind in KINDS:
                self._memory.answers[task.identity] = answer
        # The write has succeeded, so the kind is served and can be watched.
        self.tracking.follow(resource)
        if answer is None:
            # It lacks our label, so only a separate watch shows that it is gone.
            self._memory.applied.pop(task.identity, None)
            await self.tracking.follow_single(resource, task.identity)

    async def _write_related_objects(self, task: Task, resource: Resource) -> None:
        """Writes the related objects of a new ClusterOperator, which `apply` leaves out because they are status."""
        related = (task.manifest.object.get("status") or {}).get("relatedObjects")
        if related:
            self.writes += 1
            await object_requests.write_related_objects(self._client, resource, task.identity.name, related)

    async def _served_resource(self, task: Task) -> Resource | None:
        return await self._kinds.resource(_api_version(task), task.identity.kind)

    def _render_task(self, task: Task) -> Rendered:
        return render(task, self._cluster_values())


def digests_of(tasks: Sequence[Task], cluster_values: ClusterValues) -> dict[int, str]:
    """Returns the digest of every task's rendered object, by task index.

    The digest is "" if the object cannot be rendered: applying it then raises the error.
    """
    digests: dict[int, str] = {}
    for task in tasks:
        try:
            digests[task.index] = render(task, cluster_values).digest
        except Terminal:
            digests[task.index] = ""
    return digests


def _applied_state(digest: str, obj: Owned) -> AppliedState:
    """Returns the state that the server's answer to our write shows."""
    return AppliedState(digest, short_digest(obj.owned), _version(obj), obj.others)


def short_digest(fields: bytes) -> bytes:
    """Returns a short digest of an object's fields, which is stored instead of the fields."""
    return hashlib.sha256(fields).digest()


def _defined_kinds(task: Task) -> tuple[tuple[str, str], ...]:
    """Returns group and kind that the task's CustomResourceDefinition defines."""
    spec = task.manifest.object.get("spec") or {}
    return ((str(spec.get("group", "")), str((spec.get("names") or {}).get("kind", ""))),)


def _api_version(task: Task) -> str:
    return str(task.manifest.object.get("apiVersion") or "v1")


def _version(obj: Owned) -> int:
    """Returns the resourceVersion as a number, 0 if it is not one: on every server it is a number that grows."""
    text = obj.metadata.resource_version
    return int(text) if text.isdecimal() else 0
