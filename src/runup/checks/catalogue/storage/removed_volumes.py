"""Volumes of a kind that the target's Kubernetes cannot mount.

Applies when a PersistentVolume is of an in-tree plug-in that is removed in a minor version up to the target's, and
that nothing takes the place of by itself (glusterfs, cephfs, rbd, ...). Volumes whose plug-in a CSI driver has taken
over go on.

Why it matters pods with such a volume do not start any more once their node is updated.

What to do copy the data to a volume of a CSI driver; `oc get pv` shows what is left.

Accepting it means that these volumes cannot be mounted on the target.

Source of the rule the Kubernetes documentation of volumes, as the table `data/removed-volumes.yaml` has it.
"""

from __future__ import annotations

from collections.abc import Iterator

from runup.checks.catalogue.declaring import declared, risk, unsure
from runup.checks.catalogue.shared.kubernetes import target_minor
from runup.checks.catalogue.storage.shared.volumes import REMOVED_PLUGINS, VOLUMES
from runup.checks.decide.model import Context, Finding, Snapshot
from runup.checks.decide.removal_tables import table
from runup.checks.decide.wording import count, names

NAME = "RemovedVolumePlugin"
EXAMPLE = """
apiVersion: v1
kind: PersistentVolume
metadata: {name: pv-media}
spec: {cephfs: {monitors: ["10.0.0.1:6789"]}}
"""


def _run(snapshot: Snapshot, context: Context) -> Iterator[Finding]:
    old = [volume for volume in snapshot.listed(VOLUMES) if REMOVED_PLUGINS & volume.spec.keys()]
    target = target_minor(context)
    if target is None and old:
        why = "the target does not say which Kubernetes it ships"
        yield unsure(NAME, why, old, fix="Ask the publisher of the release.", kind=VOLUMES)
        return
    gone = {plugin: minor for minor, row in table("removed-volumes").between(0, target or 0) for plugin in row}
    dropped = sorted((each for each in old if gone.keys() & each.spec.keys()), key=lambda each: each.metadata.name)
    if dropped:
        listing = names(
            [f"{each.metadata.name} ({names(sorted(REMOVED_PLUGINS & each.spec.keys()))})" for each in dropped]
        )
        yield risk(
            NAME,
            f"{count(len(dropped), 'volume')} cannot be mounted by Kubernetes {context.target_kubernetes}: {listing}.",
            dropped,
            severity="critical",
            fix="Copy the data to volumes of a CSI driver first; `oc get pv` shows what is left.",
            kind=VOLUMES,
        )


CHECK = declared(
    __doc__, NAME, "cluster-storage-operator", (VOLUMES,), _run, rank=630, severity="critical", example=EXAMPLE
)
