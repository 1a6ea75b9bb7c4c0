"""The content of a report of the update: sorted rows and counts. `read_status.report` makes it of an UpdateStatus."""

from __future__ import annotations

from datetime import datetime

import msgspec

from kubekit.api.conditions import find
from kubekit.api.meta_v1 import Condition
from runup.api.update_v1alpha1 import NO_VERSION, ClusterVersionInsight, OperatorProgress, ResourceRef
from runup.updatestatus.decide import nodes as states
from runup.updatestatus.decide.finding import INCOMPLETE, UNREADABLE
from runup.updatestatus.decide.insight_names import ARCHITECTURE, AVAILABLE, INSTALLATION, PARTIAL, UNKNOWN_VERSION

# Which objects a finding about input is about, its summary alone says: a kind in the plural, or one object of a kind.
_OF_POOLS = ("MachineConfig", "Node")


class OperatorRow(msgspec.Struct, frozen=True):
    """An operator's row; an operator that is not updated, updating or waiting is in an unknown state."""

    name: str
    updated: bool
    updating: bool
    waiting: bool
    unavailable: bool
    degraded: bool
    progressing: OperatorProgress | None


class NodeRow(msgspec.Struct, frozen=True):
    """A node's row in the table; `estimate_ns` is None if unknown."""

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
        """True if the row is always shown, however many there are."""
        return self.degraded or self.assessment == states.UNAVAILABLE


class Counts(msgspec.Struct, frozen=True):
    """Numbers of a pool's nodes by state; `updated` counts nodes that have the target version."""

    total: int = 0
    updated: int = 0
    available: int = 0
    progressing: int = 0
    outdated: int = 0
    draining: int = 0
    excluded: int = 0
    degraded: int = 0

    def without(self, other: Counts) -> Counts:
        """Returns these counts minus `other`, never below zero."""
        return Counts(**{name: max(0, getattr(self, name) - getattr(other, name)) for name in self.__struct_fields__})


class PoolReport(msgspec.Struct, frozen=True):
    """A pool: counts of all its nodes, and rows of those that the object holds, in the order of the table."""

    name: str
    assessment: str
    counts: Counts
    rows: tuple[NodeRow, ...]

    @property
    def done(self) -> int:
        """The number of nodes in phase Updated."""
        return self.counts.total - self.counts.outdated

    @property
    def is_complete(self) -> bool:
        """True if no node remains to be updated."""
        return self.counts.outdated == 0


class HealthRow(msgspec.Struct, frozen=True):
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


class Report(msgspec.Struct, frozen=True):
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
