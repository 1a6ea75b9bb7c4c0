"""A service account's token in a pod's folder, renewed and revoked as a cluster does it.

The folder is laid out as a kubelet does: `token` leads through `..data` to the folder of the current one, and a renewal
replaces `..data`. Each token is bound to a Secret, whose deletion makes the server refuse it, as the deletion of the
pod or the end of its time does; the shortest time that a server gives is ten minutes.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from msgspec.structs import replace
from tests.servers import eventually

from kubekit.api.core_v1 import Namespace, ServiceAccount
from kubekit.api.scheme import Resource, resource_of
from kubekit.kube import calls, config
from kubekit.kube.api_errors import Unauthorized
from kubekit.kube.auth import Static, bearer_credential
from kubekit.kube.client_sync import SyncClient
from kubekit.kube.config import ClusterConfig

NAME, NAMESPACE = "rotated", "tokens"
USER = f"system:serviceaccount:{NAMESPACE}:{NAME}"
SHORTEST_S = 600
ACCOUNTS = resource_of(ServiceAccount)
SECRETS = Resource(group="", version="v1", kind="Secret", plural="secrets", namespaced=True)
BINDINGS = Resource(
    group="rbac.authorization.k8s.io",
    version="v1",
    kind="ClusterRoleBinding",
    plural="clusterrolebindings",
    namespaced=False,
)


class RotatedToken:
    """The account `tokens/rotated`, which may do everything, and the folder that a pod of it has."""

    def __init__(self, admin: Path, folder: Path) -> None:
        self.folder = folder
        self._admin = config.load(str(admin))
        self._numbers: Iterator[int] = iter(range(1, 1000))
        self._secret = ""
        # By the Secret that each is bound to.
        self._tokens: dict[str, str] = {}
        with SyncClient(self._admin) as client:
            client.send(calls.create(resource_of(Namespace), {"metadata": {"name": NAMESPACE}}))
            client.send(calls.create(ACCOUNTS, _named()))
            subject = {"kind": "ServiceAccount", "name": NAME, "namespace": NAMESPACE}
            role = {"apiGroup": BINDINGS.group, "kind": "ClusterRole", "name": "cluster-admin"}
            body = {"metadata": {"name": NAME}, "subjects": [subject], "roleRef": role}
            client.send(calls.create(BINDINGS, body))
        self.renew()

    @property
    def in_cluster(self) -> ClusterConfig:
        """The configuration that a process in such a pod has."""
        server = urlsplit(self._admin.server)
        environ = {"KUBERNETES_SERVICE_HOST": str(server.hostname), "KUBERNETES_SERVICE_PORT": str(server.port)}
        return config.load(environ=environ, service_account=self.folder)

    @property
    def kubeconfig(self) -> Path:
        """A kubeconfig with the same token file."""
        path = self.folder / "kubeconfig"
        cluster = {"server": self._admin.server, "certificate-authority": str(self.folder / "ca.crt")}
        document = {
            "current-context": "pod",
            "clusters": [{"name": "here", "cluster": cluster}],
            "users": [{"name": "pod", "user": {"tokenFile": str(self.folder / "token")}}],
            "contexts": [{"name": "pod", "context": {"cluster": "here", "user": "pod", "namespace": NAMESPACE}}],
        }
        path.write_text(json.dumps(document))
        return path

    def renew(self) -> str:
        """Puts another token into the folder; returns the Secret of the one before, which still counts."""
        before, number = self._secret, next(self._numbers)
        self._secret = f"{NAME}-{number}"
        with SyncClient(self._admin) as client:
            bound = client.send(calls.create(SECRETS, _named(self._secret)))
            reference = {"apiVersion": "v1", "kind": "Secret", "name": self._secret, "uid": bound["metadata"]["uid"]}
            spec = {"expirationSeconds": SHORTEST_S, "boundObjectRef": reference}
            body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec}
            made = client.send(calls.create(ACCOUNTS, _named() | body, name=NAME, subresource="token"))
        self._tokens[self._secret] = str(made["status"]["token"])
        self._put(f"..{number}")
        return before

    def revoke(self, secret: str = "") -> None:
        """Makes the token that is bound to `secret` one that the server refuses, by default the current one."""
        revoked = Static(bearer_credential(self._tokens[secret or self._secret]))
        with SyncClient(self._admin) as client:
            client.send(calls.delete(SECRETS, secret or self._secret, NAMESPACE))
        refused = replace(self._admin, client_cert=b"", client_key=b"", auth=revoked)

        def is_refused() -> bool:
            with SyncClient(refused) as client:
                try:
                    client.send(calls.get_path("/api"))
                except Unauthorized:
                    return True
            return False

        # A real server believes a token for another ten seconds.
        eventually(is_refused, f"the token of {secret or self._secret} is refused")

    def rotate(self) -> None:
        """Renews the token, then revokes the one before."""
        self.revoke(self.renew())

    def _put(self, version: str) -> None:
        """Writes the files as a kubelet's atomic writer does (pkg/volume/util/atomic_writer.go)."""
        data = self.folder / version
        data.mkdir(parents=True)
        files = {
            "token": self._tokens[self._secret].encode(),
            "ca.crt": self._admin.ca_data,
            "namespace": NAMESPACE.encode(),
        }
        for name, content in files.items():
            (data / name).write_bytes(content)
            if not (self.folder / name).is_symlink():
                (self.folder / name).symlink_to(Path("..data", name))
        (self.folder / "..data_tmp").symlink_to(version)
        (self.folder / "..data_tmp").replace(self.folder / "..data")


def _named(name: str = NAME) -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": NAMESPACE}}
