"""What `kube_api` gives a test: namespaces, objects from files and dicts, other identities."""

from __future__ import annotations

import json
import ssl
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.kubesandbox.test_command import DEPLOYMENT, SHIP

from kubesandbox.pytest_plugin import KubeApiFactory
from kubesandbox.sandbox_error import SandboxError
from kubesandbox.testing import KubeApi

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("kube_api")]
ARGO: dict[str, Any] = {"apiVersion": "example.com/v1", "kind": "Ship", "metadata": {"name": "argo"}}
LOG: dict[str, Any] = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "log"}, "data": {"day": "1"}}


@pytest.fixture(scope="module")
def api(kube_api_factory: KubeApiFactory) -> Iterator[KubeApi]:
    """One server for this module."""
    with kube_api_factory() as made:
        yield made


def get(api: KubeApi, path: str, **headers: str) -> Any:
    """Reads with a client that gets the parts instead of a kubeconfig."""
    context = ssl.create_default_context(cafile=str(api.ca))
    if not headers:
        context.load_cert_chain(api.client_certificate, api.client_key)
    request = urllib.request.Request(api.server + path, headers=headers)
    with urllib.request.urlopen(request, context=context, timeout=90) as answer:
        return json.load(answer)


def test_namespaces_have_names_of_their_own_and_an_account(api: KubeApi) -> None:
    """So that tests which share a server do not meet."""
    first, second = api.namespace(), api.namespace("fleet")
    assert first.startswith("test-")
    assert second.startswith("fleet-")
    accounts = get(api, f"/api/v1/namespaces/{second}/serviceaccounts")["items"]
    assert [item["metadata"]["name"] for item in accounts] == ["default"]


def test_definitions_are_served_before_what_comes_after_them(api: KubeApi, tmp_path: Path) -> None:
    """Also where the object stands first; and a second time is no error."""
    file = tmp_path / "ships.json"
    file.write_text(json.dumps({"kind": "List", "apiVersion": "v1", "items": [ARGO, SHIP]}))
    namespace = api.namespace()
    for _ in range(2):
        definition, ship = api.load(file, namespace=namespace)
        assert definition["kind"] == "CustomResourceDefinition"
        assert (ship["metadata"]["name"], ship["metadata"]["namespace"]) == ("argo", namespace)


def test_an_object_that_exists_is_replaced(api: KubeApi) -> None:
    """Whole: what is no longer named is gone."""
    namespace = api.namespace()
    api.load(LOG, namespace=namespace)
    (replaced,) = api.load([{**LOG, "data": {"night": "2"}}], namespace=namespace)
    assert replaced["data"] == {"night": "2"}


@pytest.mark.parametrize(
    ("source", "said"),
    [
        pytest.param(
            {**ARGO, "kind": "Boat"}, "Boat argo: the server has no kind Boat of example.com/v1", id="no kind"
        ),
        pytest.param(
            {**LOG, "apiVersion": "v7"}, "ConfigMap log: the server has no kind ConfigMap of v7", id="no version"
        ),
        pytest.param({"metadata": {"name": "x"}}, "None x: the server has no kind None of None", id="no kind at all"),
        pytest.param({**LOG, "data": 1}, "ConfigMap log: ", id="what the server refuses"),
        pytest.param({**LOG, "metadata": {}}, "ConfigMap None: ", id="an object without a name"),
        pytest.param("none.yaml", "none.yaml: there is no such file or folder", id="a file that is not there"),
    ],
)
def test_what_cannot_be_created_is_named(api: KubeApi, source: Any, said: str) -> None:
    """With what the server said, where it was asked."""
    with pytest.raises(SandboxError) as refused:
        api.load(source)
    assert said in refused.value.message


def test_files_are_created_in_the_order_of_their_names(api: KubeApi, tmp_path: Path) -> None:
    """Namespaces before what is in them."""
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "harbour"}}
    deployment = {**DEPLOYMENT, "apiVersion": "apps/v1", "kind": "Deployment"}
    deployment = {**deployment, "metadata": {"name": "web", "namespace": "harbour"}}
    (tmp_path / "a.json").write_text(json.dumps(deployment))
    (tmp_path / "b.json").write_text(json.dumps(namespace))
    (tmp_path / "README.md").write_text("not an object")
    assert [made["kind"] for made in api.load(tmp_path)] == ["Namespace", "Deployment"]


def test_a_service_account_has_the_rights_of_its_roles(api: KubeApi) -> None:
    """Not the administrator's."""
    namespace = api.namespace()
    config = json.loads(api.kubeconfig_for("default", namespace).read_text())
    assert config["contexts"][0]["context"]["namespace"] == namespace
    token = config["users"][0]["user"]["token"]
    with pytest.raises(urllib.error.HTTPError) as refused:
        get(api, f"/api/v1/namespaces/{namespace}/secrets", Authorization=f"Bearer {token}")
    said = json.loads(refused.value.read())["message"]
    assert f'User "system:serviceaccount:{namespace}:default" cannot list resource "secrets"' in said
    assert get(api, f"/api/v1/namespaces/{namespace}/secrets")["items"] == []
