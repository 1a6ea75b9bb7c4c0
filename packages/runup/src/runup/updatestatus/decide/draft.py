"""Collects every finding and state from a snapshot, before anything is left out for its size."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime

import msgspec

from kubekit.api.conditions import find
from runup.api.config_v1 import ClusterVersion
from runup.api.update_v1alpha1 import AwaitedOperator
from runup.rules.machine_config import is_drain_wanted
from runup.updatestatus.decide import finding as uids
from runup.updatestatus.decide import health
from runup.updatestatus.decide import nodes as states
from runup.updatestatus.decide import waiting as waits
from runup.updatestatus.decide.control_plane import (
    ControlPlaneState,
    assess_control_plane,
    assess_operators,
    awaited_operators,
    is_progressing,
    operator_image,
)
from runup.updatestatus.decide.finding import DOCS, INCOMPLETE, UNKNOWN, UNKNOWN_IMPACT, UNREADABLE, Finding
from runup.updatestatus.decide.memory import PreviousStatus
from runup.updatestatus.decide.nodes import NodeState, PoolState
from runup.updatestatus.decide.snapshot import Snapshot, Unreadable, readable

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
}
"""Snapshot fields that are reported if they cannot be read, each with its name in messages."""


class Draft(msgspec.Struct, frozen=True, kw_only=True):
    """The states and findings of a snapshot, before anything is left out for its size."""

    cluster: ClusterVersion | None
    control_plane: ControlPlaneState | None
    waiting: tuple[AwaitedOperator, ...]
    pools: tuple[PoolState, ...]
    rows: dict[str, tuple[NodeState, ...]]
    findings: tuple[Finding, ...]
    unreadable: tuple[tuple[str, str], ...]
    alerts_unreadable: str | None
    alerts_asked: bool


def draft(snapshot: Snapshot, memory: PreviousStatus, now: datetime, node_now: datetime) -> Draft:
    """Returns everything that the snapshot shows at `now`."""
    cluster = None if isinstance(snapshot.cluster_version, Unreadable) else snapshot.cluster_version
    pools = _pools(snapshot, cluster)
    state: ControlPlaneState | None
    operators = snapshot.cluster_operators
    if cluster is None or isinstance(operators, Unreadable):
        state = None
    else:
        deployment = snapshot.machine_config_operator
        image = None if isinstance(deployment, Unreadable) else operator_image(deployment)
        state = assess_control_plane(cluster, assess_operators(operators, cluster.status.desired.version, image), now)
    waiting: tuple[AwaitedOperator, ...] = ()
    if cluster is not None and state is not None:
        waiting_since = memory.operators_awaited(uids.uid_of_object("cv", cluster.metadata.name))
        waiting = waits.awaited_operators(awaited_operators(cluster), state.operators, waiting_since, memory.stamp)
    unreadable = tuple(_unreadable_inputs(snapshot))
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
        ),
        *waits.pending_pod_findings(
            readable(snapshot.pending_pods), state.started if state and _is_updating(cluster, pools) else None, now
        ),
        *(_unreadable_finding(inputs, why) for inputs, why in unreadable),
        *(
            _not_whole(inputs, why)
            for inputs, why in _incomplete_inputs(snapshot, is_updating=_is_updating(cluster, pools))
        ),
    ]
    alerts = snapshot.alerts
    return Draft(
        cluster=cluster,
        control_plane=state,
        waiting=waiting,
        pools=pools,
        rows={pool.name: pool.rows() for pool in pools},
        findings=tuple(_without_duplicates(finding for finding in findings if health.is_complete(finding))),
        unreadable=unreadable,
        alerts_unreadable=alerts.why if isinstance(alerts, Unreadable) else None,
        alerts_asked=alerts is not None,
    )


def _without_duplicates(findings: Iterator[Finding]) -> Iterator[Finding]:
    """Yields each finding once in a layer, because lists of the API are keyed by uid."""
    keys = set()
    for finding in findings:
        key = (finding.pool, uids.uid_of_finding(finding))
        if key not in keys:
            keys.add(key)
            yield finding


def _is_updating(cluster: ClusterVersion | None, pools: Sequence[PoolState]) -> bool:
    return (cluster is not None and is_progressing(cluster)) or any(not pool.is_complete for pool in pools)


def _pools(snapshot: Snapshot, cluster: ClusterVersion | None) -> tuple[PoolState, ...]:
    """Returns the pools, or none if one of their inputs could not be read: half of the nodes would look outdated."""
    pools, nodes, configs = snapshot.machine_config_pools, snapshot.nodes, snapshot.machine_configs
    if cluster is None or isinstance(pools, Unreadable) or isinstance(nodes, Unreadable):
        return ()
    if isinstance(configs, Unreadable):
        return ()
    return states.assess_pools(pools, nodes, states.versions_of(configs), states.target_of(cluster))


def _of_cluster(
    snapshot: Snapshot,
    cluster: ClusterVersion,
    state: ControlPlaneState | None,
    waiting: Sequence[AwaitedOperator],
    now: datetime,
) -> Iterator[Finding]:
    """Yields the findings about the control plane: of alerts, ClusterVersion, operators, the history and Pods."""
    started = started_at(cluster)
    yield from health.alert_findings(readable(snapshot.alerts), started)
    yield from health.cluster_version_findings(cluster, now)
    if state is not None:
        yield from health.operator_findings(state.operators, now)
    yield from health.history_findings(cluster, control_plane_done=state is not None and state.is_done)
    if snapshot.pending_pods is not None:
        # The example files of --mock-clusterversion (no pods) are assessed by oc's rules alone, so these are left out.
        yield from waits.release_findings(cluster)
        yield from waits.awaited_operator_findings(cluster, waiting, now)


def started_at(cluster: ClusterVersion) -> datetime | None:
    """Returns when the newest update began: by the history, else when ClusterVersion's Progressing last changed."""
    if cluster.status.history:
        return cluster.status.history[0].started_time
    progressing = find(cluster.status.conditions, "Progressing")
    return progressing.last_transition_time if progressing else None


def _unreadable_inputs(snapshot: Snapshot) -> Iterator[tuple[str, str]]:
    """Yields (input, reason) for each input that could not be read or decoded."""
    for field, inputs in INPUTS.items():
        value = getattr(snapshot, field)
        if isinstance(value, Unreadable):
            yield inputs, value.why
    yield from snapshot.undecoded


def _incomplete_inputs(snapshot: Snapshot, *, is_updating: bool) -> Iterator[tuple[str, str]]:
    """Yields the snapshot fields that are known in part, if the report depends on them now, with the reason."""
    draining = any(is_drain_wanted(node) for node in readable(snapshot.nodes))
    is_needed = {"pending_pods": is_updating, "draining_pods": draining, "pod_disruption_budgets": draining}
    for field, inputs in INPUTS.items():
        if field in snapshot.incomplete and is_needed.get(field, True):
            yield inputs, snapshot.incomplete[field]


def _not_whole(inputs: str, why: str) -> Finding:
    """Returns the finding that objects are known only in part."""
    return Finding(
        check=INCOMPLETE,
        level=UNKNOWN,
        impact=UNKNOWN_IMPACT,
        summary=f"{inputs[0].upper()}{inputs[1:]} are known in part, so what the others would tell is not known",
        description=why,
        reference=DOCS + "inputincomplete",
        identity=inputs,
    )


def _unreadable_finding(inputs: str, why: str) -> Finding:
    """Returns the finding that objects, or one object, could not be read."""
    who = "they" if inputs in INPUTS.values() else "it"
    return Finding(
        check=UNREADABLE,
        level=UNKNOWN,
        impact=UNKNOWN_IMPACT,
        summary=f"{inputs[0].upper()}{inputs[1:]} could not be read, so what {who} would tell is not known",
        description=why or "No reason was given.",
        reference=DOCS + "inputunreadable",
        identity=inputs,
    )
