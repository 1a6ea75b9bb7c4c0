"""Two informers on one object, on each server: each keeps its own entries, whatever the other does."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest
from tests.controlplane.rows import SERVERS
from tests.updatestatus.control.test_controller import populate, running
from tests.updatestatus.control.world import JSON, SINCE, STATUSES, World, cluster_with_definitions

from kubekit.kube import calls
from kubekit.kube.api_errors import Conflict, Invalid
from runup.api.update_v1alpha1 import NAME
from runup.updatestatus.decide.finding import INFORMER

THEIRS = "mco-informer"


@pytest.fixture(params=SERVERS)
async def cluster(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncGenerator[World, None]:
    """A small cluster in the middle of an update, with the controller at work."""
    async with cluster_with_definitions(tmp_path, request.param) as made:
        await populate(made)
        async with running(made.config):
            await made.until(lambda status: status.control_plane is not None and len(status.worker_pools) == 1)
            yield made


def health(uid: str, summary: str) -> JSON:
    """An insight of another informer's."""
    impact = {"level": "Warning", "type": "Update Speed", "summary": summary}
    scope = {"type": "WorkerPool", "resources": [{"resource": "nodes", "name": "worker-0"}]}
    insight = {"scope": scope, "impact": impact, "remediation": {}, "startedAt": SINCE, "firstObservedAt": SINCE}
    return {"uid": uid, "acquiredAt": SINCE, "type": "Health", "health": insight}


def entries(*insights: JSON, informer: str = THEIRS, pool: str = "worker") -> JSON:
    """A configuration with one informer's entries in both layers."""
    ref = {"group": "machineconfiguration.openshift.io", "resource": "machineconfigpools", "name": pool}
    mine = [{"name": informer, "insights": list(insights)}]
    layers = {"controlPlane": {"informers": mine}, "workerPools": [{"name": pool, "resource": ref, "informers": mine}]}
    return {"metadata": {"name": NAME}, "status": layers}


async def apply(cluster: World, body: JSON, manager: str = THEIRS) -> None:
    """As an informer does: its own entries, with no force."""
    await cluster.client.send(calls.apply(STATUSES, body, field_manager=manager, subresource="status"))


async def informers(cluster: World) -> dict[str, dict[str, Any]]:
    """Layer -> informer -> its insights, as stored; the control plane's layer has no name."""
    status = (await cluster.client.send(calls.get_raw(STATUSES, NAME)))["status"]
    layers = {"": status["controlPlane"]} | {pool["name"]: pool for pool in status["workerPools"]}
    return {
        name: {each["name"]: each.get("insights") for each in layer.get("informers", ())}
        for name, layer in layers.items()
    }


async def our_next_write(cluster: World, message: str) -> None:
    """The controller writes something new, after it has seen what is there."""
    await cluster.annotate("worker-1", state="Degraded", reason=message)
    await cluster.until(lambda status: message in str(status))


@pytest.mark.slow
async def test_entries_of_two_informers_stay(cluster: World) -> None:
    """To the byte, over writes of ours; ours are there too."""
    one, two = health("one", "Pods are slow"), health("two", "Disks are slow")
    await apply(cluster, entries(one))
    await apply(cluster, entries(two, informer="storage"), "storage")
    await our_next_write(cluster, "the disk is full")
    await our_next_write(cluster, "the disk is gone")
    found = await informers(cluster)
    for layer in ("", "worker"):
        assert found[layer][THEIRS] == [one]
        assert found[layer]["storage"] == [two]
        assert found[layer][INFORMER]


@pytest.mark.slow
async def test_an_informer_takes_its_own_entries_back(cluster: World) -> None:
    """By applying without them; ours and a third one's stay."""
    await apply(cluster, entries(health("one", "a"), health("two", "b")))
    await apply(cluster, entries(health("three", "c"), informer="storage"), "storage")
    await our_next_write(cluster, "first")
    await apply(cluster, entries(health("two", "b")))
    await our_next_write(cluster, "second")
    assert [insight["uid"] for insight in (await informers(cluster))["worker"][THEIRS]] == ["two"]
    await apply(cluster, {"metadata": {"name": NAME}, "status": {}})
    await our_next_write(cluster, "third")
    found = (await informers(cluster))["worker"]
    assert set(found) == {INFORMER, "storage"}
    assert found[INFORMER]


@pytest.mark.slow
async def test_an_informer_cannot_take_ours(cluster: World) -> None:
    """Its apply is a conflict, as between any two managers of fields."""
    ours = (await informers(cluster))["worker"][INFORMER]
    insight = next(insight for insight in ours if insight["type"] == "MachineConfigPool")
    insight["machineConfigPool"]["completion"] = 99
    body = entries(insight, informer=INFORMER)
    del body["status"]["controlPlane"]
    with pytest.raises(Conflict):
        await apply(cluster, body)
    await our_next_write(cluster, "after the conflict")


async def test_what_is_new_under_our_name_is_taken_out_again(cluster: World) -> None:
    """Nobody owns an insight that is not there, so the server takes it; the controller says what it says itself."""
    body = entries(health("not-ours", "said under our name"), informer=INFORMER)
    await apply(cluster, body, "somebody")
    await cluster.until(lambda status: "not-ours" not in str(status))
    assert (await informers(cluster))["worker"][INFORMER]
    # Also of a pool that we do not report, which nobody else has anything to say of.
    body = entries(health("not-ours", "said under our name"), informer=INFORMER, pool="virtual")
    await apply(cluster, body, "somebody")
    await cluster.until(lambda status: "not-ours" not in str(status))
    assert "virtual" not in await informers(cluster)


@pytest.mark.slow
async def test_a_new_pool_needs_its_resource(cluster: World) -> None:
    """The API says so; a pool that is there has it, and needs no second one."""
    body = entries(health("one", "a"), pool="virtual")
    del body["status"]["workerPools"][0]["resource"]
    with pytest.raises(Invalid, match="resource"):
        await apply(cluster, body)
    body["status"]["workerPools"][0]["name"] = "worker"
    await apply(cluster, body)
    assert set((await informers(cluster))["worker"]) == {INFORMER, THEIRS}
    # It is gone with its informer's word, as all that an informer says.
    await apply(cluster, entries(health("one", "a"), pool="virtual"))
    assert set(await informers(cluster)) == {"", "worker", "virtual"}
    await apply(cluster, {"metadata": {"name": NAME}, "status": {}})
    await our_next_write(cluster, "after it")
    assert set(await informers(cluster)) == {"", "worker"}


@pytest.mark.slow
async def test_a_pool_that_another_informer_alone_knows_stays(cluster: World) -> None:
    """With what that one says about it."""
    body = entries(health("one", "a"), pool="virtual")
    condition = {"type": "Updating", "status": "True", "reason": "Moving", "lastTransitionTime": SINCE, "message": ""}
    body["status"]["workerPools"][0]["conditions"] = [condition]
    await apply(cluster, body)
    await our_next_write(cluster, "the disk is full")
    status = (await cluster.client.send(calls.get_raw(STATUSES, NAME)))["status"]
    [pool] = [each for each in status["workerPools"] if each["name"] == "virtual"]
    assert pool["conditions"] == [condition]
    assert [each["name"] for each in pool["informers"]] == [THEIRS]


@pytest.mark.slow
async def test_an_informer_without_server_side_apply(cluster: World) -> None:
    """Whoever adds an entry by a patch keeps it too."""
    added = {"op": "add", "path": "/status/controlPlane/informers/-", "value": {"name": THEIRS, "insights": []}}
    added["value"]["insights"] = [health("one", "a")]  # type: ignore[index]
    await cluster.client.send(calls.json_patch(STATUSES, NAME, [added], subresource="status"))
    await our_next_write(cluster, "the disk is full")
    assert (await informers(cluster))[""][THEIRS] == [health("one", "a")]
