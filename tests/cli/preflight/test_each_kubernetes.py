"""A cluster of whatever Kubernetes the server is: what is asked of it, and informed of it, uses its own version.

`RUNUP_KUBERNETES=1.29 make e2e` asks an older one.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cli.commands import Run
from tests.cli.preflight.test_any_kubernetes import NODES, reported_node
from tests.controlplane.plane import ControlPlane
from tests.controlplane.rows import SERVERS, programs
from tests.servers import api_server

from kubekit.kube import calls, config
from kubekit.kube.client_sync import SyncClient

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module", params=SERVERS)
def cluster(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, str]]:
    """Kubeconfig and version of a cluster with one node of the server's own version."""
    folder = tmp_path_factory.mktemp("each")
    if request.param == "sandbox":
        with api_server(folder / "data") as kubeconfig:
            yield kubeconfig, _filled(kubeconfig)
    else:
        with ControlPlane(folder, programs()) as plane:
            yield plane.kubeconfig, _filled(plane.kubeconfig)


def _filled(kubeconfig: Path) -> str:
    with SyncClient(config.load(str(kubeconfig))) as client:
        version = client.send(calls.server_version())
        body = reported_node("worker-0", version)
        client.send(calls.create(NODES, body))
        client.send(calls.merge_patch(NODES, "worker-0", {"status": body["status"]}, subresource="status"))
    return version


def test_a_preflight_of_the_next_minor_version(cluster: tuple[Path, str], run: Run) -> None:
    """Every check is carried out; none fails because the server lacks an API of a later version, or has one more."""
    kubeconfig, version = cluster
    minor = int(version.split(".")[1])
    ran = run("preflight", "run", "--kubeconfig", kubeconfig, "-o", "json")
    shown = json.loads(ran.out)
    assert shown["source"].partition("+")[0] == version.removeprefix("v").partition("+")[0], ran.err
    assert shown["target"] == f"1.{minor + 1}.0"
    assert {each["name"] for each in shown["checks"] if each["result"] == "Unknown"} == set()
    assert ran.code == 0, shown["risks"]


def test_what_the_other_commands_say(cluster: tuple[Path, str], run: Run) -> None:
    """`check` and `upgrade status` report the cluster's version."""
    kubeconfig, version = cluster
    checked = run("check", "--kubeconfig", kubeconfig)
    assert f"Kubernetes {version}" in checked.out, checked.err
    status = run("upgrade", "status", "--kubeconfig", kubeconfig)
    assert status.code == 0, status.err
    assert f"kube-apiserver {version}" in status.out
