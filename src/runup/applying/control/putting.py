"""One task of a release -> the object in the cluster as it should be, with as few requests as that takes.

What is in place already is not written: the watch's metadata says which content was applied last (our label), and
whether every field of it is still ours (managedFields; decision record 45). `Memory` outlives a run, so that another
run of the same release, or a new release, begins where the last one stopped.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import structlog

from kubekit.api.meta_v1 import NamespacedName
from kubekit.api.scheme import Resource
from kubekit.errors import Terminal
from kubekit.kube.cache import Cache
from kubekit.kube.client import Client
from kubekit.kube.errors import NotFound
from runup.api.config_v1 import ClusterOperator
from runup.api.owned_v1 import Owned, OwnedWorkload
from runup.applying.control import applying
from runup.applying.control.deleting import Deleting
from runup.applying.control.failing import KindMissing
from runup.applying.control.kinds import Kinds
from runup.applying.control.tracking import Tracking
from runup.applying.decide import ownership
from runup.applying.decide.operators import KIND as CLUSTER_OPERATOR
from runup.applying.decide.rendering import LABEL, Rendered, Surroundings, rendered
from runup.applying.decide.task import Task
from runup.applying.decide.workloads import DEFINITION, JOB, KINDS
from runup.release.decide.manifest import Identity

log = structlog.get_logger("payload")
# Requests at a time; whatever waits does not count.
MOST_AT_ONCE = 16
NAMESPACE = ("", "Namespace")


@dataclass(frozen=True, slots=True)
class Good:
    """What an object looked like right after it was put: label, a digest of the fields that are ours, version."""

    digest: str
    fields: bytes
    resource_version: int


@dataclass
class Memory:
    """What is known of objects from having put them; it holds for as long as the process."""

    good: dict[Identity, Good] = field(default_factory=dict)
    # Answers to what was put, for those whose status is waited for.
    answers: dict[Identity, Owned] = field(default_factory=dict)
    # Jobs that have succeeded and that the cluster removes by itself then.
    over: set[Identity] = field(default_factory=set)


class Putting:
    """For one run. `surroundings` says what objects are given of the cluster now, `digests` what each then comes to."""

    def __init__(
        self,
        tasks: Sequence[Task],
        *,
        client: Client,
        kinds: Kinds,
        tracking: Tracking,
        deleting: Deleting,
        operators: Cache[ClusterOperator],
        memory: Memory,
        digests: dict[int, str],
        surroundings: Callable[[], Surroundings],
        image: str = "",
    ) -> None:
        self.operators = operators
        self.writes = 0
        self._tasks = tasks
        self._image = image
        self._client = client
        self._kinds = kinds
        self._tracking = tracking
        self._deleting = deleting
        self._memory = memory
        self._digests = digests
        self._surroundings = surroundings
        self._slots = asyncio.Semaphore(MOST_AT_ONCE)
        self._locks: dict[Identity, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._namespaces = {task.identity.name: task for task in tasks if task.kind == NAMESPACE and not task.deletes}
        self._definitions = {
            defined: task
            for task in tasks
            if task.kind == DEFINITION and not task.deletes
            for defined in _defined(task)
        }

    def needs(self, task: Task) -> Iterator[Task]:
        """The tasks that define the kind and the namespace of `task`, if the release has them."""
        definition = self._definitions.get(task.kind)
        if definition is not None:
            yield definition
        namespace = self._namespaces.get(task.identity.namespace)
        if namespace is not None:
            yield namespace

    def hands_over(self, task: Task) -> bool:
        """Whether putting `task` ends this process: it is of the Deployment that runs it, and of another release."""
        namespace, name = self._surroundings().operator
        if task.identity != Identity("apps", "Deployment", namespace, name):
            return False
        seen = self.seen(task)
        runs = isinstance(seen, OwnedWorkload) and seen.status is not None and seen.status.replicas > 0
        pod = task.manifest.object.get("spec", {}).get("template", {}).get("spec", {})
        images = {each.get("image") for each in pod.get("containers") or () if each.get("name") == name}
        return runs and bool(images) and self._image not in images

    def defined_by(self, task: Task) -> tuple[tuple[str, str], ...]:
        """Group and kind of what `task` defines, nothing where it is no definition."""
        return _defined(task) if task.kind == DEFINITION and not task.deletes else ()

    def operator(self, name: str) -> ClusterOperator | None:
        """The ClusterOperator of that name."""
        return self.operators.get(NamespacedName("", name))

    def seen(self, task: Task) -> Owned | None:
        """The object of `task` as last seen, by the watch or as an answer, whichever is newer."""
        watched, answered = self._tracking.get(task.identity), self._memory.answers.get(task.identity)
        if watched is None or answered is None:
            return watched or answered
        return watched if _version(watched) >= _version(answered) else answered

    def in_place(self, task: Task) -> bool:
        """Whether the object of `task` is as it should be, as far as the watch tells."""
        found = self._tracking.get(task.identity)
        if found is None or found.metadata.deletion_timestamp is not None:
            return False
        if task.create_only:
            return True
        digest, good = self._digests[task.index], self._memory.good.get(task.identity)
        if good is not None and good.digest == digest:
            if _short(found.owned) == good.fields and found.metadata.labels.get(LABEL) == digest:
                return True
            if _version(found) < good.resource_version:
                return True  # the watch has not come to our own write yet
        if found.metadata.labels.get(LABEL) != digest or not found.owned:
            return False
        if not ownership.covers(json.loads(found.owned), self._rendered(task).object):
            return False
        self._memory.good[task.identity] = Good(digest, _short(found.owned), _version(found))
        return True

    def drifted(self, task: Task) -> bool:
        """Whether the object of `task`, which was put, is not as it should be any more; one that ends is waited for."""
        if task.deletes or not self._tracking.follows(*task.kind):
            return False
        found = self._tracking.get(task.identity)
        if found is None and task.identity in self._memory.over:
            return False
        if found is None:
            good = self._memory.good.get(task.identity)
            return good is not None and self._tracking.gone(task.identity, good.resource_version)
        return found.metadata.deletion_timestamp is None and not self.in_place(task)

    def well(self, task: Task) -> None:
        """`task` is as it should be: a Job that goes away by itself after that has not drifted."""
        if task.kind == JOB and "ttlSecondsAfterFinished" in (task.manifest.object.get("spec") or {}):
            self._memory.over.add(task.identity)

    def look_again(self) -> None:
        """What the cluster gives has changed: work out anew what the objects come to."""
        self._digests.update(digests_of(self._tasks, self._surroundings()))

    async def put(self, task: Task, *, updating: bool = False, anew: bool = False) -> None:
        """Make it so; raises KubeError, DecodeError, Terminal, KindMissing. `anew`: even if it looks as it should."""
        if task.unusable:
            raise Terminal(task.unusable, reason="UpdatePayloadFailed")
        async with self._locks[task.identity]:
            if task.deletes:
                if updating:
                    async with self._slots:
                        await self._deleting.delete(task, await self._resource(task))
                return
            if (not anew and self.in_place(task)) or (anew and task.identity in self._memory.over):
                return
            self._memory.over.discard(task.identity)
            await self._write(task)

    async def _write(self, task: Task) -> None:
        resource = await self._resource(task)
        if resource is None:
            self._kinds.forget(_api_version(task))
            raise KindMissing(f"{task.identity.kind} in {_api_version(task)}")
        async with self._slots:
            # Made in its turn only: all definitions at once are megabytes.
            new = self._rendered(task)
            unrelated = task.kind == CLUSTER_OPERATOR and self.operator(task.identity.name) is None
            self.writes += 1
            try:
                if task.create_only:
                    answer = await applying.create(self._client, resource, new.object)
                else:
                    answer = await applying.apply(self._client, resource, new.object)
            except NotFound as error:
                if error.api_missing:
                    self._kinds.forget(_api_version(task))
                raise
            if unrelated:
                await self._relate(task, resource)
        if answer is not None:
            self._memory.good[task.identity] = Good(new.digest, _short(answer.owned), _version(answer))
            if task.kind in KINDS:
                self._memory.answers[task.identity] = answer
        self._tracking.follow(resource)

    async def _relate(self, task: Task, resource: Resource) -> None:
        related = (task.manifest.object.get("status") or {}).get("relatedObjects")
        if related:
            self.writes += 1
            await applying.relate(self._client, resource, task.identity.name, related)

    async def _resource(self, task: Task) -> Resource | None:
        return await self._kinds.resource(_api_version(task), task.identity.kind)

    def _rendered(self, task: Task) -> Rendered:
        return rendered(task, self._surroundings())


def digests_of(tasks: Sequence[Task], surroundings: Surroundings) -> dict[int, str]:
    """What the content of every task comes to; what cannot be rendered is told when it is put."""
    found: dict[int, str] = {}
    for task in tasks:
        try:
            found[task.index] = rendered(task, surroundings).digest
        except Terminal:
            found[task.index] = ""
    return found


def _short(fields: bytes) -> bytes:
    return hashlib.sha256(fields).digest()


def _defined(task: Task) -> tuple[tuple[str, str], ...]:
    spec = task.manifest.object.get("spec") or {}
    return ((str(spec.get("group", "")), str((spec.get("names") or {}).get("kind", ""))),)


def _api_version(task: Task) -> str:
    return str(task.manifest.object.get("apiVersion") or "v1")


def _version(obj: Owned) -> int:
    """Versions of one resource are numbers that grow, on every server there is."""
    text = obj.metadata.resource_version
    return int(text) if text.isdecimal() else 0
