"""The preflight's metrics, `cluster_version_preflight_*`; `controllers.endpoint` serves them."""

from __future__ import annotations

from datetime import datetime

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from runup.domain.clusterversion.observed import Observed
from runup.domain.plan import Action, Apply, Event, Plan
from runup.domain.preflight.report import Report


class Metrics:
    """Counts what reconciles decide. A registry of its own: several managers may live in one process."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._requests = Counter(
            "cluster_version_preflight_requests", "Preflights that were started.", registry=self.registry
        )
        self._outcomes = Counter(
            "cluster_version_preflight_outcomes",
            "How preflights ended: PreflightCompleted or PreflightFailed.",
            ["outcome"],
            registry=self.registry,
        )
        self._duration = Histogram(
            "cluster_version_preflight_duration_seconds",
            "From the start of a preflight to its first result.",
            buckets=(1, 3, 10, 30, 60, 120, 300, 600, 1200),
            registry=self.registry,
        )
        self._age = Gauge(
            "cluster_version_preflight_report_age_seconds",
            "Time since the findings in the current report were made.",
            registry=self.registry,
        )
        self._checks = Gauge(
            "cluster_version_preflight_checks", "Checks of the current report.", ["result"], registry=self.registry
        )

    def count(self, observed: Observed, plan: Plan, now: datetime) -> None:
        """Take one pass into account, after it was carried out."""
        for action in plan.actions:
            if isinstance(action, Event) and action.reason in ("PreflightCompleted", "PreflightFailed"):
                self._outcomes.labels(outcome=action.reason).inc()
                self._ended(observed, now)
        if observed.deployment is None and any(_starts(action) for action in plan.actions):
            self._requests.inc()
        self._report(observed, now)

    def _ended(self, observed: Observed, now: datetime) -> None:
        created = observed.deployment.metadata.creation_timestamp if observed.deployment else None
        if created is not None:
            self._duration.observe((now - created).total_seconds())

    def _report(self, observed: Observed, now: datetime) -> None:
        report = observed.report.content if observed.report else None
        self._checks.clear()
        if not isinstance(report, Report):
            self._age.set(0)
            return
        if report.observed_time is not None:
            self._age.set((now - report.observed_time).total_seconds())
        for check in report.checks:
            self._checks.labels(result=check.result).inc()


def _starts(action: Action) -> bool:
    return isinstance(action, Apply) and action.resource.kind == "Deployment"
