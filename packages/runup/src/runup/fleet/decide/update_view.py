"""The content of every view of a fleet update: its stages, and each cluster with its state and the reason. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

import msgspec

from runup.api.fleet_update_v1alpha1 import ClosedGate, FleetUpdate, Trouble
from runup.fleet.decide.update_turns import ClusterProgress, Outcome, State, Turns, is_over, is_unknown, waves
from runup.rollout.decide.gates.gate import OPEN, Gate, Verdict


class ClusterLine(msgspec.Struct, frozen=True, kw_only=True):
    """A cluster. `reason` and `message` are those of its first gate that is not open, or of its last step.

    `wave` counts from 1 over all stages, 0 for a cluster that has ended. `earliest` is the first time at which nothing
    about the time keeps the cluster from starting: a lower bound. None if that is not known, or the cluster has begun.
    """

    name: str
    stage: str
    state: State
    reason: str = ""
    message: str = ""
    unknown: bool = False
    wave: int = 0
    earliest: datetime | None = None


class StageLine(msgspec.Struct, frozen=True, kw_only=True):
    """A stage with its clusters by state. `closed` are the gates that keep its clusters from starting.

    On a hub, `phase` is the stage's, `turns` how many clusters have a turn that is not over, in round `round` of at
    most `rounds`, and `waiting_for` the most frequent reasons of clusters that wait, with their number.
    """

    name: str
    counts: Mapping[State, int]
    clusters: int
    needed: int
    closed: tuple[Gate, ...]
    phase: str = ""
    turns: int = 0
    round: int = 0
    rounds: int = 0
    waiting_for: Mapping[str, int] = {}


class FleetView(msgspec.Struct, frozen=True, kw_only=True):
    """A fleet update at one time. `left_out` are clusters that no stage selects.

    Of an update on a hub, `hub` is the context of the hub, `clusters` is empty unless they were asked for, and the
    fields that follow are what the hub's controller has stored: `problem` says why nothing starts, `waits_for` is the
    gate for which the update waits. `doubts` say why this may be out of date.
    """

    name: str
    version: str
    image: str
    observed: datetime
    outcome: Outcome
    exit_code: int
    failures: int
    allowed_failures: int
    stages: tuple[StageLine, ...]
    clusters: tuple[ClusterLine, ...]
    closed_at_end: tuple[Gate, ...] = ()
    left_out: tuple[str, ...] = ()
    hub: str = ""
    namespace: str = ""
    problem: str = ""
    waits_for: ClosedGate | None = None
    permit_until: datetime | None = None
    troubles: tuple[Trouble, ...] = ()
    doubts: tuple[str, ...] = ()

    def number(self, state: State) -> int:
        """Returns how many clusters are in a state."""
        return sum(stage.counts.get(state, 0) for stage in self.stages)

    @property
    def total(self) -> int:
        """The number of clusters of all stages."""
        return sum(stage.clusters for stage in self.stages)

    @property
    def is_over(self) -> bool:
        """Reports whether nothing changes any more without a person, and no update runs."""
        return is_over(self.outcome, self.number("running"))

    @property
    def check_code(self) -> int:
        """The exit code of a check: 0 all are ready or have begun, 2 a gate is closed, 3 unknown, 1 failed."""
        if any(each.state == "failed" for each in self.clusters):
            return 1
        if any(each.state == "waiting" and not each.unknown for each in self.clusters):
            return 2
        return 3 if any(each.unknown for each in self.clusters) else 0


def view_of(
    update: FleetUpdate,
    clusters: Sequence[tuple[ClusterProgress, Verdict | None]],
    turns: Turns,
    now: datetime,
    left_out: Sequence[str] = (),
) -> FleetView:
    """Returns the view of a survey."""
    in_waves = waves(update, [progress for progress, _ in clusters])
    wave_of = {name: index + 1 for index, names in enumerate(in_waves) for name in names}
    lines = []
    for progress, verdict in clusters:
        gate = progress.gate
        if progress.state == "ready":
            gate = turns.refused.get(progress.name)
        lines.append(
            ClusterLine(
                name=progress.name,
                stage=update.spec.stages[progress.stage].name,
                state=progress.state,
                reason=gate.reason if gate is not None else "",
                message=gate.message if gate is not None else "",
                unknown=is_unknown(progress),
                wave=wave_of.get(progress.name, 0),
                earliest=_earliest(progress, verdict, turns, now),
            )
        )
    return FleetView(
        name=update.metadata.name,
        version=update.spec.target.version,
        image=update.spec.target.image,
        observed=now,
        outcome=turns.outcome,
        exit_code=turns.exit_code,
        failures=turns.failures,
        allowed_failures=turns.allowed_failures,
        stages=tuple(
            StageLine(
                name=stage.name, counts=stage.counts, clusters=stage.clusters, needed=stage.needed, closed=stage.closed
            )
            for stage in turns.stages
        ),
        clusters=tuple(lines),
        closed_at_end=turns.closed_at_end,
        left_out=tuple(left_out),
    )


def _earliest(progress: ClusterProgress, verdict: Verdict | None, turns: Turns, now: datetime) -> datetime | None:
    """Returns the first time at which every gate that opens by itself is open, None if one has no such time."""
    if progress.begun or progress.state not in ("ready", "waiting") or verdict is None:
        return None
    closed = [gate for gate in (*verdict.gates, *turns.stages[progress.stage].closed) if gate.state != OPEN]
    if any(gate.until is None for gate in closed):
        return None
    return max([now, *(gate.until for gate in closed if gate.until is not None)])
