"""Names what a simulated drain cannot tell, and what it takes for granted."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from runup.rehearse.decide.drains.drain_result import Unplaced
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
SAME, ANSWERS = 216, 219
"""Answers that were the same, of those that were compared: the last count in docs/drains.md."""


def unknown_reasons(cluster: DrainedCluster) -> tuple[str, ...]:
    """Returns what the simulation does not know, each with its reason."""
    reasons = [
        f"{_FOLLOWS.get(kind, 'what depends on it')}: {kind}: {problem}"
        for kind, problem in sorted(cluster.missing.items())
        if _changes_result(kind, cluster)
    ]
    silent = [node.metadata.name for node in cluster.nodes if not node.status.allocatable]
    if silent:
        reasons.append(f"room on {_first_names(silent)}: nothing allocatable is reported, so it is taken to be full")
    other_schedulers = sorted(
        {pod.spec.scheduler_name for pod in cluster.pods if pod.spec.scheduler_name not in ("", "default-scheduler")}
    )
    if other_schedulers:
        reasons.append(
            f"where scheduler {_first_names(other_schedulers)} puts its pods: they are placed as the default one would"
        )
    scoped = [
        f"{quota.metadata.namespace}/{quota.metadata.name}" for quota in cluster.quotas if not is_simulated(quota)
    ]
    if scoped:
        reasons.append(f"quotas with scopes ({_first_names(scoped)}): they are not simulated")
    missing_nodes = sorted(
        {pod.spec.node_name for pod in cluster.pods if pod.spec.node_name}
        - {node.metadata.name for node in cluster.nodes}
    )
    if missing_nodes and "Node" not in cluster.missing:
        reasons.append(f"pods on {_first_names(missing_nodes)}: these nodes are not there")
    return tuple(reasons)


def _changes_result(kind: str, cluster: DrainedCluster) -> bool:
    """Returns whether anything would be different with the objects of a kind that is not known."""
    if kind in ("StatefulSet", "ReplicationController"):
        return any(owner.kind == kind for pod in cluster.pods for owner in pod.metadata.owner_references)
    if kind in ("PersistentVolume", "StorageClass", "CSINode"):
        return "PersistentVolumeClaim" in cluster.missing or bool(cluster.claims)
    if kind == "PersistentVolumeClaim":
        return any(volume.persistent_volume_claim for pod in cluster.pods for volume in pod.spec.volumes)
    return True


def assumptions(
    cluster: DrainedCluster, settings: DrainSettings, without_history: int, never_ready: int
) -> tuple[str, ...]:
    """Returns what the simulation takes for granted."""
    assumed = [
        f"each node takes {settings.node_update_s} s from drained to ready",
        "each pod takes its whole grace period to end",
        f"what is not evicted after {settings.drain_timeout_s} s is deleted by hand",
    ]
    machines = any(
        owner.kind == "VirtualMachineInstance"
        for budget in cluster.budgets
        for owner in budget.metadata.owner_references
    )
    if machines:
        assumed.append("virtual machines move to another node when their pods are evicted")
    if without_history:
        assumed.append(
            f"{without_history} workloads whose pods' conditions do not tell start in {settings.default_start_s} s"
        )
    if never_ready:
        workloads = "1 workload" if never_ready == 1 else f"{never_ready} workloads"
        assumed.append(f"{workloads} without a ready pod will have none elsewhere either")
    return tuple(assumed)


def trust(unplaced: Iterable[Unplaced]) -> tuple[str, ...]:
    """Returns how far the result can be trusted: what was compared with real nodes, and what is not foretold."""
    stated = [
        f"evictions, budgets and places: of {ANSWERS} answers on two real nodes {SAME} were as rehearsed;"
        " the others, and why, are in docs/drains.md"
    ]
    racing = sum(bool(each.rivals) for each in unplaced)
    if racing:
        waits = "1 wait for a place is a race" if racing == 1 else f"{racing} waits for a place are races"
        stated.append(f"{waits}: that somebody waits is known, and who may, but not which of them does")
    return (
        *stated,
        "which of several good nodes a pod gets is not foretold: the emptiest of some is taken",
        "times: those of ends are upper limits, those of starts are as the pods' starts were before",
    )


def _first_names(names: list[str]) -> str:
    omitted = len(names) - _MOST_NAMED
    return ", ".join(names[:_MOST_NAMED]) + (f" and {omitted} more" if omitted > 0 else "")
