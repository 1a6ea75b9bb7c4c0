"""An operator that OLM installed has failed.

Applies when a ClusterServiceVersion (a copy does not count) is in phase Failed or Unknown, or has been in Pending,
InstallReady or Installing for an hour or more (one without a phase is Unknown: OLM has not handled it); when an
InstallPlan that was approved is in phase Failed and no later one for the same operator was completed; or when a
Subscription has had one of the conditions ResolutionFailed, BundleUnpackFailed, InstallPlanFailed or InstallPlanMissing
for ten minutes or more, or BundleUnpacking for an hour: its operator is not updated then.

Why it matters: the update does not fix an operator that fails before it, and the webhooks of the operator may block
other components.

Remedy: `oc describe csv NAME -n NAMESPACE` names the missing requirements; once they are met, `oc get csv -A` shows
phase Succeeded.

Accepting it means that this operator stays as it is.

Source of the rule: operator-framework/api, `operators/v1alpha1` (ClusterServiceVersionPhase, InstallPlanPhase,
SubscriptionConditionType; the resolution is that of the whole namespace); BundleUnpackFailed stays until the unpack Job
is deleted (operator-lifecycle-manager#2942).
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta

from kubekit.api.conditions import find
from runup.api.olm_v1alpha1 import ClusterServiceVersion, InstallPlan, Subscription
from runup.checks import writing
from runup.checks.catalogue.olm.shared.installed_operators import CSVS, READS, installed
from runup.checks.writing import (
    Context,
    Findings,
    Snapshot,
    declared,
    full_name,
    names,
    resource_of,
    risk,
    yield_from_all,
)

NAME = "OperatorFailed"
PHASES = ("Failed", "Unknown")
ON_THE_WAY = ("Pending", "InstallReady", "Installing")
PATIENCE = timedelta(hours=1)
# Conditions that, while True, keep an operator from being updated: the effect, and the remedy.
_FAILURES = {
    "ResolutionFailed": (
        "no operator of its namespace is updated",
        "Its message names a catalog that does not answer, a channel that does not exist, or operators that exclude "
        "each other.",
    ),
    "BundleUnpackFailed": (
        "OLM creates no InstallPlan for its next version",
        "Delete the failed unpack Job and its ConfigMap, which have the same name, in the namespace of the catalog.",
    ),
    "BundleUnpacking": (
        "OLM creates no InstallPlan for its next version",
        "See the unpack Job in the namespace of the catalog: `oc get jobs,pods -n openshift-marketplace`.",
    ),
    "InstallPlanFailed": ("its next version is not installed", "Delete the failed InstallPlan to retry."),
    "InstallPlanMissing": (
        "its next version is not installed",
        "Delete the Subscription and create it again if no InstallPlan appears.",
    ),
}
EXAMPLE = """
apiVersion: operators.coreos.com/v1alpha1
kind: ClusterServiceVersion
metadata: {name: logging.v5.8.1, namespace: openshift-logging}
status:
  phase: Failed
  reason: InstallCheckFailed
  message: "install timeout"
  lastTransitionTime: "2026-01-14T09:00:00Z"
"""


def run(snapshot: Snapshot, context: Context) -> Findings:
    """Yields a risk for each installed operator, current InstallPlan and Subscription that failed."""
    yield from yield_from_all(
        lambda: _operator_findings(installed(snapshot), context),
        lambda: _plan_findings(snapshot),
        lambda: _subscriptions_findings(snapshot, context),
    )


def _operator_findings(csvs: Iterable[ClusterServiceVersion], context: Context) -> Findings:
    silent = []
    for csv in csvs:
        if not csv.status.phase:
            silent.append(csv)
        status, since = csv.status, csv.status.last_transition_time
        is_late = status.phase in ON_THE_WAY and since is not None and context.now - since >= PATIENCE
        if status.phase in PHASES or is_late:
            why = ": ".join(part for part in (status.reason, " ".join(status.message.split())) if part)
            yield risk(
                f"{NAME}-{csv.metadata.name}",
                f"Operator {full_name(csv)} is in phase {status.phase}{_cause_text(why)}{writing.since_suffix(since)}.",
                [csv],
                fix=f"See `oc describe csv {csv.metadata.name} -n {csv.metadata.namespace}`, and fix what it names.",
            )
    if silent:
        why = f"{writing.count(len(silent), 'operator')} ({writing.names_of(silent)}) report no phase"
        fix = "See the pod olm-operator in namespace openshift-operator-lifecycle-manager."
        yield writing.unknown(NAME, why, silent, fix=fix, kind=CSVS)


def _plan_findings(snapshot: Snapshot) -> Findings:
    plans = sorted(snapshot.all_or_none(InstallPlan), key=full_name)
    succeeded = [csv for csv in installed(snapshot) if csv.status.phase == "Succeeded"]
    # A version that a later one replaced is gone again, and was installed all the same.
    was_installed = {name for csv in succeeded for name in (csv.metadata.name, csv.spec.replaces)}
    for plan in plans:
        missing = [name for name in plan.spec.cluster_service_version_names if name not in was_installed]
        if plan.status.phase != "Failed" or not missing or any(_supersedes_plan(other, plan) for other in plans):
            continue
        # A plan that could not be read may have superseded it, a version that could not be read may be what it was for.
        if snapshot.has_all(resource_of(InstallPlan), plan.metadata.namespace) and snapshot.has_all(CSVS):
            yield risk(
                f"{NAME}-{plan.metadata.name}",
                f"InstallPlan {full_name(plan)} failed, and {names(missing)} did not come"
                f"{_cause_text(plan.status.message)}.",
                [plan],
                fix=f"See `oc describe installplan {plan.metadata.name} -n {plan.metadata.namespace}`; delete it "
                "to retry.",
            )


def _subscriptions_findings(snapshot: Snapshot, context: Context) -> Findings:
    for sub in sorted(snapshot.all_or_none(Subscription), key=full_name):
        yield from _subscription_findings(sub, context)


def _subscription_findings(sub: Subscription, context: Context) -> Findings:
    """Yields a risk for the first condition of a Subscription that keeps its operator from being updated."""
    name, namespace = sub.metadata.name, sub.metadata.namespace
    for type_, (effect, fix) in _FAILURES.items():
        failed = find(sub.status.conditions, type_)
        if failed is None or failed.status != "True":
            continue
        since = failed.last_transition_time
        # A bundle is unpacked within ten minutes, or its Job fails (OLM's --bundle-unpack-timeout).
        is_under_way = type_ == "BundleUnpacking"
        patience = PATIENCE if is_under_way else writing.DOWN_PATIENCE
        if (since is None and is_under_way) or (since is not None and context.now - since < patience):
            continue
        yield risk(
            f"{NAME}-{name}",
            f"Subscription {namespace}/{name} has the condition {type_}, so {effect}"
            f"{_cause_text(failed.message)}{writing.since_suffix(since)}.",
            [sub],
            fix=f"See `oc describe subscription {name} -n {namespace}`. {fix}",
        )
        return


def _cause_text(message: str) -> str:
    words = " ".join(message.split())[: writing.LONGEST_CAUSE].rstrip(".")
    return f": {words}" if words else ""


def _supersedes_plan(other: InstallPlan, plan: InstallPlan) -> bool:
    """Returns whether a later plan installed other versions of the operators that a plan should have installed."""
    if other.status.phase != "Complete" or other.metadata.namespace != plan.metadata.namespace:
        return False
    times = (plan.metadata.creation_timestamp, other.metadata.creation_timestamp)
    if times[0] is None or times[1] is None or times[1] <= times[0]:
        return False
    installed_packages = {_package_name(name) for name in other.spec.cluster_service_version_names}
    return all(_package_name(name) in installed_packages for name in plan.spec.cluster_service_version_names)


def _package_name(csv: str) -> str:
    """Returns the part of a ClusterServiceVersion's name before its version, such as `logging` of `logging.v5.8.1`."""
    return csv.partition(".v")[0]


CHECK = declared(run, NAME, "operator-lifecycle-manager", reads=(*READS, InstallPlan, Subscription), rank=420)
