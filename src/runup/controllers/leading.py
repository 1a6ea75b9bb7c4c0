"""How a controller's process runs: wait for the lease, work while it is held, end in order when told to.

In: an elector's settings and the work; out: nothing, until the work is over. Shared by the managing operator and the
update status controller, so that neither can write without leading.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import structlog

from runup.api.config_v1 import Infrastructure
from runup.kube import calls
from runup.kube.client import Client
from runup.kube.clock import Clock
from runup.kube.errors import KubeError
from runup.kube.lease import LeaderElector

log = structlog.get_logger("leading")


@dataclass(frozen=True, slots=True)
class Election:
    """Seconds of the lease (cvo-behaviour 9); with one control plane node it is held longer, against API outages."""

    lease_duration_s: float = 137
    renew_deadline_s: float = 107
    retry_period_s: float = 26


SINGLE_NODE = Election(270, 240, 60)


def election_of(text: str) -> Election:
    """Three numbers of seconds, `duration,renew,retry`; raises ValueError."""
    numbers = [float(part) for part in text.split(",")]
    if len(numbers) != 3 or not numbers[0] > numbers[1] > numbers[2] > 0:
        raise ValueError("three falling numbers of seconds are needed, such as 137,107,26")
    return Election(*numbers)


async def lead(
    client: Client,
    work: Callable[[], Awaitable[None]],
    *,
    namespace: str,
    lease: str,
    election: Election | None,
    clock: Clock,
    stopping: asyncio.Event,
) -> None:
    """Run `work` while holding the lease `namespace/lease`; return when `stopping` is set or the lease is lost.

    Without `election` the cluster's topology decides how long the lease lasts.
    """
    chosen = election or await _election(client)
    leading = asyncio.Event()
    elector = LeaderElector(
        client,
        namespace=namespace,
        name=lease,
        identity=f"{os.uname().nodename}_{uuid4()}",
        lease_duration_s=chosen.lease_duration_s,
        renew_deadline_s=chosen.renew_deadline_s,
        retry_period_s=chosen.retry_period_s,
        clock=clock,
        on_started=leading.set,
        on_stopped=stopping.set,
    )

    async def when_leading() -> None:
        await leading.wait()
        log.info("leading", lease=lease)
        await work()

    competing = asyncio.create_task(elector.run())
    try:
        await until(stopping, when_leading())
    finally:
        await cancel([competing])


async def run_until_told(run: Coroutine[Any, Any, None], stop: Callable[[], None]) -> None:
    """`run` for a process: TERM and INT call `stop`, a second one ends the process at once."""
    loop = asyncio.get_running_loop()
    asked = False

    def on_signal() -> None:
        nonlocal asked
        if asked:
            os._exit(1)
        asked = True
        stop()

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, on_signal)
    await run


async def until(stopping: asyncio.Event, work: Coroutine[Any, Any, None]) -> None:
    """Run `work` until it ends or `stopping` is set; its error is ours."""
    task = asyncio.create_task(work)
    stop = asyncio.create_task(_wait(stopping))
    done, _ = await asyncio.wait({task, stop}, return_when=asyncio.FIRST_COMPLETED)
    await cancel([task, stop])
    if task in done:
        task.result()


async def cancel(tasks: Sequence[asyncio.Task[None]]) -> None:
    """End the tasks and wait for their ends."""
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def _wait(event: asyncio.Event) -> None:
    await event.wait()


async def _election(client: Client) -> Election:
    """Single-node control planes hold the lease longer; where the topology cannot be read, it is not single."""
    try:
        infrastructure = await client.send(calls.get(Infrastructure, "cluster"))
    except KubeError:
        return Election()
    return SINGLE_NODE if infrastructure.status.control_plane_topology == "SingleReplica" else Election()
