"""Decides which clusters of a fleet may start their update now, and why others may not. Pure.

In: the FleetUpdate, the progress of each cluster, what people have approved or held, and the time. Out: the clusters
that have a turn, each stage, and what the update as a whole waits for. A turn never opens a gate of a cluster: it is
one more gate (docs/decisions/0138).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Literal

import msgspec

from kubekit.lang.text import count
from runup.api.fleet_update_v1alpha1 import FleetUpdate
from runup.rollout.decide.calendar import Calendar
from runup.rollout.decide.fleet_file import max_concurrency, max_failures, min_done
from runup.rollout.decide.gates.gate import CLOSED, OPEN, UNKNOWN, Gate
from runup.rollout.decide.gates.observed import Approval
from runup.rollout.decide.stage_gates import evaluate_stage_gates

State = Literal["waiting", "ready", "running", "done", "skipped", "failed", "unknown"]
STATES: tuple[State, ...] = ("done", "running", "ready", "waiting", "unknown", "skipped", "failed")
Control = Literal["Run", "Hold", "Abort"]
Outcome = Literal[
    "Done", "Running", "Failed", "Aborted", "Held", "ApprovalMissing", "Unknown", "GatesClosed", "Refused"
]
# `docs/reference/cli.md`, `runup fleet update`. Running is the code of `--once` while updates continue.
EXIT_CODES: Mapping[Outcome, int] = {
    "Done": 0,
    "Running": 2,
    "GatesClosed": 2,
    "Unknown": 3,
    "Failed": 1,
    "Aborted": 1,
    "Held": 4,
    "ApprovalMissing": 4,
    "Refused": 1,
}
_FINAL: frozenset[Outcome] = frozenset({"Done", "Failed", "Aborted", "Held", "ApprovalMissing", "Refused"})
# States in which a cluster counts for `minDone`.
_SETTLED: tuple[State, ...] = ("done", "skipped")


class ClusterProgress(msgspec.Struct, frozen=True, kw_only=True):
    """The progress of one cluster.

    `begun`: a start is intended, permitted or made, and the update has not ended; such a cluster holds a place.
    `started`: the update itself has begun, so that nothing holds it back. `settled` is when the cluster was done or
    skipped. `overdue`: it has been unreachable for longer than its deadlines. `gate` is its first gate that is not
    open, or why its state is what it is.
    """

    name: str
    stage: int
    state: State
    labels: Mapping[str, str] = {}
    begun: bool = False
    started: bool = False
    settled: datetime | None = None
    overdue: bool = False
    gate: Gate | None = None

    @property
    def holds_place(self) -> bool:
        """Reports whether the cluster counts as started."""
        return self.begun and self.state not in ("done", "skipped", "failed")


class Decisions(msgspec.Struct, frozen=True, kw_only=True):
    """The decisions of people: `approvals` by the name of their stage."""

    control: Control = "Run"
    approvals: Mapping[str, tuple[Approval, ...]] = {}


class StageProgress(msgspec.Struct, frozen=True, kw_only=True):
    """A stage: its clusters by state, and the gates that are not open for its starts."""

    name: str
    counts: Mapping[State, int]
    needed: int
    closed: tuple[Gate, ...]
    settled_at: datetime | None = None

    @property
    def clusters(self) -> int:
        """The number of clusters."""
        return sum(self.counts.values())

    @property
    def complete(self) -> bool:
        """Reports whether enough clusters are done or skipped."""
        return sum(self.counts.get(state, 0) for state in _SETTLED) >= self.needed


class Turns(msgspec.Struct, frozen=True, kw_only=True):
    """The clusters that may start, why others may not, and what the update waits for."""

    granted: frozenset[str]
    refused: Mapping[str, Gate]
    stages: tuple[StageProgress, ...]
    failures: int
    allowed_failures: int
    outcome: Outcome
    # The gates after the last stage that are not open.
    closed_at_end: tuple[Gate, ...] = ()

    @property
    def over(self) -> bool:
        """Reports whether nothing changes any more without a person, and no update runs."""
        return is_over(self.outcome, sum(stage.counts.get("running", 0) for stage in self.stages))

    @property
    def exit_code(self) -> int:
        """The exit code of a command that ends now."""
        return EXIT_CODES[self.outcome]


def decide_turns(
    update: FleetUpdate,
    clusters: Sequence[ClusterProgress],
    decisions: Decisions,
    calendars: Mapping[str, Calendar],
    *,
    now: datetime,
) -> Turns:
    """Returns which clusters may start now. Raises InputError if `maxFailures` allows all clusters to fail."""
    allowed = max_failures(update, len(clusters))
    failures = sum(each.state == "failed" or each.overdue for each in clusters)
    stages, closed_at_end = _stages(update, clusters, decisions, calendars, now=now)
    stopped = _stopped(decisions.control, failures, allowed)
    granted: set[str] = set()
    refused: dict[str, Gate] = {}
    held = _held_mutexes(update, clusters)
    for index, stage in enumerate(update.spec.stages):
        members = [each for each in clusters if each.stage == index]
        limit = max_concurrency(stage, len(members))
        places = limit - sum(each.holds_place for each in members)
        # Clusters that hold a place come first: they are not overtaken.
        for each in sorted(members, key=lambda each: (not each.holds_place, each.name)):
            if each.started or each.state in ("done", "skipped", "failed"):
                continue
            gate = stopped or next(iter(stages[index].closed), None)
            if gate is None and not each.begun and each.state == "ready":
                if places <= 0:
                    text = f"Stage {stage.name} updates {count(limit, 'cluster')} at once, and all places are taken."
                    gate = Gate(name="turn", state=CLOSED, reason="NoTurn", message=text)
                else:
                    gate = next(_taken(update, each, held), None)
            if gate is not None:
                refused[each.name] = gate
            elif each.begun or each.state == "ready":
                granted.add(each.name)
                places -= not each.begun
                held.update(dict.fromkeys(_mutexes_of(update, each), each.name))
    outcome = _outcome(clusters, stages, decisions.control, closed_at_end, exceeded=failures > allowed)
    return Turns(
        granted=frozenset(granted),
        refused=refused,
        stages=stages,
        failures=failures,
        allowed_failures=allowed,
        outcome=outcome,
        closed_at_end=closed_at_end,
    )


def _stages(
    update: FleetUpdate,
    clusters: Sequence[ClusterProgress],
    decisions: Decisions,
    calendars: Mapping[str, Calendar],
    *,
    now: datetime,
) -> tuple[tuple[StageProgress, ...], tuple[Gate, ...]]:
    """Returns each stage, with what the stages and gates before it keep closed; and the closed gates at the end."""
    stages: list[StageProgress] = []
    closed: tuple[Gate, ...] = ()
    settled_at: datetime | None = None
    for index, stage in enumerate(update.spec.stages):
        members = [each for each in clusters if each.stage == index]
        approvals = decisions.approvals.get(stage.name, ())
        before = evaluate_stage_gates(
            stage.before, update.spec.target, approvals, calendars, soaking_since=settled_at, now=now
        )
        progress = StageProgress(
            name=stage.name,
            counts=Counter(each.state for each in members),
            needed=min_done(stage, len(members)),
            closed=(*closed, *(gate for gate in before if gate.state != OPEN)),
        )
        settled_at = _settled_at(members, progress.needed)
        stages.append(msgspec.structs.replace(progress, settled_at=settled_at))
        after = evaluate_stage_gates(
            stage.after, update.spec.target, approvals, calendars, soaking_since=settled_at, now=now
        )
        closed = (*closed, *_incomplete(progress), *(gate for gate in after if gate.state != OPEN))
    return tuple(stages), tuple(gate for gate in closed if gate.name != "stage")


def _incomplete(stage: StageProgress) -> Iterator[Gate]:
    """Yields the gate that a stage keeps closed for later ones until enough of its clusters are done."""
    if not stage.complete:
        done = sum(stage.counts.get(state, 0) for state in _SETTLED)
        text = f"Stage {stage.name} has {done} of {stage.needed} clusters done."
        yield Gate(name="stage", state=CLOSED, reason="StageNotDone", message=text)


def _settled_at(members: Sequence[ClusterProgress], needed: int) -> datetime | None:
    """Returns when enough clusters were done or skipped, None if they are not."""
    times = sorted(each.settled for each in members if each.state in _SETTLED and each.settled is not None)
    return times[needed - 1] if 0 < needed <= len(times) else None


def _stopped(control: Control, failures: int, allowed: int) -> Gate | None:
    """Returns the gate that keeps all clusters from starting, or None."""
    if control == "Abort":
        return Gate(name="turn", state=CLOSED, reason="Aborted", message="The update was aborted.")
    if control == "Hold":
        text = "The update is held: `runup fleet update resume` continues it."
        return Gate(name="turn", state=CLOSED, reason="Held", message=text)
    if failures > allowed:
        text = f"{count(failures, 'cluster')} failed, and spec.maxFailures allows {allowed}: retry or skip them."
        return Gate(name="turn", state=CLOSED, reason="TooManyFailures", message=text)
    return None


def _mutexes_of(update: FleetUpdate, cluster: ClusterProgress) -> list[tuple[str, str]]:
    labels = [mutex.label for mutex in update.spec.mutexes]
    return [(label, cluster.labels[label]) for label in labels if label in cluster.labels]


def _held_mutexes(update: FleetUpdate, clusters: Sequence[ClusterProgress]) -> dict[tuple[str, str], str]:
    """Returns which cluster holds each mutex. A failed cluster keeps its mutexes: it may not serve its site."""
    holders = [each for each in clusters if each.holds_place or each.state == "failed"]
    return {mutex: each.name for each in holders for mutex in _mutexes_of(update, each)}


def _taken(update: FleetUpdate, cluster: ClusterProgress, held: Mapping[tuple[str, str], str]) -> Iterator[Gate]:
    for label, value in _mutexes_of(update, cluster):
        if (label, value) in held:
            text = f"Cluster {held[label, value]} with {label}={value} has not ended."
            yield Gate(name="turn", state=CLOSED, reason="MutexTaken", message=text)


def _outcome(
    clusters: Sequence[ClusterProgress],
    stages: Sequence[StageProgress],
    control: Control,
    closed_at_end: Sequence[Gate],
    *,
    exceeded: bool,
) -> Outcome:
    if control == "Abort":
        return "Aborted"
    if exceeded:
        return "Failed"
    ended = all(each.state in ("done", "skipped", "failed") for each in clusters)
    if ended and all(stage.complete for stage in stages) and not closed_at_end:
        return "Done"
    if control == "Hold":
        return "Held"
    open_clusters = [each for each in clusters if not stages[each.stage].closed]
    unfinished = [each for each in open_clusters if each.state not in ("done", "skipped", "failed")]
    if any(each.state in ("running", "ready") for each in unfinished):
        return "Running"
    if not unfinished:
        next_closed = next((stage.closed for stage in stages if stage.closed), tuple(closed_at_end))
        if not next_closed or next_closed[0].name == "stage":
            # Only failed clusters are left of a stage of which more must be done.
            return "Failed"
        if any(gate.name.startswith("approval ") for gate in next_closed):
            return "ApprovalMissing"
    if any(is_unknown(each) for each in unfinished):
        return "Unknown"
    return "GatesClosed"


def is_over(outcome: Outcome, running: int) -> bool:
    """Reports whether nothing changes any more without a person, and none of `running` updates runs."""
    return outcome in _FINAL and not running


def is_unknown(cluster: ClusterProgress) -> bool:
    """Reports whether the cluster could not be read, or one of its gates could not be evaluated."""
    return cluster.state == "unknown" or (cluster.gate is not None and cluster.gate.state == UNKNOWN)


def waves(update: FleetUpdate, clusters: Sequence[ClusterProgress]) -> tuple[tuple[str, ...], ...]:
    """Returns the clusters in the order of their turns if each starts as soon as its wave does."""
    found: list[tuple[str, ...]] = []
    for index, stage in enumerate(update.spec.stages):
        left = [each for each in sorted(clusters, key=lambda each: each.name) if each.stage == index]
        left = [each for each in left if each.state not in ("done", "skipped")]
        limit = max_concurrency(stage, sum(each.stage == index for each in clusters))
        while left:
            wave: list[ClusterProgress] = []
            taken: dict[tuple[str, str], str] = {}
            for each in left:
                if len(wave) < limit and next(_taken(update, each, taken), None) is None:
                    wave.append(each)
                    taken.update(dict.fromkeys(_mutexes_of(update, each), each.name))
            found.append(tuple(each.name for each in wave))
            left = [each for each in left if each not in wave]
    return tuple(found)
