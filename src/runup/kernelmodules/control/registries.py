"""Credentials and mirrors for the registries of kernel modules' images: those of the cluster's nodes, or given ones.

In: the namespace and name of a Module's pull secret. Out: an `Access`, and notes of what could not be read. With such a
note, a rejection by the registry says nothing about the image, because the right credentials may exist.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from kubekit.api.core_v1 import ServiceAccount
from kubekit.api.scheme import resource_of
from kubekit.kube import calls
from kubekit.kube.client import Client
from kubekit.kube.errors import KubeError, NotFound
from kubekit.oci.access import Access
from kubekit.oci.credentials import AuthFile, Credentials
from kubekit.oci.errors import BadCredentials
from runup.release.control.registry_access import (
    MIRROR_KINDS,
    TAG_MIRRORS,
    cluster_credentials,
    cluster_mirrors,
    secret_logins,
)

BUILDER = "builder"
"""The ServiceAccount whose pull secrets count for a Module without one (Kernel Module Management, internal/auth)."""

ANSWER_S = 10.0
"""The timeout of one request to a registry, in seconds, so that an abandoned thread ends soon."""


class Registries(Protocol):
    """A source of registry credentials and mirrors."""

    async def access(self, namespace: str, secret: str, notes: list[str]) -> Access:
        """Returns the access for images of Modules in `namespace` (empty: the cluster's own); adds to `notes`."""
        ...


@dataclass(frozen=True, slots=True)
class GivenRegistries:
    """Registries with the `given` access, such as a command line's, and nothing from the cluster."""

    given: Access

    async def access(self, namespace: str, secret: str, notes: list[str]) -> Access:  # noqa: ARG002
        """Returns the given access, whatever the Module (`Registries.access`)."""
        return self.given


@dataclass(frozen=True, slots=True)
class ClusterRegistries:
    """Registries with the credentials and mirrors of the cluster's nodes.

    The Module's pull secret (else the builder's) comes first, then the cluster's; `also` comes last, such as a command
    line's credential file.
    """

    client: Client
    also: Access = field(default_factory=Access)

    async def access(self, namespace: str, secret: str, notes: list[str]) -> Access:
        """Returns the access with the cluster's credentials (`Registries.access`); raises BadCredentials."""
        files = [file async for file in self._files(namespace, secret, notes)]
        files += (await cluster_credentials(self.client, notes)).files
        mirrors = await cluster_mirrors(self.client, notes, (*MIRROR_KINDS, TAG_MIRRORS))
        return replace(
            self.also,
            credentials=Credentials((*files, *self.also.credentials.files)),
            mirrors=(*mirrors, *self.also.mirrors),
            timeout_s=min(self.also.timeout_s, ANSWER_S),
        )

    async def _files(self, namespace: str, secret: str, notes: list[str]) -> AsyncIterator[AuthFile]:
        if not namespace:
            return
        names = [secret] if secret else await self._builders(namespace, notes)
        for name in names:
            if file := await self._file(namespace, name, notes):
                yield file

    async def _file(self, namespace: str, name: str, notes: list[str]) -> AuthFile | None:
        try:
            return await secret_logins(self.client, namespace, name)
        except NotFound:
            notes.append(f"the pull secret {namespace}/{name} is not there")
        except KubeError as error:
            notes.append(f"the pull secret {namespace}/{name} could not be read: {error.message}")
        except BadCredentials as error:
            notes.append(error.message)
        except ValueError as error:  # a name that would change the request's path
            notes.append(f"the pull secret {namespace}/{name} could not be read: {error}")
        return None

    async def _builders(self, namespace: str, notes: list[str]) -> list[str]:
        try:
            account = await self.client.send(calls.get_raw(resource_of(ServiceAccount), BUILDER, namespace))
        except NotFound:
            return []
        except KubeError as error:
            notes.append(f"the ServiceAccount {namespace}/{BUILDER} could not be read: {error.message}")
            return []
        return list(dict.fromkeys(names_of(account.get("imagePullSecrets"))))


def names_of(references: Any) -> Iterator[str]:
    """Yields the names in a list of references; skips what has none."""
    for reference in references if isinstance(references, list) else ():
        if isinstance(reference, dict) and isinstance(name := reference.get("name"), str) and name:
            yield name
