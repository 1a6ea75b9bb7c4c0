"""The running version in another image, its multi-architecture one for instance: a preflight like any other."""

from __future__ import annotations

import json
import shutil
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from tests.journeys.conftest import Sandbox, started_sandbox
from tests.servers import eventually

from kubekit.api.conditions import find

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

SCENARIO = """
title: One release
base: common
cluster:
  version: 5.0.0
  channel: stable-5.1
  gates: [ClusterUpdatePreflight, ClusterUpdateAcceptRisks]
  operatorArgs: ["--update-service={service}"]
releases:
- {{version: 5.0.0, kubernetes: 1.35.2}}
"""


class Graphs:
    """What an update service knows about each architecture."""

    def __init__(self) -> None:
        self.images: dict[str, str] = {}
        self.asked: set[str] = set()

    def answer(self, query: dict[str, list[str]]) -> dict[str, Any]:
        """The one release, in the image of that architecture."""
        (architecture,) = query["arch"]
        self.asked.add(architecture)
        image = self.images.get(architecture, "")
        nodes = [{"version": "5.0.0", "payload": image, "metadata": {}}] if image else []
        return {"version": 1, "nodes": nodes, "edges": [], "conditionalEdges": []}


@contextmanager
def served(graphs: Graphs) -> Iterator[str]:
    """Its address."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = json.dumps(graphs.answer(parse_qs(urlsplit(self.path).query))).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            """Nobody reads it."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/graph"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture(scope="module")
def graphs() -> Graphs:
    """Empty until a test says more."""
    return Graphs()


@pytest.fixture(scope="module")
def sandbox(graphs: Graphs) -> Iterator[Sandbox]:
    """5.0.0, and nothing that it could be updated to."""
    folder = Path(tempfile.mkdtemp(prefix="runup-test-image-"))
    try:
        with served(graphs) as service:
            (folder / "scenario").mkdir()
            (folder / "scenario" / "scenario.yaml").write_text(SCENARIO.format(service=service))
            yield from started_sandbox(str(folder / "scenario"))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="module")
def other(sandbox: Sandbox, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The pull spec of another signed image of 5.0.0, pushed where the running one is."""
    manifests = tmp_path_factory.mktemp("release") / "release-manifests"
    manifests.mkdir()
    (manifests / "0000_50_a_00.yaml").write_text("apiVersion: v1\nkind: Namespace\nmetadata: {name: another}\n")
    running = sandbox.cluster_version().status.desired.image
    repository = running.partition("@")[0]
    done = sandbox.run(
        *("release", "new", "--from-dir", str(manifests.parent), "--version", "5.0.0"),
        *("--metadata", "release.openshift.io/architecture=multi"),
        *("--metadata", "io.openshift.build.versions=kubernetes=1.35.2"),
        *("--to", f"docker://{repository}:5.0.0-multi", "-a", str(sandbox.data / "registry-auth.json")),
        *("--sign-key", str(sandbox.data / "signing.key"), "--signature-store", str(sandbox.data / "signatures")),
    )
    assert done.code == 0, done.err
    digest = done.out.splitlines()[0]
    assert digest not in running
    return f"{repository}@{digest}"


def checked(sandbox: Sandbox, image: str, *words: str) -> set[str]:
    """The risks of the preflight, which ends with a result, about that image; the cluster stays as it is."""
    before = sandbox.cluster_version().status
    done = sandbox.run("upgrade", "--preflight", *words, "--wait")
    assert done.code in (0, 2), done.out + done.err
    after = sandbox.cluster_version().status
    completed = find(after.conditions, "PreflightCompleted")
    assert completed is not None and completed.status == "True", done.out + done.err
    assert completed.message.startswith("Preflight of 5.0.0 from 5.0.0")
    risky = {update.release.image: set(update.risk_names) for update in after.conditional_updates}
    offered = {release.image: set[str]() for release in after.available_updates or ()}
    assert (risky | offered).keys() == {image}
    assert (after.desired, after.history) == (before.desired, before.history)
    assert sandbox.run("upgrade", "--clear-preflight").code == 0
    return (risky | offered)[image]


def test_by_its_digest(sandbox: Sandbox, other: str) -> None:
    """Nobody offers it, and nothing else is wrong."""
    assert checked(sandbox, other, f"--to-image={other}") == {"UpdatePathNotOffered"}


def test_the_multi_architecture_one(sandbox: Sandbox, graphs: Graphs, other: str) -> None:
    """As the update service knows it, which is asked for that architecture."""
    graphs.images["multi"] = other
    assert checked(sandbox, other, "--to-multi-arch") == set()
    assert "multi" in graphs.asked
    # Once nobody wants the other one any more, if not before.
    eventually(lambda: "amd64" in graphs.asked, "the running architecture is asked for")
