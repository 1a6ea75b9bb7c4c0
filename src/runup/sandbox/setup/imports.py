"""What is different in a cluster that was made from a dump (docs/decisions/0030).

Its objects are marked, so that they are stored as they were and no controller touches them. The sandbox's own workloads
have a node that is nobody else's. The API server is told which kinds the dump does not have.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence

from kubekit.api.meta_v1 import ObjectMeta
from kubekit.api.scheme import Resource
from kubekit.api.whole_v1 import WholeNode
from kubesandbox.apiserver.access.collected import ABSENT, ANYWAY, NAMESPACE, OWN, PARTLY
from kubesandbox.apiserver.objects.restoring import IMPORTED
from runup.dump.manifests import JSON, identity
from runup.sandbox.scenario.fitting import HOSTNAME, OWN_NODE
from runup.sandbox.scenario.folder import Scenario

# What makes a cluster what it is, and is not looked at: it is made as ever.
_UNMARKED = frozenset({"CustomResourceDefinition", "Namespace", "APIService"})
# Kinds that are the sandbox's own, or that no dump is read for.
_OURS = frozenset({"update.openshift.io", "coordination.k8s.io", "events.k8s.io"})
# The report on an update tells of pods that are in its way. oc's own examples have none, and claim nothing by that.
_REPORTS = {
    "system:serviceaccount:openshift-update-status-controller:update-status-controller": [
        "pods",
        "deployments.apps",
        "poddisruptionbudgets.policy",
    ]
}
_NEVER = frozenset({"events", "secrets", "endpoints", "endpointslices", "controllerrevisions"})


def own_node() -> WholeNode:
    """The node of the sandbox's own workloads: the scheduler knows it, the API does not have it.

    A dump's nodes may all be gone, cordoned or without a role; one more among them would be judged like them.
    """
    roles = {f"node-role.kubernetes.io/{role}": "" for role in ("control-plane", "master")}
    labels = {HOSTNAME: OWN_NODE, "kubernetes.io/os": "linux", **roles}
    return WholeNode(metadata=ObjectMeta(name=OWN_NODE, labels=labels))


def marked(obj: JSON) -> JSON:
    """The object with the label that says where it comes from."""
    if obj["kind"] in _UNMARKED:
        return obj
    metadata = obj["metadata"]
    labels = metadata.get("labels")
    return {**obj, "metadata": {**metadata, "labels": {**(labels if isinstance(labels, dict) else {}), IMPORTED: ""}}}


def reduced(obj: JSON) -> Iterator[JSON]:
    """A dump's object without what a server may refuse to read of it, one part after the other."""
    labels = (obj.get("metadata") or {}).get("labels") or {}
    if IMPORTED not in labels:
        return
    yield {key: value for key, value in obj.items() if key != "status"}
    yield {key: value for key, value in obj.items() if key not in {"status", "spec"}}
    names = {key: value for key, value in obj["metadata"].items() if key in {"name", "namespace"}}
    yield {"apiVersion": obj["apiVersion"], "kind": obj["kind"], "metadata": {**names, "labels": {IMPORTED: ""}}}


def own_namespaces(from_payload: Iterable[JSON]) -> frozenset[str]:
    """Where the sandbox's own workloads are."""
    return frozenset(identity(obj)[2] for obj in from_payload if obj["kind"] == "Deployment")


def what_is_known(
    scenario: Scenario,
    served: Iterable[Resource],
    objects: Sequence[JSON],
    refused: Sequence[str],
    from_payload: Iterable[JSON],
) -> list[JSON]:
    """The two ConfigMaps that tell the API server of which kinds it does not have everything."""
    there = {identity(obj)[:2] for obj in objects}
    lost = {identity(obj)[:2] for obj, why in zip(objects, refused, strict=True) if why}
    absent: dict[str, str] = {}
    partly: dict[str, str] = {}
    for resource in served:
        if resource.group in _OURS or resource.plural in _NEVER:
            continue
        name = f"{resource.plural}.{resource.group}" if resource.group else resource.plural
        key, kind = (resource.group, resource.plural), (resource.group, resource.kind)
        if key in scenario.collected.whole and kind not in lost:
            continue
        if kind in there or key in scenario.collected.partly:
            partly[name] = scenario.collected.why_partly(key)
        elif kind not in there:
            absent[name] = f"the dump has no {resource.plural}: whether there were any is not known"
    own = " ".join(sorted(own_namespaces(from_payload)))
    annotations = {OWN: own, ANYWAY: json.dumps(_REPORTS)}
    return [_map(ABSENT, absent, annotations), _map(PARTLY, partly, annotations)]


def _map(name: str, data: dict[str, str], annotations: dict[str, str]) -> JSON:
    metadata = {"name": name, "namespace": NAMESPACE, "annotations": annotations}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}
