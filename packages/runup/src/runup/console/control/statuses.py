"""Reads the status, the outlook or the policy of the clusters whose pages are open; other clusters are not queried.

In: names of clusters with an open page. Out: the newest `ClusterStatus` of each, and a wake-up for all that wait for
it.
"""

from __future__ import annotations

import asyncio
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import msgspec

from kubekit.kube.clock import Clock, run_within
from runup.console.control.evaluation_process import EvaluationProcess
from runup.fleet.decide.members import Member

STATUS = "status"
OUTLOOK = "outlook"
POLICY = "policy"
# Statuses that are kept: each is 256 KiB at most, as an UpdateStatus is.
MAX_STATUSES = 64
MAX_STATUS = 4 * 1024 * 1024


class ClusterStatus(msgspec.Struct, frozen=True):
    """A status that was read (`value`), or the reason why it is missing; every read increases `count`."""

    value: Any = None
    why: str = ""
    count: int = 0
    read_s: float = 0.0


class Statuses:
    """The newest status of each cluster with an open page, read again every `every_s` seconds.

    `work` names what the process reads: the status, the outlook or the policy.
    """

    def __init__(
        self,
        process: EvaluationProcess,
        member: Callable[[str], Member | None],
        clock: Clock,
        *,
        every_s: float,
        work: str = STATUS,
    ) -> None:
        self._work = work
        self._process = process
        self._member = member
        self._clock = clock
        self._every_s = every_s
        self._seen: OrderedDict[str, ClusterStatus] = OrderedDict()
        self._looked_at: Counter[str] = Counter()
        self._count = 0
        self._asked = asyncio.Event()
        self._changed = asyncio.Condition()

    def newest(self, name: str) -> ClusterStatus | None:
        """Returns the last reading of a cluster, or None."""
        return self._seen.get(name)

    def forget(self, name: str) -> None:
        """Drops the last reading of a cluster that was changed: the next page of it waits for a new one."""
        self._seen.pop(name, None)

    @contextmanager
    def looking_at(self, name: str) -> Iterator[None]:
        """Has the cluster read, now and while the `with` statement lasts."""
        self._looked_at[name] += 1
        self._asked.set()
        try:
            yield
        finally:
            self._looked_at[name] -= 1
            if not self._looked_at[name]:
                del self._looked_at[name]

    async def after(self, name: str, count: int) -> ClusterStatus:
        """Returns the first status of a cluster that is newer than number `count`; waits for it."""
        async with self._changed:
            await self._changed.wait_for(lambda: name in self._seen and self._seen[name].count > count)
            return self._seen[name]

    def is_fresh(self, name: str) -> bool:
        """Reports whether a new reading would not be newer than the last one."""
        status, member = self._seen.get(name), self._member(name)
        if status is None or member is None:
            return False
        return bool(member.dump) or self._clock.monotonic() - status.read_s < self._every_s

    async def run(self) -> None:
        """Reads the observed statuses until cancelled. Raises Terminal if nothing can be read any more."""
        while True:
            await self._asked.wait()
            self._asked.clear()
            stale_names = [name for name in self._looked_at if not self.is_fresh(name)]
            await self._read(stale_names)
            if any(not self._is_of_a_dump(name) for name in self._looked_at):
                with suppress(TimeoutError):
                    await run_within(self._clock, self._every_s, self._asked.wait())
                self._asked.set()

    def _is_of_a_dump(self, name: str) -> bool:
        member = self._member(name)
        return member is None or bool(member.dump)

    async def _read(self, names: list[str]) -> None:
        """Reads the status of the named clusters, and stores each when it arrives."""
        members = [member for name in names if (member := self._member(name)) is not None and not member.problem]
        if not members:
            return
        async for result in self._process.run(self._work, members):
            if result.size > MAX_STATUS:
                problem = f"the {self._work} takes {result.size // 1024} KiB, more than the console keeps"
                await self._keep(result.name, None, problem)
            else:
                await self._keep(result.name, result.value, result.why)

    async def _keep(self, name: str, value: Any, problem: str) -> None:
        """Keeps a status, or why it is missing; beyond `MAX_STATUSES`, drops the oldest one without an open page."""
        async with self._changed:
            self._count += 1
            self._seen[name] = ClusterStatus(value, problem, self._count, self._clock.monotonic())
            self._seen.move_to_end(name)
            while len(self._seen) > MAX_STATUSES:
                oldest = next((name_ for name_ in self._seen if name_ not in self._looked_at), next(iter(self._seen)))
                del self._seen[oldest]
            self._changed.notify_all()
