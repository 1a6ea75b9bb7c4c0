"""Decides the next state of a FleetUpdate: stages, rounds of turns, permits, and the fuse. Pure.

In: a FleetUpdate and the hub as it is observed. Out: its next status, and the objects that must exist for the engine.
Each pass computes both again. The engine hands out turns; permits end what it should not start: a permit ends by
itself, also where the hub does not reach a cluster (docs/decisions/0135).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
from msgspec.structs import replace

from kubekit.api.conditions import find, with_condition
from kubekit.api.meta_v1 import Condition, ConditionStatus
from kubekit.lang.oc_pull_spec import is_same_image
from kubekit.lang.text import count, cut, printable, timestamp
from runup.api.fleet_update_v1alpha1 import (
    ClosedGate,
    FleetUpdate,
    FleetUpdateStatus,
    ReasonCount,
    StageGate,
    StageStatus,
    Trouble,
    TroubleKind,
)
from runup.api.hub_v1 import ManagedCluster
from runup.api.update_policy_v1alpha1 import ApprovalGate, UpdateCalendar
from runup.fleet.decide.hub_update import engine_objects
from runup.fleet.decide.hub_update.cluster_states import (
    STATES,
    SUCCEEDED,
    RunState,
    StageObserved,
    State,
    heard_since,
    reason_of,
    state_of,
)
from runup.fleet.decide.hub_update.engine_objects import settings_of, size_of
from runup.fleet.decide.hub_update.refusals import Refusal, refusal
from runup.rollout.decide.approvals import FoundApprovals, approvals_of_stage
from runup.rollout.decide.assemble import read_calendars
from runup.rollout.decide.calendar import opening_at
from runup.rollout.decide.durations import parse
from runup.rollout.decide.gates.observed import Wanted
from runup.rollout.decide.gates.permission import approval_gate
from runup.rollout.decide.turns import YIELDED

JSON = dict[str, Any]
MAX_NAMES, MAX_NAME, MAX_MESSAGE = 20, 128, 256
# The most frequent reasons of clusters that wait; agents report them, so their number and length are not known.
MAX_REASONS, MAX_REASON = 5, 48
# In bytes, as JSON (design of fleet updates: counts and first names only, whatever the size of the fleet).
MAX_STATUS = 16 * 1024
_NEVER = datetime.fromtimestamp(0, tz=UTC)
# A turn is done after its run is, and both reach the hub within the agents' interval, 10 to 60 s.
DONE_WITHOUT_RUN_FOR = timedelta(minutes=10)
# A start with a turn that was taken back is known to the hub after this time.
ROUND_SETTLES_FOR = timedelta(minutes=5)
READY, PROGRESSING, HELD, FAILED, DONE = "Ready", "Progressing", "Held", "Failed", "Done"
FUSE_BLOWN = "FuseBlown"
# Annotation by which a person lets a fleet update continue after its fuse has blown: the time of condition Failed.
ACKNOWLEDGED = "update.runup.dev/acknowledged"


class HubObserved(msgspec.Struct, frozen=True, kw_only=True):
    """The hub: its clusters by name, the stages in order, approvals, calendars, and why the engine cannot work."""

    clusters: Mapping[str, ManagedCluster]
    stages: Sequence[StageObserved]
    approvals: FoundApprovals = FoundApprovals()
    calendars: Sequence[UpdateCalendar] = ()
    engine: Refusal | None = None


class HubOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """The status to store, and the objects of the engine: those to apply in this order, and names of sets to delete.

    A set that is deleted takes the Placement of its name with it.
    """

    status: FleetUpdateStatus
    replica_sets: tuple[JSON, ...] = ()
    placements: tuple[JSON, ...] = ()
    deleted: tuple[str, ...] = ()


class _View(msgspec.Struct, frozen=True, kw_only=True):
    """A stage with the state of each of its clusters: those that its Placement chooses, and those that have a run."""

    states: Mapping[str, State]
    observed: StageObserved

    def names(self, *states: State) -> list[str]:
        return [name for name, state in self.states.items() if state in states]

    def total(self, *states: State) -> int:
        return sum(state in states for state in self.states.values())


def decide(fleet: FleetUpdate, hub: HubObserved, now: datetime) -> HubOutcome:
    """Returns the next status of a FleetUpdate, and the objects of the engine."""
    spec = fleet.spec
    views = [_view(fleet, each, hub.clusters) for each in hub.stages]
    refused = refusal(fleet, hub.stages, hub.clusters, hub.engine)
    blown = _blown_fuse(fleet, hub, views, now)
    failed = find(fleet.status.conditions, FAILED)
    if blown is None and failed is not None and failed.status == "True" and not _is_acknowledged(fleet, failed):
        blown = failed.message
    is_stopped = refused is not None or blown is not None or spec.control != "Run"
    statuses: list[StageStatus] = []
    sets: list[JSON] = []
    placements: list[JSON] = []
    deleted: list[str] = []
    before = {each.name: each for each in fleet.status.stages}
    previous: StageStatus | None = None
    opened = ""
    waits_for: ClosedGate | None = None
    for index, (stage, view) in enumerate(zip(spec.stages, views, strict=True)):
        status = stored = before.get(stage.name, StageStatus(name=stage.name))
        after = spec.stages[index - 1].after if index else ()
        is_next = index == 0 or (previous is not None and previous.done_at is not None)
        gates = [
            *(_gate(fleet, index - 1, gate, hub, previous=previous, now=now) for gate in after if previous is not None),
            *(_gate(fleet, index, gate, hub, previous=previous, now=now) for gate in stage.before),
        ]
        closed_gate = next((each for each in gates if each is not None), None)
        closed = closed_gate.message if closed_gate is not None else ""
        status = _phase(status, view, is_next=is_next, closed=closed, is_stopped=is_stopped)
        status = _reopened(status, view, retries=stage.retries, now=now, is_stopped=is_stopped)
        status = _round(fleet, index, status, view, now=now, is_stopped=is_stopped)
        status = _counted(fleet, index, status, view, now=now)
        # A window of the hub that ends takes the permits with it.
        may_start = not is_stopped and status.phase == "Running" and not closed
        status = replace(status, permit_until=_permit(fleet, status, now, may_start=may_start), message=closed)
        runs_name = engine_objects.set_name(fleet, index, engine_objects.RUNS)
        if (status.phase != "Pending" and refused is None) or runs_name in view.observed.sets:
            sets.append(
                engine_objects.runs_set(
                    fleet,
                    index,
                    # A time that does not change: each change is written to every cluster.
                    permit_until=status.permit_until or fleet.metadata.creation_timestamp or _NEVER,
                    control=spec.control,
                    round_=max(status.round, 1),
                )
            )
        # Turns follow the status as it is stored: a process that is killed must not hand out or take back turns twice.
        wanted = ""
        if stored.phase == "Running" and stored.round_closed is None:
            wanted = engine_objects.turns_name(fleet, index, stored.round)
        # Without the stage's Placement a set of turns stays as it is: its deletion would take turns back.
        if wanted and refused is None and view.observed.placement is not None:
            placement = dict(view.observed.placement)
            placements.append(engine_objects.turns_placement(fleet, index, stored.round, placement))
            sets.append(engine_objects.turns_set(fleet, index, stored.round))
        deleted += sorted(view.observed.sets - {wanted, runs_name})
        statuses.append(status)
        if not opened and status.phase in ("Checking", "Running") and status.done_at is None:
            opened, waits_for = stage.name, closed_gate
        previous = status
    last = spec.stages[-1]
    is_done = all(each.done_at is not None for each in statuses)
    if is_done:
        ends = (_gate(fleet, len(views) - 1, gate, hub, previous=statuses[-1], now=now) for gate in last.after)
        waits_for = next((each for each in ends if each is not None), None)
        # A stage that was opened again is progress, although enough of its clusters were done before.
        opened = next((each.name for each in statuses if each.phase == "Running" and each.retries), "")
        is_done, opened = waits_for is None and not opened, opened or last.name
    next_status = FleetUpdateStatus(
        observed_generation=fleet.metadata.generation,
        permit_until=max((each.permit_until for each in statuses if each.permit_until), default=None),
        closed=waits_for,
        stages=tuple(statuses),
        troubles=_troubles(fleet, statuses, views),
        conditions=fleet.status.conditions,
    )
    next_status = _with_conditions(
        next_status, fleet, now, refused=refused, blown=blown, is_done=is_done, opened=opened, views=views
    )
    return HubOutcome(
        status=_bounded(next_status), replica_sets=tuple(sets), placements=tuple(placements), deleted=tuple(deleted)
    )


def _view(fleet: FleetUpdate, observed: StageObserved, clusters: Mapping[str, ManagedCluster]) -> _View:
    return _View(states=states_of(fleet, observed, clusters), observed=observed)


def states_of(fleet: FleetUpdate, observed: StageObserved, clusters: Mapping[str, ManagedCluster]) -> dict[str, State]:
    """Returns the states of the clusters of a stage, and of those that left it after they had got their run."""
    names = dict.fromkeys((*(observed.members or ()), *observed.runs))
    image = fleet.spec.target.image
    return {name: state_of(observed.runs.get(name), clusters.get(name), image) for name in names}


def _phase(status: StageStatus, view: _View, *, is_next: bool, closed: str, is_stopped: bool) -> StageStatus:
    """Returns the stage in its next phase. Its turns are over when no cluster is left that may get one."""
    phase = status.phase
    if phase == "Pending" and is_next:
        phase = "Checking"
    if phase == "Checking" and not closed and not is_stopped and view.observed.members:
        phase = "Running"
    elif phase == "Running" and status.done_at is not None and view.states:
        finished = view.total("done", "skipped", "failed")
        phase = "Over" if finished == len(view.states) else phase
    return replace(status, phase=phase, round=status.round or (1 if phase == "Running" else 0))


def _reopened(status: StageStatus, view: _View, *, retries: int, now: datetime, is_stopped: bool) -> StageStatus:
    """Returns the stage opened again if a person asked for it and there are clusters that have not ended.

    Its clusters get turns in a new round: the claims of clusters that are done name earlier ones.
    """
    if is_stopped or retries <= status.retries:
        return status
    status = replace(status, retries=retries)
    finished = view.total("done", "skipped", "failed")
    if status.phase != "Over" or finished == len(view.states):
        return status
    return replace(status, phase="Running", round_closed=now)


def _round(
    fleet: FleetUpdate, index: int, status: StageStatus, view: _View, *, now: datetime, is_stopped: bool
) -> StageStatus:
    """Returns the stage in its next round of turns.

    A round is closed when each of its turns is over and some were not used. The next one begins after the turns are
    gone and no update of the stage is in progress, so that two rounds never have clusters in progress together.
    """
    stage = fleet.spec.stages[index]
    if status.phase != "Running" or is_stopped:
        return status
    if status.round_closed is None:
        turns = view.observed.turns.get(status.round, {})
        is_over = bool(turns) and all(turn.counts_as_done or turn.counts_as_failed for turn in turns.values())
        has_yielded = any(turn.done == YIELDED for turn in turns.values())
        has_more = bool(set(view.names("ready")) - set(turns))
        if is_over and has_yielded and not has_more and status.round < stage.last_round:
            return replace(status, round_closed=now)
        return status
    is_gone = engine_objects.turns_name(fleet, index, status.round) not in view.observed.sets
    is_quiet = not any(run.is_running for run in view.observed.runs.values())
    has_turns = bool(view.observed.turns.get(status.round))
    if is_gone and is_quiet and not has_turns and now >= status.round_closed + ROUND_SETTLES_FOR:
        return replace(status, round=status.round + 1, round_closed=None)
    return status


def _counted(fleet: FleetUpdate, index: int, status: StageStatus, view: _View, *, now: datetime) -> StageStatus:
    """Returns the stage with the number of its clusters in each state, and whether enough of them are done."""
    counts = {state: view.total(state) for state in STATES}
    total = len(view.states)
    done = counts["done"] + counts["skipped"]
    is_done = status.phase in ("Running", "Over") and total and done >= size_of_or_all(fleet, index, total)
    done_at = status.done_at or (now if is_done else None)
    turns = view.observed.turns.get(status.round, {}).values()
    runs = view.observed.runs
    reasons = Counter(
        cut(reason_of(runs[name], "waiting"), MAX_REASON) for name in view.names("waiting") if name in runs
    )
    # By name among equals, so that the order of a list does not cause a write.
    most = sorted(reasons.items(), key=lambda each: (-each[1], each[0]))[:MAX_REASONS]
    return replace(
        status,
        clusters=total,
        done_at=done_at,
        turns=sum(not (turn.counts_as_done or turn.counts_as_failed) for turn in turns),
        waiting_for=tuple(ReasonCount(reason=reason, total=number) for reason, number in most),
        **counts,
    )


def size_of_or_all(fleet: FleetUpdate, index: int, total: int) -> int:
    """Returns how many clusters of a stage must be done; all of them if `minDone` cannot be read."""
    try:
        return max(1, size_of(fleet.spec.stages[index].min_done, total))
    except ValueError:
        return total


def _permit(fleet: FleetUpdate, status: StageStatus, now: datetime, *, may_start: bool) -> datetime | None:
    """Returns until when updates may start: renewed when half is left, and ended at once if nothing may start."""
    current = status.permit_until
    if not may_start:
        return min(current, now) if current is not None else None
    length = parse(fleet.spec.permit_for, "spec.permitFor")
    if current is not None and length / 2 < current - now <= length:
        return current
    return now + length


def _blown_fuse(fleet: FleetUpdate, hub: HubObserved, views: Sequence[_View], now: datetime) -> str | None:
    """Returns why nothing more may start, or None: it is counted from the runs, independently of the engine."""
    failed = [
        f"{stage.name}/{name}"
        for stage, view in zip(fleet.spec.stages, views, strict=True)
        for name in view.names("failed")
    ]
    total = sum(len(view.states) for view in views)
    allowed = allowed_failures(fleet, total)
    if len(failed) > allowed:
        return f"{count(len(failed), 'cluster')} failed, and spec.maxFailures allows {allowed}: {_first(failed)}."
    for stage, view in zip(fleet.spec.stages, hub.stages, strict=True):
        # The turn of a run that ended may be reported before the run.
        ended = {name for turns in view.turns.values() for name, turn in turns.items() if turn.has_succeeded}
        begun = [name for name, run in view.runs.items() if run.is_running and run.gated and name not in ended]
        limit = concurrency(settings_of(stage), len(view.runs))
        if limit is not None and len(begun) > limit:
            return (
                f"Stage {stage.name}: {count(len(begun), 'update')} are in progress, and its rollout allows {limit}: "
                f"{_first(begun)}."
            )
        wrong = sorted(_done_without_run(view, fleet.spec.target.image, hub.clusters, now))
        if wrong:
            return (
                f"Stage {stage.name}: the engine counts turns as done whose updates are not complete: {_first(wrong)}."
            )
    return None


def allowed_failures(fleet: FleetUpdate, total: int) -> int:
    """Returns how many of `total` clusters may fail; 0 if `maxFailures` cannot be read."""
    try:
        return size_of(fleet.spec.max_failures, total)
    except ValueError:
        return 0


def concurrency(settings: JSON, total: int) -> int | None:
    """Returns how many clusters the engine updates at once; None if the rollout does not limit it, or not by number."""
    value = settings.get("maxConcurrency")
    if value is None:
        return None
    try:
        found = size_of(value, total)
    except (ValueError, AttributeError):
        return 0
    # sdk-go calculateRolloutSize: a value out of range means all.
    return found if 0 < found <= total else None


def _done_without_run(
    stage: StageObserved, image: str, clusters: Mapping[str, ManagedCluster], now: datetime
) -> Iterator[str]:
    """Yields the clusters whose turn counts as done, while their run is neither complete nor skipped nor yielded.

    The turn may be reported before the run, so a cluster counts after the hub has heard of it for some time.
    """
    for turns in stage.turns.values():
        for name, turn in turns.items():
            if not turn.counts_as_done or turn.done == YIELDED:
                continue
            if not turn.done or turn.done == "NotYet":
                # The agent reports the condition and the value together, so this is not a delay.
                yield name
                continue
            run = stage.runs.get(name)
            is_complete = (
                run is not None
                and run.step == "Done"
                and run.outcome in SUCCEEDED | {"Skipped"}
                and is_same_image(run.image, image)
            )
            heard = heard_since(clusters.get(name))
            if not is_complete and heard and (not turn.since or now > max(turn.since, heard) + DONE_WITHOUT_RUN_FOR):
                yield name


def _is_acknowledged(fleet: FleetUpdate, failed: Condition) -> bool:
    return fleet.metadata.annotations.get(ACKNOWLEDGED, "") == timestamp(failed.last_transition_time)


def _gate(
    fleet: FleetUpdate,
    index: int,
    gate: StageGate,
    hub: HubObserved,
    *,
    previous: StageStatus | None,
    now: datetime,
) -> ClosedGate | None:
    """Returns a condition before or after a stage that does not hold, with the reason; None if it holds."""
    stage = fleet.spec.stages[index]
    message = _why_closed(fleet, stage.name, gate, hub, previous=previous, now=now)
    if not message:
        return None
    return ClosedGate(stage=stage.name, type=gate.type, name=gate.name, message=cut(printable(message), MAX_MESSAGE))


def _why_closed(
    fleet: FleetUpdate,
    stage: str,
    gate: StageGate,
    hub: HubObserved,
    *,
    previous: StageStatus | None,
    now: datetime,
) -> str:
    """Returns why a condition before or after a stage does not hold; empty if it does."""
    if gate.type == "NotBefore":
        return "" if gate.at is not None and now >= gate.at else f"Not before {timestamp(gate.at)}."
    if gate.type == "Soak":
        done_at = previous.done_at if previous is not None else None
        if done_at is None:
            return "The soak begins when enough clusters are done."
        end = done_at + parse(gate.for_, "for")
        return "" if now >= end else f"The soak ends at {timestamp(end)}."
    if gate.type == "Approval":
        setting = ApprovalGate(name=gate.name, count=gate.count, expires=gate.expires, four_eyes=False)
        approvals = approvals_of_stage(fleet.metadata.namespace, fleet.metadata.name, stage, hub.approvals)
        wanted = Wanted(version=fleet.spec.target.version, image=fleet.spec.target.image, source="")
        found = approval_gate(setting, wanted, approvals, now)
        return "" if found.state == "Open" else found.message
    calendars, errors = read_calendars((gate.name,), hub.calendars)
    if errors or not calendars:
        return f"{'; '.join(errors)}."
    opening = opening_at(calendars, now)
    if opening.period is not None:
        return ""
    later = f"next opening {timestamp(opening.next_opening)}" if opening.next_opening else "no opening in 92 days"
    return f"Calendar {gate.name} is {'frozen' if opening.frozen else 'closed'}; {later}."


def _troubles(fleet: FleetUpdate, statuses: Sequence[StageStatus], views: Sequence[_View]) -> tuple[Trouble, ...]:
    """Returns the clusters that a person has to look at, by kind of trouble: the first ones, and how many there are."""
    found: dict[TroubleKind, list[str]] = {}
    for stage, status, view in zip(fleet.spec.stages, statuses, views, strict=True):

        def add(kind: TroubleKind, name: str, why: str = "", stage_name: str = stage.name) -> None:
            text = f"{stage_name}/{name}" + (f": {why}" if why else "")
            found.setdefault(kind, []).append(cut(printable(text), MAX_NAME))

        runs = view.observed.runs
        yielded = {
            name for turns in view.observed.turns.values() for name, turn in turns.items() if turn.done == YIELDED
        }
        for name, state in view.states.items():
            run = runs.get(name, RunState())
            if state == "failed":
                add("Failed", name, reason_of(run, state))
            elif status.phase == "Over" and state not in ("done", "skipped"):
                add("LateCluster", name)
            elif state == "unknown" and status.phase != "Pending":
                add("Unknown", name)
            elif status.round >= stage.last_round and name in yielded and state in ("waiting", "ready"):
                add("OutOfRounds", name)
            if run.outcome == "SucceededUngated" or (run.is_running and not run.gated):
                add("Ungated", name)
    return tuple(
        Trouble(kind=kind, total=len(names), clusters=tuple(names[:MAX_NAMES])) for kind, names in found.items()
    )


def _bounded(status: FleetUpdateStatus) -> FleetUpdateStatus:
    """Returns the status with fewer names of clusters if it would be too large."""
    most = MAX_NAMES
    while len(msgspec.json.encode(status)) > MAX_STATUS and most:
        most //= 2
        troubles = tuple(replace(each, clusters=each.clusters[:most]) for each in status.troubles)
        status = replace(status, troubles=troubles)
    return status


def _first(names: Sequence[str]) -> str:
    shown = ", ".join(cut(printable(each), MAX_NAME) for each in names[:5])
    return f"{shown} and {len(names) - 5} more" if len(names) > 5 else shown


def _with_conditions(
    status: FleetUpdateStatus,
    fleet: FleetUpdate,
    now: datetime,
    *,
    refused: Refusal | None,
    blown: str | None,
    is_done: bool,
    opened: str,
    views: Sequence[_View],
) -> FleetUpdateStatus:
    """Returns the status with its five conditions."""
    control = fleet.spec.control
    ready: tuple[ConditionStatus, str, str] = ("True", "AsExpected", "")
    if refused is not None:
        ready = ("Unknown" if refused.unknown else "False", refused.reason, refused.message)
    is_running = any(run.is_running for view in views for run in view.observed.runs.values())
    progress: tuple[ConditionStatus, str, str] = ("False", "NotStarted", "")
    if is_done:
        progress = ("False", "Finished", "")
    elif is_running or opened:
        why = status.closed.message if status.closed is not None else ""
        progress = ("True", "Stage", f"Stage {opened}. {why}".strip() if opened else "")
    held: tuple[ConditionStatus, str, str] = ("False", "Running", "")
    if control != "Run":
        ends = f"No update starts after {timestamp(status.permit_until)}." if status.permit_until else ""
        held = ("True", control, ends)
    failed: tuple[ConditionStatus, str, str] = ("False", "AsExpected", "")
    if blown is not None:
        failed = ("True", FUSE_BLOWN, cut(printable(blown), 1024))
    done: tuple[ConditionStatus, str, str] = ("False", "NotYet", "")
    if is_done:
        done = ("True", "Succeeded", "")
    elif control == "Abort" and not is_running:
        done = ("False", "Aborted", "")
    conditions = status.conditions
    for type_, (state, reason, message) in (
        (READY, ready),
        (PROGRESSING, progress),
        (HELD, held),
        (FAILED, failed),
        (DONE, done),
    ):
        condition = Condition(type=type_, status=state, reason=reason, message=message)
        conditions = with_condition(conditions, condition, now=now)
    return replace(status, conditions=conditions)
