"""What the managing operator shows and leaves next to ClusterVersion: metrics, health, and reports in ConfigMaps."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import aiohttp
import pytest
from msgspec.structs import replace
from prometheus_client.parser import text_string_to_metric_families
from tests.operator.operator_world import NAMESPACE, TARGET, Cluster, cluster, running

from kubekit.api.core_v1 import ConfigMap, Event
from kubekit.kube import calls, config
from kubekit.kube.config import ClusterConfig
from runup.operator.manager import Manager
from runup.preflight.decide import preflight_deployment
from runup.preflight.decide.preflight_deployment import PodSettings
from runup.report.report import FORMAT, Report, ReportedCheck, ReportedRisk, encode
from runup.target.report_sinks import ConfigMapSink

COMPLETED = "cluster_version_preflight_outcomes_total,PreflightCompleted,RisksFound"


async def _metrics(manager: Manager) -> dict[str, float]:
    """Samples by name and labels, as Prometheus would read them."""
    async with aiohttp.ClientSession() as session, session.get(f"{manager.endpoint.address}/metrics") as response:
        assert response.status == 200
        text = await response.text()
    families = text_string_to_metric_families(text)
    samples = (sample for family in families for sample in family.samples)
    return {",".join((sample.name, *sample.labels.values())): sample.value for sample in samples}


async def test_metrics_follow_a_preflight(tmp_path: Path) -> None:
    """Requests, outcomes, durations, the report's age and its checks, in Prometheus' own text format."""
    async with (
        cluster(tmp_path) as (world, manager),
        running(manager(listen="127.0.0.1:0", metrics_auth=False)) as made,
    ):
        await world.condition("RetrievedUpdates", "True")
        before = await _metrics(made)
        assert before["cluster_version_preflight_requests_total"] == 0
        await world.ask({"mode": "Preflight", "version": "5.2.0"})
        world.report(await world.started("5.2.0"), "PoolPaused")
        await world.condition("PreflightCompleted", "True")
        async with asyncio.timeout(90):
            while COMPLETED not in (after := await _metrics(made)):  # noqa: ASYNC110 -- asked, as Prometheus would
                await asyncio.sleep(0.02)
        assert after["cluster_version_preflight_requests_total"] == 1
        assert after[COMPLETED] == 1
        assert after["cluster_version_preflight_duration_seconds_count"] == 1
        assert after["cluster_version_preflight_checks,Applies"] == 1
        assert after["cluster_version_preflight_report_age_seconds"] >= 0
        async with aiohttp.ClientSession() as session:
            for path in ("healthz", "readyz"):
                async with session.get(f"{made.endpoint.address}/{path}") as response:
                    assert (response.status, await response.text()) == (200, "ok\n")


async def test_reports_in_config_maps(tmp_path: Path) -> None:
    """A cluster that forbids host paths: the same result, under an account that can write its report and no other."""
    async with cluster(tmp_path) as (world, manager):
        place = PodSettings(namespace=NAMESPACE, node_name="n", service_account="dedicated", report_sink="configmap")
        async with running(manager(pod_settings=place)):
            await world.ask({"mode": "Preflight", "version": "5.2.0"})
            preflight_id = await world.started("5.2.0")
            target = _as_target(world)
            await asyncio.to_thread(ConfigMapSink(target, NAMESPACE, preflight_id).write, _report(preflight_id))
            await world.condition("PreflightCompleted", "True", "RisksFound")
            with pytest.raises(OSError, match=r"preflight-report-another.*forbidden"):
                await asyncio.to_thread(ConfigMapSink(target, NAMESPACE, "another").write, _report(preflight_id))
            await world.ask(None)
            await world.gone()
            async with asyncio.timeout(90):
                while preflight_deployment.report_map(preflight_id) in await _config_maps(world):  # noqa: ASYNC110
                    await asyncio.sleep(0.02)


def _as_target(world: Cluster) -> ClusterConfig:
    """The configuration that the target's pod has, as far as its rights go."""
    user = f"system:serviceaccount:{NAMESPACE}:{preflight_deployment.NAME}"
    return replace(config.load(str(world.kubeconfig)), headers=(("Impersonate-User", user),))


async def _config_maps(world: Cluster) -> set[str]:
    return {item.metadata.name for item in (await world.client.list_all(ConfigMap, NAMESPACE))[0]}


def _report(preflight_id: str) -> bytes:
    return encode(
        Report(
            format=FORMAT,
            preflight_id=preflight_id,
            source_version="5.0.0",
            target_version="5.2.0",
            target_image=TARGET,
            execution_status="completed",
            checks=(ReportedCheck(name="Check", result="Applies"),),
            risks=(ReportedRisk(name="PoolPaused", message="It is.", url="https://example.com/"),),
        )
    )


async def test_a_request_for_an_update_that_keeps_the_mode(tmp_path: Path) -> None:
    """The merge patch of `oc adm upgrade --to`: nothing updates, and an event and PreflightRunning say why."""
    async with cluster(tmp_path) as (world, manager), running(manager()):
        await world.ask({"mode": "Preflight", "version": "5.2.0"})
        world.report(await world.started("5.2.0"))
        await world.condition("PreflightCompleted", "True")
        update = {"architecture": "", "force": False, "version": "5.2.0", "image": TARGET}
        await world.patch_spec({"desiredUpdate": update})
        version = await world.until(lambda seen: any("kept mode" in each.message for each in seen.status.conditions))
        assert version.spec.desired_update is not None
        assert (version.spec.desired_update.mode, version.status.desired.version) == ("Preflight", "5.0.0")
        events = (await world.client.send(calls.list_page(Event))).items
        assert [event.reason for event in events].count("PreflightKeptMode") == 1
        assert "PreflightBecameUpdate" not in [event.reason for event in events]


async def test_a_report_with_only_the_fields_of_the_proposal(tmp_path: Path) -> None:
    """The request supplies versions and image, and the operator the time."""
    async with cluster(tmp_path) as (world, manager), running(manager()):
        await world.ask({"mode": "Preflight", "version": "5.2.0"})
        preflight_id = await world.started("5.2.0")
        found = {"name": "ConcerningThingA", "message": "It can get stuck.", "url": "https://example.com/SDN-3996"}
        head = {"format": FORMAT, "preflightID": preflight_id}
        world.write(preflight_id, json.dumps(head | {"risks": [found]}).encode())
        version = await world.condition("PreflightCompleted", "True", "RisksFound")
        (update,) = (each for each in version.status.conditional_updates if each.release.version == "5.2.0")
        (risk,) = (each for each in update.risks if each.name == "ConcerningThingA")
        assert risk.url == found["url"]


async def test_the_gauge_of_failures_follows_a_refused_request_and_a_restart(tmp_path: Path) -> None:
    """PreflightFailed is True where nothing was started, too; another process says the same from its first pass."""
    failing = "cluster_version_preflight_failing,TargetNotFound"
    async with cluster(tmp_path) as (world, manager):
        for restarted in (False, True):
            async with running(manager(listen="127.0.0.1:0", metrics_auth=False)) as made:
                if not restarted:
                    await world.ask({"mode": "Preflight", "version": "5.9.0"})
                await world.condition("PreflightFailed", "True", "TargetNotFound")
                async with asyncio.timeout(90):
                    while not made.endpoint.address or (await _metrics(made)).get(failing) != 1:  # noqa: ASYNC110 -- as Prometheus
                        await asyncio.sleep(0.02)
