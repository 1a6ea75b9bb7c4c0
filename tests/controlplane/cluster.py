"""A scenario's cluster around a real kube-apiserver: registry, update service, controllers, node agent, operator.

The same process that a sandbox runs, with the same folder; only the server is the real one. Its controllers and its
node agent take the place of kube-controller-manager, kube-scheduler and kubelet.
"""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from typing import Self

from tests.controlplane.kubelet import Kubelet
from tests.controlplane.plane import ControlPlane

from kubekit.api.scheme import Resource
from kubekit.kube import calls, config
from kubekit.kube.client_sync import SyncClient
from kubesandbox.apiserver import initial_objects
from runup.sandbox.setup import settings
from runup.sandbox.setup.settings import Settings

READY_S = 240.0
_ROLES = Resource(
    group="rbac.authorization.k8s.io", version="v1", kind="ClusterRole", plural="clusterroles", namespaced=False
)
_LOG = "cluster.log"


class Cluster:
    """`with Cluster(data, programs, "skip-level")`: ready at the beginning, gone at the end."""

    def __init__(self, data: Path, programs: Path, scenario: str) -> None:
        self.plane = ControlPlane(data, programs, kubelet=Kubelet(data))
        registry, updates = settings.free_ports(2)
        self._data = data
        self._settings = Settings(scenario=scenario, registry_port=registry, update_port=updates)
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        self.plane.start()
        try:
            self._put_cluster_reader()
            self._start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        if self._process is not None:
            self._process.terminate()
            self._process.wait(60)
        self.plane.stop()

    def _put_cluster_reader(self) -> None:
        """OpenShift's own: a plain Kubernetes has none."""
        role = initial_objects.cluster_reader()
        with SyncClient(config.load(str(self.plane.kubeconfig))) as client:
            client.send(calls.apply(_ROLES, role, field_manager="tests"))

    def _start(self) -> None:
        settings.save(self._data, self._settings)
        with (self._data / _LOG).open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "runup.sandbox.processes.cluster_process", "--data", str(self._data)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        deadline = time.monotonic() + READY_S
        while settings.ready(self._data) is None:
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"not ready:\n{(self._data / _LOG).read_text(errors='replace')[-3000:]}")
            time.sleep(0.05)
