"""A volume is in a zone with one node that takes its pod, and cannot follow it to another.

Applies when an attached PersistentVolume must be in a zone (`nodeAffinity` on keys of zones or regions alone) and no
other node of that zone takes its pod: it does not exist, is cordoned, not ready, or has a taint NoSchedule or NoExecute
that the volume's present node does not have. Volumes that are bound to one machine by design, and clusters of one node,
are not reported.

Why it matters: while that node is updated, no other node can run its pod. The pod is down until the node is back,
regardless of disruption budgets of other pods.

Remedy: add a node to the zone before the update, or plan for the pod to be down; `oc get pv NAME -o yaml` shows where
the volume can be.

It is for information: clusters of one node a zone are like that by design, and a workload of several pods, each with a
volume in a separate zone, is drained one after the other where it has a budget.

Accepting it means that these pods are down while their node is updated.

Source of the rule: Kubernetes, `pkg/scheduler/framework/plugins/volumebinding` (ErrReasonNodeConflict);
core/v1 (PersistentVolume `spec.nodeAffinity`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kubekit.api.core_v1 import Node
from kubekit.rules.node_rules import takes_pods
from runup.api.platform_v1 import PersistentVolume, VolumeAttachment
from runup.checks.catalogue.shared.topology import repelling_taints
from runup.checks.catalogue.storage.shared.volumes import AFFINITY, VOLUMES
from runup.checks.writing import Context, Findings, Snapshot, count, declared, names, resource_of, risk

NAME = "ZoneLockedVolumes"
NODES = resource_of(Node)
# topology.kubernetes.io/zone, topology.ebs.csi.aws.com/zone, topology.csi.vmware.com/openshift-zone, ...
_ZONES = ("zone", "region")
EXAMPLE = """
apiVersion: v1
kind: PersistentVolume
metadata: {name: pv-orders}
spec:
  csi: {driver: ebs.csi.aws.com, volumeHandle: vol-1}
  nodeAffinity:
    required:
      nodeSelectorTerms:
      - matchExpressions: [{key: topology.ebs.csi.aws.com/zone, operator: In, values: [eu-1a]}]
---
apiVersion: storage.k8s.io/v1
kind: VolumeAttachment
metadata: {name: csi-1f}
spec: {attacher: ebs.csi.aws.com, nodeName: worker-0, source: {persistentVolumeName: pv-orders}}
status: {attached: true}
---
apiVersion: v1
kind: Node
metadata: {name: worker-0, labels: {topology.ebs.csi.aws.com/zone: eu-1a}}
---
apiVersion: v1
kind: Node
metadata: {name: worker-1, labels: {topology.ebs.csi.aws.com/zone: eu-1b}}
"""

Terms = Sequence[Mapping[str, Any]]


def run(snapshot: Snapshot, _context: Context) -> Findings:
    """Yields one finding for volumes whose zone has no other node that could take their pod."""
    attached = {
        attachment.spec.source.persistent_volume_name: attachment.spec.node_name
        for attachment in snapshot.all(VolumeAttachment)
        if attachment.status.attached
    }
    zoned = [
        (volume, terms)
        for volume in snapshot.listed(VOLUMES)
        if volume.metadata.name in attached and (terms := _zone_terms(volume))
    ]
    if not zoned:
        return
    nodes = {node.metadata.name: node for node in snapshot.all(Node)}
    if not snapshot.has_all(NODES):
        return  # a node that is not in the list may be in the zone; the engine reports incomplete lists for every check
    fitting_nodes: dict[str, frozenset[str]] = {}
    locked: list[PersistentVolume] = []
    for volume, terms in zoned:
        key = repr(terms)
        if key not in fitting_nodes:
            fitting_nodes[key] = frozenset(
                name
                for name, node in nodes.items()
                if any(
                    all(
                        node.metadata.labels.get(expression.get("key", "")) in _list_or_empty(expression.get("values"))
                        for expression in term["matchExpressions"]
                    )
                    for term in terms
                )
            )
        node_name, zone_nodes = attached[volume.metadata.name], fitting_nodes[key]
        # In a cluster of one node every volume is like that. A node that is gone, or has lost its zone, says nothing
        # about where its pods can go.
        if len(nodes) > 1 and node_name in zone_nodes:
            # Its pods run on that node, so the taints that the node has count as tolerated.
            tolerated = repelling_taints(nodes[node_name])
            if not any(
                takes_pods(nodes[name]) and repelling_taints(nodes[name]) <= tolerated
                for name in zone_nodes - {node_name}
            ):
                locked.append(volume)
    if locked:
        locked.sort(key=lambda volume: volume.metadata.name)
        listing = names([f"{volume.metadata.name} on {attached[volume.metadata.name]}" for volume in locked])
        only = "its zone" if len(locked) == 1 else "each of their zones"
        yield risk(
            NAME,
            f"{count(len(locked), 'volume')} can be on no other node, since {only} has one alone that takes pods: "
            f"{listing}. The pods are down while that node is updated.",
            locked,
            severity="info",
            fix="Add a node to the zone, or plan for it; `oc get pv NAME -o yaml` shows where the volume can be.",
            kind=VOLUMES,
        )


def _zone_terms(volume: PersistentVolume) -> Terms:
    """Returns where a volume can be, if zones alone decide that, else nothing."""
    required = _map_or_empty(_map_or_empty(volume.spec.get(AFFINITY)).get("required"))
    terms = [_map_or_empty(term) for term in _list_or_empty(required.get("nodeSelectorTerms"))]
    expressions = [
        _map_or_empty(expression) for term in terms for expression in _list_or_empty(term.get("matchExpressions"))
    ]
    plain = all(set(term) == {"matchExpressions"} and _list_or_empty(term["matchExpressions"]) for term in terms)
    of_zones = all(
        str(expression.get("key", "")).endswith(_ZONES) and expression.get("operator") == "In"
        for expression in expressions
    )
    return terms if terms and plain and of_zones else ()


def _map_or_empty(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _list_or_empty(value: Any) -> Sequence[Any]:
    return value if isinstance(value, list) else ()


CHECK = declared(
    run, NAME, "cluster-storage-operator", reads=(VOLUMES, VolumeAttachment, Node), rank=660, severity="info"
)
