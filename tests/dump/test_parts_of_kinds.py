"""A must-gather with budgets of one namespace only, from its files to the target's report, in one process.

The target is reported nothing of dumps: what it knows comes from the API server's lists.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from tests.factories import context

from kubekit.api.scheme import Resource, resource_of
from kubekit.api.workloads_v1 import PodDisruptionBudget
from kubekit.kube import calls
from kubekit.kube.client import Client
from kubekit.kube.clock import SystemClock
from kubekit.kube.config import load as load_config
from kubesandbox.apiserver.server import ApiServer
from runup.checks.catalogue.workloads.drain_blocked import CHECK
from runup.checks.decide.engine import CheckOutcome, run_check
from runup.dump import load
from runup.facts.watched_kinds import WatchedKinds
from runup.process.read_only_client import ReadOnlyClient
from runup.sandbox.scenario import from_dump
from runup.sandbox.setup import scenario_objects as imports

BUDGETS = resource_of(PodDisruptionBudget)
NAMESPACES = Resource(group="", version="v1", kind="Namespace", plural="namespaces", namespaced=False)
MAPS = Resource(group="", version="v1", kind="ConfigMap", plural="configmaps", namespaced=True)
SCOPED = "cluster-scoped-resources"
CV = """apiVersion: config.openshift.io/v1
kind: ClusterVersion
metadata: {name: version}
status: {desired: {version: 4.16.3}}
"""
BUDGETS_IN_SHOP = """apiVersion: policy/v1
kind: PodDisruptionBudgetList
metadata: {continue: "", resourceVersion: "7"}
items:
- metadata: {name: till, namespace: shop, generation: 1}
  spec: {minAvailable: MIN, selector: {matchLabels: {app: till}}}
  status: {observedGeneration: 1, currentHealthy: 1, desiredHealthy: MIN, disruptionsAllowed: 0, expectedPods: 1}
"""
NAMESPACE_LIST = "apiVersion: v1\nkind: NamespaceList\nmetadata: {resourceVersion: '7'}\nitems:\n"
LACKING = (
    "Whether PodDisruptionBudgetBlocksDrain applies to what was not listed is unknown: PodDisruptionBudget: "
    "of poddisruptionbudgets the dump has only the namespace shop: whether there were others is not known."
)


def must_gather(folder: Path, *, least: int, namespaces: tuple[str, ...]) -> Path:
    """One budget in the namespace shop; the cluster's namespaces were these."""
    files = {
        f"{SCOPED}/config.openshift.io/clusterversions/version.yaml": CV,
        "namespaces/shop/policy/poddisruptionbudgets.yaml": BUDGETS_IN_SHOP.replace("MIN", str(least)),
    }
    if namespaces:
        items = "".join(f"- metadata: {{name: {name}}}\n" for name in namespaces)
        files[f"{SCOPED}/core/namespaces.yaml"] = NAMESPACE_LIST + items
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(content)
    return folder


async def outcome_on_server(dump: Path, data: Path) -> CheckOutcome:
    """What the check of budgets comes to on a server that holds the dump."""
    scenario = from_dump.scenario_of(load.read(dump), base=dump)
    objects: list[dict[str, Any]] = [obj for obj in scenario.objects if obj["kind"] == "PodDisruptionBudget"]
    known = imports.known_state(scenario, [BUDGETS], objects=objects, refused=[""] * len(objects), from_payload=[])
    async with ApiServer(data) as server, Client(load_config(str(server.kubeconfig))) as admin:
        await admin.send(calls.create(NAMESPACES, {"metadata": {"name": "shop"}}))
        for resource, obj in [
            *((BUDGETS, imports.mark_imported(obj)) for obj in objects),
            *((MAPS, obj) for obj in known),
        ]:
            await admin.send(calls.create(resource, obj))
        changed = asyncio.Event()
        async with ReadOnlyClient(admin.config, namespace="") as client:
            reads = WatchedKinds(client, [BUDGETS], clock=SystemClock(), changed=changed.set)
            running = asyncio.create_task(reads.run())
            async with asyncio.timeout(90):
                while reads.waiting:
                    changed.clear()
                    await changed.wait()
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)
        return run_check(CHECK, reads.snapshot(), context())


@pytest.mark.parametrize(
    ("least", "namespaces", "result", "lacking"),
    [
        pytest.param(0, ("shop",), "Clear", False, id="of every namespace, and none blocks"),
        pytest.param(0, ("shop", "till"), "Unknown", True, id="of one of two, and none blocks"),
        pytest.param(0, (), "Unknown", True, id="of one, and nobody counted the namespaces"),
    ],
)
async def test_what_the_target_says(
    least: int, namespaces: tuple[str, ...], result: str, lacking: bool, tmp_path: Path
) -> None:
    """Clear only where the dump proves that there is no other budget; else Unknown, naming what it has."""
    outcome = await outcome_on_server(
        must_gather(tmp_path / "dump", least=least, namespaces=namespaces), tmp_path / "data"
    )
    assert outcome.result == result
    assert [finding.message for finding in outcome.findings] == [LACKING] * lacking


async def test_what_is_found_is_reported(tmp_path: Path) -> None:
    """Next to what is unknown."""
    dump = must_gather(tmp_path / "dump", least=1, namespaces=("shop", "till"))
    outcome = await outcome_on_server(dump, tmp_path / "data")
    assert [finding.name for finding in outcome.findings] == [CHECK.name, CHECK.unknown_risk]
    assert outcome.result == "Applies"
    assert "shop/till" in outcome.findings[0].message
