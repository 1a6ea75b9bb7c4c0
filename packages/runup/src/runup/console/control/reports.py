"""Keeps the board of clusters current: evaluates each at the start, and live clusters and stored reports periodically.

In: the members of the fleet, and a process that evaluates them. Out: a frozen `Board`, replaced as results come.
Dumps are evaluated once, because they do not change.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress

from kubekit.error_types import Terminal
from kubekit.kube.clock import Clock, run_within
from runup.console.control.evaluation_process import EvaluationProcess, MemberResult
from runup.console.decide.board import Board, Evaluation, unknown_evaluation, with_evaluation, with_members
from runup.fleet.decide.members import Member

Members = Callable[[], tuple[Sequence[Member], Sequence[str]]]
EVALUATE = "evaluate"


class Reports:
    """The board, and the loop that renews it every `every_s` seconds; `members` names the clusters each time."""

    def __init__(
        self, process: EvaluationProcess, members: Members, clock: Clock, *, every_s: float, from_store: bool = False
    ) -> None:
        self.board = Board(kept=from_store)
        self._process = process
        self._members = members
        self._clock = clock
        self._every_s = every_s
        self._asked = asyncio.Event()
        self._again: set[str] = set()

    def member(self, name: str) -> Member | None:
        """Returns the cluster of that name, or None."""
        entry = self.board.entries.get(name)
        return entry.member if entry else None

    async def run(self) -> None:
        """Renews the board until cancelled. Raises Terminal if no evaluation is possible any more."""
        while True:
            await self.renew()
            until_s = self._clock.monotonic() + self._every_s
            while (left_s := until_s - self._clock.monotonic()) > 0:
                with suppress(TimeoutError):
                    await run_within(self._clock, left_s, self._asked.wait())
                await self._evaluate_again()

    def again(self, name: str) -> None:
        """Requests an early evaluation of a cluster that was changed."""
        self._again.add(name)
        self._asked.set()

    async def _evaluate_again(self) -> None:
        """Evaluates the clusters that were changed since the last call."""
        self._asked.clear()
        names, self._again = self._again, set()
        members = [member for name in names if (member := self.member(name)) is not None and self._is_due(member)]
        if members:
            async for result in self._process.run(EVALUATE, members):
                self._add(result)

    async def renew(self) -> None:
        """Evaluates each cluster once, dumps only if they were not evaluated yet. Raises Terminal."""
        try:
            members, notes = await asyncio.to_thread(self._members)
        except Terminal as error:
            # What is known stays, with its age, and the page says why it is not renewed.
            known_members = [entry.member for entry in self.board.entries.values()]
            self.board = with_members(self.board, known_members, [error.message])
            return
        self.board = with_members(self.board, members, notes)
        for member in members:
            if member.problem:
                self._add(MemberResult(member.name, why=member.problem))
        async for result in self._process.run(EVALUATE, [member for member in members if self._is_due(member)]):
            self._add(result)

    def _is_due(self, member: Member) -> bool:
        if member.problem:
            return False
        return not member.dump or self.board.entries[member.name].evaluated is None

    def _add(self, result: MemberResult) -> None:
        evaluated = result.value if isinstance(result.value, Evaluation) else unknown_evaluation(result.why)
        self.board = with_evaluation(
            self.board, result.name, evaluated=evaluated, size=result.size, now=self._clock.now()
        )
