"""An update of an installed operator waits for approval.

Applies when an InstallPlan is in phase RequiresApproval and what it brings is not installed. All such plans are one
risk. A plan that brings no version to which a Subscription of its namespace goes is superseded and does not count. If
no Subscription of the namespace names a version, every plan counts.

Why it matters: the catalog has a newer version that is not installed. After the update of the cluster, the installed
version may be too old to update from.

Remedy: look at the plan and approve it: `oc patch installplan NAME -n NAMESPACE --type=merge -p
'{"spec":{"approved":true}}'`; `oc get csv -n NAMESPACE` shows the new version.

Accepting it is right where the version is held back on purpose.

Source of the rule: operator-framework/api, `operators/v1alpha1` (InstallPlanPhase; SubscriptionStatus, currentCSV).
"""

from __future__ import annotations

from runup.api.olm_v1alpha1 import InstallPlan, Subscription
from runup.checks.catalogue.olm.shared.installed_operators import CSVS, READS, installed
from runup.checks.writing import Context, Findings, Snapshot, count, declared, full_name, names, resource_of, risk

NAME = "OperatorUpdateWaits"
EXAMPLE = """
apiVersion: operators.coreos.com/v1alpha1
kind: InstallPlan
metadata: {name: install-x7k2, namespace: openshift-logging}
spec: {approval: Manual, approved: false, clusterServiceVersionNames: [logging.v5.9.0]}
status: {phase: RequiresApproval}
"""


def run(snapshot: Snapshot, _context: Context) -> Findings:
    """Yields one finding (info) that names the current InstallPlans that wait for approval."""
    present = {(csv.metadata.namespace, csv.metadata.name) for csv in installed(snapshot)}
    waiting = [
        plan
        for plan in sorted(snapshot.all_or_none(InstallPlan), key=full_name)
        if plan.status.phase == "RequiresApproval"
        and any((plan.metadata.namespace, name) not in present for name in plan.spec.cluster_service_version_names)
    ]
    if waiting:
        goals: dict[str, set[str]] = {}
        for sub in snapshot.all_or_none(Subscription):
            goals.setdefault(sub.metadata.namespace, set()).add(sub.status.current_csv)
        # Who has no goal yet ("") may go to any of them. A version or a goal that could not be read may be the plan's.
        waiting = [
            plan
            for plan in waiting
            if goals.get(plan.metadata.namespace, {""}) & {"", *plan.spec.cluster_service_version_names}
            and all(snapshot.has_all(kind, plan.metadata.namespace) for kind in (CSVS, resource_of(Subscription)))
        ]
    if waiting:
        listing = names([f"{full_name(plan)} ({names(plan.spec.cluster_service_version_names)})" for plan in waiting])
        yield risk(
            NAME,
            f"{count(len(waiting), 'InstallPlan')} {'waits' if len(waiting) == 1 else 'wait'} for approval: {listing}.",
            waiting,
            severity="info",
            fix="Approve the plan, or delete it; `oc get installplans -A` shows what waits.",
        )


CHECK = declared(
    run, NAME, "operator-lifecycle-manager", reads=(*READS, InstallPlan, Subscription), rank=430, severity="info"
)
