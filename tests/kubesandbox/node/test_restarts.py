"""How long failing containers, missing images and slow pods are waited for, by a clock that the test moves."""

from __future__ import annotations

import pytest
from tests.kubesandbox.node.conftest import DEADLINE_S, AgentCluster, condition, container, ended, runs, state, waits

from runup.release.control.image_build import build_release


@pytest.mark.slow
async def test_a_crash_loop(still: AgentCluster) -> None:
    """Once more at once, then after 10 s doubling to 5 minutes, each told in the waiting container's message."""
    made = await still.run("exit 1")
    where = f"container=main pod=pod_default({made['metadata']['uid']})"
    for number, (seconds, shown) in enumerate(
        [(10, "10s"), (20, "20s"), (40, "40s"), (80, "1m20s"), (160, "2m40s"), (300, "5m0s"), (300, "5m0s")], start=1
    ):
        status = await still.until(
            lambda found, n=number: waits("CrashLoopBackOff")(found) and container(found)["restartCount"] == n, shown
        )
        assert state(status)["waiting"]["message"] == f"back-off {shown} restarting failed {where}"
        assert status["phase"] == "Running"
        assert container(status)["lastState"]["terminated"]["exitCode"] == 1
        await still.manual.until_sleeping()
        assert still.manual.sleeping == (seconds,)
        await still.manual.advance(seconds)
    assert "Back-off restarting failed container main in pod pod_default" in await still.until_told("BackOff")


async def test_success_with_always_is_restarted_too(still: AgentCluster) -> None:
    """restartPolicy Always means just that."""
    await still.run("exit 0")
    status = await still.until(waits("CrashLoopBackOff", "back-off 10s"), "a back-off")
    assert container(status)["lastState"]["terminated"]["reason"] == "Completed"


async def test_a_deleted_pod_does_not_wait_for_its_restart(still: AgentCluster) -> None:
    """It goes at once."""
    await still.run("exit 1")
    await still.until(waits("CrashLoopBackOff"), "a back-off")
    await still.delete()
    await still.until_gone()


async def test_an_image_that_comes_later(still: AgentCluster) -> None:
    """ErrImagePull, ImagePullBackOff, and so on with longer waits until the image is there."""
    spec = f"{still.registry.host}/runup/release:later"
    await still.run("exec sleep 1000", container={"image": spec})
    for total in (10, 20, 40):
        failed = await still.until(waits("ErrImagePull"), "a failed pull")
        assert state(failed)["waiting"]["message"]
        await still.manual.until_sleeping()
        await still.manual.advance(1)
        status = await still.until(waits("ImagePullBackOff"), "waiting for the image")
        assert state(status)["waiting"]["message"].startswith(f'Back-off pulling image "{spec}": ErrImagePull: ')
        await still.manual.until_sleeping()
        assert still.manual.sleeping == (total - 1,)
        if total == 40:
            build_release(still.place.data.parent / "registry", version="5.1.0", files={}, tag="later")
        await still.manual.advance(total - 1)
    status = await still.until(runs, "it runs")
    assert container(status)["restartCount"] == 0
    assert container(status)["imageID"].startswith(f"{still.registry.host}/runup/release@sha256:")


async def test_a_pull_policy_of_never(still: AgentCluster) -> None:
    """Only what is on the node already counts."""
    await still.run("exit 0", container={"imagePullPolicy": "Never"})
    status = await still.until(waits("ErrImageNeverPull"), "its refusal")
    expected = f'Container image "{still.image}" is not present with pull policy of Never'
    assert state(status)["waiting"]["message"] == expected


async def test_an_image_on_the_node_needs_no_registry(still: AgentCluster) -> None:
    """With IfNotPresent, a registry that is away stops nobody."""
    await still.run("exit 0", "first", restartPolicy="Never")
    await still.until(lambda found: found.get("phase") == "Succeeded", "the first", "first")
    await still.registry.__aexit__(None, None, None)
    await still.run("exit 0", "second", restartPolicy="Never")
    await still.until(lambda found: found.get("phase") == "Succeeded", "the second", "second")
    shown = [message for reason, message in await still.events() if reason == "Pulled"]
    assert f'Container image "{still.image}" already present on machine' in shown


async def test_a_name_that_is_no_image(still: AgentCluster) -> None:
    """InvalidImageName, which only an edit helps."""
    await still.run("exit 0", container={"image": f"{still.registry.host}/UPPER"})
    assert state(await still.until(waits("InvalidImageName"), "its refusal"))["waiting"]["message"]


async def test_the_grace_is_over_when_the_clock_says_so(still: AgentCluster) -> None:
    """SIGTERM at once, SIGKILL not before its time."""
    await still.run("trap 'echo no' TERM; echo up; while :; do sleep 0.05; done", terminationGracePeriodSeconds=60)
    await still.until_logged("up")
    await still.delete()
    await still.until_logged("no")
    await still.manual.until_sleeping()
    (left,) = still.manual.sleeping
    # The server's clock, which set the time, continues while this one stops.
    assert 59 <= left <= 60 + DEADLINE_S
    await still.manual.advance(left)
    await still.until_gone()


async def test_a_pod_that_is_active_for_too_long(still: AgentCluster) -> None:
    """Failed with DeadlineExceeded; the object stays."""
    await still.run("exec sleep 1000", activeDeadlineSeconds=90)
    await still.until(runs, "it runs")
    await still.manual.until_sleeping()
    await still.manual.advance(90)
    status = await still.until(lambda found: found.get("phase") == "Failed" and ended(found), "its end")
    assert (status["reason"], ended(status)["exitCode"]) == ("DeadlineExceeded", 143)
    assert condition(status, "Ready")["reason"] == "PodFailed"
