"""Alerts -> the conditions that `recommend` checks before it looks at any update. Pure; texts and order are oc's."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from kubekit.lang.value import Value
from runup.cli.facts import Condition, mapping, mappings, text

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


class Check(Value):
    """A condition of a precheck, and the name under which `--accept` takes it."""

    condition: Condition
    name: str = ""


def no_data(path: str) -> tuple[Check, ...]:
    """What a run over files without alerts finds."""
    said = f"This --mock-clusterversion run did not have alert data available at {path}"
    return (Check(Condition("recommended/Alert", "Unknown", "NoTestData", said), "AlertNoTestData"),)


def not_collected(where: str) -> tuple[Check, ...]:
    """What a dump without alerts comes to: what was not collected may have been firing."""
    said = f"The dump {where} holds no alerts, so whether any were firing is not known."
    return (Check(Condition("recommended/Alert", "Unknown", "NotCollected", said), "AlertNotCollected"),)


def in_answer(document: Any) -> list[JSON]:
    """The alerts of an answer of Prometheus' `/api/v1/alerts`, or of `/api/v1/rules`, which lists them by rule."""
    data = mapping(document, "data") if isinstance(document, dict) else {}
    rules = [rule for group in mappings(data, "groups") for rule in mappings(group, "rules")]
    return [*mappings(data, "alerts"), *(alert for rule in rules for alert in mappings(rule, "alerts"))]


def checks(alerts: Iterable[Mapping[str, Any]]) -> tuple[Check, ...]:
    """One condition an alert that matters before an update, then one for each class that nothing was found in."""
    found: list[Check] = []
    sad: set[int] = set()
    for alert in alerts:
        labels = mapping(alert, "labels")
        name = text(labels, "alertname")
        kind = _kind(name, labels)
        if not name or text(alert, "state") == "pending" or kind is None:
            continue
        # A critical alert about a budget is one about budgets as well.
        sad |= {kind, _BUDGET} if kind == _CRITICAL and name == _LIMIT else {kind}
        found.append(Check(_condition(alert, name, kind, len(found)), name))
    happy = [Check(Condition(_TYPES[kind], "True", "AsExpected")) for kind in range(_VIRTUAL) if kind not in sad]
    return (*found, *happy)


def _kind(name: str, labels: Mapping[str, Any]) -> int | None:
    """The first class that fits; None for an alert that says nothing about updates."""
    tests = (
        text(labels, "severity") == "critical",
        name == _AT_LIMIT,
        name == "KubeContainerWaiting",
        name in _NODE_ALERTS,
        text(labels, "openShiftUpdatePrecheck") == "true",
        name in _VIRT_ALERTS,
    )
    return next((kind for kind, fits in enumerate(tests) if fits), None)


def _condition(alert: Mapping[str, Any], name: str, kind: int, number: int) -> Condition:
    labels, state = mapping(alert, "labels"), text(alert, "state")
    details = _details(name, mapping(alert, "annotations"))
    if kind == _BUDGET or (kind == _CRITICAL and name == _LIMIT):
        budget = f"Namespace={text(labels, 'namespace')}, PodDisruptionBudget={text(labels, 'poddisruptionbudget')}. "
        details = budget + details
    message = f"{text(labels, 'severity')} alert {name} {state}, {_PHRASES[kind]} {details}"
    return Condition(f"{_TYPES[kind]}/{name}/{number}", "False", f"Alert:{state}", message)


def _details(name: str, annotations: Mapping[str, Any]) -> str:
    summary = text(annotations, "summary") or name
    summary = summary if summary.endswith(".") else f"{summary}."
    told = [part for part in (text(annotations, "description"), text(annotations, "message")) if part]
    described = f" The alert description is: {' | '.join(told)}" if told else " The alert has no description."
    return f"{summary}{described} {text(annotations, 'runbook_url') or _NO_RUNBOOK}"
