"""The metrics of the controller of fleet updates. They show the hub as of the last pass."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from prometheus_client import CollectorRegistry, Gauge

from kubekit.api.conditions import find
from runup.api.fleet_update_v1alpha1 import FleetUpdateStatus
from runup.fleet.decide.hub_update.cluster_states import STATES


class Metrics:
    """The metrics of one controller, in a separate registry."""

    def __init__(self) -> None:
        self.registry = registry = CollectorRegistry()
        self.leading = Gauge("runup_fleet_leading", "1 while this process holds the lease.", registry=registry)
        self._passed = Gauge(
            "runup_fleet_pass_timestamp_seconds", "Time of the last pass that succeeded.", registry=registry
        )
        self._clusters = Gauge(
            "runup_fleet_update_clusters",
            "Clusters of a stage of a fleet update by state.",
            ["fleet_update", "stage", "state"],
            registry=registry,
        )
        self._fuse = Gauge(
            "runup_fleet_update_fuse_blown",
            "1 if the fuse of a fleet update has blown.",
            ["fleet_update"],
            registry=registry,
        )
        self._permit = Gauge(
            "runup_fleet_permit_valid_seconds",
            "Seconds for which updates of a stage may start; only while the hub lets them start.",
            ["fleet_update", "stage"],
            registry=registry,
        )

    def observe(self, statuses: Mapping[str, FleetUpdateStatus], now: datetime) -> None:
        """Sets the metrics of all fleet updates at the end of a pass."""
        self._passed.set(now.timestamp())
        for gauge in (self._clusters, self._fuse, self._permit):
            gauge.clear()
        for name, status in statuses.items():
            failed = find(status.conditions, "Failed")
            held = find(status.conditions, "Held")
            ready = find(status.conditions, "Ready")
            is_blown = failed is not None and failed.status == "True"
            self._fuse.labels(name).set(is_blown)
            may_start = not is_blown and all(
                condition is not None and condition.status == wanted
                for condition, wanted in ((held, "False"), (ready, "True"))
            )
            for stage in status.stages:
                for state in STATES:
                    self._clusters.labels(name, stage.name, state).set(getattr(stage, state))
                if may_start and stage.phase == "Running" and not stage.message and stage.permit_until is not None:
                    self._permit.labels(name, stage.name).set((stage.permit_until - now).total_seconds())
