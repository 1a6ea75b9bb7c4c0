"""Finds the networks of a cluster's Services: references that users write must not lead to addresses in them.

OpenShift lists these networks in its Network, Kubernetes 1.33 and later in ServiceCIDRs. A process inside a cluster
that has neither cannot tell a Service from another private address, so that all private networks count as theirs.
"""

from __future__ import annotations

import ipaddress
import os
from collections.abc import Iterable

from kubekit.api.scheme import Resource
from kubekit.http.addresses import Network
from kubekit.kube import calls
from kubekit.kube.api_errors import KubeError
from kubekit.kube.client import Client

NETWORKS = Resource("config.openshift.io", "v1", "Network", "networks", namespaced=False)
SERVICE_CIDRS = Resource("networking.k8s.io", "v1", "ServiceCIDR", "servicecidrs", namespaced=False)
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

    If they are not known: in a cluster, all private networks, with a note in `notes`; outside of one, none.
    """
    networks = await _of_openshift(client) or await _of_kubernetes(client)
    if networks or not is_inside():
        return networks
    notes.append(UNKNOWN)
    return PRIVATE


def is_inside() -> bool:
    """Returns whether this process runs in a cluster, where addresses of Services can be reached."""
    return bool(os.environ.get("KUBERNETES_SERVICE_HOST"))


async def _of_openshift(client: Client) -> tuple[Network, ...]:
    """Returns the service networks that Network cluster names; none if it cannot be read."""
    try:
        network = await client.send(calls.get_raw(NETWORKS, "cluster"))
    except KubeError:
        return ()
    return tuple(
        network_range
        for part in ("status", "spec")
        for network_range in read((network.get(part) or {}).get("serviceNetwork"))
    )


async def _of_kubernetes(client: Client) -> tuple[Network, ...]:
    """Returns the ranges of all ServiceCIDRs; none if they cannot be listed."""
    try:
        page = await client.send(calls.list_raw(SERVICE_CIDRS))
    except KubeError:
        return ()
    return tuple(network_range for item in page.items for network_range in read((item.get("spec") or {}).get("cidrs")))


def read(texts: object) -> Iterable[Network]:
    """Yields the networks in a list of texts; skips what is not one."""
    for text in texts if isinstance(texts, list | tuple) else ():
        try:
            yield ipaddress.ip_network(str(text), strict=False)
        except ValueError:
            continue
