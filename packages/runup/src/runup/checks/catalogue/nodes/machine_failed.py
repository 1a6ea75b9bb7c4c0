"""Machines of the cluster failed.

Applies when a Machine is in phase Failed, has been Provisioning or Provisioned (without a node) for two hours or more,
or has been in deletion for two hours. All such Machines are one risk. A Machine without a phase, which the machine
controller sets when it first handles the Machine, is Unknown.

Why it matters: a failed machine is never fixed by itself: a drain lacks the capacity of its node, and its MachineSet
does not create another machine.

Remedy: `oc describe machine NAME -n openshift-machine-api` says why. Once that is fixed, delete a machine that has an
owner: its MachineSet or the ControlPlaneMachineSet creates another. A machine without an owner is not recreated.

Accepting it is right where the cluster has enough capacity without them.

Source of the rule: openshift/machine-api-operator, phases of Machines (Failed is final; Provisioned becomes Running
with its node).
"""

from __future__ import annotations

from datetime import timedelta

from kubekit.lang.text import count
from runup.api.platform_v1 import Machine
from runup.checks.decide.wording import names
from runup.checks.writing import (
    DEFINITIONS,
    Context,
    Findings,
    Snapshot,
    declared,
    full_name,
    names_of,
    risk,
    since_text,
    unknown,
)

NAME = "MachineFailed"
ON_THE_WAY = ("Provisioning", "Provisioned")
# Long enough for bare metal; a MachineHealthCheck waits ten minutes by default (nodeStartupTimeout).
PATIENCE = timedelta(hours=2)
EXAMPLE = """
apiVersion: machine.openshift.io/v1beta1
kind: Machine
metadata: {name: worker-us-1a-x2, namespace: openshift-machine-api}
status: {phase: Failed, errorReason: InsufficientResources}
"""


def run(snapshot: Snapshot, context: Context) -> Findings:
    """Yields one risk that names every Machine that failed or never became a node."""
    broken: list[tuple[Machine, str]] = []
    silent: list[Machine] = []
    for machine in sorted(snapshot.all_or_none(Machine), key=full_name):
        status, metadata = machine.status, machine.metadata
        since = metadata.deletion_timestamp or (metadata.creation_timestamp if status.phase in ON_THE_WAY else None)
        if status.phase == "Failed":
            broken.append((machine, status.error_reason or "no reason given"))
        elif since is not None and context.now - since >= PATIENCE:
            broken.append(
                (machine, f"{'Deleting' if metadata.deletion_timestamp else status.phase} {since_text(since)}")
            )
        elif not status.phase:
            silent.append(machine)
    if broken:
        owned = all(machine.metadata.owner_references for machine, _ in broken)
        yield risk(
            NAME,
            f"{count(len(broken), 'machine')} will not come into service: "
            f"{names([f'{machine.metadata.name} ({why})' for machine, why in broken])}.",
            [machine for machine, _ in broken],
            fix="Fix what `oc describe machine NAME -n openshift-machine-api` names, then delete it; "
            + (
                "`oc get machines -A` shows a new one."
                if owned
                else "a machine without an owner (a MachineSet) is not recreated."
            ),
        )
    if silent:
        why = f"{count(len(silent), 'machine')} ({names_of(silent)}) report no phase"
        yield unknown(NAME, why, silent, fix="See the pod machine-api-controllers in namespace openshift-machine-api.")


CHECK = declared(run, NAME, "machine-api", reads=(Machine, DEFINITIONS), rank=570)
