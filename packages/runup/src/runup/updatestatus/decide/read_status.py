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
from kubekit.lang.gotext import parse_duration, short_duration
from runup.api import update_v1alpha1 as api
from runup.rules.machine_config import CONTROL_PLANE_POOL
from runup.updatestatus.decide import finding
from runup.updatestatus.decide import nodes as states
from runup.updatestatus.decide.decode import decode, unknown_insights

# Which objects a finding about input is about, its summary alone says: a kind in the plural, or one object of a kind.
# Without the Nodes of a cluster its groups are unknown; NodeClaims and NodePools of Karpenter only add to them.
_OF_POOLS = ("MachineConfig", "Nodes ", "Node ")


class OperatorRow(msgspec.Struct, frozen=True, kw_only=True):
    """An operator's row; an operator that is not updated, updating or waiting is in an unknown state."""

    name: str
    updated: bool
    updating: bool
    waiting: bool
    unavailable: bool
    degraded: bool
    progressing: api.OperatorProgress | None


class NodeRow(states.NodeSummary, frozen=True, kw_only=True):
    """A node's row in the table; `estimate_ns` is None if unknown."""

    estimate_ns: int | None

    @property
    def needs_attention(self) -> bool:
        """True if the row is always shown, however many there are."""
        return self.degraded or self.assessment == states.UNAVAILABLE

    @property
    def state(self) -> str:
        """The phase, after the assessment if the node needs attention."""
        return f"{self.assessment} ({self.phase})" if self.needs_attention else self.phase

    @property
    def estimate_text(self) -> str:
        """The estimate as the tables print it: `?` if unknown, `-` if nothing remains."""
        if self.estimate_ns is None:
            return "?"
        return f"+{short_duration(self.estimate_ns)}" if self.estimate_ns else "-"


class PoolReport(msgspec.Struct, frozen=True, kw_only=True):
    """A pool: counts of all its nodes, and rows of those that the object holds, in the order of the table.

    `completion` is a percentage, None if the object does not describe the pool.
    """

    name: str
    assessment: str
    completion: int | None
    counts: states.Counts
    rows: tuple[NodeRow, ...]

    @property
    def done(self) -> int:
        """The number of nodes in phase Updated."""
        return self.counts.done

    @property
    def is_complete(self) -> bool:
        """True if no node remains to be updated."""
        return self.counts.is_complete

    @property
    def progress(self) -> str:
        """A short text about the number of updated nodes."""
        return f"pool {self.name} {self.done} of {self.counts.total} nodes"


class HealthRow(msgspec.Struct, frozen=True, kw_only=True):
    """A problem that needs attention; `since` is None if unknown."""

    level: str
    impact: str
    summary: str
    description: str = ""
    reference: str = ""
    since: datetime | None = None
    first_observed: datetime | None = None
    resources: tuple[api.ResourceRef, ...] = ()
    check: str = ""


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """An UpdateStatus for display. `updating` is condition Updating of the control plane, or None."""

    updating: Condition | None
    cluster_version: api.ClusterVersionInsight | None
    operators: tuple[OperatorRow, ...]
    control_plane_pool: PoolReport | None
    worker_pools: tuple[PoolReport, ...]
    omitted_worker_pools: int
    health: tuple[HealthRow, ...]
    conditions: tuple[Condition, ...]

    @property
    def kubernetes(self) -> api.KubernetesVersionInsight | None:
        """The insight of the version of a cluster without a ClusterVersion, None for one of OpenShift."""
        insight = self.cluster_version
        return insight if isinstance(insight, api.KubernetesVersionInsight) else None

    @property
    def hosted(self) -> api.HostedClusterInsight | None:
        """The insight of a hosted cluster, None for other clusters."""
        insight = self.cluster_version
        return insight if isinstance(insight, api.HostedClusterInsight) else None

    @property
    def is_updating(self) -> bool:
        """True if the control plane or a worker pool is still updating."""
        if self.kubernetes is not None or self.hosted is not None:
            # Its condition is about all groups: one that is behind may stay so on purpose.
            return self.updating is not None and self.updating.status == "True"
        return (self.updating is not None and self.updating.status == "True") or any(
            not pool.is_complete for pool in self.worker_pools
        )

    @property
    def pools(self) -> tuple[PoolReport, ...]:
        """The pool of the control plane if there is one, then the worker pools."""
        return (*((self.control_plane_pool,) if self.control_plane_pool else ()), *self.worker_pools)

    @property
    def has_unknown_pools(self) -> bool:
        """True if a pool, one of its nodes or their configuration could not be read, and so may lack in the report."""
        if self.hosted is not None:
            # Its condition Updating is Unknown then.
            return False
        available = find(self.conditions, finding.AVAILABLE)
        is_incomplete = available is not None and available.status == "False"
        if is_incomplete and self.control_plane_pool is None and not self.worker_pools:
            return True
        return any(
            row.check in (finding.UNREADABLE, finding.INCOMPLETE) and row.summary.startswith(_OF_POOLS)
            for row in self.health
        )

    @property
    def control_plane_done(self) -> bool:
        """True if every operator has the target's version."""
        if not self.operators:
            return self.cluster_version is not None and self.cluster_version.assessment == "Completed"
        return all(operator.updated for operator in self.operators)

    @property
    def nodes_done(self) -> tuple[int, int]:
        """How many nodes of all pools are updated, and how many there are."""
        return sum(pool.done for pool in self.pools), sum(pool.counts.total for pool in self.pools)

    @property
    def target(self) -> str:
        """The target version of the control plane, or `unknown`."""
        versions = self.cluster_version.versions if self.cluster_version else None
        return versions.target.version if versions else finding.UNKNOWN_VERSION

    @property
    def target_text(self) -> str:
        """The target version and the version before it, as the report prints them."""
        versions = self.cluster_version.versions if self.cluster_version else None
        if versions is None:
            return f"{finding.UNKNOWN_VERSION} (from {finding.UNKNOWN_VERSION})"
        previous, target = versions.previous.version, versions.target.version
        if previous == target and self.kubernetes is not None:
            return target
        before = {entry.key for entry in versions.previous.metadata}
        marks = {entry.key for entry in versions.target.metadata}
        if previous == api.NO_VERSION or finding.INSTALLATION in before | marks:
            return f"{target} (a new install)"
        if finding.PARTIAL in before:
            return f"{target} (from incomplete {previous})"
        return f"{target} to Multi-Architecture" if finding.ARCHITECTURE in marks else f"{target} (from {previous})"

    @property
    def changes_architecture(self) -> bool:
        """True if the version stays the same and the image changes."""
        versions = self.cluster_version.versions if self.cluster_version else None
        return versions is not None and any(entry.key == finding.ARCHITECTURE for entry in versions.target.metadata)


JSON = dict[str, Any]

_LONG_AGO = datetime.min.replace(tzinfo=UTC)
# Findings about pools and their nodes, which oc shows before all others of one level and time.
_POOL_FINDINGS = frozenset({finding.NODE_UNAVAILABLE, finding.NODE_DEGRADED, finding.POOL_PAUSED})


def report(obj: JSON, *, worker_pools_before_master: int = 0) -> Report:
    """Returns the Report of an UpdateStatus of any release as JSON. Raises codec.DecodeError if it is not one.

    `worker_pools_before_master` is the number of worker pools that precede the control plane's pool in the cluster's
    list of MachineConfigPools; findings of one level and time are shown in the order of that list, as oc shows them.
    """
    return report_of_status(*decode(obj), worker_pools_before_master=worker_pools_before_master)


def report_of_status(
    status: api.UpdateStatusStatus, unknown: Iterable[str] = (), *, worker_pools_before_master: int = 0
) -> Report:
    """Returns the Report of a decoded status.

    `unknown` has the types of the insights that could not be decoded; `worker_pools_before_master` is as for `report`.
    """
    layer = status.control_plane
    control_plane = merged_insights(layer.informers if layer else ())
    cluster_version = next((insight.of_version for insight in control_plane if insight.of_version), None)
    pools = []
    health = [insight.health for insight in control_plane if insight.health]
    of_workers: list[list[api.HealthInsight]] = []
    for pool in status.worker_pools:
        pool_layer = merged_insights(pool.informers)
        pools.append(pool_report(pool.name, pool_layer, pool.omitted.nodes))
        of_workers.append([insight.health for insight in pool_layer if insight.health])
    master = [insight for insight in control_plane if insight.of_node or insight.of_pool]
    omitted = layer.omitted.nodes if layer else 0
    name = next((i.of_pool.name for i in master if i.of_pool), CONTROL_PLANE_POOL)
    return Report(
        updating=find(layer.conditions, finding.UPDATING) if layer else None,
        cluster_version=cluster_version,
        operators=tuple(operator_row(each.cluster_operator) for each in control_plane if each.cluster_operator),
        control_plane_pool=pool_report(name, master, omitted) if master else None,
        worker_pools=tuple(pools),
        omitted_worker_pools=status.omitted_worker_pools,
        health=_health(health, of_workers, unknown, worker_pools_before_master),
        conditions=status.conditions,
    )


def parts_of(status: api.UpdateStatusStatus) -> list[api.ControlPlane | api.WorkerPool]:
    """Returns the control plane if there is one, then every worker pool."""
    return [*([status.control_plane] if status.control_plane else []), *status.worker_pools]


def merged_insights(informers: Iterable[api.Informer]) -> list[api.Insight]:
    """Returns the insights of all informers, ours first; of several insights of one object only the first."""
    merged: list[api.Insight] = []
    known_subjects: set[tuple[str, str]] = set()
    for informer in sorted(informers, key=lambda informer_entry: informer_entry.name != finding.INFORMER):
        subjects: set[tuple[str, str]] = set()
        for insight in informer.insights:
            resource = insight.cluster_operator or insight.of_pool or insight.of_node
            # Health insights have no subject: all of them are kept.
            subject = (insight.type, resource.name) if resource else None
            if subject not in known_subjects:
                merged.append(insight)
            if subject is not None:
                subjects.add(subject)
        known_subjects |= subjects
    return merged


def operator_row(insight: api.ClusterOperatorInsight) -> OperatorRow:
    """Returns an operator's row, from the reasons of its conditions."""
    updating, healthy = find(insight.conditions, finding.UPDATING), find(insight.conditions, finding.HEALTHY)
    reason = updating.reason if updating else ""
    progressing = insight.progressing
    if progressing is None and updating is not None:
        # Not every release writes the operator's own condition.
        progressing = api.OperatorProgress(status=updating.status, message=updating.message)
    return OperatorRow(
        name=insight.name,
        updated=reason == "Updated",
        updating=reason == "Progressing",
        waiting=reason == "Pending",
        unavailable=healthy is not None and healthy.reason == "Unavailable",
        degraded=healthy is not None and healthy.reason == "Degraded",
        progressing=progressing,
    )


_PHASES = {"Completed": states.UPDATED, "CannotDetermine": states.UNKNOWN, "": states.UNKNOWN}
_NODE_ASSESSMENTS = {"Paused": states.EXCLUDED, "Pending": states.OUTDATED, "Completed": states.COMPLETED}


def node_row(insight: api.NodeInsight) -> NodeRow:
    """Returns a Node's row: what oc shows, from the Node's conditions."""
    updating, degraded = find(insight.conditions, finding.UPDATING), find(insight.conditions, finding.DEGRADED)
    available = find(insight.conditions, finding.AVAILABLE)
    reason = updating.reason if updating else ""
    is_updating = updating is not None and updating.status == "True"
    is_degraded = degraded is not None and degraded.status == "True"
    unavailable = available is not None and available.status == "False"
    assessment = _NODE_ASSESSMENTS.get(reason, states.PROGRESSING if is_updating else finding.UNKNOWN)
    if unavailable and not is_updating:
        assessment = states.UNAVAILABLE
    if is_degraded:
        assessment = states.DEGRADED
    return NodeRow(
        name=insight.name,
        assessment=assessment,
        phase=_PHASES.get(reason, reason),
        version=insight.version,
        estimate_ns=parse_duration(insight.est_to_complete) if insight.est_to_complete else None,
        message=insight.message,
        updated=reason == "Completed" and not is_updating,
        unavailable=unavailable,
        degraded=is_degraded,
    )


def pool_report(name: str, insights: Iterable[api.Insight], omitted: int) -> PoolReport:
    """Returns a pool's report; without an insight of the pool, it is counted from the Nodes' rows."""
    insights = list(insights)
    rows = tuple(
        sorted((node_row(insight.of_node) for insight in insights if insight.of_node), key=lambda row: row.order)
    )
    pool = next((insight.of_pool for insight in insights if insight.of_pool), None)
    if pool is not None:
        counts = _counts_of(pool, rows)
        return PoolReport(name=name, assessment=pool.assessment, completion=pool.completion, counts=counts, rows=rows)
    counts = states.count(rows)
    if omitted:
        # Nodes that are omitted and not counted are taken as not updated.
        counts = replace(counts, total=counts.total + omitted, outdated=counts.outdated + omitted)
    if not counts.outdated:
        assessment = states.COMPLETED
    elif counts.degraded:
        assessment = states.DEGRADED
    elif counts.excluded:
        assessment = states.EXCLUDED
    else:
        has_begun = counts.progressing or counts.outdated < counts.total
        assessment = states.PROGRESSING if has_begun else states.PENDING
    return PoolReport(name=name, assessment=assessment, completion=None, counts=counts, rows=rows)


def _counts_of(insight: api.MachineConfigPoolInsight, rows: tuple[NodeRow, ...]) -> states.Counts:
    """Returns a pool's counts, from its summaries; Nodes that are only early in phase Updated are not updated."""
    summaries: Mapping[str, int] = {summary.type: summary.count for summary in insight.summaries}
    total, outdated = summaries.get("Total", len(rows)), summaries.get("Outdated", 0)
    # A node can reach phase Updated a moment before its version changes; only the rows show such nodes.
    early = sum(row.phase == states.UPDATED and not row.updated for row in rows)
    return states.Counts(
        total=total,
        updated=total - outdated - early,
        available=summaries.get("Available", 0),
        progressing=summaries.get("Progressing", 0),
        outdated=outdated,
        draining=summaries.get("Draining", 0),
        excluded=summaries.get("Excluded", 0),
        degraded=summaries.get("Degraded", 0),
    )


def _health(
    of_control_plane: Iterable[api.HealthInsight],
    of_workers: Sequence[Iterable[api.HealthInsight]],
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
    rows.sort(key=lambda row: finding.level_rank(row.level), reverse=True)
    return tuple(rows)


def _is_of_pool(insight: api.HealthInsight) -> bool:
    """Returns whether a health insight is about a pool or its nodes."""
    if insight.check:
        return insight.check in _POOL_FINDINGS
    return any(ref.resource in ("nodes", "machineconfigpools") for ref in insight.scope.resources[:1])


def _health_row(insight: api.HealthInsight) -> HealthRow:
    """Returns the row of a health insight."""
    alert = insight.check == finding.ALERT_FIRING or any(ref.resource == "alerts" for ref in insight.scope.resources)
    return HealthRow(
        level=insight.impact.level,
        impact=insight.impact.type,
        summary=insight.impact.summary,
        description=insight.impact.description,
        reference=insight.remediation.reference or (finding.NO_RUNBOOK if alert else ""),
        since=insight.started_at,
        first_observed=insight.first_observed_at,
        resources=insight.scope.resources,
        check=insight.check,
    )
