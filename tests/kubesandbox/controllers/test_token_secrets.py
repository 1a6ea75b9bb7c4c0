"""Secrets of the type kubernetes.io/service-account-token (pkg/controller/serviceaccount/tokens_controller.go)."""

from __future__ import annotations

import base64
from typing import Any

import pytest
from tests.kubesandbox.controllers.conftest import SECRETS, Cluster

from kubekit.api.scheme import Resource
from kubekit.kube import calls
from kubesandbox.controllers.namespaces import ACCOUNTS
from kubesandbox.controllers.token_secrets import ACCOUNT_NAME, ACCOUNT_UID, TYPE

JSON = dict[str, Any]
REVIEWS = Resource(
    group="authentication.k8s.io", version="v1", kind="TokenReview", plural="tokenreviews", namespaced=False
)


async def create_secret(cluster: Cluster, account: str, **content: Any) -> None:
    """Creates a Secret for the token of a ServiceAccount."""
    metadata = {"name": "token", "namespace": cluster.namespace, "annotations": {ACCOUNT_NAME: account}}
    body = {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "type": TYPE, **content}
    await cluster.client.send(calls.create(SECRETS, body))


@pytest.mark.slow
async def test_a_token_is_valid_until_its_account_is_deleted(cluster: Cluster) -> None:
    """The Secret gets token, certificate and namespace, keeps what it has, and goes with the ServiceAccount."""
    account = await cluster.create("robot", resource=ACCOUNTS)
    await create_secret(cluster, "robot", data={"extra": "eA=="})
    secret = await cluster.until(lambda found: "token" in ((found or {}).get("data") or {}), "token", SECRETS)
    data = {name: base64.b64decode(value) for name, value in secret["data"].items()}
    assert (data["namespace"].decode(), data["ca.crt"], data["extra"]) == (
        cluster.namespace,
        cluster.client.config.ca_data,
        b"x",
    )
    assert secret["metadata"]["annotations"][ACCOUNT_UID] == account["metadata"]["uid"]
    review = {"apiVersion": REVIEWS.api_version, "kind": REVIEWS.kind, "spec": {"token": data["token"].decode()}}
    answer = await cluster.client.send(calls.create(REVIEWS, {**review, "metadata": {}}))
    assert answer["status"]["user"]["username"] == f"system:serviceaccount:{cluster.namespace}:robot"
    await cluster.delete("robot", resource=ACCOUNTS)
    await cluster.until_gone("token", resource=SECRETS)


async def test_a_secret_of_no_account_is_deleted(cluster: Cluster) -> None:
    """As upstream, so that no token of another account of the same name is trusted."""
    await create_secret(cluster, "nobody")
    await cluster.until_gone("token", resource=SECRETS)
