"""Prometheus metrics of the update status controller: whether it leads, its writes, and what the object says."""

from __future__ import annotations

from collections import Counter as Count

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from runup.api.update_v1alpha1 import UpdateStatusStatus
from runup.updatestatus.decide.finding import LEVELS
from runup.updatestatus.decide.memory import insights_of

_VALUES = {"True": 1, "False": 0}


class Metrics:
    """The controller's metrics in a registry of their own, because several controllers may run in one process."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.leading = Gauge("update_status_leading", "1 while this process holds the lease.", registry=self.registry)
        self.writes = Counter("update_status_writes", "Writes of the UpdateStatus object.", registry=self.registry)
        self.confirmed = Gauge(
            "update_status_confirmed_timestamp_seconds",
            "When the UpdateStatus object was last found or made to be what the cluster is; 0 before.",
            registry=self.registry,
        )
        self.insights = Gauge(
            "update_status_insights", "Health insights of the object, by level.", ("level",), registry=self.registry
        )
        self.conditions = Gauge(
            "update_status_condition",
            "Conditions of the report itself: 1 True, 0 False, -1 Unknown.",
            ("condition",),
            registry=self.registry,
        )
        self.assessment = Histogram(
            "update_status_assessment_seconds",
            "Computing all insights from one snapshot.",
            buckets=(0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1, 3),
            registry=self.registry,
        )

    def confirm(self, status: UpdateStatusStatus, at: float) -> None:
        """Records what the object says, and that it said so at `at`, in seconds since 1970."""
        counts = Count(insight.health.impact.level for insight in insights_of(status) if insight.health is not None)
        for level in LEVELS:
            self.insights.labels(level).set(counts[level])
        self.conditions.clear()
        for condition in status.conditions:
            self.conditions.labels(condition.type).set(_VALUES.get(condition.status, -1))
        self.confirmed.set(at)
