"""The status of hosted clusters on an API server: from the objects of a management cluster to one object for each."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from structlog.testing import capture_logs
from tests.documents import documents
from tests.factories import obj
from tests.updatestatus.control.world import CRDS, DEADLINE_S, World

from kubekit.api.conditions import find, status_of
from kubekit.api.scheme import Resource, resource_of
from kubekit.kube import calls, config
from kubekit.kube.api_errors import NotFound
from kubekit.kube.client import Client
from kubekit.kube.client_sync import SyncClient
from kubekit.kube.clock import ManualClock, SystemClock
from kubekit.kube.config import ClusterConfig
from kubekit.lang import yaml
from kubesandbox import cluster as assembly
from kubesandbox.apiserver.server import ApiServer
from runup.api.config_v1 import ClusterOperator
from runup.api.hypershift_v1beta1 import HostedCluster, HostedNodePool
from runup.api.rollouts_v1 import ClusterMachine
from runup.api.update_v1alpha1 import HostedClusterUpdateStatus, UpdateStatusStatus
from runup.cli.updatestatus.render.status_text import details, render
from runup.cli.updatestatus.watch_command import poll_status
from runup.dump.documents import identity
from runup.sandbox.scenario import folder
from runup.sandbox.setup.scenario_objects import missing_definitions
from runup.updatestatus.control import hosted_objects, live_status
from runup.updatestatus.control.hosted_controller import LOOK_AGAIN_S, HostedStatuses
from runup.updatestatus.control.process import Options, Process
from runup.updatestatus.control.status_reading import StatusReading

JSON = dict[str, Any]
MANIFESTS = Path(__file__).parents[3] / "deploy" / "update-status"
STEM = "0000_00_update-status-controller_"
CLUSTERS, POOLS = resource_of(HostedCluster), resource_of(HostedNodePool)
MACHINES = replace(resource_of(ClusterMachine), version="v1beta1")
STATUSES = resource_of(HostedClusterUpdateStatus)
# After the objects, which the server dates by the machine's clock.
NOON = datetime(2035, 10, 2, 12, tzinfo=UTC)
SINCE = "2035-10-02T12:00:00Z"
NAMESPACE = "clusters"
OURS = "system:serviceaccount:openshift-update-status-controller:update-status-controller"


class Management:
    """A management cluster, and its controller with a clock that stops."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.clock = ManualClock(NOON)
        self.hosted = HostedStatuses(world.client, self.clock, self.clock.now)

    async def look(self, minutes: float = 1) -> bool:
        """Lets time pass, and refreshes once."""
        self.clock.jump(minutes * 60)
        return await self.hosted.refresh()

    async def object_of(self, name: str) -> HostedClusterUpdateStatus | None:
        """Returns the object of a hosted cluster."""
        try:
            return await self.world.client.send(calls.get(HostedClusterUpdateStatus, name, NAMESPACE))
        except NotFound:
            return None

    async def status_of(self, name: str) -> UpdateStatusStatus:
        """Returns the status of a hosted cluster."""
        found = await self.object_of(name)
        assert found is not None
        assert found.status is not None
        return found.status

    async def until(self, holds: Callable[[], Awaitable[bool]]) -> None:
        """Waits until `holds`."""
        async with asyncio.timeout(DEADLINE_S):
            while True:
                if await holds():
                    return
                await asyncio.sleep(0.05)

    async def patch(self, resource: Any, name: str, patch: JSON, namespace: str = NAMESPACE) -> None:
        """Changes an object."""
        await self.world.client.send(calls.merge_patch(resource, name, patch, namespace))


async def _serve(client: Client, scenario: Iterable[JSON], *, definitions: bool = True) -> None:
    files = [f"{STEM}01_hostedclusterupdatestatuses.crd.yaml"] if definitions else []
    given = [each for file in files for each in documents(MANIFESTS / file)]
    for each in (*given, *missing_definitions(scenario, given, frozenset())):
        await client.send(calls.create(CRDS, each))


def _objects() -> list[JSON]:
    """Returns the objects of the scenario, without those that every scenario has."""
    scenario = folder.load(folder.find("hosted-clusters"))
    groups = (CLUSTERS.group, MACHINES.group)
    chosen = [each for each in scenario.objects if identity(each)[0] in groups]
    names = sorted({each["metadata"]["namespace"] for each in chosen})
    return [*(obj("v1", "Namespace", name) for name in names), *chosen]


def _resource(document: JSON) -> Any:
    plurals = {"HostedCluster": "hostedclusters", "NodePool": "nodepools", "Machine": "machines"}
    plurals |= {"ControlPlaneComponent": "controlplanecomponents", "Namespace": "namespaces"}
    group, _, version = document["apiVersion"].rpartition("/")
    kind = document["kind"]
    return replace(
        CLUSTERS, group=group, version=version, kind=kind, plural=plurals[kind], namespaced=kind != "Namespace"
    )


@asynccontextmanager
async def management(tmp_path: Path, *, definitions: bool = True) -> AsyncGenerator[Management, None]:
    """The scenario's two hosted clusters, `prod` and `test`."""
    async with ApiServer(tmp_path / "apiserver") as made, Client(config.load(str(made.kubeconfig))) as client:
        objects = _objects()
        await _serve(client, objects, definitions=definitions)
        world = World(client, config.load(str(made.kubeconfig)), made.kubeconfig)
        for each in objects:
            await world.create(_resource(each), each)
        yield Management(world)


def pool_of(status: UpdateStatusStatus, name: str) -> dict[str, int]:
    """Returns the numbers of machines of a pool by state."""
    [layer] = [pool for pool in status.worker_pools if pool.name == name]
    insights = [insight.node_pool for informer in layer.informers for insight in informer.insights]
    return {each.type: each.count for pool in insights if pool is not None for each in pool.summaries}


def updating(status: UpdateStatusStatus) -> str:
    """Returns whether the hosted cluster as a whole is updating."""
    assert status.control_plane is not None
    return status_of(status.control_plane.conditions, "Updating")


def release(version: str, state: str) -> JSON:
    """Returns the spec and status of a HostedCluster whose newest release is in this state."""
    image = f"quay.io/openshift-release-dev/ocp-release:{version}-x86_64"
    entry = {"version": version, "image": image, "state": state, "startedTime": SINCE, "verified": False}
    if state == "Completed":
        entry["completionTime"] = "2035-10-02T12:30:00Z"
    desired = {"version": version, "image": image}
    status = {"version": {"desired": desired, "history": [entry], "observedGeneration": 3, "availableUpdates": None}}
    return {"spec": {"release": {"image": image}}, "status": status}


async def test_each_hosted_cluster_has_an_object_that_it_owns(tmp_path: Path) -> None:
    """The object has the name of the HostedCluster, and is written again only after a change."""
    async with management(tmp_path) as cluster:
        assert await cluster.look()
        for name, state in (("prod", "True"), ("test", "False")):
            found = await cluster.object_of(name)
            assert found is not None
            owner = await cluster.world.client.send(calls.get(HostedCluster, name, NAMESPACE))
            assert [(each.kind, each.uid) for each in found.metadata.owner_references] == [
                ("HostedCluster", owner.metadata.uid)
            ]
            assert updating(await cluster.status_of(name)) == state
        before = await cluster.object_of("prod")
        await cluster.look()
        assert await cluster.object_of("prod") == before
        again = HostedStatuses(cluster.world.client, cluster.clock, cluster.clock.now)
        await again.refresh()
        assert await cluster.object_of("prod") == before, "another leader has nothing to write"


@pytest.mark.slow
async def test_follows_an_update_of_a_hosted_cluster(tmp_path: Path) -> None:
    """The update begins in the control plane, continues in both kinds of pools, and ends."""
    async with management(tmp_path) as cluster:
        await cluster.look()
        begun = release("4.19.9", "Partial")
        await cluster.patch(CLUSTERS, "test", begun)
        await cluster.look()
        assert updating(await cluster.status_of("test")) == "True"
        await cluster.patch(CLUSTERS, "test", release("4.19.9", "Completed"))
        message = "Updating version in progress. Target version: 4.19.9. Total Nodes: 2. Upgraded: 1"
        moving = {"type": "UpdatingVersion", "status": "True", "message": message, "lastTransitionTime": SINCE}
        spec = {"release": begun["spec"]["release"]}
        await cluster.patch(POOLS, "test-a", {"spec": spec, "status": {"conditions": [moving]}})
        done = {"metadata": {"annotations": {"hypershift.openshift.io/release-version": "4.19.9"}}}
        await cluster.patch(MACHINES, "test-a-1", done, "clusters-test")
        await cluster.look()
        status = await cluster.status_of("test")
        assert updating(status) == "True"
        assert (pool_of(status, "test-a")["Outdated"], pool_of(status, "test-a")["Total"]) == (1, 2)
        await cluster.patch(MACHINES, "test-a-2", done, "clusters-test")
        await cluster.patch(POOLS, "test-a", {"status": {"conditions": [{**moving, "status": "False"}]}})
        await cluster.look()
        status = await cluster.status_of("test")
        assert (updating(status), pool_of(status, "test-a")["Outdated"]) == ("False", 0)


async def test_follows_a_pool_that_replaces_its_machines(tmp_path: Path) -> None:
    """A machine that becomes a node counts as done, and the one that it replaces disappears."""
    async with management(tmp_path) as cluster:
        await cluster.look()
        assert pool_of(await cluster.status_of("prod"), "prod-a")["Total"] == 4
        node = {"status": {"phase": "Running", "nodeRef": {"name": "n"}, "conditions": []}}
        await cluster.patch(MACHINES, "prod-a-new-1", node, "clusters-prod")
        await cluster.world.client.send(calls.delete(MACHINES, "prod-a-old-1", "clusters-prod"))
        await cluster.look()
        counts = pool_of(await cluster.status_of("prod"), "prod-a")
        assert (counts["Total"], counts["Outdated"], counts["Progressing"]) == (3, 2, 0)


async def test_what_has_not_moved_for_long_is_stalled_in_the_object(tmp_path: Path) -> None:
    """Time alone changes the object."""
    async with management(tmp_path) as cluster:
        await cluster.look()
        begun = release("4.19.9", "Partial")
        await cluster.patch(CLUSTERS, "test", begun)
        await cluster.look()
        cluster.clock.jump(timedelta(hours=6).total_seconds())
        await cluster.look()
        status = await cluster.status_of("test")
        assert status.control_plane is not None
        checks = {
            insight.health.impact.type
            for informer in status.control_plane.informers
            for insight in informer.insights
            if insight.health is not None
        }
        assert "Update Stalled" in checks


@pytest.mark.slow
async def test_hosted_clusters_come_and_go(tmp_path: Path) -> None:
    """A new one gets an object; the object of a deleted one is collected, and another cluster of its name is new."""
    async with management(tmp_path) as cluster, AsyncExitStack() as stack:
        await cluster.look()
        tasks = assembly.start_controllers(stack, cluster.world.client, assembly.Watched(), SystemClock())
        document = obj(CLUSTERS.api_version, CLUSTERS.kind, "new", NAMESPACE, **release("4.19.5", "Completed"))
        await cluster.world.create(CLUSTERS, document)
        await cluster.look()
        assert updating(await cluster.status_of("new")) == "False"
        await cluster.world.client.send(calls.delete(CLUSTERS, "new", NAMESPACE))
        await cluster.look()
        await cluster.until(lambda: _is_absent(cluster, "new"))
        await cluster.look()
        assert await cluster.object_of("new") is None, "it does not return"
        assert await cluster.object_of("test") is not None
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _as_controller(cluster: Management) -> ClusterConfig:
    return replace(cluster.world.config, headers=(("Impersonate-User", OURS),))


@pytest.mark.parametrize("lacking", ["HostedCluster", "HostedClusterUpdateStatus"])
async def test_a_cluster_without_the_kinds_takes_no_rights(tmp_path: Path, lacking: str) -> None:
    """An account without any right is refused nothing, because only the lists of kinds are read."""
    async with ApiServer(tmp_path / "apiserver") as made:
        loaded = config.load(str(made.kubeconfig))
        async with Client(loaded) as admin, Client(replace(loaded, headers=(("Impersonate-User", OURS),))) as client:
            if lacking != "HostedCluster":
                await _serve(admin, _objects(), definitions=False)
            clock = ManualClock(NOON)
            with capture_logs() as logs:
                assert not await HostedStatuses(client, clock, clock.now).refresh()
            assert logs == []


async def test_the_rights_for_hosted_clusters_are_enough_and_none_is_idle(tmp_path: Path) -> None:
    """With the roles of the manifests nothing is refused, and each right for hosted clusters is used."""
    async with management(tmp_path) as cluster:
        granted = set()
        for number, file in (("03", "roles"), ("06", "hosted-clusters")):
            bodies = list(documents(MANIFESTS / f"{STEM}{number}_{file}.yaml"))
            await _grant(cluster, [each for each in bodies if each["kind"].startswith("Cluster")])
            for body in bodies:
                if number == "06":
                    granted |= {
                        (r, v) for rule in body.get("rules", ()) for r in rule["resources"] for v in rule["verbs"]
                    }
        async with Client(_as_controller(cluster)) as client:
            await HostedStatuses(client, cluster.clock, cluster.clock.now).refresh()
        lines = (tmp_path / "apiserver" / "audit.log").read_text().splitlines()
    ours = [event for event in map(json.loads, lines) if "update-status" in str(event.get("impersonatedUser", ""))]
    assert [event["requestURI"] for event in ours if event["responseStatus"]["code"] == 403] == []
    refs = [(event["objectRef"], event["verb"]) for event in ours if event.get("objectRef")]
    asked = {("/".join(filter(None, (ref["resource"], ref.get("subresource")))), verb) for ref, verb in refs}
    assert granted - asked == set()


async def test_the_process_writes_them(tmp_path: Path) -> None:
    """The leader of the update status controller keeps the objects, next to UpdateStatus."""
    async with management(tmp_path) as cluster:
        process = Process(cluster.world.config, Options(leader_elect=False))
        for definition in documents(MANIFESTS / f"{STEM}01_updatestatuses.crd.yaml"):
            await cluster.world.client.send(calls.create(CRDS, definition))
        task = asyncio.create_task(process.run())
        try:
            await cluster.until(lambda: _is_written(cluster, "prod"))
        finally:
            process.stop()
            await task
        assert updating(await cluster.status_of("prod")) == "True"


SECRET = Resource(group="", version="v1", kind="Secret", plural="secrets", namespaced=True)


@asynccontextmanager
async def hosted_side(tmp_path: Path, cluster: Management, name: str = "prod") -> AsyncGenerator[World, None]:
    """The API server of a hosted cluster, whose kubeconfig is in the Secret that the HostedCluster names."""
    async with ApiServer(tmp_path / "hosted") as made, Client(config.load(str(made.kubeconfig))) as client:
        world = World(client, config.load(str(made.kubeconfig)), made.kubeconfig)
        degraded = {
            "type": "Degraded", "status": "True", "reason": "Why", "lastTransitionTime": "2035-10-02T06:00:00Z",
        }  # fmt: skip
        available = {"type": "Available", "status": "True", "lastTransitionTime": "2035-10-02T06:00:00Z"}
        operator = obj("config.openshift.io/v1", "ClusterOperator", "dns", status={"conditions": [available, degraded]})
        operator["metadata"]["annotations"] = {"include.release.openshift.io/ibm-cloud-managed": "true"}
        for each in missing_definitions([operator], [], frozenset()):
            await client.send(calls.create(CRDS, each))
        await world.create(resource_of(ClusterOperator), operator)
        await store_kubeconfig(cluster, made.kubeconfig.read_bytes(), name)
        yield world


async def store_kubeconfig(cluster: Management, content: bytes, name: str = "prod") -> None:
    """Writes the Secret, and its name into the status of the HostedCluster."""
    secret = obj("v1", "Secret", f"{name}-admin-kubeconfig", NAMESPACE)
    secret["data"] = {"kubeconfig": base64.b64encode(content).decode()}
    await cluster.world.create(SECRET, secret)
    await cluster.patch(CLUSTERS, name, {"status": {"kubeconfig": {"name": secret["metadata"]["name"]}}})


def side_of(status: UpdateStatusStatus) -> tuple[str, str, str]:
    """Returns status, reason and message of the condition about the hosted side."""
    found = find(status.conditions, "HostedSideReachable")
    assert found is not None
    return found.status, found.reason, found.message


def checks_of(status: UpdateStatusStatus) -> dict[str, str]:
    """Returns the summary of each finding about the control plane, by its check."""
    assert status.control_plane is not None
    insights = [insight for informer in status.control_plane.informers for insight in informer.insights]
    return {each.health.check: each.health.impact.summary for each in insights if each.health is not None}


async def test_reads_the_hosted_side(tmp_path: Path) -> None:
    """The controller reports its ClusterOperators; the command does, too, and neither stores the credentials."""
    async with management(tmp_path) as cluster, hosted_side(tmp_path, cluster):
        await cluster.look()
        status = await cluster.status_of("prod")
        assert side_of(status) == ("True", "AsExpected", "")
        assert "Cluster Operator dns is degraded (Why)" in checks_of(status).values()

        def command() -> list[StatusReading]:
            with SyncClient(cluster.world.config) as client:
                return hosted_objects.read(client, lambda: NOON, "", live_status.TOLERATED)

        readings = {each.cluster: each.report() for each in await asyncio.to_thread(command)}
        assert "dns" in str(readings["clusters/prod"].health)
        test = find(readings["clusters/test"].conditions, "HostedSideReachable")
        assert test is not None
        assert (test.status, test.reason) == ("Unknown", "NotRead")
        assert "status.kubeconfig does not name a Secret" in test.message


async def test_a_hosted_side_that_does_not_answer_is_unknown(tmp_path: Path) -> None:
    """The state of its operators is not known, and the management side is still reported."""
    async with management(tmp_path) as cluster:
        async with hosted_side(tmp_path, cluster):
            pass
        await cluster.look()
        status = await cluster.status_of("prod")
        assert side_of(status)[:2] == ("False", "CannotRead")
        assert "could not reach https://" in side_of(status)[2]
        unknown = "ClusterOperators of the hosted cluster could not be read, so their state is unknown"
        assert unknown in checks_of(status).values()
        assert updating(status) == "True"


@pytest.mark.parametrize(
    ("content", "why"),
    [
        pytest.param(b"", "has no entry kubeconfig", id="empty"),
        pytest.param(b"- 1", "is not a kubeconfig", id="not a kubeconfig"),
        pytest.param(
            json.dumps({"users": [{"name": "a", "user": {"exec": {"command": "sh", "apiVersion": "v1"}}}]}).encode(),
            "names files or a program",
            id="a program",
        ),
    ],
)
async def test_a_secret_without_a_usable_kubeconfig(tmp_path: Path, content: bytes, why: str) -> None:
    """The condition says what is wrong with it."""
    async with management(tmp_path) as cluster:
        await store_kubeconfig(cluster, content)
        await cluster.look()
        status, reason, message = side_of(await cluster.status_of("prod"))
        assert (status, reason) == ("False", "CannotRead")
        assert f"Secret {NAMESPACE}/prod-admin-kubeconfig" in message
        assert why in message


async def test_without_the_right_to_the_secret_the_hosted_side_is_not_read(tmp_path: Path) -> None:
    """The condition names the missing right. The Secret is requested again only after some minutes."""
    async with management(tmp_path) as cluster, hosted_side(tmp_path, cluster):
        for number, file in (("03", "roles"), ("06", "hosted-clusters")):
            bodies = documents(MANIFESTS / f"{STEM}{number}_{file}.yaml")
            await _grant(cluster, [each for each in bodies if each["kind"].startswith("Cluster")])
        async with Client(_as_controller(cluster)) as client:
            hosted = HostedStatuses(client, cluster.clock, cluster.clock.now)
            for _ in range(3):
                await hosted.refresh()
            found = side_of(await cluster.status_of("prod"))
            assert found[:2] == ("Unknown", "NotRead")
            assert "there is no right to get Secret clusters/prod-admin-kubeconfig" in found[2]
            await _grant(cluster, _right_of_the_docs())
            cluster.clock.jump(LOOK_AGAIN_S)
            await hosted.refresh()
            assert side_of(await cluster.status_of("prod"))[0] == "True"
        lines = (tmp_path / "apiserver" / "audit.log").read_text().splitlines()
    refused = [event for event in map(json.loads, lines) if event["responseStatus"]["code"] == 403]
    assert [event["objectRef"]["resource"] for event in refused] == ["secrets"]


def _right_of_the_docs() -> list[JSON]:
    """Returns the objects that the how-to page has an administrator apply."""
    page = MANIFESTS.parents[1] / "docs" / "how-to" / "update-status-hypershift.md"
    [block] = [text for text in page.read_text().split("```")[1::2] if text.startswith("yaml") and "secrets" in text]
    return list(yaml.load_all(block.removeprefix("yaml")))


async def _grant(cluster: Management, bodies: list[JSON]) -> None:
    for body in bodies:
        if body["apiVersion"] != "rbac.authorization.k8s.io/v1":
            continue
        of_namespace = not body["kind"].startswith("Cluster")
        resource = replace(
            SECRET, group="rbac.authorization.k8s.io", kind=body["kind"], plural=f"{body['kind'].lower()}s",
            namespaced=of_namespace,
        )  # fmt: skip
        await cluster.world.create(resource, body)


async def _is_absent(cluster: Management, name: str) -> bool:
    return await cluster.object_of(name) is None


async def _is_written(cluster: Management, name: str) -> bool:
    found = await cluster.object_of(name)
    return found is not None and found.status is not None


async def test_a_live_reading_says_which_side_it_does_not_read(tmp_path: Path) -> None:
    """Watching one cluster reads it again and again, and uses the times of the controller's object."""
    async with management(tmp_path) as cluster:
        await cluster.look()

        def poll() -> list[StatusReading | None]:
            with SyncClient(cluster.world.config) as client:
                polls = poll_status(client, ManualClock(NOON), lambda: NOON, "prod")
                return [next(polls).found, next(polls).found]

        for reading in await asyncio.to_thread(poll):
            assert reading is not None
            text = render(reading.report(), reading.now_ns, details("none"))
            assert "Hosted side:     ClusterOperators, nodes and drains of the hosted side are not read" in text
            before = {each.type: each.last_transition_time for each in (await cluster.status_of("prod")).conditions}
            assert {each.type: each.last_transition_time for each in reading.report().conditions} == before
