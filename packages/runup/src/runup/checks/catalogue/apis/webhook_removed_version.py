"""An admission webhook has rules only for API versions that the target does not serve.

Applies when the target's Kubernetes serves none of the resources in the versions that a rule of the webhook names,
while the cluster's serves some, and its other rules do not name the same resources for the same operations in a version
that stays. A rule about CREATE does not replace a rule about DELETE. Only groups that the table of removed versions
knows are evaluated. matchPolicy Equivalent changes nothing: the API server converts between the versions that it
serves, and a removed version is not one of them.

Why it matters: the API server no longer calls such a webhook and reports no error, so the policy of the webhook has no
effect.

Remedy: give the rule a version that stays; `oc get validatingwebhookconfigurations -o yaml` shows the rules.

Accepting it means that the webhook has no effect any more.

Source of the rule: the Kubernetes documentation of dynamic admission control (matchPolicy: a resource that is not
served any more is equivalent to none), and the deprecation guide.
"""

from __future__ import annotations

from runup.checks.catalogue.apis.shared.webhooks import (
    READS,
    beyond_table_finding,
    names_removed,
    versions_beyond_table,
    versions_not_covered,
    webhooks,
)
from runup.checks.catalogue.shared.kubernetes_versions import READS as VERSIONS
from runup.checks.catalogue.shared.kubernetes_versions import source_minor, target_minor, versions_unknown
from runup.checks.writing import Context, Findings, Snapshot, declared, names, risk

NAME = "WebhookRemovedVersion"
EXAMPLE = """
apiVersion: v1
kind: Node
metadata: {name: worker-0}
status: {nodeInfo: {kubeletVersion: v1.31.4}}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: fairness}
webhooks:
- name: fairness.example.com
  clientConfig: {url: "https://policies.example.com/fairness"}
  rules:
  - {operations: [CREATE], apiGroups: [flowcontrol.apiserver.k8s.io], apiVersions: [v1beta3], resources: [flowschemas]}
"""


def run(snapshot: Snapshot, context: Context) -> Findings:
    """Yields a risk for each webhook whose rules match only versions that the target no longer serves."""
    # Most clusters have no rule about a version that goes: then it matters little which versions these are.
    suspect = []
    for configuration, webhook in webhooks(snapshot):
        if names_removed(webhook.rules):
            suspect.append((configuration, webhook))
        if unclear := versions_beyond_table(webhook.rules, target_minor(context) or 0):
            holder = f"webhook {webhook.name} of {configuration.metadata.name}"
            yield beyond_table_finding(NAME, holder, unclear)
    if not suspect:
        return
    source, target = source_minor(snapshot, context), target_minor(context)
    if source is None or target is None:
        yield versions_unknown(NAME, target, [configuration for configuration, _ in suspect])
        return
    for configuration, webhook in suspect:
        if versions := versions_not_covered(webhook.rules, source, target):
            yield risk(
                NAME,
                f"Webhook {webhook.name} of {type(configuration).__name__} {configuration.metadata.name} is asked only "
                f"about {names(versions)}, which {context.target} does not serve.",
                [configuration],
                fix="Name a version in the rule that the target serves.",
            )


CHECK = declared(run, NAME, "kube-apiserver", reads=(*READS, *VERSIONS), rank=210, clusters="both")
