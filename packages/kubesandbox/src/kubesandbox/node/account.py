"""A pod's ServiceAccount on its node: token, CA certificate and namespace as files; the token is renewed in time.

A runner without mounts also gets a kubeconfig beside them, with the same credentials by paths on this host.
"""

from __future__ import annotations

import json
from contextlib import suppress

from kubekit.api.codec import DecodeError
from kubekit.api.scheme import Resource
from kubekit.api.whole_v1 import WholePod
from kubekit.kube import calls
from kubekit.kube.api_errors import KubeError
from kubekit.kube.client import Client
from kubekit.kube.clock import Clock
from kubesandbox.node import podspec
from kubesandbox.node.place import NodeSettings
from kubesandbox.node.pod_volumes import write_atomically

SERVICE_ACCOUNTS = Resource("", "v1", "ServiceAccount", "serviceaccounts", namespaced=True)
TOKEN_LIFE_S = 3600
# The share of a token's lifetime after which it is renewed, as a kubelet does (pkg/kubelet/token).
_RENEWAL = 0.8


class Account:
    """The credentials of one pod in `folder`, if the pod wants some."""

    def __init__(self, pod: WholePod, client: Client, place: NodeSettings) -> None:
        self.wanted = podspec.wants_token(pod)
        self.folder = place.pod_folder(pod) / "serviceaccount"
        self._pod = pod
        self._client = client
        self._place = place

    async def write(self) -> None:
        """Requests a token and writes all files, if the pod wants them. Raises KubeError."""
        if not self.wanted:
            return
        metadata = self._pod.metadata
        # Readable by the owner only.
        write_atomically(self.folder / "token", (await self._request_token()).encode(), mode=0o600)
        write_atomically(self.folder / "ca.crt", self._place.ca.read_bytes())
        write_atomically(self.folder / "namespace", metadata.namespace.encode())
        write_atomically(self.folder / "kubeconfig", self._kubeconfig_document(), mode=0o600)

    async def keep(self, clock: Clock) -> None:
        """Renews the token until cancelled; after a failure the old one stays until the next attempt."""
        while self.wanted:
            await clock.sleep(TOKEN_LIFE_S * _RENEWAL)
            with suppress(KubeError, DecodeError, OSError):
                await self.write()

    async def _request_token(self) -> str:
        """Returns a token that is bound to the pod and valid for TOKEN_LIFE_S seconds. Raises KubeError."""
        metadata = self._pod.metadata
        body = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenRequest",
            "metadata": {"namespace": metadata.namespace},
            "spec": {
                "expirationSeconds": TOKEN_LIFE_S,
                "boundObjectRef": {"apiVersion": "v1", "kind": "Pod", "name": metadata.name, "uid": metadata.uid},
            },
        }
        name = podspec.service_account(self._pod)
        answer = await self._client.send(calls.create(SERVICE_ACCOUNTS, body, name=name, subresource="token"))
        return str(answer["status"]["token"])

    def _kubeconfig_document(self) -> bytes:
        """Returns a kubeconfig that refers to the files of token and certificate."""
        cluster = {"server": self._place.server, "certificate-authority": str(self.folder / "ca.crt")}
        context = {"cluster": "sandbox", "user": "pod", "namespace": self._pod.metadata.namespace}
        document = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "pod",
            "clusters": [{"name": "sandbox", "cluster": cluster}],
            "users": [{"name": "pod", "user": {"tokenFile": str(self.folder / "token")}}],
            "contexts": [{"name": "pod", "context": context}],
        }
        return json.dumps(document, indent=2).encode()
