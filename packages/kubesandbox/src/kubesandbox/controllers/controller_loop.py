"""The controller loop: keys from watches in, one `calls(key)` at a time, failures retried with back-off."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Protocol

import structlog

from kubekit.api.codec import DecodeError
from kubekit.api.meta_v1 import NamespacedName, Object, key_of
from kubekit.api.scheme import Resource
from kubekit.kube.api_errors import AlreadyExists, Conflict, KubeError, NotFound
from kubekit.kube.cache import Cache
from kubekit.kube.client import Client
from kubekit.kube.clock import Clock
from kubekit.kube.request import Call
from kubekit.kube.watch import Reflector
from kubekit.kube.workqueue import WorkQueue

log = structlog.get_logger("cluster")


@dataclass(frozen=True, slots=True)
class Requeue:
    """A request to process the object again after `after_s` seconds, whether it changes or not."""

    after_s: float


@dataclass(slots=True)
class Attempt:
    """A call whose error the controller handles: it continues, and reads the error in `refused`.

    It must raise the error at its end, so that the object is retried with back-off.
    """

    call: Call[Any]
    refused: KubeError | None = None


@dataclass(slots=True)
class Read:
    """A call whose answer the controller needs: it continues with `answer`."""

    call: Call[Any]
    answer: Any = None


@dataclass(frozen=True, slots=True)
class Report:
    """The creation of an Event. Its errors are ignored, as Kubernetes' recorders do, and nothing waits for it."""

    call: Call[Any]


Step = Call[Any] | Requeue | Attempt | Read | Report


class Controller(Protocol):
    """A controller, which decides about one object at a time."""

    name: str

    def calls(self, key: NamespacedName) -> Iterable[Step]:
        """Yields the calls that bring the object of `key` to its desired state; none if it is there."""
        ...


class Reports:
    """The Events that are created in the background, one after the other."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[None]] = set()
        self._order = asyncio.Lock()

    def start(self, client: Client, report: Report) -> None:
        """Starts the creation of an Event."""
        task = asyncio.create_task(self._send(client, report))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _send(self, client: Client, report: Report) -> None:
        async with self._order:
            with suppress(KubeError, DecodeError):
                await client.send(report.call)


class Loop:
    """A controller with its queue. `watch` maps changed objects to keys."""

    def __init__(self, controller: Controller, client: Client, clock: Clock) -> None:
        self.controller = controller
        self._client = client
        self._reports = Reports()
        self.queue: WorkQueue[NamespacedName] = WorkQueue(clock, first_backoff_s=0.02, longest_backoff_s=30)

    def watch(self, cache: Cache[Any], owners_of: str = "") -> None:
        """Queues every changed object of `cache`, or with `owners_of` its owners of that kind."""

        def on_change(_change: str, old: Object | None, new: Object | None) -> None:
            for obj in filter(None, (old, new)):
                if not owners_of:
                    self.queue.add(key_of(obj))
                for reference in obj.metadata.owner_references:
                    if reference.kind == owners_of:
                        self.queue.add(NamespacedName(obj.metadata.namespace, reference.name))

        cache.add_listener(on_change)

    async def run(self) -> None:
        """Works until cancelled."""
        while True:
            key = await self.queue.get()
            try:
                await self._reconcile(key)
                self.queue.forget(key)
            except KubeError as error:
                log.info("retrying", controller=self.controller.name, key=str(key), error=str(error))
                self.queue.add_rate_limited(key)
            except Exception:
                log.exception("a controller failed", controller=self.controller.name, key=str(key))
                self.queue.add_rate_limited(key)
            finally:
                self.queue.done(key)

    async def _reconcile(self, key: NamespacedName) -> None:
        """Sends the calls of one pass. A conflict ends it, because the watch brings the new state. Raises KubeError."""
        for step in self.controller.calls(key):
            if isinstance(step, Requeue):
                self.queue.add_after(key, step.after_s)
                continue
            if isinstance(step, Report):
                self._reports.start(self._client, step)
                continue
            try:
                if isinstance(step, Read):
                    step.answer = await self._client.send(step.call)
                else:
                    await self._client.send(step.call if isinstance(step, Attempt) else step)
            except (NotFound, AlreadyExists, Conflict) as error:
                # The decision was based on an old state; the watch delivers the new one, and queues this key again.
                log.debug("state moved on", controller=self.controller.name, key=str(key), error=str(error))
                self.queue.add_after(key, 0.1)
                return
            except KubeError as error:
                if not isinstance(step, Attempt):
                    raise
                step.refused = error


def follow_kind(
    client: Client, cache: Cache[Any], resource: Resource, clock: Clock, *, label_selector: str = ""
) -> asyncio.Task[None]:
    """Starts a task that keeps `cache` filled."""
    reflector = Reflector(client, cache.kind, cache, clock=clock, resource=resource, label_selector=label_selector)
    return asyncio.create_task(reflector.run())
