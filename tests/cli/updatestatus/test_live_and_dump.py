"""In the middle of an update, a dump by `dump collect` reports what the live cluster reports."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.cli.commands import Run
from tests.servers import api_server

from kubekit.api.core_v1 import Node
from kubekit.api.scheme import resource_of
from kubekit.kube import calls, config
from kubekit.kube.client import Client
from kubekit.kube.clock import SystemClock
from runup.sandbox.scenario import folder as scenarios
from runup.sandbox.setup.scenario_objects import set_up_kubernetes

JSON = dict[str, Any]
HOSTED_GROUPS = ("hypershift.openshift.io", "cluster.x-k8s.io")
NOW = "2026-10-02T08:10:00Z"


async def set_up(kubeconfig: Path, name: str, wanted: Callable[[JSON], bool], node: str, version: str) -> None:
    """Creates the wanted objects of a scenario; `node`, if given, is cordoned and has its new version."""
    scenario = scenarios.load(scenarios.find(name))
    objects = tuple(obj for obj in scenario.objects if wanted(obj))
    async with Client(config.load(str(kubeconfig)), clock=SystemClock()) as client:
        assert await set_up_kubernetes(client, replace(scenario, objects=objects), SystemClock()) == ()
        if node:
            nodes = resource_of(Node)
            found = await client.send(calls.get_raw(nodes, node))
            info = {**found["status"]["nodeInfo"], "kubeletVersion": version}
            await client.send(calls.merge_patch(nodes, node, {"spec": {"unschedulable": True}}))
            body = {"status": {"nodeInfo": info}}
            await client.send(calls.merge_patch(nodes, node, body, subresource="status"))


def is_hosted(obj: JSON) -> bool:
    """Objects of HyperShift, and their namespaces."""
    namespace = obj["kind"] == "Namespace" and obj["metadata"]["name"].startswith("clusters")
    return namespace or obj["apiVersion"].partition("/")[0] in HOSTED_GROUPS


def is_no_workload(obj: JSON) -> bool:
    """Everything but the pods that a controller would have to make."""
    return bool(obj["metadata"].get("namespace") != "shop")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "wanted", "node", "words", "lines"),
    [
        pytest.param(
            "hosted-clusters",
            is_hosted,
            "",
            ["--hosted-clusters"],
            [
                "prod-a        Stalled      0% (0/4)     3 Available, 1 Progressing, 0 Draining",
                "Hosted cluster clusters/test",
            ],
            id="hosted clusters",
        ),
        pytest.param("kubeadm-update", is_no_workload, "worker-1", [], ["= Worker Upgrade ="], id="kubeadm"),
        pytest.param("k3s-update", is_no_workload, "server-1", [], ["= Worker Upgrade ="], id="k3s"),
        pytest.param("node-group-update", is_no_workload, "", [], ["= Control Plane ="], id="a service's group"),
    ],
)
def test_a_collected_dump_reports_what_the_live_cluster_reports(
    tmp_path: Path,
    run: Run,
    name: str,
    wanted: Callable[[JSON], bool],
    node: str,
    words: list[str],
    lines: list[str],
) -> None:
    """To the byte, at the same time. A dump has no Secrets, so the hosted side is read of live clusters only."""
    with api_server(tmp_path / "api") as kubeconfig:
        asyncio.run(set_up(kubeconfig, name, wanted, node, "v1.34.0+k3s1" if name.startswith("k3s") else "v1.34.0"))
        status = ("upgrade", "status", "--mock-now", NOW, "--details=all", *words)
        live = run(*status, "--kubeconfig", kubeconfig)
        collected = run("dump", "collect", tmp_path / "mine", "--kubeconfig", kubeconfig)
    assert collected.code == 0, collected.err
    dumped = run(*status, "--dump", tmp_path / "mine")
    assert (dumped.code, live.code) == (0, 0), dumped.err
    without_side = [[line for line in each.out.splitlines() if "osted side" not in line] for each in (live, dumped)]
    assert without_side[0] == without_side[1]
    for line in lines:
        assert line in live.out.splitlines(), live.out
