"""The node agent: pods whose image is one of the sandbox's releases run as real processes, the others by declaration.

In: the pods of the cluster (a cache), out: processes, and pod statuses as a kubelet writes them. One agent serves every
node; each has a folder of its own that stands for the host's file system. It starts what should run and is not running,
so a pod whose agent was killed is started again by the next one.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress

import structlog

from kubekit.api.meta_v1 import key_of
from kubekit.api.whole_v1 import WholePod
from kubekit.kube.cache import Cache
from kubekit.kube.client import Client
from kubekit.kube.clock import Clock
from kubesandbox.apiserver.objects.restoring import IMPORTED
from kubesandbox.node import podspec, podstatus
from kubesandbox.node.backoff import Limits
from kubesandbox.node.place import Place
from kubesandbox.node.pod import PodWorker

log = structlog.get_logger("node")
# What ends a worker is as passing as a full disk, or a bug of ours.
_WORKERS = Limits(0.5, 10.0)


class NodeAgent:
    """One worker a pod, from its binding to its end."""

    def __init__(self, client: Client, pods: Cache[WholePod], place: Place, clock: Clock) -> None:
        self._client = client
        self._pods = pods
        self._place = place
        self._clock = clock
        self._workers: dict[str, PodWorker] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        pods.add_listener(lambda _change, old, new: self._on_change(old, new))

    @property
    def busy(self) -> bool:
        """Whether any pod has a worker."""
        return bool(self._tasks)

    def _on_change(self, old: WholePod | None, new: WholePod | None) -> None:
        if old is not None and (new is None or new.metadata.uid != old.metadata.uid):
            self._gone(old)
        if new is None or not new.spec.get("nodeName"):
            return
        worker = self._workers.get(new.metadata.uid)
        if worker is not None:
            worker.update(new)
        elif self._is_ours(new):
            self._start(new)

    def _is_ours(self, pod: WholePod) -> bool:
        """Imported pods are shown, never run; those that are over only need an agent to be deleted."""
        if IMPORTED in pod.metadata.labels:
            return False
        if podstatus.is_imported(pod):
            return pod.metadata.deletion_timestamp is not None
        return pod.metadata.deletion_timestamp is not None or not podstatus.is_over(pod)

    def _start(self, pod: WholePod) -> None:
        self._engage(pod)
        task = asyncio.create_task(self._work(pod))
        self._tasks[pod.metadata.uid] = task
        task.add_done_callback(lambda _task: self._forget(pod.metadata.uid))

    def _runs(self, pod: WholePod) -> bool:
        return any(self._place.images.is_release(container.image) for container in podspec.containers(pod))

    def _engage(self, pod: WholePod) -> PodWorker:
        worker = PodWorker(pod, self._client, self._place, self._clock, runs=self._runs(pod))
        self._workers[pod.metadata.uid] = worker
        return worker

    async def _work(self, pod: WholePod) -> None:
        """One worker after the other, until one ends by itself: a pod without one is Running without a process."""
        for delay in _WORKERS.delays():
            worker = self._workers[pod.metadata.uid]
            try:
                await worker.run()
            except Exception:
                log.exception("a pod's worker failed; another one goes on", pod=str(key_of(pod)))
            else:
                return
            await self._clock.sleep(delay)
            self._engage(self._workers[pod.metadata.uid].pod)

    def _gone(self, pod: WholePod) -> None:
        """Deleted without waiting for us: whatever still runs is ended."""
        uid = pod.metadata.uid
        if uid in self._tasks:
            self._workers[uid].vanish()
            self._tasks[uid].cancel()

    def _forget(self, uid: str) -> None:
        self._workers.pop(uid, None)
        self._tasks.pop(uid, None)

    async def close(self) -> None:
        """End every pod's processes; their objects stay, for the next agent."""
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        with suppress(asyncio.CancelledError):
            await asyncio.gather(*tasks, return_exceptions=True)
