"""The update of nodes that a scenario without a ClusterVersion plays, as `runup upgrade status` reads it meanwhile."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from msgspec.structs import replace
from tests.servers import api_server

from kubekit.kube import config
from kubekit.kube.client import Client
from kubekit.kube.client_sync import SyncClient
from kubekit.kube.clock import SystemClock
from runup.sandbox.processes.rollout import Rollout
from runup.sandbox.scenario import folder as scenarios
from runup.sandbox.scenario.folder import Scenario
from runup.sandbox.setup.scenario_objects import set_up_kubernetes
from runup.updatestatus.control import live_status
from runup.updatestatus.decide.read_status import Report

PAUSE_S = 0.2


async def play(kubeconfig: Path, scenario: Scenario) -> list[Report]:
    """Sets the scenario up without its workload, plays its update, and returns what was reported until it was over."""
    assert scenario.rollout is not None
    rollout_to = scenario.rollout.to
    scenario = scenarios.Scenario(**{
        name: getattr(scenario, name) for name in scenario.__dataclass_fields__ if name != "objects"
    }, objects=tuple(obj for obj in scenario.objects if obj["metadata"].get("namespace") != "shop"))  # fmt: skip
    shown: list[Report] = []
    loaded = config.load(str(kubeconfig))
    async with Client(loaded, clock=SystemClock()) as client:
        assert await set_up_kubernetes(client, scenario, SystemClock()) == ()
        before = await asyncio.to_thread(read, kubeconfig)
        assert scenario.rollout is not None
        rollout = Rollout(client, SystemClock(), replace(scenario.rollout, pause_s=PAUSE_S))
        task = asyncio.create_task(rollout.run())
        try:
            async with asyncio.timeout(90):
                while not shown or shown[-1].is_updating or versions(shown[-1]) != {rollout_to}:
                    shown.append(await asyncio.to_thread(read, kubeconfig))
        finally:
            task.cancel()
    return [before, *shown]


def versions(shown: Report) -> set[str]:
    """The versions of the nodes."""
    return {row.version for pool in shown.pools for row in pool.rows}


def read(kubeconfig: Path) -> Report:
    """What the command would report now."""
    with SyncClient(config.load(str(kubeconfig))) as client:
        return live_status.read(client, client.now).report()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "distribution", "groups", "phases"),
    [
        ("kubeadm-update", "kubeadm", {"control-plane": 3, "workers": 3}, {"Pending", "Updated", "Updating"}),
        ("node-group-update", "EKS", {"web": 3}, {"Pending", "Updated"}),
        ("k3s-update", "k3s", {"control-plane": 1, "workers": 3}, {"Pending", "Updated", "Updating"}),
    ],
)
def test_reports_an_update_from_its_beginning_to_its_end(
    tmp_path: Path, name: str, distribution: str, groups: dict[str, int], phases: set[str]
) -> None:
    """Every node gets the version, one after another; nothing is stalled, and the end is reported."""
    scenario = scenarios.load(scenarios.find(name))
    with api_server(tmp_path / "api") as kubeconfig:
        shown = asyncio.run(play(kubeconfig, scenario))
    first, last = shown[0], shown[-1]
    assert {pool.name: pool.counts.total for pool in last.pools} == groups
    assert len(versions(first) | versions(last)) == 2
    assert last.kubernetes is not None
    assert last.kubernetes.distribution == distribution
    assert {row.version for pool in last.pools for row in pool.rows} == {
        scenario.rollout.to if scenario.rollout else ""
    }
    assert any(each.is_updating for each in shown)
    assert phases <= {row.phase for each in shown for pool in each.pools for row in pool.rows}
    assert not {row.summary for each in shown[1:] for row in each.health if row.level in ("Error", "Warning")}
