"""Machines may be replaced while their nodes are only being updated.

Applies when a MachineHealthCheck that has machines is not paused (annotation `cluster.x-k8s.io/paused`), treats a node
that is not Ready as unhealthy, and may remediate it (maxUnhealthy is at least 1; percentages are rounded down). A
MachineHealthCheck that only uses other conditions is not reported. All others are one risk.

Why it matters: a node that is updated is not Ready while it restarts. Where that takes longer than the check waits, its
machine is rebooted again or deleted in the middle of it.

Remedy: pause them for the time of the update: `oc -n openshift-machine-api annotate mhc NAME
cluster.x-k8s.io/paused=""`, and resume them afterwards; `oc -n openshift-machine-api get mhc -o yaml` shows the
annotation.

Accepting it is right where the nodes restart in much less time than the checks wait.

Source of the rule: the OpenShift documentation of updating clusters, Pausing a MachineHealthCheck resource;
openshift/machine-api-operator, `pkg/controller/machinehealthcheck`.
"""

from __future__ import annotations

from kubekit.rules.eviction_rules import scale_share
from runup.api.platform_v1 import MachineHealthCheck
from runup.checks.writing import DEFINITIONS, Context, Findings, Snapshot, count, declared, full_name, names, risk

NAME = "MachineHealthCheckActive"
PAUSED = "cluster.x-k8s.io/paused"
EXAMPLE = """
apiVersion: machine.openshift.io/v1beta1
kind: MachineHealthCheck
metadata: {name: workers, namespace: openshift-machine-api}
spec:
  maxUnhealthy: 40%
  unhealthyConditions:
  - {type: Ready, status: Unknown, timeout: 300s}
  - {type: Ready, status: "False", timeout: 300s}
status: {expectedMachines: 5}
"""


def run(snapshot: Snapshot, _context: Context) -> Findings:
    """Yields one risk that names the MachineHealthChecks that may replace a node while it is updated."""
    active: list[MachineHealthCheck] = []
    texts: list[str] = []
    for check in sorted(snapshot.all_or_none(MachineHealthCheck), key=full_name):
        waits = [condition.timeout for condition in check.spec.unhealthy_conditions if condition.type == "Ready"]
        is_idle = PAUSED in check.metadata.annotations or check.status.expected_machines == 0
        if waits and not is_idle and _may_act(check):
            active.append(check)
            texts.append(f"{check.metadata.name} (after {names(sorted({*waits} - {''})) or 'its own time'})")
    if active:
        yield risk(
            NAME,
            f"{count(len(active), 'MachineHealthCheck')} may replace machines while nodes are updated: {names(texts)}.",
            active,
            fix='Pause them: `oc -n openshift-machine-api annotate mhc NAME cluster.x-k8s.io/paused=""`; resume them '
            "after the update.",
        )


def _may_act(check: MachineHealthCheck) -> bool:
    """Returns whether the controller may replace a machine while one node restarts (isAllowedRemediation)."""
    limit, machines = check.spec.max_unhealthy, check.status.expected_machines
    if limit is None:
        return True
    try:
        # Without a status it is not known yet how many machines it has: then a share above 0 allows it.
        return scale_share(limit, 100 if machines is None else machines, up=False) >= 1
    except ValueError:
        return False


CHECK = declared(run, NAME, "machine-api", reads=(MachineHealthCheck, DEFINITIONS), rank=575)
