"""Takes over start times and findings of drains that cannot be read yet; everything else is recomputed.

Takes the previous status, or None. Because its times are kept, a restart of the controller does not reset the age of
every drain, and equal input gives an equal object.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from datetime import datetime, timedelta
from typing import Any

from msgspec.structs import replace

from kubekit.api.conditions import find
from kubekit.api.meta_v1 import Condition, ConditionStatus, Wire
from runup.api.update_v1alpha1 import ClusterVersionInsight, HealthInsight, Insight, UpdateStatusStatus
from runup.updatestatus.decide.finding import CONTROL_PLANE, UPDATING

# An estimate that moved by less counts as unchanged: otherwise the object would be written in every pass.
SAME_ESTIMATE = timedelta(seconds=30)
# The field of an Insight by its type.
_FIELDS = {
    "ClusterVersion": "cluster_version",
    "KubernetesVersion": "kubernetes_version",
    "ClusterOperator": "cluster_operator",
    "MachineConfigPool": "machine_config_pool",
    "Node": "node",
    "Health": "health",
    "HostedCluster": "hosted_cluster",
    "NodePool": "node_pool",
    "Machine": "machine",
}

ConditionValues = tuple[str, ConditionStatus, str, str]
"""Type, status, reason, message."""


class PreviousStatus:
    """The previous status by layer and uid; `watched` is False if nobody watched the cluster since it was written."""

    def __init__(self, previous: UpdateStatusStatus | None, stamp: datetime, *, watched: bool = True) -> None:
        self.previous = previous
        self.was_watched = watched and previous is not None
        self.stamp = stamp
        self._insights = {(layer, insight.uid): insight for layer, insight in layered_insights(previous)}

    def insight(self, layer: str, uid: str) -> Insight | None:
        """Returns the previous insight."""
        return self._insights.get((layer, uid))

    def conditions(self, old: Iterable[Condition], *condition_values: ConditionValues) -> tuple[Condition, ...]:
        """Returns the new conditions; lastTransitionTime changes only if the status does."""
        old_by_type = {condition.type: condition for condition in reversed(tuple(old))}
        conditions = []
        for type_, status, reason, message in condition_values:
            before = old_by_type.get(type_)
            since = before.last_transition_time if before and before.status == status else None
            conditions.append(
                Condition(
                    type=type_, status=status, reason=reason, message=message, last_transition_time=since or self.stamp
                )
            )
        return tuple(conditions)

    def settled(self, layer: str, uid: str, member: Wire) -> Insight:
        """Returns the insight of `member`: the previous one if they differ only in the acquisition time."""
        type_ = type(member).__name__.removesuffix("Insight")
        members: dict[str, Any] = {_FIELDS[type_]: member}
        new = Insight(uid=uid, acquired_at=self.stamp, type=type_, **members)
        old = self.insight(layer, uid)
        return old if old is not None and replace(new, acquired_at=old.acquired_at) == old else new

    def insight_conditions(self, layer: str, uid: str) -> tuple[Condition, ...]:
        """Returns the conditions of the object that a previous insight describes; empty without one."""
        old = self.insight(layer, uid)
        member = old and (old.cluster_operator or old.of_pool or old.of_node)
        return member.conditions if member else ()

    def operators_awaited(self, uid: str) -> dict[str, datetime]:
        """Returns, by operator, since when the update is known to wait for it."""
        old = self.insight(CONTROL_PLANE, uid)
        waits = old.cluster_version.waiting_for if old and old.cluster_version else ()
        return {wait.name: wait.since for wait in waits if wait.since}

    def findings(self, check: str) -> dict[str, datetime]:
        """Returns, by the first object of each finding of `check`, since when the finding is known."""
        found = self.findings_of((check,)).items()
        since = (
            (name, health.started_at or health.first_observed_at) for name, insights in found for health in insights
        )
        return {name: moment for name, moment in since if moment}

    def node_updating_since(self, layer: str, uid: str) -> datetime | None:
        """Returns since when a node is known to be updating, which begins with its drain; None if it was not."""
        old = self.insight(layer, uid)
        updating = find(old.of_node.conditions, UPDATING) if old and old.of_node else None
        return updating.last_transition_time if updating and updating.status == "True" else None

    def last_movements(self) -> Iterator[datetime]:
        """Yields the times at which condition Updating of an operator, a pool or a node is known to have changed."""
        for insight in self._insights.values():
            member = insight.cluster_operator or insight.of_pool or insight.of_node
            updating = find(member.conditions, UPDATING) if member else None
            if updating is not None and updating.last_transition_time:
                yield updating.last_transition_time

    def findings_of(self, checks: Collection[str]) -> dict[str, list[HealthInsight]]:
        """Returns the previous findings of `checks` by the name of the object that they name first."""
        insights_by_subject: dict[str, list[HealthInsight]] = {}
        for insight in self._insights.values():
            health = insight.health
            if health and health.check in checks and health.scope.resources:
                insights_by_subject.setdefault(health.scope.resources[0].name, []).append(health)
        return insights_by_subject

    def cluster_version(self, uid: str) -> ClusterVersionInsight | None:
        """Returns the previous insight of the control plane."""
        old = self.insight(CONTROL_PLANE, uid)
        return old.of_version if old else None

    def health(self, layer: str, uid: str) -> HealthInsight | None:
        """Returns a previous health insight."""
        old = self.insight(layer, uid)
        return old.health if old else None

    def conditions_of(self, *path: str) -> tuple[Condition, ...]:
        """Returns the conditions at an attribute path of the previous status, empty if it has none."""
        part: Any = self.previous
        for name in path:
            part = getattr(part, name, None)
        return getattr(part, "conditions", ())

    def pool_conditions(self, name: str) -> tuple[Condition, ...]:
        """Returns the previous conditions of the worker pool `name`."""
        pools = self.previous.worker_pools if self.previous else ()
        return next((pool.conditions for pool in pools if pool.name == name), ())


def same_estimate(new: datetime | None, old: datetime | None) -> datetime | None:
    """Returns `old` if `new` differs by less than half a minute, else `new`."""
    if new is None or old is None or abs(new - old) >= SAME_ESTIMATE:
        return new
    return old


def insights_of(status: UpdateStatusStatus) -> Iterable[Insight]:
    """Returns every insight of `status`."""
    return (insight for _, insight in layered_insights(status))


def layered_insights(previous: UpdateStatusStatus | None) -> Iterable[tuple[str, Insight]]:
    """Yields every insight with the name of its layer."""
    if previous is None:
        return
    for informer in previous.control_plane.informers if previous.control_plane else ():
        yield from ((CONTROL_PLANE, insight) for insight in informer.insights)
    for pool in previous.worker_pools:
        for informer in pool.informers:
            yield from ((pool.name, insight) for insight in informer.insights)
