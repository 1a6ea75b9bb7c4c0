"""A CustomResourceDefinition is not established, or is being deleted.

Applies when a CustomResourceDefinition says NamesAccepted=False, Established=False, or Terminating=True. A definition
without the condition Established, which the API server sets on each, is Unknown.

Why it matters: its kind is not served, or its objects are being deleted; a release that brings the definition, or whose
operator reads the kind, waits for it.

Remedy: `oc describe crd NAME` says why: another definition has its names, or the finalizer of an object blocks the
deletion.

Accepting it means that clients that need the kind may wait.

Source of the rule: the conditions of apiextensions.k8s.io/v1.
"""

from __future__ import annotations

from kubekit.api.extension_v1 import CustomResourceDefinition
from runup.checks.writing import (
    DEFINITIONS,
    Context,
    Findings,
    Snapshot,
    count,
    declared,
    names,
    names_of,
    risk,
    unknown,
)

NAME = "CRDNotInForce"
CONDITIONS_NOT_IN_FORCE = (("NamesAccepted", "False"), ("Established", "False"), ("Terminating", "True"))
EXAMPLE = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: backups.example.com}
status:
  conditions: [{type: Terminating, status: "True", reason: InstanceDeletionInProgress}]
"""


def run(snapshot: Snapshot, _context: Context) -> Findings:
    """Yields one risk that names every definition that is not established."""
    inactive: list[tuple[CustomResourceDefinition, str]] = []
    silent: list[CustomResourceDefinition] = []
    for crd in sorted(snapshot.all(CustomResourceDefinition), key=lambda definition: definition.metadata.name):
        conditions = [(condition.type, condition.status) for condition in crd.status.conditions]
        if bad := [f"{type_}={status}" for type_, status in conditions if (type_, status) in CONDITIONS_NOT_IN_FORCE]:
            inactive.append((crd, ", ".join(bad)))
        elif "Established" not in dict(conditions):
            silent.append(crd)
    if inactive:
        listing = names([f"{crd.metadata.name} ({why})" for crd, why in inactive])
        yield risk(
            NAME,
            f"{count(len(inactive), 'CustomResourceDefinition')} {'is' if len(inactive) == 1 else 'are'} not in force: "
            f"{listing}.",
            [crd for crd, _ in inactive],
            fix="See with `oc describe crd NAME` what holds it up.",
        )
    if silent:
        why = f"{count(len(silent), 'CustomResourceDefinition')} ({names_of(silent)}) report no condition Established"
        yield unknown(NAME, why, silent, fix="See `oc describe crd NAME`, and the logs of kube-apiserver.")


CHECK = declared(run, NAME, "kube-apiserver", reads=(DEFINITIONS,), rank=320)
