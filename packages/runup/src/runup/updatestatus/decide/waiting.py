"""Finds what an update waits for: drains that budgets block, pods that do not end or start, and operators.

The rules of drains are those of the API server's eviction (`kubekit.rules.eviction_rules`)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial

from kubekit.api.conditions import find, status_of
from kubekit.api.core_v1 import Pod
from kubekit.api.workloads_v1 import PodDisruptionBudget
from kubekit.rules import eviction_rules
from kubekit.rules.owners import controller_of
from kubekit.rules.pod_rules import BROKEN_REASONS, waiting_reason
from runup.api.config_v1 import ClusterVersion
from runup.api.update_v1alpha1 import AwaitedOperator, HealthInsight, ResourceRef, UpdateStatusStatus
from runup.rules.platform_namespaces import is_system
from runup.rules.update_components import version_pod_trouble
from runup.updatestatus.decide import finding as terms
from runup.updatestatus.decide.control_plane import MACHINE_CONFIG, OperatorState
from runup.updatestatus.decide.finding import Finding
from runup.updatestatus.decide.memory import PreviousStatus
from runup.updatestatus.decide.nodes import NodeState, PoolState

OPERATOR_SLOW = "UpdateWaitsForOperator"
POD_NOT_CREATED, RELEASE_NOT_LOADED = "PodStuckCreating", "ReleaseNotLoaded"

# After these times the cluster-version operator itself reports a slow operator (pkg/cvo/status.go).
OPERATOR_PATIENCE = timedelta(minutes=30)
MACHINE_CONFIG_PATIENCE = timedelta(minutes=90)
# The time that pulling a large image on a busy node may take.
POD_PATIENCE = timedelta(minutes=10)
_MAX_PODS_NAMED = 12


def awaited_operators(
    names: Sequence[str], operators: Sequence[OperatorState], first_seen: Mapping[str, datetime], now: datetime
) -> tuple[AwaitedOperator, ...]:
    """Returns the operators of `names` that are not updated, with their own messages.

    `first_seen` has the time since when each is known to be waited for.
    """
    states = {operator.name: operator for operator in operators}
    waiting_operators = []
    for name in names:
        state = states.get(name)
        if state is not None and state.updated:
            continue
        progressing = state.progressing if state else None
        begun = progressing.last_transition_time if progressing and progressing.status == "True" else None
        waiting_operators.append(
            AwaitedOperator(
                name=name,
                since=begun or first_seen.get(name, now),
                reason=progressing.reason if progressing else "",
                message=progressing.message if progressing else "",
            )
        )
    return tuple(waiting_operators)


def awaited_operator_findings(
    cluster: ClusterVersion, waits: Sequence[AwaitedOperator], now: datetime
) -> Iterator[Finding]:
    """Yields operators that the update has waited for longer than usual, unless ClusterVersion itself says so."""
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
            level=terms.WARNING,
            impact=terms.UPDATE_SPEED,
            summary=f"The update has waited for Cluster Operator {wait.name} for over {minutes // 10 * 10} minutes"
            + (f" ({wait.reason})" if wait.reason else ""),
            description=f"{wait.name}: {why}",
            reference=terms.DOCS + "updatewaitsforoperator",
            since=wait.since,
            resources=(terms.operator_ref(wait.name), terms.cluster_version_ref(cluster.metadata.name)),
            identity=wait.name,
        )


def pending_pod_findings(pods: Sequence[Pod], started: datetime | None, now: datetime) -> Iterator[Finding]:
    """Yields a finding for each namespace, owner and reason of the platform's pods that have not started for long."""
    groups: dict[tuple[str, str, str], list[Pod]] = {}
    for pod in pods:
        created, namespace = pod.metadata.creation_timestamp, pod.metadata.namespace
        if pod.status.phase != "Pending" or created is None or not is_system(namespace):
            continue
        if now - created > POD_PATIENCE and (started is None or created >= started):
            controller = controller_of(pod.metadata.owner_references)
            owner = terms.qualified(namespace, controller.name if controller else pod.metadata.name)
            owner = f"{controller.kind} {owner}" if controller else owner
            groups.setdefault((namespace, owner, _why_waiting(pod)[0]), []).append(pod)
    for (namespace, owner, reason), stuck in sorted(groups.items()):
        fatal = reason in BROKEN_REASONS
        messages = list(dict.fromkeys(text for pod in stuck if (text := _why_waiting(pod)[1])))
        node_names = sorted({pod.spec.node_name for pod in stuck if pod.spec.node_name})
        place = f"On {', '.join(node_names[:5])}. " if node_names else "On no node yet. "
        who = f"{len(stuck)} pods of {owner} have"
        if len(stuck) == 1:
            who = f"Pod {terms.qualified(namespace, stuck[0].metadata.name)} has"
        yield Finding(
            check=POD_NOT_CREATED,
            level=terms.ERROR if fatal else terms.WARNING,
            impact=terms.UPDATE_STALLED if fatal else terms.UPDATE_SPEED,
            summary=f"{who} not started ({reason or 'Pending'})",
            description=place + (" | ".join(messages[:3]) or "The kubelet does not say why."),
            reference=terms.DOCS + "podstuckcreating",
            since=min(pod.metadata.creation_timestamp for pod in stuck if pod.metadata.creation_timestamp),
            resources=tuple(_pod_ref(pod) for pod in stuck[:_MAX_PODS_NAMED]),
            identity=f"{namespace}\0{owner}\0{reason}",
        )


def _pod_ref(pod: Pod) -> ResourceRef:
    return ResourceRef(resource="pods", name=pod.metadata.name, namespace=pod.metadata.namespace)


def _pod_name(pod: Pod) -> str:
    return terms.qualified(pod.metadata.namespace, pod.metadata.name)


def _why_waiting(pod: Pod) -> tuple[str, str]:
    """Returns the reason and message of a pod's waiting container, a fatal one first, else why it is not scheduled."""
    reason, message = waiting_reason(pod)
    if reason:
        return reason, message
    scheduled = find(pod.status.conditions, "PodScheduled")
    if scheduled and scheduled.status == "False":
        return scheduled.reason, scheduled.message
    return pod.status.reason, pod.status.message


def release_findings(cluster: ClusterVersion, pods: Sequence[Pod], now: datetime) -> Iterator[Finding]:
    """Yields a finding if the requested release was not fetched, verified or accepted: the update does not begin.

    `pods` may contain the pod that fetches it, which fails before ClusterVersion reports it.
    """
    accepted = find(cluster.status.conditions, "ReleaseAccepted")
    if accepted is None or accepted.status == "True":
        return
    failing = version_pod_trouble(pods, now)
    desired = cluster.spec.desired_update
    target = (desired.version or desired.image) if desired else ""
    unknown = accepted.status == "Unknown"
    yield Finding(
        check=RELEASE_NOT_LOADED,
        level=terms.WARNING if unknown and failing is None else terms.ERROR,
        impact=terms.UPDATE_STALLED,
        summary=f"The requested release{f' {target}' if target else ''} {'is not' if unknown else 'was not'} accepted"
        f"{' yet' if unknown else ''} ({accepted.reason})"
        + (f": pod {failing[0].metadata.name} {failing[1].why}" if failing is not None else ""),
        description=accepted.message or "ClusterVersion does not say why.",
        reference=terms.DOCS + "releasenotloaded",
        since=accepted.last_transition_time,
        resources=(
            terms.cluster_version_ref(cluster.metadata.name),
            *((_pod_ref(failing[0]),) if failing is not None else ()),
        ),
        identity=cluster.metadata.name,
    )


DRAIN_BLOCKED, POD_NOT_ENDED, POD_ENDS_LATE = "DrainBlocked", "PodStuckTerminating", "PodEndsLate"
OF_DRAINS = frozenset({DRAIN_BLOCKED, POD_NOT_ENDED, POD_ENDS_LATE})
_BY_NODE = frozenset({DRAIN_BLOCKED, POD_ENDS_LATE})

# The usual duration of a drain: the estimate of the phase Draining.
DRAIN_PATIENCE = timedelta(minutes=10)
# The time that the kubelet may need beyond a pod's own grace period.
TERMINATION_PATIENCE = timedelta(minutes=5)
_ANY_TIME = datetime(1970, 1, 1, tzinfo=UTC)
# The condition by which the disruption controller says whether evictions are allowed.
_DISRUPTION_ALLOWED = "DisruptionAllowed"


def drain_findings(
    pools: Sequence[PoolState],
    pods: Sequence[Pod],
    budgets: Sequence[PodDisruptionBudget],
    memory: PreviousStatus,
    now: datetime,
    read_nodes: frozenset[str] | None = None,
    pending: Sequence[Pod] = (),
) -> Iterator[Finding]:
    """Yields a finding for each node whose drain a budget blocks, and for each pod that does not end, or not soon.

    They count from the beginning of the drain, which neither a restart of the controller nor a pod that goes changes:
    the time since a budget is exhausted is not the age of the drain. The findings of a node that is not in
    `read_nodes` (None: all are) are kept until its pods are listed again: not known yet is not over.
    """
    blocked_since, earlier_findings = memory.findings(DRAIN_BLOCKED), memory.findings_of(OF_DRAINS)
    by_namespace: dict[str, list[PodDisruptionBudget]] = {}
    for budget in budgets:
        by_namespace.setdefault(budget.metadata.namespace, []).append(budget)
    by_node: dict[str, list[Pod]] = {}
    for pod in pods:
        if eviction_rules.needs_eviction(pod.status.phase, pod.metadata.owner_references, pod.metadata.annotations):
            by_node.setdefault(pod.spec.node_name, []).append(pod)
    for pool in pools:
        for node in pool.nodes:
            if node.phase != "Draining":
                continue
            if read_nodes is not None and node.name not in read_nodes:
                yield from (_keep_finding(old, node.name, pool, now) for old in earlier_findings.get(node.name, ()))
                continue
            # The drain has no pod left to evict.
            if node.name not in by_node:
                continue
            blocked = [
                (pod, refusing)
                for pod in by_node[node.name]
                for refusing in _refusing_budgets(pod, by_namespace.get(pod.metadata.namespace, ()))
            ]
            if blocked:
                # Without any of them it is now if the cluster was watched before, and not known at a first look.
                finding_time = blocked_since.get(node.name)
                updating = memory.node_updating_since(pool.layer, terms.uid_of_object("node", node.name))
                moments = [moment for moment in (node.drain_begun, finding_time, updating) if moment is not None]
                drain_began_at = min(moments, default=memory.stamp if memory.was_watched else None)
                replacements = _pending_of([budget for _, budget in blocked], pending)
                yield _drain_finding(
                    node.name, pool, held_pods=blocked, since=drain_began_at, now=now, replacements=replacements
                )
            yield from _never_ending(by_node[node.name], pool, now)
            yield from _ending_late(node, by_node[node.name], pool, now)


def _keep_finding(old: HealthInsight, node: str, pool: PoolState, now: datetime) -> Finding:
    """Returns the finding that `old` was made of; a blocked drain continues to age."""
    since = old.started_at or old.first_observed_at
    long = old.check == DRAIN_BLOCKED and since is not None and now - since > DRAIN_PATIENCE
    return Finding(
        check=old.check,
        level=terms.ERROR if long else old.impact.level,
        impact=terms.UPDATE_STALLED if long else old.impact.type,
        summary=old.impact.summary,
        description=old.impact.description,
        reference=old.remediation.reference,
        since=old.started_at,
        scope=old.scope.type,
        resources=old.scope.resources,
        identity=node if old.check in _BY_NODE else "",
        pool=pool.layer,
    )


def held_up_nodes(previous: UpdateStatusStatus | None) -> frozenset[str]:
    """Returns the nodes whose drains are held up according to `previous`: they are examined first."""
    return frozenset(PreviousStatus(previous, _ANY_TIME).findings_of(OF_DRAINS))


def _refusing_budgets(pod: Pod, budgets: Sequence[PodDisruptionBudget]) -> list[PodDisruptionBudget]:
    """Returns the budgets that refuse the eviction of `pod` (pkg/registry/core/pod/storage/eviction.go)."""
    if eviction_rules.is_evicted_without_budget(pod.status.phase, deleted=pod.metadata.deletion_timestamp is not None):
        return []
    covering = eviction_rules.covering_budgets(budgets, pod.metadata.namespace, pod.metadata.labels)
    if len(covering) > 1:
        return covering
    ready = status_of(pod.status.conditions, "Ready") == "True"
    return [
        budget
        for budget in covering
        if eviction_rules.refusal_of(eviction_rules.budget_now(budget), ready=ready) is not None
    ]


def _never_ending(pods: Sequence[Pod], pool: PoolState, now: datetime) -> Iterator[Finding]:
    """Yields a finding for each pod that is still terminating long after its grace period: the drain waits for it."""
    for pod in pods:
        due = pod.metadata.deletion_timestamp
        if due is None or now - due <= TERMINATION_PATIENCE:
            continue
        finalizers = ", ".join(pod.metadata.finalizers)
        yield Finding(
            check=POD_NOT_ENDED,
            level=terms.ERROR,
            impact=terms.UPDATE_STALLED,
            summary=f"Node {pod.spec.node_name} cannot be drained: pod {_pod_name(pod)} does not end",
            description=f"It should have ended at {due:%Y-%m-%dT%H:%M:%SZ}, its grace period included. "
            + (
                f"It has finalizers that somebody has to remove: {finalizers}."
                if finalizers
                else "See on the node whether its container or a volume hangs."
            ),
            reference=terms.DOCS + "podstuckterminating",
            since=due,
            scope=pool.scope,
            resources=(terms.node_ref(pod.spec.node_name), _pod_ref(pod)),
            pool=pool.layer,
        )


def _ending_late(node: NodeState, pods: Sequence[Pod], pool: PoolState, now: datetime) -> Iterator[Finding]:
    """Yields a finding if pods of the node may take longer to end than a drain usually does.

    The deletionTimestamp of a pod is the end of its grace period.
    """
    ends = [(pod.metadata.deletion_timestamp, pod) for pod in pods if pod.metadata.deletion_timestamp]
    late = sorted(((due, pod) for due, pod in ends if due - now > DRAIN_PATIENCE), key=lambda each: each[0])
    if not late:
        return
    begun = min((time for time in (node.drain_begun, *(_deleted_at(pod) for _, pod in late)) if time), default=None)
    long = begun is None or now - begun > DRAIN_PATIENCE
    names = [_pod_name(pod) for _, pod in late]
    last = late[-1][0]
    texts = [
        f"pod {_pod_name(pod)} may take until {due:%Y-%m-%dT%H:%M:%SZ}, by its grace period"
        f"{f' of {seconds} s' if (seconds := pod.metadata.deletion_grace_period_seconds) else ''}"
        for due, pod in late[:_MAX_PODS_NAMED]
    ]
    yield Finding(
        check=POD_ENDS_LATE,
        level=terms.ERROR if long else terms.WARNING,
        impact=terms.UPDATE_STALLED if long else terms.UPDATE_SPEED,
        summary=f"The drain of node {node.name} waits for {terms.name_or_number('pod', names)}, until "
        f"{last:%Y-%m-%dT%H:%M:%SZ} at the latest; {'it' if len(names) == 1 else 'they'} may be deleted",
        description=f"The drain waits until evicted pods have ended: {'; '.join(texts)}. A pod that may be "
        f"interrupted can be deleted at once: `{pool.client} delete pod NAME -n NAMESPACE --grace-period=0 --force`.",
        reference=terms.DOCS + "podendslate",
        since=begun,
        scope=pool.scope,
        resources=(terms.node_ref(node.name), *(_pod_ref(pod) for _, pod in late[:_MAX_PODS_NAMED])),
        identity=node.name,
        pool=pool.layer,
    )


def _pending_of(budgets: Sequence[PodDisruptionBudget], pending: Sequence[Pod]) -> str:
    """Returns a sentence about pods that the budgets count on and that do not start, or an empty string."""
    texts = []
    for pod in pending:
        if any(eviction_rules.selects(budget, pod.metadata.namespace, pod.metadata.labels) for budget in budgets):
            why = ": ".join(text for text in _why_waiting(pod) if text)
            texts.append(f"pod {_pod_name(pod)} ({why or 'Pending'})")
    shown = ", ".join(texts[:_MAX_PODS_NAMED])
    return f"Pods of theirs that do not start: {shown}. " if texts else ""


def _deleted_at(pod: Pod) -> datetime | None:
    """Returns when the deletion of a pod was requested."""
    due, grace_s = pod.metadata.deletion_timestamp, pod.metadata.deletion_grace_period_seconds
    return due - timedelta(seconds=grace_s) if due and grace_s else None


def _drain_finding(
    node: str,
    pool: PoolState,
    held_pods: Sequence[tuple[Pod, PodDisruptionBudget]],
    since: datetime | None,
    now: datetime,
    replacements: str = "",
) -> Finding:
    """Returns the finding that budgets hold up the drain of a Node; `since` is when the drain began."""
    long = since is not None and now - since > DRAIN_PATIENCE
    budgets = {terms.qualified(budget.metadata.namespace, budget.metadata.name): budget for _, budget in held_pods}
    pods = {_pod_name(pod): pod for pod, _ in held_pods}
    texts = []
    for pod, budget in held_pods[:_MAX_PODS_NAMED]:
        # Since when the budget has allowed no disruption, if it says so.
        allowed = find(budget.status.conditions, _DISRUPTION_ALLOWED)
        clause = ""
        if failed := eviction_rules.cannot_be_computed(budget):
            why = ": ".join(text for text in (failed.reason, failed.message) if text)
            clause = f", not computed: {why}"
        elif not eviction_rules.is_current(budget):
            clause = ", its status older than its spec"
        elif allowed is not None and allowed.status == "False" and allowed.last_transition_time is not None:
            clause = f", no eviction allowed since {allowed.last_transition_time:%Y-%m-%dT%H:%M:%SZ}"
        texts.append(
            f"pod {_pod_name(pod)} is covered by PodDisruptionBudget {budget.metadata.name} "
            f"({eviction_rules.rule_of_budget(budget)}, {budget.status.current_healthy} of "
            f"{budget.status.expected_pods} pods healthy, {budget.status.desired_healthy} demanded{clause})"
        )
    more = f", and {len(held_pods) - _MAX_PODS_NAMED} more" if len(held_pods) > _MAX_PODS_NAMED else ""
    who, whom = terms.name_or_number("PodDisruptionBudget", list(budgets)), terms.name_or_number("pod", list(pods))
    why = f"{who} {'allows' if len(budgets) == 1 else 'allow'} no eviction of {whom}"
    if all(
        eviction_rules.refusal_of(eviction_rules.budget_now(budget), ready=True) is None for budget in budgets.values()
    ):
        why = f"{who} cover {whom}, and no pod is evicted that more than one covers"
    remedy = (
        "Run more replicas or bring those that are not healthy back, relax the budget for the time of the update, or "
        "delete the pods that may be interrupted."
    )
    if failed := next(filter(None, map(eviction_rules.cannot_be_computed, budgets.values())), None):
        why += f" (not computed: {failed.reason})"
        remedy = f"{eviction_rules.FIX_NOT_COMPUTED} Or delete the pods that may be interrupted."
    remedy = f"{replacements}{remedy}"
    budget_ref = partial(ResourceRef, group="policy", resource="poddisruptionbudgets")
    return Finding(
        check=DRAIN_BLOCKED,
        level=terms.ERROR if long else terms.WARNING,
        impact=terms.UPDATE_STALLED if long else terms.UPDATE_SPEED,
        summary=f"Node {node} cannot be drained: {why}",
        description=f"{pool.updater} waits until these pods may be evicted: {'; '.join(texts)}{more}. " + remedy,
        reference=terms.DOCS + "drainblocked",
        since=since,
        scope=pool.scope,
        resources=(
            terms.node_ref(node),
            *(_pod_ref(pod) for pod in pods.values()),
            *(budget_ref(name=each.metadata.name, namespace=each.metadata.namespace) for each in budgets.values()),
        ),
        identity=node,
        pool=pool.layer,
    )
