"""Declares how PersistentVolumes are read for all checks: one list, of which little is kept, as there are thousands."""

from __future__ import annotations

from collections.abc import Iterator
from sys import intern
from typing import Any

from kubekit.api.meta_v1 import Object, ObjectMeta, Wire
from kubekit.api.pod_parts import PlacedPod
from runup.api.platform_v1 import PersistentVolume
from runup.checks.catalogue.shared.pods import PODS, is_drained, select_pods
from runup.checks.catalogue.shared.workload_reads import REMOVED_PLUGINS
from runup.checks.decide.reads import Slim
from runup.checks.writing import Snapshot, resource_of

AFFINITY = "nodeAffinity"
# Under this name a volume of a CSI driver keeps the driver's.
DRIVER = "driver"


def _slim_volume(volume: PersistentVolume) -> PersistentVolume:
    """Returns the volume with only its node affinity, its driver, and the names of its removed plug-ins."""
    metadata, csi = volume.metadata, volume.spec.get("csi")
    kept_spec: dict[str, Any] = {key: {} for key in volume.spec if key in REMOVED_PLUGINS}
    if isinstance(csi, dict) and isinstance(csi.get("driver"), str):
        kept_spec[DRIVER] = intern(csi["driver"])
    return PersistentVolume(
        metadata=ObjectMeta(name=metadata.name, uid=metadata.uid, resource_version=metadata.resource_version),
        spec=kept_spec | ({AFFINITY: volume.spec[AFFINITY]} if AFFINITY in volume.spec else {}),
        status=volume.status,
    )


_PV = resource_of(PersistentVolume)
VOLUMES = Slim(
    group=_PV.group,
    version=_PV.version,
    kind=_PV.kind,
    plural=_PV.plural,
    namespaced=False,
    type=PersistentVolume,
    keep=_slim_volume,
)


class ClaimSpec(Wire, frozen=True):
    """`spec` of a PersistentVolumeClaim: the volume that it has."""

    volume_name: str = ""


class ClaimStatus(Wire, frozen=True):
    """`status` of a PersistentVolumeClaim: Pending, Bound or Lost."""

    phase: str = ""


class Claim(Object, frozen=True, kw_only=True):
    """A PersistentVolumeClaim."""

    spec: ClaimSpec = ClaimSpec()
    status: ClaimStatus = ClaimStatus()


def _slim_claim(claim: Claim) -> Claim:
    """Returns the claim with the fields alone that the storage checks read."""
    metadata = claim.metadata
    return Claim(
        metadata=ObjectMeta(
            name=metadata.name,
            namespace=metadata.namespace,
            resource_version=metadata.resource_version,
            deletion_timestamp=metadata.deletion_timestamp,
        ),
        spec=claim.spec,
        status=claim.status,
    )


CLAIMS = Slim(
    group="",
    version="v1",
    kind="PersistentVolumeClaim",
    plural="persistentvolumeclaims",
    namespaced=True,
    type=Claim,
    keep=_slim_claim,
)


_DRAINED_PODS_WITH_CLAIMS = select_pods(lambda pods: [pod for pod in pods if pod.demands.claims and is_drained(pod)])


def claims_that_move(snapshot: Snapshot) -> Iterator[tuple[PlacedPod, str, Claim | None]]:
    """Yields each pod that a drain evicts with each of its claims: its name, and the claim if it is in the list.

    Raises Unreadable.
    """
    moving = _DRAINED_PODS_WITH_CLAIMS(snapshot.listed(PODS))
    if not moving:
        return
    claims = {(claim.metadata.namespace, claim.metadata.name): claim for claim in snapshot.listed(CLAIMS)}
    for pod in sorted(moving, key=lambda placed_pod: (placed_pod.metadata.namespace, placed_pod.metadata.name)):
        for name in pod.demands.claims:
            yield pod, name, claims.get((pod.metadata.namespace, name))
