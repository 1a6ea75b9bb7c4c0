"""Watches the cluster's values that are put into objects of a release: proxy, TLS profile, internal API address.

Only what the manifests ask for is watched.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any
from urllib.parse import urlsplit

from kubekit.api.meta_v1 import NamespacedName
from kubekit.api.scheme import Resource
from kubekit.kube.cache import Cache
from kubekit.kube.client import Client
from kubekit.kube.clock import Clock
from kubekit.kube.watch import Reflector
from runup.api.owned_v1 import Configuration
from runup.applying.control.object_watches import WATCH_S
from runup.applying.decide.rendering import INJECT_PROXY, INJECT_TLS, ClusterValues, Proxy
from runup.applying.decide.task import Task
from runup.process import leader_election, tls_profile
from runup.process.cluster_egress import PROXY

_CLUSTER = NamespacedName("", "cluster")
_HTTPS = "443"


def _config(kind: str, plural: str) -> Resource:
    return Resource(group="config.openshift.io", version="v1", kind=kind, plural=plural, namespaced=False)


INFRASTRUCTURE = _config("Infrastructure", "infrastructures")


class ClusterValuesWatcher:
    """The current `cluster_values`; `changed` is called when they change.

    `operator` is namespace and name of the operator's own Deployment.
    """

    def __init__(self, client: Client, clock: Clock, operator: tuple[str, str], changed: Callable[[], None]) -> None:
        self.cluster_values = ClusterValues(operator=operator)
        self._client = client
        self._clock = clock
        self._operator = operator
        self._changed = changed
        self._owner_uid = ""
        self._caches: dict[Resource, Cache[Configuration]] = {}
        self._tasks: list[asyncio.Task[None]] = []

    def wanted(self, tasks: Sequence[Task], owner_uid: str) -> None:
        """Starts to watch the objects that `tasks` need."""
        self._owner_uid = owner_uid
        for resource in resources_for(tasks, self._operator):
            if resource not in self._caches:
                self._watch_kind(resource)
        self.cluster_values = self._now()

    async def settled(self) -> None:
        """Waits until each watch has its first list or an error."""
        for cache in self._caches.values():
            changed = asyncio.Event()
            cache.add_state_listener(changed.set)
            while not cache.synced and cache.error is None:
                changed.clear()
                await changed.wait()
        self.cluster_values = self._now()

    async def close(self) -> None:
        """Stops all watches."""
        await leader_election.cancel(self._tasks)
        self._tasks.clear()
        self._caches.clear()

    def _watch_kind(self, resource: Resource) -> None:
        """Starts to watch the object `cluster` of one kind of configuration."""
        cache: Cache[Configuration] = Cache(Configuration)
        self._caches[resource] = cache
        cache.add_listener(lambda *_: self._update_values())
        reflector = Reflector(
            self._client,
            Configuration,
            cache,
            field_selector="metadata.name=cluster",
            clock=self._clock,
            resource=resource,
            watch_s=WATCH_S,
        )
        self._tasks.append(asyncio.create_task(leader_election.restart_on_error(reflector.run, self._clock)))

    def _update_values(self) -> None:
        new = self._now()
        if new != self.cluster_values:
            self.cluster_values = new
            self._changed()

    def _now(self) -> ClusterValues:
        """Returns the current values of the caches, empty if not configured."""
        proxy = self._cluster_object(PROXY)
        status = proxy.status if proxy is not None else {}
        host, port = self._internal_api_server()
        api_server = self._cluster_object(tls_profile.API_SERVER)
        return ClusterValues(
            owner_uid=self._owner_uid,
            proxy=Proxy(*(_text_value(status, key) for key in ("httpProxy", "httpsProxy", "noProxy"))),
            operator=self._operator,
            internal_host=host,
            internal_port=port,
            tls=tls_profile.profile_of({"spec": api_server.spec}) if api_server is not None else None,
        )

    def _cluster_object(self, resource: Resource) -> Configuration | None:
        cache = self._caches.get(resource)
        return cache.get(_CLUSTER) if cache is not None else None

    def _internal_api_server(self) -> tuple[str, str]:
        """Returns host and port of the internal API server, two empty strings if they are not known."""
        infrastructure = self._cluster_object(INFRASTRUCTURE)
        url = urlsplit(_text_value(infrastructure.status, "apiServerInternalURI") if infrastructure is not None else "")
        try:
            return (url.hostname or "", str(url.port or _HTTPS)) if url.hostname else ("", "")
        except ValueError:  # the port is not a valid number
            return "", ""


def resources_for(tasks: Sequence[Task], operator: tuple[str, str]) -> set[Resource]:
    """Returns the resources whose values the manifests of `tasks` are rendered with."""
    resources: set[Resource] = set()
    for task in tasks:
        annotations = task.manifest.annotations or {}
        if INJECT_PROXY in annotations:
            resources.add(PROXY)
        if annotations.get(INJECT_TLS) == "true":
            resources.add(tls_profile.API_SERVER)
        if (task.identity.namespace, task.identity.name) == operator and task.identity.kind == "Deployment":
            resources.add(INFRASTRUCTURE)
    return resources


def _text_value(values: dict[str, Any], key: str) -> str:
    value = values.get(key)
    return value if isinstance(value, str) else ""
