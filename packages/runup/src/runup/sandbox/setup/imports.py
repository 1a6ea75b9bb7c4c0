"""Handles the differences of a cluster that was made from a dump (docs/decisions/0030).

Its objects are labelled, so that they are stored as they were and no controller touches them. The sandbox's own
workloads run on a separate node. The API server is told which kinds the dump does not have.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence

from kubekit.api.meta_v1 import ObjectMeta
from kubekit.api.scheme import Resource
from kubekit.api.whole_v1 import WholeNode
from kubesandbox.apiserver.access.collected import (
    COMPLETE_NAMESPACES,
    EXEMPT_USERS,
    NAMESPACE,
    NOT_COLLECTED,
    OWN_NAMESPACES,
    PARTLY_COLLECTED,
)
from kubesandbox.apiserver.metadata import IMPORTED
from runup.dump.documents import JSON, identity
from runup.sandbox.scenario.folder import Scenario
from runup.sandbox.scenario.local_manifests import HOSTNAME, OWN_NODE

# Kinds that the cluster itself needs and that no check reads: they are created as usual, without the label.
_UNMARKED = frozenset({"CustomResourceDefinition", "Namespace", "APIService"})
# API groups that are the sandbox's own, or that are not read from a dump.
_OURS = frozenset({"update.openshift.io", "coordination.k8s.io", "events.k8s.io"})
# The update report shows pods that block the update. oc's own examples have no pods, which must not be an error.
_REPORTS = {
    "system:serviceaccount:openshift-update-status-controller:update-status-controller": [
        "pods",
        "deployments.apps",
        "poddisruptionbudgets.policy",
    ]
}
_NEVER = frozenset({"events", "secrets", "endpoints", "endpointslices", "controllerrevisions"})


def own_node() -> WholeNode:
    """Returns the node of the sandbox's own workloads: the scheduler knows it, the API does not have it.

    A dump's nodes may all be gone, cordoned or without a role; one more node in the API would be checked like them.
    """
    roles = {f"node-role.kubernetes.io/{role}": "" for role in ("control-plane", "master")}
    labels = {HOSTNAME: OWN_NODE, "kubernetes.io/os": "linux", **roles}
    return WholeNode(metadata=ObjectMeta(name=OWN_NODE, labels=labels))


def mark_imported(obj: JSON) -> JSON:
    """Returns the object with the label that says that it was imported."""
    if obj["kind"] in _UNMARKED:
        return obj
    metadata = obj["metadata"]
    labels = metadata.get("labels")
    return {**obj, "metadata": {**metadata, "labels": {**(labels if isinstance(labels, dict) else {}), IMPORTED: ""}}}


def reduced_objects(obj: JSON) -> Iterator[JSON]:
    """Yields what to try if a server refuses an imported object: it without status, without spec too, its name alone.

    Yields nothing for an object that was not imported.
    """
    labels = (obj.get("metadata") or {}).get("labels") or {}
    if IMPORTED not in labels:
        return
    yield {key: value for key, value in obj.items() if key != "status"}
    yield {key: value for key, value in obj.items() if key not in {"status", "spec"}}
    names = {key: value for key, value in obj["metadata"].items() if key in {"name", "namespace"}}
    yield {"apiVersion": obj["apiVersion"], "kind": obj["kind"], "metadata": {**names, "labels": {IMPORTED: ""}}}


def own_namespaces(from_payload: Iterable[JSON]) -> frozenset[str]:
    """Returns the namespaces of the sandbox's own workloads."""
    return frozenset(identity(obj)[2] for obj in from_payload if obj["kind"] == "Deployment")


def known_state(
    scenario: Scenario,
    served: Iterable[Resource],
    objects: Sequence[JSON],
    refused: Sequence[str],
    from_payload: Iterable[JSON],
) -> list[JSON]:
    """Returns the two ConfigMaps that tell the API server which kinds it does not hold in full."""
    kinds_in_dump = {identity(obj)[:2] for obj in objects}
    refused_kinds = {identity(obj)[:2] for obj, why in zip(objects, refused, strict=True) if why}
    absent: dict[str, str] = {}
    partly: dict[str, str] = {}
    within: dict[str, list[str]] = {}
    for resource in served:
        if resource.group in _OURS or resource.plural in _NEVER:
            continue
        name = f"{resource.plural}.{resource.group}" if resource.group else resource.plural
        key, kind = (resource.group, resource.plural), (resource.group, resource.kind)
        if key in scenario.collected.whole and kind not in refused_kinds:
            continue
        if kind in kinds_in_dump or key in scenario.collected.partly:
            partly[name] = scenario.collected.why_partly(key)
            if kind not in refused_kinds:
                within[name] = sorted(scenario.collected.namespaces.get(key, ()))
        elif kind not in kinds_in_dump:
            absent[name] = f"the dump has no {resource.plural}: whether there were any is not known"
    namespaces_text = " ".join(sorted(own_namespaces(from_payload)))
    annotations = {
        OWN_NAMESPACES: namespaces_text,
        EXEMPT_USERS: json.dumps(_REPORTS),
        COMPLETE_NAMESPACES: json.dumps(within),
    }
    return [_map(NOT_COLLECTED, absent, annotations), _map(PARTLY_COLLECTED, partly, annotations)]


def _map(name: str, data: dict[str, str], annotations: dict[str, str]) -> JSON:
    metadata = {"name": name, "namespace": NAMESPACE, "annotations": annotations}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}
