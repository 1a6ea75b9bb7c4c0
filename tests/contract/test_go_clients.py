"""What Go operators are made of, as it comes: client-go's clients, informers, elections, and a reconciler.

Each case of `tests/goclient` is one run of its program. client-go encodes built-in kinds in protobuf by default, which
neither kubectl nor the Python clients show.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
from pathlib import Path

import pytest
from tests.clocks import Moved
from tests.contract.api import Api
from tests.controlplane.build import Unavailable
from tests.goclient import build

from kubekit.api.core_v1 import ConfigMap
from kubekit.api.scheme import resource_of
from kubekit.kube import calls
from kubekit.kube.client import Client
from kubekit.kube.config import load
from kubesandbox.apiserver.server import ApiServer

pytestmark = pytest.mark.slow

CASES = (
    "typed",
    "protobuf",
    "deletes",
    "patches",
    "definitions",
    "dynamic",
    "metadata",
    "metadata-streamed",
    "informers",
    "leader-election",
    "controller-runtime",
)


@pytest.fixture(scope="session")
def program() -> Path:
    """The built program; skips where there is no Go, or fails where it is required."""
    try:
        return build.build()
    except Unavailable as error:
        if os.environ.get("RUNUP_E2E") == "required":
            raise
        pytest.skip(str(error))


@pytest.mark.timeout(600)
@pytest.mark.xdist_group("goclient")
@pytest.mark.parametrize("case", CASES)
def test_a_go_program(api: Api, namespace: str, program: Path, case: str) -> None:
    """It ends well; what it prints otherwise names the step."""
    environ = {**os.environ, "KUBECONFIG": api.kubeconfig}
    done = subprocess.run(
        [program, case, namespace], env=environ, capture_output=True, text=True, timeout=300, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.timeout(600)
@pytest.mark.xdist_group("goclient")
async def test_a_metadata_informer_keeps_its_watch(tmp_path: Path, program: Path) -> None:
    """Five minutes of the server's time bring several bookmarks: one list, one watch, whatever they are."""
    clock = Moved()
    async with ApiServer(tmp_path / "data", clock=clock) as server, Client(load(str(server.kubeconfig))) as client:
        environ = {**os.environ, "KUBECONFIG": str(server.kubeconfig)}
        pipe = asyncio.subprocess.PIPE
        running = await asyncio.create_subprocess_exec(
            program, "metadata-watch", "default", env=environ, stdout=pipe, stderr=pipe
        )
        assert running.stdout is not None
        async with asyncio.timeout(240):
            assert await running.stdout.readline() == b"synced\n"
        for name in (*(f"minute-{count / 2:g}" for count in range(10)), "end"):
            clock.move(31)
            # A change wakes the watch, which then finds that a bookmark is due.
            made = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "default"}}
            await client.send(calls.create(resource_of(ConfigMap), made))
        async with asyncio.timeout(240):
            _, complaint = await running.communicate()
    assert (running.returncode, complaint.decode()) == (0, "")
