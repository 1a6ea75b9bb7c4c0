"""Objects that let a Prometheus find and read the metrics of a component."""

from __future__ import annotations

from typing import Any

from runup.install.decide.objects import Objects

JSON = dict[str, Any]
GROUP = "monitoring.coreos.com"
# The roles that Prometheus gets, and their bindings.
_ROLES = ("prometheus-k8s", "cluster-version-operator-metrics")
_DEFAULT = ("openshift-monitoring", "prometheus-k8s")


def without_monitoring(objects: Objects) -> Objects:
    """Returns `objects` without monitors, alerts, and the roles of Prometheus."""
    return tuple(obj for obj in objects if not _of_monitoring(obj))


def _of_monitoring(obj: JSON) -> bool:
    return obj["apiVersion"].startswith(f"{GROUP}/") or obj["metadata"]["name"] in _ROLES


def read_by(objects: Objects, prometheus: tuple[str, str]) -> Objects:
    """Returns `objects` with the account of `prometheus` (namespace, name) in place of OpenShift's."""
    if prometheus == _DEFAULT:
        return objects
    return tuple(_allow_namespace(_bind_prometheus(obj, prometheus), prometheus[0]) for obj in objects)


def _bind_prometheus(obj: JSON, prometheus: tuple[str, str]) -> JSON:
    if obj["metadata"]["name"] not in _ROLES or "subjects" not in obj:
        return obj
    namespace, name = prometheus
    return {**obj, "subjects": [{**subject, "namespace": namespace, "name": name} for subject in obj["subjects"]]}


def _allow_namespace(obj: JSON, namespace: str) -> JSON:
    """Returns a NetworkPolicy that also admits traffic from `namespace`; other objects as they are."""
    if obj["kind"] != "NetworkPolicy":
        return obj
    labels = {"kubernetes.io/metadata.name": namespace}
    rules = [
        {**rule, "from": [{"namespaceSelector": {"matchLabels": labels}}]} if "from" in rule else rule
        for rule in obj["spec"].get("ingress", ())
    ]
    return {**obj, "spec": {**obj["spec"], **({"ingress": rules} if rules else {})}}
