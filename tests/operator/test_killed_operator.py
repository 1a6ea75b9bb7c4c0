"""kill -9 of the operator's process: the next one ends where the first would have."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest
from tests.operator.operator_world import NAMESPACE, OWN, Cluster, cluster

from kubekit.api.conditions import find
from kubekit.api.scheme import resource_of
from kubekit.api.workloads_v1 import Lease
from kubekit.kube import calls
from kubekit.kube.errors import NotFound

pytestmark = pytest.mark.slow

# So long that nobody loses it because a machine is busy.
LEASE = "--lease=100,80,0.3"
PROGRAM = "import sys; from runup.operator.main import main; sys.exit(main())"


@asynccontextmanager
async def process(world: Cluster, tmp_path: Path) -> AsyncGenerator[asyncio.subprocess.Process, None]:
    """`cluster-version-operator start` as a process; killed at the end."""
    environ = {**os.environ, "PAYLOAD_OVERRIDE": str(tmp_path / "payload"), "CVO_NAMESPACE": NAMESPACE}
    flags = [f"--release-image={OWN}", "--node-name=node-1", "--listen=", LEASE]
    where = [f"--kubeconfig={world.kubeconfig}", f"--report-dir={world.reports}"]
    child = await asyncio.create_subprocess_exec(
        sys.executable, "-c", PROGRAM, "start", *flags, *where, env=environ, stdout=asyncio.subprocess.DEVNULL
    )
    try:
        yield child
    finally:
        if child.returncode is None:
            child.kill()
        await child.wait()


async def run_out(world: Cluster) -> None:
    """Let the lease of the killed process, if it took one, run out a second after the next one sees it."""
    patch = {"spec": {"leaseDurationSeconds": 1}}
    with suppress(NotFound):
        await world.client.send(calls.merge_patch(resource_of(Lease), "version", patch, NAMESPACE))


@pytest.mark.parametrize("when", ["started", "reported", "cleared"])
async def test_the_next_process_ends_where_the_killed_one_would_have(tmp_path: Path, when: str) -> None:
    """Killed after the workload started, after the report came, after the request was cleared."""
    async with cluster(tmp_path) as (world, _):
        async with process(world, tmp_path):
            await world.ask({"mode": "Preflight", "version": "5.2.0"})
            preflight_id = await world.started("5.2.0")
            if when != "started":
                world.report(preflight_id, "PoolPaused")
            if when == "cleared":
                await world.condition("PreflightCompleted", "True")
                await world.ask(None)
        await run_out(world)
        async with process(world, tmp_path) as second:
            if when == "cleared":
                await world.gone()
                await world.until(lambda v: find(v.status.conditions, "PreflightRunning") is None)
            else:
                world.report(preflight_id, "PoolPaused")
                await world.condition("PreflightCompleted", "True", "RisksFound")
                assert await world.started("5.2.0") == preflight_id
            version = await world.version()
            assert "PoolPaused" in {risk.name for risk in version.status.conditional_update_risks}
            second.send_signal(signal.SIGTERM)
            assert await asyncio.wait_for(second.wait(), 90) == 0
