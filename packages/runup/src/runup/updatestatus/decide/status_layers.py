"""Builds the status from a draft: insights in their layers, counts of what is omitted, and the report's conditions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from msgspec.structs import replace

from kubekit.api.conditions import without_condition
from kubekit.api.meta_v1 import Condition
from runup.api.update_v1alpha1 import ControlPlane, Informer, Insight, Omitted, UpdateStatusStatus, WorkerPool
from runup.rules.machine_config import CONTROL_PLANE_POOL
from runup.updatestatus.decide import insights, limits, pool_insights, version_insight
from runup.updatestatus.decide.draft import INPUTS, Draft
from runup.updatestatus.decide.finding import (
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
from runup.updatestatus.decide.insight_names import INFORMER, UPDATING, cut
from runup.updatestatus.decide.memory import CONTROL_PLANE, ConditionValues, PreviousStatus
from runup.updatestatus.decide.nodes import PoolState

MORE = "InsightsOmitted"
Layer = TypeVar("Layer", ControlPlane, WorkerPool)


def status_of(
    drafted: Draft, caps: limits.Limits, memory: PreviousStatus, full: frozenset[str] = frozenset()
) -> UpdateStatusStatus:
    """Returns the status with as much content as `caps` allow, and without insights in the layers that are `full`."""
    workers = [pool for pool in drafted.pools if not pool.is_control_plane]
    kept_pools = _kept_pools(workers, caps.pools)
    control_plane = _control_plane_layer(drafted, caps, memory, len(workers) - len(kept_pools))
    pools = tuple(_worker_pool(pool, drafted, caps, memory) for pool in kept_pools)
    full_layers = [name for name in (CONTROL_PLANE, *(pool.name for pool in pools)) if name in full]
    if CONTROL_PLANE in full:
        control_plane = _without_insights(control_plane)
    pools = tuple(_without_insights(pool) if pool.name in full else pool for pool in pools)
    omitted = [control_plane.omitted, *(pool.omitted for pool in pools)]
    missing = Omitted(
        nodes=sum(omission.nodes for omission in omitted), health=sum(omission.health for omission in omitted)
    )
    return UpdateStatusStatus(
        control_plane=control_plane,
        worker_pools=pools,
        omitted_worker_pools=len(workers) - len(kept_pools),
        conditions=_own_conditions(drafted, missing, len(workers) - len(kept_pools), full_layers, memory),
    )


def _without_insights(layer: Layer) -> Layer:
    """Returns a layer without our informer; the nodes and the health insights that it had count as omitted."""
    kinds = [insight.type for informer in layer.informers for insight in informer.insights]
    return replace(
        layer,
        informers=(),
        omitted=Omitted(
            nodes=layer.omitted.nodes + kinds.count("Node"),
            health=layer.omitted.health + kinds.count("Health"),
        ),
    )


def _kept_pools(pools: Sequence[PoolState], limit: int) -> list[PoolState]:
    """Returns at most `limit` pools in their order; completed and empty pools are left out first."""
    if len(pools) <= limit:
        return list(pools)
    ranked = sorted(range(len(pools)), key=lambda i: (pools[i].is_complete, not pools[i].total))
    chosen_pools = set(ranked[:limit])
    return [pool for i, pool in enumerate(pools) if i in chosen_pools]


def _control_plane_layer(
    drafted: Draft, caps: limits.Limits, memory: PreviousStatus, omitted_pools: int
) -> ControlPlane:
    """Returns the control plane's layer, with as many insights as `caps` allow."""
    cluster, state = drafted.cluster, drafted.control_plane
    pool = next((pool for pool in drafted.pools if pool.is_control_plane), None)
    head: list[Insight] = []
    if cluster is not None:
        head.append(version_insight.cluster_version(cluster, state, drafted.waiting, memory, caps.text))
    head += [insights.cluster_operator(operator, memory, caps.text) for operator in (state.operators if state else ())]
    findings = [finding for finding in drafted.findings if finding.pool == CONTROL_PLANE]
    if omitted_pools:
        findings.append(_pools_omitted(omitted_pools))
    layer_insights, omitted = _layer(
        head, pool, drafted, findings, caps, memory, min(limits.MAX_CONTROL_PLANE, caps.nodes), limits.MAX_CONTROL_PLANE
    )
    updating = version_insight.control_plane_updating(cluster) if cluster is not None else _unknown_update(drafted)
    return ControlPlane(
        resource=cluster_version_ref(cluster.metadata.name) if cluster is not None else None,
        pool_resource=pool_ref(CONTROL_PLANE_POOL) if pool is not None else None,
        informers=(Informer(name=INFORMER, insights=layer_insights),),
        omitted=omitted,
        conditions=memory.conditions(memory.conditions_of("control_plane"), updating),
    )


def _unknown_update(drafted: Draft) -> ConditionValues:
    why = next((why for input_name, why in drafted.unreadable if input_name == INPUTS["cluster_version"]), "")
    return (UPDATING, "Unknown", "CannotDetermineUpdating", f"ClusterVersion could not be read: {why}")


def _worker_pool(pool: PoolState, drafted: Draft, caps: limits.Limits, memory: PreviousStatus) -> WorkerPool:
    """Returns a worker pool's layer, with as many insights as `caps` allow."""
    findings = [finding for finding in drafted.findings if finding.pool == pool.name]
    pool_layer_insights, omitted = _layer([], pool, drafted, findings, caps, memory, caps.nodes, limits.MAX_POOL)
    return WorkerPool(
        name=pool.name,
        resource=pool_ref(pool.name),
        informers=(Informer(name=INFORMER, insights=pool_layer_insights),),
        omitted=omitted,
        conditions=memory.conditions(memory.pool_conditions(pool.name), pool_insights.pool_updating(pool)),
    )


def _layer(
    head: list[Insight],
    pool: PoolState | None,
    drafted: Draft,
    findings: Sequence[Finding],
    caps: limits.Limits,
    memory: PreviousStatus,
    max_nodes: int,
    max_insights: int,
) -> tuple[tuple[Insight, ...], Omitted]:
    """Returns the insights of one layer in order (`head`, the pool, its nodes, health), and the counts of others."""
    bounded = caps != limits.UNBOUNDED
    kept_findings, omitted_findings = _kept_findings(findings, caps.health)
    layer_insights = list(head)
    omitted_nodes = 0
    if pool is not None:
        layer_insights.append(pool_insights.machine_config_pool(pool, memory))
        rows = drafted.rows[pool.name]
        room = (
            max(0, max_insights - len(layer_insights) - len(kept_findings) - bool(omitted_findings))
            if bounded
            else len(rows)
        )
        rows = rows[: min(room, max_nodes)] if bounded else rows
        layer_insights += [pool_insights.node(row, pool, memory, caps.text) for row in rows]
        # Of all nodes of the pool, not only of those that were drafted.
        omitted_nodes = pool.total - len(rows)
    layer_insights += [insights.health(finding, memory, caps.text) for finding in kept_findings]
    if omitted_findings:
        layer_insights.append(insights.health(_findings_omitted(omitted_findings, pool), memory, caps.text))
    return tuple(layer_insights), Omitted(nodes=omitted_nodes, health=len(omitted_findings))


def _kept_findings(findings: Sequence[Finding], limit: int) -> tuple[list[Finding], list[Finding]]:
    """Returns the `limit` worst findings in their order, and the rest."""
    if len(findings) <= limit:
        return list(findings), []
    ranked = sorted(range(len(findings)), key=lambda i: -LEVELS.index(findings[i].level))
    chosen_findings = set(ranked[:limit])
    return (
        [finding for i, finding in enumerate(findings) if i in chosen_findings],
        [finding for i, finding in enumerate(findings) if i not in chosen_findings],
    )


def _findings_omitted(more: Sequence[Finding], pool: PoolState | None) -> Finding:
    """Returns the insight that stands for all omitted insights, with their number at each level."""
    counts = {level: sum(finding.level == level for finding in more) for level in reversed(LEVELS)}
    listed = ", ".join(f"{count} {level}" for level, count in counts.items() if count)
    worker = pool is not None and not pool.is_control_plane
    of_pool = f" of pool '{pool.name}'" if pool is not None and worker else ""
    return Finding(
        check=MORE,
        level=max((finding.level for finding in more), key=LEVELS.index),
        impact=UNKNOWN_IMPACT,
        summary=f"{len(more)} more insights{of_pool} are left out ({listed})",
        description="The report is limited in size; the first of those left out: "
        + "; ".join(finding.summary for finding in more[:5]),
        reference=DOCS + "insightsomitted",
        scope=SCOPE_WORKER_POOL if worker else SCOPE_CONTROL_PLANE,
        identity="health",
        pool=pool.name if pool is not None and worker else CONTROL_PLANE,
    )


def _pools_omitted(count: int) -> Finding:
    """Returns the insight that worker pools were left out."""
    return Finding(
        check=MORE,
        level=UNKNOWN,
        impact=UNKNOWN_IMPACT,
        summary=f"{count} worker pools are left out, those that are done first",
        description=f"The report holds at most {limits.MAX_POOLS} worker pools.",
        reference=DOCS + "insightsomitted",
        identity="pools",
    )


def _own_conditions(
    drafted: Draft, missing: Omitted, pools: int, full_layers: Sequence[str], memory: PreviousStatus
) -> tuple[Condition, ...]:
    """Returns the conditions of the report itself; conditions that other clients set are kept."""
    own_values: list[ConditionValues] = [
        _available(drafted),
        _alerts(drafted),
        _completeness_values(missing, pools, full_layers),
    ]
    old = memory.conditions_of()
    other_conditions = without_condition(old, *(values[0] for values in own_values))
    return (*memory.conditions(old, *own_values), *other_conditions)


def _available(drafted: Draft) -> ConditionValues:
    if not drafted.unreadable:
        return ("Available", "True", "AsExpected", "")
    message = "; ".join(f"{input_name} could not be read: {why}" for input_name, why in drafted.unreadable)
    return ("Available", "False", "CannotWatch", cut(message, 4096))


def _alerts(drafted: Draft) -> ConditionValues:
    """Returns the condition AlertsReachable."""
    if drafted.alerts_unreadable is not None:
        return ("AlertsReachable", "False", "CannotReadAlerts", cut(drafted.alerts_unreadable, 4096))
    if not drafted.alerts_asked:
        return ("AlertsReachable", "Unknown", "NotAsked", "Alerts were not asked for")
    return ("AlertsReachable", "True", "AsExpected", "")


def _completeness_values(missing: Omitted, pools: int, full_layers: Sequence[str]) -> ConditionValues:
    """Returns the values of the condition Complete: what was left out, because of its size or of other informers."""
    parts = [f"{missing.nodes} nodes"] if missing.nodes else []
    parts += [f"{missing.health} health insights"] if missing.health else []
    parts += [f"{pools} worker pools"] if pools else []
    if full_layers:
        names = ", ".join(f"pool '{name}'" if name else "the control plane" for name in full_layers)
        message = f"Other informers have taken every place of {names}"
        message += f"; left out in all: {', '.join(parts)}" if parts else ""
        return ("Complete", "False", "InsightsOmitted", cut(message, 4096))
    if not parts:
        return ("Complete", "True", "AsExpected", "")
    return ("Complete", "False", "InsightsOmitted", f"Left out to keep the object small: {', '.join(parts)}")
