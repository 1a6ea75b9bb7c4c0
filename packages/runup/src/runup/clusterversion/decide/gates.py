"""Feature gates of the running version. A gate counts as closed if its state cannot be determined."""

from __future__ import annotations

from runup.api.cluster_settings_v1 import FeatureGate

PREFLIGHT = "ClusterUpdatePreflight"
ACCEPT_RISKS = "ClusterUpdateAcceptRisks"


def open_gates(feature_gate: FeatureGate | None, version: str) -> frozenset[str]:
    """Returns the gates that are enabled for `version`; none if the object or the version's entry is missing."""
    for details in feature_gate.status.feature_gates if feature_gate else ():
        if details.version == version:
            return frozenset(gate.name for gate in details.enabled)
    return frozenset()


def why_closed(feature_gate: FeatureGate | None, version: str, gate: str) -> str:
    """Returns a sentence for the user that says why the gate is closed."""
    if feature_gate is None:
        return f"FeatureGate cluster could not be read, so gate {gate} counts as closed"
    if all(details.version != version for details in feature_gate.status.feature_gates):
        return f"FeatureGate cluster says nothing of version {version}, so gate {gate} counts as closed"
    return f"feature gate {gate} is not enabled for version {version}"
