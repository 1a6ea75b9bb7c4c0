"""A live cluster of which an answer is no JSON: a group or a kind is left out by name, and nothing else."""

from __future__ import annotations

import http.server
import json
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from kubekit.api.codec import DecodeError
from kubekit.error_types import Terminal
from kubekit.kube.config import ClusterConfig
from runup.rehearse.control.cluster_source import read_cluster_source
from runup.rehearse.control.rehearsal import cluster_version_of


def resources(*plurals: str) -> bytes:
    """A discovery page of core kinds."""
    listed = [{"name": each, "kind": each[:-1], "namespaced": True, "verbs": ["get", "list"]} for each in plurals]
    return json.dumps({"groupVersion": "v1", "resources": listed}).encode()


GROUPS = {"preferredVersion": {"groupVersion": "odd/v1"}, "versions": [{"groupVersion": "odd/v1"}]}
PAGE = b'{"metadata": {}, "items": [{"metadata": {"name": "a", "namespace": "b"}}]}'
WELL = {
    "/apis": json.dumps({"groups": [GROUPS]}).encode(),
    "/apis/odd/v1": b'{"groupVersion": "odd/v1", "resources": []}',
    "/api/v1": resources("pods", "services"),
    "/api/v1/pods": PAGE,
    "/api/v1/services": PAGE,
    "/version": b'{"gitVersion": "v1.34.1"}',
}


@pytest.fixture
def answers() -> dict[str, bytes]:
    """What the server says, by path."""
    return dict(WELL)


@pytest.fixture
def cluster(answers: dict[str, bytes]) -> Iterator[ClusterConfig]:
    """A server with these answers."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = answers[self.path.partition("?")[0]]
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            return

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        yield ClusterConfig(server=f"http://127.0.0.1:{server.server_address[1]}")
        server.shutdown()
        thread.join()


@pytest.mark.parametrize(
    ("path", "left_out"),
    [
        pytest.param("/apis/odd/v1", "odd/v1", id="a group's discovery"),
        pytest.param("/api/v1/services", "services", id="a list"),
    ],
)
@pytest.mark.parametrize("body", [b"{", b'"\xff"', b"[" * 2000], ids=["half", "no UTF-8", "deep"])
async def test_what_cannot_be_read_is_left_out(
    path: str, left_out: str, body: bytes, cluster: ClusterConfig, answers: dict[str, bytes]
) -> None:
    """And counts as not complete."""
    whole = await read_cluster_source(cluster)
    answers[path] = body
    source = await read_cluster_source(cluster)
    assert [each.kind for each in source.left_out] == [left_out, *(each.kind for each in whole.left_out)]
    assert ("", "pods") in source.collected.whole
    assert ("", left_out) not in source.collected.whole


CONFIG = "/apis/config.openshift.io/v1"
CONFIG_GROUP = {
    "preferredVersion": {"groupVersion": "config.openshift.io/v1"},
    "versions": [{"groupVersion": "config.openshift.io/v1"}],
}
OPENSHIFT = {
    "/apis": json.dumps({"groups": [CONFIG_GROUP]}).encode(),
    CONFIG: json.dumps(
        {
            "groupVersion": "config.openshift.io/v1",
            "resources": [
                {"name": "clusterversions", "kind": "ClusterVersion", "namespaced": False, "verbs": ["get", "list"]}
            ],
        }
    ).encode(),
    f"{CONFIG}/clusterversions": b'{"metadata": {}, "items": []}',
}


@pytest.mark.parametrize("path", [CONFIG, f"{CONFIG}/clusterversions"])
async def test_a_cluster_version_that_cannot_be_read_is_not_one_that_is_not_there(
    path: str, cluster: ClusterConfig, answers: dict[str, bytes]
) -> None:
    """Else a cluster of OpenShift would be rehearsed as one of Kubernetes alone."""
    answers |= OPENSHIFT
    assert cluster_version_of(await read_cluster_source(cluster)) is None
    answers[path] = b"{"
    with pytest.raises(
        Terminal, match=r"^ClusterVersion version of the cluster cannot be read: .*what the cluster gets$"
    ):
        cluster_version_of(await read_cluster_source(cluster))


@pytest.mark.parametrize("path", ["/apis", "/version"])
async def test_a_server_that_cannot_be_read(path: str, cluster: ClusterConfig, answers: dict[str, bytes]) -> None:
    """Is an error of the command."""
    answers[path] = b"<html>"
    with pytest.raises(DecodeError):
        await read_cluster_source(cluster)
