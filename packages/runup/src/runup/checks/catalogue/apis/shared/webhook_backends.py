"""Determines whether a webhook that the API server calls by a Service can answer: of admission, or of a conversion.

The Service and its pods are read, not its EndpointSlices: pods are read anyway, and slices are as many again. A Service
without a selector has its backends elsewhere, and nothing is said about them. The API server's rules for the Service
and the bundle are in its source (apiserver, `pkg/util/proxy`: ResolveEndpoint; client-go, `transport`: rootCertPool).
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from kubekit.api.extension_v1 import ServiceReference, WebhookClientConfig
from kubekit.api.pod_parts import PlacedPod
from runup.api.platform_v1 import Service
from runup.checks.catalogue.shared.certificate_bundles import last_validity
from runup.checks.catalogue.shared.pods import PODS
from runup.checks.writing import Resource, Snapshot, names, resource_of

READS: tuple[Resource, ...] = (resource_of(Service), PODS)


# How long an update may take, and with it how long a bundle must last.
MARGIN = timedelta(days=7)
# A bundle with more of its life left than this part is renewed in time: those that a webhook issues for a few days
# are, by itself (knative, `pkg/webhook/certificates`: a day before the end of seven).
_MARGIN_PARTS_OF_LIFE = 10
# The annotation by which a Service asks for a certificate of the cluster's own authority for Services.
_SERVING_CERTIFICATE = "service.beta.openshift.io/serving-cert-secret-name"


class Down(NamedTuple):
    """The reason why a webhook cannot answer, and the way out; with `soon` it still answers, but not for long."""

    why: str
    fix: str
    soon: bool = False


def why_down(
    snapshot: Snapshot, config: WebhookClientConfig, now: datetime, holder: str, *, orphan: str
) -> Down | None:
    """Returns why the API server gets no answer, or None.

    `holder` is the kind and name of what asks for it, `orphan` what to do with that when its Service is gone. A webhook
    that is reached by a URL is not evaluated. Raises Unreadable.
    """
    reference = config.service
    if reference is None:
        return None
    service_name = f"{reference.namespace}/{reference.name}"
    service = snapshot.get(Service, reference.name, reference.namespace)
    if service is None:
        # What is gone has no pods to bring up.
        return Down(f"there is no Service {service_name}", orphan)
    ports = [port.port for port in service.spec.ports]
    if ports and reference.port not in ports and service.spec.type != "ExternalName":
        has = names([str(port) for port in ports])
        fix = f"Name one of the Service's ports ({has}) in clientConfig.service.port of {holder}."
        return Down(f"Service {service_name} has no port {reference.port}, but {has}", fix)
    pods = _pods_of_service(snapshot, service)
    if pods is not None and not any(pod.status.ready for pod in pods):
        # One that is not in the list may be ready.
        snapshot.require_all(PODS, reference.namespace)
        why = (
            f"no pod behind Service {service_name} is ready" if pods else f"Service {service_name} has no pod behind it"
        )
        return Down(why, f"Bring its pods up: `oc get pods -n {reference.namespace}` shows them ready.")
    if config.ca_bundle:
        return _bundle_problem(config.ca_bundle, now, holder)
    # The cluster itself signed the certificate of the webhook's server. Without a bundle the API server asks the
    # system's authorities, and the one for Services is none of them (the OpenShift documentation of service serving
    # certificates).
    if _SERVING_CERTIFICATE not in service.metadata.annotations:
        return None
    fix = f"Annotate {holder} with service.beta.openshift.io/inject-cabundle=true; its caBundle is then filled in."
    return Down("it has no caBundle for the certificate that the cluster signed for its Service", fix)


def ready_backends(snapshot: Snapshot, reference: ServiceReference) -> Sequence[PlacedPod]:
    """Returns the ready pods behind a Service, none if its backends are elsewhere. Raises Unreadable."""
    service = snapshot.get(Service, reference.name, reference.namespace)
    pods = _pods_of_service(snapshot, service) if service else ()
    return [pod for pod in pods or () if pod.status.ready]


def _pods_of_service(snapshot: Snapshot, service: Service) -> list[PlacedPod] | None:
    """Returns the pods that the Service selects, None if its backends are elsewhere. Raises Unreadable."""
    if service.spec.type == "ExternalName" or not service.spec.selector:
        return None
    namespace, selector = service.metadata.namespace, service.spec.selector.items()
    pods: Sequence[PlacedPod] = snapshot.listed(PODS)
    return [pod for pod in pods if pod.metadata.namespace == namespace and selector <= pod.metadata.labels.items()]


def _bundle_problem(ca_bundle: str, now: datetime, holder: str) -> Down | None:
    """Returns why the API server cannot trust the webhook's server by its bundle, or None."""
    try:
        bundle = base64.b64decode(ca_bundle, validate=True).decode("latin-1")
    except (binascii.Error, ValueError):
        bundle = ""
    # An empty bundle means the system's own; dumps put one character in the place of what they leave out.
    if len(set(bundle) - {"\n"}) < 2 and bundle != "\n":
        return None
    fix = f"Give {holder} the certificate authority that signs its server's certificate, in clientConfig.caBundle."
    validity = last_validity(bundle)
    if validity is None:
        return Down("its caBundle has no certificate that can be read", fix)
    begin, until = validity
    if until - now > min(MARGIN, (until - begin) / _MARGIN_PARTS_OF_LIFE):
        return None
    ended = "ended" if until <= now else "ends"
    return Down(f"its caBundle {ended} at {until:%Y-%m-%dT%H:%M:%SZ}", fix, soon=until > now)
