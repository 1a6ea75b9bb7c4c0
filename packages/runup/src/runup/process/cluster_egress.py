"""Reads how servers outside of the cluster are reached: the status of Proxy `cluster`, and the trusted authorities.

The authorities are key `ca-bundle.crt` of ConfigMap `openshift-config-managed/trusted-ca-bundle`, which has those of
the system and those of the administrator. Where the cluster has no Proxy, the environment counts, into which the
platform puts the same values (annotation `config.openshift.io/inject-proxy`). `EgressWatch` follows both objects;
`read_egress` reads them once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from kubekit.api.codec import DecodeError
from kubekit.api.core_v1 import ConfigMap
from kubekit.api.meta_v1 import NamespacedName
from kubekit.api.scheme import Resource
from kubekit.http.proxies import Egress, Proxies
from kubekit.kube import calls
from kubekit.kube.api_errors import KubeError, NotFound
from kubekit.kube.cache import Cache
from kubekit.kube.client import Client
from kubekit.kube.clock import Clock
from kubekit.kube.watch import NO_API, Reflector
from runup.api.owned_v1 import Configuration
from runup.process.leader_election import restart_on_error

PROXY = Resource(group="config.openshift.io", version="v1", kind="Proxy", plural="proxies", namespaced=False)
_CLUSTER = NamespacedName("", "cluster")
BUNDLE = NamespacedName("openshift-config-managed", "trusted-ca-bundle")
BUNDLE_KEY = "ca-bundle.crt"
# Each end of a watch costs a request, and these objects hardly ever change.
WATCH_S = 3600

EgressSource = Callable[[], Awaitable[Egress]]
"""Returns how servers are reached now. Raises OSError if that is not known."""


async def environment_egress() -> Egress:
    """Returns the proxies of the environment and the system's authorities."""
    return Egress()


def egress_of(proxy: dict[str, Any] | None, bundle: dict[str, str]) -> Egress:
    """Returns how servers are reached by a Proxy's status, None if there is no Proxy, and the data of the bundle."""
    texts = [value if isinstance(value := (proxy or {}).get(key), str) else "" for key in _FIELDS]
    return Egress(None if proxy is None else Proxies(*texts), bundle.get(BUNDLE_KEY, ""))


_FIELDS = ("httpProxy", "httpsProxy", "noProxy")


async def read_egress(client: Client, notes: list[str]) -> Egress:
    """Returns how servers are reached; the environment replaces settings that could not be read."""
    proxy: dict[str, Any] | None = None
    bundle: dict[str, str] = {}
    try:
        proxy = (await client.send(calls.get_raw(PROXY, _CLUSTER.name))).get("status") or {}
    except NotFound:
        pass
    except (KubeError, DecodeError) as error:
        notes.append(f"Proxy cluster could not be read: {error}")
    try:
        bundle = (await client.send(calls.get(ConfigMap, BUNDLE.name, BUNDLE.namespace))).data
    except NotFound:
        pass
    except (KubeError, DecodeError) as error:
        notes.append(f"ConfigMap {BUNDLE} could not be read: {error}")
    return egress_of(proxy, bundle)


class EgressWatch:
    """Follows Proxy `cluster` and the trusted authorities; `changed` is called when one of them has changed."""

    def __init__(self, client: Client, clock: Clock, changed: Callable[[], None]) -> None:
        self._proxies: Cache[Configuration] = Cache(Configuration)
        self._bundles: Cache[ConfigMap] = Cache(ConfigMap)
        self._clock = clock
        self._news = asyncio.Event()
        self._reflectors = (
            Reflector(
                client,
                Configuration,
                self._proxies,
                field_selector=f"metadata.name={_CLUSTER.name}",
                clock=clock,
                resource=PROXY,
                watch_s=WATCH_S,
            ),
            Reflector(
                client,
                ConfigMap,
                self._bundles,
                namespace=BUNDLE.namespace,
                field_selector=f"metadata.name={BUNDLE.name}",
                clock=clock,
                watch_s=WATCH_S,
            ),
        )
        for cache in (self._proxies, self._bundles):
            cache.add_state_listener(self._news.set)
            cache.add_listener(lambda *_: changed())

    async def run(self) -> None:
        """Follows both objects until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            for reflector in self._reflectors:
                tasks.create_task(restart_on_error(reflector.run, self._clock))

    async def current(self) -> Egress:
        """Returns how servers are reached now, once both objects were read.

        Raises OSError if one cannot be read: without its proxy, a request would go where it must not, or nowhere.
        """
        for cache, name in ((self._proxies, "Proxy cluster"), (self._bundles, f"ConfigMap {BUNDLE}")):
            while not cache.synced and cache.error is None:
                self._news.clear()
                await self._news.wait()
            if not cache.synced and not str(cache.error).startswith(NO_API):
                raise OSError(f"{name} could not be read: {cache.error}")
            for bad in cache.undecoded:
                raise OSError(f"{name} could not be read: {bad}")
        proxy, bundle = self._proxies.get(_CLUSTER), self._bundles.get(BUNDLE)
        return egress_of(proxy.status if proxy is not None else None, dict(bundle.data) if bundle is not None else {})
