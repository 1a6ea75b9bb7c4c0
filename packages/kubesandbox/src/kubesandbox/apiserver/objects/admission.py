"""Admission of built-in kinds: namespace lifecycle, priorities, and the checks of the registries."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any, Protocol

from kubesandbox.apiserver import status_errors, validation
from kubesandbox.apiserver.metadata import meta
from kubesandbox.apiserver.objects import defaults
from kubesandbox.apiserver.served_kinds import Kind
from kubesandbox.apiserver.status_errors import FieldFault
from kubesandbox.apiserver.store import Store

JSON = dict[str, Any]

# Namespaces that may not be deleted (immortalNamespaces of the NamespaceLifecycle plugin).
CRD_FINALIZER = "customresourcecleanup.apiextensions.k8s.io"
IMMORTAL = frozenset({"default", "kube-system", "kube-public"})


class DefinitionRules(Protocol):
    """The part of CustomResourceDefinitions' handling that admission needs."""

    def complete(self, crd: JSON) -> None:
        """Fills in the fields of a definition that the server sets."""


class Admission:
    """The admission step, called on every write before validation."""

    def __init__(self, store: Store) -> None:
        self._store = store
        # Set once the server is put together.
        self.definitions: DefinitionRules | None = None
        # Returns the status of a ValidatingAdmissionPolicy; set at the same time.
        self.policy_status: Callable[[JSON], JSON] | None = None

    def before_create(self, kind: Kind, obj: JSON, now: datetime) -> None:
        """Completes a new object. Raises ApiError 403 or 404 if its namespace does not accept it."""
        if kind.namespaced:
            self._check_namespace(kind, obj)
        if not kind.custom:
            defaults.default_new(kind.resource, obj, now)
        if kind.resource == "pods":
            self._set_priority(obj)
            self._choose_runtime(obj)
        self._complete_definition(kind, obj)

    def _set_priority(self, pod: JSON) -> None:
        """Sets a pod's priority by its class (the Priority plugin), else 0. Raises ApiError 403 if it is unknown."""
        spec, metadata = pod["spec"], meta(pod)
        name = spec.get("priorityClassName") or ""
        entry = self._store.get("priorityclasses.scheduling.k8s.io", "", name) if name else None
        if name and entry is None:
            # The plugin runs before a name is generated.
            about = metadata.get("generateName") or metadata["name"]
            raise status_errors.forbidden("pods", "", about, f"no PriorityClass with name {name} was found")
        priority_class = entry.load() if entry else {}
        spec["priority"] = priority_class.get("value", 0)
        spec.setdefault("preemptionPolicy", priority_class.get("preemptionPolicy") or "PreemptLowerPriority")

    def _choose_runtime(self, pod: JSON) -> None:
        """Sets what a pod's RuntimeClass adds to it (the RuntimeClass plugin). Raises ApiError 403."""
        spec, metadata = pod["spec"], meta(pod)
        name = spec.get("runtimeClassName") or ""
        about = metadata.get("generateName") or metadata["name"]
        entry = self._store.get("runtimeclasses.node.k8s.io", "", name) if name else None
        if name and entry is None:
            raise status_errors.forbidden("pods", "", about, f'pod rejected: RuntimeClass "{name}" not found')
        runtime = entry.load() if entry else {}
        fixed = (runtime.get("overhead") or {}).get("podFixed")
        if spec.get("overhead") is not None and spec["overhead"] != fixed:
            why = "Pod's Overhead doesn't match RuntimeClass's defined Overhead"
            if fixed is None:
                why = "Pod Overhead set without corresponding RuntimeClass defined Overhead"
            raise status_errors.forbidden("pods", "", about, f"pod rejected: {why}")
        if fixed is not None:
            spec["overhead"] = fixed
        _apply_runtime_class(spec, runtime.get("scheduling") or {}, about)

    def before_update(self, kind: Kind, new: JSON, old: JSON) -> None:
        """Completes a changed object."""
        if not kind.custom:
            defaults.default_changed(kind.resource, new, old)
        self._complete_definition(kind, new)

    def _complete_definition(self, kind: Kind, obj: JSON) -> None:
        """Fills in a definition, and adds the finalizer that keeps it until its objects are gone."""
        if kind.kind == "CustomResourceDefinition" and not kind.custom and self.definitions is not None:
            if "deletionTimestamp" not in meta(obj):
                finalizers = meta(obj).setdefault("finalizers", [])
                if CRD_FINALIZER not in finalizers:
                    finalizers.append(CRD_FINALIZER)
            self.definitions.complete(obj)
        if kind.kind == "ValidatingAdmissionPolicy" and not kind.custom and self.policy_status is not None:
            obj["status"] = {**(obj.get("status") or {}), **self.policy_status(obj)}

    def before_delete(self, kind: Kind, obj: JSON) -> None:
        """Refuses deletions that the server never allows. Raises ApiError 403."""
        if kind.resource == "namespaces" and meta(obj)["name"] in IMMORTAL:
            name = meta(obj)["name"]
            raise status_errors.forbidden("namespaces", "", name, "this namespace may not be deleted")

    def grace_period(self, kind: Kind, obj: JSON, requested_s: int | None) -> int:
        """Returns the seconds that an object stays after a delete: 0 except for pods on a node."""
        if kind.resource != "pods":
            return 0
        spec, status = obj.get("spec") or {}, obj.get("status") or {}
        if not spec.get("nodeName") or status.get("phase") in {"Succeeded", "Failed"}:
            return 0
        default = spec.get("terminationGracePeriodSeconds")
        return requested_s if requested_s is not None else 30 if default is None else int(default)

    def faults(self, kind: Kind, obj: JSON, old: JSON | None) -> list[FieldFault]:
        """Returns the faults of an object by the rules of all kinds and of its own."""
        return list(validation.object_faults(kind, obj, old))

    def _check_namespace(self, kind: Kind, obj: JSON) -> None:
        """Raises ApiError if the object's namespace does not exist (404) or is being deleted (403)."""
        name = meta(obj)["namespace"]
        entry = self._store.get("namespaces", "", name)
        if entry is None:
            raise status_errors.not_found("namespaces", "", name)
        if (entry.load().get("status") or {}).get("phase") == "Terminating":
            why = f"unable to create new content in namespace {name} because it is being terminated"
            error = status_errors.forbidden(kind.plural, kind.group, meta(obj).get("name", ""), why)
            cause = {
                "reason": "NamespaceTerminating",
                "message": f"namespace {name} is being terminated",
                "field": "metadata.namespace",
            }
            error.details = {**(error.details or {}), "causes": [cause]}
            raise error


def _apply_runtime_class(spec: JSON, scheduling: JSON, about: str) -> None:
    """Adds the node selector and tolerations of a RuntimeClass to a pod. Raises ApiError 403 if they conflict."""
    node_selector = spec.get("nodeSelector") or {}
    for key, value in (scheduling.get("nodeSelector") or {}).items():
        if node_selector.get(key, value) != value:
            of_pod = f"pod.spec.nodeSelector[{key}] = {node_selector[key]}"
            why = f"runtimeClass.scheduling.nodeSelector[{key}] = {value}; {of_pod}"
            raise status_errors.forbidden("pods", "", about, f"conflict: {why}")
        spec["nodeSelector"] = node_selector = {**node_selector, key: value}
    tolerations = spec.get("tolerations") or []
    if more := [toleration for toleration in scheduling.get("tolerations") or () if toleration not in tolerations]:
        spec["tolerations"] = [*tolerations, *more]
