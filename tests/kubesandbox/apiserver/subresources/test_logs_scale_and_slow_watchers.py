"""Logs as they grow, scales of custom resources, watchers that do not read."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import orjson
import pytest

from kubekit.api.scheme import Resource
from kubekit.kube import calls
from kubekit.kube.client import Client
from kubekit.kube.clock import SystemClock
from kubesandbox.apiserver.http.messages import Request, Response
from kubesandbox.apiserver.http.selectors import Selector
from kubesandbox.apiserver.objects import watch_streams as watches
from kubesandbox.apiserver.served_kinds import KindTable
from kubesandbox.apiserver.server import ApiServer
from kubesandbox.apiserver.store import Store
from kubesandbox.apiserver.subresources.pods import PodLogs

JSON = dict[str, Any]
PODS = Resource(group="", version="v1", kind="Pod", plural="pods", namespaced=True)
CRDS = Resource(
    group="apiextensions.k8s.io",
    version="v1",
    kind="CustomResourceDefinition",
    plural="customresourcedefinitions",
    namespaced=False,
)
WIDGETS = Resource(group="example.io", version="v1", kind="Widget", plural="widgets", namespaced=True)
LOG = "/api/v1/namespaces/default/pods/p/log"


@pytest.fixture
async def log_file(server: ApiServer, client: Client) -> Path:
    """The log file of container `c` of a running pod `p`."""
    spec = {"nodeName": "n", "containers": [{"name": "c", "image": "i"}]}
    body = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "default"}, "spec": spec}
    made = await client.send(calls.create(PODS, body))
    file = server.data / "pods" / f"default_p_{made['metadata']['uid']}" / "c.log"
    make_folder(file)
    return file


def make_folder(file: Path) -> None:
    """The folder of a file."""
    file.parent.mkdir(parents=True)


def append(file: Path, data: bytes) -> None:
    """What a container writes."""
    with file.open("ab") as log:
        log.write(data)


async def read_log(server: ApiServer, **query: str) -> Response:
    """The answer of the log handler."""
    kind = server.kinds.find("", "v1", "pods")
    assert kind is not None
    logs = PodLogs(server.rest, server.clock, server.data / "pods")
    request = Request.parse("GET", f"{LOG}?{urlencode(query)}")
    return await logs.serve(request, request.target, kind)


async def next_chunk(stream: AsyncIterator[bytes]) -> bytes:
    """What comes next, nothing at the end."""
    return await anext(stream, b"")


async def test_a_followed_log_ends_with_its_container(server: ApiServer, client: Client, log_file: Path) -> None:
    """The tail first, then what is added, and an end when the container has ended."""
    append(log_file, b"one\ntwo\n")
    stream = (await read_log(server, follow="true", tailLines="1")).stream
    assert stream is not None
    assert await next_chunk(stream) == b"two\n"
    append(log_file, b"three\n")
    assert await next_chunk(stream) == b"three\n"
    ended = {"name": "c", "state": {"terminated": {"exitCode": 0}}}
    await client.send(
        calls.merge_patch(PODS, "p", {"status": {"containerStatuses": [ended]}}, "default", subresource="status")
    )
    assert await next_chunk(stream) == b""


async def test_a_log_may_be_cut(server: ApiServer, log_file: Path) -> None:
    """By lines from its end, by bytes from its beginning."""
    append(log_file, b"one\ntwo\nthree\n")
    assert (await read_log(server, tailLines="2")).body == b"two\nthree\n"
    assert (await read_log(server, limitBytes="5")).body == b"one\nt"


async def test_custom_resources_scale_where_they_say(client: Client) -> None:
    """The paths of the definition are read and written; nothing else changes."""
    node = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    schema = {"type": "object", "properties": {"spec": node, "status": node}}
    scale = {
        "specReplicasPath": ".spec.size.wanted",
        "statusReplicasPath": ".status.seen",
        "labelSelectorPath": ".status.selector",
    }
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    spec = {
        "group": "example.io",
        "scope": "Namespaced",
        "names": {"kind": "Widget", "plural": "widgets"},
        "versions": [{**version, "subresources": {"scale": scale, "status": {}}}],
    }
    await client.send(
        calls.create(CRDS, {"apiVersion": CRDS.api_version, "kind": CRDS.kind,
                            "metadata": {"name": "widgets.example.io"}, "spec": spec})
    )  # fmt: skip
    metadata = {"name": "w", "namespace": "default"}
    body = {"apiVersion": "example.io/v1", "kind": "Widget", "metadata": metadata, "spec": {"size": {"wanted": 2}}}
    await client.send(calls.create(WIDGETS, body))
    patched = await client.send(
        calls.merge_patch(WIDGETS, "w", {"spec": {"replicas": 5}}, "default", subresource="scale")
    )
    assert (patched["kind"], patched["spec"]) == ("Scale", {"replicas": 5})
    left = await client.send(calls.get_raw(WIDGETS, "w", "default"))
    assert left["spec"] == {"size": {"wanted": 5}}


async def test_a_watcher_that_does_not_read_is_cut_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its backlog is bounded: beyond it the stream ends, and the client comes back from the last revision it saw."""
    monkeypatch.setattr(watches, "BACKLOG", 5)
    clock = SystemClock()
    store = Store(tmp_path / "store.db", monotonic=clock.monotonic)
    await store.open()
    kind = KindTable().find("", "v1", "configmaps")
    assert kind is not None
    watch = watches.Watch(
        kind=kind, namespace="", selector=Selector(), since=0, bookmarks=False, initial_bookmark=False, timeout_s=60.0,
        form="x", render=lambda entry, _: entry.raw, nothing={},
    )  # fmt: skip
    stream = watches.Watcher(store, watch, clock.monotonic).run()
    assert await anext(stream) == b""
    for number in range(9):
        obj = {"metadata": {"name": str(number)}}
        await store.put("configmaps", "a", str(number), obj, expected=0, encode=orjson.dumps)
    seen = b"".join([chunk async for chunk in stream])
    assert [orjson.loads(line)["object"]["metadata"]["name"] for line in seen.splitlines()] == []
    await store.close()
