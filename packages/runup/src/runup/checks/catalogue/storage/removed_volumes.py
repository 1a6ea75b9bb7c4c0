"""Volumes of a kind that the target's Kubernetes cannot mount.

Applies when a PersistentVolume, a volume in the template of a Deployment, StatefulSet, DaemonSet, CronJob or Job, or a
volume of another pod is of an in-tree plug-in that is removed in a minor version up to the target's, and that no CSI
driver replaces (glusterfs, cephfs, rbd, ...). A volume of type gitRepo counts from the update to 1.33 on, which
disables gitRepo by default, and from 1.36 on, which does not allow enabling it. It also applies when a CSI driver
replaces the plug-in (awsElasticBlockStore, azureDisk, ...) and no CSINode names that driver. A feature gate that every
kubelet has set, and that the target allows, keeps a plug-in (GitRepoVolumeDriver, CSIMigrationvSphere). A StorageClass
counts if its provisioner is of such a plug-in (`kubernetes.io/rbd`, ...) and a claim names it or it is the default. A
PersistentVolume without a claim (Available, Released), a workload without replicas and a suspended CronJob or Job do
not count. For a target that is newer than the table and its planned rows, volumes of other in-tree plug-ins are
Unknown.

Why it matters: pods with such a volume do not start any more once their node is updated; a volume that the control
plane attaches (rbd) is not attached any more once the control plane is updated.

Remedy: copy the data to a volume of a CSI driver, or install the driver that replaces the plug-in; `kubectl get pv` and
`kubectl get csinodes` show the remaining volumes. An init container that clones the repository replaces gitRepo.

Accepting it means that these volumes cannot be mounted on the target.

Source of the rule: the Kubernetes documentation of volumes, as the table `data/removed-volumes.yaml` has it;
kubernetes, `pkg/features/kube_features.go` (GitRepoVolumeDriver: off from 1.33, locked in 1.36; CSIMigration*: on by
default); csi-translation-lib, `plugins` (the driver of each plug-in).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import partial

from kubekit.api.core_v1 import Node
from kubekit.api.meta_v1 import Object
from kubekit.api.pod_parts import PlacedPod
from kubekit.api.scheduling import StorageClass
from kubekit.lang.text import count
from kubekit.rules.eviction_rules import ENDED
from kubekit.rules.owners import controller_of, workload_of
from runup.api.platform_v1 import CSINode
from runup.checks.catalogue.control_plane.shared.given_settings import CONFIG_MAPS, is_gate_set
from runup.checks.catalogue.shared.kubernetes_versions import least_source_minor, target_minor, target_unknown
from runup.checks.catalogue.shared.pods import PODS, select_pods
from runup.checks.catalogue.shared.workload_reads import (
    CRON_JOBS,
    DAEMON_SETS,
    DEPLOYMENTS,
    JOBS,
    STATEFUL_SETS,
    has_ended,
    inline_plugins,
)
from runup.checks.catalogue.storage.shared.volumes import CLAIMS, VOLUMES
from runup.checks.decide import kubernetes_path
from runup.checks.decide.removal_tables import document, table
from runup.checks.decide.wording import names
from runup.checks.writing import (
    Context,
    Findings,
    Slim,
    Snapshot,
    Unreadable,
    declared,
    full_name,
    resource_of,
    risk,
    slim_metadata,
    unknown,
    yield_from_all,
)

NAME = "RemovedVolumePlugin"
EXAMPLE = """
apiVersion: v1
kind: PersistentVolume
metadata: {name: pv-media}
spec: {cephfs: {monitors: ["10.0.0.1:6789"]}}
"""
_TEMPLATES = (DEPLOYMENTS, STATEFUL_SETS, DAEMON_SETS, CRON_JOBS)
# The minor versions in which gitRepo is switched off, and can no longer be switched on.
_GIT_REPO = "gitRepo"
_GIT_REPO_OFF = (33, 36)
# The driver that replaces a plug-in, and the minor version that is the first to call it by default.
# The ends of the gates that switch the replacement of a plug-in on (kube_features.go, CSIMigration*).
_GATES = {
    "cinder": "OpenStack",
    "awsElasticBlockStore": "AWS",
    "azureDisk": "AzureDisk",
    "gcePersistentDisk": "GCE",
    "azureFile": "AzureFile",
    "vsphereVolume": "vSphere",
    "portworxVolume": "Portworx",
}
_PREFIX = "kubernetes.io/"
# The plug-ins of the provisioners in Kubernetes itself (pkg/volume, ProvisionerName of each plug-in that provisions).
PROVISIONERS = {
    f"{_PREFIX}{name}": plugin
    for name, plugin in {
        "aws-ebs": "awsElasticBlockStore",
        "azure-disk": "azureDisk",
        "azure-file": "azureFile",
        "cinder": "cinder",
        "flocker": "flocker",
        "gce-pd": "gcePersistentDisk",
        "glusterfs": "glusterfs",
        "portworx-volume": "portworxVolume",
        "quobyte": "quobyte",
        "rbd": "rbd",
        "scaleio": "scaleIO",
        "storageos": "storageos",
        "vsphere-volume": "vsphereVolume",
    }.items()
}
# Both spellings: kubernetes, pkg/volume/util/storageclass.go.
_DEFAULT = ("storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class")
CLASSES = Slim(
    group="storage.k8s.io",
    version="v1",
    kind="StorageClass",
    plural="storageclasses",
    namespaced=False,
    type=StorageClass,
    keep=lambda of_volumes: StorageClass(
        metadata=slim_metadata(
            of_volumes, annotations={name: of_volumes.metadata.annotations.get(name, "") for name in _DEFAULT}
        ),
        provisioner=of_volumes.provisioner,
    ),
)
_DRIVERS = {
    "cinder": ("cinder.csi.openstack.org", 21),
    "awsElasticBlockStore": ("ebs.csi.aws.com", 23),
    "azureDisk": ("disk.csi.azure.com", 23),
    "gcePersistentDisk": ("pd.csi.storage.gke.io", 23),
    "azureFile": ("file.csi.azure.com", 24),
    "vsphereVolume": ("csi.vsphere.vmware.com", 25),
    "portworxVolume": ("pxd.portworx.com", 31),
}
_PODS_WITH_PLUGINS = select_pods(
    lambda pods: [pod for pod in pods if pod.demands.plugins and pod.status.phase not in ENDED]
)


def run(snapshot: Snapshot, context: Context) -> Findings:
    """Yields the findings of volumes in use, and of templates, with a volume plug-in that the target lacks."""
    kinds = (VOLUMES, CLASSES, *_TEMPLATES, JOBS, PODS)
    yield from yield_from_all(*(partial(_findings_of_kind, kind, snapshot, context) for kind in kinds))


def _with_plugins(kind: Slim, snapshot: Snapshot) -> Iterator[tuple[Object, frozenset[str]]]:
    """Yields the objects of a kind whose volumes are in use, with their in-tree plug-ins."""
    if kind is VOLUMES:
        used = [volume for volume in snapshot.listed(VOLUMES) if volume.status.phase in ("", "Bound", "Pending")]
        yield from ((volume, frozenset(volume.spec.keys())) for volume in used)
    elif kind is CLASSES:
        classes = [each for each in snapshot.listed(CLASSES) if each.provisioner in PROVISIONERS]
        named = {claim.spec.storage_class_name for claim in snapshot.listed(CLAIMS)} if classes else set()
        for each in classes:
            if each.metadata.name in named or "true" in each.metadata.annotations.values():
                yield each, frozenset({PROVISIONERS[each.provisioner]})
    elif kind is PODS:
        pods = _PODS_WITH_PLUGINS(snapshot.listed(PODS))
        makers = _makers(snapshot) if pods else frozenset()
        yield from ((pod, frozenset(pod.demands.plugins)) for pod in pods if _maker_of(pod) not in makers)
    elif kind is JOBS:
        jobs = [job for job in snapshot.listed(JOBS) if not job.spec.suspend and not has_ended(job)]
        by_hand = [job for job in jobs if controller_of(job.metadata.owner_references) is None]
        yield from ((job, inline_plugins(job)) for job in by_hand)
    else:
        running = [controller for controller in snapshot.listed(kind) if controller.spec.replicas]
        yield from ((controller, inline_plugins(controller)) for controller in running)


def _makers(snapshot: Snapshot) -> frozenset[tuple[str, str, str]]:
    """Returns (kind, namespace, name) of the workloads whose templates are read; their pods need not be named."""
    makers: set[tuple[str, str, str]] = set()
    for kind in (*_TEMPLATES, JOBS):
        # A kind that cannot be read leaves its pods to be named themselves.
        with suppress(Unreadable):
            makers |= {(kind.kind, each.metadata.namespace, each.metadata.name) for each in snapshot.listed(kind)}
    return frozenset(makers)


def _maker_of(pod: PlacedPod) -> tuple[str, str, str] | None:
    """Returns (kind, namespace, name) of the workload that makes the pod, None without one."""
    made_by = workload_of(pod.metadata.owner_references)
    return (made_by[0], pod.metadata.namespace, made_by[1]) if made_by else None


def _findings_of_kind(kind: Slim, snapshot: Snapshot, context: Context) -> Findings:
    """Yields the findings about volumes of one kind whose plug-in the target does not have."""
    target = target_minor(context)
    plugins_known = {_GIT_REPO, *_DRIVERS, *document("removed-volumes")["plugins"]}
    old = [(obj, plugins & plugins_known) for obj, plugins in _with_plugins(kind, snapshot) if plugins & plugins_known]
    if target is None and old:
        yield target_unknown(NAME, [obj for obj, _ in old], kind)
        return
    removed = removed_plugins(target or 0) - {_GIT_REPO}
    attachable = removed & {*document("removed-volumes")["attachable"]}
    source = least_source_minor(context)
    has_repository = any(_GIT_REPO in plugins for _, plugins in old)
    if (
        has_repository
        and any(source < minor <= (target or 0) for minor in _GIT_REPO_OFF)
        and not is_gate_set(snapshot, "kubelet", "GitRepoVolumeDriver", target or 0, to="true")
    ):
        removed.add(_GIT_REPO)
    dropped = [(obj, plugins & removed) for obj, plugins in old if plugins & removed]
    # A volume that the control plane attaches fails with its update, another one with that of the nodes.
    for verb, reason, of_step in (
        ("attached", kubernetes_path.ATTACHED_BY_CONTROL_PLANE, [pair for pair in dropped if pair[1] & attachable]),
        ("mounted", None, [pair for pair in dropped if not pair[1] & attachable]),
    ):
        if kind is CLASSES:
            verb, reason = "used for new volumes", kubernetes_path.ATTACHED_BY_CONTROL_PLANE
        is_git = all(plugins == {_GIT_REPO} for _, plugins in of_step)
        fix = "Copy the data to volumes of a CSI driver first; `kubectl get pv` shows what is left."
        yield from _dropped_finding(
            kind,
            of_step,
            f"cannot be {verb} by Kubernetes {context.target_kubernetes}",
            fix="Clone the repository in an init container, into a volume of type emptyDir." if is_git else fix,
            reason=reason,
        )
    rows = table("removed-volumes")
    staying = {plugin for _, plugins in old for plugin in plugins} - removed - {*_DRIVERS}
    if staying and (target or 0) > (last := max((rows.last, *rows.planned))):
        in_use = names(sorted(staying))
        why = f"the table of volume plug-ins ends with Kubernetes 1.{last} (as of {rows.date}), and {in_use} is in use"
        with_them = [obj for obj, plugins in old if plugins & staying]
        yield unknown(NAME, why, with_them, fix="See the changelog of the target's Kubernetes.", kind=kind)
    replaced = {plugin for plugin, (_, minor) in _DRIVERS.items() if minor <= (target or 0)}
    of_drivers = [(obj, plugins & replaced) for obj, plugins in old if plugins & replaced]
    kept = {
        plugin
        for plugin in {plugin for _, plugins in of_drivers for plugin in plugins}
        if is_gate_set(snapshot, "kubelet", f"CSIMigration{_GATES[plugin]}", target or 0, to="false")
    }
    replaced -= kept
    of_drivers = [(obj, plugins & replaced) for obj, plugins in of_drivers if plugins & replaced]
    if of_drivers and (nodes := snapshot.all(CSINode)):
        present = {driver.name for node in nodes for driver in node.spec.drivers}
        absent = {plugin for plugin in replaced if _DRIVERS[plugin][0] not in present}
        without = [(obj, plugins & absent) for obj, plugins in of_drivers if plugins & absent]
        drivers = names(sorted({_DRIVERS[plugin][0] for _, plugins in without for plugin in plugins}))
        yield from _dropped_finding(
            kind,
            without,
            f"cannot be {'used' if kind is CLASSES else 'mounted'} without the CSI driver {drivers}, which no node has",
            fix="Install the driver; `kubectl get csinodes` shows which drivers a node has.",
        )


def removed_plugins(target: int) -> set[str]:
    """Returns the plug-ins that a minor version does not have.

    Planned removals are included: a later version may still keep the plug-in.
    """
    removed = {plugin for _, row in table("removed-volumes").until(target) for plugin in row}
    return removed | ({_GIT_REPO} if target >= _GIT_REPO_OFF[0] else set())


def _dropped_finding(
    kind: Slim, dropped: Sequence[tuple[Object, frozenset[str]]], why: str, *, fix: str, reason: str | None = None
) -> Findings:
    """Yields the finding about the volumes, each with its plug-ins, if there are any."""
    if not dropped:
        return
    dropped = sorted(dropped, key=lambda pair: full_name(pair[0]))
    listing = names([f"{full_name(obj)} ({names(sorted(plugins))})" for obj, plugins in dropped])
    subject = "volume" if kind is VOLUMES else f"{kind.kind}'s volume"
    if kind is CLASSES:
        subject = "StorageClass"
    yield risk(
        f"{NAME}-StorageClass" if kind is CLASSES else NAME,
        f"{count(len(dropped), subject)} {why}: {listing}.",
        [obj for obj, _ in dropped],
        # Volumes that exist are named themselves.
        severity="warning" if kind is CLASSES else "critical",
        fix=fix,
        kind=kind,
        reason=reason,
    )


CHECK = declared(
    run,
    NAME,
    "cluster-storage-operator",
    reads=(VOLUMES, CLASSES, CLAIMS, *_TEMPLATES, JOBS, PODS, resource_of(CSINode), CONFIG_MAPS, resource_of(Node)),
    rank=630,
    severity="critical",
)
