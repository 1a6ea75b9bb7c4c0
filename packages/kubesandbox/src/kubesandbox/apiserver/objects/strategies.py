"""The strategies of kube-apiserver's registries: how kinds differ in what a write fills in, keeps and clears.

In: a kind or resource, and objects with the defaults of their types (`schema/go_defaults.py`). Out: the fields that a
registry sets (selectors, finalizers, first statuses), what a write through a subresource may change, which kinds answer
a deletion, create and clear a status differently, the key of an object in etcd, and deprecation warnings. This keeps
names of kinds out of the handlers. Objects are completed in place after field ownership is recorded, so that these
fields have no owner, as in a real server. What admission plugins set is in `admission`, the addresses of Services in
`service_allocation`.
"""

from __future__ import annotations

import base64
from datetime import datetime

from kubesandbox.apiserver.metadata import JSON, meta, rfc3339
from kubesandbox.apiserver.objects import service_allocation
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
_TEMPLATE_GENERATION = "deprecated.daemonset.template.generation"


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


def default_new(resource: str, obj: JSON, now: datetime) -> None:
    """Completes a new object of the built-in `resource` (`deployments.apps`)."""
    match resource:
        case "namespaces":
            finalizers = list(obj["spec"].get("finalizers") or ())
            obj["spec"]["finalizers"] = finalizers if "kubernetes" in finalizers else [*finalizers, "kubernetes"]
        case "pods":
            obj["status"] = {"phase": "Pending", "qosClass": quality_of_service(obj["spec"])}
        case "services":
            service_allocation.allocate(obj)
        case "persistentvolumeclaims":
            obj["status"] = {"phase": "Pending"}
        case "persistentvolumes":
            obj["status"] = {"phase": "Pending", "lastPhaseTransitionTime": rfc3339(now)}
        case "jobs.batch" if not obj["spec"].get("manualSelector"):
            # The selector and labels by which a Job finds its pods (the job strategy's generateSelector).
            spec, name, uid = obj["spec"], meta(obj)["name"], meta(obj)["uid"]
            # In place: by default the Job's own labels are this very map.
            labels = spec["template"].setdefault("metadata", {}).setdefault("labels", {})
            for prefix in ("", "batch.kubernetes.io/"):
                labels |= {f"{prefix}controller-uid": uid, f"{prefix}job-name": name}
            selector = spec.get("selector") or {}
            own_labels = {**(selector.get("matchLabels") or {}), "batch.kubernetes.io/controller-uid": uid}
            spec["selector"] = {**selector, "matchLabels": own_labels}
            # The type's default again, as the decoder applies it on reading from the store.
            if not meta(obj).get("labels"):
                meta(obj)["labels"] = dict(labels)


def default_changed(resource: str, new: JSON, old: JSON) -> None:
    """Completes a changed object."""
    if resource == "services":
        service_allocation.reallocate(new, old)
    elif resource == "daemonsets.apps":
        generation = (meta(old).get("annotations") or {}).get(_TEMPLATE_GENERATION, "1")
        if new["spec"].get("template") != old["spec"].get("template"):
            generation = str(int(generation) + 1)
        meta(new)["annotations"] = {**(meta(new).get("annotations") or {}), _TEMPLATE_GENERATION: generation}


def merge_string_data(resource: str, obj: JSON) -> JSON:
    """Returns a Secret with `stringData` merged into `data`, the first step of defaulting; other objects unchanged."""
    if resource != "secrets" or not obj.get("stringData"):
        return obj
    encoded = {key: base64.b64encode(str(text).encode()).decode() for key, text in obj["stringData"].items()}
    kept = {key: value for key, value in obj.items() if key != "stringData"}
    return kept | {"data": {**(obj.get("data") or {}), **encoded}}


def quality_of_service(spec: JSON) -> str:
    """Returns a pod's quality of service class."""
    names, all_limited, any_amount = ("cpu", "memory"), True, False
    for container in (*(spec.get("initContainers") or ()), *(spec.get("containers") or ())):
        resources = container.get("resources") or {}
        requests, limits = resources.get("requests") or {}, resources.get("limits") or {}
        any_amount |= any(amounts.get(name) for amounts in (requests, limits) for name in names)
        all_limited &= all(limits.get(name) and requests.get(name, limits[name]) == limits[name] for name in names)
    if not any_amount:
        return "BestEffort"
    return "Guaranteed" if all_limited else "Burstable"
