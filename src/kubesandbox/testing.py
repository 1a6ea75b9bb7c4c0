"""A Kubernetes API server for tests, as a process of its own.

with kube_api(Path("data"), crds=["config/crd/bases"]) as api:
    print(api.kubeconfig, api.namespace())

The pytest fixtures of the same name are in `pytest_plugin`. Nothing but the standard library is imported until a method
needs it: pytest loads the plugin for everybody.
"""

from __future__ import annotations

import base64
import json
import os
import shlex
import subprocess
import sys
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kubekit.kube.client_sync import SyncClient
    from kubesandbox.manifests import Document

JSON = dict[str, Any]
START_TIMEOUT_S = 60.0
STOP_TIMEOUT_S = 10.0
LOG = "server.log"
_LOG_LINES = 20


class StartError(Exception):
    """The API server did not start; the message holds the end of its log."""


class KubeApi:
    """A running API server: how to reach it, and what tests need to prepare."""

    def __init__(self, data: Path) -> None:
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
        self.client_certificate = self._keep("client.crt", base64.b64decode(user["client-certificate-data"]))
        """PEM certificate of the administrator, for clients that read no kubeconfig; `client_key` is its key."""
        self.client_key = self._keep("client.key", base64.b64decode(user["client-key-data"]))

    def namespace(self, prefix: str = "test") -> str:
        """Create a namespace with a name that is not in use, and return the name.

        Its ServiceAccount `default` is there when this returns, without which a real server accepts no pods.
        """
        from kubekit.api.scheme import Resource
        from kubekit.kube import calls
        from kubekit.kube.errors import AlreadyExists

        namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"generateName": f"{prefix}-"}}
        (made,) = self.load(namespace)
        name: str = made["metadata"]["name"]
        # Made here rather than waited for: the controller that makes it lists every kind first, half a second.
        accounts = Resource("", "v1", "ServiceAccount", "serviceaccounts", namespaced=True)
        account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default", "namespace": name}}
        with suppress(AlreadyExists):
            self._connected().send(calls.create(accounts, account))
        return name

    def load(
        self,
        source: str | os.PathLike[str] | Mapping[str, Any] | Iterable[Mapping[str, Any]],
        *,
        namespace: str = "default",
    ) -> list[JSON]:
        """Create the objects of a file, of a folder, or given as dicts, and return them as the server has them.

        CustomResourceDefinitions come first, and their kinds are served when this returns. An object that exists is
        replaced. `namespace` is for those that name none. Raises SandboxError, which names the file or the object.
        """
        from kubesandbox import manifests

        return manifests.load(self._connected(), self._documents(source), namespace=namespace)

    def token(self, service_account: str = "default", namespace: str = "default") -> str:
        """Return a bearer token of a ServiceAccount, for example to test an operator with the rights of its Role."""
        from kubekit.api.scheme import Resource
        from kubekit.kube import calls

        accounts = Resource("", "v1", "ServiceAccount", "serviceaccounts", namespaced=True)
        body = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenRequest",
            "metadata": {"name": service_account, "namespace": namespace},
            "spec": {"expirationSeconds": 86400},
        }
        made = self._connected().send(calls.create(accounts, body, name=service_account, subresource="token"))
        return str(made["status"]["token"])

    def kubeconfig_for(self, service_account: str, namespace: str = "default") -> Path:
        """Write a kubeconfig with which a client is a ServiceAccount rather than the administrator."""
        config = json.loads(self.kubeconfig.read_text())
        name = f"{namespace}_{service_account}"
        config["users"] = [{"name": name, "user": {"token": self.token(service_account, namespace)}}]
        config["contexts"][0]["context"] |= {"user": name, "namespace": namespace}
        return self._keep(f"{name}.kubeconfig", json.dumps(config, indent=2).encode())

    def close(self) -> None:
        """Close the connection that `namespace` and `load` use."""
        if self._client is not None:
            self._client.close()
            self._client = None

    def _documents(self, source: Any) -> list[Document]:
        from kubesandbox import manifests

        if isinstance(source, (str, os.PathLike)):
            return manifests.read(Path(source))
        objects = [source] if isinstance(source, Mapping) else source
        return [manifests.Document(dict(obj)) for obj in objects]

    def _connected(self) -> SyncClient:
        if self._client is None:
            from kubekit.kube.client_sync import SyncClient
            from kubekit.kube.config import load as load_kubeconfig

            self._client = SyncClient(load_kubeconfig(str(self.kubeconfig)))
        return self._client

    def _keep(self, name: str, data: bytes) -> Path:
        path = self.data / name
        path.touch(mode=0o600)
        path.write_bytes(data)
        return path


@contextmanager
def kube_api(
    data: str | os.PathLike[str],
    *,
    crds: Iterable[str | os.PathLike[str]] = (),
    node: bool = False,
    controllers: bool = True,
) -> Iterator[KubeApi]:
    """Start a server on the folder `data`, and end it when the block ends. Raises StartError.

    `crds` are folders or files of CustomResourceDefinitions, served when the block begins. With `node` pods are
    scheduled and declared ready; without `controllers` there is only the API server, as with envtest.
    """
    folder = Path(data).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    # -P: a module of the project under test must not stand in for one of the server's.
    command = [sys.executable, "-P", "-m", "kubesandbox", "--data", str(folder), "--stop-with-stdin"]
    command += ["--node"] if node else []
    command += [] if controllers else ["--no-controllers"]
    paths = [str(path) for path in crds]
    command += ["--crds", *paths] if paths else []
    with (folder / LOG).open("wb") as log:
        # A session of its own: Ctrl-C is for pytest, which ends the server after its fixtures are torn down.
        process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, start_new_session=True
        )
    try:
        _await_ready(process, folder / LOG, shlex.join(command))
        api = KubeApi(folder)
        try:
            yield api
        finally:
            api.close()
    finally:
        _end(process)


def _await_ready(process: subprocess.Popen[bytes], log: Path, command: str) -> None:
    """Read until the server says that it is ready; a server that says nothing for a minute is killed."""
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
    said = words or f"it wrote nothing and ended with exit code {code}"
    raise StartError(f"the Kubernetes API server did not start: {said}\n(command: {command})")


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(STOP_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    for stream in (process.stdin, process.stdout):
        if stream is not None:
            stream.close()
