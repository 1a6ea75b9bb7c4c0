"""The update status controller: watches the objects that concern an update, computes all insights, writes one object.

The queue has one key, however many events arrive. Changes are collected for a moment, and the object is written at most
three times a second, however many nodes change in it (docs/decisions/0109). A pass depends on an earlier pass only
through the object itself, so a restart loses nothing.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import datetime

import structlog

from kubekit.api.codec import DecodeError
from kubekit.kube.api_errors import Conflict, KubeError
from kubekit.kube.clock import Clock
from kubekit.kube.workqueue import WorkQueue
from runup.api.update_v1alpha1 import UpdateStatusStatus
from runup.rules.machine_config import is_drain_wanted
from runup.updatestatus.control.alert_queries import Alerts
from runup.updatestatus.control.caches import Caches
from runup.updatestatus.control.draining_pods import DrainingPods
from runup.updatestatus.control.metrics import Metrics
from runup.updatestatus.control.observe import observe
from runup.updatestatus.control.status_store import UpdateStatusStore
from runup.updatestatus.decide.assess import assess, next_change_s
from runup.updatestatus.decide.drains import held_up_nodes
from runup.updatestatus.decide.informers import Room
from runup.updatestatus.decide.snapshot import Snapshot, readable

log = structlog.get_logger("updatestatus")
KEY = "cluster"


@dataclass(frozen=True, slots=True)
class Timing:
    """Delays in seconds between passes.

    A change is handled after `quiet_s`. After an assessment that led to a write, the next one follows `interval_s`
    later at the earliest, and not before as long as it took has passed. Without changes, the next pass follows after at
    most `longest_s`.
    """

    quiet_s: float = 0.1
    interval_s: float = 0.3
    longest_s: float = 30.0


@dataclass(frozen=True, slots=True)
class Now:
    """The time for computing insights: the clock's, or `fixed` if it is set (a cluster imported from a dump).

    How long a node has been not ready is always computed by the clock, as `oc` does in its own examples.
    """

    clock: Clock
    fixed: datetime | None = None

    def insights(self) -> datetime:
        """Returns the time at which insights are computed."""
        return self.fixed or self.clock.now()

    def nodes(self) -> datetime | None:
        """Returns the time by which nodes are assessed, or None if it is the time of the insights."""
        return self.clock.now() if self.fixed else None


class UpdateStatusController:
    """The control loop: `run` works until cancelled, and sources call `on_change`.

    `confirmed_at` is the start of the last pass after which the object was what the cluster is, None before the first.
    """

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
        self.confirmed_at: datetime | None = None
        self._not_before = self._look_at = clock.monotonic()
        caches.on_change(self.on_change)

    def on_change(self) -> None:
        """Records that an input of the insights changed, and queues a pass."""
        self._changed = True
        self.on_echo()

    def on_echo(self) -> None:
        """Queues a pass after the UpdateStatus object changed, by this controller or another client."""
        self._queue.add_after(KEY, max(self._timing.quiet_s, self._not_before - self._clock.monotonic()))

    async def run(self, keeper: UpdateStatusStore, drains: DrainingPods, alerts: Alerts) -> None:
        """Processes keys until cancelled."""
        self.on_change()
        while True:
            key = await self._queue.get()
            try:
                await self.handle(key, keeper, drains, alerts)
            finally:
                self._queue.done(key)

    async def handle(self, key: str, keeper: UpdateStatusStore, drains: DrainingPods, alerts: Alerts) -> None:
        """Runs one pass and retries it after an error; an unexpected error must not end the controller."""
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

    async def _pass(self, keeper: UpdateStatusStore, drains: DrainingPods, alerts: Alerts) -> None:
        """Runs one pass, unless it is too early for one: observes, assesses, and writes what changed."""
        if self._is_too_early(keeper):
            return
        wait_s = self._wait_s(keeper)
        if wait_s > 0:
            # The queue keeps one delay for a key, the shortest: the event of this pass replaced the scheduled one.
            self._queue.add_after(KEY, wait_s)
            return
        self._changed = False
        begun, begun_at = self._clock.monotonic(), self._clock.now()
        previous = await keeper.read()
        snapshot = observe(
            self._caches,
            alerts=alerts.state,
            draining_pods=drains.pods(),
            unread_pods=drains.undecoded(),
            drains_read=drains.read(),
        )
        drained = (node.metadata.name for node in readable(snapshot.nodes) if is_drain_wanted(node))
        drains.follow(drained, at_once=held_up_nodes(previous))
        status = self._assess_timed(snapshot, previous, keeper.room)
        if status != previous or not keeper.exists:
            await keeper.write(status)
            # Counted from the start of the pass, so that a slow server does not lengthen the interval. A pause as long
            # as the pass is always left: with 20,000 nodes or a slow server, half of the time is not the controller's.
            now = self._clock.monotonic()
            pause_s = max(self._timing.interval_s / 4, now - begun)
            self._not_before = max(begun + self._timing.interval_s, now + pause_s)
            self._metrics.writes.inc()
        self.confirmed_at = begun_at
        self._metrics.confirm(status, begun_at.timestamp())
        self._look_again(snapshot)

    def _is_too_early(self, keeper: UpdateStatusStore) -> bool:
        """Reports whether an input is unknown: half a cluster's status would end insights and start new ones."""
        waiting = self._caches.waiting()
        why = f"{waiting} is not listed yet" if waiting else keeper.lacking
        if why and why != self._lacking:
            log.warning("there can be no status yet", why=why)
        self._lacking = why
        return bool(why)

    def _assess_timed(self, snapshot: Snapshot, previous: UpdateStatusStatus | None, room: Room) -> UpdateStatusStatus:
        now, nodes = self._now.insights(), self._now.nodes()
        with self._metrics.assessment.time():
            return assess(
                snapshot,
                previous,
                now,
                node_now=nodes,
                max_bytes=room.bytes,
                others_pools=room.pools,
                full=room.full,
            )

    def _look_again(self, snapshot: Snapshot) -> None:
        longest_s = self._timing.longest_s
        delay_s = min(next_change_s(snapshot, self._now.insights()) or longest_s, longest_s)
        self._look_at = self._clock.monotonic() + delay_s
        self._queue.add_after(KEY, delay_s)

    def _wait_s(self, keeper: UpdateStatusStore) -> float:
        """Returns the seconds until insights may have changed, by an input or by time alone, and may be written."""
        changed = self._changed or not keeper.is_current
        return (self._not_before if changed else self._look_at) - self._clock.monotonic()
