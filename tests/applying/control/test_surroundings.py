"""Values from the cluster are read only when needed, then used exactly as the cluster reports them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from aiohttp import web
from tests.applying.control.release_folders import config_map, deployment
from tests.applying.control.test_a_run_by_itself import tasks
from tests.kubekit.kube.apiscript import ScriptedApi, event, eventually, scripted_api, status

from kubekit.kube.client import Client
from kubekit.kube.clock import ManualClock
from kubekit.kube.config import ClusterConfig
from runup.applying.control.cluster_values import INFRASTRUCTURE, PROXY, ClusterValuesWatcher, resources_for
from runup.applying.decide.rendering import ClusterValues, Proxy
from runup.process.tls_profile import API_SERVER

OPERATOR = ("openshift-cluster-version-operator", "cluster-version-operator")


async def test_what_is_given_before_a_release_is_known() -> None:
    """The operator's own name and nothing else: no owner, no proxy; nobody is asked, and nobody waits."""
    changes: list[None] = []
    async with Client(ClusterConfig(server="http://127.0.0.1:9")) as client:
        gives = ClusterValuesWatcher(client, ManualClock(), OPERATOR, lambda: changes.append(None))
        assert gives.cluster_values == ClusterValues(operator=OPERATOR)
        await gives.settled()
        assert gives.cluster_values == ClusterValues(operator=OPERATOR)
        gives.wanted((), "uid-of-version")
        assert gives.cluster_values == ClusterValues(operator=OPERATOR, owner_uid="uid-of-version")
        await gives.close()
    assert changes == []


def own(name: str = OPERATOR[1], space: str = OPERATOR[0], kind: str = "Deployment") -> dict[str, Any]:
    """The operator's own Deployment, or what is nearly that."""
    made = deployment(name, "registry.example/release:1")
    made["metadata"]["namespace"] = space
    return made | {"kind": kind}


INJECT = "config.openshift.io/inject"


@pytest.mark.parametrize(
    ("obj", "followed"),
    [
        pytest.param(config_map("a", {}), set(), id="what asks for nothing"),
        pytest.param(
            config_map("a", {}, annotations={f"{INJECT}-proxy": ""}), {PROXY}, id="the proxy, in no container"
        ),
        pytest.param(config_map("a", {}, annotations={f"{INJECT}-tls": "true"}), {API_SERVER}, id="the TLS profile"),
        pytest.param(config_map("a", {}, annotations={f"{INJECT}-tls": "false"}), set(), id="not the TLS profile"),
        pytest.param(own(), {INFRASTRUCTURE}, id="the operator itself"),
        pytest.param(own(kind="DaemonSet"), set(), id="another kind of that name"),
        pytest.param(own(name="other"), set(), id="another Deployment beside it"),
        pytest.param(own(space="other"), set(), id="its namesake elsewhere"),
    ],
)
def test_what_a_release_has_followed(obj: dict[str, Any], followed: set[Any]) -> None:
    """Only what its objects ask for."""
    assert resources_for(tasks(obj), OPERATOR) == followed


class Singletons:
    """An API server with such objects `cluster`; what is added is reported by its watches."""

    def __init__(self, api: ScriptedApi) -> None:
        self.api = api
        self.objects: dict[str, dict[str, Any]] = {}
        self.watches: dict[str, web.StreamResponse] = {}
        api.answers(self.answer)

    async def answer(self, request: web.BaseRequest) -> web.StreamResponse:
        """Lists and watches of single objects; of what is not there nothing is served."""
        kind = request.path.rpartition("/")[2]
        assert request.query["fieldSelector"] == "metadata.name=cluster"
        if kind not in self.objects:
            return web.json_response(status(404, "NotFound"), status=404)
        if "watch" not in request.query:
            items = [self.objects[kind]] if self.objects[kind] else []
            return web.json_response({"metadata": {"resourceVersion": "1"}, "items": items})
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        await response.prepare(request)
        self.watches[kind] = response
        await asyncio.Event().wait()
        return response


@pytest.fixture
async def singletons() -> AsyncIterator[Singletons]:
    """A server that serves none of them."""
    async with scripted_api() as api:
        yield Singletons(api)


def cluster(version: str = "1", **content: Any) -> dict[str, Any]:
    """An object `cluster`."""
    return {"metadata": {"name": "cluster", "resourceVersion": version}, **content}


ALL = tasks(
    own(),
    config_map("a", {}, annotations={f"{INJECT}-proxy": "c"}),
    config_map("b", {}, annotations={f"{INJECT}-tls": "true"}),
)


@pytest.mark.parametrize(
    ("uri", "address"),
    [
        pytest.param("https://api-int.example:6443", ("api-int.example", "6443"), id="host and port"),
        pytest.param("https://api-int.example", ("api-int.example", "443"), id="no port"),
        pytest.param("https://api-int.example:port", ("", ""), id="a port that is none"),
        pytest.param("api-int.example", ("", ""), id="no address"),
        pytest.param(None, ("", ""), id="nothing"),
        pytest.param(7, ("", ""), id="no text"),
    ],
)
async def test_the_internal_address(singletons: Singletons, uri: Any, address: tuple[str, str]) -> None:
    """Host and port where Infrastructure says so, else neither."""
    singletons.objects["infrastructures"] = cluster(status={} if uri is None else {"apiServerInternalURI": uri})
    async with Client(ClusterConfig(server=singletons.api.url)) as client:
        gives = ClusterValuesWatcher(client, ManualClock(), OPERATOR, lambda: None)
        gives.wanted(ALL, "u")
        await gives.settled()
        found = gives.cluster_values
        await gives.close()
    assert (found.internal_host, found.internal_port) == address
    assert (found.proxy, found.tls, found.owner_uid) == (Proxy(), None, "u")


async def test_what_is_given_is_followed(singletons: Singletons) -> None:
    """The first lists are waited for; what changes is reported once, and what changes nothing of it is not."""
    singletons.objects["proxies"] = cluster(status={"httpProxy": "http://p:1", "noProxy": 7})
    singletons.objects["apiservers"] = {}
    changed = asyncio.Event()
    shown: list[str] = []

    def hear() -> None:
        shown.append(gives.cluster_values.proxy.http)
        changed.set()

    async with Client(ClusterConfig(server=singletons.api.url)) as client, asyncio.timeout(90):
        gives = ClusterValuesWatcher(client, ManualClock(), OPERATOR, hear)
        gives.wanted(ALL, "u")
        await gives.settled()
        assert gives.cluster_values.proxy == Proxy(http="http://p:1")
        assert shown == ["http://p:1"]
        await eventually(lambda: "proxies" in singletons.watches)
        changed.clear()
        for version, http in (("2", "http://p:1"), ("3", "http://q:1")):
            new = cluster(version, status={"httpProxy": http})
            await singletons.watches["proxies"].write(event("MODIFIED", new))
        await changed.wait()
        assert shown == ["http://p:1", "http://q:1"]
        # Another release that asks for the same follows nothing twice.
        gives.wanted(ALL, "v")
        assert gives.cluster_values.owner_uid == "v"
        assert gives.cluster_values.proxy == Proxy(http="http://q:1")
        lists = [each for each in singletons.api.targets if "proxies" in each and "watch" not in each]
        assert len(lists) == 1
        await gives.close()
        gives.wanted((), "v")
        assert gives.cluster_values.proxy == Proxy()
