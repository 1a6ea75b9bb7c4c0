"""The end of the node agent while containers run, by kill -9 or in good order, and what the next one makes of them."""

from __future__ import annotations

import asyncio
import fcntl
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.kubesandbox.node import agent_process
from tests.kubesandbox.node.conftest import AgentCluster, agent_cluster_with, condition, container, ended, runs

from kubekit.kube.clock import SystemClock
from kubesandbox.node.runners import NAMES

pytestmark = pytest.mark.slow

JSON = dict[str, Any]


@pytest.fixture(params=NAMES)
async def unserved(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[AgentCluster]:
    """A cluster without an agent."""
    async with agent_cluster_with(request.param, tmp_path, SystemClock()) as made:
        yield made


@asynccontextmanager
async def agent_to_kill(cluster: AgentCluster) -> AsyncIterator[None]:
    """An agent in another process, killed at the end of the block; the next may begin when it is gone."""
    words = [str(cluster.place.data), cluster.registry.host, cluster.place.runner.name]
    script = Path(agent_process.__file__)
    process = await asyncio.create_subprocess_exec(sys.executable, str(script), *words)
    try:
        async with cluster.watching():
            yield
    finally:
        process.kill()
        await process.wait()
        # As a starting cluster does: what an agent could not end itself, its runner can.
        await asyncio.to_thread(cluster.place.runner.sweep)


@pytest.mark.parametrize(
    ("policy", "phase"),
    [
        pytest.param("Always", "Running", id="always"),
        pytest.param("OnFailure", "Running", id="on failure, which this was"),
        pytest.param("Never", "Failed", id="never"),
    ],
)
async def test_what_ran_then_is_lost(unserved: AgentCluster, policy: str, phase: str) -> None:
    """It died with its agent and counts as failed; the restart policy says whether it runs again."""
    await _start_and_kill(unserved, "echo run; exec sleep 1000", policy)
    async with unserved.agent_at_work():
        status = await unserved.until(lambda found: _is_settled(found, phase), phase)
        shown = container(status)
        lost = shown["lastState"]["terminated"] if phase == "Running" else ended(status)
        assert (lost["exitCode"], lost["reason"]) == (137, "ContainerStatusUnknown")
        assert shown["restartCount"] == (1 if phase == "Running" else 0)
        if phase == "Running":
            await unserved.until_logged("run\nrun\n")
        assert unserved.log().split() == ["run"] * (1 + shown["restartCount"])


def _is_settled(status: JSON, phase: str) -> bool:
    if phase == "Running":
        return runs(status) and bool(container(status)["restartCount"])
    return bool(status.get("phase") == phase)


async def _start_and_kill(cluster: AgentCluster, script: str, policy: str, **spec: Any) -> JSON:
    async with agent_to_kill(cluster):
        await cluster.run(script, restartPolicy=policy, **spec)
        before = await cluster.until(runs, "it runs")
        await cluster.until_logged("run")
    return before


async def test_the_start_of_the_pod_stays(unserved: AgentCluster) -> None:
    """Times and conditions of the first agent are not those of the second."""
    before = await _start_and_kill(unserved, "echo run; exec sleep 1000", "Always")
    async with unserved.agent_at_work():
        after = await unserved.until(lambda found: _is_settled(found, "Running"), "running again")
    assert after["startTime"] == before["startTime"]
    scheduled = "PodScheduled"
    assert condition(after, scheduled)["lastTransitionTime"] == condition(before, scheduled)["lastTransitionTime"]


async def test_what_was_over_then_is_not_run_again(unserved: AgentCluster) -> None:
    """A container that had succeeded stays so, while the one next to it starts again."""
    shell = {"image": unserved.image, "command": ["/bin/sh", "-c"]}
    async with agent_to_kill(unserved):
        main = {"name": "main", **shell, "args": ["echo run; exec sleep 1000"]}
        done = {"name": "done", **shell, "args": ["echo once"]}
        await unserved.pod({"restartPolicy": "OnFailure", "containers": [main, done]})
        await unserved.until(lambda found: runs(found) and "terminated" in container(found, "done")["state"], "both")
        await unserved.until_logged("run")
    async with unserved.agent_at_work():
        status = await unserved.until(lambda found: _is_settled(found, "Running"), "running again")
    assert container(status, "done")["restartCount"] == 0
    assert container(status, "done")["state"]["terminated"]["exitCode"] == 0
    assert unserved.log(container="done") == "once\n"


async def test_a_pod_that_was_deleted_meanwhile(unserved: AgentCluster) -> None:
    """Nothing of it runs any more: its object goes at once."""
    await _start_and_kill(unserved, "echo run; exec sleep 1000", "Always")
    await unserved.delete()
    async with unserved.agent_at_work():
        await unserved.until_gone()


async def test_nothing_of_them_lives_on(unserved: AgentCluster) -> None:
    """A lock that a container held is free."""
    async with agent_to_kill(unserved):
        mounted = {
            "command": ["/bin/sh", "-c", "exec 9>$0/lock; flock 9; echo run; exec sleep 1000", "/mnt"],
            "volumeMounts": [{"name": "host", "mountPath": "/mnt"}],
        }
        volume = {"name": "host", "hostPath": {"path": "/locks", "type": "DirectoryOrCreate"}}
        await unserved.run("", container=mounted, volumes=[volume])
        await unserved.until(runs, "it runs")
        await unserved.until_logged("run")
        with unserved.host("/locks/lock").open() as file, pytest.raises(BlockingIOError):
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    with unserved.host("/locks/lock").open() as file:
        await asyncio.wait_for(asyncio.to_thread(fcntl.flock, file, fcntl.LOCK_EX), 20)


async def test_an_agent_that_ends_in_good_order(unserved: AgentCluster) -> None:
    """Containers are reported, and the object stays for the next agent."""
    unserved.place = replace(unserved.place, shutdown_s=20)
    async with unserved.agent_at_work():
        await unserved.run("trap 'echo bye; exit 0' TERM; echo run; while :; do sleep 0.05; done")
        await unserved.until(runs, "it runs")
        await unserved.until_logged("run")
    assert unserved.log().split() == ["run", "bye"]
    async with unserved.agent_at_work():
        await unserved.until(lambda found: _is_settled(found, "Running"), "running again")
