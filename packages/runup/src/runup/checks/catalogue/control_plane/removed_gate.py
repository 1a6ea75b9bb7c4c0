"""A feature gate is set that the target's Kubernetes does not know.

Applies when a KubeletConfig, the FeatureGate's own set or an operator's `unsupportedConfigOverrides` names a gate
that is removed in a minor version up to the target's. Where the target is newer than the table, a gate that is set is
Unknown.

Why it matters: a component with an unknown gate does not start. If it is a kubelet, its node becomes NotReady.

Remedy: remove the gate from the configuration that the risk names; a gate has no effect once it has graduated.

Accepting it means that the component may not start.

Source of the rule: the Kubernetes list of removed feature gates, as the table `data/removed-gates.yaml` has it.
"""

from __future__ import annotations

from runup.checks.catalogue.control_plane.shared import component_settings
from runup.checks.writing import Context, Findings, Snapshot, declared

NAME = "RemovedFeatureGate"
EXAMPLE = """
apiVersion: machineconfiguration.openshift.io/v1
kind: KubeletConfig
metadata: {name: workers}
spec: {kubeletConfig: {featureGates: {AppArmor: true}}}
"""


def run(snapshot: Snapshot, context: Context) -> Findings:
    yield from component_settings.removed_findings(
        NAME,
        "Feature gate",
        settings=component_settings.explicit_gates(snapshot),
        context=context,
        table_name="removed-gates",
        removed_names=lambda row, _: row,
    )


CHECK = declared(run, NAME, "kube-apiserver", reads=component_settings.GATES, rank=260, severity="critical")
