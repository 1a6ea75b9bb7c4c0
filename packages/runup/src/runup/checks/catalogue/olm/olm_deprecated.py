"""The catalog has deprecated an installed operator, its channel or its version.

Applies when a Subscription has the condition PackageDeprecated, ChannelDeprecated or BundleDeprecated with status True.

Why it matters: it gets no updates any more, and may not run on a later release of the cluster.

Remedy: follow the catalog's message, which names another channel or another operator. `oc get subscription -A -o yaml`
shows the condition gone.

Accepting it means that the cluster keeps an operator without maintenance.

Source of the rule: operator-lifecycle-manager, deprecations of file-based catalogs (`olm.deprecations`).
"""

from __future__ import annotations

from runup.api.olm_v1alpha1 import Subscription
from runup.checks.writing import DEFINITIONS, LONGEST_CAUSE, Context, Findings, Snapshot, declared, full_name, risk

NAME = "OperatorDeprecated"
TYPES = {"PackageDeprecated": "package", "ChannelDeprecated": "channel", "BundleDeprecated": "installed version"}
EXAMPLE = """
apiVersion: operators.coreos.com/v1alpha1
kind: Subscription
metadata: {name: elasticsearch, namespace: openshift-operators-redhat}
spec: {name: elasticsearch-operator, channel: stable-5.8}
status:
  conditions:
  - {type: PackageDeprecated, status: "True", message: elasticsearch-operator is no longer supported; use loki-operator}
"""


def run(snapshot: Snapshot, _context: Context) -> Findings:
    """Yields a finding (info) for each Subscription whose package, channel or version is deprecated."""
    for sub in sorted(snapshot.all_or_none(Subscription), key=full_name):
        texts = []
        for condition in sub.status.conditions:
            if condition.type in TYPES and condition.status == "True":
                what = TYPES[condition.type] + (f" {sub.spec.channel}" if condition.type == "ChannelDeprecated" else "")
                words = " ".join(condition.message.split())[:LONGEST_CAUSE].rstrip(".")
                texts.append(f"{what} is deprecated{': ' if words else ''}{words}")
        if texts:
            yield risk(
                f"{NAME}-{sub.spec.name or sub.metadata.name}",
                f"Operator {full_name(sub)} is at its end: {'; '.join(texts)}.",
                [sub],
                severity="info",
                fix="Change to what its catalog recommends; `oc get subscription -A -o yaml` shows the condition.",
            )


CHECK = declared(run, NAME, "operator-lifecycle-manager", reads=(Subscription, DEFINITIONS), rank=440, severity="info")
