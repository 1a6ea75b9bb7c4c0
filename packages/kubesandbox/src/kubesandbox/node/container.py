"""The worker of one container: starts it, watches it, and restarts it by the restart policy.

In: the container's spec and a `Launch` for each start. Out: a process, and a record of each change in the reporter.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

import aiohttp

from kubekit.kube.clock import Clock
from kubesandbox.node import container_process, podspec
from kubesandbox.node.container_process import Exit, RunningContainer
from kubesandbox.node.pod_status import RAN, ContainerRecord, Ended, RestartPolicy, Started, is_restarted
from kubesandbox.node.reporter import EventType, Reporter
from kubesandbox.node.runner_interface import Launch
from kubesandbox.node.settings import NodeSettings, Restarts, go_duration
from kubesandbox.node.supplies import StartError, Supplies
from kubesandbox.node.unpacked_images import LocalImage, PullError
from kubesandbox.tasks import run_beside, wait_for_first

# Seconds for which a failed pull shows ErrImagePull before ImagePullBackOff, as until a kubelet's next sync.
_FIRST_SHOWN_S = 1.0
# Longest interval of readiness probes before a container is ready, in seconds; keeps a sandbox's start short.
EAGER_S = 1.0


class ContainerWorker:
    """The worker, which ends once the container is finished or `stopping` is set, which also ends its process."""

    def __init__(
        self,
        spec: podspec.ContainerSpec,
        *,
        reporter: Reporter,
        supplies: Supplies,
        place: NodeSettings,
        clock: Clock,
        stopping: asyncio.Event,
    ) -> None:
        self._spec, self._reporter, self._supplies = spec, reporter, supplies
        self._place, self._clock, self._stopping = place, clock, stopping
        self._puller = Puller(spec, reporter, place)
        self._restarts = Restarts(place.backoff)
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
            if isinstance(state, Ended):
                # Waits for the back-off after the last run.
                delay = self._restarts.delay_s(self._ended_at)
                if delay:
                    metadata, name = self._reporter.pod.metadata, self._spec.name
                    pod = f"{metadata.name}_{metadata.namespace}({metadata.uid})"
                    text = f"back-off {go_duration(delay)} restarting failed container={name} pod={pod}"
                    self._reporter.put(self._record.waiting("CrashLoopBackOff", text))
                    text = f"Back-off restarting failed container {name} in pod {pod}"
                    self._report_event("Warning", "BackOff", text)
                    await self._wait_unless_stopped(delay - (self._clock.monotonic() - self._ended_at))
                self._restarts = self._restarts.after_restart(self._ended_at, self._clock.monotonic())
                if self._stopping.is_set():
                    return None
            await self._attempt()

    async def _attempt(self) -> None:
        """Starts the container and waits for its end, or reports why it could not be started and waits."""
        try:
            image = await self._puller.pull()
            launch = await self._supplies.launch(self._spec, image, self._run_number())
            log_start = self._log_file.stat().st_size if self._log_file.exists() else 0
            container = await container_process.start_container(self._place.runner, launch, self._log_file, self._clock)
        except PullError as error:
            await self._puller.wait_after(error, self._wait_unless_stopped)
        except podspec.BadPod as problem:
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
        now, record = self._clock.now(), self._record
        self._report_event("Warning", "Failed", f"Error: failed to start container: {message}")
        container_id = self._container_id(self._run_number())
        begun = record.started(now, image_id=record.image_id, container_id=container_id, ready=False)
        code = StartError.exit_code
        self._record_end(
            begun, Ended(exit_code=code, reason="StartError", message=message, started_at=now, finished_at=now)
        )

    @property
    def _log_file(self) -> Path:
        return self._place.pod_folder(self._reporter.pod) / f"{self._spec.name}.log"

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
        end = Ended(
            exit_code=exit_.code,
            reason=exit_.reason,
            message=message,
            started_at=started,
            finished_at=self._clock.now(),
        )
        self._record_end(running, end)

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
                if self._stopping.is_set():
                    self._report_event("Normal", "Killing", f"Stopping container {self._spec.name}")
                await _stop_and_wait(container, waiter, podspec.grace_s(self._reporter.pod, now=self._clock.now()))
            return await waiter
        except BaseException:
            # Cancelled because the pod is gone or the agent ends; no process may outlive either.
            await _stop_and_wait(container, waiter, 0 if self._supplies.gone else self._place.shutdown_s)
            raise

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


class Prober:
    """The probes of one run of one container. Raises BadPod if a probe names a port that does not exist."""

    def __init__(self, spec: podspec.ContainerSpec, reporter: Reporter, clock: Clock, host: str) -> None:
        self._spec, self._reporter, self._clock = spec, reporter, clock
        self._readiness = parse_probe(spec.readiness, spec.ports, host)
        self._liveness = parse_probe(spec.liveness, spec.ports, host)
        self.failed = asyncio.Event()

    @property
    def ready_at_once(self) -> bool:
        """Reports whether the container counts as ready as soon as it runs."""
        return self._readiness is None

    async def keep_ready(self) -> None:
        """Runs the readiness probe until cancelled."""
        if (probe := self._readiness) is None:
            return
        tally, before = Tally(well=False), ""
        await self._clock.sleep(probe.initial_delay_s)
        while True:
            why_not = await self._probe_and_report("Readiness", probe, before)
            tally, before = tally.with_answer(probe, well=not why_not), why_not
            record = self._reporter.record(self._spec.name)
            if isinstance(record.state, Started) and record.ready is not tally.well:
                self._reporter.put(replace(record, ready=tally.well))
            await self._clock.sleep(probe.period_s if tally.well else min(probe.period_s, EAGER_S))

    async def keep_alive(self) -> None:
        """Runs the liveness probe until it has failed too often in a row, which sets `failed`."""
        if (probe := self._liveness) is None:
            return
        tally, before = Tally(well=True), ""
        await self._clock.sleep(probe.initial_delay_s)
        while True:
            why_not = await self._probe_and_report("Liveness", probe, before)
            tally, before = tally.with_answer(probe, well=not why_not), why_not
            if not tally.well:
                break
            await self._clock.sleep(probe.period_s)
        message = f"Container {self._spec.name} failed liveness probe, will be restarted"
        self._reporter.event("Normal", "Killing", message, self._spec)
        self.failed.set()

    async def _probe_and_report(self, name: str, probe: Probe, before: str) -> str:
        why_not = await run_probe(probe)
        if why_not and why_not != before:  # reported once, not every period
            self._reporter.event("Warning", "Unhealthy", f"{name} probe failed: {why_not}", self._spec)
        return why_not


def already_present(image: str) -> str:
    """Returns the message of the Event Pulled about an image that the node has."""
    return f'Container image "{image}" already present on machine'


class Puller:
    """The image puller of one container, which also reports Events and waiting reasons."""

    def __init__(self, spec: podspec.ContainerSpec, reporter: Reporter, place: NodeSettings) -> None:
        self._spec, self._reporter = spec, reporter
        self._images, self._limits = place.images, place.backoff
        self._delays = place.backoff.delays()

    async def pull(self) -> LocalImage:
        """Returns the image. Raises PullError."""
        name, policy = self._spec.image, self._spec.pull_policy
        # An image that the node has is used as the pull policy allows.
        local_image = await asyncio.to_thread(self._images.local, name) if policy != "Always" else None
        if local_image is not None:
            self._reporter.event("Normal", "Pulled", already_present(name), self._spec)
            return local_image
        if policy == "Never":
            message = f'Container image "{name}" is not present with pull policy of Never'
            raise PullError(message, reason="ErrImageNeverPull")
        self._reporter.event("Normal", "Pulling", f'Pulling image "{name}"', self._spec)
        image = await asyncio.to_thread(self._images.pull, name)
        self._reporter.event("Normal", "Pulled", f'Successfully pulled image "{name}"', self._spec)
        self._delays = self._limits.delays()
        return image

    async def wait_after(self, error: PullError, pause: Callable[[float], Awaitable[bool]]) -> None:
        """Reports the error, then waits for the back-off; `pause` returns False once the pod is stopped."""
        delay = next(self._delays)
        self._report_waiting(error.reason, error.message)
        for message in (f'Failed to pull image "{self._spec.image}": {error.message}', f"Error: {error.reason}"):
            self._reporter.event("Warning", "Failed", message, self._spec)
        if error.reason != "ErrImagePull":  # the registry was not contacted, so there is no back-off from it
            await pause(delay)
            return
        first_delay_s = min(_FIRST_SHOWN_S, delay / 2)
        if await pause(first_delay_s):
            text = f'Back-off pulling image "{self._spec.image}"'
            self._report_waiting("ImagePullBackOff", f"{text}: ErrImagePull: {error.message}")
            self._reporter.event("Normal", "BackOff", text, self._spec)
            await pause(delay - first_delay_s)

    def _report_waiting(self, reason: str, message: str) -> None:
        self._reporter.put(self._reporter.record(self._spec.name).waiting(reason, message))


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """A probe; times in seconds. `url` is "" for a port that only has to accept a connection."""

    host: str
    port: int
    url: str = ""
    headers: tuple[tuple[str, str], ...] = ()
    initial_delay_s: float = 0
    period_s: float = 10
    timeout_s: float = 1
    successes: int = 1
    failures: int = 3


def parse_probe(probe: podspec.JSON | None, ports: Iterable[podspec.JSON], host: str) -> Probe | None:
    """Parses a probe of a pod; None for one that is not probed. Raises BadPod for an unknown port name."""
    target = (probe or {}).get("httpGet") or (probe or {}).get("tcpSocket")
    if probe is None or not target:
        return None
    host = target.get("host") or host
    port = target["port"]
    if isinstance(port, str) and not port.isdigit():
        numbers = [entry["containerPort"] for entry in ports if entry.get("name") == port]
        if not numbers:
            raise podspec.BadPod(f"couldn't find port: {port}")
        port = numbers[0]
    url = ""
    if "httpGet" in probe:
        url = (
            f"{(target.get('scheme') or 'HTTP').lower()}://{host}:{int(port)}/{(target.get('path') or '/').lstrip('/')}"
        )
    return Probe(
        host=host,
        port=int(port),
        url=url,
        headers=tuple((header["name"], header["value"]) for header in target.get("httpHeaders") or ()),
        initial_delay_s=probe.get("initialDelaySeconds") or 0,
        period_s=probe.get("periodSeconds") or 10,
        timeout_s=probe.get("timeoutSeconds") or 1,
        successes=probe.get("successThreshold") or 1,
        failures=probe.get("failureThreshold") or 3,
    )


@dataclass(frozen=True, slots=True)
class Tally:
    """The current result, and the number of equal answers in a row."""

    well: bool
    in_a_row: int = 0
    last: bool | None = None

    def with_answer(self, probe: Probe, *, well: bool) -> Tally:
        """Returns the tally after one more answer."""
        in_a_row = self.in_a_row + 1 if well is self.last else 1
        needed = probe.successes if well else probe.failures
        return replace(self, well=well if in_a_row >= needed else self.well, in_a_row=in_a_row, last=well)


async def run_probe(probe: Probe) -> str:
    """Runs the probe once; returns why the container is not healthy, or ""."""
    try:
        async with asyncio.timeout(probe.timeout_s):
            if not probe.url:
                _, writer = await asyncio.open_connection(probe.host, probe.port)
                writer.close()
                return ""
            # Certificates are not verified (kubernetes.io: configure liveness, readiness and startup probes).
            async with (
                aiohttp.ClientSession() as session,
                session.get(probe.url, headers=probe.headers, ssl=False) as response,
            ):
                well = 200 <= response.status < 400
                return "" if well else f"HTTP probe failed with statuscode: {response.status}"
    except TimeoutError:
        return f"no answer within {probe.timeout_s:g} s"
    except (OSError, aiohttp.ClientError) as error:
        return str(error)
