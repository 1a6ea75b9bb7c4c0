"""What the registries of kube-apiserver do differently from kind to kind, as tables (their `strategy.go` files).

In: a kind and objects. Out: what a write through a part of the object may change, and which kinds answer, create and
reset as they do. The mistake prevented: a name of a kind in the middle of a handler.
"""

from __future__ import annotations

from typing import Any

from kubesandbox.apiserver.kinds import Kind
from kubesandbox.apiserver.metadata import meta

JSON = dict[str, Any]

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
# Kinds whose status may be given at creation: the strategy clears it otherwise.
_STATUS_ON_CREATE = frozenset({"nodes"})


# Where etcd keeps the kinds that are not under their plural; custom resources are under their group.
_KEYS = {
    "nodes": "minions", "services": "services/specs", "endpoints": "services/endpoints", "ingresses": "ingress",
    "customresourcedefinitions": "apiextensions.k8s.io/customresourcedefinitions",
    "apiservices": "apiregistration.k8s.io/apiservices",
}  # fmt: skip


def registry_key(kind: Kind, key: str) -> str:
    """The key of an object in etcd, as errors of the storage show it."""
    folder = f"{kind.group}/{kind.plural}" if kind.custom else _KEYS.get(kind.plural, kind.plural)
    return f"/registry/{folder}/{key}"


# Built-in kinds that warn whoever uses them, with Kubernetes' words (their APILifecycleDeprecated).
_DEPRECATED = {
    "endpoints": "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice",
    "componentstatuses": "v1 ComponentStatus is deprecated in v1.19+",
}


def deprecation(kind: Kind) -> str:
    """What every answer about a deprecated kind or version warns of, empty for the others."""
    return kind.deprecation if kind.custom else _DEPRECATED.get(kind.resource, "")


def for_create(kind: Kind, obj: JSON) -> None:
    """Clear what a client may not set in a new object."""
    if kind.has_status and (kind.custom or kind.plural not in _STATUS_ON_CREATE):
        obj.pop("status", None)


def only(kind: Kind, part: str, new: JSON, old: JSON) -> JSON:
    """What a write through `part` may change: the status alone, or everything but the status."""
    if not kind.has_status:
        return new
    if part == "status":
        return _status_of(kind, new, old)
    if part == "":
        _copy("status", old, new)
    return new


def _status_of(kind: Kind, new: JSON, old: JSON) -> JSON:
    kept = dict(meta(old))
    for key in ("managedFields", *(() if kind.custom else ("annotations", "labels"))):
        _copy(key, meta(new), kept)
    changed = {**old, "metadata": kept}
    _copy("status", new, changed)
    return changed


def _copy(key: str, source: JSON, target: JSON) -> None:
    if key in source:
        target[key] = source[key]
    else:
        target.pop(key, None)
