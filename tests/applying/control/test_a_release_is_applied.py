"""A release in a folder, applied by the operator to the sandbox's API server, from first manifest to Completed."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.applying.control.applied_world import (
    CONFIG_MAPS,
    OPERATORS,
    WIDGETS,
    completed,
    exists,
    first,
    message,
    operator_is_at,
    until_equal,
)
from tests.applying.control.release_folders import NAMESPACE, write_release
from tests.operator.operator_world import VERSION_RESOURCE, Cluster, cluster, running

from kubekit.api.conditions import find
from kubekit.api.scheme import Resource
from kubekit.kube import calls


async def test_a_cluster_is_installed(tmp_path: Path) -> None:
    """Everything is there, ours and labelled, and the status says so in the operator's words."""
    folder = write_release(tmp_path / "release", "5.0.0", first("5.0.0"))
    async with (
        cluster(tmp_path / "world", times=5) as (world, make),
        running(make(applies=True, payload=folder)),
    ):
        await operator_is_at(world, "b", "5.0.0")
        found = await world.until(completed("5.0.0"))
        widget = await exists(world, WIDGETS, "w", NAMESPACE)
        shown = await exists(world, OPERATORS, "b")
    said = {c.type: (c.status, c.reason, c.message) for c in found.status.conditions}
    assert said["Progressing"] == ("False", "", "Cluster version is 5.0.0")
    assert said["Available"] == ("True", "", "Done applying 5.0.0")
    assert said["Failing"] == ("False", "", "")
    assert said["ImplicitlyEnabledCapabilities"][:2] == ("False", "AsExpected")
    assert found.status.history[0].completion_time is not None
    assert found.status.version_hash
    assert "Console" in found.status.capabilities.enabled_capabilities
    owner = widget["metadata"]["ownerReferences"][0]
    assert (owner["kind"], owner["controller"], owner["uid"]) == ("ClusterVersion", True, found.metadata.uid)
    assert widget["spec"] == {"size": 3}
    assert shown["status"]["relatedObjects"] == [{"group": "", "resource": "namespaces", "name": NAMESPACE}]
    assert find(found.status.conditions, "ReleaseAccepted") is not None


OTHER = "registry.example/release@sha256:" + "53" * 32


@pytest.mark.slow
async def test_the_operator_of_a_newer_release_goes_on_from_there(tmp_path: Path) -> None:
    """The next process is of another release: only what differs is written, and history has both, the new one done."""
    old = write_release(tmp_path / "old", "5.0.0", first("5.0.0"))
    new = write_release(tmp_path / "new", "5.0.3", first("5.0.3"))
    async with cluster(tmp_path / "world", times=5) as (world, make):
        async with running(make(applies=True, payload=old)):
            await operator_is_at(world, "b", "5.0.0")
            await world.until(completed("5.0.0"))
            fixed = await exists(world, CONFIG_MAPS, "c", NAMESPACE)
        async with running(make(applies=True, payload=new, release_image=OTHER)):
            working = await world.condition("Progressing", "True")
            waiting = await world.until(lambda found: "waiting on b" in message(found, "Progressing"))
            await operator_is_at(world, "b", "5.0.3")
            found = await world.until(completed("5.0.3"))
            changed = await exists(world, CONFIG_MAPS, "a", NAMESPACE)
            same = await exists(world, CONFIG_MAPS, "c", NAMESPACE)
    assert working.status.desired.version == "5.0.3"
    assert find(waiting.status.conditions, "Failing").status == "False"  # type: ignore[union-attr]
    assert [(entry.version, entry.state) for entry in found.status.history] == [
        ("5.0.3", "Completed"),
        ("5.0.0", "Completed"),
    ]
    assert changed["data"] == {"version": "5.0.3"}
    assert same["metadata"]["resourceVersion"] == fixed["metadata"]["resourceVersion"]


async def test_what_somebody_changes_is_put_back(tmp_path: Path) -> None:
    """A changed value, a deleted object and a lost label come back at once; what others add stays."""
    folder = write_release(tmp_path / "release", "5.0.0", first("5.0.0"))
    async with (
        cluster(tmp_path / "world", times=5) as (world, make),
        running(make(applies=True, payload=folder)),
    ):
        await operator_is_at(world, "b", "5.0.0")
        await world.until(completed("5.0.0"))
        await world.client.send(
            calls.merge_patch(CONFIG_MAPS, "a", {"data": {"version": "mine", "more": "kept"}}, NAMESPACE)
        )
        await world.client.send(calls.delete(CONFIG_MAPS, "c", NAMESPACE))
        await until_equal(world, "a", {"version": "5.0.0", "more": "kept"})
        await until_equal(world, "c", {"fixed": "yes"})
        label = {"metadata": {"labels": {"release.openshift.io/manifest": None}}}
        await world.client.send(calls.merge_patch(CONFIG_MAPS, "c", label, NAMESPACE))
        await world.client.send(calls.merge_patch(CONFIG_MAPS, "c", {"data": {"fixed": "no"}}, NAMESPACE))
        await until_equal(world, "c", {"fixed": "yes"})


DEPLOYMENTS = Resource(group="apps", version="v1", kind="Deployment", plural="deployments", namespaced=True)


@pytest.mark.slow
@pytest.mark.parametrize("installed", [False, True], ids=["installed", "updated"])
async def test_a_release_is_not_completed_before_its_workloads_run(tmp_path: Path, installed: bool) -> None:
    """All of it is applied, and Progressing says what is missing, until the Deployment's controller has made a pod."""
    folder = write_release(tmp_path / "release", "5.0.0", first("5.0.0"))
    async with cluster(tmp_path / "world", times=5, unobserved=["b"]) as (world, make):
        if installed:
            status = {"history": [HISTORY], "desired": {"version": "4.22.0", "image": OTHER}, "observedGeneration": 1}
            status |= {"versionHash": "", "availableUpdates": []}
            patch = calls.merge_patch(VERSION_RESOURCE, "version", {"status": status}, subresource="status")
            await world.client.send(patch)
        async with running(make(applies=True, payload=folder)):
            await operator_is_at(world, "b", "5.0.0")
            said = [await _waiting(world, "has observed generation 0 of 1")]
            await _reports(world, observedGeneration=1)
            said += [await _waiting(world, "which has no pod yet")]
            await _reports(world, replicas=1)
            found = await world.until(completed("5.0.0"))
    assert said == [
        f"Working towards 5.0.0: 7 of 7 done (100% complete), waiting on deployment {NAMESPACE}/b, {why}"
        for why in ("whose controller has observed generation 0 of 1", "which has no pod yet")
    ]
    assert message(found, "Progressing") == "Cluster version is 5.0.0"


HISTORY = {
    "state": "Completed",
    "version": "4.22.0",
    "image": OTHER,
    "startedTime": "2026-01-01T00:00:00Z",
    "completionTime": "2026-01-01T01:00:00Z",
    "verified": False,
}


async def _waiting(world: Cluster, why: str) -> str:
    """Returns the message of Progressing once it describes the unfinished update."""
    found = await world.until(lambda found: message(found, "Progressing").endswith(why))
    assert [entry.state for entry in found.status.history][:1] == ["Partial"]
    return message(found, "Progressing")


async def _reports(world: Cluster, **status: int) -> None:
    """What the Deployment's controller says about it."""
    patch = calls.merge_patch(DEPLOYMENTS, "b", {"status": status}, NAMESPACE, subresource="status")
    await world.client.send(patch)
