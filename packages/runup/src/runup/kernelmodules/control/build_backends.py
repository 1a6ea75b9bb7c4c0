"""Detects how the cluster can build images: by OpenShift Builds if it serves them, else by Jobs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from kubekit.api.codec import DecodeError
from kubekit.api.scheme import resource_of
from kubekit.kube import calls
from kubekit.kube.api_errors import KubeError, NotFound
from kubekit.kube.client import Client
from kubekit.kube.clock import Clock
from runup.api.build_v1 import Build
from runup.kernelmodules.control.caches import Caches, builds_reflector
from runup.kernelmodules.decide.runs import Runner
from runup.process.leader_election import cancel, restart_on_error

BUILDS = resource_of(Build)
AGAIN_S, AFTER_ERROR_S = 600.0, 5.0


class Runners:
    """The way to build images. `current` is None until discovery has answered and the existing runs are listed."""

    def __init__(
        self, client: Client, caches: Caches, clock: Clock, on_change: Callable[[], None], *, builds: bool
    ) -> None:
        self._client = client
        self._caches = caches
        self._clock = clock
        self._on_change = on_change
        self._allowed = builds
        self._found: Runner | None = None if builds else Runner.JOBS

    @property
    def current(self) -> Runner | None:
        """The kind of object that builds images, None if it is not known yet."""
        cache = self._caches.builds if self._found is Runner.BUILDS else self._caches.jobs
        return self._found if cache.synced else None

    async def run(self) -> None:
        """Asks the API server for Builds every `AGAIN_S` (`AFTER_ERROR_S` after an error), until cancelled."""
        watches: list[asyncio.Task[None]] = []
        try:
            while self._allowed:
                runner = await self._ask_for_builds()
                if runner is not None and runner is not self._found:
                    self._found = runner
                    self._on_change()
                if self._found is Runner.BUILDS and not watches:
                    reflector = builds_reflector(self._client, self._caches, self._clock)
                    watches.append(asyncio.create_task(restart_on_error(reflector.run, self._clock)))
                await self._clock.sleep(AGAIN_S if runner is not None else AFTER_ERROR_S)
        finally:
            await cancel(watches)

    async def _ask_for_builds(self) -> Runner | None:
        """Returns what runs builds in this cluster; None if it could not be asked."""
        try:
            served = await self._client.send(calls.list_kinds(BUILDS.api_version))
        except NotFound:
            return Runner.JOBS
        except (KubeError, DecodeError):
            return None
        # OpenShift's Build capability is optional, so the group version may be served without Builds.
        return Runner.BUILDS if any(resource.plural == BUILDS.plural for resource in served) else Runner.JOBS
