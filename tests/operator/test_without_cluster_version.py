"""A cluster that has no ClusterVersion `version`: the operator reports that, and begins when there is one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import aiohttp
import pytest
from structlog.testing import capture_logs
from tests.applying.control.applied_world import OPERATORS, eventually
from tests.operator.operator_world import VERSION_RESOURCE, cluster, running

from kubekit.kube import calls
from runup.operator.manager import Manager


def up(manager: Manager, name: str, reason: str) -> float | None:
    """What is measured of that operator."""
    labels = {"name": name, "version": "", "reason": reason}
    return manager.metrics.registry.get_sample_value("cluster_operator_up", labels)


async def ready(manager: Manager) -> tuple[int, str]:
    """What a probe reads."""
    address = manager.endpoint.address
    async with aiohttp.ClientSession() as session, session.get(f"{address}/readyz") as answer:
        return answer.status, await answer.text()


@pytest.mark.slow
async def test_reports_a_missing_cluster_version(tmp_path: Path) -> None:
    """In the log, to a probe, and as a metric that an alert looks at; all end when there is one."""
    async with cluster(tmp_path) as (world, make):
        whole = await world.client.send(calls.get_raw(VERSION_RESOURCE, "version"))
        await world.client.send(calls.delete(VERSION_RESOURCE, "version"))
        with capture_logs() as said:
            async with running(make(listen="127.0.0.1:0")) as manager:

                async def measured(name: str, reason: str, value: float | None) -> bool:
                    return up(manager, name, reason) == value

                await eventually(lambda: measured("version", "ClusterVersionNotFound", 0.0), "it is measured")
                # Another pass, which has nothing new to say.
                await world.client.send(calls.create(OPERATORS, {**_operator("etcd"), "spec": {}}))
                await eventually(lambda: measured("etcd", "NoAvailableCondition", 0.0), "operators are measured")

                async def logged() -> list[str]:
                    return [line["log_level"] for line in said if "no ClusterVersion" in line.get("why", "")]

                assert await eventually(logged, "it is logged") == ["warning"]
                status, text = await ready(manager)
                assert (status, text.partition(":")[0]) == (503, "there is no ClusterVersion version")
                await world.client.send(calls.create(VERSION_RESOURCE, {**whole, "metadata": {"name": "version"}}))
                await world.condition("RetrievedUpdates", "True")
                await eventually(lambda: measured("version", "ClusterVersionNotFound", None), "it is measured no more")
                assert await ready(manager) == (200, "ok\n")


def _operator(name: str) -> dict[str, Any]:
    return {"apiVersion": "config.openshift.io/v1", "kind": "ClusterOperator", "metadata": {"name": name}}
