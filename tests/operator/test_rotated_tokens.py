"""Processes of pods whose token is renewed and revoked in the middle of their work: they go on, and nobody notices."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.controlplane.plane import ControlPlane
from tests.controlplane.rows import SERVERS, programs
from tests.operator.operator_world import cluster, running
from tests.operator.test_preflight_process import CHECK, MAIN
from tests.rotated_tokens import NAMESPACE, RotatedToken
from tests.servers import api_server, eventually

from kubekit.api.core_v1 import ConfigMap, Node
from kubekit.api.scheme import resource_of
from kubekit.kube import calls, config
from kubekit.kube.api_errors import NotFound
from kubekit.kube.client_sync import SyncClient
from runup.preflight.decide.preflight_deployment import report_map

pytestmark = pytest.mark.slow

NODES = resource_of(Node)


async def test_the_managing_operator_goes_on(tmp_path: Path) -> None:
    """From a preflight that it started with one token to its end with another, and to its removal with a third."""
    async with cluster(tmp_path) as (world, manager):
        token = await asyncio.to_thread(RotatedToken, world.kubeconfig, tmp_path / "pod")
        async with running(manager(through=token.in_cluster)):
            await world.ask({"mode": "Preflight", "version": "5.2.0"})
            preflight_id = await world.started("5.2.0")
            await asyncio.to_thread(token.rotate)
            world.report(preflight_id, "PoolPaused")
            await world.condition("PreflightCompleted", "True", "RisksFound")
            await asyncio.to_thread(token.rotate)
            await world.ask(None)
            await world.gone()


@pytest.fixture(params=SERVERS)
def kubeconfig(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Path]:
    """The administrator's, of each server, with one node."""
    if request.param == "sandbox":
        with api_server(tmp_path / "data") as made:
            yield _with_a_node(made)
    else:
        with ControlPlane(tmp_path / "plane", programs()) as plane:
            yield _with_a_node(plane.kubeconfig)


def _with_a_node(kubeconfig: Path) -> Path:
    with SyncClient(config.load(str(kubeconfig))) as client:
        client.send(calls.create(NODES, {"metadata": {"name": "worker-0"}}))
    return kubeconfig


def test_a_targets_process_goes_on(kubeconfig: Path, tmp_path: Path) -> None:
    """It follows the cluster, and writes its next report with the renewed token."""
    token = RotatedToken(kubeconfig, tmp_path / "pod")
    (tmp_path / "preflight-checks").mkdir()
    check = CHECK.format(name="nodes", profile="self-managed-high-availability")
    (tmp_path / "preflight-checks" / "nodes.yaml").write_text(check)
    words = ("--release-dir", str(tmp_path), "--from", "5.0.0", "--to", "5.2.0", "--catalogs=skip")
    environ = {**os.environ, "PREFLIGHT_ID": "p1", "PREFLIGHT_REPORT_SINK": "configmap", "CVO_NAMESPACE": NAMESPACE}
    command = [sys.executable, "-c", MAIN, "preflight", *words, "--kubeconfig", str(token.kubeconfig)]
    log = tmp_path / "log"
    with SyncClient(config.load(str(kubeconfig))) as client, log.open("wb") as file:

        def found() -> dict[str, Any] | None:
            """What came of the release's own check."""
            assert process.poll() is None, log.read_text()
            try:
                stored = client.send(calls.get_raw(resource_of(ConfigMap), report_map("p1"), NAMESPACE))
            except NotFound:
                return None
            checks = json.loads(stored["data"]["report.json"]).get("checks", [])
            return {each["name"]: each for each in checks}.get("of-nodes")

        process = subprocess.Popen(command, env=environ, stdout=file, stderr=file)
        try:
            eventually(lambda: (found() or {}).get("result") == "Clear", "a report of a node that is not cordoned")
            token.rotate()
            client.send(calls.merge_patch(NODES, "worker-0", {"spec": {"unschedulable": True}}))
            eventually(lambda: (found() or {}).get("result") == "Applies", "a report of the cordoned node")
        finally:
            process.kill()
            process.wait()
