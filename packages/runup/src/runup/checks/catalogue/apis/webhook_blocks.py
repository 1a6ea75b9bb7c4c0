"""An admission webhook that does not answer would refuse writes of the update.

Applies when a webhook has failurePolicy Fail, is called for a request that an update sends, and cannot answer.
docs/reference/update-writes.md lists these requests; those for objects of the target's manifests count as well, where
these are given. A webhook cannot answer if its Service is missing, lacks the port or has no ready pod, or if its
caBundle has no certificate that is valid and lasts for an update: a week, or a tenth of its life if that is less. It
also applies when a single pod answers, and the webhook must admit that pod itself: when its node is drained, no pod
admits the next one. If the webhook has match conditions, which depend on the requests themselves, the result is
Unknown. A webhook that is configured with a URL is not checked. An objectSelector that requires a label counts for
users' pods only. A rule about versions that the cluster no longer serves calls no webhook.

Why it matters: the API server calls the webhook first and, without an answer, refuses the request: operators cannot
write, pods of a drained node are not recreated, and the webhook's own pods may be among them.

Remedy: remove the cause that the finding names: start the webhook's pods, fix its port or caBundle, delete the
configuration of a webhook that was uninstalled, or exclude namespaces with a namespaceSelector; `oc get pods -n
NAMESPACE` shows its pods ready.

Accepting it means that the update may stop until somebody deletes the webhook.

Source of the rule: the Kubernetes documentation of dynamic admission control; apiserver,
`pkg/admission/plugin/webhook/predicates` (who is called) and `pkg/util/proxy` (how a Service is reached); Gardener's
remediation of webhooks (gardener#3122): a webhook with Fail must have a backend and must not cover what brings the
backend up.
"""

from __future__ import annotations

from kubekit.api.extension_v1 import Webhook
from kubekit.rules.eviction_rules import stays_on_node
from runup.api.config_v1 import Infrastructure
from runup.checks.catalogue.apis.shared import webhook_backends, webhooks
from runup.checks.catalogue.apis.shared.release_writes import release_writes
from runup.checks.catalogue.shared.kubernetes_versions import least_source_minor
from runup.checks.catalogue.shared.pods import PODS
from runup.checks.catalogue.shared.topology import control_plane
from runup.checks.writing import DEFINITIONS, Context, Findings, Snapshot, declared, full_name, risk, unknown

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


def run(snapshot: Snapshot, context: Context) -> Findings:
    """Yields the findings of each webhook that refuses writes of the update when its Service does not answer."""
    for configuration, each in webhooks.webhooks(snapshot):
        webhook = webhooks.with_served_rules(each, least_source_minor(context))
        if (
            webhook.failure_policy == "Fail"
            and webhook.client_config.service is not None
            and (webhooks.writes_of(webhook) or context.release is not None)
        ):
            holder = f"{type(configuration).__name__} {configuration.metadata.name}"
            # Whom it spares is asked second: for most webhooks, which answer, no namespaces are needed.
            orphan = (
                f"Delete {holder} if what it belonged to is gone, or install that again: `oc get svc -A` then lists it."
            )
            trouble = webhook_backends.why_down(snapshot, webhook.client_config, context.now, holder, orphan=orphan)
            intercepted = webhooks.intercepted_objects(snapshot, webhook) if trouble else ""
            if trouble and not intercepted:
                writes = release_writes(snapshot, context)
                intercepted = webhooks.intercepted_release_objects(snapshot, webhook, writes)
            if trouble and intercepted and webhook.match_conditions:
                # They are CEL expressions over requests, which are not known before the update.
                yield unknown(
                    NAME,
                    f"webhook {webhook.name} of {holder} does not answer ({trouble.why}), and its match conditions "
                    f"decide whether it is called for {intercepted}",
                    fix=trouble.fix,
                )
            elif trouble and intercepted:
                yield risk(
                    NAME,
                    (
                        f"Webhook {webhook.name} of {holder} must answer before an update may "
                        f"write {intercepted}, and {trouble.why}."
                    ),
                    [configuration],
                    severity="warning" if trouble.soon else "critical",
                    fix=trouble.fix,
                )
            elif not trouble and not webhook.match_conditions and (pod := _pod_needing_itself(snapshot, webhook)):
                yield risk(
                    NAME,
                    f"Webhook {webhook.name} of {holder} is answered by pod {pod} alone, and must itself admit the pod "
                    "that takes its place: when the node is drained, nobody answers.",
                    [configuration],
                    fix="Run two pods or more on different nodes, or exclude their namespace with a namespaceSelector.",
                )


def _pod_needing_itself(snapshot: Snapshot, webhook: Webhook) -> str:
    """Returns the only pod behind the webhook if the webhook must admit that pod's successor, else an empty string."""
    service = webhook.client_config.service
    # The node of a single-node control plane is not drained: its pods start again as they are.
    if service is None or control_plane(snapshot) == "SingleReplica":
        return ""
    pods = webhook_backends.ready_backends(snapshot, service)
    # A pod that is not in the list may answer, too.
    if len(pods) != 1 or not snapshot.has_all(PODS, service.namespace):
        return ""
    if stays_on_node(pods[0].metadata.owner_references):
        return ""
    known = webhooks.namespaces(snapshot)
    if service.namespace not in known and not snapshot.has_all(webhooks.NAMESPACES):
        return ""
    if not webhooks.is_called_for_pod(webhook, known.get(service.namespace, {}), pods[0].metadata.labels):
        return ""
    return full_name(pods[0])


CHECK = declared(
    run,
    NAME,
    "kube-apiserver",
    reads=(*webhooks.READS, *webhook_backends.READS, webhooks.NAMESPACES, Infrastructure, DEFINITIONS),
    rank=200,
    severity="critical",
    clusters="both",
)
