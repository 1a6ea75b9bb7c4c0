"""Decides, in a cluster, about the turns that a hub hands out: which one counts, which is used up, and the claim. Pure.

A hub gives one cluster after another an UpdateTurn. A run that needs a turn starts only while it has one. The cluster
asks for a turn by a ClusterClaim once its other gates are open. Claims and used-up turns only grow: a claim that was
withdrawn would let the hub delete the turn of an update that has begun (docs/decisions/0136).
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from msgspec.structs import replace

from kubekit.api.conditions import with_condition
from kubekit.api.meta_v1 import Condition, ConditionStatus
from kubekit.error_types import InputError
from runup.api.update_policy_v1alpha1 import UpdateRun, UpdateTurn
from runup.rollout.decide.durations import parse
from runup.rollout.decide.gates.gate import OPEN, Verdict
from runup.rollout.decide.gates.observed import Turn
from runup.rollout.decide.run_steps import FINISHED

CLAIM = "ready.update.runup.dev"
TURN_GATE = "turn"
# The hub selects by the claim's value as by a label's.
# https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/#syntax-and-character-set
MAX_CLAIM = 63
# A start that was sent while the turn counted has arrived or failed after this time.
_SENT_BEFORE = timedelta(minutes=2)
YIELDED = "Yielded"


def end_of(turn: UpdateTurn) -> datetime | None:
    """Returns the time from which on a turn is not usable; None if it never is, because a time is missing or wrong."""
    created = turn.metadata.creation_timestamp
    try:
        return created + parse(turn.spec.place_for, "spec.placeFor") if created is not None else None
    except InputError:
        return None


def turn_of(run: UpdateRun, turns: Sequence[UpdateTurn]) -> Turn | None:
    """Returns the turn with which a run may start; None if the run needs none. Of several the newest one counts."""
    if not run.spec.needs_turn:
        return None
    given = [each for each in turns if each.spec.run == run.metadata.name]
    usable = [
        (end, each.metadata.name)
        for each in given
        if each.metadata.uid not in run.status.used_up_turns
        and each.metadata.deletion_timestamp is None
        and (end := end_of(each)) is not None
    ]
    if usable:
        end, name = max(usable)
        return Turn(name=name, until=end)
    return Turn(used_up=bool(given))


def newly_used_up(run: UpdateRun, turns: Sequence[UpdateTurn], now: datetime) -> tuple[str, ...]:
    """Returns the UIDs of the turns that a waiting run did not use in time."""
    if run.status.step != "Waiting" or run.status.started is not None:
        return ()
    return tuple(
        each.metadata.uid
        for each in turns
        if each.spec.run == run.metadata.name
        and each.metadata.uid not in run.status.used_up_turns
        and ((end := end_of(each)) is None or now >= end + _SENT_BEFORE)
    )


def with_outcome(turn: UpdateTurn, run: UpdateRun | None, now: datetime) -> UpdateTurn:
    """Returns a turn with the conditions that the hub's rollout reads: Done and Failed, from its run.

    Without its run, or while the run continues, neither is True. A run that ended without an update, other than by
    being skipped, has failed.
    """
    done: tuple[ConditionStatus, str] = ("False", "NotYet")
    failed: tuple[ConditionStatus, str] = ("False", "AsExpected")
    if run is not None:
        reason = run.status.decisions[-1].reason if run.status.decisions else run.status.step
        if run.status.step == "Done":
            done = ("True", reason)
        elif run.status.step in FINISHED:
            failed = ("True", reason if run.status.step == "Failed" else run.status.step)
        elif turn.metadata.uid in run.status.used_up_turns:
            done = ("True", YIELDED)
    conditions = turn.status.conditions
    for type_, (status, reason) in (("Done", done), ("Failed", failed)):
        condition = Condition(type=type_, status=status, reason=reason, observed_generation=turn.metadata.generation)
        conditions = with_condition(conditions, condition, now=now)
    return replace(turn, status=replace(turn.status, conditions=conditions))


def is_ready(verdict: Verdict) -> bool:
    """Reports whether every gate but the turn is open."""
    others = [gate for gate in verdict.gates if gate.name != TURN_GATE]
    return not verdict.final and bool(others) and all(gate.state == OPEN for gate in others)


def wanted_claim(current: str, runs: Sequence[UpdateRun], turns: Sequence[UpdateTurn], ready: UpdateRun | None) -> str:
    """Returns the value of the ClusterClaim by which the cluster asks for a turn; empty for no claim.

    `ready` is the run that needs a turn and whose other gates are open. A claim stays until its run is finished and
    has no turn.
    """
    name, _, round_text = current.rpartition(".")
    if ready is not None:
        given = int(round_text) if name == ready.metadata.name and round_text.isdecimal() else 0
        value = f"{ready.metadata.name}.{max(given, ready.spec.round)}"
        if len(value) <= MAX_CLAIM:
            return value
    run = next((each for each in runs if each.metadata.name == name), None)
    has_turn = any(each.spec.run == name for each in turns)
    return current if run is not None and (run.status.step not in FINISHED or has_turn) else ""
