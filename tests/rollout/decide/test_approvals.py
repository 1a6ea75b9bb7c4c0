"""Which approvals count: those whose author an unchanged admission policy verified. Numbers are those of the cases."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.rollout.observed_cluster import DIGEST, NOW

from kubekit.api.meta_v1 import ObjectMeta
from runup.api.update_policy_v1alpha1 import UpdateApproval, UpdateApprovalSpec
from runup.rollout.decide.approvals import FoundApprovals, approvals_of, verified_since, why_unverified

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
    assert bool(approvals_of("r", FoundApprovals(found=(found,), since=since)).given) is counts


def test_57_a_policy_that_was_changed_and_restored() -> None:
    """Approvals from before the last change of the policy or the binding do not count."""
    policy, binding = ({"metadata": {"creationTimestamp": "2027-01-01T00:00:00Z"}} for _ in range(2))
    assert verified_since(policy, binding) == datetime(2027, 1, 1, tzinfo=UTC)
    binding["metadata"]["managedFields"] = [{"time": "2027-01-03T00:00:00Z"}]  # type: ignore[assignment]
    policy["metadata"]["managedFields"] = [{"time": "2027-01-09T00:00:00Z", "subresource": "status"}]  # type: ignore[assignment]
    assert verified_since(policy, binding) == datetime(2027, 1, 3, tzinfo=UTC)
