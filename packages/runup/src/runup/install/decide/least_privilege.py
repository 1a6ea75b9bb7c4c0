"""Removes the operator's rights to apply releases: it then advises, checks and records, and no pod runs as root.

A process that applies a release has all rights (docs/decisions/0051). An operator that only records updates needs the
rules of its own role alone, and reports that are ConfigMaps need no folder of the node.
"""

from __future__ import annotations

from typing import Any

from runup.install.decide.objects import Objects, with_arguments, with_container, with_pod, without_volumes
from runup.process.names import NOBODY

JSON = dict[str, Any]
APPLIES = "cluster-version-operator-applies"
_ARGUMENTS = (
    "--record-only",
    "--release-source=registry",
    "--report-sink=configmap",
    "--preflight-service-account=dedicated",
)
_LEVELS = ("enforce", "audit", "warn")


def reduce_privileges(objects: Objects) -> Objects:
    """Returns the operator's `objects` without cluster-admin, folders of the node, and root."""
    kept_objects = tuple(obj for obj in objects if obj["metadata"]["name"] != APPLIES)
    return tuple(_namespace(_role(with_pod(_require_scc(obj), _pod))) for obj in kept_objects)


def _pod(pod: JSON) -> JSON:
    pod = without_volumes(with_arguments(pod, *_ARGUMENTS), "preflight-reports", "update-payloads")
    pod = with_container(pod, _container)
    return {**pod, "securityContext": {**pod["securityContext"], "runAsNonRoot": True, "runAsUser": NOBODY}}


def _container(container: JSON) -> JSON:
    security = {k: v for k, v in container["securityContext"].items() if k not in ("runAsUser", "seLinuxOptions")}
    arguments = [arg for arg in container["args"] if not arg.startswith("--report-dir=")]
    return {**container, "args": arguments, "securityContext": security}


def _require_scc(obj: JSON) -> JSON:
    """Returns a Deployment with SecurityContextConstraints `nonroot-v2` pinned; other objects as they are."""
    if obj["kind"] != "Deployment":
        return obj
    template = obj["spec"]["template"]
    metadata = template["metadata"]
    annotations = {**metadata.get("annotations", {}), "openshift.io/required-scc": "nonroot-v2"}
    template = {**template, "metadata": {**metadata, "annotations": annotations}}
    return {**obj, "spec": {**obj["spec"], "template": template}}


def _role(obj: JSON) -> JSON:
    if obj["kind"] != "ClusterRole":
        return obj
    return {**obj, "rules": [_without_privileged(rule) for rule in obj["rules"]]}


def _without_privileged(rule: JSON) -> JSON:
    if "securitycontextconstraints" not in rule.get("resources", ()):
        return rule
    return {**rule, "resourceNames": [name for name in rule["resourceNames"] if name != "privileged"]}


def _namespace(obj: JSON) -> JSON:
    """Returns a Namespace with the pod security level `baseline`, any other object as it is."""
    if obj["kind"] != "Namespace":
        return obj
    levels = {f"pod-security.kubernetes.io/{mode}": "baseline" for mode in _LEVELS}
    metadata = obj["metadata"]
    return {**obj, "metadata": {**metadata, "labels": {**metadata.get("labels", {}), **levels}}}
