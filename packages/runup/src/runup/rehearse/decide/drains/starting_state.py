"""Builds the state in which a simulation begins: nodes with their pods, workloads, budgets, counts."""

from __future__ import annotations

import statistics
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from kubekit.api.conditions import find, status_of
from kubekit.api.meta_v1 import OwnerReference
from kubekit.api.scheduling import SchedulingPod
from kubekit.rules.eviction_rules import ENDED, is_evicted_without_budget, is_of_virtual_machine, selects, stays_on_node
from kubekit.rules.node_rules import is_ready
from kubekit.rules.owners import controller_of
from runup.rehearse.decide.drains import cluster_state
from runup.rehearse.decide.drains.claim_rules import ClaimRules
from runup.rehearse.decide.drains.drained_cluster import DrainedCluster, DrainSettings
from runup.rehearse.decide.drains.placement_filters import Counts, Filters
from runup.rehearse.decide.drains.pod_shapes import BudgetState, Shapes

# A longer time to become ready was no normal start, except for example a pod that failed and recovered much later.
_LONGEST_START_S = 3600
_STATEFUL_SET = "StatefulSet"


@dataclass(slots=True, kw_only=True)
class StartingState:
    """The state of a simulated cluster. `staying` are the ids of pods that a drain leaves on their node.

    `workloads` are by namespace, kind and name. `without_history` counts those whose pods do not show how long they
    take to become ready, and `never_ready` those without a ready pod.
    """

    nodes: dict[str, cluster_state.NodeRoom]
    filters: Filters
    pods: list[cluster_state.PodState]
    staying: set[int]
    workloads: dict[tuple[str, str, str], cluster_state.Workload]
    budgets: tuple[BudgetState, ...]
    quotas: cluster_state.Quotas
    without_history: int
    never_ready: int


def starting_state(cluster: DrainedCluster, settings: DrainSettings) -> StartingState:
    """Returns the state of the cluster before the first drain."""
    csi = {csi_node.metadata.name: csi_node for csi_node in cluster.csi_nodes}
    nodes = {each.metadata.name: cluster_state.NodeRoom(each, csi.get(each.metadata.name)) for each in cluster.nodes}
    shapes, workloads = Shapes(), _Workloads(cluster)
    pods: list[cluster_state.PodState] = []
    sources: list[SchedulingPod] = []
    staying: set[int] = set()
    for source in cluster.pods:
        if source.status.phase in ENDED:
            continue
        owner = controller_of(source.metadata.owner_references)
        pod = cluster_state.PodState(
            len(pods), source.metadata.name, shapes.of(source), workloads.workload_of(source, owner)
        )
        pod.begun_s = _timestamp_s(source.status.start_time or source.metadata.creation_timestamp)
        if stays_on_node(source.metadata.owner_references, source.metadata.annotations):
            staying.add(pod.id)
        pods.append(pod)
        sources.append(source)
    budgets = tuple(BudgetState(each) for each in cluster.budgets if not is_of_virtual_machine(each))
    by_namespace: dict[str, list[BudgetState]] = defaultdict(list)
    for budget in budgets:
        by_namespace[budget.namespace].append(budget)
    for shape in shapes.all():
        shape.budgets = tuple(
            budget for budget in by_namespace.get(shape.namespace, ()) if selects(budget.source, *shape.identity)
        )
    filters = Filters(nodes.values(), Counts(shapes.all(), cluster.namespaces), ClaimRules(cluster))
    for pod, source in zip(pods, sources, strict=True):
        _add_pod(pod, source, nodes, filters)
    _set_desired_healthy(budgets, pods, workloads)
    without_history, never_ready = workloads.learn_starts(pods, sources, settings.default_start_s)
    quotas = cluster_state.Quotas(cluster.quotas, pods)
    return StartingState(
        nodes=nodes,
        filters=filters,
        pods=pods,
        staying=staying,
        workloads=workloads.by_key,
        budgets=budgets,
        quotas=quotas,
        without_history=without_history,
        never_ready=never_ready,
    )


def is_guard(pod: SchedulingPod) -> bool:
    """Returns whether an operator of OpenShift's control plane makes the pod again on its node.

    Such a pod has no owner; its budget keeps two nodes from being drained at once (openshift/library-go,
    `pkg/operator/staticpod/controller/guard`).
    """
    metadata = pod.metadata
    return (
        metadata.labels.get("app") == "guard"
        and metadata.namespace.startswith("openshift-")
        and bool(pod.spec.node_name)
        and metadata.name.endswith(f"-guard-{pod.spec.node_name}")
    )


def _add_pod(
    pod: cluster_state.PodState, source: SchedulingPod, nodes: dict[str, cluster_state.NodeRoom], filters: Filters
) -> None:
    """Puts a pod on its node and counts it for its budgets and its workload; one without a node is pending."""
    node = nodes.get(source.spec.node_name)
    if node is None:
        pod.phase, pod.is_new = cluster_state.PENDING, False
        return
    pod.phase = cluster_state.TERMINATING if source.metadata.deletion_timestamp is not None else cluster_state.RUNNING
    pod.ready = pod.phase == cluster_state.RUNNING and status_of(source.status.conditions, "Ready") == "True"
    pod.is_pending = is_evicted_without_budget(source.status.phase, deleted=False)
    pod.node = node
    filters.add(pod, node)
    if pod.ready:
        for budget in pod.shape.budgets:
            budget.healthy += 1
        if pod.workload is not None:
            pod.workload.ready += 1


class _Workloads:
    """The workloads of a cluster by namespace, kind and name: those of ReplicaSets are their Deployments."""

    def __init__(self, cluster: DrainedCluster) -> None:
        self.by_key: dict[tuple[str, str, str], cluster_state.Workload] = {}
        self._owners = {(owner.metadata.namespace, owner.kind, owner.metadata.name): owner for owner in cluster.owners}
        self._nodes_down = {node.metadata.name for node in cluster.nodes if not is_ready(node)}
        # By workload, the replicas of each owner of its pods (-1: not known), from which budgets are computed.
        self.scales: dict[int, dict[tuple[str, str, str], int]] = defaultdict(dict)

    def workload_of(self, pod: SchedulingPod, owner: OwnerReference | None) -> cluster_state.Workload | None:
        """Returns the workload of the pod, or None if nothing makes it again."""
        namespace = pod.metadata.namespace
        if owner is None:
            return self._guard_workload(pod) if is_guard(pod) else None
        made_by = (namespace, owner.kind, owner.name)
        source = self._owners.get(made_by)
        key = made_by
        if source is not None:
            controller_ = controller_of(source.metadata.owner_references)
            if controller_ is not None:
                key = (namespace, controller_.kind, controller_.name)
        workload = self.by_key.get(key)
        if workload is None:
            display_name = f"{key[1]} {namespace}/{key[2]}"
            workload = self.by_key[key] = cluster_state.Workload(display_name, one_by_one=owner.kind == _STATEFUL_SET)
        workload.pods += 1
        self.scales[id(workload)][made_by] = source.spec.replicas if source is not None else -1
        return workload

    def _guard_workload(self, pod: SchedulingPod) -> cluster_state.Workload:
        key = (pod.metadata.namespace, "Pod", pod.metadata.name)
        guard = self.by_key[key] = cluster_state.Workload(f"Pod {key[0]}/{key[2]}", one_by_one=False, on_node=True)
        guard.pods = 1
        return guard

    def scale(self, workload: cluster_state.Workload) -> int:
        """Returns the sum of the replicas of the pods' owners; the number of pods if an owner is not known."""
        scales = self.scales[id(workload)].values()
        return sum(scales) if all(scale >= 0 for scale in scales) else workload.pods

    def learn_starts(
        self, pods: Iterable[cluster_state.PodState], sources: Iterable[SchedulingPod], default_s: int
    ) -> tuple[int, int]:
        """Sets how many seconds the pods of each workload take to be ready; `default_s` where no pod shows it.

        Where pods run and none is ready, the next ones will not be either, unless their nodes are to blame. Returns how
        many workloads do not show it, and how many there are of the last kind.
        """
        running: set[cluster_state.Workload] = set()
        for pod, source in zip(pods, sources, strict=True):
            if pod.workload is None:
                continue
            if pod.phase == cluster_state.RUNNING and source.spec.node_name not in self._nodes_down:
                running.add(pod.workload)
            if (seconds := _observed_start_s(source)) is not None:
                pod.workload.started_s.append(seconds)
        silent = failing = 0
        for workload in self.by_key.values():
            workload.least = workload.ready
            if workload.started_s:
                workload.start_s = int(statistics.median(workload.started_s))
            elif workload in running and not workload.ready:
                workload.start_s = None
                failing += 1
            else:
                workload.start_s = default_s
                silent += 1
        return silent, failing


def _observed_start_s(pod: SchedulingPod) -> int | None:
    """Returns the seconds from being scheduled to being ready, or None if the pod's conditions do not show that."""
    if any(status.restart_count for status in pod.status.container_statuses):
        return None
    scheduled, ready = find(pod.status.conditions, "PodScheduled"), find(pod.status.conditions, "Ready")
    if scheduled is None or ready is None or ready.status != "True":
        return None
    if scheduled.last_transition_time is None or ready.last_transition_time is None:
        return None
    seconds = int((ready.last_transition_time - scheduled.last_transition_time).total_seconds())
    return seconds if 0 <= seconds <= _LONGEST_START_S else None


def _set_desired_healthy(
    budgets: Iterable[BudgetState], pods: Iterable[cluster_state.PodState], workloads: _Workloads
) -> None:
    """Sets how many healthy pods each budget asks for, by its pods and the scale of their owners."""
    selected: Counter[BudgetState] = Counter()
    owners: dict[BudgetState, set[cluster_state.Workload]] = defaultdict(set)
    for pod in pods:
        for budget in pod.shape.budgets:
            selected[budget] += 1
            if pod.workload is not None:
                owners[budget].add(pod.workload)
    for budget in budgets:
        budget.set_desired_healthy(selected[budget], sum(workloads.scale(workload) for workload in owners[budget]))


def _timestamp_s(moment: datetime | None) -> float:
    return moment.timestamp() if moment is not None else 0.0
