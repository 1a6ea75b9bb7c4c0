"""The worker of one container: starts it, watches it, and restarts it by the restart policy.

In: the container's spec and a `Launch` for each start. Out: a process, and a record of each change in the reporter.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from pathlib import Path

from kubekit.kube.clock import Clock
from kubesandbox.node import backoff, container_process, podspec
from kubesandbox.node.container_process import Exit, RunningContainer
from kubesandbox.node.container_records import RAN, ContainerRecord, Ended, RestartPolicy, is_restarted
from kubesandbox.node.place import NodeSettings
from kubesandbox.node.podspec import BadPod, ContainerSpec
from kubesandbox.node.prober import Prober
from kubesandbox.node.puller import Puller
from kubesandbox.node.reporter import EventType, Reporter
from kubesandbox.node.runner_interface import Launch
from kubesandbox.node.supplies import StartError, Supplies
from kubesandbox.node.unpacked_images import LocalImage, PullError
from kubesandbox.tasks import run_beside, wait_for_first


class ContainerWorker:
    """The worker, which ends once the container is finished or `stopping` is set, which also ends its process."""

    def __init__(
        self,
        spec: ContainerSpec,
        *,
        reporter: Reporter,
        supplies: Supplies,
        place: NodeSettings,
        clock: Clock,
        stopping: asyncio.Event,
    ) -> None:
        self._spec = spec
        self._reporter = reporter
        self._supplies = supplies
        self._place = place
        self._clock = clock
        self._stopping = stopping
        self._puller = Puller(spec, reporter, place)
        self._restarts = backoff.Restarts(place.backoff)
        self._ended_at = clock.monotonic()

    @property
    def _record(self) -> ContainerRecord:
        return self._reporter.record(self._spec.name)

    async def run(self, policy: RestartPolicy) -> Ended | None:
        """Returns how the container finally ended, or None if the pod was stopped before that."""
        while True:
            state = self._record.state
            if isinstance(state, Ended) and not is_restarted(policy, state.exit_code):
                return state
            if self._stopping.is_set():
                return None
            if await self._may_start():
                await self._attempt()

    async def _may_start(self) -> bool:
        """Waits for the back-off after the last run; returns False if the pod was stopped meanwhile."""
        if not isinstance(self._record.state, Ended):
            return True
        delay = self._restarts.delay_s(self._ended_at)
        if delay:
            self._back_off(delay)
            await self._wait_unless_stopped(delay - (self._clock.monotonic() - self._ended_at))
        self._restarts = self._restarts.after_restart(self._ended_at, self._clock.monotonic())
        return not self._stopping.is_set()

    async def _attempt(self) -> None:
        """Starts the container and waits for its end, or reports why it could not be started and waits."""
        try:
            image = await self._puller.pull()
            launch = await self._supplies.launch(self._spec, image, self._run_number())
            container, log_start = await self._start_container(launch)
        except PullError as error:
            await self._puller.wait_after(error, self._wait_unless_stopped)
        except BadPod as problem:
            await self._not_created(problem.reason, problem.message)
        except OSError as error:
            await self._not_created("CreateContainerError", str(error))
        except StartError as error:
            self._not_started(str(error))
        else:
            # No error of what follows is one of the start, after which it would be started again.
            await self._run_once(container, launch, image, log_start)

    def _run_number(self) -> int:
        return self._record.restarts + (self._record.latest_end is not None)

    async def _not_created(self, reason: str, message: str) -> None:
        self._reporter.put(self._record.waiting(reason, message))
        self._report_event("Warning", "Failed", f"Error: {message}")
        await self._wait_unless_stopped(self._place.backoff.first_s)

    def _not_started(self, message: str) -> None:
        """Records that the container could not be started."""
        now, record = self._clock.now(), self._record
        self._report_event("Warning", "Failed", f"Error: failed to start container: {message}")
        begun = record.started(
            now, image_id=record.image_id, container_id=self._container_id(self._run_number()), ready=False
        )
        self._record_end(begun, Ended(StartError.exit_code, "StartError", message, now, now))

    def _back_off(self, seconds: float) -> None:
        """Reports the container as waiting in CrashLoopBackOff for `seconds`, with an event."""
        metadata = self._reporter.pod.metadata
        name, pod = self._spec.name, f"{metadata.name}_{metadata.namespace}({metadata.uid})"
        text = f"back-off {backoff.go_duration(seconds)} restarting failed container={name} pod={pod}"
        self._reporter.put(self._record.waiting("CrashLoopBackOff", text))
        self._report_event("Warning", "BackOff", f"Back-off restarting failed container {name} in pod {pod}")

    @property
    def _log_file(self) -> Path:
        return self._place.pod_folder(self._reporter.pod) / f"{self._spec.name}.log"

    async def _start_container(self, launch: Launch) -> tuple[RunningContainer, int]:
        """Starts the container; returns it, and where its part of the log begins, in bytes. Raises OSError."""
        log_start = self._log_file.stat().st_size if self._log_file.exists() else 0
        return await container_process.start_container(
            self._place.runner, launch, self._log_file, self._clock
        ), log_start

    async def _run_once(self, container: RunningContainer, launch: Launch, image: LocalImage, log_start: int) -> None:
        """Waits until a started container ends, with its probes running, and records how."""
        prober = Prober(self._spec, self._reporter, self._clock, self._place.host_ip)
        self._report_event("Normal", "Created", f"Created container: {self._spec.name}")
        started = self._clock.now()
        number, ready = self._run_number(), prober.ready_at_once
        running = self._record.started(
            started, image_id=image.reference, container_id=self._container_id(number), ready=ready
        )
        self._reporter.put(running)
        self._report_event("Normal", "Started", f"Started container {self._spec.name}")
        exit_ = await self._until_exit(container, prober)
        message = container_process.termination_message(
            launch.work / "termination-log",
            self._log_file,
            log_start,
            policy=self._spec.message_policy,
            exit_code=exit_.code,
        )
        self._record_end(running, Ended(exit_.code, exit_.reason, message, started, self._clock.now()))

    def _container_id(self, number: int) -> str:
        return f"{RAN}{self._reporter.pod.metadata.uid}-{self._spec.name}-{number}"

    def _record_end(self, running: ContainerRecord, end: Ended) -> None:
        self._ended_at = self._clock.monotonic()
        self._reporter.put(running.ended(end))

    async def _until_exit(self, container: RunningContainer, prober: Prober) -> Exit:
        """Returns the container's exit; stops it when the pod is stopped or a probe fails."""
        waiter = asyncio.create_task(container.wait())
        try:
            async with run_beside(prober.keep_ready(), prober.keep_alive()):
                await wait_for_first(self._stopping.wait(), prober.failed.wait(), task=waiter)
            if not waiter.done():
                await self._stop_container(container, waiter)
            return await waiter
        except BaseException:
            # Cancelled because the pod is gone or the agent ends; no process may outlive either.
            await _stop_and_wait(container, waiter, 0 if self._supplies.gone else self._place.shutdown_s)
            raise

    async def _stop_container(self, container: RunningContainer, waiter: asyncio.Task[Exit]) -> None:
        if self._stopping.is_set():
            self._report_event("Normal", "Killing", f"Stopping container {self._spec.name}")
        await _stop_and_wait(container, waiter, podspec.grace_s(self._reporter.pod, now=self._clock.now()))

    def _report_event(self, type_: EventType, reason: str, message: str) -> None:
        self._reporter.event(type_, reason, message, self._spec)

    async def _wait_unless_stopped(self, seconds: float) -> bool:
        """Waits, but no longer than until the pod is stopped; returns whether it is still wanted."""
        await wait_for_first(self._clock.sleep(seconds), self._stopping.wait())
        return not self._stopping.is_set()


async def _stop_and_wait(container: RunningContainer, waiter: asyncio.Task[Exit], grace_s: float) -> None:
    await asyncio.shield(container.stop(grace_s))
    with suppress(asyncio.CancelledError):
        await asyncio.shield(waiter)
