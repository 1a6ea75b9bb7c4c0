"""A pass that fails again and again is reported in ClusterVersion, and taken back as soon as one succeeds."""

from __future__ import annotations

from pathlib import Path

import pytest
from aiohttp import web
from bench.hostile import faulty_api as faults
from bench.hostile.faulty_api import FaultyApi, faulty_api
from tests.applying.control.applied_world import completed, message, state
from tests.applying.control.release_folders import namespace, write_release
from tests.clusterversion.control.test_long_trouble import pass_time
from tests.operator.operator_world import cluster, running

from kubekit.kube import config
from kubekit.kube.clock import ManualClock, SystemClock


async def no_config_maps(request: web.BaseRequest, api: FaultyApi) -> web.StreamResponse:
    """Refuses writes of ConfigMaps, as a webhook or a quota does."""
    if request.method != "GET" and "/configmaps" in request.path:
        status = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 403, "reason": "Forbidden"}
        return web.json_response(status | {"message": "no ConfigMaps here"}, status=403)
    return await faults.pass_on(request, api)


@pytest.mark.slow
@pytest.mark.timeout(180)
async def test_a_refused_record_does_not_freeze_the_status(tmp_path: Path) -> None:
    """If the preflight's record cannot be written, all other status is still reported, whatever is requested next."""
    clock = ManualClock(SystemClock().now())
    folder = write_release(tmp_path / "release", "5.0.0", {"manifests/0000_00_cvo_00_namespace.yaml": [namespace()]})
    async with (
        cluster(tmp_path) as (world, make),
        faulty_api(config.load(str(world.kubeconfig))) as api,
        running(make(through=api.config, clock=clock, applies=True, payload=folder)),
    ):
        await world.condition("RetrievedUpdates", "True")
        await pass_time(clock, api, 10)
        await world.until(completed("5.0.0"))
        api.share, api.faults = 1.0, (no_config_maps,)
        await world.ask({"mode": "Preflight", "version": "5.2.0"})
        await pass_time(clock, api, 150)
        refused = await world.condition("PreflightFailed", "True", "ImageVerificationFailed")
        await world.ask({"mode": "Preflight", "version": "5.1.0"})
        await pass_time(clock, api, 20)
        shown = await world.until(lambda found: found.status.observed_generation == found.metadata.generation)
        api.calm()
        await pass_time(clock, api, 30)
        well = await world.version()
    # The cluster is none the worse for it.
    for found in (refused, shown, well):
        assert state(found, "Failing")[0] == "False"
        assert message(found, "Progressing") == "Cluster version is 5.0.0"
