"""Finds what the update of a hosted cluster waits for: conditions of HyperShift's objects, components, and Machines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from functools import partial

from msgspec.structs import replace

from kubekit.api.conditions import find
from kubekit.api.meta_v1 import Condition, ObjectMeta
from kubekit.lang.text import count, timestamp
from kubekit.rules.eviction_rules import ENDED
from kubekit.rules.pod_rules import trouble_of
from kubekit.rules.version_skew import order_of
from runup.api.hypershift_v1beta1 import IN_PLACE, ControlPlaneComponent, HostedCluster, HostedNodePool
from runup.api.update_v1alpha1 import ResourceRef
from runup.updatestatus.decide import finding as terms
from runup.updatestatus.decide import waiting as waits
from runup.updatestatus.decide.finding import Finding
from runup.updatestatus.decide.hosted.pools import (
    HYPERSHIFT_GROUP,
    UPDATING_CONFIG,
    UPDATING_VERSION,
    HostedPoolState,
    MachineState,
    is_paused,
)
from runup.updatestatus.decide.hosted.snapshot import HOSTED, MANAGEMENT, POOL_OF_MACHINE, HostedSnapshot
from runup.updatestatus.decide.kubernetes.findings import machine_finding
from runup.updatestatus.decide.memory import PreviousStatus
from runup.updatestatus.decide.nodes import DRAINING
from runup.updatestatus.decide.snapshot import readable
from runup.updatestatus.decide.stuck import COMPONENT_STUCK, NO_PROGRESS, STILL_LIMIT
from runup.updatestatus.decide.waiting import RELEASE_NOT_LOADED

CLUSTER_TROUBLE, CLUSTER_PAUSED = "HostedClusterCannotUpdate", "HostedClusterPaused"
POOL_TROUBLE, POOL_PAUSED, POOL_BEHIND = "NodePoolCannotUpdate", "NodePoolPaused", "NodePoolBehind"
DOCS = "https://docs.runup.example/update-status-hypershift#"
# Conditions with status False that stop an update, and how long each may have it. Most do not change without help.
_AT_ONCE, _SOON, _LATE = timedelta(0), timedelta(minutes=5), timedelta(minutes=15)
_OF_CLUSTER = {
    "ValidReleaseImage": _AT_ONCE,
    "ValidReleaseInfo": _SOON,
    "ValidConfiguration": _AT_ONCE,
    "SupportedHostedCluster": _AT_ONCE,
    "ValidHostedControlPlaneConfiguration": _SOON,
    "PlatformCredentialsFound": _SOON,
    "ReconciliationSucceeded": _SOON,
    "InfrastructureReady": _SOON,
    "EtcdAvailable": _SOON,
    "KubeAPIServerAvailable": _SOON,
    "IgnitionEndpointAvailable": _SOON,
    "IgnitionServerValidReleaseInfo": _SOON,
}
_OF_POOL = {
    "ValidReleaseImage": _AT_ONCE,
    "ValidPlatformImage": _AT_ONCE,
    "ValidMachineConfig": _AT_ONCE,
    "ValidTuningConfig": _AT_ONCE,
    "ValidMachineTemplate": _AT_ONCE,
    "UpdateManagementEnabled": _AT_ONCE,
    "ValidGeneratedPayload": _SOON,
    "ReachedIgnitionEndpoint": _LATE,
    "AllMachinesReady": _LATE,
    "AllNodesHealthy": _LATE,
}
# How many minor versions of OpenShift a pool may be behind its control plane (v1beta1, NodePoolSpec.release).
_SKEW = 2
_NAMED = 12


def cluster_ref(cluster: HostedCluster) -> ResourceRef:
    """Returns a reference to the HostedCluster."""
    return ResourceRef(
        group=HYPERSHIFT_GROUP,
        resource="hostedclusters",
        name=cluster.metadata.name,
        namespace=cluster.metadata.namespace,
        cluster=MANAGEMENT,
    )


def cluster_findings(cluster: HostedCluster, now: datetime, *, is_updating: bool) -> Iterator[Finding]:
    """Yields the findings about the HostedCluster: it is paused, or a condition stops its update."""
    finding = partial(Finding, resources=(cluster_ref(cluster),))
    if is_paused(cluster.spec.paused_until, now):
        yield finding(
            check=CLUSTER_PAUSED,
            level=terms.WARNING,
            impact=terms.UPDATE_STALLED,
            summary=f"HostedCluster {cluster.metadata.name} is paused until {cluster.spec.paused_until}",
            description="HyperShift changes nothing of a paused cluster. Remove `spec.pausedUntil` to continue.",
            reference=DOCS + "hostedclusterpaused",
            identity="paused",
        )
    condition = find(cluster.status.conditions, "ClusterVersionReleaseAccepted")
    if condition is not None and condition.status == "False":
        yield finding(
            check=RELEASE_NOT_LOADED,
            level=terms.ERROR,
            impact=terms.UPDATE_STALLED,
            summary=f"The requested release was not accepted ({condition.reason})",
            description=condition.message or "The HostedCluster does not say why.",
            reference=terms.DOCS + "releasenotloaded",
            since=condition.last_transition_time,
            identity=cluster.metadata.name,
        )
    for condition in _bad(cluster.status.conditions, _OF_CLUSTER, now):
        yield finding(
            check=CLUSTER_TROUBLE,
            level=terms.ERROR if is_updating else terms.WARNING,
            impact=terms.UPDATE_STALLED if is_updating else terms.UNKNOWN_IMPACT,
            summary=f"HostedCluster {cluster.metadata.name} cannot be updated: {condition.type} is False"
            + (f" ({condition.reason})" if condition.reason else ""),
            description=condition.message or "The condition has no message.",
            reference=DOCS + "hostedclustercannotupdate",
            since=condition.last_transition_time,
            identity=condition.type,
        )


def _bad(conditions: Sequence[Condition], rules: dict[str, timedelta], now: datetime) -> Iterator[Condition]:
    """Yields the conditions of `rules` that have been False for longer than their time."""
    for condition in conditions:
        patience, since = rules.get(condition.type), condition.last_transition_time
        if patience is None or condition.status != "False":
            continue
        if since is None or now - since >= patience:
            yield condition


def pool_findings(
    pools: Sequence[HostedPoolState], listed: Sequence[HostedNodePool], control_plane: str, now: datetime
) -> Iterator[Finding]:
    """Yields the findings about NodePools; `control_plane` is the version of the control plane."""
    by_name = {pool.metadata.name: pool for pool in listed}
    for pool in pools:
        finding = partial(Finding, scope=pool.scope, resources=(pool.ref,), pool=pool.layer, identity=pool.name)
        obj = by_name[pool.name]
        works = pool.moving or not pool.is_complete
        if pool.paused and works:
            yield finding(
                check=POOL_PAUSED,
                level=terms.WARNING,
                impact=terms.UPDATE_STALLED,
                summary=f"The update of node pool {pool.name} is paused until {obj.spec.paused_until}",
                description="HyperShift changes nothing of a paused pool. Remove its `spec.pausedUntil` to continue.",
                reference=DOCS + "nodepoolpaused",
            )
        for condition in _pool_troubles(obj, now):
            yield replace(
                finding(
                    check=POOL_TROUBLE,
                    level=terms.ERROR if works else terms.WARNING,
                    impact=terms.UPDATE_STALLED if works else terms.UNKNOWN_IMPACT,
                    summary=f"Node pool {pool.name} cannot be updated: {condition.type} is {condition.status}"
                    + (f" ({condition.reason})" if condition.reason else ""),
                    description=condition.message or "The condition has no message.",
                    reference=DOCS + "nodepoolcannotupdate",
                    since=condition.last_transition_time,
                ),
                identity=f"{pool.name} {condition.type}",
            )
        if not pool.asked and (order_of(control_plane) and order_of(pool.target)):
            behind = order_of(control_plane)[1] - order_of(pool.target)[1]
            too_far = behind > _SKEW
            yield finding(
                check=POOL_BEHIND,
                level=terms.WARNING if too_far else terms.INFO,
                impact=terms.NO_IMPACT,
                summary=f"Node pool {pool.name} stays at {pool.target}: nobody has asked it to update to "
                f"{control_plane}" + (f", and it may be {_SKEW} minor versions behind at most" if too_far else ""),
                description="A pool is updated when its `spec.release.image` is set to the image of the control plane: "
                f"`oc patch nodepool -n {pool.namespace} {pool.name} --type=merge -p "
                '\'{"spec":{"release":{"image":"IMAGE"}}}\'`.',
                reference=DOCS + "nodepoolbehind",
            )


def _pool_troubles(pool: HostedNodePool, now: datetime) -> Iterator[Condition]:
    yield from _bad(pool.status.conditions, _OF_POOL, now)
    for type_ in (UPDATING_VERSION, UPDATING_CONFIG):
        condition = find(pool.status.conditions, type_)
        if condition is not None and condition.reason == "InplaceUpgradeFailed":
            yield condition


def component_findings(
    components: Sequence[ControlPlaneComponent], target: str, now: datetime, *, is_updating: bool
) -> Iterator[Finding]:
    """Yields the components of the control plane that do not get their release, or are not available."""
    for component in sorted(components, key=lambda each: each.metadata.name):
        rollout = find(component.status.conditions, "RolloutComplete")
        available = find(component.status.conditions, "Available")
        worst = next(
            (
                condition
                for condition in (available, rollout)
                if condition is not None
                and condition.status == "False"
                and (since := condition.last_transition_time) is not None
                and now - since > STILL_LIMIT / 3
            ),
            None,
        )
        if worst is None or not (is_updating or worst is available):
            continue
        since = worst.last_transition_time
        long = since is not None and now - since > STILL_LIMIT
        doing = "is not available" if worst is available else f"is not rolled out to {target or 'the new release'}"
        yield Finding(
            check=COMPONENT_STUCK,
            level=terms.ERROR if long else terms.WARNING,
            impact=terms.UPDATE_STALLED if long and is_updating else terms.UPDATE_SPEED,
            summary=f"Component {component.metadata.name} of the control plane {doing}"
            + (f" ({worst.reason})" if worst.reason else ""),
            description=f"{worst.message or 'The condition has no message'}. See `oc describe controlplanecomponent -n "
            f"{component.metadata.namespace} {component.metadata.name}`.",
            reference=terms.DOCS + "componentcannotact",
            since=since,
            resources=(_ref(component.metadata, HYPERSHIFT_GROUP, "controlplanecomponents"),),
        )


def pod_findings(snapshot: HostedSnapshot, now: datetime) -> Iterator[Finding]:
    """Yields the finding that pods of the control plane fail."""
    failing = [
        (pod, trouble)
        for pod in sorted(readable(snapshot.pods), key=lambda pod: pod.metadata.name)
        if pod.status.phase not in ENDED and pod.metadata.deletion_timestamp is None
        if (trouble := trouble_of(pod, now)) is not None
    ]
    if not failing:
        return
    texts = [f"pod {pod.metadata.name} {trouble.why}" for pod, trouble in failing]
    namespace = snapshot.cluster.control_plane_namespace
    more = f", and {count(len(texts) - 1, 'other pod')}" if len(texts) > 1 else ""
    yield Finding(
        check=COMPONENT_STUCK,
        level=terms.WARNING,
        impact=terms.UPDATE_SPEED,
        summary=f"The control plane runs in part: {texts[0]}{more}",
        description=f"{'; '.join(texts[:_NAMED])}. See `oc get pods -n {namespace}`.",
        reference=terms.DOCS + "componentcannotact",
        since=min((trouble.since for _, trouble in failing if trouble.since), default=None),
        resources=tuple(_ref(pod.metadata, "", "pods") for pod, _ in failing[:_NAMED]),
        identity="pods",
    )


def machine_findings(snapshot: HostedSnapshot, pools: Sequence[HostedPoolState], now: datetime) -> Iterator[Finding]:
    """Yields the Machines of the pools that are not made or not deleted."""
    by_key = {f"{pool.namespace}/{pool.name}": pool for pool in pools}
    for machine in readable(snapshot.machines):
        pool = by_key.get(machine.metadata.annotations.get(POOL_OF_MACHINE, ""))
        if pool is not None and (found := machine_finding(machine, pool, now, side=MANAGEMENT)) is not None:
            yield found


def drain_findings(
    snapshot: HostedSnapshot, pools: Sequence[HostedPoolState], memory: PreviousStatus, now: datetime
) -> Iterator[Finding]:
    """Yields what holds up the drains of nodes on the hosted side, which the status of other clusters reports, too.

    A node of a Machine that is being deleted is drained, and a cordoned node of a pool that is updated in place.
    """
    by_node = [
        replace(
            pool,
            nodes=tuple(
                replace(machine, name=machine.node, phase=DRAINING, drain_begun=machine.cordoned_at)
                for machine in pool.nodes
                if isinstance(machine, MachineState) and machine.node in snapshot.drains_read
                if machine.phase == DRAINING or (pool.moving and pool.upgrade_type == IN_PLACE and not machine.updated)
            ),
        )
        for pool in pools
    ]
    for found in waits.drain_findings(
        by_node,
        readable(snapshot.draining_pods),
        budgets=readable(snapshot.budgets),
        memory=memory,
        now=now,
        read_nodes=snapshot.drains_read,
    ):
        yield replace(found, resources=tuple(replace(ref, cluster=HOSTED) for ref in found.resources))


def no_progress(
    cluster: HostedCluster, pools: Sequence[HostedPoolState], moments: Sequence[datetime], now: datetime
) -> Iterator[Finding]:
    """Yields the finding that nothing has moved for long; `moments` are the times at which something did."""
    moved = max(moments, default=None)
    if moved is None or now - moved <= STILL_LIMIT:
        return
    left = [pool.name for pool in pools if not pool.is_complete]
    where = f"The pools {', '.join(left[:_NAMED])} are not done." if left else "All node pools are done."
    yield Finding(
        check=NO_PROGRESS,
        level=terms.ERROR if now - moved > 2 * STILL_LIMIT else terms.WARNING,
        impact=terms.UPDATE_STALLED,
        summary=f"Nothing has moved since {timestamp(moved)}",
        description="No condition, component or Machine has changed for longer than "
        f"{int(STILL_LIMIT.total_seconds()) // 60} minutes. {where} See the logs in the namespace hypershift, and of "
        f"control-plane-operator in {cluster.control_plane_namespace}.",
        reference=terms.DOCS + "updatemakesnoprogress",
        since=moved,
        scope=terms.SCOPE_CLUSTER,
        resources=(cluster_ref(cluster),),
        identity=cluster.metadata.name,
    )


def _ref(metadata: ObjectMeta, group: str, plural: str) -> ResourceRef:
    return ResourceRef(
        group=group, resource=plural, name=metadata.name, namespace=metadata.namespace, cluster=MANAGEMENT
    )
