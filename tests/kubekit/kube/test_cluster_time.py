"""Time that is not the machine's: what the environment says about it, and what a server's answers say."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from kubekit.kube import calls, config
from kubekit.kube.client import Client
from kubekit.kube.client_sync import SyncClient
from kubekit.kube.clock import CLOCK_OFFSET_VARIABLE, ManualClock, ShiftedClock, SystemClock, machine_now
from kubekit.kube.transport import ServerTime
from kubesandbox.apiserver.server import ApiServer

YEAR_S = 365 * 86400.0
OURS = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("written", "offset_s"),
    [
        pytest.param("", 0.0, id="not said"),
        pytest.param(f"{-YEAR_S}", -YEAR_S, id="a year behind"),
        pytest.param("3600.5", 3600.5, id="an hour ahead"),
    ],
)
def test_the_environment_moves_the_clock(written: str, offset_s: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """It runs on from there; the machine's own time stays at hand."""
    monkeypatch.setenv(CLOCK_OFFSET_VARIABLE, written)
    # Both are whole seconds; half of one may be cut off.
    before = machine_now() - timedelta(seconds=1 if offset_s % 1 else 0)
    moved = SystemClock().now() - timedelta(seconds=offset_s)
    assert before <= moved <= machine_now() + timedelta(seconds=1)


@pytest.mark.parametrize(
    ("theirs", "shown"),
    [
        pytest.param("2023-11-03T17:26:54+00:00", "2023-11-03T17:26:54+00:00", id="of a cluster in a dump's time"),
        pytest.param("2026-01-01T00:00:02+00:00", "2026-01-01T00:00:00+00:00", id="two seconds are the answer's way"),
        pytest.param("2026-01-01T00:00:03+00:00", "2026-01-01T00:00:03+00:00", id="three are another clock"),
        pytest.param("2025-12-31T23:59:58+00:00", "2026-01-01T00:00:00+00:00", id="two seconds behind"),
        pytest.param("2025-12-31T23:59:57+00:00", "2025-12-31T23:59:57+00:00", id="three seconds behind"),
    ],
)
async def test_ages_are_told_by_the_servers_time(theirs: str, shown: str, tmp_path: Path) -> None:
    """As its answers date themselves, whichever client asks; a clock that is taken of it continues from there."""
    import asyncio

    ours = ManualClock(OURS)
    async with ApiServer(data=tmp_path / "data", clock=ManualClock(datetime.fromisoformat(theirs))) as server:
        cluster = config.load(str(server.kubeconfig))

        def ask() -> datetime:
            with SyncClient(cluster, clock=ours) as client:
                assert client.now() == ours.now()
                client.send(calls.get_path("/version"))
                return client.now()

        assert (await asyncio.to_thread(ask)).isoformat() == shown
        async with Client(cluster, clock=ours) as client:
            before = client.cluster_clock()
            assert client.now() == before.now() == ours.now()
            await client.send(calls.get_path("/version"))
            assert client.now().isoformat() == shown
            clock = client.cluster_clock()
            ours.jump(60)
            assert clock.now() == datetime.fromisoformat(shown) + timedelta(seconds=60)
            # A clock that was taken does not move with what is answered later.
            assert before.now() == ours.now()


@pytest.mark.parametrize("date", [None, "", "soon", "Sun, 06 Nov 99999 08:49:37 GMT"])
def test_an_answer_without_a_date_says_nothing_of_the_time(date: str | None) -> None:
    """What an earlier answer said stays."""
    time = ServerTime(ManualClock(OURS))
    time.note_date(date)
    assert time.now() == OURS
    time.note_date("Fri, 03 Nov 2023 17:26:54 GMT")
    time.note_date(date)
    assert time.now().isoformat() == "2023-11-03T17:26:54+00:00"


async def test_a_shifted_clock_waits_by_the_other() -> None:
    """Durations are the same; the wall-clock time is moved."""
    ours = ManualClock(OURS)
    clock = ShiftedClock(ours, timedelta(days=-1))
    clock.pause(30)
    await clock.sleep(0)
    assert (clock.monotonic(), clock.now()) == (30.0, OURS - timedelta(days=1) + timedelta(seconds=30))
