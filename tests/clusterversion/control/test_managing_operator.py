"""The managing operator's loop on the sandbox's API server: what is asked, reported, and said."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path

import pytest
import yaml
from aiohttp import web
from prometheus_client import generate_latest
from tests.applying.control.applied_world import eventually
from tests.kubekit.kube.apiscript import scripted_api, silence
from tests.operator.operator_world import (
    CRDS,
    NAMESPACE,
    OFFERED,
    OWN,
    TARGET,
    VERSION_RESOURCE,
    Cluster,
    cluster,
    running,
)
from tests.process.tls_world import DEFINITIONS

import runup.sandbox
from kubekit.api.codec import Undecodable
from kubekit.api.conditions import find
from kubekit.api.meta_v1 import ObjectMeta
from kubekit.api.scheme import resource_of
from kubekit.kube import calls
from kubekit.kube.api_errors import NotFound
from runup.api.config_v1 import ClusterOperator, ClusterVersion
from runup.clusterversion.control.clusterversion import Caches
from runup.preflight.decide import preflight_deployment
from runup.preflight.decide.preflight_deployment import PodSettings, Quantities

OPERATORS = resource_of(ClusterOperator)
OWN_CODE = r"/runup/(\w+/control|operator|process)/"


async def test_from_request_to_risks_and_back(tmp_path: Path) -> None:
    """A request starts the target by digest; its risks appear, disappear when fixed; clearing ends it."""
    async with cluster(tmp_path) as (world, manager), running(manager()):
        await world.condition("RetrievedUpdates", "True")
        await world.ask({"mode": "Preflight", "version": "5.2.0"})
        preflight_id = await world.started("5.2.0")
        deployment = await world.deployment()
        assert deployment is not None
        assert deployment.spec.template.spec.containers[0].image == TARGET

        world.report(preflight_id, "DualStackIncompatible", "PoolPaused")
        version = await world.condition("PreflightCompleted", "True", "RisksFound")
        names = {u.release.version: u.risk_names for u in version.status.conditional_updates}
        assert names["5.2.0"] == (
            "ClusterVersionGiantHop",
            "DualStackIncompatible",
            "PoolPaused",
            "UpdatePathNotOffered",
        )
        risks = {risk.name: risk for risk in version.status.conditional_update_risks}
        assert risks["PoolPaused"].message == "Preflight=5.2.0: PoolPaused."
        assert risks["PoolPaused"].conditions[0].reason == "PreflightValidation"
        assert version.status.observed_generation == version.metadata.generation

        world.report(preflight_id, "PoolPaused")
        await world.until(lambda v: "DualStackIncompatible" not in {r.name for r in v.status.conditional_update_risks})

        await world.ask(None)
        await world.gone()
        version = await world.until(lambda v: find(v.status.conditions, "PreflightRunning") is None)
        assert "PoolPaused" in {risk.name for risk in version.status.conditional_update_risks}


async def test_the_cluster_s_own_signature_stores_are_asked_instead_of_the_release_s(tmp_path: Path) -> None:
    """The release's store has the signature; an administrator who names another wants that one asked."""
    async with cluster(tmp_path) as (world, manager):
        # Only this feature set's definition has the field.
        folder = Path(runup.sandbox.__path__[0]) / "crds"
        wide = folder / "0000_00_cluster-version-operator_01_clusterversions-TechPreviewNoUpgrade.crd.yaml"
        definition = yaml.safe_load(wide.read_text())
        await world.client.send(calls.merge_patch(CRDS, definition["metadata"]["name"], {"spec": definition["spec"]}))
        await world.patch_spec({"signatureStores": [{"url": "http://127.0.0.1:1/signatures"}]})
        async with running(manager()):
            await world.ask({"mode": "Preflight", "version": "5.2.0"})
            version = await world.condition("PreflightFailed", "True", "ImageVerificationFailed")
            found = find(version.status.conditions, "PreflightFailed")
            assert found is not None
            assert "http://127.0.0.1:1/signatures" in found.message


async def test_one_operator_that_cannot_be_read_is_one_risk(tmp_path: Path) -> None:
    """The managing operator continues: the others count, a preflight runs, and the bad one is named."""
    odd = {"status": {"conditions": [{"type": "Upgradeable", "status": "true"}]}}
    old = {"status": {"conditions": [{"type": "Upgradeable", "status": "False", "message": "Old driver."}]}}
    async with cluster(tmp_path) as (world, manager), running(manager()):
        for name, status in (("network", odd), ("storage", old)):
            body = {"apiVersion": "config.openshift.io/v1", "kind": "ClusterOperator", "metadata": {"name": name}}
            await world.until_created(OPERATORS, body)
            await world.client.send(calls.merge_patch(OPERATORS, name, status, subresource="status"))

        def operator_risks(version: ClusterVersion) -> dict[str, str]:
            risks = version.status.conditional_update_risks
            return {risk.name: risk.conditions[0].status for risk in risks if "ClusterOperator" in risk.name}

        expected = {"ClusterOperatorUpgradeable-network": "True", "ClusterOperatorUpgradeable-storage": "True"}
        version = await world.until(lambda version: operator_risks(version) == expected)
        (network,) = [r for r in version.status.conditional_update_risks if r.name.endswith("-network")]
        assert "ClusterOperator network cannot be read: Invalid enum value 'true'" in network.message
        await world.ask({"mode": "Preflight", "version": "5.2.0"})
        await world.started("5.2.0")
        good = {"status": {"conditions": [{"type": "Upgradeable", "status": "True"}]}}
        await world.client.send(calls.merge_patch(OPERATORS, "network", good, subresource="status"))
        await world.until(lambda version: set(operator_risks(version)) == {"ClusterOperatorUpgradeable-storage"})


async def test_operators_that_cannot_be_listed_are_a_risk_that_says_why(tmp_path: Path) -> None:
    """The risk forbids minor updates and has the server's words."""
    async with cluster(tmp_path) as (world, manager):
        definition = f"{OPERATORS.plural}.{OPERATORS.group}"
        await world.client.send(calls.delete(DEFINITIONS, definition))
        await eventually(lambda: _unserved(world), "nobody serves the kind any more")
        async with running(manager()):
            version = await world.until(
                lambda version: [r for r in version.status.conditional_update_risks if "ClusterOperator" in r.name]
            )
    (risk,) = [risk for risk in version.status.conditional_update_risks if "ClusterOperator" in risk.name]
    assert risk.conditions[0].status == "True"
    why = "the server has no API clusteroperators.config.openshift.io/v1"
    assert f"Failed to retrieve ClusterOperators to check Upgradeable conditions: {why}" in risk.message


async def _unserved(world: Cluster) -> bool:
    try:
        await world.client.send(calls.list_raw(OPERATORS))
    except NotFound:
        return True
    return False


def test_a_cluster_version_that_cannot_be_read_is_why_the_operator_waits() -> None:
    """The probe's answer says which object and which field, and nothing is decided without it."""
    caches = Caches.new()
    for cache in caches.all():
        cache.replace((), "1")
    assert caches.not_ready() == ""
    caches.versions.put_undecoded(Undecodable("", "version", "Invalid enum value 'true' - at `$.status`"))
    assert caches.not_ready() == "ClusterVersion version cannot be read: Invalid enum value 'true' - at `$.status`"
    caches.versions.put(ClusterVersion(metadata=ObjectMeta(name="version")))
    assert caches.not_ready() == ""


async def test_an_unsigned_target_is_never_started(tmp_path: Path) -> None:
    """Nothing of an image runs that no key vouches for."""
    async with cluster(tmp_path) as (world, manager), running(manager()):
        await world.ask({"mode": "Preflight", "version": "5.1.0"})
        version = await world.condition("PreflightFailed", "True", "ImageVerificationFailed")
        assert await world.deployment() is None
        assert version.status.desired.version == "5.0.0"


@pytest.mark.slow
async def test_a_bad_report_keeps_the_last_good_result(tmp_path: Path) -> None:
    """Truncated JSON is a failure with its reason; the risks found before stay."""
    async with cluster(tmp_path) as (world, manager), running(manager()):
        await world.ask({"mode": "Preflight", "version": "5.2.0"})
        preflight_id = await world.started("5.2.0")
        world.report(preflight_id, "PoolPaused")
        await world.condition("PreflightCompleted", "True")
        world.write(preflight_id, b'{"format": "preflight-v1-j')
        version = await world.condition("PreflightFailed", "True", "ReportInvalid")
        names = {risk.name for risk in version.status.conditional_update_risks}
        assert {"PoolPaused", "PreflightIncomplete"} <= names


@pytest.mark.slow
async def test_what_is_under_way_ends_with_it(tmp_path: Path) -> None:
    """A graph, alerts, a release's version and its manifests, asked of who never answers: nobody waits for them."""
    async with cluster(tmp_path) as (world, manager), scripted_api() as slow:
        slow.answers(silence)
        image = f"{slow.url.removeprefix('http://')}/release@{TARGET.partition('@')[2]}"
        await world.patch_spec({"upstream": f"{slow.url}/graph"})
        before = asyncio.all_tasks()
        async with running(manager(prometheus_url=slow.url, applies=True, release_source="registry")):

            async def asked(what: str, times: int = 1) -> bool:
                return sum(what in target for target in slow.targets) >= times

            await eventually(lambda: asked("/graph"), "the graph is asked for")
            await eventually(lambda: asked("/api/v1/alerts"), "the alerts are asked for")
            await world.ask({"mode": "Preflight", "image": image})
            await eventually(lambda: asked("/v2/"), "the version is read")
            await world.ask({"image": image, "version": "5.2.0", "force": True})
            await eventually(lambda: asked("/v2/", 2), "the release is fetched")
        left = [task.get_coro().cr_code for task in asyncio.all_tasks() - before]  # type: ignore[union-attr]
    assert [code.co_qualname for code in left if re.search(OWN_CODE, code.co_filename)] == []


async def test_an_operator_that_starts_anew_finds_its_own_work(tmp_path: Path) -> None:
    """A second operator keeps the Deployment and the ID of the first, and reads the report that came meanwhile."""
    async with cluster(tmp_path) as (world, manager):
        async with running(manager()):
            await world.ask({"mode": "Preflight", "version": "5.2.0"})
            preflight_id = await world.started("5.2.0")
        before = await world.deployment()
        world.report(preflight_id, "PoolPaused")
        async with running(manager()):
            await world.condition("PreflightCompleted", "True", "RisksFound")
            after = await world.deployment()
            assert before is not None and after is not None
            assert after.metadata.uid == before.metadata.uid
            assert after.metadata.annotations[preflight_deployment.ID_ANNOTATION] == preflight_id


FLOOD = b'{"nodes":[{"version":"5.0.0"}],"edges":[' + b"[0,0]," * 2_000_000 + b"[0,0]]}"
NOWHERE = {"edges": [{"from": "5.0.0", "to": "9.9.9"}], "risks": []}


@pytest.mark.parametrize(
    ("body", "says"),
    [
        pytest.param(FLOOD, "the limit is 800000", id="a flood of edges"),
        pytest.param(
            json.dumps({"nodes": [{"version": "5.0.0"}], "conditionalEdges": [NOWHERE]}).encode(),
            "9.9.9",
            id="an edge to nowhere",
        ),
        pytest.param(b"<html>", "is not a graph", id="no graph"),
    ],
)
async def test_a_bad_answer_of_another_service_offers_nothing(tmp_path: Path, body: bytes, says: str) -> None:
    """The status has what the first service offered; the operator of another one does not offer that."""
    async with cluster(tmp_path) as (world, manager):
        async with running(manager()):
            before = await world.condition("RetrievedUpdates", "True")
        assert before.status.available_updates or before.status.conditional_updates

        async def bad(_request: web.Request) -> web.StreamResponse:
            return web.Response(body=body, content_type="application/json")

        async with scripted_api() as service:
            service.answers(bad)
            async with running(manager(update_service=service.url)):
                after = await world.condition("RetrievedUpdates", "False", "ResponseInvalid")
        shown = find(after.status.conditions, "RetrievedUpdates")
        assert shown is not None
        assert says in shown.message
        assert not after.status.available_updates
        assert not after.status.conditional_updates


async def test_an_update_with_unaccepted_risks_is_blocked(tmp_path: Path) -> None:
    """Without its mode the request is an update: risks that nobody accepted block it, and the preflight continues."""
    async with cluster(tmp_path) as (world, manager), running(manager()):
        await world.ask({"mode": "Preflight", "version": "5.2.0"})
        world.report(await world.started("5.2.0"), "PoolPaused")
        await world.condition("PreflightCompleted", "True")
        await world.ask({"version": "5.2.0", "image": TARGET})
        version = await world.condition("ReleaseAccepted", "False", "UnacceptedRisks")
        assert await world.deployment() is not None
        condition = find(version.status.conditions, "ReleaseAccepted")
        assert condition is not None and "[PoolPaused]" in condition.message
        assert "Accepting does not lift [ClusterVersionGiantHop,UpdatePathNotOffered]" in condition.message
        assert version.status.desired.version == "5.0.0"


async def test_a_fix_frees_a_held_back_update(tmp_path: Path) -> None:
    """No command is typed: the target sees the fix, the operator sees the report, the update is accepted, at once."""
    of_target = {"target_version": "5.0.3", "target_image": OFFERED}
    async with cluster(tmp_path) as (world, manager), running(manager()):
        await world.ask({"mode": "Preflight", "version": "5.0.3"})
        preflight_id = await world.started("5.0.3")
        world.report(preflight_id, "PoolPaused", **of_target)
        await world.condition("PreflightCompleted", "True", "RisksFound")
        await world.ask({"version": "5.0.3"})
        await world.condition("ReleaseAccepted", "False", "UnacceptedRisks")
        world.report(preflight_id, **of_target)
        version = await world.until(lambda v: v.status.desired.version == "5.0.3")
        assert await world.deployment() is None
        assert version.status.history[0].state == "Partial"
        assert "PoolPaused" not in {risk.name for risk in version.status.conditional_update_risks}


async def test_a_preflight_during_an_update_takes_nothing_back(tmp_path: Path) -> None:
    """Request, retarget and clear, over a restart of the operator; then the update is taken back by name."""
    async with cluster(tmp_path) as (world, manager):
        async with running(manager()):
            await world.ask({"version": "5.0.3"})
            await world.until(lambda v: v.status.desired.version == "5.0.3")
            await world.ask({"mode": "Preflight", "version": "5.2.0"})
            await world.condition("PreflightFailed", "True")
        async with running(manager()):
            await world.ask({"mode": "Preflight", "image": TARGET, "version": "5.2.0"})
            await world.started("5.2.0")
            await world.ask(None)
            version = await world.until(lambda v: find(v.status.conditions, "PreflightRunning") is None)
            assert version.status.desired.version == "5.0.3"
            assert [(e.version, e.state) for e in version.status.history] == [
                ("5.0.3", "Partial"),
                ("5.0.0", "Partial"),
            ]
            await world.ask({"version": "5.0.0", "image": OWN})
            version = await world.until(lambda v: v.status.desired.version == "5.0.0")
            accepted = find(version.status.conditions, "ReleaseAccepted")
            assert accepted is not None and 'version="5.0.0"' in accepted.message


async def test_a_cluster_version_that_is_made_again(tmp_path: Path) -> None:
    """It gets its history and conditions back, from what the cluster's operators say; its preflight goes."""
    async with cluster(tmp_path) as (world, manager), running(manager()):
        await _operator_at(world, "5.0.0")
        await world.ask({"mode": "Preflight", "version": "5.2.0"})
        await world.started("5.2.0")
        before = await world.version()
        await world.client.send(calls.delete(VERSION_RESOURCE, "version"))
        spec = {name: getattr(before.spec, name) for name in ("channel", "upstream")}
        kind = {"apiVersion": VERSION_RESOURCE.api_version, "kind": VERSION_RESOURCE.kind}
        again = {**kind, "metadata": {"name": "version"}, "spec": spec | {"clusterID": before.spec.cluster_id}}
        await world.until_created(VERSION_RESOURCE, again)
        await world.gone()
        await world.condition("RetrievedUpdates", "True")
        version = await world.condition("Available", "True")
        assert [(entry.version, entry.state) for entry in version.status.history] == [("5.0.0", "Completed")]
        shown = {condition.type: condition.message for condition in version.status.conditions}
        assert shown["Available"] == "Done applying 5.0.0"
        assert shown["Progressing"] == "Cluster version is 5.0.0"


async def _operator_at(world: Cluster, version: str) -> None:
    resource = resource_of(ClusterOperator)
    conditions = [
        {"type": type_, "status": status, "lastTransitionTime": "2026-11-21T00:00:00Z"}
        for type_, status in {"Available": "True", "Progressing": "False", "Degraded": "False"}.items()
    ]
    status = {"conditions": conditions, "versions": [{"name": "operator", "version": version}]}
    kind = {"apiVersion": resource.api_version, "kind": resource.kind}
    await world.until_created(resource, {**kind, "metadata": {"name": "etcd"}, "spec": {}, "status": status})
    await world.client.send(calls.merge_patch(resource, "etcd", {"status": status}, subresource="status"))


@pytest.mark.slow
async def test_an_honest_release_with_much_to_say_freezes_nothing(tmp_path: Path) -> None:
    """180 risks of 150 characters, and one message of a megabyte, are taken by the API server; so is what follows."""
    async with cluster(tmp_path) as (world, manager):
        async with running(manager()):
            await world.ask({"mode": "Preflight", "version": "5.2.0"})
            preflight_id = await world.started("5.2.0")
            world.report(preflight_id, *(f"Operator{index:03}{'x' * 140}" for index in range(180)))
            version = await world.condition("PreflightCompleted", "True", "RisksFound")
            (update,) = (u for u in version.status.conditional_updates if u.release.version == "5.2.0")
            assert len(update.risks) >= 180
            assert "\n\n... and " in update.conditions[0].message
            world.write(preflight_id, b'{"format": "%s"}' % (b"f" * 1_000_000))
            version = await world.condition("PreflightFailed", "True", "UnknownFormat")
            await world.ask(None)
            await world.gone()
            await world.until(lambda v: find(v.status.conditions, "PreflightFailed") is None)
        async with running(manager()):
            await world.ask({"mode": "Preflight", "version": "5.2.0"})
            await world.until(lambda v: find(v.status.conditions, "PreflightRunning") is not None)


async def test_a_status_that_an_older_server_refuses_is_told(tmp_path: Path) -> None:
    """A definition with a lower limit refuses risks; a condition names them, and the rest of the status is written."""
    async with cluster(tmp_path) as (world, manager):
        path = "/spec/versions/0/schema/openAPIV3Schema/properties/status/properties/conditionalUpdateRisks/maxItems"
        lower = [{"op": "replace", "path": path, "value": 3}]
        await world.client.send(calls.json_patch(CRDS, "clusterversions.config.openshift.io", lower))
        async with running(manager()) as operator:
            await world.ask({"mode": "Preflight", "version": "5.2.0"})
            preflight_id = await world.started("5.2.0")
            world.report(preflight_id, "A", "B", "C", "D")
            version = await world.condition("StatusWriteRefused", "True", "StatusInvalid")
            found = find(version.status.conditions, "StatusWriteRefused")
            assert found is not None
            assert "conditionalUpdateRisks" in found.message
            assert "must have at most 3 items" in found.message
            assert find(version.status.conditions, "PreflightCompleted") is not None
            text = generate_latest(operator.metrics.registry).decode()
            assert "cluster_version_status_refused_total 1.0" in text
            world.report(preflight_id, "A")
            await world.until(lambda v: find(v.status.conditions, "StatusWriteRefused") is None)


async def test_a_workload_that_the_api_server_does_not_take_says_why(tmp_path: Path) -> None:
    """A flag, a quota, a webhook: the words are in the condition, where a person looks for them."""
    place = PodSettings(namespace=NAMESPACE, node_name="node-1", quantities=Quantities(cpu_limit="lots"))
    async with cluster(tmp_path) as (world, manager), running(manager(pod_settings=place)):
        await world.ask({"mode": "Preflight", "version": "5.2.0"})
        version = await world.condition("PreflightFailed", "True", "FailedCreate")
        found = find(version.status.conditions, "PreflightFailed")
        assert found is not None
        assert f"Deployment {NAMESPACE}/cluster-version-operator-preflight" in found.message
        assert "lots" in found.message or "quantit" in found.message
        assert "it is tried again: change what refuses it" in found.message
        await world.ask(None)
        await world.until(lambda v: find(v.status.conditions, "PreflightFailed") is None)


async def test_a_record_that_the_api_server_does_not_take_freezes_nothing(tmp_path: Path) -> None:
    """Where its namespace is gone the operator starts nothing, and ClusterVersion says that and all else."""
    place = PodSettings(namespace="nowhere", node_name="node-1")
    async with cluster(tmp_path) as (world, manager), running(manager(pod_settings=place, leader_elect=False)):
        await world.ask({"mode": "Preflight", "version": "5.2.0"})
        version = await world.condition("PreflightFailed", "True", "FailedCreate")
        found = find(version.status.conditions, "PreflightFailed")
        assert found is not None
        assert "ConfigMap nowhere/preflight-history" in found.message
        assert version.status.observed_generation == version.metadata.generation
