"""The controller of Secrets of the type kubernetes.io/service-account-token: fills them, and deletes orphaned ones.

The rules are those of Kubernetes' tokens controller (pkg/controller/serviceaccount/tokens_controller.go). The token is
one of the TokenRequest API that is bound to the Secret: it is valid until the Secret or its ServiceAccount is deleted.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator

from kubekit.api.meta_v1 import NamespacedName, Object, key_of
from kubekit.api.scheme import Resource
from kubekit.kube import calls
from kubesandbox.apiserver.metadata import IMPORTED
from kubesandbox.controllers.controller_loop import Loop, Read, Step
from kubesandbox.controllers.namespaces import ACCOUNTS
from kubesandbox.controllers.owned_pods import JSON
from kubesandbox.controllers.owner_graph import Graph

SECRETS = Resource(group="", version="v1", kind="Secret", plural="secrets", namespaced=True)
TYPE = "kubernetes.io/service-account-token"
ACCOUNT_NAME, ACCOUNT_UID = "kubernetes.io/service-account.name", "kubernetes.io/service-account.uid"
# The longest life of a token that a server issues, 136 years.
_LIFE_S = 1 << 32


class TokenSecrets:
    """The controller, whose keys are those of Secrets."""

    name = "token-secrets"

    def __init__(self, graph: Graph, ca: bytes) -> None:
        self._graph, self._ca = graph, ca

    def calls(self, key: NamespacedName) -> Iterator[Step]:
        """Yields the calls that fill a Secret, or delete it if its ServiceAccount does not exist."""
        cache = self._graph.caches.get(SECRETS)
        known = cache.get(key) if cache is not None else None
        if known is None or IMPORTED in known.metadata.labels:
            return
        if not (account := known.metadata.annotations.get(ACCOUNT_NAME)):
            return
        secret = Read(calls.get_raw(SECRETS, key.name, key.namespace))
        yield secret
        if secret.answer.get("type") != TYPE:
            return
        accounts = Read(calls.list_raw(ACCOUNTS, key.namespace, field_selector=f"metadata.name={account}", limit=0))
        yield accounts
        uids = [found["metadata"]["uid"] for found in accounts.answer.items]
        metadata = secret.answer["metadata"]
        if not uids or metadata["annotations"].get(ACCOUNT_UID, uids[0]) != uids[0]:
            yield calls.delete(SECRETS, key.name, key.namespace, uid=metadata["uid"])
            return
        data: JSON = dict(secret.answer.get("data") or {})
        missing = {"ca.crt": self._ca, "namespace": key.namespace.encode()}
        if data.get("ca.crt") == _b64(self._ca):
            del missing["ca.crt"]
        if data.get("namespace"):
            del missing["namespace"]
        if not data.get("token"):
            bound = {"apiVersion": "v1", "kind": "Secret", "name": key.name, "uid": metadata["uid"]}
            body: JSON = {
                "apiVersion": "authentication.k8s.io/v1",
                "kind": "TokenRequest",
                "metadata": {"name": account, "namespace": key.namespace},
                "spec": {"audiences": [], "expirationSeconds": _LIFE_S, "boundObjectRef": bound},
            }
            token = Read(calls.create(ACCOUNTS, body, name=account, subresource="token"))
            yield token
            missing["token"] = token.answer["status"]["token"].encode()
        if missing:
            patch = {
                "metadata": {
                    "annotations": {ACCOUNT_UID: uids[0]},
                    "resourceVersion": metadata["resourceVersion"],
                },
                "data": {name: _b64(value) for name, value in missing.items()},
            }
            yield calls.merge_patch(SECRETS, key.name, patch, key.namespace)


def watch_token_secrets(loop: Loop, graph: Graph) -> None:
    """Queues Secrets that name a ServiceAccount, and those of a ServiceAccount that is deleted."""

    def on_change(resource: Resource, old: Object | None, new: Object | None) -> None:
        if resource == SECRETS and new is not None and new.metadata.annotations.get(ACCOUNT_NAME):
            loop.queue.add(key_of(new))
        elif resource == ACCOUNTS and new is None and old is not None:
            for secret in graph.cached(SECRETS, old.metadata.namespace):
                if secret.metadata.annotations.get(ACCOUNT_NAME) == old.metadata.name:
                    loop.queue.add(key_of(secret))

    graph.listen(on_change)


def _b64(data: bytes) -> str:
    return base64.b64encode(data).decode()
