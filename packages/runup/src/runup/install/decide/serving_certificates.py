"""Decides who issues the certificate that a component serves with, and who trusts it.

On OpenShift the service CA does both, by annotations. Elsewhere `runup install` makes an authority and a
certificate, or cert-manager does (https://cert-manager.io/docs/concepts/ca-injector/).
"""

from __future__ import annotations

import base64
from typing import Any

from runup.install.decide.component import Certificates, Component, Options, Platform
from runup.install.decide.objects import Objects, definition

JSON = dict[str, Any]
_SECRET = "-serving-cert"  # noqa: S105 (the end of a name)


def with_certificates(objects: Objects, component: Component, options: Options) -> Objects:
    """Returns `objects` with what their certificate needs on a cluster that has no service CA."""
    if options.platform is Platform.OPENSHIFT or not has_service(objects):
        return objects
    objects = tuple(_verified_by_secret(obj, component) for obj in objects)
    if options.certificates is Certificates.CERT_MANAGER:
        return (*(_inject_authority(obj, component) for obj in objects), *_cert_manager(component))
    return objects


def has_service(objects: Objects) -> bool:
    """Returns whether anybody connects to a Service of `objects`."""
    return any(obj["kind"] == "Service" for obj in objects)


def secret_name(component: Component) -> str:
    """Returns the name of the Secret with the certificate, as the Deployment mounts it."""
    return component.deployment + _SECRET


def hosts(component: Component, namespace: str) -> tuple[str, ...]:
    """Returns the names by which the component's Service is asked."""
    service = f"{component.deployment}.{namespace}.svc"
    return (service, f"{service}.cluster.local")


def with_authority(objects: Objects, authority: bytes) -> Objects:
    """Returns `objects` whose conversion webhooks are trusted by `authority`, in PEM."""
    return tuple(_trust_authority(obj, authority) for obj in objects)


def _trust_authority(obj: JSON, authority: bytes) -> JSON:
    """Returns a definition whose conversion webhook trusts the authority; other objects as they are."""
    if not _has_conversion_webhook(obj):
        return obj
    conversion = obj["spec"]["conversion"]
    client = {**conversion["webhook"]["clientConfig"], "caBundle": base64.b64encode(authority).decode()}
    webhook = {**conversion["webhook"], "clientConfig": client}
    return {**obj, "spec": {**obj["spec"], "conversion": {**conversion, "webhook": webhook}}}


def _has_conversion_webhook(obj: JSON) -> bool:
    return definition(obj) and obj["spec"].get("conversion", {}).get("strategy") == "Webhook"


def _verified_by_secret(obj: JSON, component: Component) -> JSON:
    """Returns the monitor with the Secret's authority: OpenShift's file is not there."""
    if obj["kind"] != "ServiceMonitor":
        return obj
    authority = {"ca": {"secret": {"name": secret_name(component), "key": "ca.crt"}}}
    endpoints = [
        {**endpoint, "tlsConfig": {k: v for k, v in endpoint["tlsConfig"].items() if k != "caFile"} | authority}
        for endpoint in obj["spec"]["endpoints"]
    ]
    return {**obj, "spec": {**obj["spec"], "endpoints": endpoints}}


def _inject_authority(obj: JSON, component: Component) -> JSON:
    """Returns the definition annotated so that cert-manager injects the webhook's authority."""
    if not _has_conversion_webhook(obj):
        return obj
    source = f"{component.namespace}/{secret_name(component)}"
    annotations = {**obj["metadata"].get("annotations", {}), "cert-manager.io/inject-ca-from": source}
    return {**obj, "metadata": {**obj["metadata"], "annotations": annotations}}


def _cert_manager(component: Component) -> Objects:
    """Returns the Issuer and the Certificate from which cert-manager makes the serving certificate."""
    api, name = "cert-manager.io/v1", secret_name(component)
    metadata = {"name": name, "namespace": component.namespace}
    issuer = {"apiVersion": api, "kind": "Issuer", "metadata": metadata, "spec": {"selfSigned": {}}}
    spec = {
        "secretName": name,
        "dnsNames": list(hosts(component, component.namespace)),
        "issuerRef": {"kind": "Issuer", "name": name},
    }
    return (issuer, {"apiVersion": api, "kind": "Certificate", "metadata": metadata, "spec": spec})
