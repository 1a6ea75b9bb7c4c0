"""More than one node of the control plane may be updated at once.

Applies when machine config pool `master` has a maxUnavailable above 1, as a number or as a share of its machines, and
more than one machine.

Why it matters: with two of three members away etcd has no quorum, and the cluster stops until one is back.

Remedy: `oc patch mcp/master --type=merge -p '{"spec":{"maxUnavailable":1}}'`; `oc get mcp master -o yaml` shows it.

Accepting it is not supported.

Source of the rule: the OpenShift documentation of MachineConfigPools (maxUnavailable of the control plane must be 1),
and machine-config-operator, `pkg/controller/node` (shares are rounded down, and at least 1).
"""

from __future__ import annotations

from runup.checks.catalogue.nodes.shared.pools import READS, all_pools
from runup.checks.writing import Context, Findings, Snapshot, declared, risk
from runup.rules.machine_config import CONTROL_PLANE_POOL, allowed_unavailable

NAME = "MaxUnavailableUnsafe"
EXAMPLE = """
apiVersion: machineconfiguration.openshift.io/v1
kind: MachineConfigPool
metadata: {name: master}
spec: {maxUnavailable: 2}
status: {machineCount: 3}
"""


def run(snapshot: Snapshot, _context: Context) -> Findings:
    """Yields a risk if the control plane's pool may take down more than one machine at once."""
    for pool in all_pools(snapshot):
        # One machine alone has no quorum that the next one could take.
        if (
            pool.metadata.name == CONTROL_PLANE_POOL
            and (number := allowed_unavailable(pool)) > 1
            and pool.status.machine_count != 1
        ):
            yield risk(
                NAME,
                f"Machine config pool master may take {number} machines of {pool.status.machine_count} down at once "
                f"(maxUnavailable {pool.spec.max_unavailable}): etcd may lose its quorum.",
                [pool],
                severity="critical",
                fix="Set spec.maxUnavailable of mcp/master to 1; `oc get mcp master -o yaml` shows it.",
            )


CHECK = declared(run, NAME, "machine-config", reads=READS, rank=530, severity="critical")
