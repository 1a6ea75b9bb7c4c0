"""Virtual machines that must move when their node is drained, and cannot.

Applies when a VirtualMachineInstance that runs has evictionStrategy LiveMigrate (its own, or as its status says) and
the condition LiveMigratable is False. The result is Unknown if the condition is missing or Unknown.

Why it matters: KubeVirt refuses the eviction until the machine has moved, which it never does: the drain of its node,
and with it its pool, stops.

Remedy: shut the machine down before its node is drained, or fix what the condition names (a volume that only one node
can write, a host device); `oc get vmi -A -o yaml` shows LiveMigratable=True.

Accepting it means that these nodes are not drained by themselves.

Source of the rule: kubevirt, `pkg/virt-controller/watch/drain` and the condition VMCannotBeEvicted.
"""

from __future__ import annotations

from kubekit.api.conditions import find
from runup.api.platform_v1 import VirtualMachineInstance
from runup.checks.writing import (
    DEFINITIONS,
    Context,
    Findings,
    Snapshot,
    count,
    declared,
    full_name,
    names,
    names_of,
    risk,
    unknown,
)

NAME = "VirtualMachineNotMigratable"
EXAMPLE = """
apiVersion: kubevirt.io/v1
kind: VirtualMachineInstance
metadata: {name: billing, namespace: vms}
spec: {evictionStrategy: LiveMigrate}
status:
  phase: Running
  nodeName: worker-0
  conditions: [{type: LiveMigratable, status: "False", reason: DisksNotLiveMigratable}]
"""


def run(snapshot: Snapshot, _context: Context) -> Findings:
    """Yields one risk that names the virtual machines that cannot be migrated off their node."""
    moving = [
        (machine, find(machine.status.conditions, "LiveMigratable"))
        for machine in sorted(snapshot.all_or_none(VirtualMachineInstance), key=full_name)
        if (machine.spec.eviction_strategy or machine.status.eviction_strategy) == "LiveMigrate"
        and machine.status.phase == "Running"
    ]
    silent = [machine for machine, condition in moving if condition is None or condition.status == "Unknown"]
    pinned = [
        (machine, condition.reason or "LiveMigratable=False")
        for machine, condition in moving
        if condition is not None and condition.status == "False"
    ]
    if pinned:
        listing = names([f"{full_name(machine)} on {machine.status.node_name} ({why})" for machine, why in pinned])
        yield risk(
            NAME,
            f"{count(len(pinned), 'virtual machine')} must move when {'its' if len(pinned) == 1 else 'their'} node is "
            f"drained, and cannot: {listing}.",
            [machine for machine, _ in pinned],
            severity="critical",
            fix="Shut them down first, or fix what `oc get vmi NAME -o yaml` names in condition LiveMigratable.",
        )
    if silent:
        why = (
            f"the condition LiveMigratable of {count(len(silent), 'virtual machine')} is not known: {names_of(silent)}"
        )
        yield unknown(NAME, why, silent, fix="See `oc get vmi NAME -o yaml`, and the pod virt-handler of its node.")


CHECK = declared(run, NAME, "kubevirt", reads=(VirtualMachineInstance, DEFINITIONS), rank=510, severity="critical")
