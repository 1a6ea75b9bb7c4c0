"""How the operator's process ends: within five seconds whatever is pending, and never silently."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from bench.hostile.faulty_api import FaultyApi, faulty_api
from tests.operator.operator_world import NAMESPACE, OWN, Cluster, cluster

from kubekit.api.scheme import resource_of
from kubekit.api.workloads_v1 import Lease
from kubekit.kube import calls, config

LEASES = resource_of(Lease)
START = "import sys; from runup.cli.operator.main import main; sys.exit(main())"
# A thread that nobody can interrupt, as one that reads from a hung disk.
HANGING = f"""
import asyncio, threading
from runup.operator import manager
inner = manager.Manager.run
async def run(self):
    asyncio.get_running_loop().run_in_executor(None, threading.Event().wait)
    await inner(self)
manager.Manager.run = run
{START}
"""
# So long that nobody loses it because a machine is busy.
LEASE = "--lease=100,80,0.5"


@asynccontextmanager
async def operator(
    world: Cluster, tmp_path: Path, program: str = START, *more: str
) -> AsyncGenerator[asyncio.subprocess.Process, None]:
    """`cluster-version-operator start`, its log in `tmp_path/log`; killed at the end."""
    environ = {**os.environ, "PAYLOAD_OVERRIDE": str(tmp_path / "payload"), "CVO_NAMESPACE": NAMESPACE}
    flags = [f"--release-image={OWN}", "--node-name=node-1", "--listen=", LEASE, *more]
    where = [f"--kubeconfig={world.kubeconfig}", f"--report-dir={world.reports}"]
    with (tmp_path / "log").open("wb") as log:
        child = await asyncio.create_subprocess_exec(
            sys.executable, "-c", program, "start", *flags, *where, env=environ, stderr=log
        )
    try:
        yield child
    finally:
        if child.returncode is None:
            child.kill()
        await child.wait()


@asynccontextmanager
async def silenceable(world: Cluster) -> AsyncGenerator[FaultyApi, None]:
    """The API server behind something that can fall silent, as the operator reaches it."""
    async with faulty_api(config.load(str(world.kubeconfig))) as api:
        world.kubeconfig = api.kubeconfig(world.reports / "kubeconfig")
        yield api


async def ended(child: asyncio.subprocess.Process) -> int:
    """The exit code. What hangs here hangs for ever, so an end at all is an end in time."""
    return await asyncio.wait_for(child.wait(), 90)


def log_lines(tmp_path: Path) -> list[dict[str, str]]:
    """The log: every line of it is a JSON object."""
    return [json.loads(line) for line in (tmp_path / "log").read_text().splitlines()]


async def leading(world: Cluster) -> None:
    """Wait until the operator works."""
    await world.condition("RetrievedUpdates", "True")


@pytest.mark.slow
async def test_a_stop_while_a_thread_hangs(tmp_path: Path) -> None:
    """0, in time: Python would wait for that thread."""
    async with cluster(tmp_path) as (world, _), operator(world, tmp_path, HANGING) as child:
        await leading(world)
        child.send_signal(signal.SIGTERM)
        assert await ended(child) == 0


@pytest.mark.slow
async def test_a_stop_while_the_api_server_hangs(tmp_path: Path) -> None:
    """The lease cannot be given back; it then lasts as long as was promised."""
    async with cluster(tmp_path) as (world, _), silenceable(world) as api, operator(world, tmp_path) as child:
        await leading(world)
        api.silent = True
        child.send_signal(signal.SIGTERM)
        assert await ended(child) == 0


@pytest.mark.slow
async def test_a_lease_that_another_one_holds(tmp_path: Path) -> None:
    """Non-zero, in time though a thread hangs; the log names the holder."""
    async with cluster(tmp_path) as (world, _), operator(world, tmp_path, HANGING) as child:
        await leading(world)
        taken = {"spec": {"holderIdentity": "another", "leaseDurationSeconds": 60}}
        await world.client.send(calls.merge_patch(LEASES, "version", taken, NAMESPACE))
        assert await ended(child) == 1
    said = [line for line in log_lines(tmp_path) if line["level"] == "error"]
    assert [(line["event"], line["why"]) for line in said] == [("the lease was lost", "another holds it")]


@pytest.mark.slow
async def test_a_lease_that_cannot_be_renewed(tmp_path: Path) -> None:
    """An API server that hangs until another one may lead: non-zero, and the log says why."""
    lease = "--lease=15,12,0.5"
    async with (
        cluster(tmp_path) as (world, _),
        silenceable(world) as api,
        operator(world, tmp_path, START, lease) as child,
    ):
        await leading(world)
        api.silent = True
        assert await ended(child) == 1
    said = [line["why"] for line in log_lines(tmp_path) if line["level"] == "error"]
    assert len(said) == 1
    assert said[0].startswith("not renewed within 12 s: not done within")
