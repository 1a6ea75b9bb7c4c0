"""The metrics of the controller of update policies. They show the cluster as of the last pass."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from prometheus_client import CollectorRegistry, Counter, Gauge

from kubekit.api.conditions import find
from runup.api.machineconfig_v1 import MachineConfigPool
from runup.api.update_policy_v1alpha1 import PAUSED_BY, UpdatePolicyStatus, UpdateRun
from runup.rollout.decide.calendar import Calendar
from runup.rollout.decide.durations import parse
from runup.rollout.decide.metric_samples import GATE_VALUES, closing_gate, missed_openings, outcome_of
from runup.rollout.decide.policy import active_run, failed_run
from runup.rollout.decide.pools import Pools, own_pauses
from runup.rollout.decide.run_steps import BEFORE_START, FINISHED, TARGET_WITHDRAWN

# Outcomes that an alert or a panel counts; the others appear with the first such run.
_OUTCOMES = ("Succeeded", "SucceededUngated", "AlreadyThere", "WithdrawnBefore")


class Metrics:
    """The metrics of one controller, in a separate registry."""

    def __init__(self) -> None:
        self.registry = registry = CollectorRegistry()
        self.leading = Gauge("runup_update_leading", "1 while this process holds the lease.", registry=registry)
        self._passed = Gauge(
            "runup_update_pass_timestamp_seconds", "Time of the last pass that succeeded.", registry=registry
        )
        self._ready = Gauge(
            "runup_update_policy_ready", "1 if the policy can start updates, else 0.", ["reason"], registry=registry
        )
        self._step = Gauge("runup_update_run_step", "1 for the step of a run.", ["run", "step"], registry=registry)
        self._gate = Gauge(
            "runup_update_gate_open", "1 open, 0 closed, -1 unknown, of the active run.", ["gate"], registry=registry
        )
        self._closed = Gauge(
            "runup_update_gate_closed_seconds",
            "Seconds for which this process has seen a gate of the active run not open.",
            ["gate", "reason"],
            registry=registry,
        )
        self._missed = Gauge(
            "runup_update_missed_openings",
            "Openings that the active run has missed, and the gate that is not open.",
            ["gate"],
            registry=registry,
        )
        self._opening = Gauge(
            "runup_update_next_opening_timestamp_seconds", "Next opening of the policy's windows.", registry=registry
        )
        self._paused = Gauge(
            "runup_update_paused_pool_seconds",
            "Seconds for which a run has kept a pool paused; without its run, for which this process has seen it.",
            ["pool"],
            registry=registry,
        )
        self._most_paused = Gauge(
            "runup_update_paused_pool_limit_seconds",
            "Seconds for which the run wants the pool to be paused at most; 0 if its run does not exist any more.",
            ["pool"],
            registry=registry,
        )
        self._withdrawn = Gauge(
            "runup_update_target_withdrawn",
            "1 for a run that is not finished and whose release was withdrawn during its update.",
            ["run"],
            registry=registry,
        )
        self._runs = Counter(
            "runup_update_runs_total", "Runs that ended while this process led.", ["outcome"], registry=registry
        )
        for outcome in _OUTCOMES:
            self._runs.labels(outcome)
        self._since: dict[tuple[str, str], datetime] = {}
        self._unfinished: set[str] = set()
        self._orphans: dict[str, datetime] = {}

    def observe_policy(self, status: UpdatePolicyStatus | None) -> None:
        """Sets the metrics of the policy; `status` is None without one."""
        self._ready.clear()
        ready = find(status.conditions, "Ready") if status is not None else None
        if ready is not None:
            self._ready.labels(ready.reason).set(ready.status == "True")
        opening = status.next_opening if status is not None else None
        self._opening.set(opening.timestamp() if opening is not None else 0)

    def observe_runs(
        self, runs: Sequence[UpdateRun], now: datetime, calendars: Sequence[Calendar], pools: Pools = ()
    ) -> None:
        """Sets the metrics of the runs at the end of a pass; `calendars` are those of the active run."""
        self._passed.set(now.timestamp())
        for gauge in (self._step, self._gate, self._closed, self._missed, self._withdrawn):
            gauge.clear()
        if not isinstance(pools, str):
            # While the pools are not known, the last values stay.
            self._observe_pools(runs, now, pools)
        for run in runs:
            if run.status.step not in FINISHED and find(run.status.conditions, TARGET_WITHDRAWN) is not None:
                self._withdrawn.labels(run.metadata.name).set(1)
        failed = failed_run(runs)
        for run in runs:
            if run.status.step not in FINISHED or run is failed:
                self._step.labels(run.metadata.name, run.status.step).set(1)
            elif run.metadata.uid in self._unfinished:
                self._runs.labels(outcome_of(run)).inc()
        if failed is not None and failed.metadata.uid in self._unfinished:
            self._runs.labels(outcome_of(failed)).inc()
        self._unfinished = {run.metadata.uid for run in runs if run.status.step not in FINISHED}
        self._observe_gates(active_run(runs), now, calendars)

    def _observe_pools(self, runs: Sequence[UpdateRun], now: datetime, pools: Sequence[MachineConfigPool]) -> None:
        """Sets the metrics of paused pools, also of those that a finished run has left paused."""
        self._paused.clear()
        self._most_paused.clear()
        # Nothing resumes a pool whose run does not exist any more.
        uids = {run.metadata.uid for run in runs}
        orphans = [
            p.metadata.name
            for p in pools
            if p.spec.paused and p.metadata.annotations.get(PAUSED_BY, "") not in uids | {""}
        ]
        self._orphans = {name: self._orphans.get(name, now) for name in orphans}
        for name, since in self._orphans.items():
            self._paused.labels(name).set((now - since).total_seconds())
            self._most_paused.labels(name).set(0)
        for run in runs:
            for name, since in own_pauses(run, pools).items():
                self._paused.labels(name).set((now - since).total_seconds())
                self._most_paused.labels(name).set(parse(run.spec.pools.max_paused, "maxPaused").total_seconds())

    def _observe_gates(self, run: UpdateRun | None, now: datetime, calendars: Sequence[Calendar]) -> None:
        """Sets the metrics of the gates of the active run, until its update has begun."""
        if run is None or run.status.step not in BEFORE_START:
            self._since = {}
            return
        for gate in run.status.gates:
            self._gate.labels(gate.name).set(GATE_VALUES[gate.state])
        closed = [(gate.name, gate.reason) for gate in run.status.gates if gate.state != "Open"]
        self._since = {key: self._since.get(key, now) for key in closed}
        for key, since in self._since.items():
            self._closed.labels(*key).set((now - since).total_seconds())
        gate_name, created = closing_gate(run), run.metadata.creation_timestamp
        if gate_name and created is not None:
            self._missed.labels(gate_name).set(missed_openings(calendars, created, now))
