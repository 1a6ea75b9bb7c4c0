"""A release in a folder, applied by the operator to the sandbox's API server, from first manifest to Completed."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from tests.controllers.operator_world import DEADLINE_S, Cluster, cluster, running
from tests.controllers.payload.release_folders import (
    NAMESPACE,
    config_map,
    definition,
    deployment,
    manifest,
    namespace,
    operator,
    write_release,
)

from runup.api.config_v1 import ClusterVersion
from runup.api.meta_v1 import Condition
from runup.api.scheme import Resource
from runup.domain.conditions import find
from runup.kube import calls

CONFIG_MAPS = Resource("", "v1", "ConfigMap", "configmaps", namespaced=True)
OPERATORS = Resource("config.openshift.io", "v1", "ClusterOperator", "clusteroperators", namespaced=False)
WIDGETS = Resource("example.org", "v1", "Widget", "widgets", namespaced=True)


def first(version: str, **changed: Any) -> dict[str, list[dict[str, Any]]]:
    """A small release with something of every sort."""
    files = {
        "manifests/0000_00_cvo_00_namespace.yaml": [namespace()],
        "release-manifests/0000_10_a_00_definition.yaml": [definition("Widget", "widgets")],
        "release-manifests/0000_20_a_01_config.yaml": [config_map("a", {"version": version})],
        "release-manifests/0000_20_a_02_widget.yaml": [
            manifest("example.org/v1", "Widget", "w", NAMESPACE, spec={"size": 3})
        ],
        "release-manifests/0000_20_b_01_deployment.yaml": [deployment("b", f"registry.example/b:{version}")],
        "release-manifests/0000_20_b_02_operator.yaml": [operator("b", version)],
        "release-manifests/0000_30_c_01_config.yaml": [config_map("c", {"fixed": "yes"})],
    }
    return files | changed


async def operator_is_at(world: Cluster, name: str, version: str, **conditions: str) -> None:
    """What a component's operator says of itself, once there is something to say it on."""
    wanted = {"Available": "True", "Progressing": "False", "Degraded": "False"} | conditions
    said = [
        {"type": type_, "status": status, "lastTransitionTime": "2026-01-01T00:00:00Z"}
        for type_, status in wanted.items()
    ]
    status = {"conditions": said, "versions": [{"name": "operator", "version": version}]}
    await exists(world, OPERATORS, name)
    patch = calls.merge_patch(OPERATORS, name, {"status": status}, subresource="status")
    await world.client.send(patch)


async def exists(world: Cluster, resource: Resource, name: str, namespace: str = "") -> dict[str, Any]:
    """The object, once it is there."""
    from runup.kube.errors import NotFound

    async with asyncio.timeout(DEADLINE_S):
        while True:
            try:
                return await world.client.send(calls.get_raw(resource, name, namespace))
            except NotFound:
                await asyncio.sleep(0.02)


def completed(version: str) -> Any:
    def holds(found: ClusterVersion) -> bool:
        newest = found.status.history[0] if found.status.history else None
        return newest is not None and (newest.version, newest.state) == (version, "Completed")

    return holds


async def test_a_cluster_is_installed(tmp_path: Path) -> None:
    """Everything is there, ours and labelled, and the status says so in the operator's words."""
    folder = write_release(tmp_path / "release", "5.0.0", first("5.0.0"))
    async with (
        cluster(tmp_path / "world") as (world, make),
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
    async with cluster(tmp_path / "world") as (world, make):
        async with running(make(applies=True, payload=old)):
            await operator_is_at(world, "b", "5.0.0")
            await world.until(completed("5.0.0"))
            fixed = await exists(world, CONFIG_MAPS, "c", NAMESPACE)
        async with running(make(applies=True, payload=new, release_image=OTHER)):
            working = await world.condition("Progressing", "True")
            waiting = await world.until(
                lambda found: "waiting on b" in (find(found.status.conditions, "Progressing") or _NONE).message
            )
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
        cluster(tmp_path / "world") as (world, make),
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


async def until_equal(world: Cluster, name: str, data: dict[str, str]) -> None:
    """The ConfigMap, once it holds that."""
    found: dict[str, Any] = {}
    try:
        async with asyncio.timeout(DEADLINE_S):
            while found.get("data") != data:
                await asyncio.sleep(0.02)
                found = await exists(world, CONFIG_MAPS, name, NAMESPACE)
    except TimeoutError:
        raise AssertionError(f"never came about; last: {found}") from None


_NONE = Condition(type="", status="Unknown")
