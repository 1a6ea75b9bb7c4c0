"""The releases at hand: the operator's own, and those that were asked for, loaded beside everything else.

Their state is observed like anything else. Few are kept: a loaded release is megabytes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import structlog

from kubekit.kube.clock import Clock
from runup.api.config_v1 import Release
from runup.applying.control.payloads import NotLoaded, Payloads
from runup.applying.decide.progress import Loading
from runup.process.leading import cancel
from runup.release.decide.payload import Payload

log = structlog.get_logger("payload")
# Besides the operator's own: the one that is being applied, and one that is asked for.
MOST_KEPT = 2


class Loads:
    """`states` by pull spec; `wake` is called when one of them changed."""

    def __init__(self, payloads: Payloads, clock: Clock, wake: Callable[[], None], *, image: str, own: Payload) -> None:
        self.states: dict[str, Loading] = {image: Loading(payload=own)}
        self._own = image
        self._payloads = payloads
        self._clock = clock
        self._wake = wake
        self._tasks: dict[str, asyncio.Task[None]] = {}

    def load(self, release: Release) -> None:
        """Start to load `release`, unless it is loaded or on its way."""
        known = self.states.get(release.image)
        if known is not None and (known.running or known.payload is not None):
            return
        self._forget_one()
        # What went wrong last time is told until it is known to have changed.
        before = known or Loading()
        self.states[release.image] = Loading(running=True, reason=before.reason, error=before.error, at=before.at)
        self._tasks[release.image] = asyncio.create_task(self._load(release))

    def payload(self, image: str) -> Payload | None:
        """The release of that pull spec, None where it is not loaded."""
        state = self.states.get(image)
        return state.payload if state is not None else None

    async def close(self) -> None:
        """Load nothing any more."""
        await cancel(list(self._tasks.values()))
        self._tasks.clear()

    async def _load(self, release: Release) -> None:
        image = release.image
        try:
            payload = await self._payloads.load(release)
        except NotLoaded as error:
            log.warning("a release could not be loaded", image=image, reason=error.reason, error=error.message)
            self._failed(image, error.reason, error.message)
        except Exception as error:
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

    def _forget_one(self) -> None:
        """The oldest one goes, for the one that is asked for now."""
        others = [image for image, state in self.states.items() if image != self._own and not state.running]
        for image in others[: max(len(others) - MOST_KEPT + 1, 0)]:
            del self.states[image]
