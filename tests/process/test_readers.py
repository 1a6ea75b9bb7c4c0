"""Whoever reads metrics is asked about once a while; readiness costs a question every few seconds and no more."""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from structlog.testing import capture_logs
from tests.kubekit.kube.apiscript import ScriptedApi, eventually, failure, reply, scripted_api
from tests.process.tls_world import answered, pair

from kubekit.api.core_v1 import Node
from kubekit.error_types import Terminal
from kubekit.kube.cache import Cache
from kubekit.kube.client import Client
from kubekit.kube.clock import ManualClock, SystemClock
from kubekit.kube.config import ClusterConfig
from kubesandbox.apiserver.access.certs import issue_server, new_ca
from runup.applying.control import object_watches
from runup.clusterversion.control.metrics import Metrics
from runup.process import endpoint as endpoint_module
from runup.process import serving_tls
from runup.process.endpoint import Endpoint, MetricsAuthorizer, Refusal, host_and_port
from runup.process.process_server import ProcessOptions, Readiness, serve_until_done
from runup.process.serving_tls import ServingCertificate, TlsSettings, profile_of_flags
from runup.process.tls_profile import TlsProfile


class Reviews:
    """An API server that knows every token but one, and lets its owners read as it is reported."""

    def __init__(self, api: ScriptedApi) -> None:
        self.api = api
        self.access: dict[str, bool] = {"allowed": True}
        self.hold = asyncio.Event()
        self.hold.set()
        self.open = self.most = 0
        self.asked: list[dict[str, Any]] = []
        api.answers(self.answer)

    async def answer(self, request: web.BaseRequest) -> web.StreamResponse:
        """TokenReview and SubjectAccessReview."""
        self.open += 1
        self.most = max(self.most, self.open)
        await self.hold.wait()
        self.open -= 1
        if request.path == "/version":
            return web.json_response({})
        body = json.loads(await request.read())
        self.asked.append(body["spec"])
        if request.path.endswith("/tokenreviews"):
            known = body["spec"]["token"] != "made-up"
            return web.json_response({"status": {"authenticated": known, "user": {"username": "ann"}}})
        return web.json_response({"status": self.access})


@pytest.fixture
async def reviews() -> AsyncIterator[Reviews]:
    """One that lets everybody read."""
    async with scripted_api() as api:
        yield Reviews(api)


NEEDED = Refusal(401, "a bearer token is needed")
UNKNOWN = Refusal(401, "the API server does not know this token")
NOT_ALLOWED = Refusal(403, 'ann may not get the non-resource URL "/metrics"')


@pytest.mark.parametrize(
    ("header", "access", "refusal", "asked"),
    [
        pytest.param("Bearer t", {"allowed": True}, None, 2, id="allowed"),
        pytest.param("bearer  t ", {"allowed": True}, None, 2, id="however it is written"),
        pytest.param("Bearer t", {"allowed": False}, NOT_ALLOWED, 2, id="not allowed"),
        pytest.param(
            "Bearer t", {"allowed": True, "denied": True}, NOT_ALLOWED, 2, id="denied by one, allowed by another"
        ),
        pytest.param("Bearer made-up", {"allowed": True}, UNKNOWN, 1, id="nobody's token"),
        pytest.param("Bearer  ", {"allowed": True}, NEEDED, 0, id="no token"),
        pytest.param("Basic t", {"allowed": True}, NEEDED, 0, id="another scheme"),
        pytest.param("", {"allowed": True}, NEEDED, 0, id="nothing"),
    ],
)
async def test_who_may_read(
    reviews: Reviews, header: str, access: dict[str, bool], refusal: Refusal | None, asked: int
) -> None:
    """In as few questions as that takes."""
    reviews.access = access
    async with Client(ClusterConfig(server=reviews.api.url)) as client:
        assert await MetricsAuthorizer(client, ManualClock()).refusal(header, "/metrics") == refusal
    assert len(reviews.api.requests) == asked


@pytest.mark.parametrize(
    ("allowed", "lasts_s"),
    [pytest.param(True, 60, id="a right is gone within a minute"), pytest.param(False, 10, id="a refusal sooner")],
)
async def test_how_long_an_answer_counts(reviews: Reviews, allowed: bool, lasts_s: float) -> None:
    """For that token and that path alone."""
    reviews.access = {"allowed": allowed}
    clock = ManualClock()
    async with Client(ClusterConfig(server=reviews.api.url)) as client:
        readers = MetricsAuthorizer(client, clock)

        async def asks(token: str = "t", path: str = "/metrics") -> bool:
            before = len(reviews.api.requests)
            assert (await readers.refusal(f"Bearer {token}", path) is None) is allowed
            return len(reviews.api.requests) > before

        assert await asks()
        clock.jump(lasts_s - 0.5)
        assert not await asks()
        assert await asks("u")
        assert await asks(path="/other")
        clock.jump(0.5)
        assert await asks()
        assert not await asks()


async def test_the_oldest_answers_are_dropped(reviews: Reviews) -> None:
    """Of more than 256; what was asked for again is young."""
    async with Client(ClusterConfig(server=reviews.api.url)) as client:
        clock = ManualClock()
        readers = MetricsAuthorizer(client, clock)
        for number in range(256):
            await readers.refusal(f"Bearer {number}", "/metrics")
        clock.jump(60)
        await readers.refusal("Bearer 0", "/metrics")
        await readers.refusal("Bearer one more", "/metrics")
        before = len(reviews.api.requests)
        await readers.refusal("Bearer 0", "/metrics")
        assert len(reviews.api.requests) == before
        assert readers.cached == 256
        await readers.refusal("Bearer and another", "/metrics")
        assert readers.cached == 256


async def test_four_are_asked_about_at_a_time(reviews: Reviews) -> None:
    """Whoever makes up tokens does not fill the API server's queues."""
    reviews.hold.clear()
    async with Client(ClusterConfig(server=reviews.api.url)) as client, asyncio.timeout(90):
        readers = MetricsAuthorizer(client, ManualClock())
        asking = [asyncio.create_task(readers.refusal(f"Bearer {number}", "/metrics")) for number in range(12)]
        await eventually(lambda: reviews.open == 4)
        reviews.hold.set()
        assert await asyncio.gather(*asking) == [None] * 12
    assert reviews.most == 4


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        pytest.param(failure(403, "Forbidden", "you may not ask"), "you may not ask", id="we may not ask"),
        pytest.param(reply([]), "", id="an answer that nobody can read"),
        pytest.param(None, "not done within 8 s", id="no answer in time"),
    ],
)
async def test_what_could_not_be_asked_lets_nobody_in(reviews: Reviews, answer: Any, said: str) -> None:
    """503 with the reason, which is not kept; Prometheus would have given up after ten seconds."""
    clock = ManualClock()
    if answer is None:
        reviews.hold.clear()
    else:
        reviews.api.answers(answer)
    async with Client(ClusterConfig(server=reviews.api.url)) as client, asyncio.timeout(90):
        readers = MetricsAuthorizer(client, clock)
        asking = asyncio.create_task(readers.refusal("Bearer t", "/metrics"))
        if answer is None:
            await reviews.api.until_requests(1)
            await clock.advance(7.5)
            assert not asking.done()
            await clock.advance(0.5)
        refusal = await asking
    assert refusal is not None
    assert refusal.status == 503
    assert refusal.message.startswith("the API server could not be asked who may read this: ")
    assert said in refusal.message
    assert readers.cached == 0


async def test_the_api_server_is_asked_every_five_seconds_at_most(reviews: Reviews) -> None:
    """From a process's first moment on, and what it said counts meanwhile."""
    clock, cache = ManualClock(), Cache(Node)
    cache.replace([], "1")
    async with Client(ClusterConfig(server=reviews.api.url)) as client:
        readiness = Readiness(client, clock, str, [cache])
        for after_s, asked in ((0, 1), (4.5, 1), (0.5, 2), (1, 2)):
            clock.jump(after_s)
            assert await readiness.why_not() == ""
            assert len(reviews.api.requests) == asked
        reviews.api.answers(failure(403, "Forbidden", "not you"))
        clock.jump(4)
        for _ in range(2):
            assert await readiness.why_not() == "the API server does not answer: not you"
        assert len(reviews.api.requests) == 3
        clock.jump(5)
        reviews.api.answers(reply({}))
        assert await readiness.why_not() == ""


async def test_a_probe_has_its_answer_within_a_second(reviews: Reviews) -> None:
    """Whatever the API server does."""
    clock = ManualClock()
    reviews.hold.clear()
    async with Client(ClusterConfig(server=reviews.api.url)) as client, asyncio.timeout(90):
        asking = asyncio.create_task(Readiness(client, clock, str, []).why_not())
        await reviews.api.until_requests(1)
        await clock.advance(0.75)
        assert not asking.done()
        await clock.advance(0.05)
        assert await asking == "the API server does not answer: not done within 0.8 s"


async def test_what_a_process_serves_hangs_on_its_flags(tmp_path: Path, reviews: Reviews) -> None:
    """Nothing where it listens nowhere; metrics for everybody where that was said; all of it ends with the block."""
    clock = SystemClock()
    async with Client(ClusterConfig(server=reviews.api.url)) as client, aiohttp.ClientSession() as session:
        for options, refused in (
            (ProcessOptions(), None),
            (ProcessOptions(listen="127.0.0.1:0"), 401),
            (ProcessOptions(listen="127.0.0.1:0", metrics_auth=False), 200),
        ):
            endpoint = Endpoint(Metrics())
            async with serve_until_done(
                endpoint, options, client, clock, lacking=lambda: "pods are not listed yet", caches=()
            ):
                assert bool(endpoint.address) is (refused is not None)
                if refused is not None:
                    async with session.get(f"{endpoint.address}/metrics") as response:
                        assert response.status == refused
                        assert response.headers.get("WWW-Authenticate") == ("Bearer" if refused == 401 else None)
                    async with session.get(f"{endpoint.address}/readyz") as response:
                        assert (response.status, await response.text()) == (503, "pods are not listed yet\n")
            if refused is not None:
                with pytest.raises(aiohttp.ClientConnectionError):
                    await session.get(f"{endpoint.address}/healthz")


@pytest.mark.parametrize(
    ("listen", "place"),
    [
        pytest.param("127.0.0.1:9099", ("127.0.0.1", 9099), id="an address"),
        pytest.param("[::1]:0", ("::1", 0), id="an address of IPv6"),
        pytest.param(":65535", ("0.0.0.0", 65535), id="all addresses, the last port"),
    ],
)
def test_where_it_listens(listen: str, place: tuple[str, int]) -> None:
    """An empty host is every address, as it is to every other program."""
    assert host_and_port(listen) == place


@pytest.mark.parametrize("listen", ["127.0.0.1:65536", "127.0.0.1:-1", "127.0.0.1:٣", "127.0.0.1", ""])
def test_where_nobody_can_listen(listen: str) -> None:
    """One port more than there are, digits that are none, no port at all."""
    with pytest.raises(Terminal, match="give host:port") as caught:
        host_and_port(listen)
    assert caught.value.reason == "BadFlag"


async def test_an_address_of_ipv6_is_shown_as_one() -> None:
    """In brackets, so that it can be pasted."""
    endpoint = Endpoint(Metrics())
    try:
        await endpoint.start("[::1]:0", ready=_ready, refused=None)
    except Terminal:
        pytest.skip("this machine has no IPv6")
    try:
        assert endpoint.address.startswith("http://[::1]:")
    finally:
        await endpoint.stop()


async def _ready() -> str:
    return ""


def test_what_is_posted_and_what_is_followed() -> None:
    """A webhook takes a whole list of objects at once; watches of singletons last half an hour to an hour."""
    assert endpoint_module.LONGEST_BODY == 64 << 20
    assert (serving_tls.WATCH_S, object_watches.WATCH_S) == (1800, 1800)


async def test_what_was_never_started_can_be_stopped() -> None:
    """An error on the way to the start is reported, not another one."""
    await Endpoint(Metrics()).stop()


async def test_a_certificate_is_looked_at_every_ten_seconds(tmp_path: Path) -> None:
    """A new one counts from then on, not before."""
    cert, key, _ = pair(tmp_path)
    clock = ManualClock()
    certificate = ServingCertificate(str(cert), str(key), clock)
    certificate.start()
    following = asyncio.create_task(certificate.follow())
    await clock.advance(0)
    pair(tmp_path)
    with capture_logs() as logs:
        await clock.advance(9.5)
        assert logs == []
        await clock.advance(0.5)
    following.cancel()
    assert [line["event"] for line in logs] == ["the serving certificate was read"]


async def test_one_file_may_hold_certificate_and_key(tmp_path: Path) -> None:
    """Then one flag is enough."""
    cert, key, ca = pair(tmp_path)
    both = tmp_path / "both.pem"
    both.write_bytes(cert.read_bytes() + key.read_bytes())
    endpoint = Endpoint(Metrics())
    await endpoint.start("127.0.0.1:0", ready=_ready, refused=None, cert_file=str(both))
    try:
        assert await answered(endpoint, ssl.create_default_context(cadata=ca.decode()))
    finally:
        await endpoint.stop()


@pytest.mark.parametrize(
    ("spoil", "why"),
    [
        pytest.param(lambda cert, key: key.unlink(), "No such file or directory", id="no key"),
        pytest.param(lambda cert, key: cert.unlink(), "No such file or directory", id="a key alone"),
        pytest.param(lambda cert, key: key.write_bytes(_other_key()), "KEY_VALUES_MISMATCH", id="another's key"),
    ],
)
def test_why_a_certificate_cannot_be_used(tmp_path: Path, spoil: Any, why: str) -> None:
    """In the system's words, or OpenSSL's."""
    cert, key, _ = pair(tmp_path)
    spoil(cert, key)
    with pytest.raises(Terminal) as caught:
        ServingCertificate(str(cert), str(key), ManualClock()).start()
    assert why.lower().replace("_", " ") in str(caught.value).lower().replace("_", " ")
    assert caught.value.reason == "BadFlag"


def _other_key() -> bytes:
    now = SystemClock().now()
    return issue_server(new_ca(now), now).key


NAME = "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256"
OPENSSL = "ECDHE-ECDSA-AES128-GCM-SHA256"


def ciphers(context: ssl.SSLContext) -> list[str]:
    """Those of TLS 1.2 and before that are offered."""
    return [each["name"] for each in context.get_ciphers() if each["protocol"] != "TLSv1.3"]


def test_what_flags_and_cluster_ask_for_is_put_together() -> None:
    """A flag stands above the cluster, the cluster above our own; what cannot be served leaves our own, and is told."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    usual = ciphers(context)
    secured = TlsSettings(context, TlsProfile())
    assert (context.minimum_version, ciphers(context)) == (ssl.TLSVersion.TLSv1_2, usual)
    secured.follow(TlsProfile("VersionTLS13", (NAME,)))
    assert (context.minimum_version, ciphers(context)) == (ssl.TLSVersion.TLSv1_3, [OPENSSL])
    with capture_logs() as logs:
        secured.follow(TlsProfile("VersionTLS10", ("TLS_RSA_WITH_3DES_EDE_CBC_SHA",)))
    assert (context.minimum_version, ciphers(context)) == (ssl.TLSVersion.TLSv1_2, usual)
    assert [line["event"] for line in logs] == ["no cipher of the profile can be served, so the default ones are"]
    flagged = TlsSettings(context, profile_of_flags("VersionTLS12", NAME))
    flagged.follow(TlsProfile("VersionTLS13", ()))
    assert (context.minimum_version, ciphers(context)) == (ssl.TLSVersion.TLSv1_2, [OPENSSL])


@pytest.mark.parametrize(
    ("flags", "profile"),
    [
        pytest.param(("", ""), TlsProfile(), id="none"),
        pytest.param(("VersionTLS13", f"{NAME},"), TlsProfile("VersionTLS13", (NAME,)), id="a comma too many"),
    ],
)
def test_what_flags_ask_for(flags: tuple[str, str], profile: TlsProfile) -> None:
    """As they are typed."""
    assert profile_of_flags(*flags) == profile
