"""Measures the age of a preflight's workload by a monotonic clock.

A machine's wall clock may be set by a day at any moment, and that must not end a preflight. So seconds are counted
from when this process saw the workload appear; one that existed before this process is as old as its creation time
says.
"""

from __future__ import annotations

from kubekit.api.workloads_v1 import Deployment
from kubekit.kube.clock import Clock


class WorkloadAge:
    """The age of the current workload. It is asked at every observation, so that it sees a new workload appear."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._uid: str | None = None
        self._born = 0.0

    def of(self, deployment: Deployment | None) -> float:
        """Returns the seconds that `deployment` has existed; 0 if there is none."""
        # From now on a workload that appears is new, whatever its creation time says.
        if deployment is None:
            self._uid = ""
            return 0.0
        if deployment.metadata.uid != self._uid:
            earlier_s = self._stored_s(deployment) if self._uid is None else 0.0
            self._uid, self._born = deployment.metadata.uid, self._clock.monotonic() - earlier_s
        return self._clock.monotonic() - self._born

    def _stored_s(self, deployment: Deployment) -> float:
        created = deployment.metadata.creation_timestamp
        return max((self._clock.now() - created).total_seconds(), 0.0) if created is not None else 0.0
