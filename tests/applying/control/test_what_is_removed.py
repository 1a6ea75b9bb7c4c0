"""Objects that a release removes, and the watches next to it: each asked for once, followed until it is gone."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from aiohttp import web
from structlog.testing import capture_logs
from tests.applying.control.release_folders import NAMESPACE, config_map
from tests.applying.control.test_a_run_by_itself import NOON, tasks
from tests.kubekit.kube.apiscript import ScriptedApi, event, eventually, scripted_api, status

from kubekit.api.scheme import Resource
from kubekit.kube.client import Client
from kubekit.kube.clock import ManualClock
from kubekit.kube.config import ClusterConfig
from runup.applying.control.object_applier import ObjectDeleter
from runup.applying.control.object_watches import ObjectWatches
from runup.applying.decide.rendering import LABEL
from runup.applying.decide.task import deletion_text
from runup.release.decide.manifest import Identity

MAPS = Resource(group="", version="v1", kind="ConfigMap", plural="configmaps", namespaced=True)
SECRETS = Resource(group="", version="v1", kind="Secret", plural="secrets", namespaced=True)
B, A = tasks(*(config_map(name, {}, annotations={"release.openshift.io/delete": "true"}) for name in ("b", "a")))


@dataclass
class Server:
    """ConfigMaps by name, which go when the test says so."""

    api: ScriptedApi
    there: set[str] = field(default_factory=set)
    watches: dict[str, web.StreamResponse] = field(default_factory=dict)
    refused: bool = False

    async def answer(self, request: web.BaseRequest) -> web.StreamResponse:
        """DELETE, list and watch."""
        if self.refused or request.path.endswith("secrets"):
            return web.json_response(status(403, "Forbidden", "you may not"), status=403)
        if request.method == "DELETE":
            found = request.path.rpartition("/")[2] in self.there
            body = {"kind": "Status", "status": "Success"} if found else self._not_found()
            return web.json_response(body, status=200 if found else 404)
        wanted = request.query.get("fieldSelector", "").removeprefix("metadata.name=")
        if "watch" not in request.query:
            items = [self._object(name) for name in sorted(self.there) if wanted in ("", name)]
            return web.json_response({"metadata": {"resourceVersion": "5"}, "items": items})
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        await response.prepare(request)
        self.watches[wanted] = response
        await asyncio.Event().wait()
        return response

    async def goes(self, name: str, *, watch: str) -> None:
        """It is gone, and the watch of that name says so, or that of all."""
        await eventually(lambda: watch in self.watches)
        await self.watches[watch].write(event("DELETED", self._object(name)))

    @property
    def deletions(self) -> list[str]:
        """Returns the deletion requests."""
        return [target.rpartition("/")[2] for target in self.api.targets if target.startswith("DELETE")]

    @staticmethod
    def _object(name: str) -> dict[str, Any]:
        return {"metadata": {"name": name, "namespace": NAMESPACE, "resourceVersion": "4", "labels": {LABEL: "x"}}}

    @staticmethod
    def _not_found() -> dict[str, Any]:
        return status(404, "NotFound") | {"details": {"name": "a"}}


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    """With two of them."""
    async with scripted_api() as api:
        made = Server(api, {"a", "b"})
        api.answers(made.answer)
        yield made


async def test_each_is_asked_for_once_and_pending_until_it_is_gone(server: Server) -> None:
    """In the order of the alphabet; another release asks again, and what is there no more is not pending."""
    shown: list[tuple[str, ...]] = []
    with capture_logs() as logs:
        await _removed(server, shown)
    assert [line["task"] for line in logs if line["event"] == "deleted"] == [str(B), str(A)]


async def _removed(server: Server, shown: list[tuple[str, ...]]) -> None:
    async with Client(ClusterConfig(server=server.api.url)) as client, asyncio.timeout(90):
        deleting = ObjectDeleter(
            client, ManualClock(NOON), lambda urgent: shown.append(deleting.pending) or _is(urgent)
        )
        await deleting.delete(A, None)
        assert server.deletions == []
        for task in (B, A, B, A):
            await deleting.delete(task, MAPS)
        names = tuple(deletion_text(task.identity) for task in (A, B))
        assert (server.deletions, deleting.pending) == (["b", "a"], names)
        await server.goes("a", watch="a")
        await eventually(lambda: len(shown) == 3)
        assert shown == [names[1:], names, names[1:]]
        server.there = {"b"}
        deleting.forget()
        await deleting.delete(A, MAPS)
        assert (server.deletions, deleting.pending) == (["b", "a", "a"], names[1:])
        await deleting.delete(A, MAPS)
        assert server.deletions == ["b", "a", "a"]
        await deleting.close()
        assert deleting.pending == ()


def _is(urgent: bool) -> None:
    assert urgent, "whoever waits for it hears of it at once"


async def test_what_is_followed_and_why_it_cannot_be(server: Server) -> None:
    """Every kind once; the first list, or the reason for having none, is waited for."""
    changed: list[Identity] = []
    async with Client(ClusterConfig(server=server.api.url)) as client, asyncio.timeout(90):
        tracking = ObjectWatches(client, ManualClock(NOON), changed.append)
        assert not tracking.follows("", "ConfigMap")
        cache = tracking.follow(MAPS)
        assert tracking.follow(MAPS) is cache
        assert tracking.follows("", "ConfigMap")
        await tracking.settled(cache)
        assert cache.synced
        assert changed == [Identity("", "ConfigMap", NAMESPACE, name) for name in ("a", "b")]
        found = tracking.get(Identity("", "ConfigMap", NAMESPACE, "a"))
        assert found is not None
        assert tracking.get(Identity("", "ConfigMap", NAMESPACE, "c")) is None
        assert tracking.get(Identity("", "Secret", NAMESPACE, "a")) is None
        secrets = tracking.follow(SECRETS)
        await tracking.settled(secrets)
        assert not secrets.synced
        (why,) = tracking.errors()
        assert "secrets" in why
        asked = len(server.api.requests)
        tracking.hurry("", "Other")
        tracking.hurry("", "Secret")
        await server.api.until_requests(asked + 1)
        await server.goes("a", watch="")
        await eventually(lambda: len(changed) == 3)
        await tracking.close()
        assert not tracking.follows("", "ConfigMap")
