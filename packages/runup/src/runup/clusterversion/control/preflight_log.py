"""Describes the preflight's state after a pass for log and metrics: `Observed` and `Plan` in, one value out.

`grep preflight` over the operator's log shows what a preflight did: one line for each step, with target, ID and reason.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import structlog

from kubekit.api import codec
from kubekit.api.conditions import find
from kubekit.api.core_v1 import ConfigMap
from kubekit.api.meta_v1 import Condition
from runup.clusterversion.decide.observed import Observed
from runup.preflight.decide import preflight_conditions, preflight_deployment, stored_reports
from runup.preflight.decide.attempt import Attempt
from runup.preflight.decide.stored_reports import History
from runup.process.plan import Apply, Delete, PatchStatus, Plan

log = structlog.get_logger("preflight")

COMPLETED, FAILED, REFUSED = "PreflightCompleted", "PreflightFailed", "PreflightRefused"
RUNNING, NONE = "PreflightRunning", ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PreflightState:
    """The preflight's state after a pass: `outcome` is one of the constants above, `reason` the condition's.

    A request for which nothing was started counts as refused, not as a failed preflight.
    """

    outcome: str = NONE
    reason: str = ""
    message: str = ""
    target: str = ""
    id: str = ""


def state_before(observed: Observed) -> PreflightState:
    """Returns the state that ClusterVersion reported when the pass began."""
    return _state_of(
        observed, observed.cluster_version.status.conditions, stored_reports.read(observed.history).attempt
    )


def state_after(observed: Observed, plan: Plan[object]) -> PreflightState:
    """Returns the state that ClusterVersion reports once `plan` is carried out."""
    new_conditions: Sequence[Condition] = observed.cluster_version.status.conditions
    for action in plan.actions:
        # A pass that changes no condition leaves those that were observed.
        if isinstance(action, PatchStatus) and "conditions" in action.fields:
            new_conditions = codec.convert(tuple[Condition, ...], action.fields["conditions"])
    return _state_of(observed, new_conditions, _history_after(observed, plan).attempt)


def has_no_report_writer(observed: Observed, plan: Plan[object]) -> bool:
    """Returns whether no target exists that writes a report, or is about to.

    A Deployment created just now may not be observed yet; the record of its attempt was written before it.
    """
    attempt = _history_after(observed, plan).attempt
    over = attempt is None or attempt.over
    return over and observed.deployment is None and not observed.pods


def starts_preflight(observed: Observed, plan: Plan[object]) -> bool:
    """Returns whether the plan creates a Deployment that was not there."""
    return observed.deployment is None and _applies_deployment(plan)


def _state_of(observed: Observed, conditions: Sequence[Condition], attempt: Attempt | None) -> PreflightState:
    """Returns what ClusterVersion's conditions say about the preflight, as the log has it."""
    running, completed, failed = (find(conditions, type_) for type_ in preflight_conditions.TYPES)
    desired = observed.cluster_version.spec.desired_update
    target = attempt.target_version if attempt else (desired.version or desired.image if desired else "")
    condition, outcome = running, RUNNING
    if failed is not None and failed.status == "True":
        deployment = observed.deployment
        annotations = deployment.metadata.annotations if deployment is not None else {}
        # A failed attempt was started, though its Deployment is gone by now.
        was_started = attempt is not None and (
            annotations.get(preflight_deployment.ID_ANNOTATION) == attempt.id or attempt.over
        )
        condition, outcome = failed, FAILED if was_started else REFUSED
    elif completed is not None and completed.status == "True":
        condition, outcome = completed, COMPLETED
    if condition is None:
        return PreflightState()
    return PreflightState(
        outcome=outcome,
        reason=condition.reason,
        message=condition.message,
        target=target,
        id=attempt.id if attempt else "",
    )


def gets_result(observed: Observed, plan: Plan[object]) -> bool:
    """Returns whether the running attempt gets its first result: a complete report, or the failure that ends it.

    Both are in the record, so that neither a second reading of a report nor a restart of the operator repeats it.
    """
    before, after = stored_reports.read(observed.history), _history_after(observed, plan)
    return after.attempt is not None and not _has_result(before, after.attempt) and _has_result(after, after.attempt)


def _has_result(history: History, attempt: Attempt) -> bool:
    failed = history.attempt is not None and history.attempt.id == attempt.id and bool(history.attempt.failed)
    return failed or stored_reports.has_completed(history, attempt)


def _history_after(observed: Observed, plan: Plan[object]) -> History:
    """Returns the record that the plan writes; if it writes none, the observed record."""
    record = observed.history
    for action in plan.actions:
        # The record is among the plan's writes when it changes, and newer than the observed one.
        if isinstance(action, Apply) and action.object["metadata"]["name"] == stored_reports.NAME:
            record = codec.convert(ConfigMap, action.object)
    return stored_reports.read(record)


def _applies_deployment(plan: Plan[object]) -> bool:
    return any(isinstance(action, Apply) and action.resource.kind == "Deployment" for action in plan.actions)


class PreflightLogger:
    """A log of each step once; after a start of the operator it logs the preflight's current step."""

    def __init__(self) -> None:
        self._last = PreflightState()

    def log(self, observed: Observed, plan: Plan[object]) -> None:
        """Logs what `plan`, which was carried out, changed."""
        current = state_after(observed, plan)
        log_fields = {"target": current.target or self._last.target, "id": current.id or self._last.id}
        applied = [a.object for a in plan.actions if isinstance(a, Apply) and a.resource.kind == "Deployment"]
        annotations = applied[-1]["metadata"].get("annotations", {}) if applied else {}
        deployment = observed.deployment
        if preflight_deployment.WAIVED in annotations or (
            deployment is not None and preflight_deployment.was_waived(deployment)
        ):
            log_fields["signature"] = "waived"
        if _applies_deployment(plan):
            log.info(
                "preflight workload applied",
                **log_fields,
                reason="Start" if starts_preflight(observed, plan) else "Changed",
            )
        if any(isinstance(action, Delete) and action.resource.kind == "Deployment" for action in plan.actions):
            log.info("preflight workload removed", **log_fields, reason=current.reason or "Cleared")
        if _key(current) != _key(self._last):
            self._log_step(current, log_fields)
        self._last = current

    def _log_step(self, state: PreflightState, log_fields: dict[str, Any]) -> None:
        """Logs the state to which a preflight has come, at the level that belongs to it."""
        if state.outcome == NONE:
            log.info("preflight ended", **log_fields, reason="Cleared")
            return
        level, words = _LINES[state.outcome]
        getattr(log, level)(words, **log_fields, reason=state.reason, message=state.message)


def _key(state: PreflightState) -> tuple[str, str, str, str]:
    return state.outcome, state.reason, state.target, state.id


_LINES = {
    RUNNING: ("info", "preflight step"),
    COMPLETED: ("info", "preflight completed"),
    FAILED: ("warning", "preflight failed"),
    REFUSED: ("warning", "preflight refused"),
}
