"""Two processes and one Lease: the audit log shows which of them wrote."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from tests.rollout.control.policy_world import CORE, OPEN_GATES, POLICIES, World, world

from kubekit.api.scheme import resource_of
from kubekit.api.workloads_v1 import Lease
from kubekit.kube import calls
from kubekit.kube.api_errors import Fenced
from kubekit.kube.client import Client
from kubekit.kube.clock import SystemClock
from runup.process.leader_election import Election, LeaseLost
from runup.rollout.control.controller import PolicyController
from runup.rollout.control.process import LEASE, NAMESPACE, Options, Process

LEASES = resource_of(Lease)
WRITES = {"create", "update", "patch", "delete"}


class Replica:
    """A process with a separate name in the audit log."""

    def __init__(self, found: World, name: str) -> None:
        headers = (("Impersonate-User", name), ("Impersonate-Group", "system:masters"))
        config = replace(found.client.config, headers=(*found.client.config.headers, *headers))
        self.process = Process(config, Options(election=Election(4, 3, 0.3)))
        self.task = asyncio.create_task(self.process.run())

    @property
    def leads(self) -> bool:
        """Whether it holds the Lease, by its metric."""
        return self.process.metrics.registry.get_sample_value("runup_update_leading") == 1


def writes(folder: Path) -> list[tuple[str, str]]:
    """The writes that the server carried out, in their order: user and resource."""
    events = [json.loads(line) for line in (folder / "audit.log").read_text(encoding="utf-8").splitlines()]
    return [
        (str(each.get("impersonatedUser", {}).get("username", "")), str(each.get("objectRef", {}).get("resource", "")))
        for each in events
        if each["verb"] in WRITES and each["responseStatus"]["code"] < 300
    ]


async def until(condition: Callable[[], Any]) -> None:
    """Waits until the condition holds."""
    async with asyncio.timeout(60):
        while not condition():  # noqa: ASYNC110 (a file or a server answers)
            await asyncio.sleep(0.05)


@pytest.mark.slow
async def test_49_a_stolen_lease(tmp_path: Path) -> None:
    """One process leads. It ends as soon as its Lease is stolen and writes nothing more; then the other one leads."""
    folder = tmp_path / "data"
    with world(folder) as found:
        found.begin(calendars=["Always"], actuator="ClusterVersion", gates=OPEN_GATES)
        found.create(CORE["Namespace"], NAMESPACE)
        one = Replica(found, "one")
        await until(lambda: ("one", "clusterversions") in writes(folder))
        two = Replica(found, "two")
        await asyncio.sleep(1)
        assert (one.leads, two.leads) == (True, False)
        assert {user for user, _ in writes(folder) if user} == {"one"}
        stolen = {"spec": {"holderIdentity": "thief"}}
        found.client.send(calls.merge_patch(LEASES, LEASE, stolen, NAMESPACE))
        with pytest.raises(LeaseLost, match="thief holds it"):
            await asyncio.wait_for(one.task, 60)
        found.client.send(calls.merge_patch(POLICIES, "cluster", {"spec": {"paused": True}}))
        await until(lambda: ("two", "updatepolicies") in writes(folder))
        assert two.leads
        two.process.stop()
        await two.task
        made = writes(folder)
    stolen_at = max(index for index, each in enumerate(made) if each == ("", "leases"))
    assert [each for each in made[stolen_at:] if each[0] == "one"] == []


@pytest.mark.slow
async def test_61_its_namespace_is_deleted(tmp_path: Path) -> None:
    """Without its Lease the process ends; an update that it was about to start does not start."""
    with world(tmp_path / "data") as found:
        found.begin(calendars=["Always"], actuator="ClusterVersion", gates=OPEN_GATES)
        found.create(CORE["Namespace"], NAMESPACE)
        one = Replica(found, "one")
        await until(lambda: found.desired().get("mode") == "Preflight")
        found.client.send(calls.delete(CORE["Namespace"], NAMESPACE))
        found.client.send(calls.delete(LEASES, LEASE, NAMESPACE))
        with pytest.raises(LeaseLost):
            await asyncio.wait_for(one.task, 60)
        found.report()
        assert not one.leads
        assert found.desired()["mode"] == "Preflight"
        # Another process does not get a Lease there.
        two = Replica(found, "two")
        await asyncio.sleep(1)
        assert not two.leads
        two.process.stop()
        await two.task
        assert found.desired()["mode"] == "Preflight"


@pytest.mark.slow
async def test_a_process_without_the_lease_writes_nothing(tmp_path: Path) -> None:
    """A pass that begins or continues after the Lease was lost ends at its first write."""
    folder = tmp_path / "data"
    with world(folder) as found:
        found.begin(calendars=["Always"], actuator="ClusterVersion", gates=OPEN_GATES)
        before = found.server.cluster_version(), found.policy()
        async with Client(found.client.config) as client:
            client.fence(lambda _request: False)
            controller = PolicyController(client, SystemClock(), found.observe, leader="a")
            with pytest.raises(Fenced):
                await asyncio.wait_for(controller.run(), 30)
        assert (found.server.cluster_version(), found.policy()) == before
