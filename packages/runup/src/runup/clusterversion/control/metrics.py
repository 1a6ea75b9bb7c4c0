"""The preflight's metrics, `cluster_version_preflight_*`, which `process.endpoint` serves."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.core import GaugeMetricFamily, Metric

from kubekit.kube.clock import Clock, SystemClock
from runup.clusterversion.control import preflight_log
from runup.clusterversion.control.cluster_metrics import ClusterMetricsCollector
from runup.clusterversion.decide.observed import Observed
from runup.process.plan import Plan
from runup.report.report import Report


class Metrics:
    """Counters and gauges of what passes decide, in a registry of their own: several managers may share a process.

    Ages are computed when they are collected: without events there is no pass that would update them.
    """

    def __init__(self, clock: Clock | None = None) -> None:
        self.registry = CollectorRegistry()
        self._clock = clock or SystemClock()
        self._seen: Report | None = None
        self._seen_at: datetime | None = None
        self._waits_since: datetime | None = None
        self._timeout_s: float | None = None
        self._requests = Counter(
            "cluster_version_preflight_requests", "Preflights that were started.", registry=self.registry
        )
        self._refused = Counter(
            "cluster_version_status_refused",
            "Writes of ClusterVersion's status that the API server refused as invalid or too large.",
            registry=self.registry,
        )
        self._outcomes = Counter(
            "cluster_version_preflight_outcomes",
            "What preflights came to: PreflightCompleted, PreflightFailed, or PreflightRefused (nothing was started).",
            ["outcome", "reason"],
            registry=self.registry,
        )
        self._failing = Gauge(
            "cluster_version_preflight_failing",
            "1 for the reason for which the preflight that is asked for fails now.",
            ["reason"],
            registry=self.registry,
        )
        self._duration = Histogram(
            "cluster_version_preflight_duration_seconds",
            "From the start of a preflight to its first result.",
            buckets=(1, 3, 10, 30, 60, 120, 300, 600, 1200),
            registry=self.registry,
        )
        self._checks = Gauge(
            "cluster_version_preflight_checks", "Checks of the current report.", ["result"], registry=self.registry
        )
        self._unusable = Gauge(
            "cluster_version_preflight_unusable_settings",
            "Settings of the administrator's ConfigMap that cannot be used.",
            registry=self.registry,
        )
        self.registry.register(self)
        self.cluster = ClusterMetricsCollector()
        self.registry.register(self.cluster)

    def collect(self) -> Iterator[Metric]:
        """Yields the metrics that depend on the time of collection. A family without a value has nothing to report."""
        now = self._clock.now()
        for name, text, value in (
            ("report_age", "Time since the report was last seen to change.", _seconds_since(self._seen_at, now)),
            (
                "waiting",
                "Time since a preflight was started that has no result yet.",
                _seconds_since(self._waits_since, now),
            ),
            ("timeout", "How long a preflight may take to its first result.", self._timeout_s),
        ):
            family = GaugeMetricFamily(f"cluster_version_preflight_{name}_seconds", text)
            if value is not None:
                family.add_metric([], value)
            yield family

    def status_refused(self) -> None:
        """Counts a status that the API server rejected."""
        self._refused.inc()

    def count(self, observed: Observed, plan: Plan[object], now: datetime) -> None:
        """Counts one pass after it was carried out."""
        self.cluster.look(observed)
        earlier, current = preflight_log.state_before(observed), preflight_log.state_after(observed, plan)
        ended = current.outcome in (preflight_log.COMPLETED, preflight_log.FAILED, preflight_log.REFUSED)
        if ended and (current.outcome, current.reason) != (earlier.outcome, earlier.reason):
            self._outcomes.labels(outcome=current.outcome, reason=current.reason).inc()
            if current.outcome != preflight_log.REFUSED and earlier.outcome == preflight_log.RUNNING:
                self._count_ended(observed, now)
        if preflight_log.starts_preflight(observed, plan):
            self._requests.inc()
        # A gauge by reason: the previous reason must not stay at 1.
        self._failing.clear()
        if current.outcome == preflight_log.FAILED:
            self._failing.labels(reason=current.reason).set(1)
        created = observed.deployment.metadata.creation_timestamp if observed.deployment else None
        self._waits_since = created if current.outcome in (preflight_log.RUNNING, preflight_log.FAILED) else None
        self._timeout_s = observed.facts.place.timeout_s
        self._unusable.set(len(observed.unusable))
        self._report(observed, now)

    def _count_ended(self, observed: Observed, now: datetime) -> None:
        created = observed.deployment.metadata.creation_timestamp if observed.deployment else None
        if created is not None:
            self._duration.observe((now - created).total_seconds())

    def _report(self, observed: Observed, now: datetime) -> None:
        """Counts the checks of the newest report by result, and notes when it last changed."""
        content = observed.report.content if observed.report else None
        report = content if isinstance(content, Report) else None
        # The age counts from when this process saw the report change: the target's clock is not trusted
        # (docs/decisions/0024-what-is-live-and-what-is-dated.md).
        if report != self._seen:
            self._seen, self._seen_at = report, now if report is not None else None
        self._checks.clear()
        for check in report.checks if report else ():
            self._checks.labels(result=check.result).inc()


def _seconds_since(then: datetime | None, now: datetime) -> float | None:
    return max(0.0, (now - then).total_seconds()) if then is not None else None
