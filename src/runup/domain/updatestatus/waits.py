"""What users asked to be told beyond `oc`: whom an update waits for, and since when.

Drains that a PodDisruptionBudget holds up, operators that take longer than the operator itself allows, pods that do not
get created, releases that cannot be fetched. Each names the objects, so that the next command is obvious. Nothing is
said of what nobody read (see `snapshot`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta

from runup.api.config_v1 import ClusterVersion
from runup.api.core_v1 import ContainerStatus, Pod
from runup.api.update_v1alpha1 import AwaitedOperator, ResourceRef
from runup.api.workloads_v1 import PodDisruptionBudget
from runup.domain.conditions import find
from runup.domain.updatestatus.control_plane import MACHINE_CONFIG, OperatorState
from runup.domain.updatestatus.finding import (
    DOCS,
    ERROR,
    SCOPE_CONTROL_PLANE,
    SCOPE_WORKER_POOL,
    UPDATE_SPEED,
    UPDATE_STALLED,
    WARNING,
    Finding,
    cluster_version_ref,
    node_ref,
    operator_ref,
)
from runup.domain.updatestatus.nodes import PoolState

DRAIN_BLOCKED, OPERATOR_SLOW = "DrainBlocked", "UpdateWaitsForOperator"
POD_NOT_CREATED, RELEASE_NOT_LOADED = "PodStuckCreating", "ReleaseNotLoaded"

# What a drain usually takes, as the estimate of the phase Draining has it.
DRAIN_PATIENCE = timedelta(minutes=10)
# After these the cluster-version operator itself speaks of a slow operator (pkg/cvo/status.go).
OPERATOR_PATIENCE = timedelta(minutes=30)
MACHINE_CONFIG_PATIENCE = timedelta(minutes=90)
# What pulling a large image on a busy node may take.
POD_PATIENCE = timedelta(minutes=10)

# Waiting reasons that do not pass by waiting.
_FATAL_WAITS = frozenset(
    {
        "ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull", "CreateContainerConfigError",
        "CreateContainerError", "RunContainerError",
    }
)  # fmt: skip
_PLATFORM_NAMESPACES = ("openshift-", "kube-")
_MAX_PODS_NAMED = 12
# The condition by which a controller says when it may evict no more.
_DISRUPTION_ALLOWED = "DisruptionAllowed"


def of_drains(
    pools: Sequence[PoolState],
    pods: Sequence[Pod],
    budgets: Sequence[PodDisruptionBudget],
    seen: Mapping[str, datetime],
    now: datetime,
    unseen: datetime | None = None,
) -> Iterator[Finding]:
    """Each node whose drain a budget holds up. `seen`: since when a node's drain has been known to be held up.

    How long a budget has been exhausted is no age of the drain: for a node that `seen` lacks it is `unseen`.
    """
    exhausted = _by_namespace([budget for budget in budgets if _allows_nothing(budget)])
    if not exhausted:
        return
    by_node: dict[str, list[Pod]] = {}
    for pod in pods:
        if pod.metadata.namespace in exhausted and _must_be_evicted(pod):
            by_node.setdefault(pod.spec.node_name, []).append(pod)
    for pool in pools:
        for node in pool.nodes:
            if node.phase != "Draining" or node.name not in by_node:
                continue
            held = [
                (pod, budget)
                for pod in by_node[node.name]
                for budget in exhausted[pod.metadata.namespace]
                if budget.spec.selector is not None and budget.spec.selector.matches(pod.metadata.labels)
            ]
            if held:
                yield _drain(node.name, pool, held, seen.get(node.name, unseen), now)


def _by_namespace(budgets: Sequence[PodDisruptionBudget]) -> dict[str, list[PodDisruptionBudget]]:
    found: dict[str, list[PodDisruptionBudget]] = {}
    for budget in budgets:
        found.setdefault(budget.metadata.namespace, []).append(budget)
    return found


def _allows_nothing(budget: PodDisruptionBudget) -> bool:
    # A status older than the spec says nothing about the spec; the disruption controller catches up in seconds.
    current = budget.status.observed_generation >= budget.metadata.generation
    return current and budget.status.disruptions_allowed == 0 and budget.status.expected_pods > 0


def _must_be_evicted(pod: Pod) -> bool:
    """Whether a drain asks for its eviction: not what a DaemonSet or the kubelet itself put there, nor what ended."""
    if pod.status.phase in ("Succeeded", "Failed") or "kubernetes.io/config.mirror" in pod.metadata.annotations:
        return False
    return not any(owner.controller and owner.kind == "DaemonSet" for owner in pod.metadata.owner_references)


def _drain(
    node: str,
    pool: PoolState,
    held: Sequence[tuple[Pod, PodDisruptionBudget]],
    since: datetime | None,
    now: datetime,
) -> Finding:
    long = since is not None and now - since > DRAIN_PATIENCE
    budgets = {_name(budget.metadata.namespace, budget.metadata.name): budget for _, budget in held}
    pods = {_name(pod.metadata.namespace, pod.metadata.name): pod for pod, _ in held}
    described = "; ".join(
        f"pod {_name(pod.metadata.namespace, pod.metadata.name)} is covered by PodDisruptionBudget "
        f"{budget.metadata.name} ({_rule(budget)}, {budget.status.current_healthy} of "
        f"{budget.status.expected_pods} pods healthy, {budget.status.desired_healthy} demanded{_exhausted(budget)})"
        for pod, budget in held[:_MAX_PODS_NAMED]
    )
    return Finding(
        check=DRAIN_BLOCKED,
        level=ERROR if long else WARNING,
        impact=UPDATE_STALLED if long else UPDATE_SPEED,
        summary=f"Node {node} cannot be drained: {_listed('PodDisruptionBudget', list(budgets))} "
        f"{'allows' if len(budgets) == 1 else 'allow'} no eviction of {_listed('pod', list(pods))}",
        description=f"The machine-config daemon waits until these pods may be evicted: {described}{_more(held)}. Run "
        "more replicas or bring those that are not healthy back, relax the budget for the time of the update, or "
        "delete the pods that may be interrupted.",
        reference=DOCS + "drainblocked",
        since=since,
        scope=SCOPE_CONTROL_PLANE if pool.is_control_plane else SCOPE_WORKER_POOL,
        resources=(
            node_ref(node),
            *(
                ResourceRef(resource="pods", name=p.metadata.name, namespace=p.metadata.namespace)
                for p in pods.values()
            ),
            *(
                ResourceRef(
                    group="policy",
                    resource="poddisruptionbudgets",
                    name=budget.metadata.name,
                    namespace=budget.metadata.namespace,
                )
                for budget in budgets.values()
            ),
        ),
        identity=node,
        pool="" if pool.is_control_plane else pool.name,
    )


def _exhausted(budget: PodDisruptionBudget) -> str:
    """Since when it has allowed nothing, as far as it says."""
    allowed = find(budget.status.conditions, _DISRUPTION_ALLOWED)
    if allowed is None or allowed.status != "False" or allowed.last_transition_time is None:
        return ""
    return f", no eviction allowed since {allowed.last_transition_time:%Y-%m-%dT%H:%M:%SZ}"


def _rule(budget: PodDisruptionBudget) -> str:
    if budget.spec.max_unavailable is not None:
        return f"maxUnavailable {budget.spec.max_unavailable}"
    return f"minAvailable {budget.spec.min_available}"


def _name(namespace: str, name: str) -> str:
    return f"{namespace}/{name}"


def _listed(noun: str, names: Sequence[str]) -> str:
    return f"{noun} {names[0]}" if len(names) == 1 else f"{len(names)} {noun}s"


def _more(held: Sequence[object]) -> str:
    return f", and {len(held) - _MAX_PODS_NAMED} more" if len(held) > _MAX_PODS_NAMED else ""


def awaited(
    names: Sequence[str], operators: Sequence[OperatorState], seen: Mapping[str, datetime], now: datetime
) -> tuple[AwaitedOperator, ...]:
    """The operators of `names` with their own words; `seen`: since when each has been known to be waited for."""
    states = {operator.name: operator for operator in operators}
    found = []
    for name in names:
        state = states.get(name)
        if state is not None and state.updated:
            continue
        progressing = state.progressing if state else None
        begun = progressing.last_transition_time if progressing and progressing.status == "True" else None
        found.append(
            AwaitedOperator(
                name=name,
                since=begun or seen.get(name, now),
                reason=progressing.reason if progressing else "",
                message=progressing.message if progressing else "",
            )
        )
    return tuple(found)


def of_awaited(cluster: ClusterVersion, waits: Sequence[AwaitedOperator], now: datetime) -> Iterator[Finding]:
    """Operators that the update has waited for longer than usual, unless ClusterVersion says so itself."""
    failing = find(cluster.status.conditions, "Failing")
    if failing is None or failing.status != "False":
        return
    for wait in waits:
        patience = MACHINE_CONFIG_PATIENCE if wait.name == MACHINE_CONFIG else OPERATOR_PATIENCE
        if wait.since is None or now - wait.since <= patience:
            continue
        minutes = int((now - wait.since).total_seconds() // 60)
        why = wait.message or "It does not say why."
        yield Finding(
            check=OPERATOR_SLOW,
            level=WARNING,
            impact=UPDATE_SPEED,
            summary=f"The update has waited for Cluster Operator {wait.name} for over {minutes // 10 * 10} minutes"
            + (f" ({wait.reason})" if wait.reason else ""),
            description=f"{wait.name}: {why}",
            reference=DOCS + "updatewaitsforoperator",
            since=wait.since,
            resources=(operator_ref(wait.name), cluster_version_ref(cluster.metadata.name)),
            identity=wait.name,
        )


def of_pending_pods(pods: Sequence[Pod], started: datetime | None, now: datetime) -> Iterator[Finding]:
    """The platform's own pods that have not started for long: one finding a namespace, reason and owner."""
    groups: dict[tuple[str, str, str], list[Pod]] = {}
    for pod in pods:
        created = pod.metadata.creation_timestamp
        namespace = pod.metadata.namespace
        if pod.status.phase != "Pending" or created is None or not namespace.startswith(_PLATFORM_NAMESPACES):
            continue
        if now - created > POD_PATIENCE and (started is None or created >= started):
            groups.setdefault((namespace, _owner(pod), _why(pod)[0]), []).append(pod)
    for (namespace, owner, reason), stuck in sorted(groups.items()):
        yield _pending(namespace, owner, reason, stuck)


def _pending(namespace: str, owner: str, reason: str, pods: Sequence[Pod]) -> Finding:
    fatal = reason in _FATAL_WAITS
    since = min(pod.metadata.creation_timestamp for pod in pods if pod.metadata.creation_timestamp)
    one = pods[0]
    messages = list(dict.fromkeys(text for pod in pods if (text := _why(pod)[1])))
    where = sorted({pod.spec.node_name for pod in pods if pod.spec.node_name})
    who = f"Pod {_name(namespace, one.metadata.name)} has" if len(pods) == 1 else f"{len(pods)} pods of {owner} have"
    return Finding(
        check=POD_NOT_CREATED,
        level=ERROR if fatal else WARNING,
        impact=UPDATE_STALLED if fatal else UPDATE_SPEED,
        summary=f"{who} not started ({reason or 'Pending'})",
        description=(f"On {', '.join(where[:5])}. " if where else "On no node yet. ")
        + (" | ".join(messages[:3]) or "The kubelet does not say why."),
        reference=DOCS + "podstuckcreating",
        since=since,
        resources=tuple(
            ResourceRef(resource="pods", name=pod.metadata.name, namespace=namespace) for pod in pods[:_MAX_PODS_NAMED]
        ),
        identity=f"{namespace}\0{owner}\0{reason}",
    )


def _owner(pod: Pod) -> str:
    owner = next((owner for owner in pod.metadata.owner_references if owner.controller), None)
    if owner is None:
        return _name(pod.metadata.namespace, pod.metadata.name)
    return f"{owner.kind} {_name(pod.metadata.namespace, owner.name)}"


def _why(pod: Pod) -> tuple[str, str]:
    """The waiting reason of its first container that has one, else why it is not scheduled, and the message."""
    waits = [wait for status in pod.status.container_statuses if (wait := _waiting(status))]
    worst = next((wait for wait in waits if wait[0] in _FATAL_WAITS), waits[0] if waits else None)
    if worst:
        return worst
    scheduled = find(pod.status.conditions, "PodScheduled")
    if scheduled and scheduled.status == "False":
        return scheduled.reason, scheduled.message
    return pod.status.reason, pod.status.message


def _waiting(status: ContainerStatus) -> tuple[str, str] | None:
    wait = status.state.waiting
    return (wait.reason, wait.message) if wait and wait.reason else None


def of_release(cluster: ClusterVersion) -> Iterator[Finding]:
    """A requested release that could not be fetched, verified or accepted: the update does not even begin."""
    accepted = find(cluster.status.conditions, "ReleaseAccepted")
    if accepted is None or accepted.status == "True":
        return
    asked = cluster.spec.desired_update
    what = (asked.version or asked.image) if asked else ""
    unknown = accepted.status == "Unknown"
    yield Finding(
        check=RELEASE_NOT_LOADED,
        level=WARNING if unknown else ERROR,
        impact=UPDATE_STALLED,
        summary=f"The requested release{f' {what}' if what else ''} {'is not' if unknown else 'was not'} accepted"
        f"{' yet' if unknown else ''} ({accepted.reason})",
        description=accepted.message or "ClusterVersion does not say why.",
        reference=DOCS + "releasenotloaded",
        since=accepted.last_transition_time,
        resources=(cluster_version_ref(cluster.metadata.name),),
    )
