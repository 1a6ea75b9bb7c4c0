"""An API server in a separate process, as tests use it: with a client, and a ClusterVersion to set and read."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.documents import document

import runup
from kubekit.api.scheme import Resource, resource_of
from kubekit.kube import calls, config
from kubekit.kube.api_errors import NotFound
from kubekit.kube.client_sync import SyncClient
from kubekit.kube.clock import CLOCK_OFFSET_VARIABLE
from runup.api.config_v1 import ClusterVersion

CRDS = Path(runup.__file__).parent / "sandbox" / "crds"
CRD = Resource(
    group="apiextensions.k8s.io",
    version="v1",
    kind="CustomResourceDefinition",
    plural="customresourcedefinitions",
    namespaced=False,
)
CLUSTER_VERSIONS = resource_of(ClusterVersion)
# A guard against waiting for ever: several pauses after failures, which double up to 30 s, can follow each other, and a
# process that shares two cores with fifty others starts in two minutes.
DEADLINE_S = 240.0
# Between two looks: at first, after some, and when a look takes long (a command, on a busy machine).
SHORTEST_PAUSE_S, USUAL_PAUSE_S, LONGEST_PAUSE_S = 0.02, 0.1, 0.5


def eventually(condition: Callable[[], Any], what: str, deadline_s: float = DEADLINE_S) -> Any:
    """The first true value of `condition`; fails after the deadline.

    It is asked for seldom enough that whoever must make it true has the processors: half of the time at most.
    """
    pause_s = SHORTEST_PAUSE_S
    deadline = time.monotonic() + deadline_s
    while (looked := time.monotonic()) < deadline:
        if found := condition():
            return found
        time.sleep(min(max(pause_s, time.monotonic() - looked), LONGEST_PAUSE_S))
        pause_s = min(pause_s * 1.25, USUAL_PAUSE_S)
    raise AssertionError(f"{what} did not happen within {deadline_s} s")


@dataclass(frozen=True)
class Server:
    """An API server whose ClusterVersion has the fields of one feature set."""

    kubeconfig: Path
    client: SyncClient

    def set_cluster_version(self, **changes: Any) -> dict[str, Any]:
        """Replace the ClusterVersion: `spec` and `status` are the whole of them, apart from what the API requires."""
        spec = {"clusterID": "4f1a8d5e-7ff2-4ef1-8f4b-6f4c3c1ac5b7", **changes.get("spec", {})}
        status = {
            "availableUpdates": None,
            "desired": {"version": "", "image": ""},
            "observedGeneration": 1,
            "versionHash": "",
        }
        status |= changes.get("status", {})
        self.remove_cluster_version()
        body = {"apiVersion": "config.openshift.io/v1", "kind": "ClusterVersion", "metadata": {"name": "version"}}
        created = self.client.send(calls.create(CLUSTER_VERSIONS, {**body, "spec": spec}))
        return self.client.send(calls.replace(CLUSTER_VERSIONS, {**created, "status": status}, subresource="status"))

    def remove_cluster_version(self) -> None:
        """Make sure that there is none."""
        try:
            self.client.send(calls.delete(CLUSTER_VERSIONS, "version"))
        except NotFound:
            return

    def cluster_version(self) -> dict[str, Any]:
        """The ClusterVersion as the server has it."""
        return self.client.send(calls.get_raw(CLUSTER_VERSIONS, "version"))

    def patch_status(self, **status: Any) -> dict[str, Any]:
        """What an operator would write."""
        return self.client.send(
            calls.merge_patch(CLUSTER_VERSIONS, "version", {"status": status}, subresource="status")
        )

    def patch_spec(self, **spec: Any) -> dict[str, Any]:
        """What an administrator would write."""
        return self.client.send(calls.merge_patch(CLUSTER_VERSIONS, "version", {"spec": spec}))


@contextmanager
def api_server(data: Path, *, offset_s: float = 0.0) -> Iterator[Path]:
    """The kubeconfig of an API server on the folder `data`, ended when the block is; its time is so far ahead."""
    with (data.parent / f"{data.name}.log").open("wb") as log:
        command = [sys.executable, "-m", "kubesandbox.apiserver", "--data", str(data), "--port", "0"]
        environment = {**os.environ, CLOCK_OFFSET_VARIABLE: str(offset_s)}
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, env=environment)
        try:
            assert process.stdout is not None
            line = process.stdout.readline().decode()
            assert "serving at" in line, Path(log.name).read_text()
            yield data / "admin.kubeconfig"
        finally:
            process.terminate()
            process.wait(60)


def serve(data: Path, feature_set: str, *, unknown: str = "", offset_s: float = 0.0) -> Iterator[Server]:
    """A server on the folder `data` that serves ClusterVersion as `feature_set` has it, until the test is over.

    `unknown` is a field of desiredUpdate that its definition lacks, as in releases of others. The server's time is
    `offset_s` ahead of the machine's.
    """
    with api_server(data, offset_s=offset_s) as kubeconfig, SyncClient(config.load(str(kubeconfig))) as client:
        name = f"0000_00_cluster-version-operator_01_clusterversions-{feature_set}.crd.yaml"
        crd = document(CRDS / name)
        schema = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
        schema["properties"]["spec"]["properties"]["desiredUpdate"]["properties"].pop(unknown, None)
        client.send(calls.create(CRD, crd))
        server = Server(kubeconfig, client)
        eventually(lambda: _answers(server), "the kind ClusterVersion is served")
        yield server


def _answers(server: Server) -> bool:
    try:
        server.client.send(calls.list_raw(CLUSTER_VERSIONS))
    except NotFound:
        return False
    return True
