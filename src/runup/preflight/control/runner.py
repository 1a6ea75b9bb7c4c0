"""Runs checks beside the event loop, one after the other, each within a time limit, and only where it can matter.

A check says the same again as long as nothing changed of what it looked at, so it is not asked again for a while: of a
large cluster a single change costs the checks that read that kind, and not the whole catalogue.

Python cannot stop a thread. A check that takes too long is left behind and becomes Unknown; it is not started again
while it still runs, so that a hanging check costs one thread and not one a change.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from kubekit.api.scheme import Resource
from kubekit.kube.clock import Clock
from runup.checks.decide.engine import CheckOutcome, could_not_tell, run_check
from runup.checks.decide.model import Check, Context, Snapshot

LIMIT_S = 10.0
_NO_TIME = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class _Said:
    """What a check said, when, and of what: `context` without its time, a number for each kind."""

    outcome: CheckOutcome
    at: float
    context: Context
    news: Mapping[Resource, int]


class Runner:
    """Runs each check in a thread of its own; `limit_s` seconds are what one may take.

    What it said stands for `keep_s` seconds, if nothing changes that it looked at: time passes for checks, too.
    """

    def __init__(self, clock: Clock, limit_s: float = LIMIT_S, keep_s: float = 0.0) -> None:
        self._clock = clock
        self._limit_s = limit_s
        self._keep_s = keep_s
        self._said: dict[str, _Said] = {}
        self._left_behind: set[str] = set()

    async def current(
        self, check: Check, snapshot: Snapshot, context: Context, news: Mapping[Resource, int]
    ) -> CheckOutcome:
        """The outcome of `check`: what it said last if it would say that again, else what it says now.

        `news` has a number for each kind, another one whenever something of it changed.
        """
        timeless, now = replace(context, now=_NO_TIME), self._clock.monotonic()
        said = self._said.get(check.name)
        if said is not None and self._stands(said, check, timeless, news, now):
            return said.outcome
        outcome = await self.run(check, snapshot, context)
        self._said[check.name] = _Said(outcome, now, timeless, news)
        return outcome

    def _stands(self, said: _Said, check: Check, context: Context, news: Mapping[Resource, int], now: float) -> bool:
        if now - said.at >= self._keep_s or check.name in self._left_behind or said.context != context:
            return False
        asked = said.outcome.asked | set(check.reads)
        return said.outcome.check is check and all(said.news.get(each, 0) == news.get(each, 0) for each in asked)

    async def run(self, check: Check, snapshot: Snapshot, context: Context) -> CheckOutcome:
        """The outcome of `check`, with how long it took."""
        if check.name in self._left_behind:
            return could_not_tell(check, f"did not finish in {self._limit_s:g} s, and still runs")
        started = self._clock.monotonic()
        done: asyncio.Future[CheckOutcome] = asyncio.get_running_loop().create_future()
        self._start(check, lambda: run_check(check, snapshot, context), done)
        finished, _ = await asyncio.wait({done}, timeout=self._limit_s)
        took_s = self._clock.monotonic() - started
        if not finished:
            self._left_behind.add(check.name)
            return replace(could_not_tell(check, f"did not finish in {self._limit_s:g} s"), duration_seconds=took_s)
        return replace(done.result(), duration_seconds=took_s)

    def _start(self, check: Check, work: Callable[[], CheckOutcome], done: asyncio.Future[CheckOutcome]) -> None:
        loop = asyncio.get_running_loop()

        def finish(outcome: CheckOutcome) -> None:
            self._left_behind.discard(check.name)
            if not done.done():
                done.set_result(outcome)

        def run() -> None:
            outcome = work()
            try:
                loop.call_soon_threadsafe(finish, outcome)
            except RuntimeError:
                return  # the loop is gone: the process ends

        # A daemon: a check that hangs must not keep the process from ending.
        threading.Thread(target=run, name=f"check-{check.name}", daemon=True).start()
