"""Pulls a container's image by its pull policy, with back-off after failures."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from kubesandbox.node.place import NodeSettings
from kubesandbox.node.podspec import ContainerSpec
from kubesandbox.node.reporter import Reporter
from kubesandbox.node.unpacked_images import LocalImage, PullError

# Seconds for which a failed pull shows ErrImagePull before ImagePullBackOff, as until a kubelet's next sync.
_FIRST_SHOWN_S = 1.0


class Puller:
    """The image puller of one container, which also reports Events and waiting reasons."""

    def __init__(self, spec: ContainerSpec, reporter: Reporter, place: NodeSettings) -> None:
        self._spec = spec
        self._reporter = reporter
        self._images = place.images
        self._limits = place.backoff
        self._delays = place.backoff.delays()

    async def pull(self) -> LocalImage:
        """Returns the image. Raises PullError."""
        name = self._spec.image
        local_image = await self._find_local()
        if local_image is not None:
            return local_image
        self._reporter.event("Normal", "Pulling", f'Pulling image "{name}"', self._spec)
        image = await asyncio.to_thread(self._images.pull, name)
        self._reporter.event("Normal", "Pulled", f'Successfully pulled image "{name}"', self._spec)
        self._delays = self._limits.delays()
        return image

    async def _find_local(self) -> LocalImage | None:
        """Returns the image if the node has it and the pull policy allows its use. Raises PullError for Never."""
        name, policy = self._spec.image, self._spec.pull_policy
        if policy == "Always":
            return None
        local_image = await asyncio.to_thread(self._images.local, name)
        if local_image is not None:
            self._reporter.event("Normal", "Pulled", f'Container image "{name}" already present on machine', self._spec)
        elif policy == "Never":
            message = f'Container image "{name}" is not present with pull policy of Never'
            raise PullError(message, reason="ErrImageNeverPull")
        return local_image

    async def wait_after(self, error: PullError, pause: Callable[[float], Awaitable[bool]]) -> None:
        """Reports the error, then waits for the back-off; `pause` returns False once the pod is stopped."""
        delay = next(self._delays)
        self._report_waiting(error.reason, error.message)
        for message in (f'Failed to pull image "{self._spec.image}": {error.message}', f"Error: {error.reason}"):
            self._reporter.event("Warning", "Failed", message, self._spec)
        if error.reason != "ErrImagePull":  # the registry was not contacted, so there is no back-off from it
            await pause(delay)
            return
        first_delay_s = min(_FIRST_SHOWN_S, delay / 2)
        if await pause(first_delay_s):
            text = f'Back-off pulling image "{self._spec.image}"'
            self._report_waiting("ImagePullBackOff", f"{text}: ErrImagePull: {error.message}")
            self._reporter.event("Normal", "BackOff", text, self._spec)
            await pause(delay - first_delay_s)

    def _report_waiting(self, reason: str, message: str) -> None:
        self._reporter.put(self._reporter.record(self._spec.name).waiting(reason, message))
