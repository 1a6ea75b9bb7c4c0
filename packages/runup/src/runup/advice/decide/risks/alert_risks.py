"""The risks from firing alerts: each concerns every update while the alert fires (docs/reference/upstream.md 7.6).

An answer about alerts counts for a minute. If Prometheus does not answer any more, the alerts that fired last are
Unknown, because they may be over. Alerts may also have started to fire since, or before the first answer: a risk of its
own represents those.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta

from kubekit.api.meta_v1 import Condition
from kubekit.lang.text import cut, join_within
from runup.advice.decide.promql import AlertState
from runup.advice.decide.risks.cluster_state import SourceRisk
from runup.report import documentation
from runup.updatestatus.decide.alerts import Alert

REASON = "Alert:"
UNKNOWN = "AlertsUnknown"
FRESH_FOR = timedelta(seconds=60)
# The number of alert names that become risks, and the bytes of one alert's text: each becomes a risk of every update.
MAX_NAMES = 200
_MAX_MESSAGE = 32768
_NO_RUNBOOK = "https://github.com/openshift/runbooks/tree/master/alerts?runbook=notfound"
_UNNAMED = "<alert does not have a runbook_url annotation>"
# The pattern of a risk's name, which an alert's name need not match.
_NAME = re.compile(r"[A-Z][A-Za-z0-9.-]{0,255}")
_NOT_OF_NAMES = re.compile(r"[^A-Za-z0-9.-]")
_BUDGET = "PodDisruptionBudgetAtLimit"
# Alerts that oc checks before an update (openshift/oc, pkg/cli/admin/upgrade/recommend).
_SLOW = (
    "KubeContainerWaiting",
    "KubeletHealthState",
    "KubeNodeNotReady",
    "KubeNodeReadinessFlapping",
    "KubeNodeUnreachable",
    "VirtHandlerDaemonSetRolloutFailing",
    "VMCannotBeEvicted",
)


def risks(alerting: AlertState, now: datetime) -> Iterable[SourceRisk]:
    """Yields one risk for each alert name; the instances of an alert are joined."""
    by_name: dict[str, list[Alert]] = {}
    for alert in alerting.alerts:
        name = alert.labels.get("alertname", "")
        # A pending alert has not lasted long enough to fire.
        if name and alert.state != "pending" and _impact(name, alert.labels):
            by_name.setdefault(_risk_name(name), []).append(alert)
    live = alerting.at is not None and timedelta() <= now - alerting.at < FRESH_FOR
    if alerting.error and not live:
        text = "Whether alerts fire that speak against an update is not known."
        why = f"the alerts could not be read: {alerting.error}"
        yield SourceRisk(name=UNKNOWN, message=text, url=documentation.page(UNKNOWN), unknown=why, everywhere=True)
    elif len(by_name) > MAX_NAMES:
        text = "More alerts speak against an update than can be listed."
        why = f"alerts of {len(by_name)} names fire, and {MAX_NAMES} are listed"
        yield SourceRisk(name=UNKNOWN, message=text, url=documentation.page(UNKNOWN), unknown=why, everywhere=True)
    for name in sorted(by_name)[:MAX_NAMES]:
        yield _risk(name, by_name[name], "" if live else alerting.error or "Prometheus has not answered since")


def _risk_name(alert_name: str) -> str:
    """Returns the alert's name, or a valid name made of it. The Go operator drops alerts whose name is not valid."""
    if _NAME.fullmatch(alert_name):
        return alert_name
    return f"Alert-{_NOT_OF_NAMES.sub('-', alert_name)}"[:256]


def _impact(name: str, labels: Mapping[str, str]) -> str:
    """Returns the effect of the alert on an update, empty if it has none. The first matching row counts."""
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


def _risk(name: str, alerts: Sequence[Alert], stale_reason: str) -> SourceRisk:
    """Returns the risk of all `alerts`, which have one name; `stale_reason`: why they may be out of date, or ""."""
    first = alerts[0]
    text = _summary_text(first)
    url = first.annotations.get("runbook_url") or _NO_RUNBOOK
    if stale_reason:
        why = f"the alert {name} was {first.state} when Prometheus answered last, and now: {stale_reason}"
        return SourceRisk(name=name, message=text, url=url, unknown=why, everywhere=True)
    texts = list(dict.fromkeys(_message(alert) for alert in alerts))
    messages = join_within(texts, "; ", _MAX_MESSAGE)
    since = min((alert.active_at for alert in alerts if alert.active_at), default=None)
    applies = Condition(
        type="Applies", status="True", reason=f"{REASON}{first.state}", message=messages, last_transition_time=since
    )
    return SourceRisk(name=name, message=text, url=url, everywhere=True, found=applies)


def _summary_text(alert: Alert) -> str:
    text = cut(alert.annotations.get("summary") or alert.labels["alertname"], _MAX_MESSAGE)
    return text if text.endswith(".") else f"{text}."


def _message(alert: Alert) -> str:
    """Returns the text about one alert, in the words of the Cluster Version Operator."""
    labels, annotations = alert.labels, alert.annotations
    name, details = labels["alertname"], _summary_text(alert)
    if name.startswith("PodDisruptionBudget"):
        budget = f"PodDisruptionBudget={labels.get('poddisruptionbudget', '')}"
        details = f"Namespace={labels.get('namespace', '')}, {budget}. {details}"
    descriptions = [part for part in (annotations.get("description"), annotations.get("message")) if part]
    described = (
        f" The alert description is: {' | '.join(descriptions)}" if descriptions else " The alert has no description."
    )
    runbook = annotations.get("runbook_url") or _UNNAMED
    head = f"{labels.get('severity', '')} alert {name} {alert.state}, {_impact(name, labels)}."
    return f"{head} {details}{described} {runbook}"
