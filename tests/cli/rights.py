"""A user who may do less than the administrator, for what commands say then."""

from __future__ import annotations

from runup.api.scheme import Resource
from runup.kube import calls
from runup.kube.client_sync import SyncClient

GROUP = "rbac.authorization.k8s.io"
LOOKER = "looker"


def let_looker_read(client: SyncClient, resource: str = "clusterversions.config.openshift.io") -> None:
    """`looker` may read this, and nothing else."""
    plural, _, group = resource.partition(".")
    rule = {"apiGroups": [group], "resources": [plural], "verbs": ["get", "list", "watch"]}
    role = {"metadata": {"name": LOOKER}, "rules": [rule]}
    binding = {
        "metadata": {"name": LOOKER},
        "roleRef": {"apiGroup": GROUP, "kind": "ClusterRole", "name": LOOKER},
        "subjects": [{"apiGroup": GROUP, "kind": "User", "name": LOOKER}],
    }
    for plural, kind, obj in (
        ("clusterroles", "ClusterRole", role),
        ("clusterrolebindings", "ClusterRoleBinding", binding),
    ):
        made = Resource(GROUP, "v1", kind, plural, namespaced=False)
        client.send(calls.apply(made, obj, field_manager="test", force=True))
