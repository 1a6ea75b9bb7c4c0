"""Stores with authorities of their own, a time limit over all of them, and signatures that the cluster keeps."""

from __future__ import annotations

import asyncio
import base64
import ssl
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from tests.kubekit.oci.registries import self_signed
from tests.operator.operator_world import NAMESPACES, cluster

from kubekit.api.core_v1 import ConfigMap
from kubekit.api.scheme import resource_of
from kubekit.kube import calls
from kubekit.kube.client import Client
from kubekit.kube.clock import SystemClock
from kubekit.oci.signatures import Keyring, Verifier, generate_key
from runup.api.config_v1 import NameReference, SignatureStore
from runup.clusterversion.control.release_verification import ReleaseChecks
from runup.clusterversion.decide.observed import ReleaseCheck
from runup.preflight.decide.deployment_steps import Trust
from runup.release.control.release_images import ReleaseImages
from runup.release.control.signatures import MOST_BYTES, MOST_DIGESTS, merge_signatures

KEY = generate_key()
DIGEST = "sha256:" + "a" * 64
IMAGE = f"registry.example/ocp/release@{DIGEST}"
GOOD = KEY.sign(DIGEST, "registry.example/ocp/release:5.2.0")
MAPS = resource_of(ConfigMap)


@pytest.fixture
async def client(tmp_path: Path) -> AsyncIterator[Client]:
    """A cluster with the namespace in which signatures are."""
    async with cluster(tmp_path / "cluster") as (world, _):
        for name in ("openshift-config", "openshift-config-managed"):
            await world.client.send(calls.apply(NAMESPACES, {"metadata": {"name": name}}, field_manager="test"))
        yield world.client


async def checked(client: Client, *stores: SignatureStore, within_s: float = 90.0) -> ReleaseCheck:
    """What is found out about the image, and what is kept is kept."""
    done = asyncio.Event()
    verifier = Verifier((Keyring("redhat", KEY.public),), ("file:///nowhere",))
    checks = ReleaseChecks(
        client,
        lambda: verifier,
        SystemClock(),
        done.set,
        images=ReleaseImages(client),
        custom_stores=lambda: stores,
        within_s=within_s,
    )
    checks.check(IMAGE)
    async with asyncio.timeout(90):
        await done.wait()
        # Keeping is not waited for by anybody who decides.
        await checks.settled()
    return checks.states[IMAGE]


@contextmanager
def https(folder: Path, *, hang: threading.Event | None = None) -> Iterator[str]:
    """A store with the good signature, behind a certificate that nobody knows."""
    certificate, key = self_signed("127.0.0.1", folder)

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *_args: object) -> None:
            """Say nothing."""

        def do_GET(self) -> None:
            """The first signature alone."""
            if hang is not None:
                hang.wait(90)
            found = self.path.endswith("/signature-1")
            self.send_response(200 if found else 404)
            self.end_headers()
            self.wfile.write(GOOD if found else b"")

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate, key)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield f"https://127.0.0.1:{server.server_address[1]}"
    finally:
        if hang is not None:
            hang.set()
        server.shutdown()
        thread.join(90)
        server.server_close()


async def with_ca(client: Client, text: str, key: str = "ca.crt") -> None:
    """ConfigMap `ca` of the administrator."""
    obj = {"metadata": {"name": "ca", "namespace": "openshift-config"}, "data": {key: text}}
    await client.send(calls.apply(MAPS, obj, field_manager="test", force=True))


async def test_a_store_is_trusted_by_its_own_authorities(client: Client, tmp_path: Path) -> None:
    """As the API says about `ca`; without it the system's count, which do not know the store."""
    with https(tmp_path) as url:
        await with_ca(client, (tmp_path / "tls.crt").read_text())
        without = await checked(client, SignatureStore(url=url))
        assert (without.trust, "certificate" in without.error) == (Trust.FAILED, True)
        assert (await checked(client, SignatureStore(url=url, ca=NameReference(name="ca")))).trust is Trust.VERIFIED


@pytest.mark.parametrize(
    ("key", "text", "said"),
    [
        pytest.param("", "", 'configmaps "ca" not found', id="no such ConfigMap"),
        pytest.param("ca-bundle.crt", "x", "openshift-config/ca has no ca.crt", id="another key"),
        pytest.param("ca.crt", "x", "openshift-config/ca: ca.crt contains no certificate", id="no certificate"),
    ],
)
async def test_a_store_whose_authorities_cannot_be_used_is_not_asked(
    client: Client, tmp_path: Path, key: str, text: str, said: str
) -> None:
    """Not by those of the system instead; the reason is reported."""
    if key:
        await with_ca(client, text, key)
    found = await checked(client, SignatureStore(url="https://127.0.0.1:1", ca=NameReference(name="ca")))
    assert found.trust is Trust.FAILED
    assert said in found.error
    assert "Cannot connect" not in found.error


async def test_a_store_with_other_authorities_is_not_trusted(client: Client, tmp_path: Path) -> None:
    """A CA that did not sign the store's certificate refuses it, and the next store is asked."""
    for name in ("good", "other"):
        (tmp_path / name).mkdir()
    self_signed("127.0.0.1", tmp_path / "other")
    with https(tmp_path / "good") as url:
        await with_ca(client, (tmp_path / "other" / "tls.crt").read_text())
        wrong, missing = (SignatureStore(url=url, ca=NameReference(name=name)) for name in ("ca", "missing"))
        refused = await checked(client, wrong)
        assert (refused.trust, "certificate verify failed" in refused.error) == (Trust.FAILED, True)
        right = {"metadata": {"name": "right", "namespace": "openshift-config"}}
        text = (tmp_path / "good" / "tls.crt").read_text()
        await client.send(calls.apply(MAPS, right | {"data": {"ca.crt": text}}, field_manager="test", force=True))
        found = await checked(client, missing, wrong, SignatureStore(url=url, ca=NameReference(name="right")))
        assert found.trust is Trust.VERIFIED


async def test_stores_that_hang_leave_time_for_the_download(client: Client, tmp_path: Path) -> None:
    """There is an end to all of them together, and the verdict says so."""
    with https(tmp_path, hang=threading.Event()) as url:
        await with_ca(client, (tmp_path / "tls.crt").read_text())
        store = SignatureStore(url=url, ca=NameReference(name="ca"))
        found = await checked(client, store, within_s=0.2)
    assert found.trust is Trust.FAILED
    assert "the other stores were not asked: the time of 0.2 s is up" in found.error


async def test_what_convinced_is_kept_and_convinces_again(client: Client, tmp_path: Path) -> None:
    """The store is gone, and the operator another one."""
    with https(tmp_path) as url:
        await with_ca(client, (tmp_path / "tls.crt").read_text())
        await checked(client, SignatureStore(url=url, ca=NameReference(name="ca")))
    kept = await client.send(calls.get_raw(MAPS, "signatures-managed", "openshift-config-managed"))
    assert kept["metadata"]["labels"] == {"release.openshift.io/verification-signatures": ""}
    assert kept["binaryData"] == {f"sha256-{'a' * 64}-0": base64.b64encode(GOOD).decode()}
    assert (await checked(client, SignatureStore(url="https://127.0.0.1:1"))).trust is Trust.VERIFIED


def digest(number: int) -> str:
    """A digest."""
    return f"sha256:{number:064}"


def key(number: int, index: int = 0) -> str:
    """Its key."""
    return f"sha256-{number:064}-{index}"


@pytest.mark.parametrize(
    ("kept", "signatures", "expected"),
    [
        pytest.param({}, [b"x"], [key(9)], id="the first"),
        pytest.param({key(1): b"a"}, [b"x", b"y"], [key(1), key(9), key(9, 1)], id="what others kept stays"),
        pytest.param({key(9): b"a", key(9, 1): b"b"}, [b"x"], [key(9)], id="what was kept of this one is replaced"),
        pytest.param({"odd": b"a"}, [b"x"], ["odd", key(9)], id="an odd key is not ours to judge"),
        pytest.param({key(1): b"a" * MOST_BYTES, key(2): b"b"}, [b"x"], [key(2), key(9)], id="a large one goes"),
    ],
)
def test_what_is_kept(kept: dict[str, bytes], signatures: list[bytes], expected: list[str]) -> None:
    """Of whom, in which order."""
    assert list(merge_signatures(kept, digest(9), signatures)) == expected


def test_no_more_digests_are_kept_than_are_looked_at() -> None:
    """The first ones go."""
    found: dict[str, bytes] = {}
    for number in range(MOST_DIGESTS + 6):
        found = merge_signatures(found, digest(number), [b"x"])
    assert list(found) == [key(number) for number in range(6, MOST_DIGESTS + 6)]
