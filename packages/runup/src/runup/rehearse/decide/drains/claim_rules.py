"""Decides on which nodes a pod's PersistentVolumeClaims let it run.

In: the cluster's claims, volumes and storage classes. Out, for a pod shape and a node: why the pod cannot run there, in
kube-scheduler's words, or "". The rules are those of its plug-ins volumebinding, volumezone, nodevolumelimits and
volumerestrictions (kubernetes, `pkg/scheduler/framework/plugins`).
"""

from __future__ import annotations

from functools import cache
from typing import Any

import msgspec

from kubekit.api.scheduling import NodeSelectorTerm, PersistentVolumeClaim, SchedulingVolumeObject
from kubekit.rules.node_rules import matches_term
from kubekit.rules.pod_requests import whole_number
from runup.rehearse.decide.drains.cluster_state import NodeRoom
from runup.rehearse.decide.drains.drained_cluster import DrainedCluster
from runup.rehearse.decide.drains.pod_shapes import Shape

CONFLICT = "node(s) didn't match PersistentVolume's node affinity"
NO_VOLUME = "node(s) didn't find available persistent volumes to bind"
NO_ZONE = "node(s) had no available volume zone"
ONE_POD = "node has pod using PersistentVolumeClaim with the same name and ReadWriteOncePod access mode"
TOO_MANY = "node(s) exceed max volume count"
UNBOUND = "pod has unbound immediate PersistentVolumeClaims"
_NO_PROVISIONER = "kubernetes.io/no-provisioner"
# Old names of the labels of zones and regions -> their names now.
_ZONES = {
    "failure-domain.beta.kubernetes.io/zone": "topology.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region": "topology.kubernetes.io/region",
    "topology.kubernetes.io/zone": "topology.kubernetes.io/zone",
    "topology.kubernetes.io/region": "topology.kubernetes.io/region",
}

VolumeHandles = tuple[tuple[str, str], ...]


class ClaimRules:
    """The claims of a cluster with their volumes and classes, and their effect on pods of the same shape."""

    def __init__(self, cluster: DrainedCluster) -> None:
        """Indexes the claims, volumes and classes by name.

        `csi_volume_handles`, `single_claims` and `node_key` are computed once for each shape. A claim that is not found
        is an error only if the cluster's claims are known in full.
        """
        self._claims = {(claim.metadata.namespace, claim.metadata.name): claim for claim in cluster.claims}
        self._volumes = {each.metadata.name: each for each in cluster.volumes}
        self._classes = {each.metadata.name: each for each in cluster.classes}
        self._unclaimed_volumes = tuple(each for each in cluster.volumes if each.spec.claim_ref is None)
        self._claims_known = "PersistentVolumeClaim" not in cluster.missing
        self.csi_volume_handles = cache(self._csi_volume_handles)
        self.single_claims = cache(self._single_claims)
        self.node_key = cache(self._node_key)

    def why_nowhere(self, shape: Shape) -> str:
        """Returns why no node will do, whichever: a claim that is not there, or not bound in time."""
        for name in shape.claims:
            claim = self._claims.get((shape.namespace, name))
            if claim is None:
                if self._claims_known:
                    return f'persistentvolumeclaim "{name}" not found'
            elif not claim.spec.volume_name:
                kind = self._classes.get(claim.spec.storage_class_name or "")
                if kind is None or kind.volume_binding_mode != "WaitForFirstConsumer":
                    return UNBOUND
        return ""

    def why_not(self, shape: Shape, node: NodeRoom) -> str:
        """Returns why the volumes of the claims cannot be reached from the node, or an empty string."""
        volumes = []
        for name in shape.claims:
            claim = self._claims.get((shape.namespace, name))
            if claim is None:
                continue
            volume = self._volumes.get(claim.spec.volume_name)
            if volume is not None:
                volumes.append(volume)
            elif not claim.spec.volume_name and not self._can_be_provisioned(claim, node):
                return NO_VOLUME
        if not all(_node_reaches_volume(node, volume) for volume in volumes):
            return CONFLICT
        return "" if all(_is_in_volume_zone(node, volume) for volume in volumes) else NO_ZONE

    def _node_key(self, shape: Shape) -> bytes:
        """Returns a key that is the same for shapes whose volumes can be reached from the same nodes."""
        required_terms: list[Any] = []
        for name in shape.claims:
            claim = self._claims.get((shape.namespace, name))
            volume = self._volumes.get(claim.spec.volume_name) if claim else None
            if volume is not None:
                zones = {label: value for label, value in volume.metadata.labels.items() if label in _ZONES}
                required_terms.append((volume.spec.node_affinity, zones))
            elif claim is not None:
                required_terms.append(claim.spec)
        return msgspec.json.encode(required_terms, order="sorted") if required_terms else b""

    def _csi_volume_handles(self, shape: Shape) -> VolumeHandles:
        """Returns driver and handle of each CSI volume that a pod of the shape has attached."""
        handles = []
        for name in shape.claims:
            claim = self._claims.get((shape.namespace, name))
            volume = self._volumes.get(claim.spec.volume_name) if claim else None
            if volume is not None and volume.spec.csi is not None:
                handles.append((volume.spec.csi.driver, volume.spec.csi.volume_handle or volume.metadata.name))
            elif claim is not None and not claim.spec.volume_name:
                # A volume that is still to be provisioned counts for the driver of its class, under the claim's name.
                kind = self._classes.get(claim.spec.storage_class_name or "")
                if kind is not None:
                    handles.append((kind.provisioner, f"{shape.namespace}/{name}"))
        return tuple(handles)

    def _single_claims(self, shape: Shape) -> tuple[tuple[str, str], ...]:
        """Returns the claims that only one pod at a time may have."""
        keys = ((shape.namespace, name) for name in shape.claims)
        return tuple(
            key for key in keys if key in self._claims and "ReadWriteOncePod" in self._claims[key].spec.access_modes
        )

    def _can_be_provisioned(self, claim: PersistentVolumeClaim, node: NodeRoom) -> bool:
        """Returns whether an unbound claim could get a volume on the node: a new one, or an unclaimed one."""
        kind = self._classes.get(claim.spec.storage_class_name or "")
        if kind is None:
            # The class is not known: no node is ruled out because of it.
            return True
        if kind.provisioner and kind.provisioner != _NO_PROVISIONER:
            if not kind.allowed_topologies:
                return True
            return any(
                matches_term(
                    node.labels,
                    node.name,
                    NodeSelectorTerm(
                        match_expressions=tuple(expression.requirement for expression in term.match_label_expressions)
                    ),
                )
                for term in kind.allowed_topologies
            )
        return any(
            _volume_suits_claim(volume, claim) and _node_reaches_volume(node, volume)
            for volume in self._unclaimed_volumes
        )


def _volume_suits_claim(volume: SchedulingVolumeObject, claim: PersistentVolumeClaim) -> bool:
    """Returns whether the volume has the class, the capacity and the access modes that the claim requests."""
    requested_bytes = whole_number("storage", claim.spec.resources.requests.get("storage", 0))
    return (
        volume.spec.storage_class_name == (claim.spec.storage_class_name or "")
        and whole_number("storage", volume.spec.capacity.get("storage", 0)) >= requested_bytes
        and set(claim.spec.access_modes) <= set(volume.spec.access_modes)
    )


def _node_reaches_volume(node: NodeRoom, volume: SchedulingVolumeObject) -> bool:
    required = volume.spec.node_affinity.required
    return required is None or any(matches_term(node.labels, node.name, term) for term in required.node_selector_terms)


def _is_in_volume_zone(node: NodeRoom, volume: SchedulingVolumeObject) -> bool:
    """Returns whether the node's zone and region are among those of the volume's labels; a node without labels is."""
    if not any(label in node.labels for label in _ZONES):
        return True
    # Several zones of one volume are joined (kubernetes, LabelZonesToSet of k8s.io/cloud-provider/volume).
    return all(
        (node.labels.get(label) or node.labels.get(_ZONES[label], "")) in value.split("__")
        for label, value in volume.metadata.labels.items()
        if label in _ZONES
    )
