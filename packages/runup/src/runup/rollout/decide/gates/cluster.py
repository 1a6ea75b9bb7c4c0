"""The gates about the target, the health of the cluster, and its alerts."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from datetime import datetime

from kubekit.api.conditions import find, status_of
from kubekit.api.core_v1 import Node
from kubekit.api.meta_v1 import Condition
from kubekit.lang.oc_pull_spec import is_same_image
from runup.api.config_v1 import ClusterOperator, ClusterVersion
from runup.api.machineconfig_v1 import MachineConfigPool
from runup.rollout.decide.durations import parse
from runup.rollout.decide.gates.gate import CLOSED, OPEN, UNKNOWN, Gate
from runup.rollout.decide.gates.observed import Health, Observed
from runup.rollout.decide.plain_cluster import is_version
from runup.updatestatus.decide.alerts import Unreadable

# Alerts that an update policy itself may cause: a gate that they close would never open.
_OWN_ALERTS = re.compile(r"(Update|Preflight|FleetUpdate)[A-Z][A-Za-z]*|Watchdog")
_MAX_NAMED = 5


def is_blocked(version: str, patterns: Iterable[str]) -> bool:
    """Reports whether `version` is one of `patterns`, in which a last part `x` stands for any patch version."""
    return any(
        version == pattern or (pattern.endswith(".x") and version.startswith(pattern[:-1])) for pattern in patterns
    )


def evaluate_target(observed: Observed, now: datetime) -> Gate:  # noqa: ARG001 (all gates have one signature)
    """Returns the gate of the release: not blocked, offered as this image, and recommended or accepted."""
    wanted, offer = observed.wanted, observed.offer
    evidence = {"version": wanted.version, "image": wanted.image}
    if observed.withdrawn:
        text = f"{observed.withdrawn} was withdrawn during the update to it, so the update to {wanted.version} waits."
        return Gate(name="target", state=CLOSED, reason="TargetWithdrawn", message=text, evidence=evidence)
    if is_blocked(wanted.version, observed.target.block_versions):
        text = f"spec.target.blockVersions contains {wanted.version}."
        return Gate(name="target", state=CLOSED, reason="TargetBlocked", message=text, evidence=evidence)
    if observed.path_problem:
        state, reason = (UNKNOWN, "GraphNotAnswering") if observed.path_unknown else (CLOSED, "NoPath")
        text = f"No path to {wanted.version}: {observed.path_problem}."
        return Gate(name="target", state=state, reason=reason, message=text, evidence=evidence)
    if offer.is_named and not is_version(wanted.version):
        text = f"{wanted.version} is not a version of Kubernetes such as v1.36.2."
        return Gate(name="target", state=CLOSED, reason="TargetBlocked", message=text, evidence=evidence)
    if offer.is_named and is_same_image(offer.image, wanted.image):
        text = f"{wanted.version} is the version that the run names; no update service offers versions."
        return Gate(name="target", state=OPEN, reason="Named", message=text, evidence=evidence)
    if "@sha256:" not in wanted.image:
        text = f"The image of {wanted.version} must have a digest; it is {wanted.image or 'not known'}."
        return Gate(name="target", state=UNKNOWN, reason="GraphNotAnswering", message=text, evidence=evidence)
    # A path comes from the update service, which must still offer each of its releases.
    is_named = observed.target.follow == "Exact" and not observed.hop_digests
    if is_named and is_same_image(observed.target.image, wanted.image):
        text = f"{wanted.version} is the image that the policy names."
        return Gate(name="target", state=OPEN, reason="Named", message=text, evidence=evidence)
    if offer.why_unknown:
        text = f"Could not determine whether {wanted.version} is offered: {offer.why_unknown}."
        return Gate(name="target", state=UNKNOWN, reason="GraphNotAnswering", message=text, evidence=evidence)
    if not offer.image:
        text = f"{wanted.version} is not offered any more."
        return Gate(name="target", state=CLOSED, reason="TargetWithdrawn", message=text, evidence=evidence)
    if not is_same_image(offer.image, wanted.image):
        text = f"{wanted.version} is offered as {offer.image}, not as {wanted.image}."
        return Gate(name="target", state=CLOSED, reason="PreflightOtherRelease", message=text, evidence=evidence)
    text = f"{wanted.version} is offered."
    return Gate(name="target", state=OPEN, reason="Offered", message=text, evidence=evidence)


def evaluate_health(observed: Observed, now: datetime) -> Gate:
    """Returns the gate of the cluster's health: nothing unhealthy, nothing unknown, both for the settling time."""
    health, settle = observed.health, observed.gates.health.settle
    if isinstance(health, str) or health.unknown:
        why = health if isinstance(health, str) else "; ".join(health.unknown[:_MAX_NAMED])
        text = f"Could not determine whether the cluster is healthy: {why}."
        return Gate(name="health", state=UNKNOWN, reason="HealthUnknown", message=text)
    if health.problems:
        more = f" and {len(health.problems) - _MAX_NAMED} more" if len(health.problems) > _MAX_NAMED else ""
        text = f"{'; '.join(health.problems[:_MAX_NAMED])}{more}."
        return Gate(name="health", state=CLOSED, reason="Unhealthy", message=text)
    if health.healthy_since is None:
        text = "Could not determine since when the cluster is healthy."
        return Gate(name="health", state=UNKNOWN, reason="HealthUnknown", message=text)
    settled = health.healthy_since + parse(settle, "spec.gates.health.settle")
    if now < settled:
        text = f"The cluster must be healthy for {settle} before a start."
        return Gate(name="health", state=CLOSED, reason="Unhealthy", message=text, until=settled)
    return Gate(name="health", state=OPEN, reason="Healthy", message=f"The cluster is healthy for {settle}.")


def evaluate_alerts(observed: Observed, now: datetime) -> Gate:
    """Returns the gate of the alerts: none of the named severities fires for longer than allowed."""
    alerts, settings = observed.alerts, observed.gates.alerts
    if not settings.severities:
        text = "spec.gates.alerts.severities is empty, so alerts do not close the gate."
        return Gate(name="alerts", state=OPEN, reason="NotAsked", message=text)
    if isinstance(alerts, Unreadable):
        text = f"Could not determine which alerts fire: {alerts.why}."
        return Gate(name="alerts", state=UNKNOWN, reason="AlertsUnknown", message=text)
    allowed = parse(settings.for_, "spec.gates.alerts.for")
    counting = [
        alert
        for alert in alerts
        if alert.state == "firing"
        and alert.labels.get("severity", "") in settings.severities
        and alert.labels.get("alertname", "") not in settings.except_
        and not _OWN_ALERTS.fullmatch(alert.labels.get("alertname", ""))
    ]
    # An alert without a time may have fired for any time.
    closing = [alert for alert in counting if alert.active_at is None or alert.active_at + allowed <= now]
    if closing:
        names = sorted({alert.labels.get("alertname", "") or "an alert without a name" for alert in closing})
        more = f" and {len(names) - _MAX_NAMED} more" if len(names) > _MAX_NAMED else ""
        text = f"Alerts fire for {settings.for_} or longer: {', '.join(names[:_MAX_NAMED])}{more}."
        return Gate(name="alerts", state=CLOSED, reason="AlertsFiring", message=text)
    until = min((alert.active_at + allowed for alert in counting if alert.active_at is not None), default=None)
    severities = ", ".join(settings.severities)
    text = f"No alert of severity {severities} fires for {settings.for_} or longer."
    return Gate(name="alerts", state=OPEN, reason="NoneFiring", message=text, until=until)


def health_of(
    cluster: ClusterVersion | None,
    operators: Sequence[ClusterOperator],
    pools: Sequence[MachineConfigPool],
    nodes: Sequence[Node],
    *,
    own_pauses: Iterable[str] = (),
) -> Health:
    """Returns the cluster's health from its objects. Pools that are paused are not expected to be updated."""
    problems: list[str] = []
    unknown: list[str] = []
    since: list[datetime | None] = []

    def expect(what: str, conditions: Sequence[Condition], type_: str, wanted: str) -> None:
        """Notes the condition `type_` of `what` if it is not `wanted`, or unknown."""
        condition = find(conditions, type_)
        if condition is None or condition.status not in ("True", "False"):
            unknown.append(f"{type_} of {what} is unknown")
        elif condition.status != wanted:
            problems.append(f"{what} has {type_}={condition.status}")
        else:
            since.append(condition.last_transition_time)

    if cluster is not None:
        conditions = cluster.status.conditions
        for type_ in ("Failing", "Progressing"):
            expect("ClusterVersion", conditions, type_, "False")
        if status_of(conditions, "Invalid") == "True":
            problems.append("ClusterVersion has Invalid=True")
        if not operators:
            unknown.append("no ClusterOperator is known")
    for operator in operators:
        for type_, wanted in (("Available", "True"), ("Degraded", "False")):
            expect(f"ClusterOperator {operator.metadata.name}", operator.status.conditions, type_, wanted)
    own = set(own_pauses)
    for pool in pools:
        name = pool.metadata.name
        expect(f"MachineConfigPool {name}", pool.status.conditions, "Degraded", "False")
        if not pool.spec.paused and name not in own:
            expect(f"MachineConfigPool {name}", pool.status.conditions, "Updated", "True")
    if not nodes:
        unknown.append("no Node is known")
    for node in nodes:
        expect(f"Node {node.metadata.name}", node.status.conditions, "Ready", "True")
    known = [each for each in since if each is not None]
    # A condition without a time may have changed just now.
    settled = max(known, default=None) if len(known) == len(since) else None
    return Health(problems=tuple(problems), unknown=tuple(unknown), healthy_since=settled)
