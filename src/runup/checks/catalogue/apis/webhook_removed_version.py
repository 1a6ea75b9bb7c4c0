"""An admission webhook is asked only about API versions that the target does not serve.

Applies when a webhook has matchPolicy Exact, and the target's Kubernetes serves none of the resources in the versions
that a rule of it names, while the cluster's serves some; of the groups that the table of removed versions knows.

Why it matters: the API server never asks such a webhook again, and says nothing: a policy is gone without a trace.

What to do: give the rule the version that is served, or matchPolicy Equivalent;
`oc get validatingwebhookconfigurations -o yaml` shows the rules.

Accepting it means that the webhook has no effect any more.

Source of the rule: the Kubernetes documentation of dynamic admission control (matchPolicy), and the deprecation guide.
"""

from __future__ import annotations

from collections.abc import Iterator

from kubekit.api.extension_v1 import RuleWithOperations
from runup.checks.catalogue.apis.shared.webhooks import READS, webhooks
from runup.checks.catalogue.declaring import declared, risk, unsure
from runup.checks.catalogue.shared.kubernetes_versions import READS as VERSIONS
from runup.checks.catalogue.shared.kubernetes_versions import source_minor, target_minor
from runup.checks.decide.cluster_kinds import BOTH
from runup.checks.decide.model import Context, Finding, Snapshot
from runup.checks.decide.removal_tables import removed_resource, removed_versions
from runup.checks.decide.wording import names

NAME = "WebhookRemovedVersion"
# No minor version of Kubernetes 1 is higher.
ANY = 1_000
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
  matchPolicy: Exact
  clientConfig: {url: "https://policies.example.com/fairness"}
  rules:
  - {operations: [CREATE], apiGroups: [flowcontrol.apiserver.k8s.io], apiVersions: [v1beta3], resources: [flowschemas]}
"""


def _run(snapshot: Snapshot, context: Context) -> Iterator[Finding]:
    # With Equivalent, the default, the API server converts requests of other versions to the rule's.
    exact = [(configuration, each) for configuration, each in webhooks(snapshot) if each.match_policy == "Exact"]
    if not exact:
        return
    source, target = source_minor(snapshot, context), target_minor(context)
    if source is None or target is None:
        whose = "the target ships" if target is None else "the cluster runs"
        fix = "See `oc get clusteroperator kube-apiserver -o yaml`, or ask the publisher of the release."
        yield unsure(NAME, f"which Kubernetes {whose} is not known", [each for each, _ in exact], fix=fix)
        return
    for configuration, webhook in exact:
        dead = [rule for rule in webhook.rules if _matches_nothing_served(rule, source, target)]
        if dead:
            versions = sorted(
                {f"{group}/{version}" for rule in dead for group in rule.api_groups for version in rule.api_versions}
            )
            yield risk(
                NAME,
                f"Webhook {webhook.name} of {type(configuration).__name__} {configuration.metadata.name} is asked only "
                f"about {names(versions)}, which {context.target} does not serve.",
                [configuration],
                fix="Name the version that is served in the rule, or set matchPolicy: Equivalent.",
            )


def _matches_nothing_served(rule: RuleWithOperations, source: int, target: int) -> bool:
    """Returns whether the target serves nothing that the rule names, and the source still does."""
    removed = [
        _removed_in_minor(group, version, resource.partition("/")[0])
        for group in rule.api_groups
        for version in rule.api_versions
        for resource in rule.resources
    ]
    minors = [minor for minor in removed if minor is not None and minor <= target]
    return bool(minors) and len(minors) == len(removed) and max(minors) > source


def _removed_in_minor(group: str, version: str, resource: str) -> int | None:
    """Returns the minor version without that resource, or without any of the version; None if it is not known."""
    if resource != "*":
        return removed_resource(resource, version, group)
    # Kinds of one version may go one after the other.
    return max(
        (
            minor
            for (its_group, its, _), minor in removed_versions(0, ANY).items()
            if (its_group, its) == (group, version)
        ),
        default=None,
    )


CHECK = declared(__doc__, NAME, "kube-apiserver", (*READS, *VERSIONS), _run, rank=210, example=EXAMPLE, clusters=BOTH)
