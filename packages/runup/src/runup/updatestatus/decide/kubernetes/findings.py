"""Finds what the update of a cluster without a ClusterVersion waits for, and what it does not get over.

Drains, pods that do not start, nodes that are late, certificate requests and volumes are found by the rules that the
status of OpenShift uses (`updatestatus.decide.waiting`, `stuck`). Here are the states of API servers, of groups, and of
the programs that update nodes: Cluster API, Karpenter, and the system-upgrade-controller.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial

from kubekit.api.conditions import find
from kubekit.api.core_v1 import Pod
from kubekit.api.meta_v1 import Condition
from kubekit.api.workloads_v1 import DaemonSet, Job
from kubekit.lang.text import count, timestamp
from kubekit.rules.owners import is_controlled_by
from kubekit.rules.pod_rules import trouble_of
from kubekit.rules.version_skew import allowed_skew, order_of
from runup.api.rollouts_v1 import ClusterMachine, MachineDeployment, NodeClaim, NodePool, Plan
from runup.api.update_v1alpha1 import ResourceRef
from runup.updatestatus.decide import finding as terms
from runup.updatestatus.decide import nodes as states
from runup.updatestatus.decide.finding import Finding
from runup.updatestatus.decide.kubernetes.groups import ControlPlane, GroupState
from runup.updatestatus.decide.kubernetes.snapshot import (
    KUBE_SYSTEM,
    NODE_OF_JOB,
    PLAN_OF_JOB,
    KubernetesSnapshot,
)
from runup.updatestatus.decide.nodes import NodeState, PoolState
from runup.updatestatus.decide.snapshot import readable
from runup.updatestatus.decide.stuck import NO_PROGRESS, STILL_LIMIT, longest_of_earlier
from runup.updatestatus.decide.waiting import DRAIN_PATIENCE

SERVERS_DIFFER, SKEW, STILL_CORDONED = "APIServersDiffer", "KubeletSkew", "NodeStillCordoned"
GROUP_WAITS, PROXY_OLD = "NodeGroupWaits", "KubeProxyOutdated"
JOB_FAILED, PLAN_UNRESOLVED = "UpgradeJobFailed", "PlanNotResolved"
MACHINE_STUCK, GROUP_PAUSED = "MachineNotReplaced", "NodeGroupPaused"
CLAIM_STUCK, DRIFT_HELD = "NodeClaimNotReady", "DriftHeldUp"
# A control plane of three servers is updated in less.
SERVERS_PATIENCE = timedelta(minutes=30)
CLAIM_PATIENCE = timedelta(minutes=15)
_DO_NOT_DISRUPT = "karpenter.sh/do-not-disrupt"
_PROXY = re.compile(r"(?:^|/)kube-proxy:(v\d+\.\d+\.\d+)")
_NAMED = 12


def control_plane_findings(
    plane: ControlPlane, groups: Sequence[GroupState], proxies: Sequence[DaemonSet], now: datetime
) -> Iterator[Finding]:
    """Yields the findings about versions: API servers that differ, kubelets too far away, an old kube-proxy."""
    finding = partial(Finding, scope=terms.SCOPE_CONTROL_PLANE)
    if plane.outdated:
        newest = [server for server in plane.servers if server not in plane.outdated]
        since = max((server.since for server in newest if server.since), default=None)
        long = since is not None and now - since > SERVERS_PATIENCE
        apart = max((order_of(plane.target)[1] - order_of(server.version)[1] for server in plane.outdated), default=0)
        names = [server.node or "kube-apiserver" for server in plane.outdated]
        texts = [f"{server.node or 'kube-apiserver'} {server.version}" for server in plane.servers]
        yield finding(
            check=SERVERS_DIFFER,
            level=terms.ERROR if long and apart > 1 else terms.WARNING if long else terms.INFO,
            impact=terms.UPDATE_STALLED if long else terms.UPDATE_SPEED,
            summary=f"{count(len(names), 'API server')} of {len(plane.servers)} "
            f"{'has' if len(names) == 1 else 'have'} yet to be updated to {plane.target}: {', '.join(names[:_NAMED])}",
            description=f"The API servers run {', '.join(texts[:_NAMED])}. They may be one minor version apart while "
            f"they are updated. Update the others: {_how(plane.distribution.control_plane, plane.target)}.",
            reference=terms.KUBERNETES_DOCS + "apiserversdiffer",
            since=since,
            resources=tuple(terms.node_ref(server.node) for server in plane.outdated if server.node)[:_NAMED],
            identity="servers",
        )
    yield from _skew_findings(plane, groups)
    yield from _proxy_findings(plane, groups, proxies)


def _skew_findings(plane: ControlPlane, groups: Sequence[GroupState]) -> Iterator[Finding]:
    oldest = min((order_of(server.version) for server in plane.servers if order_of(server.version)), default=())
    newest = order_of(plane.target)
    if not oldest or not newest:
        return
    versions = [(node, order) for group in groups for node in group.nodes if (order := order_of(node.version))]
    late = [node for node, order in versions if newest[1] - order[1] > allowed_skew(order[1])]
    # kubeadm updates the kubelet of a control plane's node right after the API server of that node
    # (https://kubernetes.io/docs/tasks/administer-cluster/kubeadm/kubeadm-upgrade/).
    own = {server.node: order_of(server.version) for server in plane.servers if server.node}
    early = [node for node, order in versions if order[:2] > own.get(node.name, oldest)[:2]]
    for nodes, text, fix in (
        (late, "too old for", "Update these nodes before the control plane goes any further."),
        (early, "newer than", "Update the API servers: a kubelet must not be newer than any of them."),
    ):
        if nodes:
            names = [node.name for node in nodes]
            kubelets = ", ".join(sorted({node.version for node in nodes}))
            server = plane.target if nodes is late else "v" + ".".join(map(str, oldest[:3]))
            yield Finding(
                check=SKEW,
                level=terms.ERROR,
                impact=terms.UPDATE_STALLED,
                summary=f"The {'kubelet' if len(names) == 1 else 'kubelets'} of {terms.name_or_number('node', names)} "
                f"{'is' if len(names) == 1 else 'are'} {text} an API server at {server}",
                description=f"The kubelets run {kubelets}: {', '.join(names[:_NAMED])}. {fix}",
                reference=terms.KUBERNETES_DOCS + "kubeletskew",
                scope=terms.SCOPE_CLUSTER,
                resources=tuple(map(terms.node_ref, names[:_NAMED])),
                identity=text,
            )


def _proxy_findings(
    plane: ControlPlane, groups: Sequence[GroupState], proxies: Sequence[DaemonSet]
) -> Iterator[Finding]:
    """Yields the finding that kube-proxy is a minor version behind, once no group is under way any more."""
    target = order_of(plane.target)[:2]
    if not target or plane.outdated or any(group.is_under_way for group in groups):
        return
    containers = (each for proxy in proxies for each in proxy.spec.template.spec.containers)
    tags = {tag[1] for each in containers if (tag := _PROXY.search(each.image))}
    old = sorted(tag for tag in tags if order_of(tag)[:2] < target)
    if old:
        command = plane.distribution.kube_proxy
        yield Finding(
            check=PROXY_OLD,
            level=terms.WARNING,
            impact=terms.NO_IMPACT,
            summary=f"kube-proxy {', '.join(old)} is older than the control plane at {plane.target}",
            description="kube-proxy is not updated with the control plane here. Update it"
            + (f": `{command}`." if command else " to the version of the nodes."),
            reference=terms.KUBERNETES_DOCS + "kubeproxyoutdated",
            scope=terms.SCOPE_CLUSTER,
            resources=(ResourceRef(group="apps", resource="daemonsets", name="kube-proxy", namespace=KUBE_SYSTEM),),
            identity="kube-proxy",
        )


def _how(text: str, target: str, group: str = "GROUP") -> str:
    """Returns how a distribution does a step, with the versions filled in."""
    order = order_of(target)
    minor = f"{order[0]}.{order[1]}" if order else "MINOR"
    return text.format(minor=minor, patch=".".join(map(str, order[:3])) if order else "PATCH", group=group)


def group_findings(
    groups: Sequence[GroupState], plane: ControlPlane, now: datetime, *, is_updating: bool
) -> Iterator[Finding]:
    """Yields the findings about groups: those that wait or are paused, and nodes that are still cordoned."""
    for group in groups:
        finding = partial(Finding, scope=group.scope, pool=group.layer)
        left = [node for node in group.nodes if node.phase in (states.PENDING, states.PAUSED)]
        oldest = min((node.version for node in left if order_of(node.version)), key=order_of, default="")
        if group.paused and left:
            yield finding(
                check=GROUP_PAUSED,
                level=terms.WARNING,
                impact=terms.UPDATE_STALLED,
                summary=f"The update of group {group.name} is paused, with {count(len(left), 'node')} to update",
                description=f"Its nodes stay at {oldest}. Resume {group.plural} {group.name} when they may be updated: "
                f"{_RESUME.get(group.plural, _RESUME_PLAN)}.",
                reference=terms.KUBERNETES_DOCS + "nodegrouppaused",
                resources=(group.ref,),
                identity=group.name,
            )
        elif group.assessment == states.PENDING and oldest and order_of(oldest) < order_of(group.target):
            who = f"{count(len(left), 'node')} {'waits' if len(left) == 1 else 'wait'} at {oldest} for {group.target}"
            command = _how(plane.distribution.nodes, group.target, group.name)
            yield finding(
                check=GROUP_WAITS,
                level=terms.INFO,
                impact=terms.UPDATE_SPEED if is_updating else terms.NO_IMPACT,
                summary=f"Group {group.name} has not begun: {who}",
                description=f"No node of the group is cordoned or has the version yet. {_NEXT}{command}.",
                reference=terms.KUBERNETES_DOCS + "nodegroupwaits",
                resources=(group.ref,),
                identity=group.name,
            )
        for node in group.nodes:
            if (held := _still_cordoned(node, now)) is not None:
                yield finding(
                    check=STILL_CORDONED,
                    level=terms.WARNING,
                    impact=terms.UPDATE_SPEED,
                    summary=f"Node {node.name} has been updated to {node.version} and is still cordoned",
                    description=f"Its kubelet has been ready since {timestamp(held)}, and no pod is scheduled there. "
                    + (node.held or f"Release it: `kubectl uncordon {node.name}`."),
                    reference=terms.KUBERNETES_DOCS + "nodestillcordoned",
                    since=held,
                    resources=(terms.node_ref(node.name),),
                    identity=node.name,
                )


_NEXT = "This is how its nodes are updated: "
_RESUME_PLAN = "set `spec.concurrency` of the Plan above 0"
_RESUME = {"machinedeployments": "set its `spec.paused` to false"}


def _still_cordoned(node: NodeState, now: datetime) -> datetime | None:
    """Returns since when a node that has its version is ready and waits to be released; None if it does not, or not
    for long."""
    waits = node.phase == states.UPDATING and order_of(node.version) >= order_of(node.desired) and node.cordoned_at
    since = node.ready_since
    return since if waits and since is not None and node.ready == "True" and now - since > DRAIN_PATIENCE else None


def plan_findings(snapshot: KubernetesSnapshot, groups: Sequence[GroupState], now: datetime) -> Iterator[Finding]:
    """Yields the findings about the system-upgrade-controller: Plans without a version, and Jobs that fail."""
    by_node = {node.name: group for group in groups for node in group.nodes}
    for plan in readable(snapshot.plans):
        resolved = find(plan.status.conditions, "LatestResolved")
        if resolved is not None and resolved.status == "False":
            yield Finding(
                check=PLAN_UNRESOLVED,
                level=terms.ERROR,
                impact=terms.UPDATE_STALLED,
                summary=f"Plan {plan.metadata.name} has no version to update to ({resolved.reason or 'not resolved'})",
                description=f"{resolved.message or 'The Plan does not say why.'} Give it `spec.version`, or fix its "
                f"channel {plan.spec.channel}.".replace(" its channel .", " its channel."),
                reference=terms.KUBERNETES_DOCS + "plannotresolved",
                since=resolved.last_transition_time,
                resources=(_plan_ref(plan),),
            )
    for job in sorted(readable(snapshot.jobs), key=lambda job: job.metadata.name):
        node, plan_name = job.metadata.labels.get(NODE_OF_JOB, ""), job.metadata.labels.get(PLAN_OF_JOB, "")
        group = by_node.get(node)
        why, since = _job_trouble(job, readable(snapshot.job_pods), now)
        if not why or group is None:
            continue
        yield Finding(
            check=JOB_FAILED,
            level=terms.ERROR,
            impact=terms.UPDATE_STALLED,
            summary=f"Plan {plan_name} cannot update node {node}: its Job {job.metadata.name} {why}",
            description="The system-upgrade-controller begins the next node when the Job has succeeded. See "
            f"`kubectl logs -n {job.metadata.namespace} job/{job.metadata.name} --all-containers`; delete the Job to "
            "have it run again.",
            reference=terms.KUBERNETES_DOCS + "upgradejobfailed",
            since=since,
            scope=group.scope,
            resources=(
                terms.node_ref(node),
                ResourceRef(group="batch", resource="jobs", name=job.metadata.name, namespace=job.metadata.namespace),
            ),
            identity=job.metadata.name,
            pool=group.layer,
        )


def _job_trouble(job: Job, pods: Sequence[Pod], now: datetime) -> tuple[str, datetime | None]:
    """Returns why the Job does not end, empty if it may, and since when."""
    if job.status.succeeded or job.status.completion_time:
        return "", None
    failed = find(job.status.conditions, "Failed")
    if failed is not None and failed.status == "True":
        text = ": ".join(text for text in (failed.reason, failed.message) if text)
        return f"has failed ({text or 'no reason given'})", failed.last_transition_time
    for pod in pods:
        if is_controlled_by(pod.metadata.owner_references, job.metadata.uid) and (trouble := trouble_of(pod, now)):
            return f"waits for pod {pod.metadata.name}, which {trouble.why}", trouble.since
    if job.status.failed:
        return f"has failed {job.status.failed} times so far", job.status.start_time
    return "", None


def _plan_ref(plan: Plan) -> ResourceRef:
    meta = plan.metadata
    return ResourceRef(group="upgrade.cattle.io", resource="plans", name=meta.name, namespace=meta.namespace)


def machine_findings(snapshot: KubernetesSnapshot, groups: Sequence[GroupState], now: datetime) -> Iterator[Finding]:
    """Yields the findings about Cluster API: machines that are not made or not deleted, and failed deployments."""
    by_node = {node.name: group for group in groups for node in group.nodes}
    by_name = {group.name: group for group in groups}
    for machine in readable(snapshot.machines):
        meta, node = machine.metadata, machine.status.node_ref.name
        group = by_node.get(node) or by_name.get(meta.labels.get("cluster.x-k8s.io/deployment-name", ""))
        if (finding := machine_finding(machine, group, now)) is not None:
            yield finding
    yield from _failed_deployments(readable(snapshot.machine_deployments), by_name)


def machine_finding(
    machine: ClusterMachine, group: PoolState | None, now: datetime, *, side: str = ""
) -> Finding | None:
    """Returns the finding that a Machine is not made or not deleted, None if it is, or may be soon.

    `side` is the side of a hosted cluster on which the Machine is.
    """
    why, since = _machine_trouble(machine, now)
    if not why:
        return None
    meta, node = machine.metadata, machine.status.node_ref.name
    long = since is None or now - since > 2 * CLAIM_PATIENCE
    ref = partial(ResourceRef, group="cluster.x-k8s.io", resource="machines", cluster=side)
    return Finding(
        check=MACHINE_STUCK,
        level=terms.ERROR if long else terms.WARNING,
        impact=terms.UPDATE_STALLED if long else terms.UPDATE_SPEED,
        summary=f"Machine {meta.name}{f' of node {node}' if node else ''} {why}",
        description=f"See `kubectl describe machines.cluster.x-k8s.io -n {meta.namespace} {meta.name}`. The next "
        "machine is replaced when this one is ready or gone.",
        reference=terms.KUBERNETES_DOCS + "machinenotreplaced",
        since=since,
        scope=group.scope if group else terms.SCOPE_CLUSTER,
        resources=(
            ref(name=meta.name, namespace=meta.namespace),
            *((ResourceRef(resource="nodes", name=node, cluster=side and "Hosted"),) if node else ()),
        ),
        pool=group.layer if group else terms.CONTROL_PLANE,
    )


def _failed_deployments(
    deployments: Iterable[MachineDeployment], groups: Mapping[str, GroupState]
) -> Iterator[Finding]:
    for deployment in deployments:
        group = groups.get(deployment.metadata.name)
        if deployment.status.phase == "Failed" and group is not None and not group.is_complete:
            bad = [each for each in deployment.status.conditions if each.status == "False" and each.message]
            yield Finding(
                check=MACHINE_STUCK,
                level=terms.ERROR,
                impact=terms.UPDATE_STALLED,
                summary=f"MachineDeployment {group.name} has failed",
                description="; ".join(f"{each.type}: {each.message}" for each in bad)
                or f"See `kubectl describe machinedeployment -n {deployment.metadata.namespace} {group.name}`.",
                reference=terms.KUBERNETES_DOCS + "machinenotreplaced",
                scope=group.scope,
                resources=(group.ref,),
                pool=group.layer,
            )


def _machine_trouble(machine: ClusterMachine, now: datetime) -> tuple[str, datetime | None]:
    conditions = machine.status.conditions
    if machine.status.phase == "Failed":
        return f"has failed{_because(find(conditions, 'Ready'))}", None
    deleted = machine.metadata.deletion_timestamp
    if deleted is not None:
        # v1beta2 and v1beta1 of the API.
        waits = find(conditions, "Deleting") or find(conditions, "DrainingSucceeded")
        return (f"is not deleted{_because(waits)}", deleted) if now - deleted > CLAIM_PATIENCE else ("", None)
    created = machine.metadata.creation_timestamp
    if machine.status.phase in ("Pending", "Provisioning", "Provisioned") and created is not None:
        late = now - created > CLAIM_PATIENCE
        return (f"has no node yet{_because(find(conditions, 'Ready'))}", created) if late else ("", None)
    return "", None


def _because(condition: Condition | None) -> str:
    text = ": ".join(text for text in (condition.reason, condition.message) if text) if condition else ""
    return f" ({text})" if text else ""


def karpenter_findings(snapshot: KubernetesSnapshot, groups: Sequence[GroupState], now: datetime) -> Iterator[Finding]:
    """Yields the findings about Karpenter: claims without a node, drifted nodes that it may not replace."""
    by_name = {group.name: group for group in groups}
    for claim in readable(snapshot.node_claims):
        pool = by_name.get(claim.metadata.labels.get("karpenter.sh/nodepool", ""))
        created, condition = claim.metadata.creation_timestamp, _unready(claim)
        if pool is None or condition is None or created is None or now - created <= CLAIM_PATIENCE:
            continue
        yield Finding(
            check=CLAIM_STUCK,
            level=terms.ERROR,
            impact=terms.UPDATE_STALLED,
            summary=f"NodeClaim {claim.metadata.name} has no ready node: it is not {condition.type.lower()}",
            description=f"{condition.type}{_because(condition)}. Karpenter drains an old node when its replacement is "
            f"ready. See `kubectl describe nodeclaim {claim.metadata.name}`.",
            reference=terms.KUBERNETES_DOCS + "nodeclaimnotready",
            since=created,
            scope=pool.scope,
            resources=(ResourceRef(group="karpenter.sh", resource="nodeclaims", name=claim.metadata.name),),
            pool=pool.layer,
        )
    frozen = {pool.metadata.name for pool in readable(snapshot.node_pools) if _allows_no_drift(pool)}
    kept = [pod for pod in readable(snapshot.draining_pods) if pod.metadata.annotations.get(_DO_NOT_DISRUPT) == "true"]
    for group in groups:
        drifted = [node for node in group.nodes if node.message.startswith("Drifted") and not node.updating]
        pods = [pod for pod in kept if pod.spec.node_name in {node.name for node in drifted}]
        if not drifted or not (pods or group.name in frozen):
            continue
        names = [terms.qualified(pod.metadata.namespace, pod.metadata.name) for pod in pods]
        why = "the NodePool's disruption budget allows 0 nodes"
        if group.name not in frozen:
            why = f"{terms.name_or_number('pod', names)} must not be disrupted"
        yield Finding(
            check=DRIFT_HELD,
            level=terms.WARNING,
            impact=terms.UPDATE_STALLED,
            summary=f"Karpenter does not replace {terms.name_or_number('node', [n.name for n in drifted])}: {why}",
            description="Raise `nodes` of `spec.disruption.budgets`, or wait for the next time that another budget "
            "applies."
            if group.name in frozen
            else f"Remove the annotation {_DO_NOT_DISRUPT} of these pods, or wait until they end: "
            f"{', '.join(names[:_NAMED])}.",
            reference=terms.KUBERNETES_DOCS + "driftheldup",
            scope=group.scope,
            resources=(group.ref, *(terms.node_ref(node.name) for node in drifted[:_NAMED])),
            identity=group.name,
            pool=group.layer,
        )


def _unready(claim: NodeClaim) -> Condition | None:
    """Returns the first step that a claim without a deletion has not completed."""
    if claim.metadata.deletion_timestamp is not None:
        return None
    steps = (find(claim.status.conditions, type_) for type_ in ("Launched", "Registered", "Initialized"))
    return next((step for step in steps if step is not None and step.status != "True"), None)


def _allows_no_drift(pool: NodePool) -> bool:
    """Returns whether a budget without a schedule allows no node of the pool to be replaced because of drift."""
    return any(
        budget.nodes in ("0", "0%") and budget.schedule is None and (not budget.reasons or "Drifted" in budget.reasons)
        for budget in pool.spec.disruption.budgets
    )


def no_progress(
    groups: Sequence[GroupState], plane: ControlPlane, moments: Sequence[datetime], now: datetime
) -> Iterator[Finding]:
    """Yields the finding that nothing has moved for longer than is usual for this cluster's nodes.

    `moments` are the times at which something moved.
    """
    limit = max(STILL_LIMIT, *(2 * longest_of_earlier(group) for group in groups), timedelta())
    moved = max(moments, default=None)
    if moved is None or now - moved <= limit:
        return
    left = [(group, node) for group in groups for node in group.nodes if node.phase == states.PENDING]
    advice, pool = "See what updates the nodes.", terms.CONTROL_PLANE
    if left:
        group, node = left[0]
        pool = group.layer
        advice = f"The next node is {node.name} of group {group.name}. {_NEXT}"
        advice += f"{_how(plane.distribution.nodes, group.target, group.name)}."
    yield Finding(
        check=NO_PROGRESS,
        level=terms.ERROR if now - moved > 2 * limit else terms.WARNING,
        impact=terms.UPDATE_STALLED,
        summary=f"Nothing has moved since {timestamp(moved)}",
        description="No API server and no node has changed its state for longer than "
        f"{int(limit.total_seconds()) // 60} minutes, which is unusual for this cluster. {advice}",
        reference=terms.DOCS + "updatemakesnoprogress",
        since=moved,
        scope=terms.SCOPE_CLUSTER,
        resources=(ResourceRef(resource="namespaces", name=KUBE_SYSTEM),),
        identity="cluster",
        pool=pool,
    )
