"""What tests of applying share: a small release, the part of its operators that they play, and what they wait for."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from tests.applying.control.release_folders import (
    NAMESPACE,
    config_map,
    definition,
    deployment,
    manifest,
    namespace,
    operator,
)
from tests.operator.operator_world import DEADLINE_S, Cluster

from kubekit.api.conditions import find
from kubekit.api.scheme import Resource
from kubekit.kube import calls
from kubekit.kube.api_errors import NotFound
from runup.api.config_v1 import ClusterVersion

CONFIG_MAPS = Resource(group="", version="v1", kind="ConfigMap", plural="configmaps", namespaced=True)
OPERATORS = Resource(
    group="config.openshift.io", version="v1", kind="ClusterOperator", plural="clusteroperators", namespaced=False
)
WIDGETS = Resource(group="example.org", version="v1", kind="Widget", plural="widgets", namespaced=True)


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
    """Sets the status of a component's ClusterOperator once the object exists."""
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


def message(found: ClusterVersion, type_: str) -> str:
    """What that condition says."""
    said = find(found.status.conditions, type_)
    return said.message if said is not None else ""


def state(found: ClusterVersion, type_: str) -> tuple[str, str]:
    """Status and reason of that condition."""
    said = find(found.status.conditions, type_)
    return (said.status, said.reason) if said is not None else ("", "")


async def eventually(look: Callable[[], Awaitable[Any]], what: str) -> Any:
    """Returns the result of `look` as soon as it is true; fails after a deadline."""
    try:
        async with asyncio.timeout(DEADLINE_S):
            while not (found := await look()):  # noqa: ASYNC110 -- asked of the API server, as a person would
                await asyncio.sleep(0.02)
            return found
    except TimeoutError:
        raise AssertionError(f"never came about: {what}") from None


async def there(world: Cluster, resource: Resource, name: str, namespace: str = "") -> dict[str, Any] | None:
    """The object, or None."""
    try:
        return await world.client.send(calls.get_raw(resource, name, namespace))
    except NotFound:
        return None
