"""A user who may do less than the administrator, for what commands say then."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kubekit.api.scheme import Resource
from kubekit.kube import calls
from kubekit.kube.client_sync import SyncClient

GROUP = "rbac.authorization.k8s.io"
LOOKER = "looker"


def let_looker_read(client: SyncClient, resource: str = "clusterversions.config.openshift.io") -> None:
    """`looker` may read this, and nothing else."""
    let_looker(client, {resource: ("get", "list", "watch")})


def let_looker(client: SyncClient, verbs: Mapping[str, Sequence[str]]) -> None:
    """`looker` may do this with these resources, and nothing else."""
    rules = []
    for resource, each in verbs.items():
        plural, _, group = resource.partition(".")
        rules.append({"apiGroups": [group], "resources": [plural], "verbs": [*each]})
    role = {"metadata": {"name": LOOKER}, "rules": rules}
    binding = {
        "metadata": {"name": LOOKER},
        "roleRef": {"apiGroup": GROUP, "kind": "ClusterRole", "name": LOOKER},
        "subjects": [{"apiGroup": GROUP, "kind": "User", "name": LOOKER}],
    }
    for plural, kind, obj in (
        ("clusterroles", "ClusterRole", role),
        ("clusterrolebindings", "ClusterRoleBinding", binding),
    ):
        made = Resource(group=GROUP, version="v1", kind=kind, plural=plural, namespaced=False)
        client.send(calls.apply(made, obj, field_manager="test", force=True))
