"""Tests the objects that every namespace gets automatically."""

from __future__ import annotations

import pytest
from tests.kubesandbox.controllers.conftest import CONFIG_MAPS, NAMESPACES, Cluster

from kubekit.kube import calls
from kubesandbox.controllers.namespaces import ACCOUNTS


async def test_a_namespace_has_an_account_and_the_servers_certificate(cluster: Cluster) -> None:
    """New ones, and those that a cluster begins with."""
    await cluster.create("new", resource=NAMESPACES)
    for namespace in ("new", "default", "kube-system"):
        await cluster.until(lambda found: found is not None, "default", ACCOUNTS, namespace)
        found = await cluster.until(lambda found: found is not None, "kube-root-ca.crt", CONFIG_MAPS, namespace)
        assert found["data"]["ca.crt"] == cluster.client.config.ca_data.decode()


async def test_what_is_deleted_comes_back(cluster: Cluster) -> None:
    """Both are recreated."""
    for resource, name in ((ACCOUNTS, "default"), (CONFIG_MAPS, "kube-root-ca.crt")):
        before = await cluster.until(lambda found: found is not None, name, resource)
        await cluster.delete(name, resource=resource)
        uid = before["metadata"]["uid"]
        await cluster.until(
            lambda found, uid=uid: found is not None and found["metadata"]["uid"] != uid, name, resource
        )


@pytest.mark.parametrize(
    "data",
    [
        pytest.param({"ca.crt": "another's"}, id="another certificate"),
        pytest.param({"ca.crt": None}, id="none"),
        pytest.param({"more": "x"}, id="more than that"),
    ],
)
async def test_a_changed_certificate_is_put_back(cluster: Cluster, data: dict[str, str | None]) -> None:
    """Its data is the server's certificate alone; what else somebody wrote to the object stays."""
    name, right = "kube-root-ca.crt", {"ca.crt": cluster.client.config.ca_data.decode()}
    await cluster.until(lambda found: found is not None, name)
    patch = {"metadata": {"labels": {"a": "b"}}, "data": data}
    changed = await cluster.client.send(calls.merge_patch(CONFIG_MAPS, name, patch, "default"))
    assert changed.get("data") != right
    found = await cluster.until(lambda found: found is not None and found.get("data") == right, name)
    assert found["metadata"]["labels"] == {"a": "b"}


async def test_not_in_a_namespace_that_is_being_deleted(cluster: Cluster) -> None:
    """It would never be empty."""
    await cluster.create("ns", resource=NAMESPACES)
    await cluster.until(lambda found: found is not None, "default", ACCOUNTS, "ns")
    await cluster.delete("ns", resource=NAMESPACES)
    await cluster.until_gone("ns", resource=NAMESPACES)
