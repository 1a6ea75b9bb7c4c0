"""Asks a cluster by which resources it serves kinds, once each."""

from __future__ import annotations

from typing import Any

from kubekit.api import codec
from kubekit.api.scheme import Resource
from kubekit.kube import calls
from kubekit.kube.api_errors import NotFound
from kubekit.kube.client_sync import SyncClient


class ServedKinds:
    """The resources of one cluster. `forget` after a definition was applied."""

    def __init__(self, client: SyncClient) -> None:
        self._client = client
        self._served: dict[str, tuple[Resource, ...]] = {}
        self._groups: dict[str, str] | None = None

    def resource(self, api_version: str, kind: str) -> Resource | None:
        """Returns the resource of that kind, None if the server does not serve it. Raises KubeError."""
        if api_version not in self._served:
            try:
                self._served[api_version] = self._client.send(calls.list_kinds(api_version))
            except NotFound:
                self._served[api_version] = ()
        return next((served for served in self._served[api_version] if served.kind == kind), None)

    def preferred(self, group: str, kind: str) -> Resource | None:
        """Returns the resource in the version that the server prefers, None if it does not serve it."""
        version = "v1" if not group else self.groups.get(group)
        return self.resource(version, kind) if version else None

    @property
    def groups(self) -> dict[str, str]:
        """The preferred apiVersion of each group."""
        if self._groups is None:
            listed = codec.decode(dict[str, Any], self._client.send(calls.get_path("/apis")))
            self._groups = {
                str(group["name"]): str(group["preferredVersion"]["groupVersion"]) for group in listed.get("groups", ())
            }
        return self._groups

    def forget(self) -> None:
        """Drops every answer, so that the next question is asked of the server."""
        self._served.clear()
        self._groups = None
