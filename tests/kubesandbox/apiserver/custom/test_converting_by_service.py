"""A conversion webhook that is a Service: the server asks a ready pod behind it, under the Service's name."""

from __future__ import annotations

import base64
import json
import ssl
from collections.abc import AsyncIterator
from contextlib import aclosing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from tests.contract.test_conversion_webhooks import answer

from kubekit.api.scheme import Resource
from kubekit.kube import calls, config
from kubekit.kube.api_errors import ApiError
from kubekit.kube.client import Client
from kubekit.kube.request import Call, Request
from kubesandbox.apiserver.access import certs
from kubesandbox.apiserver.server import ApiServer

JSON = dict[str, Any]
CRDS = Resource(
    group="apiextensions.k8s.io",
    version="v1",
    kind="CustomResourceDefinition",
    plural="customresourcedefinitions",
    namespaced=False,
)
SERVICES = Resource(group="", version="v1", kind="Service", plural="services", namespaced=True)
PODS = Resource(group="", version="v1", kind="Pod", plural="pods", namespaced=True)
SLICES = Resource(
    group="discovery.k8s.io", version="v1", kind="EndpointSlice", plural="endpointslices", namespaced=True
)
EXTERNAL = {
    "metadata": {"name": "hook", "namespace": "default"},
    "spec": {"type": "ExternalName", "externalName": "127.0.0.1.nip.invalid"},
}
OLD, NEW = (
    Resource(group="x.example", version=version, kind="Widget", plural="widgets", namespaced=False)
    for version in ("v1", "v2")
)
NAME = "hook.default.svc"
READY = {"podIP": "127.0.0.1", "conditions": [{"type": "Ready", "status": "True"}]}


def definition(bundle: bytes) -> JSON:
    """A kind stored in v1."""
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    versions = [
        {"name": name, "served": True, "storage": name == "v1", "schema": {"openAPIV3Schema": schema}}
        for name in ("v1", "v2")
    ]
    client = {"service": {"namespace": "default", "name": "hook", "path": "/convert"}}
    client["caBundle"] = base64.b64encode(bundle).decode()  # type: ignore[assignment]
    webhook = {"clientConfig": client, "conversionReviewVersions": ["v1"]}
    spec = {"group": "x.example", "scope": "Cluster", "names": {"plural": "widgets", "kind": "Widget"}}
    spec |= {"versions": versions, "conversion": {"strategy": "Webhook", "webhook": webhook}}  # type: ignore[dict-item]
    return {"metadata": {"name": "widgets.x.example"}, "spec": spec}


@pytest.fixture
async def port(tmp_path: Path) -> AsyncIterator[tuple[int, bytes]]:
    """A webhook on loopback whose certificate is for the Service's name alone; its port, and its authority."""
    now = datetime.now(UTC)
    authority = certs.new_ca(now)
    pair = certs.issue_server(authority, now, [NAME])
    (tmp_path / "pair.pem").write_bytes(pair.cert + pair.key)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(tmp_path / "pair.pem")

    async def convert(request: web.Request) -> web.Response:
        return web.json_response(answer(await request.json()))

    app = web.Application()
    app.router.add_post("/convert", convert)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context).start()
    yield runner.addresses[0][1], authority.cert
    await runner.cleanup()


@pytest.fixture
async def client(tmp_path: Path, port: tuple[int, bytes]) -> AsyncIterator[Client]:
    """A server with such a kind and one object of it."""
    async with ApiServer(tmp_path / "data") as server, Client(config.load(str(server.kubeconfig))) as made:
        await made.send(calls.create(CRDS, definition(port[1])))
        await made.send(
            calls.create(
                OLD, {"apiVersion": "x.example/v1", "kind": "Widget", "metadata": {"name": "a"}, "spec": {"size": 1}}
            )
        )
        yield made


def service(target: int | str, *, at: int = 443) -> JSON:
    """The Service of the definition."""
    ports = [{"port": at, "targetPort": target}]
    return {"metadata": {"name": "hook", "namespace": "default"}, "spec": {"selector": {"app": "hook"}, "ports": ports}}


def hook_pod(name: str, port: int, app: str = "hook") -> JSON:
    """A pod that may be behind it."""
    containers = [{"name": "c", "image": "i:1", "ports": [{"name": "hooks", "containerPort": port}]}]
    metadata = {"name": name, "namespace": "default", "labels": {"app": app}}
    return {"metadata": metadata, "spec": {"containers": containers}}


async def _run(client: Client, body: JSON, status: JSON) -> None:
    await client.send(calls.create(PODS, body))
    name = body["metadata"]["name"]
    await client.send(calls.merge_patch(PODS, name, {"status": status}, namespace="default", subresource="status"))


@pytest.mark.parametrize(
    "named", [pytest.param(True, id="a port by its name"), pytest.param(False, id="by its number")]
)
async def test_a_ready_pod_is_asked(client: Client, port: tuple[int, bytes], named: bool) -> None:
    """Not one that is not ready, not another's."""
    await client.send(calls.create(SERVICES, service("hooks" if named else port[0])))
    await _run(client, hook_pod("a-starting", 1), {"podIP": "127.0.0.1"})
    await _run(client, hook_pod("b-other", 1, app="other"), READY)
    await _run(client, hook_pod("c-ready", port[0]), READY)
    found = await client.send(calls.get_raw(NEW, "a"))
    assert (found["apiVersion"], found["spec"]) == ("x.example/v2", {"length": 1})


async def test_an_endpoint_is_asked(client: Client, port: tuple[int, bytes]) -> None:
    """A Service without a selector is reached at a ready address of its EndpointSlices, as on a real cluster."""
    body = service(1)
    del body["spec"]["selector"]
    await client.send(calls.create(SERVICES, body))
    metadata = {"name": "hook-1", "namespace": "default", "labels": {"kubernetes.io/service-name": "hook"}}
    endpoints = [
        {"addresses": ["10.0.0.1"], "conditions": {"ready": False}},
        {"addresses": ["127.0.0.1"], "conditions": {"ready": True}},
    ]
    made = {"metadata": metadata, "addressType": "IPv4", "endpoints": endpoints, "ports": [{"port": port[0]}]}
    await client.send(calls.create(SLICES, made))
    found = await client.send(calls.get_raw(NEW, "a"))
    assert found["spec"] == {"length": 1}


@pytest.mark.parametrize(
    ("services", "pods", "shown"),
    [
        pytest.param([], [], 'service "hook" not found', id="no Service"),
        pytest.param([service(1, at=8443)], [], 'no service port 443 found for service "hook"', id="another port"),
        pytest.param([service(1)], [], 'no endpoints available for service "hook"', id="no pod"),
        pytest.param([EXTERNAL], [], "127.0.0.1.nip.invalid:443", id="an external name that does not exist"),
        pytest.param(
            [service(1)],
            [hook_pod("a", 1)],
            "dial tcp 127.0.0.1:1: connect: connection refused",
            id="a pod that is deaf",
        ),
    ],
)
async def test_nobody_is_behind_it(client: Client, services: list[JSON], pods: list[JSON], shown: str) -> None:
    """The read says whom the server asked, and what is missing."""
    for each in services:
        await client.send(calls.create(SERVICES, each))
    for each in pods:
        await _run(client, each, READY)
    with pytest.raises(ApiError) as caught:
        await client.send(calls.get_raw(NEW, "a"))
    message = str(caught.value)
    assert shown in message
    assert "conversion webhook for x.example/v1, Kind=Widget failed: Post " in message
    await client.send(calls.get_raw(OLD, "a"))


async def test_a_watch_ends_where_nobody_converts(client: Client) -> None:
    """With an error that says why: what a client does not hear of, it must not take for nothing."""
    request = Request(method="GET", path="/apis/x.example/v2/widgets", query=(("watch", "true"),))
    async with aclosing(client.stream(Call(request, json.loads))) as lines:
        (event,) = [line async for line in lines]
    assert (event["type"], event["object"]["code"]) == ("ERROR", 500)
    assert 'service "hook" not found' in event["object"]["message"]
