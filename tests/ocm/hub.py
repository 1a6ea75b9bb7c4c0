"""A hub of Open Cluster Management on a real kube-apiserver, and agents around clusters that join it.

Nothing of a kube-controller-manager runs on the hub: the certificates that agents ask for are approved and signed here,
as `clusteradm accept` and the cluster's signer would.
"""

from __future__ import annotations

import base64
import os
import signal
import subprocess
from pathlib import Path
from typing import Any, Self

import yaml
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from tests.controlplane.plane import ControlPlane
from tests.servers import CRD, eventually

from kubekit.api.scheme import Resource, resource_of
from kubekit.kube import calls, config
from kubekit.kube.api_errors import NotFound
from kubekit.kube.client_sync import SyncClient
from kubekit.kube.clock import SystemClock
from runup.api.hub_v1 import ManagedCluster
from runup.sandbox.setup.settings import free_ports

JSON = dict[str, Any]
NAMESPACES = Resource(group="", version="v1", kind="Namespace", plural="namespaces", namespaced=False)
CSR = Resource(
    group="certificates.k8s.io",
    version="v1",
    kind="CertificateSigningRequest",
    plural="certificatesigningrequests",
    namespaced=False,
)
CLUSTERS = resource_of(ManagedCluster)
HUB_NAMESPACE, AGENT_NAMESPACE = "open-cluster-management-hub", "open-cluster-management-agent"
CONTROLLERS = ("registration", "placement", "addons", "work")
CLUSTER_LABEL = "open-cluster-management.io/cluster-name"


class Process:
    """A part of Open Cluster Management as a process; `kill` leaves no time to say goodbye, `start` begins it again."""

    def __init__(self, data: Path, program: Path, name: str, *words: str) -> None:
        self._log = data / f"{name}.log"
        self._scratch = data
        # Each serves its health somewhere, by default all at one port.
        (port,) = free_ports(1)
        self._words = [str(program), *words, f"--listen=127.0.0.1:{port}", "--disable-leader-election"]
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Begin it; returns at once."""
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                self._words,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={**os.environ, "TMPDIR": str(self._scratch)},
            )

    def kill(self) -> None:
        """End it at once."""
        if self._process is not None:
            self._process.send_signal(signal.SIGKILL)
            self._process.wait(60)
            self._process = None

    def last_words(self) -> str:
        """The end of its log."""
        return self._log.read_text(errors="replace")[-3000:] if self._log.exists() else ""


class Hub:
    """`with Hub(...) as hub:` has the hub's server and controllers; whoever joined is let go at the end."""

    def __init__(self, data: Path, programs: Path, program: Path) -> None:
        self.data = data
        self.plane = ControlPlane(data / "hub", programs)
        self.agents: dict[str, Process] = {}
        self._program = program
        self.controllers = {
            name: Process(
                data,
                program,
                name,
                name,
                f"--kubeconfig={self.kubeconfig}",
                f"--namespace={HUB_NAMESPACE}",
            )
            for name in CONTROLLERS
        }

    @property
    def kubeconfig(self) -> Path:
        """The administrator's."""
        return self.plane.kubeconfig

    @property
    def client(self) -> SyncClient:
        """A new client of the hub's administrator, by addresses and credentials as they are now."""
        return SyncClient(config.load(str(self.kubeconfig)))

    def __enter__(self) -> Self:
        self.data.mkdir(parents=True, exist_ok=True)
        self.plane.start()
        try:
            with self.client as client:
                self.define(client, "hub-definitions")
                client.send(calls.create(NAMESPACES, {"metadata": {"name": HUB_NAMESPACE}}))
            for process in self.controllers.values():
                process.start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for process in (*self.agents.values(), *self.controllers.values()):
            process.kill()
        self.plane.stop()

    def define(self, client: SyncClient, which: str) -> None:
        """Apply the definitions of the hub or of a cluster, and wait until their kinds are served."""
        done = subprocess.run([str(self._program), which], capture_output=True, check=True, timeout=60)
        names = []
        # A template of an operator, with the conversion by a webhook that does not run here.
        for document in yaml.safe_load_all(done.stdout.replace(b"{{", b"'{{").replace(b"}}", b"}}'")):
            if document:
                document["spec"].pop("conversion", None)
                client.send(calls.apply(CRD, document, field_manager="tests", force=True))
                names.append(document["metadata"]["name"])
        for name in names:
            eventually(lambda name=name: _established(client, name), f"{name} is served")

    def join(self, name: str, kubeconfig: Path, labels: dict[str, str] | None = None) -> None:
        """Let a cluster register itself, accept it, and wait until the hub knows that it is there."""
        with SyncClient(config.load(str(kubeconfig))) as cluster:
            self.define(cluster, "cluster-definitions")
            cluster.send(calls.apply(NAMESPACES, {"metadata": {"name": AGENT_NAMESPACE}}, field_manager="tests"))
        folder = self.data / name
        folder.mkdir()
        self.agents[name] = Process(
            folder,
            self._program,
            "agent",
            "agent",
            f"--kubeconfig={kubeconfig}",
            f"--namespace={AGENT_NAMESPACE}",
            f"--spoke-cluster-name={name}",
            f"--bootstrap-kubeconfig={self.kubeconfig}",
            f"--hub-kubeconfig-dir={folder / 'hub-kubeconfig'}",
            f"--workload-source-config={folder / 'hub-kubeconfig' / 'kubeconfig'}",
            # Of a Klusterlet with one replica it is 60 s.
            "--status-sync-interval=5s",
            "--cluster-healthcheck-period=5s",
        )
        self.agents[name].start()
        with self.client as client:
            eventually(lambda: self._sign(client, name), f"{name} asks for a certificate: {self.last_words(name)}")
            eventually(lambda: _exists(client, CLUSTERS, name), f"{name} registers itself")
            patch = {"spec": {"hubAcceptsClient": True}, "metadata": {"labels": labels or {}}}
            client.send(calls.merge_patch(CLUSTERS, name, patch))
            eventually(lambda: self.available(client, name), f"{name} is available")

    def last_words(self, name: str) -> str:
        """The end of what an agent has logged."""
        return self.agents[name].last_words()

    def available(self, client: SyncClient, name: str) -> bool:
        """Whether the hub hears of the cluster."""
        found = client.send(calls.get(ManagedCluster, name)).status.conditions
        return any(each.type == "ManagedClusterConditionAvailable" and each.status == "True" for each in found)

    def _sign(self, client: SyncClient, name: str) -> bool:
        """Approve and sign what the agent of a cluster asks for; whether there was something."""
        found = client.listing_raw(CSR, label_selector=f"{CLUSTER_LABEL}={name}").items
        waiting = [each for each in found if not each.get("status", {}).get("certificate")]
        for request in waiting:
            conditions = [{"type": "Approved", "status": "True", "reason": "Test", "message": "of a test"}]
            approved = client.send(
                calls.replace(CSR, request | {"status": {"conditions": conditions}}, subresource="approval")
            )
            certificate = base64.b64encode(self._certificate(request["spec"])).decode()
            status = approved["status"] | {"certificate": certificate}
            client.send(calls.replace(CSR, approved | {"status": status}, subresource="status"))
        return bool(waiting)

    def _certificate(self, spec: JSON) -> bytes:
        """The certificate that a request asks for, by the authority of the hub."""
        request = x509.load_pem_x509_csr(base64.b64decode(spec["request"]))
        pki = self.plane.data / "pki"
        authority = x509.load_pem_x509_certificate((pki / "ca.crt").read_bytes())
        key = serialization.load_pem_private_key((pki / "ca.key").read_bytes(), None)
        assert isinstance(key, ec.EllipticCurvePrivateKey)
        now = SystemClock().now()
        builder = (
            x509.CertificateBuilder()
            .subject_name(request.subject)
            .issuer_name(authority.subject)
            .public_key(request.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now.replace(year=now.year - 1))
            .not_valid_after(now.replace(year=now.year + 1))
            .add_extension(x509.ExtendedKeyUsage([x509.ExtendedKeyUsageOID.CLIENT_AUTH]), critical=False)
        )
        return builder.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)


def _established(client: SyncClient, name: str) -> bool:
    found = client.send(calls.get_raw(CRD, name))
    # A real server answers with null until its controller has looked at the definition.
    conditions = found.get("status", {}).get("conditions") or []
    return any(each["type"] == "Established" and each["status"] == "True" for each in conditions)


def _exists(client: SyncClient, resource: Resource, name: str) -> bool:
    try:
        client.send(calls.get_raw(resource, name))
    except NotFound:
        return False
    return True
