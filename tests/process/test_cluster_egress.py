"""The way out of a cluster: Proxy `cluster`, the trusted authorities, and what uses them."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from tests.kubekit.kube.apiscript import failure, reply, scripted_api, status
from tests.process.forward_proxy import Authority, behind, forward_proxy

from kubekit.http.proxies import Egress, Proxies
from kubekit.kube.auth import Static
from kubekit.kube.client import Client
from kubekit.kube.clock import ManualClock, SystemClock
from kubekit.kube.config import ClusterConfig
from kubekit.oci.access import Access
from kubekit.oci.reference import parse
from kubekit.oci.registry import RegistryClient
from runup.process import http_fetch
from runup.process.cluster_egress import EgressWatch, environment_egress, read_egress
from runup.process.monitoring import Monitoring
from runup.release.control.signatures import fetch_signature

DEADLINE_S = 90.0
STATUS = {"httpProxy": "http://p:1", "httpsProxy": "http://p:2", "noProxy": "a,b"}
GIVEN = Proxies("http://p:1", "http://p:2", "a,b")
NO_KIND = failure(404, "NotFound", "the server could not find the requested resource")
PATHS = {"proxies": "Proxy cluster", "configmaps": "ConfigMap openshift-config-managed/trusted-ca-bundle"}


def served(proxy: Any, bundle: Any) -> Any:
    """Answers for both objects, by name or as lists: an object, None for none, or an answer."""

    async def answer(request: web.Request) -> web.StreamResponse:
        found = proxy if "proxies" in request.path else bundle
        if callable(found):
            return await found(request)  # type: ignore[no-any-return]
        if "watch" in request.query:
            await asyncio.Event().wait()
        if request.path.endswith(("proxies", "configmaps")):
            items = [] if found is None else [{"metadata": {"name": request.path}, **found}]
            for item in items:
                item["metadata"] = NAMES[request.path.rpartition("/")[2]]
            return web.json_response({"metadata": {"resourceVersion": "1"}, "items": items})
        name = request.path.rpartition("/")[2]
        missing = status(404, "NotFound") | {"details": {"name": name}}
        return web.json_response(missing, status=404) if found is None else web.json_response(found)

    return answer


NAMES = {
    "proxies": {"name": "cluster", "resourceVersion": "1"},
    "configmaps": {"name": "trusted-ca-bundle", "namespace": "openshift-config-managed", "resourceVersion": "1"},
}
FORBIDDEN = failure(403, "Forbidden", "you may not")

# Proxy, bundle, and what follows; "" for an egress that is known, else the object that could not be read.
ROWS = [
    pytest.param({"status": STATUS}, {"data": {"ca-bundle.crt": "pem"}}, Egress(GIVEN, "pem"), "", id="both"),
    pytest.param({"spec": {}, "status": {}}, None, Egress(Proxies()), "", id="a Proxy without a proxy"),
    pytest.param({"spec": {}}, {"data": {}}, Egress(Proxies()), "", id="a Proxy without a status, an empty bundle"),
    pytest.param(None, None, Egress(), "", id="neither"),
    pytest.param(NO_KIND, None, Egress(), "", id="no such kind"),
    pytest.param(
        {"status": {**STATUS, "httpProxy": 7}}, None, Egress(Proxies("", *list(STATUS.values())[1:])), "", id="no text"
    ),
    pytest.param(FORBIDDEN, None, Egress(), PATHS["proxies"], id="a Proxy that may not be read"),
    pytest.param({"status": STATUS}, FORBIDDEN, Egress(GIVEN), PATHS["configmaps"], id="a bundle that may not be read"),
]


@pytest.mark.parametrize(("proxy", "bundle", "expected", "unread"), ROWS)
async def test_reads_the_way_out_of_a_cluster(proxy: Any, bundle: Any, expected: Egress, unread: str) -> None:
    """Once for each access to a registry; what could not be read is noted."""
    notes: list[str] = []
    async with scripted_api() as api, Client(ClusterConfig(server=api.url)) as client:
        api.answers(served(proxy, bundle))
        assert await read_egress(client, notes) == expected
    assert [note.partition(" could not be read: ")[0] for note in notes] == ([unread] if unread else [])


@pytest.mark.parametrize(("proxy", "bundle", "expected", "unread"), ROWS)
async def test_watches_the_way_out_of_a_cluster(proxy: Any, bundle: Any, expected: Egress, unread: str) -> None:
    """Nothing is asked around a proxy that is not known."""
    async with scripted_api() as api, Client(ClusterConfig(server=api.url)) as client:
        api.answers(served(proxy, bundle))
        watch = EgressWatch(client, ManualClock(), lambda: None)
        running = asyncio.create_task(watch.run())
        async with asyncio.timeout(DEADLINE_S):
            if unread:
                with pytest.raises(OSError, match=f"^{unread} could not be read: "):
                    await watch.current()
            else:
                assert await watch.current() == expected
        running.cancel()


@pytest.mark.slow
@pytest.mark.parametrize("tls", [False, True], ids=["plain", "over TLS"])
async def test_each_source_goes_through_the_proxy(tmp_path: Path, tls: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages over TLS, signatures, Prometheus and registries, by the private authority and the proxy's password."""
    for variable in ("HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy"):
        monkeypatch.delenv(variable, raising=False)
    authority = Authority()
    answers = {"/page": b"page", "/alerts": {"status": "success"}, "/v2/a/manifests/b": b"{}"}
    async with (
        forward_proxy(tmp_path, authority, tls=tls, login="ann:word") as proxy,
        behind(authority, tmp_path, "inside.test", answers) as url,
    ):
        egress = Egress(Proxies(proxy.url, proxy.url), authority.pem)

        async def known() -> Egress:
            return egress

        assert (await http_fetch.fetch(f"{url}/page", within_s=60, limit=99, egress=egress)).body == b"page"
        assert await fetch_signature(f"{url}/page", None, egress) == b"page"
        server = Monitoring(url, Static(), SystemClock(), asker="Test", egress=known)
        assert b"success" in await server.get("/alerts", within_s=60)
        registry = RegistryClient(Access(egress=egress, attempts=1))
        host = url.removeprefix("https://")
        assert (await asyncio.to_thread(registry.resolve, parse(f"{host}/a:b"))).startswith("sha256:")
        # Without the authority nothing is trusted, and without the proxy there is no such server.
        with pytest.raises((aiohttp.ClientError, OSError)):
            await http_fetch.fetch(f"{url}/page", within_s=60, limit=99, egress=Egress(egress.proxies))
        with pytest.raises((aiohttp.ClientError, OSError)):
            await http_fetch.fetch(f"{url}/page", within_s=60, limit=99, egress=Egress(Proxies(), authority.pem))


@pytest.mark.parametrize("login", ["", "ann:word"])
async def test_a_plain_page_is_asked_for_through_the_proxy(login: str) -> None:
    """Which needs no other request, and gets the login."""
    async with scripted_api() as api:
        api.answers(reply({"found": True}))
        prefix = f"{login}@" if login else ""
        egress = Egress(Proxies(http=api.url.replace("http://", f"http://{prefix}")))
        page = await http_fetch.fetch("http://inside.test/a", within_s=60, limit=99, egress=egress)
        assert page.status == 200
        (request,) = api.requests
    assert str(request.url) == "http://inside.test/a"
    assert ("Proxy-Authorization" in request.headers) is bool(login)
    assert await environment_egress() == Egress()
