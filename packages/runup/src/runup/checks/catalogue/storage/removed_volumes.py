"""Volumes of a kind that the target's Kubernetes cannot mount.

Applies when a PersistentVolume, or a volume in the template of a Deployment or StatefulSet, is of an in-tree plug-in
that is removed in a minor version up to the target's, and that nothing takes the place of by itself (glusterfs, cephfs,
rbd, ...). Volumes whose plug-in a CSI driver has taken over go on, and a PersistentVolume that no claim has (Available,
Released) is mounted by nobody.

Why it matters: pods with such a volume do not start any more once their node is updated; a volume that the control
plane attaches (rbd) is not attached any more once the control plane is updated.

What to do: copy the data to a volume of a CSI driver; `oc get pv` shows what is left.

Accepting it means that these volumes cannot be mounted on the target.

Source of the rule: the Kubernetes documentation of volumes, as the table `data/removed-volumes.yaml` has it.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from kubekit.api.meta_v1 import Object
from kubekit.lang.text import count
from runup.checks.catalogue.shared.kubernetes_versions import target_minor, target_unknown
from runup.checks.catalogue.shared.workload_reads import DEPLOYMENTS, REMOVED_PLUGINS, STATEFUL_SETS, inline_plugins
from runup.checks.catalogue.storage.shared.volumes import VOLUMES
from runup.checks.decide.kubernetes_path import ATTACHED_BY_CONTROL_PLANE
from runup.checks.decide.removal_tables import document, table
from runup.checks.decide.wording import names
from runup.checks.writing import Context, Findings, Slim, Snapshot, declared, full_name, risk, yield_from_all

NAME = "RemovedVolumePlugin"
EXAMPLE = """
apiVersion: v1
kind: PersistentVolume
metadata: {name: pv-media}
spec: {cephfs: {monitors: ["10.0.0.1:6789"]}}
"""


def run(snapshot: Snapshot, context: Context) -> Findings:
    """Yields the findings of volumes in use, and of templates, with a volume plug-in that the target lacks."""

    def of_volumes() -> Findings:
        used = [volume for volume in snapshot.listed(VOLUMES) if volume.status.phase in ("", "Bound", "Pending")]
        removed = [(volume, REMOVED_PLUGINS & volume.spec.keys()) for volume in used]
        yield from _findings_of_kind(VOLUMES, [pair for pair in removed if pair[1]], context)

    def of_templates(kind: Slim) -> Findings:
        running = [controller for controller in snapshot.listed(kind) if controller.spec.replicas]
        removed = [(controller, inline_plugins(controller)) for controller in running]
        yield from _findings_of_kind(kind, [pair for pair in removed if pair[1]], context)

    yield from yield_from_all(of_volumes, *(partial(of_templates, kind) for kind in (DEPLOYMENTS, STATEFUL_SETS)))


def _findings_of_kind(kind: Slim, old: Sequence[tuple[Object, frozenset[str]]], context: Context) -> Findings:
    """Yields the findings about volumes of one kind whose plugin the target does not have."""
    target = target_minor(context)
    if target is None and old:
        yield target_unknown(NAME, [obj for obj, _ in old], kind)
        return
    # Planned removals included: a later version may still keep the plug-in.
    removed_plugins = {plugin for _, row in table("removed-volumes").until(target or 0) for plugin in row}
    attachable = removed_plugins & {*document("removed-volumes")["attachable"]}
    dropped = sorted(
        ((obj, plugins) for obj, plugins in old if removed_plugins & plugins), key=lambda pair: full_name(pair[0])
    )
    # A volume that the control plane attaches fails with its update, another one with that of the nodes.
    for verb, reason, of_step in (
        ("attached", ATTACHED_BY_CONTROL_PLANE, [pair for pair in dropped if pair[1] & attachable]),
        ("mounted", None, [pair for pair in dropped if not pair[1] & attachable]),
    ):
        if not of_step:
            continue
        listing = names([f"{full_name(obj)} ({names(sorted(plugins))})" for obj, plugins in of_step])
        subject = "volume" if kind is VOLUMES else f"{kind.kind}'s volume"
        yield risk(
            NAME,
            f"{count(len(of_step), subject)} cannot be {verb} by Kubernetes {context.target_kubernetes}: {listing}.",
            [obj for obj, _ in of_step],
            severity="critical",
            fix="Copy the data to volumes of a CSI driver first; `oc get pv` shows what is left.",
            kind=kind,
            reason=reason,
        )


CHECK = declared(
    run, NAME, "cluster-storage-operator", reads=(VOLUMES, DEPLOYMENTS, STATEFUL_SETS), rank=630, severity="critical"
)
