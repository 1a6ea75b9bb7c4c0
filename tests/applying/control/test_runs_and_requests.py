"""A run against a server that is played, request by request: adoption, what is related, who continues, who waits."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from aiohttp import web
from structlog.testing import capture_logs
from tests.applying.control.release_folders import NAMESPACE, config_map, deployment, manifest, operator
from tests.applying.control.test_a_run_by_itself import NOON, tasks
from tests.kubekit.kube.apiscript import ScriptedApi, eventually, failure, reply, scripted_api, status

from kubekit.api.meta_v1 import ObjectMeta
from kubekit.api.scheme import Resource
from kubekit.kube.cache import Cache
from kubekit.kube.client import Client
from kubekit.kube.clock import ManualClock
from kubekit.kube.config import ClusterConfig
from runup.api.config_v1 import ClusterOperator
from runup.api.owned_v1 import OwnedMeta, OwnedWorkload, WorkloadStatus
from runup.applying.control import object_requests
from runup.applying.control.object_applier import Memory, ObjectApplier, ObjectDeleter, digests_of
from runup.applying.control.object_requests import ResourceDiscovery
from runup.applying.control.object_watches import ObjectWatches
from runup.applying.control.release_run import HANDOVER_S, Run
from runup.applying.control.task_errors import Notices
from runup.applying.decide.progress import ApplyReason, Effect, Problem
from runup.applying.decide.rendering import ClusterValues
from runup.applying.decide.task import Task
from runup.process.leader_election import cancel
from runup.release.decide.manifest import Identity

MAPS = Resource(group="", version="v1", kind="ConfigMap", plural="configmaps", namespaced=True)
DEPLOYMENTS = Resource(group="apps", version="v1", kind="Deployment", plural="deployments", namespaced=True)
DEFINITIONS = Resource(
    group="apiextensions.k8s.io",
    version="v1",
    kind="CustomResourceDefinition",
    plural="customresourcedefinitions",
    namespaced=False,
)
SERVED = {
    "/api/v1": [{"name": "configmaps", "kind": "ConfigMap", "namespaced": True}],
    "/apis/apps/v1": [{"name": "deployments", "kind": "Deployment", "namespaced": True}],
    "/apis/config.openshift.io/v1": [{"name": "clusteroperators", "kind": "ClusterOperator", "namespaced": False}],
}


@dataclass
class Server:
    """It takes what is applied; `managers` are those of what it answers, until they are changed."""

    api: ScriptedApi
    managers: list[dict[str, Any]] = field(default_factory=list)
    there: bool = False
    version: int = 6

    async def answer(self, request: web.BaseRequest) -> web.StreamResponse:
        """Discovery, objects, and no lists."""
        if request.path in SERVED:
            return web.json_response({"resources": SERVED[request.path]})
        name = request.path.removesuffix("/status").rpartition("/")[2]
        if request.method == "GET" and name != "a":
            return web.json_response(status(503, "ServiceUnavailable"), status=503)
        if request.method == "POST" and self.there:
            return web.json_response(status(409, "AlreadyExists"), status=409)
        if request.method == "DELETE" and not self.there:
            return web.json_response(status(404, "NotFound") | {"details": {"name": name}}, status=404)
        self.version += request.method != "GET"
        version = str(self.version)
        metadata = {"name": name, "namespace": NAMESPACE, "resourceVersion": version, "managedFields": self.managers}
        if request.headers.get("Content-Type", "").startswith("application/json-patch"):
            self.managers = json.loads(self.api.bodies[-1])[0]["value"]
        # Its pods are there as soon as it is.
        return web.json_response({"apiVersion": "v1", "kind": "X", "metadata": metadata, "status": {"replicas": 1}})

    @property
    def writes(self) -> list[str]:
        """Method and name of what was written."""
        found = []
        for target in self.api.targets:
            method, _, rest = target.partition(" ")
            path = rest.partition("?")[0]
            if method != "GET":
                found.append(f"{method} {'/'.join(path.split('/')[-2:])}")
        return found


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    """With nothing in it."""
    async with scripted_api() as api:
        made = Server(api)
        api.answers(made.answer)
        yield made


@pytest.fixture
def logs() -> Iterator[list[Any]]:
    """The lines of the log."""
    with capture_logs() as found:
        yield found  # type: ignore[misc]


def entry(manager: str, operation: str = "Update", subresource: str = "", **data: Any) -> dict[str, Any]:
    """Of managedFields."""
    found = {"manager": manager, "operation": operation, "fieldsV1": {"f:data": {f"f:{key}": {} for key in data}}}
    return found | ({"subresource": subresource} if subresource else {})


OURS = entry("cluster-version-operator", "Apply", k="")


@pytest.mark.parametrize(
    ("managers", "requests"),
    [
        pytest.param([OURS], ["PATCH"], id="ours alone"),
        pytest.param([OURS, entry("kubectl-edit", x="")], ["PATCH"], id="somebody else's beside it"),
        pytest.param(
            [OURS, entry("cluster-version-operator", x="")],
            ["PATCH", "GET", "PATCH", "PATCH"],
            id="an earlier operator's",
        ),
        pytest.param(
            [OURS, entry("cluster-bootstrap", x="")], ["PATCH", "GET", "PATCH", "PATCH"], id="the installer's"
        ),
        pytest.param(
            [OURS, entry("cluster-version-operator", subresource="status", x="")], ["PATCH"], id="its word on a status"
        ),
    ],
)
async def test_what_earlier_writers_set_becomes_ours(
    server: Server, managers: list[dict[str, Any]], requests: list[str]
) -> None:
    """First, and then it is applied once more: what the release has no longer uses that."""
    server.managers = managers
    async with Client(ClusterConfig(server=server.api.url)) as client:
        found = await object_requests.apply(client, MAPS, config_map("a", {"k": "v"}), warned=lambda _: None)
    assert [target.partition(" ")[0] for target in server.api.targets] == requests
    assert found.metadata.resource_version == str(6 + requests.count("PATCH"))
    if len(requests) > 1:
        patch = json.loads(server.api.bodies[2])
        assert patch[0]["value"] == [{**OURS, "fieldsV1": {"f:data": {"f:k": {}, "f:x": {}}}}]
        assert patch[1] == {"op": "replace", "path": "/metadata/resourceVersion", "value": "7"}


@pytest.mark.parametrize("there", [True, False])
async def test_what_is_there_or_not(server: Server, there: bool) -> None:
    """Created where it is not; whether there was something to delete is reported."""
    server.there = there
    async with Client(ClusterConfig(server=server.api.url)) as client:
        assert (await object_requests.create(client, MAPS, config_map("a", {})) is None) is there
        assert await object_requests.delete(client, MAPS, "a", NAMESPACE) is there


@dataclass
class Scene:
    """A run against that server, whose clock stands."""

    run: Run
    applier: ObjectApplier
    clock: ManualClock
    served: list[tuple[str, str]]
    notified: list[bool]


def scene(client: Client, found: tuple[Task, ...], operators: Cache[ClusterOperator], **changes: Any) -> Scene:
    """An update of these."""
    clock, tracking = (
        ManualClock(NOON),
        changes.pop("tracking", ObjectWatches(client, ManualClock(NOON), lambda _: None)),
    )
    cluster_values = ClusterValues(operator=(NAMESPACE, "own"))
    puts = ObjectApplier(
        found,
        client=client,
        kinds=ResourceDiscovery(client),
        tracking=tracking,
        deleting=ObjectDeleter(client, clock, lambda _: None),
        operators=operators,
        memory=Memory(),
        digests=digests_of(found, cluster_values),
        cluster_values=lambda: cluster_values,
        notices=Notices(client, clock),
        image="registry.example/release:own",
    )
    served: list[tuple[str, str]] = []
    notified: list[bool] = []
    run = Run(
        found,
        changes.pop("state", ApplyReason.UPDATING),
        applier=puts,
        clock=clock,
        since={},
        on_result=notified.append,
        served=lambda *kind: served.append(kind),
    )
    return Scene(run, puts, clock, served, notified)


async def test_what_a_list_says_of_a_workload_counts() -> None:
    """How far its roll-out is, from the first list on; of a definition only a change says whether it is served."""
    metadata = {"name": "one", "namespace": NAMESPACE, "resourceVersion": "3"}
    item = {"metadata": metadata, "spec": {"replicas": 2}, "status": {"replicas": 1, "conditions": []}}
    for kind in (DEPLOYMENTS, DEFINITIONS):
        async with scripted_api() as api:
            api.answers(
                reply({"metadata": {"resourceVersion": "3"}, "items": [item]}), failure(503, "ServiceUnavailable")
            )
            async with Client(ClusterConfig(server=api.url)) as client:
                tracking = ObjectWatches(client, ManualClock(NOON), lambda _: None)
                await tracking.settled(tracking.follow(kind))
                found = tracking.get(Identity(kind.group, kind.kind, NAMESPACE, "one"))
                await tracking.close()
        status = found.status if isinstance(found, OwnedWorkload) else None
        assert (None if status is None else status.replicas) == (1 if kind is DEPLOYMENTS else None)


@pytest.mark.parametrize(
    ("state", "waits"),
    [
        pytest.param(ApplyReason.UPDATING, True, id="another release's operator"),
        pytest.param(ApplyReason.RECONCILING, False, id="it is only kept"),
    ],
)
async def test_the_operator_that_is_replaced_leaves_the_rest_for_two_minutes(
    server: Server, logs: list[Any], state: ApplyReason, waits: bool
) -> None:
    """Two of them would write the same in turns; where none comes this one continues."""
    found = tasks(deployment("own", "registry.example/release:new"), config_map("after", {}))
    async with Client(ClusterConfig(server=server.api.url)) as client:
        tracking = ObjectWatches(client, ManualClock(NOON), lambda _: None)
        cache = tracking.follow(DEPLOYMENTS)
        cache.replace([], "1")
        metadata = OwnedMeta(name="own", namespace=NAMESPACE, resource_version="3")
        cache.put(OwnedWorkload(metadata=metadata, status=WorkloadStatus(replicas=1)))
        at = scene(client, found, Cache(ClusterOperator), tracking=tracking, state=state)
        logs.clear()
        going = asyncio.create_task(at.run.go())
        await eventually(lambda: "PATCH deployments/own" in server.writes)
        if waits:
            await eventually(lambda: at.clock.sleeping == (120,))
            assert at.notified[-1]
            assert "PATCH configmaps/after" not in server.writes
            await at.clock.advance(119)
            assert "PATCH configmaps/after" not in server.writes
            await at.clock.advance(1)
        await eventually(lambda: "PATCH configmaps/after" in server.writes)
        await eventually(lambda: at.run.completed)
        assert (at.run.state, at.run.done, at.run.problems) == (ApplyReason.RECONCILING, 2, ())
        await cancel([going])
        await tracking.close()
    assert HANDOVER_S == 120
    handed = ["the new operator continues from here", "no new operator came, so this one continues"]
    assert [line["event"] for line in logs] == [*(handed if waits else []), "applied"]


@pytest.mark.parametrize(
    ("listed", "related", "writes"),
    [
        pytest.param(False, True, ["PATCH clusteroperators/a", "PATCH a/status"], id="it is new"),
        pytest.param(True, True, ["PATCH clusteroperators/a"], id="it has spoken for itself"),
        pytest.param(False, False, ["PATCH clusteroperators/a"], id="its manifest says nothing of it"),
    ],
)
async def test_what_a_new_operator_concerns_itself_with_is_said_for_it(
    server: Server, listed: bool, related: bool, writes: list[str]
) -> None:
    """Once, before it has a word."""
    made = operator("a", "5.0.0")
    if not related:
        del made["status"]
    operators = Cache(ClusterOperator)
    if listed:
        operators.put(ClusterOperator(metadata=ObjectMeta(name="a")))
    async with Client(ClusterConfig(server=server.api.url)) as client:
        at = scene(client, tasks(made), operators)
        await at.applier.apply_or_delete(tasks(made)[0])
        assert at.applier.writes == len(writes)
        await at.applier.tracking.close()
    assert server.writes == writes


async def test_problems_are_told_in_the_order_of_their_tasks(server: Server) -> None:
    """Whenever they came."""
    found = tasks(*(config_map(name, {}) for name in "abc"))
    async with Client(ClusterConfig(server=server.api.url)) as client:
        at = scene(client, found, Cache(ClusterOperator))
        for task in reversed(found):
            at.run.progress.record(task, Problem(reason="R", message=task.identity.name, effect=Effect.NONE))
        assert [problem.message for problem in at.run.problems] == ["a", "b", "c"]
        assert (at.run.done, at.run.completed, at.run.state) == (0, False, ApplyReason.UPDATING)
        # Nobody is at work yet: what changes is looked at when its turn comes.
        at.run.changed(found[0].identity)
        at.run.cluster_values_changed()
        at.run.operators_listed()
        assert server.api.targets == []


async def test_a_release_without_a_manifest_is_done_at_once(server: Server) -> None:
    """And kept by nobody; the clock continues by days."""
    async with Client(ClusterConfig(server=server.api.url)) as client:
        at = scene(client, (), Cache(ClusterOperator))
        going = asyncio.create_task(at.run.go())
        await at.clock.advance(0)
        assert (at.run.completed, at.clock.sleeping, at.notified) == (True, (24 * 3600,), [True])
        await cancel([going])


async def test_an_object_that_drifts_while_it_is_kept_is_put_back_once(server: Server, logs: list[Any]) -> None:
    """However often its watch reports it meanwhile; what never was done is nobody's to put back."""
    found = tasks(config_map("a", {"k": "v"}), manifest("v1", "ConfigMap", "b", NAMESPACE))
    async with Client(ClusterConfig(server=server.api.url)) as client:
        at = scene(client, found, Cache(ClusterOperator))
        going = asyncio.create_task(at.run.go())
        await eventually(lambda: at.run.completed)
        before = len(server.writes)
        cache = at.applier.tracking.follow(MAPS)
        cache.replace([], "8")  # of which version the second one was made
        cache.recover()
        for _ in range(3):
            at.run.changed(found[0].identity)
        await eventually(lambda: len(server.writes) > before)
        await at.clock.advance(0)
        assert server.writes[before:] == ["PATCH configmaps/a"]
        assert [line["again"] for line in logs if line["event"] == "put back"] == [False]
        await cancel([going])
        await at.applier.tracking.close()
