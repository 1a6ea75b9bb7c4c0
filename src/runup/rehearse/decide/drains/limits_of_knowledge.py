"""Names what a simulated drain cannot tell, and what it takes for granted."""

from __future__ import annotations

from collections.abc import Mapping

from runup.rehearse.decide.drains.drained_cluster import DrainedCluster, DrainSettings
from runup.rehearse.decide.drains.quota_state import is_simulated

# Kind -> what is not known without it.
_FOLLOWS: Mapping[str, str] = {
    "Node": "where pods can go",
    "Pod": "what has to leave and what is down",
    "PodDisruptionBudget": "which evictions are refused",
    "ReplicaSet": "which Deployment a pod is of, and of how many pods the shares in budgets are",
    "StatefulSet": "of how many pods the shares in budgets are",
    "ReplicationController": "of how many pods the shares in budgets are",
    "PersistentVolumeClaim": "to which nodes volumes tie pods",
    "PersistentVolume": "to which nodes volumes tie pods",
    "StorageClass": "whether a claim without a volume gets one",
    "CSINode": "how many volumes a node can have",
    "ResourceQuota": "whether a pod may be made while the old one ends",
    "Namespace": "which pods a term with a namespaceSelector is about",
    "MachineConfigPool": "in which pools nodes are updated, and how many at once",
}
_MOST_NAMED = 3


def unknown_reasons(cluster: DrainedCluster) -> tuple[str, ...]:
    """Returns what could not be told, each with its reason."""
    found = [
        f"{_FOLLOWS.get(kind, 'what depends on it')}: {kind}: {why}"
        for kind, why in sorted(cluster.missing.items())
        if _changes_result(kind, cluster)
    ]
    silent = [node.metadata.name for node in cluster.nodes if not node.status.allocatable]
    if silent:
        found.append(f"room on {_first_names(silent)}: nothing allocatable is reported, so it is taken to be full")
    others = sorted(
        {pod.spec.scheduler_name for pod in cluster.pods if pod.spec.scheduler_name not in ("", "default-scheduler")}
    )
    if others:
        found.append(f"where scheduler {_first_names(others)} puts its pods: they are placed as the default one would")
    scoped = [f"{each.metadata.namespace}/{each.metadata.name}" for each in cluster.quotas if not is_simulated(each)]
    if scoped:
        found.append(f"quotas with scopes ({_first_names(scoped)}): they are not simulated")
    gone = sorted(
        {pod.spec.node_name for pod in cluster.pods if pod.spec.node_name} - {n.metadata.name for n in cluster.nodes}
    )
    if gone and "Node" not in cluster.missing:
        found.append(f"pods on {_first_names(gone)}: these nodes are not there")
    return tuple(found)


def _changes_result(kind: str, cluster: DrainedCluster) -> bool:
    """Returns whether anything would be different with the objects of a kind that is not known."""
    if kind in ("StatefulSet", "ReplicationController"):
        return any(owner.kind == kind for pod in cluster.pods for owner in pod.metadata.owner_references)
    if kind in ("PersistentVolume", "StorageClass", "CSINode"):
        return "PersistentVolumeClaim" in cluster.missing or bool(cluster.claims)
    if kind == "PersistentVolumeClaim":
        return any(volume.persistent_volume_claim for pod in cluster.pods for volume in pod.spec.volumes)
    return True


def assumptions(cluster: DrainedCluster, settings: DrainSettings, without_history: int) -> tuple[str, ...]:
    """Returns what the simulation takes for granted."""
    found = [
        f"each node takes {settings.node_update_s} s from drained to ready",
        "each pod takes its whole grace period to end",
        f"what is not evicted after {settings.drain_timeout_s} s is deleted by hand",
    ]
    machines = any(
        owner.kind == "VirtualMachineInstance" for each in cluster.budgets for owner in each.metadata.owner_references
    )
    if machines:
        found.append("virtual machines move to another node when their pods are evicted")
    if without_history:
        found.append(
            f"{without_history} workloads whose pods' conditions do not tell start in {settings.default_start_s} s"
        )
    return tuple(found)


def _first_names(names: list[str]) -> str:
    more = len(names) - _MOST_NAMED
    return ", ".join(names[:_MOST_NAMED]) + (f" and {more} more" if more > 0 else "")
