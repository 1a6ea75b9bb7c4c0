"""An admission plug-in is configured that the target's API server does not have.

Applies when `unsupportedConfigOverrides` of the API server's operator turns on or off a plug-in that is removed in a
minor version up to the target's. Where the target is newer than the table, a configured plug-in is Unknown.

Why it matters: the API server ends with `unknown admission plugin`: the roll-out of the control plane stops.

Remedy: remove the plug-in from the configuration that the risk names; Pod Security admission replaces it.

Accepting it means that the API server may not start.

Source of the rule: the changelogs of Kubernetes, as the table `data/removed-flags.yaml` has them.
"""

from __future__ import annotations

from runup.checks.catalogue.control_plane.shared import component_settings
from runup.checks.writing import Context, Findings, Snapshot, declared

NAME = "RemovedAdmissionPlugin"
EXAMPLE = """
apiVersion: operator.openshift.io/v1
kind: KubeAPIServer
metadata: {name: cluster}
spec: {unsupportedConfigOverrides: {apiServerArguments: {enable-admission-plugins: ["SecurityContextDeny"]}}}
"""


def run(snapshot: Snapshot, context: Context) -> Findings:
    """Yields a risk for each admission plug-in in use that the target's API server does not have."""
    yield from component_settings.removed_findings(
        NAME,
        "Admission plug-in",
        settings=component_settings.admission_plugins(snapshot),
        context=context,
        table_name="removed-flags",
        removed_names=lambda row, _: row.get("admission", ()),
    )


CHECK = declared(run, NAME, "kube-apiserver", reads=component_settings.CONTROL_PLANE, rank=280, severity="critical")
