"""Combines the gates of a run of a hub or a person with those of the policy: the stricter value counts. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from runup.api.update_policy_v1alpha1 import (
    ALWAYS,
    AcceptedGate,
    AlertGate,
    ApprovalGate,
    ApprovalPoint,
    HealthGate,
    PolicyGates,
    PolicyPools,
    PreflightGate,
    UpdatePolicySpec,
    UpdateRun,
)
from runup.report.report import severity_rank
from runup.rollout.decide.durations import parse

_FORECASTS = ("Fits", "NotTooLong", "Ignore")
_INHERIT = ("Target", "Minor", "Name")
APPROVAL_POINTS: tuple[ApprovalPoint, ...] = ("start", "pools", "hop")
_POOLS = ("Together", "NextWindow", "Manual")


def with_policy(run: UpdateRun, policy: UpdatePolicySpec) -> UpdateRun:
    """Returns a run behind the policy's gates, calendars, pools, soak and blocked versions as well as its own."""
    spec = run.spec
    names = _union(policy.calendars, spec.calendars)
    return replace(
        run,
        spec=replace(
            spec,
            gates=stricter(spec.gates, policy.gates),
            calendars=tuple(name for name in names if name != ALWAYS) or names,
            pools=_pools(spec.pools, policy.pools),
            soak=max(spec.soak, policy.soak, key=_length),
            # A hub or a person does not choose which object the controller writes.
            field=policy.field,
            cluster=policy.cluster,
            block_versions=_union(spec.block_versions, policy.target.block_versions),
        ),
    )


def stricter(first: PolicyGates, second: PolicyGates) -> PolicyGates:
    """Returns gates that are open only if those of both are."""
    return PolicyGates(
        preflight=PreflightGate(
            max_age=min(first.preflight.max_age, second.preflight.max_age, key=_length),
            # The lowest severity has the highest rank.
            fail_on=max(first.preflight.fail_on, second.preflight.fail_on, key=severity_rank),
            accepted=AcceptedGate(
                inherit=min(first.preflight.accepted.inherit, second.preflight.accepted.inherit, key=_INHERIT.index)
            ),
        ),
        forecast=min(first.forecast, second.forecast, key=_FORECASTS.index),
        health=HealthGate(
            settle=max(first.health.settle, second.health.settle, key=_length),
            expressions=tuple(dict.fromkeys((*first.health.expressions, *second.health.expressions))),
        ),
        alerts=AlertGate(
            severities=_union(first.alerts.severities, second.alerts.severities),
            except_=tuple(name for name in first.alerts.except_ if name in second.alerts.except_),
            for_=min(first.alerts.for_, second.alerts.for_, key=_length),
        ),
        approvals=_approvals(first, second),
    )


def _pools(first: PolicyPools, second: PolicyPools) -> PolicyPools:
    """Returns the settings in which the pools wait for more; the run's own order comes first."""
    return PolicyPools(
        when=max(first.when, second.when, key=_POOLS.index),
        names=_union(first.names, second.names),
        deadline=min(first.deadline, second.deadline, key=_length),
        max_paused=min(first.max_paused, second.max_paused, key=_length),
    )


def _approvals(first: PolicyGates, second: PolicyGates) -> tuple[ApprovalGate, ...]:
    """Returns the approvals of both; one that both name needs the greater count and ends earlier."""
    combined = {each.name: each for each in first.approvals}
    for each in second.approvals:
        other = combined.get(each.name, each)
        combined[each.name] = ApprovalGate(
            name=each.name,
            # In the order of the API, each once.
            before=tuple(point for point in APPROVAL_POINTS if point in (*each.before, *other.before)),
            count=max(each.count, other.count),
            expires=min(each.expires, other.expires, key=_length),
            four_eyes=each.four_eyes or other.four_eyes,
            # An approval of one hop is the stricter one: each hop needs its own.
            scope="Hop" if "Hop" in (each.scope, other.scope) else "Run",
        )
    return tuple(combined.values())


def _union(first: Iterable[str], second: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*first, *second)))


def _length(text: str) -> float:
    return parse(text, "the duration of a gate").total_seconds()
