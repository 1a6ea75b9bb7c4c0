"""The newest backup of etcd failed.

Applies when the newest finished EtcdBackup of the cluster has the condition BackupFailed. Backups that the operator
skipped (BackupSkipped) and backups in progress do not count. If there are EtcdBackups and none of them is finished, the
result is Unknown. A cluster without EtcdBackups is not evaluated, since backups may be made outside the cluster.

Why it matters: only a backup can undo an update that went wrong.

Remedy: see `oc describe etcdbackup NAME`, and make a successful backup before the update.

Accepting it is right where another kind of backup exists.

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
_ENDS = ("BackupCompleted", "BackupFailed")
_NEVER = datetime.min.replace(tzinfo=UTC)


def run(snapshot: Snapshot, _context: Context) -> Findings:
    """Yields a risk if the newest EtcdBackup failed."""
    backups = snapshot.all_or_none(EtcdBackup)
    if not backups:
        return
    ended = [backup for backup in backups if any(_is_true(backup, type_) for type_ in _ENDS)]
    newest = max(
        ended or backups, key=lambda backup: (backup.metadata.creation_timestamp or _NEVER, backup.metadata.name)
    )
    command = f"`oc describe etcdbackup {newest.metadata.name}`"
    failed = find(newest.status.conditions, "BackupFailed")
    if not ended:
        why = f"no backup of etcd reports its end, the newest is {newest.metadata.name}"
        yield unknown(NAME, why, [newest], fix=f"See {command}.")
    # One that is not in the list may be newer.
    elif failed is not None and failed.status == "True" and snapshot.has_all(resource_of(EtcdBackup)):
        yield risk(
            NAME,
            f"The newest backup of etcd, {newest.metadata.name}, failed{condition_text(failed)}",
            [newest],
            fix=f"See {command}, and make a backup before the update.",
        )


def _is_true(backup: EtcdBackup, type_: str) -> bool:
    condition = find(backup.status.conditions, type_)
    return condition is not None and condition.status == "True"


CHECK = declared(run, NAME, "etcd", reads=(EtcdBackup, DEFINITIONS), rank=690)
