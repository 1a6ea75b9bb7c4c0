"""The graph from which paths are chosen: read from a server, kept for a while, and never waited for without an end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta

import pytest
from tests.advice.control.test_update_service import asked_out, graph, held
from tests.kubekit.kube.apiscript import ScriptedApi, reply, scripted_api

from kubekit.api.core_v1 import Node, NodeStatus, NodeSystemInfo
from kubekit.api.meta_v1 import ObjectMeta
from kubekit.kube.clock import ManualClock
from runup.advice.decide.graph import Graph
from runup.api.config_v1 import ClusterVersion, ClusterVersionSpec, ClusterVersionStatus, Release
from runup.rollout.control.update_graph import FRESH_FOR, GraphReader

NODES = (Node(metadata=ObjectMeta(name="a"), status=NodeStatus(node_info=NodeSystemInfo(architecture="amd64"))),)


@pytest.fixture
async def api() -> AsyncIterator[ScriptedApi]:
    """An update service to script."""
    async with scripted_api() as found:
        yield found


def cluster(api: ScriptedApi, channel: str = "stable-5.0") -> ClusterVersion:
    """A cluster that queries this service."""
    spec = ClusterVersionSpec(cluster_id="6f1c1a4e-1b5a-4f0e-9d5e-0f2b9f6f7a11", channel=channel, upstream=api.url)
    return ClusterVersion(spec=spec, status=ClusterVersionStatus(desired=Release(version="5.0.0")))


async def test_26_an_answer_is_kept_for_a_while(api: ScriptedApi) -> None:
    """A second look sends no request, a later one does; a failure is a text."""
    clock = ManualClock(datetime(2026, 12, 15, 12, tzinfo=UTC))
    reader = GraphReader(clock)
    api.answers(graph("5.0.0"), reply({}, 503))
    for _ in range(2):
        found = await reader.read(cluster(api), NODES)
        assert isinstance(found, Graph)
    assert len(api.requests) == 1
    await clock.advance((FRESH_FOR + timedelta(seconds=1)).total_seconds())
    assert "503" in str(await reader.read(cluster(api), NODES))
    assert await reader.read(cluster(api, channel=""), NODES) == "The update channel has not been configured."
    await reader.close()


async def test_26_a_pass_does_not_wait_for_a_slow_service(api: ScriptedApi) -> None:
    """The answer counts in a later pass."""
    clock = ManualClock(datetime(2026, 12, 15, 12, tzinfo=UTC))
    reader, late = GraphReader(clock, wait_s=0.05), asyncio.Event()
    api.answers(held(graph("5.0.0"), late))
    assert await reader.read(cluster(api), NODES) == "the update service has not answered yet"
    late.set()
    await asked_out()
    assert isinstance(await reader.read(cluster(api), NODES), Graph)
    await reader.close()
