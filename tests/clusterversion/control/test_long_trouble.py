"""Five minutes of trouble, then quiet: what was asked for in the midst of it is done within a minute.

Operator and target are the real ones and share a clock that the test moves; the API server is behind a proxy that
breaks all watches and a third of all other requests.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
import structlog
from bench.hostile.faulty_api import FaultyApi, faulty_api, silent
from tests.operator.operator_world import NAMESPACE, TARGET, Cluster, cluster

from kubekit.api.conditions import find
from kubekit.kube import config
from kubekit.kube.clock import Clock, ManualClock, SystemClock
from runup.facts.target_release import TargetRelease
from runup.preflight.decide import preflight_deployment
from runup.process.leader_election import cancel
from runup.process.read_only_client import ReadOnlyClient
from runup.report import report
from runup.target.process import PreflightTarget, TargetRequest
from runup.target.report_sinks import FileSink

TROUBLE_S = 300
PATIENCE_S = 60
# Pools, Etcd, the condition Failing and the release's own manifests are nothing that this cluster and its target have.
NOT_HERE = (
    "CRDStoredVersionDropped",
    "ClusterVersionHealth",
    "EtcdMembers",
    "MachineConfigPool",
    "MaxUnavailableUnsafe",
    "OSImageOverridden",
    "RemovedAPIStored",
    "RemovedVolumePlugin",
)


async def pass_time(clock: ManualClock, api: FaultyApi, seconds: int) -> None:
    """Move the clock second by second, each time after all requests were answered: a slow machine changes nothing."""
    for _ in range(seconds):
        quiet = 0
        while quiet < 3:
            await asyncio.sleep(0.002)
            quiet = 0 if api.in_flight else quiet + 1
        await clock.advance(1)


async def run_target(world: Cluster, api: FaultyApi, clock: Clock) -> None:
    """Run the target as soon as there is a Deployment for it."""
    while (deployment := await world.deployment()) is None:
        await clock.sleep(1)
    preflight_id = deployment.metadata.annotations[preflight_deployment.ID_ANNOTATION]
    async with ReadOnlyClient(api.config, namespace=NAMESPACE, clock=clock) as client:
        target = PreflightTarget(
            client=client,
            request=TargetRequest(
                target_version="5.2.0",
                source_version="5.0.0",
                preflight_id=preflight_id,
                target_image=TARGET,
                namespace=NAMESPACE,
            ),
            release=TargetRelease(version="5.2.0", kubernetes="1.34.0", check_files={}),
            sink=FileSink(world.reports / preflight_id / report.FILE_NAME),
            clock=clock,
            log=structlog.get_logger("target"),
        )
        await target.run()


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("seed", range(3))
async def test_a_preflight_ends_within_a_minute_after_five_of_trouble(tmp_path: Path, seed: int) -> None:
    """Neither the lease is lost, nor does anything wait longer than that for its next attempt."""
    clock = ManualClock(SystemClock().now())
    async with cluster(tmp_path) as (world, make), faulty_api(config.load(str(world.kubeconfig)), seed) as api:
        api.storm()
        operator = asyncio.create_task(make(through=api.config, clock=clock).run())
        target = asyncio.create_task(run_target(world, api, clock))
        try:
            await world.ask({"mode": "Preflight", "version": "5.2.0"})
            await pass_time(clock, api, TROUBLE_S)
            assert not operator.done(), operator
            assert not target.done(), target
            assert api.counted["request answer_lost"] > 1
            api.calm()
            for _ in range(PATIENCE_S):
                await pass_time(clock, api, 1)
                if await settled(world):
                    break
            version = await world.version()
            assert await settled(world), version.status.conditions
        finally:
            await cancel([operator, target])


@pytest.mark.slow
async def test_a_dead_watch_keeps_no_result_back(tmp_path: Path) -> None:
    """The operator's own writes make what it watched old; it reads ClusterVersion again, rather than after minutes."""
    clock = ManualClock(SystemClock().now())
    async with cluster(tmp_path) as (world, make), faulty_api(config.load(str(world.kubeconfig))) as api:
        operator = asyncio.create_task(make(through=api.config, clock=clock).run())
        try:
            await world.ask({"mode": "Preflight", "version": "5.2.0"})
            while (deployment := await world.deployment()) is None:
                await pass_time(clock, api, 1)
            preflight_id = deployment.metadata.annotations[preflight_deployment.ID_ANNOTATION]
            api.away()
            api.share, api.faults, api.watches = 0, (), (silent(clock),)
            await pass_time(clock, api, 30)
            for risks in (("NodeCordoned",), ("NodeCordoned", "CertificateExpires"), ("PoolPaused",)):
                world.report(preflight_id, *risks)
                await pass_time(clock, api, 40)
                shown = {each.name for each in (await world.version()).status.conditional_update_risks}
                assert {"NodeCordoned", "CertificateExpires", "PoolPaused"} & shown == set(risks)
        finally:
            await cancel([operator])


async def settled(world: Cluster) -> bool:
    """Whether the preflight is completed, by a target that can read the cluster again."""
    version = await world.version()
    completed = find(version.status.conditions, "PreflightCompleted")
    unknown = [risk.name for risk in version.status.conditional_update_risks if risk.name.endswith("Unknown")]
    known = all(name.startswith(NOT_HERE) for name in unknown)
    return completed is not None and completed.status == "True" and known
