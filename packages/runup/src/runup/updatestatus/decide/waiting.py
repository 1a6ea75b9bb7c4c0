"""Finds what an update waits for, beyond what `oc` reports: operators, pods, and the release itself.

Reports operators that take longer than the cluster-version operator allows them, pods that do not start, and releases
that cannot be fetched. Each finding names the objects, so that the next command is obvious.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta

from kubekit.api.conditions import find
from kubekit.api.core_v1 import ContainerStatus, Pod
from kubekit.rules.owners import controller_of
from runup.api.config_v1 import ClusterVersion
from runup.api.update_v1alpha1 import AwaitedOperator, ResourceRef
from runup.rules.platform_namespaces import is_system
from runup.updatestatus.decide.control_plane import MACHINE_CONFIG, OperatorState
from runup.updatestatus.decide.finding import (
    DOCS,
    ERROR,
    UPDATE_SPEED,
    UPDATE_STALLED,
    WARNING,
    Finding,
    cluster_version_ref,
    operator_ref,
)
from runup.updatestatus.decide.insight_names import qualified

OPERATOR_SLOW = "UpdateWaitsForOperator"
POD_NOT_CREATED, RELEASE_NOT_LOADED = "PodStuckCreating", "ReleaseNotLoaded"

# After these times the cluster-version operator itself reports a slow operator (pkg/cvo/status.go).
OPERATOR_PATIENCE = timedelta(minutes=30)
MACHINE_CONFIG_PATIENCE = timedelta(minutes=90)
# The time that pulling a large image on a busy node may take.
POD_PATIENCE = timedelta(minutes=10)
# Waiting reasons that do not pass by waiting.
# Set by the kubelet for images and container configurations that it cannot use.
_FATAL_WAITS = frozenset(
    {
        "ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull", "CreateContainerConfigError",
        "CreateContainerError", "RunContainerError",
    }
)  # fmt: skip
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


def pending_pod_findings(pods: Sequence[Pod], started: datetime | None, now: datetime) -> Iterator[Finding]:
    """Yields a finding for each namespace, owner and reason of the platform's pods that have not started for long."""
    groups: dict[tuple[str, str, str], list[Pod]] = {}
    for pod in pods:
        created = pod.metadata.creation_timestamp
        namespace = pod.metadata.namespace
        if pod.status.phase != "Pending" or created is None or not is_system(namespace):
            continue
        if now - created > POD_PATIENCE and (started is None or created >= started):
            groups.setdefault((namespace, _owner(pod), _why_waiting(pod)[0]), []).append(pod)
    for (namespace, owner, reason), stuck in sorted(groups.items()):
        yield _pending_finding(namespace, owner, reason, stuck)


def _pending_finding(namespace: str, owner: str, reason: str, pods: Sequence[Pod]) -> Finding:
    """Returns the finding about pods of one owner that do not start for one reason."""
    fatal = reason in _FATAL_WAITS
    since = min(pod.metadata.creation_timestamp for pod in pods if pod.metadata.creation_timestamp)
    first_pod = pods[0]
    messages = list(dict.fromkeys(text for pod in pods if (text := _why_waiting(pod)[1])))
    node_names = sorted({pod.spec.node_name for pod in pods if pod.spec.node_name})
    who = (
        f"Pod {qualified(namespace, first_pod.metadata.name)} has"
        if len(pods) == 1
        else f"{len(pods)} pods of {owner} have"
    )
    return Finding(
        check=POD_NOT_CREATED,
        level=ERROR if fatal else WARNING,
        impact=UPDATE_STALLED if fatal else UPDATE_SPEED,
        summary=f"{who} not started ({reason or 'Pending'})",
        description=(f"On {', '.join(node_names[:5])}. " if node_names else "On no node yet. ")
        + (" | ".join(messages[:3]) or "The kubelet does not say why."),
        reference=DOCS + "podstuckcreating",
        since=since,
        resources=tuple(
            ResourceRef(resource="pods", name=pod.metadata.name, namespace=namespace) for pod in pods[:_MAX_PODS_NAMED]
        ),
        identity=f"{namespace}\0{owner}\0{reason}",
    )


def _owner(pod: Pod) -> str:
    owner = controller_of(pod.metadata.owner_references)
    if owner is None:
        return qualified(pod.metadata.namespace, pod.metadata.name)
    return f"{owner.kind} {qualified(pod.metadata.namespace, owner.name)}"


def _why_waiting(pod: Pod) -> tuple[str, str]:
    """Returns the reason and message of a pod's waiting container, a fatal one first, else why it is not scheduled."""
    waits = [wait for status in pod.status.container_statuses if (wait := _waiting_state(status))]
    worst = next((wait for wait in waits if wait[0] in _FATAL_WAITS), waits[0] if waits else None)
    if worst:
        return worst
    scheduled = find(pod.status.conditions, "PodScheduled")
    if scheduled and scheduled.status == "False":
        return scheduled.reason, scheduled.message
    return pod.status.reason, pod.status.message


def _waiting_state(status: ContainerStatus) -> tuple[str, str] | None:
    wait = status.state.waiting
    return (wait.reason, wait.message) if wait and wait.reason else None


def release_findings(cluster: ClusterVersion) -> Iterator[Finding]:
    """Yields a finding if the requested release was not fetched, verified or accepted: the update does not begin."""
    accepted = find(cluster.status.conditions, "ReleaseAccepted")
    if accepted is None or accepted.status == "True":
        return
    desired = cluster.spec.desired_update
    target = (desired.version or desired.image) if desired else ""
    unknown = accepted.status == "Unknown"
    yield Finding(
        check=RELEASE_NOT_LOADED,
        level=WARNING if unknown else ERROR,
        impact=UPDATE_STALLED,
        summary=f"The requested release{f' {target}' if target else ''} {'is not' if unknown else 'was not'} accepted"
        f"{' yet' if unknown else ''} ({accepted.reason})",
        description=accepted.message or "ClusterVersion does not say why.",
        reference=DOCS + "releasenotloaded",
        since=accepted.last_transition_time,
        resources=(cluster_version_ref(cluster.metadata.name),),
    )
