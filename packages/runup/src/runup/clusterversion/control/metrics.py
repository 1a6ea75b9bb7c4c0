"""The metrics of preflights, `cluster_version_preflight_*`, and the cluster's own series as of the last pass.

`decide.metric_samples` computes the cluster's series; `process.endpoint` serves both.
"""

from __future__ import annotations

import collections
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from kubekit.kube.clock import Clock, SystemClock
from runup.api.config_v1 import ClusterOperator
from runup.clusterversion.control import preflight_log
from runup.clusterversion.decide import metric_samples
from runup.clusterversion.decide.observed import Observed
from runup.process.plan import Plan
from runup.report.report import Report

# What a preflight came to where condition PreflightFailed is True.
_FAILURES = (preflight_log.FAILED, preflight_log.REFUSED)


class Metrics:
    """Counters and gauges of what passes decide, in a separate registry: several managers may share a process.

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
            "1 for the reason of condition PreflightFailed while that is True.",
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

    def look(self, observed: Observed) -> None:
        """Updates what follows the cluster alone. A pass that cannot be carried out is not counted, but begins so."""
        self.cluster.look(observed)
        self._set_failing(preflight_log.state_before(observed))

    def count(self, observed: Observed, plan: Plan[object], now: datetime) -> None:
        """Counts one pass after it was carried out."""
        earlier, current = preflight_log.state_before(observed), preflight_log.state_after(observed, plan)
        gets_result = preflight_log.gets_result(observed, plan)
        if current.outcome in _FAILURES:
            counts = (current.outcome, current.reason) != (earlier.outcome, earlier.reason)
        else:
            counts = current.outcome == preflight_log.COMPLETED and gets_result
        if counts:
            self._outcomes.labels(outcome=current.outcome, reason=current.reason).inc()
        created = observed.deployment.metadata.creation_timestamp if observed.deployment else None
        if gets_result and created is not None:
            self._duration.observe((now - created).total_seconds())
        if preflight_log.starts_preflight(observed, plan):
            self._requests.inc()
        self._set_failing(current)
        self._waits_since = created if current.outcome in (preflight_log.RUNNING, preflight_log.FAILED) else None
        self._timeout_s = observed.facts.place.timeout_s
        self._unusable.set(len(observed.unusable))
        self._report(observed, now)

    def _set_failing(self, state: preflight_log.PreflightState) -> None:
        # A gauge by reason: the previous reason must not stay at 1.
        self._failing.clear()
        if state.outcome in _FAILURES:
            self._failing.labels(reason=state.reason).set(1)

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


TRANSITIONS = metric_samples.Family(
    "cluster_operator_condition_transitions", ("name", "condition"), "Changes of a condition's status since the start."
)
ERRORS = metric_samples.Family(
    "cluster_operator_payload_errors", ("version",), "Attempts to apply an object of a release that failed, so far."
)
INSTALLER = metric_samples.Family("cluster_installer", ("type", "version", "invoker"), "Who installed the cluster.")

Values = dict[tuple[str, ...], float]


class ClusterMetricsCollector(Collector):
    """A Prometheus collector of the cluster's series; empty before the first pass.

    `created` is when the operator's own release was made; `failed_attempts` counts failed attempts to apply, by
    version.
    """

    def __init__(self) -> None:
        self.created: datetime | None = None
        self.failed_attempts: Mapping[str, int] = {}
        self._values: dict[metric_samples.Family, Values] = {}
        self._statuses: dict[tuple[str, str], str] = {}
        self._changes: collections.Counter[tuple[str, str]] = collections.Counter()
        self._installer: tuple[str, str, str] | None = None

    def look(self, observed: Observed) -> None:
        """Updates the series from one snapshot of the cluster."""
        values = _by_family(metric_samples.samples(observed, self.created))
        now = metric_samples.statuses(observed)
        self._changes.update(metric_samples.transitions(self._statuses, now))
        # The counts of an object end with it; if it comes back, they start at zero.
        names = {name for name, _ in now}
        kept = {key: count for key, count in self._changes.items() if key[0] in names}
        self._changes = collections.Counter(dict.fromkeys(now, 0) | kept)
        self._statuses = now
        self._values = values | {TRANSITIONS: {key: float(count) for key, count in self._changes.items()}}

    def look_without_version(self, operators: Iterable[ClusterOperator]) -> None:
        """Updates the series of a cluster that has these operators and no ClusterVersion."""
        self._values = _by_family(metric_samples.without_version(operators))

    def installed_by(self, kind: str, version: str, invoker: str) -> None:
        """Records who installed the cluster; empty strings if the installer left no record."""
        self._installer = (kind, version, invoker)

    def collect(self) -> Iterator[Metric]:
        """Yields all families, including those without a value, so that users see every metric on any cluster."""
        values = self._values | ({INSTALLER: {self._installer: 1.0}} if self._installer is not None else {})
        values |= {ERRORS: {(version,): float(count) for version, count in self.failed_attempts.items()}}
        for family in (*metric_samples.FAMILIES, TRANSITIONS, ERRORS, INSTALLER):
            metric = GaugeMetricFamily(family.name, family.text, labels=family.labels)
            for labels, value in values.get(family, {}).items():
                metric.add_metric(labels, value)
            yield metric


def _by_family(measured_samples: Iterable[metric_samples.Sample]) -> dict[metric_samples.Family, Values]:
    values: dict[metric_samples.Family, Values] = {}
    for sample in measured_samples:
        values.setdefault(sample.family, {})[sample.labels] = sample.value
    return values
