"""Where signatures are asked for, in which order, and what a store that does not help costs."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from tests.kubekit.kube.apiscript import ScriptedApi, failure, reply, scripted_api, silence

from kubekit.kube.client import Client
from kubekit.kube.clock import SystemClock
from kubekit.kube.config import ClusterConfig
from kubekit.oci.signatures import MAX_SIGNATURE_BYTES, Keyring, Verifier, add_signature, generate_key
from runup.api.config_v1 import SignatureStore
from runup.clusterversion.control.release_verification import ReleaseChecks
from runup.clusterversion.decide.observed import ReleaseCheck
from runup.preflight.decide.deployment_steps import Trust
from runup.release.control.release_images import ReleaseImages

KEY = generate_key()
DIGEST = "sha256:" + "a" * 64
IMAGE = f"registry.example/ocp/release@{DIGEST}"
GOOD = KEY.sign(DIGEST, "registry.example/ocp/release:5.2.0")
OTHER = generate_key().sign(DIGEST, "registry.example/ocp/release:5.2.0")
NOBODY = "http://127.0.0.1:1"


def config_maps(**data: bytes) -> dict[str, Any]:
    """A list of one ConfigMap with these signatures."""
    values = {key.replace("_", "-"): base64.b64encode(value).decode() for key, value in data.items()}
    items = [{"metadata": {"name": "signatures", "namespace": "openshift-config-managed"}, "binaryData": values}]
    return {"kind": "ConfigMapList", "apiVersion": "v1", "metadata": {"resourceVersion": "1"}, "items": items}


@pytest.fixture
async def api() -> AsyncIterator[ScriptedApi]:
    """A cluster without signatures."""
    async with scripted_api() as found:
        found.answers(reply(config_maps()))
        yield found


@pytest.fixture
async def store() -> AsyncIterator[ScriptedApi]:
    """A web server to script."""
    async with scripted_api() as found:
        yield found


def stores_of(custom: Sequence[str] | None) -> tuple[SignatureStore, ...] | None:
    """spec.signatureStores."""
    return None if custom is None else tuple(SignatureStore(url=url) for url in custom)


async def checked(api: ScriptedApi, stores: Sequence[str], custom: Sequence[str] | None = None) -> ReleaseCheck:
    """What is found out about the image."""
    done = asyncio.Event()
    verifier = Verifier((Keyring("redhat", KEY.public),), tuple(stores))
    clock = SystemClock()
    async with Client(ClusterConfig(server=api.url), clock=clock) as client:
        images = ReleaseImages(client)
        checks = ReleaseChecks(
            client, lambda: verifier, clock, done.set, images=images, custom_stores=lambda: stores_of(custom)
        )
        checks.check(IMAGE)
        async with asyncio.timeout(90):
            await done.wait()
        await checks.close()
        return checks.states[IMAGE]


def sent(data: bytes) -> Any:
    """Answer with these bytes."""

    async def handler(_request: web.Request) -> web.StreamResponse:
        return web.Response(body=data)

    return handler


def folder(path: Path, *signatures: bytes) -> str:
    """A store on disk."""
    path.mkdir()
    for signature in signatures:
        add_signature(path, DIGEST, signature)
    return path.as_uri()


async def test_the_clusters_config_maps_come_first(api: ScriptedApi, store: ScriptedApi) -> None:
    """A signature there is enough; no store is asked."""
    api.answers(reply(config_maps(**{f"sha256_{'a' * 64}_1": GOOD})))
    assert (await checked(api, [store.url])).trust is Trust.VERIFIED
    assert store.requests == []


async def test_signatures_are_numbered_until_the_first_that_is_missing(api: ScriptedApi, store: ScriptedApi) -> None:
    """One that convinces nobody is passed over; the next one counts."""
    store.answers(sent(OTHER), sent(GOOD))
    assert (await checked(api, [store.url])).trust is Trust.VERIFIED
    assert store.targets == [f"GET /sha256={'a' * 64}/signature-{number}" for number in (1, 2)]


async def test_another_store_has_it(api: ScriptedApi, store: ScriptedApi, tmp_path: Path) -> None:
    """404 ends a store, not the search."""
    store.answers(failure(404, "NotFound"))
    assert (await checked(api, [store.url, folder(tmp_path / "store", GOOD)])).trust is Trust.VERIFIED
    assert len(store.requests) == 1


async def test_a_store_that_hangs_costs_one_wait(
    api: ScriptedApi, store: ScriptedApi, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is not waited for once a number; the next store has the signature."""
    monkeypatch.setattr("runup.release.control.signatures.TIMEOUT_S", 0.2)
    store.answers(silence)
    assert (await checked(api, [store.url, folder(tmp_path / "store", GOOD)])).trust is Trust.VERIFIED
    assert len(store.requests) == 1


async def test_a_broken_number_is_passed_over(api: ScriptedApi, store: ScriptedApi) -> None:
    """A server error for one signature does not hide the next (docs/reference/upstream.md 8.2)."""
    store.answers(failure(500, "InternalError"), sent(GOOD))
    assert (await checked(api, [store.url])).trust is Trust.VERIFIED


@pytest.mark.parametrize(
    ("stores", "said"),
    [
        pytest.param([NOBODY], "Cannot connect to host 127.0.0.1:1", id="nobody listens"),
        pytest.param(["ftp://127.0.0.1/x"], "ftp://127.0.0.1/x", id="a scheme that is none"),
        pytest.param(["file:///nonexistent"], "not found", id="no such folder"),
    ],
)
async def test_what_the_stores_answered_is_told(api: ScriptedApi, stores: list[str], said: str) -> None:
    """Not verified, with the keyring and each store's answer."""
    found = await checked(api, stores)
    assert found.trust is Trust.FAILED
    assert found.error.startswith(f"unable to verify {DIGEST} against keyrings: redhat: ")
    assert said in found.error


async def test_at_most_nine_are_asked_for(api: ScriptedApi, store: ScriptedApi) -> None:
    """A store that has something for every number ends too."""
    store.answers(sent(OTHER))
    assert (await checked(api, [store.url])).trust is Trust.FAILED
    assert len(store.requests) == 9


async def test_a_huge_signature_is_not_taken(api: ScriptedApi, store: ScriptedApi) -> None:
    """It is refused by its size, and no more of it is read."""
    store.answers(sent(bytes(MAX_SIGNATURE_BYTES * 100)), failure(404, "NotFound"))
    assert f"is larger than {MAX_SIGNATURE_BYTES} bytes" in (await checked(api, [store.url])).error


async def test_the_specs_stores_stand_for_the_releases(api: ScriptedApi, store: ScriptedApi, tmp_path: Path) -> None:
    """Set in ClusterVersion, they are asked and the release's own are not."""
    store.answers(failure(404, "NotFound"))
    own = folder(tmp_path / "store", GOOD)
    assert (await checked(api, [own], custom=[store.url])).trust is Trust.FAILED
    assert (await checked(api, [store.url], custom=[own])).trust is Trust.VERIFIED
    assert len(store.requests) == 1


async def test_no_stores_in_the_spec_is_a_mistake(api: ScriptedApi, tmp_path: Path) -> None:
    """Set to nothing, nothing is asked, and the way out is named."""
    found = await checked(api, [folder(tmp_path / "store", GOOD)], custom=[])
    assert found.trust is Trust.FAILED
    assert "spec.signatureStores is empty: unset it" in found.error


async def test_config_maps_that_may_not_be_read(api: ScriptedApi, tmp_path: Path) -> None:
    """The cluster's refusal is noted, and the stores are asked."""
    api.answers(failure(403, "Forbidden", "configmaps is forbidden"))
    assert (await checked(api, [folder(tmp_path / "store", GOOD)])).trust is Trust.VERIFIED
    assert "configmaps is forbidden" in (await checked(api, [])).error
