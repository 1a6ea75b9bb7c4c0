"""`python -m bench.hostile.limits`: what floods, leases, watches, missing kinds and links cost at most; for the bench.

Each row is an attack that had no limit once. Operator, elector and reflectors are the real ones, on a server in this
process, with a clock that is moved: seconds are that clock's, but for those of a processor.
"""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

import structlog
from aiohttp import web
from aiohttp.test_utils import TestServer
from tests.clocks import Leaping
from tests.clusterversion.control.test_long_trouble import pass_time
from tests.kubekit.kube.test_lease_election import SetClock
from tests.kubekit.oci.layered import symlink
from tests.kubekit.oci.test_search import FOLDER, entries, sought
from tests.operator.operator_world import GRAPH, Cluster, cluster

from bench.hostile.faulty_api import Fault, FaultyApi, faulty_api, one_event_watch, pass_on
from bench.hostile.images import peak_kib
from kubekit.api.conditions import find
from kubekit.api.core_v1 import ConfigMap
from kubekit.api.meta_v1 import Object
from kubekit.api.scheme import Resource, resource_of
from kubekit.api.workloads_v1 import Lease
from kubekit.kube import calls, config
from kubekit.kube.cache import Cache
from kubekit.kube.client import Client
from kubekit.kube.clock import ManualClock, SystemClock
from kubekit.kube.lease import LeaderElector
from kubekit.kube.watch import Reflector
from kubekit.oci.file_search import Search
from kubekit.oci.registry_errors import BeyondLimits
from kubesandbox.apiserver.server import ApiServer
from runup.api.config_v1 import ClusterVersion
from runup.preflight.decide import preflight_deployment
from runup.process.leader_election import cancel
from runup.report.report import ReportedRisk

FLOOD_S = 40
MINUTE_S, HOUR_S, DAY_S = 60, 3_600, 86_400
LONGEST_S = 2_000
MISSING = Resource(group="example.com", version="v1", kind="Thing", plural="things", namespaced=False)
MAPS, LEASES, VERSIONS = resource_of(ConfigMap), resource_of(Lease), resource_of(ClusterVersion)
WORDS = "Words. "


@dataclass(frozen=True)
class Row:
    """An attack: `numbers` gives by name what it came to, `most` what each may come to."""

    name: str
    numbers: Callable[[Path], Awaitable[dict[str, float]]]
    most: dict[str, float]
    # An attack that reaches nothing says nothing.
    least: dict[str, float] = field(default_factory=dict)

    def beyond(self, found: dict[str, float]) -> list[str]:
        """Returns which numbers are not as they may be, in words."""
        too_many = [f"{found[name]} {name}, {most} at most" for name, most in self.most.items() if found[name] > most]
        too_few = [
            f"{found[name]} {name}, {least} at least" for name, least in self.least.items() if found[name] < least
        ]
        return [f"{self.name}: {each}" for each in too_many + too_few]


def flood_of(risks: int, message: str, status: str = "running") -> Callable[[Path], Awaitable[dict[str, float]]]:
    """A target that writes another report each second, with so many risks."""
    return lambda folder: _flood(folder, risks, message, status)


async def _flood(folder: Path, risks: int, message: str, status: str) -> dict[str, float]:
    clock = ManualClock(SystemClock().now())
    async with cluster(folder) as (world, make), faulty_api(config.load(str(world.kubeconfig))) as api:
        task = asyncio.create_task(make(through=api.config, clock=clock).run())
        try:
            preflight_id = await _started(world, api, clock)
            before, longest = _writes(folder), 0
            for second in range(FLOOD_S):
                url, told = "https://example.com/", f"{second} {message}"
                found = tuple(ReportedRisk(name=f"Risk-{n}", message=told, url=url) for n in range(risks))
                world.report(preflight_id, risks=found, execution_status=status, message=f"{second}")
                await pass_time(clock, api, 1)
                stored = await world.client.send(calls.get_raw(VERSIONS, "version"))
                longest = max(longest, len(json.dumps(stored)))
            after = _writes(folder)
        finally:
            await cancel([task])
    return {
        "writes of ClusterVersion": after.count("clusterversions") - before.count("clusterversions"),
        "writes of ConfigMaps": after.count("configmaps") - before.count("configmaps"),
        "bytes of ClusterVersion": longest,
    }


async def _started(world: Cluster, api: FaultyApi, clock: ManualClock) -> str:
    """Asks for a preflight, and returns its ID when its Deployment is there."""
    await world.ask({"mode": "Preflight", "version": "5.2.0"})
    for _ in range(LONGEST_S):
        await pass_time(clock, api, 1)
        if deployment := await world.deployment():
            return deployment.metadata.annotations[preflight_deployment.ID_ANNOTATION]
    raise TimeoutError("no Deployment of the preflight")


def _writes(folder: Path) -> list[str]:
    """What of all was written, by the audit log."""
    lines = (json.loads(line) for line in (folder / "apiserver" / "audit.log").read_text().splitlines())
    return [each["objectRef"]["resource"] for each in lines if each["verb"] in ("create", "update", "patch")]


def lease_of(promised_s: int, *, set_by_s: int = 0) -> Callable[[Path], Awaitable[dict[str, float]]]:
    """A holder that is silent, and promised so much; a candidate whose clock is set meanwhile."""

    async def numbers(folder: Path) -> dict[str, float]:
        clock, leading = SetClock(), asyncio.Event()
        async with _server(folder) as (client, api):
            spec = {"holderIdentity": "ghost", "leaseDurationSeconds": promised_s}
            await client.send(
                calls.create(LEASES, {"metadata": {"name": "version", "namespace": "default"}, "spec": spec})
            )
            async with Client(api.config, clock=clock) as asking:
                elector = LeaderElector(
                    asking,
                    namespace="default",
                    name="version",
                    identity="candidate",
                    lease_duration_s=15,
                    renew_deadline_s=10,
                    retry_period_s=2,
                    clock=clock,
                    on_started=leading.set,
                    on_stopped=leading.clear,
                    on_renewed=lambda _: None,
                )
                task = asyncio.create_task(elector.run())
                try:
                    await pass_time(clock, api, 3)
                    clock.set_by(timedelta(seconds=set_by_s))
                    waited = 3
                    while not leading.is_set() and waited < LONGEST_S:
                        await pass_time(clock, api, 1)
                        waited += 1
                finally:
                    await cancel([task])
        return {"seconds until another one leads": waited}

    return numbers


async def watches_that_end(folder: Path) -> dict[str, float]:
    """A server that ends each watch after an event, of an object that changes all the time."""
    clock, number, asked_s = Leaping(), 0, list[float]()
    async with _server(folder) as (client, api):
        api.watches = (noted(one_event_watch, clock, asked_s),)
        async with Client(api.config) as asking:
            reflector = Reflector(asking, ConfigMap, Cache(ConfigMap), namespace="default", clock=clock)
            task = asyncio.create_task(reflector.run())
            try:
                while clock.monotonic() < MINUTE_S and len(asked_s) < LONGEST_S:
                    number += 1
                    changed = {"metadata": {"name": "a", "namespace": "default"}, "data": {"number": f"{number}"}}
                    await client.send(calls.apply(MAPS, changed, field_manager="bench", force=True))
            finally:
                await cancel([task])
    return {"watches in a minute": _until(MINUTE_S, asked_s)}


def noted(fault: Fault, clock: ManualClock, asked_s: list[float]) -> Fault:
    """Returns the fault, which notes the time of each request in seconds of the clock.

    That clock goes on while the bench does something else: what was asked by the end is more than was asked in time.
    """

    async def note(request: web.BaseRequest, api: FaultyApi) -> web.StreamResponse:
        asked_s.append(clock.monotonic())
        return await fault(request, api)

    return note


def _until(end_s: float, asked_s: list[float]) -> int:
    return sum(each < end_s for each in asked_s)


async def missing_kind(folder: Path) -> dict[str, float]:
    """A kind that the cluster lacks, for an hour."""
    clock, asked_s = Leaping(), list[float]()
    async with _server(folder) as (_, api), Client(api.config) as asking:
        api.share, api.faults = 1.0, (noted(pass_on, clock, asked_s),)
        reflector = Reflector(asking, Object, Cache(Object), clock=clock, resource=MISSING, rand=lambda: 0.0)
        task = asyncio.create_task(reflector.run())
        try:
            while clock.monotonic() < HOUR_S and len(asked_s) < LONGEST_S:  # noqa: ASYNC110 -- what a server is asked
                await asyncio.sleep(0.01)
        finally:
            await cancel([task])
    return {"requests in an hour": _until(HOUR_S, asked_s)}


async def late_update_service(folder: Path) -> dict[str, float]:
    """An update service that begins to answer twenty seconds after the operator."""
    clock, began = ManualClock(SystemClock().now()), 0.0

    async def answer(_request: web.Request) -> web.Response:
        return web.json_response(GRAPH) if clock.monotonic() - began > 20 else web.Response(status=503)

    app = web.Application()
    app.router.add_get("/graph", answer)
    async with (
        TestServer(app) as service,
        cluster(folder) as (world, make),
        faulty_api(config.load(str(world.kubeconfig))) as api,
    ):
        await world.patch_spec({"upstream": str(service.make_url("/graph"))})
        began = clock.monotonic()
        task = asyncio.create_task(make(through=api.config, clock=clock).run())
        try:
            for waited in range(1, LONGEST_S):
                await pass_time(clock, api, 1)
                retrieved = find((await world.version()).status.conditions, "RetrievedUpdates")
                if retrieved is not None and retrieved.status == "True":
                    return {"seconds until updates are known": waited}
        finally:
            await cancel([task])
    raise TimeoutError("no updates")


async def links_into_folders(_folder: Path) -> dict[str, float]:
    """512 links of an image: into folders elsewhere, and below one another."""
    fan = [symlink(f"{FOLDER}/l{at}", f"/elsewhere/d{at}") for at in range(512)]
    nested = [symlink(f"{FOLDER}/l{at}", "/" + "/".join("a" * (at + 1))) for at in range(256)]
    inside = [symlink("/".join("a" * 257) + f"/m{at}", f"/q{at}") for at in range(256)]
    longest = 0.0
    for made in (fan, nested + inside):
        started = time.process_time()
        with suppress(BeyondLimits):
            Search("image", sought()).layer(entries(*made))
        longest = max(longest, time.process_time() - started)
    return {"seconds of a processor": round(longest, 2)}


@asynccontextmanager
async def _server(folder: Path) -> AsyncIterator[tuple[Client, FaultyApi]]:
    """An API server, a client of it, and a way to it that counts."""
    async with (
        ApiServer(folder / "apiserver") as server,
        Client(config.load(str(server.kubeconfig))) as client,
        faulty_api(config.load(str(server.kubeconfig))) as api,
    ):
        yield client, api


FLOODED = {"writes of ClusterVersion": 12.0, "writes of ConfigMaps": 12.0, "bytes of ClusterVersion": 768.0 * 1024}
ROWS = (
    Row("a report that changes each second", flood_of(5, WORDS), FLOODED, {"writes of ClusterVersion": 5}),
    Row(
        "one that completes each second",
        flood_of(5, WORDS, "completed"),
        FLOODED,
        {"writes of ClusterVersion": 5, "writes of ConfigMaps": 5},
    ),
    # Of nearly a MiB, the most that is read.
    Row("a large one", flood_of(200, WORDS * 700), FLOODED, {"writes of ClusterVersion": 5}),
    Row("a lease of 2^31 seconds", lease_of(2**31 - 1), {"seconds until another one leads": 36}),
    Row("a clock set a day forwards", lease_of(15, set_by_s=DAY_S), {"seconds until another one leads": 20}),
    Row("a clock set a day back", lease_of(15, set_by_s=-DAY_S), {"seconds until another one leads": 20}),
    # Ten at once, then one at each full second before the last (`watch.BURST`, `watch.INTERVAL_S`).
    Row(
        "watches that end after each event", watches_that_end, {"watches in a minute": 69}, {"watches in a minute": 69}
    ),
    # Pauses of 0.8 s that double come to 204 s after eight of them, then follow 28 of two minutes: 1 + 8 + 28.
    Row("a kind that the cluster lacks", missing_kind, {"requests in an hour": 37}, {"requests in an hour": 37}),
    Row("an update service that begins late", late_update_service, {"seconds until updates are known": 60}),
    Row("512 links into folders", links_into_folders, {"seconds of a processor": 2}),
)


async def limits(rows: tuple[Row, ...] = ROWS) -> dict[str, Any]:
    """Returns what each attack came to, and which of it is more than it may be."""
    numbers: dict[str, dict[str, float]] = {}
    kinds: dict[str, dict[str, int]] = {}
    wrong: list[str] = []
    worst = {"what": "", "seconds": 0.0}
    for row in rows:
        started = time.perf_counter()
        with tempfile.TemporaryDirectory() as folder:
            found = numbers[row.name] = await row.numbers(Path(folder))
        beyond = row.beyond(found)
        wrong += beyond
        kinds[row.name] = {"wrong" if beyond else "bounded as due": 1}
        seconds = round(time.perf_counter() - started, 1)
        worst = max(worst, {"what": row.name, "seconds": seconds}, key=lambda each: float(each["seconds"]))
    return {"kinds": kinds, "numbers": numbers, "worst": worst, "wrong": wrong, "peak_mib": round(peak_kib() / 1024, 1)}


def main() -> None:
    """Print what came of it."""
    structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))
    print(json.dumps(asyncio.run(limits())))


if __name__ == "__main__":
    main()
