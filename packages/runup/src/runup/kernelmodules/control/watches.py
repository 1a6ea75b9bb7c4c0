"""Watches beyond the caches: how the cluster can build images, and the Secrets and ConfigMaps of Modules' namespaces.

Images are built by OpenShift Builds if the cluster serves them, else by Jobs. Of Secrets and ConfigMaps only the
metadata is requested, so that one that appears is read at once: what an answer needs of them is read by name.
ServiceAccounts are watched with their pull secrets: those of `builder` count for a Module that names none. Nothing is
watched while there is no validation. What may not be watched is looked at every three minutes, like registries.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Any

from msgspec.structs import replace

from kubekit.api.codec import DecodeError
from kubekit.api.core_v1 import ConfigMap, ServiceAccount
from kubekit.api.meta_v1 import NamespacedName, Object, ObjectMeta, key_of
from kubekit.api.scheme import Resource, resource_of
from kubekit.kube import calls
from kubekit.kube.api_errors import KubeError, NotFound
from kubekit.kube.cache import Cache
from kubekit.kube.client import Client
from kubekit.kube.clock import Clock
from kubekit.kube.watch import Reflector
from runup.api.build_v1 import Build
from runup.kernelmodules.control.answer_cache import SECRETS
from runup.kernelmodules.control.caches import Caches, builds_reflector
from runup.kernelmodules.control.registries import BUILDER
from runup.kernelmodules.decide import validation_status
from runup.kernelmodules.decide.external_queries import BUILDER_ACCOUNT
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


ACCOUNTS = resource_of(ServiceAccount)
KINDS = (SECRETS, resource_of(ConfigMap), ACCOUNTS)
# Half an hour to an hour, as each watch that ends costs a request.
WATCH_S = 1800


class InputWatches:
    """The watches of one process. `changed` is called with kind and name of each object that changes.

    A pull secret of a ServiceAccount `builder` is also a change of that account.
    """

    def __init__(
        self, client: Client, caches: Caches, clock: Clock, changed: Callable[[str, NamespacedName], None]
    ) -> None:
        self._client = client
        self._caches = caches
        self._clock = clock
        self._changed = changed
        self._watched: dict[tuple[str, str], asyncio.Task[None]] = {}
        # The names of the builders' pull secrets, by namespace.
        self._pull_secrets: dict[str, frozenset[str]] = {}
        self._woken = asyncio.Event()
        for cache in (caches.modules, caches.validations, caches.ocps):
            cache.add_listener(lambda *_: self._woken.set())

    async def run(self) -> None:
        """Follows the namespaces of the Modules until cancelled."""
        try:
            while True:
                self._woken.clear()
                await self._watch_namespaces(self._namespaces())
                await self._woken.wait()
        finally:
            await cancel(tuple(self._watched.values()))

    def _namespaces(self) -> Iterable[str]:
        if not self._caches.names():
            return ()
        return {module.metadata.namespace for module in validation_status.live_modules(self._caches.modules.all())}

    async def _watch_namespaces(self, namespaces: Iterable[str]) -> None:
        """Watches the inputs in these namespaces, and stops to watch those in others."""
        wanted_watches = {(resource.kind, namespace): resource for resource in KINDS for namespace in namespaces}
        unwanted = [self._watched.pop(key) for key in [*self._watched] if key not in wanted_watches]
        for namespace in self._pull_secrets.keys() - {namespace for _, namespace in wanted_watches}:
            del self._pull_secrets[namespace]
        await cancel(unwanted)
        for (kind, namespace), resource in wanted_watches.items():
            if (kind, namespace) not in self._watched:
                reflector = self._reflector(resource, namespace)
                task = asyncio.create_task(restart_on_error(reflector.run, self._clock))
                self._watched[(kind, namespace)] = task

    def _reflector(self, resource: Resource, namespace: str) -> Reflector[Any]:
        """Returns the watch of one kind in one namespace, which reports each change of an object."""
        kind = ServiceAccount if resource == ACCOUNTS else Object
        cache: Cache[Any] = Cache(kind, keep=_keep_name_only)
        on_change = self._account_changed if resource == ACCOUNTS else self._object_changed(resource)
        cache.add_listener(on_change)
        return Reflector(
            self._client, kind, cache, namespace=namespace, clock=self._clock, resource=resource, watch_s=WATCH_S
        )

    def _object_changed(self, resource: Resource) -> Callable[[object, Object | None, Object | None], None]:
        """Returns a listener that reports changed objects, and the builder's account with its pull secrets."""

        def report_change(_change: object, old: Object | None, new: Object | None) -> None:
            """Reports the changed object, and the builder account if it is one of its pull secrets."""
            if (obj := new or old) is None:
                return
            key = key_of(obj)
            self._changed(resource.kind, key)
            if resource == SECRETS and key.name in self._pull_secrets.get(key.namespace, ()):
                self._changed(BUILDER_ACCOUNT, NamespacedName(key.namespace, BUILDER))

        return report_change

    def _account_changed(self, _change: object, old: ServiceAccount | None, new: ServiceAccount | None) -> None:
        """Reports the builder's account if its list of pull secrets changed."""
        account = new or old
        if account is None or account.metadata.name != BUILDER:
            return
        key = key_of(account)
        names = frozenset(secret.name for secret in new.image_pull_secrets) if new is not None else frozenset()
        # Labels and tokens of an account change, too; only another list of pull secrets is another answer.
        if names != self._pull_secrets.get(key.namespace, frozenset()):
            self._pull_secrets[key.namespace] = names
            self._changed(BUILDER_ACCOUNT, key)


def _keep_name_only(obj: Any) -> Any:
    """Returns the object with only its name, namespace, UID and resourceVersion."""
    metadata = obj.metadata
    metadata_kept = ObjectMeta(
        name=metadata.name,
        namespace=metadata.namespace,
        uid=metadata.uid,
        resource_version=metadata.resource_version,
    )
    return replace(obj, metadata=metadata_kept)
