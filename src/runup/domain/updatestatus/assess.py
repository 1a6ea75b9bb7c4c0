"""One snapshot of the cluster in, the whole status of UpdateStatus out.

Every insight is computed anew from the snapshot; only times come from the previous status (`memory`). So nothing has to
be taken back when an object vanishes, and the same snapshot gives the same status: whoever writes it compares.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from runup.api import codec
from runup.api.config_v1 import ClusterVersion
from runup.api.meta_v1 import Condition
from runup.api.update_v1alpha1 import (
    AwaitedOperator,
    ControlPlane,
    Informer,
    Insight,
    Omitted,
    UpdateStatusStatus,
    WorkerPool,
)
from runup.domain.conditions import find, without_condition
from runup.domain.updatestatus import health, insights, limits, uids, waits
from runup.domain.updatestatus import nodes as states
from runup.domain.updatestatus.control_plane import (
    ControlPlaneState,
    assess_control_plane,
    assess_operators,
    awaited_operators,
    is_progressing,
    operator_image,
)
from runup.domain.updatestatus.finding import (
    DOCS,
    LEVELS,
    SCOPE_CONTROL_PLANE,
    SCOPE_WORKER_POOL,
    UNKNOWN,
    UNKNOWN_IMPACT,
    Finding,
    cluster_version_ref,
    pool_ref,
)
from runup.domain.updatestatus.memory import CONTROL_PLANE, Memory, Said
from runup.domain.updatestatus.nodes import NodeState, PoolState
from runup.domain.updatestatus.snapshot import CONTROL_PLANE_POOL, Snapshot, Unreadable, readable

INFORMER = "update-status-controller"
UNREADABLE, MORE = "InputUnreadable", "InsightsOmitted"
# How often an estimate is worth another look while nothing happens.
ESTIMATE_PERIOD_S = 30.0

_INPUTS = {
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
"""Fields of a snapshot whose absence is an insight, and what they are called."""


@dataclass(frozen=True, slots=True)
class Draft:
    """Everything that was found, before anything is left out for its size."""

    cluster: ClusterVersion | None
    control_plane: ControlPlaneState | None
    waiting: tuple[AwaitedOperator, ...]
    pools: tuple[PoolState, ...]
    rows: dict[str, tuple[NodeState, ...]]
    findings: tuple[Finding, ...]
    unreadable: tuple[tuple[str, str], ...]
    alerts_unreadable: str | None
    alerts_asked: bool


def assess(
    snapshot: Snapshot,
    previous: UpdateStatusStatus | None,
    now: datetime,
    *,
    node_now: datetime | None = None,
    max_bytes: int | None = limits.MAX_BYTES,
) -> UpdateStatusStatus:
    """The status as it is at `now`; equal to `previous` where nothing but time went by.

    `node_now` judges how long nodes have been unavailable, if not `now`: `oc` uses the real clock there even for its
    example files. `max_bytes` is what the status may have as JSON; None leaves nothing out.
    """
    memory = Memory(previous, now.replace(microsecond=0))
    found = draft(snapshot, memory, now, node_now or now)
    return _status(found, limits.UNBOUNDED, memory) if max_bytes is None else _fitted(found, memory, max_bytes)


def _fitted(found: Draft, memory: Memory, max_bytes: int) -> UpdateStatusStatus:
    """The status with as much as `max_bytes` hold, by the rule of `limits`."""
    sizes = [pool.total for pool in found.pools]
    if limits.node_step(sizes, max_bytes, limits.LEAST_NODE_BYTES) == limits.GENEROUS.nodes:
        status = _status(found, limits.GENEROUS, memory)
        if len(codec.encode(status)) <= max_bytes:
            return status
    for caps in (*_with_fewer_nodes(found, memory, max_bytes, sizes), *limits.MEAGRE):
        status = _status(found, caps, memory)
        if len(codec.encode(status)) <= max_bytes:
            break
    return status


def _with_fewer_nodes(found: Draft, memory: Memory, max_bytes: int, sizes: list[int]) -> Iterator[limits.Caps]:
    """The step that should fit, by the size of the first nodes of each pool, and those below it."""
    none, some = (replace(limits.FEWER_NODES, nodes=nodes) for nodes in (0, limits.MIN_NODES))
    bare = len(codec.encode(_status(found, none, memory)))
    sampled = sum(min(size, limits.MIN_NODES) for size in sizes) or 1
    each = max(1.0, (len(codec.encode(_status(found, some, memory))) - bare) / sampled)
    first = limits.node_step(sizes, max_bytes - bare, each)
    yield from (replace(limits.FEWER_NODES, nodes=step) for step in limits.NODE_STEPS if step <= first)


def next_change_s(snapshot: Snapshot, now: datetime) -> float | None:
    """Seconds until the assessment changes by time alone: an age passes a threshold, or an estimate runs on.

    None where only another object can change it.
    """
    cluster = snapshot.cluster_version
    if isinstance(cluster, Unreadable) or is_progressing(cluster):
        return ESTIMATE_PERIOD_S
    ages = []
    for operator in readable(snapshot.cluster_operators):
        for condition in operator.status.conditions:
            bad = {"Available": "False", "Degraded": "True"}.get(condition.type)
            if condition.status == bad and condition.last_transition_time:
                patience = (health.TOLERATED, health.UNAVAILABLE_TOO_LONG, health.DEGRADED_TOO_LONG)
                ages += [condition.last_transition_time + span for span in patience]
    for node in readable(snapshot.nodes):
        for condition in node.status.conditions:
            if condition.last_transition_time:
                ages += [condition.last_transition_time + span for span in states.SERIOUS_AFTER.values()]
    for pod in readable(snapshot.pending_pods):
        if pod.metadata.creation_timestamp:
            ages.append(pod.metadata.creation_timestamp + waits.POD_PATIENCE)
    left = [(moment - now).total_seconds() for moment in ages if moment > now]
    # One second later, since ages must be exceeded and not just reached.
    return min(left) + 1 if left else None


def draft(snapshot: Snapshot, memory: Memory, now: datetime, node_now: datetime) -> Draft:
    """Everything that the snapshot tells at `now`."""
    cluster = None if isinstance(snapshot.cluster_version, Unreadable) else snapshot.cluster_version
    pools = _pools(snapshot, cluster)
    state = _control_plane(snapshot, cluster, now)
    waiting: tuple[AwaitedOperator, ...] = ()
    if cluster is not None and state is not None:
        seen = memory.operators_awaited(uids.of_object("cv", cluster.metadata.name))
        waiting = waits.awaited(awaited_operators(cluster), state.operators, seen, memory.stamp)
    unreadable = tuple(_unreadable(snapshot))
    found = [
        *health.of_pools(pools, node_now),
        *(_of_cluster(snapshot, cluster, state, waiting, now) if cluster is not None else ()),
        *waits.of_drains(
            pools,
            readable(snapshot.draining_pods),
            readable(snapshot.pod_disruption_budgets),
            memory.findings(waits.DRAIN_BLOCKED),
            now,
            None if memory.is_empty else memory.stamp,
        ),
        *waits.of_pending_pods(
            readable(snapshot.pending_pods), state.started if state and _is_updating(cluster, pools) else None, now
        ),
        *(_could_not_read(what, why) for what, why in unreadable),
    ]
    alerts = snapshot.alerts
    return Draft(
        cluster=cluster,
        control_plane=state,
        waiting=waiting,
        pools=pools,
        rows={pool.name: pool.rows() for pool in pools},
        findings=tuple(_once(finding for finding in found if health.is_complete(finding))),
        unreadable=unreadable,
        alerts_unreadable=alerts.why if isinstance(alerts, Unreadable) else None,
        alerts_asked=alerts is not None,
    )


def _once(findings: Iterator[Finding]) -> Iterator[Finding]:
    """Each finding once a layer: lists of the API are keyed by uid."""
    seen = set()
    for finding in findings:
        key = (finding.pool, uids.of_finding(finding))
        if key not in seen:
            seen.add(key)
            yield finding


def _is_updating(cluster: ClusterVersion | None, pools: Sequence[PoolState]) -> bool:
    return (cluster is not None and is_progressing(cluster)) or any(not pool.is_complete for pool in pools)


def _pools(snapshot: Snapshot, cluster: ClusterVersion | None) -> tuple[PoolState, ...]:
    """None where one of the things that they are told from could not be read: half of them would look outdated."""
    pools, nodes, configs = snapshot.machine_config_pools, snapshot.nodes, snapshot.machine_configs
    if cluster is None or isinstance(pools, Unreadable) or isinstance(nodes, Unreadable):
        return ()
    if isinstance(configs, Unreadable):
        return ()
    return states.assess_pools(pools, nodes, states.versions_of(configs), states.target_of(cluster))


def _control_plane(snapshot: Snapshot, cluster: ClusterVersion | None, now: datetime) -> ControlPlaneState | None:
    operators = snapshot.cluster_operators
    if cluster is None or isinstance(operators, Unreadable):
        return None
    deployment = snapshot.machine_config_operator
    image = None if isinstance(deployment, Unreadable) else operator_image(deployment)
    return assess_control_plane(cluster, assess_operators(operators, cluster.status.desired.version, image), now)


def _of_cluster(
    snapshot: Snapshot,
    cluster: ClusterVersion,
    state: ControlPlaneState | None,
    waiting: Sequence[AwaitedOperator],
    now: datetime,
) -> Iterator[Finding]:
    started = started_at(cluster)
    yield from health.of_alerts(readable(snapshot.alerts), started)
    yield from health.of_cluster_version(cluster, now)
    if state is not None:
        yield from health.of_operators(state.operators, now)
    yield from health.of_history(cluster, control_plane_done=state is not None and state.is_done)
    if snapshot.pending_pods is not None:
        # Files of examples are read by oc's rules alone; so are these.
        yield from waits.of_release(cluster)
        yield from waits.of_awaited(cluster, waiting, now)


def started_at(cluster: ClusterVersion) -> datetime | None:
    """When the newest update began: by the history, else when ClusterVersion last began or ended to progress."""
    if cluster.status.history:
        return cluster.status.history[0].started_time
    progressing = find(cluster.status.conditions, "Progressing")
    return progressing.last_transition_time if progressing else None


def _unreadable(snapshot: Snapshot) -> Iterator[tuple[str, str]]:
    for field, what in _INPUTS.items():
        value = getattr(snapshot, field)
        if isinstance(value, Unreadable):
            yield what, value.why


def _could_not_read(what: str, why: str) -> Finding:
    return Finding(
        check=UNREADABLE,
        level=UNKNOWN,
        impact=UNKNOWN_IMPACT,
        summary=f"{what[0].upper()}{what[1:]} could not be read, so what they would tell is not known",
        description=why or "No reason was given.",
        reference=DOCS + "inputunreadable",
        identity=what,
    )


def _status(found: Draft, caps: limits.Caps, memory: Memory) -> UpdateStatusStatus:
    workers = [pool for pool in found.pools if not pool.is_control_plane]
    kept = _kept_pools(workers, caps.pools)
    control_plane = _control_plane_layer(found, caps, memory, len(workers) - len(kept))
    pools = tuple(_worker_pool(pool, found, caps, memory) for pool in kept)
    omitted = [control_plane.omitted, *(pool.omitted for pool in pools)]
    missing = Omitted(nodes=sum(each.nodes for each in omitted), health=sum(each.health for each in omitted))
    return UpdateStatusStatus(
        control_plane=control_plane,
        worker_pools=pools,
        omitted_worker_pools=len(workers) - len(kept),
        conditions=_own_conditions(found, missing, len(workers) - len(kept), memory),
    )


def _kept_pools(pools: Sequence[PoolState], limit: int) -> list[PoolState]:
    """At most `limit` pools in their order; those that are done or empty are left out first."""
    if len(pools) <= limit:
        return list(pools)
    ranked = sorted(range(len(pools)), key=lambda i: (pools[i].is_complete, not pools[i].total))
    chosen = set(ranked[:limit])
    return [pool for i, pool in enumerate(pools) if i in chosen]


def _control_plane_layer(found: Draft, caps: limits.Caps, memory: Memory, omitted_pools: int) -> ControlPlane:
    cluster, state = found.cluster, found.control_plane
    pool = next((pool for pool in found.pools if pool.is_control_plane), None)
    head: list[Insight] = []
    if cluster is not None:
        head.append(insights.cluster_version(cluster, state, found.waiting, memory, caps.text))
    head += [insights.cluster_operator(each, memory, caps.text) for each in (state.operators if state else ())]
    findings = [finding for finding in found.findings if finding.pool == CONTROL_PLANE]
    if omitted_pools:
        findings.append(_pools_omitted(omitted_pools))
    made, omitted = _layer(
        head, pool, found, findings, caps, memory, min(limits.MAX_CONTROL_PLANE, caps.nodes), limits.MAX_CONTROL_PLANE
    )
    said = insights.control_plane_updating(cluster) if cluster is not None else _unknown(found)
    return ControlPlane(
        resource=cluster_version_ref(cluster.metadata.name) if cluster is not None else None,
        pool_resource=pool_ref(CONTROL_PLANE_POOL) if pool is not None else None,
        informers=(Informer(name=INFORMER, insights=made),),
        omitted=omitted,
        conditions=memory.conditions(memory.conditions_of("control_plane"), said),
    )


def _unknown(found: Draft) -> Said:
    why = next((why for what, why in found.unreadable if what == _INPUTS["cluster_version"]), "")
    return (insights.UPDATING, "Unknown", "CannotDetermineUpdating", f"ClusterVersion could not be read: {why}")


def _worker_pool(pool: PoolState, found: Draft, caps: limits.Caps, memory: Memory) -> WorkerPool:
    findings = [finding for finding in found.findings if finding.pool == pool.name]
    made, omitted = _layer([], pool, found, findings, caps, memory, caps.nodes, limits.MAX_POOL)
    return WorkerPool(
        name=pool.name,
        resource=pool_ref(pool.name),
        informers=(Informer(name=INFORMER, insights=made),),
        omitted=omitted,
        conditions=memory.conditions(memory.pool_conditions(pool.name), insights.pool_updating(pool)),
    )


def _layer(
    head: list[Insight],
    pool: PoolState | None,
    found: Draft,
    findings: Sequence[Finding],
    caps: limits.Caps,
    memory: Memory,
    max_nodes: int,
    max_insights: int,
) -> tuple[tuple[Insight, ...], Omitted]:
    """The insights of one layer in order (`head`, the pool, its nodes, health), and what did not find room."""
    bounded = caps != limits.UNBOUNDED
    kept, more = _kept_findings(findings, caps.health)
    made = list(head)
    omitted_nodes = 0
    if pool is not None:
        made.append(insights.machine_config_pool(pool, memory))
        rows = found.rows[pool.name]
        room = max(0, max_insights - len(made) - len(kept) - bool(more)) if bounded else len(rows)
        rows = rows[: min(room, max_nodes)] if bounded else rows
        made += [insights.node(row, pool, memory, caps.text) for row in rows]
        omitted_nodes = pool.total - len(rows)
    made += [insights.health(finding, memory, caps.text) for finding in kept]
    if more:
        made.append(insights.health(_findings_omitted(more, pool), memory, caps.text))
    return tuple(made), Omitted(nodes=omitted_nodes, health=len(more))


def _kept_findings(findings: Sequence[Finding], limit: int) -> tuple[list[Finding], list[Finding]]:
    """The `limit` worst in their order, and the rest."""
    if len(findings) <= limit:
        return list(findings), []
    ranked = sorted(range(len(findings)), key=lambda i: -LEVELS.index(findings[i].level))
    chosen = set(ranked[:limit])
    return (
        [finding for i, finding in enumerate(findings) if i in chosen],
        [finding for i, finding in enumerate(findings) if i not in chosen],
    )


def _findings_omitted(more: Sequence[Finding], pool: PoolState | None) -> Finding:
    counts = {level: sum(finding.level == level for finding in more) for level in reversed(LEVELS)}
    listed = ", ".join(f"{count} {level}" for level, count in counts.items() if count)
    worker = pool is not None and not pool.is_control_plane
    where = f" of pool '{pool.name}'" if pool is not None and worker else ""
    return Finding(
        check=MORE,
        level=max((finding.level for finding in more), key=LEVELS.index),
        impact=UNKNOWN_IMPACT,
        summary=f"{len(more)} more insights{where} are left out ({listed})",
        description="The report is limited in size; the first of those left out: "
        + "; ".join(finding.summary for finding in more[:5]),
        reference=DOCS + "insightsomitted",
        scope=SCOPE_WORKER_POOL if worker else SCOPE_CONTROL_PLANE,
        identity="health",
        pool=pool.name if pool is not None and worker else CONTROL_PLANE,
    )


def _pools_omitted(count: int) -> Finding:
    return Finding(
        check=MORE,
        level=UNKNOWN,
        impact=UNKNOWN_IMPACT,
        summary=f"{count} worker pools are left out, those that are done first",
        description=f"The report holds at most {limits.MAX_POOLS} worker pools.",
        reference=DOCS + "insightsomitted",
        identity="pools",
    )


def _own_conditions(found: Draft, missing: Omitted, pools: int, memory: Memory) -> tuple[Condition, ...]:
    """The health of the report itself; conditions that others set are kept."""
    said: list[Said] = [_available(found), _alerts(found), _complete(missing, pools)]
    old = memory.conditions_of()
    others = without_condition(old, *(each[0] for each in said))
    return (*memory.conditions(old, *said), *others)


def _available(found: Draft) -> Said:
    if not found.unreadable:
        return ("Available", "True", "AsExpected", "")
    message = "; ".join(f"{what} could not be read: {why}" for what, why in found.unreadable)
    return ("Available", "False", "CannotWatch", insights.cut(message, 4096))


def _alerts(found: Draft) -> Said:
    if found.alerts_unreadable is not None:
        return ("AlertsReachable", "False", "CannotReadAlerts", insights.cut(found.alerts_unreadable, 4096))
    if not found.alerts_asked:
        return ("AlertsReachable", "Unknown", "NotAsked", "Alerts were not asked for")
    return ("AlertsReachable", "True", "AsExpected", "")


def _complete(missing: Omitted, pools: int) -> Said:
    parts = [f"{missing.nodes} nodes"] if missing.nodes else []
    parts += [f"{missing.health} health insights"] if missing.health else []
    parts += [f"{pools} worker pools"] if pools else []
    if not parts:
        return ("Complete", "True", "AsExpected", "")
    return ("Complete", "False", "InsightsOmitted", f"Left out to keep the object small: {', '.join(parts)}")
