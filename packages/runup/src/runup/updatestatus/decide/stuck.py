"""Finds what an update does not get over: pools, nodes and components that do not move, and a lack of any progress.

`oc` reports none of these states. They are decided by the rules that the checks before an update use, too
(`runup.rules`, `kubekit.rules`). A text never contains an age, so that a finding stays equal while only time passes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from functools import partial
from itertools import pairwise

from kubekit.api.core_v1 import Pod
from kubekit.lang.text import count, timestamp
from kubekit.rules.eviction_rules import ENDED
from kubekit.rules.owners import controller_of
from kubekit.rules.pod_rules import PodTrouble, is_looping, trouble_of
from runup.api.config_v1 import ClusterVersion
from runup.api.machineconfig_v1 import MachineConfigNode
from runup.api.platform_v1 import CertificateSigningRequest, VolumeAttachment
from runup.api.update_v1alpha1 import ResourceRef
from runup.rules import machine_config
from runup.rules.certificate_requests import unanswered
from runup.rules.platform_namespaces import is_system
from runup.rules.update_components import (
    COMPONENTS,
    DAEMON,
    MACHINE_CONFIG_NAMESPACE,
    ComponentTrouble,
    is_pod_of,
)
from runup.rules.volume_attachments import stuck_attachments
from runup.updatestatus.decide import control_plane as plane
from runup.updatestatus.decide import finding as terms
from runup.updatestatus.decide import nodes as states
from runup.updatestatus.decide.control_plane import ControlPlaneState, OperatorState
from runup.updatestatus.decide.finding import Finding
from runup.updatestatus.decide.memory import PreviousStatus
from runup.updatestatus.decide.nodes import NodeState, PoolState
from runup.updatestatus.decide.snapshot import Snapshot, readable
from runup.updatestatus.decide.waiting import DRAIN_PATIENCE

POOL_DEGRADED, POOL_BLOCKED = "MachineConfigPoolDegraded", "MachineConfigPoolBlocked"
NODE_LATE, NODE_AWAY, NODE_PRESSED = "NodeUpdateLate", "NodeNotBack", "NodeUnderPressure"
CONFIG_MISSING, DAEMON_STUCK = "NodeConfigurationMissing", "MachineConfigDaemonCannotAct"
COMPONENT_STUCK, OPERATOR_SILENT = "ComponentCannotAct", "ClusterOperatorSilent"
PLATFORM_POD = "PlatformPodFailing"
CERTIFICATES, VOLUMES = "CertificateRequestsPending", "VolumeAttachmentStuck"
NO_PROGRESS = "UpdateMakesNoProgress"

# How long a node may be in a phase. Without MachineConfigNodes only its cordon is dated, so the time of the drain is
# contained in that of the later phases. Twice of it is an error. A pool whose earlier nodes took longer gets more.
PHASE_LIMITS = {
    states.DRAINING: timedelta(minutes=30),
    states.UPDATING: timedelta(minutes=45),
    states.REBOOTING: timedelta(minutes=45),
}
# How long a node may be without its kubelet: the firmware of a large server takes ten minutes.
AWAY_LIMIT = timedelta(minutes=15)
PRESSURE_PATIENCE = timedelta(minutes=1)
# How long nothing at all may move, and the share of the last update's time that is allowed where that was longer.
STILL_LIMIT, STILL_SHARE = timedelta(minutes=30), 1 / 3
_NAMED = 12
# So many nodes have their command in the summary, too.
_SHOWN = 3


def stuck_findings(
    snapshot: Snapshot,
    pools: Sequence[PoolState],
    state: ControlPlaneState | None,
    *,
    components: Iterable[ComponentTrouble],
    memory: PreviousStatus,
    now: datetime,
) -> Iterator[Finding]:
    """Yields the findings about everything that is being updated; `components` are those that cannot act."""
    requests = unanswered(readable(snapshot.certificate_requests), now)
    started = state.started if state is not None else None
    steps = {each.metadata.name: each for each in snapshot.machine_config_nodes}
    configs = {config.metadata.name for config in readable(snapshot.machine_configs)}
    if "machine_configs" in snapshot.incomplete:
        configs = set()
    daemons = [
        pod
        for pod in {
            pod.metadata.name: pod for pod in (*readable(snapshot.draining_pods), *readable(snapshot.component_pods))
        }.values()
        if is_pod_of(pod, DAEMON, MACHINE_CONFIG_NAMESPACE)
    ]
    for pool in pools:
        # The machine-config operator is not done before the pool of the control plane is well
        # (pkg/operator/sync.go, syncRequiredMachineConfigPools).
        if not pool.is_complete or pool.is_control_plane:
            yield from _degraded_pool(pool)
        if pool.is_complete:
            continue
        if not pool.paused:
            yield from _blocked_pool(pool, now)
        yield from _missing_configurations(pool, configs)
        yield from _stuck_daemons(pool, daemons, now)
        for node in pool.nodes:
            yield from stuck_node(
                node, pool, steps.get(node.name), started=started, requests=requests, memory=memory, now=now
            )
    yield from map(_component_finding, components)
    yield from _failing_pods(readable(snapshot.component_pods), pools, now)
    yield from _silent_operators(state.operators if state is not None else ())
    yield from shared_findings(requests, snapshot.volume_attachments, now)


def _degraded_pool(pool: PoolState) -> Iterator[Finding]:
    """Yields the finding that a pool is degraded, unless one of its degraded nodes says the same."""
    causes = [each for each in pool.degradations if not (each.type == "NodeDegraded" and pool.degraded)]
    if not causes or (pool.degraded and all(each.type == "Degraded" for each in causes)):
        return
    texts = [": ".join(text for text in (each.type, each.reason, each.message) if text) for each in causes]
    yield Finding(
        check=POOL_DEGRADED,
        level=terms.ERROR,
        impact=terms.UPDATE_STALLED,
        summary=f"Machine config pool {pool.name} is degraded: "
        + ", ".join(f"{each.type} ({each.reason})" if each.reason else each.type for each in causes),
        description=f"{'; '.join(texts)}. The machine-config operator does not update the nodes of a pool in this "
        f"state: fix what `oc describe mcp {pool.name}` names.",
        reference=terms.DOCS + "machineconfigpooldegraded",
        since=min((each.last_transition_time for each in causes if each.last_transition_time), default=None),
        scope=pool.scope,
        resources=(terms.pool_ref(pool.name),),
        pool=pool.layer,
    )


def _blocked_pool(pool: PoolState, now: datetime) -> Iterator[Finding]:
    """Yields the finding that nodes of a pool use up its maxUnavailable, while none of them is being updated.

    The machine-config operator counts a node that is cordoned or not ready as unavailable, no matter who cordoned it
    (pkg/controller/node/status.go, getUnavailableMachines).
    """
    waiting = [node for node in pool.nodes if node.phase == states.PENDING and node.desired != pool.wanted]
    away = [node for node in pool.nodes if node.takes_place]
    moving = any(
        node.updating or any(each.reason == machine_config.DAEMON_BUSY for each in node.troubles) for node in pool.nodes
    )
    if not waiting or len(away) < pool.allowed or moving:
        return
    unschedulable = machine_config.UNSCHEDULABLE
    cordoned = [node.name for node in away if any(each.reason == unschedulable for each in node.troubles)]
    by_hand = [node.name for node in away if node.name in cordoned and not node.held]
    texts = [f"{node.name} ({', '.join(each.reason for each in node.troubles)})" for node in away]
    moments = [node.cordoned_at or node.ready_since for node in away]
    known = [moment for moment in moments if moment is not None]
    # The pool is held up since its last free place was taken, or since it has something to do.
    since = max((time for time in (*sorted(known)[: pool.allowed], pool.began) if time is not None), default=None)
    long = since is None or now - since > DRAIN_PATIENCE
    names = [node.name for node in away]
    remedies = dict.fromkeys(node.held for node in away if node.held)
    if by_hand:
        remedies[f"Release those that are cordoned: `oc adm uncordon {' '.join(by_hand[:_NAMED])}`."] = None
    remedy = " ".join(remedies) or "Bring those that are not ready back or remove them."
    yield Finding(
        check=POOL_BLOCKED,
        level=terms.ERROR if long else terms.WARNING,
        impact=terms.UPDATE_STALLED if long else terms.UPDATE_SPEED,
        summary=f"Machine config pool {pool.name} does not update its nodes: {terms.name_or_number('node', names)} "
        f"{'uses' if len(names) == 1 else 'use'} up maxUnavailable {pool.allowed}"
        + (f" ({'cordoned' if cordoned else 'not available'})" if len(names) == 1 else "")
        + (f"; `oc adm uncordon {' '.join(by_hand)}`" if 0 < len(by_hand) <= _SHOWN else ""),
        description=f"{count(len(waiting), 'node')} of the pool {'waits' if len(waiting) == 1 else 'wait'}. At most "
        f"{pool.allowed} may be unavailable at a time, and unavailable are: {', '.join(texts[:_NAMED])}. {remedy}",
        reference=terms.DOCS + "machineconfigpoolblocked",
        since=since,
        scope=pool.scope,
        resources=(terms.pool_ref(pool.name), *map(terms.node_ref, names[:_NAMED])),
        identity=pool.name,
        pool=pool.layer,
    )


def _missing_configurations(pool: PoolState, configs: Collection[str]) -> Iterator[Finding]:
    """Yields the findings that a pool, or one of its nodes, should have a MachineConfig that does not exist."""
    if not configs:
        return
    users = {node.desired: node.name for node in pool.nodes if not node.updated} | {pool.wanted: ""}
    for name, node in sorted(users.items()):
        if name and name not in configs:
            who = f"Node {node}" if node else f"Machine config pool {pool.name}"
            ref = terms.node_ref(node) if node else terms.pool_ref(pool.name)
            yield Finding(
                check=CONFIG_MISSING,
                level=terms.ERROR,
                impact=terms.UPDATE_STALLED,
                summary=f"{who} cannot be updated: MachineConfig {name} does not exist",
                description=f"{who} should have the configuration {name}, which the cluster does not have. The "
                "machine-config daemon needs it; restore it, or set the node's annotation desiredConfig to the "
                "configuration of its pool.",
                reference=terms.DOCS + "nodeconfigurationmissing",
                scope=pool.scope,
                resources=(ref,),
                pool=pool.layer,
            )


def _stuck_daemons(pool: PoolState, daemons: Iterable[Pod], now: datetime) -> Iterator[Finding]:
    """Yields the finding that the machine-config daemon cannot act on nodes of the pool that are not updated."""
    nodes = {node.name: node for node in pool.nodes if not node.updated}
    # Pods of a node that is away are not ready either; that is reported of the node.
    failing = [
        (pod, trouble)
        for pod in sorted(daemons, key=lambda pod: pod.metadata.name)
        if (node := nodes.get(pod.spec.node_name)) and node.ready in ("True", "") and pod.status.phase not in ENDED
        if (trouble := trouble_of(pod, now)) is not None
    ]
    if not failing:
        return
    on = [pod.spec.node_name for pod, _ in failing]
    moving = any(nodes[name].updating for name in on)
    texts = [f"on node {pod.spec.node_name} pod {pod.metadata.name} {trouble.why}" for pod, trouble in failing[:_NAMED]]
    yield Finding(
        check=DAEMON_STUCK,
        level=terms.ERROR if moving else terms.WARNING,
        impact=terms.UPDATE_STALLED if moving else terms.UPDATE_SPEED,
        summary=f"The machine-config daemon cannot act on {terms.name_or_number('node', on)}",
        description=f"{'; '.join(texts)}. A node is not updated without its daemon: see `oc logs -n "
        f"{MACHINE_CONFIG_NAMESPACE} {failing[0][0].metadata.name} -c {DAEMON}`.",
        reference=terms.DOCS + "machineconfigdaemoncannotact",
        since=min((trouble.since for _, trouble in failing if trouble.since), default=None),
        scope=pool.scope,
        resources=(*map(terms.node_ref, on[:_NAMED]), *(_pod_ref(pod) for pod, _ in failing[:_NAMED])),
        identity=f"daemons of {pool.name}",
        pool=pool.layer,
    )


def stuck_node(
    node: NodeState,
    pool: PoolState,
    steps: MachineConfigNode | None,
    *,
    started: datetime | None,
    requests: Sequence[CertificateSigningRequest],
    memory: PreviousStatus,
    now: datetime,
) -> Iterator[Finding]:
    """Yields the findings about a node that is being updated: it is away, late, or under pressure."""
    if not node.updating or node.degraded:
        return
    finding = partial(
        Finding, scope=pool.scope, resources=(terms.node_ref(node.name),), pool=pool.layer, identity=node.name
    )
    if node.pressure and (node.pressed_since is None or now - node.pressed_since >= PRESSURE_PATIENCE):
        yield finding(
            check=NODE_PRESSED,
            level=terms.WARNING,
            impact=terms.UPDATE_SPEED,
            summary=f"Node {node.name} reports {node.pressure} while it is updated",
            description="The images of the release need several gigabytes of disk, and the kubelet evicts pods: make "
            f"room on the node ({pool.prune_of(node.name)}).",
            reference=terms.DOCS + "nodeunderpressure",
            since=node.pressed_since,
        )
    away = node.ready not in ("True", "")
    since = node.ready_since if away else None
    if since is None:
        uid = terms.uid_of_object("node", node.name)
        since = _phase_began(node, pool, steps, started) or memory.node_updating_since(pool.layer, uid)
    if away:
        limit = max(AWAY_LIMIT, longest_of_earlier(pool))
    else:
        limit = max(PHASE_LIMITS[node.phase], 2 * longest_of_earlier(pool))
    if since is None or now - since <= limit:
        return
    too_late = now - since > 2 * limit
    if away:
        summary, description = _away_texts(node, pool.client, since, requests)
    else:
        summary, description = _late_texts(node, pool, steps, since=since, limit=limit)
    yield finding(
        check=NODE_AWAY if away else NODE_LATE,
        level=terms.ERROR if too_late else terms.WARNING,
        impact=terms.UPDATE_STALLED if too_late else terms.UPDATE_SPEED,
        summary=summary,
        description=description,
        reference=terms.DOCS + ("nodenotback" if away else "nodeupdatelate"),
        since=since,
    )


def _away_texts(
    node: NodeState, client: str, since: datetime, requests: Sequence[CertificateSigningRequest]
) -> tuple[str, str]:
    """Returns the summary and description of a node whose kubelet is not ready while the node is updated."""
    own = [each.metadata.name for each in requests if each.spec.username.endswith(f":{node.name}")]
    asked = ""
    if own:
        asked = f" Its certificate requests wait for an answer: `{_approve(client)} {' '.join(own)}`."
    back = node.phase == states.REBOOTING
    doing = "has not come back from its reboot" if back else f"is not ready in phase {node.phase} of its update"
    why = node.ready_text.rstrip(".") or "no reason given"
    return f"Node {node.name} {doing} ({why})", (
        f"The kubelet has not been ready since {timestamp(since)}: {why}.{asked} See the machine's console, and "
        f"`{client} describe node {node.name}`."
    )


def _approve(client: str) -> str:
    """Returns the command that approves a certificate request, without its name."""
    return f"{client}{' adm' if client == 'oc' else ''} certificate approve"


def _late_texts(
    node: NodeState, pool: PoolState, steps: MachineConfigNode | None, *, since: datetime, limit: timedelta
) -> tuple[str, str]:
    """Returns the summary and description of a node that is in a phase of its update for too long."""
    minutes = int(limit.total_seconds() // 60)
    step = next((each for each in (steps.status.conditions if steps else ()) if each.status == "Unknown"), None)
    doing = f" Its step {step.type} is under way{f': {step.message}' if step.message else ''}." if step else ""
    return f"Node {node.name} has been in phase {node.phase} for longer than usual", (
        f"The last change of this update on the node was at {timestamp(since)}. The phase {node.phase} usually ends "
        f"within {minutes} minutes of it.{doing} {pool.log_of(node.name)}"
    )


def _phase_began(
    node: NodeState, pool: PoolState, steps: MachineConfigNode | None, started: datetime | None
) -> datetime | None:
    """Returns when the node last showed a change of this update: its cordon, its kubelet came back, or a step ended.

    The condition Updating of a pool may be younger than the cordon: it changes when the pool is degraded in between.
    """
    since_update = min((moment for moment in (pool.began, started) if moment is not None), default=None)
    ends = [each.last_transition_time for each in steps.status.conditions] if steps is not None else []
    moments = [moment for moment in (node.cordoned_at, node.ready_since, *ends) if moment is not None]
    return max((moment for moment in moments if since_update is not None and moment >= since_update), default=None)


def longest_of_earlier(pool: PoolState) -> timedelta:
    """Returns the longest time between nodes of the pool that came back one after another in this update."""
    if pool.began is None:
        return timedelta()
    back = sorted(node.ready_since for node in pool.nodes if node.updated and node.ready_since)
    return max(
        (after - before for before, after in pairwise([t for t in back if t >= pool.began])), default=timedelta()
    )


def _component_finding(trouble: ComponentTrouble) -> Finding:
    component = trouble.component
    summary = f"{component.name} cannot act, so {component.effect}: {trouble.why}"
    if not trouble.stopped:
        summary = f"{component.name} runs in part: {trouble.why}"
    refs = [_pod_ref(pod) for pod in trouble.pods[:_NAMED]] or [
        ResourceRef(group="apps", resource="deployments", name=component.name, namespace=trouble.namespace)
    ]
    return Finding(
        check=COMPONENT_STUCK,
        level=terms.ERROR if trouble.stopped else terms.WARNING,
        impact=terms.UPDATE_STALLED if trouble.stopped else terms.UPDATE_SPEED,
        summary=summary,
        description=f"{trouble.why}. See `oc get pods -n {trouble.namespace}`, and the log of the pod that fails: "
        f"`oc logs -n {trouble.namespace} NAME --previous`.",
        reference=terms.DOCS + "componentcannotact",
        since=trouble.since,
        resources=tuple(refs),
        identity=f"{trouble.namespace}/{component.name}",
    )


def _failing_pods(pods: Iterable[Pod], pools: Sequence[PoolState], now: datetime) -> Iterator[Finding]:
    """Yields the platform's pods of each owner that restart again and again, or cannot start any more.

    Those of `COMPONENTS` have separate findings, and on a node that is being updated or away such pods are usual.
    """
    restless = {node.name for pool in pools for node in pool.nodes if node.updating or node.ready not in ("True", "")}
    groups: dict[tuple[str, str], list[tuple[Pod, PodTrouble]]] = {}
    for pod in sorted(pods, key=lambda pod: pod.metadata.name):
        namespace, node = pod.metadata.namespace, pod.spec.node_name
        if pod.status.phase != "Running" or pod.metadata.deletion_timestamp is not None or node in restless:
            continue
        if not is_system(namespace) or not is_looping(pod) or _is_of_component(pod):
            continue
        if (trouble := trouble_of(pod, now)) is not None:
            controller = controller_of(pod.metadata.owner_references)
            owner = f"{controller.kind} {controller.name}" if controller else pod.metadata.name
            groups.setdefault((namespace, owner), []).append((pod, trouble))
    for (namespace, owner), failing in sorted(groups.items()):
        texts = [f"pod {namespace}/{pod.metadata.name} {trouble.why}" for pod, trouble in failing[:_NAMED]]
        more = f", and {count(len(failing) - 1, 'other pod')} of {owner}" if len(failing) > 1 else ""
        yield Finding(
            check=PLATFORM_POD,
            level=terms.WARNING,
            impact=terms.UPDATE_SPEED,
            summary=f"{texts[0][0].upper()}{texts[0][1:]}{more}",
            description=f"{'; '.join(texts)}. An operator whose pods fail does not finish its part of the update. See "
            f"`oc logs -n {namespace} {failing[0][0].metadata.name} --previous`.",
            reference=terms.DOCS + "platformpodfailing",
            since=min((trouble.since for _, trouble in failing if trouble.since), default=None),
            resources=tuple(_pod_ref(pod) for pod, _ in failing[:_NAMED]),
            identity=f"{namespace}\0{owner}",
        )


def _is_of_component(pod: Pod) -> bool:
    namespace = pod.metadata.namespace
    names = [each.pod_prefix or each.name for each in COMPONENTS if namespace in each.namespaces]
    return any(is_pod_of(pod, name, namespace) for name in (*names, DAEMON))


def _silent_operators(operators: Iterable[OperatorState]) -> Iterator[Finding]:
    """Yields the operators that do not report whether they are available."""
    for operator in operators:
        available = operator.available
        if available is not None and available.status in ("True", "False"):
            continue
        message = available.message if available is not None else ""
        yield Finding(
            check=OPERATOR_SILENT,
            level=terms.WARNING,
            impact=terms.UNKNOWN_IMPACT,
            summary=f"Cluster Operator {operator.name} does not report whether it is available",
            description=message
            or "It has no condition Available, so its state is not known. See whether its pod runs.",
            reference=terms.DOCS + "clusteroperatorsilent",
            since=available.last_transition_time if available is not None else None,
            resources=(terms.operator_ref(operator.name),),
        )


def shared_findings(
    requests: Sequence[CertificateSigningRequest],
    attachments: Iterable[VolumeAttachment],
    now: datetime,
    *,
    client: str = "oc",
) -> Iterator[Finding]:
    """Yields the findings that concern nodes of any pool: unanswered certificate requests and volumes that wait."""
    if requests:
        yield _certificate_finding(requests, client)
    if stuck := stuck_attachments(attachments, now):
        yield _volume_finding(stuck, client)


def _certificate_finding(requests: Sequence[CertificateSigningRequest], client: str) -> Finding:
    names = [request.metadata.name for request in requests]
    who = sorted({request.spec.username or request.metadata.name for request in requests})
    ref = partial(ResourceRef, group="certificates.k8s.io", resource="certificatesigningrequests")
    return Finding(
        check=CERTIFICATES,
        level=terms.WARNING,
        impact=terms.UPDATE_SPEED,
        summary=f"{count(len(names), 'certificate request')} of kubelets {'waits' if len(names) == 1 else 'wait'} for "
        "an answer",
        description=f"Asked by {', '.join(who[:_NAMED])}. A node without its certificate does not come back. Look at "
        f"them with `{client} get csr`, and approve what is right: `{_approve(client)} NAME`.",
        reference=terms.DOCS + "certificaterequestspending",
        since=min(time for request in requests if (time := request.metadata.creation_timestamp)),
        scope=terms.SCOPE_CLUSTER,
        resources=tuple(ref(name=name) for name in names[:_NAMED]),
        identity="kubelets",
    )


def _volume_finding(attachments: Sequence[tuple[VolumeAttachment, datetime | None]], client: str) -> Finding:
    ref = partial(ResourceRef, group="storage.k8s.io", resource="volumeattachments")
    texts = []
    for attachment, _ in attachments[:_NAMED]:
        error = attachment.status.detach_error or attachment.status.attach_error
        volume = attachment.spec.source.persistent_volume_name or attachment.metadata.name
        doing = (
            "detached from" if attachment.metadata.deletion_timestamp or attachment.status.attached else "attached to"
        )
        texts.append(f"{volume} is not {doing} node {attachment.spec.node_name}{f': {error.message}' if error else ''}")
    return Finding(
        check=VOLUMES,
        level=terms.WARNING,
        impact=terms.UPDATE_SPEED,
        summary=f"{count(len(attachments), 'volume')} cannot be attached or detached, and their pods wait",
        description=f"{'; '.join(texts)}. Evicted pods do not start elsewhere, and budgets stay used up. See "
        f"`{client} describe volumeattachment NAME`, and the pods of the driver's controller.",
        reference=terms.DOCS + "volumeattachmentstuck",
        since=min((since for _, since in attachments if since is not None), default=None),
        scope=terms.SCOPE_CLUSTER,
        resources=tuple(ref(name=attachment.metadata.name) for attachment, _ in attachments[:_NAMED]),
        identity="volumes",
    )


def no_progress(
    cluster: ClusterVersion,
    pools: Sequence[PoolState],
    state: ControlPlaneState | None,
    snapshot: Snapshot,
    *,
    memory: PreviousStatus,
    now: datetime,
) -> Iterator[Finding]:
    """Yields the finding that nothing moves, or that the control plane is overdue, whichever component is to blame.

    The limit grows with the time that the last update of this cluster took, and its earlier nodes.
    """
    usual = timedelta(seconds=plane.baseline_s(cluster.status.history) * STILL_SHARE)
    limit = max(STILL_LIMIT, usual, *(2 * longest_of_earlier(pool) for pool in pools), timedelta())
    moved = max(_movements(cluster, pools, state, snapshot, memory=memory), default=None)
    finding = partial(
        Finding,
        check=NO_PROGRESS,
        reference=terms.DOCS + "updatemakesnoprogress",
        resources=(terms.cluster_version_ref(cluster.metadata.name),),
        identity=cluster.metadata.name,
    )
    if moved is not None and now - moved > limit:
        yield finding(
            level=terms.ERROR if now - moved > 2 * limit else terms.WARNING,
            impact=terms.UPDATE_STALLED,
            summary=f"Nothing has moved since {timestamp(moved)}",
            description="No ClusterOperator, MachineConfigPool or Node has changed its state for longer than "
            f"{int(limit.total_seconds() // 60)} minutes, which is unusual for this cluster. See whether the pods in "
            f"openshift-cluster-version and {MACHINE_CONFIG_NAMESPACE} run, and their logs.",
            since=moved,
        )
    elif state is not None and not state.is_done and plane.assessment_of(state.estimate.remaining_s) == "Stalled":
        yield finding(
            level=terms.WARNING,
            impact=terms.UPDATE_STALLED,
            summary="The update of the control plane takes longer than estimated",
            description="By the time that the last update took and the operators that are updated, the control plane "
            "should have been done more than ten minutes ago. `oc get clusteroperators` shows which of them are not.",
            since=state.last_progress or state.started,
        )


def _movements(
    cluster: ClusterVersion,
    pools: Sequence[PoolState],
    state: ControlPlaneState | None,
    snapshot: Snapshot,
    *,
    memory: PreviousStatus,
) -> Iterator[datetime]:
    """Yields the times at which something of the update is known to have moved."""
    for entry in cluster.status.history[:1]:
        yield from (time for time in (entry.started_time, entry.completion_time) if time)
    for operator in state.operators if state is not None else ():
        if operator.progressing is not None and operator.progressing.last_transition_time:
            yield operator.progressing.last_transition_time
    for pool in readable(snapshot.machine_config_pools):
        for condition in pool.status.conditions:
            if condition.type in ("Updated", "Updating") and condition.last_transition_time:
                yield condition.last_transition_time
    for each in pools:
        yield from (time for node in each.nodes for time in (node.ready_since, node.cordoned_at) if time)
    for step in (step for node in snapshot.machine_config_nodes for step in node.status.conditions):
        if step.last_transition_time:
            yield step.last_transition_time
    yield from memory.last_movements()


def _pod_ref(pod: Pod) -> ResourceRef:
    return ResourceRef(resource="pods", name=pod.metadata.name, namespace=pod.metadata.namespace)
