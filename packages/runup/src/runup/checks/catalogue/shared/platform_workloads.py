"""Declares how the workloads of the platform's namespaces are read with their whole `spec`; others without it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kubekit.api.meta_v1 import Object
from runup.api.clusterversion_json import mapping, texts
from runup.checks.decide.reads import UNSET, as_dict, shape
from runup.checks.writing import Slim, Snapshot
from runup.rules.platform_namespaces import is_system

JSON = dict[str, Any]


def _without_users(obj: Any) -> Any:
    return obj if is_system(obj.metadata.namespace) else Object(metadata=obj.metadata)


WORKLOADS = tuple(
    Slim(
        group="apps",
        version="v1",
        kind=kind,
        plural=plural,
        namespaced=True,
        type=shape(("spec",)),
        keep=_without_users,
    )
    for kind, plural in (("Deployment", "deployments"), ("DaemonSet", "daemonsets"), ("StatefulSet", "statefulsets"))
)


def platform_workloads(snapshot: Snapshot, resource: Slim) -> Iterator[JSON]:
    """Yields the platform's workloads of a kind as the server has them. Raises Unreadable."""
    for workload in snapshot.listed(resource):
        if getattr(workload, "field_0", UNSET) is not UNSET and is_system(workload.metadata.namespace):
            yield {**as_dict(workload), "apiVersion": "apps/v1", "kind": resource.kind}


def pod_of(workload: JSON) -> JSON:
    """Returns the pod that a workload's controller creates, as far as its template says."""
    template = mapping(mapping(workload, "spec"), "template")
    its, of_workload = mapping(template, "metadata"), mapping(workload, "metadata")
    metadata: JSON = {
        "name": f"{of_workload.get('name', '')}-x",
        "namespace": of_workload.get("namespace", ""),
        **{key: texts(its, key) for key in ("labels", "annotations") if key in its},
    }
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": mapping(template, "spec")}
