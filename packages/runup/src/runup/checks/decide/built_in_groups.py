"""Distinguishes the API groups of Kubernetes itself from those of definitions and aggregated API servers.

A name below `k8s.io` proves nothing: the groups of CustomResourceDefinitions may have one, too, such as
gateway.networking.k8s.io, snapshot.storage.k8s.io or migration.k8s.io (https://github.com/kubernetes/enhancements,
KEP-2337).
"""

from __future__ import annotations

# The groups of the Go module k8s.io/api, and those of the API servers of definitions and of aggregation.
_BELOW_K8S_IO = frozenset(
    {"admissionregistration", "apiextensions", "apiregistration", "authentication", "authorization", "certificates"}
    | {"coordination", "discovery", "events", "flowcontrol.apiserver", "internal.apiserver", "lifecycle", "networking"}
    | {"node", "rbac.authorization", "resource", "scheduling", "storage", "storagemigration"}
)

# Of OpenShift's and OLM's aggregated API servers: no definition shows whether a cluster has them.
_AGGREGATED = frozenset(
    {f"{name}.openshift.io" for name in ("apps", "authorization", "build", "image", "oauth", "project", "quota")}
    | {f"{name}.openshift.io" for name in ("route", "security", "template", "user")}
    | {"packages.operators.coreos.com", "metrics.k8s.io", "custom.metrics.k8s.io", "external.metrics.k8s.io"}
)


def has_definitions(group: str) -> bool:
    """Returns whether the kinds of the group are made by CustomResourceDefinitions, where a cluster has them."""
    return not is_built_in(group) and group not in _AGGREGATED


def is_built_in(group: str) -> bool:
    """Returns whether kube-apiserver serves the group by itself."""
    return "." not in group or (group.endswith(".k8s.io") and group.removesuffix(".k8s.io") in _BELOW_K8S_IO)
