"""kill -9 of the operator's process: the next one ends where the first would have."""

from __future__ import annotations

import asyncio
import json
import os
import resource
import signal
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest
from tests.clusterversion.control.test_two_operators import Audit, edited, eventually
from tests.operator.operator_world import NAMESPACE, OWN, Cluster, cluster

from kubekit.api.conditions import find
from kubekit.api.core_v1 import ConfigMap
from kubekit.api.scheme import resource_of
from kubekit.api.workloads_v1 import Lease
from kubekit.kube import calls
from kubekit.kube.api_errors import NotFound
from kubekit.lang import yaml as kyaml
from runup.preflight.decide import preflight_deployment

pytestmark = pytest.mark.slow

# So long that nobody loses it because a machine is busy.
LEASE = "--lease=100,80,0.3"
MAPS = resource_of(ConfigMap)
PROGRAM = "import sys; from runup.cli.operator.main import main; sys.exit(main())"


@asynccontextmanager
async def process(
    world: Cluster, tmp_path: Path, *, lease: str = LEASE, user: str = ""
) -> AsyncGenerator[asyncio.subprocess.Process, None]:
    """`cluster-version-operator start` as a process, as `user` if one is given; killed at the end."""
    kubeconfig = impersonating(user, world.kubeconfig, tmp_path) if user else world.kubeconfig
    environ = {**os.environ, "PAYLOAD_OVERRIDE": str(tmp_path / "payload"), "CVO_NAMESPACE": NAMESPACE}
    flags = [f"--release-image={OWN}", "--node-name=node-1", "--listen=", lease]
    where = [f"--kubeconfig={kubeconfig}", f"--report-dir={world.reports}"]
    child = await asyncio.create_subprocess_exec(
        sys.executable, "-c", PROGRAM, "start", *flags, *where, env=environ, stdout=asyncio.subprocess.DEVNULL
    )
    try:
        yield child
    finally:
        if child.returncode is None:
            child.kill()
        await child.wait()


def impersonating(user: str, kubeconfig: Path, folder: Path) -> Path:
    """The administrator's kubeconfig for `user`, so that the audit log tells processes apart."""
    made = kyaml.load(kubeconfig.read_bytes())
    for each in made["users"]:
        each["user"] |= {"as": user, "as-groups": ["system:masters"]}
    path = folder / f"{user}.kubeconfig"
    path.write_text(json.dumps(made))
    return path


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


def limit_memory(pid: int, room_mib: int) -> None:
    """Let a process have so many MiB of addresses in addition to those that it has."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[0])
    most = pages * os.sysconf("SC_PAGESIZE") + (room_mib << 20)
    resource.prlimit(pid, resource.RLIMIT_AS, (most, most))


@pytest.mark.parametrize("room_mib", [0, 70])
async def test_an_operator_without_memory_ends_and_the_next_one_shows_the_change(tmp_path: Path, room_mib: int) -> None:
    """A library that crashes ends it at once; where each task fails and starts again, its lease runs out and ends it.

    What is shown meanwhile has the time of its report, as after any end of the process.
    """
    label = dict([preflight_deployment.SELECTOR.split("=", 1)])
    async with cluster(tmp_path) as (world, _):
        async with process(world, tmp_path, lease="--lease=24,20,0.5") as one:
            await world.ask({"mode": "Preflight", "version": "5.2.0"})
            preflight_id = await world.started("5.2.0")
            world.report(preflight_id, "PoolPaused")
            await world.condition("PreflightCompleted", "True", "RisksFound")
            limit_memory(one.pid, room_mib)
            for number in range(200):
                # The operator keeps all objects that have its label.
                metadata = {"name": f"large-{number}", "namespace": NAMESPACE, "labels": label}
                await world.client.send(calls.create(MAPS, {"metadata": metadata, "data": {"x": "y" * 950_000}}))
            world.report(preflight_id, "NodeCordoned")
            assert await asyncio.wait_for(one.wait(), 120) != 0
        version = await world.version()
        assert {"PoolPaused", "NodeCordoned"} & {risk.name for risk in version.status.conditional_update_risks}
        for number in range(200):
            with suppress(NotFound):
                await world.client.send(calls.delete(MAPS, f"large-{number}", NAMESPACE))
        await run_out(world)
        async with process(world, tmp_path):
            await world.until(
                lambda version: "NodeCordoned" in {risk.name for risk in version.status.conditional_update_risks}
            )
            await world.ask(None)
            await world.gone()
            await world.until(lambda version: find(version.status.conditions, "PreflightRunning") is None)


async def test_who_was_suspended_writes_nothing_when_it_goes_on(tmp_path: Path) -> None:
    """Another one leads by then. What it had decided, and what it reads before its timers run, is not written."""
    audit, short = Audit(tmp_path), "--lease=24,20,0.5"
    async with cluster(tmp_path) as (world, _), process(world, tmp_path, lease=short, user="one") as one:
        await eventually(lambda: audit.writers())
        async with edited(world), process(world, tmp_path, lease=short, user="two"):
            await eventually(lambda: len(audit.writers()) > 10)
            assert set(audit.writers()) == {"one"}
            one.send_signal(signal.SIGSTOP)
            await eventually(lambda: audit.writers().count("two") > 5)
            one.send_signal(signal.SIGCONT)
            assert await asyncio.wait_for(one.wait(), 90) == signal.SIGALRM
            seen = len(audit.writers())
            await eventually(lambda: len(audit.writers()) > seen + 5)
    writers = audit.writers()
    assert writers == sorted(writers)
