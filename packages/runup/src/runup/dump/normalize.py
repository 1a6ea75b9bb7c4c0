"""Converts an object of an older server, or one with mistakes, into the form that a current server accepts.

Every change is reported, except the conversion to an equivalent API version.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

JSON = dict[str, Any]
# Fields that belong to the server that stored the object.
_DROPPED_METADATA = ("resourceVersion", "selfLink")
# Removed versions, with the version that replaced them and has the same fields (Kubernetes' deprecation guide).
NEWER = {
    ("policy/v1beta1", "PodDisruptionBudget"): "policy/v1",
    ("batch/v1beta1", "CronJob"): "batch/v1",
    ("apps/v1beta1", "Deployment"): "apps/v1",
    ("apps/v1beta2", "Deployment"): "apps/v1",
    ("extensions/v1beta1", "Deployment"): "apps/v1",
    ("apps/v1beta2", "DaemonSet"): "apps/v1",
    ("extensions/v1beta1", "DaemonSet"): "apps/v1",
    ("apps/v1beta2", "ReplicaSet"): "apps/v1",
    ("extensions/v1beta1", "ReplicaSet"): "apps/v1",
    ("apps/v1beta1", "StatefulSet"): "apps/v1",
    ("apps/v1beta2", "StatefulSet"): "apps/v1",
    ("rbac.authorization.k8s.io/v1beta1", "ClusterRole"): "rbac.authorization.k8s.io/v1",
    ("rbac.authorization.k8s.io/v1beta1", "ClusterRoleBinding"): "rbac.authorization.k8s.io/v1",
    ("rbac.authorization.k8s.io/v1beta1", "Role"): "rbac.authorization.k8s.io/v1",
    ("rbac.authorization.k8s.io/v1beta1", "RoleBinding"): "rbac.authorization.k8s.io/v1",
    ("storage.k8s.io/v1beta1", "StorageClass"): "storage.k8s.io/v1",
    ("scheduling.k8s.io/v1beta1", "PriorityClass"): "scheduling.k8s.io/v1",
    ("apiextensions.k8s.io/v1beta1", "CustomResourceDefinition"): "",  # it has different fields
}


def mend_object(obj: JSON) -> tuple[JSON, tuple[str, ...]]:
    """Returns the corrected object, and a message for each problem, which names the object."""
    obj = replace_old_version(obj)
    metadata = {key: value for key, value in obj["metadata"].items() if key not in _DROPPED_METADATA}
    if not metadata.get("namespace"):
        metadata.pop("namespace", None)
    obj = {**obj, "metadata": metadata}
    status = obj.get("status")
    conditions = status.get("conditions") if isinstance(status, dict) else None
    if not isinstance(status, dict) or not isinstance(conditions, list):
        return obj, ()
    kept_conditions, problems = _conditions(conditions)
    if not problems:
        return obj, ()
    namespace_prefix = f"{metadata['namespace']}/" if metadata.get("namespace") else ""
    about = f"{obj['kind']} {namespace_prefix}{metadata['name']}"
    return {**obj, "status": {**status, "conditions": kept_conditions}}, tuple(
        f"{about}: {problem}" for problem in problems
    )


def replace_old_version(obj: JSON) -> JSON:
    """Returns the object in the API version that replaced its own."""
    version = NEWER.get((obj["apiVersion"], obj["kind"]))
    if not version:
        return obj
    spec = obj.get("spec")
    if obj["kind"] == "PodDisruptionBudget" and isinstance(spec, dict) and _is_empty(spec.get("selector")):
        # v1beta1's empty selector selects nothing, v1's selects everything (Kubernetes' deprecation guide, 1.25).
        spec = {key: value for key, value in spec.items() if key != "selector"}
        obj = {**obj, "spec": spec}
    return {**obj, "apiVersion": version}


def _is_empty(selector: Any) -> bool:
    return isinstance(selector, dict) and not selector.get("matchLabels") and not selector.get("matchExpressions")


def _conditions(rows: Iterable[Any]) -> tuple[list[Any], list[str]]:
    """Returns each type of condition once, the one that changed last, and a message for each that was dropped."""
    conditions_by_type: dict[str, JSON] = {}
    problems: list[str] = []
    for row in rows:
        type_ = row.get("type") if isinstance(row, dict) else None
        if not isinstance(type_, str) or not type_:
            problems.append("a condition without a type was left out")
            continue
        before = conditions_by_type.get(type_)
        if before is not None:
            problems.append(f"condition {type_} is given twice; the one that changed last counts")
        if before is None or str(row.get("lastTransitionTime")) >= str(before.get("lastTransitionTime")):
            conditions_by_type[type_] = row
    return list(conditions_by_type.values()), problems
