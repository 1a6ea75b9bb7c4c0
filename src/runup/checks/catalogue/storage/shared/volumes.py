"""Declares how PersistentVolumes are read for all checks: one list, of which little is kept, as there are thousands."""

from __future__ import annotations

from typing import Any

from kubekit.api.meta_v1 import ObjectMeta
from kubekit.api.scheme import resource_of
from runup.api.platform_v1 import PersistentVolume
from runup.checks.decide.reads import Slim
from runup.checks.decide.removal_tables import table

REMOVED_PLUGINS = frozenset(plugin for row in table("removed-volumes").removed.values() for plugin in row)
AFFINITY = "nodeAffinity"


def _slim(volume: PersistentVolume) -> PersistentVolume:
    """Returns the volume with only its node affinity and the names of the removed plug-ins that it uses."""
    metadata = volume.metadata
    kept: dict[str, Any] = {key: {} for key in volume.spec if key in REMOVED_PLUGINS}
    return PersistentVolume(
        metadata=ObjectMeta(name=metadata.name, uid=metadata.uid, resource_version=metadata.resource_version),
        spec=kept | ({AFFINITY: volume.spec[AFFINITY]} if AFFINITY in volume.spec else {}),
    )


_PV = resource_of(PersistentVolume)
VOLUMES = Slim(_PV.group, _PV.version, _PV.kind, _PV.plural, namespaced=False, type=PersistentVolume, keep=_slim)
