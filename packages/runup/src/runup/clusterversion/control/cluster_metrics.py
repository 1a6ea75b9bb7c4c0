"""Keeps and exports the cluster's own time series as of the last pass; `decide.metric_samples` computes them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime

from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from runup.api.config_v1 import ClusterOperator
from runup.clusterversion.decide.metric_samples import (
    FAMILIES,
    Family,
    Sample,
    samples,
    statuses,
    transitions,
    without_version,
)
from runup.clusterversion.decide.observed import Observed

TRANSITIONS = Family(
    "cluster_operator_condition_transitions", ("name", "condition"), "Changes of a condition's status since the start."
)
ERRORS = Family(
    "cluster_operator_payload_errors", ("version",), "Attempts to apply an object of a release that failed, so far."
)
INSTALLER = Family("cluster_installer", ("type", "version", "invoker"), "Who installed the cluster.")

Values = dict[tuple[str, ...], float]


class ClusterMetricsCollector(Collector):
    """A Prometheus collector of the cluster's series; empty before the first pass.

    `created` is when the operator's own release was made; `failed_attempts` counts failed attempts to apply, by
    version.
    """

    def __init__(self) -> None:
        self.created: datetime | None = None
        self.failed_attempts: Mapping[str, int] = {}
        self._values: dict[Family, Values] = {}
        self._statuses: dict[tuple[str, str], str] = {}
        self._changes: Counter[tuple[str, str]] = Counter()
        self._installer: tuple[str, str, str] | None = None

    def look(self, observed: Observed) -> None:
        """Updates the series from one snapshot of the cluster."""
        values = _by_family(samples(observed, self.created))
        now = statuses(observed)
        self._changes.update(transitions(self._statuses, now))
        # A condition that is gone is no longer exported; if it comes back, its count starts at zero.
        self._changes = Counter({key: self._changes[key] for key in now})
        self._statuses = now
        self._values = values | {TRANSITIONS: {key: float(count) for key, count in self._changes.items()}}

    def look_without_version(self, operators: Iterable[ClusterOperator]) -> None:
        """Updates the series of a cluster that has these operators and no ClusterVersion."""
        self._values = _by_family(without_version(operators))

    def installed_by(self, kind: str, version: str, invoker: str) -> None:
        """Records who installed the cluster; empty strings if the installer left no record."""
        self._installer = (kind, version, invoker)

    def collect(self) -> Iterator[Metric]:
        """Yields all families, also those without a value, so that users see what is measured on any cluster."""
        values = self._values | ({INSTALLER: {self._installer: 1.0}} if self._installer is not None else {})
        values |= {ERRORS: {(version,): float(count) for version, count in self.failed_attempts.items()}}
        for family in (*FAMILIES, TRANSITIONS, ERRORS, INSTALLER):
            metric = GaugeMetricFamily(family.name, family.text, labels=family.labels)
            for labels, value in values.get(family, {}).items():
                metric.add_metric(labels, value)
            yield metric


def _by_family(measured_samples: Iterable[Sample]) -> dict[Family, Values]:
    values: dict[Family, Values] = {}
    for sample in measured_samples:
        values.setdefault(sample.family, {})[sample.labels] = sample.value
    return values
