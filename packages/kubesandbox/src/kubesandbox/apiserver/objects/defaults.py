"""The fields that registries and admission plugins set on built-in objects: addresses, finalizers, selectors, statuses.

In: a resource and an object with the defaults of its types (`schema/go_defaults.py`). Out: the same object, completed
in place. Called after field ownership is recorded, so that these fields have no owner, as in a real server.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Any

from kubesandbox.apiserver.metadata import meta, rfc3339

JSON = dict[str, Any]

_PVC_PROTECTION = "kubernetes.io/pvc-protection"
_PV_PROTECTION = "kubernetes.io/pv-protection"
_STAY_S = 300
_TEMPLATE_GENERATION = "deprecated.daemonset.template.generation"


def default_new(resource: str, obj: JSON, now: datetime) -> None:
    """Completes a new object of the built-in `resource` (`deployments.apps`)."""
    if fill := _NEW.get(resource):
        fill(obj, now)


def default_changed(resource: str, new: JSON, old: JSON) -> None:
    """Completes a changed object."""
    if fill := _CHANGED.get(resource):
        fill(new, old)


def merge_string_data(resource: str, obj: JSON) -> JSON:
    """Returns a Secret with `stringData` merged into `data`, the first step of defaulting; other objects unchanged."""
    if resource != "secrets" or not obj.get("stringData"):
        return obj
    encoded = {key: base64.b64encode(str(text).encode()).decode() for key, text in obj["stringData"].items()}
    return {key: value for key, value in obj.items() if key != "stringData"} | {
        "data": {**(obj.get("data") or {}), **encoded}
    }


# -- new objects -------------------------------------------------------------------------------------------------------


def _default_namespace(obj: JSON, _now: datetime) -> None:
    finalizers = list(obj["spec"].get("finalizers") or ())
    obj["spec"]["finalizers"] = finalizers if "kubernetes" in finalizers else [*finalizers, "kubernetes"]


def _default_pod(obj: JSON, _now: datetime) -> None:
    spec = obj["spec"]
    spec["tolerations"] = [*(spec.get("tolerations") or ()), *_missing_tolerations(spec)]
    obj["status"] = {"phase": "Pending", "qosClass": quality_of_service(spec)}


def _missing_tolerations(spec: JSON) -> Iterator[JSON]:
    """Yields the tolerations that the DefaultTolerationSeconds plugin adds: five minutes on an unready node."""
    tolerations = spec.get("tolerations") or ()
    for key in ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"):
        if not any(_tolerates_key(toleration, key) for toleration in tolerations):
            yield {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": _STAY_S}


def _tolerates_key(toleration: JSON, key: str) -> bool:
    return toleration.get("key") in {None, "", key} and toleration.get("effect") in {None, "", "NoExecute"}


def quality_of_service(spec: JSON) -> str:
    """Returns a pod's quality of service class."""
    containers = [*(spec.get("initContainers") or ()), *(spec.get("containers") or ())]
    resources = [container.get("resources") or {} for container in containers]
    pairs = [(resource.get("requests") or {}, resource.get("limits") or {}) for resource in resources]
    if not any(amounts.get(name) for pair in pairs for amounts in pair for name in ("cpu", "memory")):
        return "BestEffort"
    return "Guaranteed" if all(_is_even(*pair) for pair in pairs) else "Burstable"


def _is_even(requests: JSON, limits: JSON) -> bool:
    return all(limits.get(name) and requests.get(name, limits[name]) == limits[name] for name in ("cpu", "memory"))


def _default_job(obj: JSON, _now: datetime) -> None:
    """Sets the selector and labels by which a new Job finds its pods (the job strategy's generateSelector)."""
    spec, name, uid = obj["spec"], meta(obj)["name"], meta(obj)["uid"]
    if spec.get("manualSelector"):
        return
    metadata = spec["template"].setdefault("metadata", {})
    # In place: by default the Job's own labels are this very map.
    labels = metadata.setdefault("labels", {})
    for prefix in ("", "batch.kubernetes.io/"):
        labels |= {f"{prefix}controller-uid": uid, f"{prefix}job-name": name}
    selector = spec.get("selector") or {}
    job_labels = {"batch.kubernetes.io/controller-uid": uid}
    spec["selector"] = {**selector, "matchLabels": {**(selector.get("matchLabels") or {}), **job_labels}}
    # The type's default again, as the decoder applies it on reading from the store.
    if not meta(obj).get("labels"):
        meta(obj)["labels"] = dict(labels)


def _default_service(obj: JSON, _now: datetime) -> None:
    """Sets the cluster IP and the fields that follow from it; an ExternalName has none."""
    spec = obj["spec"]
    if spec.get("type") == "ExternalName":
        return
    if not spec.get("clusterIP"):
        spec["clusterIP"] = (spec.get("clusterIPs") or [_cluster_ip(obj)])[0]
    for key, value in (("clusterIPs", [spec["clusterIP"]]), ("ipFamilies", ["IPv4"])):
        if not spec.get(key):
            spec[key] = value
    spec.setdefault("ipFamilyPolicy", "SingleStack")


def _cluster_ip(obj: JSON) -> str:
    # Nothing listens there. The address derives from the name, so that a dry run shows the address of a real run.
    key = f"{meta(obj).get('namespace')}/{meta(obj).get('name')}"
    digest = hashlib.sha256(key.encode()).digest()
    return f"10.96.{digest[0]}.{digest[1] % 254 + 1}"


def _default_claim(obj: JSON, _now: datetime) -> None:
    _add_finalizer(obj, _PVC_PROTECTION)
    obj["status"] = {"phase": "Pending"}


def _default_volume(obj: JSON, now: datetime) -> None:
    _add_finalizer(obj, _PV_PROTECTION)
    obj["status"] = {"phase": "Pending", "lastPhaseTransitionTime": rfc3339(now)}


def _add_finalizer(obj: JSON, finalizer: str) -> None:
    finalizers = meta(obj).get("finalizers") or []
    if finalizer not in finalizers:
        meta(obj)["finalizers"] = [*finalizers, finalizer]


# -- changed objects ---------------------------------------------------------------------------------------------------


def _daemon_set(new: JSON, old: JSON) -> None:
    generation = (meta(old).get("annotations") or {}).get(_TEMPLATE_GENERATION, "1")
    if new["spec"].get("template") != old["spec"].get("template"):
        generation = str(int(generation) + 1)
    meta(new)["annotations"] = {**(meta(new).get("annotations") or {}), _TEMPLATE_GENERATION: generation}


def _changed_pod(new: JSON, old: JSON) -> None:
    """Keeps a pod's priority in an update that leaves it out (the Priority plugin)."""
    for key in ("priority", "preemptionPolicy"):
        if new["spec"].get(key) is None and (old.get("spec") or {}).get(key) is not None:
            new["spec"][key] = old["spec"][key]


def _keep_allocated_fields(new: JSON, old: JSON) -> None:
    """Keeps a Service's allocated fields in an update that leaves them out."""
    before, after = old.get("spec") or {}, new["spec"]
    if before.get("type") == "ExternalName" or after.get("type") == "ExternalName":
        return
    for key in ("clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"):
        if not after.get(key) and before.get(key):
            after[key] = before[key]


def _changed_service(new: JSON, old: JSON) -> None:
    _keep_allocated_fields(new, old)
    _drop_fields_of_former_type(new, old)


def _drop_fields_of_former_type(new: JSON, old: JSON) -> None:
    """Drops the fields that only the former type has, where the update leaves them as they were.

    The service strategy's dropTypeDependentFields. So a load balancer becomes a ClusterIP by its `type` alone.
    """
    before, after = old.get("spec") or {}, new["spec"]
    for key, is_needed in _OF_SERVICE_TYPES:
        if is_needed(before) and not is_needed(after) and after.get(key) == before.get(key):
            after.pop(key, None)
    if _has_node_ports(before) and not _has_node_ports(after):
        former = [port.get("nodePort") for port in before.get("ports") or ()]
        if former == [port.get("nodePort") for port in after.get("ports") or ()]:
            after["ports"] = [{k: v for k, v in port.items() if k != "nodePort"} for port in after.get("ports") or ()]


def _has_cluster_ip(spec: JSON) -> bool:
    return spec.get("type") != "ExternalName"


def _is_load_balancer(spec: JSON) -> bool:
    return spec.get("type") == "LoadBalancer"


def _has_node_ports(spec: JSON) -> bool:
    if _is_load_balancer(spec):
        return spec.get("allocateLoadBalancerNodePorts") is not False
    return spec.get("type") == "NodePort"


def _has_external_policy(spec: JSON) -> bool:
    return spec.get("type") in ("LoadBalancer", "NodePort") or bool(_has_cluster_ip(spec) and spec.get("externalIPs"))


_OF_SERVICE_TYPES: tuple[tuple[str, Callable[[JSON], bool]], ...] = (
    ("clusterIP", _has_cluster_ip),
    ("clusterIPs", _has_cluster_ip),
    ("ipFamilies", _has_cluster_ip),
    ("ipFamilyPolicy", _has_cluster_ip),
    ("internalTrafficPolicy", _has_cluster_ip),
    ("externalTrafficPolicy", _has_external_policy),
    ("allocateLoadBalancerNodePorts", _is_load_balancer),
    ("loadBalancerClass", _is_load_balancer),
)


_NEW: dict[str, Callable[[JSON, datetime], None]] = {
    "namespaces": _default_namespace,
    "pods": _default_pod,
    "services": _default_service,
    "persistentvolumeclaims": _default_claim,
    "persistentvolumes": _default_volume,
    "jobs.batch": _default_job,
}
_CHANGED: dict[str, Callable[[JSON, JSON], None]] = {
    "daemonsets.apps": _daemon_set,
    "pods": _changed_pod,
    "services": _changed_service,
}
