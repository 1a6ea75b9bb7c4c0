"""Every test of this folder on each server: the sandbox's always, a real kube-apiserver where one was asked for."""

from __future__ import annotations

import os
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.contract import other_versions
from tests.contract.api import CRDS, JSON, Api
from tests.contract.rows import DEFINITION, GROUP
from tests.controlplane import build
from tests.controlplane.plane import ControlPlane
from tests.controlplane.rows import SERVERS, programs
from tests.documents import document
from tests.servers import api_server

FOLDER = Path(__file__).parent


@pytest.fixture(scope="session")
def sandbox_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The kubeconfig of a sandbox API server."""
    with api_server(tmp_path_factory.mktemp("contract") / "data") as kubeconfig:
        yield kubeconfig


@pytest.fixture(scope="session")
def real_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """A real kube-apiserver with etcd."""
    with ControlPlane(tmp_path_factory.mktemp("controlplane"), programs()) as plane:
        yield plane


@pytest.fixture(scope="session", params=SERVERS)
def api(request: pytest.FixtureRequest) -> Iterator[Api]:
    """An administrator's connection to each server in turn."""
    if request.param == "sandbox":
        made = Api("sandbox", str(request.getfixturevalue("sandbox_server")))
    else:
        made = Api("kube-apiserver", str(request.getfixturevalue("real_server").kubeconfig))
    yield made
    made.close()


@pytest.fixture
def namespace(api: Api) -> str:
    """A namespace of the test's own. Nobody removes it: that takes a controller."""
    name = f"ns-{uuid.uuid4().hex[:10]}"
    api.post("/api/v1/namespaces", {"metadata": {"name": name}}).ok()
    return name


@pytest.fixture
def config_maps(namespace: str) -> str:
    """The path of the namespace's ConfigMaps."""
    return f"/api/v1/namespaces/{namespace}/configmaps"


@pytest.fixture
def deployments(namespace: str) -> str:
    """The path of the namespace's Deployments."""
    return f"/apis/apps/v1/namespaces/{namespace}/deployments"


@pytest.fixture(scope="session")
def widgets(api: Api) -> str:
    """The Widgets of `rows/definitions/widget.yaml` are served."""
    return define_widgets(api)


def define_widgets(api: Api) -> str:
    """Create the definition that rows use; its group once it is served."""
    made = api.post(CRDS, document(DEFINITION))
    assert made.code in {201, 409}, made.body  # another test was first
    _await_served(api, GROUP, f"/apis/{GROUP}/v1/widgets")
    return GROUP


def define(api: Api, schema: JSON, *, scope: str = "Cluster", status: bool = False, **version: Any) -> str:
    """Create a CRD with that schema in a separate group; the path of its resources once they are served."""
    group = f"g{uuid.uuid4().hex[:8]}.contract.example"
    names = {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"}
    served = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}, **version}
    if status:
        served["subresources"] = {"status": {}, **served.get("subresources", {})}
    crd = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"widgets.{group}"},
        "spec": {"group": group, "scope": scope, "names": names, "versions": [served]},
    }
    api.post(CRDS, crd).ok()
    path = f"/apis/{group}/v1/widgets"
    _await_served(api, group, path)
    return path


def _await_served(api: Api, group: str, path: str) -> None:
    """The schema counts too: server-side apply needs it."""
    deadline = time.monotonic() + 90
    while api.get(path).code == 404 or f"apis/{group}/v1" not in api.get("/openapi/v3").ok()["paths"]:
        assert time.monotonic() < deadline, f"{path} is not served"
        time.sleep(0.05)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """With another Kubernetes, what it is known to answer otherwise fails."""
    if version := os.environ.get(build.KUBERNETES):
        for item in items:
            if isinstance(item, pytest.Function) and item.path.parent == FOLDER and item.get_closest_marker("e2e"):
                other_versions.mark(item, version)
