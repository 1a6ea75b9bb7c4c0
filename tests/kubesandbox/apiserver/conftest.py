"""An API server in this process, on a separate port, and a client of it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from kubekit.kube.client import Client
from kubekit.kube.config import load
from kubesandbox.apiserver.server import ApiServer


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[ApiServer]:
    """A server with an empty store."""
    async with ApiServer(data=tmp_path / "data") as running:
        yield running


@pytest.fixture
async def client(server: ApiServer) -> AsyncIterator[Client]:
    """The administrator."""
    async with Client(load(str(server.kubeconfig))) as connected:
        yield connected
