"""A Kubernetes API server for tests, as a separate process.

with kube_api(Path("data"), crds=["config/crd/bases"]) as api:
    print(api.kubeconfig, api.namespace())

The pytest fixtures of the same name are in `pytest_plugin`. Only the standard library is imported until a method
needs more, since pytest loads the plugin in every project.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import shlex
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kubekit.kube.client_sync import SyncClient
    from kubesandbox.webhooks import WebhookServing

JSON = dict[str, Any]
START_TIMEOUT_S = 180.0
STOP_TIMEOUT_S = 10.0
LOG = "server.log"
_LOG_LINES = 20


class StartError(Exception):
    """An API server that did not start; the message holds the end of its log."""


class CommandError(Exception):
    """A command that the server refused, or that cannot reach it; the message has the reason."""


class KubeApi:
    """A running API server: its address and credentials, and methods that prepare objects for tests.

    `process` is the server that was started; without it, as in another process than the one that started the server,
    there are no snapshots, faults or moves of the clock.
    """

    def __init__(self, data: Path, process: subprocess.Popen[bytes] | None = None) -> None:
        self._process = process
        self._command_lock = threading.Lock()
        self.data = data
        """Folder of the server: objects, certificates, `audit.log` (every request) and `server.log`."""
        self.kubeconfig = data / "admin.kubeconfig"
        """The administrator's kubeconfig."""
        self.ca = data / "pki" / "ca.crt"
        """PEM certificate of the authority that signed the server's certificate."""
        self._client: SyncClient | None = None
        config = json.loads(self.kubeconfig.read_text())
        self.server: str = config["clusters"][0]["cluster"]["server"]
        """URL of the server."""
        user = config["users"][0]["user"]
        self.client_certificate = self._write_private("client.crt", base64.b64decode(user["client-certificate-data"]))
        """PEM certificate of the administrator, for clients that read no kubeconfig; `client_key` is its key."""
        self.client_key = self._write_private("client.key", base64.b64decode(user["client-key-data"]))

    def namespace(self, prefix: str = "test") -> str:
        """Creates a namespace with an unused name, and returns the name.

        Its ServiceAccount `default` exists when this returns; a real server accepts no pods without it.
        """
        namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"generateName": f"{prefix}-"}}
        (created,) = self.load(namespace)
        name: str = created["metadata"]["name"]
        self._create_default_account(name)
        return name

    def _create_default_account(self, namespace: str) -> None:
        """Creates the ServiceAccount `default`, since its controller lists every kind first, which takes a while."""
        from kubekit.api.scheme import Resource
        from kubekit.kube import calls
        from kubekit.kube.api_errors import AlreadyExists

        accounts = Resource(group="", version="v1", kind="ServiceAccount", plural="serviceaccounts", namespaced=True)
        account = {
            "apiVersion": "v1",
            "kind": "ServiceAccount",
            "metadata": {"name": "default", "namespace": namespace},
        }
        with suppress(AlreadyExists):
            self._connected_client().send(calls.create(accounts, account))

    def load(
        self,
        source: str | os.PathLike[str] | Mapping[str, Any] | Iterable[Mapping[str, Any]],
        *,
        namespace: str = "default",
    ) -> list[JSON]:
        """Creates the objects of a file, of a folder, or given as dicts, and returns them as the server has them.

        CustomResourceDefinitions come first, and their kinds are served when this returns. An existing object is
        replaced. `namespace` is for those that name none. Raises SandboxError, which names the file or the object.
        """
        from kubesandbox import manifests

        if isinstance(source, (str, os.PathLike)):
            documents = manifests.read(Path(source))
        else:
            objects = [source] if isinstance(source, Mapping) else source
            documents = [manifests.Document(dict(obj)) for obj in objects]
        return manifests.load(self._connected_client(), documents, namespace=namespace)

    def install_webhooks(
        self, source: str | os.PathLike[str] | Iterable[Mapping[str, Any]], *, host: str = "127.0.0.1", port: int = 0
    ) -> WebhookServing:
        """Creates the objects of a file, of a folder, or given as dicts, with webhooks served on this machine.

        As envtest does, `clientConfig` of webhook configurations and of conversions in definitions gets a URL instead
        of a Service, and a `caBundle`. The result has the host, the port and the certificates to serve them with.
        Raises SandboxError.
        """
        from kubesandbox import manifests, webhooks

        serving = webhooks.prepare(Path(tempfile.mkdtemp(prefix="webhooks-", dir=self.data)), host, port)
        documents = (
            manifests.read(Path(source))
            if isinstance(source, (str, os.PathLike))
            else [manifests.Document(dict(obj)) for obj in source]
        )
        prepared = [manifests.Document(webhooks.with_serving(each.object, serving), each.file) for each in documents]
        manifests.load(self._connected_client(), prepared)
        return serving

    def token(self, service_account: str = "default", namespace: str = "default") -> str:
        """Returns a bearer token of a ServiceAccount, for example to test an operator with the rights of its Role."""
        from kubekit.kube.reviews import token_request

        if service_account == "default":
            self._create_default_account(namespace)
        return self._connected_client().send(token_request(service_account, namespace, expiration_s=86400)).token

    def kubeconfig_for(self, service_account: str, namespace: str = "default") -> Path:
        """Writes a kubeconfig whose user is a ServiceAccount rather than the administrator, and returns its path."""
        config = json.loads(self.kubeconfig.read_text())
        name = f"{namespace}_{service_account}"
        config["users"] = [{"name": name, "user": {"token": self.token(service_account, namespace)}}]
        config["contexts"][0]["context"] |= {"user": name, "namespace": namespace}
        return self._write_private(f"{name}.kubeconfig", json.dumps(config, indent=2).encode())

    def user_kubeconfig(self, user: str, groups: Iterable[str] = ()) -> Path:
        """Writes a kubeconfig for a user of any name and groups, by client certificate, and returns its path.

        The user has the rights that RBAC gives to the name and the groups; `system:masters` has all of them.
        """
        from kubekit.kube.clock import machine_now
        from kubesandbox.apiserver.access import certs

        pki = self.data / "pki"
        authority = certs.KeyPair((pki / "ca.crt").read_bytes(), (pki / "ca.key").read_bytes())
        credentials = certs.client_credentials(certs.issue_client(authority, user, tuple(groups), machine_now()))
        content = certs.build_kubeconfig(self.server, authority, user, credentials)
        # Names of users have characters that names of files have not.
        return self._write_private(f"user-{hashlib.sha256(content).hexdigest()[:16]}.kubeconfig", content)

    def snapshot(self) -> int:
        """Remembers all stored objects, in milliseconds, and returns the number for `restore`."""
        number: int = self._command("snapshot")["snapshot"]
        return number

    def restore(self, snapshot: int) -> None:
        """Makes the stored objects those of a snapshot. Watches see the difference as changes."""
        self._command("restore", snapshot=snapshot)

    def advance(self, seconds: float) -> datetime:
        """Moves the server's clock forward, for example past the expiry of a token; returns the new time."""
        return datetime.fromisoformat(self._command("advance", seconds=seconds)["now"])

    def drop_watches(self, *, expired: bool = False) -> None:
        """Ends all watches. With `expired` they cannot resume: their resourceVersion is answered by 410."""
        self._command("drop_watches", expired=expired)

    @contextmanager
    def fault(
        self,
        *,
        status: int = 0,
        latency_s: float = 0.0,
        verbs: Iterable[str] = (),
        resource: str = "",
        times: int | None = None,
        **others: Any,
    ) -> Iterator[None]:
        """Delays or refuses the selected requests while the block runs; those of the controllers are left out.

        `status` is the code of the refusal, such as 409, 410, 429 or 500; `verbs` are those of RBAC; `resource` is
        `deployments.apps` or `pods`; `times` is the number of requests, by default all. `others` may have `namespace`,
        `name`, `user` and `retry_after_s`.
        """
        fault = {"status": status, "latency_s": latency_s, "verbs": list(verbs), "resource": resource, "times": times}
        number = self._command("fault", **fault, **others)["id"]
        try:
            yield
        finally:
            self._command("remove_faults", ids=[number])

    def _command(self, name: str, **arguments: Any) -> JSON:
        """Sends a command to the server and returns the answer. Raises CommandError."""
        process = self._process
        if process is None or process.stdin is None or process.stdout is None:
            raise CommandError(f"{name} needs the process that started the server; this one only uses it")
        with self._command_lock:
            try:
                process.stdin.write(json.dumps({"command": name, **arguments}).encode() + b"\n")
                process.stdin.flush()
                line = process.stdout.readline()
            except OSError as error:
                raise CommandError(f"{name}: the server has ended: {error}") from error
        if not line:
            raise CommandError(f"{name}: the server has ended; {self.data / LOG} says why")
        answer: JSON = json.loads(line)
        if "error" in answer:
            raise CommandError(f"{name}: {answer['error']}")
        return answer

    def close(self) -> None:
        """Closes the connection that `namespace` and `load` use."""
        if self._client is not None:
            self._client.close()
            self._client = None

    def _connected_client(self) -> SyncClient:
        if self._client is None:
            from kubekit.kube.client_sync import SyncClient
            from kubekit.kube.config import load as load_kubeconfig

            self._client = SyncClient(load_kubeconfig(str(self.kubeconfig)))
        return self._client

    def _write_private(self, name: str, data: bytes) -> Path:
        path = self.data / name
        path.touch(mode=0o600)
        # Other processes that use the server read the file, so it is written once.
        if path.read_bytes() != data:
            path.write_bytes(data)
        return path


@contextmanager
def kube_api(
    data: str | os.PathLike[str],
    *,
    crds: Iterable[str | os.PathLike[str]] = (),
    node: bool = False,
    controllers: bool = True,
    kubernetes_version: str = "",
    feature_gates: str = "",
) -> Iterator[KubeApi]:
    """Starts a server on the folder `data`, and ends it when the block ends. Raises StartError.

    `crds` are folders or files of CustomResourceDefinitions, served when the block begins. With `node` pods are
    scheduled and declared ready; without `controllers` there is only the API server, as with envtest.
    The server behaves as `kubernetes_version`, for example 1.36, with `feature_gates` such as `HostnameOverride=true`.
    """
    folder = Path(data).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    # -P: a module of the project under test must not shadow one of the server's.
    command = [sys.executable, "-P", "-m", "kubesandbox", "--data", str(folder), "--stop-with-stdin"]
    command += ["--node"] if node else []
    command += [] if controllers else ["--no-controllers"]
    command += ["--kubernetes-version", kubernetes_version] if kubernetes_version else []
    command += ["--feature-gates", feature_gates] if feature_gates else []
    paths = [str(path) for path in crds]
    command += ["--crds", *paths] if paths else []
    with (folder / LOG).open("wb") as log:
        # A separate session: Ctrl-C is for pytest, which ends the server after tearing down its fixtures.
        process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, start_new_session=True
        )
    try:
        _await_ready(process, folder / LOG, shlex.join(command))
        api = KubeApi(folder, process)
        try:
            yield api
        finally:
            api.close()
    finally:
        _end_process(process)


def _await_ready(process: subprocess.Popen[bytes], log: Path, command: str) -> None:
    """Waits until the server is ready, for at most START_TIMEOUT_S, then kills it. Raises StartError."""
    assert process.stdout is not None
    too_long = threading.Timer(START_TIMEOUT_S, process.kill)
    too_long.daemon = True
    too_long.start()
    try:
        if any(line.startswith(b"export KUBECONFIG=") for line in process.stdout):
            return
    finally:
        too_long.cancel()
    code = process.wait()
    words = "\n".join(log.read_text(errors="replace").splitlines()[-_LOG_LINES:])
    failure = words or f"it wrote nothing and ended with exit code {code}"
    raise StartError(f"the Kubernetes API server did not start: {failure}\n(command: {command})")


def _end_process(process: subprocess.Popen[bytes]) -> None:
    """Ends the server's process, by SIGKILL if it does not end by itself in time."""
    process.terminate()
    try:
        process.wait(STOP_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    for stream in (process.stdin, process.stdout):
        if stream is not None:
            stream.close()
