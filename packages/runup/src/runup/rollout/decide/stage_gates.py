"""The gates before and after a stage of a FleetUpdate: approvals, soaks, calendars and times. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from kubekit.lang.text import timestamp
from runup.api.fleet_update_v1alpha1 import FleetTarget, StageGate
from runup.api.update_policy_v1alpha1 import ApprovalGate
from runup.rollout.decide.calendar import Calendar
from runup.rollout.decide.durations import parse
from runup.rollout.decide.gates.gate import CLOSED, OPEN, Gate
from runup.rollout.decide.gates.observed import Approval, Approvals, Wanted
from runup.rollout.decide.gates.permission import approval_gate, window_gate


def evaluate_stage_gates(
    gates: Iterable[StageGate],
    target: FleetTarget,
    approvals: Sequence[Approval],
    calendars: Mapping[str, Calendar],
    *,
    soaking_since: datetime | None,
    now: datetime,
) -> tuple[Gate, ...]:
    """Returns the gates of one stage in their order.

    `approvals` are those given for this stage. `soaking_since` is when enough clusters of the stage that a Soak waits
    for were done; None if they are not.
    """
    return tuple(_evaluate(gate, target, approvals, calendars, soaking_since=soaking_since, now=now) for gate in gates)


def _evaluate(
    gate: StageGate,
    target: FleetTarget,
    approvals: Sequence[Approval],
    calendars: Mapping[str, Calendar],
    *,
    soaking_since: datetime | None,
    now: datetime,
) -> Gate:
    if gate.type == "Approval":
        setting = ApprovalGate(name=gate.name, count=gate.count, expires=gate.expires, four_eyes=False)
        wanted = Wanted(version=target.version, image=target.image, source="")
        return approval_gate(setting, wanted, Approvals(given=tuple(approvals)), now)
    if gate.type == "Calendar":
        known = (calendars[gate.name],) if gate.name in calendars else ()
        errors = () if known else (f"calendar {gate.name} does not exist",)
        return window_gate(known, errors, now)
    if gate.type == "NotBefore":
        start = gate.at
        assert start is not None
        state = OPEN if now >= start else CLOSED
        text = f"Starts are allowed from {timestamp(start)}."
        return Gate(name="time", state=state, reason="NotBefore", message=text, until=start)
    if soaking_since is None:
        return Gate(name="soak", state=CLOSED, reason="Soaking", message=f"The soak of {gate.for_} has not begun.")
    end = soaking_since + parse(gate.for_, "for")
    text = f"The soak of {gate.for_} ends at {timestamp(end)}."
    return Gate(name="soak", state=OPEN if now >= end else CLOSED, reason="Soaking", message=text, until=end)
