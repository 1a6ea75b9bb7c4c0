"""What UpdateStatus says about an update policy, and that the entries of others stay."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from kubekit.api import codec
from kubekit.api.meta_v1 import Condition, ObjectMeta
from runup.api.update_policy_v1alpha1 import Candidate, UpdatePolicyStatus, UpdateRun, UpdateRunSpec, UpdateRunStatus
from runup.rollout.decide.status_insight import INFORMER, informer_operations, why_nothing_starts

NOW = datetime(2027, 2, 2, 22, tzinfo=UTC)
OTHER = {"name": "update-status-controller", "insights": []}
PATH = "/status/controlPlane/informers"


def run_of(step: Any = "Waiting", status: Any = "False", reason: str = "OutsideWindow") -> UpdateRun:
    """A run with this condition GatesOpen."""
    condition = Condition(type="GatesOpen", status=status, reason=reason, message="No window is open.")
    return UpdateRun(
        metadata=ObjectMeta(name="5.1.0-abc"),
        spec=UpdateRunSpec(target=Candidate(version="5.1.0", image="i")),
        status=UpdateRunStatus(step=step, conditions=(condition,)),
    )


def policy(type_: str = "Ready", status: Any = "False", reason: str = "NoCalendar") -> UpdatePolicyStatus:
    """The status of a policy with this condition."""
    return UpdatePolicyStatus(conditions=(Condition(type=type_, status=status, reason=reason, message="m"),))


@pytest.mark.parametrize(
    ("status", "runs", "summary"),
    [
        (None, (), ""),
        (None, (run_of(),), "The update to 5.1.0 does not start: OutsideWindow"),
        (
            None,
            (run_of(status="Unknown", reason="HealthUnknown"),),
            "The update to 5.1.0 does not start: HealthUnknown",
        ),
        (None, (run_of(status="True", reason="AllOpen"),), ""),
        (None, (run_of("ControlPlane", "True", "Latched"),), ""),
        (None, (run_of("Failed"),), ""),
        (policy(), (run_of("ControlPlane", "True", "Latched"),), ""),
        (policy(), (run_of(),), "The update to 5.1.0 does not start: OutsideWindow"),
        (policy(), (), "The update policy starts no update: NoCalendar"),
        (policy(status="Unknown"), (), "The update policy starts no update: NoCalendar"),
        (policy(status="True"), (), ""),
        (policy("Paused", "True", "ByFailure"), (), "The update policy starts no update: ByFailure"),
        (policy("Paused", "False", "Running"), (), ""),
    ],
)
def test_names_the_reason(status: UpdatePolicyStatus | None, runs: tuple[UpdateRun, ...], summary: str) -> None:
    """A run that waits counts before the policy, and nothing is said about an update that has begun."""
    finding = why_nothing_starts(status, runs)
    assert (finding.summary if finding else "") == summary
    assert finding is None or (finding.level, finding.impact) == ("Info", "None")


def entry_of(run: UpdateRun, at: datetime = NOW) -> dict[str, Any]:
    """The entry about a run."""
    [operation] = informer_operations({"controlPlane": {}}, why_nothing_starts(None, (run,)), at)
    [entry] = operation["value"]
    return dict(entry)


def status_of(*informers: dict[str, Any]) -> dict[str, Any]:
    """A stored status."""
    return {"controlPlane": {"informers": list(informers)}}


ENTRY = entry_of(run_of())
CLOSED = why_nothing_starts(None, (run_of(),))


@pytest.mark.parametrize(
    ("status", "finding", "operation"),
    [
        pytest.param(None, CLOSED, None, id="no status yet"),
        pytest.param({}, CLOSED, None, id="no control plane yet"),
        pytest.param({"controlPlane": {}}, CLOSED, ("add", PATH), id="the first informer"),
        pytest.param(status_of(OTHER), CLOSED, ("add", f"{PATH}/-"), id="after another"),
        pytest.param(status_of(OTHER, ENTRY), CLOSED, None, id="nothing has changed"),
        pytest.param(status_of(ENTRY, OTHER), None, ("remove", f"{PATH}/0"), id="an update may start"),
        pytest.param(status_of(OTHER), None, None, id="nothing to remove"),
        pytest.param(
            status_of(OTHER, entry_of(run_of(reason="Held"))), CLOSED, ("replace", f"{PATH}/1"), id="another reason"
        ),
        pytest.param(
            status_of({"name": INFORMER, "insights": "?"}), CLOSED, ("replace", f"{PATH}/0"), id="an unreadable entry"
        ),
    ],
)
def test_changes_one_entry(status: Any, finding: Any, operation: tuple[str, str] | None) -> None:
    """The entry of this informer is added, replaced or removed, and no other entry is touched."""
    operations = informer_operations(status, finding, NOW + timedelta(minutes=5))
    assert [(each["op"], each["path"]) for each in operations] == ([operation] if operation else [])


def test_keeps_when_it_was_first_seen() -> None:
    """Another message about the same run keeps the time of the first one."""
    [operation] = informer_operations(status_of(entry_of(run_of(reason="Held"))), CLOSED, NOW + timedelta(hours=1))
    [insight] = operation["value"]["insights"]
    assert insight["health"]["firstObservedAt"] == codec.to_dict(NOW)
    assert insight["uid"] == ENTRY["insights"][0]["uid"]
