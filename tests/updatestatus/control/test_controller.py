"""The controller on an API server: from a cluster's objects to the one object, through restarts, edits and refusals."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml
from aiohttp import ClientSession, web
from aiohttp.test_utils import TestServer
from msgspec.structs import replace
from tests.controlplane.rows import SERVERS
from tests.documents import documents
from tests.factories import node_json, obj
from tests.process.tls_world import certificate, define_api_servers
from tests.rotated_tokens import RotatedToken
from tests.updatestatus.control.world import (
    CRDS,
    DEADLINE_S,
    MC,
    NODES,
    PODS,
    SINCE,
    STATUSES,
    World,
    cluster_with_definitions,
    condition,
    node,
)

from kubekit.api.conditions import find, status_of
from kubekit.api.core_v1 import ServiceAccount
from kubekit.api.scheme import Resource, resource_of
from kubekit.api.workloads_v1 import PodDisruptionBudget
from kubekit.kube import calls, config
from kubekit.kube.client import Client
from kubekit.kube.clock import Clock, ManualClock
from kubekit.kube.config import ClusterConfig
from kubekit.kube.reviews import token_request
from kubesandbox.apiserver.server import ApiServer
from runup.api.update_v1alpha1 import NAME, HealthInsight, Insight, UpdateStatusStatus
from runup.process.leader_election import Election
from runup.updatestatus.control.controller import Timing
from runup.updatestatus.control.process import Options, Process
from runup.updatestatus.decide.freshness import NAMESPACE

CONFIG, MACHINES = "config.openshift.io", MC
NAMESPACES = Resource(group="", version="v1", kind="Namespace", plural="namespaces", namespaced=False)
MANIFESTS = Path(__file__).parents[3] / "deploy" / "update-status"
QUICK = Timing(quiet_s=0.02, interval_s=0.05, longest_s=30)


def resource(group: str, kind: str) -> Resource:
    """A cluster-scoped kind of OpenShift."""
    return Resource(group=group, version="v1", kind=kind, plural=f"{kind.lower()}s", namespaced=False)


def cluster_version() -> dict[str, Any]:
    """On the way from 5.0.0 to 5.1.0."""
    history = [
        {"state": "Partial", "startedTime": SINCE, "completionTime": None, "version": "5.1.0", "image": "b"},
        {"state": "Completed", "startedTime": "2026-10-01T06:00:00Z", "completionTime": "2026-10-01T07:00:00Z",
         "version": "5.0.0", "image": "a"},
    ]  # fmt: skip
    status = {
        "desired": {"version": "5.1.0", "image": "b"},
        "history": [{**entry, "verified": True} for entry in history],
        "observedGeneration": 1,
        "versionHash": "",
        "availableUpdates": None,
        "conditions": [condition("Progressing", "True"), condition("Failing", "False"), condition("Available", "True")],
    }
    spec = {"clusterID": "0f9f81c4-74a3-4fd2-9d2b-bd84a4f2a2ad"}
    return obj(f"{CONFIG}/v1", "ClusterVersion", "version", spec=spec, status=status)


def operator(name: str, version: str) -> dict[str, Any]:
    """A healthy operator at a version."""
    moving = "False" if version == "5.1.0" else "True"
    conditions = [condition("Available", "True"), condition("Degraded", "False"), condition("Progressing", moving)]
    status = {"versions": [{"name": "operator", "version": version}], "conditions": conditions}
    annotations = {"include.release.openshift.io/self-managed-high-availability": "true"}
    return obj(f"{CONFIG}/v1", "ClusterOperator", name, metadata={"annotations": annotations}, spec={}, status=status)


async def populate(cluster: World) -> None:
    """A small cluster in the middle of an update."""
    for namespace in (NAMESPACE, "openshift-machine-config-operator"):
        await cluster.create(NAMESPACES, obj("v1", "Namespace", namespace))
    await cluster.create(resource(CONFIG, "ClusterVersion"), cluster_version())
    for name, version in (("etcd", "5.1.0"), ("network", "5.0.0")):
        await cluster.create(resource(CONFIG, "ClusterOperator"), operator(name, version))
    for role in ("master", "worker"):
        selector = {"matchLabels": {f"node-role.kubernetes.io/{role}": ""}}
        spec = {"nodeSelector": selector, "paused": False, "configuration": {"name": f"rendered-{role}-new"}}
        await cluster.create(
            resource(MACHINES, "MachineConfigPool"), obj(f"{MACHINES}/v1", "MachineConfigPool", role, spec=spec)
        )
        for age, version in (("old", "5.0.0"), ("new", "5.1.0")):
            annotations = {f"{MC}/release-image-version": version}
            body = obj(
                f"{MACHINES}/v1", "MachineConfig", f"rendered-{role}-{age}", metadata={"annotations": annotations}
            )
            await cluster.create(resource(MACHINES, "MachineConfig"), {**body, "spec": {"config": {}}})
        for number in range(2):
            await cluster.create(NODES, node(f"{role}-{number}", role))


@pytest.fixture(params=SERVERS)
async def cluster(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncGenerator[World, None]:
    """A small cluster in the middle of an update, on each server."""
    async with cluster_with_definitions(tmp_path, request.param) as made:
        await populate(made)
        yield made


@asynccontextmanager
async def running(cluster: ClusterConfig, clock: Clock | None = None, **options: Any) -> AsyncGenerator[Process, None]:
    """The controller at work; ended in order."""
    process = Process(cluster, Options(**{"leader_elect": False, "timing": QUICK, **options}), clock=clock)
    task = asyncio.create_task(process.run())
    try:
        yield process
    finally:
        process.stop()
        await task


def insights(status: UpdateStatusStatus) -> Iterator[Insight]:
    """All of them."""
    parts = [status.control_plane, *status.worker_pools] if status.control_plane else [*status.worker_pools]
    for part in parts:
        for informer in part.informers:
            yield from informer.insights


def phase(status: UpdateStatusStatus, name: str) -> str:
    """The reason of a node's condition Updating."""
    found = next((each.node for each in insights(status) if each.node and each.node.name == name), None)
    updating = find(found.conditions, "Updating") if found else None
    return updating.reason if updating else ""


async def writes(process: Process, at_least: int = 1) -> float:
    """How often it wrote; the object is there a moment before it is counted."""
    count = 0.0
    async with asyncio.timeout(DEADLINE_S):
        while count < at_least:
            await asyncio.sleep(0.01)
            count = process.metrics.registry.get_sample_value("update_status_writes_total") or 0.0
    return count


@pytest.mark.slow
async def test_the_cluster_is_told_and_followed(cluster: World) -> None:
    """Operators, pools, nodes are there; a node that begins to drain is seen draining."""
    async with running(cluster.config) as process:
        assert process.metrics.registry.get_sample_value("update_status_leading") == 0
        first = await cluster.until(lambda status: phase(status, "worker-0") == "Pending")
        assert process.metrics.registry.get_sample_value("update_status_leading") == 1
        # Its times are fixed, so that nothing has moved for long.
        kinds = [insight.type for insight in insights(first) if insight.type != "Health"]
        assert {kind: kinds.count(kind) for kind in set(kinds)} == {
            "ClusterVersion": 1,
            "ClusterOperator": 2,
            "MachineConfigPool": 2,
            "Node": 4,
        }
        assert first.control_plane
        assert status_of(first.control_plane.conditions, "Updating") == "True"
        assert status_of(first.conditions, "Available") == "True"
        await cluster.annotate(
            "worker-0",
            desiredConfig="rendered-worker-new",
            state="Working",
            desiredDrain="drain-rendered-worker-new",
            lastAppliedDrain="uncordon-rendered-worker-old",
        )
        await cluster.until(lambda status: phase(status, "worker-0") == "Draining")


@pytest.mark.slow
async def test_times_stand_through_a_restart(cluster: World) -> None:
    """Nothing of what was found begins again; an unchanged cluster is not written again."""
    async with running(cluster.config):
        before = await cluster.until(lambda status: phase(status, "worker-0") == "Pending")
    stored = await cluster.client.send(calls.get_raw(STATUSES, NAME))
    async with running(cluster.config) as process:
        await cluster.annotate("worker-0", desiredConfig="rendered-worker-new", state="Working")
        after = await cluster.until(lambda status: phase(status, "worker-0") == "Updating")
        assert await writes(process) == 1
    same = {insight.uid: insight for insight in insights(before)}
    changed = {insight.uid for insight in insights(after) if same.get(insight.uid) != insight}
    assert changed == {"node-worker-0", "mcp-worker"}, stored


@pytest.mark.slow
async def test_heartbeats_lead_to_no_write(cluster: World) -> None:
    """What insights are not made of may change as often as it likes; the next change that counts is one write."""
    async with running(cluster.config) as process:
        await cluster.until(lambda status: phase(status, "worker-1") == "Pending")
        count = int(await writes(process))
        for number in range(10):
            patch = {"metadata": {"annotations": {"k8s.ovn.org/x": str(number)}}}
            await cluster.client.send(calls.merge_patch(NODES, "worker-0", patch))
        await cluster.annotate("worker-1", state="Degraded", reason="disk")
        await cluster.until(
            lambda status: any(each.health and "worker-1" in each.health.impact.summary for each in insights(status))
        )
        assert await writes(process, count + 1) == count + 1


async def test_edits_and_deletion_are_put_right(cluster: World) -> None:
    """The object is the controller's: what somebody else writes into it does not stand."""
    async with running(cluster.config):
        before = await cluster.until(lambda status: phase(status, "worker-0") == "Pending")
        patch = {"status": {"workerPools": []}}
        await cluster.client.send(calls.merge_patch(STATUSES, NAME, patch, subresource="status"))
        await cluster.until(lambda status: phase(status, "worker-0") == "Pending")
        await cluster.client.send(calls.delete(STATUSES, NAME))
        again = await cluster.until(lambda status: phase(status, "worker-0") == "Pending")
        assert find(again.conditions, "Available") == find(before.conditions, "Available")


@pytest.mark.slow
async def test_the_rights_are_enough_and_none_is_idle(tmp_path: Path) -> None:
    """With the account of the manifests nothing is refused, and each verb of its roles is asked for."""
    async with cluster_with_definitions(tmp_path) as cluster:
        await populate(cluster)
        granted = await _grant(cluster)
        files, trusting = certificate(tmp_path)
        await define_api_servers(cluster.client)
        await cluster.annotate("worker-0", desiredDrain="drain-x", lastAppliedDrain="uncordon-x")
        async with running(_account(cluster), leader_elect=True, listen="127.0.0.1:0", **files) as process:
            found = await cluster.until(lambda status: phase(status, "worker-0") == "Pending")
            # Whom the API server knows, and lets read nothing.
            await cluster.create(resource_of(ServiceAccount), _account_of("default"))
            account = await cluster.client.send(token_request("default", "default"))
            async with ClientSession(headers={"Authorization": f"Bearer {account.token}"}) as session:
                assert (await session.get(f"{process.endpoint.address}/metrics", ssl=trusting)).status == 403
            assert status_of(found.conditions, "Available") == "True", found.conditions
            # What shows whether components can act is read last, and only while an update is under way.
            log = ""
            async with asyncio.timeout(DEADLINE_S):
                while "machineconfignodes" not in log:
                    await asyncio.sleep(0.1)
                    log = (tmp_path / "apiserver" / "audit.log").read_text()
        events = [json.loads(line) for line in (tmp_path / "apiserver" / "audit.log").read_text().splitlines()]
    ours = [event for event in events if "update-status-controller" in str(event.get("impersonatedUser", ""))]
    refused = [event["requestURI"] for event in ours if event["responseStatus"]["code"] == 403]
    assert refused == []
    # Lists of kinds, which show whether there are hosted clusters, are of no object.
    asked = {_right(event) for event in ours if "objectRef" in event}
    idle = granted - asked
    assert idle == set()


def _right(event: dict[str, Any]) -> tuple[str, str, str]:
    ref = event["objectRef"]
    name = f"{ref['resource']}/{ref['subresource']}" if ref.get("subresource") else ref["resource"]
    return ref.get("apiGroup", ""), name, event["verb"]


def _account(cluster: World) -> ClusterConfig:
    """The account of the manifests."""
    loaded = config.load(str(cluster.kubeconfig))
    return replace(
        loaded, headers=(("Impersonate-User", f"system:serviceaccount:{NAMESPACE}:update-status-controller"),)
    )


@pytest.mark.slow
async def test_keeps_the_status_of_a_cluster_without_a_cluster_version(tmp_path: Path) -> None:
    """API servers and groups of nodes are reported and followed, and the object fits its definition."""
    async with ApiServer(tmp_path / "apiserver") as made, Client(config.load(str(made.kubeconfig))) as client:
        for definition in documents(MANIFESTS / "0000_00_update-status-controller_01_updatestatuses.crd.yaml"):
            await client.send(calls.create(CRDS, definition))
        cluster = World(client, config.load(str(made.kubeconfig)), made.kubeconfig)
        label = {"eks.amazonaws.com/nodegroup": "Web_1"}
        version = (await client.send(calls.server_version())).partition("+")[0]
        for name, kubelet in (("n-1", version), ("n-2", "v1.33.5")):
            await cluster.create(NODES, node_json(name, role="", kubelet=kubelet, labels=label))
        async with running(cluster.config):
            status = await cluster.until(lambda status: len(status.worker_pools) == 1)
            assert {insight.type for insight in insights(status)} >= {"KubernetesVersion", "MachineConfigPool", "Node"}
            assert status.worker_pools[0].name == "web-1"
            assert phase(status, "n-2") == "Pending"
            patch = {"spec": {"unschedulable": True}}
            await client.send(calls.merge_patch(NODES, "n-2", patch))
            await cluster.until(lambda status: phase(status, "n-2") == "Draining")
            assert status.control_plane is not None
            assert status_of(status.control_plane.conditions, "Updating") == "True"


async def _grant(cluster: World, without: str = "") -> set[tuple[str, str, str]]:
    """Create the manifests' roles; every right that these give."""
    rbac = "rbac.authorization.k8s.io"
    plurals = {"ClusterRole": "clusterroles", "ClusterRoleBinding": "clusterrolebindings", "Role": "roles"}
    plurals |= {"RoleBinding": "rolebindings"}
    granted = set()
    for body in yaml.safe_load_all((MANIFESTS / "0000_00_update-status-controller_03_roles.yaml").read_text()):
        kind = body["kind"]
        namespaced = not kind.startswith("Cluster")
        for rule in body.get("rules", ()):
            rule["resources"] = [name for name in rule["resources"] if name != without]
            granted |= {(g, r, v) for g in rule["apiGroups"] for r in rule["resources"] for v in rule["verbs"]}
        await cluster.create(
            Resource(group=rbac, version="v1", kind=kind, plural=plurals[kind], namespaced=namespaced), body
        )
    return granted


async def test_a_kind_that_may_not_be_read_is_said(cluster: World) -> None:
    """The rest is reported all the same, and the controller does not call itself available."""
    await _grant(cluster, without="machineconfigpools")
    async with running(_account(cluster)):
        status = await cluster.until(lambda status: status_of(status.conditions, "Available") == "False")
    available = find(status.conditions, "Available")
    assert available
    assert available.reason == "CannotWatch"
    assert 'not allowed to list machineconfigpools in API group "machineconfiguration' in available.message
    assert {insight.type for insight in insights(status)} >= {"ClusterVersion", "ClusterOperator", "Health"}


async def test_one_node_that_cannot_be_read_is_named_and_the_others_are_told(cluster: World) -> None:
    """It is no reason to know nothing of a pool; what is wrong with it is said."""
    bad = {"status": {"conditions": [{"type": "Ready", "status": "true"}]}}
    await cluster.client.send(calls.merge_patch(NODES, "worker-0", bad, subresource="status"))
    async with running(cluster.config):
        status = await cluster.until(lambda status: any("worker-0" in text for text in _summaries(status)))
    assert "Node worker-0 could not be read, so part of the status is unknown" in _summaries(status)
    assert {insight.node.name for insight in insights(status) if insight.node} == {"master-0", "master-1", "worker-1"}


def _summaries(status: UpdateStatusStatus) -> list[str]:
    return [insight.health.impact.summary for insight in insights(status) if insight.health]


async def test_a_component_that_crashes_is_reported_during_an_update(cluster: World) -> None:
    """Its pods are read while an update is under way, and the insight ends with the trouble."""
    namespace = "openshift-machine-config-operator"
    await cluster.create(resource_of(ServiceAccount), _account_of(namespace))
    container = {"name": "c", "image": "i", "imageID": "", "ready": False, "restartCount": 9}
    crashing = {**container, "state": {"waiting": {"reason": "CrashLoopBackOff"}}}
    body = {"spec": {"containers": [{"name": "c", "image": "i"}]}}
    body["status"] = {"phase": "Running", "containerStatuses": [crashing]}
    await cluster.create(PODS, obj("v1", "Pod", "machine-config-controller-1", namespace, **body))

    def reports(status: UpdateStatusStatus) -> bool:
        return "ComponentCannotAct" in {insight.health.check for insight in insights(status) if insight.health}

    clock = ManualClock(datetime(2026, 11, 21, 7, 0, tzinfo=UTC))
    async with running(cluster.config, clock):
        await _passing(cluster, clock, reports)
        healthy = {"status": {"containerStatuses": [{**crashing, "state": {}, "restartCount": 0}]}}
        pod = calls.merge_patch(PODS, "machine-config-controller-1", healthy, namespace, subresource="status")
        await cluster.client.send(pod)
        await _passing(cluster, clock, lambda status: not reports(status))


@pytest.mark.slow
async def test_a_drain_that_a_budget_holds_up_names_node_pod_and_budget(cluster: World) -> None:
    """Its pods are asked for, with time the insight grows worse, and when the budget allows the eviction it ends."""
    await cluster.create(NAMESPACES, obj("v1", "Namespace", "shop"))
    await cluster.create(resource_of(ServiceAccount), _account_of("shop"))
    spec = {"nodeName": "worker-0", "containers": [{"name": "c", "image": "i"}]}
    # A pod that has not started may be evicted whatever its budget says.
    ready = {"type": "Ready", "status": "True"}
    running_pod = {"spec": spec, "status": {"phase": "Running", "conditions": [ready]}}
    await cluster.create(PODS, obj("v1", "Pod", "db-0", "shop", metadata={"labels": {"app": "db"}}, **running_pod))
    budget = obj("policy/v1", "PodDisruptionBudget", "db", "shop")
    budget |= {"spec": {"maxUnavailable": 0, "selector": {"matchLabels": {"app": "db"}}}}
    counts = {"disruptionsAllowed": 0, "currentHealthy": 1, "desiredHealthy": 1, "expectedPods": 1}
    await cluster.create(resource_of(PodDisruptionBudget), {**budget, "status": {"observedGeneration": 1, **counts}})
    clock = ManualClock(datetime(2026, 11, 21, 7, 0, tzinfo=UTC))
    async with running(cluster.config, clock):
        await _passing(cluster, clock, lambda status: phase(status, "worker-0") == "Pending")
        drain = {"desiredDrain": "drain-new", "lastAppliedDrain": "uncordon-old"}
        await cluster.annotate("worker-0", desiredConfig="rendered-worker-new", state="Working", **drain)
        held = await _passing(cluster, clock, lambda status: _held_up(status) is not None)
        found = _held_up(held)
        assert found
        names = [(ref.resource, ref.namespace, ref.name) for ref in found.scope.resources]
        assert names == [
            ("nodes", "", "worker-0"),
            ("pods", "shop", "db-0"),
            ("poddisruptionbudgets", "shop", "db"),
        ]
        assert found.impact.level == "Warning"
        begun = found.started_at
        worse = await _passing(cluster, clock, lambda status: _level(status) == "Error")
        again = _held_up(worse)
        assert again
        assert again.started_at == begun
        patch = {"status": {"disruptionsAllowed": 1}}
        call = calls.merge_patch(resource_of(PodDisruptionBudget), "db", patch, "shop", subresource="status")
        await cluster.client.send(call)
        await _passing(cluster, clock, lambda status: _held_up(status) is None)


def _account_of(namespace: str) -> dict[str, Any]:
    return obj("v1", "ServiceAccount", "default", namespace)


def _held_up(status: UpdateStatusStatus) -> HealthInsight | None:
    return next((each.health for each in insights(status) if each.health and each.health.check == "DrainBlocked"), None)


def _level(status: UpdateStatusStatus) -> str:
    found = _held_up(status)
    return found.impact.level if found else ""


async def _passing(
    cluster: World, clock: ManualClock, holds: Callable[[UpdateStatusStatus], bool]
) -> UpdateStatusStatus:
    """The status as soon as `holds` does, while the controller's clock runs, ten seconds at a time."""
    async with asyncio.timeout(DEADLINE_S):
        while True:
            await clock.advance(10)
            status = await cluster.status()
            if status is not None and holds(status):
                return status


async def test_alerts_become_insights_or_a_reason_why_not(cluster: World) -> None:
    """Those that fire are reported with their runbook; a refusal is said, and not taken for silence."""
    runbook = "https://docs.example.com/runbooks/pdb"
    alert = {
        "labels": {"alertname": "PodDisruptionBudgetAtLimit", "severity": "warning", "namespace": "shop"},
        "annotations": {"summary": "The budget is at its limit.", "description": "x", "runbook_url": runbook},
        "state": "firing",
        "activeAt": "2026-11-21T06:30:00.5Z",
    }
    answers = {"status": "success", "data": {"alerts": [alert]}}
    refusing = asyncio.Event()

    async def answer(_request: web.Request) -> web.Response:
        return web.Response(status=403) if refusing.is_set() else web.json_response(answers)

    app = web.Application()
    app.router.add_get("/api/v1/alerts", answer)
    async with TestServer(app) as prometheus:
        clock = ManualClock(datetime(2026, 11, 21, 7, 0, tzinfo=UTC))
        url = str(prometheus.make_url("/"))
        async with running(cluster.config, clock, alerts_url=url):
            shown = await _passing(cluster, clock, lambda s: status_of(s.conditions, "AlertsReachable") == "True")
            found = [each.health for each in insights(shown) if each.health and each.health.check == "AlertFiring"]
            assert [each.impact.summary for each in found] == ["Alert is firing: The budget is at its limit."]
            assert found[0].remediation.reference == runbook
            refusing.set()
            refused = await _passing(cluster, clock, lambda s: status_of(s.conditions, "AlertsReachable") == "False")
    reachable = find(refused.conditions, "AlertsReachable")
    assert reachable
    assert "unexpected HTTP status: 403" in reachable.message
    assert not [each for each in insights(refused) if each.health and "Alert" in each.health.impact.summary]


@pytest.mark.slow
async def test_of_two_controllers_one_writes(cluster: World) -> None:
    """The other follows the cluster too, and continues where the first stopped."""

    def degraded(status: UpdateStatusStatus) -> bool:
        return "NodeDegraded" in {each.health.check for each in insights(status) if each.health}

    election = Election(3, 2, 0.1)
    async with running(cluster.config, leader_elect=True, election=election) as first:
        await cluster.until(lambda status: phase(status, "worker-0") == "Pending")
        async with running(cluster.config, leader_elect=True, election=election) as other:
            await cluster.annotate("worker-0", state="Degraded", reason="disk")
            await cluster.until(lambda status: degraded(status))
            assert await writes(first) >= 2
            assert await writes(other, 0) == 0
            first.stop()
            await cluster.annotate("worker-0", state="Done")
            await cluster.until(lambda status: not degraded(status))
            assert await writes(other) == 1


@pytest.mark.slow
async def test_a_token_that_is_renewed_and_revoked(cluster: World, tmp_path: Path) -> None:
    """The controller keeps its Lease and writes on with the token that is in its file then."""
    token = await asyncio.to_thread(RotatedToken, cluster.kubeconfig, tmp_path / "pod")
    election = Election(100, 80, 0.3)
    async with running(token.in_cluster, leader_elect=True, election=election) as process:
        await cluster.until(lambda status: phase(status, "worker-0") == "Pending")
        await asyncio.to_thread(token.rotate)
        count = int(await writes(process))
        await cluster.annotate("worker-0", state="Degraded", reason="disk")
        await cluster.until(lambda status: any(each.health for each in insights(status)))
        assert await writes(process, count + 1) > count
        assert process.metrics.registry.get_sample_value("update_status_leading") == 1


async def test_a_fixed_time_is_the_time_of_every_insight(cluster: World) -> None:
    """A cluster out of a dump is reported as of its own time."""
    then = datetime(2026, 11, 21, 6, 30, tzinfo=UTC)
    async with running(cluster.config, fixed_now=then):
        status = await cluster.until(lambda status: phase(status, "worker-0") == "Pending")
    assert {insight.acquired_at for insight in insights(status)} == {then}


@pytest.mark.slow
async def test_the_definition_may_come_after_the_controller(tmp_path: Path) -> None:
    """A release brings both in some order; nothing is written before, and nothing has to be restarted after."""
    async with cluster_with_definitions(tmp_path) as cluster:
        await populate(cluster)
        definitions = Resource(
            group="apiextensions.k8s.io",
            version="v1",
            kind="CustomResourceDefinition",
            plural="customresourcedefinitions",
            namespaced=False,
        )
        name = f"{STATUSES.plural}.{STATUSES.group}"
        definition = await cluster.client.send(calls.get_raw(definitions, name))
        await cluster.client.send(calls.delete(definitions, name))
        async with running(cluster.config) as process:
            async with asyncio.timeout(DEADLINE_S):
                for cache in process.caches.all():
                    await cache.until_synced()
            assert await writes(process, 0) == 0
            metadata = {"name": name, "annotations": definition["metadata"]["annotations"]}
            await cluster.create(definitions, {"metadata": metadata, "spec": definition["spec"]})
            await cluster.until(lambda status: phase(status, "worker-0") == "Pending")
