"""Determines whether a Service that the API server calls has a backend: a webhook, a conversion, an aggregated API.

The Service and its pods are read, not its EndpointSlices: pods are read anyway, and slices are as many again. A Service
without a selector has its backends elsewhere, and nothing is said about it.
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
    """Returns why nothing answers at the Service, or an empty string. Raises Unreadable."""
    where = f"{reference.namespace}/{reference.name}"
    service = snapshot.get(Service, reference.name, reference.namespace)
    if service is None:
        return f"there is no Service {where}"
    # The backends of such a Service are elsewhere, and its pods cannot be looked at.
    if service.spec.type == "ExternalName" or not service.spec.selector:
        return ""
    pods = _behind(snapshot.listed(PODS), service)
    if any(pod.ready for pod in pods):
        return ""
    # One that is not in the list may be ready.
    snapshot.require_all(PODS, reference.namespace)
    return f"no pod behind Service {where} is ready" if pods else f"Service {where} has no pod behind it"


def _behind(pods: Sequence[PlacedPod], service: Service) -> list[PlacedPod]:
    """Returns the pods that the Service selects."""
    namespace, selector = service.metadata.namespace, service.spec.selector.items()
    return [pod for pod in pods if pod.metadata.namespace == namespace and selector <= pod.metadata.labels.items()]
