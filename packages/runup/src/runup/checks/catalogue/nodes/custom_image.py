"""The cluster builds the operating system of some nodes itself, and the update waits for it.

Applies when there is a MachineOSConfig: its pool's image is built in the cluster, out of the release's and what was
added. An osImageURL in a MachineConfig is the risk OSImageOverridden.

Why it matters: the image is built again on the target's before a node of that pool is updated. The build needs its
registry and packages that fit the new system, and a build that fails stops the pool.

Remedy: see that the last build succeeded and that its registry answers: `oc get machineosbuilds`, `oc get
machineosconfigs -o yaml`.

Accepting it is right where the build has been tried with the target's image.

Source of the rule: openshift/api, `machineconfiguration/v1` (MachineOSConfig); the OpenShift documentation of
CoreOS image layering (on-cluster image mode).
"""

from __future__ import annotations

from runup.api.machineconfig_v1 import MachineOSConfig
from runup.checks.writing import DEFINITIONS, Context, Findings, Snapshot, count, declared, names, risk

NAME = "CustomOSImage"
EXAMPLE = """
apiVersion: machineconfiguration.openshift.io/v1
kind: MachineOSConfig
metadata: {name: worker}
spec: {machineConfigPool: {name: worker}}
"""


def run(snapshot: Snapshot, _context: Context) -> Findings:
    """Yields one finding (info) that names the pools whose operating system is built in the cluster."""
    built = sorted(snapshot.all_or_none(MachineOSConfig), key=lambda built_config: built_config.metadata.name)
    if built:
        pools = names(
            [built_config.spec.machine_config_pool.name or built_config.metadata.name for built_config in built]
        )
        yield risk(
            NAME,
            f"The operating system of {count(len(built), 'machine config pool')} is built in the cluster, and will be "
            f"rebuilt during the update: {pools}.",
            built,
            severity="info",
            fix="See that the last build succeeded, and that its registry answers: `oc get machineosbuilds`.",
        )


CHECK = declared(run, NAME, "machine-config", reads=(MachineOSConfig, DEFINITIONS), rank=565, severity="info")
