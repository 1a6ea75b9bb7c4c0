"""Whether anybody answers behind a Service that the API server calls: a webhook, a conversion, an aggregated API.

Asked are the Service and its pods, not its EndpointSlices: pods are read anyway, and slices are as many again. A
Service without a selector has its backends elsewhere, and nothing is said of it.
"""

from __future__ import annotations

from collections.abc import Sequence

from kubekit.api.core_v1 import PlacedPod
from kubekit.api.extension_v1 import ServiceReference
from kubekit.api.scheme import Resource, resource_of
from runup.api.platform_v1 import Service
from runup.checks.catalogue.shared.pods import PODS
from runup.checks.decide.model import Snapshot

READS: tuple[Resource, ...] = (resource_of(Service), PODS)


def why_down(snapshot: Snapshot, reference: ServiceReference) -> str:
    """Why nobody answers there, or nothing; raises Unreadable."""
    where = f"{reference.namespace}/{reference.name}"
    service = snapshot.get(Service, reference.name, reference.namespace)
    if service is None:
        return f"there is no Service {where}"
    if service.spec.type == "ExternalName" or not service.spec.selector:
        return ""
    pods = _behind(snapshot.listed(PODS), service)
    if any(pod.ready for pod in pods):
        return ""
    return f"no pod behind Service {where} is ready" if pods else f"Service {where} has no pod behind it"


def _behind(pods: Sequence[PlacedPod], service: Service) -> list[PlacedPod]:
    namespace, selector = service.metadata.namespace, service.spec.selector.items()
    return [pod for pod in pods if pod.metadata.namespace == namespace and selector <= pod.metadata.labels.items()]
