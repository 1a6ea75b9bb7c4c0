"""Operators of OLM and the catalog that comes with the target, out of a real registry: a preflight as typed.

The target's process runs as it does in a cluster, once with the operator's account and once with exactly the rights
that its checks declare.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from tests.journeys.conftest import Sandbox
from tests.kubekit.oci.registries import docker_registry, writing
from tests.servers import eventually

from kubekit.api.scheme import Resource, resource_of
from kubekit.kube import calls
from kubekit.kube.api_errors import NotFound
from kubekit.kube.client_sync import SyncClient
from kubekit.oci.images import Execution
from kubekit.oci.layout import Layout
from kubekit.oci.reference import parse
from kubekit.oci.registry import RegistryClient
from runup.api.olm_v1alpha1 import CatalogSource, Subscription
from runup.release.control.image_build import build_image, layer_of

pytestmark = [pytest.mark.slow, pytest.mark.timeout(420)]

JSON = dict[str, Any]
OPERATORS = "openshift-cluster-version-operator"
SETTINGS = "cluster-version-operator-preflight-config"
CONFIG_MAPS = Resource(group="", version="v1", kind="ConfigMap", plural="configmaps", namespaced=True)
NAMESPACES = Resource(group="", version="v1", kind="Namespace", plural="namespaces", namespaced=False)
DEFINITIONS = Resource(
    group="apiextensions.k8s.io",
    version="v1",
    kind="CustomResourceDefinition",
    plural="customresourcedefinitions",
    namespaced=False,
)
SUBSCRIPTIONS, SOURCES = resource_of(Subscription), resource_of(CatalogSource)
PLACE = "openshift-marketplace"
PARTS = (
    {"schema": "olm.package", "name": "logging", "defaultChannel": "stable-6"},
    {"schema": "olm.channel", "package": "logging", "name": "stable-6", "entries": [{"name": "logging.v6.0.0"}]},
)
LEFT_BEHIND = "OperatorNotInTargetCatalog-logging"


def definition(resource: Resource) -> JSON:
    """A kind of OLM."""
    names = {"kind": resource.kind, "plural": resource.plural, "singular": resource.kind.lower()}
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": resource.version, "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    spec = {
        "group": resource.group,
        "names": {**names, "listKind": f"{resource.kind}List"},
        "scope": "Namespaced",
        "versions": [version],
    }
    return {"metadata": {"name": f"{resource.plural}.{resource.group}"}, "spec": spec}


def kind_of(resource: Resource) -> JSON:
    """What an object of a custom kind says about itself."""
    return {"apiVersion": resource.api_version, "kind": resource.kind}


def there(client: SyncClient, resource: Resource, name: str) -> bool:
    """Whether there is an object of that name."""
    return any(each["metadata"]["name"] == name for each in client.send(calls.list_raw(resource)).items)


def served(client: SyncClient, resource: Resource) -> bool:
    """Whether a kind can be used and is found: a real server's parts learn of it one after the other."""
    try:
        client.send(calls.list_raw(resource))
        found = json.loads(client.send(calls.get_path(f"/apis/{resource.api_version}")))
    except NotFound:
        return False
    return any(each["name"] == resource.plural for each in found["resources"])


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The catalog of the target, in a registry."""
    folder = tmp_path_factory.mktemp("catalog")
    with docker_registry(folder) as host:
        data = "\n".join(json.dumps(part) for part in PARTS).encode()
        layer = layer_of({"configs/logging/catalog.json": data})
        index = build_image(folder / "index", [layer], tag="v5.2", config=Execution())
        place = parse(f"{host}/redhat/operator-index:v5.2")
        RegistryClient(writing(host)).push(Layout.open(folder / "index"), index.digest, place)
        yield host


@pytest.fixture(scope="module")
def marketplace(skip_level: Sandbox, registry: str) -> Iterator[Sandbox]:
    """5.0.0 with one of the marketplace's catalogs."""
    client = skip_level.client
    for resource in (SUBSCRIPTIONS, SOURCES):
        client.send(calls.create(DEFINITIONS, definition(resource)))
        eventually(lambda resource=resource: served(client, resource), f"{resource.plural} are served")
    client.send(calls.create(NAMESPACES, {"metadata": {"name": PLACE}}))
    managed = {"operatorframework.io/managed-by": "marketplace-operator"}
    source = {
        **kind_of(SOURCES),
        "metadata": {"name": "redhat-operators", "namespace": PLACE, "annotations": managed},
        "spec": {"image": f"{registry}/redhat/operator-index:v5.0"},
    }
    client.send(calls.create(SOURCES, source))
    try:
        yield skip_level
    finally:
        client.send(calls.delete(SOURCES, "redhat-operators", PLACE))
        client.send(calls.delete(NAMESPACES, PLACE))
        eventually(lambda: not there(client, NAMESPACES, PLACE), "the namespace is gone")
        for resource in (SUBSCRIPTIONS, SOURCES):
            client.send(calls.delete(DEFINITIONS, definition(resource)["metadata"]["name"]))


@pytest.fixture
def subject(marketplace: Sandbox) -> Iterator[Sandbox]:
    """With an operator whose channel the catalog of 5.2 has no more."""
    subscription = {
        **kind_of(SUBSCRIPTIONS),
        "metadata": {"name": "logging", "namespace": PLACE},
        "spec": {"name": "logging", "channel": "stable-5", "source": "redhat-operators", "sourceNamespace": PLACE},
        "status": {"installedCSV": "logging.v5.9.0"},
    }
    # Other tests have left a preflight of the same target running, whose result of before would be reported.
    marketplace.clear_preflight()
    marketplace.client.send(calls.create(SUBSCRIPTIONS, subscription))
    try:
        yield marketplace
    finally:
        marketplace.clear_preflight()
        marketplace.client.send(calls.delete(SUBSCRIPTIONS, "logging", PLACE))


@pytest.fixture(params=["operator", "dedicated"])
def account(request: pytest.FixtureRequest, subject: Sandbox, registry: str) -> Iterator[str]:
    """With whose rights the target reads the cluster; a CatalogSource may name the registry on this machine."""
    data = {"serviceAccount": request.param, "innerRegistries": registry}
    settings = {"metadata": {"name": SETTINGS, "namespace": OPERATORS}, "data": data}
    subject.client.send(calls.create(CONFIG_MAPS, settings))
    try:
        yield request.param
    finally:
        subject.client.send(calls.delete(CONFIG_MAPS, SETTINGS, OPERATORS))


def risk_message(sandbox: Sandbox, name: str) -> str:
    """What ClusterVersion says about that risk."""
    risks = sandbox.cluster_version().status.conditional_update_risks
    return next((risk.message for risk in risks if risk.name == name), "")


@pytest.mark.usefixtures("account")
def test_an_operator_that_the_next_catalog_leaves_behind(subject: Sandbox, registry: str) -> None:
    """It is a risk in ClusterVersion, names the image that nobody gave, and goes when its channel is another one."""
    done = subject.run("upgrade", "--mode=preflight", "--to=5.2.0", "--wait")
    assert done.code == 2, done.out + done.err
    message = risk_message(subject, LEFT_BEHIND)
    assert f"no update path in the catalog of 5.2 ({registry}/redhat/operator-index:v5.2)" in message
    assert "it has no channel stable-5, but stable-6" in message

    moved = {"spec": {"channel": "stable-6"}, "status": {"installedCSV": "logging.v6.0.0"}}
    subject.client.send(calls.merge_patch(SUBSCRIPTIONS, "logging", moved, PLACE))
    subject.until(lambda _version: not risk_message(subject, LEFT_BEHIND), "the risk is gone")


def test_the_same_from_outside(subject: Sandbox, registry: str) -> None:
    """Where it is asked for; else nobody knows, and that is said."""
    words = ("preflight", "run", "--to", "5.2.0", "-o", "json")
    quiet = json.loads(subject.run(*words).out)
    (unknown,) = (risk for risk in quiet["risks"] if "InTargetCatalog" in risk["name"])
    assert (unknown["name"], unknown["applies"]) == ("OperatorNotInTargetCatalogUnknown", "Unknown")
    assert f"{registry}/redhat/operator-index:v5.2: catalogs of the target are not read here" in unknown["message"]
    refused = json.loads(subject.run(*words, "--read-catalogs").out)
    (unknown,) = (risk for risk in refused["risks"] if "InTargetCatalog" in risk["name"])
    assert "an administrator may list it as an inner registry" in unknown["message"]
    read = json.loads(subject.run(*words, "--read-catalogs", "--inner-registry", registry).out)
    assert [risk["name"] for risk in read["risks"] if "InTargetCatalog" in risk["name"]] == [LEFT_BEHIND]
