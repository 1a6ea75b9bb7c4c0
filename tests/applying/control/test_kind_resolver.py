"""By which resource a kind is reached: as the release defines it, else as the server says, who is asked once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from aiohttp import web
from tests.applying.control.release_folders import config_map, definition
from tests.applying.control.test_a_run_by_itself import tasks
from tests.kubekit.kube.apiscript import ScriptedApi, failure, reply, scripted_api

from kubekit.api.scheme import Resource
from kubekit.kube.api_errors import KubeError
from kubekit.kube.client import Client
from kubekit.kube.config import ClusterConfig
from runup.applying.control.object_requests import ResourceDiscovery, kinds_of_definition

CORE = [
    {"name": "configmaps", "kind": "ConfigMap", "namespaced": True},
    {"name": "namespaces", "kind": "Namespace", "namespaced": False},
    {"name": "namespaces/status", "kind": "Namespace", "namespaced": False},
]


@pytest.fixture
async def api() -> AsyncIterator[ScriptedApi]:
    """A server that serves the core group, and `apps` as it is reported."""
    async with scripted_api() as found:
        found.answers(reply({"resources": CORE}))
        yield found


async def test_a_kind_is_asked_for_once_however_many_want_to_know(api: ScriptedApi) -> None:
    """Resolves a kind and whether its objects have namespaces; ignores subresources. `forget` queries again."""
    async with Client(ClusterConfig(server=api.url)) as client:
        kinds = ResourceDiscovery(client)
        several = await asyncio.gather(*(kinds.resource("v1", kind) for kind in ("ConfigMap", "Namespace", "Other")))
        assert several == [
            Resource(group="", version="v1", kind="ConfigMap", plural="configmaps", namespaced=True),
            Resource(group="", version="v1", kind="Namespace", plural="namespaces", namespaced=False),
            None,
        ]
        assert api.targets == ["GET /api/v1"]
        kinds.forget("v1")
        kinds.forget("v1")
        await kinds.resource("v1", "ConfigMap")
    assert api.targets == ["GET /api/v1"] * 2


async def test_a_group_that_nobody_serves_has_no_kinds(api: ScriptedApi) -> None:
    """That is an answer, which is kept."""
    api.answers(failure(404, "NotFound"))
    async with Client(ClusterConfig(server=api.url)) as client:
        kinds = ResourceDiscovery(client)
        for _ in range(2):
            assert await kinds.resource("example.org/v1", "Widget") is None
    assert api.targets == ["GET /apis/example.org/v1"]


async def test_a_server_that_could_not_say_is_asked_again(api: ScriptedApi) -> None:
    """The failure is the caller's, and not remembered."""
    api.answers(failure(403, "Forbidden"), reply({"resources": None}), reply({"resources": CORE}))
    async with Client(ClusterConfig(server=api.url)) as client:
        kinds = ResourceDiscovery(client)
        with pytest.raises(KubeError):
            await kinds.resource("v1", "ConfigMap")
        assert await kinds.resource("v1", "ConfigMap") is None
        kinds.forget("v1")
        assert await kinds.resource("v1", "ConfigMap") is not None


async def test_who_gives_up_does_not_take_the_answer_from_others(api: ScriptedApi) -> None:
    """One of two who wait is cancelled."""
    going = asyncio.Event()

    async def late(_: web.BaseRequest) -> web.StreamResponse:
        await going.wait()
        return web.json_response({"resources": CORE})

    api.answers(late)
    async with Client(ClusterConfig(server=api.url)) as client:
        kinds = ResourceDiscovery(client)
        one, other = (asyncio.create_task(kinds.resource("v1", "ConfigMap")) for _ in range(2))
        await api.until_requests(1)
        one.cancel()
        await asyncio.gather(one, return_exceptions=True)
        going.set()
        assert await other is not None
    assert one.cancelled()


async def test_what_the_release_defines_is_known_before_anybody_serves_it(api: ScriptedApi) -> None:
    """Until another release is applied; nobody is asked."""
    async with Client(ClusterConfig(server=api.url)) as client:
        kinds = ResourceDiscovery(client)
        kinds.define(task.manifest for task in tasks(config_map("a", {}), definition("Widget", "widgets")))
        found = await kinds.resource("example.org/v1", "Widget")
        assert found == Resource(group="example.org", version="v1", kind="Widget", plural="widgets", namespaced=True)
        assert [kinds.defines(*each) for each in (("example.org", "Widget"), ("example.org", "Other"), ("", ""))] == [
            True,
            False,
            False,
        ]
        kinds.define([])
        assert not kinds.defines("example.org", "Widget")
    assert api.targets == []


NAMES = {"kind": "Widget", "plural": "widgets"}
SERVED = {"name": "v1", "served": True}


@pytest.mark.parametrize(
    ("spec", "found"),
    [
        pytest.param(
            {"group": "g", "scope": "Cluster", "names": NAMES, "versions": [SERVED]},
            {("g", "v1", "Widget"): False},
            id="of the whole cluster",
        ),
        pytest.param(
            {"group": "g", "scope": "Namespaced", "names": NAMES, "versions": [SERVED, SERVED | {"name": "v2"}]},
            {("g", "v1", "Widget"): True, ("g", "v2", "Widget"): True},
            id="two versions",
        ),
        pytest.param(
            {"group": "g", "names": NAMES, "versions": [{"name": "v1"}, {"served": True}, "v3"]},
            {},
            id="versions that are not served, have no name, or are none",
        ),
        pytest.param({"group": "g", "names": None, "versions": None}, {}, id="names and versions of nothing"),
        pytest.param(None, {}, id="no spec"),
    ],
)
def test_what_a_definition_defines(spec: dict[str, Any] | None, found: dict[tuple[str, str, str], bool]) -> None:
    """Each version that is served."""
    assert {key: each.namespaced for key, each in kinds_of_definition({"spec": spec}).items()} == found
