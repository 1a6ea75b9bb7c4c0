"""Decides whether a ClusterOperator is ready for the release that is being applied (docs/upstream-behaviour.md 4.6)."""

from __future__ import annotations

from datetime import datetime, timedelta

from kubekit.api.conditions import status_of
from runup.api.config_v1 import ClusterOperator, OperandVersion
from runup.applying.decide.problems import Effect, Problem
from runup.applying.decide.progress import ApplyReason

KIND = ("config.openshift.io", "ClusterOperator")
# While a release is being applied, an operator that was first waited for less than this ago is progress, not failure.
UNAVAILABLE_GRACE = timedelta(seconds=30)


def wants_versions(manifest: dict[str, object]) -> tuple[OperandVersion, ...]:
    """Returns the versions that a ClusterOperator's manifest declares."""
    status = manifest.get("status")
    versions = status.get("versions") if isinstance(status, dict) else None
    return tuple(
        OperandVersion(name=str(version.get("name", "")), version=str(version.get("version", "")))
        for version in (versions if isinstance(versions, list) else ())
        if isinstance(version, dict)
    )


def problem_of(
    name: str,
    wanted_versions: tuple[OperandVersion, ...],
    operator: ClusterOperator | None,
    state: ApplyReason,
    since: datetime,
    now: datetime,
) -> Problem | None:
    """Returns why operator `name` is not ready, None if it is; `since` is when it was first waited for."""
    times = ((name, since),)
    if not wanted_versions:
        wording = "do not declare expected versions"
        message = f"Cluster operator {name} does not declare expected versions"
        reasons = ("ClusterOperatorNoVersions", "ClusterOperatorsNoVersions")
        return Problem(reasons[0], message, Effect.FAIL, (name,), reasons[1], wording, times)
    if operator is None or status_of(operator.status.conditions, "Available") != "True":
        early = state is not ApplyReason.RECONCILING and now - since < UNAVAILABLE_GRACE
        return _operator_problem(name, "NotAvailable", "not available", Effect.NONE if early else Effect.FAIL, since)
    # A missing Degraded condition counts as degraded.
    if status_of(operator.status.conditions, "Degraded") != "False":
        effect = Effect.REPORT if state is ApplyReason.INITIALIZING else Effect.FAIL_AFTER_INTERVAL
        return _operator_problem(name, "Degraded", "degraded", effect, since)
    if state is not ApplyReason.INITIALIZING and _lags_behind(wanted_versions, operator):
        return _operator_problem(name, "Updating", "updating versions", Effect.NONE, since)
    return None


def _lags_behind(wanted_versions: tuple[OperandVersion, ...], operator: ClusterOperator) -> bool:
    reported_versions = {version.name: version.version for version in operator.status.versions}
    # Versions that only the operator reports are ignored: the manifest says which ones count.
    return any(reported_versions.get(version.name) != version.version for version in wanted_versions)


def _operator_problem(name: str, state_name: str, text: str, effect: Effect, since: datetime) -> Problem:
    reasons = (f"ClusterOperator{state_name}", f"ClusterOperators{state_name}")
    message = f"Cluster operator {name} is {text}"
    return Problem(reasons[0], message, effect, (name,), reasons[1], f"are {text}", ((name, since),))
