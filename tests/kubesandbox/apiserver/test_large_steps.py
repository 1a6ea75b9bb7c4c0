"""Large bodies, objects and answers: the server answers other requests meanwhile, whatever one of them needs."""

from __future__ import annotations

import asyncio
import gc
import json
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
import yaml
from bench.fuzz.changes import drawn
from bench.measure import pace
from bench.real import random_requests
from tests.few_or_many import first_and_rest
from tests.kubesandbox.apiserver.odd_objects import ADMIN, MAX_HELD_S

from kubesandbox.apiserver.http.messages import Request, Response
from kubesandbox.apiserver.server import ApiServer
from kubesandbox.apiserver.status_errors import ApiError

JSON = dict[str, Any]
APPLY, MERGE, STRATEGIC, JSON_PATCH = (
    f"application/{form}" for form in ("apply-patch+yaml", "merge-patch+json", "strategic-merge-patch+json",
                                       "json-patch+json")
)  # fmt: skip
DEFAULT = "/api/v1/namespaces/default"
MAPS, PODS, THINGS = f"{DEFAULT}/configmaps", f"{DEFAULT}/pods", "/apis/x.dev/v1/namespaces/default/things"
TABLE = "application/json;as=Table;g=meta.k8s.io;v=v1"
# A custom kind with free fields.
DEFINITION = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "things.x.dev"},
    "spec": {
        "group": "x.dev",
        "scope": "Namespaced",
        "names": {"plural": "things", "singular": "thing", "kind": "Thing"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
            }
        ],
    },
}


class Watchdog:
    """The longest time between two turns of the event loop, in seconds of a processor, which a busy machine spares."""

    def __init__(self) -> None:
        self.longest_s = 0.0

    async def run(self) -> None:
        """Measures until it is cancelled."""
        last_s = time.process_time()
        while True:
            await asyncio.sleep(0.001)
            now_s = time.process_time()
            self.longest_s, last_s = max(self.longest_s, now_s - last_s), now_s


@asynccontextmanager
async def watched() -> AsyncIterator[Watchdog]:
    """A watchdog of the event loop in the block. The objects of the tests are not collected with the server's."""
    gc.collect()
    gc.freeze()
    watchdog = Watchdog()
    task = asyncio.create_task(watchdog.run())
    await asyncio.sleep(0.01)
    watchdog.longest_s = 0.0
    try:
        yield watchdog
        await asyncio.sleep(0.01)
    finally:
        task.cancel()
        gc.unfreeze()


async def send(
    server: ApiServer, method: str, uri: str, body: object = b"", type_: str = "", accept: str = "application/json"
) -> Response:
    """Sends a request to the server's application as the administrator."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    headers = (("Content-Type", type_ or "application/json"), ("Accept", accept))
    return await server._app.handle(Request.parse(method, uri, headers, data), ADMIN)  # noqa: SLF001 - without a socket


def config_map(keys: int, value: str = "v") -> JSON:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "big"},
        "data": {f"k{number}": value for number in range(keys)},
    }


def pod(containers: int, env: int = 0, **more: object) -> JSON:
    variables = [{"name": f"E{number}", "value": "v"} for number in range(env)]
    listed = [{"name": f"c{number}", "image": "i", **more} for number in range(containers)]
    listed[0]["env"] = variables
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "big"}, "spec": {"containers": listed}}


def service(ports: int) -> JSON:
    listed = [{"port": number % 65_000 + 1, "name": f"p{number}"} for number in range(ports)]
    return {"metadata": {"name": "big"}, "spec": {"ports": listed}}


def aliases(levels: int) -> bytes:
    """A thing of 10 to the power of `levels` values, which aliases represent; go-yaml allows as many as 400,000."""
    lines = [b"apiVersion: x.dev/v1\nkind: Thing\nmetadata: {name: big}\nl0: &l0 [1,2,3,4,5,6,7,8,9,0]"]
    lines += [b"l%d: &l%d [%b]" % (at, at, b",".join([b"*l%d" % (at - 1)] * 10)) for at in range(1, levels)]
    # The share of aliases must not exceed 99 percent.
    return b"\n".join((*lines, b"own: [%b]" % b",".join([b"1"] * (10**levels // 60))))


def doubled(times: int) -> list[JSON]:
    """A patch whose copies make an object of two to the power of `times` values."""
    first = {"op": "add", "path": "/l", "value": {"a": {"b": 1}}}
    return [first, *({"op": "copy", "from": "/l/a", "path": f"/l/a/n{number}"} for number in range(times))]


PACE_OF_LIMITS = 0.113


def row(
    name: str, code: int, method: str, uri: str, body: Callable[[], object], type_: str = "", *, slow: bool = False
) -> Any:
    return pytest.param(code, method, uri, body, type_, id=name, marks=[pytest.mark.slow] if slow else [])


def slowness() -> float:
    """Returns how much slower this machine is now than that of docs/explanation/limits.md, 1 at least."""
    return max(1.0, pace() / PACE_OF_LIMITS)


ROWS = [
    row("a ConfigMap of many keys", 201, "POST", MAPS, lambda: config_map(60_000)),
    row("its largest", 201, "POST", MAPS, lambda: config_map(100_000), slow=True),
    row("applied", 201, "PATCH", f"{MAPS}/big?fieldManager=m", lambda: config_map(60_000), APPLY),
    row("its largest, applied", 201, "PATCH", f"{MAPS}/big?fieldManager=m", lambda: config_map(100_000), APPLY,
        slow=True),
    row("as YAML", 201, "POST", MAPS, lambda: yaml.safe_dump(config_map(10_000)).encode(), "application/yaml"),
    row("nested YAML", 400, "POST", MAPS, lambda: b"[" * 20_000, "application/yaml"),
    row("broken JSON", 400, "POST", MAPS, lambda: json.dumps(config_map(100_000)).encode()[:-2]),
    row("a pod of many variables", 201, "POST", PODS, lambda: pod(1, env=25_000)),
    row("its largest", 201, "POST", PODS, lambda: pod(1, env=90_000), slow=True),
    row("its largest, applied", 201, "PATCH", f"{PODS}/big?fieldManager=m", lambda: pod(1, env=90_000), APPLY,
        slow=True),
    row("a pod of many containers", 201, "POST", PODS, lambda: pod(6_000)),
    row("its largest", 201, "POST", PODS, lambda: pod(60_000), slow=True),
    row("without names", 422, "POST", PODS, lambda: {"metadata": {"name": "a"}, "spec": {"containers": [{}] * 10_000}}),
    row("its largest without names", 422, "POST", PODS,
        lambda: {"metadata": {"name": "a"}, "spec": {"containers": [{}] * 500_000}}, slow=True),
    row("ports of one name", 201, "POST", PODS,
        lambda: pod(20_000, ports=[{"containerPort": 80, "name": "p"}]), slow=True),
    row("faults that each show all scopes", 422, "POST", f"{DEFAULT}/resourcequotas",
        lambda: {"metadata": {"name": "big"}, "spec": {"scopes": [f"s{number}" for number in range(3_000)]}}),
    row("a Service of many ports", 201, "POST", f"{DEFAULT}/services", lambda: service(10_000)),
    row("a custom object", 201, "POST", THINGS,
        lambda: {"apiVersion": "x.dev/v1", "kind": "Thing", "metadata": {"name": "big"},
                 "l": [{"a": number} for number in range(60_000)]}),
    row("aliases", 201, "POST", THINGS, lambda: aliases(5), "application/yaml"),
    row("aliases, applied", 201, "PATCH", f"{THINGS}/big?fieldManager=m", lambda: aliases(5), APPLY),
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(("code", "method", "uri", "body", "type_"), first_and_rest(ROWS, 3))
async def test_a_large_body_does_not_hold_the_event_loop(
    server: ApiServer, code: int, method: str, uri: str, body: Callable[[], object], type_: str
) -> None:
    """The upper bound of a request's share of the event loop is that of the tests of odd values."""
    assert (await send(server, "POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", DEFINITION)).status
    data = made if isinstance(made := body(), bytes) else json.dumps(made).encode()
    async with watched() as watchdog:
        assert (await send(server, method, uri, data, type_)).status == code
    assert watchdog.longest_s < MAX_HELD_S * slowness()


REQUESTS = [
    row("read as YAML", 200, "GET", f"{MAPS}/big", lambda: b""),
    row("a label", 200, "PATCH", f"{MAPS}/big", lambda: {"metadata": {"labels": {"a": "b"}}}, MERGE),
    row("replaced", 200, "PUT", f"{MAPS}/big", lambda: config_map(30_000, "w")),
    row("merged", 200, "PATCH", f"{MAPS}/big", lambda: {"data": config_map(30_000, "w")["data"]}, MERGE),
    row("merged by strategy", 200, "PATCH", f"{MAPS}/big", lambda: {"data": {"a": "b"}}, STRATEGIC),
    row("tested again and again", 422, "PATCH", f"{MAPS}/big",
        lambda: [{"op": "test", "path": "", "value": {"a": "b"}}] * 9_000, JSON_PATCH),
    row("applied against its owner", 409, "PATCH", f"{MAPS}/big?fieldManager=m", lambda: config_map(9_000, "w"), APPLY),
    row("containers merged by strategy", 422, "PATCH", f"{PODS}/small",
        lambda: {"spec": {"containers": pod(6_000)["spec"]["containers"]}}, STRATEGIC),
    row("copies", 422, "PATCH", f"{THINGS}/small", lambda: doubled(40), JSON_PATCH),
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(("code", "method", "uri", "body", "type_"), first_and_rest(REQUESTS, 2))
async def test_a_large_object_does_not_hold_the_event_loop(
    server: ApiServer, code: int, method: str, uri: str, body: Callable[[], object], type_: str
) -> None:
    """Small requests for large objects, and those that make small objects large."""
    small = {"metadata": {"name": "small"}}
    thing = {"apiVersion": "x.dev/v1", "kind": "Thing", **small}
    for path, obj in (
        ("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", DEFINITION),
        (MAPS, config_map(30_000)),
        (PODS, {**pod(1), **small}),
        (THINGS, thing),
    ):
        assert (await send(server, "POST", path, obj)).status == 201
    data = made if isinstance(made := body(), bytes) else json.dumps(made).encode()
    async with watched() as watchdog:
        answer = await send(server, method, uri, data, type_, "application/yaml" if method == "GET" else TABLE)
        assert answer.status == code
    assert watchdog.longest_s < MAX_HELD_S * slowness()


async def test_a_write_during_a_large_one_is_kept(server: ApiServer) -> None:
    """The large write was computed from the state before: it is computed again, and the object has both changes."""
    await send(server, "POST", MAPS, {"metadata": {"name": "big"}})
    large = asyncio.create_task(send(server, "PATCH", f"{MAPS}/big", {"data": config_map(20_000)["data"]}, MERGE))
    for number in range(3):
        await asyncio.sleep(0.05)
        labels = {"metadata": {"labels": {f"l{number}": "v"}}}
        assert (await send(server, "PATCH", f"{MAPS}/big", labels, MERGE)).status == 200
    assert (await large).status == 200
    stored = json.loads((await send(server, "GET", f"{MAPS}/big")).body)
    assert (len(stored["data"]), len(stored["metadata"]["labels"])) == (20_000, 3)


async def test_a_deletion_during_a_large_write_is_final(server: ApiServer) -> None:
    await send(server, "POST", MAPS, config_map(20_000))
    large = asyncio.create_task(send(server, "PUT", f"{MAPS}/big", config_map(20_000, "w")))
    await asyncio.sleep(0.05)
    assert (await send(server, "DELETE", f"{MAPS}/big")).status == 200
    assert (await large).status in {200, 404}  # 200 if it came first
    assert (await send(server, "GET", f"{MAPS}/big")).status == 404


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
async def test_bodies_of_the_fuzzer_do_not_hold_the_event_loop(server: ApiServer, seed: int) -> None:
    """The requests that `python -m bench random_requests` sends to both servers."""
    held = []
    async with watched() as watchdog:
        for index in range(500):
            made = random_requests.make(drawn("requests", seed, index), ("default", "other"))
            headers = [(name, value.decode("latin-1")) for name, value in made.headers if name != "Impersonate-User"]
            try:
                request = Request.parse(made.method, made.uri.decode("latin-1"), headers, made.body)
            except ApiError:
                continue
            if request.target.verb == "watch":
                continue
            # The watchdog measures the request alone: it has a turn before and after.
            await asyncio.sleep(0.01)
            watchdog.longest_s = 0.0
            await server._app.handle(request, ADMIN)  # noqa: SLF001 - without a socket
            await asyncio.sleep(0.01)
            if watchdog.longest_s > MAX_HELD_S:
                held.append((watchdog.longest_s, made))
    assert not held
