"""What the previous status remembers: since when things are so. Everything else is computed anew in every pass.

In goes the status as it was, or None; out come times. It prevents that a restart of the controller makes every drain
young again, and that equal input makes another object.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any

from msgspec.structs import replace

from kubekit.api.conditions import find
from kubekit.api.meta_v1 import Condition, ConditionStatus
from runup.api.update_v1alpha1 import ClusterVersionInsight, HealthInsight, Insight, UpdateStatusStatus

# An estimate that moved by less is the same estimate: otherwise it would be written in every pass.
SAME_ESTIMATE = timedelta(seconds=30)
CONTROL_PLANE = ""
"""The layer's name; those of worker pools are the pools'."""

Said = tuple[str, ConditionStatus, str, str]
"""Type, status, reason, message."""


class Memory:
    """The previous status by layer and uid."""

    def __init__(self, previous: UpdateStatusStatus | None, stamp: datetime) -> None:
        self.previous = previous
        self.stamp = stamp
        self._insights = {(layer, insight.uid): insight for layer, insight in _insights(previous)}

    @property
    def is_empty(self) -> bool:
        """Whether nobody has watched before now."""
        return self.previous is None

    def insight(self, layer: str, uid: str) -> Insight | None:
        """The insight as it was."""
        return self._insights.get((layer, uid))

    def all(self) -> Iterable[Insight]:
        """Every insight as it was."""
        return self._insights.values()

    def conditions(self, old: Iterable[Condition], *said: Said) -> tuple[Condition, ...]:
        """Conditions with what is said now; lastTransitionTime moves only when the status does."""
        old = tuple(old)
        return tuple(self._condition(find(old, each[0]), *each) for each in said)

    def _condition(
        self, old: Condition | None, type_: str, status: ConditionStatus, reason: str, message: str
    ) -> Condition:
        since = old.last_transition_time if old and old.status == status else None
        return Condition(
            type=type_, status=status, reason=reason, message=message, last_transition_time=since or self.stamp
        )

    def settled(self, layer: str, new: Insight) -> Insight:
        """`new`, or the previous one where nothing but the time of looking differs."""
        old = self.insight(layer, new.uid)
        return old if old is not None and replace(new, acquired_at=old.acquired_at) == old else new

    def operators_awaited(self, uid: str) -> dict[str, datetime]:
        """Operator -> since when the update is known to wait for it."""
        old = self.insight(CONTROL_PLANE, uid)
        waits = old.cluster_version.waiting_for if old and old.cluster_version else ()
        return {wait.name: wait.since for wait in waits if wait.since}

    def findings(self, check: str) -> dict[str, datetime]:
        """First object of each finding of `check` -> since when it is known."""
        known = {}
        for insight in self.all():
            health = insight.health
            if health and health.check == check and health.scope.resources:
                since = health.started_at or health.first_observed_at
                if since:
                    known[health.scope.resources[0].name] = since
        return known

    def cluster_version(self, uid: str) -> ClusterVersionInsight | None:
        """The control plane's insight as it was."""
        old = self.insight(CONTROL_PLANE, uid)
        return old.cluster_version if old else None

    def health(self, layer: str, uid: str) -> HealthInsight | None:
        """A health insight as it was."""
        old = self.insight(layer, uid)
        return old.health if old else None

    def conditions_of(self, *path: str) -> tuple[Condition, ...]:
        """The conditions at an attribute path of the previous status, none where it has none."""
        found: Any = self.previous
        for name in path:
            found = getattr(found, name, None)
        return getattr(found, "conditions", ())

    def pool_conditions(self, name: str) -> tuple[Condition, ...]:
        """The conditions of the worker pool of that name."""
        pools = self.previous.worker_pools if self.previous else ()
        return next((pool.conditions for pool in pools if pool.name == name), ())


def same_estimate(new: datetime | None, old: datetime | None) -> datetime | None:
    """`old` where `new` differs by less than half a minute."""
    if new is None or old is None or abs(new - old) >= SAME_ESTIMATE:
        return new
    return old


def _insights(previous: UpdateStatusStatus | None) -> Iterable[tuple[str, Insight]]:
    if previous is None:
        return
    for informer in previous.control_plane.informers if previous.control_plane else ():
        yield from ((CONTROL_PLANE, insight) for insight in informer.insights)
    for pool in previous.worker_pools:
        for informer in pool.informers:
            yield from ((pool.name, insight) for insight in informer.insights)
