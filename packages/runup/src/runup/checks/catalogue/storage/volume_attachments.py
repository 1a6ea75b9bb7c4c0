"""Volumes cannot be attached to a node or detached from one.

Applies when a VolumeAttachment has an error of attaching or detaching that is ten minutes old or more, or is neither
attached nor detached after ten minutes, without an error: its driver does not respond.

Why it matters: a drained node's pods come back elsewhere with their volumes. If attaching fails today, it also fails
for every node during the update.

Remedy: `oc describe volumeattachment NAME` shows the driver's message; check the pods of its controller.

Accepting it means that pods with these volumes may not start again.

Source of the rule: storage.k8s.io/v1 (VolumeAttachment `status.attachError` and `detachError`).
"""

from __future__ import annotations

from runup.api.platform_v1 import VolumeAttachment
from runup.checks.writing import Context, Findings, Snapshot, count, declared, names, risk, since_suffix
from runup.rules.volume_attachments import stuck_attachments

NAME = "VolumeAttachmentStuck"
EXAMPLE = """
apiVersion: storage.k8s.io/v1
kind: VolumeAttachment
metadata: {name: csi-1f}
spec: {attacher: ebs.csi.aws.com, nodeName: worker-0}
status: {attached: true, detachError: {time: "2026-01-14T08:00:00Z", message: the volume is in use}}
"""


def run(snapshot: Snapshot, context: Context) -> Findings:
    """Yields one risk that names the volumes that have been waiting too long to be attached or detached."""
    stuck = stuck_attachments(snapshot.all(VolumeAttachment), context.now)
    if stuck:
        listing = [f"{each.metadata.name} on {each.spec.node_name}{since_suffix(since)}" for each, since in stuck]
        yield risk(
            NAME,
            f"{count(len(stuck), 'volume')} cannot be attached or detached: {names(listing)}.",
            [attachment for attachment, _ in stuck],
            fix="See `oc describe volumeattachment NAME`, and the pods of the driver's controller.",
        )


CHECK = declared(run, NAME, "cluster-storage-operator", reads=(VolumeAttachment,), rank=640)
