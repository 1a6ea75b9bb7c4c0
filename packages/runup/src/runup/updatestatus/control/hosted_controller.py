"""Writes a HostedClusterUpdateStatus next to each HostedCluster of a management cluster of HyperShift.

Both sides are read every `REFRESH_S` seconds, the hosted side only if the controller may get the Secret with its
kubeconfig. Where it may not, it asks for the Secret again every `LOOK_AGAIN_S` seconds; and as often for the kinds on a
cluster without the kind HostedCluster, or without the definition of the status.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING, Any

import structlog

from kubekit.api.codec import DecodeError
from kubekit.kube import calls
from kubekit.kube.api_errors import Forbidden, KubeError, NotFound
from kubekit.kube.client import Client
from kubekit.kube.clock import Clock
from runup.updatestatus.decide.alerts import Unreadable
from runup.updatestatus.decide.assess import assess

if TYPE_CHECKING:
    from kubekit.api.meta_v1 import Object
    from runup.api.hypershift_v1beta1 import HostedCluster
    from runup.updatestatus.control.status_store import HostedStatusStore

log = structlog.get_logger("updatestatus")
REFRESH_S, LOOK_AGAIN_S = 30.0, 300.0
# The kinds without which there is nothing to do. Any account may read them: neither takes a right.
_NEEDED = (
    ("hypershift.openshift.io/v1beta1", "HostedCluster"),
    ("update.openshift.io/v1alpha1", "HostedClusterUpdateStatus"),
)


class HostedStatuses:
    """Keeps the status of each hosted cluster up to date; only the leader runs it."""

    def __init__(self, client: Client, clock: Clock, now: Callable[[], datetime]) -> None:
        self._client, self._clock, self._now = client, clock, now
        # By the uid of the HostedCluster: another cluster of the same name has another status.
        self._stores: dict[str, HostedStatusStore] = {}
        # Why a Secret was refused, and until when it is not asked for again.
        self._refused: dict[str, tuple[float, str]] = {}

    async def run(self) -> None:
        """Refreshes the objects until cancelled; half of the time is left to others."""
        while True:
            begun = self._clock.monotonic()
            is_management = await self.refresh()
            pause_s = REFRESH_S if is_management else LOOK_AGAIN_S
            await self._clock.sleep(max(pause_s, self._clock.monotonic() - begun))

    async def refresh(self) -> bool:
        """Writes each status that has changed. Returns False if the cluster lacks one of the kinds."""
        try:
            for api_version, kind in _NEEDED:
                if all(each.kind != kind for each in await self._client.send(calls.list_kinds(api_version))):
                    return False
            await self._refresh_all()
        except NotFound:
            return False
        except (KubeError, DecodeError) as error:
            log.warning("hosted clusters could not be read", error=str(error))
        return True

    async def _refresh_all(self) -> None:
        # Imported here because most clusters have no hosted clusters.
        from runup.api.hypershift_v1beta1 import HostedCluster, HostedNodePool

        listing = await self._client.listing(HostedCluster)
        for bad in listing.undecoded:
            log.warning("a HostedCluster cannot be decoded", hosted_cluster=str(bad.key), problem=bad.problem)
        clusters = [cluster for cluster in listing.items if cluster.metadata.deletion_timestamp is None]
        self._stores = {uid: store for uid, store in self._stores.items() if uid in {c.metadata.uid for c in clusters}}
        self._refused = {uid: refusal for uid, refusal in self._refused.items() if uid in self._stores}
        pools = await self._listed(HostedNodePool) if clusters else ()
        sides = await self._sides(clusters) if clusters else {}
        for cluster in clusters:
            try:
                await self._refresh_one(cluster, pools, sides[cluster.metadata.uid])
            except (KubeError, DecodeError) as error:
                name = f"{cluster.metadata.namespace}/{cluster.metadata.name}"
                log.warning("the status could not be written", hosted_cluster=name, error=str(error))

    async def _sides(self, clusters: list[HostedCluster]) -> dict[str, dict[str, Any]]:
        """Returns the fields of each cluster's snapshot that are read on the hosted side, by uid."""
        from runup.updatestatus.control import hosted_side

        fields: dict[str, dict[str, Any]] = {}
        secrets: dict[str, tuple[HostedCluster, dict[str, Any]]] = {}
        for cluster in clusters:
            uid, call = cluster.metadata.uid, hosted_side.secret_call(cluster)
            until, why = self._refused.get(uid, (0.0, ""))
            if call is None:
                why = hosted_side.UNNAMED
            elif not why or self._clock.monotonic() >= until:
                why = ""
                try:
                    secrets[uid] = (cluster, await self._client.send(call))
                except KubeError as error:
                    why = hosted_side.why_no_secret(cluster, error)
                    if isinstance(error, Forbidden):
                        self._refused[uid] = (self._clock.monotonic() + LOOK_AGAIN_S, why)
            if why:
                fields[uid] = {"why_not_read": why}
        return fields | dict(zip(secrets, await hosted_side.read_all(list(secrets.values())), strict=True))

    async def _refresh_one(self, cluster: HostedCluster, pools: Any, side: dict[str, Any]) -> None:
        from kubekit.api.scheme import resource_of
        from runup.api.hypershift_v1beta1 import HostedCluster
        from runup.updatestatus.control.hosted_objects import IN_CONTROL_PLANE
        from runup.updatestatus.control.status_store import HostedStatusStore
        from runup.updatestatus.decide.hosted.snapshot import HostedSnapshot

        store = self._stores.get(cluster.metadata.uid)
        if store is None:
            store = HostedStatusStore(self._client, self._clock, cluster, resource_of(HostedCluster))
            self._stores[cluster.metadata.uid] = store
        namespace = cluster.control_plane_namespace
        own: dict[str, Any] = {field: await self._listed(kind, namespace) for field, kind in IN_CONTROL_PLANE.items()}
        previous = await store.read()
        snapshot = HostedSnapshot(cluster=cluster, pools=pools, **own, **side)
        room = store.room
        status = assess(snapshot, previous, self._now(), max_bytes=room.bytes, others_pools=room.pools, full=room.full)
        if status != previous or not store.exists:
            await store.write(status)

    async def _listed(self, kind: type[Object], namespace: str = "") -> tuple[Object, ...] | Unreadable:
        from runup.updatestatus.control.kubernetes_objects import listed

        return await listed(self._client, kind, namespace)
