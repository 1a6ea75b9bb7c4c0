"""What the journal of a fleet update says about one cluster: its state, its place, and what may be done next. Pure."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from tests.fleet.decide.test_update_turns import fleet_update
from tests.rollout.observed_cluster import NOW

from runup.api.update_policy_v1alpha1 import RunDecision, RunIntent, UpdateRunStatus
from runup.fleet.decide.members import Member
from runup.fleet.decide.update_records import Record, UpdateMember, may_check, members_of, progress_of, retried
from runup.fleet.decide.update_turns import Decisions, decide_turns
from runup.fleet.decide.update_view import view_of
from runup.rollout.decide.gates.gate import Gate, Verdict

MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)
MEMBER = UpdateMember(name="harbour", stage=0, uid="u")
UPDATE = fleet_update({})
OPEN = Verdict((Gate(name="window", state="Open", reason="Always", message="m"),))


def record(step: Any = "Waiting", reason: str = "", **changes: Any) -> Record:
    """The record of a cluster whose run is in this step."""
    decisions = (RunDecision(at=NOW, step=step, reason=reason),) if reason else ()
    fields = {key: changes.pop(key) for key in ("permit_until", "checked", "attempt") if key in changes}
    return Record(uid="u", status=UpdateRunStatus(step=step, decisions=decisions, **changes), **fields)


def verdict(state: Any, reason: str, name: str = "preflight") -> Verdict:
    """A verdict with one gate."""
    return Verdict((Gate(name=name, state=state, reason=reason, message="m"),))


@pytest.mark.parametrize(
    ("found", "seen", "options", "state", "gate"),
    [
        pytest.param(record(), OPEN, {}, "ready", None, id="all gates are open"),
        pytest.param(record(), verdict("Closed", "PreflightRisks"), {}, "waiting", "Closed", id="a red preflight"),
        pytest.param(record(), verdict("Unknown", "PreflightMissing"), {}, "waiting", "Unknown", id="no preflight"),
        pytest.param(record(), None, {"problem": "refused"}, "unknown", "Unknown", id="it cannot be reached"),
        pytest.param(record(), OPEN, {"skipped": True}, "skipped", "Closed", id="a person skipped it"),
        pytest.param(
            record("ControlPlane", started=NOW), None, {"skipped": True}, "running", "Closed", id="skipped, but begun"
        ),
        pytest.param(record("Failed", started=NOW), None, {"skipped": True}, "skipped", "Closed", id="skipped, failed"),
        pytest.param(record("Failed", "UnhealthyAfter", started=NOW), None, {}, "failed", "Closed", id="it failed"),
        pytest.param(record("Done", "Succeeded"), None, {"problem": "refused"}, "done", "Closed", id="done"),
        pytest.param(record("Done", "Skipped"), None, {}, "skipped", "Closed", id="its run was skipped"),
    ],
)
def test_the_state_of_a_cluster(
    found: Record, seen: Verdict | None, options: Any, state: str, gate: str | None
) -> None:
    """A cluster is ready only if all of its gates are open, and its gate says why it is not."""
    progress = progress_of(UPDATE, MEMBER, found, seen, now=NOW, **options)
    assert (progress.state, progress.gate.state if progress.gate is not None else None) == (state, gate)


@pytest.mark.parametrize(
    ("minutes", "cluster_minutes", "begun"),
    [
        pytest.param(1, None, True, id="the permit lasts"),
        pytest.param(0, None, False, id="the permit ends now"),
        pytest.param(-1, None, False, id="the permit has ended"),
        pytest.param(1, 2, False, id="it has ended by the time of the cluster"),
        pytest.param(1, -5, True, id="it lasts by the time of the cluster"),
    ],
)
def test_a_permit_holds_a_place(minutes: int, cluster_minutes: int | None, begun: bool) -> None:
    """A cluster with a permit may start at any time, until the permit ends by the clock of the cluster."""
    found = record(permit_until=NOW + minutes * MINUTE)
    cluster_now = NOW + cluster_minutes * MINUTE if cluster_minutes is not None else None
    assert progress_of(UPDATE, MEMBER, found, OPEN, now=NOW, cluster_now=cluster_now).begun is begun


INTENT = RunIntent(image="i", cluster_version_resource_version="7", leader="a", decided_at=NOW - 6 * HOUR)


@pytest.mark.parametrize(
    ("found", "problem", "overdue"),
    [
        # The deadline is 4 h, and the soak 1 h.
        pytest.param(record("ControlPlane", started=NOW - 4 * HOUR), "refused", False, id="within its deadlines"),
        pytest.param(record("ControlPlane", started=NOW - 5 * HOUR), "refused", True, id="beyond its deadlines"),
        pytest.param(record("Committing", intent=INTENT), "refused", True, id="a start whose end is not known"),
        pytest.param(record("ControlPlane", started=NOW - 9 * HOUR), "", False, id="it can be reached"),
        pytest.param(record("Done", "Succeeded", started=NOW - 9 * HOUR), "refused", False, id="it is done"),
    ],
)
def test_an_unreachable_cluster_is_overdue(found: Record, problem: str, overdue: bool) -> None:
    """It counts as a failure once the deadlines of the update that has begun there are over."""
    assert progress_of(UPDATE, MEMBER, found, None, problem=problem, now=NOW).overdue is overdue


@pytest.mark.parametrize(
    ("checked", "seen", "may"),
    [
        pytest.param(None, verdict("Unknown", "PreflightOld"), True, id="5: an old report"),
        pytest.param(NOW - 59 * MINUTE, verdict("Unknown", "PreflightOld"), False, id="5: requested 59 minutes ago"),
        pytest.param(NOW - HOUR, verdict("Unknown", "PreflightOld"), True, id="5: requested an hour ago"),
        pytest.param(None, verdict("Closed", "PreflightRisks"), False, id="5: a red report"),
        pytest.param(None, verdict("Open", "Always", "window"), False, id="5: a verdict without a preflight"),
    ],
)
def test_5_a_preflight_is_requested_once(checked: Any, seen: Verdict, may: bool) -> None:
    """At most once an hour, and only where a report is missing or old."""
    assert may_check(record(checked=checked), seen, NOW) is may


def test_a_retry_begins_anew_once() -> None:
    """A decision that the record already follows changes nothing."""
    begun = record("ControlPlane", started=NOW, attempt=1)
    assert retried(begun, 1) == begun
    assert retried(begun, 2) == Record(uid="u", attempt=2)


def test_a_stage_without_a_selector_has_all_clusters() -> None:
    """Its clusters are those of the inventory."""
    members, left_out = members_of(UPDATE, [Member(name="harbour"), Member(name="lighthouse")])
    assert ([each.name for each in members], left_out) == (["harbour", "lighthouse"], ())


@pytest.mark.parametrize(
    ("found", "seen", "code"),
    [
        pytest.param(record(), OPEN, 0, id="37: ready"),
        pytest.param(record(), verdict("Closed", "PreflightRisks"), 2, id="37: a closed gate"),
        pytest.param(record(), verdict("Unknown", "PreflightMissing"), 3, id="37: an unknown gate"),
        pytest.param(record("Failed", "UnhealthyAfter"), None, 1, id="37: failed"),
    ],
)
def test_37_the_exit_code_of_a_check(found: Record, seen: Verdict | None, code: int) -> None:
    """Unknown is neither ready nor closed; no cluster whose gate is unknown has an earliest time."""
    progress = progress_of(UPDATE, MEMBER, found, seen, now=NOW)
    granted = decide_turns(UPDATE, [progress], Decisions(), {}, now=NOW)
    view = view_of(UPDATE, [(progress, seen)], granted, NOW)
    assert view.check_code == code
    [line] = view.clusters
    assert line.earliest == (NOW if code == 0 else None)
