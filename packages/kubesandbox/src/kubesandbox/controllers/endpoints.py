"""The controller of a Service's EndpointSlices and Endpoints. Caches in, calls out.

The rules are those of Kubernetes' controllers (k8s.io/endpointslice and pkg/controller/endpoint). Not implemented are
topology hints, the annotation with the time of the change that triggered a write, and the mirroring of Endpoints.
"""

from __future__ import annotations

import hashlib
import ipaddress
from collections.abc import Iterable, Iterator
from typing import Any

import orjson

from kubekit.api.meta_v1 import NamespacedName, key_of
from kubekit.api.scheme import Resource
from kubekit.api.whole_v1 import WholeEndpoints, WholeEndpointSlice, WholePod, WholeService
from kubekit.kube import calls
from kubekit.kube.cache import Cache
from kubekit.kube.request import Call
from kubesandbox.controllers.controller_loop import Loop, Requeue
from kubesandbox.controllers.owned_pods import JSON, is_over, is_ready, owner_reference

SERVICES = Resource(group="", version="v1", kind="Service", plural="services", namespaced=True)
ENDPOINTS = Resource(group="", version="v1", kind="Endpoints", plural="endpoints", namespaced=True)
SLICES = Resource(
    group="discovery.k8s.io", version="v1", kind="EndpointSlice", plural="endpointslices", namespaced=True
)
SERVICE_NAME, HEADLESS = "kubernetes.io/service-name", "service.kubernetes.io/headless"
_SLICE_MANAGER = ("endpointslice.kubernetes.io/managed-by", "endpointslice-controller.k8s.io")
_MANAGER = ("endpoints.kubernetes.io/managed-by", "endpoint-controller")
# As --max-endpoints-per-slice.
_SLICE_SIZE = 100
_LOOK_S = 0.1


class ServiceEndpoints:
    """The controller, whose keys are those of Services."""

    name = "endpoints"

    def __init__(
        self,
        services: Cache[WholeService],
        pods: Cache[WholePod],
        endpoints: Cache[WholeEndpoints],
        slices: Cache[WholeEndpointSlice],
    ) -> None:
        self._services, self._pods, self._endpoints, self._slices = services, pods, endpoints, slices

    def calls(self, key: NamespacedName) -> Iterator[Call[Any] | Requeue]:
        """Yields the calls that make the addresses of a Service those of its pods."""
        if not all(cache.synced for cache in (self._services, self._pods, self._endpoints, self._slices)):
            yield Requeue(_LOOK_S)  # before the first lists, an object that is not in a cache may exist
            return
        service, current = self._services.get(key), self._endpoints.get(key)
        if service is None:
            # The garbage collector deletes the slices, which the Service owns.
            if current is not None and _MANAGER in current.metadata.labels.items():
                yield calls.delete(ENDPOINTS, key.name, key.namespace, uid=current.metadata.uid)
            return
        if not service.spec.get("selector") or service.spec.get("type") == "ExternalName":
            return
        pods = sorted(
            (pod for pod in self._pods.all() if has_address_in(pod, service)), key=lambda pod: pod.metadata.name
        )
        wanted = {body["metadata"]["name"]: body for body in slices_of(service, pods)}
        for slice_ in self._slices.all():
            if slice_.metadata.namespace == key.namespace and _is_slice_of(slice_, key.name):
                body = wanted.pop(slice_.metadata.name, None)
                if body is None:
                    yield calls.delete(SLICES, slice_.metadata.name, key.namespace, uid=slice_.metadata.uid)
                elif not _is_current(slice_, body, "endpoints", "ports"):
                    yield calls.replace(SLICES, body)
        yield from (calls.create(SLICES, body) for body in wanted.values())
        body = endpoints_of(service, pods)
        if current is None:
            yield calls.create(ENDPOINTS, body)
        elif not _is_current(current, body, "subsets"):
            yield calls.replace(ENDPOINTS, body)


def watch_services(loop: Loop, caches: tuple[Cache[Any], Cache[WholePod], Cache[Any], Cache[Any]]) -> None:
    """Queues Services that change, whose pods change, and whose addresses others change.

    The caches are those of Services, pods, Endpoints and EndpointSlices.
    """
    services, pods, endpoints, slices = caches

    def on_pod(_change: str, old: WholePod | None, new: WholePod | None) -> None:
        for service in services.all():
            if any(pod is not None and is_selected(pod, service) for pod in (old, new)):
                loop.queue.add(key_of(service))

    def on_slice(_change: str, old: WholeEndpointSlice | None, new: WholeEndpointSlice | None) -> None:
        for slice_ in filter(None, (old, new)):
            if name := slice_.metadata.labels.get(SERVICE_NAME):
                loop.queue.add(NamespacedName(slice_.metadata.namespace, name))

    loop.watch(services)
    loop.watch(endpoints)
    pods.add_listener(on_pod)
    slices.add_listener(on_slice)


def is_selected(pod: WholePod, service: WholeService) -> bool:
    """Returns whether the Service selects the pod."""
    selector = service.spec.get("selector") or {}
    return (
        bool(selector)
        and pod.metadata.namespace == service.metadata.namespace
        and selector.items() <= pod.metadata.labels.items()
    )


def has_address_in(pod: WholePod, service: WholeService) -> bool:
    """Returns whether the pod is among the endpoints of a Service, ready or not (`ShouldPodBeInEndpoints`)."""
    return is_selected(pod, service) and not is_over(pod) and bool(pod.status.get("podIPs") or pod.status.get("podIP"))


def slices_of(service: WholeService, pods: Iterable[WholePod]) -> Iterator[JSON]:
    """Yields the EndpointSlices of a Service: separate ones by family and by ports, at least one of each family."""
    families = service.spec.get("ipFamilies") or ["IPv4"]
    groups: dict[tuple[str, bytes], list[JSON]] = {}
    for pod in pods:
        ports = orjson.dumps(list(_ports_of(service, pod)))
        for family in families:
            if addresses := [ip for ip in _addresses(pod) if _family(ip) == family]:
                groups.setdefault((family, ports), []).append(_slice_endpoint(service, pod, addresses))
    for family in families:
        if not any(group == family for group, _ in groups):
            groups[family, b"[]"] = []
    for (family, ports), endpoints in groups.items():
        for start in range(0, max(1, len(endpoints)), _SLICE_SIZE):
            digest = hashlib.sha256(b"%s %d %s" % (family.encode(), start, ports)).hexdigest()[:5]
            metadata = service.metadata
            yield {
                "apiVersion": SLICES.api_version,
                "kind": SLICES.kind,
                "metadata": {
                    "name": f"{metadata.name}-{digest}",
                    "namespace": metadata.namespace,
                    "labels": {**_labels(service, *_SLICE_MANAGER), SERVICE_NAME: metadata.name},
                    "ownerReferences": [owner_reference(service, SERVICES)],
                },
                "addressType": family,
                "endpoints": endpoints[start : start + _SLICE_SIZE],
                "ports": orjson.loads(ports),
            }


def endpoints_of(service: WholeService, pods: Iterable[WholePod]) -> JSON:
    """Returns the Endpoints of a Service: one subset for each set of ports (`RepackSubsets`)."""
    publishes_all = bool(service.spec.get("publishNotReadyAddresses"))
    has_no_ports = not service.spec.get("ports") and service.spec.get("clusterIP") == "None"
    family = (service.spec.get("ipFamilies") or ["IPv4"])[0]
    subsets: dict[bytes, JSON] = {}
    for pod in pods:
        # Without the names that are empty: Endpoints leave them out, and EndpointSlices do not.
        ports = [{name: value for name, value in port.items() if value != ""} for port in _ports_of(service, pod)]
        address = next((ip for ip in _addresses(pod) if _family(ip) == family), None)
        is_leaving = pod.metadata.deletion_timestamp is not None and not publishes_all
        if address is None or is_leaving or not (ports or has_no_ports):
            continue
        subset = subsets.setdefault(orjson.dumps(ports), {})
        key = "addresses" if publishes_all or is_ready(pod) else "notReadyAddresses"
        subset.setdefault(key, []).append({"ip": address, **_pod_details(service, pod)})
        if ports:
            subset["ports"] = ports
    metadata = {
        "name": service.metadata.name,
        "namespace": service.metadata.namespace,
        "labels": _labels(service, *_MANAGER),
    }
    body = {"apiVersion": ENDPOINTS.api_version, "kind": ENDPOINTS.kind, "metadata": metadata}
    return {**body, "subsets": [subset for _, subset in sorted(subsets.items())]}


def _slice_endpoint(service: WholeService, pod: WholePod, addresses: list[str]) -> JSON:
    """Returns the endpoint of a pod (`podToEndpoint`)."""
    serving, terminating = is_ready(pod), pod.metadata.deletion_timestamp is not None
    ready = bool(service.spec.get("publishNotReadyAddresses")) or (serving and not terminating)
    conditions = {"ready": ready, "serving": serving, "terminating": terminating}
    return {"addresses": addresses, "conditions": conditions, **_pod_details(service, pod)}


def _pod_details(service: WholeService, pod: WholePod) -> JSON:
    """Returns the fields that an address has in both kinds: the pod, its node and its hostname."""
    metadata, spec = pod.metadata, pod.spec
    target = {"kind": "Pod", "name": metadata.name, "namespace": metadata.namespace, "uid": metadata.uid}
    details: JSON = {"targetRef": target}
    if spec.get("nodeName"):
        details["nodeName"] = spec["nodeName"]
    if spec.get("hostname") and spec.get("subdomain") == service.metadata.name:
        details["hostname"] = spec["hostname"]
    return details


def _ports_of(service: WholeService, pod: WholePod) -> Iterator[JSON]:
    """Yields the ports of a Service as numbers of a pod; without those whose name no container has (`FindPort`)."""
    containers = [
        *(pod.spec.get("containers") or ()),
        *(one for one in pod.spec.get("initContainers") or () if one.get("restartPolicy") == "Always"),
    ]
    for port in service.spec.get("ports") or ():
        protocol, target = port.get("protocol", "TCP"), port.get("targetPort") or port["port"]
        if isinstance(target, str):
            named = (one for container in containers for one in container.get("ports") or ())
            same = (one for one in named if (one.get("name"), one.get("protocol", "TCP")) == (target, protocol))
            target = next((one["containerPort"] for one in same), None)
        if target is not None:
            entry = {"name": port.get("name", ""), "port": target, "protocol": protocol}
            yield entry | ({"appProtocol": port["appProtocol"]} if port.get("appProtocol") else {})


def _addresses(pod: WholePod) -> list[str]:
    listed = [entry.get("ip", "") for entry in pod.status.get("podIPs") or ()]
    return [ip for ip in listed or [pod.status.get("podIP", "")] if ip]


def _family(ip: str) -> str:
    return f"IPv{ipaddress.ip_address(ip).version}"


def _labels(service: WholeService, manager: str, value: str) -> dict[str, str]:
    """Returns the labels of a Service's addresses: its own, the controller, and whether it has no address itself."""
    labels = {**service.metadata.labels, manager: value}
    labels.pop(HEADLESS, None)
    return labels | ({HEADLESS: ""} if service.spec.get("clusterIP") in {None, "", "None"} else {})


def _is_slice_of(slice_: WholeEndpointSlice, service: str) -> bool:
    labels = slice_.metadata.labels
    return labels.get(SERVICE_NAME) == service and _SLICE_MANAGER in labels.items()


def _is_current(stored: WholeEndpoints | WholeEndpointSlice, body: JSON, *fields: str) -> bool:
    """Returns whether a stored object has the labels and these fields of `body`."""
    same_fields = all(list(getattr(stored, field)) == body[field] for field in fields)
    return same_fields and stored.metadata.labels == body["metadata"]["labels"]
