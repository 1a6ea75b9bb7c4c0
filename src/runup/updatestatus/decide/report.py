"""What a report of the update shows: rows sorted, counts taken. `read` makes it out of an UpdateStatus."""

from __future__ import annotations

from datetime import datetime

import msgspec

from kubekit.api.meta_v1 import Condition
from runup.api.update_v1alpha1 import NO_VERSION, ClusterVersionInsight, OperatorProgress, ResourceRef
from runup.updatestatus.decide import node_words as states
from runup.updatestatus.decide.words import ARCHITECTURE, INSTALLATION, PARTIAL, UNKNOWN_VERSION


class OperatorRow(msgspec.Struct, frozen=True):
    """One operator; the flags are those that the report counts. One that is none of the three could not be told."""

    name: str
    updated: bool
    updating: bool
    waiting: bool
    unavailable: bool
    degraded: bool
    progressing: OperatorProgress | None


class NodeRow(msgspec.Struct, frozen=True):
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


class Counts(msgspec.Struct, frozen=True):
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
        return Counts(**{name: max(0, getattr(self, name) - getattr(other, name)) for name in self.__struct_fields__})


class PoolReport(msgspec.Struct, frozen=True):
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


class HealthRow(msgspec.Struct, frozen=True):
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


class Report(msgspec.Struct, frozen=True):
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
            not pool.is_complete for pool in self.worker_pools
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
