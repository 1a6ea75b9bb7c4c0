"""Objects of a kind cannot be read in all its versions, because its conversion webhook does not answer.

Applies when a CustomResourceDefinition converts by a webhook, its objects may be stored in a version (that of
`status.storedVersions`, or the storage version) that is not the only one served, and the webhook cannot answer: its
Service is missing, lacks the port or has no ready pod, or its caBundle has no certificate that is valid. If all
objects are stored in one served version, only requests in the other versions fail, and the severity is lower.

Why it matters: clients that list the kind in another version fail, including the garbage collector and the namespace
controller. An operator of the release that reads the kind stops.

Remedy: remove the cause that the finding names; `oc get KIND -A` then works again.

Accepting it means that these objects cannot be read until the webhook answers.

Source of the rule: kubernetes, `apiextensions-apiserver/pkg/apiserver/conversion` (no webhook is called for objects
that are stored in the version that is asked for) and `pkg/util/proxy` of apiserver (how a Service is reached).
"""

from __future__ import annotations

from kubekit.api.extension_v1 import CustomResourceDefinition
from runup.checks.catalogue.apis.shared.webhook_backends import READS, why_down
from runup.checks.writing import DEFINITIONS, Context, Findings, Snapshot, declared, names, risk

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
status: {storedVersions: [v1beta1, v1]}
"""


def run(snapshot: Snapshot, context: Context) -> Findings:
    """Yields a risk for each definition whose conversion webhook does not answer."""
    for crd in sorted(snapshot.all(CustomResourceDefinition), key=lambda definition: definition.metadata.name):
        name, conversion = crd.metadata.name, crd.spec.conversion
        served = {version.name for version in crd.spec.versions if version.served}
        # The versions in which objects may be stored.
        stored = {version.name for version in crd.spec.versions if version.storage} | set(crd.status.stored_versions)
        # What is stored in the only version that is served needs no conversion.
        config = conversion.webhook.client_config if conversion.webhook else None
        if conversion.strategy != "Webhook" or config is None or not served or len(stored | served) < 2:
            continue
        holder = f"CustomResourceDefinition {name}"
        # Nobody is asked to delete the definition: its objects would go with it.
        orphan = f"Install again what {holder} belongs to: `oc get svc -A` then lists the Service."
        if not (trouble := why_down(snapshot, config, context.now, holder, orphan=orphan)):
            continue
        # Objects that are stored in one version, which is served, can still be read and listed in that one.
        spared = len(stored) == 1 and stored <= served
        blocked_text = (
            f"Objects of {name} can be read in {names(sorted(stored))} alone"
            if spared
            else (f"Objects of {name} cannot be converted between its versions")
        )
        yield risk(
            NAME,
            f"{blocked_text}: {trouble.why}.",
            [crd],
            severity="warning" if spared else "critical",
            fix=trouble.fix,
        )


CHECK = declared(run, NAME, "kube-apiserver", reads=(DEFINITIONS, *READS), rank=310, severity="critical")
