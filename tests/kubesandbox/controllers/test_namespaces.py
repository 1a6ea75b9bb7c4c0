"""Namespaces that are deleted: emptied, held by finalizers, and let go when the server lists nothing more."""

from __future__ import annotations

from typing import Any

import pytest
from tests.kubesandbox.controllers.conftest import CONFIG_MAPS, NAMESPACES, SECRETS, Cluster

from kubekit.api.meta_v1 import Object, ObjectMeta
from kubekit.api.scheme import Resource
from kubekit.kube import calls
from kubekit.kube.api_errors import Forbidden
from kubesandbox.controllers.namespaces import deletion_conditions

JSON = dict[str, Any]
EVENTS = Resource(group="", version="v1", kind="Event", plural="events", namespaced=True)


def condition_of(namespace: JSON, type_: str) -> JSON:
    """One of its conditions."""
    return next((each for each in namespace["status"].get("conditions", ()) if each["type"] == type_), {})


@pytest.mark.slow
async def test_all_of_it_goes(cluster: Cluster) -> None:
    """Whatever kind, events as well, and what is elsewhere stays."""
    await cluster.create("ns", resource=NAMESPACES)
    for resource in (CONFIG_MAPS, SECRETS):
        await cluster.create("thing", resource=resource, namespace="ns")
    about = {"involvedObject": {"namespace": "ns", "kind": "ConfigMap", "name": "thing"}}
    await cluster.create("event", resource=EVENTS, namespace="ns", **about)
    await cluster.create("thing")
    await cluster.delete("ns", resource=NAMESPACES)
    await cluster.until_gone("ns", resource=NAMESPACES)
    for resource in (CONFIG_MAPS, SECRETS, EVENTS):
        assert await cluster.find("thing", resource, "ns") is None
        page = await cluster.client.send(calls.list_raw(resource, "ns"))
        assert page.items == ()
    assert await cluster.find("thing") is not None


@pytest.mark.slow
async def test_a_finalizer_holds_it(cluster: Cluster) -> None:
    """And the namespace says which, how often, and takes in nothing new."""
    await cluster.create("ns", resource=NAMESPACES)
    await cluster.create("held", namespace="ns", finalizers=["example.com/hold"])
    await cluster.delete("ns", resource=NAMESPACES)
    namespace = await cluster.until(
        lambda found: found and condition_of(found, "NamespaceFinalizersRemaining").get("status") == "True",
        "ns",
        NAMESPACES,
    )
    assert namespace["status"]["phase"] == "Terminating"
    content = condition_of(namespace, "NamespaceContentRemaining")
    assert "configmaps. has 1 resource instances" in content["message"]
    finalizers = condition_of(namespace, "NamespaceFinalizersRemaining")
    expected = "Some content in the namespace has finalizers remaining: example.com/hold in 1 resource instances"
    assert (finalizers["reason"], finalizers["message"]) == ("SomeFinalizersRemain", expected)
    with pytest.raises(Forbidden, match="because it is being terminated"):
        await cluster.create("new", namespace="ns")
    await cluster.release("held", namespace="ns")
    await cluster.until_gone("ns", resource=NAMESPACES)


async def test_a_finalizer_of_the_namespace_itself(cluster: Cluster) -> None:
    """It is emptied at once, and goes when its own finalizer does."""
    await cluster.create("ns", resource=NAMESPACES, finalizers=["example.com/hold"])
    await cluster.create("thing", namespace="ns")
    await cluster.delete("ns", resource=NAMESPACES)
    await cluster.until_gone("thing", namespace="ns")
    namespace = await cluster.until(lambda found: found and not found["spec"].get("finalizers"), "ns", NAMESPACES)
    assert namespace["metadata"]["finalizers"] == ["example.com/hold"]
    await cluster.release("ns", resource=NAMESPACES)
    await cluster.until_gone("ns", resource=NAMESPACES)


async def test_another_finalizer_in_its_spec_stays(cluster: Cluster) -> None:
    """Only `kubernetes` is the controller's to remove."""
    await cluster.create("ns", resource=NAMESPACES, spec={"finalizers": ["kubernetes", "example.com/hold"]})
    await cluster.delete("ns", resource=NAMESPACES)
    namespace = await cluster.until(
        lambda found: found and "kubernetes" not in found["spec"]["finalizers"], "ns", NAMESPACES
    )
    assert namespace["spec"]["finalizers"] == ["example.com/hold"]
    namespace["spec"]["finalizers"] = []
    await cluster.client.send(calls.replace(NAMESPACES, namespace, subresource="finalize"))
    await cluster.until_gone("ns", resource=NAMESPACES)


def test_what_is_told_of_what_is_left() -> None:
    """Each resource and each finalizer with its number, in order."""
    held = Object(metadata=ObjectMeta(name="a", finalizers=("x/y",)))
    free = Object(metadata=ObjectMeta(name="b"))
    deployments = Resource(group="apps", version="v1", kind="Deployment", plural="deployments", namespaced=True)
    messages = [
        each.message for each in deletion_conditions([(deployments, free), (CONFIG_MAPS, held), (CONFIG_MAPS, free)])
    ]
    assert messages[3:] == [
        "Some resources are remaining: configmaps. has 2 resource instances, deployments.apps has 1 resource instances",
        "Some content in the namespace has finalizers remaining: x/y in 1 resource instances",
    ]
    assert [each.status for each in deletion_conditions([])] == ["False"] * 5
