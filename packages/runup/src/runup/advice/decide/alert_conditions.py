"""Converts alerts into the conditions that `recommend` checks before the updates. Pure; texts and order are oc's."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from runup.api.clusterversion_json import Condition, mapping, mappings, text

JSON = dict[str, Any]

_CRITICAL, _BUDGET, _WAITING, _NODES, _PRECHECK, _VIRTUAL = range(6)
_TYPES = (
    "recommended/CriticalAlerts",
    "recommended/PodDisruptionBudgetAlerts",
    "recommended/PodImagePullAlerts",
    "recommended/NodeAlerts",
    "recommended/UpdatePrecheckAlerts",
    "recommended/VirtAlerts",
)
_SLOW = "which may slow workload redistribution during rolling node updates."
_PHRASES = (
    "suggesting significant cluster issues worth investigating.",
    "which might slow node drains.",
    _SLOW,
    _SLOW,
    "suggesting issues worth investigating before updating the cluster.",
    _SLOW,
)
_NODE_ALERTS = ("KubeletHealthState", "KubeNodeNotReady", "KubeNodeReadinessFlapping", "KubeNodeUnreachable")
_VIRT_ALERTS = ("VirtHandlerDaemonSetRolloutFailing", "VMCannotBeEvicted")
_AT_LIMIT, _LIMIT = "PodDisruptionBudgetAtLimit", "PodDisruptionBudgetLimit"
_NO_RUNBOOK = "<alert does not have a runbook_url annotation>"


class Check(msgspec.Struct, frozen=True):
    """A condition of a precheck, and the name under which `--accept` accepts it."""

    condition: Condition
    name: str = ""


def no_data(path: str) -> tuple[Check, ...]:
    """Returns the precheck for mock files without alerts."""
    message = f"This --mock-clusterversion run did not have alert data available at {path}"
    return (Check(Condition("recommended/Alert", "Unknown", "NoTestData", message), "AlertNoTestData"),)


def not_collected(source_name: str) -> tuple[Check, ...]:
    """Returns the precheck for a dump without alerts: alerts that were not collected may have been firing."""
    message = f"The dump {source_name} holds no alerts, so whether any were firing is not known."
    return (Check(Condition("recommended/Alert", "Unknown", "NotCollected", message), "AlertNotCollected"),)


def alerts_in_answer(document: Any) -> list[JSON]:
    """Returns the alerts in Prometheus' answer to `/api/v1/alerts`, or to `/api/v1/rules`, which lists them by rule."""
    data = mapping(document, "data") if isinstance(document, dict) else {}
    rules = [rule for group in mappings(data, "groups") for rule in mappings(group, "rules")]
    return [*mappings(data, "alerts"), *(alert for rule in rules for alert in mappings(rule, "alerts"))]


def checks(alerts: Iterable[Mapping[str, Any]]) -> tuple[Check, ...]:
    """Returns one condition for each alert that matters before an update, then one for each class without alerts."""
    failing: list[Check] = []
    failing_kinds: set[int] = set()
    for alert in alerts:
        labels = mapping(alert, "labels")
        name = text(labels, "alertname")
        tests = (
            text(labels, "severity") == "critical",
            name == _AT_LIMIT,
            name == "KubeContainerWaiting",
            name in _NODE_ALERTS,
            text(labels, "openShiftUpdatePrecheck") == "true",
            name in _VIRT_ALERTS,
        )
        kind = next((kind for kind, fits in enumerate(tests) if fits), None)
        if not name or text(alert, "state") == "pending" or kind is None:
            continue
        # A critical alert about a PodDisruptionBudget belongs to that class as well.
        failing_kinds |= {kind, _BUDGET} if kind == _CRITICAL and name == _LIMIT else {kind}
        failing.append(Check(_alert_condition(alert, name, kind, len(failing)), name))
    passing = [
        Check(Condition(_TYPES[kind], "True", "AsExpected")) for kind in range(_VIRTUAL) if kind not in failing_kinds
    ]
    return (*failing, *passing)


def _alert_condition(alert: Mapping[str, Any], name: str, kind: int, number: int) -> Condition:
    """Returns the condition for an alert; texts and order are those of `oc`."""
    labels, state = mapping(alert, "labels"), text(alert, "state")
    annotations = mapping(alert, "annotations")
    summary = text(annotations, "summary") or name
    summary = summary if summary.endswith(".") else f"{summary}."
    descriptions = [part for part in (text(annotations, "description"), text(annotations, "message")) if part]
    described = (
        f" The alert description is: {' | '.join(descriptions)}" if descriptions else " The alert has no description."
    )
    details = f"{summary}{described} {text(annotations, 'runbook_url') or _NO_RUNBOOK}"
    if kind == _BUDGET or (kind == _CRITICAL and name == _LIMIT):
        budget = f"Namespace={text(labels, 'namespace')}, PodDisruptionBudget={text(labels, 'poddisruptionbudget')}. "
        details = budget + details
    message = f"{text(labels, 'severity')} alert {name} {state}, {_PHRASES[kind]} {details}"
    return Condition(f"{_TYPES[kind]}/{name}/{number}", "False", f"Alert:{state}", message)
