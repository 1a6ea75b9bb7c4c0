"""Webhooks of a test: installed as envtest does, and served as plain functions."""

from __future__ import annotations

import base64
import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.kubesandbox.test_command import SHIP

from kubekit.api.scheme import Resource
from kubekit.kube import calls
from kubekit.kube.client_sync import SyncClient
from kubekit.kube.config import load
from kubesandbox import webhooks
from kubesandbox.pytest_plugin import KubeApiFactory
from kubesandbox.sandbox_error import SandboxError
from kubesandbox.testing import KubeApi

JSON = dict[str, Any]
RULE = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}


def configuration(kind: str, path: str) -> JSON:
    """As controller-gen writes it below config/webhook."""
    service = {"namespace": "system", "name": "webhook-service", "path": path}
    webhook = {"name": "a.example.com", "admissionReviewVersions": ["v1"], "sideEffects": "None", "rules": [RULE],
               "clientConfig": {"service": service}}  # fmt: skip
    metadata = {"name": kind.lower()}
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": kind,
        "metadata": metadata,
        "webhooks": [webhook],
    }


def converted_ships() -> JSON:
    ship = copy.deepcopy(SHIP)
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    ship["spec"]["versions"] = [
        {"name": name, "served": True, "storage": name == "v1", "schema": schema} for name in ("v1", "v2")
    ]
    client = {"service": {"namespace": "system", "name": "webhook-service", "path": "/convert"}}
    ship["spec"]["conversion"] = {
        "strategy": "Webhook",
        "webhook": {"conversionReviewVersions": ["v1"], "clientConfig": client},
    }
    return ship


def test_replaces_services_by_urls(tmp_path: Path) -> None:
    """As envtest/webhook.go (updateClientConfig) does; an object without webhooks is unchanged."""
    serving = webhooks.prepare(tmp_path, port=9443)
    expected = {"url": "https://127.0.0.1:9443/mutate", "caBundle": serving.ca_bundle}
    changed = webhooks.with_serving(configuration("MutatingWebhookConfiguration", "/mutate"), serving)
    assert changed["webhooks"][0]["clientConfig"] == expected
    conversion = webhooks.with_serving(converted_ships(), serving)["spec"]["conversion"]["webhook"]
    assert conversion["clientConfig"]["url"] == "https://127.0.0.1:9443/convert"
    for other in (SHIP, {"kind": "Service", "spec": {}}, {"kind": "Pod"}):
        assert webhooks.with_serving(other, serving) is other


@pytest.fixture(scope="module")
def api(kube_api_factory: KubeApiFactory) -> Iterator[KubeApi]:
    """One server for this module."""
    with kube_api_factory() as made:
        yield made


def mutate(request: JSON) -> JSON:
    patch = [{"op": "add", "path": "/data", "value": {"by": request["userInfo"]["username"]}}]
    return {"allowed": True, "patchType": "JSONPatch", "patch": base64.b64encode(json.dumps(patch).encode()).decode()}


def validate(request: JSON) -> JSON:
    if request["name"] == "raises":
        raise ValueError("a fault of the webhook")
    return {"allowed": request["name"] != "bad", "status": {"message": "bad is not a good name"}}


def convert(request: JSON) -> JSON:
    version = request["desiredAPIVersion"]
    objects = [{**obj, "apiVersion": version, "convertedTo": version} for obj in request["objects"]]
    return {"result": {"status": "Success"}, "convertedObjects": objects}


@pytest.mark.slow
@pytest.mark.xdist_group("kube_api")
def test_functions_are_called_as_webhooks(api: KubeApi) -> None:
    serving = api.install_webhooks(
        [
            configuration("MutatingWebhookConfiguration", "/mutate"),
            configuration("ValidatingWebhookConfiguration", "/validate"),
            converted_ships(),
        ]
    )
    config_map = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "good"}}
    ship = {"apiVersion": "example.com/v1", "kind": "Ship", "metadata": {"name": "argo"}}
    second = Resource(group="example.com", version="v2", kind="Ship", plural="ships", namespaced=True)
    with serving.serve({"/mutate": mutate, "/validate": validate, "/convert": convert}):
        (made,) = api.load(config_map)
        assert made["data"] == {"by": "kubernetes-admin"}
        with pytest.raises(SandboxError, match=r'webhook "a.example.com" denied the request: bad is not a good name'):
            api.load({**config_map, "metadata": {"name": "bad"}})
        with pytest.raises(SandboxError, match=r'failed calling webhook "a.example.com"'):
            api.load({**config_map, "metadata": {"name": "raises"}})
        api.load(ship)
        with SyncClient(load(str(api.kubeconfig))) as client:
            assert client.send(calls.get_raw(second, "argo", "default"))["convertedTo"] == "example.com/v2"
    # The functions are no longer served.
    with pytest.raises(SandboxError, match="failed calling webhook"):
        api.load({**config_map, "metadata": {"name": "late"}})
