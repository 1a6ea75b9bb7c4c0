"""One API server for all clients, and a separate namespace for each test."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest
from tests.servers import Server, serve

from kubekit.api.core_v1 import Namespace
from kubekit.api.scheme import resource_of
from kubekit.kube import calls

_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server with the CustomResourceDefinition of ClusterVersion."""
    yield from serve(tmp_path_factory.mktemp("clients"), "CustomNoUpgrade")


@pytest.fixture
def namespace(server: Server) -> str:
    """A fresh namespace."""
    name = f"clients-{next(_numbers)}"
    body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
    server.client.send(calls.create(resource_of(Namespace), body))
    return name
