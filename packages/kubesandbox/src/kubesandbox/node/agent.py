"""The node agent: runs pods whose image is one of the sandbox's releases as real processes, and declares the others.

In: the pods of the cluster (a cache). Out: processes, and pod statuses as a kubelet writes them. One agent serves all
nodes; each node has a folder that stands for the host's file system. The agent starts the pods that should run and do
not, so the next agent restarts the pods of one that was killed.
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
from kubesandbox.node.place import NodeSettings
from kubesandbox.node.pod import PodWorker

log = structlog.get_logger("node")
# Back-off for workers that failed: the cause may pass, such as a full disk.
_WORKERS = Limits(0.5, 10.0)


class NodeAgent:
    """The agent, with one worker a pod from its binding to its end."""

    def __init__(self, client: Client, pods: Cache[WholePod], place: NodeSettings, clock: Clock) -> None:
        self._client = client
        self._pods = pods
        self._place = place
        self._clock = clock
        self._workers: dict[str, PodWorker] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        pods.add_listener(lambda _change, old, new: self._on_change(old, new))

    @property
    def busy(self) -> bool:
        """Reports whether any pod has a worker."""
        return bool(self._tasks)

    def _on_change(self, old: WholePod | None, new: WholePod | None) -> None:
        """Starts a worker for a pod that is bound to this node, updates it, or ends it."""
        if old is not None and (new is None or new.metadata.uid != old.metadata.uid):
            self._end_processes(old)
        if new is None or not new.spec.get("nodeName"):
            return
        worker = self._workers.get(new.metadata.uid)
        if worker is not None:
            worker.update(new)
        elif self._is_ours(new):
            self._start_worker(new)

    def _is_ours(self, pod: WholePod) -> bool:
        """Returns whether a pod needs a worker: never imported ones; finished and restored ones only to be deleted."""
        if IMPORTED in pod.metadata.labels:
            return False
        if podstatus.is_imported(pod):
            return pod.metadata.deletion_timestamp is not None
        return pod.metadata.deletion_timestamp is not None or not podstatus.is_over(pod)

    def _start_worker(self, pod: WholePod) -> None:
        self._create_worker(pod)
        task = asyncio.create_task(self._run_workers(pod))
        self._tasks[pod.metadata.uid] = task
        task.add_done_callback(lambda _task: self._forget_pod(pod.metadata.uid))

    def _runs_processes(self, pod: WholePod) -> bool:
        return any(self._place.images.is_release(container.image) for container in podspec.containers(pod))

    def _create_worker(self, pod: WholePod) -> PodWorker:
        worker = PodWorker(pod, self._client, self._place, self._clock, runs=self._runs_processes(pod))
        self._workers[pod.metadata.uid] = worker
        return worker

    async def _run_workers(self, pod: WholePod) -> None:
        """Runs workers one after the other until one returns, since a pod without one would stay Running for ever."""
        for delay in _WORKERS.delays():
            worker = self._workers[pod.metadata.uid]
            try:
                await worker.run()
            except Exception:
                log.exception("a pod's worker failed; another one goes on", pod=str(key_of(pod)))
            else:
                return
            await self._clock.sleep(delay)
            self._create_worker(self._workers[pod.metadata.uid].with_status())

    def _end_processes(self, pod: WholePod) -> None:
        """Ends the processes of a pod whose object was deleted without waiting for the agent."""
        uid = pod.metadata.uid
        if uid in self._tasks:
            self._workers[uid].vanish()
            self._tasks[uid].cancel()

    def _forget_pod(self, uid: str) -> None:
        self._workers.pop(uid, None)
        self._tasks.pop(uid, None)

    async def close(self) -> None:
        """Ends every pod's processes; their objects stay for the next agent."""
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        with suppress(asyncio.CancelledError):
            await asyncio.gather(*tasks, return_exceptions=True)
