"""CloudEvents of update policies: what a receiver gets, and which servers are refused or given up."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import json
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any

import jsonschema_rs
import pytest
from aiohttp import web
from tests.clocks import Hurried
from tests.kubekit.kube.apiscript import ScriptedApi, reply, scripted_api

from kubekit.api.meta_v1 import Condition, ObjectMeta
from kubekit.kube.client import Client
from kubekit.kube.config import ClusterConfig
from runup.api.update_policy_v1alpha1 import (
    Candidate,
    EventKind,
    Notification,
    RunDecision,
    Step,
    UpdateRun,
    UpdateRunSpec,
    UpdateRunStatus,
)
from runup.rollout.control import notifier
from runup.rollout.control.notifier import Notifier
from runup.rollout.decide.notifications import Notice, event_of, notices_of

NOW = datetime(2026, 12, 15, 22, tzinfo=UTC)
RUN = UpdateRun(
    metadata=ObjectMeta(name="5.1.0-ff4b4c", uid="u"),
    spec=UpdateRunSpec(target=Candidate(version="5.1.0", image="i@sha256:1")),
)
STARTED = Notice(kind="started", reason="Started", message="", at=NOW)
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Receiver:
    """A server that keeps what it gets; the status of its answers is the next one of a list, then 200."""

    def __init__(self) -> None:
        self.bodies: list[bytes] = []
        self.headers: list[dict[str, str]] = []
        self.statuses: list[int] = []
        self.location = ""
        self.wait_s = 0.0
        self.answer = b""
        self.url = ""

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """Answers a request."""
        self.bodies.append(await request.read())
        self.headers.append({"method": request.method, **request.headers})
        if self.wait_s:
            await asyncio.sleep(self.wait_s)
        if request.path == "/redirect":
            return web.Response(status=self.statuses.pop(0), headers={"Location": self.location})
        return web.Response(status=self.statuses.pop(0) if self.statuses else 200, body=self.answer)


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    """A receiver on this machine."""
    made = Receiver()
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", made.handle)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    made.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    yield made
    await runner.cleanup()


@asynccontextmanager
async def sender(api: ScriptedApi | None = None) -> AsyncIterator[Notifier]:
    """A notifier whose waits pass quickly."""
    if api is None:
        async with scripted_api() as made, Client(ClusterConfig(server=made.url)) as client:
            yield Notifier(client, Hurried(200), namespace="runup-update")
    else:
        async with Client(ClusterConfig(server=api.url)) as client:
            yield Notifier(client, Hurried(200), namespace="runup-update")


async def test_sends_a_cloud_event(receiver: Receiver) -> None:
    """By POST in structured JSON, with a stable ID; the required attributes are those of CloudEvents 1.0."""
    async with sender() as sent:
        assert await sent.send(Notification(url=f"{receiver.url}/hook"), "started", event_of(STARTED, RUN, "c"))
    [headers], [body] = receiver.headers, receiver.bodies
    assert (headers["method"], headers["Content-Type"]) == ("POST", "application/cloudevents+json; charset=utf-8")
    assert "Runup-Signature-256" not in headers
    event = json.loads(body)
    assert (event["specversion"], event["type"]) == ("1.0", "dev.runup.update.started")
    assert event["source"] == "/clusters/c/apis/update.runup.dev/v1alpha1/updateruns/5.1.0-ff4b4c"
    assert (event["subject"], event["time"]) == ("5.1.0-ff4b4c", "2026-12-15T22:00:00Z")
    assert event["data"]["image"] == "i@sha256:1"
    assert json.loads(event_of(STARTED, RUN, "c"))["id"] == event["id"]


@pytest.mark.parametrize(
    ("data", "says"),
    [
        pytest.param({"key": base64.b64encode(b"secret").decode()}, "", id="a key"),
        pytest.param({"other": ""}, "Secret update-notify must have the entry key", id="no key"),
        pytest.param({"key": "%%"}, "Secret update-notify: key must be base64", id="not base64"),
    ],
)
async def test_signs_with_the_key_of_the_secret(receiver: Receiver, data: dict[str, str], says: str) -> None:
    """An event that must be signed is not sent without a signature."""
    async with scripted_api() as api, sender(api) as sent:
        for _ in range(3):
            api.answers(reply({"data": data}))
        target = Notification(url=f"{receiver.url}/hook", secret_name="update-notify")
        assert await sent.send(target, "started", b"{}") is not bool(says)
    expected = "sha256=" + hmac.new(b"secret", b"{}", hashlib.sha256).hexdigest()
    assert [each["Runup-Signature-256"] for each in receiver.headers] == ([] if says else [expected])


@pytest.mark.parametrize(
    ("statuses", "tries", "accepted"),
    [
        pytest.param([500, 200], 2, True, id="500 then 200"),
        pytest.param([500, 503, 204], 3, True, id="the third try is accepted"),
        pytest.param([500, 500, 500, 200], 3, False, id="given up after the third try"),
        pytest.param([404, 404, 404], 3, False, id="not found"),
        pytest.param([302, 301, 303], 3, False, id="redirects that change the method are not followed"),
    ],
)
async def test_tries_three_times(receiver: Receiver, statuses: list[int], tries: int, accepted: bool) -> None:
    """Only a status of 2xx accepts an event."""
    receiver.statuses, receiver.location = statuses, "/elsewhere"
    async with sender() as sent:
        assert await sent.send(Notification(url=f"{receiver.url}/redirect"), "done", b"{}") is accepted
    assert len(receiver.bodies) == tries


async def test_a_slow_receiver_is_given_up(receiver: Receiver, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each try has a time limit."""
    monkeypatch.setattr(notifier, "WITHIN_S", 0.05)
    receiver.wait_s = 0.3
    async with sender() as sent:
        assert not await sent.send(Notification(url=f"{receiver.url}/hook"), "done", b"{}")


async def test_a_large_answer_is_not_read(receiver: Receiver) -> None:
    """The status is enough."""
    receiver.answer = b"x" * (8 << 20)
    async with sender() as sent:
        assert await sent.send(Notification(url=f"{receiver.url}/hook"), "done", b"{}")


@pytest.mark.parametrize("status", [307, 308])
async def test_follows_redirects_that_keep_the_method(receiver: Receiver, status: int) -> None:
    """The same document is sent to the new address."""
    receiver.statuses, receiver.location = [status], "/hook"
    async with sender() as sent:
        assert await sent.send(Notification(url=f"{receiver.url}/redirect"), "done", b"{}")
    assert (receiver.bodies, [each["method"] for each in receiver.headers]) == ([b"{}"] * 2, ["POST"] * 2)


@pytest.mark.parametrize(
    ("url", "location"),
    [
        pytest.param("http://169.254.169.254/latest", "", id="the metadata of a cloud"),
        pytest.param("http://receiver.example:{port}/hook", "", id="a name that is this machine"),
        pytest.param("{url}/redirect", "http://169.254.169.254/latest", id="a redirect to the metadata of a cloud"),
        pytest.param("{url}/redirect", "ftp://receiver.example/", id="a redirect to another protocol"),
        pytest.param("{url}/redirect", "{url}/redirect", id="redirects without an end"),
    ],
)
async def test_refuses_addresses(
    receiver: Receiver,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    *,
    url: str,
    location: str,
) -> None:
    """Neither a policy nor a receiver leads the controller to an address that only the controller reaches."""
    resolve = socket.getaddrinfo

    def known(host: Any, *rest: Any, **options: Any) -> Any:
        return resolve("127.0.0.1" if str(host) == "receiver.example" else host, *rest, **options)

    monkeypatch.setattr(socket, "getaddrinfo", known)
    port = receiver.url.rpartition(":")[2]
    receiver.statuses, receiver.location = [307] * 99, location.format(url=receiver.url)
    async with sender() as sent:
        assert not await sent.send(Notification(url=url.format(url=receiver.url, port=port)), "done", b"{}")
    # Three tries, each with ten redirects at most.
    assert len(receiver.bodies) <= 33
    if not location:
        assert receiver.bodies == []
        assert "which is not allowed" in capsys.readouterr().out


async def test_queues_without_waiting(receiver: Receiver) -> None:
    """Kinds that nobody asked for, a second event of a kind within a minute, and what is too large are dropped."""
    targets = [Notification(url=f"{receiver.url}/a", events=("done",)), Notification(url=f"{receiver.url}/b")]
    large = Notice(kind="failed", reason="x" * (70 << 10), message="", at=NOW)
    async with scripted_api() as api, Client(ClusterConfig(server=api.url)) as client:
        clock = Hurried(1)
        sent = Notifier(client, clock, namespace="n")
        task = asyncio.create_task(sent.run())
        for _ in range(3):
            sent.add(targets, RUN, [STARTED, large], cluster_id="c")
        async with asyncio.timeout(10):
            while not receiver.bodies:  # noqa: ASYNC110 (a server gets it)
                await asyncio.sleep(0.01)
        await asyncio.sleep(0.1)
        task.cancel()
    assert [json.loads(body)["type"] for body in receiver.bodies] == ["dev.runup.update.started"]


def status(step: Step = "Waiting", gates: str = "", *decisions: str) -> UpdateRunStatus:
    """The status of a run: the reason of its condition GatesOpen, and its decisions."""
    condition = Condition(type="GatesOpen", status="True" if gates == "AllOpen" else "False", reason=gates)
    return UpdateRunStatus(
        step=step,
        conditions=(condition,) if gates else (),
        decisions=tuple(RunDecision(at=NOW, step=step, reason=reason) for reason in decisions),
    )


@pytest.mark.parametrize(
    ("before", "after", "kinds"),
    [
        pytest.param(status(), status("Waiting", "PreflightRisks"), ["waiting"], id="it waits"),
        pytest.param(status(gates="Held"), status(gates="Held"), [], id="it waits for the same reason"),
        pytest.param(status(gates="Held"), status(gates="ApprovalMissing"), ["approval.needed"], id="approval"),
        pytest.param(status(gates="OutsideWindow"), status(gates="Held"), ["held"], id="held"),
        pytest.param(status(gates="Held"), status("Committing", "AllOpen", "AllOpen"), [], id="all gates are open"),
        pytest.param(status(), status("ControlPlane", "", "Started"), ["started"], id="started"),
        pytest.param(status(), status("ControlPlane", "", "StartedUngated"), ["started"], id="started by a person"),
        pytest.param(
            status("ControlPlane", "", "Started"), status("Soaking", "", "Completed"), ["hop.completed"], id="complete"
        ),
        pytest.param(status(), status("Done", "", "Succeeded"), ["done"], id="done"),
        pytest.param(status(), status("Failed", "", "UnhealthyAfter"), ["failed"], id="failed"),
        pytest.param(status(), status("Superseded", "", "WithdrawnBefore"), ["withdrawn"], id="withdrawn"),
        pytest.param(status(), status("Superseded", "", "NewerRelease"), [], id="a newer release"),
    ],
)
def test_which_events_a_change_causes(before: UpdateRunStatus, after: UpdateRunStatus, kinds: list[EventKind]) -> None:
    """One for each new decision that is reported, and one for a new reason to wait."""
    assert [notice.kind for notice in notices_of(before, after, NOW)] == kinds


# What the schema of the format requires: https://github.com/cloudevents/spec/blob/v1.0.2/cloudevents/formats/cloudevents.json
PUBLISHED: dict[str, Any] = {
    "type": "object",
    "required": ["id", "source", "specversion", "type"],
    "properties": {
        **{name: {"type": "string", "minLength": 1} for name in ("id", "specversion", "type", "datacontenttype")},
        "subject": {"type": ["string", "null"], "minLength": 1},
        "source": {"type": "string", "minLength": 1, "format": "uri-reference"},
        "time": {"type": ["string", "null"], "format": "date-time", "minLength": 1},
    },
    # Attributes have lower-case names without separators: spec.md, "Naming conventions".
    "propertyNames": {"pattern": "^[a-z0-9]+$"},
}


@pytest.mark.parametrize("message", ["", "Nacht\n\x1b[31m", "x" * 5000])
def test_events_have_the_form_of_the_published_schema(message: str) -> None:
    """For each text that a run can have."""
    event = json.loads(event_of(Notice(kind="failed", reason="PoolDegraded", message=message, at=NOW), RUN, "6f1c"))
    validator = jsonschema_rs.validator_for(PUBLISHED, validate_formats=True)
    assert [fault.message for fault in validator.iter_errors(event)] == []
    assert event["specversion"] == "1.0"
