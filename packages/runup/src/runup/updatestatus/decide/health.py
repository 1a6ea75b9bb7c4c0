"""Finds what may hinder the update, by the rules of `oc adm upgrade status` and in its order.

A finding without summary, description or reference is dropped, as `oc` does. Levels rise with age: a state that an
operator has for a few minutes in any update is not reported.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from functools import partial

from kubekit.api.conditions import find
from kubekit.lang.gotext import quote_go
from runup.api.config_v1 import ClusterVersion
from runup.api.update_v1alpha1 import ResourceRef
from runup.rules import machine_config
from runup.rules.machine_config import UnavailableReason
from runup.updatestatus.decide import finding as terms
from runup.updatestatus.decide.alerts import Alert
from runup.updatestatus.decide.control_plane import OperatorState
from runup.updatestatus.decide.finding import Finding
from runup.updatestatus.decide.nodes import PoolState

NOT_FAILING_UNKNOWN, FAILING = "ClusterVersionFailingUnknown", "ClusterVersionFailing"
OPERATOR_UNAVAILABLE, OPERATOR_DEGRADED = "ClusterOperatorUnavailable", "ClusterOperatorDegraded"
PREVIOUS_PARTIAL = "PreviousUpdateIncomplete"

_OCP = "https://docs.openshift.com/container-platform/latest/"
_RUNBOOKS = "https://github.com/openshift/runbooks/blob/master/alerts/cluster-monitoring-operator/"
_MACHINE_CONFIG_DOCS = (
    _OCP + "post_installation_configuration/machine-configuration-tasks.html#understanding-the-machine-config-operator"
)
_PAUSED_DOCS = (
    _OCP + "support/troubleshooting/troubleshooting-operator-issues.html"
    "#troubleshooting-disabling-autoreboot-mco_troubleshooting-operator-issues"
)
_DEGRADED_DOCS = _RUNBOOKS + "ClusterOperatorDegraded.md"
_DOWN_DOCS = _RUNBOOKS + "ClusterOperatorDown.md"
_HISTORY_DOCS = (
    _OCP + "updating/troubleshooting_updates/gathering-data-cluster-update.html"
    "#gathering-clusterversion-history-cli_troubleshooting_updates"
)

# Age of a bad condition up to which it is not reported.
TOLERATED_FOR = timedelta(minutes=5)
# Ages above which the finding is an Error.
UNAVAILABLE_TOO_LONG = timedelta(minutes=20)
DEGRADED_TOO_LONG = timedelta(minutes=40)

# Alerts that are reported even if they began before the update.
_KNOWN_ALERTS = frozenset({"PodDisruptionBudgetLimit", "PodDisruptionBudgetAtLimit"})
_ALERT_LEVELS = {"warning": terms.WARNING, "critical": terms.CRITICAL}

# Reason of a node's unavailability -> end of the summary.
_NODE_IS = {
    machine_config.NOT_READY: "is not ready",
    machine_config.DISK_PRESSURE: "has disk pressure",
    machine_config.NETWORK_UNAVAILABLE: "has unavailable network",
}
_NODE_CONDITION = {
    machine_config.NOT_READY: "Ready!=True",
    machine_config.DISK_PRESSURE: "DiskPressure!=False",
    machine_config.NETWORK_UNAVAILABLE: "NetworkUnavailable!=False",
}


def is_complete(finding: Finding) -> bool:
    """Reports whether the finding has a summary, a description and a reference; `oc` prints no other."""
    return bool(finding.summary and finding.description and finding.reference)


def pool_findings(pools: Sequence[PoolState], now: datetime) -> Iterator[Finding]:
    """Yields unavailable and degraded nodes, and paused pools. `now` is for the ages of conditions."""
    for pool in pools:
        for node in pool.nodes:
            finding = partial(
                Finding,
                reference=_MACHINE_CONFIG_DOCS if pool.client == "oc" else terms.DOCS + "nodeunavailable",
                scope=pool.scope,
                resources=(terms.node_ref(node.name),),
                pool=pool.layer,
            )
            if node.unavailable and not node.updating and node.is_serious(now):
                ends = [(trouble, _NODE_IS.get(trouble.reason)) for trouble in node.troubles]
                # As in oc, the description of a node that is also degraded is the machine-config daemon's reason.
                descriptions = " | ".join(_trouble_text(trouble) for trouble in node.troubles)
                yield finding(
                    check=terms.NODE_UNAVAILABLE,
                    level=terms.WARNING,
                    impact=terms.UPDATE_SPEED,
                    summary=" | ".join(f"Node {node.name} {end}" if end else trouble.reason for trouble, end in ends),
                    description=node.reason if node.degraded else descriptions,
                    since=min((trouble.since for trouble in node.troubles if trouble.since), default=None),
                )
            if node.degraded:
                yield finding(
                    check=terms.NODE_DEGRADED,
                    level=terms.ERROR,
                    impact=terms.UPDATE_STALLED,
                    summary=f"Node {node.name} is degraded",
                    description=node.reason,
                )
        if pool.excluded and pool.paused:
            yield Finding(
                check=terms.POOL_PAUSED,
                level=terms.WARNING,
                impact=terms.UPDATE_STALLED,
                summary=f"Outdated nodes in a paused pool '{pool.name}' will not be updated",
                description="Pool is paused, which stops all changes to the nodes in the pool, including updates. The "
                "nodes will not be updated until the pool is unpaused by the administrator.",
                reference=_PAUSED_DOCS,
                scope=terms.SCOPE_WORKER_POOL,
                resources=(terms.pool_ref(pool.name),),
                pool=pool.layer,
            )


def _trouble_text(trouble: UnavailableReason) -> str:
    """Returns the text about one cause of unavailability, as `oc` words it."""
    condition = _NODE_CONDITION.get(trouble.reason)
    if condition is None:
        return trouble.reason
    reason, message = quote_go(trouble.reason), quote_go(trouble.message)
    return f"Node has a {condition} condition with Reason {reason} and message {message}"


def alert_findings(alerts: Sequence[Alert], started: datetime | None) -> Iterator[Finding]:
    """Yields firing alerts that began after the update did, and those known to slow updates, whenever they began."""
    label_counts: dict[str, int] = {}
    for alert in alerts:
        name = alert.labels.get("alertname", "")
        during = alert.active_at is not None and (started is None or started < alert.active_at)
        is_known = name in _KNOWN_ALERTS
        level = _ALERT_LEVELS.get(alert.labels.get("severity", ""), terms.INFO)
        if not name or not (is_known or during) or alert.state == "pending" or level == terms.INFO:
            continue
        labels = "\0".join(f"{key}={value}" for key, value in sorted(alert.labels.items()))
        label_counts[labels] = label_counts.get(labels, 0) + 1
        parts = [text for key in ("description", "message") if (text := alert.annotations.get(key))]
        description = "Alert started firing during the update."
        if is_known and during:
            description = "Alert known to affect updates started firing during the update."
        elif is_known:
            description = "Alert known to affect updates has been firing since before the update started."
        description += f" The alert description is: {' | '.join(parts)}" if parts else " The alert has no description."
        yield Finding(
            check=terms.ALERT_FIRING,
            level=level,
            impact=terms.UNKNOWN_IMPACT,
            summary=f"Alert is firing: {alert.annotations.get('summary') or name}",
            description=description,
            reference=alert.annotations.get("runbook_url") or terms.NO_RUNBOOK,
            since=alert.active_at,
            scope=terms.SCOPE_CLUSTER,
            resources=(
                ResourceRef(
                    group=terms.CONFIG_GROUP, resource="alerts", name=name, namespace=alert.labels.get("namespace", "")
                ),
            ),
            # Labels identify an alert; an alert that the answer lists twice is reported twice, as by oc.
            identity=labels if label_counts[labels] == 1 else f"{labels}\0{label_counts[labels]}",
        )


def cluster_version_findings(cluster: ClusterVersion, now: datetime) -> Iterator[Finding]:
    """Yields a finding if ClusterVersion is failing, or has no Failing condition."""
    name = cluster.metadata.name
    finding = partial(
        Finding,
        resources=(terms.cluster_version_ref(name),),
        level=terms.WARNING,
        impact=terms.UPDATE_STALLED,
        reference=_DEGRADED_DOCS,
    )
    failing = find(cluster.status.conditions, "Failing")
    if failing is None:
        yield finding(
            check=NOT_FAILING_UNKNOWN,
            summary=f"Cluster Version {name} has no Failing condition",
            description="Current status of Cluster Version reconciliation is unclear.  See 'oc -n "
            "openshift-cluster-version logs -l k8s-app=cluster-version-operator --tail -1' to debug.",
            since=now,
        )
    elif failing.status != "False":
        verb = "may be" if failing.status == "Unknown" else "is"
        yield finding(
            check=FAILING,
            summary=f"Cluster Version {name} {verb} failing to proceed with the update ({failing.reason})",
            description=failing.message,
            since=failing.last_transition_time,
        )


def operator_findings(operators: Sequence[OperatorState], now: datetime) -> Iterator[Finding]:
    """Yields operators that have been unavailable or degraded for longer than an update usually makes them."""
    for operator in operators:
        for condition, bad in ((operator.available, "False"), (operator.degraded, "True")):
            if condition is None or condition.status != bad:
                continue
            check, word, too_long, reference = _BAD_OPERATOR[bad]
            since = condition.last_transition_time
            if since is not None and now - since <= TOLERATED_FOR:
                continue
            yield Finding(
                check=check,
                level=terms.ERROR if since is None or now - since > too_long else terms.WARNING,
                impact=terms.API_AVAILABILITY,
                summary=f"Cluster Operator {operator.name} is {word} ({condition.reason})",
                description=condition.message or "<no message>",
                reference=reference,
                since=since,
                resources=(terms.operator_ref(operator.name),),
            )


# Bad status -> check, word in the summary, age from which the level is Error, documentation.
_BAD_OPERATOR = {
    "False": (OPERATOR_UNAVAILABLE, "unavailable", UNAVAILABLE_TOO_LONG, _DOWN_DOCS),
    "True": (OPERATOR_DEGRADED, "degraded", DEGRADED_TOO_LONG, _DEGRADED_DOCS),
}


def history_findings(cluster: ClusterVersion, *, control_plane_done: bool) -> Iterator[Finding]:
    """Yields a finding if the update was started before the previous one had completed."""
    history = cluster.status.history
    if control_plane_done or len(history) < 2 or history[1].state != "Partial":
        return
    complete = next((entry.version for entry in history[2:] if entry.state == "Completed"), "unknown")
    yield Finding(
        check=PREVIOUS_PARTIAL,
        level=terms.WARNING,
        impact=terms.NO_IMPACT,
        summary=f"Previous update to {history[1].version} never completed, last complete update was {complete}",
        description=f"Current update to {history[0].version} was initiated while the previous update to version "
        f"{history[1].version} was still in progress",
        reference=_HISTORY_DOCS,
        since=history[0].started_time,
        resources=(terms.cluster_version_ref(cluster.metadata.name),),
    )
