"""Readiness and liveness: how probes are read, how many answers turn the verdict, and what a container feels of it."""

from __future__ import annotations

from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from tests.kubesandbox.node.conftest import AgentCluster, condition, container, runs

from kubesandbox.node import container as probes
from kubesandbox.node.container import Probe, Tally
from kubesandbox.node.podspec import BadPod

JSON = dict[str, Any]


@pytest.mark.parametrize(
    ("written", "url", "port"),
    [
        pytest.param({"httpGet": {"port": 80}}, "http://h:80/", 80, id="a port alone"),
        pytest.param({"httpGet": {"port": "web", "path": "/ok"}}, "http://h:8080/ok", 8080, id="a port by name"),
        pytest.param({"httpGet": {"port": 1, "path": "ok", "scheme": "HTTPS"}}, "https://h:1/ok", 1, id="https"),
        pytest.param({"httpGet": {"port": 1, "host": "other"}}, "http://other:1/", 1, id="another host"),
        pytest.param({"tcpSocket": {"port": 81}}, "", 81, id="a connection"),
    ],
)
def test_where_a_probe_asks(written: JSON, url: str, port: int) -> None:
    """With the defaults of core/v1."""
    found = probes.parse_probe(written, [{"name": "web", "containerPort": 8080}], "h")
    assert found is not None
    assert (found.url, found.port) == (url, port)
    assert (found.period_s, found.timeout_s, found.successes, found.failures) == (10, 1, 1, 3)


@pytest.mark.parametrize("written", [None, {"exec": {"command": ["true"]}}])
def test_a_probe_that_is_not_asked(written: JSON | None) -> None:
    """There is none, or it is of a form that the sandbox does not know."""
    assert probes.parse_probe(written, [], "h") is None


def test_a_port_that_is_none() -> None:
    """It is a mistake in the pod."""
    with pytest.raises(BadPod, match="couldn't find port: web"):
        probes.parse_probe({"httpGet": {"port": "web"}}, [], "h")


@pytest.mark.parametrize(
    ("answers", "verdicts"),
    [
        pytest.param("-+", "-+", id="ready at the first good answer"),
        pytest.param("+--+---+", "++++++-+", id="three bad ones in a row"),
    ],
)
def test_how_many_answers_turn_the_verdict(answers: str, verdicts: str) -> None:
    """By failureThreshold 3 and successThreshold 1."""
    tally, probe, reported = Tally(well=False), Probe(host="h", port=1), ""
    for answer in answers:
        tally = tally.with_answer(probe, well=answer == "+")
        reported += "+" if tally.well else "-"
    assert reported == verdicts


@pytest.mark.parametrize(
    ("status", "answer"),
    [(200, ""), (399, ""), *((code, f"HTTP probe failed with statuscode: {code}") for code in (400, 500))],
)
async def test_what_an_answer_means(status: int, answer: str) -> None:
    """From 200 to 399 it is well."""

    async def handle(_request: web.Request) -> web.Response:
        return web.Response(status=status)

    app = web.Application()
    app.router.add_get("/", handle)
    async with TestServer(app) as server:
        assert server.port is not None
        assert (
            await probes.run_probe(Probe(host="127.0.0.1", port=server.port, url=f"http://127.0.0.1:{server.port}/"))
            == answer
        )
        assert await probes.run_probe(Probe(host="127.0.0.1", port=server.port)) == ""
    assert await probes.run_probe(Probe(host="127.0.0.1", port=server.port)) != ""


class Health:
    """What the test's own server answers for a container that knows nothing of it."""

    def __init__(self) -> None:
        self.status = 200

    async def handle(self, _request: web.Request) -> web.Response:
        """The status that the test has set."""
        return web.Response(status=self.status)


@pytest.mark.slow
async def test_readiness(still: AgentCluster) -> None:
    """Not ready until the probe says so, nor after it failed three times."""
    health = Health()
    app = web.Application()
    app.router.add_get("/", health.handle)
    async with TestServer(app) as server:
        health.status = 503
        probe = {"httpGet": {"port": server.port}, "periodSeconds": 5}
        await still.run("exec sleep 1000", container={"readinessProbe": probe})
        status = await still.until(runs, "it runs")
        assert (container(status)["ready"], condition(status, "Ready")["status"]) == (False, "False")
        assert await still.until_told("Unhealthy") == "Readiness probe failed: HTTP probe failed with statuscode: 503"
        await still.manual.until_sleeping()
        health.status = 200
        await still.manual.advance(1)
        await still.until(lambda found: condition(found, "Ready")["status"] == "True", "it is ready")
        health.status = 503
        for _ in range(3):
            await still.manual.until_sleeping()
            assert container(still.pods.all()[0].status)["ready"]
            await still.manual.advance(5)
        status = await still.until(lambda found: not container(found)["ready"], "it is no longer ready")
    assert (status["phase"], container(status)["restartCount"]) == ("Running", 0)


async def test_liveness(still: AgentCluster) -> None:
    """After three failures it is ended and started again."""
    health = Health()
    health.status = 500
    app = web.Application()
    app.router.add_get("/", health.handle)
    async with TestServer(app) as server:
        probe = {"httpGet": {"port": server.port}}
        await still.run("exec sleep 1000", container={"livenessProbe": probe})
        for _ in range(2):
            await still.manual.until_sleeping()
            await still.manual.advance(10)
        status = await still.until(lambda found: container(found)["restartCount"] == 1 and runs(found), "a restart")
    assert container(status)["lastState"]["terminated"]["exitCode"] == 143
    reported = [message for reason, message in await still.events() if reason == "Killing"]
    assert reported == ["Container main failed liveness probe, will be restarted"]
