"""The gates of people and time: approvals, pauses, the forecast, and the windows of calendars."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta

from kubekit.lang.text import timestamp
from runup.api.update_policy_v1alpha1 import ALWAYS, ApprovalGate, ApprovalPoint
from runup.rehearse.decide.update_forecast import CONTROL_PLANE, Forecast, Range
from runup.rollout.decide.calendar import Calendar, opening_at
from runup.rollout.decide.durations import parse
from runup.rollout.decide.gates.gate import CLOSED, OPEN, UNKNOWN, Gate
from runup.rollout.decide.gates.observed import CLOCK_TOLERANCE, Approvals, Observed, Wanted

MISSING_RIGHT = (
    "The controller must not patch MachineConfigPools: `runup install update-policy --with-pools` grants the right."
)


def evaluate_approvals(observed: Observed, now: datetime) -> Iterable[Gate]:
    """Yields a gate for each approval that the start of the next release needs."""
    points: set[ApprovalPoint] = {"start", "hop"} if observed.hop else {"start"}
    return _approvals_before(points, observed, now)


def evaluate_approvals_of_pools(observed: Observed, now: datetime) -> Iterable[Gate]:
    """Yields a gate for each approval that the resumption of pools needs."""
    return _approvals_before({"pools"}, observed, now)


def _approvals_before(points: set[ApprovalPoint], observed: Observed, now: datetime) -> Iterable[Gate]:
    for setting in observed.gates.approvals:
        if points & set(setting.before):
            yield approval_gate(setting, observed.wanted, observed.approvals, now, hop_digests=observed.hop_digests)


def approval_gate(
    setting: ApprovalGate, wanted: Wanted, approvals: Approvals, now: datetime, *, hop_digests: Iterable[str] = ()
) -> Gate:
    """Returns the gate of one named approval of `wanted` and, for scope Run, all hops. Each approver counts once."""
    name = f"approval {setting.name}"
    if approvals.unverified:
        text = f"The authors of approvals are not verified: {approvals.unverified}."
        return Gate(name=name, state=UNKNOWN, reason="ApproverUnverified", message=text)
    digest = wanted.image.partition("@")[2]
    needed = {digest} if setting.scope == "Hop" else {digest, *hop_digests}
    lifetime = parse(setting.expires, "spec.gates.approvals.expires")
    counting: dict[str, datetime] = {}
    ended = False
    for approval in approvals.given:
        if approval.gate != setting.name or not digest or not needed <= set(approval.image_digests):
            continue
        if approval.created > now + CLOCK_TOLERANCE:
            continue
        if setting.four_eyes and approval.approved_by == approvals.requested_by:
            continue
        end = min(filter(None, (approval.created + lifetime, approval.not_after)))
        if now >= end:
            ended = True
            continue
        counting[approval.approved_by] = max(end, counting.get(approval.approved_by, end))
    if len(counting) >= setting.count:
        # The gate closes when so many have ended that too few are left.
        until = sorted(counting.values(), reverse=True)[setting.count - 1]
        text = f"Approved by {', '.join(sorted(counting))}, until {timestamp(until)}."
        return Gate(name=name, state=OPEN, reason="Approved", message=text, until=until)
    reason = "ApprovalEnded" if ended else "ApprovalMissing"
    given = f"{len(counting)} of {setting.count} given"
    text = f"Approval {setting.name} of {wanted.version} is missing: {given}."
    return Gate(name=name, state=CLOSED, reason=reason, message=text)


def evaluate_holds(observed: Observed, now: datetime) -> Gate:
    """Returns the gate of pauses, permits, other runs, other requests, and the clock."""
    holds = observed.holds
    why = reason = ""
    until = None
    if holds.clock_skew_until is not None and now < holds.clock_skew_until:
        reason, why, until = "ClockSkew", "The cluster's clock jumped.", holds.clock_skew_until
    elif holds.other_request:
        reason, why = "OtherUpdate", f"Somebody else requested {holds.other_request}."
    elif holds.older_run:
        reason, why = "AnotherRun", f"Run {holds.older_run} is not finished."
    elif holds.control != "Run":
        reason, why = "Held", f"spec.control is {holds.control}."
    elif holds.permit_until is not None and now >= holds.permit_until:
        reason, why = "PermitEnded", f"The permit ended at {timestamp(holds.permit_until)}."
    elif holds.no_policy:
        reason, why = "Held", "The UpdatePolicy of the run does not exist any more."
    elif holds.denied:
        reason, why = "Held", "spec.remote of the policy is Deny: a run of a hub does not start."
    elif holds.paused or (holds.paused_until is not None and now < holds.paused_until):
        # `paused` has no end, whatever `pausedUntil` says.
        until = None if holds.paused else holds.paused_until
        reason, why = "Held", f"The policy is paused{f' until {timestamp(until)}' if until else ''}"
        why += f": {holds.pause_reason}." if holds.pause_reason else "."
    if reason:
        return Gate(name="hold", state=CLOSED, reason=reason, message=why, until=until)
    # A permit that ends later closes the gate then.
    return Gate(
        name="hold", state=OPEN, reason="NotHeld", message="Nothing holds the update back.", until=holds.permit_until
    )


def evaluate_turn(observed: Observed, now: datetime) -> Gate | None:
    """Returns the gate of the turn that a hub gives to one cluster after another. None if the run needs none."""
    turn = observed.holds.turn
    if turn is None:
        return None
    if turn.used_up or (turn.until is not None and now >= turn.until):
        text = "The turn ended before the update started; the hub gives another one in its next round."
        return Gate(name="turn", state=CLOSED, reason="TurnUsedUp", message=text)
    if turn.until is None:
        text = "The hub has not given this cluster its turn."
        return Gate(name="turn", state=CLOSED, reason="NoTurn", message=text)
    text = f"UpdateTurn {turn.name} counts until {timestamp(turn.until)}."
    return Gate(name="turn", state=OPEN, reason="Turn", message=text, until=turn.until)


def evaluate_window(observed: Observed, now: datetime) -> Gate:
    """Returns the gate of the policy's calendars."""
    if not observed.calendar_errors and not observed.calendar_names:
        text = "The policy has no calendar, so nothing starts: add one to spec.calendars, or Always."
        return Gate(name="window", state=CLOSED, reason="NoCalendar", message=text)
    if not observed.calendar_errors and _is_unrestricted(observed):
        return Gate(name="window", state=OPEN, reason="Always", message="Updates may start at any time.")
    return window_gate(observed.calendars, observed.calendar_errors, now)


def window_gate(calendars: Sequence[Calendar], errors: Sequence[str], now: datetime) -> Gate:
    """Returns the gate of calendars: all have an open window and none a freeze. `errors`: why some cannot be used."""
    if errors:
        return Gate(name="window", state=UNKNOWN, reason="InvalidCalendar", message=f"{'; '.join(errors)}.")
    opening = opening_at(calendars, now)
    if opening.period is not None:
        text = f"Open from {timestamp(opening.period.start)} to {timestamp(opening.period.end)}."
        return Gate(name="window", state=OPEN, reason="InWindow", message=text, until=opening.period.end)
    later = f"next opening {timestamp(opening.next_opening)}" if opening.next_opening else "no opening in 92 days"
    if opening.frozen is not None:
        because = f" ({opening.frozen.reason})" if opening.frozen.reason else ""
        text = f"Calendar {opening.closed_by} is frozen until {timestamp(opening.frozen.end)}{because}; {later}."
        return Gate(name="window", state=CLOSED, reason="Frozen", message=text, until=opening.frozen.end)
    text = f"No window of calendar {opening.closed_by} is open; {later}."
    return Gate(name="window", state=CLOSED, reason="OutsideWindow", message=text, until=opening.next_opening)


def evaluate_forecast(observed: Observed, now: datetime, pool: str = "") -> Gate | None:
    """Returns the gate of the forecast: the update ends before the window does. None if it does not apply.

    With `pool` it is about that pool. Without one it is about the whole update, or about the control plane alone if
    the pools are updated later.
    """
    mode = observed.gates.forecast
    if mode == "Ignore" or (_is_unrestricted(observed) and not observed.calendar_errors):
        return None
    period = opening_at(observed.calendars, now).period if not observed.calendar_errors else None
    if period is None:
        text = "No window is open, so there is no time to compare the forecast with."
        return Gate(name="forecast", state=CLOSED, reason="OutsideWindow", message=text)
    part = pool or ("" if observed.pools_when == "Together" else CONTROL_PLANE)
    subject = f"Pool {pool}" if pool else f"The {part or 'update'}"
    forecast = observed.forecast if isinstance(observed.forecast, str) else _part_of(observed.forecast, part)
    if isinstance(forecast, str):
        text = f"Could not determine how long the update takes: {forecast}."
        return Gate(name="forecast", state=UNKNOWN, reason="FitUnknown", message=text)
    return _fit(subject, forecast, period.end - now, fits=mode == "Fits", until=period.end, now=now)


def _part_of(forecast: Forecast, name: str) -> Forecast | str:
    """Returns the forecast of one part, or why it is not known; without a name that of all parts."""
    if not name:
        return forecast
    part = next((each for each in forecast.parts if each.name == name), None)
    if part is None:
        return f"the forecast has no part {name}"
    return dataclasses.replace(forecast, total=part.range, guessed=part.guessed, needs_help=())


def _fit(subject: str, forecast: Forecast, left: timedelta, *, fits: bool, until: datetime, now: datetime) -> Gate:
    """Returns the gate from a forecast and the time that is left of the window."""
    total: Range = forecast.total
    left_text = f"the window has {_minutes(left)} min left"
    text = f"{subject} takes at least {-(-total.low_s // 60)} min; {left_text}."
    if total.low_s > left.total_seconds():
        return Gate(name="forecast", state=CLOSED, reason="DoesNotFit", message=text)
    if not fits:
        return Gate(name="forecast", state=OPEN, reason="NotTooLong", message=text, until=until)
    if forecast.needs_help:
        text = f"{subject} does not finish without help: {'; '.join(forecast.needs_help[:3])}."
        return Gate(name="forecast", state=UNKNOWN, reason="FitUnknown", message=text)
    if total.high_s is None or forecast.guessed:
        why = "is partly a guess" if forecast.guessed else "has no upper limit"
        return Gate(name="forecast", state=UNKNOWN, reason="FitUnknown", message=f"The forecast {why}; {left_text}.")
    if total.high_s > left.total_seconds():
        text = f"{subject} takes up to {-(-total.high_s // 60)} min; {left_text}."
        return Gate(name="forecast", state=CLOSED, reason="DoesNotFit", message=text)
    latest = now + left - timedelta(seconds=total.high_s)
    text = f"{subject} takes up to {-(-total.high_s // 60)} min; {left_text}."
    return Gate(name="forecast", state=OPEN, reason="Fits", message=text, until=latest)


def evaluate_pools(observed: Observed, now: datetime) -> Gate | None:  # noqa: ARG001 (all gates have one signature)
    """Returns the gate of the pools: they are known and can be paused. None if they are updated with the rest."""
    if observed.pools_when == "Together":
        return None
    if observed.why_pools_unknown:
        text = f"Could not determine which pools to pause: {observed.why_pools_unknown}."
        return Gate(name="pools", state=UNKNOWN, reason="PoolsUnknown", message=text)
    if not observed.may_pause:
        return Gate(name="pools", state=CLOSED, reason="RightsMissing", message=MISSING_RIGHT)
    return Gate(name="pools", state=OPEN, reason="Known", message="The worker pools can be paused.")


def _is_unrestricted(observed: Observed) -> bool:
    return observed.calendar_names == (ALWAYS,)


def _minutes(left: timedelta) -> int:
    return int(left.total_seconds() // 60)
