"""Tells the API groups of Kubernetes itself from those that definitions and aggregated API servers add.

Groups below `k8s.io` are no sign: definitions may have them, too, such as gateway.networking.k8s.io,
snapshot.storage.k8s.io or migration.k8s.io (https://github.com/kubernetes/enhancements, KEP-2337).
"""

from __future__ import annotations

# The groups of the Go module k8s.io/api, and those of the API servers of definitions and of aggregation.
_BELOW_K8S_IO = frozenset(
    {"admissionregistration", "apiextensions", "apiregistration", "authentication", "authorization", "certificates"}
    | {"coordination", "discovery", "events", "flowcontrol.apiserver", "internal.apiserver", "lifecycle", "networking"}
    | {"node", "rbac.authorization", "resource", "scheduling", "storage", "storagemigration"}
)


def is_built_in(group: str) -> bool:
    """Returns whether kube-apiserver serves the group by itself."""
    return "." not in group or (group.endswith(".k8s.io") and group.removesuffix(".k8s.io") in _BELOW_K8S_IO)
