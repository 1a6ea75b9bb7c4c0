"""`/convert` as the process serves it: an API server asks it by HTTPS for the other version."""

from __future__ import annotations

import asyncio
import base64
import json
import ssl
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path

import aiohttp
import pytest
import yaml

from kubekit.api.scheme import Resource, resource_of
from kubekit.kube import calls, config
from kubekit.kube.client import Client
from kubesandbox.apiserver.access import certs
from kubesandbox.apiserver.server import ApiServer
from runup.api.kmm_v1beta1 import PreflightValidation as Old
from runup.api.kmm_v1beta2 import PreflightValidation as New
from runup.kernelmodules.control import process as conversion_webhook
from runup.kernelmodules.control.controller import Metrics
from runup.process.endpoint import Endpoint

CRD = Resource(
    group="apiextensions.k8s.io",
    version="v1",
    kind="CustomResourceDefinition",
    plural="customresourcedefinitions",
    namespaced=False,
)
DEFINITION = "deploy/kernel-module-preflight/01_preflightvalidations.crd.yaml"
SERVICE = "kernel-module-preflight.openshift-kernel-module-preflight.svc"
ENTRY = {"verificationStatus": "Success", "verificationStage": "Done", "lastTransitionTime": "2026-01-02T03:04:05Z"}


class Served:
    """An endpoint with `/convert` on loopback."""

    def __init__(self, endpoint: Endpoint, authority: bytes) -> None:
        self.endpoint, self.authority = endpoint, authority

    async def post(self, body: bytes) -> tuple[int, str]:
        """What it answers."""
        trusted = ssl.create_default_context(cadata=self.authority.decode())
        async with (
            aiohttp.ClientSession() as session,
            session.post(f"{self.endpoint.address}{conversion_webhook.PATH}", data=body, ssl=trusted) as answer,
        ):
            return answer.status, await answer.text()


@pytest.fixture
async def served(tmp_path: Path) -> AsyncIterator[Served]:
    """With a certificate of the Service's."""
    now = datetime.now(UTC)
    authority = certs.new_ca(now)
    pair = certs.issue_server(authority, now, [SERVICE])
    cert, key = tmp_path / "tls.crt", tmp_path / "tls.key"
    cert.write_bytes(pair.cert)
    key.write_bytes(pair.key)
    endpoint = Endpoint(Metrics(), webhooks=conversion_webhook.ROUTES)

    async def ready() -> str:
        return "the cluster is not listed yet"

    await endpoint.start("127.0.0.1:0", ready=ready, refused=None, cert_file=str(cert), key_file=str(key))
    yield Served(endpoint, authority.cert)
    await endpoint.stop()


async def test_an_api_server_asks_it(tmp_path: Path, served: Served) -> None:
    """The shipped definition, a status written in one version and read in the other, before the process is ready."""
    crd = yaml.safe_load((Path(__file__).parents[3] / DEFINITION).read_text())
    bundle = base64.b64encode(served.authority).decode()
    client_config = {"url": f"{served.endpoint.address}{conversion_webhook.PATH}", "caBundle": bundle}
    crd["spec"]["conversion"]["webhook"]["clientConfig"] = client_config
    async with ApiServer(tmp_path / "data") as server, Client(config.load(str(server.kubeconfig))) as client:
        await client.send(calls.create(CRD, crd))
        old, new = resource_of(Old), resource_of(New)
        body = {"apiVersion": old.api_version, "kind": old.kind, "metadata": {"name": "p"}}
        await client.send(calls.create(old, {**body, "spec": {"kernelVersion": "6.1.0"}}))
        status = {"modules": [{"namespace": "a", "name": "x", **ENTRY}]}
        await client.send(calls.merge_patch(new, "p", {"status": status}, subresource="status"))
        seen = await client.send(calls.get(Old, "p"))
        assert sorted(seen.status.cr_statuses) == ["a/x", "x"]
        entry = seen.status.cr_statuses["x"]
        assert (entry.verification_status, entry.verification_stage) == ("True", "Done")


@pytest.mark.parametrize(
    ("body", "shown"),
    [
        pytest.param(b"{", "give a ConversionReview as JSON: ", id="no JSON"),
        pytest.param(b'"\xff"', "give a ConversionReview as JSON: ", id="no UTF-8"),
        pytest.param(b"[" * 9000, "give a ConversionReview as JSON: ", id="brackets without end"),
        pytest.param(b"[]", "give a ConversionReview\n", id="no object"),
        pytest.param(b'{"kind":"Other"}', "give a ConversionReview\n", id="something else"),
    ],
)
async def test_what_is_no_question_is_refused(served: Served, body: bytes, shown: str) -> None:
    """With what it should have been."""
    status, text = await served.post(body)
    assert status == 400
    assert text.startswith(shown)


async def test_a_long_list_is_converted(served: Served) -> None:
    """A server sends all objects of a list at once."""
    item = {"apiVersion": resource_of(New).api_version, "kind": "PreflightValidation", "metadata": {"name": "p"}}
    reason = {"status": {"modules": [{"namespace": "a", "name": "x", **ENTRY, "statusReason": "long " * 200}]}}
    request = {"uid": "1", "desiredAPIVersion": resource_of(Old).api_version, "objects": [{**item, **reason}] * 4000}
    question = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview", "request": request}
    status, text = await asyncio.wait_for(served.post(json.dumps(question).encode()), 90)
    assert status == 200
    assert len(json.loads(text)["response"]["convertedObjects"]) == 4000
