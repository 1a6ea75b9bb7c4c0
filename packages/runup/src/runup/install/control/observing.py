"""Observes a cluster before an installation: its API groups, the owners of objects, and what is installed already."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from kubekit.api import codec
from kubekit.api.scheme import Resource
from kubekit.kube import calls
from kubekit.kube.api_errors import Forbidden, KubeError
from kubekit.kube.client_sync import SyncClient
from runup.install.control.sets import ObjectSets
from runup.install.decide.component import OPERATOR, Component
from runup.install.decide.inventory import PART_OF
from runup.install.decide.objects import Objects, definition, identity_of
from runup.install.decide.refusals import CLUSTER_VERSION, VALIDATIONS, Cluster, Workload

JSON = dict[str, Any]
DEPLOYMENT = Resource("apps", "v1", "Deployment", "deployments", namespaced=True)
SLICE = Resource("discovery.k8s.io", "v1", "EndpointSlice", "endpointslices", namespaced=True)


def server(client: SyncClient, sets: ObjectSets) -> Cluster:
    """Returns the server's version, API groups and ports. Raises KubeError."""
    version = codec.decode(dict[str, Any], client.send(calls.get_path("/version")))
    # Managed clusters call a minor version `29+`.
    numbers = [int("".join(filter(str.isdigit, str(version.get(key, "")))) or 0) for key in ("major", "minor")]
    return Cluster((numbers[0], numbers[1]), frozenset(sets.kinds.groups), api_ports=_api_ports(client))


def state(client: SyncClient, sets: ObjectSets, component: Component, objects: Objects, cluster: Cluster) -> Cluster:
    """Returns `cluster` with the owners of the objects of `component`, and where it is installed. Raises KubeError."""
    shared = [identity_of(obj) for obj in objects if definition(obj) or obj["kind"] == "Namespace"]
    shared += [identity for identity in (CLUSTER_VERSION, VALIDATIONS) if identity not in shared]
    workloads, reads = _workloads(client, component)
    return Cluster(
        version=cluster.version,
        groups=cluster.groups,
        owners=sets.owners(shared),
        workloads=workloads,
        installed=sets.installed(component.name),
        api_ports=cluster.api_ports,
        user_reads_workloads=reads,
    )


def _workloads(client: SyncClient, component: Component) -> tuple[tuple[Workload, ...], bool]:
    """Returns the Deployments with the component's name, and whether they may be listed at all."""
    try:
        listed = client.listing_raw(DEPLOYMENT).complete("Deployment")
    except Forbidden:
        if component == OPERATOR:
            return (), False
        raise
    return tuple(_workload(item) for item in listed if item["metadata"]["name"] == component.deployment), True


def _workload(obj: JSON) -> Workload:
    """Returns what is known of a Deployment or DaemonSet: its image, replicas and the set that it belongs to."""
    metadata, spec = obj["metadata"], obj["spec"]
    containers = spec["template"]["spec"]["containers"]
    return Workload(
        metadata["namespace"],
        metadata["name"],
        str(containers[0].get("image", "")),
        int(spec.get("replicas", 1)),
        (metadata.get("labels") or {}).get(PART_OF, ""),
    )


def _api_ports(client: SyncClient) -> tuple[int, ...]:
    """Returns the ports of the API server's own endpoints; the usual ones where they may not be read."""
    ports: set[int] = set()
    with suppress(KubeError, codec.DecodeError):
        selector = "kubernetes.io/service-name=kubernetes"
        for endpoint_slice in client.listing_raw(SLICE, "default", label_selector=selector).items:
            ports |= {int(port["port"]) for port in endpoint_slice.get("ports") or () if port.get("port")}
    return tuple(sorted(ports | {443, 6443}))
