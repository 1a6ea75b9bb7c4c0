"""Tests how watches and writes decide whether an object is in place, has drifted, or has another owner."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from msgspec.structs import replace
from tests.applying.control.release_folders import NAMESPACE, config_map, definition, deployment, manifest, namespace
from tests.applying.control.test_a_run_by_itself import NOON, applier, tasks
from tests.kubekit.kube.apiscript import ScriptedApi, scripted_api, status

from kubekit.api.core_v1 import ConfigMap
from kubekit.api.scheme import Resource, resource_of
from kubekit.error_types import Terminal
from kubekit.kube import calls, config
from kubekit.kube.api_errors import Invalid, NotFound
from kubekit.kube.cache import Cache
from kubekit.kube.client import Client
from kubekit.kube.clock import ManualClock
from kubekit.kube.config import ClusterConfig
from kubesandbox.apiserver.server import ApiServer
from runup.api.config_v1 import ClusterOperator
from runup.api.owned_v1 import ManagedFields, Owned, OwnedMeta, OwnedWorkload, WorkloadStatus
from runup.applying.control import object_requests
from runup.applying.control.object_applier import (
    MAX_CONCURRENT_REQUESTS,
    AppliedState,
    Memory,
    ObjectApplier,
    ObjectDeleter,
    digests_of,
    short_digest,
)
from runup.applying.control.object_requests import ResourceDiscovery
from runup.applying.control.object_watches import ObjectWatches
from runup.applying.control.task_errors import KindMissing, Notices
from runup.applying.decide.merging import MANAGER
from runup.applying.decide.rendering import LABEL, ClusterValues
from runup.applying.decide.task import Task

MAPS = Resource(group="", version="v1", kind="ConfigMap", plural="configmaps", namespaced=True)
DEPLOYMENTS = Resource(group="apps", version="v1", kind="Deployment", plural="deployments", namespaced=True)
GONE = {"release.openshift.io/delete": "true"}
ONLY = {"release.openshift.io/create-only": "true"}
FIELDS = {"f:metadata": {"f:annotations": {}, "f:labels": {}}, "f:data": {"f:k": {}}}
(TASK,) = tasks(config_map("a", {"k": "v"}))
DIGEST = digests_of([TASK], ClusterValues())[TASK.index]


@dataclass
class Scene:
    """Objects as a watch has them, which the test plays; nobody is asked."""

    client: Client
    tracking: ObjectWatches
    memory: Memory = field(default_factory=Memory)

    def applier(self, *found: Task) -> ObjectApplier:
        """What puts these."""
        return applier(self.client, self.tracking, found, self.memory)

    def followed(self, resource: Resource = MAPS) -> Cache[Owned]:
        """The kind's cache, listed once and empty."""
        cache = self.tracking.follow(resource)
        cache.replace([], "1")
        cache.recover()
        return cache


@pytest.fixture
async def scene() -> AsyncIterator[Scene]:
    """Watches that never get an answer."""

    async def silence(_: web.BaseRequest) -> web.StreamResponse:
        raise ConnectionResetError

    async with scripted_api() as api:
        api.answers(silence)
        async with Client(ClusterConfig(server=api.url)) as client:
            tracking = ObjectWatches(client, ManualClock(NOON), lambda _: None)
            yield Scene(client, tracking)
            await tracking.close()


def seen(name: str = "a", *, label: str = DIGEST, version: str = "7", fields: Any = None, **metadata: Any) -> Owned:
    """Returns an applied object as its watch reports it."""
    entries = (
        (
            ManagedFields(
                manager=MANAGER, operation="Apply", subresource="", fields_v1=FIELDS if fields is None else fields
            ),
        )
        if fields != {}
        else ()
    )
    labels = {LABEL: label} if label else {}
    of = OwnedMeta(
        name=name, namespace=NAMESPACE, resource_version=version, labels=labels, managed_fields=entries, **metadata
    )
    return Owned(metadata=of)


@pytest.mark.parametrize(
    ("found", "good", "expected"),
    [
        pytest.param(None, None, False, id="it is not there"),
        pytest.param(seen(), None, True, id="label and fields are ours"),
        pytest.param(seen(deletion_timestamp=NOON), None, False, id="it is on its way out"),
        pytest.param(seen(label=""), None, False, id="it has lost the label"),
        pytest.param(seen(label="other"), None, False, id="it has another content's label"),
        pytest.param(seen(fields={}), None, False, id="no field is ours"),
        pytest.param(seen(fields={"f:metadata": FIELDS["f:metadata"]}), None, False, id="a field is somebody else's"),
        pytest.param(seen(version="7"), ("", 8), True, id="the watch is behind our write"),
        pytest.param(seen(label="other", version="7"), ("", 8), True, id="it is behind, and has what was there before"),
        pytest.param(seen(label="other", version="8"), ("", 8), False, id="the watch has come to our write"),
        pytest.param(seen(label="other", version="odd"), ("", 0), False, id="a version that is not a number is none"),
        pytest.param(seen(label="other", version="7"), ("another", 8), False, id="our write was of another content"),
        pytest.param(seen(fields={"f:x": {}}, version="9"), ("same", 8), True, id="fields are as they were after it"),
        pytest.param(
            seen(fields={"f:x": {}}, label="other", version="9"), ("same", 8), False, id="fields are, the label is not"
        ),
    ],
)
async def test_whether_an_object_is_in_place(
    scene: Scene, found: Owned | None, good: tuple[str, int] | None, expected: bool
) -> None:
    """By the label, by whose fields are whose, and by what it looked like right after it was put."""
    cache = scene.followed()
    if found is not None:
        cache.put(found)
    if good is not None:
        owned = cache.all()[0].owned if good[0] == "same" else b""
        digest = "of another content" if good[0] == "another" else DIGEST
        scene.memory.applied[TASK.identity] = AppliedState(digest, short_digest(owned), good[1])
    puts = scene.applier(TASK)
    assert puts.in_place(TASK) is expected
    assert puts.drifted(TASK) is (not expected and found is not None and found.metadata.deletion_timestamp is None)


async def test_what_was_found_in_place_is_remembered(scene: Scene) -> None:
    """So that its fields are read once: as it is now it is good, whatever they would say."""
    scene.followed().put(seen())
    assert scene.applier(TASK).in_place(TASK)
    good = scene.memory.applied[TASK.identity]
    assert (good.digest, good.resource_version) == (DIGEST, 7)


async def test_what_is_only_created_is_in_place_whatever_it_holds(scene: Scene) -> None:
    """Unless it is being deleted."""
    (task,) = tasks(config_map("a", {"k": "v"}, annotations=ONLY))
    cache = scene.followed()
    cache.put(seen(label="other", fields={}))
    assert scene.applier(task).in_place(task)
    cache.put(seen(label="other", fields={}, deletion_timestamp=NOON))
    assert not scene.applier(task).in_place(task)


@pytest.mark.parametrize(
    ("put_at", "listed_at", "ready", "gone"),
    [
        pytest.param(8, "8", True, True, id="the watch is where it was put"),
        pytest.param(8, "9", True, True, id="the watch is past that"),
        pytest.param(8, "7", True, False, id="the watch is late"),
        pytest.param(8, "x", True, False, id="a watch that counts otherwise"),
        pytest.param(8, "9", False, False, id="a watch that is cut"),
        pytest.param(None, "9", True, False, id="it was never put"),
    ],
)
async def test_whether_an_object_that_is_not_seen_is_gone(
    scene: Scene, put_at: int | None, listed_at: str, ready: bool, gone: bool
) -> None:
    """Only a watch that is past our write shows it."""
    cache = scene.followed()
    cache.replace([], listed_at)
    if not ready:
        cache.fail("cut")
    if put_at is not None:
        scene.memory.applied[TASK.identity] = AppliedState(DIGEST, b"", put_at)
    assert scene.applier(TASK).drifted(TASK) is gone
    assert scene.tracking.is_known_gone(TASK.identity, put_at or 99) is gone


async def test_what_nobody_follows_has_not_drifted(scene: Scene) -> None:
    """Nor is it gone, nor what was removed, nor a Job that was over and went by itself."""
    removed, job = tasks(
        config_map("a", {}, annotations=GONE),
        manifest("batch/v1", "Job", "once", NAMESPACE, spec={"ttlSecondsAfterFinished": 60}),
    )
    scene.memory.applied[TASK.identity] = AppliedState(DIGEST, b"", 1)
    assert not scene.applier(TASK).drifted(TASK)
    assert not scene.tracking.is_known_gone(TASK.identity, 1)
    scene.followed().put(seen(label="other"))
    assert not scene.applier(removed).drifted(removed)
    assert scene.applier(TASK).drifted(TASK)
    scene.followed(Resource(group="batch", version="v1", kind="Job", plural="jobs", namespaced=True)).replace([], "9")
    puts = scene.applier(job)
    scene.memory.applied[job.identity] = AppliedState("", b"", 1)
    assert puts.drifted(job)
    puts.record_healthy(job)
    assert not puts.drifted(job)


@pytest.mark.parametrize(
    ("kind", "spec", "over"),
    [
        pytest.param("Job", {"ttlSecondsAfterFinished": 0}, True, id="it goes at once"),
        pytest.param("Job", {}, False, id="a Job that stays"),
        pytest.param("Job", None, False, id="a Job without a spec"),
        pytest.param("CronJob", {"ttlSecondsAfterFinished": 0}, False, id="another kind"),
    ],
)
async def test_which_jobs_go_by_themselves(scene: Scene, kind: str, spec: dict[str, Any] | None, over: bool) -> None:
    """Those that say so in their manifest."""
    (task,) = tasks(manifest("batch/v1", kind, "once", NAMESPACE, spec=spec))
    scene.applier(task).record_healthy(task)
    assert (task.identity in scene.memory.finished_jobs) is over


def workload(version: str, replicas: int | None = 1) -> OwnedWorkload:
    """A Deployment `a` as it was seen at a version."""
    metadata = OwnedMeta(name="a", namespace=NAMESPACE, resource_version=version)
    status_ = None if replicas is None else WorkloadStatus(replicas=replicas)
    return OwnedWorkload(metadata=metadata, status=status_)


@pytest.mark.parametrize(
    ("watched", "answered", "version"),
    [
        pytest.param(None, None, "", id="neither"),
        pytest.param("7", None, "7", id="the watch alone"),
        pytest.param(None, "7", "7", id="an answer alone"),
        pytest.param("8", "7", "8", id="the watch is newer"),
        pytest.param("7", "8", "8", id="the answer is newer"),
        pytest.param("10", "9", "10", id="by number, not by letter"),
    ],
)
async def test_the_newer_of_what_was_seen_counts(
    scene: Scene, watched: str | None, answered: str | None, version: str
) -> None:
    """Of the same version the watch's."""
    (task,) = tasks(deployment("a", "registry.example/a:1"))
    cache = scene.followed(DEPLOYMENTS)
    if watched:
        cache.put(workload(watched))
    if answered:
        scene.memory.answers[task.identity] = workload(answered)
    found = scene.applier(task).latest(task)
    assert (found.metadata.resource_version if found else "") == version
    if watched:
        same = workload(watched, replicas=5)
        scene.memory.answers[task.identity] = same
        assert scene.applier(task).latest(task) is not same


OWN, OTHER = "registry.example/release:own", "registry.example/release:other"


@pytest.mark.parametrize(
    ("name", "container", "image", "replicas", "expected"),
    [
        pytest.param("a", "a", OTHER, 1, True, id="another release's operator takes over"),
        pytest.param("a", "a", OWN, 1, False, id="it is of this release"),
        pytest.param("a", "proxy", OTHER, 1, False, id="a container beside it is of another image"),
        pytest.param("b", "b", OTHER, 1, False, id="another Deployment"),
        pytest.param("a", "a", OTHER, 0, False, id="nobody runs by it"),
        pytest.param("a", "a", OTHER, None, False, id="whether somebody runs is not known"),
    ],
)
async def test_whether_putting_it_ends_this_process(
    scene: Scene, name: str, container: str, image: str, replicas: int | None, expected: bool
) -> None:
    """It is the operator's own Deployment, somebody runs by it, and its image is another one."""
    made = deployment(name, image)
    made["spec"]["template"]["spec"]["containers"][0]["name"] = container
    (task,) = tasks(made)
    scene.followed(DEPLOYMENTS).put(replace(workload("7", replicas), metadata=_named(name)))
    puts = ObjectApplier(
        [task],
        client=scene.client,
        kinds=ResourceDiscovery(scene.client),
        tracking=scene.tracking,
        deleting=ObjectDeleter(scene.client, ManualClock(NOON), lambda _: None),
        operators=Cache(ClusterOperator),
        memory=scene.memory,
        digests={task.index: ""},
        cluster_values=lambda: ClusterValues(operator=(NAMESPACE, "a")),
        notices=Notices(scene.client, ManualClock(NOON)),
        image=OWN,
    )
    assert puts.hands_over(task) is expected


def _named(name: str) -> OwnedMeta:
    return OwnedMeta(name=name, namespace=NAMESPACE, resource_version="7")


async def test_what_a_task_needs_and_defines(scene: Scene) -> None:
    """The definition of its kind and its namespace, of those that the release brings and does not remove."""
    space, kind, widget, gone_space, gone_kind, gadget, plain = tasks(
        namespace(),
        definition("Widget", "widgets"),
        manifest("example.org/v1", "Widget", "w", NAMESPACE),
        manifest("v1", "Namespace", "other", annotations=GONE),
        manifest(
            "apiextensions.k8s.io/v1",
            "CustomResourceDefinition",
            "gadgets.example.org",
            annotations=GONE,
            spec={"group": "example.org", "names": {"kind": "Gadget"}},
        ),
        manifest("example.org/v1", "Gadget", "g", "other"),
        manifest("rbac.authorization.k8s.io/v1", "ClusterRole", "r"),
    )
    puts = scene.applier(space, kind, widget, gone_space, gone_kind, gadget, plain)
    assert list(puts.needs(widget)) == [kind, space]
    assert list(puts.needs(gadget)) == list(puts.needs(plain)) == []
    assert puts.defined_by(kind) == (("example.org", "Widget"),)
    assert puts.defined_by(gone_kind) == puts.defined_by(space) == ()


class Server:
    """An API server of ConfigMaps; `refusal` is how it answers a write."""

    def __init__(self, api: ScriptedApi) -> None:
        self.api = api
        self.refusal: tuple[int, str, dict[str, Any] | None] | None = None
        self.serves = True
        api.answers(self.answer)

    async def answer(self, request: web.BaseRequest) -> web.StreamResponse:
        """Discovery, watches that hold, writes."""
        if request.path == "/api/v1":
            served = [{"name": "configmaps", "kind": "ConfigMap", "namespaced": True}] if self.serves else []
            return web.json_response({"resources": served})
        if request.method == "GET":
            return web.json_response(status(503, "ServiceUnavailable"), status=503)
        if self.refusal is not None:
            code, reason, details = self.refusal
            return web.json_response(status(code, reason) | {"details": details}, status=code)
        metadata = {"name": request.path.rpartition("/")[2], "namespace": NAMESPACE, "resourceVersion": "5"}
        return web.json_response({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})

    @property
    def written(self) -> list[str]:
        """The names of what was applied."""
        paths = (target.partition("?")[0] for target in self.api.targets if target.startswith("PATCH"))
        return [path.rpartition("/")[2] for path in paths]

    @property
    def deletions(self) -> int:
        """How often something was asked to go."""
        return sum(target.startswith("DELETE") for target in self.api.targets)

    @property
    def asked(self) -> list[str]:
        """Returns the requests other than lists."""
        return [target for target in self.api.targets if "configmaps?" not in target]


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    """With a namespace of which nothing is known."""
    async with scripted_api() as api:
        yield Server(api)


async def test_a_kind_that_is_not_served_is_asked_for_again(server: Server) -> None:
    """It is named, and the next attempt looks whether it has come; what it is then is not asked for once more."""
    async with Client(ClusterConfig(server=server.api.url)) as client:
        tracking = ObjectWatches(client, ManualClock(NOON), lambda _: None)
        puts = applier(client, tracking, (TASK,), Memory())
        server.serves = False
        for _ in range(2):
            with pytest.raises(KindMissing, match=r"^ConfigMap in v1$"):
                await puts.apply_or_delete(TASK)
        server.serves = True
        for _ in range(2):
            await puts.apply_or_delete(TASK, reapply=True)
        await tracking.close()
    assert [target.partition("?")[0] for target in server.asked] == [
        *["GET /api/v1"] * 3,
        *[f"PATCH /api/v1/namespaces/{NAMESPACE}/configmaps/a"] * 2,
    ]
    assert puts.writes == 2


@pytest.mark.parametrize(
    ("details", "looks_again"),
    [
        pytest.param(None, True, id="the path is not served any more"),
        pytest.param({"name": NAMESPACE}, False, id="its namespace is not there"),
    ],
)
async def test_a_write_that_leads_nowhere(server: Server, details: dict[str, Any] | None, looks_again: bool) -> None:
    """Whether the kind is looked up again hangs on what was not found."""
    async with Client(ClusterConfig(server=server.api.url)) as client:
        tracking = ObjectWatches(client, ManualClock(NOON), lambda _: None)
        puts = applier(client, tracking, (TASK,), Memory())
        server.refusal = (404, "NotFound", details)
        for _ in range(2):
            with pytest.raises(NotFound):
                await puts.apply_or_delete(TASK)
        await tracking.close()
    assert server.asked.count("GET /api/v1") == (2 if looks_again else 1)


async def test_what_the_server_refuses_and_does_not_have_is_told_as_refused(tmp_path: Path) -> None:
    """The object shows whether a foreign field excludes ours; an absent field is not the error."""
    odd = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "Not_A_Name", "namespace": "default"}}
    async with ApiServer(tmp_path / "apiserver") as api, Client(config.load(str(api.kubeconfig))) as client:
        with pytest.raises(Invalid, match="Not_A_Name"):
            await object_requests.apply(client, resource_of(ConfigMap), odd, warned=lambda _: None)


async def test_what_others_added_and_excludes_the_manifest_goes(tmp_path: Path) -> None:
    """A probe has one handler (API reference, Probe): the manifest's counts, not what somebody set before."""

    def probed(**handler: Any) -> dict[str, Any]:
        obj = deployment("a", "registry.example/a:1")
        obj["metadata"]["namespace"] = "default"
        obj["spec"]["template"]["spec"]["containers"][0]["livenessProbe"] = handler
        return obj

    deployments = Resource(group="apps", version="v1", kind="Deployment", plural="deployments", namespaced=True)
    async with ApiServer(tmp_path / "apiserver") as api, Client(config.load(str(api.kubeconfig))) as client:
        theirs = probed(exec={"command": ["true"]})
        await client.send(calls.create(deployments, theirs, field_manager="somebody"))
        await object_requests.apply(client, deployments, probed(httpGet={"port": 80}), warned=lambda _: None)
        live = await client.send(calls.get_raw(deployments, "a", "default"))
    (container,) = live["spec"]["template"]["spec"]["containers"]
    assert ("exec" in container["livenessProbe"], container["livenessProbe"]["httpGet"]["port"]) == (False, 80)


async def test_what_cannot_be_carried_out_is_refused_before_anybody_is_asked(server: Server) -> None:
    """And what is removed is removed on the way to another release alone."""
    odd, gone = tasks(
        config_map("a", {}, annotations={"release.openshift.io/delete": "maybe"}), config_map("a", {}, annotations=GONE)
    )
    async with Client(ClusterConfig(server=server.api.url)) as client:
        tracking = ObjectWatches(client, ManualClock(NOON), lambda _: None)
        puts = applier(client, tracking, (odd, gone), Memory())
        with pytest.raises(Terminal, match="Invalid delete annotation") as raised:
            await puts.apply_or_delete(odd)
        await puts.apply_or_delete(gone)
        assert server.api.targets == []
        server.refusal = (404, "NotFound", {"name": "a"})
        for _ in range(2):
            await puts.apply_or_delete(gone, updating=True)
        await tracking.close()
    assert raised.value.reason == "UpdatePayloadFailed"
    assert [target.partition(" ")[0] for target in server.api.targets] == ["GET", "DELETE"]


async def test_a_job_that_is_over_is_not_run_anew(server: Server) -> None:
    """The daily look passes it by; when the release wants it again, it counts as any other."""
    async with Client(ClusterConfig(server=server.api.url)) as client:
        tracking = ObjectWatches(client, ManualClock(NOON), lambda _: None)
        memory = Memory(finished_jobs={TASK.identity})
        puts = applier(client, tracking, (TASK,), memory)
        await puts.apply_or_delete(TASK, reapply=True)
        assert server.api.targets == []
        await puts.apply_or_delete(TASK)
        assert memory.finished_jobs == set()
        assert memory.applied[TASK.identity].resource_version == 5
        await tracking.close()


async def test_sixteen_requests_at_a_time() -> None:
    """However many objects a release has."""
    many = tasks(*(config_map(f"m{number}", {}) for number in range(40)))
    open_, most = [0], [0]
    over = asyncio.Event()

    async def answer(request: web.BaseRequest) -> web.StreamResponse:
        if request.path == "/api/v1":
            served = [{"name": "configmaps", "kind": "ConfigMap", "namespaced": True}]
            return web.json_response({"resources": served})
        if request.method == "GET":
            return web.json_response(status(503, "ServiceUnavailable"), status=503)
        open_[0] += 1
        most[0] = max(most[0], open_[0])
        if open_[0] == MAX_CONCURRENT_REQUESTS:
            over.set()
        await over.wait()
        open_[0] -= 1
        metadata = {"name": request.path.rpartition("/")[2], "namespace": NAMESPACE, "resourceVersion": "5"}
        return web.json_response({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})

    async with scripted_api() as api:
        api.answers(answer)
        async with Client(ClusterConfig(server=api.url)) as client:
            tracking = ObjectWatches(client, ManualClock(NOON), lambda _: None)
            puts = applier(client, tracking, many, Memory())
            await _all(puts, many)
            await tracking.close()
    assert (most[0], puts.writes) == (16, 40)


async def _all(puts: ObjectApplier, found: tuple[Task, ...]) -> None:
    async with asyncio.timeout(90):
        await asyncio.gather(*(puts.apply_or_delete(task) for task in found))
