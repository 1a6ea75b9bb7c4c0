"""Updates as an administrator asks for them, from the request to Completed; what is refused disturbs nothing.

One process applies both releases here: their operator's Deployment is no part of them, so nobody replaces it.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.applying.control.applied_world import (
    CONFIG_MAPS,
    completed,
    eventually,
    exists,
    message,
    operator_is_at,
    state,
    there,
    until_equal,
)
from tests.applying.control.release_folders import (
    NAMESPACE,
    Folders,
    config_map,
    deployment,
    namespace,
    operator,
    write_release,
)
from tests.operator.operator_world import OFFERED, OWN, UNSIGNED, Cluster, cluster, payload, running

from kubekit.api.scheme import Resource
from kubekit.kube import calls

DEPLOYMENTS = Resource(group="apps", version="v1", kind="Deployment", plural="deployments", namespaced=True)
OPERATORS_OWN = "openshift-cluster-version-operator"
CAPABILITY = "capability.openshift.io/name"


def files(version: str, **more: list[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    """A release whose ConfigMap and operator say about which version they are."""
    found = {
        "release-manifests/0000_10_a_00_namespace.yaml": [namespace()],
        "release-manifests/0000_20_a_01_config.yaml": [config_map("a", {"version": version})],
        "release-manifests/0000_20_b_02_operator.yaml": [operator("b", version)],
        "release-manifests/0000_30_c_01_config.yaml": [config_map("c", {"version": version})],
    }
    return found | {f"release-manifests/0000_{name}.yaml": objects for name, objects in more.items()}


@asynccontextmanager
async def at_first(
    tmp_path: Path,
    own: dict[str, list[dict[str, Any]]],
    target: dict[str, list[dict[str, Any]]],
    version: str = "5.0.3",
) -> AsyncGenerator[tuple[Cluster, Folders]]:
    """A cluster at 5.0.0, and what the operator would find behind the images that it is offered."""
    async with cluster(tmp_path / "world", times=5) as (world, make):
        # The same keys by which the world's targets are signed.
        folder = payload_with(tmp_path / "world" / "payload", own)
        sources = Folders({OFFERED: write_release(tmp_path / "target", version, target)})
        manager = make(applies=True, payload=folder, payloads=sources)
        async with running(manager):
            await operator_is_at(world, "b", "5.0.0")
            await world.until(completed("5.0.0"))
            yield world, sources


def payload_with(folder: Path, files_: dict[str, list[dict[str, Any]]]) -> Path:
    """The world's own payload, which verifies others, with more in it."""
    if not folder.exists():
        payload(folder)
    return write_release(folder, "5.0.0", files_)


@pytest.mark.slow
async def test_an_update_is_applied(tmp_path: Path) -> None:
    """An update is accepted once loaded, reported level by level, and Completed."""
    async with at_first(tmp_path, files("5.0.0"), files("5.0.3")) as (world, _):
        before = await world.version()
        await world.ask({"version": "5.0.3"})
        going = await world.until(lambda found: message(found, "Progressing").endswith("waiting on b"))
        waits = await exists(world, CONFIG_MAPS, "c", NAMESPACE)
        await operator_is_at(world, "b", "5.0.3")
        found = await world.until(completed("5.0.3"))
        await until_equal(world, "c", {"version": "5.0.3"})
        after = await world.until(lambda found: message(found, "Available") == "Done applying 5.0.3")
    assert waits["data"] == {"version": "5.0.0"}
    assert state(going, "Available") == ("True", "")
    assert message(going, "Progressing").startswith("Working towards 5.0.3: ")
    assert going.status.history[0].state == "Partial"
    assert going.status.history[0].verified
    assert [entry.state for entry in found.status.history] == ["Completed", "Completed"]
    assert found.status.version_hash != before.status.version_hash
    assert message(after, "Progressing") == "Cluster version is 5.0.3"


async def test_an_update_is_taken_back_and_everything_with_it(tmp_path: Path) -> None:
    """Objects that were already applied stay unchanged, and the history shows the update as never completed."""
    async with at_first(tmp_path, files("5.0.0"), files("5.0.3")) as (world, _):
        await world.ask({"version": "5.0.3"})
        await until_equal(world, "a", {"version": "5.0.3"})
        await world.ask({"version": "5.0.0"})
        await until_equal(world, "a", {"version": "5.0.0"})
        found = await world.until(completed("5.0.0"))
    assert [(entry.version, entry.state) for entry in found.status.history] == [
        ("5.0.0", "Completed"),
        ("5.0.3", "Partial"),
        ("5.0.0", "Completed"),
    ]


@pytest.mark.slow
async def test_a_cluster_goes_back_to_where_it_was(tmp_path: Path) -> None:
    """By version alone: no update service knows the way back, history does."""
    async with at_first(tmp_path, files("5.0.0"), files("5.0.3")) as (world, _):
        await world.ask({"version": "5.0.3"})
        await operator_is_at(world, "b", "5.0.3")
        await world.until(completed("5.0.3"))
        await world.ask({"version": "5.0.0"})
        await operator_is_at(world, "b", "5.0.0")
        found = await world.until(completed("5.0.0"))
        await until_equal(world, "c", {"version": "5.0.0"})
    assert [entry.version for entry in found.status.history] == ["5.0.0", "5.0.3", "5.0.0"]


async def test_a_release_that_cannot_be_loaded_is_refused(tmp_path: Path) -> None:
    """The running one is kept all the while, and the request counts as soon as the release can be had."""
    async with at_first(tmp_path, files("5.0.0"), files("5.0.3")) as (world, sources):
        good = sources.folders.pop(OFFERED)
        await world.ask({"version": "5.0.3"})
        refused = await world.condition("ReleaseAccepted", "False", "RetrievePayload")
        assert "there is no folder" in message(refused, "ReleaseAccepted")
        assert refused.status.desired.version == "5.0.0"
        assert message(refused, "Progressing") == "Cluster version is 5.0.0"
        await world.client.send(calls.delete(CONFIG_MAPS, "c", NAMESPACE))
        await until_equal(world, "c", {"version": "5.0.0"})
        sources.folders[OFFERED] = good
        await world.ask(None)
        back = await world.condition("ReleaseAccepted", "True", "PayloadLoaded")
    assert [entry.version for entry in back.status.history] == ["5.0.0"]


@pytest.mark.slow
async def test_a_release_of_another_version_is_refused(tmp_path: Path) -> None:
    """Whatever the update service calls the image: what is in it counts."""
    async with at_first(tmp_path, files("5.0.0"), files("5.0.4"), version="5.0.4") as (world, _):
        await world.ask({"version": "5.0.3", "force": True})
        refused = await world.condition("ReleaseAccepted", "False", "VerifyPayloadVersion")
    assert "release image version 5.0.4 does not match the expected upstream version 5.0.3" in message(
        refused, "ReleaseAccepted"
    )


async def test_an_unsigned_release_is_never_loaded(tmp_path: Path) -> None:
    """Nothing of it is used before somebody vouches for it; the cluster stays where it is."""
    async with at_first(tmp_path, files("5.0.0"), files("5.0.3")) as (world, sources):
        sources.folders[UNSIGNED] = write_release(tmp_path / "unsigned", "5.1.0", files("5.1.0"))
        await world.ask({"version": "5.1.0"})
        refused = await world.condition("ReleaseAccepted", "False", "RetrievePayload")
        assert await there(world, CONFIG_MAPS, "a", NAMESPACE) is not None
    assert refused.status.desired.image == OWN


async def test_what_moves_into_a_capability_keeps_it_on(tmp_path: Path) -> None:
    """An object that the cluster has, and that the new release has in a capability nobody asked for."""
    moved = config_map("moved", {"a": "b"})
    own = files("5.0.0", **{"40_d_01_x": [moved]})
    inside = config_map("moved", {"a": "c"}, annotations={CAPABILITY: "Console"})
    brand_new = config_map("new", {}, annotations={CAPABILITY: "Insights"})
    target = files("5.0.3", **{"40_d_01_x": [inside, brand_new]})
    async with cluster(tmp_path / "world", times=5) as (world, make):
        await world.patch_spec({"capabilities": {"baselineCapabilitySet": "None"}})
        folder = payload_with(tmp_path / "world" / "payload", own)
        sources = Folders({OFFERED: write_release(tmp_path / "target", "5.0.3", target)})
        async with running(make(applies=True, payload=folder, payloads=sources)):
            await operator_is_at(world, "b", "5.0.0")
            await world.until(completed("5.0.0"))
            await world.ask({"version": "5.0.3"})
            await operator_is_at(world, "b", "5.0.3")
            found = await world.until(completed("5.0.3"))
            await until_equal(world, "moved", {"a": "c"})
            assert await there(world, CONFIG_MAPS, "new", NAMESPACE) is None
    assert found.status.capabilities.enabled_capabilities == ("Console",)
    assert state(found, "ImplicitlyEnabledCapabilities") == ("True", "CapabilitiesImplicitlyEnabled")


@pytest.mark.slow
async def test_the_new_operator_goes_on_where_the_old_one_stopped(tmp_path: Path) -> None:
    """Once the operator's own Deployment is the new one's, the old one applies no more of the release."""
    mine = "cluster-version-operator"

    def own(image: str) -> dict[str, list[dict[str, Any]]]:
        found = deployment(mine, image)
        found["metadata"]["namespace"] = OPERATORS_OWN
        return {"05_cvo_03_deployment": [found]}

    target_files = files("5.0.3", **own(OFFERED))
    async with cluster(tmp_path / "world", times=5) as (world, make):
        folder = payload_with(tmp_path / "world" / "payload", files("5.0.0", **own(OWN)))
        target = write_release(tmp_path / "target", "5.0.3", target_files)
        async with running(make(applies=True, payload=folder, payloads=Folders({OFFERED: target}))):
            await operator_is_at(world, "b", "5.0.0")
            await world.until(completed("5.0.0"))
            runs = {"status": {"replicas": 1, "observedGeneration": 1}}
            patch = calls.merge_patch(DEPLOYMENTS, mine, runs, OPERATORS_OWN, subresource="status")
            await world.client.send(patch)
            await world.ask({"version": "5.0.3"})
            await eventually(lambda: _is_of(world, mine, OFFERED), "the operator's Deployment is the new one")
            partial = await world.until(lambda found: found.status.desired.version == "5.0.3")
            untouched = await exists(world, CONFIG_MAPS, "a", NAMESPACE)
        async with running(make(applies=True, payload=target, release_image=OFFERED)):
            await operator_is_at(world, "b", "5.0.3")
            found = await world.until(completed("5.0.3"))
            await until_equal(world, "a", {"version": "5.0.3"})
    assert untouched["data"] == {"version": "5.0.0"}
    assert [(entry.version, entry.started_time) for entry in found.status.history] == [
        (entry.version, entry.started_time) for entry in partial.status.history
    ]


async def _is_of(world: Cluster, name: str, image: str) -> bool:
    found = await there(world, DEPLOYMENTS, name, OPERATORS_OWN)
    return found is not None and found["spec"]["template"]["spec"]["containers"][0]["image"] == image
