"""Several tasks that fail at once are one message: whose they are, in which order, and how long it may get."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.applying.control.applied_world import CONFIG_MAPS, completed, exists, message, operator_is_at, state, there
from tests.applying.control.release_folders import NAMESPACE, config_map, deployment
from tests.applying.control.test_updates_are_applied import DEPLOYMENTS, at_first, files
from tests.operator.operator_world import Cluster

from kubekit.kube import calls
from runup.api.config_v1 import ClusterVersion
from runup.applying.decide.failure_summary import MAX_MESSAGE_BYTES

# A value that nobody can carry out, so that the task fails at once and for good.
BAD = {"release.openshift.io/delete": "maybe"}
SAID = 'Invalid delete annotation "release.openshift.io/delete" value: "maybe"'
STUCK = {"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate", "message": "quota exceeded"}
HEADING = "Multiple errors are preventing progress:"


def bad(name: str) -> dict[str, Any]:
    """An object that cannot be done."""
    return config_map(name, {}, annotations=BAD)


async def write_conditions(world: Cluster, name: str, *conditions: dict[str, str], ahead: int = 0) -> None:
    """What the controller says about a Deployment; with `ahead` already, of what will be put next."""
    found = await exists(world, DEPLOYMENTS, name, NAMESPACE)
    moment = {"lastTransitionTime": "2026-01-01T00:00:00Z", "lastUpdateTime": "2026-01-01T00:00:00Z"}
    said = [{**each, **moment} for each in conditions]
    status = {"status": {"observedGeneration": found["metadata"]["generation"] + ahead, "conditions": said}}
    await world.client.send(calls.merge_patch(DEPLOYMENTS, name, status, NAMESPACE, subresource="status"))


def failing(found: ClusterVersion, reason: str) -> bool:
    """Whether the update fails for that reason."""
    return state(found, "Failing") == ("True", reason)


async def test_components_that_fail_side_by_side(tmp_path: Path) -> None:
    """Each failure is listed once, alphabetically; waits are not failures; later levels are not started."""
    own = files("5.0.0", **{"20_d_01_run": [deployment("d", "registry.example/d:1")]})
    target = files(
        "5.0.3",
        **{
            "20_d_01_run": [deployment("d", "registry.example/d:2")],
            "20_f_01_x": [bad("f")],
            "20_e_01_x": [config_map("fine", {}), bad("e"), config_map("after", {})],
        },
    )
    async with at_first(tmp_path, own, target) as (world, _):
        await write_conditions(world, "d", STUCK, ahead=1)
        await world.ask({"version": "5.0.3"})
        several = await world.until(lambda found: message(found, "Failing").count("\n* ") == 3)
        assert await there(world, CONFIG_MAPS, "fine", NAMESPACE) is not None
        assert await there(world, CONFIG_MAPS, "after", NAMESPACE) is None
        waits = await exists(world, CONFIG_MAPS, "c", NAMESPACE)
        await write_conditions(world, "d")
        fewer = await world.until(lambda found: message(found, "Failing").count("\n* ") == 2)
    heading, *lines = message(several, "Failing").split("\n* ")
    assert heading == HEADING
    assert [line.partition(" (")[0] for line in lines] == [
        f'Could not update configmap "{NAMESPACE}/e"',
        f'Could not update configmap "{NAMESPACE}/f"',
        f"deployment {NAMESPACE}/d has some pods failing;",
    ]
    assert [SAID in line for line in lines] == [True, True, False]
    assert "FailedCreate: quota exceeded" in lines[2]
    assert state(several, "Failing") == ("True", "MultipleErrors")
    assert state(several, "Progressing") == ("True", "MultipleErrors")
    assert waits["data"] == {"version": "5.0.0"}
    assert several.status.history[0].state == "Partial"
    assert message(fewer, "Failing").split("\n* ") == [HEADING, *lines[:2]]


async def test_one_that_is_left_is_told_by_itself(tmp_path: Path) -> None:
    """With its own reason and no heading; when it is fixed, too, the update continues."""
    own = files(
        "5.0.0", **{"20_d_01_run": [deployment("d", "registry.example/d:1"), deployment("e", "registry.example/e:1")]}
    )
    target = files(
        "5.0.3",
        **{
            "20_d_01_run": [deployment("d", "registry.example/d:2")],
            "20_e_01_run": [deployment("e", "registry.example/e:2")],
        },
    )
    async with at_first(tmp_path, own, target) as (world, _):
        for name in ("d", "e"):
            await write_conditions(world, name, STUCK, ahead=1)
        await world.ask({"version": "5.0.3"})
        await world.until(lambda found: "5.0.3" in message(found, "Progressing") and failing(found, "MultipleErrors"))
        await write_conditions(world, "d")
        left = await world.condition("Failing", "True", "WorkloadNotProgressing")
        assert (
            message(left, "Failing")
            == f"deployment {NAMESPACE}/e has some pods failing; (FailedCreate: quota exceeded)"
        )
        await write_conditions(world, "e")
        await operator_is_at(world, "b", "5.0.3")
        done = await world.until(completed("5.0.3"))
    assert state(done, "Failing")[0] == "False"


@pytest.mark.slow
async def test_more_failures_than_a_condition_holds(tmp_path: Path) -> None:
    """The status is written, says the first of them whole, and how many more there are."""
    names = [f"{number:03}-{'x' * 200}" for number in range(200)]
    target = files("5.0.3", **{f"20_m{name[:3]}_01_x": [bad(name)] for name in names})
    async with at_first(tmp_path, files("5.0.0"), target) as (world, _):
        await world.ask({"version": "5.0.3"})
        shown = await world.until(lambda found: len(message(found, "Failing").encode()) > MAX_MESSAGE_BYTES * 0.9)
    said = message(shown, "Failing")
    heading, *lines = said.split("\n* ")
    assert heading == HEADING
    assert len(said.encode()) <= MAX_MESSAGE_BYTES
    assert all(line.endswith(f"({SAID})") for line in lines[:-1])
    assert lines[-1] == f"... and {len(names) - len(lines) + 1} more"
