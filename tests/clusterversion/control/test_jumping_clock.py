"""A machine's clock is set by a day while a preflight runs: that ends nothing, and the time limit continues."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path

import pytest
from msgspec.structs import replace
from tests.applying.control.applied_world import completed, message, operator_is_at, state
from tests.applying.control.release_folders import namespace, operator, write_release
from tests.operator.operator_world import TARGET, cluster, running

from kubekit.api.conditions import find
from kubekit.api.meta_v1 import ObjectMeta
from kubekit.api.workloads_v1 import Deployment
from kubekit.kube.clock import ManualClock, SystemClock
from runup.clusterversion.control.clusterversion import WorkloadAge
from runup.report.report import FORMAT, Report, encode

DAY = timedelta(days=1)


class SetClock(SystemClock):
    """The machine's clock, which somebody sets."""

    off = timedelta()

    def now(self) -> datetime:
        """See `Clock.now`."""
        return super().now() + self.off


class ManualSetClock(ManualClock):
    """The same for a test that moves time itself."""

    off = timedelta()

    def now(self) -> datetime:
        """See `Clock.now`."""
        return super().now() + self.off


@pytest.mark.parametrize("off", [DAY, -DAY], ids=["ahead", "back"])
async def test_a_clock_that_is_set_by_a_day_ends_no_preflight(tmp_path: Path, off: timedelta) -> None:
    """It continues where it was, and completes."""
    clock = SetClock()
    async with cluster(tmp_path) as (world, manager), running(manager(clock=clock)):
        await world.ask({"mode": "Preflight", "version": "5.2.0"})
        preflight_id = await world.started("5.2.0")
        clock.off = off
        report = Report(
            format=FORMAT,
            preflight_id=preflight_id,
            source_version="5.0.0",
            target_version="5.2.0",
            target_image=TARGET,
            execution_status="running",
            message="1 of 2 checks done",
        )
        world.write(preflight_id, encode(report))
        version = await world.condition("PreflightRunning", "True", "ChecksRunning")
        failed = find(version.status.conditions, "PreflightFailed")
        assert failed is None or failed.status == "False"
        world.report(preflight_id)
        await world.condition("PreflightCompleted", "True", "RisksFound")


async def test_a_preflight_that_failed_to_verify_is_tried_again_after_the_clock_was_set_back(tmp_path: Path) -> None:
    """A verification dated tomorrow does not count as recent."""
    clock = SetClock()
    async with cluster(tmp_path) as (world, manager), running(manager(clock=clock)):
        signatures = tmp_path / "payload" / "signatures"
        signatures.rename(tmp_path / "elsewhere")
        await world.ask({"mode": "Preflight", "version": "5.2.0"})
        await world.condition("PreflightFailed", "True", "ImageVerificationFailed")
        (tmp_path / "elsewhere").rename(signatures)
        clock.off = -DAY
        await world.ask({"mode": "Preflight", "version": "5.2.0", "force": False})
        await world.patch_spec({"channel": "stable-5.1"})  # whatever leads to another look
        await world.started("5.2.0")


@pytest.mark.slow
@pytest.mark.parametrize("off", [DAY, -DAY], ids=["ahead", "back"])
async def test_a_clock_that_is_set_by_a_day_makes_no_operator_late(tmp_path: Path, off: timedelta) -> None:
    """An operator that has been degraded for a moment has not been for 40 minutes."""
    clock = SetClock()
    files = {
        "manifests/0000_00_cvo_00_namespace.yaml": [namespace()],
        "release-manifests/0000_20_a_01_x.yaml": [operator("a", "5.0.3")],
    }
    folder = write_release(tmp_path / "release", "5.0.3", files)
    old = write_release(tmp_path / "old", "5.0.0", {"manifests/0000_00_cvo_00_namespace.yaml": [namespace()]})
    async with cluster(tmp_path / "world") as (world, make):
        async with running(make(applies=True, payload=old)):
            await world.until(completed("5.0.0"))
        async with running(make(applies=True, payload=folder, release_image=TARGET, clock=clock)):
            await operator_is_at(world, "a", "5.0.0", Degraded="True")
            await world.until(lambda found: "waiting up to 40 minutes on a" in message(found, "Progressing"))
            clock.off = off
            await world.patch_spec({"channel": "stable-5.1"})
            await world.until(lambda found: found.status.observed_generation == found.metadata.generation)
            await operator_is_at(world, "a", "5.0.0", Degraded="False")
            await world.until(lambda found: message(found, "Progressing").endswith(" waiting on a"))
            await world.patch_spec({"channel": "stable-5.2"})
            found = await world.until(lambda found: found.status.observed_generation == found.metadata.generation)
            assert state(found, "Failing") == ("False", "")


def deployment(clock: ManualClock, uid: str = "a", age_s: float = 0) -> Deployment:
    """One that was made `age_s` ago, by the wall's clock."""
    created = clock.now() - timedelta(seconds=age_s)
    return Deployment(metadata=ObjectMeta(name="d", uid=uid, creation_timestamp=created))


def test_ages() -> None:
    """Seconds since it appeared, whatever the clock on the wall says; after a restart, what its creation time says."""
    clock = ManualSetClock()
    found = deployment(clock, age_s=100)
    after_a_restart = WorkloadAge(clock)
    assert after_a_restart.of(found) == 100
    clock.jump(20)
    clock.off = DAY
    assert after_a_restart.of(found) == 120
    here_all_along = WorkloadAge(clock)
    assert here_all_along.of(None) == 0
    assert here_all_along.of(found) == 0
    clock.jump(5)
    assert here_all_along.of(found) == 5
    again = replace(found, metadata=replace(found.metadata, uid="b"))
    assert here_all_along.of(again) == 0
    clock.off = -DAY
    assert WorkloadAge(clock).of(found) == 0, "one of tomorrow has no age yet"
    undated = Deployment(metadata=ObjectMeta(name="d", uid="c"))
    assert WorkloadAge(clock).of(undated) == 0, "nobody has said when it was made"
