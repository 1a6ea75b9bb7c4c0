"""The memory of an operator over a day: its clock is moved by 24 hours, and each minute of it things change.

The operator runs in this process, with a release of 900 manifests, against a sandbox's API server in another one. Each
minute an object of the release is changed, which it puts back, and a ClusterOperator and ClusterVersion are, which it
looks at. What is compared is what Python has allocated (tracemalloc): what is resident has no use in a process that
also measures, and moves by megabytes with what the C library keeps. Printed by `python -m bench day`.
"""

from __future__ import annotations

import asyncio
import gc
import sys
import tempfile
import tracemalloc
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import structlog

from bench import release_payload
from bench.releases_world import VERSIONS, World, world
from kubekit.api.core_v1 import ConfigMap
from kubekit.api.scheme import Resource, resource_of
from kubekit.api.workloads_v1 import Lease
from kubekit.kube import calls, config
from kubekit.kube.api_errors import NotFound
from kubekit.kube.client import Client
from kubekit.kube.clock import ManualClock
from runup.api.config_v1 import ClusterOperator
from runup.operator.manager import LEASE, Manager, Options
from runup.preflight.decide.preflight_deployment import PodSettings
from runup.process.memory import limit_buffers
from runup.process.names import OPERATOR_NAMESPACE

HOURS = 24
EARLY_HOUR = 2
STEP_S = 60.0
CONFIG_MAPS = resource_of(ConfigMap)
OPERATORS: Resource = resource_of(ClusterOperator)
_REAL_DEADLINE_S = 240.0
_PAUSE_S = 0.005


def run(*, hours: int = HOURS) -> dict[str, Any]:
    """KiB that Python has allocated at each hour, and how much more at the last one than after two."""
    # The operator's log is no part of the result.
    structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))
    with tempfile.TemporaryDirectory() as folder, world("sandbox", Path(folder)) as here, here.stand_in():
        here.payload(release_payload.FIRST)
        return asyncio.run(_day(here, hours))


async def _day(here: World, hours: int) -> dict[str, Any]:
    limit_buffers()
    clock = ManualClock(datetime.now(UTC))
    loaded = config.load(str(here.kubeconfig))
    options = Options(
        release_image=f"registry.example/release@sha256:{release_payload.digest(release_payload.FIRST)}",
        pod_settings=PodSettings(namespace=OPERATOR_NAMESPACE, node_name="bench"),
        payload=here.folder / release_payload.FIRST,
        report_folder=here.folder / "reports",
    )
    # Before the installation: of what an hour replaces, the old would otherwise not be counted when it goes.
    tracemalloc.start()
    manager = Manager(loaded, options, clock=clock)
    operator = asyncio.create_task(manager.run())
    try:
        async with Client(loaded, user_agent="bench/1") as client:
            await _installed(here, clock, operator)
            names = await _release_config_maps(client)
            return await _hours(client, clock, operator=operator, names=names, hours=hours)
    finally:
        manager.stop()
        clock.jump(STEP_S)
        await asyncio.wait([operator], timeout=_REAL_DEADLINE_S)
        tracemalloc.stop()


async def _installed(here: World, clock: ManualClock, operator: asyncio.Task[None]) -> None:
    async with asyncio.timeout(_REAL_DEADLINE_S):
        while not any(entry["state"] == "Completed" for entry in await asyncio.to_thread(here.history)):
            _raise_if_ended(operator)
            await clock.advance(1.0)
            await asyncio.sleep(0.1)


async def _release_config_maps(client: Client) -> list[tuple[str, str]]:
    """Namespace and name of each ConfigMap that the release brought."""
    listing = await client.listing(ConfigMap, label_selector="release.openshift.io/manifest")
    return [(item.metadata.namespace, item.metadata.name) for item in listing.items]


async def _hours(
    client: Client,
    clock: ManualClock,
    operator: asyncio.Task[None],
    names: list[tuple[str, str]],
    hours: int,
) -> dict[str, Any]:
    allocated_kib: dict[int, int] = {}
    changes, installed_kib = 0, _allocated_kib()
    for minute in range(hours * 60):
        changes += await _change(client, names, minute)
        await clock.advance(STEP_S)
        await _renewed(client, clock, operator)
        if (minute + 1) % 60 == 0:
            hour = (minute + 1) // 60
            allocated_kib[hour] = _allocated_kib() - installed_kib
            print(f"day: hour {hour}: {allocated_kib[hour]} KiB", file=sys.stderr, flush=True)
    return {
        "hours": hours,
        "changes": changes,
        "allocated_since_the_installation_kib": allocated_kib,
        "growth_kib": allocated_kib[hours] - allocated_kib[min(EARLY_HOUR, hours)],
    }


def _allocated_kib() -> int:
    gc.collect()
    return tracemalloc.get_traced_memory()[0] // 1024


async def _change(client: Client, names: list[tuple[str, str]], minute: int) -> int:
    """Changes an object of the release, an operator and ClusterVersion; returns how many changes that was."""
    namespace, name = names[minute % len(names)]
    noted = {"metadata": {"annotations": {"bench.runup.dev/changed": str(minute)}}}
    drift = {"data": {"bench": str(minute)}} | {"metadata": {"labels": {"release.openshift.io/manifest": "nobody"}}}
    await client.send(calls.merge_patch(CONFIG_MAPS, name, drift, namespace=namespace))
    operators = await client.listing(ClusterOperator)
    chosen = operators.items[minute % len(operators.items)].metadata.name
    await client.send(calls.merge_patch(OPERATORS, chosen, noted))
    await client.send(calls.merge_patch(VERSIONS, "version", noted))
    return 3


async def _renewed(client: Client, clock: ManualClock, operator: asyncio.Task[None]) -> None:
    """Waits until the operator has renewed its Lease in this step: moved on faster, it would lose it."""
    async with asyncio.timeout(_REAL_DEADLINE_S):
        while True:
            _raise_if_ended(operator)
            try:
                lease = await client.send(calls.get(Lease, LEASE, OPERATOR_NAMESPACE))
            except NotFound:
                continue
            renewed = lease.spec.renew_time
            if renewed is not None and renewed > clock.now() - timedelta(seconds=STEP_S):
                return
            await asyncio.sleep(_PAUSE_S)


def _raise_if_ended(operator: asyncio.Task[None]) -> None:
    if operator.done():
        operator.result()
        raise RuntimeError("the operator has ended")
