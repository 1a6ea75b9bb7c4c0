"""Runs two operators on one cluster: the audit log shows the writer, despite lease and clock changes."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from tests.clocks import Hurried
from tests.operator.operator_world import DEADLINE_S, NAMESPACE, Cluster, cluster

from kubekit.api.scheme import resource_of
from kubekit.api.workloads_v1 import Lease
from kubekit.kube import calls, config
from runup.operator.manager import Manager
from runup.process.leader_election import Election, LeaseLost

LEASES = resource_of(Lease)
# Four times as fast as in a cluster: a lease of three seconds, of which a busy machine loses none.
ELECTION, TIMES = Election(60, 50, 6), 12
WRITES = {"create", "update", "patch", "delete"}
# What changes nothing: who asks whether somebody may, and what is reported about a change.
ASIDE = {"leases", "tokenreviews", "subjectaccessreviews", "events"}
DAY = timedelta(days=1)


class Set(Hurried):
    """A hurried clock that somebody sets."""

    off = timedelta()

    def now(self) -> datetime:
        """See `Clock.now`."""
        return super().now() + self.off


class Operator:
    """An operator with a separate name in the audit log."""

    def __init__(self, name: str, manager: Manager, clock: Set) -> None:
        self.name = name
        self.clock = clock
        self.manager = manager
        self.task = asyncio.create_task(manager.run())

    async def stop(self) -> None:
        """Requests its end."""
        self.manager.stop()
        await asyncio.gather(self.task, return_exceptions=True)


@asynccontextmanager
async def edited(world: Cluster) -> AsyncIterator[None]:
    """An administrator who changes his mind all the time, so that there is always something to write."""

    async def edit() -> None:
        number = 0
        while True:
            number += 1
            await world.patch_spec({"channel": f"channel-{number}"})
            await asyncio.sleep(0.02)

    task = asyncio.create_task(edit())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def eventually(condition: Callable[[], Any]) -> None:
    """Wait until `condition` holds; fails after a deadline."""
    async with asyncio.timeout(DEADLINE_S):
        while not condition():  # noqa: ASYNC110 -- asked of a file
            await asyncio.sleep(0.05)


class Audit:
    """The writes that the server carried out, in their order: who, what."""

    def __init__(self, tmp_path: Path) -> None:
        self._file = tmp_path / "apiserver" / "audit.log"

    def events(self) -> list[dict[str, Any]]:
        """Every write that was carried out."""
        found = [json.loads(line) for line in self._file.read_text().splitlines()]
        return [each for each in found if each["verb"] in WRITES and each["responseStatus"]["code"] < 300]

    def writers(self) -> list[str]:
        """The operators, each as often as it wrote."""
        return [_who(each) for each in self.events() if _who(each) in ("one", "two") and _what(each) not in ASIDE]


def _who(event: dict[str, Any]) -> str:
    return str(event.get("impersonatedUser", {}).get("username", ""))


def _what(event: dict[str, Any]) -> str:
    return str(event.get("objectRef", {}).get("resource", ""))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("first", "second"),
    [
        pytest.param(timedelta(), timedelta(), id="clocks agree"),
        pytest.param(DAY, -DAY, id="a day forwards and back"),
        pytest.param(-DAY, DAY, id="a day back and forwards"),
    ],
)
async def test_a_stolen_lease_leaves_one_writer(tmp_path: Path, first: timedelta, second: timedelta) -> None:
    """The one who led stops while a status is written, at once; the next begins when the thief's time is over by our
    own settings, though he promised 68 years. Clocks that are set in between are nobody's reason to begin or to end."""
    audit = Audit(tmp_path)
    async with cluster(tmp_path) as (world, manager):

        def operator(name: str) -> Operator:
            user = (("Impersonate-User", name), ("Impersonate-Group", "system:masters"))
            loaded = replace(config.load(str(world.kubeconfig)), headers=user)
            clock = Set(TIMES)
            return Operator(name, manager(through=loaded, clock=clock, election=ELECTION), clock)

        one = operator("one")
        await eventually(lambda: audit.writers())
        two = operator("two")
        async with edited(world):
            await eventually(lambda: len(audit.writers()) > 10)
            one.clock.off, two.clock.off = first, second
            seen = len(audit.writers())
            await eventually(lambda: len(audit.writers()) > seen + 20)
            assert set(audit.writers()) == {"one"}
            stolen = {"spec": {"holderIdentity": "thief", "leaseDurationSeconds": 2**31 - 1}}
            await world.client.send(calls.merge_patch(LEASES, "version", stolen, NAMESPACE))
            with pytest.raises(LeaseLost, match="thief holds it"):
                await asyncio.wait_for(one.task, DEADLINE_S)
            await eventually(lambda: audit.writers()[-1] == "two")
        await two.stop()
    writers = audit.writers()
    assert writers == sorted(writers), "nobody wrote after the next one had begun"
    events = audit.events()
    (theft,) = (n for n, each in enumerate(events) if _what(each) == "leases" and not _who(each))
    # A write that was on its way, and at most one that began before the watch informed of the theft.
    assert len([each for each in events[theft:] if _who(each) == "one" and _what(each) not in ASIDE]) <= 2
