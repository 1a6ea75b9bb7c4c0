"""A volume is attached to a node on which its driver does not run.

Applies when a VolumeAttachment says that a volume is attached, and the CSINode of its node does not name its driver. A
driver that is just being restarted is registered again within a minute, and the risk is gone.

Why it matters: the kubelet needs the driver to take a volume from a pod: on that node a pod with it does not end, so
that the node is never drained and the update stops.

Remedy: fix the driver's DaemonSet on that node; `oc get csinode NAME -o yaml` shows the registered drivers.

Accepting it means that these nodes may not be drained.

Source of the rule: storage.k8s.io/v1 (CSINode `spec.drivers`: "drivers that exist on the node"; VolumeAttachment
`spec.attacher` is the driver's name); kubelet, `pkg/volume/csi` (a driver that is not registered cannot be called).
"""

from __future__ import annotations

from runup.api.platform_v1 import CSINode, VolumeAttachment
from runup.checks.writing import Context, Findings, Snapshot, count, declared, names, risk

NAME = "CSIDriverNotReady"
EXAMPLE = """
apiVersion: storage.k8s.io/v1
kind: VolumeAttachment
metadata: {name: csi-1f}
spec: {attacher: ebs.csi.aws.com, nodeName: worker-0, source: {persistentVolumeName: pv-orders}}
status: {attached: true}
---
apiVersion: storage.k8s.io/v1
kind: CSINode
metadata: {name: worker-0}
spec: {drivers: [{name: csi.example.com, nodeID: i-0, topologyKeys: []}]}
"""


def run(snapshot: Snapshot, _context: Context) -> Findings:
    """Yields one risk that names the attached volumes whose node has no longer their CSI driver."""
    attached = [attachment for attachment in snapshot.all(VolumeAttachment) if attachment.status.attached]
    if not attached:
        return
    drivers = {
        node.metadata.name: {csi_driver.name for csi_driver in node.spec.drivers} for node in snapshot.all(CSINode)
    }
    # A node without a CSINode is gone, and is not drained.
    on_live_nodes = [attachment for attachment in attached if attachment.spec.node_name in drivers]
    stuck = [
        attachment for attachment in on_live_nodes if attachment.spec.attacher not in drivers[attachment.spec.node_name]
    ]
    if stuck:
        stuck.sort(key=lambda attachment: attachment.metadata.name)
        places = sorted({(attachment.spec.attacher, attachment.spec.node_name) for attachment in stuck})
        listing = names([f"{driver} on {node}" for driver, node in places])
        yield risk(
            NAME,
            f"{count(len(stuck), 'volume')} cannot be taken from a pod, for want of a driver on the node: {listing}.",
            stuck,
            fix="Fix the driver's DaemonSet on that node; `oc get csinode NAME -o yaml` shows the registered drivers.",
        )


CHECK = declared(run, NAME, "cluster-storage-operator", reads=(VolumeAttachment, CSINode), rank=650)
