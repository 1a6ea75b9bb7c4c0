"""Kubernetes' own controllers on a real control plane, as the evaluate of the sandbox's: the same tests run on both.

`RUNUP_CONTROLLER_MANAGER` names a kube-controller-manager (`go build` in `manager/` makes one); kube-apiserver and etcd
are found as for the contract tests.
Pods are bound and declared ready by the sandbox's own scheduler and node agent: those are not what is evaluated here.
"""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.controlplane.plane import ControlPlane

PROGRAM = os.environ.get("RUNUP_CONTROLLER_MANAGER", "")


@contextmanager
def real_plane(data: Path) -> Iterator[ControlPlane]:
    """kube-apiserver with kube-controller-manager; ended after the block."""
    with ControlPlane(data) as plane, (data / "kube-controller-manager.log").open("wb") as log:
        pki = data / "pki"
        flags = [
            f"--kubeconfig={plane.kubeconfig}",
            f"--service-account-private-key-file={pki / 'server.key'}",
            f"--root-ca-file={pki / 'ca.crt'}",
            "--leader-elect=false",
            "--secure-port=0",
            "--use-service-account-credentials=false",
            "--controllers=*,-node-lifecycle-controller,-taint-eviction-controller",
        ]
        process = subprocess.Popen([PROGRAM, *flags], stdout=log, stderr=log)
        try:
            yield plane
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(60)
