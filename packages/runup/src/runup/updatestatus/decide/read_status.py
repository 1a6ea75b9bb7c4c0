"""Converts an UpdateStatus into a `Report`: rows in the order in which they are shown.

In: an UpdateStatus as JSON, or decoded. Out: a `Report`, or DecodeError if it is not an UpdateStatus at all. The object
may have been written by the release before or after this one, so nothing unknown is dropped: values of enumerations are
kept as text, an unknown level is sorted before all others, and an insight that could not be decoded becomes a finding
that says so."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec
from msgspec.structs import replace

from kubekit.api.conditions import find
from kubekit.api.meta_v1 import Condition
from kubekit.lang.gotext import parse_duration
from runup.api.update_v1alpha1 import (
    NO_VERSION,
    ClusterOperatorInsight,
    ClusterVersionInsight,
    HealthInsight,
    Informer,
    Insight,
    MachineConfigPoolInsight,
    NodeInsight,
    OperatorProgress,
    ResourceRef,
    UpdateStatusStatus,
)
from runup.rules.machine_config import CONTROL_PLANE_POOL
from runup.updatestatus.decide import nodes as states
from runup.updatestatus.decide.decode import decode, unknown_insights
from runup.updatestatus.decide.finding import (
    ALERT_FIRING,
    ARCHITECTURE,
    AVAILABLE,
    DEGRADED,
    HEALTHY,
    INCOMPLETE,
    INFORMER,
    INSTALLATION,
    LEVELS,
    NO_RUNBOOK,
    NODE_DEGRADED,
    NODE_UNAVAILABLE,
    PARTIAL,
    POOL_PAUSED,
    UNKNOWN,
    UNKNOWN_VERSION,
    UNREADABLE,
    UPDATING,
)
from runup.updatestatus.decide.nodes import Counts, count

# Which objects a finding about input is about, its summary alone says: a kind in the plural, or one object of a kind.
_OF_POOLS = ("MachineConfig", "Node")


class OperatorRow(msgspec.Struct, frozen=True, kw_only=True):
    """An operator's row; an operator that is not updated, updating or waiting is in an unknown state."""

    name: str
    updated: bool
    updating: bool
    waiting: bool
    unavailable: bool
    degraded: bool
    progressing: OperatorProgress | None


class NodeRow(states.NodeSummary, frozen=True, kw_only=True):
    """A node's row in the table; `estimate_ns` is None if unknown."""

    estimate_ns: int | None

    @property
    def needs_attention(self) -> bool:
        """True if the row is always shown, however many there are."""
        return self.degraded or self.assessment == states.UNAVAILABLE


class PoolReport(msgspec.Struct, frozen=True, kw_only=True):
    """A pool: counts of all its nodes, and rows of those that the object holds, in the order of the table.

    `completion` is a percentage, None if the object does not describe the pool.
    """

    name: str
    assessment: str
    completion: int | None
    counts: Counts
    rows: tuple[NodeRow, ...]

    @property
    def done(self) -> int:
        """The number of nodes in phase Updated."""
        return self.counts.done

    @property
    def is_complete(self) -> bool:
        """True if no node remains to be updated."""
        return self.counts.is_complete


class HealthRow(msgspec.Struct, frozen=True, kw_only=True):
    """A problem that needs attention; `since` is None if unknown."""

    level: str
    impact: str
    summary: str
    description: str = ""
    reference: str = ""
    since: datetime | None = None
    first_observed: datetime | None = None
    resources: tuple[ResourceRef, ...] = ()
    check: str = ""


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """An UpdateStatus for display. `updating` is condition Updating of the control plane, None if there is none."""

    updating: Condition | None
    cluster_version: ClusterVersionInsight | None
    operators: tuple[OperatorRow, ...]
    control_plane_pool: PoolReport | None
    worker_pools: tuple[PoolReport, ...]
    omitted_worker_pools: int
    health: tuple[HealthRow, ...]
    conditions: tuple[Condition, ...]

    @property
    def is_updating(self) -> bool:
        """True if the control plane or a worker pool is still updating."""
        return (self.updating is not None and self.updating.status == "True") or any(
            not pool.is_complete for pool in self.worker_pools
        )

    @property
    def has_unknown_pools(self) -> bool:
        """True if a pool, one of its nodes or their configuration could not be read, and so may lack in the report."""
        available = find(self.conditions, AVAILABLE)
        is_incomplete = available is not None and available.status == "False"
        if is_incomplete and self.control_plane_pool is None and not self.worker_pools:
            return True
        return any(row.check in (UNREADABLE, INCOMPLETE) and row.summary.startswith(_OF_POOLS) for row in self.health)

    @property
    def control_plane_done(self) -> bool:
        """True if every operator has the target's version."""
        if not self.operators:
            return self.cluster_version is not None and self.cluster_version.assessment == "Completed"
        return all(operator.updated for operator in self.operators)

    @property
    def target(self) -> str:
        """The target version of the control plane, or `unknown`."""
        versions = self.cluster_version.versions if self.cluster_version else None
        return versions.target.version if versions else UNKNOWN_VERSION

    @property
    def target_text(self) -> str:
        """The target version and the version before it, as the report prints them."""
        versions = self.cluster_version.versions if self.cluster_version else None
        if versions is None:
            return f"{UNKNOWN_VERSION} (from {UNKNOWN_VERSION})"
        previous, target = versions.previous.version, versions.target.version
        before = {entry.key for entry in versions.previous.metadata}
        marks = {entry.key for entry in versions.target.metadata}
        if previous == NO_VERSION or INSTALLATION in before | marks:
            return f"{target} (a new install)"
        if PARTIAL in before:
            return f"{target} (from incomplete {previous})"
        return f"{target} to Multi-Architecture" if ARCHITECTURE in marks else f"{target} (from {previous})"

    @property
    def changes_architecture(self) -> bool:
        """True if the version stays the same and the image changes."""
        versions = self.cluster_version.versions if self.cluster_version else None
        return versions is not None and any(entry.key == ARCHITECTURE for entry in versions.target.metadata)


JSON = dict[str, Any]

_LONG_AGO = datetime.min.replace(tzinfo=UTC)
# Findings about pools and their nodes, which oc shows before all others of one level and time.
_POOL_FINDINGS = frozenset({NODE_UNAVAILABLE, NODE_DEGRADED, POOL_PAUSED})


def report(obj: JSON, *, worker_pools_before_master: int = 0) -> Report:
    """Returns the Report of an UpdateStatus of any release as JSON. Raises codec.DecodeError if it is not one.

    `worker_pools_before_master` is the number of worker pools that precede the control plane's pool in the cluster's
    list of MachineConfigPools; findings of one level and time are shown in the order of that list, as oc shows them.
    """
    return report_of_status(*decode(obj), worker_pools_before_master=worker_pools_before_master)


def report_of_status(
    status: UpdateStatusStatus, unknown: Iterable[str] = (), *, worker_pools_before_master: int = 0
) -> Report:
    """Returns the Report of a decoded status.

    `unknown` has the types of the insights that could not be decoded; `worker_pools_before_master` is as for `report`.
    """
    layer = status.control_plane
    control_plane = merged_insights(layer.informers if layer else ())
    cluster_version = next((insight.cluster_version for insight in control_plane if insight.cluster_version), None)
    pools = []
    health = [insight.health for insight in control_plane if insight.health]
    of_workers: list[list[HealthInsight]] = []
    for pool in status.worker_pools:
        pool_layer = merged_insights(pool.informers)
        pools.append(pool_report(pool.name, pool_layer, pool.omitted.nodes))
        of_workers.append([insight.health for insight in pool_layer if insight.health])
    master = [insight for insight in control_plane if insight.node or insight.machine_config_pool]
    omitted = layer.omitted.nodes if layer else 0
    return Report(
        updating=find(layer.conditions, UPDATING) if layer else None,
        cluster_version=cluster_version,
        operators=tuple(_operator(insight.cluster_operator) for insight in control_plane if insight.cluster_operator),
        control_plane_pool=pool_report(CONTROL_PLANE_POOL, master, omitted) if master else None,
        worker_pools=tuple(pools),
        omitted_worker_pools=status.omitted_worker_pools,
        health=_health(health, of_workers, unknown, worker_pools_before_master),
        conditions=status.conditions,
    )


def merged_insights(informers: Iterable[Informer]) -> list[Insight]:
    """Returns the insights of all informers, ours first; of several insights of one object only the first."""
    merged: list[Insight] = []
    known_subjects: set[tuple[str, str]] = set()
    for informer in sorted(informers, key=lambda informer_entry: informer_entry.name != INFORMER):
        with_subjects = [(insight, _subject(insight)) for insight in informer.insights]
        merged += [insight for insight, subject in with_subjects if subject not in known_subjects]
        known_subjects |= {subject for _, subject in with_subjects if subject is not None}
    return merged


def _subject(insight: Insight) -> tuple[str, str] | None:
    """Returns the object that an insight describes; None for a health insight, which is always kept."""
    resource = insight.cluster_operator or insight.machine_config_pool or insight.node
    return (insight.type, resource.name) if resource else None


def _operator(insight: ClusterOperatorInsight) -> OperatorRow:
    """Returns an operator's row, from the reasons of its conditions."""
    updating, healthy = find(insight.conditions, UPDATING), find(insight.conditions, HEALTHY)
    reason = updating.reason if updating else ""
    return OperatorRow(
        name=insight.name,
        updated=reason == "Updated",
        updating=reason == "Progressing",
        waiting=reason == "Pending",
        unavailable=healthy is not None and healthy.reason == "Unavailable",
        degraded=healthy is not None and healthy.reason == "Degraded",
        progressing=insight.progressing or _progress(updating),
    )


def _progress(updating: Condition | None) -> OperatorProgress | None:
    """Returns the operator's progress from condition Updating, for objects without the operator's own condition."""
    if updating is None:
        return None
    return OperatorProgress(status=updating.status, message=updating.message)


_NODE_ASSESSMENTS = {"Paused": states.EXCLUDED, "Pending": states.OUTDATED, "Completed": states.COMPLETED}


def node_row(insight: NodeInsight) -> NodeRow:
    """Returns a Node's row: what oc shows, from the Node's conditions."""
    updating, degraded = find(insight.conditions, UPDATING), find(insight.conditions, DEGRADED)
    available = find(insight.conditions, AVAILABLE)
    reason = updating.reason if updating else ""
    is_updating = updating is not None and updating.status == "True"
    is_degraded = degraded is not None and degraded.status == "True"
    unavailable = available is not None and available.status == "False"
    assessment = _NODE_ASSESSMENTS.get(reason, states.PROGRESSING if is_updating else UNKNOWN)
    if unavailable and not is_updating:
        assessment = states.UNAVAILABLE
    if is_degraded:
        assessment = states.DEGRADED
    return NodeRow(
        name=insight.name,
        assessment=assessment,
        phase=states.UPDATED if reason == "Completed" else reason or UNKNOWN,
        version=insight.version,
        estimate_ns=parse_duration(insight.est_to_complete) if insight.est_to_complete else None,
        message=insight.message,
        updated=reason == "Completed" and not is_updating,
        unavailable=unavailable,
        degraded=is_degraded,
    )


def pool_report(name: str, insights: Iterable[Insight], omitted: int) -> PoolReport:
    """Returns a pool's report; without an insight of the pool, it is counted from the Nodes' rows."""
    insights = list(insights)
    rows = tuple(sorted((node_row(insight.node) for insight in insights if insight.node), key=lambda row: row.order))
    pool = next((insight.machine_config_pool for insight in insights if insight.machine_config_pool), None)
    counts = _counts_of(pool, rows) if pool else count(rows)
    if pool is None and omitted:
        # Nodes that are omitted and not counted are taken as not updated.
        counts = replace(counts, total=counts.total + omitted, outdated=counts.outdated + omitted)
    return PoolReport(
        name=name,
        assessment=pool.assessment if pool else _pool_assessment(counts),
        completion=pool.completion if pool else None,
        counts=counts,
        rows=rows,
    )


def _counts_of(insight: MachineConfigPoolInsight, rows: tuple[NodeRow, ...]) -> Counts:
    """Returns a pool's counts, from its summaries; Nodes that are only early in phase Updated are not updated."""
    summaries: Mapping[str, int] = {summary.type: summary.count for summary in insight.summaries}
    total, outdated = summaries.get("Total", len(rows)), summaries.get("Outdated", 0)
    # A node can reach phase Updated a moment before its version changes; only the rows show such nodes.
    early = sum(row.phase == states.UPDATED and not row.updated for row in rows)
    return Counts(
        total=total,
        updated=total - outdated - early,
        available=summaries.get("Available", 0),
        progressing=summaries.get("Progressing", 0),
        outdated=outdated,
        draining=summaries.get("Draining", 0),
        excluded=summaries.get("Excluded", 0),
        degraded=summaries.get("Degraded", 0),
    )


def _pool_assessment(counts: Counts) -> str:
    """Returns the word for a pool by the numbers of its nodes."""
    if not counts.outdated:
        return states.COMPLETED
    if counts.degraded:
        return states.DEGRADED
    if counts.excluded:
        return states.EXCLUDED
    return states.PROGRESSING if counts.progressing or counts.outdated < counts.total else states.PENDING


def _health(
    of_control_plane: Iterable[HealthInsight],
    of_workers: Sequence[Iterable[HealthInsight]],
    unknown: Iterable[str],
    worker_pools_before_master: int,
) -> tuple[HealthRow, ...]:
    """Returns the rows of all health insights, by level, highest first, then newest first; ties as oc orders them.

    That is: findings of pools first, in the order of the cluster's pools, then those of the control plane. `of_workers`
    has the insights of each worker pool.
    """
    of_control_plane = list(of_control_plane)
    of_master = [insight for insight in of_control_plane if _is_of_pool(insight)]
    of_pools = [*of_workers[:worker_pools_before_master], of_master, *of_workers[worker_pools_before_master:]]
    rows = [
        *(_health_row(insight) for pool in of_pools for insight in pool),
        *(_health_row(insight) for insight in of_control_plane if not _is_of_pool(insight)),
        *(_health_row(insight) for insight in unknown_insights(unknown)),
    ]
    rows.sort(key=lambda row: row.since or _LONG_AGO, reverse=True)
    rows.sort(key=lambda row: LEVELS.index(row.level) if row.level in LEVELS else len(LEVELS), reverse=True)
    return tuple(rows)


def _is_of_pool(insight: HealthInsight) -> bool:
    """Returns whether a health insight is about a pool or its nodes."""
    if insight.check:
        return insight.check in _POOL_FINDINGS
    return any(ref.resource in ("nodes", "machineconfigpools") for ref in insight.scope.resources[:1])


def _health_row(insight: HealthInsight) -> HealthRow:
    """Returns the row of a health insight."""
    alert = insight.check == ALERT_FIRING or any(ref.resource == "alerts" for ref in insight.scope.resources)
    return HealthRow(
        level=insight.impact.level,
        impact=insight.impact.type,
        summary=insight.impact.summary,
        description=insight.impact.description,
        reference=insight.remediation.reference or (NO_RUNBOOK if alert else ""),
        since=insight.started_at,
        first_observed=insight.first_observed_at,
        resources=insight.scope.resources,
        check=insight.check,
    )
