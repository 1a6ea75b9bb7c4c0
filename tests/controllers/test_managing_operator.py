"""The managing operator's loop on the sandbox's API server: what is asked, reported, and said."""

from __future__ import annotations

from pathlib import Path

from tests.controllers.operator_world import TARGET, VERSION_RESOURCE, Cluster, cluster, running

from runup.api.config_v1 import ClusterOperator
from runup.api.scheme import resource_of
from runup.domain.conditions import find
from runup.domain.preflight import workloads
from runup.kube import calls


async def test_from_request_to_risks_and_back(tmp_path: Path) -> None:
    """A request starts the target by digest; its risks appear, disappear when fixed; clearing ends it."""
    async with cluster(tmp_path) as (world, manager), running(manager()):
        await world.condition("RetrievedUpdates", "True")
        await world.ask({"mode": "Preflight", "version": "5.2.0"})
        preflight_id = await world.started("5.2.0")
        deployment = await world.deployment()
        assert deployment is not None
        assert deployment.spec.template.spec.containers[0].image == TARGET

        world.report(preflight_id, "DualStackIncompatible", "PoolPaused")
        version = await world.condition("PreflightCompleted", "True", "RisksFound")
        names = {u.release.version: u.risk_names for u in version.status.conditional_updates}
        assert names["5.2.0"] == ("DualStackIncompatible", "PoolPaused", "UpdatePathNotOffered")
        risks = {risk.name: risk for risk in version.status.conditional_update_risks}
        assert risks["PoolPaused"].message == "Preflight=5.2.0: PoolPaused."
        assert risks["PoolPaused"].conditions[0].reason == "PreflightValidation"
        assert version.status.observed_generation == version.metadata.generation

        world.report(preflight_id, "PoolPaused")
        await world.until(lambda v: "DualStackIncompatible" not in {r.name for r in v.status.conditional_update_risks})

        await world.ask(None)
        await world.gone()
        version = await world.until(lambda v: find(v.status.conditions, "PreflightRunning") is None)
        assert "PoolPaused" in {risk.name for risk in version.status.conditional_update_risks}


async def test_an_unsigned_target_is_never_started(tmp_path: Path) -> None:
    """Nothing of an image runs that no key vouches for."""
    async with cluster(tmp_path) as (world, manager), running(manager()):
        await world.ask({"mode": "Preflight", "version": "5.1.0"})
        version = await world.condition("PreflightFailed", "True", "ImageVerificationFailed")
        assert await world.deployment() is None
        assert version.status.desired.version == "5.0.0"


async def test_a_bad_report_keeps_the_last_good_result(tmp_path: Path) -> None:
    """Truncated JSON is a failure with its reason; the risks found before stay."""
    async with cluster(tmp_path) as (world, manager), running(manager()):
        await world.ask({"mode": "Preflight", "version": "5.2.0"})
        preflight_id = await world.started("5.2.0")
        world.report(preflight_id, "PoolPaused")
        await world.condition("PreflightCompleted", "True")
        world.write(preflight_id, b'{"format": "preflight-v1-j')
        version = await world.condition("PreflightFailed", "True", "ReportInvalid")
        names = {risk.name for risk in version.status.conditional_update_risks}
        assert {"PoolPaused", "PreflightIncomplete"} <= names


async def test_an_operator_that_starts_anew_finds_its_own_work(tmp_path: Path) -> None:
    """A second operator keeps the Deployment and the ID of the first, and reads the report that came meanwhile."""
    async with cluster(tmp_path) as (world, manager):
        async with running(manager()):
            await world.ask({"mode": "Preflight", "version": "5.2.0"})
            preflight_id = await world.started("5.2.0")
        before = await world.deployment()
        world.report(preflight_id, "PoolPaused")
        async with running(manager()):
            await world.condition("PreflightCompleted", "True", "RisksFound")
            after = await world.deployment()
            assert before is not None and after is not None
            assert after.metadata.uid == before.metadata.uid
            assert after.metadata.annotations[workloads.ID_ANNOTATION] == preflight_id


async def test_an_update_with_unaccepted_risks_is_blocked(tmp_path: Path) -> None:
    """Without its mode the request is an update: the workload goes first, then the risks that nobody accepted block."""
    async with cluster(tmp_path) as (world, manager), running(manager()):
        await world.ask({"mode": "Preflight", "version": "5.2.0"})
        world.report(await world.started("5.2.0"), "PoolPaused")
        await world.condition("PreflightCompleted", "True")
        await world.ask({"version": "5.2.0"})
        version = await world.condition("ReleaseAccepted", "False", "UnacceptedRisks")
        assert await world.deployment() is None
        condition = find(version.status.conditions, "ReleaseAccepted")
        assert condition is not None and "[PoolPaused,UpdatePathNotOffered]" in condition.message
        assert version.status.desired.version == "5.0.0"


async def test_a_cluster_version_that_is_made_again(tmp_path: Path) -> None:
    """It gets its history and conditions back, from what the cluster's operators say; its preflight goes."""
    async with cluster(tmp_path) as (world, manager), running(manager()):
        await _operator_at(world, "5.0.0")
        await world.ask({"mode": "Preflight", "version": "5.2.0"})
        await world.started("5.2.0")
        before = await world.version()
        await world.client.send(calls.delete(VERSION_RESOURCE, "version"))
        spec = {name: getattr(before.spec, name) for name in ("channel", "upstream")}
        kind = {"apiVersion": VERSION_RESOURCE.api_version, "kind": VERSION_RESOURCE.kind}
        again = {**kind, "metadata": {"name": "version"}, "spec": spec | {"clusterID": before.spec.cluster_id}}
        await world.until_created(VERSION_RESOURCE, again)
        await world.gone()
        await world.condition("RetrievedUpdates", "True")
        version = await world.condition("Available", "True")
        assert [(entry.version, entry.state) for entry in version.status.history] == [("5.0.0", "Completed")]
        told = {condition.type: condition.message for condition in version.status.conditions}
        assert told["Available"] == "Done applying 5.0.0"
        assert told["Progressing"] == "Cluster version is 5.0.0"


async def _operator_at(world: Cluster, version: str) -> None:
    resource = resource_of(ClusterOperator)
    conditions = [
        {"type": type_, "status": status, "lastTransitionTime": "2026-11-21T00:00:00Z"}
        for type_, status in {"Available": "True", "Progressing": "False", "Degraded": "False"}.items()
    ]
    status = {"conditions": conditions, "versions": [{"name": "operator", "version": version}]}
    kind = {"apiVersion": resource.api_version, "kind": resource.kind}
    await world.until_created(resource, {**kind, "metadata": {"name": "etcd"}, "spec": {}, "status": status})
    await world.client.send(calls.merge_patch(resource, "etcd", {"status": status}, subresource="status"))
