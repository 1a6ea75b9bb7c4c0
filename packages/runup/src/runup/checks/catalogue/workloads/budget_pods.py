"""Pods that no eviction can move although their budget would let one go: all or some unready, or under two budgets.

The eviction API (kubernetes, pkg/registry/core/pod/storage/eviction.go) lets an unready pod go only while enough others
are healthy, unless the budget says `unhealthyPodEvictionPolicy: AlwaysAllow`; of a pod under several budgets it evicts
none and answers with an error. It asks no budget about pods that have not started, have ended or are being deleted, and
a drain leaves the pods of DaemonSets and of the node itself where they are.

Pods are read slim and looked at only where a budget gives cause: a large cluster has tens of thousands.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import groupby

from kubekit.api.conditions import find
from kubekit.api.pod_parts import PlacedPod
from kubekit.api.workloads_v1 import PodDisruptionBudget
from kubekit.rules.eviction_rules import budget_now, covering_budgets, refusal_of, selects
from runup.api.config_v1 import Infrastructure
from runup.checks.catalogue.shared.pods import PODS, drained_pods_by_namespace, is_broken, is_drained, pods_by_namespace
from runup.checks.catalogue.shared.result_cache import cache_groups
from runup.checks.catalogue.shared.topology import control_plane
from runup.checks.catalogue.workloads.shared.budgets import budget_name, not_computed, sorted_budgets
from runup.checks.decide.model import Applies, Context, Snapshot, Unreadable
from runup.checks.writing import DOWN_PATIENCE, Findings, count, declared, names, risk, severity_after, since_suffix

CHECK_NAME = "PodDisruptionBudgetPods"
UNKNOWN = f"{CHECK_NAME}Unknown"
UNREADY = "PodDisruptionBudgetPodsUnready"
OVERLAP = "PodDisruptionBudgetsOverlap"
SPENT = "PodDisruptionBudgetSpent"

# Labels, and how many pods have them.
Labelled = list[tuple[dict[str, str], int]]


def run(snapshot: Snapshot, context: Context) -> Findings:
    """Yields the findings of budgets that are used up, overlap, or select no healthy pod."""
    budgets = sorted_budgets(snapshot.all(PodDisruptionBudget))
    # The machine-config daemon does not drain the node of a single-node control plane.
    if not budgets or control_plane(snapshot) == "SingleReplica":
        return
    unready = [
        pdb
        for pdb in budgets
        if pdb.status.expected_pods
        and not pdb.status.current_healthy
        and not not_computed(pdb)
        and refusal_of(budget_now(pdb), ready=False) is not None
    ]
    namespaces = groupby(budgets, key=lambda pdb: pdb.metadata.namespace)
    shared = [group for _, namespace_budgets in namespaces if len(group := list(namespace_budgets)) > 1]
    suspects = [*unready, *(pdb for group in shared for pdb in group)]
    try:
        pods = _label_counts(drained_pods_by_namespace(snapshot.listed(PODS))) if suspects else {}
    except Unreadable as lacking:
        distinct = list({budget_name(pdb): pdb for pdb in suspects}.values())
        yield risk(
            UNKNOWN,
            f"Whether the pods of {count(len(distinct), 'PodDisruptionBudget')} can be evicted is unknown: "
            f"{str(lacking).rstrip('.')}.",
            distinct,
            applies=Applies.UNKNOWN,
            reason="PodsUnknown",
            fix="Let the check read Pods, then look at the preflight again; or accept the risk by name.",
        )
        return
    unready = [
        pdb
        for pdb in unready
        if any(selects(pdb, pdb.metadata.namespace, labels) for labels, _ in pods.get(pdb.metadata.namespace, ()))
    ]
    if unready:
        conditions = [find(pdb.status.conditions, "DisruptionAllowed") for pdb in unready]
        times = [each.last_transition_time for each in conditions if each and each.last_transition_time]
        earliest = min(times, default=None)
        listing = names([f"{budget_name(pdb)} ({count(pdb.status.expected_pods, 'pod')})" for pdb in unready])
        yield risk(
            UNREADY,
            f"No pod of {count(len(unready), 'PodDisruptionBudget')} is ready, so none can be evicted and "
            f"{'its' if len(unready) == 1 else 'their'} nodes cannot be drained: {listing}{since_suffix(earliest)}.",
            unready,
            reason="NoPodReady",
            severity=severity_after(earliest, context.now, patience=DOWN_PATIENCE, before="info", after="warning"),
            fix="Make the pods ready, scale them to none, or let the budget say unhealthyPodEvictionPolicy: "
            "AlwaysAllow.",
        )
    # Pods that several budgets select: the API server refuses to evict them.
    pods_by_budgets: Counter[tuple[str, ...]] = Counter()
    overlapping: dict[str, PodDisruptionBudget] = {}
    for group in shared:
        namespace = group[0].metadata.namespace
        for labels, number in pods.get(namespace, ()):
            selecting = covering_budgets(group, namespace, labels)
            if len(selecting) > 1:
                pods_by_budgets[tuple(budget_name(pdb) for pdb in selecting)] += number
                overlapping |= {budget_name(pdb): pdb for pdb in selecting}
    if pods_by_budgets:
        total = sum(pods_by_budgets.values())
        listing = names([f"{names(key)} ({count(number, 'pod')})" for key, number in sorted(pods_by_budgets.items())])
        yield risk(
            OVERLAP,
            f"{count(total, 'pod')} {'is' if total == 1 else 'are'} under more than one PodDisruptionBudget, "
            f"and no such pod can be evicted: {listing}.",
            [pdb for _, pdb in sorted(overlapping.items())],
            reason="SeveralBudgets",
            severity="critical",
            fix="Leave each pod one budget: narrow the selectors, or delete the budgets that are not needed.",
        )
    yield from _used_up_findings(snapshot, budgets, context)


@cache_groups
def _label_counts(pods: Sequence[PlacedPod]) -> Labelled:
    """Returns the distinct labels of the running ones of `pods`, and how many pods have them."""
    # Pods of one workload share one object of labels (`catalogue.shared.pods`): a selector is matched once for all.
    labels = [pod.metadata.labels for pod in pods if pod.status.phase == "Running"]
    pods_by_id = Counter(map(id, labels))
    return [
        (label_set, pods_by_id[labels_id])
        for labels_id, label_set in {id(label_set): label_set for label_set in labels}.items()
    ]


def _used_up_findings(snapshot: Snapshot, budgets: Sequence[PodDisruptionBudget], context: Context) -> Findings:
    """Yields the finding about budgets that are used up by broken pods, so that no healthy pod can be evicted."""
    suspects = [
        pdb
        for pdb in budgets
        if 0 < pdb.status.current_healthy < pdb.status.expected_pods
        and refusal_of(budget_now(pdb), ready=True) is not None
        and pdb.status.desired_healthy < pdb.status.expected_pods
        and not not_computed(pdb)
    ]
    pods = pods_by_namespace(snapshot.listed(PODS)) if suspects else {}
    spent: list[tuple[PodDisruptionBudget, PlacedPod]] = []
    for pdb in suspects:
        namespace = pdb.metadata.namespace
        selected = [pod for pod in pods.get(namespace, ()) if selects(pdb, namespace, pod.metadata.labels)]
        broken = [pod for pod in selected if is_broken(pod, context.now, DOWN_PATIENCE)]
        if broken and any(pod.status.ready and pod.status.phase == "Running" and is_drained(pod) for pod in selected):
            spent.append((pdb, min(broken, key=lambda pod: pod.metadata.name)))
    if spent:
        single = len(spent) == 1
        listing = names(
            [
                f"{budget_name(pdb)} ({pod.metadata.name}: {pod.status.waiting or pod.status.pending})"
                for pdb, pod in spent
            ]
        )
        yield risk(
            SPENT,
            f"{count(len(spent), 'PodDisruptionBudget')} {'is' if single else 'are'} used up by pods that do not "
            f"recover, so no healthy pod of {'it' if single else 'them'} can be evicted: {listing}.",
            [pdb for pdb, _ in spent],
            reason="BudgetUsedUp",
            fix="Fix the pods that are named (`oc describe pod NAME -n NAMESPACE`), or scale down to the pods "
            "that can run; `oc get pdb` then allows a disruption.",
        )


CHECK = declared(
    run,
    CHECK_NAME,
    "machine-config",
    reads=(PodDisruptionBudget, PODS, Infrastructure),
    by_hand=True,
    rank=130,
    severity="critical",
    clusters="both",
)
