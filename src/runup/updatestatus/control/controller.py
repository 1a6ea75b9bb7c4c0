"""The update status controller: watches what bears on an update, computes all insights at once, writes one object.

One key in the queue, however many events came. Changes are collected for a moment, and the object is written once a
second at most: 10 nodes that change in a second are one write. Nothing that a pass decides depends on an earlier pass
but by the object itself, so a restart loses nothing.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import datetime

import structlog

from kubekit.api.codec import DecodeError
from kubekit.kube.clock import Clock
from kubekit.kube.errors import Conflict, KubeError
from kubekit.kube.workqueue import QueueShutDown, WorkQueue
from runup.api.update_v1alpha1 import UpdateStatusStatus
from runup.updatestatus.control.alerts import Alerts
from runup.updatestatus.control.caches import Caches
from runup.updatestatus.control.drains import Drains
from runup.updatestatus.control.keeper import Keeper
from runup.updatestatus.control.metrics import Metrics
from runup.updatestatus.control.observe import observe
from runup.updatestatus.decide.assess import assess, next_change_s
from runup.updatestatus.decide.informers import Room
from runup.updatestatus.decide.snapshot import Snapshot, is_drain_wanted, readable

log = structlog.get_logger("updatestatus")
KEY = "cluster"


@dataclass(frozen=True, slots=True)
class Timing:
    """Seconds: a change is looked at after `quiet_s`, an assessment that led to a write is followed by another
    `interval_s` later at the soonest, and time alone leads to a look after `longest_s` at most.
    """

    quiet_s: float = 0.1
    interval_s: float = 1.0
    longest_s: float = 30.0


@dataclass(frozen=True, slots=True)
class Now:
    """What time it is for insights: the clock's, unless `fixed` says another (a cluster imported from a dump).

    How long a node has been not ready is always judged by the clock, as `oc` does in its own examples.
    """

    clock: Clock
    fixed: datetime | None = None

    def insights(self) -> datetime:
        """The time at which insights are computed."""
        return self.fixed or self.clock.now()

    def nodes(self) -> datetime | None:
        """The time by which nodes are judged, where it is another."""
        return self.clock.now() if self.fixed else None


class UpdateStatusController:
    """See the module. `run` works until cancelled; `on_change` is what sources call."""

    def __init__(
        self,
        *,
        caches: Caches,
        queue: WorkQueue[str],
        clock: Clock,
        metrics: Metrics,
        now: Now | None = None,
        timing: Timing | None = None,
    ) -> None:
        self._caches = caches
        self._queue = queue
        self._clock = clock
        self._metrics = metrics
        self._now = now or Now(clock)
        self._timing = timing or Timing()
        self._changed = True
        self._lacking = ""
        self._not_before = self._look_at = clock.monotonic()
        caches.on_change(self.on_change)

    def on_change(self) -> None:
        """Something that insights are made of changed."""
        self._changed = True
        self.on_echo()

    def on_echo(self) -> None:
        """The object changed, by us or by somebody else."""
        self._queue.add_after(KEY, max(self._timing.quiet_s, self._not_before - self._clock.monotonic()))

    async def run(self, keeper: Keeper, drains: Drains, alerts: Alerts) -> None:
        """Take keys until cancelled or the queue shuts down."""
        self.on_change()
        while True:
            try:
                key = await self._queue.get()
            except QueueShutDown:
                return
            try:
                await self._handle(key, keeper, drains, alerts)
            finally:
                self._queue.done(key)

    async def _handle(self, key: str, keeper: Keeper, drains: Drains, alerts: Alerts) -> None:
        """One pass; the error's type says what happens next. A bug of ours must not end the controller."""
        try:
            await self._pass(keeper, drains, alerts)
        except Conflict as error:
            log.debug("decided on an old version", error=str(error))
        except (KubeError, DecodeError) as error:
            log.warning("the object could not be written", error=str(error), failures=self._queue.failures(key))
        except asyncio.CancelledError:
            raise
        except Exception:
            log.exception("the assessment failed")
        else:
            self._queue.forget(key)
            return
        self._changed = True
        self._queue.add_rate_limited(key)

    async def _pass(self, keeper: Keeper, drains: Drains, alerts: Alerts) -> None:
        if self._is_too_early(keeper):
            return
        wait_s = self._wait_s(keeper)
        if wait_s > 0:
            # A key has one delay, the soonest: what brought us here took the place of the next look.
            self._queue.add_after(KEY, wait_s)
            return
        self._changed = False
        begun = self._clock.monotonic()
        previous = await keeper.read()
        snapshot = observe(
            self._caches, alerts=alerts.state, draining_pods=drains.pods(), unread_pods=drains.undecoded()
        )
        drains.follow(node.metadata.name for node in readable(snapshot.nodes) if is_drain_wanted(node))
        status = self._assess(snapshot, previous, keeper.room)
        if status != previous or not keeper.exists:
            await keeper.write(status)
            # From the beginning, so that a slow server does not make the interval longer, but never without a pause.
            pause_s = self._timing.interval_s / 4
            self._not_before = max(begun + self._timing.interval_s, self._clock.monotonic() + pause_s)
            self._metrics.writes.inc()
        self._look_again(snapshot)

    def _is_too_early(self, keeper: Keeper) -> bool:
        """Whether it is not known yet what there is: half a cluster's status would end insights and start them anew."""
        waiting = self._caches.waiting()
        why = f"{waiting} is not listed yet" if waiting else keeper.lacking
        if why and why != self._lacking:
            log.warning("there can be no status yet", why=why)
        self._lacking = why
        return bool(why)

    def _assess(self, snapshot: Snapshot, previous: UpdateStatusStatus | None, room: Room) -> UpdateStatusStatus:
        now, nodes = self._now.insights(), self._now.nodes()
        with self._metrics.assessment.time():
            return assess(snapshot, previous, now, node_now=nodes, max_bytes=room.bytes, others_pools=room.pools)

    def _look_again(self, snapshot: Snapshot) -> None:
        longest = self._timing.longest_s
        soon = min(next_change_s(snapshot, self._now.insights()) or longest, longest)
        self._look_at = self._clock.monotonic() + soon
        self._queue.add_after(KEY, soon)

    def _wait_s(self, keeper: Keeper) -> float:
        """How long to wait until insights may have changed, by an input or by time alone, and may be written."""
        changed = self._changed or not keeper.is_current
        return (self._not_before if changed else self._look_at) - self._clock.monotonic()
