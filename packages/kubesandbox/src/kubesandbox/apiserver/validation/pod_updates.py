"""Validation of updates of pods, and of their subresource resize (ValidatePodUpdate, ValidatePodResize)."""

from __future__ import annotations

from typing import Any

from kubekit.rules.pod_requests import qos_class
from kubesandbox.apiserver.json_copy import copy_json
from kubesandbox.apiserver.metadata import meta
from kubesandbox.apiserver.schema import field_errors as field
from kubesandbox.apiserver.validation.common import Faults, value_at
from kubesandbox.apiserver.validation.pods import whole_spec

JSON = dict[str, Any]

_MUTABLE = (
    "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,"
    "`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),"
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"
)
_CONTAINERS = ("containers", "initContainers")
_MOST_SECONDS = 2**31 - 1
_MIRROR = "kubernetes.io/config.mirror"
_RESIZED = ("cpu", "memory")
_TERMS = "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms"


def update_faults(obj: JSON, old: JSON) -> Faults:
    """Yields the faults of a changed pod: images, deadlines and tolerations change, and directives of gated pods."""
    spec, old_spec = obj.get("spec") or {}, old.get("spec") or {}
    yield from whole_spec(spec)
    for part in _CONTAINERS:
        if len(spec.get(part) or ()) != len(old_spec.get(part) or ()):
            yield field.forbidden(f"spec.{part}", "pod updates may not add or remove containers")
            return
        for index, container in enumerate(spec.get(part) or ()):
            image = container.get("image") or ""
            if not image:
                yield field.required(f"spec.{part}[{index}].image")
            if image != image.strip():
                why = "must not have leading or trailing whitespace"
                yield field.invalid(f"spec.{part}[{index}].image", image, why)
    deadline, former = spec.get("activeDeadlineSeconds"), old_spec.get("activeDeadlineSeconds")
    if why := _why_no_deadline(deadline, former):
        yield field.invalid("spec.activeDeadlineSeconds", deadline, why)
        if deadline is not None:
            return
    yield from _tolerations_only_added(spec, old_spec)
    gates = [gate.get("name") for gate in old_spec.get("schedulingGates") or ()]
    for index, gate in enumerate(spec.get("schedulingGates") or ()):
        if gate.get("name") not in gates:
            why = f"only deletion is allowed, but found new scheduling gate '{gate.get('name')}'"
            yield field.forbidden(f"spec.schedulingGates[{index}].name", why)
    if gates:
        yield from _directives_only_added(obj, old)
    if _immutable_part(spec, old_spec) != _immutable_part(old_spec, old_spec):
        yield field.forbidden("spec", _MUTABLE)


def _why_no_deadline(deadline: int | None, former: int | None) -> str:
    if deadline is None:
        return "" if former is None else "must not update from a positive integer to nil value"
    if not 0 <= deadline <= _MOST_SECONDS:
        return f"must be between 0 and {_MOST_SECONDS}, inclusive"
    return "must be less than or equal to previous value" if former is not None and former < deadline else ""


def _tolerations_only_added(spec: JSON, old_spec: JSON) -> Faults:
    def without_seconds(toleration: JSON) -> JSON:
        return {key: value for key, value in toleration.items() if key != "tolerationSeconds"}

    new = [without_seconds(toleration) for toleration in spec.get("tolerations") or ()]
    if any(without_seconds(toleration) not in new for toleration in old_spec.get("tolerations") or ()):
        yield field.forbidden(
            "spec.tolerations", "existing toleration can not be modified except its tolerationSeconds"
        )


def _directives_only_added(obj: JSON, old: JSON) -> Faults:
    """Yields the faults of a gated pod whose node selector or required node affinity lost or changed something."""
    selector, former = value_at(obj, "spec.nodeSelector") or {}, value_at(old, "spec.nodeSelector") or {}
    if any(selector.get(key) != value for key, value in former.items()):
        why = "only additions to spec.nodeSelector are allowed (no mutations or deletions)"
        yield field.invalid("spec.nodeSelector", selector or None, why)
    terms, old_terms = value_at(obj, _TERMS) or [], value_at(old, _TERMS) or []
    if old_terms and len(terms) != len(old_terms):
        yield field.invalid(_TERMS, terms, "no additions/deletions to non-empty NodeSelectorTerms list are allowed")
        return
    for index, (term, old_term) in enumerate(zip(terms, old_terms, strict=False)):
        if not _has_only_additions(term, old_term):
            yield field.invalid(f"{_TERMS}[{index}]", term, "only additions are allowed (no mutations or deletions)")


def _has_only_additions(term: JSON, old_term: JSON) -> bool:
    parts = [(term.get(name) or [], old_term.get(name) or []) for name in ("matchExpressions", "matchFields")]
    if not any(former for _, former in parts) and any(new for new, _ in parts):
        return False
    return all(new[: len(former)] == former for new, former in parts)


def _immutable_part(spec: JSON, old_spec: JSON) -> JSON:
    """Returns a pod's spec without the fields that an update may change."""
    immutable: JSON = copy_json(spec)
    for name in ("activeDeadlineSeconds", "tolerations", "schedulingGates", "ephemeralContainers"):
        immutable.pop(name, None)
    if (old_spec.get("terminationGracePeriodSeconds") or 0) < 0 and spec.get("terminationGracePeriodSeconds") == 1:
        immutable["terminationGracePeriodSeconds"] = old_spec["terminationGracePeriodSeconds"]
    for part in _CONTAINERS:
        for container in immutable.get(part) or ():
            container.pop("image", None)
    if old_spec.get("schedulingGates"):
        immutable.pop("nodeSelector", None)
        affinity = immutable.get("affinity") or {}
        affinity.pop("nodeAffinity", None)
        if not affinity:
            immutable.pop("affinity", None)
    return immutable


def resize_faults(obj: JSON, old: JSON | None) -> Faults:
    """Yields the faults of a resize: cpu and memory of containers and sidecars change, and no quality of service."""
    assert old is not None
    spec, old_spec = obj.get("spec") or {}, old.get("spec") or {}
    for why in _why_never_resized(obj, old):
        yield field.FieldError(field.Fault.FORBIDDEN, "", None, why)
        return
    yield from whole_spec(spec)
    if qos_class(spec) != qos_class(old_spec):
        why = "Pod QOS Class may not change as a result of resizing"
        yield field.invalid("spec", value_at(obj, "status.qosClass") or "", why)
    running = [c for c in value_at(old, "status.containerStatuses") or () if (c.get("state") or {}).get("running")]
    if running and running[0].get("resources") is None:
        yield field.forbidden("spec", "Pod running on node without support for resize")
    if in_other_order := list(_other_containers(spec, old_spec)):
        yield from in_other_order
        return
    for part in reversed(_CONTAINERS):
        for index, (new, former) in enumerate(zip(spec.get(part) or (), old_spec.get(part) or (), strict=True)):
            if part == "containers" or former.get("restartPolicy") == "Always":
                yield from _removed_resources(new, former, f"spec.{part}[{index}].resources")
    yield from _changes_beyond_resources(spec, old_spec)


def _why_never_resized(obj: JSON, old: JSON) -> list[str]:
    if any(value_at(pod, f"spec.resources.{name}") for pod in (obj, old) for name in ("requests", "limits")):
        return ["pods with pod-level resources cannot be resized"]
    if _MIRROR in (meta(old).get("annotations") or {}):
        return ["static pods cannot be resized"]
    return ["windows pods cannot be resized"] if value_at(old, "spec.os.name") == "windows" else []


def _other_containers(spec: JSON, old_spec: JSON) -> Faults:
    for part in _CONTAINERS:
        names = [container.get("name") for container in spec.get(part) or ()]
        former = [container.get("name") for container in old_spec.get(part) or ()]
        if len(names) != len(former):
            yield field.forbidden(f"spec.{part}", f"{part} may not be added or removed on resize")
        for index, (name, old_name) in enumerate(zip(names, former, strict=False)):
            if len(names) == len(former) and name != old_name:
                why = f"{part} may not be renamed or reordered on resize"
                yield field.forbidden(f"spec.{part}[{index}].name", why)


def _removed_resources(container: JSON, former: JSON, path: str) -> Faults:
    for part, word in (("requests", "resource requests"), ("limits", "resource limits")):
        names = (value_at(former, f"resources.{part}") or {}).keys()
        if names - (value_at(container, f"resources.{part}") or {}).keys():
            yield field.forbidden(f"{path}.{part}", f"{word} cannot be removed")


def _changes_beyond_resources(spec: JSON, old_spec: JSON) -> Faults:
    for new, former in zip(spec.get("containers") or (), old_spec.get("containers") or (), strict=True):
        if _without_cpu_and_memory(new) != _without_cpu_and_memory(former):
            yield field.forbidden("spec", "only cpu and memory resources are mutable")
    for new, former in zip(spec.get("initContainers") or (), old_spec.get("initContainers") or (), strict=True):
        if new.get("restartPolicy") != "Always":
            if new != former:
                yield field.forbidden("spec", "resources for non-sidecar init containers are immutable")
        elif _without_cpu_and_memory(new) != _without_cpu_and_memory(former):
            yield field.forbidden("spec", "only cpu and memory resources for sidecar containers are mutable")


def _without_cpu_and_memory(container: JSON) -> JSON:
    result: JSON = copy_json(container)
    for part in ("requests", "limits"):
        amounts = value_at(result, f"resources.{part}") or {}
        for name in _RESIZED:
            amounts.pop(name, None)
        if not amounts:
            (result.get("resources") or {}).pop(part, None)
    return result
