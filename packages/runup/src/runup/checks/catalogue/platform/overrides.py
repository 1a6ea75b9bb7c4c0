"""Parts of the release are not managed: `spec.overrides` of ClusterVersion has an entry with `unmanaged: true`.

Applies when there is such an entry, to updates between minor and major versions. The cluster itself says so, too,
without a preflight and under the same name.

Why it matters: unmanaged parts are not updated, and the new release is not tested with the old parts.

Remedy: `oc get clusterversion version -o jsonpath='{.spec.overrides}'`, then remove the entries.

Accepting it means that these parts stay at the old release.

Source of the rule: cluster-version-operator, `pkg/risk/overrides`.
"""

from __future__ import annotations

from runup.api.config_v1 import ClusterVersion
from runup.checks.writing import MINOR, Context, Findings, Snapshot, declared, names, risk, unknown

NAME = "ClusterVersionOverrides"
EXAMPLE = """
apiVersion: config.openshift.io/v1
kind: ClusterVersion
metadata: {name: version}
spec:
  overrides: [{kind: Deployment, group: apps, namespace: openshift-console, name: console, unmanaged: true}]
"""


def run(snapshot: Snapshot, _context: Context) -> Findings:
    """Yields one risk that names the objects of the release that spec.overrides makes unmanaged."""
    cluster = snapshot.get(ClusterVersion, "version")
    if cluster is None:
        why = "there is no ClusterVersion named version"
        yield unknown(NAME, why, fix="See whether the cluster-version operator runs: it creates that object.")
        return
    unmanaged = [override for override in cluster.spec.overrides if override.unmanaged]
    if unmanaged:
        listing = names(
            [f"{override.kind} {override.namespace}/{override.name}".replace(" /", " ") for override in unmanaged]
        )
        yield risk(
            NAME,
            f"The operator must keep its hands off parts of the release, which are not updated: {listing}.",
            [cluster],
            severity="critical",
            fix="Remove these entries from spec.overrides; `oc get clusterversion version -o yaml` shows what is left.",
        )


CHECK = declared(
    run, NAME, "cluster-version-operator", reads=(ClusterVersion,), rank=150, updates=MINOR, severity="critical"
)
