"""Builds a `Snapshot`, the only input of the insights, from the caches and other sources. Nothing is awaited."""

from __future__ import annotations

from typing import Any, TypeVar

from kubekit.api.codec import Undecodable
from kubekit.api.core_v1 import Pod
from kubekit.api.meta_v1 import NamespacedName, Object, key_of
from kubekit.kube.cache import Cache
from runup.api.config_v1 import ClusterVersion
from runup.updatestatus.control.caches import MCO_DEPLOYMENT, MCO_NAMESPACE, Caches
from runup.updatestatus.decide.snapshot import LISTED, Alert, Snapshot, Unreadable, sort_pools

K = TypeVar("K", bound=Object)
VERSION = NamespacedName("", "version")
DEPLOYMENT = NamespacedName(MCO_NAMESPACE, MCO_DEPLOYMENT)


def observe(
    caches: Caches,
    *,
    alerts: tuple[Alert, ...] | Unreadable | None,
    draining_pods: tuple[Pod, ...] | Unreadable,
    unread_pods: tuple[Undecodable, ...] = (),
    drains_read: frozenset[str] | None = None,
) -> Snapshot:
    """Returns what is known now; a kind that can no longer be watched counts as unreadable: an old answer is not used.

    `unread_pods` are pods on draining nodes that exist but could not be decoded. `drains_read` are the nodes whose pods
    were listed, None for all that are drained.
    """
    pools = _objects_of(caches.pools)
    return Snapshot(
        cluster_version=_version(caches.versions),
        cluster_operators=_objects_of(caches.operators),
        machine_config_pools=pools if isinstance(pools, Unreadable) else sort_pools(pools),
        nodes=_objects_of(caches.nodes),
        machine_configs=_objects_of(caches.configs),
        machine_config_operator=_unreadable_cache(caches.deployments) or caches.deployments.get(DEPLOYMENT),
        alerts=alerts,
        pending_pods=_objects_of(caches.pods),
        draining_pods=draining_pods,
        pod_disruption_budgets=_objects_of(caches.budgets),
        undecoded=_undecoded_objects(caches, unread_pods),
        incomplete=_incomplete_kinds(caches),
        drains_read=drains_read,
    )


def _version(cache: Cache[ClusterVersion]) -> ClusterVersion | Unreadable:
    version = _unreadable_cache(cache) or cache.get(VERSION)
    why = next((bad.problem for bad in cache.undecoded), "there is no ClusterVersion of the name version")
    return version or Unreadable(why)


def _undecoded_objects(caches: Caches, unread_pods: tuple[Undecodable, ...]) -> tuple[tuple[str, str], ...]:
    """Returns each object that could not be decoded, except ClusterVersion, which insights treat separately."""
    problems = {
        f"{cache.kind.__name__} {bad.key}": bad.problem
        for cache in caches.all()
        if cache is not caches.versions and cache.ready
        for bad in cache.undecoded
    }
    problems |= {f"Pod {bad.key}": bad.problem for bad in unread_pods}
    return tuple(sorted(problems.items()))


def _incomplete_kinds(caches: Caches) -> dict[str, str]:
    """Returns the reason for each snapshot field that is known in part; fields of one kind (pods) share it."""
    partly = {cache.kind.__name__: "; ".join(cache.incomplete) for cache in caches.all() if cache.incomplete}
    return {field: partly[kind] for field, kind in LISTED.items() if kind in partly}


def _objects_of(cache: Cache[K]) -> tuple[K, ...] | Unreadable:
    return _unreadable_cache(cache) or tuple(sorted(cache.all(), key=key_of))


def _unreadable_cache(cache: Cache[Any]) -> Unreadable | None:
    if cache.ready:
        return None
    return Unreadable(cache.error or f"{cache.kind.__name__} is not listed yet")
