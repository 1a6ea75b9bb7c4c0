"""Who installed the cluster, as installers leave it in ConfigMaps of `openshift-config`: asked until it is known."""

from __future__ import annotations

from collections.abc import Callable

from kubekit.api.codec import DecodeError
from kubekit.api.core_v1 import ConfigMap
from kubekit.kube import calls
from kubekit.kube.client import Client
from kubekit.kube.clock import Clock
from kubekit.kube.errors import KubeError, NotFound

NAMESPACE = "openshift-config"
# The installer's own note, and that of whoever takes its manifests and installs otherwise (cvo-behaviour 9).
NOTES = (("openshift-install", "openshift-install"), ("openshift-install-manifests", "other"))
AGAIN_S = 300.0

Tell = Callable[[str, str, str], None]


class Installer:
    """Calls `tell(type, version, invoker)` once; a note never changes."""

    def __init__(self, client: Client, clock: Clock, tell: Tell) -> None:
        self._client = client
        self._clock = clock
        self._tell = tell

    async def run(self) -> None:
        """Ask until there is an answer."""
        while not await self._asked():
            await self._clock.sleep(AGAIN_S)

    async def _asked(self) -> bool:
        try:
            for name, kind in NOTES:
                if (found := await self._note(name)) is not None:
                    self._tell(kind, found.data.get("version", ""), found.data.get("invoker", ""))
                    return True
        except (KubeError, DecodeError):
            return False
        self._tell("", "", "")
        return True

    async def _note(self, name: str) -> ConfigMap | None:
        try:
            return await self._client.send(calls.get(ConfigMap, name, NAMESPACE))
        except NotFound:
            return None
