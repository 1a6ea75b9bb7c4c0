"""How old a preflight's workload is, by a clock that does not jump.

A machine's clock may be set by a day at any moment, and no preflight may end by that. So seconds are counted from when
this process saw the workload appear; one that was there before this process is as old as its creation time says.
"""

from __future__ import annotations

from kubekit.api.workloads_v1 import Deployment
from kubekit.kube.clock import Clock


class Age:
    """Asked at every look, so that it knows whether there was nothing before."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._uid: str | None = None
        self._born = 0.0

    def of(self, deployment: Deployment | None) -> float:
        """Seconds that `deployment` has been there; 0 where there is none."""
        if deployment is None:
            self._uid = ""
            return 0.0
        if deployment.metadata.uid != self._uid:
            before_us = self._stored_s(deployment) if self._uid is None else 0.0
            self._uid, self._born = deployment.metadata.uid, self._clock.monotonic() - before_us
        return self._clock.monotonic() - self._born

    def _stored_s(self, deployment: Deployment) -> float:
        created = deployment.metadata.creation_timestamp
        return max((self._clock.now() - created).total_seconds(), 0.0) if created is not None else 0.0
