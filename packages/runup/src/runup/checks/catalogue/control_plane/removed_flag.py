"""A flag is set that the component of the target does not know.

Applies when `unsupportedConfigOverrides` of the operator of kube-apiserver, kube-controller-manager or kube-scheduler
gives its component a flag that is removed in a minor version up to the target's. Where the target is newer than the
table, a flag that is set is Unknown.

Why it matters: a component exits with an error if it gets an unknown flag, and the roll-out of the control plane stops.

Remedy: remove the flag from the configuration that the risk names.

Accepting it means that the component may not start.

Source of the rule: the changelogs of Kubernetes, as the table `data/removed-flags.yaml` has them.
"""

from __future__ import annotations

from runup.checks.catalogue.control_plane.shared import component_settings
from runup.checks.writing import Context, Findings, Snapshot, declared

NAME = "RemovedFlag"
EXAMPLE = """
apiVersion: operator.openshift.io/v1
kind: KubeAPIServer
metadata: {name: cluster}
spec: {unsupportedConfigOverrides: {apiServerArguments: {cloud-config: [/etc/cloud.conf]}}}
"""


def run(snapshot: Snapshot, context: Context) -> Findings:
    yield from component_settings.removed_findings(
        NAME,
        "Flag",
        settings=component_settings.explicit_flags(snapshot),
        context=context,
        table_name="removed-flags",
        removed_names=lambda row, flag: row.get(flag.component, ()),
    )


CHECK = declared(run, NAME, "kube-apiserver", reads=component_settings.CONTROL_PLANE, rank=270, severity="critical")
