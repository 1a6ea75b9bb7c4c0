"""Feature sets that turn minor updates off for good. Patch updates stay allowed, and are not asked about.

A cluster without a FeatureGate has the default set, as the cluster-version operator sees it.
"""

from __future__ import annotations

from runup.api.cluster_settings_v1 import FeatureGate
from runup.checks.writing import MINOR, OWN_NAME, Applies, Context, Findings, Snapshot, declared, risk

NAME = "FeatureSetForbidsUpdates"
# These cannot be undone, and prevent minor updates (openshift/api, config/v1).
FORBIDDING = frozenset({"TechPreviewNoUpgrade", "DevPreviewNoUpgrade", "CustomNoUpgrade"})
HARMLESS = frozenset({"", "Default", "LatencySensitive", "OKD"})


def run(snapshot: Snapshot, _context: Context) -> Findings:
    """Yields a risk if the feature set forbids minor updates, and Unknown for a feature set that is not known."""
    gate = snapshot.get(FeatureGate, "cluster")
    feature_set = gate.spec.feature_set if gate else ""
    if gate is None or feature_set in HARMLESS:
        return
    forbids = feature_set in FORBIDDING
    says = "is not known, so it may forbid updates between minor versions."
    if forbids:
        says = "forbids updates between minor versions, and cannot be turned off again."
    yield risk(
        NAME,
        f"The cluster's feature set {feature_set} {says}",
        [gate],
        applies=Applies.YES if forbids else Applies.UNKNOWN,
        reason=feature_set,
        severity="critical",
        fix="Update within the minor version only, or install a new cluster with the default feature set.",
    )


CHECK = declared(
    run,
    NAME,
    "config-operator",
    reads=(FeatureGate,),
    by_hand=True,
    rank=140,
    severity="critical",
    updates=MINOR,
    unknown_risk=OWN_NAME,
)
