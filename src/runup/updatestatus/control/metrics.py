"""What the update status controller does, as metrics: writes, and what an assessment takes."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Histogram


class Metrics:
    """A registry of its own: several controllers may live in one process."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.writes = Counter("update_status_writes", "Writes of the UpdateStatus object.", registry=self.registry)
        self.assessment = Histogram(
            "update_status_assessment_seconds",
            "Computing all insights from one snapshot.",
            buckets=(0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1, 3),
            registry=self.registry,
        )
