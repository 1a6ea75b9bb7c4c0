"""The rules of built-in objects that are not in a schema: names, labels, what may not change, what must fit together.

In: a kind, the object, and the object before (None for a new one). Out: faults, worded as k8s.io/kubernetes/pkg/apis
words them. Custom resources get the rules of metadata; the rest of theirs is in their schema.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from runup.api import codec
from runup.api.meta_v1 import LabelSelector
from runup.sandbox.apiserver.kinds import Kind
from runup.sandbox.apiserver.objects import meta
from runup.sandbox.apiserver.schema import Fault, FieldError, validate_crd, validate_crd_update
from runup.sandbox.apiserver.schema.names import dns1035_label, dns1123_label, dns1123_subdomain

JSON = dict[str, Any]
Faults = Iterator[FieldError]

_ANNOTATION_BYTES = 256 * 1024
_NAME_PART = re.compile(r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]")
_NAME_RULE = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric "
    "character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
_VALUE_RULE = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is "
    "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)
_POD_MUTABLE = (
    "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,"
    "`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),"
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"
)
_RBAC = "rbac.authorization.k8s.io"
# Groups whose names only must fit into a URL: RBAC's, and those that OpenShift serves by an API server of its own (a
# dump's objects of these have names such as `sha256:...`).
_PATH_SEGMENTS = frozenset(
    {_RBAC, *(f"{name}.openshift.io" for name in ("image", "oauth", "quota", "security", "template", "user"))}
)
# What selects its pods for good, and how Kubernetes calls it in the message about an empty selector.
_SELECTING = {"StatefulSet": "statefulset", "DaemonSet": "daemonset"}


def faults(kind: Kind, obj: JSON, old: JSON | None) -> list[FieldError]:
    """Everything that is wrong with `obj`."""
    found = list(_metadata(kind, obj, old))
    rule = None if kind.custom else _RULES.get((kind.group, kind.kind))
    if rule is not None:
        found += rule(obj, old)
    return found


# -- metadata ----------------------------------------------------------------------------------------------------------


def _path_segment(name: str) -> str:
    if name in {".", ".."}:
        return f"may not be '{name}'"
    return ", ".join(f"may not contain '{character}'" for character in "/%" if character in name)


def _name_fault(kind: Kind, name: str) -> str:
    if kind.group in _PATH_SEGMENTS:
        return _path_segment(name)
    if kind.group == "" and kind.kind == "Namespace":
        return dns1123_label(name)
    if kind.group == "" and kind.kind == "Service":
        return dns1035_label(name)
    return dns1123_subdomain(name)


def _metadata(kind: Kind, obj: JSON, old: JSON | None) -> Faults:
    metadata = meta(obj)
    name = metadata.get("name")
    if not name:
        yield FieldError(Fault.REQUIRED, "metadata.name", None, "name or generateName is required")
    elif old is None and (why := _name_fault(kind, name)):
        yield FieldError(Fault.INVALID, "metadata.name", name, why)
    yield from _labels(metadata.get("labels") or {}, "metadata.labels")
    yield from _annotations(metadata.get("annotations") or {})
    if old is not None and meta(old).get("deletionTimestamp"):
        known = set(meta(old).get("finalizers") or ())
        if new := [finalizer for finalizer in metadata.get("finalizers") or () if finalizer not in known]:
            listed = ", ".join(f'"{finalizer}"' for finalizer in new)
            why = "no new finalizers can be added if the object is being deleted, found new finalizers "
            why += f"[]string{{{listed}}}"
            yield FieldError(Fault.FORBIDDEN, "metadata.finalizers", None, why)


def _labels(labels: JSON, path: str) -> Faults:
    for key, value in labels.items():
        if why := _qualified_name(key):
            yield FieldError(Fault.INVALID, path, key, why)
        if len(str(value)) > 63:
            yield FieldError(Fault.INVALID, path, value, "must be no more than 63 characters")
        elif value and not _NAME_PART.fullmatch(str(value)):
            yield FieldError(Fault.INVALID, path, value, _VALUE_RULE)


def _annotations(annotations: JSON) -> Faults:
    for key in annotations:
        if why := _qualified_name(key.lower()):
            yield FieldError(Fault.INVALID, "metadata.annotations", key, why)
    size = sum(len(str(key).encode()) + len(str(value).encode()) for key, value in annotations.items())
    if size > _ANNOTATION_BYTES:
        why = f"may not be more than {_ANNOTATION_BYTES} bytes"
        yield FieldError(Fault.TOO_LONG, "metadata.annotations", None, why)


def _qualified_name(key: str) -> str:
    prefix, slash, name = key.rpartition("/")
    if slash and not prefix:
        return "prefix part must be non-empty"
    if slash and (why := dns1123_subdomain(prefix)):
        return f"prefix part {why}"
    if not name:
        return f"name part must be non-empty; {_NAME_RULE}"
    if len(name) > 63:
        return "name part must be no more than 63 characters"
    return "" if _NAME_PART.fullmatch(name) else _NAME_RULE


# -- pods --------------------------------------------------------------------------------------------------------------


def _pod_spec(spec: JSON, path: str) -> Faults:
    containers = spec.get("containers") or ()
    if not containers:
        yield FieldError(Fault.REQUIRED, f"{path}.containers")
    yield from _containers(containers, f"{path}.containers")
    yield from _containers(spec.get("initContainers") or (), f"{path}.initContainers")
    volumes = {volume.get("name") for volume in spec.get("volumes") or ()}
    for index, volume in enumerate(spec.get("volumes") or ()):
        if not volume.get("name"):
            yield FieldError(Fault.REQUIRED, f"{path}.volumes[{index}].name")
    for name in ("containers", "initContainers"):
        for index, container in enumerate(spec.get(name) or ()):
            for at, mount in enumerate(container.get("volumeMounts") or ()):
                if mount.get("name") not in volumes:
                    where = f"{path}.{name}[{index}].volumeMounts[{at}].name"
                    yield FieldError(Fault.NOT_FOUND, where, mount.get("name"))


def _containers(containers: Iterable[JSON], path: str) -> Faults:
    seen: set[str] = set()
    for index, container in enumerate(containers):
        name = container.get("name")
        if not name:
            yield FieldError(Fault.REQUIRED, f"{path}[{index}].name")
        elif name in seen:
            yield FieldError(Fault.DUPLICATE, f"{path}[{index}].name", name)
        elif why := dns1123_label(name):
            yield FieldError(Fault.INVALID, f"{path}[{index}].name", name, why)
        seen.add(name or "")
        if not container.get("image"):
            yield FieldError(Fault.REQUIRED, f"{path}[{index}].image")


def _pod(obj: JSON, old: JSON | None) -> Faults:
    spec = obj.get("spec") or {}
    if old is None:
        yield from _pod_spec(spec, "spec")
    elif _fixed(spec) != _fixed(old.get("spec") or {}):
        yield FieldError(Fault.FORBIDDEN, "spec", None, _POD_MUTABLE)


def _fixed(spec: JSON) -> JSON:
    kept = copy.deepcopy(spec)
    # A pod gets its node by binding, which comes through here as well.
    for name in ("activeDeadlineSeconds", "tolerations", "terminationGracePeriodSeconds", "nodeName"):
        kept.pop(name, None)
    for name in ("containers", "initContainers"):
        for container in kept.get(name) or ():
            container.pop("image", None)
            container.pop("imagePullPolicy", None)
    kept.pop("ephemeralContainers", None)
    return kept


# -- workloads ---------------------------------------------------------------------------------------------------------


def _not_negative(spec: JSON, *names: str) -> Faults:
    for name in names:
        if isinstance(value := spec.get(name), int) and value < 0:
            yield FieldError(Fault.INVALID, f"spec.{name}", value, "must be greater than or equal to 0")


def _workload(obj: JSON, old: JSON | None) -> Faults:
    spec = obj.get("spec") or {}
    template = spec.get("template") or {}
    yield from _not_negative(spec, "replicas", "minReadySeconds", "revisionHistoryLimit")
    yield from _selector(obj, old)
    yield from _pod_spec(template.get("spec") or {}, "spec.template.spec")
    policy = (template.get("spec") or {}).get("restartPolicy")
    if policy not in {None, "Always"}:
        yield FieldError(Fault.NOT_SUPPORTED, "spec.template.spec.restartPolicy", policy, 'supported values: "Always"')


def _selector(obj: JSON, old: JSON | None) -> Faults:
    spec = obj.get("spec") or {}
    selector = spec.get("selector")
    if not isinstance(selector, dict):
        yield FieldError(Fault.REQUIRED, "spec.selector")
        return
    if not selector.get("matchLabels") and not selector.get("matchExpressions"):
        why = f"empty selector is invalid for {_SELECTING.get(obj['kind'], 'deployment')}"
        yield FieldError(Fault.INVALID, "spec.selector", selector, why)
    labels = ((spec.get("template") or {}).get("metadata") or {}).get("labels") or {}
    if not codec.convert(LabelSelector, selector).matches(labels):
        why = "`selector` does not match template `labels`"
        yield FieldError(Fault.INVALID, "spec.template.metadata.labels", labels, why)
    if old is not None and selector != ((old.get("spec") or {}).get("selector") or {}):
        yield FieldError(Fault.INVALID, "spec.selector", selector, "field is immutable")


def _job(obj: JSON, old: JSON | None) -> Faults:
    spec = obj.get("spec") or {}
    yield from _not_negative(spec, "parallelism", "completions", "backoffLimit", "activeDeadlineSeconds")
    template = spec.get("template") or {}
    yield from _pod_spec(template.get("spec") or {}, "spec.template.spec")
    policy = (template.get("spec") or {}).get("restartPolicy")
    if policy not in {"OnFailure", "Never"}:
        supported = 'supported values: "OnFailure", "Never"'
        yield FieldError(Fault.NOT_SUPPORTED, "spec.template.spec.restartPolicy", policy, supported)
    if old is not None:
        yield from _immutable(obj, old, "spec.completions", "spec.selector", "spec.template", "spec.completionMode")


def _at(obj: JSON, path: str) -> Any:
    value: Any = obj
    for part in path.split("."):
        value = value.get(part) if isinstance(value, dict) else None
    return value


def _immutable(obj: JSON, old: JSON, *paths: str, why: str = "field is immutable") -> Faults:
    for path in paths:
        if _at(obj, path) != _at(old, path):
            yield FieldError(Fault.INVALID, path, _at(obj, path), why)


# -- the rest ----------------------------------------------------------------------------------------------------------


def _sealed(obj: JSON, old: JSON | None) -> Faults:
    """ConfigMaps and Secrets that are marked immutable."""
    if old is not None and old.get("immutable"):
        why = "field is immutable when `immutable` is set"
        if not obj.get("immutable"):
            yield FieldError(Fault.FORBIDDEN, "immutable", None, why)
        for name in ("data", "binaryData"):
            if obj.get(name) != old.get(name):
                yield FieldError(Fault.FORBIDDEN, name, None, why)


def _secret(obj: JSON, old: JSON | None) -> Faults:
    if old is not None:
        yield from _immutable(obj, old, "type")
    yield from _sealed(obj, old)


def _binding(obj: JSON, old: JSON | None) -> Faults:
    role = obj.get("roleRef") or {}
    if not role.get("name"):
        yield FieldError(Fault.REQUIRED, "roleRef.name")
    if old is not None:
        yield from _immutable(obj, old, "roleRef", why="cannot change roleRef")


def _budget(obj: JSON, _old: JSON | None) -> Faults:
    spec = obj.get("spec") or {}
    if spec.get("minAvailable") is not None and spec.get("maxUnavailable") is not None:
        yield FieldError(Fault.INVALID, "spec", spec, "minAvailable and maxUnavailable cannot be both set")


def _definition(obj: JSON, old: JSON | None) -> Iterable[FieldError]:
    return validate_crd(obj) if old is None else validate_crd_update(obj, old)


_RULES: dict[tuple[str, str], Callable[[JSON, JSON | None], Iterable[FieldError]]] = {
    ("", "Pod"): _pod,
    ("", "ConfigMap"): _sealed,
    ("", "Secret"): _secret,
    ("apps", "Deployment"): _workload,
    ("apps", "ReplicaSet"): _workload,
    ("apps", "StatefulSet"): _workload,
    ("apps", "DaemonSet"): _workload,
    ("batch", "Job"): _job,
    ("policy", "PodDisruptionBudget"): _budget,
    (_RBAC, "RoleBinding"): _binding,
    (_RBAC, "ClusterRoleBinding"): _binding,
    ("apiextensions.k8s.io", "CustomResourceDefinition"): _definition,
}
