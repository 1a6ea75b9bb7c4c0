"""How far a store of signatures, or an update service, may lead whoever asks it, and for how long it may keep him."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web as server_side
from tests.kubekit.kube.apiscript import ScriptedApi, reply, scripted_api
from tests.release.control.test_release_verification import DIGEST, GOOD, checked, config_maps, sent

from kubekit.kube.auth import Static, bearer_credential
from kubekit.kube.clock import SystemClock
from kubesandbox.apiserver.access import certs
from runup.advice.control.update_service import UpdateService
from runup.advice.decide.service import Query
from runup.preflight.decide.deployment_steps import Trust
from runup.process import http_fetch
from runup.process.monitoring import Monitoring
from runup.updatestatus.control.alert_queries import Alerts
from runup.updatestatus.decide.alerts import Unreadable

NAMES = {"store.example": "127.0.0.1", "cloud.example": "169.254.169.254"}
_resolve = socket.getaddrinfo


@pytest.fixture(autouse=True)
def names(monkeypatch: pytest.MonkeyPatch) -> None:
    """Names of this test, for the system's resolver."""

    def known(host: Any, *rest: Any, **options: Any) -> Any:
        return _resolve(NAMES.get(str(host), host), *rest, **options)

    monkeypatch.setattr(socket, "getaddrinfo", known)


@pytest.fixture
async def here() -> AsyncIterator[ScriptedApi]:
    """A server of this machine; by the name `store.example` it is anybody's."""
    async with scripted_api() as found:
        yield found


def named(server: ScriptedApi, host: str = "store.example") -> str:
    """The same server by another name."""
    return server.url.replace("127.0.0.1", host)


def to(place: str) -> Any:
    """Answer with a redirect."""

    async def handler(_request: server_side.Request) -> server_side.StreamResponse:
        return server_side.Response(status=302, headers={"Location": place})

    return handler


FORBIDDEN = [
    pytest.param("http://127.0.0.1:{port}/inward", id="loopback"),
    pytest.param("http://store.example:{port}/inward", id="a name that is loopback"),
    pytest.param("http://[::ffff:127.0.0.1]:{port}/inward", id="loopback inside of an IPv6 address"),
    pytest.param("http://2130706433:{port}/inward", id="loopback as one number"),
    pytest.param("http://169.254.169.254/inward", id="where clouds keep credentials"),
    pytest.param("http://100.100.100.200/inward", id="where another cloud keeps them"),
    pytest.param("http://localhost:{port}/inward", id="this machine's name"),
    pytest.param("http://cloud.example/inward", id="a name of where clouds keep credentials"),
    pytest.param("http://0.0.0.0:{port}/inward", id="no address"),
    pytest.param("//127.0.0.1:{port}/inward", id="without a scheme"),
    pytest.param("file:///etc/passwd", id="a file"),
    pytest.param("http://[", id="what is not a URL"),
]


@pytest.mark.parametrize("place", FORBIDDEN)
async def test_nobody_leads_inwards(here: ScriptedApi, place: str) -> None:
    """A redirect to there is reported, and nothing is asked there."""
    here.answers(to(place.format(port=here.url.rpartition(":")[2])), sent(b"a password"))
    with pytest.raises((aiohttp.ClientError, OSError)):
        await http_fetch.fetch(f"{named(here)}/first", within_s=5, limit=100)
    assert here.targets == ["GET /first"]


@pytest.mark.parametrize("host", ["localhost", "a.LOCALHOST.", "127.1"])
async def test_nobody_leads_to_the_proxys_own_machine(
    here: ScriptedApi, monkeypatch: pytest.MonkeyPatch, host: str
) -> None:
    """The proxy would look the name up, so it must not be reported."""
    monkeypatch.setenv("http_proxy", here.url)
    monkeypatch.delenv("no_proxy", raising=False)
    here.answers(to(f"http://{host}:9/inward"), sent(b"a password"))
    with pytest.raises(OSError, match="an address that redirects must not lead to"):
        await http_fetch.fetch("http://start.example/first", within_s=5, limit=100)
    assert [target.rpartition("/")[2] for target in here.targets] == ["first"]


async def test_who_was_named_on_this_machine_may_lead_to_it(here: ScriptedApi) -> None:
    """Somebody tries things out; the link's addresses stay forbidden."""
    here.answers(to(f"{here.url}/b"), to("/c"), sent(b"found"))
    assert await http_fetch.fetch(f"{here.url}/a", within_s=5, limit=100) == http_fetch.Page(200, b"found")
    assert here.targets == ["GET /a", "GET /b", "GET /c"]
    here.answers(to("http://169.254.169.254/"))
    with pytest.raises(OSError, match=r"a redirect to 169\.254\.169\.254, an address that redirects must not lead to"):
        await http_fetch.fetch(f"{here.url}/a", within_s=5, limit=100)


@asynccontextmanager
async def over_tls(handler: Any, secure: ssl.SSLContext) -> AsyncIterator[str]:
    """A server with a certificate; its address."""
    runner = server_side.ServerRunner(server_side.Server(handler))
    await runner.setup()
    await server_side.TCPSite(runner, "127.0.0.1", 0, ssl_context=secure).start()
    host, port = runner.addresses[0][:2]
    try:
        yield f"https://{host}:{port}"
    finally:
        await runner.cleanup()


async def test_authorities_are_those_that_the_file_has_now(tmp_path: Path) -> None:
    """A mounted bundle is changed while we run: what it had before is neither trusted nor refused for ever."""
    certs.load_or_create(tmp_path / "served", SystemClock().now())
    certs.load_or_create(tmp_path / "other", SystemClock().now())
    serving = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    serving.load_cert_chain(tmp_path / "served" / "server.crt", tmp_path / "served" / "server.key")
    bundle = tmp_path / "bundle.crt"

    def mount(name: str) -> None:
        copy = tmp_path / "new.crt"
        copy.write_bytes((tmp_path / name / "ca.crt").read_bytes())
        copy.replace(bundle)

    async with over_tls(sent(b"found"), serving) as url:
        asked = Monitoring(url, Static(bearer_credential("secret")), SystemClock(), asker="Test", ca_file=str(bundle))
        with pytest.raises(OSError, match=r"certificate authorities .*bundle\.crt cannot be read"):
            await asked.get("/", within_s=60)
        for name, trusted in (("other", False), ("served", True), ("other", False)):
            mount(name)
            if trusted:
                assert await asked.get("/", within_s=60) == b"found"
                continue
            with pytest.raises(aiohttp.ClientConnectorCertificateError):
                await asked.get("/", within_s=60)


async def test_a_token_is_for_the_server_that_was_named(tmp_path: Path, here: ScriptedApi) -> None:
    """Not for another one that it leads to, nor for itself in the clear."""
    certs.load_or_create(tmp_path, SystemClock().now())
    serving = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    serving.load_cert_chain(tmp_path / "server.crt", tmp_path / "server.key")
    asking = ssl.create_default_context(cafile=str(tmp_path / "ca.crt"))
    heard: list[tuple[str, str]] = []
    places = {"/a": "/b"}

    async def handler(request: Any) -> server_side.StreamResponse:
        heard.append((request.path, request.headers.get("Authorization", "")))
        return await (to(places[request.path]) if request.path in places else sent(b"found"))(request)

    here.answers(sent(b"found"))
    async with over_tls(handler, serving) as first, over_tls(handler, serving) as second:
        places |= {"/b": f"{second}/c", "/c": f"{here.url}/d"}
        page = await http_fetch.fetch(f"{first}/a", within_s=60, limit=100, authorization="Bearer t", context=asking)
    assert page.body == b"found"
    assert heard == [("/a", "Bearer t"), ("/b", "Bearer t"), ("/c", "")]
    assert "Authorization" not in here.requests[0].headers


async def test_redirects_end(here: ScriptedApi) -> None:
    """Round in a circle is no answer."""
    here.answers(to(f"{here.url}/a"))
    with pytest.raises(aiohttp.ClientPayloadError, match="more than 10 redirects"):
        await http_fetch.fetch(f"{here.url}/a", within_s=5, limit=100)
    assert len(here.requests) == http_fetch.MAX_REDIRECTS + 1


async def test_a_page_is_cut_where_it_is_too_long(here: ScriptedApi) -> None:
    """One byte more than the limit says that it was."""
    here.answers(sent(b"x" * 100_000))
    assert await http_fetch.fetch(here.url, within_s=5, limit=100) == http_fetch.Page(200, b"x" * 101)


async def test_a_byte_now_and_then_ends_in_time() -> None:
    """Each byte comes soon; the page as a whole never does."""
    ended = asyncio.Event()

    async def drip(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n")
        while not ended.is_set():
            writer.write(b"x")
            await asyncio.wait([asyncio.ensure_future(ended.wait())], timeout=0.02)
        writer.close()

    server = await asyncio.start_server(drip, "127.0.0.1", 0)
    async with server:
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
        with pytest.raises(TimeoutError):
            await http_fetch.fetch(url, within_s=0.3, limit=10_000_000)
        ended.set()


async def test_a_store_of_signatures_leads_nobody_inwards(here: ScriptedApi) -> None:
    """Nothing is asked there, and the condition says why."""
    async with scripted_api() as api:
        api.answers(reply(config_maps()))
        here.answers(to(f"{here.url}/inward"))
        found = await checked(api, [named(here)])
        assert found.trust is Trust.FAILED
        assert "a redirect to 127.0.0.1, an address that redirects must not lead to" in found.error
        assert "GET /inward" not in here.targets


async def test_a_store_that_moved_is_followed(here: ScriptedApi) -> None:
    """Mirrors redirect to where the file lies."""
    async with scripted_api() as api:
        api.answers(reply(config_maps()))
        here.answers(to(f"/moved/{DIGEST.replace(':', '=')}/signature-1"), sent(GOOD))
        assert (await checked(api, [here.url])).trust is Trust.VERIFIED


@pytest.mark.parametrize("place", ["http://127.0.0.1:{port}/inward", "http://["])
async def test_an_update_service_leads_nobody_inwards(here: ScriptedApi, place: str) -> None:
    """It failed, with the reason that every failure to reach it has; the question is over."""
    here.answers(to(place.format(port=here.url.rpartition(":")[2])), sent(b'{"nodes": [], "edges": []}'))
    answered = asyncio.Event()
    service = UpdateService(SystemClock(), answered.set)
    service.ask(
        Query(url=f"{named(here)}/graph", channel="stable-5.2", architecture="amd64", cluster_id="id", version="5.0.0")
    )
    async with asyncio.timeout(90):
        await answered.wait()
    await service.close()
    assert service.state.failure is not None and service.state.failure.reason == "RemoteFailed"
    assert not service.state.asking
    assert len(here.requests) == 1


async def test_what_knows_the_alerts_leads_nobody_inwards(here: ScriptedApi) -> None:
    """Its token would be asked for there too; that alerts are not known is said, with why."""
    here.answers(to(f"{here.url}/inward"), sent(b"{}"))
    asked = asyncio.Event()
    alerts = Alerts(named(here), Static(bearer_credential("secret")), SystemClock(), asked.set)
    running = asyncio.create_task(alerts.run())
    async with asyncio.timeout(90):
        await asked.wait()
    running.cancel()
    assert isinstance(alerts.state, Unreadable)
    assert "a redirect to 127.0.0.1, an address that redirects must not lead to" in alerts.state.why
    assert here.targets == ["GET /api/v1/alerts"]
