"""Objects could not be rewritten in the version in which they are stored today.

Applies when a StorageVersionMigration has the condition Failed.

Why it matters: an API server cannot read objects that are stored in a version that it no longer knows.

Remedy: `oc get storageversionmigration NAME -o yaml` says why. Fix that, then recreate the object without its status,
because the migrator never retries a failed one, and no controller recreates it: `oc get storageversionmigration NAME -o
yaml | oc replace --force -f -`.

Accepting it means that objects may be left in an old version.

Source of the rule: kubernetes-sigs/kube-storage-version-migrator, `pkg/apis/migration/v1alpha1` and `pkg/controller`
(an object that has Succeeded or Failed is passed over).
"""

from __future__ import annotations

from runup.api.platform_v1 import StorageVersionMigration
from runup.checks.writing import DEFINITIONS, Context, Findings, Snapshot, count, declared, names_of, risk

NAME = "StorageVersionMigrationFailed"
EXAMPLE = """
apiVersion: migration.k8s.io/v1alpha1
kind: StorageVersionMigration
metadata: {name: flowcontrol-flowschema-storage-version-migration}
status: {conditions: [{type: Failed, status: "True", message: the server could not find the requested resource}]}
"""


def run(snapshot: Snapshot, _context: Context) -> Findings:
    """Yields one risk that names every failed StorageVersionMigration."""
    failed = [
        migration
        for migration in snapshot.all_or_none(StorageVersionMigration)
        if any(condition.type == "Failed" and condition.status == "True" for condition in migration.status.conditions)
    ]
    if failed:
        failed.sort(key=lambda migration: migration.metadata.name)
        yield risk(
            NAME,
            f"{count(len(failed), 'storage version migration')} failed: {names_of(failed)}.",
            failed,
            fix="Fix what its condition names, then recreate it, because a failed one is not retried: `oc get "
            "storageversionmigration NAME -o yaml | oc replace --force -f -`.",
        )


CHECK = declared(run, NAME, "kube-storage-version-migrator", reads=(StorageVersionMigration, DEFINITIONS), rank=340)
