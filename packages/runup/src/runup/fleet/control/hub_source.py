"""Reads the clusters of a hub of Open Cluster Management, and the reports that their agents have stored on it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Protocol

from kubekit.kube import calls
from kubekit.kube.api_errors import NotFound
from kubekit.kube.client_sync import SyncClient
from runup.api.hub_v1 import ADDON_LABEL, ManagedCluster, ManagedClusterSet, ManifestWork
from runup.fleet.decide.hub_addon import NAMES
from runup.fleet.decide.hub_clusters import clusters_of_set
from runup.fleet.decide.members import BadFleet, Member


class Judge(Protocol):
    """A function that makes a member of each cluster, out of what has travelled to the hub of it."""

    def __call__(
        self,
        clusters: Sequence[ManagedCluster],
        works: Sequence[ManifestWork],
        now: datetime,
        *,
        unreadable: Mapping[str, str],
    ) -> Sequence[Member]: ...


def members_of_hub(client: SyncClient, hub: str, cluster_set: str, judge: Judge) -> tuple[list[Member], list[str]]:
    """Returns a member for each cluster of the hub, or of one of its sets, and why there may be others.

    `hub` is its context, as typed. Raises BadFleet if it is not a hub, or has no such set or no cluster; and KubeError.
    """
    try:
        clusters = client.listing(ManagedCluster)
        works = client.listing(ManifestWork, label_selector=f"{ADDON_LABEL} in ({','.join(sorted(NAMES.values()))})")
    except NotFound as error:
        text = f"--hub {hub}: is no hub of Open Cluster Management, for it does not have its kinds: {error}"
        raise BadFleet(text) from error
    chosen = tuple(clusters.items)
    if cluster_set:
        chosen = clusters_of_set(chosen, _set_named(client, hub, cluster_set))
    unreadable = {each.namespace: f"what its agent reports cannot be read: {each.problem}" for each in works.undecoded}
    # The hub's time, which only its answers tell.
    members = [*judge(chosen, works.items, client.now(), unreadable=unreadable)]
    # Nobody knows of these which set they are in, so they are in each.
    members += [
        Member(each.name or "(without a name)", problem=f"its ManagedCluster cannot be read: {each.problem}")
        for each in clusters.undecoded
    ]
    if not members:
        raise BadFleet(f"--hub {hub}: has no ManagedCluster; `kubectl get managedclusters` lists them")
    reasons = dict.fromkeys((*clusters.incomplete, *works.incomplete))
    return members, [f"--hub {hub}: there may be clusters or reports that are not listed: {why}" for why in reasons]


def _set_named(client: SyncClient, hub: str, name: str) -> ManagedClusterSet:
    try:
        return client.send(calls.get(ManagedClusterSet, name))
    except NotFound as error:
        names = [each.metadata.name for each in client.listing(ManagedClusterSet).items]
        there = f"there is {', '.join(sorted(names))}" if names else "there is none"
        raise BadFleet(f"--clusterset {name}: the hub {hub} has no such ManagedClusterSet; {there}") from error
