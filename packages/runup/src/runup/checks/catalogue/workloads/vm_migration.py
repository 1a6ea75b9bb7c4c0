"""Virtual machines must move when their node is drained, and cannot.

Applies when a VirtualMachineInstance that runs has the evictionStrategy LiveMigrate and the condition LiveMigratable is
False. If it names no strategy, that of the KubeVirt object counts; without one there, KubeVirt shuts the machine down.
The result is Unknown if the condition is missing or Unknown, or if there is no KubeVirt object to ask.

Why it matters: KubeVirt refuses the eviction until the machine has moved, which it never does: the drain of its node
stops, and so does the update of its pool.

Remedy: shut the machine down before its node is drained, or fix what the condition names (a volume that only one node
can write, a host device); `oc get vmi -A -o yaml` shows LiveMigratable=True.

Accepting it means that these nodes are not drained by themselves.

Source of the rule: kubevirt, `pkg/util/migrations` (VMIEvictionStrategy, VMIMigratableOnEviction) and the admission of
evictions in `pkg/virt-api/webhooks/validating-webhook/admitters`.
"""

from __future__ import annotations

from kubekit.api.conditions import find
from kubekit.api.meta_v1 import LooseCondition
from runup.api.platform_v1 import KubeVirt, VirtualMachineInstance
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
    yield_from_all,
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
    running = [
        (machine, find(machine.status.conditions, "LiveMigratable"))
        for machine in sorted(snapshot.all_or_none(VirtualMachineInstance), key=full_name)
        if machine.status.phase == "Running"
    ]
    moving = [pair for pair in running if pair[0].spec.eviction_strategy == "LiveMigrate"]
    yield from yield_from_all(
        lambda: _findings(moving),
        lambda: _by_default(snapshot, [pair for pair in running if not pair[0].spec.eviction_strategy]),
    )


_Machine = tuple[VirtualMachineInstance, LooseCondition | None]


def _by_default(snapshot: Snapshot, machines: list[_Machine]) -> Findings:
    """Yields the findings of machines without a strategy, for which that of the KubeVirt object counts."""
    fixed = [pair for pair in machines if pair[1] is None or pair[1].status != "True"]
    if not fixed:
        return
    installations = snapshot.all_or_none(KubeVirt)
    if not installations:
        why = f"no KubeVirt object gives {count(len(fixed), 'virtual machine')} an evictionStrategy"
        who = [machine for machine, _ in fixed]
        yield unknown(NAME, f"{why}: {names_of(who)}", who, fix="See `oc get kubevirt -A -o yaml`.")
    elif any(each.spec.configuration.eviction_strategy == "LiveMigrate" for each in installations):
        yield from _findings(fixed)


def _findings(moving: list[_Machine]) -> Findings:
    """Yields one risk that names the machines that cannot move, and Unknown for those that do not report it."""
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


CHECK = declared(
    run, NAME, "kubevirt", reads=(VirtualMachineInstance, KubeVirt, DEFINITIONS), rank=510, severity="critical"
)
