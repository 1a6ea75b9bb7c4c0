"""Loads the requested releases in the background, and holds them beside the operator's own release.

The reconcile observes the state of each load. Only few releases are kept: a loaded release takes megabytes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import structlog

from kubekit.kube.clock import Clock
from runup.api.config_v1 import Release
from runup.applying.control.payloads import NotLoaded, ReleaseLoader
from runup.applying.decide.progress import Loading
from runup.process.leader_election import cancel
from runup.release.decide.payload import Payload

log = structlog.get_logger("payload")
# Besides the operator's own: the release that is being applied, and one that is requested.
MAX_LOADED_RELEASES = 2


class ReleaseLoads:
    """The loads of releases; `states` is keyed by pull spec, and `wake` is called when a load has ended."""

    def __init__(
        self, payloads: ReleaseLoader, clock: Clock, wake: Callable[[], None], *, image: str, own_payload: Payload
    ) -> None:
        self.states: dict[str, Loading] = {image: Loading(payload=own_payload)}
        self._own = image
        self._payloads = payloads
        self._clock = clock
        self._wake = wake
        self._tasks: dict[str, asyncio.Task[None]] = {}

    def load(self, release: Release, *, applied: str = "") -> None:
        """Starts to load `release`, unless it is loaded or being loaded.

        `applied` is the pull spec of the release that is being applied, which is kept.
        """
        load_state = self.states.get(release.image)
        if load_state is not None and (load_state.running or load_state.payload is not None):
            return
        self._make_room(release.image, applied)
        # The last error stays visible until this attempt has ended.
        before = load_state or Loading()
        self.states[release.image] = Loading(running=True, reason=before.reason, error=before.error, at=before.at)
        self._tasks[release.image] = asyncio.create_task(self._load_release(release))

    def payload(self, image: str) -> Payload | None:
        """Returns the release of that pull spec, None if it is not loaded."""
        state = self.states.get(image)
        return state.payload if state is not None else None

    async def close(self) -> None:
        """Cancels all loads."""
        await cancel(list(self._tasks.values()))

    async def _load_release(self, release: Release) -> None:
        """Loads one release and records the result; a failure of any kind is recorded too."""
        image = release.image
        try:
            payload = await self._payloads.load(release)
        except NotLoaded as error:
            log.warning("a release could not be loaded", image=image, reason=error.reason, error=error.message)
            self._failed(image, error.reason, error.message)
        except Exception as error:
            # A bug must not leave the load `running` for ever, so it is reported like any other failure.
            log.exception("loading a release failed", image=image)
            self._failed(image, "LoadPayload", f"{type(error).__name__}: {error}")
        else:
            log.info("loaded", image=image, version=payload.version, manifests=len(payload.manifests))
            self.states[image] = Loading(payload=payload)
        finally:
            self._tasks.pop(image, None)
            self._wake()

    def _failed(self, image: str, reason: str, message: str) -> None:
        self.states[image] = Loading(reason=reason, error=message, at=self._clock.now())

    def _make_room(self, image: str, applied: str) -> None:
        """Drops the oldest releases but `applied`, so that there is room for `image`."""
        ended = [each for each, state in self.states.items() if each not in (self._own, image) and not state.running]
        removable_images = [each for each in ended if each != applied]
        for each in removable_images[: max(len(ended) - MAX_LOADED_RELEASES + 1, 0)]:
            del self.states[each]
