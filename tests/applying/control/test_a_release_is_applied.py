"""A release in a folder, applied by the operator to the sandbox's API server, from first manifest to Completed."""

from __future__ import annotations

from pathlib import Path

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
from tests.operator.operator_world import cluster, running

from kubekit.api.conditions import find
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
        told = await exists(world, OPERATORS, "b")
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
    assert told["status"]["relatedObjects"] == [{"group": "", "resource": "namespaces", "name": NAMESPACE}]
    assert find(found.status.conditions, "ReleaseAccepted") is not None


OTHER = "registry.example/release@sha256:" + "53" * 32


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
