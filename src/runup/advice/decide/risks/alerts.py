"""Alerts that fire: risks of every update while they do (cvo-behaviour 7.6).

An alert is known for a minute. Where Prometheus does not answer any more, what fired last is Unknown: it may be over.
So is what began to fire since, or before anybody was told: a risk of its own stands for that.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta

from kubekit.api.meta_v1 import Condition
from runup.advice.decide.promql import Alerting
from runup.advice.decide.risks.source import SourceRisk
from runup.release.decide import documentation
from runup.updatestatus.decide.snapshot import Alert

REASON = "Alert:"
UNKNOWN = "AlertsUnknown"
COUNT = timedelta(seconds=60)
_NO_RUNBOOK = "https://github.com/openshift/runbooks/tree/master/alerts?runbook=notfound"
_UNNAMED = "<alert does not have a runbook_url annotation>"
# What a risk may be called.
_NAME = re.compile(r"[A-Z][A-Za-z0-9.-]{0,255}")
_BUDGET = "PodDisruptionBudgetAtLimit"
_SLOW = (
    "KubeContainerWaiting",
    "KubeletHealthState",
    "KubeNodeNotReady",
    "KubeNodeReadinessFlapping",
    "KubeNodeUnreachable",
    "VirtHandlerDaemonSetRolloutFailing",
    "VMCannotBeEvicted",
)


def risks(alerting: Alerting, now: datetime) -> Iterable[SourceRisk]:
    """One risk an alert's name; its instances are joined."""
    by_name: dict[str, list[Alert]] = {}
    for alert in alerting.alerts:
        name = alert.labels.get("alertname", "")
        if alert.state != "pending" and _NAME.fullmatch(name) and _impact(name, alert.labels):
            by_name.setdefault(name, []).append(alert)
    live = alerting.at is not None and timedelta() <= now - alerting.at < COUNT
    if alerting.error and not live:
        text = "Whether alerts fire that speak against an update is not known."
        why = f"the alerts could not be read: {alerting.error}"
        yield SourceRisk(UNKNOWN, text, documentation.page(UNKNOWN), unknown=why, everywhere=True)
    for name in sorted(by_name):
        yield _risk(name, by_name[name], "" if live else alerting.error or "Prometheus has not answered since")


def _impact(name: str, labels: Mapping[str, str]) -> str:
    """What the alert means for an update; empty where it means nothing. The first row that fits counts."""
    rows = (
        (labels.get("severity") == "critical", "suggesting significant cluster issues worth investigating"),
        (name == _BUDGET, "which might slow node drains"),
        (name in _SLOW, "which may slow workload redistribution during rolling node updates"),
        (
            labels.get("openShiftUpdatePrecheck") == "true",
            "suggesting issues worth investigating before updating the cluster",
        ),
    )
    return next((text for fits, text in rows if fits), "")


def _risk(name: str, alerts: Sequence[Alert], gone: str) -> SourceRisk:
    first = alerts[0]
    text = _summary(name, first)
    url = first.annotations.get("runbook_url") or _NO_RUNBOOK
    if gone:
        why = f"the alert {name} was {first.state} when Prometheus answered last, and now: {gone}"
        return SourceRisk(name, text, url, unknown=why, everywhere=True)
    said = "; ".join(dict.fromkeys(_message(name, alert) for alert in alerts))
    since = min((alert.active_at for alert in alerts if alert.active_at), default=None)
    applies = Condition("Applies", "True", f"{REASON}{first.state}", said, since)
    return SourceRisk(name, text, url, everywhere=True, found=applies)


def _summary(name: str, alert: Alert) -> str:
    text = alert.annotations.get("summary") or name
    return text if text.endswith(".") else f"{text}."


def _message(name: str, alert: Alert) -> str:
    labels, annotations = alert.labels, alert.annotations
    details = _summary(name, alert)
    if name.startswith("PodDisruptionBudget"):
        budget = f"PodDisruptionBudget={labels.get('poddisruptionbudget', '')}"
        details = f"Namespace={labels.get('namespace', '')}, {budget}. {details}"
    told = [part for part in (annotations.get("description"), annotations.get("message")) if part]
    described = f" The alert description is: {' | '.join(told)}" if told else " The alert has no description."
    runbook = annotations.get("runbook_url") or _UNNAMED
    head = f"{labels.get('severity', '')} alert {name} {alert.state}, {_impact(name, labels)}."
    return f"{head} {details}{described} {runbook}"
