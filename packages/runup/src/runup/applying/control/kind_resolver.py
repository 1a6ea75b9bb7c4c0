"""Maps group, version and kind to a resource: from the release's CustomResourceDefinitions, else by API discovery.

Answers of the server are cached; `forget` drops one that turned out to be out of date.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any

from kubekit.api import codec
from kubekit.api.scheme import Resource
from kubekit.kube import calls
from kubekit.kube.api_errors import NotFound
from kubekit.kube.client import Client
from runup.applying.decide.health import DEFINITION
from runup.release.decide.manifest import Manifest

Known = dict[tuple[str, str, str], Resource]


class ResourceDiscovery:
    """The resources of one cluster. Discovery asks for each group and version once, however many callers wait."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._defined: Known = {}
        self._asked: dict[str, asyncio.Task[Known]] = {}

    def define(self, manifests: Iterable[Manifest]) -> None:
        """Stores the kinds that CustomResourceDefinitions in `manifests` define, which may not be served yet."""
        self._defined = {}
        for manifest in manifests:
            if (manifest.identity.group, manifest.identity.kind) == DEFINITION:
                self._defined |= kinds_of_definition(manifest.object)

    def defines(self, group: str, kind: str) -> bool:
        """Returns whether the release itself defines that kind."""
        return any((definition[0], definition[2]) == (group, kind) for definition in self._defined)

    async def resource(self, api_version: str, kind: str) -> Resource | None:
        """Returns the resource of that kind, None if the server does not serve it; raises KubeError."""
        group, _, version = api_version.rpartition("/")
        if defined := self._defined.get((group, version, kind)):
            return defined
        if api_version not in self._asked:
            self._asked[api_version] = asyncio.create_task(self._discover(api_version))
        try:
            # Shielded, because other callers may wait for the same request when this one is cancelled.
            return (await asyncio.shield(self._asked[api_version])).get((group, version, kind))
        except BaseException:
            self.forget(api_version)
            raise

    def forget(self, api_version: str) -> None:
        """Drops the cached answer for `api_version`, so that the next call asks the server."""
        self._asked.pop(api_version, None)

    async def _discover(self, api_version: str) -> Known:
        """Returns the kinds that the server serves in `api_version`; none if it does not know the version."""
        root = "/apis/" if "/" in api_version else "/api/"
        try:
            data: bytes = await self._client.send(calls.get_path(f"{root}{api_version}"))
        except NotFound:
            return {}
        body = codec.decode(dict[str, Any], data)
        group, _, version = api_version.rpartition("/")
        return {
            (group, version, entry["kind"]): Resource(
                group=group,
                version=version,
                kind=entry["kind"],
                plural=entry["name"],
                namespaced=bool(entry.get("namespaced")),
            )
            for entry in body.get("resources") or ()
            # Discovery lists subresources, too, for example `deployments/status`.
            if "/" not in entry["name"]
        }


def kinds_of_definition(obj: dict[str, Any]) -> Known:
    """Returns the served kinds of a CustomResourceDefinition."""
    spec = obj.get("spec") or {}
    group, names = spec.get("group", ""), spec.get("names") or {}
    kind, plural = names.get("kind", ""), names.get("plural", "")
    return {
        (group, version["name"], kind): Resource(
            group=group, version=version["name"], kind=kind, plural=plural, namespaced=spec.get("scope") == "Namespaced"
        )
        for version in spec.get("versions") or ()
        if isinstance(version, dict) and version.get("served") and version.get("name")
    }
