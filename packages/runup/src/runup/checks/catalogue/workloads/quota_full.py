"""A quota leaves no room for a pod that must start before another one is removed.

Applies when a ResourceQuota without scopes leaves less than one more pod needs (its number, or the cpu or memory that
the pods of the namespace request), and the namespace has a workload that needs one additional pod for a time: a virtual
machine that must move when its node is drained, or, in a namespace of the platform, a Deployment that is rolled out by
maxSurge. It also applies when a quota is used beyond its limit, which was lowered later, or when the quota controller
reports no usage of what the quota limits: pods that are evicted are not recreated. Otherwise a full quota is not
reported: a new pod is made once the old one has ended. All such quotas are one risk. Another one (-Demands) is a quota
of an amount, such as limits.memory, that a container of an evicted pod does not declare, where no LimitRange of the
namespace gives it: the quota was made after the pod, which is not recreated. A quota with the scopes NotTerminating and
NotBestEffort counts here, too.

Why it matters: a virtual machine that cannot move holds up the drain of its node, and a Deployment of the platform
without its new pods holds up the update.

Remedy: raise the quota for the time of the update (`oc edit quota NAME -n NAMESPACE`), or make room in it.

Accepting it is right where the quota is raised in time.

Source of the rule: the Kubernetes documentation of resource quotas; kubernetes, `pkg/quota/v1/evaluator/core` (pods
that end still count); apiserver, `pkg/admission/plugin/resourcequota` (hasUsageStats); apps/v1
(RollingUpdateDeployment); kubevirt, `pkg/virt-controller/watch/migration` (the target's pod is made next to the
source's).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal

from kubekit.api.meta_v1 import Object, Wire
from kubekit.api.pod_parts import PlacedPod
from kubekit.rules.owners import controller_of
from runup.checks.catalogue.shared.limit_ranges import LIMIT_RANGES
from runup.checks.catalogue.shared.pods import PODS, is_drained, pods_by_namespace, quantity_or_none
from runup.checks.catalogue.shared.workload_reads import DEPLOYMENTS, needs_surge
from runup.checks.writing import (
    Context,
    Findings,
    Slim,
    Snapshot,
    count,
    declared,
    full_name,
    names,
    names_of,
    risk,
)
from runup.rules.platform_namespaces import is_system

NAME = "QuotaFull"
# The label that virt-controller gives the pods in which virtual machines run.
VIRTUAL_MACHINE = ("kubevirt.io", "virt-launcher")
EXAMPLE = """
apiVersion: v1
kind: ResourceQuota
metadata: {name: vms, namespace: vms}
spec: {hard: {requests.memory: 16Gi}}
status: {hard: {requests.memory: 16Gi}, used: {requests.memory: 12Gi}}
---
apiVersion: v1
kind: Pod
metadata:
  name: virt-launcher-billing-x7
  namespace: vms
  labels: {kubevirt.io: virt-launcher}
  ownerReferences: [{kind: VirtualMachineInstance, name: billing}]
spec: {nodeName: worker-0, containers: [{name: compute, resources: {requests: {memory: 12Gi}}}]}
status: {phase: Running}
"""


class ResourceQuotaSpec(Wire, frozen=True):
    """`spec` of a ResourceQuota; one with scopes counts only some of the namespace's pods."""

    scopes: tuple[str, ...] = ()
    scope_selector: object = None


class ResourceQuotaStatus(Wire, frozen=True):
    """`status` of a ResourceQuota: quantities by resource."""

    hard: dict[str, str | int | float] = {}
    used: dict[str, str | int | float] = {}


class CountedQuota(Object, frozen=True, kw_only=True):
    """A limit of the total requests of the objects in a namespace."""

    spec: ResourceQuotaSpec = ResourceQuotaSpec()
    status: ResourceQuotaStatus = ResourceQuotaStatus()


QUOTAS = Slim(group="", version="v1", kind="ResourceQuota", plural="resourcequotas", namespaced=True, type=CountedQuota)
# The names under which a quota limits pods, and what it limits of them.
_PODS, _CPU, _MEMORY = ("pods", "count/pods"), ("cpu", "requests.cpu"), ("memory", "requests.memory")
_LIMITS = ("limits.cpu", "limits.memory")
# What each container of a pod must declare if a quota limits it (pkg/quota/v1/evaluator/core, Constraints).
_DECLARED = {"cpu": "requests.cpu", "memory": "requests.memory"}
# Scopes of the pods that controllers keep running.
_LONG_RUNNING = frozenset({"NotBestEffort", "NotTerminating"})
_DECLARABLE = frozenset((*_LIMITS, *_DECLARED.values()))


def run(snapshot: Snapshot, _context: Context) -> Findings:
    """Yields one risk that names the ResourceQuotas without room for pods that the update recreates."""
    all_quotas = [quota for quota in snapshot.listed(QUOTAS) if quota.spec.scope_selector is None]
    quotas = [quota for quota in all_quotas if not quota.spec.scopes]
    long_running = [quota for quota in all_quotas if _LONG_RUNNING.issuperset(quota.spec.scopes)]
    if not long_running:
        return
    pods = pods_by_namespace(snapshot.listed(PODS))
    surging = {deployment.metadata.namespace for deployment in snapshot.listed(DEPLOYMENTS) if needs_surge(deployment)}
    full = [
        (quota, why)
        for quota in sorted(quotas, key=full_name)
        if (why := _lacking_quota(quota, pods.get(quota.metadata.namespace, ()), surging))
    ]
    yield from _demands_findings(snapshot, long_running, pods)
    if full:
        listing = names([f"{full_name(quota)} ({why})" for quota, why in full])
        yield risk(
            NAME,
            f"{count(len(full), 'ResourceQuota')} {'leaves' if len(full) == 1 else 'leave'} no room for pods that the "
            f"update needs: {listing}.",
            [quota for quota, _ in full],
            fix="Raise it for the time of the update with `oc edit quota NAME -n NAMESPACE`, or make room in it.",
            kind=QUOTAS,
        )


def _counts(quota: CountedQuota, pod: PlacedPod) -> bool:
    """Returns whether a pod is recreated by a controller, and in the scopes of the quota."""
    owner = controller_of(pod.metadata.owner_references)
    # A pod without any amount is of the class BestEffort; only Jobs give their pods a deadline.
    is_best_effort = _DECLARABLE.issubset(pod.demands.undeclared)
    return (
        owner is not None
        and not ("NotBestEffort" in quota.spec.scopes and is_best_effort)
        and not ("NotTerminating" in quota.spec.scopes and owner.kind == "Job")
    )


def _demands_findings(
    snapshot: Snapshot, quotas: Sequence[CountedQuota], pods: Mapping[str, Sequence[PlacedPod]]
) -> Findings:
    """Yields one risk that names the quotas of amounts which pods that are evicted and recreated do not declare."""
    undeclared: list[tuple[CountedQuota, list[str], list[PlacedPod]]] = []
    for quota in sorted(quotas, key=full_name):
        wanted = {_DECLARED.get(key, key) for key in quota.status.hard} & _DECLARABLE
        moved = [
            pod
            for pod in pods.get(quota.metadata.namespace, ())
            if wanted.intersection(pod.demands.undeclared) and is_drained(pod) and _counts(quota, pod)
        ]
        if moved and (lacking := wanted - _defaults(snapshot, quota.metadata.namespace)):
            moved = sorted((pod for pod in moved if lacking.intersection(pod.demands.undeclared)), key=full_name)
            lacking &= {amount for pod in moved for amount in pod.demands.undeclared}
            undeclared += [(quota, sorted(lacking), moved)] if moved else []
    if undeclared:
        listing = [
            f"{full_name(quota)} ({names(lacking)}, which {names_of(moved)} {'does' if len(moved) == 1 else 'do'} not "
            "declare)"
            for quota, lacking, moved in undeclared
        ]
        yield risk(
            f"{NAME}-Demands",
            f"{count(len(undeclared), 'ResourceQuota')} {'refuses' if len(undeclared) == 1 else 'refuse'} pods that "
            f"are evicted and recreated: {names(listing)}.",
            [quota for quota, _, _ in undeclared],
            fix="Declare these amounts in the pods' templates, or give defaults with a LimitRange of the namespace.",
            kind=QUOTAS,
        )


def _defaults(snapshot: Snapshot, namespace: str) -> set[str]:
    """Returns the amounts that a LimitRange of the namespace gives to containers which declare none."""
    items = [
        item
        for limits in snapshot.listed(LIMIT_RANGES)
        if limits.metadata.namespace == namespace
        for item in limits.spec.limits
        if item.type == "Container"
    ]
    of_limits = {f"limits.{name}" for item in items for name in item.default}
    return of_limits | {f"requests.{name}" for item in items for name in (*item.default, *item.default_request)}


def _lacking_quota(quota: CountedQuota, pods: Sequence[PlacedPod], surging: set[str]) -> str:
    """Returns what the quota has no room for, or an empty string."""
    moved = [pod for pod in pods if is_drained(pod)]
    hard, used = quota.status.hard, quota.status.used
    limited = [key for key in (*_PODS, *_CPU, *_MEMORY, *_LIMITS) if key in hard]
    # Admission refuses a pod as long as the usage of what it asks for is not known (hasUsageStats).
    if moved and (uncounted := [key for key in limited if key not in used]):
        return f"no usage of {names(uncounted)} is reported: evicted pods are not recreated"
    keys = [key for key in limited if key in used]
    amounts = {key: (quantity_or_none(hard[key]), quantity_or_none(used[key])) for key in keys}
    remaining_by_key = {
        key: most - used_amount
        for key, (most, used_amount) in amounts.items()
        if most is not None and used_amount is not None
    }
    if moved and (
        beyond := [key for key, remaining_amount in sorted(remaining_by_key.items()) if remaining_amount < 0]
    ):
        return f"{names(beyond)} beyond the limit: evicted pods are not recreated"
    machines = [pod for pod in moved if pod.metadata.labels.get(VIRTUAL_MACHINE[0]) == VIRTUAL_MACHINE[1]]
    if machines and (lacking := _lacking_resources(remaining_by_key, machines)):
        return f"{lacking} for a virtual machine that moves"
    rolled_out = quota.metadata.namespace in surging and is_system(quota.metadata.namespace)
    if moved and rolled_out and (lacking := _lacking_resources(remaining_by_key, moved)):
        return f"{lacking} for a roll-out"
    return ""


def _lacking_resources(remaining_by_key: Mapping[str, Decimal], pods: Sequence[PlacedPod]) -> str:
    """Returns in words the resources with too little left for one more pod of the size of the largest."""
    needed = dict.fromkeys(_PODS, Decimal(1))
    needed |= dict.fromkeys(_CPU, Decimal(max(pod.demands.cpu_milli for pod in pods)) / 1000)
    needed |= dict.fromkeys(_MEMORY, Decimal(max(pod.demands.memory_bytes for pod in pods)))
    short = [
        key
        for key, remaining_amount in remaining_by_key.items()
        if remaining_amount < needed.get(key, 0) or (key in _LIMITS and not remaining_amount)
    ]
    return f"too little {names(sorted(short))}" if short else ""


CHECK = declared(run, NAME, "kube-controller-manager", reads=(QUOTAS, PODS, DEPLOYMENTS, LIMIT_RANGES), rank=616)
