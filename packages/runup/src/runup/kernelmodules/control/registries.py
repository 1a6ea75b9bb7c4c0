"""Finds the networks of a cluster's Services: references that users write must not lead to addresses in them.

OpenShift lists these networks in its Network, Kubernetes 1.33 and later in ServiceCIDRs. A process inside a cluster
that has neither cannot tell a Service from another private address, so that all private networks count as theirs.
"""

from __future__ import annotations

import ipaddress
import os
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import suppress
from typing import Any, Protocol

import msgspec
from msgspec.structs import replace

from kubekit.api.core_v1 import ServiceAccount
from kubekit.api.scheme import Resource, resource_of
from kubekit.http.addresses import Network
from kubekit.kube import calls
from kubekit.kube.api_errors import KubeError, NotFound
from kubekit.kube.client import Client
from kubekit.oci.access import Access
from kubekit.oci.credentials import AuthFile, Credentials
from kubekit.oci.registry_errors import BadCredentials
from runup.process.cluster_egress import read_egress
from runup.release.control import registry_access

NETWORKS = Resource(group="config.openshift.io", version="v1", kind="Network", plural="networks", namespaced=False)
SERVICE_CIDRS = Resource(
    group="networking.k8s.io", version="v1", kind="ServiceCIDR", plural="servicecidrs", namespaced=False
)
PRIVATE: tuple[Network, ...] = tuple(
    ipaddress.ip_network(text)
    for text in ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "fc00::/7")
)
UNKNOWN = (
    "which addresses the cluster's Services have is not known, so private addresses count as theirs: name the networks "
    "by --service-network, or list the registry by --inner-registry"
)


async def service_networks(client: Client, notes: list[str]) -> tuple[Network, ...]:
    """Returns the networks of the Services of `client`'s cluster.

    If they are unknown, returns all private networks in a cluster, with a note in `notes`, and none outside of one.
    """
    networks: list[Network] = []
    with suppress(KubeError):
        network = await client.send(calls.get_raw(NETWORKS, "cluster"))
        for part in ("status", "spec"):
            networks += read((network.get(part) or {}).get("serviceNetwork"))
    with suppress(KubeError):
        for item in (await client.send(calls.list_raw(SERVICE_CIDRS))).items if not networks else ():
            networks += read((item.get("spec") or {}).get("cidrs"))
    if networks or not is_inside():
        return tuple(networks)
    notes.append(UNKNOWN)
    return PRIVATE


def is_inside() -> bool:
    """Returns whether this process runs in a cluster, where addresses of Services can be reached."""
    return bool(os.environ.get("KUBERNETES_SERVICE_HOST"))


def read(texts: object) -> Iterable[Network]:
    """Yields the networks in a list of texts; skips invalid texts."""
    for text in texts if isinstance(texts, list | tuple) else ():
        try:
            yield ipaddress.ip_network(str(text), strict=False)
        except ValueError:
            continue


BUILDER = "builder"
"""The ServiceAccount whose pull secrets count for a Module without one (Kernel Module Management, internal/auth)."""

ANSWER_S = 10.0
"""The timeout of one request to a registry, in seconds, so that an abandoned thread ends soon."""


class Registries(Protocol):
    """A source of registry credentials and mirrors."""

    async def access(self, namespace: str, secret: str, notes: list[str], *, cluster: bool = True) -> Access:
        """Returns the access for images of Modules in `namespace` (empty: the cluster's own); adds to `notes`.

        Without `cluster`, the cluster's own logins are left out.
        """
        ...


class GivenRegistries(msgspec.Struct, frozen=True):
    """Registries with the `given` access, such as a command line's, and nothing from the cluster."""

    given: Access

    async def access(self, namespace: str, secret: str, notes: list[str], *, cluster: bool = True) -> Access:  # noqa: ARG002
        """Returns the given access, whatever the Module (`Registries.access`)."""
        return self.given


class ClusterRegistries(msgspec.Struct, frozen=True):
    """Registries with the credentials and mirrors of the cluster's nodes.

    The Module's pull secret (else the builder's) comes first, then the cluster's; `also` comes last, such as a command
    line's credential file. Proxies and authorities are the cluster's. Inner registries are those of `also`, those that
    it reaches by plain HTTP, and the mirrors: an administrator named each of them.
    """

    client: Client
    also: Access = msgspec.field(default_factory=Access)

    async def access(self, namespace: str, secret: str, notes: list[str], *, cluster: bool = True) -> Access:
        """Returns the access with the cluster's credentials (`Registries.access`); raises BadCredentials."""
        files = [file async for file in self._auth_files(namespace, secret, notes)]
        if cluster:
            files += (
                *(await registry_access.cluster_credentials(self.client, notes)).files,
                *self.also.credentials.files,
            )
        mirrors = (
            *await registry_access.cluster_mirrors(
                self.client, notes, (*registry_access.MIRROR_KINDS, registry_access.TAG_MIRRORS)
            ),
            *self.also.mirrors,
        )
        listed = (self.also.inner or frozenset()) | self.also.plain_http
        return replace(
            self.also,
            credentials=Credentials(tuple(files)),
            mirrors=mirrors,
            inner=listed | hosts_of(place for mirror in mirrors for place in mirror.mirrors),
            egress=await read_egress(self.client, notes),
            services=self.also.services or await service_networks(self.client, notes),
            timeout_s=min(self.also.timeout_s, ANSWER_S),
        )

    async def _auth_files(self, namespace: str, secret: str, notes: list[str]) -> AsyncIterator[AuthFile]:
        """Yields the credential files of a pull secret, or else of the builder's account."""
        if not namespace:
            return
        names = [secret] if secret else await self._builders(namespace, notes)
        for name in names:
            if file := await self._file(namespace, name, notes):
                yield file

    async def _file(self, namespace: str, name: str, notes: list[str]) -> AuthFile | None:
        """Returns the logins in a pull secret; None with a note if they could not be read."""
        try:
            return await registry_access.secret_logins(self.client, namespace, name)
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
        """Returns the names of the builder account's pull secrets; none with a note if it could not be read."""
        try:
            account = await self.client.send(calls.get_raw(resource_of(ServiceAccount), BUILDER, namespace))
        except NotFound:
            return []
        except KubeError as error:
            notes.append(f"the ServiceAccount {namespace}/{BUILDER} could not be read: {error.message}")
            return []
        return list(dict.fromkeys(names_of(account.get("imagePullSecrets"))))


def hosts_of(images: Iterable[str]) -> frozenset[str]:
    """Returns the registries in the names of images, repositories and registries."""
    return frozenset(image.partition("/")[0] for image in images) - {""}


def with_registries_of(access: Access, *images: str) -> Access:
    """Returns `access` for references of other people; the registries of `images` were named by an administrator."""
    return replace(access, inner=(access.inner or frozenset()) | access.plain_http | hosts_of(images))


def names_of(references: Any) -> Iterator[str]:
    """Yields the names in a list of references; skips what has none."""
    for reference in references if isinstance(references, list) else ():
        if isinstance(reference, dict) and isinstance(name := reference.get("name"), str) and name:
            yield name
