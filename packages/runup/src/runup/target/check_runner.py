"""Runs checks next to the event loop, one after the other, each within a time limit, and only if its result may change.

A check gives the same outcome as long as nothing that it read has changed, so its outcome is reused for a while. In a
large cluster a single change then costs the checks that read that kind, and not the whole catalogue.

Python cannot stop a thread. A check that takes too long is abandoned and becomes Unknown. It is not started again while
it still runs, so that a hanging check costs one thread in all and not one for each change.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Mapping
from datetime import UTC, datetime

import msgspec
from msgspec.structs import replace

from kubekit.api.scheme import Resource
from kubekit.kube.clock import Clock
from runup.checks.control.logged_checks import run_logged
from runup.checks.decide.engine import CheckOutcome, could_not_tell
from runup.checks.decide.model import Check, Context, Snapshot

LIMIT_S = 10.0
_NO_TIME = datetime(1970, 1, 1, tzinfo=UTC)


class _LastOutcome(msgspec.Struct, frozen=True):
    """The last outcome of a check, its time, and its inputs: `context` without its time, a number for each kind."""

    outcome: CheckOutcome
    at: float
    context: Context
    kind_revisions: Mapping[Resource, int]


class Runner:
    """Runs each check in a separate thread, for at most `limit_s` seconds.

    An outcome is reused for at most `keep_s` seconds even if nothing changed, because checks also depend on the time.
    """

    def __init__(self, clock: Clock, limit_s: float = LIMIT_S, keep_s: float = 0.0) -> None:
        self._clock = clock
        self._limit_s = limit_s
        self._keep_s = keep_s
        self._last_outcomes: dict[str, _LastOutcome] = {}
        self._abandoned: set[str] = set()

    async def outcome_of(
        self, check: Check, snapshot: Snapshot, context: Context, kind_revisions: Mapping[Resource, int]
    ) -> CheckOutcome:
        """Returns the outcome of `check`: the last one if its inputs are unchanged and it is recent, else a new one.

        `kind_revisions` has a number for each kind, which changes whenever something of that kind does.
        """
        # The time is part of the context, and always differs; `keep_s` limits the age instead.
        timeless, now = replace(context, now=_NO_TIME), self._clock.monotonic()
        last_outcome = self._last_outcomes.get(check.name)
        if last_outcome is not None and self._is_still_valid(
            last_outcome, check, context=timeless, kind_revisions=kind_revisions, now=now
        ):
            return last_outcome.outcome
        outcome = await self.run(check, snapshot, context)
        self._last_outcomes[check.name] = _LastOutcome(outcome, now, timeless, kind_revisions)
        return outcome

    def _is_still_valid(
        self, answer: _LastOutcome, check: Check, context: Context, kind_revisions: Mapping[Resource, int], now: float
    ) -> bool:
        """Returns whether a kept answer may be used again: recent, and nothing that the check read has changed."""
        if now - answer.at >= self._keep_s or check.name in self._abandoned or answer.context != context:
            return False
        resources_read = answer.outcome.asked | set(check.reads)
        return answer.outcome.check is check and all(
            answer.kind_revisions.get(resource, 0) == kind_revisions.get(resource, 0) for resource in resources_read
        )

    async def run(self, check: Check, snapshot: Snapshot, context: Context) -> CheckOutcome:
        """Runs `check` and returns its outcome with its duration; Unknown if it does not finish within the limit."""
        if check.name in self._abandoned:
            return could_not_tell(check, f"did not finish in {self._limit_s:g} s, and still runs")
        started = self._clock.monotonic()
        future: asyncio.Future[CheckOutcome] = asyncio.get_running_loop().create_future()
        self._start_thread(check, lambda: run_logged(check, snapshot, context), future)
        finished, _ = await asyncio.wait({future}, timeout=self._limit_s)
        took_s = self._clock.monotonic() - started
        if not finished:
            self._abandoned.add(check.name)
            return replace(could_not_tell(check, f"did not finish in {self._limit_s:g} s"), duration_seconds=took_s)
        return replace(future.result(), duration_seconds=took_s)

    def _start_thread(
        self, check: Check, work: Callable[[], CheckOutcome], future: asyncio.Future[CheckOutcome]
    ) -> None:
        """Runs `work` in a thread and hands its outcome to `future`, unless the process ends before."""
        loop = asyncio.get_running_loop()

        def hand_over(outcome: CheckOutcome) -> None:
            self._abandoned.discard(check.name)
            if not future.done():
                future.set_result(outcome)

        def run() -> None:
            """Runs in the worker thread: computes the outcome and hands it to the event loop."""
            outcome = work()
            try:
                loop.call_soon_threadsafe(hand_over, outcome)
            except RuntimeError:
                return  # the loop is gone: the process ends

        # A daemon: a check that hangs must not keep the process from ending.
        threading.Thread(target=run, name=f"check-{check.name}", daemon=True).start()
