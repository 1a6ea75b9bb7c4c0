"""Runs a real kube-apiserver with its etcd on loopback, for one rehearsal: with TLS, and without a way out.

In: the programs, and the objects as etcd must hold them. Out: a server that is ready. Both processes end with the
block, and with this process however it ends (Linux). The objects are written to etcd and not through the API, since a
create gives new uids, drops `status` and `managedFields`, and refuses what must be looked at (docs/decisions/0101).
"""

from __future__ import annotations

import asyncio
import base64
import json
import os
import re
import shutil
import subprocess
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from kubekit.error_types import Terminal
from kubekit.kube import calls
from kubekit.kube.api_errors import KubeError
from kubekit.kube.client import Client
from kubekit.kube.clock import Clock
from kubekit.kube.config import load as load_kubeconfig
from kubekit.kube.request import Call, Request
from kubesandbox.apiserver.access import certs
from kubesandbox.node.container_process import die_with_parent
from runup.sandbox.setup.settings import free_ports

PROGRAMS = ("kube-apiserver", "etcd")
READY_S = 300.0
_VERSION = re.compile(r"v(\d+\.\d+\.\d+)")
_VERSION_S = 60
_MAX_START_ATTEMPTS = 3
_ADDRESS_TAKEN = "address already in use"
# No controllers run here: nobody makes default service accounts, or takes the taint of a new node away. Webhooks are
# others' programs, and a copy reaches nobody.
_DISABLED_PLUGINS = (
    "ServiceAccount",
    "TaintNodesByCondition",
    "MutatingAdmissionWebhook",
    "ValidatingAdmissionWebhook",
    "ImagePolicyWebhook",
)
_WRITES_AT_ONCE = 256
_LONGEST_REQUEST = 256 * 1024 * 1024
_ADVERTISED_ADDRESS = "192.0.2.1"


class ProgramsMissing(Exception):
    """Error raised if there is no real API server to run; the message names missing programs and their source."""


@dataclass(frozen=True, slots=True)
class ServerPrograms:
    """The programs of a real API server, and the version of Kubernetes that it is of, such as `1.34.4`."""

    kube_apiserver: Path
    etcd: Path
    version: str


def find_programs(folder: str, environ: Mapping[str, str] = os.environ) -> ServerPrograms:
    """Returns the programs in `folder`, or in the folders of PATH if it is empty. Raises ProgramsMissing."""
    searched = f"in {folder}" if folder else "in the folders of PATH"
    search = folder or environ.get("PATH", "")
    program_paths = {name: shutil.which(name, path=search) for name in PROGRAMS}
    if missing := [name for name, path in program_paths.items() if path is None]:
        text = f"--server real needs {' and '.join(PROGRAMS)}: there is no {' and no '.join(missing)} {searched}"
        raise ProgramsMissing(f"{text}; name the folder that has them by --server-binaries")
    server, etcd = (Path(str(program_paths[name])).absolute() for name in PROGRAMS)
    try:
        ran = subprocess.run([server, "--version"], capture_output=True, text=True, timeout=_VERSION_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ProgramsMissing(f"{server} does not run: {error}") from error
    version = _VERSION.search(ran.stdout)
    if version is None:
        raise ProgramsMissing(f"{server} --version does not say which version of Kubernetes it is")
    return ServerPrograms(server, etcd, version[1])


class RealServer:
    """A kube-apiserver and its etcd, with everything that they write below `folder`."""

    def __init__(self, programs: ServerPrograms, folder: Path, clock: Clock, services: str) -> None:
        self._programs, self._folder, self._clock, self._services = programs, folder, clock, services
        self._processes: list[asyncio.subprocess.Process] = []
        self._ca, _ = certs.load_or_create(folder / "pki", clock.now())
        self._etcd_config = folder / "etcd.kubeconfig"
        self.url = ""
        client = certs.issue_client(self._ca, "kube-apiserver", (), clock.now())
        certs.write_private(folder / "pki" / "etcd-client.key", client.key)
        (folder / "pki" / "etcd-client.crt").write_bytes(client.cert)
        self._etcd_client = client

    def kubeconfig_for(self, name: str, user: str, groups: Sequence[str]) -> Path:
        """Writes a kubeconfig for a user, and returns its path."""
        pair = certs.issue_client(self._ca, user, groups, self._clock.now())
        path = self._folder / f"{name}.kubeconfig"
        certs.write_private(path, certs.build_kubeconfig(self.url, self._ca, user, certs.client_credentials(pair)))
        return path

    async def start(self, objects: Iterable[tuple[str, bytes]]) -> None:
        """Starts etcd, puts the objects into it by their keys, and starts kube-apiserver. Raises Terminal."""
        deadline = self._clock.monotonic() + READY_S
        etcd_port, peer_port, port = free_ports(3)
        etcd = f"https://127.0.0.1:{etcd_port}"
        credentials = certs.client_credentials(self._etcd_client)
        certs.write_private(self._etcd_config, certs.build_kubeconfig(etcd, self._ca, "kube-apiserver", credentials))
        await self._run(self._programs.etcd, *self._etcd_flags(etcd, f"https://127.0.0.1:{peer_port}"))
        async with Client(load_kubeconfig(str(self._etcd_config)), clock=self._clock) as client:
            await self._until(client, Call(Request(method="GET", path="/health"), lambda data: data), deadline)
            rows = iter(objects)
            while batch := list(islice(rows, _WRITES_AT_ONCE)):
                puts = [
                    {"requestPut": {"key": _base64_text(key.encode()), "value": _base64_text(raw)}}
                    for key, raw in batch
                ]
                put_transaction = Call(
                    Request(
                        method="POST",
                        path="/v3/kv/txn",
                        query=(),
                        headers=(),
                        body=json.dumps({"success": puts}).encode(),
                    ),
                    lambda data: data,
                )
                await client.send(put_transaction)
        self.url = f"https://127.0.0.1:{port}"
        admin = self.kubeconfig_for("admin", "kubernetes-admin", ("system:masters",))
        await self._run(self._programs.kube_apiserver, *self._server_flags(etcd, port))
        async with Client(load_kubeconfig(str(admin)), clock=self._clock) as client:
            await self._until(client, calls.get_path("/readyz"), deadline)

    async def delete_keys(self, keys: Iterable[str]) -> None:
        """Deletes objects from etcd that the server cannot read."""
        async with Client(load_kubeconfig(str(self._etcd_config)), clock=self._clock) as client:
            for key in keys:
                body = json.dumps({"key": _base64_text(key.encode())}).encode()
                await client.send(
                    Call(
                        Request(method="POST", path="/v3/kv/deleterange", query=(), headers=(), body=body),
                        lambda data: data,
                    )
                )

    async def stop(self) -> None:
        """Ends both processes. At once: nothing that they hold is kept."""
        while self._processes:
            process = self._processes.pop()
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()

    async def _until(self, client: Client, call: Call[Any], deadline: float) -> None:
        """Waits until a request is answered. Raises Terminal when a process has ended, or at the deadline."""
        while True:
            try:
                await client.send(call)
            except KubeError as error:
                ended = next((process for process in self._processes if process.returncode is not None), None)
                if ended is not None or self._clock.monotonic() > deadline:
                    reason = f"it ended with {ended.returncode}" if ended else f"not ready in {READY_S:g} s: {error}"
                    text = f"the real API server did not start: {reason}: {self._last_words()}"
                    raise Terminal(text, reason="ServerNotStarted") from error
                await asyncio.sleep(0.05)
            else:
                return

    async def _run(self, program: Path, *flags: str) -> None:
        """Starts a program that ends with this process, with its output in a file of its name."""
        with (self._folder / f"{program.name}.log").open("ab") as log:
            process = await asyncio.create_subprocess_exec(
                program,
                *flags,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self._folder,
                # A proxy of the user's is none of the copy's.
                env={name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")},
                # Ctrl-C in a terminal goes to the whole group; who ends these two is this process.
                start_new_session=True,
                preexec_fn=die_with_parent,
            )
        self._processes.append(process)

    def _last_words(self) -> str:
        """Returns the last lines of every log, at most 1,500 characters."""
        lines = [
            line
            for log in sorted(self._folder.glob("*.log"))
            for line in log.read_text(errors="replace").splitlines()[-3:]
        ]
        return " / ".join(lines)[-1500:]

    def _etcd_flags(self, client: str, peer: str) -> list[str]:
        """Returns the flags of an etcd that keeps nothing beyond its process."""
        pki = self._folder / "pki"
        pair = [
            f"cert-file={pki / 'server.crt'}",
            f"key-file={pki / 'server.key'}",
            f"trusted-ca-file={pki / 'ca.crt'}",
        ]
        return [
            f"--data-dir={self._folder / 'etcd'}",
            f"--listen-client-urls={client}",
            f"--advertise-client-urls={client}",
            f"--listen-peer-urls={peer}",
            f"--initial-advertise-peer-urls={peer}",
            f"--initial-cluster=default={peer}",
            *(f"--{flag}" for flag in pair),
            *(f"--peer-{each}" for each in pair),
            "--client-cert-auth",
            "--peer-client-cert-auth",
            f"--client-cert-file={pki / 'etcd-client.crt'}",
            f"--client-key-file={pki / 'etcd-client.key'}",
            f"--max-request-bytes={_LONGEST_REQUEST}",
            f"--max-txn-ops={_WRITES_AT_ONCE}",
            f"--quota-backend-bytes={8 * 1024**3}",
            # Nothing of it is kept.
            "--unsafe-no-fsync",
            "--log-level=warn",
        ]

    def _server_flags(self, etcd: str, port: int) -> list[str]:
        """Returns the flags of a kube-apiserver on loopback that calls no other server."""
        pki = self._folder / "pki"
        # Calls to webhooks, services and nodes go to a socket without a listener.
        transport = {"uds": {"udsName": str(self._folder / "nobody.sock")}}
        connection = {"proxyProtocol": "HTTPConnect", "transport": transport}
        config = {
            "apiVersion": "apiserver.k8s.io/v1beta1",
            "kind": "EgressSelectorConfiguration",
            "egressSelections": [{"name": name, "connection": connection} for name in ("cluster", "controlplane")],
        }
        path = self._folder / "egress.json"
        path.write_text(json.dumps(config))
        return [
            f"--etcd-servers={etcd}",
            f"--etcd-cafile={pki / 'ca.crt'}",
            f"--etcd-certfile={pki / 'etcd-client.crt'}",
            f"--etcd-keyfile={pki / 'etcd-client.key'}",
            "--bind-address=127.0.0.1",
            # The endpoints of the Service `kubernetes` may not be on loopback.
            f"--advertise-address={_ADVERTISED_ADDRESS}",
            f"--secure-port={port}",
            f"--cert-dir={pki}",
            f"--tls-cert-file={pki / 'server.crt'}",
            f"--tls-private-key-file={pki / 'server.key'}",
            f"--client-ca-file={pki / 'ca.crt'}",
            "--anonymous-auth=false",
            "--authorization-mode=RBAC",
            f"--disable-admission-plugins={','.join(_DISABLED_PLUGINS)}",
            "--allow-privileged=true",
            f"--service-cluster-ip-range={self._services}",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-account-signing-key-file={pki / 'server.key'}",
            f"--service-account-key-file={pki / 'server.crt'}",
            f"--egress-selector-config-file={path}",
            "--v=0",
        ]


@asynccontextmanager
async def real_server(
    programs: ServerPrograms, folder: Path, clock: Clock, *, services: str, objects: Sequence[tuple[str, bytes]]
) -> AsyncIterator[RealServer]:
    """Yields a server that is ready and has the objects, by their keys in etcd. Raises Terminal.

    `services` is the range of the addresses of Services.
    """
    for attempt in range(1, _MAX_START_ATTEMPTS + 1):
        attempt_folder = folder / f"server-{attempt}"
        attempt_folder.mkdir(mode=0o700)
        server = RealServer(programs, attempt_folder, clock, services)
        try:
            try:
                await server.start(objects)
            except Terminal as error:
                # Between the choice of a port and its use somebody else may take it.
                if _ADDRESS_TAKEN in str(error) and attempt < _MAX_START_ATTEMPTS:
                    continue
                raise
            yield server
            return
        finally:
            await server.stop()


def _base64_text(data: bytes) -> str:
    return base64.b64encode(data).decode()


def service_range(addresses: Iterator[str]) -> str:
    """Returns the range that the addresses of Services are taken from, by that of the Service `kubernetes`."""
    from ipaddress import ip_address, ip_network

    first_address = next(addresses, "")
    try:
        address = ip_address(first_address)
    except ValueError:
        return "10.0.0.0/16"
    return str(ip_network(f"{address}/{16 if address.version == 4 else 112}", strict=False))
