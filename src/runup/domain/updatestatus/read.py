"""An UpdateStatus in, what a report shows out: rows sorted, counts taken, and nothing unknown passed over in silence.

Readers meet objects of the release before and after theirs. So each insight is decoded by itself; one of an unknown
type, or whose fields are not what they were, becomes a line of the report that says so. Enumerations are kept as text,
and a level that nobody here knows is sorted before all others.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from msgspec.structs import replace

from runup.api import codec
from runup.api.meta_v1 import Condition
from runup.api.update_v1alpha1 import (
    NO_VERSION,
    ClusterOperatorInsight,
    ClusterVersionInsight,
    ControlPlane,
    HealthImpact,
    HealthInsight,
    HealthScope,
    Informer,
    Insight,
    MachineConfigPoolInsight,
    NodeInsight,
    OperatorProgress,
    ResourceRef,
    UpdateStatusStatus,
)
from runup.domain.conditions import find
from runup.domain.updatestatus import nodes as states
from runup.domain.updatestatus.finding import LEVELS, SCOPE_CLUSTER, UNKNOWN, UNKNOWN_IMPACT
from runup.domain.updatestatus.health import ALERT_FIRING, NO_RUNBOOK, NODE_DEGRADED, NODE_UNAVAILABLE, POOL_PAUSED
from runup.domain.updatestatus.insights import (
    ARCHITECTURE,
    AVAILABLE,
    DEGRADED,
    HEALTHY,
    INSTALLATION,
    PARTIAL,
    UNKNOWN_VERSION,
    UPDATING,
)
from runup.domain.updatestatus.snapshot import CONTROL_PLANE_POOL
from runup.lang.gotext import parse_duration

JSON = dict[str, Any]

_MEMBERS = {
    "ClusterVersion": "cluster_version",
    "ClusterOperator": "cluster_operator",
    "MachineConfigPool": "machine_config_pool",
    "Node": "node",
    "Health": "health",
}
# The enhancement's sample spells one type otherwise than every definition of it.
_ALIASES = {"UpdateHealth": "Health"}
_LONG_AGO = datetime.min.replace(tzinfo=UTC)
_OF_POOLS = frozenset({NODE_UNAVAILABLE, NODE_DEGRADED, POOL_PAUSED})


@dataclass(frozen=True, slots=True)
class OperatorRow:
    """One operator; the flags are those that the report counts. One that is none of the three could not be told."""

    name: str
    updated: bool
    updating: bool
    waiting: bool
    unavailable: bool
    degraded: bool
    progressing: OperatorProgress | None


@dataclass(frozen=True, slots=True)
class NodeRow:
    """One node as its table shows it; `estimate_ns` is None when unknown."""

    name: str
    assessment: str
    phase: str
    version: str
    estimate_ns: int | None
    message: str
    updated: bool
    unavailable: bool
    degraded: bool

    @property
    def needs_attention(self) -> bool:
        """Whether its row is shown however many there are."""
        return self.degraded or self.assessment == states.UNAVAILABLE


@dataclass(frozen=True, slots=True)
class Counts:
    """Nodes of a pool by what they have in common; `updated` are those of the target version."""

    total: int = 0
    updated: int = 0
    available: int = 0
    progressing: int = 0
    outdated: int = 0
    draining: int = 0
    excluded: int = 0
    degraded: int = 0

    def without(self, other: Counts) -> Counts:
        """These less `other`, never below zero."""
        return Counts(**{name: max(0, getattr(self, name) - getattr(other, name)) for name in self.__slots__})


@dataclass(frozen=True, slots=True)
class PoolReport:
    """One pool: counts of all its nodes, and rows of those that the object holds, in the order of the table."""

    name: str
    assessment: str
    counts: Counts
    rows: tuple[NodeRow, ...]

    @property
    def done(self) -> int:
        """How many nodes are in phase Updated."""
        return self.counts.total - self.counts.outdated

    @property
    def is_complete(self) -> bool:
        """Whether no node is left to be updated."""
        return self.counts.outdated == 0


@dataclass(frozen=True, slots=True)
class HealthRow:
    """Something that needs attention; `since` is None when nobody knows."""

    level: str
    impact: str
    summary: str
    description: str = ""
    reference: str = ""
    since: datetime | None = None
    first_observed: datetime | None = None
    resources: tuple[ResourceRef, ...] = ()
    check: str = ""


@dataclass(frozen=True, slots=True)
class Report:
    """An UpdateStatus, read. `updating` is condition Updating of the control plane, None where there is none."""

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
        """Whether the control plane or a pool of workers is not done."""
        return (self.updating is not None and self.updating.status == "True") or any(
            pool.counts.total and not pool.is_complete for pool in self.worker_pools
        )

    @property
    def control_plane_done(self) -> bool:
        """Whether every operator has the target's version."""
        if not self.operators:
            return self.cluster_version is not None and self.cluster_version.assessment == "Completed"
        return all(operator.updated for operator in self.operators)

    @property
    def target(self) -> str:
        """The version that the control plane goes to, or `unknown`."""
        versions = self.cluster_version.versions if self.cluster_version else None
        return versions.target.version if versions else UNKNOWN_VERSION

    @property
    def target_text(self) -> str:
        """The target with where it comes from, as the report prints it."""
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
        """Whether the version stays and the image changes."""
        versions = self.cluster_version.versions if self.cluster_version else None
        return versions is not None and any(entry.key == ARCHITECTURE for entry in versions.target.metadata)


def report(obj: JSON, *, pools_before_master: int = 0) -> Report:
    """Read the JSON of an UpdateStatus of any age; raises codec.DecodeError where even its frame cannot be read.

    `pools_before_master`: so many worker pools stand before the control plane's in the list that the object was made
    of, which decides between findings that are equally old and bad.
    """
    return of_status(*decode(obj), pools_before_master=pools_before_master)


def decode(obj: JSON) -> tuple[UpdateStatusStatus, tuple[str, ...]]:
    """What can be decoded of the JSON of an UpdateStatus, and the types of the insights that cannot; as `report`."""
    status = obj.get("status") or {}
    if not isinstance(status, dict):
        raise codec.DecodeError("Expected `object` - at `$.status`")
    unknown: list[str] = []
    frame = _framed(status, unknown)
    return codec.convert(UpdateStatusStatus, frame), tuple(unknown)


def with_unknown(status: UpdateStatusStatus, unknown: Iterable[str], now: datetime) -> UpdateStatusStatus:
    """`status` with a health insight for each type in `unknown`, for those who show the insights themselves."""
    added = tuple(
        Insight(
            uid=f"unknown-{i}",
            acquired_at=now,
            type="Health",
            health=HealthInsight(
                scope=HealthScope(type=SCOPE_CLUSTER),
                impact=HealthImpact(level=row.level, type=row.impact, summary=row.summary, description=row.description),
                check=row.check,
            ),
        )
        for i, row in enumerate(_unknown_rows(unknown))
    )
    if not added:
        return status
    layer = status.control_plane or ControlPlane()
    return replace(
        status, control_plane=replace(layer, informers=(*layer.informers, Informer(name="unknown", insights=added)))
    )


def of_status(status: UpdateStatusStatus, unknown: Iterable[str] = (), *, pools_before_master: int = 0) -> Report:
    """The same for a status that is decoded; `unknown` names insights that could not be."""
    layer = status.control_plane
    own = [insight for informer in (layer.informers if layer else ()) for insight in informer.insights]
    cluster_version = next((each.cluster_version for each in own if each.cluster_version), None)
    pools = []
    health = [insight.health for insight in own if insight.health]
    of_workers: list[list[HealthInsight]] = []
    for pool in status.worker_pools:
        inside = [insight for informer in pool.informers for insight in informer.insights]
        pools.append(_pool(pool.name, inside, pool.omitted.nodes))
        of_workers.append([insight.health for insight in inside if insight.health])
    master = [insight for insight in own if insight.node or insight.machine_config_pool]
    return Report(
        updating=find(layer.conditions, UPDATING) if layer else None,
        cluster_version=cluster_version,
        operators=tuple(_operator(each.cluster_operator) for each in own if each.cluster_operator),
        control_plane_pool=_pool(CONTROL_PLANE_POOL, master, layer.omitted.nodes if layer else 0) if master else None,
        worker_pools=tuple(pools),
        omitted_worker_pools=status.omitted_worker_pools,
        health=_health(health, of_workers, unknown, pools_before_master),
        conditions=status.conditions,
    )


def _framed(status: JSON, unknown: list[str]) -> JSON:
    """`status` with only those insights that can be decoded; the types of the others go to `unknown`."""
    layers = []
    control_plane = status.get("controlPlane")
    if isinstance(control_plane, dict):
        layers.append(control_plane)
    layers += [pool for pool in status.get("workerPools") or () if isinstance(pool, dict)]
    framed = [
        {**layer, "informers": [_informer(each, unknown) for each in layer.get("informers") or ()]} for layer in layers
    ]
    if isinstance(control_plane, dict):
        return {**status, "controlPlane": framed[0], "workerPools": framed[1:]}
    return {**status, "workerPools": framed}


def _informer(informer: JSON, unknown: list[str]) -> JSON:
    kept = []
    for insight in informer.get("insights") or ():
        flat = _flat(insight)
        if _is_readable(flat):
            kept.append(flat)
        else:
            unknown.append(str(flat.get("type") or "none"))
    return {**informer, "insights": kept}


def _flat(insight: JSON) -> JSON:
    """With the union beside the uid, where some drafts nest it."""
    inner = insight.get("insight")
    flat = {**insight, **inner} if isinstance(inner, dict) else dict(insight)
    type_ = flat.get("type")
    alias = _ALIASES.get(type_) if isinstance(type_, str) else None
    if alias:
        flat["type"] = alias
        flat.setdefault("health", flat.get("updateHealth"))
    return flat


def _is_readable(insight: JSON) -> bool:
    member = _MEMBERS.get(str(insight.get("type")))
    if member is None:
        return False
    try:
        return getattr(codec.convert(Insight, insight), member) is not None
    except codec.DecodeError:
        return False


def _operator(insight: ClusterOperatorInsight) -> OperatorRow:
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
    """What an object without the operator's own condition tells of it."""
    if updating is None:
        return None
    return OperatorProgress(status=updating.status, message=updating.message)


_NODE_ASSESSMENTS = {"Paused": states.EXCLUDED, "Pending": states.OUTDATED, "Completed": states.COMPLETED}


def _node(insight: NodeInsight) -> NodeRow:
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


def _rank(order: tuple[str, ...], value: str) -> int:
    return order.index(value) if value in order else -1


def _order(row: NodeRow) -> tuple[int, int, str]:
    return _rank(states.ASSESSMENTS, row.assessment), _rank(states.PHASES, row.phase), row.name


def _pool(name: str, insights: Iterable[Insight], omitted: int) -> PoolReport:
    insights = list(insights)
    rows = tuple(sorted((_node(insight.node) for insight in insights if insight.node), key=_order))
    own = next((insight.machine_config_pool for insight in insights if insight.machine_config_pool), None)
    counts = _counts(own, rows) if own else count(rows)
    if own is None and omitted:
        # Nodes that nobody counted are not done.
        counts = Counts(**{**_as_dict(counts), "total": counts.total + omitted, "outdated": counts.outdated + omitted})
    return PoolReport(name, own.assessment if own else _assessment(counts), counts, rows)


def _as_dict(counts: Counts) -> dict[str, int]:
    return {name: getattr(counts, name) for name in Counts.__slots__}


def _counts(insight: MachineConfigPoolInsight, rows: tuple[NodeRow, ...]) -> Counts:
    found: Mapping[str, int] = {summary.type: summary.count for summary in insight.summaries}
    total, outdated = found.get("Total", len(rows)), found.get("Outdated", 0)
    # Phase Updated can be reached a moment before the version is; only the rows tell these apart.
    early = sum(row.phase == states.UPDATED and not row.updated for row in rows)
    return Counts(
        total=total,
        updated=total - outdated - early,
        available=found.get("Available", 0),
        progressing=found.get("Progressing", 0),
        outdated=outdated,
        draining=found.get("Draining", 0),
        excluded=found.get("Excluded", 0),
        degraded=found.get("Degraded", 0),
    )


def count(rows: Iterable[NodeRow]) -> Counts:
    """The counts of `rows` alone, by the rules of pools."""
    rows = list(rows)
    active = (states.DRAINING, states.UPDATING, states.REBOOTING)
    return Counts(
        total=len(rows),
        updated=sum(row.updated for row in rows),
        available=sum(not row.unavailable for row in rows),
        progressing=sum(row.phase in active and not row.degraded for row in rows),
        outdated=sum(row.phase != states.UPDATED for row in rows),
        draining=sum(row.phase == states.DRAINING for row in rows),
        excluded=sum(row.phase == states.PAUSED for row in rows),
        degraded=sum(row.degraded for row in rows),
    )


def _assessment(counts: Counts) -> str:
    if not counts.outdated:
        return states.COMPLETED
    if counts.degraded:
        return states.DEGRADED
    if counts.excluded:
        return states.EXCLUDED
    return states.PROGRESSING if counts.progressing or counts.outdated < counts.total else states.PENDING


def _health(
    own: Iterable[HealthInsight],
    of_workers: Sequence[Iterable[HealthInsight]],
    unknown: Iterable[str],
    pools_before_master: int,
) -> tuple[HealthRow, ...]:
    """Newest first within a level, highest level first; ties as `oc` collects them: pools before everything else."""
    own = list(own)
    of_master = [each for each in own if _is_of_pool(each)]
    of_pools = [*of_workers[:pools_before_master], of_master, *of_workers[pools_before_master:]]
    rows = [
        *(_row(each) for pool in of_pools for each in pool),
        *(_row(each) for each in own if not _is_of_pool(each)),
        *_unknown_rows(unknown),
    ]
    rows.sort(key=lambda row: row.since or _LONG_AGO, reverse=True)
    rows.sort(key=lambda row: LEVELS.index(row.level) if row.level in LEVELS else len(LEVELS), reverse=True)
    return tuple(rows)


def _is_of_pool(insight: HealthInsight) -> bool:
    if insight.check:
        return insight.check in _OF_POOLS
    return any(ref.resource in ("nodes", "machineconfigpools") for ref in insight.scope.resources[:1])


def _row(insight: HealthInsight) -> HealthRow:
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


def _unknown_rows(types: Iterable[str]) -> Iterator[HealthRow]:
    counted: dict[str, int] = {}
    for type_ in types:
        counted[type_] = counted.get(type_, 0) + 1
    for type_, number in sorted(counted.items()):
        what = f"{number} insights" if number > 1 else "1 insight"
        yield HealthRow(
            level=UNKNOWN,
            impact=UNKNOWN_IMPACT,
            summary=f"{what} of type {type_} cannot be read by this version of runup",
            description="Another version of the update status controller wrote the report; a runup of its release "
            "reads it whole.",
            check="InsightUnknown",
        )
