"""The differences between kinds in kube-apiserver's registries, as tables (their `strategy.go` files).

In: a kind and objects. Out: what a write through a subresource may change, which kinds answer a deletion, create and
clear a status differently, the key of an object in etcd, and deprecation warnings. This keeps names of kinds out of the
handlers.
"""

from __future__ import annotations

from kubesandbox.apiserver.metadata import JSON, meta
from kubesandbox.apiserver.served_kinds import Kind

# Kinds whose deletion answers with the object (ReturnDeletedObject).
RETURN_DELETED = frozenset(
    {"pods", "services", "persistentvolumes", "persistentvolumeclaims", "podtemplates", "resourcequotas",
     "serviceaccounts", "volumeattachments.storage.k8s.io", "storageclasses.storage.k8s.io", "csinodes.storage.k8s.io",
     "csidrivers.storage.k8s.io"}
)  # fmt: skip
# Kinds that a PUT creates (AllowCreateOnUpdate).
CREATE_ON_UPDATE = frozenset(
    {"leases.coordination.k8s.io", "endpoints", "events", "events.events.k8s.io", "limitranges",
     "clusterroles.rbac.authorization.k8s.io", "clusterrolebindings.rbac.authorization.k8s.io",
     "roles.rbac.authorization.k8s.io", "rolebindings.rbac.authorization.k8s.io"}
)  # fmt: skip
# Built-in kinds whose labels a write of the status leaves alone.
_LABELS_KEPT = frozenset({"deployments"})
# Kinds whose status may be given at creation: the strategy clears it otherwise.
_STATUS_ON_CREATE = frozenset({"nodes"})
# Where etcd keeps the kinds that are not under their plural; custom resources are under their group.
# k8s.io/kubernetes/pkg/kubeapiserver/default_storage_factory_builder.go, SpecialDefaultResourcePrefixes.
_ETCD_PREFIXES = {
    "nodes": "minions", "services": "services/specs", "endpoints": "services/endpoints", "ingresses": "ingress",
    "customresourcedefinitions": "apiextensions.k8s.io/customresourcedefinitions",
    "apiservices": "apiregistration.k8s.io/apiservices", "replicationcontrollers": "controllers",
}  # fmt: skip
# Deprecated built-in kinds with Kubernetes' warning (their APILifecycleDeprecated).
_DEPRECATED = {
    "endpoints": "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice",
    "componentstatuses": "v1 ComponentStatus is deprecated in v1.19+",
}


def registry_key(kind: Kind, key: str) -> str:
    """Returns the key of an object in etcd, where kube-apiserver keeps it and as errors of the storage show it."""
    folder = f"{kind.group}/{kind.plural}" if kind.custom else _ETCD_PREFIXES.get(kind.plural, kind.plural)
    return f"/registry/{folder}/{key}"


def deprecation_warning(kind: Kind) -> str:
    """Returns the deprecation warning of a kind or version, or ""."""
    return kind.deprecation if kind.custom else _DEPRECATED.get(kind.resource, "")


def for_create(kind: Kind, obj: JSON) -> None:
    """Clears the fields that a client may not set in a new object."""
    if kind.has_status and (kind.custom or kind.plural not in _STATUS_ON_CREATE):
        obj.pop("status", None)


def limit_to_part(kind: Kind, part: str, new: JSON, old: JSON) -> JSON:
    """Returns `new` limited to what a write through `part` may change: the status only, or all but the status."""
    if not kind.has_status:
        return new
    if part == "status":
        # The old object with the new status, and with labels or annotations where the kind keeps them.
        kept_metadata = dict(meta(old))
        metadata = () if kind.custom else ("annotations",) if kind.plural in _LABELS_KEPT else ("annotations", "labels")
        for key in ("managedFields", *metadata):
            _copy_member(key, meta(new), kept_metadata)
        changed = {**old, "metadata": kept_metadata}
        _copy_member("status", new, changed)
        return changed
    if part == "":
        _copy_member("status", old, new)
    return new


def _copy_member(key: str, source: JSON, target: JSON) -> None:
    if key in source:
        target[key] = source[key]
    else:
        target.pop(key, None)
