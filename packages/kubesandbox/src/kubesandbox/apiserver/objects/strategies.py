"""The strategies of kube-apiserver's registries: the fields that a write of each kind sets, keeps and clears.

In: a kind or resource, and objects with the defaults of their types (`schema/go_defaults.py`). Out: the fields that a
registry sets (selectors, finalizers, first statuses), what a write through a subresource may change, which kinds answer
a deletion, create and clear a status differently, the key of an object in etcd, and deprecation warnings. This keeps
names of kinds out of the handlers. Objects are completed in place after field ownership is recorded, so that these
fields have no owner, as in a real server. Fields that admission plugins set are in `admission`.

`allocate` completes a new Service, `reallocate` a changed one, as pkg/registry/core/service/storage/alloc.go does.
Cluster IPs are the only allocation: node ports and the addresses of load balancers stay as the client gave them.
"""

from __future__ import annotations

import base64
import hashlib
from datetime import datetime

from kubekit.rules.pod_requests import qos_class
from kubesandbox.apiserver.http.messages import User
from kubesandbox.apiserver.metadata import JSON, meta, rfc3339
from kubesandbox.apiserver.served_kinds import Kind

# Kinds whose deletion answers with the object (ReturnDeletedObject).
RETURN_DELETED = frozenset(
    {"pods", "services", "persistentvolumes", "persistentvolumeclaims", "podtemplates", "resourcequotas",
     "serviceaccounts", "volumeattachments.storage.k8s.io", "storageclasses.storage.k8s.io", "csinodes.storage.k8s.io",
     "csidrivers.storage.k8s.io"}
)  # fmt: skip
# Kinds whose PUT needs a resourceVersion (AllowUnconditionalUpdate).
CONDITIONAL_UPDATES = frozenset(
    {
        "csidrivers.storage.k8s.io",
        "csinodes.storage.k8s.io",
        "csistoragecapacities.storage.k8s.io",
        "leases.coordination.k8s.io",
        "mutatingwebhookconfigurations.admissionregistration.k8s.io",
        "poddisruptionbudgets.policy",
        "runtimeclasses.node.k8s.io",
        "validatingadmissionpolicies.admissionregistration.k8s.io",
        "validatingadmissionpolicybindings.admissionregistration.k8s.io",
        "validatingwebhookconfigurations.admissionregistration.k8s.io",
        "volumeattachments.storage.k8s.io",
    }
)
# Kinds that a PUT creates (AllowCreateOnUpdate).
CREATE_ON_UPDATE = frozenset(
    {"leases.coordination.k8s.io", "endpoints", "services", "events", "events.events.k8s.io", "limitranges",
     "runtimeclasses.node.k8s.io",
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
    return _resized(new, old) if part == "resize" else new


def _resized(new: JSON, old: JSON) -> JSON:
    """Returns the old pod with the resources of the new one's containers (podResizeStrategy's dropNonResizeUpdates).

    A pod with other containers is returned as it is, for validation to refuse it.
    """
    old_spec, containers = old.get("spec") or {}, {}
    for part in ("containers", "initContainers"):
        items, former = (new.get("spec") or {}).get(part) or (), old_spec.get(part) or ()
        if len(items) != len(former):
            return new
        if any(item.get("name") != before.get("name") for item, before in zip(items, former, strict=True)):
            containers[part] = items
        elif items:
            containers[part] = [dict(before) for before in former]
            for item, merged in zip(items, containers[part], strict=True):
                for key in ("resources", "resizePolicy"):
                    _copy_member(key, item, merged)
    metadata = dict(meta(old))
    _copy_member("managedFields", meta(new), metadata)
    spec = {**old_spec, **containers}
    metadata["generation"] = metadata.get("generation", 1) + (spec != old_spec)
    return {**old, "metadata": metadata, "spec": spec}


def _copy_member(key: str, source: JSON, target: JSON) -> None:
    if key in source:
        target[key] = source[key]
    else:
        target.pop(key, None)


def stamp_requester(kind: Kind, obj: JSON, user: User | None) -> None:
    """Sets who asks for a certificate, which a request itself cannot say (the certificates strategy)."""
    if kind.resource != "certificatesigningrequests.certificates.k8s.io" or user is None:
        return
    spec = obj.setdefault("spec", {})
    for key in ("username", "uid", "groups", "extra"):
        spec.pop(key, None)
    obj["spec"] = {**spec, **user.to_dict()}


def default_new(resource: str, obj: JSON, now: datetime) -> None:
    """Completes a new object of the built-in `resource` (`deployments.apps`)."""
    match resource:
        case "namespaces":
            finalizers = list(obj["spec"].get("finalizers") or ())
            obj["spec"]["finalizers"] = finalizers if "kubernetes" in finalizers else [*finalizers, "kubernetes"]
        case "pods":
            obj["status"] = {"phase": "Pending", "qosClass": qos_class(obj["spec"])}
            if obj["spec"].get("schedulingGates"):
                obj["status"]["conditions"] = [_gated_condition(now)]
        case "services":
            allocate(obj)
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


def _gated_condition(now: datetime) -> JSON:
    """Returns the condition of a new pod that has scheduling gates (podutil.applySchedulingGatedCondition)."""
    return {
        "type": "PodScheduled",
        "status": "False",
        "lastProbeTime": None,
        "lastTransitionTime": rfc3339(now),
        "reason": "SchedulingGated",
        "message": "Scheduling is blocked due to non-empty scheduling gates",
    }


def default_changed(resource: str, new: JSON, old: JSON) -> None:
    """Completes a changed object."""
    if resource == "services":
        reallocate(new, old)
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


SERVER_ADDRESS = "10.96.0.1"
"""The cluster IP of the Service `kubernetes`: the first address of the range."""
_ADDRESS_FIELDS = ("clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy")


def allocate(service: JSON) -> None:
    """Sets the cluster IP of a new Service and the fields that follow from it; an ExternalName gets no IP."""
    spec, metadata = service["spec"], meta(service)
    if not _has_cluster_ip(spec):
        return
    if not spec.get("clusterIP"):
        # Nothing listens there. The address derives from the name, so that a dry run shows the address of a real run.
        digest = hashlib.sha256(f"{metadata.get('namespace')}/{metadata.get('name')}".encode()).digest()
        spec["clusterIP"] = (spec.get("clusterIPs") or [f"10.96.{digest[0]}.{digest[1] % 254 + 1}"])[0]
    for key, value in (("clusterIPs", [spec["clusterIP"]]), ("ipFamilies", ["IPv4"])):
        if not spec.get(key):
            spec[key] = value
    spec.setdefault("ipFamilyPolicy", "SingleStack")


def reallocate(new: JSON, old: JSON) -> None:
    """Keeps the allocated fields that an update leaves out, and drops those that only the former type has.

    A field of the former type is dropped where the update leaves it as it was (the service strategy's
    dropTypeDependentFields), so that a load balancer becomes a ClusterIP by its `type` alone.
    """
    before, after = old.get("spec") or {}, new["spec"]
    if _has_cluster_ip(before) and _has_cluster_ip(after):
        for key in _ADDRESS_FIELDS:
            if not after.get(key) and before.get(key):
                after[key] = before[key]
    fields = (
        ((*_ADDRESS_FIELDS, "internalTrafficPolicy"), _has_cluster_ip),
        (("externalTrafficPolicy",), _has_external_policy),
        (("allocateLoadBalancerNodePorts", "loadBalancerClass"), _is_load_balancer),
    )
    for keys, is_needed in fields:
        for key in keys if is_needed(before) and not is_needed(after) else ():
            if after.get(key) == before.get(key):
                after.pop(key, None)
    if has_node_ports(before) and not has_node_ports(after):
        former = [port.get("nodePort") for port in before.get("ports") or ()]
        if former == [port.get("nodePort") for port in after.get("ports") or ()]:
            after["ports"] = [{k: v for k, v in port.items() if k != "nodePort"} for port in after.get("ports") or ()]


def _has_cluster_ip(spec: JSON) -> bool:
    return spec.get("type") != "ExternalName"


def _is_load_balancer(spec: JSON) -> bool:
    return spec.get("type") == "LoadBalancer"


def has_node_ports(spec: JSON) -> bool:
    """Returns whether a Service with this spec has a port on every node."""
    if _is_load_balancer(spec):
        return spec.get("allocateLoadBalancerNodePorts") is not False
    return spec.get("type") == "NodePort"


def _has_external_policy(spec: JSON) -> bool:
    return spec.get("type") in ("LoadBalancer", "NodePort") or bool(_has_cluster_ip(spec) and spec.get("externalIPs"))
