"""Reads who installed the cluster from the installers' ConfigMaps in `openshift-config`; retries until it is known."""

from __future__ import annotations

from collections.abc import Callable

from kubekit.api.codec import DecodeError
from kubekit.api.core_v1 import ConfigMap
from kubekit.kube import calls
from kubekit.kube.api_errors import KubeError, NotFound
from kubekit.kube.client import Client
from kubekit.kube.clock import Clock

NAMESPACE = "openshift-config"
# The ConfigMap of the installer, and that of tools that install from its manifests (docs/reference/upstream.md 9).
NOTES = (("openshift-install", "openshift-install"), ("openshift-install-manifests", "other"))
MISSING = "<missing>"
AGAIN_S = 300.0

OnInstaller = Callable[[str, str, str], None]


class Installer:
    """Reads the installers' ConfigMaps, which never change, and calls `on_installer(type, version, invoker)` once."""

    def __init__(self, client: Client, clock: Clock, on_installer: OnInstaller) -> None:
        self._client = client
        self._clock = clock
        self._on_installer = on_installer

    async def run(self) -> None:
        """Reads the ConfigMaps until there is an answer."""
        while not await self._read_notes():
            await self._clock.sleep(AGAIN_S)

    async def _read_notes(self) -> bool:
        """Reads who installed the cluster and reports it; returns whether the cluster could be asked."""
        try:
            for name, kind in NOTES:
                if (note := await self._note(name)) is not None:
                    self._on_installer(kind, note.data.get("version", MISSING), note.data.get("invoker", MISSING))
                    return True
        except (KubeError, DecodeError):
            return False
        self._on_installer("", "", "")
        return True

    async def _note(self, name: str) -> ConfigMap | None:
        try:
            return await self._client.send(calls.get(ConfigMap, name, NAMESPACE))
        except NotFound:
            return None
