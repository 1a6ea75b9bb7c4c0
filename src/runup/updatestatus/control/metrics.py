"""Prometheus metrics of the update status controller: writes, their age, and the duration of an assessment."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram


class Metrics:
    """The controller's metrics in a registry of their own, because several controllers may run in one process."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.writes = Counter("update_status_writes", "Writes of the UpdateStatus object.", registry=self.registry)
        self.confirmed = Gauge(
            "update_status_confirmed_timestamp_seconds",
            "When the UpdateStatus object was last found or made to be what the cluster is; 0 before.",
            registry=self.registry,
        )
        self.assessment = Histogram(
            "update_status_assessment_seconds",
            "Computing all insights from one snapshot.",
            buckets=(0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1, 3),
            registry=self.registry,
        )
