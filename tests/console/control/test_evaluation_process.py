"""The process that evaluates: results as they come, what is lost, rounds that nobody waits for, and its end."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from tests.servers import eventually

from kubekit.error_types import Terminal
from kubekit.kube.clock import ManualClock
from runup.console.control.evaluation_process import EvaluationProcess, MemberResult
from runup.console.control.reports import EVALUATE, Reports
from runup.console.decide.board import Evaluation
from runup.fleet.decide.members import Member
from runup.preflight.decide.findings import Findings

pytestmark = pytest.mark.timeout(240)
MEMBERS = tuple(Member(name=name, dump=name) for name in ("a", "b", "c"))
LIVE = (*MEMBERS[:2], Member(name="live", context="live"), Member(name="ruin", problem="no such file"))


def _name_and_process(member: Member) -> tuple[str, int]:
    return member.name, os.getppid()


def _fails_for_b(member: Member) -> str:
    if member.name == "b":
        os.kill(os.getpid(), signal.SIGKILL)
    return member.name


def _evaluate(member: Member) -> Evaluation:
    return Evaluation(findings=Findings(source=member.name, target=str(os.getpid())))


WORKS: Mapping[str, Any] = {"name": _name_and_process, "kill": _fails_for_b, EVALUATE: _evaluate}


@pytest.fixture
def process() -> Iterator[EvaluationProcess]:
    """A process that does all of these."""
    made = EvaluationProcess(WORKS, parallel=2)
    yield made
    made.close()


async def test_results_come_from_workers(process: EvaluationProcess) -> None:
    """One for each member, from processes of the process; their sizes are known."""
    results = {result.name: result async for result in process.run("name", MEMBERS)}
    assert {name: result.value for name, result in results.items()} == {m.name: (m.name, process.pid) for m in MEMBERS}
    assert all(result.size > 0 for result in results.values())


async def test_a_worker_that_dies_costs_its_own(process: EvaluationProcess) -> None:
    """The others have their results, and the next round is like any."""
    results = {result.name: result async for result in process.run("kill", MEMBERS)}
    assert (results["a"].value, results["c"].value) == ("a", "c")
    assert "SIGKILL" in results["b"].why
    assert len([result async for result in process.run("name", MEMBERS)]) == len(MEMBERS)


async def test_a_round_that_nobody_waits_for(process: EvaluationProcess) -> None:
    """Late results of a round do not count as the next round's."""
    left = process.run("name", MEMBERS)
    assert isinstance(await anext(left), MemberResult)
    await left.aclose()
    assert [result.value async for result in process.run("kill", MEMBERS[:1])] == ["a"]


async def test_an_unknown_work_is_told(process: EvaluationProcess) -> None:
    """It ends the round with the reason, not the process."""
    with pytest.raises(Terminal, match="KeyError"):
        [result async for result in process.run("unknown", MEMBERS)]
    assert len([result async for result in process.run("name", ())]) == 0


async def test_the_process_has_ended(process: EvaluationProcess) -> None:
    """Waiters get the error, now and the next time."""
    assert process.pid is not None
    os.kill(process.pid, signal.SIGKILL)
    for _ in range(2):
        with pytest.raises(Terminal, match="has ended; start the console again"):
            [result async for result in process.run("name", MEMBERS)]


@pytest.mark.slow
def test_it_ends_when_it_is_closed() -> None:
    """Its process is gone, and closing twice is no fault."""
    made = EvaluationProcess(WORKS)
    pid = made.pid
    assert pid is not None
    made.close()
    made.close()
    eventually(lambda: not _is_there(pid), "the process has ended")


def _is_there(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


async def test_what_is_judged_again(process: EvaluationProcess) -> None:
    """Live clusters each time, dumps once; what cannot be read at all is reported without a process."""
    reports = Reports(process, lambda: (LIVE, ("a note",)), ManualClock(), every_s=60)
    await reports.renew()
    first = {name: entry.evaluated for name, entry in reports.board.entries.items()}
    assert set(first) == {"a", "b", "live", "ruin"}
    assert first["ruin"] is not None
    assert first["ruin"].findings.failed is not None
    assert reports.board.notes == ("a note",)
    await reports.renew()
    again = {name: entry.evaluated for name, entry in reports.board.entries.items()}
    assert (again["a"], again["b"]) == (first["a"], first["b"])
    assert again["live"] != first["live"]


async def test_a_store_that_cannot_be_read_any_more(process: EvaluationProcess) -> None:
    """The last results stay, and the page says why they are not renewed."""
    problems: list[str] = []

    def members() -> tuple[tuple[Member, ...], tuple[str, ...]]:
        if problems:
            raise Terminal(problems[0], reason="NoStore")
        return MEMBERS, ()

    reports = Reports(process, members, ManualClock(), every_s=60)
    await reports.renew()
    problems.append("--store x: there is no such folder")
    await reports.renew()
    assert reports.board.notes == ("--store x: there is no such folder",)
    assert all(entry.evaluated for entry in reports.board.entries.values())


async def test_a_cluster_that_was_changed(process: EvaluationProcess) -> None:
    """It is evaluated again at once, and no other; the next round comes when it is due."""
    clock = ManualClock()
    more = Member(name="more", context="more")
    reports = Reports(process, lambda: ((*LIVE, more), ()), clock, every_s=60)
    running = asyncio.create_task(reports.run())
    try:
        await clock.until_sleeping(1)
        first = {name: entry.evaluated for name, entry in reports.board.entries.items()}
        version = reports.board.version
        reports.again("live")
        reports.again("gone")
        await asyncio.to_thread(eventually, lambda: reports.board.version > version, "it is judged again")
        then = {name: entry.evaluated for name, entry in reports.board.entries.items()}
        assert then["live"] != first["live"]
        assert then["more"] == first["more"]
        await clock.until_sleeping(1)
        await clock.advance(60)
        await clock.until_sleeping(1)
        assert reports.board.entries["more"].evaluated != first["more"]
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
