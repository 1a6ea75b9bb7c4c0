"""The newest backup of etcd failed.

Applies when, of the EtcdBackups of the cluster, the newest has the condition BackupFailed. If it has no condition, the
result is Unknown. A cluster without EtcdBackups is not evaluated: backups may be made in other ways, of which the
cluster knows nothing.

Why it matters: only a backup can undo an update that went wrong.

Remedy: see `oc describe etcdbackup NAME`, and make one that comes to its end before the update.

Accepting it means to have no backup, or one of another kind.

Source of the rule: cluster-etcd-operator, `pkg/operator/backupcontroller` (conditions of EtcdBackup).
"""

from __future__ import annotations

from datetime import UTC, datetime

from kubekit.api.conditions import find
from runup.api.operator_v1 import EtcdBackup
from runup.checks.writing import (
    DEFINITIONS,
    Context,
    Findings,
    Snapshot,
    condition_text,
    declared,
    resource_of,
    risk,
    unknown,
)

NAME = "EtcdBackupFailed"
EXAMPLE = """
apiVersion: operator.openshift.io/v1alpha1
kind: EtcdBackup
metadata: {name: nightly-3, creationTimestamp: "2026-01-14T01:00:00Z"}
status:
  conditions: [{type: BackupFailed, status: "True", reason: BackupFailed, message: the volume is full}]
"""
_NEVER = datetime.min.replace(tzinfo=UTC)


def run(snapshot: Snapshot, _context: Context) -> Findings:
    """Yields a risk if the newest EtcdBackup failed."""
    backups = snapshot.all_or_none(EtcdBackup)
    if not backups:
        return
    newest = max(backups, key=lambda backup: (backup.metadata.creation_timestamp or _NEVER, backup.metadata.name))
    failed = find(newest.status.conditions, "BackupFailed")
    # One that is not in the list may be newer.
    if failed is not None and failed.status == "True" and snapshot.has_all(resource_of(EtcdBackup)):
        yield risk(
            NAME,
            f"The newest backup of etcd, {newest.metadata.name}, failed{condition_text(failed)}",
            [newest],
            fix=f"See `oc describe etcdbackup {newest.metadata.name}`, and make a backup before the update.",
        )
    elif not newest.status.conditions:
        why = f"the newest backup of etcd, {newest.metadata.name}, does not report how it went"
        yield unknown(NAME, why, [newest], fix=f"See `oc describe etcdbackup {newest.metadata.name}`.")


CHECK = declared(run, NAME, "etcd", reads=(EtcdBackup, DEFINITIONS), rank=690)
