"""The managing operator's loop on the sandbox's API server: what is asked, reported, and said."""

from __future__ import annotations

from pathlib import Path

from prometheus_client import generate_latest
from tests.controllers.operator_world import CRDS, TARGET, cluster, running

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


async def test_an_honest_release_with_much_to_say_freezes_nothing(tmp_path: Path) -> None:
    """180 risks of 150 characters, and one message of a megabyte, are taken by the API server; so is what follows."""
    async with cluster(tmp_path) as (world, manager):
        async with running(manager()):
            await world.ask({"mode": "Preflight", "version": "5.2.0"})
            preflight_id = await world.started("5.2.0")
            world.report(preflight_id, *(f"Operator{index:03}{'x' * 140}" for index in range(180)))
            version = await world.condition("PreflightCompleted", "True", "RisksFound")
            (update,) = (u for u in version.status.conditional_updates if u.release.version == "5.2.0")
            assert len(update.risks) >= 180
            assert "\n\n... and " in update.conditions[0].message
            world.write(preflight_id, b'{"format": "%s"}' % (b"f" * 1_000_000))
            version = await world.condition("PreflightFailed", "True", "UnknownFormat")
            await world.ask(None)
            await world.gone()
            await world.until(lambda v: find(v.status.conditions, "PreflightFailed") is None)
        async with running(manager()):
            await world.ask({"mode": "Preflight", "version": "5.2.0"})
            await world.until(lambda v: find(v.status.conditions, "PreflightRunning") is not None)


async def test_a_status_that_an_older_server_refuses_is_told(tmp_path: Path) -> None:
    """What a definition with fewer risks than ours refuses is named in a condition; the rest of the status goes on."""
    async with cluster(tmp_path) as (world, manager):
        path = "/spec/versions/0/schema/openAPIV3Schema/properties/status/properties/conditionalUpdateRisks/maxItems"
        lower = [{"op": "replace", "path": path, "value": 2}]
        await world.client.send(calls.json_patch(CRDS, "clusterversions.config.openshift.io", lower))
        async with running(manager()) as operator:
            await world.ask({"mode": "Preflight", "version": "5.2.0"})
            preflight_id = await world.started("5.2.0")
            world.report(preflight_id, "A", "B", "C", "D")
            version = await world.condition("StatusWriteRefused", "True", "StatusInvalid")
            found = find(version.status.conditions, "StatusWriteRefused")
            assert found is not None
            assert "conditionalUpdateRisks" in found.message
            assert "must have at most 2 items" in found.message
            assert find(version.status.conditions, "PreflightCompleted") is not None
            text = generate_latest(operator.metrics.registry).decode()
            assert "cluster_version_status_refused_total 1.0" in text
            world.report(preflight_id, "A")
            await world.until(lambda v: find(v.status.conditions, "StatusWriteRefused") is None)
