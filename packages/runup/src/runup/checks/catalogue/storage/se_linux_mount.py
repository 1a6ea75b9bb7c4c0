"""Pods with different SELinux labels share a volume that the target mounts with one label.

Applies when the update crosses Kubernetes 1.37, a volume is of a CSI driver whose CSIDriver has `seLinuxMount: true`,
and pods with different SELinux labels use a claim for it. A pod with `seLinuxChangePolicy: Recursive` counts as one
without a label, for which the volume is mounted without one. Nothing counts where every kubelet has the feature gate
SELinuxMount set to false and the target allows that. Whether nodes enforce SELinux is not known from objects.

Why it matters: from 1.37 on the kubelet mounts such a volume with the label of its first pod, and does not start a pod
with another label next to it: it stays in ContainerCreating.

Remedy: give these pods one label, or set `securityContext.seLinuxChangePolicy: Recursive` in all their templates.

Accepting it is right where the nodes do not use SELinux, or where the pods never run at the same time.

Source of the rule: Kubernetes, CHANGELOG-1.37, Urgent Upgrade Notes (SELinuxMount, #139956); KEP-1710; kubernetes,
`pkg/volume/util/selinux.go` and `pkg/kubelet/volumemanager/cache/desired_state_of_world.go`.
"""

from __future__ import annotations

from kubekit.api.core_v1 import Node
from kubekit.api.meta_v1 import Object, Wire
from kubekit.rules.eviction_rules import ENDED
from runup.checks.catalogue.control_plane.shared.given_settings import CONFIG_MAPS, is_gate_set
from runup.checks.catalogue.shared.kubernetes_versions import least_source_minor, target_minor
from runup.checks.catalogue.shared.pods import PODS, select_pods
from runup.checks.catalogue.storage.shared.volumes import CLAIMS, DRIVER, VOLUMES
from runup.checks.writing import (
    Context,
    Findings,
    Slim,
    Snapshot,
    count,
    declared,
    full_name,
    names,
    names_of,
    resource_of,
    risk,
)

NAME = "SELinuxMountConflict"
_ON_BY_DEFAULT = 37
EXAMPLE = """
update: {from: 1.36.3, to: 1.37.0}
---
apiVersion: storage.k8s.io/v1
kind: CSIDriver
metadata: {name: files.example.com}
spec: {seLinuxMount: true}
---
apiVersion: v1
kind: PersistentVolume
metadata: {name: pv-shared}
spec: {csi: {driver: files.example.com, volumeHandle: h}}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: shared, namespace: shop}
spec: {volumeName: pv-shared}
---
apiVersion: v1
kind: Pod
metadata: {name: till, namespace: shop}
spec:
  nodeName: worker-0
  securityContext: {seLinuxOptions: {level: "s0:c1,c2"}}
  volumes: [{name: data, persistentVolumeClaim: {claimName: shared}}]
---
apiVersion: v1
kind: Pod
metadata: {name: stock, namespace: shop}
spec:
  nodeName: worker-0
  securityContext: {seLinuxOptions: {level: "s0:c3,c4"}}
  volumes: [{name: data, persistentVolumeClaim: {claimName: shared}}]
"""


class MountingSpec(Wire, frozen=True):
    """`spec` of a CSIDriver."""

    se_linux_mount: bool = False


class MountingDriver(Object, frozen=True):
    """A CSI driver: whether its volumes are mounted with an SELinux label."""

    spec: MountingSpec = MountingSpec()


DRIVERS = Slim(
    group="storage.k8s.io",
    version="v1",
    kind="CSIDriver",
    plural="csidrivers",
    namespaced=False,
    type=MountingDriver,
)
_PODS_WITH_CLAIMS = select_pods(
    lambda pods: [pod for pod in pods if pod.demands.claims and pod.status.phase not in ENDED]
)


def run(snapshot: Snapshot, context: Context) -> Findings:
    """Yields one risk that names the pods whose labels differ on a volume that is mounted with one."""
    target = target_minor(context) or 0
    if not least_source_minor(context) < _ON_BY_DEFAULT <= target:
        return
    drivers = {driver.metadata.name for driver in snapshot.listed(DRIVERS) if driver.spec.se_linux_mount}
    if not drivers:
        return
    volumes = {volume.metadata.name for volume in snapshot.listed(VOLUMES) if volume.spec.get(DRIVER) in drivers}
    claims = {
        (claim.metadata.namespace, claim.metadata.name)
        for claim in snapshot.listed(CLAIMS)
        if claim.spec.volume_name in volumes
    }
    by_claim: dict[tuple[str, str], list[Object]] = {}
    labels: dict[tuple[str, str], set[str]] = {}
    for pod in _PODS_WITH_CLAIMS(snapshot.listed(PODS)) if claims else ():
        for name in pod.demands.claims:
            if (key := (pod.metadata.namespace, name)) in claims:
                by_claim.setdefault(key, []).append(pod)
                labels.setdefault(key, set()).add(pod.demands.se_linux)
    shared = {key: pods for key, pods in by_claim.items() if len(labels[key]) > 1}
    if shared and not is_gate_set(snapshot, "kubelet", "SELinuxMount", target, to="false"):
        listing = names(["/".join(key) + f" ({names_of(pods)})" for key, pods in sorted(shared.items())])
        yield risk(
            NAME,
            f"Pods with different SELinux labels share {count(len(shared), 'claim')}, whose volumes Kubernetes "
            f"1.{_ON_BY_DEFAULT} mounts with one label, so that the second pod does not start: {listing}.",
            sorted({full_name(pod): pod for pods in shared.values() for pod in pods}.values(), key=full_name),
            fix="Give them one label, or set securityContext.seLinuxChangePolicy: Recursive in all their templates.",
            kind=PODS,
        )


CHECK = declared(
    run,
    NAME,
    "cluster-storage-operator",
    reads=(DRIVERS, VOLUMES, CLAIMS, PODS, CONFIG_MAPS, resource_of(Node)),
    rank=656,
    clusters="both",
)
