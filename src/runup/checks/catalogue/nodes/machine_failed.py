"""Machines that the cluster made are broken.

Applies when a Machine is in phase Failed. All of them are one risk.

Why it matters a failed machine is never mended by itself: its node is missing where a drain needs the room, and a
MachineSet that wants it does not make another.

What to do `oc describe machine NAME -n openshift-machine-api` says why; delete it, and its MachineSet makes a new one.

Accepting it means that the cluster has room enough without them.

Source of the rule openshift/machine-api-operator, phases of Machines (Failed is final).
"""

from __future__ import annotations

from collections.abc import Iterator

from runup.api.platform_v1 import Machine
from runup.checks.catalogue.declaring import declared, named, risk
from runup.checks.catalogue.shared.presence import DEFINITIONS, all_or_none
from runup.checks.decide.model import Context, Finding, Snapshot
from runup.checks.decide.wording import count, names

NAME = "MachineFailed"
EXAMPLE = """
apiVersion: machine.openshift.io/v1beta1
kind: Machine
metadata: {name: worker-us-1a-x2, namespace: openshift-machine-api}
status: {phase: Failed, errorReason: InsufficientResources}
"""


def _run(snapshot: Snapshot, _context: Context) -> Iterator[Finding]:
    failed = sorted((each for each in all_or_none(snapshot, Machine) if each.status.phase == "Failed"), key=named)
    if failed:
        listing = names([f"{each.metadata.name} ({each.status.error_reason or 'no reason given'})" for each in failed])
        yield risk(
            NAME,
            f"{count(len(failed), 'machine')} failed and will not come back: {listing}.",
            failed,
            fix="See `oc describe machine NAME -n openshift-machine-api`, then delete it; `oc get machines -A` "
            "shows a new one.",
        )


CHECK = declared(__doc__, NAME, "machine-api", (Machine, DEFINITIONS), _run, rank=570, example=EXAMPLE)
