"""Runs of a hub or a person pass the policy's gates as well as their own. The number is that of the case."""

from __future__ import annotations

from typing import Any

import pytest
from tests.rollout.observed_cluster import IMAGE

from runup.api.update_policy_v1alpha1 import (
    AlertGate,
    ApprovalGate,
    Candidate,
    ExpressionRead,
    HealthExpression,
    HealthGate,
    PolicyGates,
    PolicyTarget,
    PreflightGate,
    UpdatePolicySpec,
    UpdateRun,
    UpdateRunSpec,
)
from runup.rollout.decide.stricter import stricter, with_policy

HEALTHY = HealthExpression(
    name="backup", reads=(ExpressionRead(name="pods", kind="Pod", fields=("spec",)),), expression="true"
)


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ({"preflight": PreflightGate(max_age="90m")}, {"preflight": PreflightGate(max_age="2h")}, "maxAge 90m"),
        ({"preflight": PreflightGate(fail_on="critical")}, {"preflight": PreflightGate(fail_on="info")}, "failOn info"),
        ({"forecast": "Ignore"}, {"forecast": "NotTooLong"}, "NotTooLong"),
        ({"forecast": "Fits"}, {"forecast": "Ignore"}, "Fits"),
        ({"health": HealthGate(settle="1h")}, {"health": HealthGate(settle="90m")}, "settle 90m"),
        ({"health": HealthGate(expressions=(HEALTHY,))}, {}, "expressions backup"),
        ({"alerts": AlertGate(severities=())}, {"alerts": AlertGate()}, "severities critical"),
        ({"alerts": AlertGate(except_=("A", "B"))}, {"alerts": AlertGate(except_=("B",))}, "except B"),
        ({"alerts": AlertGate(for_="5m")}, {"alerts": AlertGate(for_="60s")}, "for 60s"),
        ({"approvals": (ApprovalGate(name="a"),)}, {"approvals": (ApprovalGate(name="b"),)}, "approvals a b"),
        (
            {"approvals": (ApprovalGate(name="a", before=("hop", "pools")),)},
            {"approvals": (ApprovalGate(name="a"),)},
            "before a start pools hop",
        ),
        (
            {"approvals": (ApprovalGate(name="a", count=2, four_eyes=False),)},
            {"approvals": (ApprovalGate(name="a", expires="1h"),)},
            "approval a 2 1h True",
        ),
    ],
)
def test_58_the_stricter_gate_counts(first: dict[str, Any], second: dict[str, Any], expected: str) -> None:
    """Whichever of the two is the policy's: a hub cannot weaken a gate."""
    for gates in (
        stricter(PolicyGates(**first), PolicyGates(**second)),
        stricter(PolicyGates(**second), PolicyGates(**first)),
    ):
        texts = {
            f"maxAge {gates.preflight.max_age}",
            f"failOn {gates.preflight.fail_on}",
            gates.forecast,
            f"settle {gates.health.settle}",
            f"expressions {' '.join(each.name for each in gates.health.expressions)}",
            f"severities {' '.join(gates.alerts.severities)}",
            f"except {' '.join(gates.alerts.except_)}",
            f"for {gates.alerts.for_}",
            f"approvals {' '.join(sorted(each.name for each in gates.approvals))}",
            *(f"approval {each.name} {each.count} {each.expires} {each.four_eyes}" for each in gates.approvals),
            *(f"before {each.name} {' '.join(each.before)}" for each in gates.approvals),
        }
        assert expected in texts


@pytest.mark.parametrize(
    ("policy", "run", "expected"),
    [
        (("nights",), ("Always",), ("nights",)),
        (("Always",), ("nights",), ("nights",)),
        (("nights",), ("weekends", "nights"), ("nights", "weekends")),
        (("Always",), ("Always",), ("Always",)),
        (("nights",), (), ("nights",)),
        ((), (), ()),
    ],
)
def test_58_all_calendars_count(policy: tuple[str, ...], run: tuple[str, ...], expected: tuple[str, ...]) -> None:
    """A calendar of the policy restricts the run of a hub, also one that may start at any time by itself."""
    spec = UpdatePolicySpec(calendars=policy, soak="2h", target=PolicyTarget(block_versions=("5.2.x",)))
    target = Candidate(version="5.1.0", image=IMAGE)
    combined = with_policy(UpdateRun(spec=UpdateRunSpec(target=target, calendars=run, block_versions=("6.0.0",))), spec)
    assert combined.spec.calendars == expected
    assert (combined.spec.soak, combined.spec.block_versions) == ("2h", ("6.0.0", "5.2.x"))
