"""Declares how PersistentVolumes are read for all checks: one list, of which little is kept, as there are thousands."""

from __future__ import annotations

from collections.abc import Iterator
from sys import intern
from typing import Any

import msgspec

from kubekit.api.meta_v1 import Object, Wire
from kubekit.api.pod_parts import PlacedPod
from runup.api.platform_v1 import PersistentVolume
from runup.checks.catalogue.shared.pods import PODS, is_drained, select_pods
from runup.checks.catalogue.shared.workload_reads import IN_TREE
from runup.checks.decide.removal_tables import document
from runup.checks.writing import Slim, Snapshot, resource_of, slim_metadata

AFFINITY = "nodeAffinity"
# Under this name a volume of a CSI driver keeps the driver's.
DRIVER = "driver"


def _slim_volume(volume: PersistentVolume) -> PersistentVolume:
    """Returns the volume with only its node affinity, its driver, and the name of its in-tree plug-in."""
    csi = volume.spec.get("csi")
    plugins = document("removed-volumes")["plugins"]
    kept_spec: dict[str, Any] = {key: {} for key in volume.spec if key in IN_TREE or key in plugins}
    if isinstance(csi, dict) and isinstance(csi.get("driver"), str):
        kept_spec[DRIVER] = intern(csi["driver"])
    if AFFINITY in volume.spec:
        kept_spec[AFFINITY] = volume.spec[AFFINITY]
    return PersistentVolume(metadata=slim_metadata(volume), spec=kept_spec, status=volume.status)


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
    """`spec` of a PersistentVolumeClaim: the volume that it has, and its class."""

    volume_name: str = ""
    storage_class_name: str | None = None


class ClaimStatus(Wire, frozen=True):
    """`status` of a PersistentVolumeClaim: Pending, Bound or Lost."""

    phase: str = ""


class Claim(Object, frozen=True, kw_only=True):
    """A PersistentVolumeClaim."""

    spec: ClaimSpec = ClaimSpec()
    status: ClaimStatus = ClaimStatus()


CLAIMS = Slim(
    group="",
    version="v1",
    kind="PersistentVolumeClaim",
    plural="persistentvolumeclaims",
    namespaced=True,
    type=Claim,
    keep=lambda claim: msgspec.structs.replace(
        claim, metadata=slim_metadata(claim, deletion_timestamp=claim.metadata.deletion_timestamp)
    ),
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
