"""Commands run in this process against a real API server in another; each test starts from a fresh ClusterVersion."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from tests.servers import Server, eventually, serve

from kubekit.api import codec
from kubekit.kube.clock import machine_now
from runup.api.config_v1 import ClusterVersion
from runup.cli.main import main

__all__ = ["PAST", "Ran", "Run", "Server", "cluster", "eventually"]

PAST = datetime(2023, 11, 3, 6, tzinfo=UTC)


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server whose ClusterVersion knows `mode` and `acceptRisks`."""
    yield from serve(tmp_path_factory.mktemp("preview"), "CustomNoUpgrade")


@pytest.fixture(scope="session")
def old_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server whose ClusterVersion has neither `mode` nor `acceptRisks`: unknown fields are dropped."""
    yield from serve(tmp_path_factory.mktemp("default"), "Default", unknown="mode")


@pytest.fixture(scope="session")
def closed_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server of our releases with the gate closed: `mode` is known, and refused."""
    yield from serve(tmp_path_factory.mktemp("closed"), "Default")


@pytest.fixture(scope="session")
def past_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server as of a cluster that was imported from a dump: its time goes on from `PAST`, the machine's does not."""
    offset_s = (PAST - machine_now()).total_seconds()
    yield from serve(tmp_path_factory.mktemp("past"), "CustomNoUpgrade", offset_s=offset_s)


@dataclass(frozen=True)
class Ran:
    """What a command did."""

    code: int
    out: str
    err: str


Run = Callable[..., Ran]


@pytest.fixture
def run(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run a command line in this process, as `prog`, without anybody's kubeconfig."""
    monkeypatch.delenv("KUBECONFIG", raising=False)
    monkeypatch.setenv("HOME", "/nonexistent")

    def go(*words: str | Path, prog: str = "runup") -> Ran:
        capfd.readouterr()
        code = main([str(word) for word in words], prog=prog)
        out, err = capfd.readouterr()
        return Ran(code, out, err)

    return go


def cluster(document: dict[str, Any]) -> ClusterVersion:
    """A ClusterVersion out of what a test states."""
    return codec.convert(ClusterVersion, document)
