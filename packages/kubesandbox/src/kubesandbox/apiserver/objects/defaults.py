"""The fields that the registries of built-in kinds set: selectors, finalizers, first statuses.

In: a resource and an object with the defaults of its types (`schema/go_defaults.py`). Out: the same object, completed
in place. Called after field ownership is recorded, so that these fields have no owner, as in a real server. What
admission plugins set is in `admission`, the addresses of Services in `service_allocation`.
"""

from __future__ import annotations

import base64
from datetime import datetime

from kubesandbox.apiserver.metadata import JSON, meta, rfc3339
from kubesandbox.apiserver.objects import service_allocation

_TEMPLATE_GENERATION = "deprecated.daemonset.template.generation"


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
