"""Whoever works holds the lease: a competition that breaks, or is given up, is no quiet wait and leaves no work."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
from aiohttp import web
from structlog.testing import capture_logs
from tests.kubekit.kube.apiscript import ScriptedApi, eventually, scripted_api, status
from tests.kubekit.kube.test_lease_election import LeaseServer

from kubekit.api.core_v1 import ConfigMap
from kubekit.api.scheme import resource_of
from kubekit.kube import calls
from kubekit.kube.client import Client
from kubekit.kube.clock import ManualClock
from kubekit.kube.config import ClusterConfig
from runup.process.leader_election import (
    SINGLE_NODE,
    Election,
    LeaseLost,
    election_of,
    restart_on_error,
    run_until_stopped,
    run_while_leader,
)

DEADLINE_S = 90.0
CONFIG_MAPS = resource_of(ConfigMap)


@pytest.fixture
async def api() -> AsyncIterator[ScriptedApi]:
    """A server with one Lease."""
    async with scripted_api() as found:
        found.answers(LeaseServer().answer)  # type: ignore[arg-type]
        yield found


async def test_an_elector_that_breaks_before_it_leads_ends_the_process(api: ScriptedApi) -> None:
    """Not a process that waits for its turn for ever: no lease can be written with a duration that is no number."""
    stopping = asyncio.Event()

    async def work() -> None:
        raise AssertionError("nobody leads")

    async with Client(ClusterConfig(server=api.url)) as client, asyncio.timeout(DEADLINE_S):
        with pytest.raises(OverflowError):
            await run_while_leader(
                client,
                work,
                namespace="ns",
                lease="version",
                election=Election(float("inf"), 107, 26),
                clock=ManualClock(),
                stopping=stopping,
            )
    assert stopping.is_set()


async def test_giving_up_the_lease_gives_up_the_work(api: ScriptedApi) -> None:
    """Who is cancelled lets go of the lease; what continued working would write next to the next one."""
    at_work, ended = asyncio.Event(), asyncio.Event()

    async def work() -> None:
        at_work.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    async with Client(ClusterConfig(server=api.url)) as client, asyncio.timeout(DEADLINE_S):
        leading = asyncio.create_task(
            run_while_leader(
                client,
                work,
                namespace="ns",
                lease="version",
                election=Election(),
                clock=ManualClock(),
                stopping=asyncio.Event(),
            )
        )
        await at_work.wait()
        leading.cancel()
        await asyncio.gather(leading, return_exceptions=True)
    assert ended.is_set()


async def test_what_was_decided_under_a_lease_is_not_written_after_it(api: ScriptedApi) -> None:
    """Work that continues after a pause, before anybody has noticed how long that was, writes nothing."""
    leases, written = LeaseServer(), list[str]()
    clock = ManualClock()

    async def answer(request: web.BaseRequest) -> web.StreamResponse:
        if "leases" in request.path:
            return await leases.answer(request)
        if request.method != "GET":
            written.append(request.path.rpartition("/")[2])
        return web.json_response({"metadata": {"name": "a"}})

    api.answers(answer)  # type: ignore[arg-type]

    async def work() -> None:
        await client.send(calls.merge_patch(CONFIG_MAPS, "before", {}, "ns"))
        clock.jump(Election().renew_deadline_s)
        await client.send(calls.merge_patch(CONFIG_MAPS, "after", {}, "ns"))

    async with Client(ClusterConfig(server=api.url)) as client, asyncio.timeout(DEADLINE_S):
        # Whichever comes first, the write that is refused or the elector: it ends as a process that lost its lease.
        with pytest.raises(LeaseLost, match=r"^the lease ns/version was lost: "):
            await run_while_leader(
                client,
                work,
                namespace="ns",
                lease="version",
                election=Election(),
                clock=clock,
                stopping=asyncio.Event(),
            )
    assert written == ["before"]


@pytest.mark.parametrize(
    "text",
    [
        "inf,107,26",
        "nan,107,26",
        "137,107",
        "137,107,26,5",
        "107,137,26",
        "137,137,26",
        "137,107,107",
        "137,26,107",
        "137,107,0",
        "long,longer,longest",
        "",
    ],
)
def test_durations_that_are_none(text: str) -> None:
    """Refused where they are typed."""
    with pytest.raises(ValueError, match="three falling numbers"):
        election_of(text)


@pytest.mark.parametrize(
    ("text", "election"),
    [
        pytest.param("137,107,26", Election(), id="those of OpenShift's components"),
        pytest.param("3,2,0.5", Election(3, 2, 0.5), id="short ones"),
    ],
)
def test_durations_as_they_are_typed(text: str, election: Election) -> None:
    """How long the lease lasts, until when it must be renewed, and how often that is tried."""
    assert election_of(text) == election


@pytest.mark.parametrize(
    ("topology", "lasts_s"),
    [
        pytest.param("SingleReplica", 270, id="one control plane node"),
        pytest.param("HighlyAvailable", 137, id="several"),
        pytest.param(None, 137, id="nobody knows"),
        pytest.param("", 137, id="an answer that nobody can read"),
    ],
)
async def test_how_long_a_lease_is_held_hangs_on_the_topology(topology: str | None, lasts_s: int) -> None:
    """Longer where one node's API server is away while that node restarts; what was asked for stands above it."""
    leases = LeaseServer()

    async def answer(request: web.BaseRequest) -> web.StreamResponse:
        if "infrastructures" not in request.path:
            return await leases.answer(request)
        if topology is None:
            return web.json_response(status(404, "NotFound"), status=404)
        found = {"metadata": {"name": "cluster"}, "status": {"controlPlaneTopology": topology}}
        return web.json_response(found if topology else [])

    for asked, expected in ((None, lasts_s), (Election(30, 20, 5), 30)):
        leases.lease = None
        async with scripted_api() as api, Client(ClusterConfig(server=api.url)) as client, asyncio.timeout(DEADLINE_S):
            api.answers(answer)
            stopping = asyncio.Event()

            async def work(stopping: asyncio.Event = stopping) -> None:
                stopping.set()

            await run_while_leader(
                client,
                work,
                namespace="ns",
                lease="version",
                election=asked,
                clock=ManualClock(),
                stopping=stopping,
            )
        assert leases.lease is not None
        assert leases.writes[-2]["leaseDurationSeconds"] == expected


def test_on_a_single_node_all_of_an_election_is_longer() -> None:
    """As OpenShift's library has it for leaders of single-node clusters: 270, 240 and 60 seconds."""
    assert (SINGLE_NODE.lease_duration_s, SINGLE_NODE.renew_deadline_s, SINGLE_NODE.retry_period_s) == (270, 240, 60)


async def test_who_needs_no_lease_works_at_once() -> None:
    """Nobody is asked for one; the work's end, or its error, is the end."""

    async def fails() -> None:
        raise ValueError("it broke")

    async def ends() -> None:
        return

    async with Client(ClusterConfig(server="http://127.0.0.1:9")) as client:
        for work in (ends, fails):
            leading = run_while_leader(
                client,
                work,
                namespace="ns",
                lease="version",
                election=None,
                clock=ManualClock(),
                stopping=asyncio.Event(),
                elect=False,
            )
            if work is ends:
                await leading
                continue
            with pytest.raises(ValueError, match="it broke"):
                await leading


async def test_a_lost_lease_ends_the_work_and_says_why(api: ScriptedApi) -> None:
    """Another one holds it: the process ends, and its log names the holder."""
    leases, clock, stopping = LeaseServer(), ManualClock(), asyncio.Event()
    api.answers(leases.answer)  # type: ignore[arg-type]
    at_work = asyncio.Event()

    async def work() -> None:
        at_work.set()
        await asyncio.Event().wait()

    with capture_logs() as logs:
        async with Client(ClusterConfig(server=api.url)) as client, asyncio.timeout(DEADLINE_S):
            leading = asyncio.create_task(
                run_while_leader(
                    client, work, namespace="ns", lease="version", election=Election(), clock=clock, stopping=stopping
                )
            )
            await at_work.wait()
            await eventually(lambda: clock.sleeping == (26,))
            assert leases.lease is not None
            leases.lease["spec"]["holderIdentity"] = "another"
            await clock.advance(26)
            with pytest.raises(LeaseLost, match=r"^the lease ns/version was lost: another holds it$") as raised:
                await leading
    assert (raised.value.reason, stopping.is_set()) == ("LeaseLost", True)
    assert [(line["log_level"], line["event"], line["lease"], line.get("why", "")) for line in logs] == [
        ("info", "leading", "version", ""),
        ("error", "the lease was lost", "ns/version", "another holds it"),
    ]


async def test_a_replica_that_waits_names_the_holder_once(api: ScriptedApi) -> None:
    """A dead leader's successor waits for minutes."""
    leases, clock, stopping = LeaseServer(), ManualClock(), asyncio.Event()
    leases.lease = {
        "metadata": {"name": "version", "namespace": "ns", "resourceVersion": "1"},
        "spec": {"holderIdentity": "another", "leaseDurationSeconds": 137, "leaseTransitions": 1},
    }
    api.answers(leases.answer)  # type: ignore[arg-type]

    async def work() -> None:
        raise AssertionError("another process leads")

    with capture_logs() as logs:
        async with Client(ClusterConfig(server=api.url)) as client, asyncio.timeout(DEADLINE_S):
            waiting = asyncio.create_task(
                run_while_leader(
                    client, work, namespace="ns", lease="version", election=Election(), clock=clock, stopping=stopping
                )
            )
            for _ in range(2):
                await eventually(lambda: clock.sleeping)
                await clock.advance(58)
            stopping.set()
            await waiting
    assert [(line["event"], line["lease"], line["holder"]) for line in logs] == [
        ("waiting for the lease", "ns/version", "another")
    ]


async def test_what_ends_by_a_bug_of_ours_is_run_again_ten_seconds_later() -> None:
    """With a traceback in the log each time; what ends by itself is over."""
    clock, runs = ManualClock(), list[float]()

    async def work() -> None:
        runs.append(clock.monotonic())
        if len(runs) < 3:
            raise ValueError("it broke")

    running = asyncio.create_task(restart_on_error(work, clock))
    with capture_logs() as logs:
        await clock.advance(30)
    assert running.done()
    assert runs == [0, 10, 20]
    assert [line["event"] for line in logs] == ["it ended, and is started again"] * 2


async def test_what_is_told_to_stop_is_over_before_anybody_goes_on() -> None:
    """Also where it takes a moment to end."""
    stopping, at_work, ended = asyncio.Event(), asyncio.Event(), list[str]()

    async def work() -> None:
        at_work.set()
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            ended.append("over")

    going = asyncio.create_task(run_until_stopped(stopping, work()))
    await at_work.wait()
    stopping.set()
    await going
    assert ended == ["over"]
