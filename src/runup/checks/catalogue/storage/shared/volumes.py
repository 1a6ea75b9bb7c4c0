"""PersistentVolumes as all checks of them read them: a cluster has thousands, and one list of them."""

from __future__ import annotations

from typing import Any

from kubekit.api.meta_v1 import ObjectMeta
from kubekit.api.scheme import resource_of
from runup.api.platform_v1 import PersistentVolume
from runup.checks.decide.reads import Slim
from runup.checks.decide.tables import table

REMOVED_PLUGINS = frozenset(plugin for row in table("removed-volumes").removed.values() for plugin in row)
AFFINITY = "nodeAffinity"


def _slim(volume: PersistentVolume) -> PersistentVolume:
    metadata = volume.metadata
    kept: dict[str, Any] = {key: {} for key in volume.spec if key in REMOVED_PLUGINS}
    return PersistentVolume(
        metadata=ObjectMeta(name=metadata.name, uid=metadata.uid, resource_version=metadata.resource_version),
        spec=kept | ({AFFINITY: volume.spec[AFFINITY]} if AFFINITY in volume.spec else {}),
    )


_PV = resource_of(PersistentVolume)
VOLUMES = Slim(_PV.group, _PV.version, _PV.kind, _PV.plural, namespaced=False, type=PersistentVolume, keep=_slim)
