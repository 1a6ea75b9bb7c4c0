"""A pod has a volume that no node can mount again.

Applies when a pod that a drain would move has a PersistentVolume whose CSI driver no node has registered any more
(CSINode), or whose nodeAffinity no node satisfies. All such pods are one risk. If exactly one of several nodes has the
driver registered, the risk is for information: the pod has no other place while that node is updated.

Why it matters: the pod runs on a volume that was mounted earlier; once evicted it stays Pending or ContainerCreating.

Remedy: install the driver again, or have its DaemonSet run on more nodes; give nodes the labels that the volume
requires. `oc get csinode -o yaml` and `oc get pv NAME -o yaml` show both sides.

Accepting it means that these pods do not start again.

Source of the rule: storage.k8s.io/v1 (CSINode `spec.drivers`); core/v1 (PersistentVolume `spec.nodeAffinity`);
kubernetes, `pkg/scheduler/framework/plugins/volumebinding`.
"""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from functools import partial

import msgspec

from kubekit.api.core_v1 import Node
from kubekit.api.pod_parts import PlacedPod
from kubekit.api.scheduling import NodeSelector
from kubekit.lang.text import count
from kubekit.rules.node_rules import matches_term
from runup.api.platform_v1 import CSINode, PersistentVolume
from runup.checks.catalogue.shared.pods import PODS
from runup.checks.catalogue.storage.shared.volumes import AFFINITY, CLAIMS, DRIVER, VOLUMES, claims_that_move
from runup.checks.decide.wording import names
from runup.checks.writing import Context, Findings, Snapshot, declared, full_name, resource_of, risk, yield_from_all
from runup.report.report import Severity

NAME = "VolumeOnNoNode"
EXAMPLE = """
apiVersion: v1
kind: PersistentVolume
metadata: {name: pv-1}
spec: {csi: {driver: csi.example.com, volumeHandle: "1"}}
status: {phase: Bound}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data, namespace: shop}
spec: {volumeName: pv-1}
status: {phase: Bound}
---
apiVersion: v1
kind: Pod
metadata: {name: db-0, namespace: shop, ownerReferences: [{kind: StatefulSet, name: db}]}
spec: {nodeName: worker-0, volumes: [{name: data, persistentVolumeClaim: {claimName: data}}]}
status: {phase: Running}
---
apiVersion: v1
kind: Node
metadata: {name: worker-0}
---
apiVersion: storage.k8s.io/v1
kind: CSINode
metadata: {name: worker-0}
spec: {drivers: [{name: ebs.csi.aws.com, nodeID: i-0, topologyKeys: []}]}
"""


_Mounted = tuple[PlacedPod, PersistentVolume]


def run(snapshot: Snapshot, _context: Context) -> Findings:
    """Yields the findings of pods that move and whose volumes no other node could mount."""
    bound = [(pod, claim.spec.volume_name) for pod, _, claim in claims_that_move(snapshot) if claim is not None]
    if not bound:
        return
    volumes: dict[str, PersistentVolume] = {volume.metadata.name: volume for volume in snapshot.listed(VOLUMES)}
    mounted = [(pod, volumes[name]) for pod, name in bound if name in volumes]
    yield from yield_from_all(
        partial(_missing_driver_findings, snapshot, mounted), partial(_affinity_findings, snapshot, mounted)
    )


def _missing_driver_findings(snapshot: Snapshot, mounted: list[_Mounted]) -> Findings:
    """Yields the finding about volumes whose CSI driver runs on no node, or on only one."""
    of_drivers = [(pod, volume, volume.spec[DRIVER]) for pod, volume in mounted if DRIVER in volume.spec]
    if not of_drivers:
        return
    all_nodes = snapshot.all(CSINode)
    counts = Counter(csi_driver.name for node in all_nodes for csi_driver in node.spec.drivers)
    without_driver = [(pod, volume, driver) for pod, volume, driver in of_drivers if not counts[driver]]
    alone = [(pod, volume, driver) for pod, volume, driver in of_drivers if counts[driver] == 1]
    if without_driver or alone:
        # A node that is not in the list may have it.
        snapshot.require_all(resource_of(CSINode))
    yield from _volumes_finding(without_driver, "no node has its driver {}", "warning")
    if len(all_nodes) > 1:
        yield from _volumes_finding(alone, "one node alone has its driver {}", "info")


def _affinity_findings(snapshot: Snapshot, mounted: list[_Mounted]) -> Findings:
    """Yields the finding about volumes whose node affinity no node satisfies."""
    choosy: list[tuple[PlacedPod, PersistentVolume, NodeSelector]] = []
    for pod, volume in mounted:
        affinity = volume.spec.get(AFFINITY)
        if required := affinity.get("required") if isinstance(affinity, dict) else None:
            # The API server stores no affinity that cannot be read; nothing is concluded from it.
            with suppress(msgspec.ValidationError):
                choosy.append((pod, volume, msgspec.convert(required, NodeSelector)))
    if not choosy:
        return
    nodes = snapshot.all(Node)
    homeless = [
        (pod, volume, "")
        for pod, volume, selector in choosy
        if not any(
            matches_term(node.metadata.labels, node.metadata.name, term)
            for node in nodes
            for term in selector.node_selector_terms
        )
    ]
    if homeless and nodes:
        # A node that is not in the list may satisfy it.
        snapshot.require_all(resource_of(Node))
        yield from _volumes_finding(homeless, "no node satisfies its nodeAffinity{}", "warning")


def _volumes_finding(
    placed_volumes: list[tuple[PlacedPod, PersistentVolume, str]], why: str, severity: Severity
) -> Findings:
    """Yields the finding about these volumes, if there are any."""
    if placed_volumes:
        listing = names(
            [f"{volume.metadata.name} of {full_name(pod)} ({why.format(text)})" for pod, volume, text in placed_volumes]
        )
        yield risk(
            NAME,
            (
                f"{count(len(placed_volumes), 'volume')} could not be mounted "
                f"elsewhere when the node is drained: {listing}."
            ),
            [volume for _, volume, _ in placed_volumes],
            severity=severity,
            fix="Install the driver on more nodes, or give nodes the labels that the volume asks for: "
            "`oc get csinode -o yaml`, `oc get pv NAME -o yaml`.",
            kind=VOLUMES,
        )


CHECK = declared(run, NAME, "cluster-storage-operator", reads=(PODS, CLAIMS, VOLUMES, CSINode, Node), rank=657)
