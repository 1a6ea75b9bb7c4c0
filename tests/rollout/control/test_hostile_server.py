"""The controller while requests are held, lost or refused, clocks jump, and objects go. Numbers are of the cases."""

from __future__ import annotations

import asyncio
import itertools
import random
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import timedelta
from typing import Any

import pytest
from aiohttp import web
from bench.hostile.faulty_api import Fault, FaultyApi, faulty_api, pass_on
from msgspec.structs import replace
from tests.clocks import Leaping
from tests.documents import document
from tests.few_or_many import few_or_many
from tests.rollout.control.policy_world import FOLDER, NEW, OPEN_GATES, OTHER, POLICIES, RUNS, World, world
from tests.servers import CRD, eventually

from kubekit.kube import calls
from kubekit.kube.api_errors import KubeError, NotFound
from kubekit.kube.client import Client
from kubekit.kube.client_sync import SyncClient
from runup.report.report import ReportedRisk
from runup.rollout.control.controller import PolicyController
from runup.rollout.control.observe import ClusterInputs, read_cluster

pytestmark = pytest.mark.slow
ALWAYS: dict[str, Any] = {"calendars": ["Always"], "actuator": "ClusterVersion", "soak": "0s"}
RED = ReportedRisk(name="NodeCordoned", message="Node a is cordoned.")


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """One server for the tests that change none of its kinds."""
    with world(tmp_path_factory.mktemp("hostile") / "data") as found:
        yield found


def commit(shared: World) -> None:
    """The next pass requests the update."""
    shared.begin(**ALWAYS)
    shared.passes(2)
    shared.report()
    shared.passes()
    assert shared.run().status.step == "Committing"


def is_write(request: web.BaseRequest) -> bool:
    """Whether a request changes ClusterVersion, or would with its dry run."""
    return request.method == "PATCH" and "/clusterversions/version" in request.path


def held(place: int, change: Callable[[], None]) -> Fault:
    """A proxy that makes `change` before the dry run (0), between it and the patch (1), or after the patch (2)."""
    seen = 0

    async def fault(request: web.BaseRequest, api: FaultyApi) -> web.StreamResponse:
        nonlocal seen
        if is_write(request):
            if seen == place:
                await asyncio.to_thread(change)
            seen += 1
            answer = await pass_on(request, api)
            if seen == place == 2:
                await asyncio.to_thread(change)
            return answer
        return await pass_on(request, api)

    return fault


@few_or_many(6, 1000)
@pytest.mark.timeout(7200)
def test_47_a_risk_while_the_patch_is_held(examples: int, shared: World) -> None:
    """Published at any time before the patch arrives, it makes the patch a conflict; the run waits for the risk."""
    commit(shared)
    before = shared.writes("clusterversions")
    for seed in range(examples):
        rng = random.Random(seed)
        applies = rng.choice(["True", "Unknown"])
        red = ReportedRisk(name="NodeCordoned", message="m", applies=applies)
        shared.passes(fault=held(rng.randrange(2), lambda red=red: shared.report(red)))  # type: ignore[misc]
        assert (seed, shared.desired()["mode"]) == (seed, "Preflight")
        shared.passes()
        reason = {"True": "PreflightRisks", "Unknown": "PreflightUnknown"}[applies]
        assert (seed, shared.run().status.step, shared.reason()) == (seed, "Waiting", reason)
        shared.report()
        shared.passes()
        assert shared.run().status.step == "Committing"
    assert shared.writes("clusterversions") == before
    shared.passes(fault=held(2, lambda: shared.report(RED)))
    assert shared.desired() == {"version": "5.1.0", "image": NEW}
    assert shared.writes("clusterversions") == before + 1


def test_49_one_patch_of_two_leaders(shared: World) -> None:
    """A leader whose lease was stolen while its patch was on its way: one of the two patches is stored."""
    commit(shared)
    before = shared.writes("clusterversions")
    shared.passes(fault=held(1, lambda: shared.passes(2, leader="b")))
    shared.passes(2, leader="b")
    shared.passes(2, leader="a")
    assert shared.desired() == {"version": "5.1.0", "image": NEW}
    assert shared.writes("clusterversions") == before + 1
    assert shared.run().status.step == "ControlPlane"


@pytest.mark.parametrize("arrives", [True, False])
@pytest.mark.parametrize("code", [0, 504])
def test_50_the_answer_of_the_patch_is_lost(shared: World, arrives: bool, code: int) -> None:
    """No answer, or that of a gateway which gave up: the cluster says whether the update began; it begins once."""
    commit(shared)
    before = shared.writes("clusterversions")

    async def lost(request: web.BaseRequest, api: FaultyApi) -> web.StreamResponse:
        if not is_write(request) or "dryRun" in request.query:
            return await pass_on(request, api)
        if arrives:
            async with api.asked(request) as answer:
                await answer.read()
        if code:
            return web.Response(status=code, text="<html>upstream timed out</html>", content_type="text/html")
        assert request.transport is not None
        request.transport.abort()
        return web.Response()

    with pytest.raises(KubeError):
        shared.passes(fault=lost)
    assert (shared.run().status.step, shared.writes("clusterversions")) == ("Committing", before + arrives)
    shared.passes(3)
    assert (shared.run().status.step, shared.run().status.gated) == ("ControlPlane", True)
    assert shared.desired() == {"version": "5.1.0", "image": NEW}
    assert shared.writes("clusterversions") == before + 1


@pytest.mark.parametrize("field", ["mode", "acceptRisks"])
def test_51_a_server_that_drops_a_field(field: str, tmp_path: Any) -> None:
    """A preflight without `mode` would be an update: the strict dry run is refused, and nothing is sent."""
    with world(tmp_path / "data", unknown=field) as found:
        found.begin(**ALWAYS)
        if field == "acceptRisks":
            spec = {"target": {"version": "5.1.0", "image": NEW}, **ALWAYS, "gates": OPEN_GATES}
            accepted = [{"name": "NodeCordoned", "reason": "m", "until": "2999-01-01T00:00:00Z"}]
            found.create(RUNS, "accepts", spec={**spec, "acceptRisks": accepted})
            found.server.patch_spec(desiredUpdate={"version": "5.1.0", "image": NEW, "mode": "Preflight"})
            found.report(RED)
        before = found.server.cluster_version()["spec"]
        found.passes(4)
        assert found.server.cluster_version()["spec"] == before
        assert found.writes("clusterversions") == 0


@pytest.mark.parametrize("days", [1, -1])
def test_52_a_clock_that_jumps_by_a_day(days: int, shared: World) -> None:
    """The server's clock jumps between two passes of one process: time gates close, and nothing starts."""
    shared.begin(**ALWAYS)
    shared.passes(2)
    shared.report()
    read, reads = shared.observe, 0

    def jumping() -> ClusterInputs:
        nonlocal reads
        reads += 1
        shared.ahead = timedelta(days=days if reads > 1 else 0)
        return read()

    shared.observe = jumping  # type: ignore[method-assign]
    try:
        # The first pass stores the intent; the second one sees the jump.
        shared.passes(2)
    finally:
        del shared.observe
        shared.ahead = timedelta()
    assert shared.desired()["mode"] == "Preflight"
    [hold] = [gate for gate in shared.run().status.gates if gate.name == "hold"]
    assert (hold.state, hold.reason) == ("Closed", "ClockSkew")


def test_60_a_report_that_is_wrong_in_another_way_each_second(shared: World) -> None:
    """In the future, partial, of another image: closed, and the status is written at most once in 5 seconds."""
    shared.begin(**ALWAYS)
    shared.passes(3)
    name = shared.run().metadata.name
    before, seconds = shared.writes("updateruns", subresource="status"), 0.0
    reasons = set()
    for is_future in itertools.islice(itertools.cycle([True, False]), 12):
        shared.ahead = timedelta(hours=is_future)
        shared.report(image=NEW if is_future else OTHER)
        shared.ahead = timedelta()
        seconds += shared.passes()
        reasons.add(shared.reason())
    assert reasons == {"PreflightOld", "PreflightOtherRelease"}
    assert shared.writes("updateruns", subresource="status") - before <= seconds / 5
    assert shared.desired()["mode"] == "Preflight"
    assert shared.run().metadata.name == name


def ignoring_errors(shared: World, number: int) -> None:
    """Passes of a process that continues after an error, as `repeat_passes` does."""
    for _ in range(number):
        with suppress(KubeError):
            shared.passes()


def go_to(shared: World, step: str) -> None:
    """A run in this step."""
    commit(shared)
    if step == "Waiting":
        shared.report(RED)
    elif step != "Committing":
        shared.passes(2)
        shared.update("Partial")
        shared.passes()
    else:
        return
    if step == "Soaking":
        shared.update("Completed")
    shared.passes()
    assert shared.run().status.step == step


def restore(shared: World, body: dict[str, Any]) -> None:
    """Creates a deleted definition again."""
    shared.client.send(calls.create(CRD, body))
    eventually(lambda: is_served(shared), "the kind is served again")


def is_served(shared: World) -> bool:
    """Whether the server serves runs."""
    with suppress(NotFound):
        return shared.client.send(calls.list_raw(RUNS)) is not None
    return False


@pytest.mark.parametrize("step", ["Waiting", "Committing", "ControlPlane", "Soaking"])
@pytest.mark.parametrize("deleted", ["run", "policy", "definition"])
def test_61_deleted_objects(deleted: str, step: str, shared: World) -> None:
    """An update that has not begun never starts, one that has begun ends, and deleted objects go."""
    go_to(shared, step)
    if deleted == "run" and step == "Committing":
        shared.report(RED)
    has_begun = step in ("ControlPlane", "Soaking")
    name, uid = shared.run().metadata.name, shared.run().metadata.uid
    definition = document(FOLDER / "01_updateruns.crd.yaml")
    before = shared.writes("clusterversions")
    if deleted == "run":
        shared.client.send(calls.delete(RUNS, name))
    elif deleted == "policy":
        shared.client.send(calls.delete(POLICIES, "cluster"))
    else:
        shared.client.send(calls.delete(CRD, definition["metadata"]["name"]))
    ignoring_errors(shared, 3)
    if step == "ControlPlane":
        # The update continues, and its run is kept until it has ended.
        assert (shared.run().metadata.name, shared.run().status.step) == (name, "ControlPlane")
        shared.update("Completed")
    if deleted != "run":
        # The policy creates another run, which may start.
        shared.report()
    ignoring_errors(shared, 4)
    desired = shared.desired()
    assert bool(desired.get("version") and not desired.get("mode")) is has_begun
    assert shared.writes("clusterversions") - before <= (0 if has_begun else 2)
    if deleted == "definition":
        eventually(lambda: not is_served(shared), "the kind is gone")
        restore(shared, definition)
    elif deleted == "run":
        # The policy may have created another one of the same name.
        assert all(each["metadata"]["uid"] != uid for each in shared.client.send(calls.list_raw(RUNS)).items)
    elif has_begun:
        assert shared.run().status.step in ("Soaking", "Done")
    else:
        assert (shared.run().status.step, shared.reason()) == ("Waiting", "Held")


STORM_S, QUIET_S = 300.0, 60.0


class Ended(Exception):
    """The end of a test of the controller's loop."""


class Stormy(Leaping):
    """A clock that is moved by the controller's pauses, in each of which `happens` is called with the seconds."""

    def __init__(self, happens: Callable[[float], None]) -> None:
        super().__init__()
        self._happens = happens

    async def sleep(self, seconds: float) -> None:
        """See `Clock.sleep`."""
        await super().sleep(seconds)
        await asyncio.to_thread(self._happens, self.monotonic())


def run_in_storm(shared: World, seed: int, share: float, happens: Callable[[float], None]) -> dict[str, int]:
    """Runs the controller for 5 minutes of its clock in which `share` of its requests fail, and for one of quiet.

    Returns the number of faults by kind. `happens` is called in each pause.
    """

    async def follow() -> dict[str, int]:
        async with faulty_api(shared.client.config, seed) as api:

            def step(seconds: float) -> None:
                if seconds >= STORM_S:
                    api.calm()
                happens(seconds)
                if seconds >= STORM_S + QUIET_S:
                    raise Ended

            clock = Stormy(step)
            api.storm(share)
            async with Client(api.config) as client:
                with SyncClient(api.config) as reader:

                    def observe() -> ClusterInputs:
                        inputs = read_cluster(reader, None, with_policy=True)
                        objects = replace(inputs.objects, alerts=())
                        return replace(inputs, objects=objects, now=inputs.now + timedelta(seconds=clock.monotonic()))

                    controller = PolicyController(client, clock, observe, leader="a")
                    with suppress(Ended):
                        await controller.run()
            return {name: count for name, count in api.counted.items() if not name.endswith("pass_on")}

    return asyncio.run(follow())


def test_62_an_update_ends_after_a_storm(shared: World) -> None:
    """A third of all requests fail for 5 minutes, in which the update completes: within a minute the run is Done."""
    go_to(shared, "ControlPlane")
    before = shared.writes("clusterversions")

    def happens(seconds: float) -> None:
        if seconds > STORM_S / 2 and shared.server.cluster_version()["status"]["history"][0]["state"] == "Partial":
            shared.update("Completed")

    faults = run_in_storm(shared, 1, 1 / 3, happens)
    assert sum(faults.values()) > 3, faults
    assert (shared.run().status.step, shared.reason("Done")) == ("Done", "Succeeded")
    assert shared.writes("clusterversions") == before


@pytest.mark.parametrize("seed", range(6))
def test_62_an_update_starts_in_a_storm(seed: int, shared: World) -> None:
    """Few requests fail, among them writes: the update starts once, during the storm or within a minute of quiet."""
    shared.begin(**ALWAYS)
    shared.server.patch_spec(desiredUpdate={"version": "5.1.0", "image": NEW, "mode": "Preflight"})
    shared.report(RED)
    before = shared.writes("clusterversions")

    def happens(seconds: float) -> None:
        if seconds >= STORM_S - 60 and shared.desired().get("mode"):
            shared.report()

    faults = run_in_storm(shared, seed, 0.05, happens)
    assert faults, seed
    assert (shared.run().status.step, shared.run().status.gated) == ("ControlPlane", True)
    assert shared.desired() == {"version": "5.1.0", "image": NEW}
    assert shared.writes("clusterversions") == before + 1
