"""A user who may do less than the administrator, for what commands say then."""

from __future__ import annotations

from tests.servers import Server

from runup.api.scheme import Resource
from runup.kube import calls

GROUP = "rbac.authorization.k8s.io"
LOOKER = "looker"


def let_looker_read(server: Server) -> None:
    """`looker` may read ClusterVersion, and nothing else."""
    rule = {"apiGroups": ["config.openshift.io"], "resources": ["clusterversions"], "verbs": ["get", "list", "watch"]}
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
        resource = Resource(GROUP, "v1", kind, plural, namespaced=False)
        server.client.send(calls.apply(resource, obj, field_manager="test", force=True))
