"""The node agent: runs pods whose image is one of the sandbox's releases as real processes, and declares the others.

In: the pods of the cluster (a cache). Out: processes, and pod statuses as a kubelet writes them. One agent serves all
nodes; each node has a folder instead of the host's file system. The agent starts the pods that should run and do
not, so the next agent restarts the pods of one that was killed.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress

import structlog

from kubekit.api.codec import DecodeError
from kubekit.api.meta_v1 import key_of
from kubekit.api.whole_v1 import WholePod
from kubekit.kube import calls
from kubekit.kube.api_errors import Conflict, KubeError, NotFound
from kubekit.kube.cache import Cache
from kubekit.kube.client import Client
from kubekit.kube.clock import Clock
from kubesandbox.apiserver.metadata import IMPORTED
from kubesandbox.controllers.owned_pods import PODS
from kubesandbox.node import pod_status, podspec
from kubesandbox.node.container import ContainerWorker, already_present
from kubesandbox.node.pod_status import DECLARED, Ended, RestartPolicy, Started, Verdict, restart_policy
from kubesandbox.node.reporter import Reporter
from kubesandbox.node.settings import MOUNTS, Limits, NodeSettings
from kubesandbox.node.supplies import Supplies
from kubesandbox.tasks import cancel_tasks, run_beside, wait_for_first

log = structlog.get_logger("node")
# Back-off for workers that failed: the cause may pass, such as a full disk.
_WORKERS = Limits(0.5, 10.0)
_DEADLINE = Verdict("DeadlineExceeded", "Pod was active on the node longer than the specified deadline")
_AGAIN_S = 0.5


class NodeAgent:
    """The agent, with one worker a pod from its binding to its end."""

    def __init__(self, client: Client, pods: Cache[WholePod], place: NodeSettings, clock: Clock) -> None:
        self._client, self._place, self._clock = client, place, clock
        self._workers: dict[str, PodWorker] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        pods.add_listener(lambda _change, old, new: self._on_change(old, new))

    @property
    def busy(self) -> bool:
        """Reports whether any pod has a worker."""
        return bool(self._tasks)

    def _on_change(self, old: WholePod | None, new: WholePod | None) -> None:
        """Starts a worker for a pod that is bound to this node, updates it, or ends it."""
        if (
            old is not None
            and (new is None or new.metadata.uid != old.metadata.uid)
            and old.metadata.uid in self._tasks
        ):
            # The object was deleted without waiting for the agent.
            self._workers[old.metadata.uid].vanish()
            self._tasks[old.metadata.uid].cancel()
        if new is None or not new.spec.get("nodeName"):
            return

        def forget(_task: asyncio.Task[None]) -> None:
            self._workers.pop(uid, None)
            self._tasks.pop(uid, None)

        uid, is_deleted = new.metadata.uid, new.metadata.deletion_timestamp is not None
        # Imported pods get no worker; finished and restored ones only to be deleted.
        is_ended = pod_status.is_imported(new) or pod_status.is_over(new)
        if (worker := self._workers.get(uid)) is not None:
            worker.update(new)
        elif IMPORTED not in new.metadata.labels and (is_deleted or not is_ended):
            self._create_worker(new)
            self._tasks[uid] = asyncio.create_task(self._run_workers(new))
            self._tasks[uid].add_done_callback(forget)

    def _create_worker(self, pod: WholePod) -> None:
        runs = any(self._place.images.is_release(container.image) for container in podspec.containers(pod))
        self._workers[pod.metadata.uid] = PodWorker(pod, self._client, self._place, self._clock, runs=runs)

    async def _run_workers(self, pod: WholePod) -> None:
        """Runs workers one after the other until one returns, since a pod without one would stay Running for ever."""
        for delay in _WORKERS.delays():
            worker = self._workers[pod.metadata.uid]
            try:
                await worker.run()
            except Exception:
                log.exception("a pod's worker failed; another one continues", pod=str(key_of(pod)))
            else:
                return
            await self._clock.sleep(delay)
            self._create_worker(self._workers[pod.metadata.uid].with_status())

    async def close(self) -> None:
        """Ends every pod's processes; their objects stay for the next agent."""
        with suppress(asyncio.CancelledError):
            await cancel_tasks(self._tasks.values())


class PodWorker:
    """The worker that runs a pod (`runs`), or only declares it ready, until it is deleted."""

    def __init__(self, pod: WholePod, client: Client, place: NodeSettings, clock: Clock, *, runs: bool) -> None:
        self._client, self._place, self._clock, self._runs = client, place, clock, runs
        self._reporter = Reporter(pod, client, clock, place.host_ip)
        self._supplies = Supplies(pod, client, place)
        # Set when the pod is deleted or exceeds its active deadline; ends the containers.
        self._stopping = asyncio.Event()
        self._deleted = asyncio.Event()
        self.update(pod)

    def with_status(self) -> WholePod:
        """Returns the pod with the status as this worker knows it: what has run here must not run again elsewhere."""
        return self._reporter.with_status()

    @property
    def _pod(self) -> WholePod:
        return self._reporter.pod

    def update(self, pod: WholePod) -> None:
        """Updates the pod; a deletion stops it."""
        self._reporter.pod = pod
        if pod.metadata.deletion_timestamp is not None:
            self._deleted.set()
            self._stopping.set()

    def vanish(self) -> None:
        """Records that the object is gone without waiting for the pod's end; the caller then cancels `run`."""
        self._supplies.gone = True

    async def run(self) -> None:
        """Runs until the pod has ended and is deleted, or until cancelled (its processes end, its object stays)."""
        try:
            if self._deleted.is_set():
                await self._delete_pod()
            elif self._runs:
                async with run_beside(
                    self._reporter.keep_publishing(), self._supplies.keep_token(self._clock), self._enforce_deadline()
                ):
                    if await self._prepare_with_retries() and await self._run_init_containers():
                        async with asyncio.TaskGroup() as group:
                            for spec in podspec.containers(self._pod):
                                group.create_task(self._container_worker(spec).run(restart_policy(self._pod)))
                    await self._reporter.publish()
                    await self._deleted.wait()
                    # Again, since the deletion may change the status of a pod that had ended before it.
                    await self._reporter.publish()
                    await self._delete_pod()
            else:
                await self._declare_running()
        finally:
            if self._supplies.gone:
                await asyncio.to_thread(self._supplies.clear)

    async def _run_init_containers(self) -> bool:
        """Runs the init containers one after the other; returns whether the other containers may start."""
        # They are restarted until they succeed, unless the pod's policy is Never.
        policy: RestartPolicy = "Never" if restart_policy(self._pod) == "Never" else "OnFailure"
        for spec in podspec.init_containers(self._pod):
            ended = await self._container_worker(spec).run(policy)
            if ended is None or ended.exit_code != 0:
                return False
        return not self._stopping.is_set()

    def _container_worker(self, spec: podspec.ContainerSpec) -> ContainerWorker:
        return ContainerWorker(
            spec,
            reporter=self._reporter,
            supplies=self._supplies,
            place=self._place,
            clock=self._clock,
            stopping=self._stopping,
        )

    async def _prepare_with_retries(self) -> bool:
        """Prepares volumes and credentials with retries; returns False if the pod was stopped before it succeeded."""
        self._reporter.all_wait()
        reported = ""
        for delay in MOUNTS.delays():
            try:
                await self._supplies.prepare()
                problem = ""
            except podspec.BadPod as bad:
                problem = bad.message
            except (KubeError, DecodeError, OSError) as error:
                problem = f"MountVolume.SetUp failed: {error}"
            if not problem or self._stopping.is_set():
                break
            if problem != reported:
                self._reporter.event("Warning", "FailedMount", problem, None)
            reported = problem
            await wait_for_first(self._clock.sleep(delay), self._stopping.wait())
        return not self._stopping.is_set()

    async def _enforce_deadline(self) -> None:
        seconds = self._pod.spec.get("activeDeadlineSeconds")
        if seconds is None:
            return
        passed = (self._clock.now() - self._reporter.started_at).total_seconds()
        await self._clock.sleep(int(seconds) - passed)
        if not pod_status.is_over(self._pod):
            self._reporter.verdict = _DEADLINE
            self._reporter.event("Normal", _DEADLINE.reason, _DEADLINE.message, None)
            self._reporter.put()
            self._stopping.set()

    async def _declare_running(self) -> None:
        """Reports a pod as running, or completed, without its processes, if the settings ask for it.

        Then waits for its deletion.
        """
        if self._place.declare_others and not pod_status.is_ours(self._pod):
            now, uid = self._clock.now(), self._pod.metadata.uid
            for spec in podspec.init_containers(self._pod):
                record = self._reporter.record(spec.name)
                self._reporter.put(
                    record.ended(Ended(exit_code=0, reason="Completed", started_at=now, finished_at=now))
                )
            completes = self._place.completes_others and restart_policy(self._pod) != "Always"
            for spec in podspec.containers(self._pod):
                container_id = f"{DECLARED}{uid}/{spec.name}"
                record = self._reporter.record(spec.name)
                running = record.started(now, image_id=spec.image, container_id=container_id, ready=True)
                ended = Ended(exit_code=0, reason="Completed", started_at=now, finished_at=now)
                self._reporter.put(running.ended(ended) if completes else running)
                self._reporter.event("Normal", "Pulled", already_present(spec.image), spec)
                self._reporter.event("Normal", "Created", f"Created container: {spec.name}", spec)
                self._reporter.event("Normal", "Started", f"Started container {spec.name}", spec)
            await self._reporter.publish()
        await self._deleted.wait()
        if pod_status.is_ours(self._pod):
            await self._declare_ended()
        await self._delete_pod()

    async def _declare_ended(self) -> None:
        """Reports the running containers of a deleted pod as ended, as a kubelet does before it removes the object."""
        now = self._clock.now()
        for spec in podspec.containers(self._pod):
            record = self._reporter.record(spec.name)
            if isinstance(record.state, Started):
                ended = Ended(exit_code=0, reason="Completed", started_at=record.state.at, finished_at=now)
                self._reporter.put(record.ended(ended))
        await self._reporter.publish()

    async def _delete_pod(self) -> None:
        """Removes the object, once none of its processes runs."""
        metadata = self._pod.metadata
        call = calls.delete(PODS, metadata.name, metadata.namespace, uid=metadata.uid, grace_period_s=0)
        while True:
            try:
                await self._client.send(call)
            except (NotFound, Conflict):
                break
            except (KubeError, DecodeError):
                await self._clock.sleep(_AGAIN_S)
            else:
                break
        self._supplies.gone = True
