"""An admission webhook that nobody answers would refuse what the update writes.

Applies when a webhook has failurePolicy Fail, is asked about pods, nodes, leases or the release's own objects in the
release's namespaces, and its Service is missing or has no ready pod. One that is reached by a URL is not judged, nor is
one that narrows itself by match conditions or by labels of the object.

Why it matters the API server asks it first and, without an answer, refuses the request: operators cannot write, pods of
a drained node are not made again, and the webhook's own pods may be among them.

What to do bring its pods up, or exclude the release's namespaces with a namespaceSelector; `oc get pods -n NAMESPACE`
shows them ready.

Accepting it means that the update may stand still until somebody deletes the webhook.

Source of the rule the Kubernetes documentation of dynamic admission control, and Gardener's remediation of webhooks
(gardener#3122): a webhook with Fail must have a backend and must not cover what brings the backend up.
"""

from __future__ import annotations

from collections.abc import Iterator

from runup.checks.catalogue.apis.shared.webhook_backends import READS as BACKENDS
from runup.checks.catalogue.apis.shared.webhook_backends import why_down
from runup.checks.catalogue.apis.shared.webhooks import READS, covers_an_update, webhooks
from runup.checks.catalogue.declaring import declared, risk
from runup.checks.decide.model import Context, Finding, Snapshot

NAME = "WebhookBlocksUpdate"
EXAMPLE = """
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: policies}
webhooks:
- name: pods.policies.example.com
  failurePolicy: Fail
  clientConfig: {service: {namespace: policies, name: webhook}}
  rules: [{operations: [CREATE], apiGroups: [""], apiVersions: [v1], resources: [pods]}]
"""


def _run(snapshot: Snapshot, _context: Context) -> Iterator[Finding]:
    for configuration, webhook in webhooks(snapshot):
        service = webhook.client_config.service
        if webhook.failure_policy != "Fail" or service is None or not covers_an_update(webhook):
            continue
        if why := why_down(snapshot, service):
            name = configuration.metadata.name
            yield risk(
                NAME,
                f"Webhook {webhook.name} of {type(configuration).__name__} {name} must answer before anything may be "
                f"written that an update writes, and {why}.",
                [configuration],
                severity="critical",
                fix=f"Bring its pods up (`oc get pods -n {service.namespace}`), or exclude the release's namespaces.",
            )


CHECK = declared(
    __doc__, NAME, "kube-apiserver", (*READS, *BACKENDS), _run, rank=200, severity="critical", example=EXAMPLE
)
