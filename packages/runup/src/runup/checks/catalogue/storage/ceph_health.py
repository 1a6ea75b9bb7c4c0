"""The storage of the cluster is not healthy, and the update restarts its nodes one by one.

Applies when a CephCluster (Rook, OpenShift Data Foundation) reports HEALTH_ERR or, with a lower severity, HEALTH_WARN.
A warning that names nothing but daemons that crashed in the past (RECENT_CRASH, RECENT_MGR_MODULE_CRASH) is not
reported. A CephCluster that does not report its health is Unknown.

Why it matters: each drained node takes its disks out of the storage. Where data is not yet complete on the others,
Rook's budgets keep the next node from being drained, or volumes stop.

Remedy: `oc describe cephcluster NAME -n NAMESPACE` shows Ceph's message; wait until all data is replicated and the
health is HEALTH_OK.

Accepting it is right for warnings that are not about data.

Source of the rule: rook, `ceph.rook.io/v1` (CephCluster `status.ceph`) and its documentation of upgrades (health
verification); the documentation of OpenShift Data Foundation on updating (resilient data first); the documentation of
Ceph, Health checks.
"""

from __future__ import annotations

from runup.api.platform_v1 import CephCluster
from runup.checks.decide.model import DEFINITIONS, Context, Snapshot
from runup.checks.writing import LONGEST_CAUSE, Findings, declared, full_name, risk, unknown

NAME = "CephUnhealthy"
EXAMPLE = """
apiVersion: ceph.rook.io/v1
kind: CephCluster
metadata: {name: rook-ceph, namespace: rook-ceph}
status:
  phase: Ready
  ceph:
    health: HEALTH_ERR
    details: {PG_DAMAGED: {message: "Possible data damage: 1 pg inconsistent", severity: HEALTH_ERR}}
"""


def run(snapshot: Snapshot, _context: Context) -> Findings:
    """Yields a finding for each CephCluster that does not report HEALTH_OK."""
    for cluster in sorted(snapshot.all_or_none(CephCluster), key=full_name):
        ceph = cluster.status.ceph
        look = f"`oc describe cephcluster {cluster.metadata.name} -n {cluster.metadata.namespace}`"
        if ceph is None or not ceph.health:
            yield unknown(NAME, f"{full_name(cluster)} does not say how it is", [cluster], fix=f"See {look}.")
        elif ceph.health != "HEALTH_OK" and not (
            ceph.health == "HEALTH_WARN" and bool(ceph.details) and ceph.details.keys() <= _PAST
        ):
            details = cluster.status.ceph.details if cluster.status.ceph else {}
            ordered = sorted(details.items(), key=lambda item: (item[1].severity != "HEALTH_ERR", item[0]))
            words = "; ".join(f"{name}: {' '.join(detail.message.split())}" for name, detail in ordered)[:LONGEST_CAUSE]
            health_details = f": {words.rstrip('.')}" if words else ""
            yield risk(
                NAME,
                f"Ceph cluster {full_name(cluster)} says {ceph.health}{health_details}.",
                [cluster],
                severity="warning" if ceph.health == "HEALTH_WARN" else "critical",
                fix=f"Fix what {look} names, and wait until its data is complete.",
            )


# docs.ceph.com, Health checks: a daemon crashed recently, whether or not it runs again.
_PAST = {"RECENT_CRASH", "RECENT_MGR_MODULE_CRASH"}


CHECK = declared(run, NAME, "rook", reads=(CephCluster, DEFINITIONS), rank=655, severity="critical")
