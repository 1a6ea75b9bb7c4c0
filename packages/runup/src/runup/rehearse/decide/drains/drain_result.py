"""The result of a simulation: times of drains, the longest path, unknown facts and assumptions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from kubekit.lang.text import count
from runup.rehearse.decide.drains.cluster_state import is_simulated
from runup.rehearse.decide.drains.drained_cluster import DrainedCluster, DrainSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class Blocked:
    """A pod that could not be evicted at once; `by` are the budgets, empty for a pod without an owner.

    `to_s` is when it could: None if it was deleted by hand when the time of the drain was over.
    """

    pod: str
    why: str
    by: tuple[str, ...]
    from_s: int
    to_s: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeDrain:
    """The drain of a node: its begin, its end, and its return. `after` is the node that had its place before.

    `last` is the pod that left last, with why it did not leave sooner.
    """

    node: str
    pool: str
    from_s: int
    drained_s: int
    back_s: int | None
    evicted: int
    after: str = ""
    last: str = ""
    blocked: tuple[Blocked, ...] = ()
    lost: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolTimeline:
    """A pool with the nodes that are drained, in the order of their drains; `held` says why it does not continue.

    `node_count` is the number of all its nodes: a paused pool has them, too, and drains none.
    """

    name: str
    at_once: int
    surge: int
    paused: bool
    nodes: tuple[NodeDrain, ...] = ()
    held: str = ""
    node_count: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Unplaced:
    """Pods of one workload for which there was no place for a time, with the scheduler's words.

    `rivals` are workloads that got the room: their next pods were made at about the same time, or waited, too. Which of
    them is first is a race, and each of them may be the one that waits. `hint` is a cause that the scheduler's words do
    not name, empty if it does not exist.
    """

    workload: str
    pods: int
    from_s: int
    to_s: int | None
    why: str
    moved_from: tuple[str, ...] = ()
    before: bool = False
    rivals: tuple[str, ...] = ()
    hint: str = ""


@dataclass(frozen=True, slots=True)
class Outage:
    """A workload none of whose pods is ready."""

    workload: str
    from_s: int
    to_s: int | None
    why: str

    @property
    def seconds(self) -> int | None:
        """Returns how long it is."""
        return None if self.to_s is None else self.to_s - self.from_s


@dataclass(frozen=True, slots=True)
class Preempted:
    """A pod that made way for another one of higher priority."""

    pod: str
    by: str
    node: str
    at_s: int


@dataclass(frozen=True, slots=True)
class PathStep:
    """A part of the critical path: what everything after it waited for."""

    from_s: int
    to_s: int
    what: str
    why: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class DrainResult:
    """The result of a simulated drain of all pools; `unknown` lists unknown facts, `trust` the limits of the rest."""

    started: datetime
    duration_s: int
    pools: tuple[PoolTimeline, ...]
    unplaced: tuple[Unplaced, ...] = ()
    outages: tuple[Outage, ...] = ()
    preempted: tuple[Preempted, ...] = ()
    path: tuple[PathStep, ...] = ()
    unknown: tuple[str, ...] = ()
    assumed: tuple[str, ...] = ()
    trust: tuple[str, ...] = ()
    evicted: int = 0

    @property
    def nodes(self) -> tuple[NodeDrain, ...]:
        """Returns the drains of all pools."""
        return tuple(node for pool in self.pools for node in pool.nodes)

    @property
    def stuck(self) -> tuple[tuple[NodeDrain, Blocked], ...]:
        """Returns the pods that had to be deleted by hand, with their nodes' drains."""
        return tuple((node, blocked) for node in self.nodes for blocked in node.blocked if blocked.to_s is None)

    @property
    def needs_help(self) -> tuple[str, ...]:
        """Returns why the drains do not finish without intervention: pods that stay, blocked pools."""
        return (
            *stuck_texts(self.stuck),
            *(f"pool {pool.name} does not begin: {pool.held}" for pool in self.pools if pool.held),
        )

    @property
    def homeless(self) -> tuple[Unplaced, ...]:
        """Returns the pods that had no place even at the end, and had one before."""
        return tuple(unplaced for unplaced in self.unplaced if unplaced.to_s is None and not unplaced.before)


def stuck_texts(stuck: Iterable[tuple[NodeDrain, Blocked]]) -> list[str]:
    """Returns a text for each pod that must be deleted manually."""
    return [f"pod {blocked.pod} of node {node.node} cannot be evicted: {blocked.why}" for node, blocked in stuck]


def without_help(reasons: Sequence[str]) -> str:
    """Returns a clause that drains or an update need intervention, or an empty string."""
    if not reasons:
        return ""
    more = f" (and {len(reasons) - 1} more)" if len(reasons) > 1 else ""
    return f"not finish without somebody's help: {reasons[0]}{more}"


def critical_path(nodes: Sequence[NodeDrain]) -> tuple[PathStep, ...]:
    """Returns the steps that decided how long everything took, the first one first."""
    by_name = {node.node: node for node in nodes}
    steps: list[PathStep] = []
    last_drain = max(nodes, key=_end_s, default=None)
    while last_drain is not None:
        if last_drain.back_s is not None:
            steps.append(PathStep(last_drain.drained_s, last_drain.back_s, f"update of {last_drain.node}"))
        steps.append(PathStep(last_drain.from_s, last_drain.drained_s, f"drain of {last_drain.node}", last_drain.last))
        previous_drain = by_name.get(last_drain.after)
        if previous_drain is None and last_drain.from_s:
            # The first node of its pool waited for one of another pool.
            others = [node for node in nodes if node.pool != last_drain.pool and _end_s(node) <= last_drain.from_s]
            previous_drain = max(others, key=_end_s, default=None)
        if previous_drain is not None and _end_s(previous_drain) < last_drain.from_s:
            steps.append(PathStep(_end_s(previous_drain), last_drain.from_s, "wait for the window"))
        if previous_drain is None and last_drain.from_s:
            steps.append(PathStep(0, last_drain.from_s, "wait for the window"))
        last_drain = previous_drain
    return tuple(step for step in reversed(steps) if step.to_s > step.from_s)


def _end_s(node: NodeDrain) -> int:
    return node.drained_s if node.back_s is None else node.back_s


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
"""Answers that were the same, of those that were compared: the last count in docs/how-to/drains.md."""


def unknown_reasons(cluster: DrainedCluster) -> tuple[str, ...]:
    """Returns what the simulation does not know, each with its reason."""
    reasons = [
        f"{_FOLLOWS.get(kind, 'what depends on it')}: {kind}: {problem}"
        for kind, problem in sorted(cluster.missing.items())
        if _changes_result(kind, cluster)
    ]
    if silent := [node.metadata.name for node in cluster.nodes if not node.status.allocatable]:
        reasons.append(f"room on {_first_names(silent)}: nothing allocatable is reported, so it is taken to be full")
    schedulers = {pod.spec.scheduler_name for pod in cluster.pods} - {"", "default-scheduler"}
    if schedulers:
        names = _first_names(sorted(schedulers))
        reasons.append(f"where scheduler {names} puts its pods: they are placed as the default one would")
    if scoped := [
        f"{each.metadata.namespace}/{each.metadata.name}" for each in cluster.quotas if not is_simulated(each)
    ]:
        reasons.append(f"quotas with scopes ({_first_names(scoped)}): they are not simulated")
    present = {"", *(node.metadata.name for node in cluster.nodes)}
    missing_nodes = sorted({pod.spec.node_name for pod in cluster.pods} - present)
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
    """Returns the assumptions of the simulation."""
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
            f"{without_history} workloads whose pods' conditions do not show it start in {settings.default_start_s} s"
        )
    if never_ready:
        workloads = count(never_ready, "workload")
        assumed.append(f"{workloads} without a ready pod get no ready pod elsewhere either")
    return tuple(assumed)


def trust(unplaced: Iterable[Unplaced]) -> tuple[str, ...]:
    """Returns the limits of the result: the comparison with real nodes, and unpredictable parts."""
    stated = [
        f"evictions, budgets and places: of {ANSWERS} answers on two real nodes {SAME} were as rehearsed;"
        " the others, and why, are in docs/how-to/drains.md"
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
