"""Collects every finding and state from a snapshot, before anything is left out for its size."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from functools import partial

import msgspec
from msgspec.structs import replace

from runup.api.config_v1 import ClusterVersion
from runup.api.update_v1alpha1 import AwaitedOperator, Insight, ResourceRef
from runup.rules.machine_config import is_drain_wanted, is_moving
from runup.updatestatus.decide import control_plane as plane
from runup.updatestatus.decide import finding as terms
from runup.updatestatus.decide import health
from runup.updatestatus.decide import nodes as states
from runup.updatestatus.decide import waiting as waits
from runup.updatestatus.decide.alerts import Unreadable
from runup.updatestatus.decide.control_plane import is_progressing
from runup.updatestatus.decide.finding import Finding
from runup.updatestatus.decide.memory import ConditionValues, PreviousStatus
from runup.updatestatus.decide.nodes import NodeState, PoolState
from runup.updatestatus.decide.snapshot import Snapshot, readable

INPUTS = {
    "cluster_version": "ClusterVersion",
    "cluster_operators": "ClusterOperators",
    "machine_config_pools": "MachineConfigPools",
    "nodes": "Nodes",
    "machine_configs": "MachineConfigs",
    "machine_config_operator": "the Deployment machine-config-operator",
    "pending_pods": "pending Pods",
    "draining_pods": "Pods of nodes that are being drained",
    "pod_disruption_budgets": "PodDisruptionBudgets",
    "component_pods": "Pods of the components that carry out the update",
    "certificate_requests": "CertificateSigningRequests",
}
"""Snapshot fields that are reported if they cannot be read, each with its name in messages."""

_NO_REASON = "The object that reports it gives no reason."


class Draft(msgspec.Struct, frozen=True, kw_only=True):
    """The states and findings of a snapshot, before anything is left out for its size.

    Without a ClusterVersion, `version` makes the insight of the cluster's version, and `updating` is the condition of
    the control plane's layer. `side` is the side of a hosted cluster on which its operators are, `resource` its
    HostedCluster, and `hosted_side` the condition that says whether that side was read.
    """

    cluster: ClusterVersion | None
    control_plane: plane.ControlPlaneState | None
    waiting: tuple[AwaitedOperator, ...]
    pools: tuple[PoolState, ...]
    rows: dict[str, tuple[NodeState, ...]]
    findings: tuple[Finding, ...]
    unreadable: tuple[tuple[str, str], ...]
    alerts_unreadable: str | None
    alerts_asked: bool
    version: Callable[[PreviousStatus, int], Insight] | None = None
    updating: ConditionValues | None = None
    side: str = ""
    resource: ResourceRef | None = None
    hosted_side: ConditionValues | None = None


def draft(
    snapshot: Snapshot, memory: PreviousStatus, now: datetime, node_now: datetime, *, ahead: bool = False
) -> Draft:
    """Returns everything that the snapshot shows at `now`; with `ahead`, also what would hold an update up."""
    cluster = None if isinstance(snapshot.cluster_version, Unreadable) else snapshot.cluster_version
    pools: tuple[PoolState, ...] = ()
    listed, nodes, configs = snapshot.machine_config_pools, snapshot.nodes, snapshot.machine_configs
    # Without one of these inputs there are no pools: half of the nodes would look outdated.
    are_known = not (isinstance(listed, Unreadable) or isinstance(nodes, Unreadable) or isinstance(configs, Unreadable))
    if cluster is not None and are_known:
        versions = states.versions_of(readable(configs))
        if not snapshot.as_oc:
            versions = states.with_derived_versions(
                versions,
                readable(listed),
                readable(configs),
                cluster=cluster,
                operator_updated=plane.has_version(
                    readable(snapshot.cluster_operators), plane.MACHINE_CONFIG, cluster.status.desired.version
                ),
            )
        pools = states.assess_pools(
            readable(listed), readable(nodes), versions, states.target_of(cluster), as_oc=snapshot.as_oc
        )
    is_updating = (cluster is not None and is_progressing(cluster)) or any(not pool.is_complete for pool in pools)
    state: plane.ControlPlaneState | None = None
    operators = snapshot.cluster_operators
    waiting: tuple[AwaitedOperator, ...] = ()
    if cluster is not None and not isinstance(operators, Unreadable):
        deployment = snapshot.machine_config_operator
        image = None if isinstance(deployment, Unreadable) else plane.operator_image(deployment)
        state = plane.assess_control_plane(
            cluster, plane.assess_operators(operators, cluster.status.desired.version, image), now
        )
        waiting_since = memory.operators_awaited(terms.uid_of_object("cv", cluster.metadata.name))
        waiting = waits.awaited_operators(
            plane.awaited_operators(cluster), state.operators, waiting_since, memory.stamp
        )
    unreadable = [(INPUTS[f], v.why) for f in INPUTS if isinstance(v := getattr(snapshot, f), Unreadable)]
    unreadable += snapshot.undecoded
    findings = [
        *health.pool_findings(pools, node_now),
        *(_of_cluster(snapshot, cluster, state=state, waiting=waiting, now=now) if cluster is not None else ()),
        *waits.drain_findings(
            pools,
            readable(snapshot.draining_pods),
            budgets=readable(snapshot.pod_disruption_budgets),
            memory=memory,
            now=now,
            read_nodes=snapshot.drains_read,
            pending=readable(snapshot.pending_pods),
        ),
        *waits.pending_pod_findings(
            readable(snapshot.pending_pods), state.started if state and is_updating else None, now
        ),
        *_input_findings(snapshot, unreadable, is_updating=is_updating),
    ]
    if (is_updating or ahead) and cluster is not None and not snapshot.as_oc:
        findings += _stuck_findings(snapshot, cluster, pools, state, memory=memory, now=now, known=findings)
    if not snapshot.as_oc:
        # `oc` leaves out what has no description, such as a degraded node whose daemon gives no reason.
        findings = [each if each.description else replace(each, description=_NO_REASON) for each in findings]
    # Each finding is once in a layer, because lists of the API are keyed by uid.
    unique: dict[tuple[str, str], Finding] = {}
    for finding in filter(health.is_complete, findings):
        unique.setdefault((finding.pool, terms.uid_of_finding(finding)), finding)
    alerts = snapshot.alerts
    return Draft(
        cluster=cluster,
        control_plane=state,
        waiting=waiting,
        pools=pools,
        rows={pool.name: pool.rows() for pool in pools},
        findings=tuple(unique.values()),
        unreadable=tuple(unreadable),
        alerts_unreadable=alerts.why if isinstance(alerts, Unreadable) else None,
        alerts_asked=alerts is not None,
    )


def _stuck_findings(
    snapshot: Snapshot,
    cluster: ClusterVersion,
    pools: Sequence[PoolState],
    state: plane.ControlPlaneState | None,
    *,
    memory: PreviousStatus,
    now: datetime,
    known: Sequence[Finding],
) -> Iterator[Finding]:
    """Yields what does not move and is not explained by the findings that are `known`."""
    # Imported here because the example files of oc do not need it.
    from runup.rules.update_components import component_troubles
    from runup.updatestatus.decide import stuck
    from runup.updatestatus.decide.refused import refused_findings

    drains = {finding.identity or finding.resources[0].name for finding in known if finding.check in waits.OF_DRAINS}
    components = component_troubles(
        readable(snapshot.component_pods), snapshot.component_deployments, snapshot.leases, now
    )
    further = [
        finding
        for finding in stuck.stuck_findings(snapshot, pools, state, components=components, memory=memory, now=now)
        if finding.check != stuck.NODE_LATE or finding.identity not in drains
    ]
    operators = state.operators if state is not None else ()
    further += refused_findings(cluster, operators, pools, events=snapshot.events, now=now)
    yield from further
    explained = any(
        finding.impact == terms.UPDATE_STALLED or finding.check == waits.OPERATOR_SLOW for finding in (*known, *further)
    )
    if not explained and (is_progressing(cluster) or any(not pool.is_complete for pool in pools)):
        yield from stuck.no_progress(cluster, pools, state, snapshot, memory=memory, now=now)


def _input_findings(
    snapshot: Snapshot, unreadable: Sequence[tuple[str, str]], *, is_updating: bool
) -> Iterator[Finding]:
    """Yields a finding for each input that could not be read, or is known in part while the report depends on it."""
    finding = partial(Finding, level=terms.UNKNOWN, impact=terms.UNKNOWN_IMPACT)
    for inputs, why in unreadable:
        yield finding(
            check=terms.UNREADABLE,
            summary=f"{inputs[0].upper()}{inputs[1:]} could not be read, so part of the status is unknown",
            description=why or "No reason was given.",
            reference=terms.DOCS + "inputunreadable",
            identity=inputs,
        )
    draining = any(is_drain_wanted(node) or is_moving(node) for node in readable(snapshot.nodes))
    is_needed = {
        "pending_pods": is_updating,
        "certificate_requests": is_updating,
        "draining_pods": draining,
        "pod_disruption_budgets": draining,
    }
    for field, inputs in INPUTS.items():
        if field in snapshot.incomplete and is_needed.get(field, True):
            what = f"{inputs[0].upper()}{inputs[1:]}"
            yield finding(
                check=terms.INCOMPLETE,
                summary=f"{what} are known in part, so part of the status is unknown",
                description=snapshot.incomplete[field],
                reference=terms.DOCS + "inputincomplete",
                identity=inputs,
            )


def _of_cluster(
    snapshot: Snapshot,
    cluster: ClusterVersion,
    state: plane.ControlPlaneState | None,
    waiting: Sequence[AwaitedOperator],
    now: datetime,
) -> Iterator[Finding]:
    """Yields the findings about the control plane: of alerts, ClusterVersion, operators, the history and Pods."""
    started = plane.started_at(cluster)
    yield from health.alert_findings(readable(snapshot.alerts), started)
    yield from health.cluster_version_findings(cluster, now)
    if state is not None:
        yield from health.operator_findings(state.operators, now)
    yield from health.history_findings(cluster, control_plane_done=state is not None and state.is_done)
    if snapshot.pending_pods is not None:
        # The example files of --mock-clusterversion (no pods) are assessed by oc's rules alone, so these are left out.
        yield from waits.release_findings(cluster, readable(snapshot.component_pods), now)
        yield from waits.awaited_operator_findings(cluster, waiting, now)
