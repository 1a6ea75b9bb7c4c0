"""Service accounts with some rights, as users of the console log in with their tokens."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tests.cli.rights import GROUP

from kubekit.api.scheme import Resource
from kubekit.kube import calls
from kubekit.kube.client_sync import SyncClient

_ACCOUNTS = Resource(group="", version="v1", kind="ServiceAccount", plural="serviceaccounts", namespaced=True)


def token_of(client: SyncClient, name: str, verbs: Mapping[str, Sequence[str]]) -> str:
    """The token of a service account that may do this with these resources, and nothing else."""
    rules = [
        {"apiGroups": [resource.partition(".")[2]], "resources": [resource.partition(".")[0]], "verbs": [*each]}
        for resource, each in verbs.items()
    ]
    binding = {
        "metadata": {"name": name},
        "roleRef": {"apiGroup": GROUP, "kind": "ClusterRole", "name": name},
        "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": "default"}],
    }
    roles = Resource(group=GROUP, version="v1", kind="ClusterRole", plural="clusterroles", namespaced=False)
    bindings = Resource(
        group=GROUP, version="v1", kind="ClusterRoleBinding", plural="clusterrolebindings", namespaced=False
    )
    account = {"metadata": {"name": name, "namespace": "default"}}
    for resource, obj in (
        (_ACCOUNTS, account),
        (roles, {"metadata": {"name": name}, "rules": rules}),
        (bindings, binding),
    ):
        client.send(calls.apply(resource, obj, field_manager="test", force=True))
    return token_for(client, name, "default")


def token_for(client: SyncClient, name: str, namespace: str) -> str:
    """The token of a service account that there is."""
    request: dict[str, Any] = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    request["metadata"] = {"namespace": namespace}
    answer = client.send(calls.create(_ACCOUNTS, request, subresource="token", name=name))
    token: str = answer["status"]["token"]
    return token
