"""Admission: the plugins of kube-apiserver that complete or refuse an object before it is validated and stored.

A plugin is a function below; to add one, write it and name it in `CREATE_PLUGINS`, `UPDATE_PLUGINS` or
`DELETE_PLUGINS`. A plugin raises ApiError to refuse the write. Elsewhere are policies that users write
(`policies/policy_admission`), quotas (`quotas/usage`), and what a kind's registry sets (`strategies`).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection
from datetime import datetime
from functools import partial
from typing import Protocol

from kubekit.lang.quantity import parse_quantity
from kubesandbox.apiserver import status_errors, validation
from kubesandbox.apiserver.metadata import JSON, meta
from kubesandbox.apiserver.objects import admission_plugins, gated_fields, limit_ranges, service_ports, strategies
from kubesandbox.apiserver.policies import pod_security
from kubesandbox.apiserver.served_kinds import Kind
from kubesandbox.apiserver.store import Store

_LOG = logging.getLogger(__name__)
# The seconds that a pod stays on a node that is not ready.
_STAY_S = 300
# Namespaces that may not be deleted (immortalNamespaces of the NamespaceLifecycle plugin).
IMMORTAL = frozenset({"default", "kube-system", "kube-public"})
CRD_FINALIZER = "customresourcecleanup.apiextensions.k8s.io"
# The classes by the kind that names one: their resource, its member, and the annotations of the default.
_DEFAULT_CLASSES = {
    "persistentvolumeclaims": (
        "storageclasses.storage.k8s.io",
        "storageClassName",
        "storageclass.kubernetes.io/is-default-class storageclass.beta.kubernetes.io/is-default-class",
    ),
    "ingresses.networking.k8s.io": (
        "ingressclasses.networking.k8s.io",
        "ingressClassName",
        "ingressclass.kubernetes.io/is-default-class",
    ),
}
# The annotations that name a class, from before there were members for it.
_OLD_CLASS = {"volume.beta.kubernetes.io/storage-class", "kubernetes.io/ingress.class"}
_PROTECTION = {
    "persistentvolumeclaims": "kubernetes.io/pvc-protection",
    "persistentvolumes": "kubernetes.io/pv-protection",
}


def check_namespace(store: Store, kind: Kind, obj: JSON) -> None:
    """NamespaceLifecycle: refuses objects in a namespace that does not exist (404) or is being deleted (403)."""
    if not kind.namespaced:
        return
    name = meta(obj)["namespace"]
    entry = store.get("namespaces", "", name)
    if entry is None:
        raise status_errors.not_found("namespaces", "", name)
    if (entry.load().get("status") or {}).get("phase") == "Terminating":
        why = f"unable to create new content in namespace {name} because it is being terminated"
        error = status_errors.forbidden(kind.plural, kind.group, meta(obj).get("name", ""), why)
        message = f"namespace {name} is being terminated"
        cause = {"reason": "NamespaceTerminating", "message": message, "field": "metadata.namespace"}
        error.details = {**(error.details or {}), "causes": [cause]}
        raise error


def keep_immortal_namespaces(kind: Kind, obj: JSON) -> None:
    """NamespaceLifecycle: refuses to delete the namespaces that the cluster needs (403)."""
    if kind.resource == "namespaces" and (name := meta(obj)["name"]) in IMMORTAL:
        raise status_errors.forbidden("namespaces", "", name, "this namespace may not be deleted")


def add_default_tolerations(kind: Kind, obj: JSON) -> None:
    """DefaultTolerationSeconds: lets a pod stay on an unready node for five minutes."""
    if kind.resource != "pods":
        return
    tolerations = list(obj["spec"].get("tolerations") or ())
    for key in ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"):
        if not any(
            toleration.get("key") in {None, "", key} and toleration.get("effect") in {None, "", "NoExecute"}
            for toleration in tolerations
        ):
            tolerations.append({"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": _STAY_S})
    obj["spec"]["tolerations"] = tolerations


def set_priority(store: Store, kind: Kind, obj: JSON) -> None:
    """Priority: sets a pod's priority by its class, else 0. An unknown class is refused (403)."""
    if kind.resource != "pods":
        return
    spec, metadata = obj["spec"], meta(obj)
    name = spec.get("priorityClassName") or ""
    entry = store.get("priorityclasses.scheduling.k8s.io", "", name) if name else None
    if name and entry is None:
        # The plugin runs before a name is generated.
        about = metadata.get("generateName") or metadata.get("name") or ""
        raise status_errors.forbidden("pods", "", about, f"no PriorityClass with name {name} was found")
    priority_class = entry.load() if entry else {}
    spec["priority"] = priority_class.get("value", 0)
    spec.setdefault("preemptionPolicy", priority_class.get("preemptionPolicy") or "PreemptLowerPriority")


def keep_priority(kind: Kind, new: JSON, old: JSON) -> None:
    """Priority: keeps a pod's priority in an update that leaves it out."""
    for key in ("priority", "preemptionPolicy") if kind.resource == "pods" else ():
        if new["spec"].get(key) is None and (old.get("spec") or {}).get(key) is not None:
            new["spec"][key] = old["spec"][key]


def keep_default_tolerations(kind: Kind, new: JSON, old: JSON) -> None:
    """DefaultTolerationSeconds: adds the tolerations again where an update replaces a pod's list."""
    if kind.resource == "pods" and new["spec"].get("tolerations") != (old.get("spec") or {}).get("tolerations"):
        add_default_tolerations(kind, new)


def apply_runtime_class(store: Store, kind: Kind, obj: JSON) -> None:
    """RuntimeClass: adds overhead, node selector and tolerations of a pod's class; a conflict is refused (403)."""
    if kind.resource != "pods":
        return
    spec, metadata = obj["spec"], meta(obj)
    name, about = spec.get("runtimeClassName") or "", metadata.get("generateName") or metadata.get("name") or ""
    entry = store.get("runtimeclasses.node.k8s.io", "", name) if name else None
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
    scheduling, selector = runtime.get("scheduling") or {}, spec.get("nodeSelector") or {}
    for key, value in (scheduling.get("nodeSelector") or {}).items():
        if selector.get(key, value) != value:
            of_pod = f"pod.spec.nodeSelector[{key}] = {selector[key]}"
            why = f"runtimeClass.scheduling.nodeSelector[{key}] = {value}; {of_pod}"
            raise status_errors.forbidden("pods", "", about, f"conflict: {why}")
        spec["nodeSelector"] = selector = {**selector, key: value}
    tolerations = spec.get("tolerations") or []
    if more := [toleration for toleration in scheduling.get("tolerations") or () if toleration not in tolerations]:
        spec["tolerations"] = [*tolerations, *more]


def protect_storage_in_use(_store: Store, kind: Kind, obj: JSON) -> None:
    """StorageObjectInUseProtection: adds the finalizer that keeps a claim or volume while it is in use."""
    finalizer, finalizers = _PROTECTION.get(kind.resource), meta(obj).get("finalizers") or []
    if finalizer and finalizer not in finalizers:
        meta(obj)["finalizers"] = [*finalizers, finalizer]


def set_default_class(of: str, store: Store, kind: Kind, obj: JSON) -> None:
    """DefaultStorageClass, DefaultIngressClass: names the newest default class of a claim or an Ingress without one."""
    classes, member, annotation = _DEFAULT_CLASSES[of]
    if (
        kind.resource != of
        or obj["spec"].get(member) is not None
        or set(meta(obj).get("annotations") or ()) & _OLD_CLASS
    ):
        return
    defaults = [
        entry
        for entry in (entry.load() for entry in store.items(classes, ""))
        if any((meta(entry).get("annotations") or {}).get(name) == "true" for name in annotation.split())
    ]
    if defaults:
        newest = max(meta(each)["creationTimestamp"] for each in defaults)
        names = (meta(each)["name"] for each in defaults if meta(each)["creationTimestamp"] == newest)
        obj["spec"][member] = min(names)


def set_account(store: Store, kind: Kind, obj: JSON) -> None:
    """ServiceAccount: refuses a pod of an account that does not exist (403), and completes one by its account.

    A namespace without the account `default` has no controllers: its accounts are not looked up, as by a server that
    is started without the plugin.
    """
    if kind.resource != "pods" or "kubernetes.io/config.mirror" in (meta(obj).get("annotations") or {}):
        return
    spec, namespace = obj["spec"], meta(obj).get("namespace", "")
    name = spec.get("serviceAccountName") or "default"
    if store.get("serviceaccounts", namespace, "default") is None:
        return
    if (entry := store.get("serviceaccounts", namespace, name)) is None:
        why = f'error looking up service account {namespace}/{name}: serviceaccount "{name}" not found'
        raise status_errors.forbidden("pods", "", meta(obj).get("name", ""), why)
    spec["serviceAccountName"] = spec["serviceAccount"] = name
    if not spec.get("imagePullSecrets") and (secrets := entry.load().get("imagePullSecrets")):
        spec["imagePullSecrets"] = secrets


def check_resize(store: Store, kind: Kind, obj: JSON, old: JSON | None) -> None:
    """PersistentVolumeClaimResize: refuses a larger claim unless its class allows expansion (403)."""
    if kind.resource != "persistentvolumeclaims" or old is None:
        return
    new_size, old_size = (
        parse_quantity(str((((each["spec"].get("resources") or {}).get("requests")) or {}).get("storage", "0")))
        for each in (obj, old)
    )
    if new_size <= old_size:
        return
    why = "Only bound persistent volume claims can be expanded"
    if (old.get("status") or {}).get("phase") == "Bound":
        entry = store.get("storageclasses.storage.k8s.io", "", obj["spec"].get("storageClassName") or "")
        if entry is not None and entry.load().get("allowVolumeExpansion"):
            return
        why = "the storageclass that provisions the pvc must support resize"
        why = f"only dynamically provisioned pvc can be resized and {why}"
    raise status_errors.forbidden(kind.plural, kind.group, meta(obj).get("name", ""), why)


# The path from a kind's object to the template of its pods.
_TEMPLATES = {
    "podtemplates": ("template",),
    "replicationcontrollers": ("spec", "template"),
    "replicasets.apps": ("spec", "template"),
    "deployments.apps": ("spec", "template"),
    "statefulsets.apps": ("spec", "template"),
    "daemonsets.apps": ("spec", "template"),
    "jobs.batch": ("spec", "template"),
    "cronjobs.batch": ("spec", "jobTemplate", "spec", "template"),
}


def check_pod_security(
    store: Store, kind: Kind, obj: JSON, old: JSON | None, *, warnings: list[str], annotations: dict[str, str]
) -> None:
    """PodSecurity: refuses a pod that violates its namespace's level (403), or warns; templates only warn."""
    path = () if kind.resource == "pods" else _TEMPLATES.get(kind.resource)
    entry = store.get("namespaces", "", meta(obj).get("namespace", "")) if path is not None else None
    if path is None or entry is None or not any(key.startswith(pod_security.PREFIX) for key in entry.labels):
        return
    if old is not None and kind.resource == "pods" and _images(obj) == _images(old):
        return
    template: JSON = obj
    for key in path:
        template = template.get(key) or {}
    texts: dict[str, str] = {}
    for mode in ("enforce", "audit", "warn"):
        level, minor, shown = pod_security.level_of(dict(entry.labels), mode)
        pod = pod_security.Pod(template.get("spec") or {}, meta(template).get("annotations") or {}, minor)
        if text := pod_security.violations(level, pod):
            texts[mode] = f'violate PodSecurity "{shown}": {text}'
        if mode == "enforce" and kind.resource == "pods":
            annotations.setdefault(f"{pod_security.PREFIX}enforce-policy", shown)
    if "audit" in texts:
        annotations.setdefault(f"{pod_security.PREFIX}audit-violations", f"would {texts['audit']}")
    if "enforce" in texts and kind.resource == "pods":
        why = texts["enforce"].replace("violate", "violates", 1)
        raise status_errors.forbidden("pods", "", meta(obj).get("name", ""), why)
    if "warn" in texts:
        warnings.append(f"would {texts['warn']}")


def _images(pod: JSON) -> list[str]:
    parts = ("initContainers", "containers", "ephemeralContainers")
    return [each.get("image", "") for part in parts for each in (pod.get("spec") or {}).get(part) or ()]


# The plugins by operation, in the order in which they run. Each is called for every kind.
CREATE_PLUGINS: tuple[tuple[str, Callable[[Store, Kind, JSON], None]], ...] = (
    ("NamespaceLifecycle", check_namespace),
    ("LimitRanger", limit_ranges.set_defaults),
    ("ServiceAccount", set_account),
    ("Priority", set_priority),
    ("DefaultTolerationSeconds", lambda _store, kind, obj: add_default_tolerations(kind, obj)),
    ("DefaultStorageClass", partial(set_default_class, "persistentvolumeclaims")),
    ("DefaultIngressClass", partial(set_default_class, "ingresses.networking.k8s.io")),
    ("StorageObjectInUseProtection", protect_storage_in_use),
    ("RuntimeClass", apply_runtime_class),
)
UPDATE_PLUGINS: tuple[tuple[str, Callable[[Kind, JSON, JSON], None]], ...] = (
    ("DefaultTolerationSeconds", keep_default_tolerations),
    ("Priority", keep_priority),
)
DELETE_PLUGINS: tuple[tuple[str, Callable[[Kind, JSON], None]], ...] = (
    ("NamespaceLifecycle", keep_immortal_namespaces),
)


class DefinitionRules(Protocol):
    """The part of CustomResourceDefinitions' handling that admission needs."""

    def complete(self, crd: JSON) -> None:
        """Fills in the fields of a definition that the server sets."""


class Admission:
    """The admission step, called on every write before validation."""

    def __init__(self, store: Store, disabled: Collection[str] = ()) -> None:
        """`disabled` names plugins that are not called."""
        self._store = store
        self._disabled = frozenset(disabled)
        self._warned = set(disabled)  # names of missing plugins
        # Set once the server is put together.
        self.definitions: DefinitionRules | None = None
        # Returns the status of a ValidatingAdmissionPolicy; set at the same time.
        self.policy_status: Callable[[JSON], JSON] | None = None

    def admit(self, kind: Kind, obj: JSON, old: JSON | None) -> None:
        """Completes a new or a changed object by the plugins. Raises ApiError if one refuses it."""
        self._warn_of_missing(kind, obj, old)
        if old is None:
            for name, plugin in CREATE_PLUGINS:
                if name not in self._disabled:
                    plugin(self._store, kind, obj)
        else:
            for name, update_plugin in UPDATE_PLUGINS:
                if name not in self._disabled:
                    update_plugin(kind, obj, old)

    def _warn_of_missing(self, kind: Kind, obj: JSON, old: JSON | None) -> None:
        """Logs, once for each, the plugins of a real server that this server lacks and that would have mattered."""
        for plugin in admission_plugins.MISSING:
            if plugin.name not in self._warned and plugin.matters is not None and plugin.matters(kind, obj, old):
                self._warned.add(plugin.name)
                _LOG.warning("The admission plugin %s is absent: %s.", plugin.name, plugin.note)

    def before_create(self, kind: Kind, obj: JSON, now: datetime) -> None:
        """Completes an admitted new object by the rules of its kind."""
        if not kind.custom:
            gated_fields.drop_disabled(kind, obj, None)
            strategies.default_new(kind.resource, obj, now)
        if kind.resource == "services":
            service_ports.allocate_node_ports(self._store, obj, None)
        self._complete_definition(kind, obj)

    def before_update(self, kind: Kind, new: JSON, old: JSON) -> None:
        """Completes an admitted changed object by the rules of its kind."""
        if not kind.custom:
            gated_fields.drop_disabled(kind, new, old)
            strategies.default_changed(kind.resource, new, old)
        if kind.resource == "services":
            service_ports.allocate_node_ports(self._store, new, old)
        self._complete_definition(kind, new)

    def check(
        self, kind: Kind, obj: JSON, old: JSON | None, *, warnings: list[str], annotations: dict[str, str]
    ) -> None:
        """Raises ApiError if a plugin refuses an object that is valid; adds warnings and notes of the audit log."""
        if "LimitRanger" not in self._disabled:
            limit_ranges.check_bounds(self._store, kind, obj, old)
        if "PersistentVolumeClaimResize" not in self._disabled:
            check_resize(self._store, kind, obj, old)
        if "PodSecurity" not in self._disabled:
            check_pod_security(self._store, kind, obj, old, warnings=warnings, annotations=annotations)

    def before_delete(self, kind: Kind, obj: JSON) -> None:
        """Raises ApiError if a plugin refuses the deletion."""
        for name, plugin in DELETE_PLUGINS:
            if name not in self._disabled:
                plugin(kind, obj)

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

    def grace_period(self, kind: Kind, obj: JSON, requested_s: int | None) -> int:
        """Returns the seconds that an object stays after a delete: 0 except for pods on a node."""
        if kind.resource != "pods":
            return 0
        spec, status = obj.get("spec") or {}, obj.get("status") or {}
        if not spec.get("nodeName") or status.get("phase") in {"Succeeded", "Failed"}:
            return 0
        default = spec.get("terminationGracePeriodSeconds")
        return requested_s if requested_s is not None else 30 if default is None else int(default)

    def faults(self, kind: Kind, obj: JSON, old: JSON | None, part: str) -> list[status_errors.FieldFault]:
        """Returns the faults of an object by the rules of all kinds and of this kind; `part` is the subresource."""
        return list(validation.object_faults(kind, obj, old, part))
