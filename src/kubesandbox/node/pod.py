"""One pod on its node, from its binding to its end: volumes, init containers, containers, and its deletion.

What a container goes through is `container.py`'s, what the cluster sees of it `reporter.py`'s. A pod whose agent ended
goes on with the next one as on a node that was down: what ran is started again where the restart policy says so.
"""

from __future__ import annotations

import asyncio

from kubekit.api.codec import DecodeError
from kubekit.api.whole_v1 import WholePod
from kubekit.kube import calls
from kubekit.kube.client import Client
from kubekit.kube.clock import Clock
from kubekit.kube.errors import Conflict, KubeError, NotFound
from kubesandbox.node import podspec, podstatus
from kubesandbox.node.backoff import MOUNTS
from kubesandbox.node.container import ContainerWorker
from kubesandbox.node.place import Place
from kubesandbox.node.podspec import BadPod, ContainerSpec
from kubesandbox.node.podstatus import Verdict
from kubesandbox.node.records import DECLARED, Ended, RestartPolicy, restart_policy
from kubesandbox.node.reporter import PODS, Reporter
from kubesandbox.node.supplies import Supplies
from kubesandbox.tasks import beside, first

_DEADLINE = Verdict("DeadlineExceeded", "Pod was active on the node longer than the specified deadline")
_AGAIN_S = 0.5


class PodWorker:
    """Runs a pod (`runs`), or only declares it, until it is deleted."""

    def __init__(self, pod: WholePod, client: Client, place: Place, clock: Clock, *, runs: bool) -> None:
        self._client = client
        self._place = place
        self._clock = clock
        self._runs = runs
        self._reporter = Reporter(pod, client, clock, place.host_ip)
        self._supplies = Supplies(pod, client, place)
        # Containers end when the pod is deleted, or when it has been active for too long.
        self._stopping = asyncio.Event()
        self._deleted = asyncio.Event()
        self.update(pod)

    @property
    def pod(self) -> WholePod:
        """The pod as it was last told of."""
        return self._pod

    @property
    def _pod(self) -> WholePod:
        return self._reporter.pod

    def update(self, pod: WholePod) -> None:
        """The pod as it is now; its deletion ends it."""
        self._reporter.pod = pod
        if pod.metadata.deletion_timestamp is not None:
            self._deleted.set()
            self._stopping.set()

    def vanish(self) -> None:
        """The object is gone, without waiting for the pod's end; to be followed by a cancellation of `run`."""
        self._supplies.gone = True

    async def run(self) -> None:
        """Until the pod is over and deleted, or this is cancelled (its processes are ended, its object stays)."""
        try:
            if self._deleted.is_set():
                await self._delete()
            elif self._runs:
                await self._run()
            else:
                await self._declare()
        finally:
            if self._supplies.gone:
                await asyncio.to_thread(self._supplies.clear)

    async def _run(self) -> None:
        async with beside(self._reporter.keep_publishing(), self._supplies.account.keep(self._clock), self._deadline()):
            if await self._prepared() and await self._initialized():
                await self._run_containers()
            await self._reporter.publish()
            await self._deleted.wait()
            # A second time, for a pod that was over before it was deleted may read otherwise now.
            await self._reporter.publish()
            await self._delete()

    async def _run_containers(self) -> None:
        async with asyncio.TaskGroup() as group:
            for spec in podspec.containers(self._pod):
                group.create_task(self._worker(spec).run(restart_policy(self._pod)))

    async def _initialized(self) -> bool:
        """Run the init containers one after the other; whether the others may start."""
        # They are started again until they succeed, unless nothing of the pod ever is.
        policy: RestartPolicy = "Never" if restart_policy(self._pod) == "Never" else "OnFailure"
        for spec in podspec.init_containers(self._pod):
            ended = await self._worker(spec).run(policy)
            if ended is None or ended.exit_code != 0:
                return False
        return not self._stopping.is_set()

    def _worker(self, spec: ContainerSpec) -> ContainerWorker:
        return ContainerWorker(
            spec,
            reporter=self._reporter,
            supplies=self._supplies,
            place=self._place,
            clock=self._clock,
            stopping=self._stopping,
        )

    async def _prepared(self) -> bool:
        """Volumes and credentials, tried again until they are there; False where the pod was stopped before that."""
        self._reporter.all_wait()
        told = ""
        for delay in MOUNTS.delays():
            problem = await self._problem()
            if not problem or self._stopping.is_set():
                break
            if problem != told:
                self._reporter.event("Warning", "FailedMount", problem, None)
            told = problem
            await first(self._clock.sleep(delay), self._stopping.wait())
        return not self._stopping.is_set()

    async def _problem(self) -> str:
        """Prepare; the empty string, or why it cannot be done."""
        try:
            await self._supplies.prepare()
        except BadPod as problem:
            return problem.message
        except (KubeError, DecodeError, OSError) as error:
            return f"MountVolume.SetUp failed: {error}"
        return ""

    async def _deadline(self) -> None:
        """End the pod when it has been active for as long as it may."""
        seconds = podspec.active_deadline_s(self._pod)
        if seconds is None:
            return
        passed = (self._clock.now() - self._reporter.started_at).total_seconds()
        await self._clock.sleep(seconds - passed)
        if not podstatus.is_over(self._pod):
            self._reporter.verdict = _DEADLINE
            self._reporter.event("Normal", _DEADLINE.reason, _DEADLINE.message, None)
            self._reporter.put()
            self._stopping.set()

    async def _declare(self) -> None:
        if self._place.declare_others and not podstatus.is_ours(self._pod):
            now, uid = self._clock.now(), self._pod.metadata.uid
            for spec in podspec.init_containers(self._pod):
                record = self._reporter.record(spec.name)
                self._reporter.put(record.ended(Ended(0, "Completed", started_at=now, finished_at=now)))
            for spec in podspec.containers(self._pod):
                container_id = f"{DECLARED}{uid}/{spec.name}"
                record = self._reporter.record(spec.name)
                self._reporter.put(record.started(now, image_id=spec.image, container_id=container_id, ready=True))
            await self._reporter.publish()
        await self._deleted.wait()
        await self._delete()

    async def _delete(self) -> None:
        """Let the object go, now that nothing of it runs."""
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
