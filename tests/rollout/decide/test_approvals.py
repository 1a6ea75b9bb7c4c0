"""Which approvals count: those whose author an unchanged admission policy verified. Numbers are those of the cases."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml
from msgspec.structs import replace
from tests.rollout.observed_cluster import DIGEST, IMAGE, NOW

from kubekit.api.meta_v1 import ObjectMeta
from kubekit.error_types import InputError
from runup.api.update_policy_v1alpha1 import (
    ApprovalGate,
    Candidate,
    PolicyGates,
    UpdateApproval,
    UpdateApprovalSpec,
    UpdateRun,
    UpdateRunSpec,
    UpdateRunStatus,
)
from runup.rollout.decide.approvals import (
    CONTROLLER,
    FoundApprovals,
    approvals_of,
    new_approval,
    verified_since,
    why_unverified,
)

FILE = Path(__file__).parents[3] / "deploy" / "update-policy" / "05_approvals.yaml"


def shipped() -> list[dict[str, Any]]:
    """The policy and the binding that are shipped."""
    return list(yaml.safe_load_all(FILE.read_text(encoding="utf-8")))[:2]


def test_57_what_is_shipped_verifies() -> None:
    """The shipped policy and binding are those that the controller expects."""
    assert why_unverified(*shipped()) == ""


RULE = ("spec", "matchConstraints", "resourceRules", 0)


@pytest.mark.parametrize(
    ("number", "path", "value"),
    [
        (0, ("spec", "failurePolicy"), "Ignore"),
        (0, ("spec", "matchConditions"), [{"name": "a", "expression": "false"}]),
        (0, ("spec", "paramKind"), {"apiVersion": "v1", "kind": "ConfigMap"}),
        (0, ("spec", "validations"), []),
        (0, ("spec", "validations", 0, "expression"), "true"),
        (0, ("spec", "validations", 1, "expression"), "true"),
        (0, (*RULE, "operations"), ["UPDATE"]),
        (0, (*RULE, "resources"), ["updateruns"]),
        (0, (*RULE, "apiGroups"), ["other"]),
        (0, (*RULE, "apiVersions"), ["v1"]),
        (0, (*RULE, "resourceNames"), ["a"]),
        (0, (*RULE, "scope"), "Namespaced"),
        (0, ("spec", "matchConstraints", "objectSelector"), {"matchLabels": {"a": "b"}}),
        (0, ("spec", "matchConstraints", "excludeResourceRules"), [{"resources": ["*"]}]),
        (1, ("spec", "policyName"), "other"),
        (1, ("spec", "validationActions"), ["Audit"]),
        (1, ("spec", "matchResources"), {"objectSelector": {"matchLabels": {"a": "b"}}}),
    ],
)
def test_57_a_changed_policy_verifies_nothing(number: int, path: tuple[Any, ...], value: Any) -> None:
    """Each change that could let a forged approval through is noticed."""
    objects = shipped()
    place: Any = objects[number]
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value
    assert "was changed" in why_unverified(*objects)


@pytest.mark.parametrize("absent", [0, 1])
def test_57_a_deleted_policy_verifies_nothing(absent: int) -> None:
    """Without the policy or the binding no author is known."""
    objects: list[Any] = shipped()
    objects[absent] = None
    assert "does not exist" in why_unverified(*objects)


def approval(run: str = "r", created: datetime | None = NOW) -> UpdateApproval:
    """A stored approval."""
    spec = UpdateApprovalSpec(run=run, gate="cab", approved_by="jane", image_digests=(DIGEST,))
    return UpdateApproval(metadata=ObjectMeta(name="a", creation_timestamp=created), spec=spec)


@pytest.mark.parametrize(
    ("found", "since", "counts"),
    [
        (approval(), NOW - timedelta(seconds=1), True),
        (approval(), NOW, False),
        (approval("other"), NOW - timedelta(seconds=1), False),
        (approval(created=None), NOW - timedelta(seconds=1), False),
    ],
)
def test_57_approvals_of_a_run(found: UpdateApproval, since: datetime, counts: bool) -> None:
    """An approval that is older than the policy may be forged, and does not count."""
    assert bool(approvals_of(run_of(name="r"), FoundApprovals(found=(found,), since=since)).given) is counts


def test_57_a_policy_that_was_changed_and_restored() -> None:
    """Approvals from before the last change of the policy or the binding do not count."""
    policy, binding = ({"metadata": {"creationTimestamp": "2027-01-01T00:00:00Z"}} for _ in range(2))
    assert verified_since(policy, binding) == datetime(2027, 1, 1, tzinfo=UTC)
    binding["metadata"]["managedFields"] = [{"time": "2027-01-03T00:00:00Z"}]  # type: ignore[assignment]
    policy["metadata"]["managedFields"] = [{"time": "2027-01-09T00:00:00Z", "subresource": "status"}]  # type: ignore[assignment]
    assert verified_since(policy, binding) == datetime(2027, 1, 3, tzinfo=UTC)


def run_of(*gates: str, name: str = "5.1.0-abc", requested_by: str = "", **status: Any) -> UpdateRun:
    """A run that needs these approvals."""
    approvals = PolicyGates(approvals=tuple(ApprovalGate(name=gate) for gate in gates))
    target = Candidate(version="5.1.0", image=IMAGE)
    spec = UpdateRunSpec(target=target, gates=approvals, requested_by=requested_by)
    return UpdateRun(metadata=ObjectMeta(name=name), spec=spec, status=UpdateRunStatus(**status))


def test_18_who_requested_a_run() -> None:
    """The policy's runs are requested by the controller, others by the user whose name admission verified."""
    found = FoundApprovals()
    assert approvals_of(run_of("cab"), found).requested_by == CONTROLLER
    assert approvals_of(run_of("cab", requested_by="jane"), found).requested_by == "jane"


def wanted(gate: str = "cab", by: str = "jane", not_after: datetime | None = None) -> UpdateApprovalSpec:
    """An approval that a user asks for."""
    return UpdateApprovalSpec(run="", gate=gate, approved_by=by, image_digests=(), reason="r", not_after=not_after)


def test_19_an_approval_has_the_digest_of_its_run() -> None:
    """The user names the run, and the approval counts for its release image only."""
    spec = new_approval(run_of("cab"), wanted(), NOW)
    assert (spec.run, spec.image_digests, spec.approved_by) == ("5.1.0-abc", (DIGEST,), "jane")


def before_pools(run: UpdateRun) -> UpdateRun:
    """The run, whose pools need the approval."""
    gates = PolicyGates(approvals=(ApprovalGate(name="cab", before=("pools",)),))
    return replace(run, spec=replace(run.spec, gates=gates))


@pytest.mark.parametrize("step", ["Waiting", "ControlPlane", "Pools"])
def test_21_approves_pools_after_the_start(step: str) -> None:
    """The approval counts until the pools are resumed."""
    run = before_pools(run_of("cab", step=step, started=NOW))
    assert new_approval(run, wanted(), NOW).image_digests == (DIGEST,)


@pytest.mark.parametrize(
    ("run", "spec", "error"),
    [
        pytest.param(run_of("cab", "storage"), wanted("cb"), "give --gate cab or storage", id="21: another gate"),
        pytest.param(run_of(), wanted(), "its policy names no approvals", id="no approvals"),
        pytest.param(run_of("cab"), wanted(by=""), "must serve SelfSubjectReview", id="57: an unknown user"),
        pytest.param(run_of("cab"), wanted(by=CONTROLLER), "another user must give", id="18: by the requester"),
        pytest.param(run_of("cab", requested_by="jane"), wanted(), "another user must give", id="18: by herself"),
        pytest.param(run_of("cab"), wanted(not_after=NOW), "must be later than", id="7: an end just now"),
        pytest.param(
            run_of("cab"), wanted(not_after=NOW - timedelta(days=1)), "must be later than", id="7: an end in the past"
        ),
        pytest.param(run_of("cab", step="Superseded"), wanted(), "has no effect", id="28: superseded"),
        pytest.param(run_of("cab", step="ControlPlane", started=NOW), wanted(), "needs no approval", id="20: begun"),
        pytest.param(
            before_pools(run_of("cab", step="Soaking", started=NOW)), wanted(), "needs no approval", id="20: pools done"
        ),
    ],
)
def test_approvals_that_would_not_count(run: UpdateRun, spec: UpdateApprovalSpec, error: str) -> None:
    """An approval that would not count is refused with the way out."""
    with pytest.raises(InputError) as caught:
        new_approval(run, spec, NOW)
    assert error in caught.value.message
