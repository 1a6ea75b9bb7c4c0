"""What a process serves: metrics for those who may read them, health for everybody, errors that name the flag."""

from __future__ import annotations

import asyncio
import socket
import ssl
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import structlog
from bench.hostile.faulty_api import FaultyApi, faulty_api
from tests.process.tls_world import answered, create_api_server, define_api_servers

from kubekit.api.core_v1 import Node, ServiceAccount
from kubekit.api.scheme import Resource, resource_of
from kubekit.error_types import Terminal
from kubekit.kube import calls, config
from kubekit.kube.cache import Cache
from kubekit.kube.client import Client
from kubekit.kube.clock import ManualClock, SystemClock
from kubekit.kube.reviews import token_request
from kubesandbox.apiserver.access.certs import issue_server, new_ca
from kubesandbox.apiserver.server import ApiServer
from runup.clusterversion.control.metrics import Metrics
from runup.process.endpoint import ALLOWED_FOR_S, MAX_CACHED, REFUSED_FOR_S, Endpoint, MetricsAuthorizer
from runup.process.leader_election import cancel
from runup.process.process_server import ASKED_EVERY_S, Readiness
from runup.process.serving_tls import CHECK_INTERVAL_S, profile_of_flags, profile_reflector
from runup.process.tls_profile import API_SERVER, mandatory_profile

ROLES = Resource(
    group="rbac.authorization.k8s.io", version="v1", kind="ClusterRole", plural="clusterroles", namespaced=False
)
BINDINGS = Resource(
    group="rbac.authorization.k8s.io",
    version="v1",
    kind="ClusterRoleBinding",
    plural="clusterrolebindings",
    namespaced=False,
)
GROUP = "rbac.authorization.k8s.io"


class Scene:
    """An API server behind a proxy, an endpoint that asks it, and the tokens of two accounts."""

    def __init__(self, api: FaultyApi, endpoint: Endpoint, readers: MetricsAuthorizer, clock: ManualClock) -> None:
        self.api = api
        self.endpoint = endpoint
        self.readers = readers
        self.clock = clock
        self.tokens: dict[str, str] = {}

    async def get(self, path: str, authorization: str = "") -> tuple[int, str]:
        """Status and text."""
        headers = {"Authorization": authorization} if authorization else {}
        async with (
            aiohttp.ClientSession() as session,
            session.get(f"{self.endpoint.address}/{path}", headers=headers) as response,
        ):
            return response.status, await response.text()

    @property
    def reviews(self) -> int:
        """How many requests reached the API server's side."""
        return sum(self.api.counted.values())


@pytest.fixture
async def scene(tmp_path: Path) -> AsyncIterator[Scene]:
    """`prometheus` may get /metrics, `nobody` may not."""
    async with ApiServer(tmp_path / "data") as server, serving(server) as made:
        yield made


@asynccontextmanager
async def serving(server: ApiServer) -> AsyncIterator[Scene]:
    """See `scene`."""
    loaded, clock = config.load(str(server.kubeconfig)), ManualClock()
    async with Client(loaded) as admin, faulty_api(loaded) as api, Client(api.config, clock=clock) as client:
        readers = MetricsAuthorizer(client, clock)
        endpoint = Endpoint(Metrics())
        cache = Cache(Node)
        cache.replace([], "1")
        await endpoint.start(
            "127.0.0.1:0", ready=Readiness(client, clock, str, [cache]).why_not, refused=readers.refusal
        )
        made = Scene(api, endpoint, readers, clock)
        for name in ("prometheus", "nobody"):
            account = {"metadata": {"name": name, "namespace": "default"}}
            await admin.send(calls.create(resource_of(ServiceAccount), account))
            made.tokens[name] = (await admin.send(token_request(name, "default"))).token
        rules = [{"nonResourceURLs": ["/metrics"], "verbs": ["get"]}]
        await admin.send(calls.create(ROLES, {"metadata": {"name": "reader"}, "rules": rules}))
        subject = {"kind": "ServiceAccount", "name": "prometheus", "namespace": "default"}
        role = {"apiGroup": GROUP, "kind": "ClusterRole", "name": "reader"}
        await admin.send(
            calls.create(BINDINGS, {"metadata": {"name": "reader"}, "roleRef": role, "subjects": [subject]})
        )
        try:
            yield made
        finally:
            await endpoint.stop()


async def test_who_may_read_metrics(scene: Scene) -> None:
    """A token that the API server knows, of somebody whom it lets; health is everybody's."""
    good, other = scene.tokens["prometheus"], scene.tokens["nobody"]
    status, text = await scene.get("metrics", f"Bearer {good}")
    assert (status, "cluster_version_preflight_requests_total" in text) == (200, True)
    refusals = {
        "": (401, "a bearer token is needed\n"),
        "Basic YTpi": (401, "a bearer token is needed\n"),
        "Bearer ": (401, "a bearer token is needed\n"),
        "Bearer made-up": (401, "the API server does not know this token\n"),
        f"Bearer {other}": (
            403,
            'system:serviceaccount:default:nobody may not get the non-resource URL "/metrics"\n',
        ),
    }
    assert {header: await scene.get("metrics", header) for header in refusals} == refusals
    assert await scene.get("healthz") == (200, "ok\n")
    assert await scene.get("readyz") == (200, "ok\n")


@pytest.mark.parametrize(
    ("account", "lasts_s", "status"), [("prometheus", ALLOWED_FOR_S, 200), ("nobody", REFUSED_FOR_S, 403)]
)
async def test_an_answer_is_kept_for_a_short_time(scene: Scene, account: str, lasts_s: float, status: int) -> None:
    """A scrape every few seconds asks nobody; a change of rights is seen soon."""
    header = f"Bearer {scene.tokens[account]}"
    assert (await scene.get("metrics", header))[0] == status
    scene.api.silent = True
    await scene.clock.advance(lasts_s - 1)
    assert (await scene.get("metrics", header))[0] == status
    scene.api.silent = False
    before = scene.reviews
    await scene.clock.advance(1)
    assert (await scene.get("metrics", header))[0] == status
    assert scene.reviews == before + 2


async def test_health_alone_is_answered_in_plain_http_by_a_loop_that_turns() -> None:
    """Before there is a certificate, and by nobody while the event loop stops: a liveness probe notices."""
    address, held, stop = "", threading.Event(), threading.Event()
    started, blocked = threading.Event(), threading.Event()

    async def process() -> None:
        nonlocal address
        endpoint = Endpoint(Metrics())
        await endpoint.start_health("127.0.0.1:0")
        address = endpoint.health_address
        started.set()
        while not stop.is_set():
            if not held.is_set():
                blocked.set()
            held.wait()
            await asyncio.sleep(0.01)
        await endpoint.stop()

    async def asked(path: str, within_s: float) -> tuple[int, str]:
        async with (
            aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(within_s)) as session,
            session.get(f"{address}/{path}") as response,
        ):
            return response.status, await response.text()

    held.set()
    thread = threading.Thread(target=lambda: asyncio.run(process()))
    thread.start()
    try:
        await asyncio.to_thread(started.wait)
        assert await asked("healthz", 90) == (200, "ok\n")
        assert [(await asked(path, 90))[0] for path in ("metrics", "readyz")] == [404, 404]
        held.clear()
        await asyncio.to_thread(blocked.wait)
        with pytest.raises(TimeoutError):
            await asked("healthz", 0.5)
        held.set()
        assert await asked("healthz", 90) == (200, "ok\n")
    finally:
        stop.set()
        held.set()
        await asyncio.to_thread(thread.join)


@pytest.mark.parametrize("listen", ["nowhere", "127.0.0.1:x", "192.0.2.1:1"])
async def test_where_health_cannot_be_served_the_flag_is_named(listen: str) -> None:
    """One line that says which flag is wrong."""
    endpoint = Endpoint(Metrics())
    with pytest.raises(Terminal, match=f"^--health-listen {listen}: "):
        await endpoint.start_health(listen)
    await endpoint.stop()


async def test_an_api_server_that_cannot_be_asked_lets_nobody_in(scene: Scene) -> None:
    """503, and the next request asks again."""
    header = f"Bearer {scene.tokens['prometheus']}"
    scene.api.storm(share=1)
    status, text = await scene.get("metrics", header)
    assert status == 503
    assert text.startswith("the API server could not be asked who may read this: ")
    scene.api.calm()
    assert (await scene.get("metrics", header))[0] == 200


@pytest.mark.slow
async def test_made_up_tokens_do_not_fill_the_memory(scene: Scene) -> None:
    """So many are remembered, as hashes, and no more."""
    for number in range(MAX_CACHED + 5):
        await scene.readers.refusal(f"Bearer made-up-{number}", "/metrics")
    assert scene.readers.cached == MAX_CACHED


async def test_metrics_for_everybody_are_asked_for_in_so_many_words(tmp_path: Path) -> None:
    """Without a check nothing is needed; that takes `--metrics-auth=none`."""
    endpoint = Endpoint(Metrics())
    await endpoint.start("127.0.0.1:0", ready=_ready, refused=None)
    try:
        async with aiohttp.ClientSession() as session, session.get(f"{endpoint.address}/metrics") as response:
            assert response.status == 200
    finally:
        await endpoint.stop()


async def test_readiness_is_about_the_api_server_and_the_caches(tmp_path: Path) -> None:
    """What was never read, what is not followed any more, an API server that does not answer; then well again."""
    clock, cache, lacking = ManualClock(), Cache(Node), ["Node is not listed yet"]
    async with (
        ApiServer(tmp_path / "data") as server,
        faulty_api(config.load(str(server.kubeconfig))) as api,
        Client(api.config, clock=clock) as client,
    ):
        readiness = Readiness(client, clock, lambda: lacking[0], [cache])
        assert await readiness.why_not() == "Node is not listed yet"
        lacking[0] = ""
        cache.fail("not allowed")
        assert await readiness.why_not() == "", "a kind that was never there is none that is not followed any more"
        cache.replace([], "1")
        assert await readiness.why_not() == "Node is not followed any more: not allowed"
        cache.recover()
        api.storm(share=1)
        await clock.advance(ASKED_EVERY_S)
        assert (await readiness.why_not()).startswith("the API server does not answer: ")
        api.calm()
        await clock.advance(ASKED_EVERY_S)
        assert await readiness.why_not() == ""
        api.silent = True
        await clock.advance(ASKED_EVERY_S)
        asking = asyncio.create_task(readiness.why_not())
        await clock.until_sleeping()
        await clock.advance(1)
        assert await asking == "the API server does not answer: not done within 0.8 s"


@pytest.mark.parametrize(
    ("listen", "said"),
    [
        pytest.param("9099", "--listen 9099: give host:port, such as 127.0.0.1:9099", id="no host"),
        pytest.param(":http", "--listen :http: give host:port, such as 127.0.0.1:9099", id="a name for a port"),
        pytest.param("127.0.0.1:", "--listen 127.0.0.1:: give host:port, such as 127.0.0.1:9099", id="no port"),
        pytest.param("127.0.0.1:65536", "--listen 127.0.0.1:65536: give host:port", id="one more than there are"),
        pytest.param("192.0.2.7:0", "--listen 192.0.2.7:0: give --serving-cert-file", id="in the clear for others"),
        pytest.param(":0", "--listen :0: give --serving-cert-file", id="in the clear for everybody"),
    ],
)
async def test_a_bad_listen_is_one_line(listen: str, said: str) -> None:
    """It names the flag and the way out."""
    with pytest.raises(Terminal) as caught:
        await Endpoint(Metrics()).start(listen, ready=_ready, refused=None)
    assert str(caught.value).startswith(said)
    assert "\n" not in str(caught.value)


async def test_a_port_that_is_taken() -> None:
    """As above, in the system's words."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        listen = f"127.0.0.1:{taken.getsockname()[1]}"
        endpoint = Endpoint(Metrics())
        with pytest.raises(Terminal, match=f"--listen {listen}: .*in use"):
            await endpoint.start(listen, ready=_ready, refused=None)
        await endpoint.stop()


@pytest.mark.parametrize("broken", ["no such folder", "no key", "no certificate", "another's key"])
async def test_a_certificate_that_cannot_be_used(tmp_path: Path, broken: str) -> None:
    """The flags and the files are named."""
    folder = tmp_path / "absent" if broken == "no such folder" else tmp_path
    cert, key = folder / "tls.crt", folder / "tls.key"
    if folder.is_dir():
        first, second = new_ca(ManualClock().now()), new_ca(ManualClock().now())
        cert.write_bytes(first.cert if broken != "no certificate" else b"no certificate")
        if broken != "no key":
            key.write_bytes(second.key)
    with pytest.raises(Terminal, match=rf"--serving-cert-file {cert}, --serving-key-file {key}: they cannot be used: "):
        await Endpoint(Metrics()).start("0.0.0.0:0", ready=_ready, refused=None, cert_file=str(cert), key_file=str(key))


async def trusts(endpoint: Endpoint, ca: bytes) -> bool:
    """Whether somebody who trusts that authority is answered."""
    return await answered(endpoint, ssl.create_default_context(cadata=ca.decode()))


@pytest.mark.parametrize(
    ("health_listen", "unserved"),
    [
        pytest.param("", "metrics and health", id="everything waits for the certificate"),
        pytest.param("127.0.0.1:0", "metrics and readiness", id="health has a port of its own"),
    ],
)
async def test_the_log_names_what_waits_for_a_certificate(tmp_path: Path, health_listen: str, unserved: str) -> None:
    """Health that is answered in plain HTTP is not said to be unserved."""
    endpoint = Endpoint(Metrics())
    with structlog.testing.capture_logs() as logged:
        try:
            if health_listen:
                await endpoint.start_health(health_listen)
            await endpoint.start(
                "127.0.0.1:0", ready=_ready, refused=None, cert_file=str(tmp_path / "tls.crt"), key_file=""
            )
            if health_listen:
                async with aiohttp.ClientSession() as session:
                    assert (await session.get(f"{endpoint.health_address}/healthz")).status == 200
        finally:
            await endpoint.stop()
    shown = f"no serving certificate yet: {unserved} are not served until there is one"
    assert [line["event"] for line in logged] == [shown]


async def test_a_certificate_may_come_later_and_is_replaced(tmp_path: Path) -> None:
    """Without one nobody is answered, and one line says so; a new one counts, a broken one changes nothing."""
    now, clock = SystemClock().now(), ManualClock()
    cert, key = tmp_path / "tls.crt", tmp_path / "tls.key"
    endpoint = Endpoint(Metrics(), clock)
    with structlog.testing.capture_logs() as logged:
        await endpoint.start("127.0.0.1:0", ready=_ready, refused=None, cert_file=str(cert), key_file=str(key))
        try:
            first, second = new_ca(now), new_ca(now)
            assert not await trusts(endpoint, first.cert)
            for ca in (first, second):
                pair = issue_server(ca, now)
                cert.write_bytes(pair.cert)
                key.write_bytes(pair.key)
                await clock.advance(CHECK_INTERVAL_S)
                assert await trusts(endpoint, ca.cert)
            assert not await trusts(endpoint, first.cert)
            cert.write_bytes(b"half of a certif")
            await clock.advance(2 * CHECK_INTERVAL_S)
            assert await trusts(endpoint, second.cert)
            async with aiohttp.ClientSession() as session:
                with pytest.raises(aiohttp.ClientError):
                    await session.get(endpoint.address.replace("https:", "http:") + "/metrics")
        finally:
            await endpoint.stop()
    assert [(line["log_level"], line["event"]) for line in logged] == [
        ("warning", "no serving certificate yet: metrics and health are not served until there is one"),
        ("info", "the serving certificate was read"),
        ("info", "the serving certificate was read"),
        ("warning", "the serving certificate cannot be used, the one before still counts"),
    ]


OLD, MODERN = ({"type": name} for name in ("Old", "Modern"))
CUSTOM = {"type": "Custom", "custom": {"minTLSVersion": "VersionTLS12", "ciphers": ["ECDHE-ECDSA-AES256-GCM-SHA384"]}}
STRICT = "StrictAllComponents"


@pytest.mark.parametrize(
    ("flags", "spec", "served"),
    [
        pytest.param(("", ""), None, ("TLSv1.2", "TLSv1.3"), id="nothing is asked for"),
        pytest.param(("VersionTLS13", ""), None, ("", "TLSv1.3"), id="a flag"),
        pytest.param(("", ""), {"tlsSecurityProfile": MODERN}, ("TLSv1.2", "TLSv1.3"), id="a profile of others"),
        pytest.param(
            ("", ""),
            {"tlsSecurityProfile": MODERN, "tlsAdherence": "LegacyAdheringComponentsOnly"},
            ("TLSv1.2", "TLSv1.3"),
            id="a profile of those who followed it before",
        ),
        pytest.param(
            ("", ""), {"tlsSecurityProfile": MODERN, "tlsAdherence": STRICT}, ("", "TLSv1.3"), id="everybody's profile"
        ),
        pytest.param(
            ("", ""),
            {"tlsSecurityProfile": MODERN, "tlsAdherence": "SomeLaterPolicy"},
            ("", "TLSv1.3"),
            id="a policy that is not known yet is strict",
        ),
        pytest.param(
            ("VersionTLS12", ""),
            {"tlsSecurityProfile": MODERN, "tlsAdherence": STRICT},
            ("TLSv1.2", "TLSv1.3"),
            id="a flag stands above the cluster",
        ),
        pytest.param(
            ("", ""),
            {"tlsSecurityProfile": OLD, "tlsAdherence": STRICT},
            ("TLSv1.2", "TLSv1.3"),
            id="nothing older than 1.2, whatever the cluster allows",
        ),
        pytest.param(
            ("", "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256"), None, ("", "TLSv1.3"), id="another cipher by a flag"
        ),
        pytest.param(
            ("", ""),
            {"tlsSecurityProfile": CUSTOM, "tlsAdherence": STRICT},
            ("TLSv1.2", "TLSv1.3"),
            id="the client's cipher, by the cluster's own profile",
        ),
        pytest.param(
            ("", "TLS_RSA_WITH_3DES_EDE_CBC_SHA"),
            None,
            ("TLSv1.2", "TLSv1.3"),
            id="a cipher that the API server does not serve any more leaves the default ones",
        ),
    ],
)
async def test_which_versions_are_served(
    tmp_path: Path, flags: tuple[str, str], spec: dict[str, Any] | None, served: tuple[str, str]
) -> None:
    """To a client of 1.2 that knows one cipher, and to one of 1.3: the version agreed upon, empty where none was."""
    now = SystemClock().now()
    pair = issue_server(new_ca(now), now)
    cert, key = tmp_path / "tls.crt", tmp_path / "tls.key"
    cert.write_bytes(pair.cert)
    key.write_bytes(pair.key)
    endpoint = Endpoint(Metrics())
    files = {"cert_file": str(cert), "key_file": str(key)}
    await endpoint.start("127.0.0.1:0", ready=_ready, refused=None, tls=profile_of_flags(*flags), **files)
    try:
        if spec is not None:
            endpoint.follow(mandatory_profile({"spec": spec}))
        assert (await _agreed(endpoint, "TLSv1_2"), await _agreed(endpoint, "TLSv1_3")) == served
        endpoint.follow(None)
        back = ("", "TLSv1.3") if flags[0] == "VersionTLS13" or "AES_128" in flags[1] else ("TLSv1.2", "TLSv1.3")
        assert (await _agreed(endpoint, "TLSv1_2"), await _agreed(endpoint, "TLSv1_3")) == back, "and back"
    finally:
        await endpoint.stop()


async def _agreed(endpoint: Endpoint, version: str) -> str:
    """What a client that speaks only that version agrees on with the endpoint."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.minimum_version = context.maximum_version = ssl.TLSVersion[version]
    context.set_ciphers("ECDHE-ECDSA-AES256-GCM-SHA384")
    host, _, port = endpoint.address.removeprefix("https://").rpartition(":")
    try:
        _, writer = await asyncio.open_connection(host, int(port), ssl=context)
    except (ssl.SSLError, ConnectionError):
        return ""
    found = writer.get_extra_info("ssl_object").version()
    writer.close()
    return str(found)


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        pytest.param(("VersionTLS11", ""), "--tls-min-version VersionTLS11: give one of VersionTLS12", id="too old"),
        pytest.param(("1.2", ""), "--tls-min-version 1.2: give one of VersionTLS12", id="another way to write it"),
        pytest.param(("", "TLS_X,TLS_Y"), "--tls-cipher-suites TLS_X,TLS_Y: not known; known are", id="no such cipher"),
    ],
)
def test_a_bad_tls_flag_is_named(flags: tuple[str, str], said: str) -> None:
    """With what it takes."""
    with pytest.raises(ValueError, match=said):
        profile_of_flags(*flags)


async def test_the_cluster_s_profile_is_followed(tmp_path: Path) -> None:
    """From the object APIServer, when it is there, when it changes, and when it goes."""
    shown: list[str] = []
    async with ApiServer(tmp_path / "data") as server, Client(config.load(str(server.kubeconfig))) as client:
        await define_api_servers(client)
        reflector = profile_reflector(client, SystemClock(), lambda p: shown.append(p.min_version if p else "ours"))
        following = asyncio.create_task(reflector.run())
        try:
            await create_api_server(client, tlsAdherence=STRICT, tlsSecurityProfile=MODERN)
            await _until(shown, "VersionTLS13")
            await client.send(calls.merge_patch(API_SERVER, "cluster", {"spec": {"tlsSecurityProfile": OLD}}))
            await _until(shown, "VersionTLS10")
            await client.send(calls.delete(API_SERVER, "cluster"))
            await _until(shown, "ours")
        finally:
            await cancel([following])


async def _until(shown: list[str], wanted: str) -> None:
    async with asyncio.timeout(90):
        while shown[-1:] != [wanted]:  # noqa: ASYNC110 -- what is reported is no event
            await asyncio.sleep(0.02)


async def _ready() -> str:
    return ""
