"""Leader election between electors that share nothing but a Lease, and clocks that need not agree."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from tests.kubekit.kube.apiscript import ScriptedApi, eventually, scripted_api, status

from kubekit.kube import config
from kubekit.kube.client import Client
from kubekit.kube.clock import ManualClock
from kubekit.kube.config import ClusterConfig
from kubekit.kube.lease import LeaderElector
from kubekit.kube.request import Request
from kubesandbox.apiserver.server import ApiServer


class LeaseServer:
    """One Lease with optimistic concurrency; `down` makes it silent, `failing` answers 500, `rival` writes first.

    `mute`: nothing comes over a watch.
    """

    def __init__(self) -> None:
        self.lease: dict[str, Any] | None = None
        self.version = 0
        self.down = False
        self.failing = False
        self.rival = ""
        self.writes: list[dict[str, Any]] = []
        self.mute = False
        self.watching = 0
        # What was stored is answered when this is set.
        self.answers_writes = asyncio.Event()
        self.answers_writes.set()
        self._changed = asyncio.Condition()
        self._rounds = 0

    def holder(self) -> str:
        """Who holds the Lease, as stored."""
        return str(self.lease["spec"]["holderIdentity"]) if self.lease else ""

    async def answer(self, request: web.BaseRequest) -> web.StreamResponse:
        """GET, POST and merge PATCH."""
        if self.down:
            await asyncio.Event().wait()
        if "watch" in request.query:
            return await self._watch(request)
        if self.failing:
            return self._status(500, "InternalError")
        if request.method == "GET":
            return web.json_response(self.lease) if self.lease else self._status(404, "NotFound")
        body = json.loads(await request.read())
        if request.method == "POST":
            known = self._status(409, "AlreadyExists") if self.lease else None
            return known or await self._store(body["metadata"], body["spec"])
        assert self.lease is not None
        if self.rival:
            await self._store(self.lease["metadata"], self.lease["spec"] | {"holderIdentity": self.rival})
            self.rival = ""
        if body["metadata"]["resourceVersion"] != self.lease["metadata"]["resourceVersion"]:
            return self._status(409, "Conflict")
        annotations = {**self.lease["metadata"].get("annotations", {}), **body["metadata"].get("annotations", {})}
        metadata = self.lease["metadata"] | ({"annotations": annotations} if annotations else {})
        return await self._store(metadata, self.lease["spec"] | body["spec"])

    async def steal(self, holder: str) -> None:
        """Somebody writes himself into the Lease, whose time is not over."""
        assert self.lease is not None
        await self._store(self.lease["metadata"], self.lease["spec"] | {"holderIdentity": holder})

    async def _watch(self, request: web.BaseRequest) -> web.StreamResponse:
        """Records the Lease and each change of it."""
        answer = web.StreamResponse()
        await answer.prepare(request)
        self.watching += 1
        begun, seen = self._rounds, [-1]
        try:
            while True:
                async with self._changed:
                    await self._changed.wait_for(
                        lambda: self._rounds > begun or (self.version != seen[0] and not self.mute)
                    )
                    seen[0] = self.version
                if self._rounds > begun:
                    return answer
                await answer.write(json.dumps({"type": "MODIFIED", "object": self.lease}).encode() + b"\n")
        finally:
            self.watching -= 1

    async def end_watches(self) -> None:
        """Every watch that is open ends."""
        self._rounds += 1
        async with self._changed:
            self._changed.notify_all()

    async def _store(self, metadata: dict[str, Any], spec: dict[str, Any]) -> web.Response:
        self.version += 1
        self.lease = {"metadata": metadata | {"resourceVersion": str(self.version)}, "spec": spec}
        self.writes.append(spec)
        async with self._changed:
            self._changed.notify_all()
        await self.answers_writes.wait()
        return web.json_response(self.lease)

    @staticmethod
    def _status(code: int, reason: str) -> web.Response:
        return web.json_response(status(code, reason), status=code)


class SetClock(ManualClock):
    """A clock that somebody sets, while its seconds pass as before."""

    _off = timedelta()

    def set_by(self, off: timedelta) -> None:
        """Set it by as much."""
        self._off += off

    def now(self) -> datetime:
        """See `Clock.now`."""
        return super().now() + self._off


class Candidate:
    """An elector with a clock and a separate client, and a diary."""

    def __init__(
        self,
        name: str,
        client: Client,
        diary: list[str],
        start: datetime,
        holder: Callable[[], str] = str,
        rand: float = 0.0,
        retry_s: float = 2,
    ) -> None:
        self.clock = SetClock(start)
        self.leading = False
        self.notes: dict[str, str] = {}
        self.lasts_until: list[float] = []
        self.holder_when_stopped = ""

        def note(what: str, leading: bool) -> Callable[[], None]:
            def write() -> None:
                self.leading = leading
                self.holder_when_stopped = "" if leading else holder()
                diary.append(f"{name} {what}")

            return write

        self.elector = LeaderElector(
            client,
            namespace="ns",
            name="version",
            identity=name,
            lease_duration_s=15,
            renew_deadline_s=10,
            retry_period_s=retry_s,
            clock=self.clock,
            on_started=note("leads", True),
            on_stopped=note("stops", False),
            on_renewed=lambda lasts_s: self.lasts_until.append(self.clock.monotonic() + lasts_s),
            rand=lambda: rand,
            annotations=lambda: self.notes,
        )
        self.task = asyncio.create_task(self.elector.run())

    async def stop(self) -> None:
        """Cancel it and wait for its end."""
        self.task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)


class Election:
    """Candidates over one server."""

    def __init__(self, api: ScriptedApi, server: LeaseServer, stack: AsyncExitStack) -> None:
        self.api, self.server, self._stack = api, server, stack
        self.diary: list[str] = []
        self.candidates: list[Candidate] = []

    async def stands(
        self,
        name: str,
        start: datetime = datetime(2026, 1, 1, tzinfo=UTC),
        rand: float = 0.0,
        retry_s: float = 2,
    ) -> Candidate:
        """A new candidate, whose clock shows `start`; waits until it leads or has found that it cannot."""
        made = await self.registers(name, start, rand, retry_s)
        await self.settled(made)
        leaders = sum(candidate.leading for candidate in self.candidates)
        await eventually(lambda: self.server.watching >= leaders)
        return made

    async def registers(self, name: str, start: datetime, rand: float = 0.0, retry_s: float = 2) -> Candidate:
        """A new candidate, whose first request is on its way."""
        client = await self._stack.enter_async_context(Client(ClusterConfig(server=self.api.url)))
        made = Candidate(name, client, self.diary, start, self.server.holder, rand, retry_s)
        self.candidates.append(made)
        return made

    async def settled(self, candidate: Candidate) -> None:
        """Wait until the candidate sleeps between two attempts, or has ended."""
        await eventually(
            lambda: candidate.task.done() or (candidate.clock.sleeping and candidate.clock.sleeping[0] <= 5)
        )

    async def pass_time(self, candidate: Candidate, seconds: float) -> None:
        """Let time pass for one candidate, one retry period at a time, its requests answered in between."""
        while seconds > 0 and not candidate.task.done():
            step = min(seconds, 2)
            asked = len(self.api.requests)
            await candidate.clock.advance(step)
            if step == 2 and not self.server.down:
                await self.api.until_requests(asked + 1)
                await self.settled(candidate)
            seconds -= step


@pytest.fixture
async def election() -> AsyncIterator[Election]:
    """An election without candidates."""
    async with AsyncExitStack() as stack:
        api = await stack.enter_async_context(scripted_api())
        server = LeaseServer()
        api.answers(server.answer)  # type: ignore[arg-type]
        made = Election(api, server, stack)
        yield made
        server.down = False
        for candidate in made.candidates:
            await candidate.stop()


async def test_the_first_one_leads_and_renews(election: Election) -> None:
    """It writes the Lease as client-go does, and keeps the time of its start."""
    one = await election.stands("one")
    assert election.server.writes[0] == {
        "holderIdentity": "one",
        "leaseDurationSeconds": 15,
        "acquireTime": "2026-01-01T00:00:00.000000Z",
        "renewTime": "2026-01-01T00:00:00.000000Z",
        "leaseTransitions": 0,
    }
    await election.pass_time(one, 4)
    last = election.server.writes[-1]
    assert (last["acquireTime"], last["renewTime"]) == ("2026-01-01T00:00:00.000000Z", "2026-01-01T00:00:04.000000Z")
    assert election.diary == ["one leads"]


async def test_the_lease_lasts_from_before_each_attempt(election: Election) -> None:
    """Other candidates count from when they see the Lease; a slow answer makes the rest of the lease shorter."""
    one = await election.stands("one")
    await election.pass_time(one, 4)
    assert one.lasts_until == [15, 17, 19]
    election.server.answers_writes.clear()
    await one.clock.advance(2)
    await eventually(lambda: len(election.server.writes) == 4)
    await one.clock.advance(3)
    election.server.answers_writes.set()
    await eventually(lambda: len(one.lasts_until) == 4)
    assert one.lasts_until[-1] == 21
    await one.stop()
    assert len(one.lasts_until) == 4


async def test_a_leader_notes_on_its_lease_what_it_is_asked_to(election: Election) -> None:
    """With each renewal and when it lets go, in the same write; nothing to note is no annotation."""
    one = await election.stands("one")
    assert election.server.lease is not None
    assert "annotations" not in election.server.lease["metadata"]
    for word in ("a", "b"):
        one.notes = {"example.com/word": word}
        await election.pass_time(one, 2)
        assert election.server.lease["metadata"]["annotations"] == {"example.com/word": word}
    assert len(election.server.writes) == 3
    one.notes = {"example.com/word": "c"}
    await one.stop()
    assert election.server.lease["metadata"]["annotations"] == {"example.com/word": "c"}
    # A reader sees when it was given back, not when it was renewed last.
    assert election.server.writes[-1]["renewTime"] == "2026-01-01T00:00:04.000000Z"


@pytest.mark.parametrize("year", [2020, 2026, 2030], ids=["slow by years", "in step", "fast by years"])
async def test_a_silent_leader_is_followed_after_its_time_by_our_clock(election: Election, year: int) -> None:
    """15 s without a change as the follower sees it; what the record says about the time does not matter."""
    one = await election.stands("one")
    two = await election.stands("two", datetime(year, 6, 1, tzinfo=UTC))
    for _ in range(10):
        await election.pass_time(one, 2)
        await election.pass_time(two, 2)
    assert not two.leading
    await election.pass_time(two, 14)
    assert not two.leading
    await election.pass_time(two, 2)
    assert two.leading
    assert election.server.writes[-1]["leaseTransitions"] == 1


async def test_a_leader_that_was_overtaken_stops_when_it_sees_it(election: Election) -> None:
    """It was paused (a suspended machine, say), and so was its watch: its next attempt finds another holder."""
    election.server.mute = True
    one = await election.stands("one")
    two = await election.stands("two")
    await election.pass_time(two, 16)
    await election.pass_time(one, 2)
    await asyncio.wait_for(one.task, 90)
    assert election.diary == ["one leads", "two leads", "one stops"]
    assert (one.elector.leading, two.elector.leading) == (False, True)
    assert one.elector.lost == "two holds it"
    assert election.server.lease is not None
    assert election.server.lease["spec"]["holderIdentity"] == "two"


async def test_a_leader_whose_lease_is_stolen_stops_at_once(election: Election) -> None:
    """Not at its next attempt, until when there would be two: its clock stops here."""
    one = await election.stands("one")
    await election.server.steal("thief")
    await asyncio.wait_for(one.task, 90)
    assert (one.elector.lost, one.leading, one.clock.monotonic()) == ("thief holds it", False, 0)
    assert election.server.holder() == "thief"
    assert one.holder_when_stopped == "thief"


async def test_a_watch_that_ends_is_begun_again(election: Election) -> None:
    """After a retry period, and what happened in between is seen then."""
    one = await election.stands("one")
    await election.server.end_watches()
    await eventually(lambda: not election.server.watching and len(one.clock.sleeping) == 2)
    await one.clock.advance(2)
    await eventually(lambda: election.server.watching)
    await election.server.steal("thief")
    await asyncio.wait_for(one.task, 90)
    assert one.elector.lost == "thief holds it"


async def test_a_change_by_nobody_else_is_no_theft(election: Election) -> None:
    """Its own renewals come over the watch, and so does a holder that somebody emptied: it is taken again."""
    one = await election.stands("one")
    await election.pass_time(one, 4)
    await election.server.steal("")
    await election.pass_time(one, 2)
    assert (one.leading, election.server.holder()) == (True, "one")


async def test_stopping_lets_go_so_that_the_next_need_not_wait(election: Election) -> None:
    """Cancelled, it stops first and empties the holder then; the other leads at its next attempt."""
    one = await election.stands("one")
    two = await election.stands("two")
    await one.stop()
    assert election.server.writes[-1]["holderIdentity"] == ""
    # Whoever believes the promise need not wait either.
    assert election.server.writes[-1]["leaseDurationSeconds"] == 1
    assert one.holder_when_stopped == "one"
    assert (one.elector.leading, one.elector.lost) == (False, "")
    await election.pass_time(two, 2)
    assert election.diary == ["one leads", "one stops", "two leads"]


def held(holder: str, **spec: Any) -> dict[str, Any]:
    """A Lease as somebody left it."""
    times = {"acquireTime": "2025-12-31T00:00:00.000000Z", "renewTime": "2025-12-31T01:00:00.000000Z"}
    left = {"holderIdentity": holder, "leaseDurationSeconds": 15, "leaseTransitions": 3, **times}
    return {"metadata": {"resourceVersion": "0"}, "spec": left | spec}


@pytest.mark.parametrize(
    ("holder", "acquired", "transitions"),
    [("one", "2025-12-31T00:00:00.000000Z", 3), ("", "2026-01-01T00:00:00.000000Z", 4)],
    ids=["its own", "nobody's"],
)
async def test_a_lease_that_is_free_is_taken_at_once(
    election: Election, holder: str, acquired: str, transitions: int
) -> None:
    """Its own is gone on with, as after a restart; nobody's begins again."""
    election.server.lease = held(holder)
    await election.stands("one")
    assert election.diary == ["one leads"]
    (written,) = election.server.writes
    assert (written["acquireTime"], written["leaseTransitions"]) == (acquired, transitions)
    assert written["renewTime"] == "2026-01-01T00:00:00.000000Z"


@pytest.mark.parametrize(("promised", "until"), [(5, 6), (0, 16), (30, 30), (31, 30), (2**31 - 1, 30)])
async def test_a_holder_is_believed_for_as_long_as_it_promised(election: Election, promised: int, until: int) -> None:
    """Where it promised nothing, for as long as we would; at most for twice as long; seen every two seconds."""
    election.server.lease = held("gone", leaseDurationSeconds=promised)
    two = await election.stands("two")
    await election.pass_time(two, until - 2)
    assert not two.leading
    await election.pass_time(two, 2)
    assert two.leading


async def test_a_lease_that_changed_hands_as_often_as_can_be_told_is_taken(election: Election) -> None:
    """One more would be no number of the API, and the lease nobody's for ever."""
    election.server.lease = held("", leaseTransitions=2**31 - 1)
    await election.stands("one")
    assert election.server.writes[0]["leaseTransitions"] == 2**31 - 1


@pytest.mark.parametrize("off_s", [86_400, -86_400], ids=["forwards", "back"])
async def test_a_day_more_or_less_changes_nobodys_turn(election: Election, off_s: int) -> None:
    """Of a leader's clock or a waiting one's: what is measured is what has passed, not what is shown."""
    one = await election.stands("one")
    two = await election.stands("two")
    for clock in (one.clock, two.clock):
        clock.set_by(timedelta(seconds=off_s))
        await election.pass_time(one, 4)
        await election.pass_time(two, 4)
        assert (one.leading, two.leading) == (True, False)
    election.server.mute = True
    await election.pass_time(two, 16)
    await election.pass_time(one, 2)
    assert (one.leading, two.leading) == (False, True)


@pytest.mark.parametrize(("rand", "seconds"), [(0.0, 2.0), (0.5, 3.2), (1.0, 4.4)])
async def test_those_who_wait_do_not_ask_in_step(election: Election, rand: float, seconds: float) -> None:
    """client-go's jitter: up to 1.2 times longer."""
    election.server.lease = held("other")
    two = await election.stands("two", rand=rand)
    assert (two.elector.leading, two.elector.lost) == (False, "")
    assert two.clock.sleeping[0] == pytest.approx(seconds)


@pytest.mark.parametrize(("retry_s", "seconds"), [(0.2, 2), (4, 2)])
async def test_letting_go_takes_two_seconds_at_most(election: Election, retry_s: float, seconds: float) -> None:
    """Nobody waits longer for a process that ends; how often it asks says nothing about how long an answer takes."""
    one = await election.stands("one", retry_s=retry_s)
    election.server.down = True
    one.task.cancel()
    await eventually(lambda: one.clock.sleeping == (seconds,))
    await one.clock.advance(seconds - 0.1)
    assert (one.task.done(), one.leading) == (False, False)
    await one.clock.advance(0.1)
    await asyncio.wait((one.task,), timeout=60)
    assert one.task.cancelled()


@pytest.mark.parametrize("trouble", ["down", "failing"])
async def test_why_a_lease_was_lost_is_told(election: Election, trouble: str) -> None:
    """For how long it could not be renewed, and what came of the last attempt."""
    one = await election.stands("one")
    setattr(election.server, trouble, True)
    while one.leading:
        await eventually(lambda: one.clock.sleeping or not one.leading)
        if one.leading:
            await one.clock.advance(one.clock.sleeping[0])
    shown = {"down": "not done within 8 s", "failing": "no"}
    election.server.down = False
    assert one.elector.lost == f"not renewed within 10 s: {shown[trouble]}"


async def test_a_leader_that_slept_too_long_asks_nobody(election: Election) -> None:
    """A suspended machine: another one may lead by now."""
    one = await election.stands("one")
    asked = len(election.api.requests)
    one.clock.jump(10)
    await eventually(lambda: not one.leading)
    await asyncio.wait((one.task,), timeout=60)
    assert one.elector.lost == "not renewed within 10 s: there was no time for an attempt"
    # What was asked after that was to let go.
    assert [request.method for request in election.api.requests[asked:]] == ["GET", "PATCH"]
    assert election.server.holder() == ""


WRITE = Request(method="PATCH", path="/apis/config.openshift.io/v1/clusterversions/version/status")
LEASES = "/apis/coordination.k8s.io/v1/namespaces/ns/leases"
OF_THE_LEASE = Request(method="PATCH", path=f"{LEASES}/version")
# Writes after the leader's time: method, path, and whether they are sent.
AFTER_THE_TIME = {
    "the Lease": ("PATCH", f"{LEASES}/version", True),
    "the Lease, which is gone": ("POST", LEASES, True),
    "another Lease": ("PATCH", f"{LEASES}/version-2", False),
    "another's Lease": ("DELETE", f"{LEASES}/node", False),
    "what is posted to a Lease": ("POST", f"{LEASES}/version", False),
    "every Lease": ("DELETE", LEASES, False),
    "a kind whose name begins alike": ("PATCH", f"{LEASES}candidates/version", False),
    "a Lease of that name elsewhere": ("PATCH", LEASES.replace("/ns/", "/other/") + "/version", False),
}


async def test_writes_end_with_the_time_and_not_when_that_is_noticed(election: Election) -> None:
    """Whoever was suspended continues where it stood, before its timers run; the Lease itself may always be written."""
    one, two = await election.stands("one"), await election.stands("two")
    await election.pass_time(one, 2)
    for seconds, may in ((9.9, True), (0.1, False), (86_400, False)):
        one.clock.jump(seconds)
        assert (one.leading, one.elector.may_write(WRITE)) == (True, may), seconds
        assert one.elector.may_write(OF_THE_LEASE)
    # Who has not led has decided nothing that could be out of date.
    assert two.elector.may_write(WRITE)
    await eventually(lambda: not one.leading)
    assert not one.elector.may_write(WRITE)


@pytest.mark.parametrize(("method", "path", "may"), AFTER_THE_TIME.values(), ids=AFTER_THE_TIME)
async def test_only_the_lease_itself_is_written_after_the_time(
    method: str, path: str, may: bool, election: Election
) -> None:
    """Others' Leases are objects as any other."""
    one = await election.stands("one")
    one.clock.jump(10)
    assert one.elector.may_write(Request(method=method, path=path)) is may


async def test_writes_end_when_the_lease_is_stolen(election: Election) -> None:
    """And when it was let go."""
    one = await election.stands("one")
    await election.server.steal("thief")
    await eventually(lambda: not one.leading)
    assert not one.elector.may_write(WRITE)
    await asyncio.wait_for(one.task, 90)
    two = await election.stands("two")
    await election.server.steal("")
    await election.pass_time(two, 2)
    assert two.elector.may_write(WRITE)
    await two.stop()
    assert not two.elector.may_write(WRITE)


async def test_the_time_counts_from_before_the_question(election: Election) -> None:
    """Others saw the Lease change long before its answer came; so little is left then that it is renewed soon."""
    election.server.answers_writes.clear()
    one = await election.registers("one", datetime(2026, 1, 1, tzinfo=UTC))
    await eventually(lambda: election.server.writes)
    await one.clock.advance(9)
    election.server.answers_writes.set()
    await eventually(lambda: one.leading and one.clock.sleeping)
    assert one.clock.sleeping[0] == pytest.approx(0.2)
    one.clock.jump(0.9)
    assert one.elector.may_write(WRITE)
    one.clock.jump(0.1)
    assert not one.elector.may_write(WRITE)


@pytest.mark.parametrize("trouble", ["down", "failing"])
async def test_a_leader_that_cannot_renew_stops_before_another_may_start(election: Election, trouble: str) -> None:
    """After the renew deadline of 10 s, whether the server is silent or answers with errors; never at 15 s."""
    one = await election.stands("one")
    setattr(election.server, trouble, True)
    await election.pass_time(one, 8)
    assert one.leading
    await one.clock.advance(1.9)
    assert one.leading
    await one.clock.advance(0.1)
    await eventually(lambda: not one.leading)


async def test_a_short_failure_is_survived(election: Election) -> None:
    """Two failed renewals, then one that works: still the same leader, with a full deadline again."""
    one = await election.stands("one")
    election.server.failing = True
    await election.pass_time(one, 4)
    election.server.failing = False
    await election.pass_time(one, 2)
    election.server.failing = True
    await election.pass_time(one, 8)
    assert one.leading
    assert election.diary == ["one leads"]
    await one.clock.advance(2)
    await eventually(lambda: not one.leading)


async def test_an_attempt_without_an_answer_is_repeated_soon(election: Election) -> None:
    """A tenth of the retry period later: four attempts in a deadline are too few where a third of all requests fail."""
    one = await election.stands("one")
    election.server.failing = True
    await election.pass_time(one, 2)
    await eventually(lambda: one.clock.sleeping)
    assert one.clock.sleeping[0] == pytest.approx(0.2)
    election.server.failing = False
    asked = len(election.api.requests)
    await one.clock.advance(0.2)
    await election.api.until_requests(asked + 2)
    await eventually(lambda: one.clock.sleeping and one.clock.sleeping[0] == pytest.approx(2))
    assert election.diary == ["one leads"]


async def test_two_that_ask_at_once(election: Election) -> None:
    """The Lease has one version; the one that writes second loses."""
    await asyncio.gather(election.stands("one"), election.stands("two"))
    assert len(election.diary) == 1


async def test_whoever_writes_second_does_not_lead(election: Election) -> None:
    """The Lease was free when it was read, and somebody else's when it was written."""
    one = await election.stands("one")
    await one.stop()
    election.server.rival = "three"
    two = await election.stands("two")
    assert not two.leading
    assert election.server.holder() == "three"
    # It was answered, so it asks again at its time, and not soon as after trouble.
    assert two.clock.sleeping[0] == pytest.approx(2)


@pytest.mark.parametrize(("lease", "deadline", "retry"), [(10, 10, 2), (15, 2, 2), (15, 10, 0)])
def test_durations_that_would_make_two_leaders_are_refused(lease: float, deadline: float, retry: float) -> None:
    """The lease must outlast the deadline, and that the retries."""
    with pytest.raises(ValueError, match="outlast"):
        LeaderElector(
            Client(ClusterConfig(server="http://h")),
            namespace="ns",
            name="n",
            identity="i",
            lease_duration_s=lease,
            renew_deadline_s=deadline,
            retry_period_s=retry,
            clock=ManualClock(),
            on_started=lambda: None,
            on_stopped=lambda: None,
            on_renewed=lambda _: None,
        )


async def test_against_the_sandbox(tmp_path: Path) -> None:
    """A real API server takes the writes, and one of two leads at any time."""
    async with ApiServer(data=tmp_path) as server:
        configuration = config.load(str(server.kubeconfig))
        async with Client(configuration) as first, Client(configuration) as second:
            from kubekit.api.core_v1 import Namespace
            from kubekit.api.scheme import resource_of
            from kubekit.kube import calls

            await first.send(calls.create(resource_of(Namespace), {"metadata": {"name": "ns"}}))
            diary: list[str] = []
            start = datetime(2026, 1, 1, tzinfo=UTC)
            one = Candidate("one", first, diary, start)
            await eventually(lambda: one.leading)
            two = Candidate("two", second, diary, start)
            await two.clock.until_sleeping()
            await one.stop()
            await two.clock.advance(2)
            await eventually(lambda: two.leading)
            await two.stop()
            assert diary == ["one leads", "one stops", "two leads", "two stops"]
