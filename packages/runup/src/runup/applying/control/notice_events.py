"""Creates events on ClusterVersion that tell administrators about objects of a release."""

from __future__ import annotations

import structlog

from kubekit.api.codec import DecodeError
from kubekit.api.meta_v1 import NamespacedName
from kubekit.api.scheme import resource_of
from kubekit.kube.api_errors import KubeError
from kubekit.kube.client import Client
from kubekit.kube.clock import Clock
from runup.api.config_v1 import ClusterVersion
from runup.applying.decide.contesting_writers import Notice
from runup.process.plan import Event, Plan
from runup.process.plan_executor import Executor
from runup.release.decide.manifest import Identity

log = structlog.get_logger("payload")
# A cluster keeps its events for an hour, so what lasts is told once in that time.
INTERVAL_S = 3600.0


class Notices:
    """The events about a release's objects: each reason at most once an hour for each object.

    `cluster_version_uid` is the UID of ClusterVersion, without which `kubectl describe` does not find them.
    """

    def __init__(self, client: Client, clock: Clock) -> None:
        self.cluster_version_uid = ""
        self._executor = Executor(client, clock)
        self._clock = clock
        self._told: dict[tuple[Identity, str], float] = {}

    def is_due(self, identity: Identity, reason: str) -> bool:
        """Returns whether a notice of that reason would be sent now."""
        told_at = self._told.get((identity, reason))
        return told_at is None or self._clock.monotonic() - told_at >= INTERVAL_S

    async def tell(self, notice: Notice) -> None:
        """Creates the event of `notice` if it is due. An event that cannot be stored is only logged."""
        identity = notice.task.identity
        if not self.is_due(identity, notice.reason):
            return
        self._told[identity, notice.reason] = self._clock.monotonic()
        log.warning("told", reason=notice.reason, message=notice.message)
        key = NamespacedName("", "version")
        event = Event(
            resource=resource_of(ClusterVersion),
            key=key,
            type="Warning",
            reason=notice.reason,
            message=notice.message,
            uid=self.cluster_version_uid,
        )
        try:
            await self._executor.execute(Plan((event,)))
        except (KubeError, DecodeError) as error:
            log.warning("an event could not be stored", reason=notice.reason, error=str(error))
