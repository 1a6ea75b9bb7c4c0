"""The prober of a container: updates `ready` by the readiness probe, and reports a failed liveness probe."""

from __future__ import annotations

import asyncio

from kubekit.kube.clock import Clock
from kubesandbox.node import probes
from kubesandbox.node.container_records import Started
from kubesandbox.node.podspec import ContainerSpec
from kubesandbox.node.probes import Probe, Tally
from kubesandbox.node.reporter import Reporter


class Prober:
    """The probes of one run of one container. Raises BadPod if a probe names a port that does not exist."""

    def __init__(self, spec: ContainerSpec, reporter: Reporter, clock: Clock, host: str) -> None:
        self._spec = spec
        self._reporter = reporter
        self._clock = clock
        self._readiness = probes.parse_probe(spec.readiness, spec.ports, host)
        self._liveness = probes.parse_probe(spec.liveness, spec.ports, host)
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
            self._set_ready(tally.well)
            await self._clock.sleep(probe.period_s if tally.well else min(probe.period_s, probes.EAGER_S))

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
        why_not = await probes.run_probe(probe)
        if why_not and why_not != before:  # reported once, not every period
            self._reporter.event("Warning", "Unhealthy", f"{name} probe failed: {why_not}", self._spec)
        return why_not

    def _set_ready(self, ready: bool) -> None:
        record = self._reporter.record(self._spec.name)
        if isinstance(record.state, Started) and record.ready is not ready:
            self._reporter.put(record.with_ready(ready))
