"""Objects of a kind cannot be read in all its versions, because nobody answers its conversion webhook.

Applies when a CustomResourceDefinition with several served versions converts by a webhook whose Service is missing or
has no ready pod.

Why it matters whatever lists the kind fails, also the garbage collector and the deletion of namespaces; an operator of
the release that reads it stands still.

What to do bring the webhook's pods up; `oc get KIND -A` works again then.

Accepting it means that these objects cannot be read for the time being.

Source of the rule kubernetes, `apiextensions-apiserver/pkg/apiserver/conversion`.
"""

from __future__ import annotations

from collections.abc import Iterator

from kubekit.api.extension_v1 import CustomResourceDefinition, ServiceReference
from runup.checks.catalogue.apis.shared.webhook_backends import READS, why_down
from runup.checks.catalogue.declaring import declared, risk
from runup.checks.catalogue.shared.presence import DEFINITIONS
from runup.checks.decide.model import Context, Finding, Snapshot

NAME = "CRDConversionWebhookDown"
EXAMPLE = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: kafkas.example.com}
spec:
  group: example.com
  names: {kind: Kafka, plural: kafkas}
  versions: [{name: v1beta1, served: true}, {name: v1, served: true, storage: true}]
  conversion:
    strategy: Webhook
    webhook: {clientConfig: {service: {namespace: kafka, name: conversion}}}
"""


def _run(snapshot: Snapshot, _context: Context) -> Iterator[Finding]:
    for crd in sorted(snapshot.all(CustomResourceDefinition), key=lambda each: each.metadata.name):
        service = _service(crd)
        if service is not None and (why := why_down(snapshot, service)):
            name = crd.metadata.name
            yield risk(
                NAME,
                f"Objects of {name} cannot be converted between its versions: {why}.",
                [crd],
                severity="critical",
                fix=f"Bring its pods up: `oc get pods -n {service.namespace}`; `oc get {name} -A` then works.",
            )


def _service(crd: CustomResourceDefinition) -> ServiceReference | None:
    """Returns the Service that converts the definition's objects, or None if none is needed."""
    conversion = crd.spec.conversion
    # With one served version objects need no conversion.
    if conversion.strategy != "Webhook" or sum(version.served for version in crd.spec.versions) < 2:
        return None
    config = conversion.webhook.client_config if conversion.webhook else None
    return config.service if config else None


CHECK = declared(
    __doc__, NAME, "kube-apiserver", (DEFINITIONS, *READS), _run, rank=310, severity="critical", example=EXAMPLE
)
