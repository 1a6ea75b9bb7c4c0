"""A real control plane on loopback: etcd and kube-apiserver as processes, with TLS, RBAC and an audit log.

`ControlPlane(data)` lays its folder out as the sandbox's API server does (`admin.kubeconfig`, `pki/`, `audit.log`), so
that whatever works in such a folder works on both.
"""

from __future__ import annotations

import ctypes
import json
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from ipaddress import ip_network
from pathlib import Path
from typing import Any, Self

from tests.controlplane import build
from tests.controlplane.kubelet import Kubelet

from kubekit.kube import calls, config
from kubekit.kube.api_errors import KubeError
from kubekit.kube.client_sync import SyncClient
from kubekit.kube.clock import SystemClock
from kubesandbox.apiserver.access import certs
from runup.sandbox.setup import settings

READY_S = 300.0
SERVICES = "10.0.0.0/24"
"""Where the addresses of Services are from; the first is that of the API server's own."""
# No controller-manager runs here: nobody would take the taint of a new node away, or make default service accounts.
_WITHOUT = "ServiceAccount,TaintNodesByCondition"
_AUDIT: dict[str, Any] = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "rules": [{"level": "Metadata"}],
}


class ControlPlane:
    """`start` returns once the server is ready; `stop` ends both processes. `kubelet` answers for all nodes."""

    def __init__(
        self,
        data: Path,
        programs: Path | None = None,
        *,
        disabled_admission: str = _WITHOUT,
        kubelet: Kubelet | None = None,
        address: str = "127.0.0.1",
        flags: Sequence[str] = (),
        before_start: Callable[[ControlPlane], None] = lambda plane: None,
        audit_rules: Sequence[dict[str, Any]] = (),
    ) -> None:
        """Keeps what `start` needs: `address` is where nodes and pods reach the server, `flags` come after ours.

        `before_start` is called once there is a certificate authority. Of what `audit_rules` do not name the audit log
        has who asked for what, without contents.
        """
        self.data = data
        self._address = address
        self._flags = flags
        self._before_start = before_start
        self._audit = {**_AUDIT, "rules": [*audit_rules, *_AUDIT["rules"]]}
        self._programs = programs or build.find()
        self._disabled = disabled_admission
        self._kubelet = kubelet
        self._processes: list[subprocess.Popen[bytes]] = []
        self._server: list[str] = []
        self._now = SystemClock().now()
        self._ca: certs.KeyPair | None = None
        self.url = ""

    @property
    def kubeconfig(self) -> Path:
        """The administrator's, of group system:masters."""
        return self.data / "admin.kubeconfig"

    @property
    def audit_log(self) -> Path:
        """One audit.k8s.io/v1 event a line."""
        return self.data / "audit.log"

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        """Start both; raises RuntimeError with the end of a log when they do not become ready."""
        self.data.mkdir(parents=True, exist_ok=True)
        known_as = () if self._on_loopback else (self._address, str(next(ip_network(SERVICES).hosts())))
        self._ca, _ = certs.load_or_create(self.data / "pki", self._now, known_as)
        self._before_start(self)
        if self._kubelet is not None:
            self._kubelet.start()
        client_port, peer_port, port = settings.free_ports(3)
        self.url = f"https://{self._address}:{port}"
        certs.write_private(self.kubeconfig, self.kubeconfig_for("kubernetes-admin", ("system:masters",)))
        self._run("etcd", *self._etcd_flags(client_port, peer_port))
        self._server = self._server_flags(client_port, port)
        self._run("kube-apiserver", *self._server)
        try:
            self._await_ready()
        except BaseException:
            self.stop()
            raise

    def restart_server(self, how: signal.Signals = signal.SIGTERM, programs: Path | None = None) -> None:
        """End kube-apiserver alone, start it again, of `programs` if given, and return once it is ready."""
        self._programs = programs or self._programs
        server = self._processes.pop()
        server.send_signal(how)
        server.wait(120)
        self._run("kube-apiserver", *self._server)
        self._await_ready()

    def stop(self) -> None:
        """End kube-apiserver, then etcd."""
        while self._processes:
            process = self._processes.pop()
            process.terminate()
            try:
                process.wait(60)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        if self._kubelet is not None:
            self._kubelet.stop()

    def kubeconfig_for(self, user: str, groups: Sequence[str] = ()) -> bytes:
        """A kubeconfig for that user, by client certificate."""
        pair = self.certificate_for(user, groups)
        assert self._ca is not None
        return certs.build_kubeconfig(self.url, self._ca, user, certs.client_credentials(pair))

    def certificate_for(self, user: str, groups: Sequence[str] = ()) -> certs.KeyPair:
        """A client certificate for that user."""
        assert self._ca is not None
        return certs.issue_client(self._ca, user, groups, self._now)

    def _etcd_flags(self, client_port: int, peer_port: int) -> list[str]:
        client, peer = f"http://127.0.0.1:{client_port}", f"http://127.0.0.1:{peer_port}"
        return [
            f"--data-dir={self.data / 'etcd'}",
            f"--listen-client-urls={client}",
            f"--advertise-client-urls={client}",
            f"--listen-peer-urls={peer}",
            f"--initial-advertise-peer-urls={peer}",
            f"--initial-cluster=default={peer}",
            # What is tested is not what a power cut leaves.
            "--unsafe-no-fsync",
            "--log-level=warn",
        ]

    def _server_flags(self, etcd_port: int, port: int) -> list[str]:
        pki = self.data / "pki"
        policy = self.data / "audit-policy.json"
        policy.write_text(json.dumps(self._audit))
        return [
            f"--etcd-servers=http://127.0.0.1:{etcd_port}",
            f"--bind-address={self._address}",
            # The endpoints of the Service `kubernetes` may not be on loopback: without another address there are none.
            f"--advertise-address={'192.0.2.1' if self._on_loopback else self._address}",
            f"--secure-port={port}",
            f"--cert-dir={pki}",
            f"--tls-cert-file={pki / 'server.crt'}",
            f"--tls-private-key-file={pki / 'server.key'}",
            f"--client-ca-file={pki / 'ca.crt'}",
            "--authorization-mode=RBAC",
            f"--disable-admission-plugins={self._disabled}",
            "--allow-privileged=true",
            f"--service-cluster-ip-range={SERVICES}",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-account-signing-key-file={pki / 'server.key'}",
            f"--service-account-key-file={pki / 'server.crt'}",
            f"--audit-log-path={self.audit_log}",
            f"--audit-policy-file={policy}",
            *([f"--egress-selector-config-file={self._kubelet.config}"] if self._kubelet else []),
            *self._flags,
        ]

    @property
    def _on_loopback(self) -> bool:
        return self._address == "127.0.0.1"

    def _run(self, program: str, *flags: str) -> None:
        with (self.data / f"{program}.log").open("ab") as log:
            process = subprocess.Popen(
                [str(self._programs / program), *flags],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self.data,
                preexec_fn=_die_with_parent,  # noqa: PLW1509 -- one system call, no lock
            )
        self._processes.append(process)

    def _await_ready(self) -> None:
        deadline = time.monotonic() + READY_S
        with SyncClient(config.load(str(self.kubeconfig))) as client:
            while True:
                for process in self._processes:
                    if process.poll() is not None:
                        raise RuntimeError(f"{process.args!r} ended with {process.returncode}\n{self._last_words()}")
                try:
                    client.send(calls.get_path("/readyz"))
                except KubeError as error:
                    if time.monotonic() > deadline:
                        raise RuntimeError(f"not ready in {READY_S:g} s: {error}\n{self._last_words()}") from error
                    time.sleep(0.1)
                else:
                    return

    def _last_words(self) -> str:
        logs = sorted(self.data.glob("*.log"))
        return "\n".join(f"{log.name}: {log.read_text(errors='replace')[-1500:]}" for log in logs)


def _die_with_parent() -> None:
    """A test that is killed leaves no server behind (prctl PR_SET_PDEATHSIG)."""
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)
