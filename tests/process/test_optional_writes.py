"""A write that the API server refuses ends a pass, unless nothing else hangs on it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kubekit.api.core_v1 import ConfigMap, Pod
from kubekit.api.scheme import resource_of
from kubekit.kube.client import Client
from kubekit.kube.clock import SystemClock
from kubekit.kube.config import load
from kubesandbox.apiserver.server import ApiServer
from runup.process.plan import Apply, Plan
from runup.process.plan_executor import Executor, NotApplied

AFTER = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "after", "namespace": "default"}}
NO_CONTAINERS: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "refused", "namespace": "default"},
    "spec": {"containers": []},
}


@pytest.mark.parametrize("optional", [True, False], ids=["nothing hangs on it", "the rest hangs on it"])
async def test_a_refused_write(tmp_path: Path, optional: bool) -> None:
    """The plan continues after an optional one, and ends with any other."""
    plan = Plan(
        (
            Apply(resource=resource_of(Pod), object=NO_CONTAINERS, optional=optional),
            Apply(resource=resource_of(ConfigMap), object=AFTER),
        )
    )
    async with ApiServer(tmp_path / "data") as server, Client(load(str(server.kubeconfig))) as client:
        executor = Executor(client, SystemClock())
        if optional:
            await executor.execute(plan)
        else:
            with pytest.raises(NotApplied, match="containers"):
                await executor.execute(plan)
        found, _ = await client.list_all(ConfigMap, "default")
        assert ("after" in {each.metadata.name for each in found}) is optional
